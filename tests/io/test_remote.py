"""Outputs in an object store: a real server of the S3 protocol, tasks that fail, and runs that are killed."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import fs, orc
from pyspark import TaskContext
from pyspark.sql import SparkSession

import trellis
from tests.engines.spark.cluster import wait_until
from trellis.engines.spark.batch.ranges import TaskSettings
from trellis.engines.spark.batch.sink import RemoteSink
from trellis.errors import DataError, UsageError
from trellis.io.claims import claimed
from trellis.io.outputs import LIST
from trellis.io.remote import storage_of

pytestmark = pytest.mark.slow
QUERY = trellis.query("PATTERN E+ s[] WHERE [g] AND s[i].x > s[i-1].x REPORT any")


class FailsFirst(RemoteSink):
    """The first attempt of each task fails when all of its file is there."""

    def save(self, name: str, batches: object) -> None:
        super().save(name, batches)  # type: ignore[arg-type]
        context = TaskContext.get()
        if context is not None and context.attemptNumber() == 0:
            os._exit(1) if context.partitionId() == 0 else 1 / 0


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a bucket, with what pyarrow needs to get there."""
    log = tmp_path_factory.mktemp("moto") / "log"
    with log.open("wb") as out:
        server = subprocess.Popen(
            [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", "0"], stdout=out, stderr=out
        )
    try:
        said = wait_until("address", lambda: re.search(r"http://127\.0\.0\.1:(\d+)", log.read_text()))
        options = f"endpoint_override=127.0.0.1:{said[1]}&scheme=http&region=us-east-1"
        system, _ = fs.FileSystem.from_uri(f"s3://a:b@bucket?allow_bucket_creation=true&{options}")
        system.create_dir("bucket")
        yield f"s3a://a:b@bucket/NAME?{options}"
    finally:
        server.kill()
        server.wait()


def events() -> pa.Table:
    return pa.table({"ts": range(22), "id": range(22), "x": range(22), "g": [0] * 11 + [1] * 9 + [2, 3]})


def there(address: str) -> dict[str, int]:
    system, directory = storage_of(address)
    files = system.get_file_info(fs.FileSelector(directory, allow_not_found=True))
    return {info.base_name: info.size for info in files}


def rows(address: str) -> pa.Table:
    """The rows of the files that count, in order."""
    system, directory = storage_of(address)
    with system.open_input_stream(f"{directory}/{LIST}") as stream:
        names = json.loads(stream.read())["files"]
    assert set(there(address)) == {LIST, *names}  # nothing else is left
    read = orc.read_table if "orc" in next(iter(names)) else pq.read_table
    tables = [read(system.open_input_file(f"{directory}/{name}")) for name in names]
    return pa.concat_tables(tables).sort_by([("g", "ascending"), ("rank", "ascending")])


def test_tasks_that_fail_and_runs_that_are_replaced(spark: SparkSession, store: str) -> None:
    address = store.replace("NAME", "out")
    wanted = QUERY.detect(events(), event_id="id").to_arrow()
    trends = QUERY.detect(spark.createDataFrame(events()), event_id="id")
    trends.tasks = TaskSettings(at_once=100, rows=400, remote=FailsFirst)
    trends.write(address)
    assert rows(address).select(wanted.column_names).cast(wanted.schema).equals(wanted)
    before = there(address)
    with pytest.raises(UsageError, match="exists"):
        trends.write(address)

    few = QUERY.detect(events().slice(0, 6), event_id="id")
    few.write(address, overwrite=True, format="orc")  # by the local engine
    assert rows(address).num_rows == 63
    assert not before.keys() & there(address).keys() - {LIST}

    system, directory = storage_of(address)
    with system.open_output_stream(f"{directory}/mine.txt") as stream:
        stream.write(b"x")
    with pytest.raises(UsageError, match=r"holds `mine\.txt`, which Trellis did not write"):
        few.write(address, overwrite=True)
    system.delete_file(f"{directory}/mine.txt")
    with claimed(address, overwrite=True) as output:
        few.write(address, overwrite=True)
        with pytest.raises(DataError, match=r"`s3a://bucket/out` was written by somebody else"):
            output.commit([])  # type: ignore[attr-defined]
    assert rows(address).num_rows == 63


def test_what_a_killed_run_left_is_removed_and_a_failed_one_leaves_nothing(store: str, tmp_path: Path) -> None:
    address = store.replace("NAME", "killed")
    killed = (
        "import os, sys\nfrom trellis.io.claims import claimed\nfrom trellis.io.remote import storage_of\n"
        "system, directory = storage_of(sys.argv[1])\nwith claimed(sys.argv[1]) as output:\n"
        "    with system.open_output_stream(f'{directory}/{output.name_of(0, \"parquet\")}') as stream:\n"
        "        stream.write(b'half')\n    os._exit(9)\n"
    )
    assert subprocess.run([sys.executable, "-c", killed, address]).returncode == 9
    assert len(there(address)) == 2
    with claimed(address):
        assert len(there(address)) == 1  # the list, with no file that counts
    assert there(address) == {}
    few = QUERY.detect(events().slice(0, 6), event_id="id")
    pq.write_table(events().slice(0, 6), tmp_path / "events.parquet")
    command = [sys.executable, "-m", "trellis.cli.main", "detect", QUERY.text, str(tmp_path / "events.parquet")]
    done = subprocess.run([*command, "--event-id", "id", "--engine", "local", "--out", address], capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    assert rows(address).num_rows == few.count()
    with pytest.raises(UsageError, match="it knows s3, gs, hdfs"):
        few.write("ftp://somewhere/out")
