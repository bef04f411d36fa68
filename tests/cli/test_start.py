"""What a command imports: only what it uses, since a small file is read in less time than a large library."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cli.cases import RISING, Done, assert_mistake, run_process

NOT_USED = {"pyspark", "py4j", "pandas", "polars", "plotly", "matplotlib"}
KERNELS = {
    "answers",
    "arrays",
    "cache",
    "calls",
    "count",
    "event_graph",
    "events",
    "index",
    "list",
    "items",
    "jit",
    "loops",
    "shortcuts",
    "sort",
    "tuples",
    "unboxing",
    "variables",
}  # packages that a count on the index may import
WINDOWS = "PATTERN stock+ s[] WHERE [id] WITHIN 60 min SLIDE 10 min AGGREGATE AVG(s.price)"


def modules(done: Done) -> set[str]:
    """The modules that were imported; PYTHONPROFILEIMPORTTIME also tells what was looked for in vain."""
    lines = [line for line in done.err.splitlines() if line.startswith("import time:")]
    return {line.rpartition("|")[2].strip() for line in lines}


def imported(done: Done) -> set[str]:
    """The packages of which modules were imported."""
    return {module.partition(".")[0] for module in modules(done) if "." in module}


def test_a_count_of_text_imports_only_what_it_uses(prices: Path) -> None:
    done = run_process("count", RISING, prices, "--engine", "local", "--quiet", PYTHONPROFILEIMPORTTIME="1")
    assert (done.code, done.out) == (0, "2\n")
    assert {"trellis", "pyarrow", "numba"} <= imported(done)
    assert not imported(done) & NOT_USED
    kernels = {module for module in modules(done) if module.startswith("trellis.kernels.")}
    assert {module.split(".")[2] for module in kernels} == KERNELS
    assert "trellis.kernels.count.large" not in kernels


@pytest.mark.parametrize("name", ["stock.parquet", "stock.csv"])
def test_windows_and_aggregates_import_no_more(samples: Path, name: str) -> None:
    done = run_process("count", WINDOWS, samples / name, "--engine", "local", PYTHONPROFILEIMPORTTIME="1")
    assert done.code == 0
    assert "window_start" in done.out
    assert not imported(done) & NOT_USED


def test_help_imports_no_data() -> None:
    done = run_process("count", "--help", PYTHONPROFILEIMPORTTIME="1")
    assert done.code == 0
    assert not imported(done) & (NOT_USED | {"pyarrow", "numpy", "numba"})


def test_a_time_finer_than_python_tells_is_shown_where_a_row_is_bad(tmp_path: Path) -> None:
    table = pa.table({"ts": [1, None], "price": [1, 2], "other": pa.array([1, 2], pa.timestamp("ns"))})
    pq.write_table(table, tmp_path / "fine.parquet")
    done = run_process("count", RISING, tmp_path / "fine.parquet", "--engine", "local")
    assert_mistake(done, "1 row has no readable time", "other=1970-01-01 00:00:00.000000002")
