"""Whole columns evaluated must be worth what each row is worth in plain Python."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

from tests.events.columns import trees
from tests.events.columns.trees import BOUND
from tests.oracle.values import OracleOverflow
from tests.profiles import examples
from trellis.errors import OverflowInCondition
from trellis.events.columns.evaluate import evaluate
from trellis.events.columns.types import physical
from trellis.language.bound import Constant, Operation, Value
from trellis.language.schema import BOOLEAN, DOUBLE, DURATION, INTEGER, STRING, TIMESTAMP, Type, decimal

MANY = examples(250)


def plain(array: pa.Array) -> list[Any]:
    return (array.view(pa.int64()) if pa.types.is_temporal(array.type) else array).to_pylist()


def check(value: Value, rows: int, table: trees.Table) -> None:
    arrays = trees.arrow_columns(table)
    try:
        expected = [trees.worth(value, trees.plain_row(table, row)) for row in range(rows)]
    except OracleOverflow:
        with pytest.raises(OverflowInCondition):
            evaluate(value, lambda c: arrays[c.name], rows)
        return
    result = evaluate(value, lambda c: arrays[c.name], rows)
    assert result.type == physical(value.type)
    assert plain(result) == expected
    assert evaluate(value, lambda c: arrays[c.name][:0], 0).type == result.type


@MANY
@given(trees.cases(trees.conditions()))
def test_conditions(case: tuple[Value, int, trees.Table]) -> None:
    check(*case)


@MANY
@given(trees.cases(trees.values()))
def test_values(case: tuple[Value, int, trees.Table]) -> None:
    check(*case)


def one(function: str, *arguments: Value, type_: Type = BOOLEAN, rows: int = 1, **columns: Any) -> list[Any]:
    value = Operation(function, arguments, type_, f"the {function}")
    return plain(evaluate(value, lambda c: columns[c.name], rows))


def number(x: Any) -> Constant:
    return Constant(x, DOUBLE if isinstance(x, float) else INTEGER)


@pytest.mark.parametrize(
    ("op", "a", "b", "expected"),
    [
        ("=", 2**53 + 1, 2.0**53, False),
        (">", 2**53 + 1, 2.0**53, True),
        ("=", 2**63 - 1, 2.0**63, False),
        ("<", 2**63 - 1, 2.0**63, True),
        ("=", -(2**63), -(2.0**63), True),
        (">=", float("inf"), float("inf"), True),
        ("=", -0.0, 0.0, True),
        ("=", float("nan"), float("nan"), None),
        ("!=", float("nan"), 1.0, None),
    ],
)
def test_comparison_is_exact(op: str, a: float, b: float, expected: bool | None) -> None:
    assert one(op, number(a), number(b)) == [expected]
    column = pa.array([a, a])
    assert one(op, BOUND["i" if isinstance(a, int) else "f"], number(b), rows=2, i=column, f=column) == [expected] * 2


def test_a_decimal_is_not_the_double_that_looks_like_it() -> None:
    tenth = Constant(Decimal("0.1"), decimal(1))
    assert one("<", tenth, number(0.1)) == [True]
    assert one("=", Constant(Decimal("0.5"), decimal(1)), number(0.5)) == [True]


@pytest.mark.parametrize(
    ("function", "a", "b", "type_", "expected"),
    [
        ("%", -7, 3, INTEGER, -1),
        ("%", 7, -3, INTEGER, 1),
        ("%", -(2**63), -1, INTEGER, 0),
        ("%", 7, 0, INTEGER, None),
        ("%", -7.5, 2.0, DOUBLE, -1.5),
        ("%", float("inf"), 2.0, DOUBLE, None),
        ("%", 5.0, float("inf"), DOUBLE, 5.0),
        ("/", 7, 2, DOUBLE, 3.5),
        ("/", 7, 0, DOUBLE, None),
        ("/", 1.0, -0.0, DOUBLE, None),
        ("-", float("inf"), float("inf"), DOUBLE, None),
        ("*", 0.0, float("inf"), DOUBLE, None),
        ("*", 1e308, 10.0, DOUBLE, float("inf")),
    ],
)
def test_arithmetic(function: str, a: float, b: float, type_: Type, expected: float | None) -> None:
    assert one(function, number(a), number(b), type_=type_) == [expected]


def test_times() -> None:
    t, r = Constant(100, TIMESTAMP), Constant(30, DURATION)
    assert one("-", t, Constant(40, TIMESTAMP), type_=DURATION) == [60]
    assert one("+", r, t, type_=TIMESTAMP) == [130]
    assert one("/", Constant(100, DURATION), Constant(0, DURATION), type_=DOUBLE) == [None]
    assert one("%", Constant(-100, DURATION), r, type_=DURATION) == [-10]


@pytest.mark.parametrize(
    ("function", "arguments", "type_", "said"),
    [
        ("+", (number(2**63 - 1), number(1)), INTEGER, "9223372036854775807 + 1"),
        ("negative", (number(-(2**63)),), INTEGER, "-(-9223372036854775808)"),
        ("abs", (number(-(2**63)),), INTEGER, "ABS(-9223372036854775808)"),
        ("+", (Constant(2**63 - 1, TIMESTAMP), Constant(1, DURATION)), TIMESTAMP, "+ 1 microseconds"),
        ("-", (Constant(-(2**63), TIMESTAMP), Constant(0, TIMESTAMP)), DURATION, None),
        ("-", (Constant(-(2**63), TIMESTAMP), Constant(1, TIMESTAMP)), DURATION, "- 1970-01-01 00:00:00.000001"),
    ],
)
def test_overflow_of_constants(function: str, arguments: tuple[Value, ...], type_: Type, said: str | None) -> None:
    if said is None:
        assert one(function, *arguments, type_=type_) == [-(2**63)]
        return
    with pytest.raises(OverflowInCondition) as caught:
        one(function, *arguments, type_=type_)
    assert f"`the {function}`" in caught.value.what
    assert said in caught.value.what


def test_overflow_names_a_row() -> None:
    column = pa.array([*range(1000), None, 2**62, *range(1000)])
    with pytest.raises(OverflowInCondition, match=r"`the \*` does not fit 64 bits .* 4611686018427387904 \* 2"):
        one("*", BOUND["i"], number(2), type_=INTEGER, rows=len(column), i=column)


def test_overflow_of_decimals() -> None:
    wide = pa.array([Decimal(1), None, Decimal(10) ** 75], pa.decimal256(76, 0))
    with pytest.raises(OverflowInCondition, match="76 digits"):
        one("*", BOUND["w"], number(10), type_=decimal(0), rows=3, w=wide)
    assert one("*", BOUND["w"], number(9), type_=decimal(0), rows=3, w=wide)[2] == 9 * Decimal(10) ** 75


def test_decimals_fill_all_their_digits() -> None:
    nines = pa.array([Decimal("9" * 75 + "8"), None], pa.decimal256(76, 0))
    assert one("+", BOUND["w"], number(1), type_=decimal(0), rows=2, w=nines) == [Decimal("9" * 76), None]
    cents = Constant(Decimal("-1.00"), decimal(2))
    tens = pa.array([Decimal(10) ** 74], pa.decimal256(76, 0))
    assert one("+", BOUND["w"], cents, type_=decimal(2), w=tens) == [Decimal("9" * 74)]


@pytest.mark.parametrize(
    "a", ["7", "-7", "12345678901234567890.5", "-12345678901234567890123456789012345.67", "9" * 60]
)
@pytest.mark.parametrize("b", ["2", "-0.3", "1234567890123456789012.5", "9" * 70])
def test_remainder_of_decimals(a: str, b: str) -> None:
    x, y = (Constant(Decimal(text), decimal(2)) for text in (a, b))
    expected = trees.EXACT.remainder(Decimal(a), Decimal(b))
    assert one("%", x, y, type_=decimal(2)) == [expected]
    column = pa.array([Decimal(a), None], pa.decimal256(76, 2))
    assert one("%", BOUND["w"], y, type_=decimal(2), rows=2, w=column) == [expected, None]
    column = pa.array([Decimal(b), Decimal(0)], pa.decimal256(76, 2))
    assert one("%", x, BOUND["w"], type_=decimal(2), rows=2, w=column) == [expected, None]


def test_what_lies_under_null_does_not_overflow() -> None:
    hidden = pa.Array.from_buffers(
        pa.int64(), 2, [pa.py_buffer(b"\x01"), pa.py_buffer(np.array([1, 2**63 - 1]))], null_count=1
    )
    for function in "+*":
        assert one(function, BOUND["i"], number(2), type_=INTEGER, rows=2, i=hidden)[1] is None
        assert one(function, number(2), BOUND["i"], type_=INTEGER, rows=2, i=hidden)[1] is None
    largest = pa.array([1, 2**63 - 1])
    assert one("+", BOUND["i"], BOUND["j"], type_=INTEGER, rows=2, i=largest, j=hidden) == [2, None]


@pytest.mark.parametrize("pattern", trees.PATTERNS)
def test_like(pattern: str) -> None:
    column = pa.array([*trees.WORDS, None], pa.large_string())
    value = Operation("like", (BOUND["s"], Constant(pattern, STRING)))
    expected = [trees.like(word, pattern) for word in [*trees.WORDS, None]]
    assert evaluate(value, lambda _: column, len(column)).to_pylist() == expected


def test_like_takes_a_last_backslash_for_itself() -> None:
    column = pa.array(["a\\", "a"], pa.large_string())
    value = Operation("like", (BOUND["s"], Constant("a\\", STRING)))
    assert evaluate(value, lambda _: column, 2).to_pylist() == [True, False]


def test_nan_is_null() -> None:
    column = pa.array([float("nan"), None, 1.0])
    assert one("is null", BOUND["f"], rows=3, f=column) == [True, True, False]
    assert one("coalesce", BOUND["f"], number(2.0), type_=DOUBLE, rows=3, f=column) == [2.0, 2.0, 1.0]
    assert evaluate(BOUND["f"], lambda _: column, 3).null_count == 2


def test_strings_are_compared_by_bytes() -> None:
    column = pa.array(["\uffff", "\U00010000", "a"], pa.large_string())
    assert one("<", BOUND["s"], Constant("\U00010000", STRING), rows=3, s=column) == [True, False, True]


def test_constants_fill_all_rows() -> None:
    assert one("=", number(1), number(1), rows=3) == [True] * 3
    assert evaluate(Constant("x", STRING), lambda _: None, 2).to_pylist() == ["x", "x"]
    assert evaluate(Constant(True, BOOLEAN), lambda _: None, 0).to_pylist() == []
