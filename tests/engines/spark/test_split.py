"""Split: what Spark does itself before any Python runs, as Spark's own plan tells it."""

from __future__ import annotations

import contextlib
import io
import re
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

import trellis
from trellis.engines.local.results import LocalResults
from trellis.engines.spark.batch.results import SparkResults
from trellis.engines.spark.split.split import window_numbers
from trellis.errors import TrellisError, UsageError
from trellis.events.clock import Clock
from trellis.events.tables import schema_of
from trellis.language.bound import Window, WindowKind
from trellis.language.schema import DOUBLE

pytestmark = pytest.mark.spark

N = 40
NAN = float("nan")
TABLE = pa.table(
    {
        "ts": range(N),
        "id": range(N),
        "g": [i % 3 for i in range(N)],
        "x": [i % 7 for i in range(N)],
        "y": pa.array([NAN if i % 5 == 0 else None if i % 11 == 0 else i / 10 for i in range(N)], from_pandas=False),
        "kind": ["E" if i % 4 else "F" for i in range(N)],
        "text": ["not needed"] * N,
        "list": [[1, 2, 3]] * N,
    }
)
PARTITIONED = "PATTERN E+ s[] WHERE [g] AND s.y > 1 AND s[i].x > s[i-1].x"


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The events as a Parquet file."""
    path = tmp_path_factory.mktemp("split") / "events.parquet"
    pq.write_table(TABLE, path)
    return path


def detect(spark: SparkSession, file: Path, text: str) -> SparkResults:
    trends = trellis.query(text).detect(file, spark=spark, type="kind", event_id="id")
    assert isinstance(trends, SparkResults)
    return trends


class Steps:
    """The steps of a physical plan, from the last one down to the scan, and what each says of itself."""

    def __init__(self, frame: DataFrame) -> None:
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            frame.explain(mode="formatted")
        tree, *details = re.split(r"\n\n+(?=\(\d+\) )", out.getvalue())
        self.names = re.findall(r"^[ :*+-]*([A-Za-z]+)[^\n]*\(\d+\)$", tree, re.MULTILINE)
        # of several steps of a kind the one nearest to the scan
        self.details = {re.match(r"\(\d+\) (\w+)", text)[1]: text for text in reversed(details)}  # type: ignore[index]

    @property
    def below_python(self) -> list[str]:
        """What happens before the rows reach the operator."""
        first = self.names.index("MapInArrow") + 1
        return self.names[first : self.names.index("MapInArrow", first) if "MapInArrow" in self.names[first:] else None]

    @property
    def read_columns(self) -> list[str]:
        (schema,) = re.findall(r"ReadSchema: struct<(.*)>", self.details["Scan"])
        return sorted(field.split(":")[0] for field in schema.split(","))


def test_conditions_types_and_columns_are_sparks_own_work(spark: SparkSession, file: Path) -> None:
    steps = Steps(detect(spark, file, PARTITIONED).to_spark())
    assert steps.names.count("MapInArrow") == 3  # small groups are listed; large ones packed, and listed in ranges
    assert "Scan" in steps.below_python
    assert steps.below_python.index("Filter") > steps.below_python.index("Exchange")
    assert steps.below_python.count("Exchange") == 1
    assert steps.read_columns == ["g", "id", "kind", "ts", "x", "y"]
    assert "EqualTo(kind,E)" in steps.details["Scan"]
    assert re.search(r"kind#\d+ = E", steps.details["Filter"])
    assert re.search(r"1\.0 < nanvl\(y#\d+, null\)", steps.details["Filter"])  # in Spark alone NaN is the largest
    assert re.search(r"hashpartitioning\(p0#\w+, \d+\)", steps.details["Exchange"])


def test_windows_are_made_before_the_one_shuffle(spark: SparkSession, file: Path) -> None:
    steps = Steps(detect(spark, file, PARTITIONED + " WITHIN 10 SLIDE 5").to_spark())
    assert [n for n in steps.below_python if n != "Project"][:4] == ["Sort", "Exchange", "Generate", "Filter"]
    assert re.search(r"hashpartitioning\(window_batch#\w+, p0#\w+, \d+\)", steps.details["Exchange"])
    assert re.search(r"window_batch#.*p0#.*time#.*id#", steps.details["Sort"])


def test_a_condition_that_parquet_can_skip_by(spark: SparkSession, file: Path) -> None:
    steps = Steps(detect(spark, file, "PATTERN E+ s[] WHERE s.x > 3 AND s[i].x > s[i-1].x").to_spark())
    assert steps.read_columns == ["id", "kind", "ts", "x"]
    assert "GreaterThan(x,3)" in steps.details["Scan"]


def test_under_contiguous_the_conditions_are_a_flag(spark: SparkSession, file: Path) -> None:
    steps = Steps(detect(spark, file, PARTITIONED + " SELECT contiguous").to_spark())
    assert "Filter" not in steps.names
    assert "PushedFilters" not in steps.details["Scan"]
    assert re.search(r"kind#\d+ = E\) AND \(1\.0 < nanvl.* AS usable#", steps.details["Project"])
    assert re.search(r"Input .*usable#", steps.details["MapInArrow"])


def test_counts_and_aggregates_read_no_more(spark: SparkSession, file: Path) -> None:
    trends = detect(spark, file, "PATTERN E+ s[] WHERE [g] AND s.x > 3")
    assert Steps(trends.counts().to_spark()).read_columns == ["g", "id", "kind", "ts", "x"]
    assert Steps(trends.aggregate("avg(s.y)").to_spark()).read_columns == ["g", "id", "kind", "ts", "x", "y"]


def test_an_order_over_all_is_one_more_shuffle(spark: SparkSession, file: Path) -> None:
    steps = Steps(detect(spark, file, PARTITIONED + " ORDER BY LENGTH LIMIT 3").to_spark())
    assert steps.names[: steps.names.index("MapInArrow")].count("TakeOrderedAndProject") == 1
    assert steps.below_python.count("Exchange") == 1


def test_one_plan_serves_both_engines(spark: SparkSession) -> None:
    """NaN and NULL match nothing, neither in a filter nor in a flag; the operator never knows who runs it."""
    table = TABLE.drop_columns(["list"])
    frame = spark.createDataFrame(table).repartition(3)
    for tail in ("", " SELECT contiguous WITHIN 12 SLIDE 6"):
        plan = trellis.query(PARTITIONED + tail).plan(schema_of({None: table}, "ts", "kind", "id"))
        here, there = LocalResults(plan, table), SparkResults(plan, frame)
        assert here.plan is there.plan is plan
        rows = here.to_arrow()
        assert there.to_arrow().equals(rows)
        bad = {i for i, y in enumerate(table["y"].to_pylist()) if y is None or not y > 1}
        assert rows.num_rows > 5
        assert not bad & {i for ids in rows["events"].to_pylist() for i in ids}


def test_events_without_an_id_must_have_an_order(spark: SparkSession, file: Path) -> None:
    with pytest.raises(UsageError, match="numbered by all their columns, but `list` has no order"):
        trellis.query(PARTITIONED).detect(file, spark=spark)


@pytest.mark.parametrize("partition", ["", "[g] AND "])
@pytest.mark.parametrize(
    ("size", "slide"), [(10, 3), *(pytest.param(*pair, marks=pytest.mark.slow) for pair in ((10, 1), (4, 4)))]
)
def test_overlapping_windows_hardly_multiply_what_is_shuffled(
    spark: SparkSession, size: int, slide: int, partition: str
) -> None:
    """The factor that is told is the one that is shuffled, up to the events before the first whole window batch."""
    n = 4_000
    table = pa.table({"ts": range(n), "id": range(n), "g": [i % 2 for i in range(n)], "x": [i % 7 for i in range(n)]})
    text = f"PATTERN E+ s[] WHERE {partition}s[i].x > s[i-1].x WITHIN {size} SLIDE {slide}"
    trends = trellis.query(text).detect(spark.createDataFrame(table), event_id="id")
    factor = trends.split_rows().rows.count() / n
    told = re.search(r"each event ([\d.]+) times", trends.describe()["shuffle"])
    assert factor == pytest.approx(float(told[1]) if told else 1.0, abs=0.01)
    assert factor < 1.2
    here = trellis.query(text).detect(table, event_id="id")
    assert trends.count() == here.count()
    assert trends.statistics == here.statistics
    assert trends.counts().to_pylist() == here.counts().to_pylist()


def test_an_id_may_return_in_another_window_of_a_stretch(spark: SparkSession) -> None:
    table = pa.table({"ts": [0, 5, 30, 31], "id": [1, 2, 1, 3], "x": [1, 2, 3, 4]})
    query = trellis.query("PATTERN E+ s[] WHERE s[i].x > s[i-1].x WITHIN 10 SLIDE 5")
    assert (
        query.detect(spark.createDataFrame(table), event_id="id").count() == query.detect(table, event_id="id").count()
    )
    again = pa.table({"ts": [0, 5, 7, 31], "id": [1, 2, 1, 3], "x": [1, 2, 3, 4]})
    with pytest.raises(TrellisError, match="the id `1` in the column `id` occurs twice in one window"):
        query.detect(spark.createDataFrame(again), event_id="id").count()


@pytest.mark.parametrize(
    ("size", "slide"),
    [("0.1", "0.1"), ("0.7", "0.3"), ("0.30000000000000004", "0.1"), ("1e300", "1e300"), ("3", "1"), ("2e-30", "1e-30"),
     ("12345678.0000001", "12345678.0000001")],
)  # fmt: skip
def test_windows_over_doubles_are_those_of_the_clock(spark: SparkSession, size: str, slide: str) -> None:
    window = Window(WindowKind.SLIDING, Decimal(size), Decimal(slide))
    clock = Clock(window, DOUBLE)
    dice = np.random.default_rng(1)
    numbers = np.concatenate([np.arange(-50, 450), dice.integers(-(2**48), 2**48, 100)])
    bounds = np.concatenate([clock.starts(numbers), clock.ends(numbers)])
    bounds = bounds[np.abs(bounds) < 1e307]
    times = np.concatenate([bounds, np.nextafter(bounds, -np.inf), np.nextafter(bounds, np.inf)])
    frame = spark.createDataFrame(pa.table({"t": times}))
    first, last = (column.alias(name) for name, column in zip("fl", window_numbers(f.col("t"), clock), strict=True))
    found = frame.select("t", first, last).toArrow()
    for name, wanted in zip("fl", clock.windows(found["t"].to_numpy()), strict=True):
        assert found[name].to_pylist() == wanted.tolist()


@pytest.mark.parametrize("slide", ["0.1", "0.025"])
def test_every_time_is_in_one_window_of_those_that_do_not_overlap(spark: SparkSession, slide: str) -> None:
    times = [float(Decimal(slide) * k) for k in range(450)]
    table = pa.table({"ts": times, "id": range(450)})
    text = f"PATTERN E+ s[] REPORT any WITHIN {slide} SLIDE {slide}"
    wanted = trellis.query(text).detect(table, event_id="id")
    found = trellis.query(text).detect(spark.createDataFrame(table), event_id="id")
    assert found.count() == wanted.count() == 450
    assert found.to_arrow()["window_start"].to_pylist() == wanted.to_arrow()["window_start"].to_pylist() == times
