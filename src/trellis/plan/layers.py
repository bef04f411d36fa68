"""The positions of a pattern in layers, so that each path has an event that is new: early results of streams.

A match that has a new event has a last one that is. Before it come events of any kind, behind it events that were there
before; so each such match is one path through the layers, and no other match is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from trellis.language.bound import BoundQuery, Window, WindowKind
from trellis.language.syntax import Report, Select
from trellis.plan.plan import Plan
from trellis.plan.positions import PositionGraph, position_graph


class Layer(Enum):
    """Which events a position takes: any, before the last new one; the last new one; those behind it, which are old."""

    ANY = "any"
    NEW = "new"
    OLD = "old"


@dataclass(frozen=True)
class LayeredGraph:
    """A graph over copies of positions, whose variables are called by `variable_of`, and the position of each copy."""

    graph: PositionGraph
    positions: tuple[int, ...]
    layers: tuple[Layer, ...]


def early_positions(plan: Plan) -> PositionGraph | None:
    """Return the positions of a pattern every match of which is a result and stays one, whatever comes; or None."""
    bound = plan.bound
    if bound.report is not Report.ANY or bound.select is not Select.ANY:
        return None
    graph = position_graph(plan.automaton, _without_window(bound), plan.adjacent, plan.other)
    if graph is None or graph.before or graph.after or any(step.absent for step in graph.steps.values()):
        return None
    return replace(graph, span=bound.window.kind is WindowKind.SPAN)


def _without_window(bound: BoundQuery) -> BoundQuery:
    return replace(bound, window=Window(WindowKind.WHOLE))


def variable_of(variable: str, layer: Layer) -> str:
    """Return how the copy of a variable in a layer is called."""
    return f"{variable} {layer.value}"


def layered(graph: PositionGraph, in_order: bool) -> LayeredGraph:
    """Return a graph in layers; `in_order`: no new event is before an old one, so that none is behind the last new one.

    Copies at which matches begin are apart from the others, so that the first event can be carried along.
    """
    copies = [(p, layer, True) for p in graph.firsts for layer in (Layer.ANY, Layer.NEW)]
    inner = (Layer.ANY, Layer.NEW) if in_order else tuple(Layer)
    entered = sorted({target for _, target in graph.steps})
    copies += [(p, layer, False) for p in entered for layer in inner]
    place = {copy: i for i, copy in enumerate(copies)}
    steps = {}
    for (source, target), step in graph.steps.items():
        for begins in (True, False):
            for before, after in (
                (Layer.ANY, Layer.ANY), (Layer.ANY, Layer.NEW), (Layer.NEW, Layer.OLD), (Layer.OLD, Layer.OLD)
            ):  # fmt: skip
                one, other = place.get((source, before, begins)), place.get((target, after, False))
                if one is not None and other is not None:
                    steps[one, other] = step
    positions = [
        replace(graph.positions[p], variable=variable_of(graph.positions[p].variable, layer))
        for p, layer, _ in copies
    ]  # fmt: skip
    firsts = tuple(i for i, (_, _, begins) in enumerate(copies) if begins)
    lasts = tuple(i for i, (p, layer, _) in enumerate(copies) if p in graph.lasts and layer is not Layer.ANY)
    found = PositionGraph(positions, dict(sorted(steps.items())), firsts, lasts, span=graph.span)
    return LayeredGraph(found, tuple(p for p, _, _ in copies), tuple(layer for _, layer, _ in copies))
