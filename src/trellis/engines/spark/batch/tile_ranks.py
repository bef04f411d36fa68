"""Trends by rank of a group that is larger than a machine: a job for each tile that they go through, and no other.

The group is counted in tiles, which keep the numbers of their events. Trends are then followed from tile to tile by
`trellis.operators.trends.tile_ranks`. What comes back are places of events in tiles, whose rows are read at the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t

from trellis.engines.spark.batch.tiles import (
    SURE,
    TiledCount,
    TileSize,
    Tiling,
    ToTiles,
    messages_in,
    sent,
    sent_to,
)
from trellis.engines.spark.session.failures import in_task
from trellis.engines.spark.split.rows import ID, group_begins
from trellis.engines.spark.split.split import order_of_time
from trellis.errors import DataError
from trellis.events.slice import Ints
from trellis.events.table_bytes import packed
from trellis.language.syntax import Report
from trellis.operators.trends.tile_ranks import TrendsOnTheWay, WalkedTile, walked_tile
from trellis.operators.trends.tiles import Message, OpenEnds
from trellis.plan.plan import Plan

TILE, INDEX = "trellis_tile", "trellis_index"  # of a row that was picked


class TrendsOfTiles(NamedTuple):
    """Some trends: their events in order of time, and of each trend the positions among these."""

    events: pa.Table
    positions: NDArray[np.int32]
    bounds: Ints


@dataclass(frozen=True)
class WalkTile:
    """Follows trends through a tile."""

    plan: Plan
    trends: TrendsOnTheWay

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Take what a tile knows of its events; give the events of the trends, and those that go on."""
        every, ends = self.plan.bound.report is Report.ANY, OpenEnds.of(self.plan)
        with in_task():
            for tile, messages in messages_in(batches):
                found = walked_tile(messages, self.trends, every, ends)
                about = [pa.table({"trend": found.trends, "event": found.events}), _as_table(found.going_on)]
                yield from sent(
                    Message("walked", -1, tile, i, 0, 0, 0, packed(one, False)) for i, one in enumerate(about)
                )


def _as_table(trends: TrendsOnTheWay) -> pa.Table:
    low, high = trends.ranges.T
    return pa.table({"trend": trends.trends, "low": low, "high": high, "rank": trends.ranks})


def _followed_trends(messages: pa.Table) -> WalkedTile:
    """Return the trends that `WalkTile` followed through a tile."""
    events, left = (Message(**row).arrays() for row in messages.sort_by("column").to_pylist())
    ranges = np.stack([left["low"], left["high"]], axis=1)
    return WalkedTile(events["trend"], events["event"], TrendsOnTheWay(left["trend"], ranges, left["rank"]))


@dataclass(frozen=True)
class PickRows:
    """Picks rows of tiles by their places there."""

    wanted: Mapping[int, Ints]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Take the rows of tiles, in order of tile and time; give those that are wanted, with tile and place."""
        with in_task():
            tile, place = -1, 0
            for batch in batches:
                table = pa.Table.from_batches([batch])
                begins = [*group_begins(table, ["to"]).tolist(), table.num_rows]
                for begin, end in pairwise(begins):
                    number = table["to"][begin].as_py()
                    tile, place = number, place if number == tile else 0
                    wanted = self.wanted[tile]
                    some = wanted[np.searchsorted(wanted, place) : np.searchsorted(wanted, place + end - begin)]
                    rows = table.drop_columns("to").take(pa.array(some - place + begin))
                    rows = rows.append_column(TILE, pa.array(np.full(len(some), tile)))
                    yield from rows.append_column(INDEX, pa.array(some)).combine_chunks().to_batches()
                    place += end - begin


def trends_in_tiles(plan: Plan, rows: DataFrame, events: int, size: TileSize, ranks: Sequence[int]) -> TrendsOfTiles:
    """Return the trends of a group with certain ranks.

    Raises
    ------
    DataError
        If there are too many trends for their numbers to be words.
    """
    group = TiledCount.of(plan, rows, events, size.of(), ids=True)
    counted = group.counted((0,), keep=True)
    totals, log = group.totals(counted)
    if log >= SURE:
        raise DataError(
            f"trends of a window that is larger than a machine are given by rank where they are fewer than 2^{SURE}, "
            f"and there are about 2^{log:.0f}",
            "Make WITHIN shorter, or partition the pattern with [attribute].",
        )
    ends = np.cumsum([0, *(words[0] for words in totals)])
    first = np.searchsorted(ends, ranks, side="right") - 1
    on_the_way = TrendsOnTheWay(np.empty(0, np.int64), np.empty((0, 2), np.int64), np.empty(0, np.uint64))
    met: list[tuple[int, WalkedTile]] = []
    for tile in range(group.tiling.tiles):
        new = np.flatnonzero(first == tile)
        left = (np.array(ranks, np.int64)[new] - ends[tile]).astype(np.uint64)
        on_the_way = on_the_way.together(TrendsOnTheWay(new, np.full((len(new), 2), -1), left))
        if len(on_the_way.trends):
            paths = counted[tile].where(f.col("kind") == f.lit("paths"))
            messages = group.pieces.where(f.col("to") == f.lit(tile)).union(paths)
            found = _followed_trends(sent_to(messages, 1, WalkTile(plan, on_the_way)).toArrow())
            met.append((tile, found))
            on_the_way = found.going_on
    return _with_rows(group.tiling, rows, met, len(ranks))


def _with_rows(tiling: Tiling, rows: DataFrame, met: Sequence[tuple[int, WalkedTile]], trends: int) -> TrendsOfTiles:
    """Return the trends whose events were met in tiles, with the rows of these."""
    wanted = {tile: np.unique(found.events) for tile, found in met}
    read = tiling.tile_borders.column_names
    order = list(dict.fromkeys([*order_of_time(tiling.plan.bound), ID, *read]))
    tiled = rows.mapInArrow(ToTiles(tiling), t.StructType([t.StructField("to", t.LongType()), *rows.schema]))
    picked = tiled.where(f.col("to").isin(list(wanted)))
    picked = picked.repartition(len(wanted), "to").sortWithinPartitions("to", *order)
    schema = t.StructType([*rows.schema, *(t.StructField(name, t.LongType()) for name in (TILE, INDEX))])
    table = picked.mapInArrow(PickRows(wanted), schema).toArrow().sort_by([(TILE, "ascending"), (INDEX, "ascending")])
    begins = np.cumsum([0, *(len(some) for some in wanted.values())])
    parts = [
        (found.trends, begin + np.searchsorted(wanted[tile], found.events))
        for (tile, found), begin in zip(met, begins, strict=False)
    ]
    trend, position = (np.concatenate(one) for one in zip(*parts, strict=True))
    order_of_trends = np.argsort(trend, kind="stable")
    bounds = np.searchsorted(trend[order_of_trends], np.arange(trends + 1))
    return TrendsOfTiles(table.drop_columns([TILE, INDEX]), position[order_of_trends].astype(np.int32), bounds)
