"""The registers of a match so far: the events that conditions which can still be asked must remember.

A condition that names several variables holds if it is true for every combination of their events (and of consecutive
events, where it speaks of those). Of a variable that it names by one event that event is remembered; of one all of
whose events are compared by `<` the extreme value, by `=` the one value, by anything else the set of different ones.
Of an aggregate, over the events so far or over all of a variable, the running number is remembered.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Any

from trellis.errors import UsageError
from trellis.language.bound import (
    BoundQuery,
    Column,
    Condition,
    ConditionKind,
    Operation,
    Reference,
    Value,
    columns_of,
    references_of,
    with_columns,
)
from trellis.language.groups import without_groups
from trellis.language.once import once
from trellis.language.schema import BOOLEAN
from trellis.language.syntax import Which
from trellis.plan.automaton import Automaton, build_automaton
from trellis.plan.cuts import FLIPPED, extreme_of, without_abs
from trellis.plan.forbidden import forbidden_paths, of_nots, root_name, stated_parts
from trellis.plan.relation import terms
from trellis.plan.thresholds import bit_text, has_extremes, modulus_of_events, most_events, with_bits
from trellis.plan.views import View, ViewedCondition, Views, apart, named, view_text
from trellis.properties import cached_property

ADJACENT = (Which.EARLIER, Which.LATER)
SO_FAR = (Which.BEFORE, Which.UPTO)
LATE = (Which.LAST, Which.NTH, Which.WHOLE)
ENOUGH = 1 << 20  # iterations that are counted where the number of one is asked for
ORDINAL = {1: "first", 2: "second", 3: "third"}


class RegisterKind(IntEnum):
    """The kinds of registers; pairs come first, as they look at the last event before it changes."""

    PAIRS = 0  # the set of consecutive events
    FIRST = 1
    LAST = 2
    NTH = 3
    COUNT = 4  # how many events there are, up to the greatest k
    EXTREME = 5  # an event with the greatest or the least value
    SAME = 6  # an event with the one value that all have
    SET = 7  # the set of events with different values
    TALLY = 8  # how many events of a variable there are; `nth`, if not 0, is the most that is told apart
    LENGTH = 9  # how many events of all variables there are
    NUMBER = 10  # how many events have a value
    SUM = 11  # the sum of whole numbers, or of decimals
    REAL_SUM = 12  # the sum of doubles, added in the order of time
    EXACT_SUM = 13  # the sum of doubles as a list of doubles that do not overlap
    BEST = 14  # the event with the greatest or the least value of those that have one
    TUPLES = 15  # what a condition names in each iteration that is over
    MET = 16  # some event, once there is one that meets the term with the number `nth`


@dataclass(frozen=True)
class Register:
    """A register of a variable.

    Attributes
    ----------
    nth
        The number of the event, or the greatest that COUNT, TALLY and NUMBER tell apart (0: any; below, of TALLY: what
        it is counted modulo); of MET, that of a term.
    value, greatest
        The value of EXTREME and SAME, and whether the greatest decides; of MET, what events meet.
    columns
        The columns that sets and pairs are told apart by.
    """

    kind: RegisterKind
    variable: str
    nth: int = 0
    value: Value | None = None
    greatest: bool = False
    columns: tuple[str, ...] = ()


@dataclass(frozen=True)
class GuardTerm:
    """A term of a condition that is asked of a match so far.

    Attributes
    ----------
    number
        Its number among all terms.
    condition
        The whole condition, which is asked only where all its variables have events; they are named by their views.
    value, references
        The term, and the events that it names.
    absent
        The variable of a NOT that the condition names, if it does; the term is then asked of the events it forbids.
    singles
        The variables that take one event only.
    sets
        Whether all values of a variable are remembered even where the extreme one would do.
    result
        Whether it is a condition of HAVING, which is asked of whole matches that are reported, and of nothing else.
    views, awaited
        The views of the variables, and of groups whose iterations are counted, that the condition names; and those that
        must be complete before it is asked.
    gathered, over
        The views of what the condition names in iterations that are over, for each of some groups; and those of them of
        whose iterations the term is, and not of the one that goes on: views whose names begin with theirs are of these.
    stated
        Whether it is never asked: what it names in whole matches is stated, to compare it with what is outside a NOT.
    noted
        Whether it is never asked: a register of another term holds whether some event of a variable has met it.
    notes
        The terms that the registers of this one are of, by their numbers.
    """

    number: int
    condition: Condition
    value: Value
    references: tuple[Reference, ...]
    absent: str | None
    singles: frozenset[str]
    sets: bool = False
    result: bool = False
    views: tuple[View, ...] = ()
    awaited: tuple[View, ...] = ()
    gathered: tuple[View, ...] = ()
    over: tuple[View, ...] = ()
    stated: bool = False
    noted: bool = False
    notes: Mapping[int, Value] = field(default_factory=dict, compare=False)

    def is_forbidden(self, name: str) -> bool:
        """Return whether what has a name is of what a NOT forbids: one event, or a match of a pattern."""
        return self.absent is not None and (name == self.absent or name.startswith(f"{self.absent}\n"))

    @property
    def gathering(self) -> tuple[View, ...]:
        """The views to which it adds what it names: where no group around these, or beside, is over."""
        return tuple(view for view in self.gathered if all(view.group in over.emptied_by for over in self.over))

    def over_of(self, name: str) -> View | None:
        """Return the view of the iterations that are over of which what has a name is; None if it is of none."""
        return next((view for view in self.over if name.startswith(f"{view.name}\n")), None)

    def is_over(self, name: str) -> bool:
        """Return whether what has a name is of iterations that are over."""
        return self.over_of(name) is not None

    @cached_property
    def variables(self) -> frozenset[str]:
        """The variables that must have events for the condition to be asked: COUNT(v) is 0 without any."""
        return frozenset() if self.result and not self.stated else self.named

    @cached_property
    def named(self) -> frozenset[str]:
        """The variables that must have events for the condition to speak of something."""
        asked = (c for c in columns_of(self.condition.value) if not (c.function == "COUNT" and c.which in LATE))
        named = {c.var for c in asked if not self.is_over(c.var) and not self.is_forbidden(c.var)}
        named |= {view.name for view in self.over}
        return frozenset(named | {view.name for view in self.views if view.presence})

    @cached_property
    def late(self) -> bool:
        """Whether the condition names an event that is only known later."""
        late = any(column.which in LATE for column in self._named)
        return not self.result and (late or bool(self.awaited))

    @property
    def _named(self) -> Iterator[Column]:
        """The columns of events that are neither of iterations which are over nor of what a NOT forbids."""
        every = columns_of(self.condition.value)
        return (c for c in every if not self.is_over(c.var) and not self.is_forbidden(c.var))

    @cached_property
    def paired(self) -> frozenset[str]:
        """The variables of whose consecutive events, or of those before an event, the condition speaks."""
        return frozenset(c.var for c in self._named if c.which in (*ADJACENT, Which.BEFORE))

    @cached_property
    def so_far(self) -> frozenset[str]:
        """The variables of whose events so far the condition speaks."""
        return frozenset(c.var for c in self._named if c.which in SO_FAR)

    @cached_property
    def moving(self) -> frozenset[str]:
        """The repeated variables of which every new event is asked about."""
        named = {c.var for c in self._named if c.which in (Which.EACH, *ADJACENT, *SO_FAR)}
        return frozenset(named - self.singles)

    def register(self, reference: Reference) -> Register | None:
        """Return the register that holds what a reference names; none for an event that a NOT forbids."""
        var, which, nth, function, _ = reference
        if self.is_forbidden(var) or (self.noted and which is Which.EACH and var not in self.singles):
            return None
        if (over := self.over_of(var)) is not None:
            return Register(RegisterKind.TUPLES, over.name)
        if function:
            return self._running(reference)
        if which is Which.NTH:
            return Register(RegisterKind.NTH, var, nth or 1)
        if which is Which.LAST:
            return Register(RegisterKind.LAST, var)
        if which is Which.FIRST or var in self.singles:
            return Register(RegisterKind.FIRST, var)
        columns = tuple(sorted({c.name for c in columns_of(self.value) if c.var == var and c.which is not Which.FIRST}))
        if which in ADJACENT:
            return Register(RegisterKind.PAIRS, var, columns=columns)
        return self._each(var) or Register(RegisterKind.SET, var, columns=columns)

    def _running(self, reference: Reference) -> Register:
        """Return the register of an aggregate."""
        var, function, name = reference.var, reference.function, reference.name
        match function:
            case "LENGTH":
                return Register(RegisterKind.LENGTH, "", most_events(self.value, reference))
            case "COUNT":
                most = most_events(self.value, reference)
                return Register(RegisterKind.TALLY, var, most or -modulus_of_events(self.value, reference))
            case "NUMBER" | "MANY":
                return Register(RegisterKind.NUMBER, var, int(function == "MANY"), columns=(name,))
            case "MET":
                assert reference.nth is not None
                value = self.notes[reference.nth]
                return Register(RegisterKind.MET, var, reference.nth, value, columns=(name,))
            case "LIST":
                return Register(RegisterKind.SET, var, columns=(name,))
            case "MIN" | "MAX":
                column = next(c for c in columns_of(self.value) if reference in c.references)
                of = Column("", name, Which.EACH, None, column.type)
                return Register(RegisterKind.BEST, var, value=of, greatest=function == "MAX")
        return Register(RegisterKind.EXACT_SUM if function == "FSUM" else RegisterKind.SUM, var, columns=(name,))

    def _each(self, var: str) -> Register | None:
        """Return the one event that decides for all of a variable, if there is such."""
        value = self.value
        if self.sets or not isinstance(value, Operation) or value.function not in FLIPPED or value.function == "!=":
            return None
        sides = [{(c.var, c.which) for c in columns_of(side)} for side in value.arguments]
        own = {(var, Which.EACH)}
        for i, function in ((0, value.function), (1, FLIPPED[value.function])):
            if sides[i] == own and var not in {name for name, _ in sides[1 - i]}:
                of = _anonymous(value.arguments[i])
                if function == "=":
                    return Register(RegisterKind.SAME, var, value=of)
                return Register(RegisterKind.EXTREME, var, value=of, greatest=function in ("<", "<="))
        named = {column.which for column in columns_of(value) if column.var == var}
        extreme = extreme_of(value, var) if named == {Which.EACH} else None
        if extreme is None:
            return None
        return Register(RegisterKind.EXTREME, var, value=_anonymous(extreme[0]), greatest=extreme[1])


@once
def guard_terms_of(bound: BoundQuery) -> tuple[GuardTerm, ...]:
    """Return the terms of all conditions that are asked of more than single events."""
    absent = {v.name for v in bound.variables if v.absent}
    of, found = Views(bound, dict(forbidden_paths(bound))), list[GuardTerm]()
    waiting: dict[str, list[ViewedCondition]] = {}
    for condition in bound.conditions:
        if condition.kind is ConditionKind.CONSTANT:
            continue
        for negated, asked in of_nots(bound, condition, absent):
            viewed = of.of_condition(asked)
            if negated is not None:
                waiting.setdefault(root_name(negated), []).append(viewed)
            if condition.kind is ConditionKind.TOLD:
                if negated == condition.text:
                    _add_term(found, bound, viewed, viewed.condition.value, absent=negated, stated=True, sets=True)
                continue
            together = viewed.awaited or viewed.gathered or bound.inside_not & {*condition.variables}
            if negated is None and not together and has_extremes(viewed.condition.value):
                _add_with_bits(found, bound, viewed)
                continue
            for value in (viewed.condition.value,) if together else _terms(viewed.condition):
                _add_term(found, bound, viewed, value, absent=negated)
            for before in viewed.before:
                _add_term(found, bound, before, before.condition.value, absent=negated)
    for condition in bound.filters:
        viewed = of.of_result(condition)
        for value in terms(viewed.condition.value):
            _add_term(found, bound, viewed, value, result=True)
    for name, asked_of_it in waiting.items():
        _check_waiting(name, asked_of_it)
    return tuple(found)


def _add_with_bits(terms_so_far: list[GuardTerm], bound: BoundQuery, viewed: ViewedCondition) -> None:
    """Add a condition on greatest and least values, as bits where what they are compared with is known before."""
    automaton, notes = build_automaton(bound.pattern), dict[int, Value]()
    kleene = frozenset(v.name for v in bound.variables if v.kleene)

    def note(comparison: Operation) -> int:
        number = next((one.number for one in terms_so_far if one.noted and one.value == comparison), len(terms_so_far))
        if number == len(terms_so_far):
            condition = replace(viewed.condition, value=comparison)
            _add_term(terms_so_far, bound, viewed._replace(condition=condition), comparison, noted=True)
        notes[number] = comparison
        return number

    value = viewed.condition.value
    if automaton.complete and not bound.groups:
        takes = {v.name for v in bound.variables if not v.absent}
        before = {name: frozenset(takes - behind - {name}) for name, behind in variables_behind(automaton).items()}
        value = with_bits(value, before, kleene, note)
    _add_term(terms_so_far, bound, viewed, value, notes=notes)


def _check_waiting(name: str, conditions: list[ViewedCondition]) -> None:
    """Refuse what a NOT forbids where one condition looks behind a group and another into each of its iterations."""
    for one in conditions:
        lost = [view.name for other in conditions for view in other.views if view.replaced_by & one.waits]
        if lost:
            raise apart(one.condition.text, (name, *lost))


def _add_term(
    terms_so_far: list[GuardTerm], bound: BoundQuery, viewed: ViewedCondition, value: Value, **more: Any
) -> None:
    """Add a term to those that are found."""
    condition, views, awaited, gathered, over = viewed[:5]
    singles = frozenset(v.name for v in bound.variables if not v.kleene)
    one_event = singles | {v.name for v in views if v.variable in singles and v.group >= 0 and not _gathers(v)}
    waited_for = (Reference(view.name, Which.WHOLE, None, "COUNT") for view in awaited)
    references, sets = (*references_of(value), *waited_for), bool(gathered)
    more = {"absent": None, "sets": sets, "views": views, "awaited": awaited, "gathered": gathered, "over": over} | more
    terms_so_far.append(GuardTerm(len(terms_so_far), condition, value, references, singles=one_event, **more))


def stated_terms(
    bound: BoundQuery, stated: Iterable[tuple[Column, ...]], firsts: Iterable[Column]
) -> tuple[GuardTerm, ...]:
    """Return the terms of a query, and behind them those that tell columns of its matches.

    Each tells some columns, of the iteration that goes on and of every one that is over; `firsts` are stated of all.
    """
    found, later = [*guard_terms_of(bound)], Column("\nlater", "", Which.EACH, None, BOOLEAN)
    of = Views(bound, {later.var: ()} | dict(forbidden_paths(bound)))
    for number, columns in enumerate(stated):
        value = Operation("or", (*stated_parts(columns), later))
        viewed = of.of_condition(Condition(ConditionKind.REST, (), value, f"NOT {number}"))
        if len(viewed.gathered) > 1:
            raise apart(" and ".join(dict.fromkeys(named(c.var) for c in columns)), (c.var for c in columns))
        of_match = _without(viewed, later)
        _add_term(found, bound, of_match, of_match.condition.value, result=True, stated=True, sets=True)
        for before in viewed.before:
            over = _without(before, later)
            _add_term(found, bound, over, over.condition.value, result=True, sets=True)
    for first in firsts:
        viewed = of.of_result(Condition(ConditionKind.REST, (), Operation("or", stated_parts((first,))), "NOT"))
        _add_term(found, bound, viewed, viewed.condition.value, result=True, stated=True)
    return tuple(found)


def _without(viewed: ViewedCondition, column: Column) -> ViewedCondition:
    """Return a condition of which one column is left out."""
    value = viewed.condition.value
    assert isinstance(value, Operation)
    left = replace(value, arguments=tuple(one for one in value.arguments if one != column))
    return viewed._replace(condition=replace(viewed.condition, value=left))


def _gathers(view: View) -> bool:
    """Return whether a view of another iteration has the events of several iterations of a group inside of it."""
    return view.group != view.path[-1]


def check_so_far(bound: BoundQuery, automaton: Automaton) -> None:
    """Refuse conditions on events so far that would have to be asked again when later variables take events."""
    once = build_automaton(without_groups(bound.pattern)) if bound.groups else automaton
    behind = variables_behind(once)
    for one in guard_terms_of(bound):
        for var in one.so_far:
            others = [name for name in one.condition.variables if name != var]
            named = {c.which for c in columns_of(one.condition.value) if c.var == var}
            late = [name for name in others if name in behind.get(var, frozenset()) or not automaton.complete]
            if one.absent is not None or late:
                raise UsageError(
                    f"`{one.condition.text}` speaks of the events of {var} so far and of {one.absent or late[0]}, "
                    f"which is not complete before {var}",
                    f"Compare the events so far with variables before {var}, or use an aggregate of all of {var}.",
                )
            here = next(view.variable for view in one.views if view.name == var)
            if any(view.only and view.variable == here for view in one.views):
                raise UsageError(
                    f"`{one.condition.text}` speaks of the events of {var} so far and of one of its iterations",
                    "Write two conditions.",
                )
            if named & set(LATE):
                raise UsageError(
                    f"`{one.condition.text}` speaks of the events of {var} so far and of those to come",
                    "Write two conditions.",
                )


def variables_behind(automaton: Automaton) -> dict[str, frozenset[str]]:
    """Return for each variable those that may take events after it has one."""
    reads: dict[int, frozenset[str]] = {}
    changed = True
    while changed:
        changed = False
        for one in reversed(automaton.transitions):  # most lead to a state with a higher number
            known = reads.get(one.source, frozenset())
            more = known | {one.variable} | reads.get(one.target, frozenset())
            changed |= more != known
            reads[one.source] = more
    found: dict[str, frozenset[str]] = {}
    for one in automaton.transitions:
        found[one.variable] = found.get(one.variable, frozenset()) | reads.get(one.target, frozenset())
    return found


def _terms(condition: Condition) -> Iterator[Value]:
    """Split a condition at AND, unless it waits for an event: then all of it is asked at once."""
    if any(column.which in LATE for column in columns_of(condition.value)):
        return iter((condition.value,))
    return (one for term in terms(condition.value) for one in without_abs(term))


def register_text(register: Register, singles: frozenset[str]) -> str:
    """Say what a register holds; `singles` are the variables that take one event."""
    var = view_text(register.variable)
    match register.kind:
        case RegisterKind.FIRST:
            return var if register.variable in singles else f"the first {var}"
        case RegisterKind.LAST:
            return f"the last {var}"
        case RegisterKind.NTH:
            return f"the {ORDINAL.get(register.nth, f'{register.nth}th')} {var}"
        case RegisterKind.COUNT:
            return f"how many {var}, up to {register.nth}"
        case RegisterKind.EXTREME | RegisterKind.BEST:
            return f"the {'greatest' if register.greatest else 'least'} {_value_text(register.value)} of {var}"
        case RegisterKind.SAME:
            return f"the one {_value_text(register.value)} of every {var}"
        case RegisterKind.SET:
            return f"the different values of every {var}"
        case RegisterKind.TALLY | RegisterKind.LENGTH:
            of = "events" if register.kind is RegisterKind.LENGTH else var
            limited = f", up to {register.nth}" if register.nth > 0 else f", modulo {-register.nth}"
            return f"how many {of}" + (limited if register.nth else "")
        case RegisterKind.NUMBER:
            of = f"{register.columns[0]} of {var}"
            return f"whether there is a {of}" if register.nth else f"how many {of}"
        case RegisterKind.SUM | RegisterKind.REAL_SUM | RegisterKind.EXACT_SUM:
            return f"the sum of {register.columns[0]} of {var}"
        case RegisterKind.MET:
            return f"whether some {var} had `{bit_text(register.value)}`"
        case RegisterKind.TUPLES:
            return f"what `{var}` names in every iteration"
    return f"the different pairs of consecutive {var}"


def _value_text(value: Value | None) -> str:
    if isinstance(value, Column):
        return value.name
    return getattr(value, "source", "") or "value"


def _anonymous(value: Value) -> Value:
    """Return a value without which events of its variable it speaks of."""
    return with_columns(value, lambda column: replace(column, var="", which=Which.EACH, nth=None))
