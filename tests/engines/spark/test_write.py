"""Results that tasks write themselves: all of them once, whatever happens to tasks, and evenly."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as dataset
import pyarrow.parquet as pq
import pytest
from pyspark import TaskContext, cloudpickle
from pyspark.sql import SparkSession

import trellis
from trellis.engines.spark.batch.operate import Work
from trellis.engines.spark.batch.ranges import MOST_TASKS, SavedSlice, TaskSettings, even_ranges, within
from trellis.engines.spark.batch.results import SparkResults
from trellis.engines.spark.batch.sink import Sink, WrittenFile
from trellis.engines.spark.ship.shared import load, save
from trellis.engines.spark.split.rows import free_memory, whole_groups
from trellis.errors import DataError, ListingRefused, TrellisError
from trellis.io.outputs import LIST
from trellis.operators.contract import ListRequest
from trellis.operators.trends.operator import TrendOperator
from trellis.results.rows import RowMaker

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers cannot import tests

USUAL = TaskSettings()
CHAIN = "PATTERN E+ s[] WHERE s[i].src = s[i-1].dest"


def layered(width: int, layers: int = 4, partitions: int = 1) -> pa.Table:
    """Each event of a layer is followed by all of the next: `width ** layers` trends of one partition."""
    n = width * layers
    layer = np.tile(np.arange(n) // width, partitions)
    times = np.tile(np.arange(n), partitions)
    ids = np.random.default_rng(1).permutation(len(times))
    return pa.table({"ts": times, "id": ids, "src": layer, "dest": layer + 1, "g": np.repeat(np.arange(partitions), n)})


def lopsided(n: int = 17) -> pa.Table:
    """The first event begins half of all trends, the second a quarter, and so on: 2 ** (n - 2) in all."""
    return pa.table({"ts": range(n), "id": range(n), "x": range(n)})


def on_spark(spark: SparkSession, text: str, table: pa.Table, tasks: TaskSettings = USUAL, **more: Any) -> SparkResults:
    trends = trellis.query(text).detect(spark.createDataFrame(table), event_id="id", **more)
    assert isinstance(trends, SparkResults)
    trends.tasks = tasks
    return trends


def rows_of(path: Path) -> list[int]:
    return [pq.read_metadata(file).num_rows for file in sorted(path.glob("part-*"))]


def same_rows(path: Path, table: pa.Table) -> bool:
    """Return whether files have the rows of a table, whatever their order."""
    keys = [(name, "ascending") for name in table.column_names if not pa.types.is_list(table[name].type)]
    found = pq.read_table(path).select(table.column_names).cast(table.schema)
    return found.sort_by(keys).equals(table.sort_by(keys).combine_chunks())


@pytest.mark.parametrize(
    ("text", "table"),
    [
        (CHAIN, layered(7)),
        (CHAIN + " AND [g] WITHIN 30 SLIDE 10", layered(6, partitions=5)),
        ("PATTERN E+ s[] WHERE s[i].x > s[i-1].x REPORT any", lopsided(11)),
        ("PATTERN E+ s[] WHERE s[i].x > s[i-1].x HAVING LENGTH >= 5", lopsided(13)),
        ("PATTERN E+ s[] WHERE s[i].x > s[i-1].x WITHIN 6", lopsided(40)),
        (CHAIN + " REPORT maximal WITHIN 20 SLIDE 10 LIMIT 100 PER WINDOW OFFSET 3", layered(6)),
        ("PATTERN a;b;c WHERE a.x < c.x", lopsided(30)),
    ],
)
def test_ranges_of_ranks_give_every_result_once(
    spark: SparkSession, tmp_path: Path, text: str, table: pa.Table
) -> None:
    wanted = trellis.query(text).detect(table, event_id="id").to_arrow()
    assert wanted.num_rows
    for at_once in (0, 1000):  # all by ranges, or what is left of two slices
        out = tmp_path / f"out{at_once}"
        on_spark(spark, text, table, TaskSettings(at_once=at_once, rows=300)).write(str(out))
        assert same_rows(out, wanted)
        assert all(name.startswith("part-") for name in os.listdir(out) if name != LIST)


def test_tasks_list_equal_numbers_however_unequal_the_starts_are(spark: SparkSession, tmp_path: Path) -> None:
    trends = on_spark(spark, "PATTERN E+ s[] WHERE s[i].x > s[i-1].x", lopsided(17), TaskSettings(at_once=0, rows=5000))
    trends.write(str(tmp_path / "out"))
    found = rows_of(tmp_path / "out")
    assert len(found) >= 2**15 // 5000
    assert sum(found) == 2**15
    assert max(found) - min(found) <= 1
    ranks = np.concatenate(
        [pq.read_table(file)["rank"].to_numpy() for file in sorted((tmp_path / "out").glob("part-*"))]
    )
    assert (ranks == np.arange(2**15)).all()


@pytest.mark.parametrize("seed", range(30))
def test_ranges_are_even_and_cover_everything(seed: int) -> None:
    rng = np.random.default_rng(seed)
    slices = [SavedSlice(str(i), int(rows)) for i, rows in enumerate(rng.integers(0, 50, rng.integers(0, 6)))]
    cut = even_ranges(slices, int(rng.integers(1, 9)), int(rng.integers(1, 40)))
    sizes = [sum(end - begin for _, begin, end in one) for one in cut]
    assert not sizes or max(sizes) - min(sizes) <= 1
    listed = [(name, row) for one in cut for name, begin, end in one for row in range(begin, end)]
    assert listed == [(one.name, row) for one in slices for row in range(one.rows)]
    groups = [(g, int(b), int(b + n)) for g, (b, n) in enumerate(rng.integers(0, 9, (5, 2)))]
    every = [(g, rank) for g, first, last in groups for rank in range(first, last)]
    begin, end = sorted(rng.integers(0, len(every) + 1, 2).tolist())
    assert [(g, r) for g, first, last in within(groups, begin, end) for r in range(first, last)] == every[begin:end]


def test_ranges_are_not_countless() -> None:
    cut = even_ranges([SavedSlice("a", 10**30)], 3, 1000)
    sizes = [end - begin for one in cut for _, begin, end in one]
    assert 10_000 < len(sizes) <= MOST_TASKS
    assert sum(sizes) == 10**30
    assert max(sizes) - min(sizes) <= 1


# --- Failures ---------------------------------------------------------------------------------------------------


class FailsFirst(Sink):
    """Writes a file in the first attempt of each task, and fails; the file stays behind."""

    def write(self, batches: Iterable[pa.RecordBatch], place: int) -> Iterator[WrittenFile]:
        context = TaskContext.get()
        if context is not None and context.attemptNumber() == 0:
            list(super().write(batches, place))
            raise RuntimeError("failed on purpose")
        yield from super().write(batches, place)


class Fails(Sink):
    """Always fails, after it has written."""

    def write(self, batches: Iterable[pa.RecordBatch], place: int) -> Iterator[WrittenFile]:
        list(super().write(batches, place))
        raise RuntimeError("failed on purpose")


class FullDisk(Sink):
    """Has no room for all of the rows."""

    def write(self, batches: Iterable[pa.RecordBatch], place: int) -> Iterator[WrittenFile]:
        def filling() -> Iterator[pa.RecordBatch]:
            yield from batches
            raise OSError(28, "No space left on device")

        yield from super().write(filling(), place)


@pytest.mark.parametrize("at_once", [0, pytest.param(10**9, marks=pytest.mark.slow)])
def test_a_task_that_failed_and_is_repeated_leaves_nothing_behind(
    spark: SparkSession, tmp_path: Path, at_once: int
) -> None:
    table = layered(6, partitions=3)
    trends = on_spark(spark, CHAIN + " AND [g]", table, TaskSettings(at_once=at_once, sink=FailsFirst))
    trends.write(str(tmp_path / "out"))
    assert same_rows(tmp_path / "out", trellis.query(CHAIN + " AND [g]").detect(table, event_id="id").to_arrow())
    assert os.listdir(tmp_path) == ["out"]
    assert all(name.startswith("part-") for name in os.listdir(tmp_path / "out") if name != LIST)


@pytest.mark.parametrize("at_once", [0, pytest.param(10**9, marks=pytest.mark.slow)])
def test_a_job_that_failed_leaves_nothing_behind(spark: SparkSession, tmp_path: Path, at_once: int) -> None:
    trends = on_spark(spark, CHAIN, layered(5), TaskSettings(at_once=at_once))
    trends.write(str(tmp_path / "out"))
    before = pq.read_table(tmp_path / "out")
    trends.tasks = TaskSettings(at_once=at_once, sink=Fails)
    with pytest.raises(Exception, match="failed on purpose"):
        trends.write(str(tmp_path / "out"), overwrite=True)
    assert os.listdir(tmp_path) == ["out"]
    assert pq.read_table(tmp_path / "out").equals(before)
    trends.tasks = TaskSettings(at_once=at_once, sink=FullDisk)
    with pytest.raises(TrellisError, match=r"cannot be written on .*No space left"):
        trends.write(str(tmp_path / "more"))
    assert os.listdir(tmp_path) == ["out"]


@pytest.mark.slow
def test_too_many_results_are_refused_and_nothing_is_left(spark: SparkSession, tmp_path: Path) -> None:
    tasks = TaskSettings(at_once=500)
    with pytest.raises(ListingRefused, match="1,296 results"):
        on_spark(spark, CHAIN, layered(6), tasks, max_trends=1295).write(str(tmp_path / "out"))
    with pytest.raises(ListingRefused):  # no task by itself has too many
        on_spark(spark, CHAIN + " AND [g]", layered(6, partitions=4), tasks, max_trends=4 * 1296 - 1).write(
            str(tmp_path / "out")
        )
    assert os.listdir(tmp_path) == []


def test_a_worker_that_does_not_see_the_directory_says_so(tmp_path: Path) -> None:
    sink = Sink(str(tmp_path), "parquet", pa.schema([("a", pa.int64())]))
    with pytest.raises(DataError, match="does not see the output directory"):
        list(sink.write([], 0))


def test_no_results_are_a_file_without_rows(spark: SparkSession, tmp_path: Path) -> None:
    trends = on_spark(spark, CHAIN + " AND s.src > 100", layered(3))
    trends.write(str(tmp_path / "out"))
    assert rows_of(tmp_path / "out") == [0]
    assert pq.read_schema(tmp_path / "out" / "part-00000.parquet").names == trends.schema.names


@pytest.mark.slow
def test_an_order_goes_over_the_files(spark: SparkSession, tmp_path: Path) -> None:
    text = CHAIN + " AND [g] RETURN LAST(s).id AS last ORDER BY LAST(s).id DESC, FIRST(s).id"
    table = layered(7, partitions=2)
    spark.conf.set("spark.sql.adaptive.coalescePartitions.enabled", "false")
    try:
        on_spark(spark, text, table).write(str(tmp_path / "out"))
    finally:
        spark.conf.set("spark.sql.adaptive.coalescePartitions.enabled", "true")
    files = sorted(str(file) for file in (tmp_path / "out").glob("part-*"))
    assert len(files) > 1
    found = dataset.dataset(files).to_table()
    assert found["last"].to_pylist() == trellis.query(text).detect(table, event_id="id").to_arrow()["last"].to_pylist()


# --- Sharing and memory -----------------------------------------------------------------------------------------


def test_saved_arrays_are_mapped_and_work_as_before(tmp_path: Path) -> None:
    trends = trellis.query(CHAIN).detect(layered(6), event_id="id")
    operator = trends.operator
    operator.prepare()
    size = save(operator, tmp_path / "slice")
    again = load(tmp_path / "slice")
    assert size == (tmp_path / "slice").stat().st_size
    assert isinstance(again, TrendOperator)
    assert {"graph", "counts"} <= vars(again.structure).keys()
    array = again.graph.successors
    assert array.flags.writeable, "kernels are compiled for arrays that can be written"
    assert not array.flags.owndata
    array[0] += 1  # a private mapping: nobody else sees it
    assert load(tmp_path / "slice").graph.successors[0] == array[0] - 1
    array[0] -= 1
    maker = RowMaker(again.plan, again.events)
    rows = list(again.list(ListRequest([(0, 1000, 1200)], maker.batch)))
    assert pa.Table.from_batches(rows).equals(trends.to_arrow().slice(1000, 200))


def test_a_group_that_does_not_fit_is_refused_with_its_size() -> None:
    table = pa.table({"k": [1] * 10 + [2] * 1_000_000 + [3] * 10, "x": np.arange(1_000_020)})
    batches = table.to_batches(max_chunksize=10_000)
    tables = list(whole_groups(batches, ["k"], 10**10))
    assert sum(t.num_rows for t in tables) == 1_000_020
    with pytest.raises(DataError, match=r"1,000,000 events, which take about 0\.1 GB; the worker has 0\.0 GB free"):
        list(whole_groups(batches, ["k"], 10_000_000))
    with pytest.raises(DataError, match="1,000,020 events"):
        list(whole_groups(batches, [], 10_000_000))
    assert free_memory() > 10_000_000


def test_a_window_too_large_for_a_worker_is_refused_on_spark(spark: SparkSession) -> None:
    tasks = TaskSettings(memory=10_000_000)
    text = "PATTERN E+ s[] WHERE s[i].x > s[i-1].x REPORT maximal"  # which is not counted in tiles
    trends = on_spark(spark, text, lopsided(200_000), tasks)
    with pytest.raises(DataError, match="200,000 events, which take about"):
        trends.count()
    assert Work(trends.plan, "count", 1).memory is None


@pytest.mark.slow
def test_one_partition_with_nearly_all_events_and_one_without_a_name(spark: SparkSession, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    n = 3_000
    symbols = [None if i % 50 == 0 else "small" if i % 20 == 0 else "large" for i in range(n)]
    table = pa.table({"ts": np.sort(rng.integers(0, 900, n)), "id": range(n), "x": rng.random(n), "symbol": symbols})
    text = "PATTERN E+ s[] WHERE [symbol] AND s[i].x > 3 * s[i-1].x WITHIN 60 SLIDE 20"
    here = trellis.query(text).detect(table, event_id="id")
    there = on_spark(spark, text, table, TaskSettings(at_once=100))
    assert there.counts().to_pylist() == here.counts().to_pylist()
    there.write(str(tmp_path / "out"))
    assert same_rows(tmp_path / "out", here.to_arrow())
