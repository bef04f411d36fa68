"""The one type of a column of text."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest

from trellis.events.times import NAIVE, TIMESTAMP
from trellis.io.infer import infer_column, infer_most, infer_times

INT, DOUBLE, TEXT, BOOL = pa.int64(), pa.float64(), pa.string(), pa.bool_()


def text(values: list[str | None]) -> pa.ChunkedArray:
    half = len(values) // 2
    return pa.chunked_array([values[:half], values[half:]], TEXT)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["1", "-5", "0", None], INT),
        (["9223372036854775807", "-9223372036854775808"], INT),
        (["9223372036854775808", "1"], TEXT),
        (["9223372036854775808", "1.5"], DOUBLE),
        (["007", "8"], TEXT),
        (["00", "0"], TEXT),
        (["007.5"], TEXT),
        (["+5"], TEXT),
        ([" 5"], TEXT),
        (["5\n"], TEXT),
        (["1_000"], TEXT),
        (["٣"], TEXT),
        (["1", "2.5"], DOUBLE),
        (["1.", ".5", "-.5e-3", "1E5", "1e+5", "-0.0"], DOUBLE),
        (["."], TEXT),
        (["1e"], TEXT),
        (["1.5", "nan", "NaN", "inf", "Infinity", "-inf", "-Infinity"], DOUBLE),
        (["NAN", "1"], TEXT),
        (["INF"], TEXT),
        (["1e400"], DOUBLE),
        (["true", "FALSE", "True", None], BOOL),
        (["true", "1"], TEXT),
        (["yes"], TEXT),
        (["2024-01-01", None, "2024/01/02 03:04", "2024-01-01T00:00:00Z"], TIMESTAMP),
        (["2024-01-01", "2024-02-30"], TEXT),
        (["2024-01-01T00:00:00.1234567"], TEXT),
        (["2024-01-01T00:00:00.1234560"], NAIVE),
        (["2024-01-01", "5"], TEXT),
        (["2024-01-01", ""], TEXT),
        (["1", ""], TEXT),
        (["x", "1"], TEXT),
        ([None, None], TEXT),
        ([], pa.null()),
    ],
)
def test_types(values: list[str | None], kind: pa.DataType) -> None:
    column = infer_column(text(values))
    assert column.type == kind
    assert [v is None for v in column.to_pylist()] == [v is None for v in values]


def test_values() -> None:
    assert infer_column(text(["1", None, "-5"])).to_pylist() == [1, None, -5]
    assert infer_column(text(["TRUE", None, "false"])).to_pylist() == [True, None, False]
    assert infer_column(text(["1e400", "-inf", ".5"])).to_pylist() == [math.inf, -math.inf, 0.5]
    assert math.isnan(infer_column(text(["nan", "1"])).to_pylist()[0])


@pytest.mark.parametrize("last", ["x", "2024-02-30", "9" * 30])
@pytest.mark.parametrize("most", ["1", "1.5", "true", "2024-01-01"])
def test_the_last_of_many_values_counts(most: str, last: str) -> None:
    kind = infer_column(text([most] * 5000 + [last])).type
    assert kind == (DOUBLE if (most, last) == ("1.5", "9" * 30) else TEXT)


def test_infer_times_leaves_other_text() -> None:
    assert infer_times(text(["1", "2"])).type == TEXT
    assert infer_times(text(["2024-01-01", "2"])).type == TEXT
    assert infer_times(text([None])).type == TEXT
    assert infer_times(text(["2024-01-01", None])).type == NAIVE


@pytest.mark.parametrize(
    ("values", "numbers", "kind", "nulls"),
    [
        (["2024-01-01", "2024-01-02", "bad"], True, NAIVE, 1),
        (["2024-01-01", "bad"], True, TEXT, 0),
        (["1", "2", "bad", None], True, INT, 2),
        (["1", "2.5", "bad"], True, DOUBLE, 1),
        (["1", "2", "bad"], False, TEXT, 0),
        ([None], True, TEXT, 1),
        ([], True, TEXT, 0),
    ],
)
def test_most_values_decide_for_times(values: list[str | None], numbers: bool, kind: pa.DataType, nulls: int) -> None:
    column = infer_most(text(values), numbers=numbers)
    assert (column.type, column.null_count) == (kind, nulls)
