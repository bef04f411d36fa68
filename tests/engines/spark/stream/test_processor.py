"""The stateful operator in Spark's own tester, without a JVM: events in pieces, state and what comes out."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark import cloudpickle
from pyspark.sql.streaming.tws_tester import TwsTester

import trellis
from tests.compare import plain_rows
from tests.streams.test_bucket import in_any_order, standing
from trellis.engines.spark.stream.processor import WindowStateProcessor
from trellis.engines.spark.stream.stateful import BUCKET, MOMENT, NUMBERS, TAKEN, EventPacker, WindowStateWork
from trellis.events.table_bytes import unpacked
from trellis.streams.query_group import QueryGroup
from trellis.streams.stream_output import LATE, RESULTS, TIMEOUTS

pytestmark = pytest.mark.spark

DELAY = 4
DECIDED = [
    "PATTERN T+ t[] WHERE [g] AND t[i].x > t[i-1].x WITHIN 10 SLIDE 5",
    "PATTERN T+ t[] WHERE [g] AND t[i].x > t[i-1].x WITHIN 6",
    "PATTERN T+ t[] WHERE [g] AND t[i].x > t[i-1].x WITHIN 10 SLIDE 10 AGGREGATE COUNT(*), SUM(t.x)",
]
EARLY = [
    "PATTERN a;b WHERE [g] AND a.x + 4 < b.x WITHIN 6",
    "PATTERN T+ t[] WHERE [g] AND t[i].x > t[i-1].x REPORT any WITHIN 6 SLIDE 3",
]


def events(number: int) -> pa.Table:
    """Return events nearly in order: none comes more than `DELAY` behind a later one."""
    rng = np.random.default_rng(3)
    times = np.sort(rng.integers(1, number // 2, number))
    order = np.argsort(times + rng.random(number) * DELAY)
    columns = {"ts": times, "id": np.arange(number), "x": rng.integers(0, 9, number), "g": rng.integers(0, 3, number)}
    return pa.table(columns).take(pa.array(order))


def spark_tester(group: QueryGroup) -> TwsTester:
    """Return Spark's tester of the operator over some queries; it leaves all events to come to the operator."""
    processor = WindowStateProcessor(WindowStateWork(group))
    return TwsTester(processor, timeMode="eventTime", eventTimeExtractor=lambda row: 1 << 60)


def streamed(group: QueryGroup, table: pa.Table) -> dict[str, list[dict[str, Any]]]:
    """Let events come in batches of ten, with the watermark behind them, into two buckets; return rows by kind."""
    tester = spark_tester(group)
    packer = EventPacker(group, tuple(table.column_names), (0, 1), keep_late=False, delay=DELAY)
    found: dict[str, list[dict[str, Any]]] = {}

    def keep(frame: Any) -> None:
        for row in frame.itertuples(index=False) if len(frame) else ():
            rows = [{"rows": row.rows}] if row.kind in NUMBERS else unpacked(row.payload).to_pylist()
            found.setdefault(row.kind, []).extend(rows)

    def give(pieces: Iterable[pa.RecordBatch]) -> None:
        for key, own in pa.Table.from_batches(pieces).to_pandas().groupby("bucket"):
            keep(tester.testInPandas(int(key), own))

    watermark = 0
    for begin in range(0, table.num_rows, 10):
        some = table.slice(begin, 10)
        bucket = pa.array(some["g"].to_numpy() % 2, pa.int32())
        give(packer(_for_packer(some, bucket).to_batches()))
        reached = max(watermark, int(some["ts"].to_numpy().max()) - DELAY)
        if reached > watermark:
            watermark = reached
            keep(tester.setWatermark(watermark))
    give(packer.watermarks(packer.buckets, watermark + 1000))
    return found


def _for_packer(some: pa.Table, bucket: pa.Array) -> pa.Table:
    moments = pa.array(1000 * some["ts"].to_numpy(), pa.timestamp("us", "UTC"))
    return some.append_column(BUCKET, bucket).append_column(MOMENT, moments)


def rows_of(rows: list[dict[str, Any]], ranks: bool = True) -> list[str]:
    return in_any_order(plain_rows([row if ranks else row | {"rank": None} for row in rows]))


@pytest.mark.parametrize("text", DECIDED + EARLY)
def test_events_go_in_and_what_is_decided_or_complete_comes_out(text: str) -> None:
    table = events(80)
    one = standing(text, table, time="ts", event_id="id")
    found = streamed(QueryGroup((replace(one, early=text in EARLY),)), table)
    whole = trellis.query(text).detect(table, time="ts", event_id="id").to_arrow().to_pylist()
    assert whole
    assert sum(row["rows"] for row in found[TAKEN]) == table.num_rows
    assert LATE not in found
    assert rows_of(found[RESULTS], text in DECIDED) == rows_of(whole, text in DECIDED)


def test_a_thousand_queries_are_sent_without_a_broadcast() -> None:
    table = events(5)
    texts = [DECIDED[0].replace("WHERE", f"WHERE t.x > {i} AND", 1) for i in range(1000)]
    group = QueryGroup(tuple(standing(text, table, time="ts", event_id="id") for text in texts))
    sent = cloudpickle.dumps(WindowStateProcessor(WindowStateWork(group)))
    assert len(sent) < 1 << 20  # Spark's spark.broadcast.UDFCompressionThreshold
    assert pickle.loads(sent).work.group == group


def test_a_process_that_only_asks_for_the_state_imports_nothing_that_works_on_events() -> None:
    group = QueryGroup((standing(DECIDED[0], events(5), time="ts", event_id="id"),))
    sent = cloudpickle.dumps(WindowStateProcessor(WindowStateWork(group)))
    program = "import pickle, sys; pickle.load(sys.stdin.buffer); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], input=sent, capture_output=True, check=True)
    imported = set(done.stdout.decode().split())
    assert "trellis.engines.spark.stream.processor" in imported
    assert not imported & {"numba", "pandas", "trellis.language.binder", "trellis.streams.bucket"}


def test_partial_matches_come_out_when_their_time_is_up() -> None:
    table = events(60)
    one = standing(EARLY[0], table, time="ts", event_id="id")
    told = streamed(QueryGroup((one,), frozenset({"q"})), table)[TIMEOUTS]
    ended = trellis.query("PATTERN SEQ(T a, NOT(T b)) WHERE [g] AND a.x + 4 < b.x WITHIN 6")
    whole = ended.detect(table, time="ts", event_id="id").to_arrow().to_pylist()
    assert sorted(row["events"] for row in told) == sorted([row["a"]] for row in whole)


def test_events_give_what_they_decide_in_their_own_batch_and_none_that_is_late_then() -> None:
    table = pa.table({"ts": [1, 2, 30, 3], "id": [0, 1, 2, 3], "x": [1, 2, 3, 4], "g": [0, 0, 0, 0]})
    group = QueryGroup((standing(DECIDED[0], table, time="ts", event_id="id"),))
    tester = spark_tester(group)
    packer = EventPacker(group, tuple(table.column_names), (0, 1), keep_late=False, delay=DELAY)
    given = []
    for begin, number in ((0, 3), (3, 1)):  # Spark's own watermark stays where it is
        some = table.slice(begin, number)
        pieces = pa.Table.from_batches(packer(_for_packer(some, pa.array([0] * number, pa.int32())).to_batches()))
        told = pieces.to_pandas()
        assert told["bucket"].tolist() == ([0, 1] if begin == 0 else [0]), "another bucket is told what it does not get"
        given.append(tester.testInPandas(0, told[told["bucket"] == 0]))
    first, second = ({row.kind: row for row in frame.itertuples(index=False)} for frame in given)
    whole = trellis.query(DECIDED[0]).detect(table.slice(0, 2), time="ts", event_id="id").to_arrow().to_pylist()
    assert rows_of(unpacked(first[RESULTS].payload).to_pylist()) == rows_of(whole)
    assert unpacked(second[LATE].payload)["id"].to_pylist() == [3]
    assert RESULTS not in second
