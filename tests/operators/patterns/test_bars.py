"""What NOT and UNTIL forbid is noted as events come: counts equal those of the graph of matches, and end soon."""

from __future__ import annotations

import random
import time
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import trellis
from trellis.operators.patterns.operator import PatternOperator
from trellis.plan.spec import PATTERNS as PATTERNS_OPERATOR
from trellis.plan.spec import SEARCH, OperatorSpec

SEARCHED = OperatorSpec(PATTERNS_OPERATOR, SEARCH, "")
PATTERNS = [
    "SEQ(A a, B+ b[] UNTIL ({until}), C c)",
    "SEQ(A a, B+ b[], NOT(D d), C c)",
    "SEQ(A a, NOT(D d), B+ b[], NOT(E e), C c)",
    "SEQ(A a, B+ b[] UNTIL ({until}), NOT(D d), C c)",
    "SEQ(A+ a[], NOT(D d), B+ b[], C c)",
    "SEQ(A a, NOT(D d), B? b, C c)",
    "SEQ(A a, B* b[] UNTIL ({until}), NOT(D d), C c, NOT(E e))",
    "SEQ(NOT(E e), A a, B+ b[], NOT(D d), C+ c[] UNTIL (c.x > a.x))",
    "SEQ(A a, OR(B b, SEQ(C c, NOT(D d))), NOT(E e), B+ f[])",
]
UNTILS = ["b.x > a.x", "b.x = a.x", "b.x > 2", "b.x + a.x > 4", "b.x < a.x OR b.y = a.y"]
NOT_D = ["d.x > a.x", "d.x = a.x AND d.y <= a.y", "d.x != c.x", "d.x + d.y > a.x", "d.y = 1", "d.x < FIRST(b).x"]
NOT_E = ["e.x < a.x", "e.y >= a.y AND e.x > 1", "e.x = c.x"]
WITHINS = ["", "WITHIN 6", "WITHIN 8 SLIDE 4"]


def drawn(rng: random.Random) -> tuple[str, pa.Table]:
    """Return a query and events, with ties, and with NULLs."""
    pattern = rng.choice(PATTERNS).format(until=rng.choice(UNTILS))
    conditions = [rng.choice(NOT_D)] * (" d)" in pattern) + [rng.choice(NOT_E)] * (" e)" in pattern)
    conditions += [c for c in ("b.x >= a.x", "c.x > a.y") if rng.random() < 0.3]
    names = {name for name in "abcde" if f" {name}" in pattern}
    conditions = [c for c in conditions if {name for name in "abcde" if f"{name}." in c or f"({name})" in c} <= names]
    where = f" WHERE {' AND '.join(f'({c})' for c in conditions)}" if conditions else ""
    n = rng.randint(3, 18)
    rows: dict[str, Any] = {
        "ts": sorted(rng.randint(0, 14) for _ in range(n)),
        "kind": [rng.choice("AAABBBBCCCDE") for _ in range(n)],
        "x": pa.array([rng.choice([0, 1, 2, 3, 4, None]) for _ in range(n)], pa.int64()),
        "y": pa.array([rng.choice([0.0, 1.0, 2.5]) for _ in range(n)], pa.float64()),
        "id": range(n),
    }
    return f"PATTERN {pattern}{where} REPORT any {rng.choice(WITHINS)}", pa.table(rows)


def compare(seed: int) -> int:
    """Compare the counts of classes with those of the graph of all matches; return how many there are."""
    text, table = drawn(random.Random(seed))
    operator = trellis.query(text).detect(table, time="ts", type="kind", event_id="id", engine="local").operator
    structure = PatternOperator(replace(operator.plan, operator=SEARCHED), operator.events).structure
    listed = [count for part in structure.all_parts() for count in part.operator.counts]
    assert structure.exploration.counts(structure.events.groups) == listed, (seed, text, table.to_pylist())
    return sum(listed)


@pytest.mark.filterwarnings("ignore")
def test_counts_equal_those_of_the_graph() -> None:
    found = [compare(seed) for seed in range(400)]
    assert sum(number > 0 for number in found) > 100


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_counts_equal_those_of_the_graph_in_many_more() -> None:
    for seed in range(400, 6_000):
        compare(seed)


@pytest.mark.parametrize(
    "tail",
    [
        "SEQ(A a, B+ b[] UNTIL (b.x > 1.01 * a.x), C c)",
        "SEQ(A a, B+ b[], NOT(D d), C c) WHERE d.x > a.x",
    ],
)
def test_gaps_are_not_looked_at_again(tail: str) -> None:
    """Beside the same pattern without what is forbidden; a gap looked at for each class takes thousands of times."""
    rng = np.random.default_rng(22)
    kinds = np.array(list("ABCD"))[rng.integers(0, 4, 2_000)]
    table = pa.table({"ts": np.arange(2_000), "id": np.arange(2_000), "kind": kinds, "x": rng.normal(100, 2, 2_000)})

    def seconds(text: str) -> float:
        found = []
        for events in (table.slice(0, 50), table, table):
            begun = time.process_time()
            trellis.query(text).detect(events, time="ts", type="kind", event_id="id", engine="local").count()
            found.append(time.process_time() - begun)
        return min(found[1:])

    plain = seconds("PATTERN SEQ(A a, B+ b[], C c) WHERE b.x > a.x REPORT any")
    assert seconds(f"PATTERN {tail} REPORT any") < 20 * plain + 0.1
