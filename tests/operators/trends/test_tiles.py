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
from trellis.operators.exact import prime_below
from trellis.operators.trends import tiles
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


def counted(plan: Any, table: pa.Table, number: int, moduli: tuple[int, ...], seed: int) -> tuple[list[int], float]:
    """Count in tiles, with borders from a sample."""
    names = row_names(plan)
    rows = pa.table({**{names[n]: table[n] for n in names if n in table.column_names}, "time": table["t"]})
    rows = rows.select(["time", *(name for name in rows.column_names if name != "time")])
    sample = rows.take(np.random.default_rng(seed).choice(len(rows), (len(rows) + 1) // 2, replace=False))
    by_time, by_place = tiles.border_rows(plan, on_spark.events_in(plan, sample), number, 2 * number)
    tiling = on_spark.Tiling(plan, sample.take(by_time), sample.take(by_place))
    pieces = shuffled(on_spark.ToTiles(tiling)(rows.to_batches(3)), on_spark.ToColumns(tiling), rows.column_names)
    pieces = on_spark._sent(messages(shuffled(pieces, on_spark.ToPieces(tiling))))
    found: dict[int, list[tiles.Message]] = defaultdict(list)
    for message in messages(pieces):
        found[message.to].append(message)
    total, log, numbers = [0] * len(moduli), -np.inf, defaultdict(list)
    for earlier, later in tiles.steps(0, tiling.tiles):
        if later:
            for column in range(tiling.columns):
                given = [m for tile in later for m in numbers[tile] if m.to == column]
                asked = [m for tile in earlier for m in found[tile] if m.kind == "piece" and m.column == column]
                (sent,) = [
                    list(on_spark.SumColumns(tiling, moduli)(on_spark._sent([m._replace(to=0) for m in given + asked])))
                ]
                for message in messages(sent):
                    found[message.to].append(message)
            continue
        done = messages(on_spark.CountTile(tiling, moduli)(on_spark._sent(found[earlier[0]])))
        numbers[earlier[0]] = [m for m in done if m.kind == "numbers"]
        _, words, logs = done[-1].numbers()
        total = [(t + int(w)) % (m or 1 << 64) for t, w, m in zip(total, words[0], moduli, strict=True)]
        log = np.logaddexp2(log, logs[0])
    return total, log


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
    whole = trellis.query(f"PATTERN E+ s[] WHERE {condition} REPORT {report}").detect(table, time="t").count()
    total, log = counted(plan, table, number, moduli, seed)
    assert total == [whole % (m or 1 << 64) for m in moduli]
    assert log == pytest.approx(np.log2(whole))
