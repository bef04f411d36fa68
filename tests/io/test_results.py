"""Results as files: JSON text made column by column, and directories that appear wholly or not at all."""

from __future__ import annotations

import csv
import datetime as dt
import json
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trellis.errors import DataError, UsageError
from trellis.io.json_text import json_lines
from trellis.io.results import write_parts

TEXT = st.none() | st.text()
COLUMNS = {
    "text": (pa.string(), TEXT),
    "whole": (pa.int64(), st.none() | st.integers(-(2**63), 2**63 - 1)),
    "real": (pa.float64(), st.none() | st.floats()),
    "flag": (pa.bool_(), st.none() | st.booleans()),
    "texts": (pa.list_(pa.string()), st.none() | st.lists(TEXT, max_size=3)),
    "numbers": (pa.list_(pa.int64()), st.none() | st.lists(st.integers(-9, 9), max_size=3)),
}


def spelled(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


@given(st.lists(st.fixed_dictionaries({name: values for name, (_, values) in COLUMNS.items()}), max_size=5))
def test_json_lines_read_back(rows: list[dict[str, Any]]) -> None:
    schema = pa.schema([pa.field(name, type_) for name, (type_, _) in COLUMNS.items()])
    batch = pa.RecordBatch.from_pylist(rows, schema=schema)
    read = [json.loads(line) for line in json_lines(batch).to_pylist()]
    assert read == [{name: spelled(value) for name, value in row.items()} for row in rows]


BATCH = pa.RecordBatch.from_pydict(
    {
        "window_start": pa.array([dt.datetime(2024, 1, 1, tzinfo=dt.UTC)], pa.timestamp("us", tz="UTC")),
        "count": pa.array([Decimal(12)], pa.decimal128(38, 0)),
        "events": pa.array([["a", 'b"c']]),
    }
)


def test_csv_has_arrays_as_json_fields(tmp_path: Path) -> None:
    write_parts([[BATCH]], BATCH.schema, str(tmp_path / "out"), "csv")
    (file,) = (tmp_path / "out").glob("part-*")
    header, row = list(csv.reader(file.read_text(encoding="utf-8").splitlines()))
    assert header == ["window_start", "count", "events"]
    assert row[:2] == ["2024-01-01T00:00:00.000000Z", "12"]
    assert json.loads(row[2]) == ["a", 'b"c']


def test_json_is_one_object_a_line(tmp_path: Path) -> None:
    write_parts([[BATCH, BATCH]], BATCH.schema, str(tmp_path / "out"), "json")
    (file,) = (tmp_path / "out").glob("part-*")
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    assert lines == [{"window_start": "2024-01-01T00:00:00.000000Z", "count": 12, "events": ["a", 'b"c']}] * 2


def test_an_existing_directory_is_refused_or_replaced(tmp_path: Path) -> None:
    out = tmp_path / "out"
    write_parts([[BATCH]], BATCH.schema, str(out))
    with pytest.raises(UsageError, match="exists"):
        write_parts([[BATCH]], BATCH.schema, str(out))
    write_parts([[BATCH, BATCH]], BATCH.schema, str(out), overwrite=True)
    assert pq.read_table(out).num_rows == 2


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_failure_leaves_nothing_behind_and_an_old_result_alone(tmp_path: Path, overwrite: bool) -> None:
    out = tmp_path / "out"
    if overwrite:
        write_parts([[BATCH]], BATCH.schema, str(out))

    def failing() -> Any:
        yield BATCH
        raise DataError("no more")

    with pytest.raises(DataError, match="no more"):
        write_parts([failing()], BATCH.schema, str(out), overwrite=overwrite)
    with pytest.raises(DataError, match="no more"):
        write_parts([failing()], BATCH.schema, str(tmp_path / "new" / "deep"))
    assert [p.name for p in tmp_path.iterdir()] == (["out"] if overwrite else [])
    if overwrite:
        assert pq.read_table(out).num_rows == 1


def test_an_unknown_format_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no output format `parqet`"):
        write_parts([[BATCH]], BATCH.schema, str(tmp_path / "out"), "parqet")
