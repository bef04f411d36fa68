"""Tables on a terminal: every column is shown whole or named as left out, and numbers are never cut."""

from __future__ import annotations

import datetime as dt
import io
import re

import pyarrow as pa
import pytest
from rich.console import Console

from trellis.cli.show import print_rows

ROWS = pa.table(
    {
        "window_start": pa.array([dt.datetime(2024, 1, 1, tzinfo=dt.UTC)] * 2),
        "symbol": ["IBM", "BAC"],
        "rank": [2130, 636],
        "length": [12, 3],
        "start_time": pa.array([dt.datetime(2024, 1, 1, 9, 30, 1, 591000, tzinfo=dt.UTC)] * 2),
        "end_time": pa.array([dt.datetime(2024, 1, 1, 9, 31, tzinfo=dt.UTC)] * 2),
        "accounts": [["800737690", "80E2CB370", "100428738"]] * 2,
        "last_t_to_account": ["800737690", "80E2CB370"],
        "total": [145765306.73, 12.5],
    }
)


@pytest.mark.parametrize("width", [40, 60, 80, 100, 120, 160, 240])
def test_columns_are_whole_or_named(width: int) -> None:
    out = io.StringIO()
    print_rows(Console(file=out, width=width), ROWS)
    text = out.getvalue()
    table, _, note = text.partition("\nwithout ")
    lines = table.splitlines()
    assert max(map(len, lines)) <= width
    header = next(line for line in lines if line.strip()).split()
    left_out = re.findall(r"\w+", " ".join(note.split()).partition(", for which")[0])
    assert sorted(header + left_out) == sorted(ROWS.column_names)
    if "rank" in header:
        assert "2,130" in table
    if width == 240:
        assert not left_out
