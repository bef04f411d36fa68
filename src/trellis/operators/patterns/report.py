"""The matches that REPORT gives, as a graph of its own in which every path from a start to an end is one of them.

A longer match that would make one no result is followed beside it: with each node of a match go the nodes that the
longer ones have reached with the same event, bound to the same variable. Where what a node depends on is only its
event and variable these are the node itself, and such matches are left out at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.language.syntax import Report
from trellis.operators.patterns.search import MatchGraph

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class ReportedPaths:
    """The results of a window as paths.

    Vertices are in the order (event, variable, ends before those that go on); every path from a vertex without a
    predecessor to one without a successor is a result, and every result is one path.

    Attributes
    ----------
    events, variables
        The event and the variable of each vertex.
    offsets, successors
        The successors of each vertex, in rising order.
    ambiguous
        Whether two results have the same events bound to different variables, as far as some event.
    """

    events: Ints
    variables: Ints
    offsets: Ints
    successors: NDArray[np.int32]
    ambiguous: bool


def reported(graph: MatchGraph, times: list[Any], mode: Report) -> ReportedPaths:
    """Return the matches of a graph that a mode reports."""
    if mode is Report.ANY:
        return _paths(graph, graph.starts, graph.accepting, graph.successors, list(range(len(graph))))
    pairs = _unextendable(graph, times) if mode is Report.UNEXTENDABLE else _maximal(graph)
    return _paths(graph, *pairs)


# --- Longer matches ---------------------------------------------------------------------------------------------


class _Steps:
    """Successors by (event, variable): a node has at most one for each."""

    def __init__(self, graph: MatchGraph) -> None:
        self._graph = graph
        self._known: dict[int, dict[tuple[int, int], int]] = {}

    def __call__(self, node: int) -> dict[tuple[int, int], int]:
        """Return the successors of a node by their events and variables."""
        found = self._known.get(node)
        if found is None:
            graph = self._graph
            found = {(graph.events[n], graph.variables[n]): n for n in graph.successors[node]}
            self._known[node] = found
        return found


_Product = tuple[list[int], list[bool], list[list[int]], list[int]]


def _unextendable(graph: MatchGraph, times: list[Any]) -> _Product:
    """Follow with each match those that have more before its first event."""
    number = len(graph)
    preceded, followed, reaching = [False] * number, [False] * number, list(graph.accepting)
    for node in _latest_first(graph):
        for after in graph.successors[node]:
            reaching[node] = reaching[node] or reaching[after]
            if times[graph.events[node]] < times[graph.events[after]]:
                preceded[after] = True
                followed[node] = followed[node] or reaching[after]
    at: dict[tuple[int, int], list[int]] = {}
    for node in range(number):
        if preceded[node]:
            at.setdefault((graph.events[node], graph.variables[node]), []).append(node)
    steps = _Steps(graph)

    def begin(node: int) -> frozenset[int]:
        return frozenset(at.get((graph.events[node], graph.variables[node]), ()))

    def step(node: int, longer: frozenset[int], key: tuple[int, int], after: int) -> frozenset[int]:
        return frozenset(steps(other)[key] for other in longer if key in steps(other))

    def is_result(node: int, longer: frozenset[int]) -> bool:
        return graph.accepting[node] and not followed[node] and not any(graph.accepting[n] for n in longer)

    return _product(graph, begin, step, is_result)


def _maximal(graph: MatchGraph) -> _Product:
    """Follow with each match those that have more events anywhere."""
    number = len(graph)
    before = [0] * number  # the predecessors of a node, as bits
    beyond = [0] * number  # what can be reached from it
    reaching = list(graph.accepting)
    followed = [False] * number
    for node in _latest_first(graph):
        for after in graph.successors[node]:
            before[after] |= 1 << node
            beyond[node] |= beyond[after] | 1 << after
            followed[node] = followed[node] or reaching[after]
        reaching[node] = reaching[node] or followed[node]
    at: dict[tuple[int, int], list[int]] = {}
    for node in range(number):
        at.setdefault((graph.events[node], graph.variables[node]), []).append(node)

    def begin(node: int) -> frozenset[int]:
        return frozenset(n for n in at[graph.events[node], graph.variables[node]] if before[n])

    def step(node: int, longer: frozenset[int], key: tuple[int, int], after: int) -> frozenset[int]:
        near = beyond[node]
        for other in longer:
            near |= beyond[other] | 1 << other
        return frozenset(n for n in at[key] if before[n] & near)

    def is_result(node: int, longer: frozenset[int]) -> bool:
        return graph.accepting[node] and not followed[node] and not any(reaching[n] for n in longer)

    return _product(graph, begin, step, is_result)


def _latest_first(graph: MatchGraph) -> list[int]:
    return sorted(range(len(graph)), key=lambda node: -graph.events[node])


def _product(graph: MatchGraph, begin: Any, step: Any, is_result: Any) -> _Product:
    """Return the nodes of matches with what follows them: starts, results, successors, and the nodes themselves."""
    numbers: dict[tuple[int, frozenset[int]], int] = {}
    nodes: list[int] = []
    results: list[bool] = []
    successors: list[list[int]] = []
    waiting: list[tuple[int, frozenset[int]]] = []

    def number(node: int, longer: frozenset[int]) -> int | None:
        if node in longer:
            return None  # the longer match ends wherever this one does
        key = (node, longer)
        if key not in numbers:
            numbers[key] = len(nodes)
            nodes.append(node)
            results.append(is_result(node, longer))
            successors.append([])
            waiting.append(key)
        return numbers[key]

    starts = [one for node in graph.starts if (one := number(node, begin(node))) is not None]
    while waiting:
        node, longer = waiting.pop()
        own = numbers[node, longer]
        for after in graph.successors[node]:
            key = (graph.events[after], graph.variables[after])
            one = number(after, step(node, longer, key, after))
            if one is not None:
                successors[own].append(one)
    return starts, results, successors, nodes


# --- Paths ------------------------------------------------------------------------------------------------------


def _paths(
    graph: MatchGraph, starts: list[int], results: list[bool], successors: list[list[int]], nodes: list[int]
) -> ReportedPaths:
    """Leave out what leads to no result, and tell vertices that end or begin a result from those that do not."""
    order = sorted(range(len(nodes)), key=lambda n: (graph.events[nodes[n]], graph.variables[nodes[n]], n))
    alive = list(results)
    for one in reversed(order):
        alive[one] = alive[one] or any(alive[n] for n in successors[one])
    entered = [False] * len(nodes)
    for one in starts:
        entered[one] = True
    inner = [False] * len(nodes)
    for one in order:
        if entered[one] or inner[one]:
            for after in successors[one]:
                inner[after] = alive[after]
    first = [entered[n] and alive[n] for n in range(len(nodes))]
    goes_on = [any(alive[n] for n in successors[one]) for one in range(len(nodes))]
    vertices: list[tuple[int, bool, bool]] = []  # node, begins, ends
    places: dict[tuple[int, bool, bool], int] = {}
    for one in order:
        for ends in (True, False):
            for begins in (True, False):
                used = (first[one] if begins else inner[one]) and (results[one] if ends else goes_on[one])
                if used:
                    places[one, begins, ends] = len(vertices)
                    vertices.append((one, begins, ends))
    offsets, found = [0], []
    ambiguous = _same_event(graph, nodes, [one for one in starts if alive[one]])
    for one, _, ends in vertices:
        if not ends:
            living = [n for n in successors[one] if alive[n]]
            ambiguous = ambiguous or _same_event(graph, nodes, living)
            row = [places[n, False, e] for n in living for e in (True, False) if (n, False, e) in places]
            found += sorted(row)
        offsets.append(len(found))
    return ReportedPaths(
        np.array([graph.events[nodes[one]] for one, _, _ in vertices], np.int64),
        np.array([graph.variables[nodes[one]] for one, _, _ in vertices], np.int64),
        np.array(offsets, np.int64),
        np.array(found, np.int32),
        ambiguous,
    )


def _same_event(graph: MatchGraph, nodes: list[int], some: list[int]) -> bool:
    events = [graph.events[nodes[one]] for one in some]
    return len(set(events)) < len(events)
