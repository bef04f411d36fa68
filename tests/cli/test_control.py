"""The control directory of a stream: what is noticed, what is refused, and a stream whose queries change."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time as clock
from pathlib import Path

import pytest

import trellis
from tests.engines.spark.stream.test_stream import events, nearly_sorted, without_ranks, write_files
from trellis.cli.control import TOLD, ControlDirectory
from trellis.errors import TrellisError
from trellis.streams.stream_output import read_committed

RISING = "PATTERN T+ t[] WHERE [g] AND t[i].x > least * t[i-1].x WITHIN 10 s SLIDE 5 s"


def put(folder: Path, name: str, text: str) -> None:
    (folder / f"_{name}").write_text(text)
    os.replace(folder / f"_{name}", folder / name)


def test_changes_are_noticed_once_and_mistakes_told(tmp_path: Path) -> None:
    put(tmp_path, "a.tq", "PATTERN A a WITHIN 5")
    control = ControlDirectory(tmp_path)
    assert list(control.read(())) == ["a"]
    assert not control.has_changed()
    put(tmp_path, "b.tq", RISING)
    put(tmp_path, "b.json", json.dumps({"least": "2"}))
    assert [control.has_changed() for _ in range(3)] == [False, True, False]  # when it did not change between two looks
    plan = control.read(())["b"].plan(None, {"least": "1"})
    assert dict(plan.bound.given) == {"least": "2"}
    put(tmp_path, "b.json", "[1]")
    for wrong, said in (("b.json", "cannot be read"), ("c.tq", "PATTERN"), ("B.tq", "differ in case only")):
        put(tmp_path, wrong, {"b.json": "[1]", "c.tq": "nonsense", "B.tq": RISING}[wrong])
        with pytest.raises(TrellisError, match=said):
            control.read(())
        (tmp_path / wrong).unlink()
    (tmp_path / "a.tq").unlink()
    (tmp_path / "b.tq").unlink()
    with pytest.raises(TrellisError, match="has no query"):
        control.read(())


def wait_for(process: subprocess.Popen[str], is_so: object, seconds: float = 240) -> None:
    begun = clock.monotonic()
    while not is_so():  # type: ignore[operator]
        assert process.poll() is None
        assert clock.monotonic() - begun < seconds
        clock.sleep(0.1)


@pytest.mark.slow
@pytest.mark.spark
def test_queries_come_and_go_while_a_stream_runs(tmp_path: Path) -> None:
    table = nearly_sorted(events(200), 2)
    queries = tmp_path / "queries"
    queries.mkdir()
    put(queries, "one.tq", RISING)
    put(queries, "one.json", json.dumps({"least": "1"}))
    write_files(table.slice(0, 100), tmp_path / "in", 2)
    command = [sys.executable, "-m", "trellis.cli.main", "stream", "in", "--control", "queries", "--out", "out",
               "--checkpoint", "cp", "--watermark", "3 s", "--event-id", "id", "--files-a-batch", "1", "--no-progress",
               "--conf", "spark.sql.shuffle.partitions=2", "--master", "local[2]"]  # fmt: skip
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    try:
        log = tmp_path / "out" / "_log"
        wait_for(process, lambda: len(list(log.glob("0*.json"))) >= 1)
        put(queries, "two.tq", RISING)
        put(queries, "two.json", json.dumps({"least": "2"}))
        wait_for(process, (tmp_path / "out" / TOLD).exists)
        for i, begin in enumerate((100, 150)):
            write_files(table.slice(begin, 50), tmp_path / "more", 2, seed=i)
            for place, path in enumerate(sorted((tmp_path / "more").iterdir())):
                os.utime(path, (1_700_000_100 + 10 * i + place,) * 2)  # the order in which Spark takes them
                os.replace(path, tmp_path / "in" / f"1{i}{path.name}")
        wait_for(process, lambda: any((tmp_path / "out" / "two").glob("*.parquet")))
        clock.sleep(2)
    finally:
        process.send_signal(signal.SIGINT)
        said = process.communicate()[1]
    subprocess.run([*command, "--available-now", "--flush"], cwd=tmp_path, check=True)
    assert "`two` holds for what begins after" in said
    options = {"time": "ts", "event_id": "id"}
    for name, least in (("", "1"), ("two", "2")):
        whole = trellis.query(RISING).detect(table, params={"least": least}, **options).to_arrow().to_pylist()
        found = read_committed(tmp_path / "out" / name).to_pylist()
        if name:
            told = json.loads((tmp_path / "out" / TOLD).read_text().splitlines()[0])["from"]
            whole = [row for row in whole if str(row["window_start"]).replace("+00:00", "") > told]
            found = [row for row in found if str(row["window_start"]).replace("+00:00", "") > told]
            assert whole
        assert without_ranks(found) == without_ranks(whole)
