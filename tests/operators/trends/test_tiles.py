"""One group counted in tiles, by the tasks that Spark runs, against the count of the whole."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import trellis
from trellis.engines.spark.batch import tiles as on_spark
from trellis.engines.spark.split.split import row_names
from trellis.language.syntax import Report
from trellis.operators.exact import prime_below
from trellis.operators.trends import tiles
from trellis.operators.trends.tile_ranks import TrendsOnTheWay, walked_tile
from trellis.plan.plan import counting_plan
from trellis.plan.summable import can_be_tiled

CONDITIONS = [
    "s[i].x > s[i-1].x", "s[i].x <= s[i-1].y", "s[i].x < 1.5 * s[i-1].y", "s[i].k = s[i-1].j", "[k]",
    "s[i].k = s[i-1].j AND s[i].x >= s[i-1].x", "s[i].k = s[i-1].k AND s[i].x > s[i-1].y AND s[i].x < s[i-1].y + 3",
    "s[i].x > s[i-1].x AND s[i].x <= s[i-1].x + 2", "s[i].n > s[i-1].n AND s[i].k = s[i-1].j AND s[i].j = s[i-1].k",
    "s[i].t - s[i-1].t <= 2",
]  # fmt: skip
SMALL = st.integers(0, 4)
EVENT = st.tuples(SMALL, st.none() | SMALL, st.none() | SMALL, st.none() | SMALL, SMALL, st.sampled_from("aäb"))


def shuffled(
    rows: Iterable[pa.RecordBatch], task: Callable[[Any], Iterable[pa.RecordBatch]], order: Sequence[str] = ("kind",)
) -> list[pa.RecordBatch]:
    """Do what Spark does between two tasks."""
    table = pa.Table.from_batches(list(rows)).sort_by([(name, "ascending") for name in ("to", *order)])
    return list(task(table.to_batches(3)))


def messages(batches: Iterable[pa.RecordBatch]) -> list[tiles.Message]:
    return [tiles.Message(**row) for batch in batches for row in batch.to_pylist()]


class Tiled:
    """A group that was counted in tiles, with borders from a sample."""

    def __init__(self, plan: Any, table: pa.Table, number: int, moduli: tuple[int, ...], seed: int) -> None:
        names = row_names(plan)
        rows = pa.table({**{names[n]: table[n] for n in names if n in table.column_names}, "time": table["t"]})
        rows = rows.append_column("id", pa.array(range(len(rows))))
        self.order = list(dict.fromkeys(["time", "id", *rows.column_names]))
        rows = rows.select(self.order)
        sample = rows.take(np.random.default_rng(seed).choice(len(rows), (len(rows) + 1) // 2, replace=False))
        by_time, by_place = tiles.border_rows(plan, on_spark.events_in(plan, sample), number, 2 * number)
        self.tiling = tiling = on_spark.Tiling(plan, sample.take(by_time), sample.take(by_place))
        self.rows = list(on_spark.ToTiles(tiling)(rows.to_batches(3)))
        pieces = shuffled(self.rows, on_spark.ToColumns(tiling), self.order)
        pieces = on_spark.sent(messages(shuffled(pieces, on_spark.ToPieces(tiling))))
        self.found: dict[int, list[tiles.Message]] = defaultdict(list)
        for message in messages(pieces):
            self.found[message.to].append(message)
        self.pieces = {tile: list(found) for tile, found in self.found.items()}
        self.done: dict[int, list[tiles.Message]] = {}
        for earlier, later in tiles.steps(0, tiling.tiles):
            if later:
                self._add(earlier, later, moduli)
            else:
                task = on_spark.CountTile(tiling, moduli, keep=True)
                self.done[earlier[0]] = messages(task(on_spark.sent(self.found[earlier[0]])))

    def _add(self, earlier: range, later: range, moduli: tuple[int, ...]) -> None:
        for column in range(self.tiling.columns):
            given = [m for tile in later for m in self.done[tile] if m.kind == "numbers" and m.to == column]
            asked = [m for tile in earlier for m in self.found[tile] if m.kind == "piece" and m.column == column]
            sent = on_spark.sent([m._replace(to=0) for m in given + asked])
            for message in messages(on_spark.SumColumns(self.tiling, moduli)(sent)):
                self.found[message.to].append(message)

    @property
    def totals(self) -> list[list[int]]:
        """The number of trends that begin in each tile, by modulus."""
        return [self.done[tile][-1].numbers()[1][0].tolist() for tile in sorted(self.done)]

    @property
    def log(self) -> float:
        return float(np.logaddexp2.reduce([self.done[tile][-1].numbers()[2][0] for tile in self.done]))

    def ids(self, trends: int) -> list[list[int]]:
        """Return the ids of the events of the first trends, each followed through the tiles."""
        plan, found = self.tiling.plan, [list[int]() for _ in range(trends)]
        every, ends = plan.bound.report is Report.ANY, tiles.OpenEnds.of(plan)
        rows = pa.Table.from_batches(self.rows).sort_by([(name, "ascending") for name in ("to", *self.order)])
        first = 0
        going_on = TrendsOnTheWay(np.empty(0, np.int64), np.empty((0, 2), np.int64), np.empty(0, np.uint64))
        for tile, (total,) in enumerate(self.totals):
            new = np.arange(first, min(first + total, trends))
            begun = TrendsOnTheWay(new, np.full((len(new), 2), -1), (new - first).astype(np.uint64))
            paths = next(message for message in self.done[tile] if message.kind == "paths")
            walked = walked_tile([paths, *self.pieces[tile]], going_on.together(begun), every, ends)
            of_tile = rows.filter(pa.compute.equal(rows["to"], tile))["id"].to_pylist()
            for trend, event in zip(walked.trends.tolist(), walked.events.tolist(), strict=True):
                found[trend].append(of_tile[event])
            going_on, first = walked.going_on, first + total
        assert not len(going_on.trends)
        return found


@given(
    st.sampled_from(CONDITIONS), st.sampled_from(["unextendable", "any"]), st.lists(EVENT, min_size=1, max_size=30),
    st.integers(1, 6), st.integers(0, 9),
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:.*share")
def test_tiles_and_the_whole_have_the_same_count(
    condition: str, report: str, events: list[tuple[Any, ...]], number: int, seed: int
) -> None:
    columns = dict(zip(("t", "x", "y", "j", "k", "n"), zip(*events, strict=True), strict=True))
    types = {"t": pa.int64(), "x": pa.int64(), "y": pa.float64(), "j": pa.int64(), "k": pa.int64(), "n": pa.string()}
    table = pa.table({name: pa.array(values, types[name]) for name, values in columns.items()})
    trends = trellis.query(f"PATTERN E+ s[] WHERE {condition} REPORT {report}").detect(table, time="t")
    plan = counting_plan(trends.plan)
    assert can_be_tiled(plan)
    if plan.bound.partition:
        table = table.filter(pa.compute.equal(table["k"], table["k"][0]))
    moduli = (0, prime_below(58, 0), 7)
    query = trellis.query(f"PATTERN E+ s[] WHERE {condition} REPORT {report}")
    whole = query.detect(table, time="t").count()
    tiled = Tiled(plan, table, number, moduli, seed)
    assert [sum(w) % (m or 1 << 64) for w, m in zip(zip(*tiled.totals, strict=True), moduli, strict=True)] == [
        whole % (m or 1 << 64) for m in moduli
    ]
    assert tiled.log == pytest.approx(np.log2(whole))
    numbered = table.append_column("id", pa.array(range(len(table))))
    listed = query.detect(numbered, time="t", event_id="id").first(50).to_arrow()["events"].to_pylist()
    assert Tiled(plan, table, number, (0,), seed).ids(len(listed)) == listed
