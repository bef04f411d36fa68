"""Small files: read in this process, without Spark."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import trellis
from tests.cli.cases import RISING, run
from trellis.errors import DataError
from trellis.io.sources import SMALL, are_small

TEXT = "ts,event_id,price\n2024-01-01T00:00:00,a,1\n2024-01-01T00:00:01,b,2\n"


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A file of two events."""
    file = tmp_path / "small.csv"
    file.write_text(TEXT)
    return file


def _sparse(file: Path, size: int) -> Path:
    file.touch()
    os.truncate(file, size)
    return file


def test_the_bound_is_on_all_files_together(tmp_path: Path) -> None:
    half = [[str(_sparse(tmp_path / f"{name}.csv", SMALL // 2))] for name in "ab"]
    assert are_small(half[:1])
    assert not are_small(half)


@pytest.mark.parametrize("mark", ["_SUCCESS", "_spark_metadata"])
def test_what_spark_wrote_is_left_to_spark(tmp_path: Path, small: Path, mark: str) -> None:
    assert are_small([[str(tmp_path)]])
    (tmp_path / mark).touch()
    assert not are_small([[str(tmp_path)]])


def test_other_storage_is_left_to_spark() -> None:
    assert not are_small([["s3://bucket/events.parquet"]])


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(DataError):
        are_small([[str(tmp_path / "none.csv")]])


def test_the_command_says_where_it_ran(small: Path) -> None:
    done = run("count", RISING, small, "--event-id", "event_id")
    assert done.code == 0
    assert "engine local" in done.out


def test_python_runs_small_files_here(small: Path) -> None:
    found = trellis.query(RISING).detect(str(small), event_id="event_id")
    assert type(found).__module__.startswith("trellis.engines.local")
    assert found.count() == 1
