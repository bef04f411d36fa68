"""Counts of groups that are larger than a machine: Spark moves the messages of `trellis.operators.trends.tiles`.

The events of such a group are shuffled twice, to tiles of time and to columns of values, and stay there as places and
ranges of places. Then tiles are counted from the last to the first. When all of a later half are counted, they give
their numbers to the columns, and the columns give sums to all tiles of the earlier half; each half is counted in the
same way. So for `k` tiles numbers of paths are shuffled about log k times, and a tile waits for those behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import pairwise
from typing import Any

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
    unpacked_answer,
)
from trellis.engines.spark.batch.scan import Scan
from trellis.engines.spark.session.failures import in_driver, in_task
from trellis.engines.spark.session.session import cores
from trellis.engines.spark.session.settled import bound_batches, settled
from trellis.engines.spark.split.rows import ID, group_begins, whole_groups
from trellis.engines.spark.split.split import group_keys, order_of_time, row_names
from trellis.events.columns.types import from_arrow, normalise
from trellis.events.prepare import repeated_id
from trellis.events.sorting import table_order, tie_order
from trellis.language.bound import columns_of
from trellis.language.syntax import Report
from trellis.operators.exact import LARGE, primes_for, reconstruct
from trellis.operators.trends import tiles
from trellis.operators.trends.tiles import Message
from trellis.plan.plan import Plan
from trellis.results.rows import RowMaker

BYTES_AN_EVENT = 1500  # of a tile that is being counted, with what is sent
SAMPLED = 200  # events for each tile, to find borders that cut evenly
WORDS = 16  # that are sent together: each pass is two jobs for each tile, of which Spark's driver remembers a thousand
SURE = 62  # bits of a count that one word of 64 holds, whatever was rounded in its logarithm
NUMBERS = [(name, pa.int64()) for name in ("to", "tile", "column", "size", "head", "tail")]
MESSAGE = pa.schema([("kind", pa.string()), *NUMBERS, ("body", pa.binary())])
PLACED = [(name, pa.int64()) for name in ("to", "tile", "event", "tick", "roles", "first", "last")]
Tables = Iterable[pa.Table]


def events_of_a_tile(memory: int) -> int:
    """Return how many events a tile may have for workers with so many bytes."""
    return max(1000, memory // BYTES_AN_EVENT)


@dataclass(frozen=True)
class TiledGroups:
    """Counts groups of which some are too large for one task.

    Parameters
    ----------
    read
        One read of the events, each window a window batch of its own.
    work
        The work of a task on groups that are not too large: `count` or `total`.
    tile
        Events of a tile; a group of more than twice as many is counted in tiles.
    """

    read: Scan
    work: Work
    tile: int

    def answer(self, schema: pa.Schema) -> pa.Table:
        """Return the answer for all groups, in no order."""
        keys = group_keys(self.work.plan.bound)
        rows = self.read.split.rows
        sizes = rows.groupBy(*keys).agg(f.count(f.lit(1)).alias("rows")).where(f.col("rows") > f.lit(2 * self.tile))
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
        with in_driver():
            self._refuse_repeated(rows)
            number = TiledCount.of(plan, rows, events, self.tile, self.work.memory).count()
            one = make_slice(plan, rows.limit(1).toArrow(), self.work.length)
        return counted(self.work.what, RowMaker(plan, one), [number]).cast(schema)

    def _refuse_repeated(self, rows: DataFrame) -> None:
        """Refuse an id that occurs twice."""
        schema = self.work.plan.bound.schema
        assert schema is not None
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


# --- One group --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Tiling:
    """How a group is cut: the rows on the borders of tiles and of columns; each part knows all of them."""

    plan: Plan
    tile_borders: pa.Table
    column_borders: pa.Table
    memory: int | None = None

    @property
    def tiles(self) -> int:
        """The number of tiles."""
        return int(self.tile_borders.num_rows) + 1

    @property
    def columns(self) -> int:
        """The number of columns."""
        return int(self.column_borders.num_rows) + 1

    def groups(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, pa.Table]]:
        """Yield sorted rows by the tile or column that they are for."""
        for table in whole_groups(batches, ["to"], self.memory):
            begins = [*group_begins(table, ["to"]).tolist(), table.num_rows]
            for begin, end in pairwise(begins):
                yield table["to"][begin].as_py(), table.slice(begin, end - begin)

    def messages(self, batches: Iterable[pa.RecordBatch]) -> Iterator[list[Message]]:
        """Yield the messages for each tile or column."""
        for _, table in self.groups(batches):
            yield [Message(**row) for row in table.to_pylist()]


def events_in(plan: Plan, table: pa.Table) -> tiles.TileEvents:
    """Return rows as events."""
    columns = {n: normalise(table[c], from_arrow(table[c].type)) for n, c in _read(plan).items()}
    time, *ties = order_of_time(plan.bound)
    times = table[time].to_numpy()
    order = tie_order(times, [normalise(table[c], from_arrow(table[c].type)) for c in ties])
    return tiles.TileEvents(columns, times if order is None else order)


def _read(plan: Plan) -> dict[str, str]:
    """Return the columns of events that adjacent conditions read, with their columns in the rows."""
    asked = {column.name for condition in plan.adjacent for column in columns_of(condition.value)}
    return {name: column for name, column in row_names(plan).items() if name in asked}


def _sent(messages: Iterable[Message]) -> Iterator[pa.RecordBatch]:
    for message in messages:
        yield pa.RecordBatch.from_pylist([message._asdict()], schema=MESSAGE)


@dataclass(frozen=True)
class ToTiles:
    """Tells of each row its tile."""

    tiling: Tiling

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Take rows in any order, and give them with the number of their tile in front."""
        with in_task():
            borders = self.tiling.tile_borders
            for batch in batches:
                ticks = events_in(self.tiling.plan, pa.concat_tables([pa.Table.from_batches([batch]), borders])).ticks
                tile = pa.array(tiles.tile_of(ticks, borders.num_rows), pa.int64())
                yield pa.RecordBatch.from_arrays([tile, *batch.columns], names=["to", *batch.schema.names])


@dataclass(frozen=True)
class ToColumns:
    """Tells the columns about the events of a tile."""

    tiling: Tiling

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Take the rows of tiles; give those of `PLACED` for columns, with what conditions read behind."""
        with in_task():
            for tile, table in self.tiling.groups(batches):
                yield from self._of(tile, table.drop_columns("to").combine_chunks())

    def _of(self, tile: int, table: pa.Table) -> Iterator[pa.RecordBatch]:
        plan, borders, number = self.tiling.plan, self.tiling.column_borders, table.num_rows
        names = order_of_time(plan.bound)
        order = table_order(table, [*names, *(n for n in table.column_names if n not in names)])  # a retry has the same
        table = table if order is None else table.take(pa.array(order))
        events = events_in(plan, pa.concat_tables([table, borders]))
        codes = tiles.place_codes(plan, events)
        tick = np.unique(events.ticks[:number], return_inverse=True)[1].reshape(-1)
        known = tiles.BorderEvents(events.ticks, codes, self.tiling.columns)
        found = tiles.rows_for_columns(known, tick, tiles.OpenEnds.of(plan))
        about = [found.column, np.full(len(found.event), tile), found.event, tick[found.event]]
        about += [found.roles, found.first, found.last]
        yield from _placed(about, table.take(pa.array(found.event)))
        column, part = (a.reshape(-1) for a in np.indices(found.covers.shape))
        nothing = np.full(len(column), -1)
        about = [column, np.full(len(column), tile), nothing, found.covers.reshape(-1), nothing, part, nothing]
        absent = [pa.nulls(len(column), field.type) for field in table.schema]
        yield from _placed(about, pa.Table.from_arrays(absent, schema=table.schema))


def _placed(about: Sequence[np.ndarray], rows: pa.Table) -> Iterator[pa.RecordBatch]:
    """Yield rows of `PLACED`."""
    columns = [pa.array(a.astype(np.int64)) for a in about]
    names = [name for name, _ in PLACED]
    yield from pa.Table.from_arrays([*columns, *rows.columns], names=[*names, *rows.column_names]).to_batches()


@dataclass(frozen=True)
class ToPieces:
    """Finds the places and the ranges of a column, and tells the tiles."""

    tiling: Tiling

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Take the rows of columns, as `ToColumns` gives them, and give messages for tiles."""
        with in_task():
            for column, table in self.tiling.groups(batches):
                yield from _sent(self._of(column, table))

    def _of(self, column: int, table: pa.Table) -> Iterator[Message]:
        about = {name: table[name].to_numpy() for name, _ in PLACED}
        own = about["event"] >= 0
        covers = np.full((self.tiling.tiles, 3), tiles.NEVER)
        covers[about["tile"][~own], about["first"][~own]] = about["tick"][~own]
        tile, event, tick, roles, first, last = (about[name][own] for name, _ in PLACED[1:])
        rows = tiles.RowsOfColumn(tile, event, tick, roles.astype(np.uint8), first, last)
        raw = table.drop_columns(list(about)).filter(pa.array(own))
        every = self.tiling.column_borders
        begins, ends = column > 0, column < every.num_rows
        near = every.slice(max(0, column - 1), begins + ends)
        codes = tiles.place_codes(self.tiling.plan, events_in(self.tiling.plan, pa.concat_tables([raw, near])))
        yield from tiles.pieces_of_column(column, self.tiling.tiles, rows, codes, covers, (begins, ends))


@dataclass(frozen=True)
class SumColumns:
    """Adds up in columns what later tiles have, for earlier ones."""

    tiling: Tiling
    moduli: tuple[int, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Take the messages for columns, and give those for tiles."""
        with in_task():
            for messages in self.tiling.messages(batches):
                yield from _sent(tiles.sums_of_column(messages, np.array(self.moduli, np.uint64)))


@dataclass(frozen=True)
class CountTile:
    """Counts the paths from the events of a tile on."""

    tiling: Tiling
    moduli: tuple[int, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Take the messages for a tile, and give those for columns."""
        plan = self.tiling.plan
        every, ends = plan.bound.report is Report.ANY, tiles.OpenEnds.of(plan)
        with in_task():
            for messages in self.tiling.messages(batches):
                yield from _sent(tiles.numbers_of_tile(messages, np.array(self.moduli, np.uint64), every, ends))


class TiledCount:
    """The count of one group.

    Parameters
    ----------
    tiling
        How it is cut.
    pieces
        The pieces of all tiles and columns.
    """

    def __init__(self, tiling: Tiling, pieces: DataFrame) -> None:
        self.tiling, self.pieces = tiling, pieces

    @classmethod
    def of(cls, plan: Plan, rows: DataFrame, events: int, tile: int, memory: int | None) -> TiledCount:
        """Cut a group of so many events into tiles, and find the places in columns."""
        bound_batches(rows.sparkSession)
        number = -(-events // tile)
        rows = rows.select(*dict.fromkeys([*_read(plan).values(), *order_of_time(plan.bound)]))
        sample = rows.sample(min(1.0, 1.1 * SAMPLED * number / events), 1).toArrow()
        by_time, by_place = tiles.border_rows(plan, events_in(plan, sample), number)
        tiling = Tiling(plan, sample.take(pa.array(by_time)), sample.take(pa.array(by_place)), memory)
        tiled = rows.mapInArrow(ToTiles(tiling), from_arrow_schema(pa.schema([PLACED[0], *sample.schema])))
        placed = _sent_to(tiled, tiling.tiles, ToColumns(tiling), pa.schema([*PLACED, *sample.schema]))
        return cls(tiling, settled(_sent_to(placed, tiling.columns, ToPieces(tiling), MESSAGE)))

    def count(self) -> int:
        """Return the exact number of trends: one pass where 64 bits hold it, else as many as its bits need."""
        (total,), log = self._pass((0,))
        if log < SURE:
            return total
        bits = int(log) + 2
        primes = primes_for(bits, LARGE)
        found: dict[int, int] = {}
        for begin in range(0, len(primes), WORDS):
            some = tuple(primes[begin : begin + WORDS])
            found.update(zip(some, self._pass(some)[0], strict=True))
        return reconstruct(bits, lambda prime: np.array([[found[prime]]], np.uint64), size=LARGE)[0][0]

    def _pass(self, moduli: tuple[int, ...]) -> tuple[list[int], float]:
        """Return the number of trends modulo each of some numbers, and its binary logarithm."""
        done: dict[int, DataFrame] = {}
        sums: list[tuple[range, DataFrame]] = []
        for earlier, later in tiles.steps(0, self.tiling.tiles):
            if not later:
                (tile,) = earlier
                messages = _together([self.pieces, *(frame for some, frame in sums if tile in some)])
                messages = messages.where(f.col("to") == f.lit(tile))
                done[tile] = settled(_sent_to(messages, 1, CountTile(self.tiling, moduli), MESSAGE))
                continue
            asked = self.pieces.where(f.col("tile").between(earlier[0], earlier[-1])).withColumn("to", f.col("column"))
            given = [done[tile].where(f.col("kind") == f.lit("numbers")) for tile in later]
            added = SumColumns(self.tiling, moduli)
            sums.append((earlier, settled(_sent_to(_together([asked, *given]), self.tiling.columns, added, MESSAGE))))
        ends = _together([frame.where(f.col("kind") == f.lit("done")) for frame in done.values()]).toArrow()
        totals, log = [0] * len(moduli), -np.inf
        for row in ends.to_pylist():
            _, words, logs = Message(**row).numbers()
            modulo = [m or 1 << 64 for m in moduli]
            totals = [(t + int(w)) % m for t, w, m in zip(totals, words[0], modulo, strict=True)]
            log = float(np.logaddexp2(log, logs[0]))
        return totals, log


def _together(frames: Sequence[DataFrame]) -> DataFrame:
    return reduce(DataFrame.union, frames)


def _sent_to(frame: DataFrame, number: int, task: Callable[[Any], Any], schema: pa.Schema) -> DataFrame:
    """Return the answers of tasks to rows, those for one of so many tiles or columns together; a task takes several."""
    number = min(number, cores(frame.sparkSession))
    return frame.repartition(number, "to").sortWithinPartitions("to").mapInArrow(task, from_arrow_schema(schema))
