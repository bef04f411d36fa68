"""Matches that go on by comparisons with remembered events: many small groups as the oracle has them, and counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import trellis
from tests.compare import assert_same
from tests.profiles import examples
from tests.strategies import Case
from trellis.language.parser import parse
from trellis.operators.patterns.operator import PatternOperator

PATTERNS = [
    "A+ a[] WHERE [g] AND a[i].x = FIRST(a).x",
    "A+ a[] WHERE [g] AND a[i].y >= FIRST(a).y AND a[i].y > a[i-1].y",
    "SEQ(A a, A+ b[], A c) WHERE [g] AND b.y < a.y AND b[i].y < b[i-1].y AND c.y > LAST(b).y",
    "SEQ(A a, B+ b[], A c) WHERE [g] AND b.x != a.x AND c.x = FIRST(b).x",
    "SEQ(A+ a[], A b) WHERE [g] AND a[i].x >= a[i-1].x AND b.x = LAST(a).x AND b.y <= 1.0",
    "SEQ(A a, OR(B b, A c), A? d) WHERE [g] AND d.x >= a.x",
    "SEQ(A{2,3} a[], B b) WHERE [g] AND a[2].x = b.x",
]
SELECTS = ["skip-till-any", "skip-till-next", "contiguous"]
REPORTS = ["any", "unextendable", "maximal"]
WITHINS = ["", " WITHIN 2", " WITHIN 4 SLIDE 2"]
SCHEMA = {"t": "int64", "id": "int64", "g": "int64", "kind": "string", "x": "int64", "y": "double"}
VALUES = st.tuples(
    st.integers(0, 4), st.sampled_from("AAB"), st.sampled_from([0, 1, 1, None]),
    st.sampled_from([0.0, 1.0, 2.0, float("nan"), None]),
)  # fmt: skip


@examples(150)
@given(
    st.sampled_from(PATTERNS), st.sampled_from(SELECTS), st.sampled_from(REPORTS), st.sampled_from(WITHINS),
    st.lists(st.lists(VALUES, max_size=2), max_size=6), st.lists(VALUES, max_size=7),
)  # fmt: skip
def test_many_small_groups(
    pattern: str, select: str, report: str, within: str, small: list[list[Any]], large: list[Any]
) -> None:
    places = [(g, *row) for g, group in enumerate([*small, large]) for row in group]
    rows = [{"t": t, "id": i, "g": g, "kind": kind, "x": x, "y": y} for i, (g, t, kind, x, y) in enumerate(places)]
    text = f"PATTERN {pattern} SELECT {select} REPORT {report}{within}"
    assert_same(Case(parse(text), rows, {"time": "t", "type": "kind", "event_id": "id", "params": {}}, SCHEMA))


@pytest.mark.parametrize("report", REPORTS)
@pytest.mark.parametrize(
    ("pattern", "select"),
    [
        ("SEQ(B b, skip-till-next SEQ(A? e, skip-till-any A f))", "skip-till-any"),
        ("AND(skip-till-next SEQ(A? e, skip-till-any A? f), A i)", "skip-till-any"),
        ("SEQ(B b, skip-till-any SEQ(A? e, contiguous A f))", "contiguous"),
        ("SEQ(B b, SEQ(A? e, skip-till-any A f)+ g[] skip-till-next)", "skip-till-any"),
    ],
)
def test_the_word_of_the_inner_part_counts(pattern: str, select: str, report: str) -> None:
    rows = [
        {"t": t, "id": i, "kind": kind} for i, (t, kind) in enumerate(zip((0, 0, 1, 2, 2, 3), "ABAABA", strict=True))
    ]
    schema = {name: SCHEMA[name] for name in ("t", "id", "kind")}
    text = f"PATTERN {pattern} SELECT {select} REPORT {report}"
    assert_same(Case(parse(text), rows, {"time": "t", "type": "kind", "event_id": "id", "params": {}}, schema))


@pytest.mark.parametrize("report", ["any", "unextendable"])
def test_short_spans_are_counted_by_graphs(report: str) -> None:
    rng = np.random.default_rng(4)
    events = pa.table({"t": np.sort(rng.integers(0, 4000, 3000)), "g": rng.integers(0, 3, 3000),
                       "x": rng.integers(0, 3, 3000)})  # fmt: skip
    text = f"PATTERN SEQ(A+ a[], A b) WHERE [g] AND a[i].x >= FIRST(a).x AND b.x = FIRST(a).x REPORT {report} WITHIN 20"
    found = trellis.query(text).detect(events, time="t", engine="local")
    operator = found.operator
    assert isinstance(operator, PatternOperator)
    listed = np.bincount(np.concatenate([lot.groups for lot in operator.at_each({g: range(n) for g, n in
                         enumerate(operator.counts) if n})]), minlength=len(operator.counts))  # fmt: skip
    assert listed.tolist() == operator.counts
    if report == "any":
        assert operator.structure.exploration.counts(operator.events.groups) == operator.counts


def test_a_start_of_a_span_that_is_a_match_and_goes_on() -> None:
    events = pa.table({"t": [0, 1, 2], "x": [0, 0, 1]})
    text = "PATTERN SEQ(A a, A? b) WHERE a.x < b.x REPORT any WITHIN 8"
    found = trellis.query(text).detect(events, time="t", engine="local").to_arrow()
    assert list(zip(found["a"].to_pylist(), found["b"].to_pylist(), strict=True)) == [
        (0, None), (0, 2), (1, None), (1, 2), (2, None)
    ]  # fmt: skip
