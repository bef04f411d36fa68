"""Conditions on three variables that some values of each meet more easily: counted as the oracle's and as loops do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import trellis
from tests.compare import MANY, assert_same
from tests.profiles import examples
from tests.strategies import Case, among, rows_in_order, typed_rows
from trellis.plan.cuts import ease_of

SIZES = replace(MANY, walked_choices=0)  # whatever is counted is counted as of many events
CONDITIONS = (
    "a.x + b.x < 2 * c.x", "a.y + b.y >= 2 * c.y", "a.x < b.x OR b.x < c.x", "a.x > b.x OR c.y < b.y OR a.x > c.x",
    "(a.x < b.x OR a.x < c.x) AND b.x <= c.x", "ABS(a.x - c.x) < b.x", "NOT (a.y - b.y > c.y)", "a.x * c.x > b.x",
    "a.x - 2 * b.x <= -c.x", "a.y + a.y < b.y + c.y", "a.x / 2 + c.x > b.x", "a.x != b.x OR a.x < c.x",
)  # fmt: skip
PATTERNS = ("SEQ(A a, B b, C c)", "AND(A a, B b, C c)", "SEQ(A a, C c, B b)", "SEQ(A a, AND(B b, C c))")
CLAUSES = ("", "REPORT any", "WITHIN 5", "WITHIN 6 SLIDE 3", "LIMIT 2", "AGGREGATE COUNT(*), SUM(c.x)")
SCHEMA = {"ts": "int64", "id": "int64", "type": "string", "x": "int64", "y": "double"}


def detect(text: str, events: pa.Table) -> Any:
    return trellis.query(f"PATTERN {text}").detect(events, time="ts", event_id="id", type="type", sizes=SIZES)


@examples(150)
@given(st.data())
def test_counts_are_those_of_the_oracle(data: Any) -> None:
    where = " AND ".join(f"({one})" for one in data.draw(st.lists(among(CONDITIONS), min_size=1, max_size=2)))
    rest = data.draw(
        among(("", "REPORT any", "WITHIN 5", "WITHIN 6 SLIDE 3", "LIMIT 2", "AGGREGATE COUNT(*), SUM(b.x)"))
    )
    syntax = trellis.query(f"PATTERN {data.draw(among(PATTERNS))} WHERE {where} {rest}").syntax
    rows = data.draw(rows_in_order(("ABCABC", "AABBCC", "ABCBCAC", "AAABBCC")) | typed_rows("ABC", 9, nulls=True))
    case = Case(syntax, rows, {"time": "ts", "type": "type", "event_id": "id"}, SCHEMA)
    assert_same(case)
    assert_same(case, sizes=SIZES)


TRIPLES: list[tuple[str, Callable[[Any, Any, Any], Any]]] = [
    ("a.y + b.y < 2 * c.y", lambda a, b, c: a + b < 2 * c),
    ("a.y < b.y OR b.y < c.y", lambda a, b, c: (a < b) | (b < c)),
    ("a.y - c.y >= b.y", lambda a, b, c: a - c >= b),
]


@pytest.mark.parametrize(("text", "holds"), TRIPLES)
@pytest.mark.parametrize("size", [1, 40, 150])
@pytest.mark.parametrize("odd", [0.7, np.nan, np.inf])
def test_counts_of_many_are_those_of_loops(
    text: str, holds: Callable[[Any, Any, Any], Any], size: int, odd: float
) -> None:
    rng = np.random.default_rng(size)
    kinds, y = rng.choice([*"ABC"], size), rng.choice([0.1, 0.2, 0.3, 0.30000000000000004, 1.5, odd], size)
    ts = np.sort(rng.integers(0, size, size))
    events = pa.table({"ts": ts, "id": np.arange(size), "type": kinds, "y": y})
    of = [np.flatnonzero(kinds == kind) for kind in "ABC"]
    a, b, c = (own.reshape([-1 if i == k else 1 for i in range(3)]) for k, own in enumerate(of))
    with np.errstate(invalid="ignore"):
        wanted = int(((ts[a] < ts[b]) & (ts[b] < ts[c]) & holds(y[a], y[b], y[c])).sum())
    found = trellis.query(f"PATTERN SEQ(A a, B b, C c) WHERE {text}").detect(
        events, time="ts", event_id="id", type="type"
    )
    assert found.count() == wanted


@pytest.mark.parametrize(
    ("text", "smaller"),
    [
        ("a.x + b.x < c.x", True), ("a.x + b.x > c.x", False), ("c.x - a.x >= b.x", True), ("-a.x < b.x", False),
        ("NOT (a.x < b.x)", False), ("a.x < b.x OR a.x < c.x", True), ("a.x < b.x OR a.x > c.x", None),
        ("a.x * b.x < c.x", None), ("a.x = b.x", None), ("a.x < b.x OR a.y < c.x", None), ("ABS(a.x) < b.x", None),
    ],
)  # fmt: skip
def test_what_is_more_easily_true(text: str, smaller: bool | None) -> None:
    types = {"ts": pa.int64(), "id": pa.int64(), "type": pa.string(), "x": pa.int64(), "y": pa.float64()}
    events = pa.schema(types.items()).empty_table()
    (condition,) = detect(f"SEQ(A a, B b, C c) WHERE {text}", events).plan.bound.conditions
    found = ease_of(condition.value, "a")
    assert (found and found.smaller) == smaller


ABSENT = (
    "n.x > a.x AND n.x < c.x", "n.y > a.y AND n.y + a.y < 2 * c.y", "n.x <= c.x AND n.x != a.x", "n.x + a.x > c.x",
    "n.x < a.x OR n.x < c.x", "n.x = a.x AND n.y >= c.y", "n.x > a.x AND n.x > c.x AND n.y = c.y",
)  # fmt: skip
GAPS = ("SEQ(A a, NOT(B n), C c)", "SEQ(NOT(B n), A a, C c)", "SEQ(A a, C c, NOT(B n))", "SEQ(A a, NOT(B n), C c, B d)",
        "SEQ(D d, A a, NOT(B n), C c)", "SEQ(A a, NOT(B n), AND(C c, D d))")  # fmt: skip


@examples(250)
@given(st.data())
def test_gaps_are_free_as_the_oracle_says(data: Any) -> None:
    pattern, where, rest = (data.draw(among(some)) for some in (GAPS, ABSENT, CLAUSES))
    syntax = trellis.query(f"PATTERN {pattern} WHERE {where} {rest}").syntax
    kinds = ("DABBCD", "DAABCCD", "ABDABCCD") if "D d" in pattern else ("ABBC", "BAABBCC", "ABCBACB", "BABCBCB")
    rows = data.draw(rows_in_order(kinds) | typed_rows("ABBCD", 9, nulls=True))
    case = Case(syntax, rows, {"time": "ts", "type": "type", "event_id": "id"}, SCHEMA)
    assert_same(case)
    assert_same(case, sizes=SIZES)


@pytest.mark.parametrize("pattern", ["SEQ(A a, NOT(B n), C c)", "SEQ(NOT(B n), A a, C c)", "SEQ(A a, C c, NOT(B n))"])
@pytest.mark.parametrize("size", [30, 120])
def test_free_gaps_of_many_are_those_of_loops(pattern: str, size: int) -> None:
    rng = np.random.default_rng(size)
    kinds, x, ts = rng.choice([*"ABC"], size), rng.integers(0, 40, size), np.sort(rng.integers(0, size, size))
    events = pa.table({"ts": ts, "id": np.arange(size), "type": kinds, "x": x, "y": x / 10})
    of = {kind: np.flatnonzero(kinds == kind) for kind in "ABC"}
    wanted = 0
    for a in of["A"]:
        for c in of["C"][ts[of["C"]] > ts[a]]:
            low, high = {"SEQ(N": (-1, ts[a]), "SEQ(A a, N": (ts[a], ts[c]), "SEQ(A a, C": (ts[c], size)}[
                next(key for key in ("SEQ(N", "SEQ(A a, N", "SEQ(A a, C") if pattern.startswith(key))
            ]
            n = of["B"][(ts[of["B"]] > low) & (ts[of["B"]] < high)]
            wanted += not ((x[n] > x[a]) & (x[n] < x[c])).any()
    assert detect(f"{pattern} WHERE n.x > a.x AND n.x < c.x", events).count() == wanted
