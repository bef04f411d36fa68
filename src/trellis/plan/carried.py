"""The registers of a match of several variables, besides its last event, and their cost: for `explain`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from trellis.language.bound import Condition, ConditionKind, WindowKind
from trellis.language.syntax import Report, Select
from trellis.plan.index_cost import INDEXES
from trellis.plan.positions import PositionGraph
from trellis.plan.registers import GuardTerm, Register, RegisterKind, guard_terms_of, register_text, variables_behind
from trellis.plan.relation import relation_of

if TYPE_CHECKING:
    from trellis.plan.plan import Plan


RUNNING = (RegisterKind.SET, *(kind for kind in RegisterKind if kind >= RegisterKind.TALLY))


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
            "counting": _searching(plan),
        }
    if graph.compared or (graph.anchored and not graph.indexable):
        first = _beginning(graph)
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


def _searching(plan: Plan) -> str:
    if counts_alone(plan) or counts_beside(plan):
        return "without edges: time in the order of the events of a window, times the different values carried in it"
    return (
        "time in the order of the edges between these, for each window; "
        "as many vertices for an event as there are different values carried"
    )


def counts_alone(plan: Plan, without_ties: bool = False) -> bool:
    """Return whether a search counts without a graph; arms of AND are taken in any order where no events have one time.

    Under REPORT unextendable nothing may be put before a match. What may be put after it is told for all matches with
    the same rest: REPORT does not look at iterations, and HAVING does not change what is complete.
    """
    bound, automaton = plan.bound, plan.automaton
    if bound.having or automaton.paced or bound.select is not Select.ANY or not _is_serial(plan, without_ties):
        return False
    if bound.report is not Report.UNEXTENDABLE or automaton.is_preceded():
        return bound.report is Report.ANY
    return ends_are_known(plan)


def ends_are_known(plan: Plan) -> bool:
    """Return whether a search tells without a graph what may be put after matches."""
    bound, automaton = plan.bound, plan.automaton
    plain = not (bound.filters or automaton.worded or automaton.grouped or automaton.composite)
    return (plain and not automaton.forbids_behind()) or not automaton.is_followed()


def _is_serial(plan: Plan, without_ties: bool) -> bool:
    """Return whether events that follow one another in a match are never at one time."""
    return not plan.automaton.concurrent or (without_ties and not any(v.absent for v in plan.bound.variables))


def counts_beside(plan: Plan, without_ties: bool = False) -> bool:
    """Return whether a search under REPORT unextendable counts matches beside those that begin before, without a graph.

    What may be put after a match is told as in `counts_alone`. At an edge a NOT of a span forbids more or less by what
    is put there.
    """
    bound, automaton = plan.bound, plan.automaton
    if bound.report is not Report.UNEXTENDABLE or bound.select is not Select.ANY or bound.having or bound.filters:
        return False
    if automaton.worded or automaton.grouped or not automaton.complete or automaton.composite:
        return False
    if not _is_serial(plan, without_ties):
        return False
    if not any(v.absent for v in bound.variables):
        return True
    at_edge = any(one.guards for one in automaton.accepting)
    at_edge |= any(one.guards for one in automaton.transitions if one.source == 0)
    return ends_are_known(plan) and not (at_edge and bound.window.kind is WindowKind.SPAN)


def _counting(graph: PositionGraph) -> str:
    if graph.indexable:
        return "time in the order of n log m, with n events at positions and m attribute vertices of each window"
    return "time in the order of the edges of each window; windows that overlap share the search for them"


def _beginning(graph: PositionGraph) -> str:
    return " or ".join(graph.positions[first].variable for first in graph.firsts)


def _anchored(graph: PositionGraph) -> list[str]:
    first = _beginning(graph)
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
    """Return the registers of a match so far, each with its condition."""
    bound = plan.bound
    found = dict.fromkeys(
        (register_text(register, one.singles), one.condition.text) for one, register in kept_registers(plan)
    )
    texts = [f"{register} for `{condition}`" for register, condition in found]
    if plan.automaton.concurrent and any(v.absent for v in bound.variables):
        texts.append("the time of each arm of AND, for NOT")
    if bound.window.kind is WindowKind.SPAN:
        texts.append("the end of the span")
    return texts


def kept_registers(plan: Plan) -> Iterator[tuple[GuardTerm, Register]]:
    """Yield the registers of a match so far that outlive the event that they are of, with what asks for them."""
    behind = variables_behind(plan.automaton)
    for one in guard_terms_of(plan.bound):
        for reference in one.references:
            register = one.register(reference)
            if register is None or not _is_kept(one, register, plan, behind):
                continue
            if register.kind is RegisterKind.PAIRS and one.condition.kind is ConditionKind.ADJACENT:
                register = Register(RegisterKind.LAST, register.variable)
            yield one, register


def _is_kept(one: GuardTerm, register: Register, plan: Plan, behind: dict[str, frozenset[str]]) -> bool:
    """Return whether a register outlives the event that it is of; else it is the vertex."""
    if one.absent is not None or one.late or one.result or not plan.automaton.complete:
        return True
    if one.so_far and register.kind in RUNNING:
        return True
    open_ = behind.get(register.variable, frozenset())
    if (one.variables - {register.variable}) & open_:
        return True
    own = register.variable in open_
    return own and (register.kind is RegisterKind.FIRST or plan.automaton.concurrent)
