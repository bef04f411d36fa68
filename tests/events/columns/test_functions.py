"""The scalar functions over columns, beside their definition on one value."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import trellis
from tests.oracle.functions import FUNCTIONS, cast, in_decimal
from tests.profiles import examples
from trellis.errors import BindError

NUMBERS = st.one_of(
    st.floats(allow_nan=False),
    st.floats(-1000, 1000).map(lambda x: round(x, 3)),
    st.integers(-(10**6), 10**6).map(lambda k: (k + 0.5) / 100),
    st.sampled_from([0.0, -0.0, 2.675, 1.005, 0.5, -0.5, 1.5, 2.5, 1e22, 5e-324, 4503599627370495.5]),
)
TEXTS = st.one_of(st.text(max_size=6), st.sampled_from(["12", " 7", "3.5", "true", "FALSE", "1e3", "", "²", "1_0"]))
MOMENTS = st.integers(-(10**15), 4 * 10**15)


def _holding(condition: str, values: list[Any], type_: pa.DataType) -> list[int]:
    """Return which events, each with one value, meet a condition."""
    table = pa.table({"ts": range(len(values)), "x": pa.array(values, type_)})
    found = trellis.query(f"PATTERN E e WHERE {condition}").detect(table, time="ts")
    return sorted(found.to_arrow()["e"].to_pylist())


def _computed(expression: str, values: list[Any], type_: pa.DataType, like: list[Any]) -> None:
    """Check an expression of each value against what it should be: equal, or NULL for None."""
    table = pa.table({"ts": range(len(values)), "x": pa.array(values, type_), "w": pa.array(like)})
    if pa.types.is_null(table["w"].type):
        table = table.set_column(2, "w", pa.nulls(len(like), pa.int64()))
        condition = f"{expression} IS NULL"
    else:
        condition = f"{expression} = e.w OR ({expression} IS NULL AND e.w IS NULL)"
    found = trellis.query(f"PATTERN E e WHERE {condition}").detect(table, time="ts").to_arrow()["e"].to_pylist()
    assert sorted(found) == list(range(len(values))), (expression, values, like)


@examples(40)
@given(st.lists(NUMBERS, min_size=1, max_size=4), st.sampled_from([None, 0, 1, 2, 5, -1, -3]))
def test_round(values: list[float], places: int | None) -> None:
    written = "ROUND(e.x)" if places is None else f"ROUND(e.x, {places})"
    wanted = [in_decimal(value, places or 0, "ROUND_HALF_UP") if math.isfinite(value) else None for value in values]
    finite = [value for value in values if math.isfinite(value)]
    if finite and all(abs(value) < 1e300 for value in finite):
        _computed(written, finite, pa.float64(), [value for value in wanted if value is not None])


@examples(40)
@given(st.lists(NUMBERS, min_size=1, max_size=4), st.sampled_from(["FLOOR", "CEIL", "SQRT", "LN"]))
def test_functions_of_doubles(values: list[float], name: str) -> None:
    finite = [value for value in values if math.isfinite(value)]
    _computed(f"{name}(e.x)", finite, pa.float64(), [FUNCTIONS[name][1](value) for value in finite])


@pytest.mark.parametrize("name", ["ROUND", "FLOOR", "CEIL"])
@examples(20)
@given(st.lists(st.decimals(-(10**6), 10**6, places=3), min_size=1, max_size=4))
def test_functions_of_decimals(name: str, values: list[Decimal]) -> None:
    _computed(f"{name}(e.x)", values, pa.decimal128(12, 3), [FUNCTIONS[name][1](value) for value in values])


@examples(40)
@given(st.lists(st.text(max_size=6), min_size=1, max_size=4), st.integers(1, 4), st.integers(-1, 3))
def test_functions_of_texts(values: list[str], begin: int, length: int) -> None:
    shapes = {
        f"SUBSTR(e.x, {begin})": lambda text: text[begin - 1 :],
        f"SUBSTR(e.x, {begin}, {length})": lambda text: text[begin - 1 : begin - 1 + max(length, 0)],
        "CHAR_LENGTH(e.x)": len,
    }
    for written, function in shapes.items():
        _computed(written, values, pa.string(), [function(value) for value in values])


@pytest.mark.parametrize(("name", "wanted"), [("LOWER", "größe"), ("UPPER", "GRÖSSE")])
def test_case_of_letters(name: str, wanted: str) -> None:
    assert _holding(f"{name}(e.x) = '{wanted}'", ["Größe", "GRÖSSE", None], pa.string()) in ([0], [1], [0, 1])


@examples(40)
@given(st.lists(MOMENTS, min_size=1, max_size=4))
def test_parts_of_times(values: list[int]) -> None:
    for name in ("YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND", "DAY_OF_WEEK"):
        _computed(f"{name}(e.x)", values, pa.timestamp("us"), [FUNCTIONS[name][1](value) for value in values])


@examples(40)
@given(st.lists(TEXTS, min_size=1, max_size=4))
def test_casts_of_texts(values: list[str]) -> None:
    for name, kind in (("INTEGER", "int"), ("DOUBLE", "float"), ("BOOLEAN", "bool")):
        wanted = [cast(value, "string", kind) for value in values]
        readable = [i for i, value in enumerate(wanted) if "_" not in values[i] and values[i].isascii()]
        if readable and all(not isinstance(wanted[i], float) or math.isfinite(wanted[i]) for i in readable):
            _computed(f"CAST(e.x AS {name})", [values[i] for i in readable], pa.string(), [wanted[i] for i in readable])


@examples(40)
@given(st.lists(NUMBERS, min_size=1, max_size=4))
def test_casts_of_doubles(values: list[float]) -> None:
    finite = [value for value in values if math.isfinite(value)]
    for name, kind in (("INTEGER", "int"), ("STRING", "string")):
        _computed(f"CAST(e.x AS {name})", finite, pa.float64(), [cast(value, "float", kind) for value in finite])


def test_case() -> None:
    values = [1, 5, None, 9]
    assert _holding("CASE WHEN e.x > 6 THEN 'high' WHEN e.x > 2 THEN 'mid' END = 'mid'", values, pa.int64()) == [1]
    assert _holding("CASE WHEN e.x > 6 THEN 'high' ELSE 'low' END = 'low'", values, pa.int64()) == [0, 1, 2]
    assert _holding("CASE WHEN e.x > 6 THEN 1.5 ELSE e.x END = 5", values, pa.int64()) == [1]


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ("LOWER(e.x) = 'a'", "LOWER takes a string; `e.x` is an integer"),
        ("HOUR(e.x) = 1", "HOUR takes a time; `e.x` is an integer"),
        ("ROUND(e.x, e.x) = 1", "ROUND takes a whole number here"),
        ("ROUND(e.x, 99) = 1", "ROUND takes at most 15 places"),
        ("CASE WHEN e.x > 1 THEN 1 ELSE 'x' END = 1", "CASE mixes an integer and a string"),
        ("CAST(e.x AS TIMESTAMP) IS NULL", "CAST cannot make a timestamp of an integer"),
    ],
)
def test_mistakes(condition: str, said: str) -> None:
    with pytest.raises(BindError, match=said.replace("(", r"\(")):
        _holding(condition, [1], pa.int64())
