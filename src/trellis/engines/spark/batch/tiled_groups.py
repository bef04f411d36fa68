"""Groups of which some are larger than a machine: those are counted in tiles, the others as ever."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema

from trellis.engines.spark.batch.operate import (
    COLLECTED,
    CollectedWork,
    Work,
    counted,
    make_slice,
    maker_of_picks,
    picked,
    picks_of,
    unpacked_answer,
)
from trellis.engines.spark.batch.scan import Scan
from trellis.engines.spark.batch.tile_ranks import trends_in_tiles
from trellis.engines.spark.batch.tiles import TileSize, count_in_tiles
from trellis.engines.spark.session.failures import in_driver
from trellis.engines.spark.session.settled import bounded_batches, settled
from trellis.engines.spark.split.rows import ID
from trellis.engines.spark.split.split import group_keys
from trellis.events.prepare import repeated_id
from trellis.events.slice import Slice
from trellis.operators.batch import PathBatch
from trellis.results.rows import RowMaker


@dataclass(frozen=True)
class TiledGroups:
    """Counts groups of which some are too large for one task, or gives trends of them by rank.

    Parameters
    ----------
    read
        One read of the events, each window a window batch of its own.
    work
        The work of a task on groups that are not too large: `count`, `total`, `pick` or `pick events`.
    tile
        The size of a tile; a group of more than twice as many events is counted in tiles.
    """

    read: Scan
    work: Work
    tile: TileSize

    def answer(self, schema: pa.Schema) -> pa.Table:
        """Return the answer for all groups, in no order."""
        keys = group_keys(self.work.plan.bound)
        rows = self.read.split.rows
        sizes = rows.groupBy(*keys).agg(f.count(f.lit(1)).alias("rows"))
        sizes = sizes.where(f.col("rows") > f.lit(2 * self.tile.of()))
        with in_driver():
            sizes = settled(sizes.withColumn("group", f.monotonically_increasing_id()))
        large = [(row["group"], row["rows"]) for row in self.read.collect(sizes.select("group", "rows")).to_pylist()]
        found = [self._others(_joined(rows, sizes, keys, "left_anti"), schema)] if keys or not large else []
        for number, events in large:
            group = _joined(rows, sizes.where(f.col("group") == number), keys, "left_semi")
            found.append(self._of_large(group, events, schema))
        return pa.concat_tables(found)

    def _others(self, rows: DataFrame, schema: pa.Schema) -> pa.Table:
        """Return the answer for the groups that fit a task."""
        grouped = replace(self.read.split, rows=rows).grouped()
        answers = grouped.mapInArrow(CollectedWork(self.work, ()), from_arrow_schema(COLLECTED))
        return unpacked_answer(self.read.collect(answers), schema)[0]

    def _of_large(self, rows: DataFrame, events: int, schema: pa.Schema) -> pa.Table:
        """Return the answer for one group."""
        plan = self.work.plan
        with in_driver(), bounded_batches(rows.sparkSession):
            self._refuse_repeated(rows)
            one = make_slice(plan, rows.limit(1).toArrow(), self.work.length)
            if self.work.what.startswith("pick"):
                return self._picked(rows, events, one, schema)
            number = count_in_tiles(plan, rows, events, self.tile)
        return counted(self.work.what, RowMaker(plan, one), [number]).cast(schema)

    def _picked(self, rows: DataFrame, events: int, one: Slice, schema: pa.Schema) -> pa.Table:
        """Return the trends of one group that are wanted, by their ranks; `one` has an event of it."""
        plan = self.work.plan
        parts = []
        for _, places, ranks in picks_of(self.work, one):
            found = trends_in_tiles(plan, rows, events, self.tile, ranks)
            labels = np.array(ranks, np.int64), np.zeros(len(ranks), np.int64)
            maker = maker_of_picks(self.work, make_slice(plan, found.events, self.work.length))
            batch = picked(self.work, maker, PathBatch(found.positions, found.bounds, labels), places)
            parts.append(pa.Table.from_batches([batch]).cast(schema))
        return pa.concat_tables(parts) if parts else schema.empty_table()

    def _refuse_repeated(self, rows: DataFrame) -> None:
        """Refuse an id that occurs twice."""
        schema = self.work.plan.bound.known_schema
        if schema.event_id is None:
            return
        often = rows.groupBy(ID).count().where(f.col("count") > f.lit(1))
        first = often.orderBy(ID).first()
        if first is not None:
            raise repeated_id(schema.event_id, first[ID], int(often.agg(f.sum(f.col("count") - 1)).first()[0]))  # type: ignore[index]


def _joined(rows: DataFrame, groups: DataFrame, keys: Sequence[str], how: str) -> DataFrame:
    """Return the rows of some groups, or of all others; NULL is equal to NULL."""
    if not keys:
        return rows
    names = {key: f"group_{key}" for key in keys}
    few = f.broadcast(groups.select(*(f.col(key).alias(name) for key, name in names.items())))
    return rows.join(few, [f.col(key).eqNullSafe(f.col(name)) for key, name in names.items()], how)
