"""Archives made and followed on Spark are those made here, bit for bit; each batch comes once, through kills too."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time as clock
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import trellis
from tests.archive.cases import built, events, held_in, sized_as, with_keys
from trellis.archive import Archive
from trellis.engines.spark.archive.follow import ArchiveStream
from trellis.engines.spark.sources.read_stream import read_stream
from trellis.errors import DataError, UsageError
from trellis.streams.lock import StreamLock

pytestmark = pytest.mark.spark


def same(one: Archive, other: Archive) -> None:
    assert held_in(one) == held_in(other)
    assert one.answerer.contents.keys.values == other.answerer.contents.keys.values
    assert one.answerer.contents.keys.pairs.tolist() == other.answerer.contents.keys.pairs.tolist()
    assert (one.manifest.bits, one.manifest.hashes, len(one)) == (
        other.manifest.bits,
        other.manifest.hashes,
        len(other),
    )
    assert {path.name for path in one.directory.iterdir()} == {"manifest.json", *one.manifest.files}
    text = "PATTERN SEQ(A a, B b) WHERE a.x < b.x WITHIN 20"
    found, wanted = (archive.find(text, exact=True).trends.to_arrow() for archive in (one, other))
    assert found.to_pylist() == wanted.to_pylist()


def test_made_on_spark_it_is_the_same(spark: SparkSession, tmp_path: Path) -> None:
    dice = random.Random(5)
    table = with_keys(events(400, dice), dice)
    shuffled = table.take(pa.array(dice.sample(range(400), 400)))
    given = {"key": "key", "height": 2, "leaf": 7}
    here = built(table, tmp_path / "here", **given)
    steps: list[str] = []
    three = spark.newSession()
    three.conf.set("spark.sql.shuffle.partitions", 3)  # as many files
    there = built(three.createDataFrame(shuffled), tmp_path / "there", progress=steps.append, **given)
    same(there, here)
    assert len(there.manifest.parts) >= 3
    assert any("sorting 400 events" in text for text in steps)
    grown = sized_as(here, tmp_path / "grown")
    grown.append(table.slice(0, 100))
    grown.append(spark.createDataFrame(shuffled.filter(pa.compute.greater(shuffled["id"], "e0099"))))
    same(grown, here)
    with pytest.raises(DataError, match="not later than the last"):
        grown.append(spark.createDataFrame(table.slice(5, 9)))
    same(Archive.open(tmp_path / "grown"), here)
    with pytest.raises(UsageError, match="are for events of this process"):
        grown.append(spark.createDataFrame(table.slice(5, 9)), delay=3)
    empty = built(spark.createDataFrame(table).limit(0), tmp_path / "empty", leaf=7)
    assert empty.info()["events"] == 0
    nameless = pa.table({"t": pa.array([1, None], pa.int64()), "id": ["a", "b"], "n": ["A", "B"]})
    with pytest.raises(DataError, match="1 events have no `t`"):
        built(spark.createDataFrame(nameless), tmp_path / "bad")
    assert not (tmp_path / "bad").exists()


def put(table: pa.Table, folder: Path, number: int) -> None:
    folder.mkdir(exist_ok=True)
    path = folder / f"{number:03}.parquet"
    pq.write_table(table, path)
    os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))  # the order in which Spark takes them


def followed(spark: SparkSession, folder: Path, **more: object) -> ArchiveStream:
    frame = read_stream(spark, str(folder / "in"), time="t", files_a_batch=1)
    given = {"available_now": True} | more
    following: ArchiveStream = Archive.open(folder / "a").follow(frame, folder / "cp", **given)
    try:
        following.wait()
    finally:
        following.stop()
    return following


def test_a_stream_is_appended_once(spark: SparkSession, tmp_path: Path) -> None:
    dice = random.Random(6)
    table = events(120, dice)
    whole = built(table, tmp_path / "whole")
    sized_as(whole, tmp_path / "a")
    cuts = [0, 25, 26, 60, 90]
    for i, (low, high) in enumerate(pairwise(cuts)):
        put(table.slice(low, high - low), tmp_path / "in", i)
    following = followed(spark, tmp_path)
    assert (following.batches, following.events) == (4, 90)
    put(table.slice(90), tmp_path / "in", 4)
    assert followed(spark, tmp_path).events == 30
    same(Archive.open(tmp_path / "a"), whole)
    # Spark forgets that the last batch was done, as if it had been killed before it could take note of it.
    (tmp_path / "cp" / "spark" / "commits" / "4").unlink()
    (tmp_path / "cp" / "spark" / "commits" / ".4.crc").unlink(missing_ok=True)
    again = followed(spark, tmp_path)
    assert (again.batches, again.events) == (0, 0)
    same(Archive.open(tmp_path / "a"), whole)
    late = pa.table({"t": [3], "id": ["late"], "n": ["A"], "x": [0], "g": ["u"], "y": [0.5]})
    put(late, tmp_path / "in", 5)
    with pytest.raises(DataError, match="not later than the last"):
        followed(spark, tmp_path)
    assert followed(spark, tmp_path, late="drop", delay=4).archive.info()["late"] == 1
    _refuses(spark, tmp_path)


def _refuses(spark: SparkSession, folder: Path) -> None:
    frame = read_stream(spark, str(folder / "in"), time="t")
    built(events(9, random.Random(1)), folder / "b")
    lock = StreamLock()
    lock.take(folder / "cp", "")
    with pytest.raises(UsageError, match=r"the checkpoint .* is in use"):
        ArchiveStream(frame, str(folder / "a"), str(folder / "cp")).start()
    lock.release()
    with pytest.raises(UsageError, match="is of the archive"):
        ArchiveStream(frame, str(folder / "b"), str(folder / "cp"))
    with pytest.raises(UsageError, match="is no checkpoint"):
        ArchiveStream(frame, str(folder / "a"), str(folder / "in"))
    with pytest.raises(UsageError, match="no column `x`"):
        ArchiveStream(frame.drop("x"), str(folder / "a"), str(folder / "cp"))
    with pytest.raises(UsageError, match="only a streaming data frame"):
        ArchiveStream(spark.range(3), str(folder / "a"), str(folder / "cp"))
    with pytest.raises(UsageError, match="is not a duration"):
        ArchiveStream(frame, str(folder / "a"), str(folder / "cp"), delay="1 hour")


FOLLOW = """
import sys
from trellis.cli.main import main
sys.argv = ["trellis", "archive", "follow", sys.argv[1] + "/in", "--archive", sys.argv[1] + "/a", "--checkpoint",
            sys.argv[1] + "/cp", "--files-a-batch", "1", "--available-now", "--json", "--master", "local[1]"]
main()
"""


@pytest.mark.slow
def test_a_killed_stream_goes_on(tmp_path: Path) -> None:
    table = events(400, random.Random(7))
    whole = built(table, tmp_path / "whole")
    sized_as(whole, tmp_path / "a")
    for i in range(40):
        put(table.slice(10 * i, 10), tmp_path / "in", i)
    source = str(Path(trellis.__file__).parents[1])
    environment = os.environ | {"PYTHONPATH": source}
    command = [sys.executable, "-c", FOLLOW, str(tmp_path)]
    before = 0
    for _ in range(2):
        with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, start_new_session=True) as process:
            while process.poll() is None and len(Archive.open(tmp_path / "a")) < before + 60:
                clock.sleep(0.05)
            os.killpg(process.pid, signal.SIGKILL)
        before = len(Archive.open(tmp_path / "a"))
        assert 0 < before < 400
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
    assert json.loads(done.stdout)["events"] == 400
    shutil.rmtree(tmp_path / "cp")
    same(Archive.open(tmp_path / "a"), whole)


def test_spark_refuses_times_that_are_no_numbers(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.createDataFrame(pa.table({"t": [1.0, float("nan")], "n": ["A", "B"]}))
    with pytest.raises(DataError, match="NaN or infinite"):
        Archive.build(frame, tmp_path / "a", time="t", type="n")
    assert not (tmp_path / "a").exists()
    with pytest.raises(UsageError, match="`n` is text"):
        Archive.build(frame, tmp_path / "a", time="n", type="n")
    assert not (tmp_path / "a").exists()
