"""The README's example on Spark, in sessions as people have them, with a `python3` on the PATH that has no Trellis."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.test_readme import PYTHON, TEXT
from tests.engines.spark.cluster import SPARK_HOME, python_with
from trellis.engines.spark.session.session import find_java

pytestmark = pytest.mark.spark

BLOCKS = PYTHON.findall(TEXT)
EXAMPLE = "\n".join(code for _, code, _ in BLOCKS)
(SHOWN,) = (shown.strip() for is_spark, _, shown in BLOCKS if is_spark)
RUN_NOTEBOOK = """
import sys, nbformat
from nbclient import NotebookClient

notebook = nbformat.read(sys.argv[1], as_version=4)
NotebookClient(notebook, timeout=240).execute()
nbformat.write(notebook, sys.argv[1])
"""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """A clean shell: another Python comes first on the PATH, and nothing says which one Spark's workers are to run."""
    python = python_with(tmp_path / "other", ())
    path = os.pathsep.join((str(python.parent), os.environ.get("PATH", os.defpath)))
    found = {"PATH": path, "HOME": str(tmp_path), "SPARK_LOCAL_DIRS": str(tmp_path / "scratch"), "LANG": "C.UTF-8"}
    if java := find_java():
        found["JAVA_HOME"] = str(java)
    return found


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """The README's Python as a file."""
    path = tmp_path / "script.py"
    path.write_text(EXAMPLE, encoding="utf-8")
    return path


def printed_by(environment: dict[str, str], *command: str | Path) -> str:
    """Run a command and return what it prints; it must succeed."""
    done = subprocess.run(
        command, env=environment, cwd=environment["HOME"], capture_output=True, text=True, timeout=300
    )
    sys.stderr.write(done.stderr)  # shown where the test fails
    done.check_returncode()
    return done.stdout


def test_a_script_needs_no_setting(environment: dict[str, str], script: Path) -> None:
    assert SHOWN in printed_by(environment, sys.executable, script)


@pytest.mark.slow
def test_an_application_is_submitted(environment: dict[str, str], script: Path) -> None:
    environment["PYSPARK_PYTHON"] = sys.executable
    environment["SPARK_HOME"] = str(SPARK_HOME)
    assert SHOWN in printed_by(environment, SPARK_HOME / "bin" / "spark-submit", "--master", "local[1]", script)


@pytest.mark.slow
def test_a_submitted_application_names_its_drivers_python_alone(environment: dict[str, str], script: Path) -> None:
    """Workers on the same machine then run the driver's Python too."""
    environment["PYSPARK_DRIVER_PYTHON"] = sys.executable
    environment["SPARK_HOME"] = str(SPARK_HOME)
    assert SHOWN in printed_by(environment, SPARK_HOME / "bin" / "spark-submit", "--master", "local[1]", script)


def on_connect(script: Path) -> Path:
    """Have the script run on a server of Spark Connect's that it starts itself."""
    remote = EXAMPLE.replace("SparkSession.builder.getOrCreate", 'SparkSession.builder.remote("local[1]").getOrCreate')
    assert remote != EXAMPLE
    script.write_text(remote, encoding="utf-8")
    return script


@pytest.mark.slow
def test_on_connect(environment: dict[str, str], script: Path) -> None:
    environment["PYSPARK_PYTHON"] = sys.executable
    assert SHOWN in printed_by(environment, sys.executable, on_connect(script))


@pytest.mark.slow
def test_connect_with_another_python_is_told_what_to_set(environment: dict[str, str], script: Path) -> None:
    """Nobody can change the Python of a server of Connect's that runs already."""
    with pytest.raises(subprocess.CalledProcessError) as failed:
        printed_by(environment, sys.executable, on_connect(script))
    python = Path(environment["PATH"].split(os.pathsep)[0]) / "python3"
    assert (
        f"UsageError: the workers of this Spark Connect server run {python}, which has no Trellis"
        in failed.value.stderr
    )
    assert f"Set PYSPARK_PYTHON={sys.executable} before the session starts" in failed.value.stderr


@pytest.mark.slow
def test_in_a_notebook(environment: dict[str, str], tmp_path: Path) -> None:
    jupyter = tmp_path / "jupyter"
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--target", jupyter, "ipykernel", "nbclient"]
    if subprocess.run(install, check=False).returncode:
        pytest.skip("ipykernel and nbclient, which run a notebook, cannot be installed here")
    environment["PYTHONPATH"] = str(jupyter)
    cells = [
        {"cell_type": "code", "id": f"c{i}", "execution_count": None, "metadata": {}, "outputs": [], "source": code}
        for i, (_, code, _) in enumerate(BLOCKS)
    ]
    notebook = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    path = tmp_path / "example.ipynb"
    path.write_text(json.dumps(notebook), encoding="utf-8")
    printed_by(environment, sys.executable, "-c", RUN_NOTEBOOK, path)
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    printed = "".join("".join(out.get("text", ())) for cell in cells for out in cell["outputs"])
    assert SHOWN in printed
