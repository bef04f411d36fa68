"""Counts, and ORDER BY with LIMIT, where all conditions compare with one event: each such event has an automaton."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import trellis
from tests.compare import assert_same, detect
from tests.profiles import examples
from tests.strategies import EITHER, Case, among, lists
from trellis.plan.pivots import pivots_that_count
from trellis.plan.sizes import Sizes

SEARCHED = Sizes(counted_pairs=-1)
COUNTED = Sizes(counted_pairs=-1, small_pairs=-1, explored_exponent=-1.0)
PAIR = ("a.x < b.x", "a.y != b.y", "ABS(a.y - b.y) <= 0.5", "a.x > b.x OR a.y = b.y", "2 * a.x + b.x > 3", "a.y <= b.x")
PATTERNS = {
    "SEQ(A+ a[], B b)": (*PAIR, "LAST(a).x >= b.x", "FIRST(a).x < b.x", "a[2].x > b.x", "MAX(a.x) > b.x",
                         "MIN(a.y) < b.y", "MIN(a.x) >= b.x", "a[2].y != b.y"),
    "SEQ(A a, B+ b[])": (*PAIR, "LAST(b).x >= a.x", "a.y > FIRST(b).y", "MAX(b.x) > a.x", "b[3].x <= a.x"),
    "SEQ(A a, B+ b[], C c)": ("a.x < c.x", "b.y != c.x", "LAST(b).y < c.y", "MAX(b.x) > c.x", "b[2].x >= c.x"),
    "SEQ(A+ a[], B? b, C c)": ("a.x < c.x", "b.x < c.x", "a[2].x = c.x", "MAX(a.x) > c.x"),
    "SEQ(A{1,2} a[], OR(B b, C+ c[]), D d)": ("a.x < d.x", "b.x < d.x", "LAST(c).x < d.x"),
    "SEQ(A+ a[], B+ b[])": ("a.x < b.x", "a.y >= b.y", "2 * a.x <= b.x", "b.y > a.y", "b.y - a.y > 0.5",
                             "a.x + b.x < 4",
                             "2 * a.x + b.x > 3", "a.x + 1 < b.x"),
    "SEQ(A+ a[], B b, C+ c[])": ("a.x < c.x", "c.y <= a.y", "a.x < b.x", "b.x < c.x", "LAST(a).x <= b.x",
                                 "b.y != FIRST(c).y", "MIN(c.x) < b.x"),
    "AND(A+ a[], B+ b[])": ("a.x < b.x", "a.y >= b.y", "a.x <= b.x", "b.x - a.x > 0"),
    "SEQ(A+ a[], C? c, B+ b[])": ("a.x < b.x", "a.y > b.y"),
    "SEQ(A a, B+ b[], C{2} c[], D+ d[])": ("b.x < d.x", "b.x >= d.x"),
    "AND(A+ a[], B b)": (*PAIR, "LAST(a).x > b.x"),
    "AND(A+ a[], B b, C? c)": ("a.x < b.x", "b.y <= c.y"),
    "SEQ(SEQ(A a, B b)+ g[], C c)": ("a.x < c.x", "b.x != c.x"),
    "SEQ(C c, SEQ(A a, B+ b[])+ g[])": ("a.x < c.x", "b.x != c.x"),
}  # fmt: skip
CLAUSES = {
    "report": ("", "", "REPORT any"),
    "within": ("", "", "WITHIN 6 SLIDE 3", "WITHIN 4 SLIDE 4", "WITHIN 4", "WITHIN 7"),
}
KEYS = ("LENGTH DESC", "LENGTH", "SUM({0}.x) DESC", "{0}[1].x", "SUM({0}.y)", "LENGTH DESC, SUM({0}.x)",
        "COUNT({0}) DESC",
        "LAST({0}).x DESC", "{1}.x DESC", "LENGTH, {1}.y", "AVG({0}.x) DESC")  # fmt: skip
LIMITS = ("LIMIT 1", "LIMIT 3", "LIMIT 3 OFFSET 2", "LIMIT 2 PER WINDOW", "LIMIT 100")
ROWS = lists(
    st.fixed_dictionaries(
        {
            "ts": st.integers(0, 9),
            "type": st.integers(0, 11),
            "x": among((0, 1, 2, 3, 0, 1, 2, 3, None)),
            "y": among((0.0, 0.5, 1.0, -0.0, 0.5, 1.0, 0.0, None, math.nan)),
        }
    ),
    min_size=5,
    max_size=11,
)
SCHEMA = {"ts": "int64", "id": "int64", "type": "string", "x": "int64", "y": "double"}
OPTIONS = {"time": "ts", "type": "type", "event_id": "id"}


@st.composite
def cases(draw: Any, arranged: bool = True) -> Case:
    pattern = draw(among(tuple(PATTERNS)))
    where = draw(lists(among(PATTERNS[pattern]), min_size=1, max_size=2, unique=True))
    clauses = " ".join(draw(among(some)) for some in CLAUSES.values())
    kleene = next((name for name in "abc" if f"{name}[]" in pattern), None)
    single = "c" if "g[]" in pattern else next((n for n in "bac" if f" {n}," in pattern or f" {n})" in pattern), "")
    keys = [key for key in KEYS if (kleene or "{0}" not in key) and (single or "{1}" not in key)]
    text = f"PATTERN {pattern} WHERE {' AND '.join(where)} {clauses}"
    if arranged:
        text += f" ORDER BY {draw(among(tuple(keys))).format(kleene, single)} {draw(among(LIMITS))}"
    kinds = "ABCD" if " d" in pattern else "ABC" if " c" in pattern else "AB"
    rows = draw(ROWS)
    drawn = [{**row, "id": i, "type": kinds[row["type"] % len(kinds)]} for i, row in enumerate(rows)]
    if draw(among((True, True, False))):  # a time for each event, so that many results are long
        drawn = [{**row, "ts": ts} for ts, row in enumerate(drawn)]
    if draw(EITHER):  # the last kinds come last
        drawn = [{**row, "type": kind} for row, kind in zip(drawn, sorted(row["type"] for row in drawn), strict=True)]
    if not arranged and draw(EITHER):  # events may have several variables
        text = re.sub(r"\b[BCD](?=[+?{]| [a-d]\b)", "A", text)
    return Case(trellis.query(text).syntax, drawn, OPTIONS, SCHEMA)


@examples(500)
@given(cases())
def test_the_best_results_are_those_of_the_oracle(case: Case) -> None:
    assert_same(case, sizes=SEARCHED)


@examples(400)
@given(cases(arranged=False))
def test_counts_are_those_of_the_oracle(case: Case) -> None:
    assert_same(case, sizes=COUNTED)


@pytest.mark.parametrize(
    ("text", "pivot"),
    [
        ("AND(A+ a[], B b) WHERE a.x < b.x", "b"),
        ("AND(A+ a[], B+ b[]) WHERE a.x < b.x", "a"),
        ("SEQ(A+ a[], A+ b[]) WHERE a.x < b.x", "a"),
        ("SEQ(A+ a[], B b, C+ c[]) WHERE a.x < b.x OR a.y = b.y WITHIN 9", "b"),
        ("SEQ(A+ a[], B b) WHERE a.x < b.x", None),  # one number is remembered, which is sooner done
        ("AND(A+ a[], B b) WHERE a.x < b.x REPORT maximal", None),
        ("AND(A+ a[], B b) WHERE a.x < b.x SELECT skip-till-next", None),
        ("AND(A+ a[], B b) WHERE a.x < b.x HAVING LENGTH > 2", None),
        ("AND(A+ a[], B b) WHERE a.x < b.x AND SUM(a.x) < 9", None),
        ("AND(A+ a[], B+ b[]) WHERE ABS(a.x - b.x) < 2", None),
    ],
)
def test_what_is_counted_by_pivots(text: str, pivot: str | None) -> None:
    rows = [{"ts": 1, "id": 1, "type": "A", "x": 1, "y": 0.0}]
    plan = detect(Case(trellis.query(f"PATTERN {text}").syntax, rows, OPTIONS, SCHEMA)).plan
    found = pivots_that_count(plan)
    assert (found and found.pivot) == pivot


@pytest.mark.parametrize("report", ["", "REPORT any"])
def test_counts_beyond_64_bits(report: str) -> None:
    """Of `AND(A+, B)` with any number of `A` below: all sets of these, or under `unextendable` those with both ends."""
    size = 700
    events = table(size, "AB", np.random.default_rng(5))
    found = trellis.query(f"PATTERN AND(A+ a[], B b) WHERE a.x < b.x {report}").detect(events, **OPTIONS)
    rows = events.to_pylist()
    total = 0
    for b in (row for row in rows if row["type"] == "B"):
        below = [row["ts"] for row in rows if row["type"] == "A" and row["x"] < b["x"]]
        before, behind = sum(ts < b["ts"] for ts in below), sum(ts > b["ts"] for ts in below)
        if report:
            total += 2 ** len(below) - 1
        elif below:
            total += (2 ** (before - 1) if before else 1) * (2 ** (behind - 1) if behind else 1)
    assert found.count() == total > 2**128


def table(size: int, kinds: str, rng: np.random.Generator) -> pa.Table:
    kind = rng.integers(0, len(kinds), size)
    return pa.table({
        "ts": range(size), "id": range(size), "type": [kinds[k] for k in kind], "x": rng.permutation(size),
    })  # fmt: skip


def test_the_longest_of_more_matches_than_a_graph_holds() -> None:
    events = table(4000, "AB", np.random.default_rng(3))
    found = trellis.query("PATTERN SEQ(A+ a[], B b) WHERE a.x < b.x ORDER BY LENGTH DESC LIMIT 2").detect(
        events, **OPTIONS
    )
    below: list[int] = []
    longest: tuple[int, list[int]] = (0, [])
    for event in events.to_pylist():
        if event["type"] == "A":
            below.append(event["id"])
        else:
            own = [one for one in below if events["x"][one].as_py() < event["x"]]
            longest = max(longest, (len(own), [*own, event["id"]]), key=lambda one: one[0])
    rows = found.to_arrow().to_pylist()
    assert rows[0]["events"] == longest[1]
    assert rows[1]["length"] == longest[0]
    assert [row["rank"] for row in rows] == [None] * 2


@pytest.mark.parametrize("where", ["MAX(a.x) > b.x", "a[2].x > b.x", "LAST(a).x < b.x"])
def test_ranks_beyond_64_bits_are_null(where: str) -> None:
    events = table(3000, "AB", np.random.default_rng(3))
    query = trellis.query(f"PATTERN SEQ(A+ a[], B b) WHERE {where} REPORT any ORDER BY SUM(a.x), LENGTH LIMIT 3")
    rows = query.detect(events, **OPTIONS).to_arrow().to_pylist()
    assert [row["rank"] for row in rows] == [None] * 3
    x = events["x"].to_pylist()
    keys = [(sum(x[one] for one in row["events"][:-1]), row["length"]) for row in rows]
    assert keys == sorted(keys)


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("report", ["", "REPORT any"])
@pytest.mark.parametrize("window", ["WITHIN 16 SLIDE 8", "WITHIN 6"])
def test_the_best_are_the_first_of_all_in_their_order(pattern: str, report: str, window: str) -> None:
    kinds = "ABCD" if " d" in pattern else "ABC" if " c" in pattern else "AB"
    rng = np.random.default_rng(len(pattern))
    events = table(16, kinds, rng).append_column("y", pa.array(rng.integers(0, 5, 16) / 2))
    for where in PATTERNS[pattern]:
        text = f"PATTERN {pattern} WHERE {where} {report} {window}"
        rows = trellis.query(text).detect(events, **OPTIONS).to_arrow().to_pylist()
        lengths = [row["length"] for row in rows]
        for order, key in ((np.negative(lengths), "LENGTH DESC"), (lengths, "LENGTH"), ([0] * len(rows), "0 * LENGTH")):
            first = [rows[i] for i in np.argsort(order, kind="stable")[2:7]]
            best = trellis.query(f"{text} ORDER BY {key} LIMIT 5 OFFSET 2").detect(events, sizes=SEARCHED, **OPTIONS)
            assert best.to_arrow().to_pylist() == first
