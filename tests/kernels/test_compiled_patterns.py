"""Kernels that take the tables of a compiled pattern, by the plain functions that make these, beside all choices.

A naive version of each is a loop over all choices of events, which are asked by a line of Python.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations, pairwise, product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import trellis
from tests.kernels import naive
from trellis.events.slice import Slice
from trellis.operators.batch import PathBatch
from trellis.operators.joins.best import BestMatches
from trellis.operators.joins.structure import JoinStructure
from trellis.operators.patterns import best, pivot_counts
from trellis.operators.patterns.absent import make_variables
from trellis.operators.patterns.explore import Exploration
from trellis.operators.patterns.lazily import FirstResults
from trellis.operators.patterns.structure import PatternStructure
from trellis.plan.plan import Plan
from trellis.plan.sizes import Sizes

Event = dict[str, Any]
Match = tuple[int, ...]


def random_rows(seed: int, n: int) -> list[Event]:
    rng = np.random.default_rng(seed)
    types, values = rng.choice(["A", "B", "C"], n), rng.integers(0, 5, n)
    return [{"t": i // 2, "type": str(types[i]), "x": int(values[i]), "row": i} for i in range(n)]


def given(text: str, rows: list[Event]) -> tuple[Plan, Slice]:
    """The plan of a query, and the events as an operator takes them: these are in order already."""
    results = trellis.query(text).detect(pa.Table.from_pylist(rows), time="t", type="type", event_id="row")
    return results.plan, results.operator.events


def listed(batches: list[PathBatch]) -> list[Match]:
    return [path for batch in batches for path in naive.ragged(batch.positions, batch.offsets[1:])]


# --- Joins -------------------------------------------------------------------------------------------------------

JOINS: list[tuple[str, Callable[..., bool]]] = [
    (
        "SEQ(A a, B b, C c) WHERE a.x < b.x AND a.x != c.x",
        lambda a, b, c: a["t"] < b["t"] < c["t"] and a["x"] < b["x"] and a["x"] != c["x"],
    ),
    ("AND(A a, B b, C c) WHERE a.x + b.x < c.x", lambda a, b, c: a["x"] + b["x"] < c["x"]),
    ("SEQ(A a, AND(B b, C c)) WHERE b.x = c.x", lambda a, b, c: a["t"] < min(b["t"], c["t"]) and b["x"] == c["x"]),
]


def choices(rows: list[Event], holds: Callable[..., bool]) -> list[tuple[int, int, int]]:
    """All that a, b and c may be, as rows."""
    some = ([row for row in rows if row["type"] == kind] for kind in "ABC")
    return [(a["row"], b["row"], c["row"]) for a, b, c in product(*some) if holds(a, b, c)]


@pytest.mark.parametrize(("text", "holds"), JOINS)
@pytest.mark.parametrize("seed", range(3))
def test_joins_are_counted_and_listed(seed: int, text: str, holds: Callable[..., bool]) -> None:
    """`count_join` and `list_matches`."""
    rows = random_rows(seed, 16)
    structure = JoinStructure(*given(f"PATTERN {text}", rows))
    wanted = sorted(tuple(sorted(choice)) for choice in choices(rows, holds))
    assert structure.counts == [len(wanted)]
    assert listed(list(structure.walk([(0, 0, len(wanted))]))) == wanted
    if len(wanted) > 2:
        assert listed(list(structure.walk([(0, 1, len(wanted) - 1)]))) == wanted[1:-1]


@pytest.mark.parametrize("limit", [1, 3, 50])
@pytest.mark.parametrize(("text", "holds"), JOINS)
@pytest.mark.parametrize("seed", range(3))
def test_the_best_matches_of_joins(seed: int, text: str, holds: Callable[..., bool], limit: int) -> None:
    """`best_matches`, which leaves out the first events that `bound_tasks` promises too little of."""
    rows = random_rows(seed, 16)
    plan, events = given(f"PATTERN {text} ORDER BY c.x - a.x DESC, b.x LIMIT {limit}", rows)
    x = [row["x"] for row in rows]
    wanted = sorted(choices(rows, holds), key=lambda m: (x[m[0]] - x[m[2]], x[m[1]], sorted(m)))
    found = BestMatches(JoinStructure(plan, events), events, plan.bound.order_by).find(limit, False)
    assert found is not None
    assert listed([found]) == sorted(tuple(sorted(match)) for match in wanted[:limit])


# --- The exploration ---------------------------------------------------------------------------------------------


def kleene_matches(rows: list[Event], bound: int) -> list[Match]:
    """The matches of `SEQ(A a, B+ b[], C c)` in which the sum of `b.x` is below a bound, as rows in order."""
    found = []
    of = {kind: [row for row in rows if row["type"] == kind] for kind in "ABC"}
    for size in range(1, len(of["B"]) + 1):
        for bs in combinations(of["B"], size):
            rising = all(p["t"] < q["t"] for p, q in pairwise(bs))
            if rising and sum(b["x"] for b in bs) < bound:
                for a, c in product(of["A"], of["C"]):
                    if a["t"] < bs[0]["t"] and bs[-1]["t"] < c["t"]:
                        found.append((a["row"], *(b["row"] for b in bs), c["row"]))
    return sorted(found)


@pytest.mark.parametrize("report", ["any", "unextendable"])
@pytest.mark.parametrize("seed", range(4))
def test_the_first_matches_are_walked_to(seed: int, report: str) -> None:
    """`walk_groups`."""
    rows = random_rows(seed, 14)
    plan, events = given(f"PATTERN SEQ(A a, B+ b[], C c) WHERE SUM(b.x) < 6 REPORT {report}", rows)
    exploration = Exploration(plan, events, make_variables(plan, events))
    matches = kleene_matches(rows, 6)
    for begin, end in ((0, len(matches) + 1), (0, 1), (2, 5)):
        found = FirstResults(plan, events, exploration, 1 << 20).results(begin, end)
        assert found is not None
        listed = [tuple(found.positions[a:b].tolist()) for a, b in pairwise(found.offsets.tolist())]
        assert listed == matches[begin:end]
        assert found.ranks.tolist() == [*range(len(matches))][begin:end]


@pytest.mark.parametrize("seed", range(6))
def test_the_best_matches_with_a_pivot(seed: int) -> None:
    """`best_of_pivots`, `best_values`, `paths_of` and `ranks_of`; and of all matches `count_of_pivots`."""
    rows = random_rows(seed, 16)
    plan, events = given("PATTERN SEQ(A+ a[], B b) WHERE a.x < b.x REPORT any ORDER BY LENGTH DESC LIMIT 4", rows)
    matches = []
    of = {kind: [row for row in rows if row["type"] == kind] for kind in "AB"}
    for b in of["B"]:
        below = [a for a in of["A"] if a["t"] < b["t"] and a["x"] < b["x"]]
        chosen = (some for size in range(1, len(below) + 1) for some in combinations(below, size))
        rising = (some for some in chosen if all(p["t"] < q["t"] for p, q in pairwise(some)))
        matches += [(*(a["row"] for a in some), b["row"]) for some in rising]
    matches.sort()
    found = best.best_by_pivots(PatternStructure(plan, events), plan.bound, False)
    assert found is not None
    taken = events.ids.to_numpy()[found.positions]
    listed = [tuple(taken[a:b].tolist()) for a, b in pairwise(found.offsets.tolist())]
    wanted = sorted(sorted(matches, key=lambda match: -len(match))[:4])  # the first of equal ones; in order of ranks
    assert listed == wanted
    assert found.ranks.tolist() == [matches.index(match) for match in wanted]
    counting = replace(plan, sizes=Sizes(explored_exponent=-1.0))
    assert pivot_counts.counts_by_pivots(counting, events, make_variables(plan, events)) == [len(matches)]


@pytest.mark.parametrize("seed", range(4))
def test_matches_are_counted_beside_longer_ones(seed: int) -> None:
    """`count_beside`."""
    rows = random_rows(seed, 14)
    plan, events = given("PATTERN SEQ(B+ b[], C c) WHERE SUM(b.x) < 6", rows)
    exploration = Exploration(plan, events, make_variables(plan, events))
    matches = {match[1:] for match in kleene_matches([{"type": "A", "x": 0, "t": -1, "row": -1}, *rows], 6)}
    earlier = [match for match in matches if any(other[1:] == match for other in matches)]
    assert exploration.counts_beside(events.groups) == [len(matches) - len(earlier)]


@pytest.mark.parametrize("report", ["any", "unextendable", "maximal"])
@pytest.mark.parametrize("seed", range(4))
def test_matches_are_explored_counted_and_reported(seed: int, report: str) -> None:
    """`explore_groups`, `report_groups` and, where all matches are results, `count_groups`."""
    rows = random_rows(seed, 14)
    plan, events = given(f"PATTERN SEQ(A a, B+ b[], C c) WHERE SUM(b.x) < 6 REPORT {report}", rows)
    exploration = Exploration(plan, events, make_variables(plan, events))
    matches = kleene_matches(rows, 6)
    paths = exploration.paths(events.groups, 0, 1)
    graph = [paths.successors[a:b].tolist() for a, b in pairwise(paths.offsets)]
    found = sorted(tuple(paths.events[v] for v in path) for path in naive.paths_of_task(graph, 0, len(graph)))
    if report == "any":
        assert exploration.counts(events.groups) == [len(matches)]
    if report == "maximal":
        matches = [match for match in matches if not any(set(match) < set(other) for other in matches)]
    assert found == matches
