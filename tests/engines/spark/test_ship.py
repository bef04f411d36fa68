"""Trellis in one file: what is in it, and how a Python that has no Trellis comes to it."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import trellis
from tests.engines.spark.cluster import python_with
from trellis.engines.spark.ship import unpack
from trellis.engines.spark.ship.ship import package, ship
from trellis.kernels.cache import SHIPPED, versions

SHOW = "import sys; sys.path.insert(1, sys.argv[1]); import trellis, trellis.errors; print(trellis.__file__)"


@pytest.fixture
def python(tmp_path: Path) -> Path:
    """A Python without packages."""
    return python_with(tmp_path / "python", ())


def imported_by(python: Path, archive: Path, directory: Path, **environment: str) -> Path:
    """Where a fresh Python finds Trellis that has this file and nothing else of it."""
    done = subprocess.run(
        [python, "-c", SHOW, archive], cwd=directory, env=environment, capture_output=True, text=True, check=True
    )
    return Path(done.stdout.strip())


def test_the_same_files_make_the_same_archive(tmp_path: Path) -> None:
    first = package(tmp_path)
    content = first.read_bytes()
    assert package(tmp_path) == first
    assert first.read_bytes() == content
    assert [p.name for p in tmp_path.iterdir()] == [first.name]
    assert first.name.startswith("trellis-")
    names = zipfile.ZipFile(first).namelist()
    assert {"trellis/__init__.py", "package/trellis/language/grammar.lark"} <= set(names)
    assert not [n for n in names if "__pycache__" in n]
    compiled = [n for n in names if n.startswith(f"package/trellis/compiled/code/{versions()}/")]
    assert bool(compiled) == (SHIPPED / versions()).is_dir(), "workers get the kernels that are compiled here"


def test_a_python_without_trellis_unpacks_it_once(tmp_path: Path, python: Path) -> None:
    archive = package(tmp_path)
    found = imported_by(python, archive, tmp_path, XDG_CACHE_HOME=str(tmp_path / "cache"))
    assert found == tmp_path / "cache" / "trellis" / "sent" / archive.stem / "package" / "trellis" / "__init__.py"
    assert found.read_bytes() == Path(trellis.__file__).read_bytes()
    assert not (tmp_path / "trellis-sent").exists(), "the working directory serves where nothing else does"
    before = found.stat().st_ino
    assert imported_by(python, archive, tmp_path, XDG_CACHE_HOME=str(tmp_path / "cache")).stat().st_ino == before


def test_where_no_home_can_be_written_the_working_directory_serves(tmp_path: Path, python: Path) -> None:
    found = imported_by(python, package(tmp_path), tmp_path, HOME="/dev/null")
    assert found.parents[3] == tmp_path / "trellis-sent"


def test_many_workers_unpack_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    archive = package(tmp_path)
    with ThreadPoolExecutor(8) as pool:
        homes = set(pool.map(lambda _: unpack.unpacked(archive), range(16)))
    assert len(homes) == 1
    assert os.listdir(tmp_path / "cache" / "trellis" / "sent") == [archive.stem]


@pytest.mark.spark
def test_a_local_session_is_sent_nothing(spark: SparkSession) -> None:
    before = list(sys.path)
    ship(spark)
    assert sys.path == before
    assert not [name for name in spark.sparkContext._python_includes or () if name.startswith("trellis")]


def test_a_package_that_others_may_have_written_is_not_imported(tmp_path: Path, python: Path) -> None:
    archive = package(tmp_path)
    cache, here = tmp_path / "cache", tmp_path / "here"
    here.mkdir()
    for sent in (cache / "trellis" / "sent", here / "trellis-sent"):
        planted = sent / archive.stem / unpack.PACKAGE / "trellis"
        planted.mkdir(parents=True)
        (planted / "__init__.py").write_text("raise SystemExit('planted')")
        sent.chmod(0o777)
    found = imported_by(python, archive, here, XDG_CACHE_HOME=str(cache))
    assert not found.is_relative_to(tmp_path)
    assert not found.exists(), "it went away with the process"
