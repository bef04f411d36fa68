"""Patterns that are chains of variables whose conditions look at neighbours only.

A condition between a variable and the next one is asked of the last event of the one and the first of the other. One
that speaks of every event of a Kleene variable is so too where its values only rise or fall: `a.x < b.x` holds for all
of `b` if it holds for the first and `b.x < NEXT(b).x`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from trellis.language import syntax as s
from trellis.language.bound import Column, Condition, ConditionKind, Operation, Value, WindowKind, columns_of
from trellis.plan.plan import Plan
from trellis.plan.relation import FLIPPED, comparison, terms

RISING, FALLING = (">", ">="), ("<", "<=")


@dataclass
class Part:
    """A variable of the chain.

    Attributes
    ----------
    entered, again
        What is asked of its first event and the last of the variable before it, and of its own consecutive events.
    absent
        The variables of NOT between it and what stands before it.
    anchored
        What is asked of each of its events and the first event of the chain, which is carried along.
    """

    variable: str
    kleene: bool
    absent: tuple[str, ...]
    entered: tuple[Condition, ...] = ()
    again: tuple[Condition, ...] = ()
    anchored: tuple[Condition, ...] = ()


@dataclass
class Chain:
    """The parts, and the variables of NOT after the last."""

    parts: list[Part] = field(default_factory=list)
    absent: tuple[str, ...] = ()
    span: bool = False

    @property
    def anchored(self) -> bool:
        """Whether the first event of a match has to be carried along."""
        return self.span or any(part.anchored for part in self.parts)


def chain_of(plan: Plan) -> Chain | None:
    """Return the pattern of a plan as a chain, or None if it is none, or its conditions look farther."""
    bound = plan.bound
    chain = _parts(bound.pattern) if bound.select is s.Select.ANY else None
    if chain is None:
        return None
    chain.span = bound.window.kind is WindowKind.SPAN
    places = {part.variable: i for i, part in enumerate(chain.parts)}
    for condition in plan.adjacent:
        part = chain.parts[places[condition.variables[0]]]
        part.again += (condition,)
    for condition in plan.other:
        if not all(_add(term, condition, chain, places) for term in terms(condition.value)):
            return None
    if chain.anchored and (chain.parts[0].kleene or bound.report is s.Report.MAXIMAL):
        return None
    if chain.span and chain.parts[0].absent:
        return None
    return chain


def _parts(pattern: s.Pattern) -> Chain | None:
    chain = Chain()
    absent: tuple[str, ...] = ()
    for part in pattern.parts if isinstance(pattern, s.Seq) else (pattern,):
        if isinstance(part, s.Absent):
            absent += tuple(event.var for event in part.events)
        elif isinstance(part, s.Single | s.Kleene):
            chain.parts.append(Part(part.var, isinstance(part, s.Kleene), absent))
            absent = ()
        else:
            return None
    chain.absent = absent
    return chain


def _add(term: Value, condition: Condition, chain: Chain, places: dict[str, int]) -> bool:
    """Add a term of a condition to the step that decides it; return False if none does."""
    if any(name not in places for name in condition.variables):
        return False  # of a NOT
    named = sorted({places[c.var] for c in columns_of(term)})
    if len(named) != 2:
        return False
    if named[1] != named[0] + 1 or not _add_step(term, condition, chain, named):
        return named[0] == 0 and _add_anchored(term, condition, chain.parts[0], chain.parts[named[1]])
    return True


def _add_anchored(term: Value, condition: Condition, first: Part, part: Part) -> bool:
    """Add a term that compares the first event of the chain with every event of a part."""
    value = _of_neighbours(term, first.variable)
    if first.kleene or any(c.which is not s.Which.EACH for c in columns_of(term)) or comparison(value) is None:
        return False
    part.anchored += (replace(condition, kind=ConditionKind.ADJACENT, value=value),)
    return True


def _add_step(term: Value, condition: Condition, chain: Chain, named: list[int]) -> bool:
    """Add a term to the step between two parts; return False if it looks farther."""
    earlier, later = chain.parts[named[0]], chain.parts[named[1]]
    for part, own in ((earlier, s.Which.LAST), (later, s.Which.FIRST)):
        for column in columns_of(term):
            if column.var != part.variable or not part.kleene or column.which is own:
                continue
            if column.which is not s.Which.EACH or not _one_decides(term, part, own):
                return False
    value = _of_neighbours(term, earlier.variable)
    later.entered += (replace(condition, kind=ConditionKind.ADJACENT, value=value),)
    return True


def _of_neighbours(value: Value, earlier: str) -> Value:
    """Return a value with the events of the earlier variable as the earlier one of two neighbours."""
    if isinstance(value, Column):
        return replace(value, which=s.Which.EARLIER if value.var == earlier else s.Which.LATER, nth=None)
    if isinstance(value, Operation):
        return replace(value, arguments=tuple(_of_neighbours(a, earlier) for a in value.arguments))
    return value


def _one_decides(term: Value, part: Part, which: s.Which) -> bool:
    """Return whether a comparison that holds for the first (or last) event of a part holds for all of them."""
    if not isinstance(term, Operation) or term.function not in FLIPPED:
        return False
    sides = [{c.var for c in columns_of(side)} for side in term.arguments]
    if part.variable not in sides[0] | sides[1] or sides[0] & sides[1]:
        return False
    own, function = term.arguments[0], term.function
    if part.variable in sides[1]:
        own, function = term.arguments[1], FLIPPED[function]
    if {c.var for c in columns_of(own)} != {part.variable}:
        return False
    # `own function other`: for the first event of a part its values must go the way that keeps it true.
    needed = RISING if function in RISING else FALLING if function in FALLING else ("=",) if function == "=" else ()
    if which is s.Which.LAST:
        needed = FALLING if needed == RISING else RISING if needed == FALLING else needed
    return any(step in needed and same for step, same in _directions(part, own))


def _directions(part: Part, own: Value) -> Iterator[tuple[str, bool]]:
    """Yield how consecutive events of a part are compared, and whether it is by a given value."""
    for condition in part.again:
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
