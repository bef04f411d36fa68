"""Patterns whose conditions look at neighbours only, as an automaton of positions.

A position is a variable of the pattern; a step leads from a position to one that may come next, or from a Kleene
variable to itself. A condition between two variables is asked of the last event of the one and the first of the other.
One that speaks of every event of a Kleene variable is so too where its values only rise or fall: `a.x < b.x` holds for
all of `b` if it holds for the first and `b.x < NEXT(b).x`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from trellis.language import syntax as s
from trellis.language.bound import Column, Condition, ConditionKind, Operation, Value, WindowKind, columns_of
from trellis.plan.plan import Plan
from trellis.plan.relation import FLIPPED, comparison, relation_of, terms

RISING, FALLING = (">", ">="), ("<", "<=")
Edge = list[tuple[int, tuple[str, ...]]]  # positions at which a pattern begins or ends, and what NOT forbids there


@dataclass
class Position:
    """A variable of the pattern; `anchored` is asked of each of its events and the first event of the match."""

    variable: str
    kleene: bool
    anchored: tuple[Condition, ...] = ()


@dataclass
class Step:
    """What is asked of two events that follow one another, and the variables of NOT between them."""

    conditions: tuple[Condition, ...] = ()
    absent: tuple[str, ...] = ()


@dataclass
class Network:
    """The positions of a pattern in its order, and the steps between them.

    Attributes
    ----------
    firsts, lasts
        The positions at which a match may begin and end.
    before, after
        The variables of NOT before the first and after the last event.
    span
        Whether the window is a span from the first event on.
    """

    positions: list[Position] = field(default_factory=list)
    steps: dict[tuple[int, int], Step] = field(default_factory=dict)
    firsts: tuple[int, ...] = ()
    lasts: tuple[int, ...] = ()
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    span: bool = False

    @property
    def compared(self) -> bool:
        """Whether later events are compared with the first one."""
        return any(position.anchored for position in self.positions)

    @property
    def anchored(self) -> bool:
        """Whether the first event of a match has to be carried along."""
        return self.span or self.compared

    def after_position(self, source: int) -> list[int]:
        """Return the positions that may come next."""
        return [q for p, q in self.steps if p == source]


def network_of(plan: Plan) -> Network | None:
    """Return the pattern of a plan as a network, or None if it has none, or its conditions look farther."""
    bound = plan.bound
    network = Network()
    ends = _link(bound.pattern, network) if bound.select is s.Select.ANY else None
    if ends is None or not _set_ends(network, *ends):
        return None
    network.span = bound.window.kind is WindowKind.SPAN
    places = {position.variable: i for i, position in enumerate(network.positions)}
    if len(places) < len(network.positions):
        return None  # a variable in several arms of an OR
    for condition in plan.adjacent:
        place = places[condition.variables[0]]
        network.steps[place, place].conditions += (condition,)
    for condition in plan.other:
        if not all(_add(term, condition, network, places) for term in terms(condition.value)):
            return None
    if network.anchored:
        several = len(network.firsts) > 1 or network.positions[network.firsts[0]].kleene
        if several or bound.report is s.Report.MAXIMAL or (network.span and network.before):
            return None
    return network


def can_index(plan: Plan, network: Network) -> bool:
    """Whether results can be counted on an index for each step, without edges, unless values forbid it."""
    if plan.bound.report is s.Report.MAXIMAL or network.compared or network.before or network.after:
        return False
    return all(
        not step.absent and relation_of(step.conditions).kind not in (None, "two inequalities")
        for step in network.steps.values()
    )


def _link(pattern: s.Pattern, network: Network) -> tuple[Edge, Edge] | None:
    """Add the positions and steps of a pattern; return where it begins and ends, or None if it is no network."""
    match pattern:
        case s.Single(var=var) | s.Kleene(var=var):
            place = len(network.positions)
            network.positions.append(Position(var, isinstance(pattern, s.Kleene)))
            if isinstance(pattern, s.Kleene):
                network.steps[place, place] = Step()
            return [(place, ())], [(place, ())]
        case s.Or(arms=arms):
            found = [_link(arm, network) for arm in arms]
            linked = [ends for ends in found if ends is not None]
            if len(linked) < len(found):
                return None
            return [one for first, _ in linked for one in first], [one for _, last in linked for one in last]
        case s.Seq(parts=parts):
            return _link_all(parts, network)
        case _:
            return None


def _link_all(parts: tuple[s.Pattern, ...], network: Network) -> tuple[Edge, Edge] | None:
    firsts: Edge | None = None
    lasts: Edge = []
    absent: tuple[str, ...] = ()
    for part in parts:
        if isinstance(part, s.Absent):
            absent += tuple(event.var for event in part.events)
            continue
        ends = _link(part, network)
        if ends is None:
            return None
        begins = [(place, absent + forbidden) for place, forbidden in ends[0]]
        if firsts is None:
            firsts = begins
        for source, behind in lasts:
            for target, ahead in begins:
                network.steps[source, target] = Step((), behind + ahead)
        lasts, absent = ends[1], ()
    return None if firsts is None else (firsts, [(place, forbidden + absent) for place, forbidden in lasts])


def _set_ends(network: Network, firsts: Edge, lasts: Edge) -> bool:
    """Note where matches begin and end; return False if NOT at an edge depends on the position there."""
    before, after = ({absent for _, absent in edge} for edge in (firsts, lasts))
    if len(before) > 1 or len(after) > 1:
        return False
    (network.before,), (network.after,) = before, after
    network.firsts, network.lasts = (tuple(place for place, _ in edge) for edge in (firsts, lasts))
    return True


def _add(term: Value, condition: Condition, network: Network, places: dict[str, int]) -> bool:
    """Add a term of a condition to the step that decides it; return False if none does."""
    variables = {c.var for c in columns_of(term)}
    if len(variables) != 2 or variables != set(condition.variables) or not variables <= places.keys():
        return False  # of a NOT, or of a condition that is not applied where a third variable is not bound
    source, target = sorted(places[name] for name in variables)
    if (source, target) in network.steps and _add_step(term, condition, network, source, target):
        return True
    return network.firsts == (source,) and _add_anchored(term, condition, network, source, target)


def _add_anchored(term: Value, condition: Condition, network: Network, source: int, target: int) -> bool:
    """Add a term that compares the first event of the match with every event of a position."""
    first, position = network.positions[source], network.positions[target]
    value = of_neighbours(term, first.variable)
    if first.kleene or any(c.which is not s.Which.EACH for c in columns_of(term)) or comparison(value) is None:
        return False
    position.anchored += (replace(condition, kind=ConditionKind.ADJACENT, value=value),)
    return True


def _add_step(term: Value, condition: Condition, network: Network, source: int, target: int) -> bool:
    """Add a term to the step between two positions; return False if it looks farther."""
    for place, own in ((source, s.Which.LAST), (target, s.Which.FIRST)):
        position = network.positions[place]
        for column in columns_of(term):
            if column.var != position.variable or not position.kleene or column.which is own:
                continue
            if column.which is not s.Which.EACH or not _one_decides(term, network, place, own):
                return False
    value = of_neighbours(term, network.positions[source].variable)
    network.steps[source, target].conditions += (replace(condition, kind=ConditionKind.ADJACENT, value=value),)
    return True


def of_neighbours(value: Value, earlier: str) -> Value:
    """Return a value with the events of the earlier variable as the earlier one of two neighbours."""
    if isinstance(value, Column):
        return replace(value, which=s.Which.EARLIER if value.var == earlier else s.Which.LATER, nth=None)
    if isinstance(value, Operation):
        return replace(value, arguments=tuple(of_neighbours(a, earlier) for a in value.arguments))
    return value


def _one_decides(term: Value, network: Network, place: int, which: s.Which) -> bool:
    """Return whether a comparison that holds for the first (or last) event of a position holds for all of them."""
    variable = network.positions[place].variable
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
    # `own function other`: for the first event of a position its values must go the way that keeps it true.
    needed = RISING if function in RISING else FALLING if function in FALLING else ("=",) if function == "=" else ()
    if which is s.Which.LAST:
        needed = FALLING if needed == RISING else RISING if needed == FALLING else needed
    return any(step in needed and same for step, same in _directions(network.steps[place, place], own))


def _directions(again: Step, own: Value) -> Iterator[tuple[str, bool]]:
    """Yield how consecutive events of a position are compared, and whether it is by a given value."""
    for condition in again.conditions:
        for term in terms(condition.value):
            compared = comparison(term)
            if compared is not None:
                same = _plain(compared.later) == _plain(own) == _plain(compared.earlier)
                yield compared.function, same


def _plain(value: Value) -> Value:
    """Return a value without which of the events of a variable it speaks of."""
    if isinstance(value, Column):
        return replace(value, which=s.Which.EACH, nth=None)
    if isinstance(value, Operation):
        return replace(value, arguments=tuple(map(_plain, value.arguments)))
    return value
