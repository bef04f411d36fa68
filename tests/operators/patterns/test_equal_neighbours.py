"""Attributes of neighbouring variables that must be equal: each event is compared with the one before, on an index."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import trellis
from tests.compare import assert_same
from tests.profiles import examples
from tests.strategies import EITHER, Case, among, lists

PATTERNS = {
    "SEQ(A a, A+ b[])": ("b.x = a.x", "a.y = b.y", "b.x > a.x", "b.x = a.k"),
    "SEQ(A+ a[], B b)": ("b.x = a.x", "a.y = b.y", "LAST(a).k < b.k", "b.k = a.x"),
    "SEQ(A+ a[], A+ b[])": ("b.x = a.x", "a.y = b.y", "a[i].k > a[i-1].k", "b.k = a.x"),
    "SEQ(A a, B+ b[], A c)": (
        "b.x = a.x",
        "c.x = a.x",
        "c.x = b.x",
        "c.y = a.y",
        "b.y = c.y",
        "a.k < c.k",
        "a.x = b.k",
    ),
    "SEQ(A+ a[], A b, A+ c[])": ("a.x = c.x", "b.x = c.x", "a.y = b.y", "a.x = b.x", "c.y = a.y"),
    "SEQ(A a, NOT(B n), A{2,} b[])": ("a.x = b.x", "n.x = a.x", "n.k = b.k", "b.y = a.y"),
    "SEQ(NOT(B n), A+ a[], A b)": ("a.x = b.x", "n.x = a.x", "n.y = b.y"),
    "SEQ(A a, B? b, A+ c[])": ("a.x = c.x", "b.x = c.x", "a.x = b.x"),
    "SEQ(A a, B* b[], A+ c[])": ("a.x = c.x", "b.x = c.x", "a.x = b.x"),
    "SEQ(OR(A a, B b), A+ c[], A d)": ("c.x = d.x", "a.x = c.x", "b.y = d.y"),
    "SEQ(A a, A+ b[] contiguous, A+ c[])": ("a.x = b.x", "b.x = c.x", "a.x = c.x"),
    "SEQ(A a, contiguous A+ b[], A c)": ("a.x = b.x", "b.x = c.x", "a.x = c.x"),
    "SEQ(SEQ(A a, B+ b[])+ g[], A c)": ("a.x = b.x", "b.x = c.x"),
}
CLAUSES = (
    ("", "", "REPORT any", "REPORT maximal"),
    ("", "", "SELECT skip-till-next", "SELECT contiguous"),
    ("", "", "WITHIN 6 SLIDE 3", "WITHIN 4", "WITHIN 7"),
)
SCHEMA = {"ts": "int64", "id": "int64", "type": "string", "x": "int64", "k": "int64", "y": "double"}
OPTIONS = {"time": "ts", "type": "type", "event_id": "id"}
ROWS = lists(
    st.fixed_dictionaries(
        {
            "ts": st.integers(0, 9),
            "type": among("AAB"),
            "x": among((0, 1, 0, 1, 0, None)),
            "k": among((0, 1, 2)),
            "y": among((0.0, -0.0, 1.0, 0.0, None, math.nan)),
        }
    ),
    min_size=5,
    max_size=10,
)


@st.composite
def cases(draw: Any) -> Case:
    pattern = draw(among(tuple(PATTERNS)))
    where = draw(lists(among(PATTERNS[pattern]), min_size=1, max_size=3, unique=True))
    clauses = " ".join(draw(among(some)) for some in CLAUSES)
    rows = [{**row, "id": i} for i, row in enumerate(draw(ROWS))]
    if draw(EITHER):  # a time for each event, so that many results are long
        rows = [{**row, "ts": ts} for ts, row in enumerate(rows)]
    return Case(trellis.query(f"PATTERN {pattern} WHERE {' AND '.join(where)} {clauses}").syntax, rows, OPTIONS, SCHEMA)


@examples(400)
@given(cases())
def test_results_are_those_of_the_oracle(case: Case) -> None:
    assert_same(case)


@pytest.mark.parametrize(
    ("text", "indexed"),
    [
        ("SEQ(A a, A+ b[]) WHERE b.x = a.x", True),
        ("SEQ(A+ a[], A b) WHERE b.x = a.x WITHIN 9", True),
        ("SEQ(A+ a[], A+ b[]) WHERE b.x = a.x WITHIN 9", True),
        ("SEQ(A a, A+ b[], A c) WHERE b.x = a.x AND c.x = a.x", True),
        ("SEQ(A a, A+ b[], A c) WHERE b.x = a.x AND c.x = a.x AND a.y = b.y", True),
        ("SEQ(A a, A+ b[], A c) WHERE b.x = a.x AND c.x = b.x AND c.x = a.x", False),  # one more than is needed
        ("SEQ(A a, A+ b[], A c) WHERE c.x = a.x", False),  # no neighbours
        ("SEQ(A a, A+ b[]) WHERE b.x = a.y", False),  # of two types
        ("SEQ(A a, A+ b[]) WHERE b.x = a.x AND b.k = a.x", False),
        ("SEQ(A a, A+ b[]) WHERE b.x = a.x SELECT skip-till-next", False),
    ],
)
def test_what_is_counted_on_indexes(text: str, indexed: bool) -> None:
    rng = np.random.default_rng(1)
    columns = {name: rng.integers(0, 3, 60) for name in ("x", "k")}
    events = pa.table(
        {"ts": np.arange(60), "id": np.arange(60), "type": ["A"] * 60, **columns, "y": rng.integers(0, 3, 60) * 1.0}
    )
    found = trellis.query(f"PATTERN {text}").detect(events, **OPTIONS)
    assert found.count()
    assert ("on indexes of steps" in found.describe()["vertices"]) == indexed


def test_a_reason_tells_conditions_as_they_are_written() -> None:
    rows = [{"ts": i, "id": i, "type": "A", "x": x, "k": 0, "y": 0.0} for i, x in enumerate((1, 1, 2))]
    query = trellis.query("PATTERN SEQ(A a, A+ b[], A c) WHERE b.x = a.x AND c.x = a.x")
    told = str(query.why_not(pa.Table.from_pylist(rows), [0, 1, 2], **OPTIONS))
    assert "c.x = a.x" in told
    assert "b[i]" not in told
