"""The table function `trellis_detect` of SQL: each task runs the query in its own process over whole partitions."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.conversion import LocalDataToArrowConversion
from pyspark.sql.functions import udtf
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType
from pyspark.sql.udtf import AnalyzeArgument, AnalyzeResult, PartitioningColumn

from trellis.engines.spark.ship.ship import ship
from trellis.engines.spark.sources.loading import quoted
from trellis.errors import DataError, UsageError
from trellis.events.tables import with_fields, with_readable_times
from trellis.language.bound import BoundQuery
from trellis.providers import provided

NAME = "trellis_detect"
_ROWS = 10_000  # that become arrays at a time


def register(spark: SparkSession) -> None:
    """Give a session the table function `trellis_detect`: see `trellis.register`."""
    ship(spark)
    spark.udtf.register(NAME, udtf(DetectTable, useArrow=False))  # type: ignore[arg-type]


@dataclass
class TableFunctionAnswer(AnalyzeResult):
    """The answer to Spark about a call, and what its tasks need: query, options, and the schema of the table."""

    query: str = ""
    options: dict[str, Any] = field(default_factory=dict)
    columns: str = ""


class DetectTable:
    """The function as Spark calls it: `analyze` when SQL is planned, the rest for each partition in a task.

    Parameters
    ----------
    analyze_result
        The answer of `analyze`.
    """

    def __init__(self, analyze_result: TableFunctionAnswer) -> None:
        self._call = analyze_result
        self._schema = StructType.fromJson(json.loads(analyze_result.columns))
        self._rows: list[Any] = []
        self._tables: list[pa.Table] = []

    @staticmethod
    def analyze(
        table: AnalyzeArgument, query: AnalyzeArgument, time: AnalyzeArgument | None = None,
        type: AnalyzeArgument | None = None, event_id: AnalyzeArgument | None = None,
        params: AnalyzeArgument | None = None, report_mode: AnalyzeArgument | None = None,
        max_trends: AnalyzeArgument | None = None, on_bad_rows: AnalyzeArgument | None = None,
    ) -> TableFunctionAnswer:  # fmt: skip
        """Return the columns of the result, and how Spark is to partition the table."""
        sys.tracebacklimit = 0  # of this process, which does no more than this: Spark shows what it raises
        if not table.isTable or not isinstance(table.dataType, StructType):
            raise UsageError(f"the first argument of {NAME} is no table", "Write TABLE(name) or TABLE(SELECT ...).")
        given = {
            "time": time, "type": type, "event_id": event_id, "params": params, "report_mode": report_mode,
            "max_trends": max_trends, "on_bad_rows": on_bad_rows,
        }  # fmt: skip
        options = {name: _value(name, one) for name, one in given.items() if one is not None}
        text = _value("query", query)
        found = _results(text, to_arrow_schema(table.dataType, timezone="UTC").empty_table(), options)
        bound = found.plan.bound
        _check(bound)
        return TableFunctionAnswer(
            schema=from_arrow_schema(found.schema),
            withSinglePartition=not bound.partition,
            partitionBy=[PartitioningColumn(quoted(name)) for name, _ in bound.partition],
            query=text, options=options, columns=table.dataType.json(),
        )  # fmt: skip

    def eval(self, row: Any, *_: Any, **__: Any) -> None:
        """Take an event of the partition; the other arguments are in the analysis."""
        self._rows.append(row)
        if len(self._rows) >= _ROWS:
            self._store()

    def terminate(self) -> Iterator[tuple[Any, ...]]:
        """Give the results of the partition."""
        self._store()
        found = _results(self._call.query, pa.concat_tables(self._tables), self._call.options)
        batches = found.to_arrow().to_batches() if found.plan.bound.aggregates else found.batches()
        for batch in batches:
            yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)

    def _store(self) -> None:
        self._tables.append(LocalDataToArrowConversion.convert(self._rows, self._schema, False))
        self._rows = []


def _results(text: str, table: pa.Table, options: dict[str, Any]) -> Any:
    flat = with_fields({None: table})
    read, time = with_readable_times(flat, options.get("time"))
    table = read[None]
    if time in table.column_names and table[time].type != flat[None][time].type:
        table = table.set_column(table.column_names.index(time), time, _without_zone(table[time], time))
    return provided("local engine").detect(text, table, **options)


def _without_zone(times: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    """Return times that text tells, which has no zone: SQL is planned before rows could tell that one has."""
    if times.type.tz is not None and times.null_count < len(times):
        raise DataError(
            f"the column `{name}` is text that tells a zone, which {NAME} cannot know when SQL is planned",
            f"Write TABLE(SELECT CAST({quoted(name)} AS TIMESTAMP) AS {quoted(name)}, ... FROM ...).",
        )
    return times.cast(pa.timestamp("us"))


def _value(name: str, argument: AnalyzeArgument) -> Any:
    if argument.isTable or not argument.isConstantExpression:
        raise UsageError(f"`{name}` of {NAME} is not constant", "Write a literal.")
    return argument.value


def _check(bound: BoundQuery) -> None:
    """Refuse a query whose answer is not that of each partition by itself."""
    schema = bound.schema
    if schema is not None and schema.event_id is None and not bound.aggregates:
        raise UsageError(f"{NAME} needs the ids of events", "Name their column: event_id => 'COLUMN'.")
    if not bound.partition:
        return
    names = [name for name, _ in bound.partition]
    if bound.aggregates and bound.group_by and sorted(bound.group_by) != sorted(names):
        raise UsageError(
            f"{NAME} gives aggregates of each partition, and GROUP BY names other attributes",
            "Leave GROUP BY out, and write that of SQL around it.",
        )
    whole = bound.order_by or bound.limit is not None or bound.offset
    if whole and not bound.per_window:
        raise UsageError(
            f"{NAME} runs in each partition by itself; ORDER BY, LIMIT and OFFSET of the query are about all of them",
            "Leave them out of the query, and write those of SQL around it.",
        )
