"""The registers of a match of several variables, besides its last event, and their cost: for `explain`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trellis.language import syntax as s
from trellis.language.bound import Condition, Value, WindowKind, columns_of
from trellis.plan.positions import PositionGraph
from trellis.plan.relation import INDEXES, relation_of

if TYPE_CHECKING:
    from trellis.plan.plan import Plan

ORDINAL = {1: "first", 2: "second", 3: "third"}


def pattern_texts(plan: Plan, graph: PositionGraph | None) -> dict[str, str]:
    """Say what a vertex is, what is carried along, how successors are found, and what counting costs.

    Without a graph of positions the pattern is searched.
    """
    if graph is None:
        carried = _carried(plan)
        return {
            "vertices": "vertices are matches so far, told apart by event, variable, state of the pattern and what is "
            "carried",
            "carried": "carried: " + ("; ".join(carried) if carried else "nothing"),
            "counting": "time in the order of the edges between these, for each window; "
            "as many vertices for an event as there are different values carried",
        }
    if graph.compared or (graph.anchored and not graph.indexable):
        first = graph.positions[graph.firsts[0]].variable
        return {
            "vertices": f"vertices are events bound to a variable, for each {first} by itself: that event is carried",
            "carried": "; ".join(_anchored(graph)),
            "successors": "; ".join(_steps(graph)),
            "counting": f"time in the order of the edges of each window, for each {first} in it",
        }
    return {
        "vertices": "vertices are events bound to a variable; nothing else is carried",
        "successors": "; ".join(_steps(graph)),
        "counting": _counting(graph),
    }


def _counting(graph: PositionGraph) -> str:
    if graph.indexable:
        return "time in the order of n log m, with n events at positions and m attribute vertices of each window"
    return "time in the order of the edges of each window; windows that overlap share the search for them"


def _anchored(graph: PositionGraph) -> list[str]:
    first = graph.positions[graph.firsts[0]].variable
    found = [f"carried: {first} for `{c.text}`" for position in graph.positions for c in position.anchored]
    return [*found, *([f"carried: {first} for the span"] if graph.span else [])]


def _steps(graph: PositionGraph) -> list[str]:
    names = [position.variable for position in graph.positions]
    steps = sorted(graph.steps.items(), key=lambda step: (step[0][1], step[0][0]))
    return [f"{names[source]} to {names[target]} {_index(step.conditions)}" for (source, target), step in steps]


def _index(conditions: tuple[Condition, ...]) -> str:
    kind = relation_of(conditions).kind
    if not conditions:
        return "whatever is later"
    return "on the pairs that are left" if kind is None else INDEXES[kind].split(":")[0]


def _carried(plan: Plan) -> list[str]:
    """Return the events that a match so far carries along, each with its condition."""
    bound = plan.bound
    absent = {v.name for v in bound.variables if v.absent}
    found = []
    for condition in plan.other:
        of = [_named(var, which, nth, bound.variable(var).kleene) for var, which, nth in _references(condition.value)
              if var not in absent]  # fmt: skip
        found.append(f"{' and '.join(dict.fromkeys(of))} for `{condition.text}`")
    if plan.automaton.concurrent:
        found.append("the time of each arm of AND")
        found += [f"the last event of {c.variables[0]} for `{c.text}`" for c in plan.adjacent]
    if bound.window.kind is WindowKind.SPAN:
        found.append("the first event, for the span")
    return found


def _references(value: Value) -> list[tuple[str, s.Which, int | None]]:
    return list(dict.fromkeys((c.var, c.which, c.nth) for c in columns_of(value)))


def _named(var: str, which: s.Which, nth: int | None, kleene: bool) -> str:
    if not kleene:
        return f"{var}"
    match which:
        case s.Which.FIRST:
            return f"the first {var}"
        case s.Which.LAST:
            return f"the last {var}"
        case s.Which.NTH:
            return f"the {ORDINAL.get(nth or 1, f'{nth}th')} {var}"
        case s.Which.EACH:
            return f"the different values of every {var}"
        case _:
            return f"the different pairs of consecutive {var}"
