"""Sums and means of single trends: exact, rounded once, and NULL or a plain error where a result has no room."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import trellis
from tests.oracle.exact import average, total
from tests.profiles import examples
from trellis.errors import DataError
from trellis.plan.sizes import USUAL, Sizes
from trellis.results.sums import folded_floats

WIDE = Decimal(10) ** 40


def detect(query: str, sizes: Sizes = USUAL, **columns: Any) -> Any:
    n = len(next(iter(columns.values())))
    table = pa.table({"ts": list(range(n)), "id": list(range(n)), **columns})
    return trellis.query(query).detect(table, event_id="id", sizes=sizes)


def whole(returned: str, **columns: Any) -> tuple[Any, ...]:
    """Return the values of RETURN for the trend of all events."""
    row = detect(f"PATTERN E+ s[] RETURN {returned}", **columns).to_arrow().to_pylist()[0]
    return tuple(row.values())[-1 - returned.count(",") :]


@pytest.mark.parametrize(
    "values",
    [
        [1.7e308, 1.7e308], [1.7e308, -1.7e308, 1.7e308], [-1.7e308, -1.7e308], [4.9e-309, -7.5e-307, 9.5e-311],
        [5e-324, 0.0], [1.7e308, 5e-324], [1e308, math.inf], [math.inf, -math.inf], [math.nan, 1e308], [0.1, 0.2, 0.3],
    ],
)  # fmt: skip
def test_doubles_of_any_size(values: list[float]) -> None:
    assert whole("SUM(s.y), AVG(s.y)", y=values) == (total(values), average(values))


def exactly(rows: list[list[float]], mean: bool) -> list[float | None]:
    return [(average if mean else total)(row) for row in rows]


def folded(rows: list[list[float]], mean: bool) -> list[float | None]:
    ends = np.cumsum([len(row) for row in rows]).astype(np.int32)
    return folded_floats(pa.array([v for row in rows for v in row], pa.float64()), ends, mean).to_pylist()


near = st.builds(lambda m, e: math.ldexp(m, e), st.integers(-(2**53), 2**53), st.integers(-120, 60))
edges = st.builds(lambda m, e: math.ldexp(m, e), st.integers(-8, 8), st.integers(-1074, 1020))
rows = st.lists(st.lists(st.floats() | near | edges, min_size=1, max_size=6), min_size=1, max_size=20)


@examples(400)
@given(rows)
@example([[3.0, 3 * 2.0**-53, 2.0**-300]])
@example([[3.0, 3 * 2.0**-53, -(2.0**-300)]])
def test_folded_doubles_are_fractions_rounded_once(rows: list[list[float]]) -> None:
    for mean in (False, True):
        assert folded(rows, mean) == exactly(rows, mean)


def decimals(values: list[Decimal], type_: pa.DataType) -> pa.Array:
    return pa.array(values, type_)


def test_a_decimal_sum_of_39_digits_is_null_and_its_mean_right() -> None:
    large = Decimal(9 * 10**37)
    assert whole("SUM(s.e), AVG(s.e)", e=decimals([large, large], pa.decimal128(38, 0))) == (None, 9e37)
    assert whole("SUM(s.e), AVG(s.e)", e=decimals([-large, -large], pa.decimal128(38, 0))) == (None, -9e37)
    assert whole("SUM(s.e), AVG(s.e)", e=decimals([large, large, -large], pa.decimal128(38, 0))) == (large, 3e37)
    most = Decimal(10**38 - 1)
    assert whole("SUM(s.e)", e=decimals([most, Decimal(0)], pa.decimal128(38, 0))) == (most,)
    assert whole("SUM(s.e)", e=decimals([most, Decimal(1)], pa.decimal128(38, 0))) == (None,)


def test_a_sum_of_39_digits_is_exact_in_an_expression() -> None:
    large = Decimal(9 * 10**37)
    assert whole("SUM(s.e) - LAST(s).e AS rest", e=decimals([large, large], pa.decimal128(38, 0)))[0] == large


@pytest.mark.parametrize("scale", [0, 5, 15, 18, 19, 25, 38])
def test_means_of_decimals_of_any_scale(scale: int) -> None:
    values = [Decimal(n).scaleb(-scale) for n in (1, 7, 123456789, 10**30 + 1, -5)]
    mean = float(sum(map(Fraction, values)) / 5)
    assert whole("AVG(s.e)", e=decimals(values, pa.decimal128(38, scale))) == (mean,)
    small = float(Fraction(8, 3 * 10**scale))
    three = [Decimal(n).scaleb(-scale) for n in (1, 2, 5)]
    assert whole("AVG(s.e)", e=decimals(three, pa.decimal128(38, scale))) == (small,)


def test_decimals_of_more_than_38_digits_do_not_come_out() -> None:
    wide = decimals([WIDE, WIDE], pa.decimal256(50, 0))
    for query in (
        "PATTERN E+ s[] RETURN s.e", "PATTERN E+ s[] RETURN FIRST(s).e", "PATTERN E+ s[] RETURN SUM(s.e)",
        "PATTERN E+ s[] RETURN MAX(s.e)", "PATTERN E+ s[] WHERE [e]", "PATTERN E+ s[] AGGREGATE SUM(s.e)",
        "PATTERN E+ s[] AGGREGATE MAX(s.e)",
    ):  # fmt: skip
        with pytest.raises(DataError, match="more than 38 digits"):
            detect(query, e=wide).to_arrow()
    with pytest.raises(DataError, match="more than 38 digits"):
        detect("PATTERN E+ s[]", e=wide).explode()
    assert detect("PATTERN E+ s[] WHERE s.e > 1 REPORT maximal", e=wide).count() == 1


def test_long_texts_come_out_in_smaller_batches() -> None:
    texts = [str(i) * 1000 for i in range(10)]
    found = detect("PATTERN E+ s[] REPORT any RETURN s.text AS texts", Sizes(batch_bytes=100_000), text=texts)
    sizes = [sum(len(t) for row in b.column("texts").to_pylist() for t in row) for b in found.batches()]
    assert len(sizes) > 10
    assert max(sizes) <= 200_000
    assert sum(b.num_rows for b in found.batches()) == found.count() == 1023
