"""The oracle on cases whose results were worked out by hand or are given by the papers."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given

from tests.oracle import Answer, OracleError, OracleOverflow, run
from tests.profiles import examples
from tests.strategies import Case, case
from trellis.language import syntax as s
from trellis.language.parser import parse

UTC = dt.UTC
RISING = "PATTERN S+ s[] WHERE s[i].p > s[i-1].p"


def ask(text: str, rows: Any, *, time: str = "t", **options: Any) -> Answer:
    return run(parse(text), rows, time=time, **options)


def found(text: str, rows: Any, **options: Any) -> list[tuple]:
    """Give the event ids of all results, in the order of their ranks."""
    return [trend.events for trend in ask(text, rows, **options).trends]


def pairs(text: str, rows: Any, **options: Any) -> list[str]:
    """Give the results as text, `a0 b1` for event 0 bound to a and event 1 to b."""
    trends = ask(text, rows, **options).trends
    return [" ".join(f"{var}{event}" for event, var in trend.pairs) for trend in trends]


def at(*times: Any, **columns: list[Any]) -> list[dict[str, Any]]:
    """Make rows at the given times."""
    return [{"t": t, **{name: values[i] for name, values in columns.items()}} for i, t in enumerate(times)]


def prices(*values: Any) -> list[dict[str, Any]]:
    return at(*range(len(values)), p=list(values))


def letters(text: str, **columns: list[Any]) -> list[dict[str, Any]]:
    """Make one event for each letter, of that type, at times 0, 1, 2, ...; a space leaves a time out."""
    rows = [{"t": t, "type": letter} for t, letter in enumerate(text) if letter != " "]
    return [{**row, **{name: values[i] for name, values in columns.items()}} for i, row in enumerate(rows)]


# --- The papers -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("unextendable", [(0, 1, 2), (0, 2)]),
        ("maximal", [(0, 1, 2)]),
        ("any", [(0,), (0, 1), (0, 1, 2), (0, 2), (1,), (1, 2), (2,)]),
    ],
)
def test_table_of_report_modes(mode: str, expected: list[tuple]) -> None:
    assert found(RISING, prices(1, 2, 3), report_mode=mode) == expected
    assert found(f"{RISING} REPORT {mode}", prices(1, 2, 3)) == expected


def transfers(*routes: str) -> dict[str, list[str]]:
    return {"src": [route[0] for route in routes], "dest": [route[1] for route in routes]}


@pytest.mark.parametrize("mode", ["unextendable", "maximal"])
def test_abi_figure_2(mode: str) -> None:
    rows = at(*range(1, 7), **transfers("AB", "BA", "BC", "CB", "CA", "AB"), id=list(range(1, 7)))
    text = f"PATTERN check+ c[] WHERE c[i].src = c[i-1].dest REPORT {mode}"
    assert found(text, rows, event_id="id") == [(1, 2, 6), (1, 3, 4), (1, 3, 5, 6)]


def test_abi_table_2() -> None:
    rows = at(*range(1, 7), attr=[32, 7, 15, 35, 40, 17], id=list(range(1, 7)))
    text = "PATTERN E+ e[] WHERE e[i].attr > 2 * e[i-1].attr"
    unextendable = [(1,), (2, 3, 4), (2, 3, 5), (2, 4), (2, 5), (2, 6)]
    assert found(text, rows, event_id="id") == unextendable
    maximal = [(1,), (2, 3, 4), (2, 3, 5), (2, 6)]
    assert found(text, rows, event_id="id", report_mode="maximal") == maximal


@pytest.mark.parametrize("mode", ["unextendable", "maximal"])
def test_cet_figure_2(mode: str) -> None:
    times = [1, 2, 4, 5, 6, 7]
    rows = at(*times, **transfers("AB", "BC", "BD", "DE", "DF", "EG"), id=times)
    text = "PATTERN Check+ c[] WHERE c.dest = NEXT(c).src"
    assert found(text, rows, event_id="id", report_mode=mode) == [(1, 2), (1, 4, 5, 7), (1, 4, 6)]


def test_cet_figure_4() -> None:
    rows = prices(*[group for group in range(4) for _ in range(3)])
    assert ask(RISING, rows, report_mode="maximal").count == 81
    assert ask(RISING, rows, report_mode="unextendable").count == 144
    assert ask(RISING, rows, report_mode="any").count == 4**4 - 1


THESIS = ["A1", "B1", "C1", "B2", "A2", "A3", "C2", "B3", "A4", "D1", "C3", "B4", "A5", "B5", "C4", "B6"]


@pytest.mark.parametrize(
    ("policy", "count", "some"),
    [
        ("skip-till-any", 19, [("A1", "B1"), ("A1", "B6"), ("A2", "B3"), ("A5", "B6")]),
        ("skip-till-next", 5, [("A1", "B1"), ("A2", "B3"), ("A3", "B3"), ("A4", "B4"), ("A5", "B5")]),
        ("contiguous", 2, [("A1", "B1"), ("A5", "B5")]),
    ],
)
def test_thesis_policies(policy: str, count: int, some: list[tuple]) -> None:
    rows = at(*range(16), id=THESIS, type=[name[0] for name in THESIS])
    for mode in s.Report:
        text = f"PATTERN SEQ(A, B) SELECT {policy} REPORT {mode}"
        results = found(text, rows, event_id="id", type="type")
        assert len(results) == count
        assert set(some) <= set(results)


TICKS = [(1, "IBM", 6), (2, "Sun", 7), (3, "IBM", 6), (4, "IBM", 4), (5, "Google", 4), (7, "Google", 4)]
QUERY_1 = """PATTERN T1;T2;T3 WHERE T1.name=T3.name AND T2.name='Google' AND T1.price >= T2.price + 2.0
             AND T3.price < T2.price WITHIN 500 RETURN T1, T2, T3"""


def ticks(entries: list[tuple], price: type = float) -> list[dict[str, Any]]:
    return [{"t": t, "name": name, "price": price(p)} for t, name, p in entries]


def triples(text: str, rows: Any) -> list[tuple]:
    answer = ask(text, rows, event_id="t")
    return [tuple(row[name] for name in row if name.startswith("T")) for row in answer.rows]


@pytest.mark.parametrize("price", [int, float, Decimal])
def test_condensed_figures_4_and_5(price: type) -> None:
    text = "PATTERN T1;T2 WHERE T2.name = 'Google' AND T1.price >= T2.price + 2.0 WITHIN 500 RETURN T1, T2"
    assert triples(text, ticks(TICKS[:5], price)) == [(1, 5), (2, 5), (3, 5)]
    assert triples(text, ticks(TICKS, price)) == [(1, 5), (1, 7), (2, 5), (2, 7), (3, 5), (3, 7)]
    rows = ticks([*TICKS, (8, "IBM", 3), (9, "Sun", 3)], price)
    expected = [(1, 5, 8), (1, 7, 8), (2, 5, 9), (2, 7, 9), (3, 5, 8), (3, 7, 8)]
    assert triples(QUERY_1, rows) == expected


@pytest.mark.parametrize("price", [float, Decimal])
def test_condensed_figure_6(price: type) -> None:
    suns = [(15, "Sun", "6.15"), (16, "Sun", "6.20"), (18, "Sun", "6.20"), (20, "Sun", "6.12")]
    googles = [(25, "Google", "3.12"), (35, "Google", "3.10"), (40, "Google", "3.18")]
    rows = ticks([*suns, *googles, (60, "Sun", "3.05")], price)
    expected = [(a, b, 60) for a in (15, 16, 18, 20) for b in (25, 35, 40)]
    assert triples(QUERY_1, rows) == expected


def test_cet_query_2() -> None:
    text = """PATTERN SEQ(Activity a, Activity+ b[]) WHERE [person] AND b.rate < NEXT(b).rate
              AND a.rate*2 < b.rate AND b.kind = 'passive'"""
    rows = at(
        1, 2, 3, 4, 5,
        rate=[10, 25, 20, 30, 50],
        kind=["active", "passive", "passive", "passive", "active"],
        person=[1, 1, 1, 1, 1],
    )  # fmt: skip
    # Event 2 (rate 20) is not above twice 10; event 3 follows 1 in b; no other event can be a.
    assert pairs(text, rows) == ["a0 b1 b3", "a0 b3"]
    assert pairs(text, rows, report_mode="maximal") == ["a0 b1 b3"]


# --- Order, identity, types -------------------------------------------------------------------------------


def test_equal_times_are_never_adjacent() -> None:
    assert found("PATTERN E+ s[]", at(1, 1, 2)) == [(0, 2), (1, 2)]
    assert found("PATTERN E+ s[] REPORT any", at(1, 1, 2)) == [(0,), (0, 2), (1,), (1, 2), (2,)]
    assert found("PATTERN A;B", at(1, 1)) == []


def test_rows_in_any_order_and_positions_as_ids() -> None:
    rows = [{"t": 5, "k": "b"}, {"t": 5, "k": None}, {"t": 5, "k": "B"}, {"t": 1, "k": "z"}]
    answer = ask("PATTERN E+ s[] HAVING LENGTH = 1 REPORT any RETURN s, s.k", rows)
    expected = [([0], ["z"]), ([1], [None]), ([2], ["B"]), ([3], ["b"])]
    assert [(row["s"], row["s_k"]) for row in answer.rows] == expected


def test_positions_go_by_utf8_null_first_nan_last() -> None:
    rows = at(0, 0, 0, 0, 0, y=[math.nan, None, 1.0, 1.0, -math.inf], k=["a", "a", "é", "z", "a"])
    answer = ask("PATTERN E+ s[] RETURN FIRST(s).y, FIRST(s).k", rows)
    assert [(repr(row["first_s_y"]), row["first_s_k"]) for row in answer.rows] == [
        ("None", "a"), ("-inf", "a"), ("1.0", "z"), ("1.0", "é"), ("nan", "a"),
    ]  # fmt: skip


def test_ids_decide_the_order_of_equal_times() -> None:
    rows = at(1, 1, 1, id=["b", "é", "Z"])
    assert found("PATTERN E+ s[]", rows, event_id="id") == [("Z",), ("b",), ("é",)]


def test_positions_over_several_tables_go_by_time_then_table_name() -> None:
    tables = {"B": [{"t": 1}, {"t": 2}], "A": [{"t": 1, "x": 3}]}
    answer = ask("PATTERN SEQ(A a, B b)", tables)
    assert [(row["a"], row["b"]) for row in answer.rows] == [(0, 2)]
    assert pairs("PATTERN SEQ(B b, B c)", tables) == ["b1 c2"]


def test_a_type_column_is_compared_exactly() -> None:
    rows = at(1, 2, 3, 4, type=["E", "e", None, "E"])
    assert found("PATTERN E+ s[]", rows, type="type") == [(0, 3)]
    assert found("PATTERN E+ s[]", rows) == [(0, 1, 2, 3), (0, 1, 3), (0, 2, 3), (0, 3)]
    assert found("PATTERN X;Y", rows[1:3], type="type") == [(0, 1)]
    with pytest.raises(OracleError, match="no types"):
        ask("PATTERN SEQ(A a, B b)", rows)


def test_types_from_tables_with_their_own_columns() -> None:
    tables = {"A": [{"t": 1, "x": 5}, {"t": 4, "x": 9}], "B": [{"t": 2, "y": 5}, {"t": 3, "y": 9}]}
    assert pairs("PATTERN SEQ(A a, B b) WHERE a.x = b.y", tables) == ["a0 b1"]


def test_timestamps_and_dates() -> None:
    naive = dt.datetime(2020, 1, 1, 12)
    zoned = dt.datetime(2020, 1, 1, 14, tzinfo=dt.timezone(dt.timedelta(hours=2)))
    rows = [{"t": zoned, "k": "z"}, {"t": naive, "k": "n"}, {"t": naive + dt.timedelta(minutes=5), "k": "l"}]
    assert found("PATTERN E+ s[] WHERE s[i].time - s[i-1].time <= 5 min", rows) == [(0, 2), (1, 2)]
    assert found("PATTERN E+ s[] WHERE s[i].time - s[i-1].time < 5 min", rows) == [(0,), (1,), (2,)]
    assert found("PATTERN E+ s[] WHERE s.time > TIMESTAMP '2020-01-01 12:00:00'", rows) == [(2,)]
    days = at(dt.date(1970, 1, 1), dt.date(1970, 1, 2))
    row = ask("PATTERN E+ s[] WITHIN 1 day SLIDE 1 day RETURN s.t", days).rows[1]
    assert row["window_start"] == row["start_time"] == dt.datetime(1970, 1, 2, tzinfo=UTC)
    assert row["s_t"] == [dt.date(1970, 1, 2)]


def test_a_column_named_time_comes_first() -> None:
    rows = [{"t": 1, "time": "late"}, {"t": 2, "time": "early"}]
    assert found("PATTERN E+ s[] WHERE s.time = 'late'", rows) == [(0,)]


# --- Conditions and values --------------------------------------------------------------------------------


def test_null_and_nan_never_match() -> None:
    rows = prices(1.0, math.nan, None, 2.0)
    for condition in ("s[i].p > s[i-1].p", "NOT s[i].p <= s[i-1].p", "s[i].p != s[i-1].p"):
        assert found(f"PATTERN S+ s[] WHERE {condition}", rows) == [(0, 3), (1,), (2,)]
    assert found("PATTERN S+ s[] WHERE s.p IS NULL", rows) == [(1, 2)]
    assert found("PATTERN S+ s[] WHERE COALESCE(s.p, 9) = 9", rows) == [(1, 2)]
    assert found("PATTERN S+ s[] WHERE s.p IN (7, 2)", rows) == [(3,)]
    assert found("PATTERN S+ s[] WHERE NOT s.p IN (7, 2)", rows) == [(0,)]
    assert found("PATTERN S+ s[] WHERE s.p BETWEEN 2 AND 3", rows) == [(3,)]


def constant(expression: str, **columns: Any) -> bool:
    """Tell whether one event with these values meets a condition."""
    return found(f"PATTERN E+ s[] WHERE {expression}", at(0, **{k: [v] for k, v in columns.items()})) == [(0,)]


@pytest.mark.parametrize(
    ("condition", "columns", "expected"),
    [
        ("s.x / 2 = 1.5", {"x": 3}, True),
        ("s.x / 0 IS NULL", {"x": 3}, True),
        ("s.x % 0 IS NULL", {"x": 3}, True),
        ("s.x % 2 = -1", {"x": -3}, True),
        ("s.x % -2 = 1", {"x": 3}, True),
        ("s.y % 2 = -1", {"y": -3.0}, True),
        ("s.d % 2 = -1.1", {"d": Decimal("-3.1")}, True),
        ("s.d = 0.1", {"d": Decimal("0.1")}, True),
        ("s.y + 0.2 = 0.3", {"y": 0.1}, False),
        ("s.d + 0.2 = 0.3", {"d": Decimal("0.1")}, True),
        ("COALESCE(s.d, 0.1) + 0.2 = 0.3", {"d": Decimal("0.1")}, True),
        ("s.d * 1 = s.y", {"d": Decimal("0.1"), "y": 0.1}, False),
        ("s.x = s.y", {"x": 2**53 + 1, "y": 2.0**53}, False),
        ("s.x > s.y", {"x": 2**53 + 1, "y": 2.0**53}, True),
        ("s.y = 0", {"y": -0.0}, True),
        ("s.y >= s.y", {"y": math.inf}, True),
        ("s.y - s.y IS NULL", {"y": math.inf}, True),
        ("0 * s.y IS NULL", {"y": math.inf}, True),
        ("s.k LIKE 'a%'", {"k": "ab"}, True),
        ("s.k LIKE 'a_'", {"k": "a\n"}, True),
        ("s.k LIKE 'a\\%'", {"k": "ab"}, False),
        ("s.k LIKE 'a\\%'", {"k": "a%"}, True),
        ("s.k < 'é'", {"k": "z"}, True),
        ("ABS(s.x) = 3", {"x": -3}, True),
        ("s.b", {"b": True}, True),
        ("NOT s.b", {"b": None}, False),
        ("s.b OR s.b IS NULL", {"b": None}, True),
        ("s.x > 0 OR s.y > 0", {"x": 1, "y": None}, True),
        ("FALSE", {"x": 1}, False),
    ],
)
def test_values(condition: str, columns: dict[str, Any], expected: bool) -> None:
    assert constant(condition, **columns) is expected


def test_integer_overflow_is_an_error() -> None:
    for condition in ("s.x + 1 > 0", "s.x * 2 > 0", "-(-s.x - 1) > 0"):
        with pytest.raises(OracleOverflow):
            constant(condition, x=2**63 - 1)
    assert constant("s.x - 1 < 0", x=-(2**63) + 1)


def test_an_all_null_decimal_column_keeps_its_type_by_schema() -> None:
    rows = at(0, d=[None])
    schema = {"t": "int64", "d": "decimal(10,2)"}
    assert found("PATTERN E+ s[] WHERE COALESCE(s.d, 0.1) + 0.2 = 0.3", rows, schema=schema) == [(0,)]
    assert found("PATTERN E+ s[] WHERE COALESCE(s.d, 0.1) + 0.2 = 0.3", rows) == []


def test_schema_order_decides_positions() -> None:
    rows = at(0, 0, x=[2, 1], k=["a", "b"])
    text = "PATTERN E+ s[] RETURN s.x"
    assert [row["s_x"] for row in ask(text, rows).rows] == [[1], [2]]
    schema = {"t": "int64", "k": "string", "x": "int64"}
    assert [row["s_x"] for row in ask(text, rows, schema=schema).rows] == [[2], [1]]
    assert [row["s_x"] for row in ask(text, rows, schema={"k": "string"}).rows] == [[1], [2]]


def test_parameters() -> None:
    text = "PATTERN S+ s[] WHERE s[i].p > ratio * s[i-1].p WITHIN size"
    assert found(text, prices(2, 3, 4), params={"ratio": 1.4, "size": 2}) == [(0, 1), (0, 2)]
    assert found(text, prices(2, 3, 4), params={"ratio": 1.4, "size": 1}) == [(0, 1), (2,)]


def test_both_notations_of_adjacent_conditions() -> None:
    rows = prices(1, 3, 2, 4)
    expected = found(RISING, rows)
    assert found("PATTERN S+ s[] WHERE s.p < NEXT(s).p", rows) == expected
    assert found("PATTERN S+ s[] WHERE s.p > s[i-1].p", rows) == expected


def test_a_kleene_variable_without_index_means_every_event() -> None:
    rows = at(0, 1, 2, 3, x=[3, 1, 2, 5], type=["A", "B", "B", "B"])
    text = "PATTERN SEQ(A a, B+ b[]) WHERE b.x < a.x REPORT any"
    assert pairs(text, rows, type="type") == ["a0 b1", "a0 b1 b2", "a0 b2"]


def test_first_last_and_nth() -> None:
    rows = at(0, 1, 2, 3, x=[1, 3, 2, 2], type=["B", "B", "B", "C"])
    base = "PATTERN SEQ(B+ b[], C c) WHERE {} REPORT any"
    assert pairs(base.format("LAST(b).x < c.x"), rows, type="type") == ["b0 c3"]
    first = ["b0 b1 b2 c3", "b0 b1 c3", "b0 b2 c3", "b0 c3"]
    assert pairs(base.format("FIRST(b).x < c.x"), rows, type="type") == first
    assert pairs(base.format("b[2].x = c.x"), rows, type="type") == ["b0 b2 c3", "b1 b2 c3"]
    assert pairs(base.format("b[2].x IS NULL"), rows, type="type") == ["b0 c3", "b1 c3", "b2 c3"]


def test_conditions_on_consecutive_events_and_another_variable() -> None:
    rows = letters("BBBC", x=[0, 1, 5, 2])
    text = "PATTERN SEQ(B+ b[], C c) WHERE b[i].x > b[i-1].x + c.x REPORT any"
    # Every two consecutive events of b must be more than 2 apart; one event alone passes.
    assert pairs(text, rows, type="type") == ["b0 b2 c3", "b0 c3", "b1 b2 c3", "b1 c3", "b2 c3"]


def test_unextendable_looks_at_the_condition_on_the_last_event() -> None:
    # (0, 1) cannot be a trend and can still grow into one: several events may be put after the last.
    rows = at(0, 1, 2, x=[1, 0, 2])
    trends = [(0,), (0, 1, 2), (0, 2), (1, 2), (2,)]
    assert found("PATTERN E+ s[] WHERE LAST(s).x > 0 REPORT any", rows) == trends
    assert found("PATTERN E+ s[] WHERE LAST(s).x > 0", rows) == [(0, 1, 2), (0, 2)]


def test_conditions_on_unbound_variables_are_not_applied() -> None:
    rows = letters("ABC", x=[5, 1, 9])
    text = "PATTERN SEQ(OR(A a, B b), C c) WHERE a.x > c.x"
    assert pairs(text, rows, type="type") == ["b1 c2"]


# --- Windows, spans, partitions ---------------------------------------------------------------------------


def test_windows_are_aligned_to_zero_and_half_open() -> None:
    answer = ask("PATTERN E+ s[] WITHIN 10 SLIDE 5", at(-1, 0, 9, 10))
    assert [(trend.window, trend.events) for trend in answer.trends] == [
        ((-10, 0), (0,)),
        ((-5, 5), (0, 1)),
        ((0, 10), (1, 2)),
        ((5, 15), (2, 3)),
        ((10, 20), (3,)),
    ]
    assert [trend.rank for trend in answer.trends] == [0] * 5
    assert answer.counts == [(trend.window, (), 1) for trend in answer.trends]
    assert answer.rows[1]["window_start"] == -5
    columns = ["window_start", "window_end", "rank", "length", "start_time", "end_time", "events"]
    assert list(answer.rows[1]) == columns


def test_a_slide_that_does_not_divide_the_size() -> None:
    answer = ask("PATTERN E+ s[] WITHIN 5 SLIDE 3", at(4))
    assert [trend.window for trend in answer.trends] == [(0, 5), (3, 8)]
    answer = ask("PATTERN E+ s[] WITHIN 1.5 SLIDE 0.5", at(0.5))
    assert [trend.window for trend in answer.trends] == [(-0.5, 1.0), (0.0, 1.5), (0.5, 2.0)]


def test_windows_over_timestamps() -> None:
    rows = at(dt.datetime(1969, 12, 31, 23, 59), dt.datetime(1970, 1, 1, 0, 30))
    answer = ask("PATTERN E+ s[] WITHIN 1 hour SLIDE 1 hour", rows)
    assert [trend.window for trend in answer.trends] == [(-3_600_000_000, 0), (0, 3_600_000_000)]
    assert answer.rows[0]["window_start"] == dt.datetime(1969, 12, 31, 23, tzinfo=UTC)


def test_a_span_includes_its_edge_and_bounds_what_can_be_put() -> None:
    rows = at(0, 5, 6)
    assert found("PATTERN E+ s[] REPORT any WITHIN 5", rows) == [(0,), (0, 1), (1,), (1, 2), (2,)]
    assert found("PATTERN E+ s[] WITHIN 5", rows) == [(0, 1), (1, 2)]
    assert found("PATTERN E+ s[] WITHIN 5", at(0, 3, 5)) == [(0, 1, 2), (0, 2)]
    assert found("PATTERN E+ s[] REPORT maximal WITHIN 5", at(0, 3, 5)) == [(0, 1, 2)]
    assert found("PATTERN E+ s[] REPORT maximal WITHIN 5", rows) == [(0, 1), (1, 2)]


def test_a_span_with_units() -> None:
    minute = dt.timedelta(minutes=1)
    start = dt.datetime(2020, 1, 1)
    rows = at(start, start + minute, start + 2 * minute + dt.timedelta(microseconds=1))
    assert found("PATTERN E+ s[] WITHIN 2 min", rows) == [(0, 1), (1, 2)]
    with pytest.raises(OracleError, match="unit"):
        ask("PATTERN E+ s[] WITHIN 2", rows)


def test_partitions_with_null_nan_and_zeros() -> None:
    rows = at(*range(8), g=[None, float("nan"), 0.0, -0.0, float("nan"), None, 1.0, -1.0])
    answer = ask("PATTERN E+ s[] WHERE [g]", rows)
    assert [(repr(trend.partition), trend.events, trend.rank) for trend in answer.trends] == [
        ("(None,)", (0, 5), 0),
        ("(-1.0,)", (7,), 0),
        ("(0.0,)", (2, 3), 0),
        ("(1.0,)", (6,), 0),
        ("(nan,)", (1, 4), 0),
    ]
    assert list(answer.rows[0]) == ["g", "rank", "length", "start_time", "end_time", "events"]


def test_partitions_of_several_attributes() -> None:
    rows = at(0, 1, 2, 3, g=[1, 1, 2, 1], h=["a", "b", "a", "a"])
    answer = ask("PATTERN E+ s[] WHERE [g, h]", rows)
    expected = [((1, "a"), (0, 3)), ((1, "b"), (1,)), ((2, "a"), (2,))]
    assert [(trend.partition, trend.events) for trend in answer.trends] == expected


# --- HAVING and rank --------------------------------------------------------------------------------------


def test_having_comes_after_report_and_before_rank() -> None:
    answer = ask(f"{RISING} HAVING LENGTH = 2", prices(1, 2, 3))
    assert [(trend.rank, trend.events) for trend in answer.trends] == [(0, (0, 2))]
    assert found(f"{RISING} HAVING LENGTH >= 1 AND LENGTH < 2", prices(1, 2, 3)) == []


def test_bindings_follow_the_order_of_the_pattern() -> None:
    text = "PATTERN SEQ(E+ b[], E+ a[])"
    any_mode = ["b0 a1", "b0 b1 a2", "b0 a1 a2", "b0 a2", "b1 a2"]
    assert pairs(text, at(0, 1, 2), report_mode="any") == any_mode
    assert pairs(text, at(0, 1, 2)) == ["b0 b1 a2", "b0 a1 a2", "b0 a2"]
    answer = ask(text, at(0, 1, 2), report_mode="maximal")
    assert [row["bindings"] for row in answer.rows] == [["b", "b", "a"], ["b", "a", "a"]]
    assert [row["rank"] for row in answer.rows] == [0, 1]


def test_other_bindings_are_kept() -> None:
    # Event 0 could only be put before if event 1 became b: the trend a1 b2 stays.
    assert pairs("PATTERN SEQ(E a, E+ b[])", at(0, 1, 2)) == ["a0 b1 b2", "a0 b2", "a1 b2"]


# --- SELECT -----------------------------------------------------------------------------------------------


def test_skip_till_next_for_one_kleene_variable() -> None:
    text = f"{RISING} SELECT skip-till-next"
    rows = prices(1, 3, 2, 4)  # next events: 0 -> 1 -> 3, 2 -> 3
    assert found(text, rows) == [(0, 1, 3), (2, 3)]
    assert found(text, rows, report_mode="maximal") == [(0, 1, 3), (2, 3)]
    assert found(text, rows, report_mode="any") == [(0,), (0, 1), (0, 1, 3), (1,), (1, 3), (2,), (2, 3), (3,)]


def test_skip_till_next_takes_the_first_by_id_of_equal_times() -> None:
    rows = at(0, 1, 1, id=["a", "c", "b"])
    assert found("PATTERN E+ s[] SELECT skip-till-next", rows, event_id="id") == [("a", "b"), ("c",)]


def test_skip_till_next_asks_what_is_bound() -> None:
    rows = letters("ABB", x=[5, 1, 9])
    assert pairs("PATTERN SEQ(A a, B b) WHERE b.x > a.x SELECT skip-till-next", rows, type="type") == ["a0 b2"]


def test_skip_till_next_follows_every_variable_that_fits() -> None:
    text = "PATTERN SEQ(E+ a[], E+ b[]) SELECT skip-till-next REPORT any"
    assert pairs(text, at(0, 1, 2)) == ["a0 b1", "a0 a1 b2", "a0 b1 b2", "a1 b2"]


def test_skip_till_next_asks_last_when_the_variable_is_complete() -> None:
    rows = letters("BBCC", x=[1, 5, 3, 9])
    text = "PATTERN SEQ(B+ b[], C c) WHERE LAST(b).x < c.x SELECT skip-till-next REPORT any"
    # From b0 the next event that can continue is b1, so c2 is never offered to b0 alone; c2 does not exceed 5.
    assert pairs(text, rows, type="type") == ["b0 b1 c3", "b1 c3"]


def test_a_later_event_of_a_variable_may_still_come() -> None:
    rows = at(0, 1, 2, x=[0, 5, 0])
    for policy in ("skip-till-any", "skip-till-next", "contiguous"):
        assert found(f"PATTERN E+ s[] WHERE s[2].x > 1 SELECT {policy}", rows) == [(0, 1, 2)]


def test_not_at_an_edge_does_not_steer_skip_till_next() -> None:
    rows = letters("BACC", x=[7, 1, 7, 8])
    text = "PATTERN SEQ(NOT(B b), A a, C c) WHERE b.x = c.x"
    assert pairs(text, rows, type="type") == ["a1 c3"]
    assert pairs(f"{text} SELECT skip-till-next", rows, type="type") == []


def test_skip_till_next_and_not() -> None:
    rows = letters("ABCAC", x=[1, 7, 7, 1, 8])
    text = "PATTERN SEQ(A a, NOT(B b), C c) WHERE b.x = c.x SELECT skip-till-next"
    assert pairs(text, rows, type="type") == ["a0 c4", "a3 c4"]


def test_skip_till_next_shared_variables_are_one_match_so_far() -> None:
    rows = letters("ABC")
    text = "PATTERN OR(SEQ(A a, B b), SEQ(A a, C c)) SELECT skip-till-next"
    assert pairs(text, rows, type="type") == ["a0 b1"]
    text = "PATTERN OR(SEQ(A a, B b), SEQ(A x, C c)) SELECT skip-till-next"
    assert pairs(text, rows, type="type") == ["a0 b1", "x0 c2"]


def test_greedy_waits_for_what_follows_in_its_own_arm() -> None:
    for text in ("AND(SEQ(A+ a[] greedy, B b), C c)", "SEQ(AND(A+ a[] greedy, C c), B b)"):
        got = pairs(f"PATTERN {text} REPORT any", letters("ACAB"), type="type")
        assert got == ["a0 c1 a2 b3", "c1 a2 b3"]
    assert pairs("PATTERN AND(A+ a[] greedy, C c) REPORT any", letters("AAC"), type="type") == [
        "a0 a1 c2", "a0 c2", "a1 c2"
    ]  # fmt: skip
    taken = pairs("PATTERN AND(SEQ(A+ a[] greedy, B b), A c) REPORT any", letters("AAB"), type="type")
    assert taken == ["a0 c1 b2", "c0 a1 b2"]


def test_greedy_inside_and_takes_what_it_could_by_then() -> None:
    text = "PATTERN AND(SEQ(A+ a[] greedy, B b), C c) WHERE a.x > c.x REPORT any"
    assert pairs(text, letters("AACB", x=[5, 1, 3, 0]), type="type") == []
    assert pairs(text, letters("ACAB", x=[5, 3, 1, 0]), type="type") == ["a0 c1 b3"]


def test_greedy_inside_and_at_one_time() -> None:
    rows = at(1, 2, 3, 3, 4, type=list("ACABB"))
    text = "PATTERN SEQ(AND(A+ a[] greedy, C c), B b) REPORT any"
    assert pairs(text, rows, type="type") == ["a0 c1 a2 b4", "a0 c1 b3", "c1 a2 b4"]


def test_contiguous_breaks_at_whatever_comes_next() -> None:
    rows = at(0, 1, 2, 3, 4, p=[1, 2, 0, 3, 4], type=["S", "S", "S", "S", "X"])
    assert found(f"{RISING} SELECT contiguous", rows) == [(0, 1), (2, 3, 4)]
    assert found(f"{RISING} AND s.p > 0 SELECT contiguous", rows) == [(0, 1), (3, 4)]
    rows[3]["type"] = "X"
    assert found("PATTERN S+ s[] SELECT contiguous", rows, type="type") == [(0, 1, 2)]
    assert found("PATTERN S+ s[] SELECT contiguous", at(0, 1, 1, 2)) == [(0, 1), (2, 3)]


def test_contiguous_within_a_partition() -> None:
    rows = at(0, 1, 2, 3, g=[1, 2, 1, 2])
    assert found("PATTERN E+ s[] WHERE [g] SELECT contiguous", rows) == [(0, 2), (1, 3)]


@examples(100)
@given(case(clauses=False))
def test_forests(drawn: Case) -> None:
    """With at most one edge out of an event, unextendable is maximal: one trend for each start."""
    if drawn.query.select is s.Select.ANY or (drawn.query.within and drawn.query.within.slide is None):
        return

    def ask_mode(mode: str) -> Answer:
        return run(drawn.query, drawn.rows, schema=drawn.schema, report_mode=mode, **drawn.options)

    try:
        unextendable, every = ask_mode("unextendable"), ask_mode("any")
    except OracleOverflow:
        return
    assert unextendable.rows == ask_mode("maximal").rows or any_nan(unextendable.rows)
    followed = {(t.window, repr(t.partition), t.events[1]) for t in every.trends if len(t.events) == 2}
    starts = [
        t for t in every.trends
        if len(t.events) == 1 and (t.window, repr(t.partition), t.events[0]) not in followed
    ]  # fmt: skip
    assert len(starts) == unextendable.count


def any_nan(rows: list[dict[str, Any]]) -> bool:
    return any(isinstance(value, float) and math.isnan(value) for row in rows for value in row.values())


# --- Sequences: OR, AND, NOT ------------------------------------------------------------------------------


def test_or_merges_equal_pairs() -> None:
    assert pairs("PATTERN OR(E a, E a)", at(0)) == ["a0"]
    assert pairs("PATTERN OR(E b, E a)", at(0)) == ["b0", "a0"]
    rows = letters("AB")
    assert pairs("PATTERN OR(SEQ(A a, NOT(B x), B b), SEQ(A a, B b))", rows, type="type") == ["a0 b1"]


def test_or_arms_of_different_length() -> None:
    rows = letters("AB")
    text = "PATTERN OR(A a, SEQ(A a, B b))"
    assert pairs(text, rows, type="type") == ["a0 b1"]
    assert pairs(text, rows, type="type", report_mode="any") == ["a0", "a0 b1"]
    answer = ask(text, rows, type="type", report_mode="any")
    assert [(row["a"], row["b"]) for row in answer.rows] == [(0, None), (0, 1)]


def test_and_arms_in_any_order_with_equal_times() -> None:
    rows = at(1, 1, 2, id=["y", "x", "z"], type=["A", "B", "A"])
    answer = ask("PATTERN AND(A a, B b)", rows, event_id="id", type="type")
    assert [trend.pairs for trend in answer.trends] == [(("x", "b"), ("y", "a")), (("x", "b"), ("z", "a"))]
    assert [(row["a"], row["b"]) for row in answer.rows] == [("y", "x"), ("z", "x")]


def test_and_arms_share_no_event_and_may_interleave() -> None:
    assert pairs("PATTERN AND(E a, E b)", at(0, 1)) == ["a0 b1", "b0 a1"]
    rows = letters("ABAB")
    assert pairs("PATTERN AND(SEQ(A a, A c), SEQ(B b, B d))", rows, type="type") == ["a0 b1 c2 d3"]


def test_equal_times_are_not_before_the_first() -> None:
    rows = at(0, 0, 1, type=["A", "B", "A"])
    trends = pairs("PATTERN AND(A+ a[], B b)", rows, type="type", report_mode="any")
    assert trends == ["a0 b1", "a0 b1 a2", "b1 a2"]
    assert pairs("PATTERN AND(A+ a[], B b)", rows, type="type") == ["a0 b1 a2", "b1 a2"]
    assert pairs("PATTERN AND(A+ a[], B b)", rows, type="type", report_mode="maximal") == ["a0 b1 a2"]


def test_and_inside_a_sequence_lies_between_the_neighbours() -> None:
    rows = at(0, 1, 1, 1, 2, type=["A", "B", "C", "A", "D"])
    assert pairs("PATTERN SEQ(A a, AND(B b, C c), D d)", rows, type="type") == ["a0 b2 c3 d4"]
    rows = at(0, 1, 2, type=["A", "B", "C"])
    assert pairs("PATTERN SEQ(A a, AND(B b, C c))", rows, type="type") == ["a0 b1 c2"]
    rows = at(0, 0, 2, type=["A", "B", "C"])
    assert pairs("PATTERN SEQ(A a, AND(B b, C c))", rows, type="type") == []


def test_not_between_is_strict() -> None:
    text = "PATTERN SEQ(A a, NOT(B b), C c)"
    assert pairs(text, letters("ABC"), type="type") == []
    assert pairs(text, letters("AC"), type="type") == ["a0 c1"]
    assert pairs(text, at(0, 0, 1, 1, type=["A", "B", "B", "C"]), type="type") == ["a0 c3"]
    assert pairs("PATTERN SEQ(A a, NOT(B b, D d), C c)", letters("AC ADC"), type="type") == ["a0 c1"]


def test_not_with_conditions() -> None:
    rows = letters("ABC", x=[1, 2, 3])
    base = "PATTERN SEQ(A a, NOT(B b), C c) WHERE {}"
    for condition, expected in [
        ("b.x > 5", ["a0 c2"]),
        ("b.x < 5", []),
        ("b.x > a.x", []),
        ("b.x > a.x AND b.x > c.x", ["a0 c2"]),
        ("b.x + 1 = c.x", []),
        ("b.x IS NULL", ["a0 c2"]),
    ]:
        assert pairs(base.format(condition), rows, type="type") == expected


def test_not_with_conditions_on_what_comes_later() -> None:
    rows = letters("ABCD", x=[0, 1, 0, 2])
    for part in ("C c", "C+ c[]"):
        base = f"PATTERN SEQ(A a, NOT(B b), {part}, D d) WHERE b.x {{}} d.x SELECT {{}}"
        for policy in (s.Select.ANY, s.Select.NEXT):
            assert pairs(base.format("!=", policy), rows, type="type") == []
            assert pairs(base.format("=", policy), rows, type="type") == ["a0 c2 d3"]
    # c[1] alone lets b satisfy its condition, c[1] and c[2] together do not: every event of c is meant.
    rows = letters("ABCC", x=[0, 2, 3, 1])
    text = "PATTERN SEQ(A a, NOT(B b), C+ c[]) WHERE b.x < c.x REPORT any"
    assert pairs(text, rows, type="type") == ["a0 c2 c3", "a0 c3"]


def test_not_at_the_edges_is_bounded_by_the_window() -> None:
    leading, trailing = "PATTERN SEQ(NOT(B b), A a, C c)", "PATTERN SEQ(A a, C c, NOT(B b))"
    assert pairs(leading, letters("BAC"), type="type") == []
    assert pairs(leading, letters("ABC"), type="type") == ["a0 c2"]
    assert pairs(trailing, letters("ACB"), type="type") == []
    rows = at(4, 5, 6, type=["B", "A", "C"])
    assert pairs(f"{leading} WITHIN 5 SLIDE 5", rows, type="type") == ["a1 c2"]
    rows = at(3, 4, 5, type=["A", "C", "B"])
    assert pairs(f"{trailing} WITHIN 5 SLIDE 5", rows, type="type") == ["a0 c1"]


def test_not_at_the_edges_is_bounded_by_the_span() -> None:
    leading, trailing = "PATTERN SEQ(NOT(B b), A a, C c) WITHIN 5", "PATTERN SEQ(A a, C c, NOT(B b)) WITHIN 5"
    for time, expected in [(2, []), (1, ["a1 c2"]), (3, [])]:  # forbidden: [2, 4)
        assert pairs(leading, at(time, 4, 7, type=["B", "A", "C"]), type="type") == expected
    assert pairs(leading, at(4, 4, 7, type=["A", "B", "C"]), type="type") == ["a0 c2"]
    for time, expected in [(5, []), (6, ["a0 c1"]), (4, [])]:  # forbidden: (3, 5]
        assert pairs(trailing, at(0, 3, time, type=["A", "C", "B"]), type="type") == expected
    assert pairs(trailing, at(0, 3, 3, type=["A", "B", "C"]), type="type") == ["a0 c2"]


def test_not_beside_a_single_part() -> None:
    assert found("PATTERN SEQ(NOT(B b), A+ a[])", letters("ABA"), type="type") == [(0, 2)]
    assert found("PATTERN SEQ(NOT(B b), A+ a[]) REPORT any", letters("ABA"), type="type") == [(0,), (0, 2)]
    assert found("PATTERN SEQ(A+ a[], NOT(B b))", letters("ABA"), type="type") == [(0, 2)]


def test_not_looks_at_the_same_partition_only() -> None:
    rows = letters("ABC", g=[1, 2, 1])
    assert pairs("PATTERN SEQ(A a, NOT(B b), C c) WHERE [g]", rows, type="type") == ["a0 c2"]


def test_not_around_kleene_variables() -> None:
    text = "PATTERN SEQ(A+ a[], NOT(B b), C+ c[])"
    # b lies before the last a, so it is not between; a0 alone would have b between.
    assert pairs(text, letters("ABAC"), type="type", report_mode="any") == ["a0 a2 c3", "a2 c3"]
    assert pairs(text, letters("ABAC"), type="type") == ["a0 a2 c3"]


def test_nested_sequences_are_flat() -> None:
    rows = letters("ABC")
    assert pairs("PATTERN SEQ(A a, SEQ(NOT(B b), C c, C d))", letters("ABCC"), type="type") == []
    assert pairs("PATTERN SEQ(A a, SEQ(NOT(B b), C c, C d))", letters("BACC"), type="type") == ["a1 c2 d3"]
    for text in ("SEQ(SEQ(A a, NOT(B b)), C c)", "SEQ(AND(SEQ(A a, NOT(B b)), D d), C c)"):
        assert pairs(f"PATTERN {text}", letters("DABC"), type="type") == []
        assert len(pairs(f"PATTERN {text}", letters("DBACB"), type="type")) == 1
    assert pairs("PATTERN SEQ(A a, SEQ(B b, C c))", rows, type="type") == ["a0 b1 c2"]


def test_an_event_fills_one_variable_only() -> None:
    assert pairs("PATTERN T1;T2", at(0, 1)) == ["T10 T21"]


# --- Output -----------------------------------------------------------------------------------------------


def test_columns_of_a_fixed_sequence() -> None:
    answer = ask("PATTERN SEQ(A a, NOT(X x), B b) WITHIN 5", letters("AB"), type="type")
    assert answer.rows == [{"rank": 0, "length": 2, "start_time": 0, "end_time": 1, "a": 0, "b": 1}]


def test_return_names_and_values() -> None:
    rows = at(0, 1, 2, x=[1, 2, 4], y=[0.1, math.nan, 0.2], k=["p", None, "q"])
    text = """PATTERN E+ s[] REPORT maximal RETURN s, s.x, LENGTH AS n, SUM(s.x), MIN(s.y), MAX(s.k), AVG(s.x),
              FIRST(s).k, LAST(s).x, s[2].k AS second, s[4].x AS fourth, SUM(s.x) / LENGTH AS mean,
              SUM(s.y) AS total"""
    (row,) = ask(text, rows).rows
    assert list(row.items()) == [
        ("rank", 0), ("length", 3), ("start_time", 0), ("end_time", 2),
        ("s", [0, 1, 2]), ("s_x", [1, 2, 4]), ("n", 3), ("sum_s_x", 7), ("min_s_y", 0.1), ("max_s_k", "q"),
        ("avg_s_x", 7 / 3), ("first_s_k", "p"), ("last_s_x", 4), ("second", None), ("fourth", None),
        ("mean", 7 / 3), ("total", 0.1 + 0.2),
    ]  # fmt: skip


def test_return_of_an_unbound_variable_is_null() -> None:
    text = "PATTERN OR(A a, B+ b[]) RETURN a, a.x, b, b.x, SUM(b.x)"
    rows = ask(text, letters("AB", x=[1, 2]), type="type").rows
    assert [[row[c] for c in ("a", "a_x", "b", "b_x", "sum_b_x")] for row in rows] == [
        [0, 1, None, None, None],
        [None, None, [1], [2], 2],
    ]


def test_a_name_used_twice_is_an_error() -> None:
    with pytest.raises(OracleError, match="twice"):
        ask("PATTERN E+ s[] RETURN s, s.x AS s", at(0, x=[1]))
    with pytest.raises(OracleError, match="needs a name"):
        ask("PATTERN E+ s[] RETURN SUM(s.x) + 1", at(0, x=[1]))


def test_floats_are_summed_exactly_and_rounded_once() -> None:
    rows = at(0, 1, 2, 3, y=[1e16, 1.0, 1.0, -1e16])
    (row,) = ask("PATTERN E+ s[] REPORT maximal RETURN SUM(s.y), AVG(s.y)", rows).rows
    assert (row["sum_s_y"], row["avg_s_y"]) == (2.0, 0.5)
    (row,) = ask("PATTERN E+ s[] REPORT maximal RETURN SUM(s.y)", at(0, 1, y=[math.inf, -math.inf])).rows
    assert row["sum_s_y"] is None


def test_order_by_with_null_and_nan() -> None:
    rows = at(0, 1, 2, 3, 4, y=[math.nan, 1.0, None, -1.0, 1.0])
    base = "PATTERN E+ s[] HAVING LENGTH = 1 REPORT any ORDER BY FIRST(s).y"
    assert [row["events"] for row in ask(base, rows).rows] == [[2], [3], [1], [4], [0]]
    assert [row["events"] for row in ask(f"{base} DESC", rows).rows] == [[0], [1], [4], [3], [2]]


def test_order_by_several_keys_limit_and_offset() -> None:
    base = f"{RISING} REPORT any ORDER BY LENGTH DESC, FIRST(s).p DESC"
    events = [tuple(row["events"]) for row in ask(base, prices(1, 2, 3)).rows]
    assert events == [(0, 1, 2), (1, 2), (0, 1), (0, 2), (2,), (1,), (0,)]
    answer = ask(f"{base} LIMIT 2 OFFSET 1", prices(1, 2, 3))
    assert [tuple(row["events"]) for row in answer.rows] == [(1, 2), (0, 1)]
    assert [row["rank"] for row in answer.rows] == [5, 1]
    assert answer.count == len(answer.trends) == 7


def test_limit_goes_by_window_partition_rank() -> None:
    rows = at(0, 1, 5, 6, g=["b", "a", "a", "a"])
    base = "PATTERN E+ s[] WHERE [g] REPORT any WITHIN 5 SLIDE 5"
    everything = [(row["window_start"], row["g"], row["events"]) for row in ask(base, rows).rows]
    assert everything == [(0, "a", [1]), (0, "b", [0]), (5, "a", [2]), (5, "a", [2, 3]), (5, "a", [3])]
    for clause, kept in [
        ("LIMIT 2", everything[:2]),
        ("LIMIT 2 OFFSET 1", everything[1:3]),
        ("OFFSET 4", everything[4:]),
        ("LIMIT 0", []),
        ("LIMIT 1 PER WINDOW", everything[:3]),
        ("LIMIT 1 PER WINDOW OFFSET 1", everything[3:4]),
        ("ORDER BY LENGTH DESC LIMIT 1 PER WINDOW", [everything[0], everything[1], everything[3]]),
    ]:
        answer = ask(f"{base} {clause}", rows)
        assert [(row["window_start"], row["g"], row["events"]) for row in answer.rows] == kept
        assert answer.count == 5


# --- AGGREGATE --------------------------------------------------------------------------------------------


def test_aggregates_over_all_results() -> None:
    rows = prices(1, 2, 3)
    text = f"""{RISING} REPORT any AGGREGATE COUNT(*), COUNT(s), SUM(s.p), AVG(s.p), MIN(s.p), MAX(s.p) AS top,
               MIN(LENGTH), MAX(LENGTH), AVG(LENGTH)"""
    (row,) = ask(text, rows).aggregates or []
    # Each event lies in 4 of the 7 trends: 12 pairs, sum 4 * 6.
    assert list(row.items()) == [
        ("count", 7), ("count_text", "7"), ("count_s", 12), ("count_s_text", "12"),
        ("sum_s_p", 24), ("sum_s_p_text", "24"), ("avg_s_p", 2.0), ("min_s_p", 1), ("top", 3),
        ("min_length", 1), ("max_length", 3), ("avg_length", 12 / 7),
    ]  # fmt: skip


def test_aggregates_without_results() -> None:
    text = "PATTERN E+ s[] WHERE s.p > 9 {} AGGREGATE COUNT(*), COUNT(s) AS n, SUM(s.p), MIN(LENGTH), AVG(s.p)"
    expected = {"count": 0, "count_text": "0", "n": 0, "n_text": "0", "sum_s_p": None, "sum_s_p_text": None,
                "min_length": None, "avg_s_p": None}  # fmt: skip
    assert ask(text.format(""), prices(1)).aggregates == [expected]
    assert ask(text.format("WITHIN 5"), prices(1)).aggregates == [expected]
    assert ask(text.format("WITHIN 5 SLIDE 5"), prices(1)).aggregates == []
    assert ask(text.format("AND [p]"), prices(1)).aggregates == []
    assert ask("PATTERN E+ s[]", prices(1)).aggregates is None


def test_group_by_merges_partitions() -> None:
    rows = at(0, 1, 2, 3, g=[1, 1, 2, None], h=["a", "b", "a", "a"], x=[1, 2, 4, 8])
    base = "PATTERN E+ s[] WHERE [g, h] AGGREGATE COUNT(*), SUM(s.x)"
    rows_of = [list(row.values()) for row in ask(f"{base} GROUP BY g", rows).aggregates or []]
    assert rows_of == [[None, 1, "1", 8, "8"], [1, 2, "2", 3, "3"], [2, 1, "1", 4, "4"]]
    assert len(ask(base, rows).aggregates or []) == 4
    text = "PATTERN E+ s[] WHERE [g] WITHIN 2 SLIDE 2 AGGREGATE COUNT(*) GROUP BY g"
    answer = ask(text, rows).aggregates or []
    expected = [(0, 1, 1), (2, None, 1), (2, 2, 1)]
    assert [(row["window_start"], row["g"], row["count"]) for row in answer] == expected


def test_decimal_sums_have_the_scale_of_the_column() -> None:
    rows = at(0, 1, d=[Decimal("1.50"), Decimal("2")])
    schema = {"t": "int64", "d": "decimal(10,2)"}
    answer = ask("PATTERN E+ s[] AGGREGATE SUM(s.d), AVG(s.d)", rows, schema=schema)
    assert answer.aggregates == [{"sum_s_d": Decimal("3.5"), "sum_s_d_text": "3.50", "avg_s_d": 1.75}]


def test_aggregates_ignore_limit_and_respect_having() -> None:
    text = f"{RISING} HAVING LENGTH >= 2 REPORT any AGGREGATE COUNT(*) ORDER BY LENGTH LIMIT 1"
    assert ask(text, prices(1, 2, 3)).aggregates == [{"count": 4, "count_text": "4"}]


def test_dates_stay_dates() -> None:
    rows = at(0, 1, day=[dt.date(2020, 1, 2), dt.date(2020, 1, 1)])
    answer = ask("PATTERN E+ s[] RETURN MIN(s.day), FIRST(s).day", rows)
    assert answer.rows[0]["min_s_day"] == dt.date(2020, 1, 1)
    assert answer.rows[0]["first_s_day"] == dt.date(2020, 1, 2)
    answer = ask("PATTERN E+ s[] AGGREGATE MAX(s.day)", rows)
    assert answer.aggregates == [{"max_s_day": dt.date(2020, 1, 2)}]


def test_an_empty_input() -> None:
    answer = ask("PATTERN E+ s[] WHERE s.x > 1 AGGREGATE COUNT(*)", [])
    assert (answer.count, answer.rows, answer.counts) == (0, [], [])
    assert answer.aggregates == [{"count": 0, "count_text": "0"}]


# --- Repeated groups ----------------------------------------------------------------------------------------


def cuts(text: str, types: str, x: list[int] | None = None) -> list[str]:
    """Give the results as text, `a0/1 b1/2` for event 0 bound to a in iteration 1 and event 1 to b in iteration 2."""
    rows = at(*range(len(types)), type=list(types), x=x or [0] * len(types))
    trends = ask(text, rows, type="type").trends
    return [
        " ".join(f"{var}{event}/{of}" for (event, var), of in zip(trend.pairs, trend.iterations, strict=True))
        for trend in trends
    ]


def test_iterations_follow_one_another_and_bind_anew() -> None:
    assert cuts("PATTERN SEQ(A a, B b)+ g[] WHERE a.x < b.x", "ABAB", [1, 2, 5, 6]) == [
        "a0/1 b1/1 a2/2 b3/2",
        "a0/1 b3/1",
    ]
    assert cuts("PATTERN SEQ(SEQ(A a, B b){2} g[], C c)", "ABCABC") == ["a0/1 b1/1 a3/2 b4/2 c5/"]


def test_the_same_pairs_cut_otherwise_are_another_trend() -> None:
    assert cuts("PATTERN SEQ(A+ a[])+ g[]", "AA") == ["a0/1 a1/1", "a0/1 a1/2"]
    assert cuts("PATTERN SEQ(SEQ(A a)+ h[])+ g[] REPORT maximal", "AA") == ["a0/1.1 a1/1.2", "a0/1.1 a1/2.1"]


def test_variables_outside_meet_every_iteration() -> None:
    text = "PATTERN SEQ(SEQ(A a, B b)+ g[], C c) WHERE a.x < c.x"
    assert cuts(text, "ABABC", [1, 0, 9, 0, 5]) == ["a0/1 b1/1 c4/", "a0/1 b3/1 c4/"]


def test_iterations_are_compared() -> None:
    text = "PATTERN SEQ(A a, B b)+ g[] WHERE g[i].a.x > g[i-1].b.x REPORT any"
    assert cuts(text, "ABAB", [1, 4, 5, 0]) == ["a0/1 b1/1", "a0/1 b1/1 a2/2 b3/2", "a0/1 b3/1", "a2/1 b3/1"]
    assert cuts(text, "ABAB", [1, 5, 4, 0]) == ["a0/1 b1/1", "a0/1 b3/1", "a2/1 b3/1"]
    assert cuts("PATTERN SEQ(A a, B b){2} g[] WHERE LAST(g).a.x > FIRST(g).a.x", "ABAB", [1, 0, 2, 0]) != []
    assert cuts("PATTERN SEQ(A a, B b){2} g[] WHERE g[2].a.x > g[1].a.x", "ABAB", [2, 0, 1, 0]) == []


def test_counts_of_a_groups_variables_are_of_one_iteration() -> None:
    assert cuts("PATTERN SEQ(A a, B+ b[])+ g[] WHERE COUNT(b) = 2", "ABABB") == [
        "a0/1 b1/1 b3/1",
        "a0/1 b1/1 b4/1",
        "a0/1 b3/1 b4/1",
        "a2/1 b3/1 b4/1",
    ]
    assert cuts("PATTERN SEQ(A a, B+ b[])+ g[] HAVING COUNT(b) = 3 AND COUNT(g) = 2", "ABABB") == [
        "a0/1 b1/1 a2/2 b3/2 b4/2"
    ]


def test_not_at_the_end_of_a_group_reaches_to_the_next_iteration() -> None:
    assert cuts("PATTERN SEQ(A a, B b, NOT(C n))+ g[] REPORT any", "ABCAB") == ["a0/1 b4/1", "a3/1 b4/1"]
    assert cuts("PATTERN SEQ(SEQ(A a, NOT(C n))+ g[], B b) REPORT any", "ACAB") == ["a2/1 b3/"]
