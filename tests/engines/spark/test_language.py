"""Every construct of the language gives on Spark, and in streams, what it gives in this process."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import trellis
from tests.compare import plain_rows
from tests.engines.spark.stream.test_stream import found, run, write_files
from tests.streams.test_bucket import in_any_order
from trellis.engines.options import RunOptions
from trellis.engines.spark.sources.read_stream import read_stream
from trellis.engines.spark.stream.running import Options, Stream
from trellis.events.ties import TOLD

pytestmark = pytest.mark.spark

SECOND = 1_000_000
COLUMNS: dict[str, Any] = {"time": "ts", "type": "kind", "event_id": "id"}
WINDOWS = "WITHIN 12 s SLIDE 6 s"
QUERIES = {
    "quantifiers": f"PATTERN SEQ(A? a, B{{1,2}} b[], C* c[], D d) WHERE [g] {WINDOWS}",
    "groups": f"PATTERN SEQ(A a, B+ b[])+ h[] WHERE [g] AND h[i].a.x != h[i-1].a.x HAVING COUNT(h) > 1 {WINDOWS}",
    "nested": f"PATTERN SEQ(A a, AND(B b, SEQ(C c, D d)? )+ h[]){{1,2}} k[] WHERE [g] AND b.x != 4 {WINDOWS}",
    "steps": f"PATTERN SEQ(A a, contiguous B+ b[] skip-till-next, C c) WHERE b.x < 9 {WINDOWS}",
    "greedy": f"PATTERN SEQ(A a, B+ b[] skip-till-next greedy, C c) WHERE [g] {WINDOWS}",
    "greedy_in_and": f"PATTERN SEQ(AND(A+ a[] greedy, SEQ(B+ b[] greedy, C c)), D d) WHERE [g] AND b.x != 4 {WINDOWS}",
    "until": f"PATTERN SEQ(A a, B+ b[] UNTIL (b.x > 6), C c) WHERE [g] {WINDOWS}",
    "so_far": f"PATTERN SEQ(A a, B+ b[]) WHERE [g] AND b[i].x >= AVG(b[..i-1].x) AND COUNT(b) >= 2 {WINDOWS}",
    "not_in": f"PATTERN SEQ(A a, B+ b[]) WHERE [g] AND b[i].x NOT IN (b[..i-1].x) {WINDOWS}",
    "having": f"PATTERN SEQ(A+ a[], B b) WHERE [g] HAVING SUM(a.x) > b.x OR LAST(a).x - FIRST(a).x > 2 {WINDOWS}",
    "skipping": f"PATTERN SEQ(A a, B+ b[], C c) WHERE [g] {WINDOWS} AFTER MATCH SKIP PAST LAST",
    "best_first": f"PATTERN SEQ(A a, B+ b[], C c) WHERE [g] {WINDOWS} ORDER BY SUM(b.x) DESC LIMIT 9 PER WINDOW "
    "AFTER MATCH SKIP TO LAST b",
    "skipping_span": "PATTERN SEQ(A a, B+ b[], C c) WHERE [g] WITHIN 7 s AFTER MATCH SKIP PAST LAST",
    "in_and": f"PATTERN AND(A a, B b, NOT(D d)) WHERE [g] AND d.x > 5 {WINDOWS}",
    "composite": f"PATTERN SEQ(A a, NOT(SEQ(B b, C c)), D d) WHERE [g] {WINDOWS}",
    "in_not": f"PATTERN SEQ(A a, NOT(SEQ(B b, NOT(C c), B e){{2,}} h[]), D d) WHERE [g] AND b.x <= e.x {WINDOWS}",
    "in_and_of_a_group": f"PATTERN SEQ(AND(A a, B b, NOT(D d))+ h[], C c) WHERE [g] AND d.x > a.x {WINDOWS}",
    "out_of_not": f"PATTERN SEQ(A a, NOT(SEQ(B+ b[], C c)), D d) WHERE [g] AND SUM(b.x) > a.x AND c.x < d.x {WINDOWS}",
    "at_edges": "PATTERN SEQ(A a, NOT(SEQ(NOT(C c), A? e, B b)), D d) WHERE [g] AND b.x >= a.x WITHIN 7 s",
    "each_iteration": f"PATTERN SEQ(SEQ(A a, B b)+ h[], D d) WHERE [g] AND a.x + b.x < 2 * d.x {WINDOWS}",
    "numbers": f"PATTERN SEQ(OR(A a, B b)+ h[], C? c, D d) WHERE [g] {WINDOWS} RETURN COUNT(h), COUNT(c), CEIL(d.x / 2)"
    " AS half",
    "per_event": f"PATTERN SEQ(A a, B+ b[], C c) WHERE [g] {WINDOWS} AGGREGATE COUNT(*), SHARE, MAX(LENGTH) PER EVENT",
    "per_event_of": f"PATTERN SEQ(A a, B+ b[]) WHERE [g] {WINDOWS} AGGREGATE COUNT(*), SUM(b.x) PER EVENT OF b",
    "functions": f"PATTERN SEQ(A a, B+ b[]) WHERE [g] AND ROUND(a.x / 2) <= CASE WHEN b.x > 4 THEN 3 ELSE 1 END AND "
    f"HOUR(a.ts) == 22 AND UPPER(a.g) IN ('P', 'Q') AND CAST(b.x AS text) LIKE '%' AND b.x > PREV(b).x {WINDOWS} "
    "AFTER MATCH SKIP TO NEXT ROW",
    "limit_per": f"PATTERN SEQ(A a, B b) WHERE [g] {WINDOWS} LIMIT 1 PER WINDOW, b.x",
    "expressions": f"PATTERN SEQ(A+ a[], B b) WHERE [g] {WINDOWS} AGGREGATE SUM(LENGTH), MAX(2 * a.x + 1) AS most",
}


def events(number: int = 120) -> pa.Table:
    rng = np.random.default_rng(5)
    times = 1_700_000_000 * SECOND + rng.integers(0, number, number) * SECOND
    return pa.table(
        {
            "ts": pa.array(times, pa.timestamp("us", "UTC")),
            "id": [f"e{i:03}" for i in range(number)],
            "kind": rng.choice(["A", "B", "B", "C", "D"], number),
            "g": rng.choice(["p", "q"], number),
            "x": rng.integers(0, 9, number),
        }
    )


def here(text: str) -> list[Any]:
    return plain_rows(trellis.query(text).detect(events(), engine="local", **COLUMNS).to_arrow().to_pylist())


@pytest.fixture(scope="module")
def frame(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(events()).cache()


@pytest.mark.parametrize("name", QUERIES)
def test_on_frames(frame: DataFrame, name: str) -> None:
    trends = trellis.query(QUERIES[name]).detect(frame, **COLUMNS)
    wanted = here(QUERIES[name])
    assert wanted
    assert plain_rows(trends.to_arrow().to_pylist()) == wanted
    assert trends.count() == trellis.query(QUERIES[name]).detect(events(), engine="local", **COLUMNS).count()


def test_in_streams(spark: SparkSession, tmp_path: Path) -> None:
    write_files(events().sort_by("ts"), tmp_path / "in", 2)
    options = Options(
        out=str(tmp_path / "out"), checkpoint=str(tmp_path / "cp"), watermark="1 s", available_now=True
    )  # fmt: skip
    queries = {name: trellis.query(text) for name, text in QUERIES.items()}
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        run(Stream(spark, queries, read_stream(spark, str(tmp_path / "in")), options, RunOptions(**COLUMNS)))
    assert any(re.match(TOLD, str(one.message)) for one in told), "many events share their time"
    for name, text in QUERIES.items():
        assert found(tmp_path / "out" / name) == in_any_order(here(text)), name
