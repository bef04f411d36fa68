"""Arrow types in the language, and their one physical form."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from trellis.errors import DataError
from trellis.events.columns.types import from_arrow, normalise, physical
from trellis.language.schema import BOOLEAN, DOUBLE, DURATION, INTEGER, STRING, TIMESTAMP, UNKNOWN, Kind, Type, decimal

DATE = Type(Kind.DATE)
UTC = dt.UTC


@pytest.mark.parametrize(
    ("given", "expected", "values", "normal"),
    [
        (pa.int8(), INTEGER, [1, None, -1], [1, None, -1]),
        (pa.uint64(), INTEGER, [2**63 - 1], [2**63 - 1]),
        (pa.float16(), DOUBLE, [np.float16(1.5)], [1.5]),
        (pa.float32(), DOUBLE, [1.5, None], [1.5, None]),
        (pa.decimal128(5, 2), decimal(2), [Decimal("1.50"), None], [Decimal("1.50"), None]),
        (pa.decimal128(5, -2), decimal(0), [Decimal(1500)], [Decimal(1500)]),
        (pa.decimal256(70, 3), decimal(3), [Decimal("1.5")], [Decimal("1.500")]),
        (pa.string(), STRING, ["a", None], ["a", None]),
        (pa.string_view(), STRING, ["a", None], ["a", None]),
        (pa.large_string(), STRING, ["a"], ["a"]),
        (pa.dictionary(pa.int8(), pa.string()), STRING, ["a", None, "a"], ["a", None, "a"]),
        (pa.dictionary(pa.int8(), pa.large_string()), STRING, ["a", "b"], ["a", "b"]),
        (pa.bool_(), BOOLEAN, [True, None], [True, None]),
        (pa.timestamp("s"), TIMESTAMP, [1, None], [1_000_000, None]),
        (pa.timestamp("ns", "UTC"), TIMESTAMP, [1000], [1]),
        (pa.timestamp("ms", "Asia/Tokyo"), TIMESTAMP, [5], [5000]),
        (pa.date32(), DATE, [-1], [-86_400_000_000]),
        (pa.date64(), DATE, [86_400_000], [86_400_000_000]),
        (pa.duration("s"), DURATION, [1, None], [1_000_000, None]),
        (pa.null(), UNKNOWN, [None, None], [None, None]),
    ],
)  # fmt: skip
def test_normal_form(given: pa.DataType, expected: Type, values: list[Any], normal: list[Any]) -> None:
    assert from_arrow(given) == expected
    array = pa.array(values, given)
    for column in (array, pa.chunked_array([array]), pa.chunked_array([array[:1], array[1:]])):
        result = normalise(column, expected)
        assert isinstance(result, pa.Array)
        assert result.type == physical(expected)
        assert (result.view(pa.int64()) if pa.types.is_temporal(result.type) else result).to_pylist() == normal
    assert len(normalise(pa.chunked_array([], given), expected)) == 0
    assert normalise(pa.nulls(2), expected).type == physical(expected)


def test_other_types_stay() -> None:
    column = pa.chunked_array([[[1], [2]], [[3]]])
    type_ = from_arrow(column.type)
    assert (type_.kind, type_.name) == (Kind.OTHER, str(column.type))
    assert normalise(column, type_).to_pylist() == [[1], [2], [3]]


def test_run_ends_are_laid_out() -> None:
    column = pa.RunEndEncodedArray.from_arrays([2, 3], ["a", "b"])
    assert normalise(column, from_arrow(column.type)).to_pylist() == ["a", "a", "b"]


def test_wider_types() -> None:
    assert normalise(pa.array([2**53 + 1, None]), DOUBLE).to_pylist() == [2.0**53, None]
    assert normalise(pa.array([1, None]), decimal(2)).to_pylist() == [Decimal("1.00"), None]
    tenths = pa.array([Decimal("0.1"), Decimal("123456789012345678901.3")], pa.decimal128(38, 1))
    assert normalise(tenths, DOUBLE).to_pylist() == [0.1, 123456789012345678901.3]
    assert normalise(tenths, decimal(3)).to_pylist() == tenths.to_pylist()


@pytest.mark.parametrize(
    ("array", "type_", "said"),
    [
        (pa.array([1, 2**63], pa.uint64()), INTEGER, "the integer 9223372036854775808 does not fit 64 bits"),
        (pa.array([1500], pa.timestamp("ns")), TIMESTAMP, "finer than microseconds: 1970-01-01 00:00:00.000001500"),
        (pa.array([1500], pa.timestamp("ns", "UTC")), TIMESTAMP, "a timestamp is finer than microseconds"),
        (pa.array([1500], pa.duration("ns")), DURATION, "a duration is finer than microseconds"),
        (pa.array([2**62], pa.timestamp("s")), TIMESTAMP, "a timestamp is too far away"),
        (pa.array([2**31 - 1], pa.date32()), DATE, "a date is too far away"),
        (pa.array([Decimal(10) ** 75], pa.decimal256(76, 0)), decimal(2), "more than 76 digits"),
    ],
)
def test_what_does_not_fit(array: pa.Array, type_: Type, said: str) -> None:
    with pytest.raises(DataError, match=said):
        normalise(array, type_)
