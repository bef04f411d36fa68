"""Sessions: ours and others', their settings, and what is said where there is no Java."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from trellis.engines.spark.session import session as module
from trellis.engines.spark.session.session import find_java, get_session, stop_session
from trellis.errors import UsageError

pytestmark = pytest.mark.spark


def test_the_active_session_is_taken(spark: SparkSession) -> None:
    assert get_session() is spark
    assert get_session("local[7]") is spark


def test_our_settings(spark: SparkSession) -> None:
    expected = {
        "spark.ui.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.adaptive.enabled": "true",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.python.sql.dataFrameDebugging.enabled": "false",
    }
    assert {key: spark.conf.get(key) for key in expected} == expected


def test_settings_of_a_session_that_runs(spark: SparkSession) -> None:
    get_session(conf={"spark.sql.shuffle.partitions": 3})
    assert spark.conf.get("spark.sql.shuffle.partitions") == "3"
    get_session(conf={"spark.sql.shuffle.partitions": 2, "spark.ui.enabled": False})
    assert spark.conf.get("spark.sql.shuffle.partitions") == "2"
    with pytest.raises(UsageError, match=r"spark\.driver\.memory cannot change while Spark runs"):
        get_session(conf={"spark.driver.memory": "7g"})


def test_a_session_of_others_is_not_stopped(spark: SparkSession) -> None:
    other = spark.newSession()
    stop_session(other)
    assert spark.range(3).count() == 3


@pytest.mark.parametrize(
    ("master", "cores"),
    [("local", 1), ("local[3]", 3), ("local[4,2]", 4), ("local-cluster[2,3,1024]", 6), ("local[*]", os.cpu_count())],
)
def test_cores(master: str, cores: int) -> None:
    assert module.local_cores(master) == cores


def java(home: Path, version: str) -> Path:
    command = home / "bin" / "java"
    command.parent.mkdir(parents=True)
    command.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    command.chmod(0o755)
    return home


def test_no_java(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="Spark needs Java 17 or newer, and none was found") as caught:
        find_java([tmp_path / "nothing"])
    assert "apt-get install openjdk-17-jre-headless" in str(caught.value)


def test_an_old_java_is_passed_over(tmp_path: Path) -> None:
    old, new = java(tmp_path / "old", "1.8.0_392"), java(tmp_path / "new", "21.0.1")
    with pytest.raises(UsageError, match="only Java 8 was found"):
        find_java([old])
    assert find_java([old, new]) == new


def test_the_remembered_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "java_home").write_text(f"{java(tmp_path / 'jdk', '17.0.2')}\n")
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    assert find_java() == tmp_path / "jdk"


SCRIPT = """
import sys
import trellis
from trellis.engines.spark.session.session import get_session, stop_session

session = get_session("local[1]", {"spark.driver.memory": "512m", "spark.sql.session.timeZone": "Asia/Tokyo"})
assert session.conf.get("spark.sql.session.timeZone") == "Asia/Tokyo"
assert session.range(5).count() == 5
print("to stderr", file=sys.stderr)
frame = session.range(5).selectExpr("id AS ts", "id", "id AS x")
trends = trellis.query("PATTERN E+ e[] WHERE e[i].x > e[i-1].x").detect(frame, time="ts", event_id="id")
stop_session(session)
for answer in (trends.count, trends.to_spark):
    try:
        answer()
    except trellis.UsageError as problem:
        assert "has been stopped" in str(problem)
    else:
        raise AssertionError(answer)
"""


@pytest.mark.slow
def test_a_fresh_session_is_quiet_and_takes_the_users_settings() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "to stderr\n")


KILLED = """
from pathlib import Path
import sys
from pyspark import SparkContext
from trellis.engines.spark.session.failures import in_driver
from trellis.engines.spark.session.session import get_session, stop_session
from trellis.engines.spark.sources.read import read
from trellis.errors import TrellisError

session = get_session("local[1]", {"spark.driver.memory": "512m"})
Path("a.csv").write_text("ts,x\\n1,2\\n")
SparkContext._gateway.proc.terminate()  # as systemd does, which signals all processes of a service
try:
    with in_driver():
        while True:
            read(session, "a.csv").count()
except TrellisError as problem:
    print(problem.what)
stop_session(session)
"""


@pytest.mark.slow
def test_a_jvm_that_is_ended_from_outside_is_told_as_such(tmp_path: Path) -> None:
    command = [sys.executable, "-c", KILLED]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout in {
        "Spark's JVM has ended (code 143) in the middle of the work\n",
        "Spark's JVM was killed (signal 15) in the middle of the work\n",
    }


def test_a_session_that_does_not_start_says_why() -> None:
    script = SCRIPT.replace('"512m"', '"much"')
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300, check=False)
    assert done.stderr.strip().splitlines()[-1].startswith("trellis.errors.UsageError: Spark does not start: ")
