"""Bad and odd input: every comparison in every report mode gives what the oracle does, or says what is wrong."""

from __future__ import annotations

import datetime as dt
import itertools
import json
import math
from collections.abc import Callable
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import trellis
from tests import oracle
from tests.compare import plain_rows
from tests.profiles import examples
from trellis.errors import BindError, DataError, OverflowInCondition, UsageError

COMPARATORS = ("=", "!=", "<", "<=", ">", ">=")
REPORTS = ("unextendable", "maximal", "any")
AGGREGATES = "COUNT(*), COUNT(s), MIN(LENGTH), MAX(LENGTH), AVG(LENGTH)"
TIMES = [1, 2, 3, 3, 4, 5, 6]
LEAST, MOST = -(2**63), 2**63 - 1
INF, NAN, TINY = math.inf, math.nan, 5e-324

Columns = dict[str, Any]


def events(times: list[int] | None = None, **columns: Any) -> pa.Table:
    """Make a table of events; NaN stays NaN."""
    arrays = {name: c if isinstance(c, pa.Array) else pa.array(c, from_pandas=False) for name, c in columns.items()}
    n = len(next(iter(arrays.values())))
    return pa.table({"ts": (TIMES if times is None else times)[:n], "id": list(range(n)), **arrays})


# --- Asking both ------------------------------------------------------------------------------------------------

parsed = cache(trellis.query)


def assert_right(text: str, table: pa.Table, report: str) -> int:
    """Compare everything that can be asked of the trends of a query with the oracle's answer; return their number."""
    totals = f"{text} AGGREGATE {AGGREGATES}"
    answer = asked(totals, table, report)
    trends = detected(text, table, report)
    assert trends.count() == answer.count
    assert [int(count) for count in trends.counts()["count_text"].to_pylist()] == [n for _, _, n in answer.counts]
    listed = pa.Table.from_batches(list(trends.batches()), schema=trends.schema).to_pylist()
    assert plain_rows(listed) == plain_rows(answer.rows)
    assert plain_rows(trends.sample(answer.count + 1).to_pylist()) == plain_rows(answer.rows)
    if len(answer.counts) == 1:
        for rank in {0, answer.count // 2, answer.count - 1}:
            assert plain_rows(trends.trend(rank).to_pylist()) == plain_rows(answer.rows[rank : rank + 1])
    else:
        with pytest.raises(UsageError):
            trends.trend(0)
    assert answer.aggregates is not None
    assert plain_rows(detected(totals, table, report).to_arrow().to_pylist()) == plain_rows(answer.aggregates)
    return answer.count


def detected(text: str, table: pa.Table, report: str | None = None) -> Any:
    found = parsed(text).detect(table, event_id="id", report_mode=report)
    _ = found.statistics  # results are made without work: this prepares the events
    return found


def asked(text: str, table: pa.Table, report: str | None = None) -> oracle.Answer:
    schema = {field.name: declared(field.type) for field in table.schema}
    options = {"time": "ts", "event_id": "id", "report_mode": report, "schema": schema}
    return oracle.run(parsed(text).syntax, table.to_pylist(), **options)  # type: ignore[arg-type]


def declared(type_: pa.DataType) -> str:
    """Return the oracle's name of an Arrow type."""
    if pa.types.is_dictionary(type_):
        return declared(type_.value_type)
    return "int64" if pa.types.is_integer(type_) else "double" if pa.types.is_floating(type_) else str(type_)


# --- Values -----------------------------------------------------------------------------------------------------

DOUBLES = [0.0, -0.0, INF, TINY, -INF, None, NAN]
CENTS = pa.decimal128(4, 2)
ODD: dict[str, Columns] = {
    "infinite": {"x": [1.0, INF, -INF, INF, 2.0, -INF]},
    "zeros and denormals": {"x": [TINY, 0.0, -0.0, -TINY, 2.3e-308, 0.0]},
    "not a number": {"x": DOUBLES},
    "all equal": {"x": [7] * 6},
    "all missing": {"x": pa.array([None] * 5, pa.float64())},
    "without a type": {"x": pa.nulls(4)},
    "ends of 64 bits": {"x": [0, LEAST, MOST, LEAST + 1, MOST - 1, LEAST, MOST]},
    "texts of numbers": {"x": ["9", "10", "1e1", "-1", "", None, "9"]},
    "texts with zeros": {"x": ["a", "a\0b", "a\0", "\0", "a\0\0", "", "a\0b"]},
    "texts beyond ASCII": {"x": ["z", "é", "e\u0301", "\U0001f600", "\uffff", "Z"]},
    "long texts": {"x": ["a" * 9 + c for c in "bac\0"] + ["a" * 9]},
    "booleans": {"x": [True, False, None, True, False]},
    "dictionary": {"x": pa.array(["b", None, "a", "b", "a\0"]).dictionary_encode()},
    "integer and double": {"x": [2**53 + 1, 0, 2**53, MOST, LEAST, 1], "y": [2.0**53, -0.0, INF, 2.0**63, NAN, 1.5]},
    "small integer and single": {"x": pa.array([1, 2, 3, 4], pa.int8()), "y": pa.array([1, 0.1, 3, INF], pa.float32())},
    "decimal and double": {
        "x": pa.array([Decimal("0.10"), Decimal("0.50"), None, Decimal("-0.10"), Decimal("10.00")], CENTS),
        "y": [0.1, 0.5, 0.1, INF, NAN],
    },
    "decimal and integer": {
        "x": pa.array([Decimal("1.00"), Decimal("-0.01"), Decimal("0.00"), Decimal("99.99")], CENTS),
        "y": [MOST, 0, LEAST, 1],
    },
    "decimals of two scales": {
        "x": pa.array([Decimal("0.10"), Decimal("1.00"), Decimal("2.50")], CENTS),
        "y": pa.array([Decimal("1.000"), Decimal("0.099"), Decimal("2.500")], pa.decimal128(38, 3)),
    },
    "times of two kinds": {
        "x": pa.array([0, 1, 2, None], pa.timestamp("s", "Asia/Tokyo")),
        "y": pa.array([0, 1_000_000, 1_999_999, 3], pa.timestamp("us")),
    },
    "date and time": {
        "x": pa.array([dt.date(1970, 1, 1), dt.date(1970, 1, 2), None]),
        "y": pa.array([0, 86_400, 86_399], pa.timestamp("s")),
    },
}  # fmt: skip


@pytest.mark.parametrize("name", ODD)
def test_every_comparison_of_odd_values(name: str) -> None:
    table = events(**ODD[name])
    other = "y" if "y" in table.column_names else "x"
    for op, report in itertools.product(COMPARATORS, REPORTS):
        assert_right(f"PATTERN E+ s[] WHERE s[i].x {op} s[i-1].{other}", table, report)


@pytest.mark.parametrize("name", ODD)
def test_aggregates_of_odd_values(name: str) -> None:
    table = events(**ODD[name])
    numeric = pa.types.is_integer(table["x"].type) or pa.types.is_floating(table["x"].type)
    functions = ("MIN", "MAX", "SUM", "AVG") if numeric or pa.types.is_decimal(table["x"].type) else ("MIN", "MAX")
    items = ", ".join(f"{function}(s.x)" for function in functions)
    for op, report in itertools.product(("!=", ">="), REPORTS):
        text = f"PATTERN E+ s[] WHERE s[i].x {op} s[i-1].x AGGREGATE {items}"
        wanted = asked(text, table, report).aggregates
        assert wanted is not None
        assert plain_rows(detected(text, table, report).to_arrow().to_pylist()) == plain_rows(wanted)


@pytest.mark.parametrize(
    "condition",
    [
        "s[i].x != s[i-1].x AND s[i].x = s[i-1].x",
        "s[i].x > s[i-1].x AND s[i].x < s[i-1].x",
        "s[i].x > s[i-1].x + 1000",
        "s[i-1].x > 5 AND s[i].x = s[i-1].y",
        "s[i].x - s[i-1].x > 1000",
        "s[i].k = s[i-1].k",
        "s[i].x > s[i-1].x / 0",
        "s[i].x > s[i-1].x AND s.x > 1000",
    ],
)
def test_what_is_never_true(condition: str) -> None:
    table = events(x=[1, 2, 3, 4, 3], y=[0.5] * 5, k=["a", "b", "c", "d", "e"])
    alone = 0 if "s.x > 1000" in condition else 5
    for report in REPORTS:
        assert assert_right(f"PATTERN E+ s[] WHERE {condition}", table, report) == alone


@pytest.mark.parametrize("within", ["", "WITHIN 3", "WITHIN 3 SLIDE 2"])
def test_no_event_one_event_and_all_at_one_time(within: str) -> None:
    nothing = events(x=pa.array([], pa.float64()))
    for op, report in itertools.product(COMPARATORS, REPORTS):
        text = f"PATTERN E+ s[] WHERE s[i].x {op} s[i-1].x {within}"
        assert assert_right(text, nothing, report) == 0
        assert assert_right(text, events(x=[NAN]), report) >= 1
        assert assert_right(text, events([5] * 4, x=[1.0, 2.0, 2.0, NAN]), report) >= 4


# --- Everything together ----------------------------------------------------------------------------------------

POOLS: dict[str, st.SearchStrategy[Any]] = {
    "d": st.sampled_from([*DOUBLES, 2.0**53, 2.0**63, 1.5, -TINY]),
    "n": st.sampled_from([LEAST, MOST, 2**53 + 1, 0, 1, None]),
    "e": st.sampled_from([Decimal("0.10"), Decimal("1.50"), Decimal("-1.00"), None]),
    "t": st.sampled_from(["", "a", "a\0", "a\0b", "10", "9", None]),
}
TYPES = {"d": pa.float64(), "n": pa.int64(), "e": CENTS, "t": pa.string()}
NUMBERS = ("d", "n", "e")


@st.composite
def odd_events(draw: st.DrawFn) -> pa.Table:
    n = draw(st.integers(0, 7))
    times = draw(st.lists(st.integers(0, 4), min_size=n, max_size=n))
    columns = {name: draw(st.lists(pool, min_size=n, max_size=n)) for name, pool in POOLS.items()}
    return events(times, **{name: pa.array(column, TYPES[name]) for name, column in columns.items()})


comparators = st.sampled_from(COMPARATORS)
comparisons = st.one_of(
    st.builds("s[i].{} {} s[i-1].{}".format, st.sampled_from(NUMBERS), comparators, st.sampled_from(NUMBERS)),
    st.builds("s[i].t {} s[i-1].t".format, comparators),
    st.builds("s[i].d {} 2 * s[i-1].d".format, comparators),
    st.builds("s[i].e {} s[i-1].e / 3".format, comparators),
)


@examples(100)
@given(
    odd_events(),
    st.lists(comparisons, min_size=1, max_size=3),
    st.sampled_from(REPORTS),
    st.sampled_from(["", "WITHIN 2", "WITHIN 3 SLIDE 1"]),
)
def test_odd_values_in_several_conditions(table: pa.Table, conditions: list[str], report: str, within: str) -> None:
    assert_right(f"PATTERN E+ s[] WHERE {' AND '.join(conditions)} {within}", table, report)


# --- Integers that do not fit -----------------------------------------------------------------------------------

HALF = 4611686018427387904  # 2^62
EVERYTHING: tuple[Callable[[Any], object], ...] = (
    lambda trends: trends.count(),
    lambda trends: trends.counts(),
    lambda trends: list(trends.batches()),
    lambda trends: trends.trend(0),
    lambda trends: trends.sample(2),
    lambda trends: trends.aggregate("count(*)"),
)


@pytest.mark.parametrize("op", COMPARATORS)
@pytest.mark.parametrize("report", REPORTS)
def test_a_product_that_overflows(op: str, report: str) -> None:
    text = f"PATTERN E+ s[] WHERE s[i].x {op} s[i-1].x * {HALF}"
    table = events(x=[1, 3, 5, 7])
    with pytest.raises(oracle.OracleOverflow):
        asked(text, table, report)
    for ask in EVERYTHING:
        with pytest.raises(OverflowInCondition, match=rf"`s\[i-1\]\.x \* {HALF}` does not fit 64 bits"):
            ask(detected(text, table, report))


@pytest.mark.parametrize("op", COMPARATORS)
@pytest.mark.parametrize("report", REPORTS)
def test_a_product_that_would_overflow_where_nobody_asks(op: str, report: str) -> None:
    """The last event has no later neighbour; events at one time are none either."""
    text = f"PATTERN E+ s[] WHERE s[i].x {op} s[i-1].x * {HALF}"
    assert_right(text, events(x=[1, -2, 0, 1, 9]), report)
    assert_right(text, events([4, 4, 4], x=[9, 8, 7]), report)
    assert_right(text, events(x=[None, None, 9]), report)


@pytest.mark.parametrize("op", COMPARATORS)
@pytest.mark.parametrize(
    "side", ["s[i-1].x + 1", "s[i-1].x - 1", "-s[i-1].x", "ABS(s[i-1].x)", "s[i-1].x * 1.0", "s[i-1].x / 1"]
)
def test_the_ends_of_64_bits_in_arithmetic(op: str, side: str) -> None:
    table = events(x=[0, LEAST, 1, MOST])
    text = f"PATTERN E+ s[] WHERE s[i].x {op} {side}"
    try:
        asked(text, table)
    except oracle.OracleOverflow:
        with pytest.raises(OverflowInCondition):
            detected(text, table).count()
    else:
        assert_right(text, table, "unextendable")


def test_unsigned_integers() -> None:
    rising = "PATTERN E+ s[] WHERE s[i].x > s[i-1].x"
    assert assert_right(rising, events(x=pa.array([MOST, 0, 1, 5], pa.uint64())), "unextendable") == 3
    with pytest.raises(DataError, match="the integer 9223372036854775808 does not fit 64 bits with a sign"):
        detected(rising, events(x=pa.array([1, 2**63], pa.uint64()))).count()


# --- Several types in one attribute -----------------------------------------------------------------------------


def union() -> pa.Array:
    """Make a column whose values are of two types."""
    return pa.UnionArray.from_dense(
        pa.array([0, 1, 0], pa.int8()), pa.array([0, 0, 1], pa.int32()), [pa.array([1, 3]), pa.array(["a"])]
    )


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"x": ["1", "2"], "y": [1, 2]}, "cannot compare `s[i].x`, a string, with `s[i-1].y`, an integer"),
        ({"x": [True, False], "y": [1, 0]}, "cannot compare `s[i].x`, a boolean, with `s[i-1].y`, an integer"),
        ({"x": pa.array([1, 2], pa.timestamp("s")), "y": [1, 0]}, "cannot compare `s[i].x`, a timestamp"),
        ({"x": union(), "y": [1, 2, 3]}, "dense_union"),
        ({"x": [[1], [2]], "y": [[1], [2]]}, "list<"),
        ({"x": [b"1", b"\xff"], "y": [b"1", b""]}, "binary"),
    ],
    ids=["text", "boolean", "time", "union", "list", "bytes"],
)
@pytest.mark.parametrize("op", COMPARATORS)
def test_values_that_cannot_be_compared(columns: Columns, message: str, op: str) -> None:
    with pytest.raises(BindError) as raised:
        detected(f"PATTERN E+ s[] WHERE s[i].x {op} s[i-1].y", events(**columns))
    assert message in str(raised.value)


def test_a_column_of_several_types_that_no_condition_names() -> None:
    table = events(x=[1, 3, 2], z=union())
    trends = detected("PATTERN E+ s[] WHERE s[i].x > s[i-1].x", table)
    assert trends.to_arrow()["events"].to_pylist() == [[0, 1], [0, 2]]
    for tail in ("RETURN s.z", "RETURN FIRST(s).z", "ORDER BY LAST(s).z"):
        with pytest.raises(BindError, match=r"`.*\.z` is of type dense_union<.*>, which a result cannot hold"):
            detected(f"PATTERN E+ s[] {tail}", table)
    with pytest.raises(UsageError, match="numbered by all their columns, but `z` has no order"):
        trellis.query("PATTERN E+ s[]").detect(table.drop_columns(["id"])).count()


def read_lines(folder: Path, rows: list[dict[str, Any]]) -> Any:
    file = folder / "events.jsonl"
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return trellis.query("PATTERN E+ s[] WHERE s[i].x > s[i-1].x").detect(file, event_id="id", engine="local")


@pytest.mark.parametrize("second", ["a", True, [1], {"a": 1}], ids=lambda value: type(value).__name__)
def test_json_of_several_types(tmp_path: Path, second: Any) -> None:
    rows = [{"ts": i, "id": i, "x": x} for i, x in enumerate([1, second, 2])]
    with pytest.raises(DataError, match="`x`"):
        read_lines(tmp_path, rows).count()


def test_json_of_integers_and_doubles(tmp_path: Path) -> None:
    rows = [{"ts": i, "id": i, "x": x} for i, x in enumerate([1, 1.5, None, -0.0, 2])]
    assert read_lines(tmp_path, rows).to_arrow()["events"].to_pylist() == [[0, 1, 4], [0, 4], [2], [3, 4]]


def test_csv_of_several_types_is_text(tmp_path: Path) -> None:
    (tmp_path / "events.csv").write_text("ts,id,x\n1,0,9\n2,1,10\n3,2,a\n4,3,inf\n")
    query = trellis.query("PATTERN E+ s[] WHERE s[i].x > s[i-1].x")
    found = query.detect(tmp_path / "events.csv", event_id="id", engine="local").to_arrow()["events"].to_pylist()
    assert found == [[0, 2, 3], [0, 3], [1, 2, 3], [1, 3]]


def test_numpy_columns_of_every_width() -> None:
    for kind in (np.int8, np.uint32, np.float16, np.float32):
        table = events(x=pa.array(np.array([3, 1, 2, 2, 3], kind)))
        assert assert_right("PATTERN E+ s[] WHERE s[i].x >= s[i-1].x", table, "unextendable") > 0
