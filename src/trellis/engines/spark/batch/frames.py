"""Frames of results on Spark: their columns inside Spark and in files, their order, LIMIT and OFFSET."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.window import Window as Over
from pyspark.sql.window import WindowSpec

from trellis.engines.spark.batch.operate import PLACE, spark_type
from trellis.engines.spark.split.rows import output_names
from trellis.events.columns.ordering import sort_indices
from trellis.events.columns.types import from_arrow, normalise

LARGEST_INT, LARGEST_LONG = (1 << 31) - 1, (1 << 63) - 1


def file_schema(schema: pa.Schema) -> pa.Schema:
    """Return the schema of files: not every reader knows columns of type null."""
    return pa.schema([pa.field(fld.name, spark_type(fld.type)) for fld in schema])


def first_columns(number: int) -> list[Column]:
    """Return the first columns of results in rising order, NULL first."""
    return [f.col(name).asc_nulls_first() for name in output_names(number)]


def ordered(frame: DataFrame, order: Sequence[Column]) -> DataFrame:
    """Return a frame in an order, or as it is where there is none."""
    return frame.orderBy(*order) if order else frame


def limited(frame: DataFrame, order: Sequence[Column], offset: int, limit: int | None) -> DataFrame:
    """Return the rows from `offset` on in an order, `limit` of them."""
    if offset + (limit or 0) < LARGEST_INT:
        frame = frame.orderBy(*order)
        frame = frame.offset(offset) if offset else frame
        return frame if limit is None else frame.limit(limit)
    return _placed(frame, Over.orderBy(*order), offset, limit).orderBy(PLACE).drop(PLACE)


def limited_per(
    frame: DataFrame, items: Sequence[str], order: Sequence[Column], offset: int, limit: int | None
) -> DataFrame:
    """Return for each value of the items the rows from `offset` on in an order, `limit` of them, in that order."""
    return _placed(frame, Over.partitionBy(*items).orderBy(*order), offset, limit).orderBy(*order).drop(PLACE)


def _placed(frame: DataFrame, over: WindowSpec, offset: int, limit: int | None) -> DataFrame:
    """Return the rows from `offset` on in an order, `limit` of them, with their places from 1."""
    place = f.count(f.lit(1)).over(over.rowsBetween(Over.unboundedPreceding, Over.currentRow))
    numbered = frame.withColumn(PLACE, place).where(f.col(PLACE) > f.lit(min(offset, LARGEST_LONG)))
    return numbered if limit is None else numbered.where(f.col(PLACE) <= f.lit(min(offset + limit, LARGEST_LONG)))


def at_least_one(rows: DataFrame, default: pa.Table) -> DataFrame:
    """Return a frame of at most one row, or a default where it has none; the frame is computed once."""
    (values,) = default.to_pylist()
    types = [(fld.name, fld.dataType) for fld in rows.schema.fields]
    literals = [f.lit(value).cast(type_).alias(n) for (n, type_), value in zip(types, values.values(), strict=True)]
    whole = rows.agg(f.first(f.struct(*rows.columns)).alias("row"))
    return whole.select(f.coalesce("row", f.struct(*literals)).alias("row")).select("row.*")


def sorted_rows(rows: pa.Table, lead: int) -> pa.Table:
    """Return rows in the order of their first columns, which tell window and partition."""
    if not lead or not rows.num_rows:
        return rows
    columns = [normalise(column, from_arrow(column.type)) for column in rows.columns[:lead]]
    return rows.take(pa.array(sort_indices(columns)))
