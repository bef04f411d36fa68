"""One answer reads its source once, and explain tells what is shuffled: held against the numbers of Spark's stages."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import trellis

N = 3_000
TABLE = pa.table({
    "ts": range(N), "id": range(N), "g": [i % 3 for i in range(N)], "x": [(7 * i) % 11 for i in range(N)],
})  # fmt: skip
SPAN = "PATTERN E+ s[] WHERE [g] AND s[i].x > s[i-1].x WITHIN 10"
SLIDING = f"{SPAN} SLIDE 2"


@pytest.fixture
def file(tmp_path: Path) -> str:
    """A Parquet file of `N` events."""
    pq.write_table(TABLE, tmp_path / "events.parquet")
    return str(tmp_path / "events.parquet")


def stages(spark: SparkSession) -> list[Any]:
    """The stages that Spark's status store still keeps: the newest thousand, so only new ones can be counted."""
    context = spark.sparkContext
    jvm, scala = context._jvm, context._jsc.sc()
    scala.listenerBus().waitUntilEmpty()
    none = context._gateway.new_array(jvm.double, 0)  # type: ignore[union-attr]
    kept = scala.statusStore().stageList(None, False, False, none, jvm.java.util.ArrayList())  # type: ignore[union-attr]
    return [kept.apply(i) for i in range(kept.size())]


def records_of(spark: SparkSession, answer: Callable[[], Any], which: str = "inputRecords") -> tuple[int, Any]:
    """How many records the stages of an answer have read from sources, or shuffled; and the answer."""
    newest = max((stage.stageId() for stage in stages(spark)), default=-1)
    given = answer()
    return sum(getattr(stage, which)() for stage in stages(spark) if stage.stageId() > newest), given


def read_by(spark: SparkSession, answer: Callable[[], Any]) -> int:
    return records_of(spark, answer)[0]


ANSWERS: dict[str, Callable[[Any, Path], Any]] = {
    "count": lambda trends, path: trends.count(),
    "counts": lambda trends, path: trends.counts().to_arrow(),
    "aggregate": lambda trends, path: trends.aggregate("avg(s.x)").to_arrow(),
    "first": lambda trends, path: trends.first(5).to_arrow(),
    "top": lambda trends, path: trends.top(3).to_arrow(),
    "explode": lambda trends, path: trends.explode().to_arrow(),
    "write": lambda trends, path: trends.write(str(path / "out")),
    "count and statistics": lambda trends, path: (trends.count(), trends.statistics),
}


@pytest.mark.parametrize("answer", ANSWERS)
def test_an_answer_reads_the_events_once(spark: SparkSession, file: str, tmp_path: Path, answer: str) -> None:
    for number, text in enumerate((SPAN, SLIDING)):
        trends = trellis.query(text).detect(spark.read.parquet(file), event_id="id")
        assert read_by(spark, lambda t=trends, to=tmp_path / str(number): ANSWERS[answer](t, to)) == N  # type: ignore[misc]


@pytest.mark.parametrize("text", [SPAN, SLIDING, f"{SPAN} SLIDE 10", SLIDING.replace("[g]", "s.x > 3")])
def test_explain_tells_how_many_rows_are_shuffled(spark: SparkSession, file: str, text: str) -> None:
    frame = spark.read.parquet(file)
    question = partial(trellis.query(text).explain, frame, event_id="id")
    shuffled, explanation = records_of(spark, question, "shuffleWriteRecords")
    assert explanation.data["operator"]["shuffle"].startswith(f"{shuffled:,} rows: each event ")


def test_constructing_results_runs_no_job(spark: SparkSession, file: str) -> None:
    frame = spark.read.parquet(file)
    assert read_by(spark, lambda: trellis.query(SLIDING).detect(frame, event_id="id").to_spark()) == 0


def test_dropping_bad_rows_and_repeated_ids_reads_once(spark: SparkSession, tmp_path: Path) -> None:
    rows = [{"ts": i if i % 10 else None, "id": i // 2 if i < 100 else i, "x": i % 5} for i in range(500)]
    table = pa.Table.from_pylist(rows)
    pq.write_table(table, tmp_path / "bad.parquet")
    text = "PATTERN E+ s[] WHERE s[i].x > s[i-1].x WITHIN 20"
    there = trellis.query(text).detect(
        spark.read.parquet(str(tmp_path / "bad.parquet")), event_id="id", on_bad_rows="drop"
    )
    here = trellis.query(text).detect(table, event_id="id", on_bad_rows="drop")
    assert read_by(spark, there.count) == 500
    assert read_by(spark, lambda: there.statistics) == 0
    assert (there.count(), there.statistics) == (here.count(), here.statistics)
