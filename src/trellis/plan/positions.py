"""The view of a pattern whose conditions look at neighbours only: positions, and steps that conditions guard.

A condition between two variables is asked of the last event of the one and the first of the other. One that speaks of
every event of a Kleene variable is so too where its values only rise or fall: `a.x < b.x` holds for all of `b` if it
holds for the first and `b.x < NEXT(b).x`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from trellis.language import syntax as s
from trellis.language.bound import (
    BoundQuery,
    Condition,
    ConditionKind,
    Operation,
    Value,
    WindowKind,
    columns_of,
    with_columns,
)
from trellis.language.once import MadeOnce, once
from trellis.plan.automaton import Automaton
from trellis.plan.cuts import FLIPPED
from trellis.plan.relation import comparison, relation_of, terms

RISING, FALLING = (">", ">="), ("<", "<=")


@dataclass
class GuardedPosition:
    """A variable of the pattern, or some of its events by their number; `kleene` tells of the variable.

    `anchored` is asked of each of these events and the first event of the match.
    """

    variable: str
    kleene: bool
    anchored: tuple[Condition, ...] = ()


@dataclass
class GuardedStep:
    """The conditions on two events that follow one another, and the variables of NOT between them."""

    conditions: tuple[Condition, ...] = ()
    absent: tuple[str, ...] = ()


@dataclass
class PositionGraph:
    """The positions of a pattern in its order, and the steps between them.

    Attributes
    ----------
    firsts, lasts
        The positions at which a match may begin and end.
    before, after
        The variables of NOT before the first and after the last event.
    span
        Whether the window is a span from the first event on.
    indexable
        Whether results can be counted on an index for each step, without edges, unless values forbid it.
    indexable_apart
        Whether that can be done for first events of which later ones are asked the same, by themselves.
    """

    positions: list[GuardedPosition]
    steps: dict[tuple[int, int], GuardedStep]
    firsts: tuple[int, ...] = ()
    lasts: tuple[int, ...] = ()
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    span: bool = False
    indexable: bool = field(default=False)
    indexable_apart: bool = field(default=False)
    made: MadeOnce = field(default_factory=MadeOnce, init=False, repr=False, compare=False)

    @property
    def compared(self) -> bool:
        """Whether later events are compared with the first one."""
        return any(position.anchored for position in self.positions)

    @property
    def is_counted(self) -> bool:
        """Whether a variable has several positions."""
        return len({position.variable for position in self.positions}) < len(self.positions)

    def step_before(self, first: int) -> tuple[int, int] | None:
        """Return the step that tells what may be put before an event with which matches begin; None if nothing may.

        Where events are counted, those of a variable that takes any number of them are put before as they are repeated.
        """
        places = self.places_of(self.positions[first].variable)
        return next(((p, p) for p in (first, *places) if (p, p) in self.steps), None)

    def step_after(self, last: int) -> tuple[int, int] | None:
        """Return the step by which an event of the same variable is put after one with which matches end, if any."""
        variable = self.positions[last].variable
        return next(
            (step for step in self.steps if step[0] == last and self.positions[step[1]].variable == variable), None
        )

    @property
    def is_preceded(self) -> bool:
        """Whether something may be put before a match, so that what precedes its first event decides."""
        return any(p in self.entered or self.step_before(p) for p in self.firsts)

    @property
    def counts_first(self) -> bool:
        """Whether what may be put before the first event of a match is no vertex that leads to it."""
        return any(p not in self.entered and self.step_before(p) for p in self.firsts)

    def places_of(self, variable: str) -> list[int]:
        """Return the positions of a variable."""
        return [i for i, position in enumerate(self.positions) if position.variable == variable]

    @property
    def is_ordered(self) -> bool:
        """Whether later events are compared with the first one, and some of them with the one before by more than `=`.

        Then how a match goes on depends on its first and on its last event.
        """
        later = [step.conditions for (source, _), step in self.steps.items() if source not in self.firsts]
        return self.compared and any(relation_of(conditions).kind != "key" for conditions in later if conditions)

    @property
    def anchored(self) -> bool:
        """Whether the first event of a match has to be carried along."""
        return self.span or self.compared

    @property
    def columns(self) -> set[str]:
        """The attributes that steps compare."""
        conditions = (condition for step in self.steps.values() for condition in step.conditions)
        return {column.name for condition in conditions for column in columns_of(condition.value)}

    @property
    def entered(self) -> set[int]:
        """The positions at which an event may follow another."""
        return {target for _, target in self.steps}

    @property
    def ends_first(self) -> list[int]:
        """All positions, first those that no event follows."""
        followed = {source for source, _ in self.steps}
        return sorted(range(len(self.positions)), key=lambda place: place in followed)

    def after_position(self, source: int) -> list[int]:
        """Return the positions that may come next."""
        return [q for p, q in self.steps if p == source]


def position_graph(
    automaton: Automaton, bound: BoundQuery, adjacent: tuple[Condition, ...], other: tuple[Condition, ...]
) -> PositionGraph | None:
    """Return the steps of an automaton with the conditions that guard them; None if conditions look farther.

    Parameters
    ----------
    automaton, bound
        The pattern, and the query for its policy, window and report mode.
    adjacent, other
        The conditions on two consecutive events of a variable, and those on several variables.
    """
    links = automaton.links() if bound.select is not s.Select.NEXT and not bound.filters else None
    if links is None:
        return None
    kleene = {position.variable: position.kleene for position in automaton.positions}
    graph = PositionGraph(
        [GuardedPosition(variable, kleene[variable]) for variable in links.variables],
        {step: GuardedStep((), absent) for step, absent in links.steps.items()},
        links.firsts, links.lasts, links.before, links.after, bound.window.kind is WindowKind.SPAN,
    )  # fmt: skip
    places = {position.variable: graph.places_of(position.variable) for position in graph.positions}
    for condition in adjacent:
        for step in _between(graph, places[condition.variables[0]], places[condition.variables[0]]):
            step.conditions += (condition,)
    for condition in other:
        if not all(_add(term, condition, graph, places) for term in terms(condition.value)):
            return None
    if graph.anchored and (bound.report is s.Report.MAXIMAL or (graph.span and graph.before)):
        return None
    if graph.is_counted and bound.report is not s.Report.ANY:
        told = len(graph.firsts) == 1 and graph.is_preceded
        if bound.report is s.Report.MAXIMAL or (automaton.is_preceded() and not told):
            return None
    can_index = _can_index(bound, graph)
    graph.indexable = can_index and not graph.compared
    graph.indexable_apart = can_index and graph.is_ordered and not graph.span and not graph.is_preceded
    alone = graph.span and graph.is_preceded
    if (alone or (bound.report is not s.Report.ANY and graph.counts_first)) and not graph.indexable:
        return None  # a graph for each start, of all that may follow it, would take more than to explore them together
    return graph


def _can_index(bound: BoundQuery, graph: PositionGraph) -> bool:
    plain = bound.select is s.Select.ANY and bound.report is not s.Report.MAXIMAL
    if not plain or graph.before or graph.after:
        return False
    names = [position.variable for position in graph.positions]
    others = [(source, target) for source, target in graph.steps if names[source] != names[target]]
    optional = any(source in graph.lasts or target in graph.firsts for source, target in others)
    if optional and bound.report is not s.Report.ANY:  # an index tells whether a variable goes on by itself alone
        return False
    return all(
        not step.absent and relation_of(step.conditions).kind in ("key", "inequality", "range")
        for step in graph.steps.values()
    )


def _between(graph: PositionGraph, sources: list[int], targets: list[int]) -> list[GuardedStep]:
    """Return the steps from some positions to some."""
    return [step for (source, target), step in graph.steps.items() if source in sources and target in targets]


def _add(term: Value, condition: Condition, graph: PositionGraph, places: dict[str, list[int]]) -> bool:
    """Add a term of a condition to the step that decides it; return False if none does."""
    variables = {c.var for c in columns_of(term)}
    if any(c.function for c in columns_of(term)):
        return False
    if len(variables) != 2 or variables != set(condition.variables) or not variables <= places.keys():
        return False  # of a NOT, or of a condition that is not applied where a third variable is not bound
    source, target = sorted(places[name] for name in variables)
    if _is_direct(graph, source, target) and _add_step(term, condition, graph, source, target):
        return True
    return [*graph.firsts] == source and _add_anchored(term, condition, graph, source[0], target)


def _is_direct(graph: PositionGraph, source: list[int], target: list[int]) -> bool:
    """Return whether a match comes from one variable to another by one step only: nothing optional lies between."""
    own = {*source, *target}
    others = [(p, q) for p, q in graph.steps if not {p, q} <= own]
    reached, waiting = {*source}, [*source]
    while waiting:
        here = waiting.pop()
        for p, q in others:
            if p == here and q not in reached:
                reached.add(q)
                waiting.append(q)
    return bool(_between(graph, source, target)) and not reached & {*target}


def _add_anchored(term: Value, condition: Condition, graph: PositionGraph, source: int, target: list[int]) -> bool:
    """Add a term that compares the first event of the match with every event of a variable."""
    first = graph.positions[source]
    value = of_neighbours(term, first.variable)
    if first.kleene or any(c.which is not s.Which.EACH for c in columns_of(term)) or comparison(value) is None:
        return False
    asked = replace(condition, kind=ConditionKind.ADJACENT, value=value)
    for place in target:
        graph.positions[place].anchored += (asked,)
    return True


def _add_step(term: Value, condition: Condition, graph: PositionGraph, source: list[int], target: list[int]) -> bool:
    """Add a term to the steps between two variables; return False if it looks farther."""
    for places, own in ((source, s.Which.LAST), (target, s.Which.FIRST)):
        position = graph.positions[places[0]]
        for column in columns_of(term):
            if column.var != position.variable or not position.kleene or column.which is own:
                continue
            if column.which is not s.Which.EACH or not _one_decides(term, graph, places, own):
                return False
    value = of_neighbours(term, graph.positions[source[0]].variable)
    asked = replace(condition, kind=ConditionKind.ADJACENT, value=value)
    for step in _between(graph, source, target):
        step.conditions += (asked,)
    return True


def of_neighbours(value: Value, earlier: str) -> Value:
    """Return a value with the events of the earlier variable as the earlier one of two neighbours."""
    which = {earlier: s.Which.EARLIER}
    return with_columns(value, lambda one: replace(one, which=which.get(one.var, s.Which.LATER), nth=None))


def neighbour_condition(condition: Condition, earlier: str) -> Condition:
    """Return a condition on two variables as one on neighbours, with the events of the earlier variable first."""
    known = _neighbour_conditions(condition)
    if earlier not in known:
        value = of_neighbours(condition.value, earlier)
        known[earlier] = replace(condition, kind=ConditionKind.ADJACENT, value=value)
    return known[earlier]


@once
def _neighbour_conditions(condition: Condition) -> dict[str, Condition]:
    """Return those that were asked for so far, by the earlier variable."""
    return {}


def _one_decides(term: Value, graph: PositionGraph, places: list[int], which: s.Which) -> bool:
    """Return whether a comparison that holds for the first (or last) event of a variable holds for all of them."""
    variable = graph.positions[places[0]].variable
    if not isinstance(term, Operation) or term.function not in FLIPPED:
        return False
    sides = [{c.var for c in columns_of(side)} for side in term.arguments]
    if variable not in sides[0] | sides[1] or sides[0] & sides[1]:
        return False
    own, function = term.arguments[0], term.function
    if variable in sides[1]:
        own, function = term.arguments[1], FLIPPED[function]
    if {c.var for c in columns_of(own)} != {variable}:
        return False
    # `own function other`: for the first event of a variable its values must go the way that keeps it true.
    needed = RISING if function in RISING else FALLING if function in FALLING else ("=",) if function == "=" else ()
    if which is s.Which.LAST:
        needed = FALLING if needed == RISING else RISING if needed == FALLING else needed
    return any(step in needed and same for step, same in _directions(_between(graph, places, places)[0], own))


def _directions(again: GuardedStep, own: Value) -> Iterator[tuple[str, bool]]:
    """Yield how consecutive events of a position are compared, and whether it is by a given value."""
    for condition in again.conditions:
        for term in terms(condition.value):
            compared = comparison(term)
            if compared is not None:
                same = _plain(compared.later) == _plain(own) == _plain(compared.earlier)
                yield compared.function, same


def _plain(value: Value) -> Value:
    """Return a value without which of the events of a variable it speaks of."""
    return with_columns(value, lambda column: replace(column, which=s.Which.EACH, nth=None))
