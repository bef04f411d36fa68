"""Cases that named algorithms take, and how what they find is compared."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

from hypothesis import strategies as st

from tests.compare import plain_rows
from tests.strategies import Case, case
from trellis.language import syntax as s
from trellis.operators.batch import PathBatch
from trellis.papers.contract import AlgorithmInput
from trellis.papers.registry import load

CONSTRUCTIONS = ("dynamic", "dynamic-range", "parallel")


@st.composite
def named_cases(draw: Any, *, most: int = 10, clauses: bool = True) -> Case:
    """Draw a query that a named algorithm takes: windows or none, skip-till-any, no HAVING, no LIMIT PER item."""
    drawn = draw(case(most=most, clauses=clauses))
    within = drawn.query.within
    if within is not None and within.slide is None:
        within = s.WithinClause(within.size, within.size)
    taken = replace(drawn.query, select=s.Select.ANY, having=(), limit_per=(), within=within)
    return replace(drawn, query=taken)


def comparable(case: Case, rows: list[dict[str, Any]]) -> Any:
    """Return rows as they are where the query orders them; else in an order of their own."""
    query = case.query
    plain = plain_rows(rows)
    ordered = query.order_by or query.limit is not None or query.offset or query.aggregates
    return plain if ordered else sorted(plain, key=repr)


def paths_of(work: AlgorithmInput, name: str) -> list[tuple[int, ...]]:
    """Return all that an algorithm finds on an input, each trend behind its task, sorted."""
    found = [path for some in load(name)(work) for path in _paths(some)]
    return sorted(found)


def _paths(found: PathBatch) -> list[tuple[int, ...]]:
    """The events of each trend behind its task."""
    cuts = zip(found.groups.tolist(), pairwise(found.offsets), strict=True)
    return [(task, *found.positions[begin:end].tolist()) for task, (begin, end) in cuts]
