"""Patterns in which every condition compares something with one event, the pivot.

A pivot variable takes one event of every match, and each condition on several events names it and one other variable.
Once its event is known, conditions are asked of one other event at a time. What that answers makes of an event a
symbol: its variable, and which of the conditions it meets that are not asked of all events, but of the first, the
last or the n-th one of the variable, or of some one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from trellis.language.bound import BoundQuery, Column, Condition, ConditionKind, Operation, Value, columns_of
from trellis.language.bound import with_columns as put_columns
from trellis.language.once import once
from trellis.language.syntax import Report, Select, Which
from trellis.plan import spec as o
from trellis.plan.automaton import Automaton
from trellis.plan.cuts import extreme_of
from trellis.plan.mirror import exponent_of, mirrored
from trellis.plan.plan import Plan

COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")
UNBOUND, UNMET, MET = range(3)  # what the events of a variable so far have told


@dataclass(frozen=True)
class PivotCondition:
    """A condition on the pivot and an event of one other variable: of which of its events it is asked.

    `which` is EACH, FIRST, LAST, NTH (`nth`), or WHOLE: of some one. It says what the condition of the query says where
    no event lacks a value of the attributes `present`.
    """

    variable: str
    value: Value
    which: Which
    nth: int = 0
    present: frozenset[str] = frozenset()

    @property
    def is_of_each(self) -> bool:
        """Whether all events of the variable must meet it."""
        return self.which is Which.EACH

    def read(self, state: int, meets: bool) -> int | None:
        """Return the state after another event of the variable, which meets it or not; None if it cannot be met."""
        match self.which:
            case Which.FIRST:
                return MET if state == MET or meets else None
            case Which.LAST:
                return MET if meets else UNMET
            case Which.WHOLE:
                return MET if state == MET or meets else UNMET
            case Which.NTH:  # the number of events, up to this one
                return None if state == self.nth - 1 and not meets else min(state + 1, self.nth)
        return state

    def may_end(self, state: int) -> bool:
        """Return whether a match may end in a state."""
        return state in (0, self.nth) if self.which is Which.NTH else state != UNMET


@dataclass(frozen=True)
class PivotPlan:
    """The pivot of a pattern, and its conditions.

    It is the one event of its variable; or with `extreme`, of a repeated variable, the one that decides for all of them
    where each is compared with each event of another: the first of those with that value. It is so only where no event
    lacks a value of the attributes `present`.
    """

    pivot: str
    conditions: tuple[PivotCondition, ...]
    extreme: Extreme | None = None
    present: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Extreme:
    """The event of a variable that decides for all: that with the greatest value, or with the least."""

    value: Value
    greatest: bool


# --- Conditions -------------------------------------------------------------------------------------------------


def pivot_plan(bound: BoundQuery, automaton: Automaton) -> PivotPlan | None:
    """Return the pivot of a query; None where it has none."""
    asked = [c for c in bound.conditions if c.kind is not ConditionKind.CONSTANT]
    if not asked or automaton.worded or automaton.composite or not automaton.complete:
        return None
    if any(t.guards for t in automaton.transitions) or any(end.guards for end in automaton.accepting):
        return None
    grouped = {v.name for v in bound.variables if v.groups}
    several = {v.name for v in bound.variables if v.several}
    for variable in bound.variables:
        name = variable.name
        if (
            name in several
            or variable.absent
            or not all(name in c.names for c in asked)
            or not is_needed(automaton, name)
        ):
            continue
        found = [_condition(c, name, several, grouped) for c in asked]
        if None not in found:
            conditions = tuple(one for one in found if one is not None)
            return PivotPlan(name, conditions, present=frozenset().union(*(one.present for one in conditions)))
    return _extreme_plan(asked, automaton, grouped) if len(asked) == 1 else None


def _extreme_plan(conditions: list[Condition], automaton: Automaton, grouped: set[str]) -> PivotPlan | None:
    """Return the plan where one event of a variable decides a condition on all of it and all of another; else None."""
    (condition,) = conditions
    names = sorted(condition.names)
    if len(names) != 2 or grouped & {*names} or not all(is_needed(automaton, name) for name in names):
        return None
    if any(c.which is not Which.EACH or c.function or c.at is not None for c in columns_of(condition.value)):
        return None
    for pivot, other in (names, names[::-1]):
        extreme = _extreme(condition.value, pivot)
        if extreme is not None:
            return PivotPlan(pivot, (PivotCondition(other, condition.value, Which.EACH),), extreme)
    return None


def _extreme(value: Value, name: str) -> Extreme | None:
    """Return the event of a variable that decides a comparison for all of them, if there is such."""
    if not isinstance(value, Operation) or value.function not in ("<", "<=", ">", ">="):
        return None
    sides = [{c.var for c in columns_of(side)} for side in value.arguments]
    if sides[0] == {name} and name not in sides[1]:
        return Extreme(value.arguments[0], value.function in ("<", "<="))
    found = extreme_of(value, name)
    return None if found is None else Extreme(*found)


def is_needed(automaton: Automaton, name: str) -> bool:
    """Return whether every match has an event of a variable."""
    seen, waiting = {0}, [0]
    while waiting:
        state = waiting.pop()
        for one in automaton.transitions:
            if one.source == state and one.variable != name and one.target not in seen:
                seen.add(one.target)
                waiting.append(one.target)
    return not any(one.state in seen for one in automaton.accepting)


def _condition(condition: Condition, pivot: str, several: set[str], grouped: set[str]) -> PivotCondition | None:
    """Return a condition as one on the pivot and an event of another variable, if it is."""
    named = [*columns_of(condition.value)]
    others = {(c.var, c.which, c.nth, c.function) for c in named if c.var != pivot}
    own = [c for c in named if c.var == pivot]
    if len(others) != 1 or any(c.at is not None for c in named):
        return None
    if any(c.function or c.which not in (Which.EACH, Which.FIRST, Which.LAST) for c in own):
        return None
    ((variable, which, nth, function),) = others
    value = put_columns(condition.value, lambda c: replace(c, which=Which.EACH, nth=None, function=""))
    if function:
        return _of_extreme(condition.value, value, variable, function, variable in grouped)
    if variable not in several:
        return None if which is Which.NTH else PivotCondition(variable, value, Which.EACH)
    if which is Which.EACH:
        return PivotCondition(variable, value, which)
    if variable in grouped or which not in (Which.FIRST, Which.LAST, Which.NTH):
        return None
    if which is Which.NTH:
        return PivotCondition(variable, value, which, nth or 1) if _is_bare(condition.value, variable) else None
    return PivotCondition(variable, value, which)


def _is_bare(value: Value, variable: str) -> bool:
    """Return whether a value compares an attribute of a variable, as it is, with something else."""
    if not isinstance(value, Operation) or value.function not in COMPARISONS:
        return False
    return any(
        isinstance(side, Column) and side.var == variable and variable not in {c.var for c in columns_of(other)}
        for side, other in (value.arguments, value.arguments[::-1])
    )


def _of_extreme(whole: Value, value: Value, variable: str, function: str, is_grouped: bool) -> PivotCondition | None:
    """Return a comparison with a greatest or least value: some event meets it, or all do if all have a value."""
    if function not in ("MIN", "MAX") or is_grouped or not _is_bare(whole, variable):
        return None
    assert isinstance(whole, Operation)
    side = whole.arguments[0]
    column = next(c for c in columns_of(whole) if c.var == variable)
    if column.which is not Which.WHOLE:
        return None
    above = whole.function in (">", ">=") if isinstance(side, Column) and side.var == variable else None
    above = whole.function in ("<", "<=") if above is None else above
    if whole.function not in ("<", "<=", ">", ">="):
        return None
    if above == (function == "MAX"):
        return PivotCondition(variable, value, Which.WHOLE)
    return PivotCondition(variable, value, Which.EACH, present=frozenset([column.name]))


# --- Counting ---------------------------------------------------------------------------------------------------


@once
def pivots_that_count(plan: Plan) -> PivotPlan | None:
    """Return the pivot by which results are counted, where matches so far would be told apart by more; else None."""
    bound = plan.bound
    if plan.operator.name != o.PATTERNS or plan.operator.method == o.INDEX:
        return None
    if bound.select is not Select.ANY or bound.report is Report.MAXIMAL or bound.after_match is not None:
        return None
    if bound.having or bound.filters:
        return None
    if min(exponent_of(one) for one in (plan, mirrored(plan)) if one) <= plan.sizes.explored_exponent:
        return None
    return pivot_plan(bound, plan.automaton)


def pivot_texts(plan: Plan) -> dict[str, str]:
    """Say how results are counted that have a pivot."""
    pivots = pivots_that_count(plan)
    if pivots is None:
        return {}
    one = pivots.pivot if pivots.extreme is None else f"greatest or least {pivots.pivot}"
    return {
        "pivots": f"counted for each {one} by itself, since all conditions are then of one event: time in the order of "
        f"the pairs of {pivots.pivot} and other events"
    }
