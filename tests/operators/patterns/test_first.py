"""The first results of patterns by the first groups and the first events of spans: those of the oracle."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import trellis
from tests.compare import assert_same, detect, plain_rows
from tests.strategies import Case
from trellis.events.slice import Slice
from trellis.language.parser import parse
from trellis.operators.patterns.first import first_results
from trellis.operators.patterns.operator import PatternOperator
from trellis.plan.plan import Plan
from trellis.plan.sizes import Sizes

EARLY = Sizes(counted_pairs=-1, first_events=1, walked_firsts=-1)  # even where all are counted sooner, and no walk
PATTERNS = [
    "SEQ(A a, B+ b[]) WHERE COUNT(b) >= 2", "SEQ(A a, B{2,} b[])", "SEQ(A a, B+ b[], C c) WHERE MAX(b.x) > a.x",
    "SEQ(A+ a[], B b) WHERE SUM(a.x) > b.x", "AND(A a, B+ b[]) WHERE a.x <= FIRST(b).x",
    "SEQ(NOT(C n), A a, B+ b[]) WHERE COUNT(b) < 3", "SEQ(A a, B+ b[], NOT(C n)) WHERE MIN(b.x) < a.x",
    "SEQ(A+ a[], OR(B b, C c)) WHERE COUNT(a) != 2", "SEQ(A a, B+ b[] greedy, C? c) WHERE SUM(b.x) >= a.x",
    "SEQ(A a, B b)+ g[] WHERE g[i].a.x >= g[i-1].b.x",
    "SEQ(A+ a[], A+ b[])", "SEQ(B* a[], B b, A+ c[]) WHERE b.x <= FIRST(c).x",
]  # fmt: skip


def random_case(seed: int) -> Case:
    """Draw some events, with ties in time, and a query with LIMIT."""
    rng = random.Random(seed)
    n = rng.choice([0, 1, 5, 8, 10, 11])
    rows = [
        {
            "ts": rng.randrange(2 * n),
            "id": i,
            "kind": rng.choice("AABBBC"),
            "x": rng.randrange(4),
            "g": rng.choice("uv"),
        }
        for i in range(n)
    ]
    pattern = rng.choice(PATTERNS)
    if rng.random() < 0.3:
        pattern += " AND [g]" if "WHERE" in pattern else " WHERE [g]"
    parts = [
        f"PATTERN {pattern}",
        rng.choice(["", "", "HAVING LENGTH >= 3"]),
        rng.choice(["", "", "SELECT skip-till-next", "SELECT contiguous"]),
        f"REPORT {rng.choice(['any', 'unextendable', 'maximal'])}",
        rng.choice(["", "WITHIN 6 SLIDE 3", "WITHIN 3", "WITHIN 5", "WITHIN 8"]),
        f"LIMIT {rng.choice([1, 2, 5, 30])} {rng.choice(['', 'OFFSET 1', 'OFFSET 4'])}",
    ]
    schema = {"ts": "int64", "id": "int64", "kind": "string", "x": "int64", "g": "string"}
    return Case(parse(" ".join(parts)), rows, {"time": "ts", "event_id": "id", "type": "kind"}, schema)


def test_the_first_results_are_those_of_the_oracle() -> None:
    for seed in range(250):
        assert_same(random_case(seed), sizes=EARLY)


def test_no_event_reaches_beyond_what_is_looked_at() -> None:
    """Kernels make room for the events of a group: what reached beyond was written behind it."""
    slices: list[Slice] = []

    class Noting(PatternOperator):
        def __init__(self, plan: Plan, events: Slice, threads: int = 1) -> None:
            slices.append(events)
            super().__init__(plan, events, threads)

    kinds = "BABACBCCB" * 3
    rows = [{"ts": i, "id": i, "kind": kind, "x": i * 7 % 9, "g": "u"} for i, kind in enumerate(kinds)]
    schema = {"ts": "int64", "id": "int64", "kind": "string", "x": "int64", "g": "string"}
    text = "PATTERN SEQ(A a, OR(B b, C+ c[])) WHERE a.x <= c[2].x REPORT any WITHIN 5 LIMIT 1"
    case = Case(parse(text), rows, {"time": "ts", "event_id": "id", "type": "kind"}, schema)
    assert_same(case, sizes=replace(EARLY, explored_exponent=-1.0))
    operator = detect(case, sizes=replace(EARLY, explored_exponent=-1.0)).operator
    first_results(Noting(operator.plan, operator.events), 0, 1)
    assert len(slices) > 1
    for events in slices:
        for lo, hi in zip(events.groups.lo, events.groups.hi, strict=True):
            assert (events.until[lo:hi] <= hi).all()


@pytest.mark.parametrize("having", ["COUNT(b) >= 3", "MAX(b.x) > a.x"])
@pytest.mark.parametrize("within", ["WITHIN 300", "WITHIN 300 SLIDE 300"])
def test_the_first_of_very_many_need_no_graph_of_all(having: str, within: str) -> None:
    rng = np.random.default_rng(1)
    n = 10_000
    kinds = np.array(["A", "B", "C"])[rng.integers(0, 3, n)]
    table = pa.table({"ts": np.arange(n), "id": np.arange(n), "kind": kinds, "x": rng.random(n)})
    text = f"PATTERN SEQ(A a, B+ b[]) WHERE {having} {within} LIMIT 20 OFFSET 5"
    given = {"time": "ts", "event_id": "id", "type": "kind"}
    rows, few = (trellis.query(text).detect(t, **given).to_arrow() for t in (table, table.slice(0, 700)))
    assert rows.num_rows == 20
    assert plain_rows(rows.to_pylist()) == plain_rows(few.to_pylist())
