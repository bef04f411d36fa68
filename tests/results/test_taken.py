"""Columns of which rows take values by position: kernels against Arrow's own way."""

from __future__ import annotations

import sys
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from trellis.errors import UsageError
from trellis.events.clock import UTC_MICROS
from trellis.results.table import pandas_frame
from trellis.results.taken import TakenColumn

WORDS = {
    "integers": (pa.array([3, -1, 2**62, 0]), pa.int64()),
    "narrow integers": (pa.array([3, -1, 7, 0], pa.int16()), pa.int64()),
    "doubles": (pa.array([0.5, float("inf"), -0.0, 1e-300]), pa.float64()),
    "moments": (pa.array([datetime(2026, 11, day) for day in (1, 2, 3, 4)], pa.timestamp("us")), UTC_MICROS),
    "a slice": (pa.array([9, 9, 3, -1, 2, 0, 9])[2:6], pa.int64()),
}
TEXTS = {
    "texts": (pa.array(["a", "", "Grüße, Jürgen", "x" * 100]), pa.string()),
    "large texts": (pa.array(["a", "", "Grüße, Jürgen", "x" * 100], pa.large_string()), pa.string()),
    "a slice of texts": (pa.array(["zz", "a", "", "Grüße", "b", "zz"], pa.large_string())[1:5], pa.string()),
}
OTHERS = {
    "missing numbers": (pa.array([3, None, 4, 0]), pa.int64()),
    "missing texts": (pa.array(["a", None, "", "b"], pa.large_string()), pa.string()),
    "unsigned": (pa.array([3, 1, 2, 0], pa.uint64()), pa.int64()),
    "finer moments": (pa.array([1000, 2000, 3000, 4000], pa.timestamp("ns")), UTC_MICROS),
    "days": (pa.array([datetime(2026, 11, day) for day in (1, 2, 3, 4)], pa.timestamp("us")), pa.date32()),
    "decimals": (pa.array([Decimal("1.5")] * 4, pa.decimal256(76, 2)), pa.decimal128(38, 2)),
    "truth": (pa.array([True, False, True, False]), pa.bool_()),
}
ALL = WORDS | TEXTS | OTHERS
PLACES = np.array([3, 3, 0, 1, 2, 0, 3, 1] * 5, np.int32)


@pytest.mark.parametrize("name", ALL)
def test_values_are_those_that_arrow_takes(name: str) -> None:
    values, type_ = ALL[name]
    taken = TakenColumn(values, type_).taken(PLACES)
    taken.validate(full=True)
    assert taken.type == type_
    assert taken.equals(values.take(pa.array(PLACES)).cast(type_))


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("number", [0, 1])
def test_few_values(name: str, number: int) -> None:
    values, type_ = ALL[name]
    taken = TakenColumn(values, type_).taken(PLACES[:number])
    taken.validate(full=True)
    assert len(taken) == number


@pytest.mark.parametrize("type_", [pa.int64(), pa.string(), pa.large_string()])
def test_a_column_without_values(type_: pa.DataType) -> None:
    assert len(TakenColumn(pa.array([], type_)).taken(PLACES[:0])) == 0


@pytest.mark.parametrize("name", WORDS)
def test_words_are_taken_without_arrow(name: str, monkeypatch: Any) -> None:
    monkeypatch.setattr("pyarrow.compute.take", None)
    assert len(TakenColumn(*WORDS[name]).taken(PLACES)) == len(PLACES)


def test_days_are_days() -> None:
    values, type_ = OTHERS["days"]
    assert TakenColumn(values, type_).taken(np.array([1], np.int32)).to_pylist() == [date(2026, 11, 2)]


def test_without_pandas_it_is_said_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(UsageError, match="pandas is not installed here"):
        pandas_frame(pa.table({"a": [1]}))
