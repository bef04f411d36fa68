"""The results of groups as paths of one graph."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trellis.events.slice import Slice
from trellis.language.bound import BoundQuery, Window, WindowKind
from trellis.language.syntax import Report, Select
from trellis.operators.patterns.report import reported
from trellis.operators.patterns.search import MatchSearch
from trellis.operators.patterns.variables import Variables
from trellis.plan.plan import Plan
from trellis.plan.spec import SEARCH

Ints = NDArray[np.int64]


class BoundVertices(NamedTuple):
    """Events bound to variables: the event of each vertex, as its position in the slice, and its variable."""

    events: Ints
    variables: Ints


@dataclass(frozen=True)
class Paths:
    """Results as paths from vertices without predecessors to vertices without successors.

    Attributes
    ----------
    events, variables
        The event of each vertex, as its position in the slice, and its variable.
    offsets, successors
        The successors of each vertex, in rising order.
    begins
        Where the vertices of each group begin, and where the last ones end.
    ambiguous
        For each group, whether the order of its paths is not that of its results.
    """

    events: Ints
    variables: Ints
    offsets: Ints
    successors: NDArray[np.int32]
    begins: Ints
    ambiguous: NDArray[np.bool_]

    @property
    def vertices(self) -> BoundVertices:
        """The events and variables of the vertices."""
        return BoundVertices(self.events, self.variables)


def plan_over_vertices(plan: Plan, bound: BoundQuery | None = None) -> Plan:
    """Return the plan of the trend operator over vertices, whose paths are the results that a plan asks for.

    `bound` is the query with what it aggregates of the vertices.
    """
    bound = replace(bound or plan.bound, report=Report.UNEXTENDABLE, select=Select.ANY, window=Window(WindowKind.WHOLE))
    return replace(plan, bound=bound, adjacent=(), positions=None, sequence=None)


def find_paths(plan: Plan, events: Slice, variables: Variables, first: int, last: int) -> Paths:
    """Return the results of the groups `[first, last)` of a slice."""
    if plan.positions is not None and plan.operator.method != SEARCH:
        from trellis.operators.patterns.positions import NotSeparable, PositionPaths  # late: it needs `Paths`

        with suppress(NotSeparable):
            return PositionPaths(plan, plan.positions, events, variables, first, last).paths()
    found = [_of_group(plan, events, variables, group) for group in range(first, last)]
    begins = np.concatenate([[0], np.cumsum([len(one.events) for one in found])]).astype(np.int64)
    edges = np.concatenate([[0], np.cumsum([len(one.successors) for one in found])])
    return Paths(
        _joined([one.events for one in found], np.int64),
        _joined([one.variables for one in found], np.int64),
        np.concatenate([[0], *(one.offsets[1:] + edges[i] for i, one in enumerate(found))]).astype(np.int64),
        _joined([one.successors + begins[i] for i, one in enumerate(found)], np.int32),
        begins,
        np.array([one.ambiguous for one in found], np.bool_),
    )


def _of_group(plan: Plan, events: Slice, variables: Variables, group: int) -> Paths:
    lo, hi = int(events.groups.lo[group]), int(events.groups.hi[group])
    search = MatchSearch(plan, events, variables, lo, hi)
    graph = search.run()
    if events.begins is not None:
        graph.starts = [node for node in graph.starts if events.begins[lo + graph.events[node]]]
    one = reported(graph, search.times, plan.bound.report)
    return Paths(
        one.events + lo, one.variables, one.offsets, one.successors, np.array([0, len(one.events)]),
        np.array(one.ambiguous),
    )  # fmt: skip


def _joined(arrays: list[np.ndarray], type_: type) -> np.ndarray:
    return np.concatenate(arrays).astype(type_) if arrays else np.empty(0, type_)
