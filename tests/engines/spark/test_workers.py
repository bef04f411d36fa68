"""Workers whose Python does not do are told of in a sentence."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import trellis
from tests.engines.spark.cluster import python_with
from trellis.engines.spark.session.failures import NEEDED, mistake_in

TRACE = "An exception was thrown from the Python worker:\nTraceback (most recent call last):\n  File ...\n"
JAVA = "Lost task 0.0 in stage 5.0 (TID 3) (192.0.2.2 executor 1): java.io.IOException: "
MISMATCH = (
    "pyspark.errors.exceptions.base.PySparkRuntimeError: [PYTHON_VERSION_MISMATCH] Python in worker has different "
    "version: 3.12 than that in driver: 3.11, PySpark cannot run with different minor versions."
)


@pytest.mark.parametrize(
    ("said", "what", "hint"),
    [
        (f"{TRACE}ModuleNotFoundError: No module named 'numba.core'", "no package `numba`", "numba, numpy and pyarrow"),
        (f"{TRACE}ModuleNotFoundError: No module named 'trellis'\n", "no package `trellis`", "name this Python"),
        (f"{TRACE}ImportError: Numba needs NumPy 2.4 or less.", "Numba needs NumPy 2.4 or less", "versions"),
        (TRACE + MISMATCH, "workers run Python 3.12, and this is Python 3.11", "spark.pyspark.python"),
        (
            f'{JAVA}Cannot run program "/no/p" (in directory "."): error=2, No file',
            "`/no/p`: No file",
            "PYSPARK_PYTHON",
        ),
        ("EOFException occurred while reading the port number from pyspark.daemon's stdout", "not start", "README"),
    ],
)
def test_what_spark_says_becomes_a_sentence(said: str, what: str, hint: str) -> None:
    mistake = mistake_in(RuntimeError(said))
    assert mistake is not None
    assert what in mistake.what
    assert hint in str(mistake.hint)


@pytest.mark.parametrize("said", ["ModuleNotFoundError: No module named 'trellis.cli'", "ValueError: ImportError: x"])
def test_a_mistake_of_our_own_is_none_of_theirs(said: str) -> None:
    assert mistake_in(RuntimeError(TRACE + said)) is None


def modules_of_tasks() -> list[str]:
    """The modules with what Spark's tasks call."""
    root = Path(trellis.__file__).parent
    tasks = [p for p in sorted(root.glob("engines/spark/**/*.py")) if "def __call__(self, batches: " in p.read_text()]
    return [".".join(("trellis", *path.relative_to(root).with_suffix("").parts)) for path in tasks]


def test_tasks_import_only_what_the_readme_asks_for(tmp_path: Path) -> None:
    python = python_with(tmp_path, {*NEEDED, "llvmlite", "pyspark", "py4j"})
    modules = modules_of_tasks()
    assert "trellis.engines.spark.batch.operate" in modules
    source = str(Path(trellis.__file__).parents[1])
    subprocess.run([python, "-c", f"import {', '.join(modules)}"], env={"PYTHONPATH": source}, check=True)


SCRIPT = """
import json, sys
import pyarrow as pa
import trellis
from trellis.errors import UsageError
from trellis.engines.spark.session.session import get_session, stop_session

table = pa.table({"ts": [1, 2], "id": [1, 2]})
for python in sys.argv[1:]:
    session = get_session("local[1]", {"spark.pyspark.python": python, "spark.driver.memory": "512m"})
    try:
        print(trellis.query("PATTERN E+ s[]").detect(table, event_id="id", engine="spark", spark=session).count())
    except UsageError as error:
        print(json.dumps(error.what))
    stop_session(session)
"""


@pytest.mark.slow
@pytest.mark.spark
def test_pythons_that_lack_something(tmp_path: Path) -> None:
    """With Spark itself, which may come to say it in other words."""
    bare = python_with(tmp_path / "bare", ())
    incomplete = python_with(tmp_path / "incomplete", set(NEEDED) - {"numba"})
    (site,) = (tmp_path / "incomplete").glob("lib/python*/site-packages")
    (site / "trellis.pth").write_text(str(Path(trellis.__file__).parents[1]))
    pythons = [str(bare), str(incomplete), str(tmp_path / "none")]
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *pythons], capture_output=True, text=True, timeout=300, check=True
    )
    assert [json.loads(line) for line in done.stdout.splitlines()] == [
        "the Python of Spark's workers has no package `trellis`",
        "the Python of Spark's workers has no package `numba`",
        f"Spark's workers cannot run `{tmp_path / 'none'}`: No such file or directory",
    ]
