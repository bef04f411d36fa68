"""The same commands on Spark, in two processes: one that runs several, since a JVM takes long to start, and Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.cli.cases import PRICES, RISING, Done, assert_mistake, names_in, run_local, run_process, start
from tests.cli.test_explain import KITING
from tests.cli.test_process import ENDLESS, UNBOUNDED, wait_for

pytestmark = pytest.mark.spark
TWO = ("--master", "local[2]", "--conf", "spark.sql.shuffle.partitions=2")
SECOND = "2024-01-01T00:00:0"
FILES = {
    "prices.csv": PRICES,
    "orders.csv": f"ts,event_id,size\n{SECOND}1,x,5\n",
    "times.csv": f"ts,price\n{SECOND}1,1\n{SECOND}2,2\nsoon,2\n",
    "twice.csv": f"ts,event_id,price\n{SECOND}1,a,1\n{SECOND}2,a,2\n",
}
COMMANDS = {
    "a repeated id": ("detect", RISING, "twice.csv", "--event-id", "event_id", *TWO, "--out", "new/out"),
    "a time that does not parse": ("detect", RISING, "times.csv", *TWO, "--out", "new/out"),
    "joins": ("detect", RISING, "prices.csv", *TWO, "--algorithm", "join", "--construction", "spark"),
    "several tables": (
        "count", "PATTERN Stock+ s[] WHERE s.code = '007' REPORT any", "--events", "Stock=prices.csv",
        "--events", "Order=orders.csv", *TWO, "--json",
    ),
}  # fmt: skip
# Each command is what the console script runs, but the session that the first one starts goes on for the others; the
# files get all that this process and those it starts write to stdout and stderr.
SEVERAL = """
import json, os, sys
import trellis.engines.spark.session.session
from trellis.cli.main import main

trellis.engines.spark.session.session.stop_session = lambda session: None

def ran(arguments):
    for number in (1, 2):
        os.dup2(os.open(f"printed{number}", os.O_RDWR | os.O_CREAT | os.O_TRUNC), number)
    sys.argv = ["trellis", *arguments]
    try:
        main()
    except SystemExit as ended:
        code = ended.code or 0
    sys.stdout.flush()
    sys.stderr.flush()
    return code, open("printed1").read(), open("printed2").read()

kept = [os.dup(1), os.dup(2)]
done = {name: ran(arguments) for name, arguments in json.loads(sys.argv[1]).items()}
for descriptor, number in zip(kept, (1, 2)):
    os.dup2(descriptor, number)
for number in (1, 2):
    os.remove(f"printed{number}")
print(json.dumps(done))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that the commands are given."""
    folder = tmp_path_factory.mktemp("spark")
    for name, text in FILES.items():
        (folder / name).write_text(text)
    return folder


@pytest.fixture(scope="module")
def done(samples: Path, folder: Path) -> dict[str, Done]:
    """What each of the commands did."""
    detect = ("detect", str(KITING), str(samples / "kite.parquet"), "--event-id", "event_id", *TWO, "--out", "found")
    asked = json.dumps({**COMMANDS, "detect": detect})
    environment = {k: v for k, v in os.environ.items() if k != "TRELLIS_DEBUG"}
    process = subprocess.run(
        [sys.executable, "-c", SEVERAL, asked], capture_output=True, text=True, timeout=400, cwd=folder,
        env=environment,
    )  # fmt: skip
    assert (process.returncode, process.stderr) == (0, "")
    return {name: Done(*what) for name, what in json.loads(process.stdout).items()}


def test_detect_gives_what_the_local_engine_gives(
    done: dict[str, Done], folder: Path, samples: Path, tmp_path: Path
) -> None:
    local = run_local("detect", KITING, samples / "kite.parquet", "--event-id", "event_id", "--out", tmp_path / "local")
    assert (done["detect"].code, done["detect"].err) == (0, local.err)  # some events share a time, which both warn of
    assert done["detect"].out.splitlines()[2:-2] == local.out.splitlines()[2:-2]
    found, expected = pq.read_table(folder / "found"), pq.read_table(tmp_path / "local")
    keys = [("window_start", "ascending"), ("rank", "ascending")]
    assert found.sort_by(keys).to_pylist() == expected.sort_by(keys).to_pylist()


def test_joins_find_what_the_local_engine_finds(done: dict[str, Done], folder: Path) -> None:
    local = run_local("detect", RISING, folder / "prices.csv")
    assert (done["joins"].code, done["joins"].err) == (0, "")
    assert done["joins"].out.splitlines()[2:-2] == local.out.splitlines()[2:-2]


def test_count_over_several_tables_of_text_prints_json_only(done: dict[str, Done]) -> None:
    assert (done["several tables"].code, done["several tables"].err) == (0, "")
    told = json.loads(done["several tables"].out)
    assert (told["events"], told["results"]) == (4, "3")


def test_bad_input_is_told_and_leaves_nothing(done: dict[str, Done], folder: Path) -> None:
    assert_mistake(
        done["a repeated id"], "the id `a` in the column `event_id` occurs twice in one window and partition"
    )
    assert_mistake(done["a time that does not parse"], "1 row has no readable time in the column `ts`")
    assert names_in(folder) == sorted([*FILES, "found"])


@pytest.mark.slow
def test_ctrl_c_while_spark_writes(samples: Path, tmp_path: Path) -> None:
    asked = ("detect", ENDLESS, samples / "stock.parquet", *TWO, *UNBOUNDED, "--quiet", "--out", tmp_path / "out")
    process = start(*asked)
    wait_for(lambda: any(tmp_path.glob(".out.*/new/*.parquet")), process)
    os.killpg(process.pid, signal.SIGINT)
    printed, told = process.communicate(timeout=30)
    assert process.returncode == 130
    lines = [line for line in told.splitlines() if not line.startswith("warning: ")]  # of ties, if that was found
    assert (printed, lines) == ("", ["interrupted"])
    assert names_in(tmp_path) == []


@pytest.mark.slow
def test_a_kill_while_spark_replaces_an_output(samples: Path, tmp_path: Path) -> None:
    out, work = tmp_path / "out", tmp_path / ".out.trellis"
    short = ("detect", RISING, samples / "stock.parquet", "--limit", "5", "--out", out, "--overwrite")
    assert run_local(*short).code == 0
    before = pq.read_table(out)
    asked = ("detect", ENDLESS, samples / "stock.parquet", *TWO, *UNBOUNDED, "--quiet", "--out", out, "--overwrite")
    process = start(*asked)
    wait_for(lambda: any(work.glob("new/*.parquet")), process)
    assert_mistake(run_local(*short), f"process {process.pid} on ", "is writing the output")
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=60)
    assert pq.read_table(out).equals(before)
    assert work.exists()
    assert run_local(*short).code == 0
    assert pq.read_table(out).equals(before)
    assert names_in(tmp_path) == ["out"]


STORE = """
import sys
from pyspark.sql import SparkSession

builder = SparkSession.builder.master("local[1]")
for setting in sys.argv[1:]:
    builder = builder.config(*setting.split("=", 1))
session = builder.getOrCreate()
session.sql("CREATE DATABASE bank")
session.read.csv("prices.csv", header=True, inferSchema=True).write.saveAsTable("bank.prices")
"""


@pytest.mark.slow
def test_a_table_of_a_catalog_that_another_application_stored(tmp_path: Path) -> None:
    (tmp_path / "prices.csv").write_text(PRICES)
    settings = [
        "spark.sql.catalogImplementation=hive",
        f"spark.sql.warehouse.dir={tmp_path / 'warehouse'}",
        f"spark.hadoop.javax.jdo.option.ConnectionURL=jdbc:derby:;databaseName={tmp_path / 'metastore'};create=true",
    ]
    subprocess.run([sys.executable, "-c", STORE, *settings], cwd=tmp_path, check=True, capture_output=True)
    given = [argument for setting in settings for argument in ("--conf", setting)]
    query = RISING.replace("price", "event_id")
    there = run_process("count", query, "--table", "bank.prices", *given, "--json")
    here = run_local("count", query, tmp_path / "prices.csv", "--json")
    answers = [json.loads(done.out) for done in (there, here)]
    assert [(told["events"], told["results"]) for told in answers] == [(3, "2")] * 2
    assert_mistake(run_process("count", query, "--table", "bank.price", *given), "bank.price")
