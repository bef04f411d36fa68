"""Conditions that compare later events with the first one: starts of which these are asked the same share a graph."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import trellis
from tests.compare import assert_same
from tests.profiles import examples
from tests.strategies import Case, among, lists, typed_rows
from trellis.operators.patterns import indexed, positions
from trellis.plan.sizes import Sizes

PATTERNS = {
    "SEQ(A a, B+ b[], A c)": ("c.x = a.x", "c.x > a.x", "c.y != a.y", "b.x <= a.x", "c.x >= LAST(b).x"),
    "SEQ(A a, B+ b[])": ("b.x = a.x", "b.y < a.y", "b.y != a.y"),
    "SEQ(A a, B+ b[], NOT(A d), B? c)": ("c.x = a.x", "b.y >= a.y"),
    "SEQ(A a, B* b[], OR(A c, B d))": ("c.x = a.x", "d.y < a.y", "b.x != a.x"),
}
SCHEMA = {"ts": "int64", "id": "int64", "type": "string", "x": "int64", "y": "double"}
CLAUSES = {
    "report": ("", "REPORT any"),
    "within": ("", "WITHIN 5", "WITHIN 6 SLIDE 3", "WITHIN 9 SLIDE 9"),
    "rest": (
        "",
        "",
        "AGGREGATE COUNT(*), SUM(b.x)",
        "AFTER MATCH SKIP PAST LAST",
        "LIMIT 2 OFFSET 1",
        "HAVING LENGTH > 2",
    ),
}


@st.composite
def cases(draw: Any) -> Case:
    pattern = draw(among(tuple(PATTERNS)))
    where = draw(lists(among(tuple(PATTERNS[pattern])), min_size=1, max_size=2, unique=True))
    where += draw(st.sampled_from(([], ["b[i].x > b[i-1].x"], ["b[i].y <= b[i-1].y"], ["b[i].x = b[i-1].x"])))
    chosen = " ".join(draw(among(some)) for some in CLAUSES.values())
    syntax = trellis.query(f"PATTERN {pattern} WHERE {' AND '.join(where)} {chosen}").syntax
    rows = draw(typed_rows("AAB", 9, 2, nulls=True))
    return Case(syntax, rows, {"time": "ts", "type": "type", "event_id": "id"}, SCHEMA)


@examples(300)
@given(cases(), st.sampled_from((0, indexed.SPARSE)))
def test_results_are_those_of_the_oracle(case: Case, sparse: int) -> None:
    with patch.object(indexed, "SPARSE", sparse):  # without attribute vertices that hold nothing, or with them
        assert_same(case)


def test_graphs_for_which_there_is_no_memory_are_refused_and_counts_explored(monkeypatch: pytest.MonkeyPatch) -> None:
    types = ["A", "A", "B", "B", "B", "C"]
    events = pa.table({"ts": range(6), "id": range(6), "type": types, "x": [1, 1, 1, 2, 3, 1]})
    query = trellis.query("PATTERN SEQ(A a, B+ b[], C c) WHERE c.x = a.x AND b[i].x > b[i-1].x")
    monkeypatch.setattr(positions, "fits_memory", lambda _: False)
    found = query.detect(
        events, time="ts", event_id="id", type="type", sizes=Sizes(small_pairs=-1, unmeasured_edges=-1)
    )
    assert found.count() == 14
    with pytest.raises(trellis.errors.TrellisError, match="pairs that may follow one another in results"):
        found.to_arrow()
