"""The count of a group that is larger than a machine: Spark moves the messages of `trellis.operators.trends.tiles`.

The events of the group are shuffled twice, to tiles of time and to columns of values, and stay there as places and
ranges of places. Messages come sorted, so that a task holds one tile or column at a time, and one message. Then tiles
are counted from the last to the first. When all of a later half are counted, they give their numbers to the columns,
and the columns give sums to all tiles of the earlier half; each half is counted in the same way. So for `k` tiles
numbers of paths are shuffled about log k times, and a tile waits for those behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import groupby, pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema

from trellis.engines.spark.session.failures import in_task
from trellis.engines.spark.session.session import cores
from trellis.engines.spark.session.settled import settled
from trellis.engines.spark.split.rows import ID, group_begins
from trellis.engines.spark.split.split import order_of_time, row_names
from trellis.events.columns.types import from_arrow, normalise
from trellis.events.sorting import tie_order
from trellis.events.table_bytes import packed
from trellis.language.bound import columns_of
from trellis.language.syntax import Report
from trellis.operators.exact import LARGE, primes_for, reconstruct
from trellis.operators.trends import tiles
from trellis.operators.trends.tiles import Message
from trellis.plan.plan import Plan

BYTES_AN_EVENT, BYTES_A_WORD = 270, 40  # of a tile that is being counted; and for each word of its numbers
COLUMNS = 4  # for each tile: what a column sorts takes more than what a tile counts
SAMPLED = 500  # events for each column, to find borders that cut evenly
BLOCK = 1 << 15  # events of a tile that are looked at together to find their columns
WORDS = 16  # that are sent together: each pass is two jobs for each tile, of which Spark's driver remembers a thousand
SURE = 62  # bits of a count that one word of 64 holds, whatever was rounded in its logarithm
NUMBERS = [(name, pa.int64()) for name in ("to", "tile", "column", "size", "head", "tail")]
MESSAGE = pa.schema([("kind", pa.string()), *NUMBERS, ("body", pa.binary())])
TO = pa.field("to", pa.int64())
INDEX = pa.int32()
ABOUT = pa.schema([("index", INDEX), ("tick", INDEX), ("roles", pa.uint8()), ("first", INDEX), ("last", INDEX)])


@dataclass(frozen=True)
class TileSize:
    """How many events a tile has: so many, or those that a worker with so many bytes of memory can count."""

    events: int | None = None
    memory: int | None = None

    def of(self, words: int = 1) -> int:
        """Return the number of events where their numbers have so many words."""
        if self.events is not None:
            return self.events
        assert self.memory is not None
        return max(1000, self.memory // (BYTES_AN_EVENT + words * BYTES_A_WORD))


@dataclass(frozen=True)
class Tiling:
    """How a group is cut: the rows on the borders of tiles and of columns; each part knows all of them."""

    plan: Plan
    tile_borders: pa.Table
    column_borders: pa.Table

    @property
    def tiles(self) -> int:
        """The number of tiles."""
        return int(self.tile_borders.num_rows) + 1

    @property
    def columns(self) -> int:
        """The number of columns."""
        return int(self.column_borders.num_rows) + 1


def messages_in(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, Iterator[Message]]]:
    """Yield sorted messages by the tile or column that they are for; each is read when it is asked for."""

    def arriving() -> Iterator[Message]:
        for batch in batches:
            numbers = batch.drop_columns("body").to_pylist()
            for about, body in zip(numbers, batch.column("body"), strict=True):
                yield Message(**about, body=body.as_buffer())

    yield from groupby(arriving(), lambda message: message.to)


def events_in(plan: Plan, table: pa.Table) -> tiles.TileEvents:
    """Return rows as events."""
    columns = {n: normalise(table[c], from_arrow(table[c].type)) for n, c in _read(plan).items()}
    time, *ties = order_of_time(plan.bound)
    times = table[time].to_numpy()
    order = tie_order(times, [normalise(table[c], from_arrow(table[c].type)) for c in ties])
    return tiles.TileEvents(columns, times if order is None else order)


def _one_table(tables: Sequence[pa.Table]) -> pa.Table:
    """Return the rows of tables, of which some may say that a column has no NULL, as a frame of Spark's may."""
    return pa.concat_tables(tables, promote_options="default")


def _read(plan: Plan) -> dict[str, str]:
    """Return the columns of events that adjacent conditions read, with their columns in the rows."""
    asked = {column.name for condition in plan.adjacent for column in columns_of(condition.value)}
    return {name: column for name, column in row_names(plan).items() if name in asked}


def sent(messages: Iterable[Message]) -> Iterator[pa.RecordBatch]:
    """Yield messages as rows."""
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
                rows = pa.Table.from_batches([batch]).select(borders.column_names)
                ticks = events_in(self.tiling.plan, _one_table([rows, borders])).ticks
                tile = pa.array(tiles.tile_of(ticks, borders.num_rows), pa.int64())
                yield pa.RecordBatch.from_arrays([tile, *batch.columns], names=["to", *batch.schema.names])


@dataclass(frozen=True)
class ToColumns:
    """Tells the columns about the events of tiles."""

    tiling: Tiling

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Take the rows of tiles, in order of tile and time; give messages for columns."""
        with in_task():
            tile: _TileRows | None = None
            for table in _blocks(batches):
                begins = [*group_begins(table, ["to"]).tolist(), table.num_rows]
                for begin, end in pairwise(begins):
                    number = table["to"][begin].as_py()
                    if tile is None or tile.number != number:
                        yield from sent(tile.covers() if tile else [])
                        tile = _TileRows(self.tiling, number)
                    yield from sent(tile.rows(table.slice(begin, end - begin).drop_columns("to")))
            yield from sent(tile.covers() if tile else [])


def _blocks(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Yield rows some thousands at a time."""
    held: list[pa.RecordBatch] = []
    for batch in batches:
        held.append(batch)
        if sum(one.num_rows for one in held) >= BLOCK:
            yield pa.Table.from_batches(held).combine_chunks()
            held = []
    if held:
        yield pa.Table.from_batches(held).combine_chunks()


class _TileRows:
    """The events of one tile on their way to columns, a block at a time."""

    def __init__(self, tiling: Tiling, number: int) -> None:
        self.tiling, self.number = tiling, number
        self.events, self.tick = 0, -1  # those of the blocks so far
        self.last: pa.Table | None = None  # row
        self.first_over = np.full((tiling.columns, 3), tiles.NEVER)

    def rows(self, table: pa.Table) -> Iterator[Message]:
        """Yield the messages about the next events."""
        plan, borders, number = self.tiling.plan, self.tiling.column_borders, table.num_rows
        before = table.slice(0, 1) if self.last is None else self.last
        events = events_in(plan, _one_table([table, borders, before]))
        steps = np.diff(events.ticks[:number], prepend=events.ticks[-1:])
        if (steps < 0).any():
            raise RuntimeError("the rows of a tile are not in the order of time")
        tick = self.tick + (self.last is None) + np.cumsum(steps != 0)
        codes = tiles.PlaceCodes(*(array[:-1] for array in tiles.place_codes(plan, events)))  # type: ignore[arg-type]
        known = tiles.BorderEvents(events.ticks[:-1], codes, self.tiling.columns)
        found = tiles.rows_for_columns(known, tick, tiles.OpenEnds.of(plan))
        self.first_over = np.minimum(self.first_over, found.covers)
        order = np.argsort(found.column, kind="stable")
        event = found.event[order]
        about = (self.events + event, tick[event], found.roles[order], found.first[order], found.last[order])
        every = pa.table(list(about), schema=ABOUT)
        for name, values in zip(table.column_names, table.take(pa.array(event)).columns, strict=True):
            every = every.append_column(name, values)
        bounds = np.searchsorted(found.column[order], np.arange(self.tiling.columns + 1)).tolist()
        for column, (begin, end) in enumerate(pairwise(bounds)):
            if begin < end:
                body = packed(every.slice(begin, end - begin), compressed=False)
                yield Message("rows", column, self.number, column, 0, 0, 0, body)
        self.events, self.tick, self.last = self.events + number, int(tick[-1]), table.slice(number - 1)

    def covers(self) -> Iterator[Message]:
        """Yield to each column the first ticks over it and its ends, when all events are told."""
        for column, (whole, head, tail) in enumerate(self.first_over.tolist()):
            yield Message("covers", column, self.number, column, whole, head, tail, b"")


@dataclass(frozen=True)
class ToPieces:
    """Finds the places and the ranges of a column, and tells the tiles."""

    tiling: Tiling

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Take the messages for columns, as `ToColumns` gives them, and give messages for tiles."""
        with in_task():
            for column, messages in messages_in(batches):
                yield from sent(self._of(column, messages))

    def _of(self, column: int, messages: Iterable[Message]) -> Iterator[Message]:
        covers = np.full((self.tiling.tiles, 3), tiles.NEVER)
        tables, tile = [], [np.empty(0, np.int32)]
        for message in messages:
            if message.kind == "covers":
                covers[message.tile] = message.size, message.head, message.tail
            else:
                tables.append(message.table())
                tile.append(np.full(tables[-1].num_rows, message.tile, np.int32))
        every = self.tiling.column_borders
        begins, ends = column > 0, column < every.num_rows
        near = every.slice(max(0, column - 1), begins + ends)
        about = pa.concat_tables([ABOUT.empty_table(), *(table.select(ABOUT.names) for table in tables)])
        rows = tiles.RowsOfColumn(np.concatenate(tile), *(about[name].to_numpy() for name in ABOUT.names))
        events = _one_table([*(table.select(near.column_names) for table in tables), near])
        del tables, about
        codes = tiles.place_codes(self.tiling.plan, events_in(self.tiling.plan, events))
        del events
        yield from tiles.pieces_of_column(column, self.tiling.tiles, rows, codes, covers, (begins, ends))


@dataclass(frozen=True)
class SumColumns:
    """Adds up in columns what later tiles have, for earlier ones."""

    tiling: Tiling
    moduli: tuple[int, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Take the messages for columns, and give those for tiles."""
        with in_task():
            for _, messages in messages_in(batches):
                yield from sent(tiles.sums_of_column(messages, np.array(self.moduli, np.uint64)))


@dataclass(frozen=True)
class CountTile:
    """Counts the paths from the events of a tile on."""

    tiling: Tiling
    moduli: tuple[int, ...]
    keep: bool = False

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Take the messages for a tile, and give those for columns; with `keep`, one about all its events."""
        plan = self.tiling.plan
        every, ends = plan.bound.report is Report.ANY, tiles.OpenEnds.of(plan)
        with in_task():
            for _, messages in messages_in(batches):
                moduli = np.array(self.moduli, np.uint64)
                yield from sent(tiles.numbers_of_tile(messages, moduli, every, ends, self.keep))


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
    def of(cls, plan: Plan, rows: DataFrame, events: int, tile: int, ids: bool = False) -> TiledCount:
        """Cut a group of so many events into tiles, and find the places in columns.

        With `ids`, events of a tile that have the same time are in the order of these.
        """
        number = -(-events // tile)
        order = [*order_of_time(plan.bound), *([ID] if ids else [])]
        rows = rows.select(*dict.fromkeys([*order, *_read(plan).values()]))
        sample = rows.sample(min(1.0, 1.1 * SAMPLED * COLUMNS * number / events), 1).toArrow()
        by_time, by_place = tiles.border_rows(plan, events_in(plan, sample), number, COLUMNS * number)
        tiling = Tiling(plan, sample.take(pa.array(by_time)), sample.take(pa.array(by_place)))
        tiled = rows.mapInArrow(ToTiles(tiling), from_arrow_schema(pa.schema([TO, *sample.schema])))
        placed = sent_to(tiled, tiling.tiles, ToColumns(tiling), rows.columns)  # in an order that a retry has too
        return cls(tiling, settled(sent_to(placed, tiling.columns, ToPieces(tiling))))

    def counted(self, moduli: tuple[int, ...], keep: bool = False) -> dict[int, DataFrame]:
        """Return the messages that each tile gives when it is counted: see `CountTile`."""
        done: dict[int, DataFrame] = {}
        sums: list[tuple[range, DataFrame]] = []
        for earlier, later in tiles.steps(0, self.tiling.tiles):
            if not later:
                (tile,) = earlier
                messages = _together([self.pieces, *(frame for some, frame in sums if tile in some)])
                messages = messages.where(f.col("to") == f.lit(tile))
                done[tile] = settled(sent_to(messages, 1, CountTile(self.tiling, moduli, keep)))
                continue
            asked = self.pieces.where(f.col("tile").between(earlier[0], earlier[-1])).withColumn("to", f.col("column"))
            given = [done[tile].where(f.col("kind") == f.lit("numbers")) for tile in later]
            added = SumColumns(self.tiling, moduli)
            found = sent_to(_together([asked, *given]), self.tiling.columns, added)
            sums.append((earlier, settled(found)))
        return done

    def residues(self, moduli: tuple[int, ...]) -> tuple[list[int], float]:
        """Return the number of trends modulo each of some numbers, and its binary logarithm."""
        totals, log = self.totals(self.counted(moduli))
        return [sum(words) % (m or 1 << 64) for words, m in zip(zip(*totals, strict=True), moduli, strict=True)], log

    def totals(self, done: Mapping[int, DataFrame]) -> tuple[list[list[int]], float]:
        """Return the number of trends that begin in each tile, by words, and the binary logarithm of all."""
        ends = _together([frame.where(f.col("kind") == f.lit("done")) for frame in done.values()]).toArrow()
        found = [Message(**row).numbers() for row in ends.sort_by("tile").to_pylist()]
        log = float(np.logaddexp2.reduce([logs[0] for *_, logs in found]))
        return [words[0].tolist() for _, words, _ in found], log


def count_in_tiles(plan: Plan, rows: DataFrame, events: int, size: TileSize) -> int:
    """Return the exact number of trends of a group: one pass where 64 bits hold it, else as many as its bits need."""
    tile = size.of()
    group = TiledCount.of(plan, rows, events, tile)
    (total,), log = group.residues((0,))
    if log < SURE:
        return total
    bits = int(log) + 2
    primes = primes_for(bits, LARGE)
    if size.of(min(WORDS, len(primes))) != tile:
        group = TiledCount.of(plan, rows, events, size.of(min(WORDS, len(primes))))
    found: dict[int, int] = {}
    for begin in range(0, len(primes), WORDS):
        some = tuple(primes[begin : begin + WORDS])
        found.update(zip(some, group.residues(some)[0], strict=True))
    return reconstruct(bits, lambda prime: np.array([[found[prime]]], np.uint64), size=LARGE)[0][0]


def _together(frames: Sequence[DataFrame]) -> DataFrame:
    return reduce(DataFrame.union, frames)


def sent_to(
    frame: DataFrame, number: int, task: Callable[[Any], Any], order: Sequence[str] = ("kind", "tile", "column")
) -> DataFrame:
    """Return the messages that tasks give for rows; those for one of so many tiles or columns stand together in order.

    A task takes several tiles or columns, one after the other.
    """
    number = min(number, cores(frame.sparkSession))
    sorted_rows = frame.repartition(number, "to").sortWithinPartitions("to", *order)
    return sorted_rows.mapInArrow(task, from_arrow_schema(MESSAGE))
