"""Spark's status while a job runs, as the command's progress shows it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
from pyspark import SparkStageInfo
from pyspark.sql import SparkSession

from trellis.engines.spark.session.progress import JobProgress, job_progress, not_skipped


def test_the_tasks_of_a_job_are_counted_while_it_runs(spark: SparkSession) -> None:
    def slowly(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            time.sleep(0.3)
            yield batch

    assert job_progress(spark) is None
    with ThreadPoolExecutor() as pool:
        job = pool.submit(spark.range(0, 5, 1, 5).mapInArrow(slowly, "id long").collect)
        seen = []
        while not job.done():
            seen.append(job_progress(spark))
            time.sleep(0.05)
    found = [one for one in seen if one is not None]
    assert {(one.stages_planned, one.tasks_planned) for one in found} == {(1, 5)}
    done = [one.tasks_done for one in found]
    assert done == sorted(done)
    assert 0 < max(done) <= 5
    assert job_progress(spark) is None


def test_stages_that_spark_skips_are_not_counted() -> None:
    skipped, running, waiting = (SparkStageInfo(i, 0, "", 4, active, 0, 0) for i, active in enumerate((0, 2, 0)))
    assert not_skipped([skipped, running, waiting]) == [running, waiting]
    assert not_skipped([waiting]) == [waiting]


def test_progress_in_a_line() -> None:
    assert str(JobProgress(3, 1, 1_200, 40)) == "stage 2 of 3, 40 of 1,200 tasks"
    assert str(JobProgress(2, 0, 0, 0)) == ""
