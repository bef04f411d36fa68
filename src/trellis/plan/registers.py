"""The registers of a match so far: the events that conditions which can still be asked must remember.

A condition that names several variables holds if it is true for every combination of their events (and of consecutive
events, where it speaks of those). Of a variable that it names by one event that event is remembered; of one all of
whose events are compared by `<` the extreme value, by `=` the one value, by anything else the set of different ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import cached_property

from trellis.language.bound import BoundQuery, Column, Condition, ConditionKind, Operation, Value, columns_of
from trellis.language.syntax import Which
from trellis.plan.cuts import FLIPPED
from trellis.plan.relation import terms

Reference = tuple[str, Which, int | None]
ADJACENT = (Which.EARLIER, Which.LATER)
LATE = (Which.LAST, Which.NTH)
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


@dataclass(frozen=True)
class Register:
    """A register of a variable.

    Attributes
    ----------
    nth
        The number of the event, or the greatest that COUNT tells apart.
    value, greatest
        The value of EXTREME and SAME, and whether the greatest decides.
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
class Guarding:
    """A term of a condition that is asked of a match so far.

    Attributes
    ----------
    number
        Its number among all terms.
    condition
        The whole condition, which is asked only where all its variables have events.
    value, references
        The term, and the events that it names.
    absent
        The variable of a NOT that the condition names, if it does; the term is then asked of the events it forbids.
    singles
        The variables that take one event only.
    sets
        Whether all values of a variable are remembered even where the extreme one would do.
    """

    number: int
    condition: Condition
    value: Value
    references: tuple[Reference, ...]
    absent: str | None
    singles: frozenset[str]
    sets: bool = False

    @cached_property
    def variables(self) -> frozenset[str]:
        """The variables of the condition, without that of a NOT."""
        return frozenset(self.condition.variables) - {self.absent}

    @cached_property
    def late(self) -> bool:
        """Whether the condition names an event that is only known later."""
        return any(column.which in LATE for column in columns_of(self.condition.value))

    @cached_property
    def paired(self) -> frozenset[str]:
        """The variables of whose consecutive events the condition speaks."""
        return frozenset(c.var for c in columns_of(self.condition.value) if c.which in ADJACENT)

    @cached_property
    def moving(self) -> frozenset[str]:
        """The repeated variables of which every new event is asked about."""
        named = {c.var for c in columns_of(self.condition.value) if c.which in (Which.EACH, *ADJACENT)}
        return frozenset(named - self.singles - {self.absent})

    def register(self, reference: Reference) -> Register | None:
        """Return the register that holds what a reference names; none for an event that a NOT forbids."""
        var, which, nth = reference
        if var == self.absent:
            return None
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
        return None


def guardings_of(bound: BoundQuery) -> tuple[Guarding, ...]:
    """Return the terms of all conditions that are asked of more than single events."""
    absent = {v.name for v in bound.variables if v.absent}
    singles = frozenset(v.name for v in bound.variables if not v.kleene)
    found: list[Guarding] = []
    for condition in bound.conditions:
        if condition.kind is ConditionKind.CONSTANT:
            continue
        negated = next(iter(absent.intersection(condition.variables)), None)
        for value in _terms(condition):
            references = tuple(dict.fromkeys((c.var, c.which, c.nth) for c in columns_of(value)))
            found.append(Guarding(len(found), condition, value, references, negated, singles))
    return tuple(found)


def _terms(condition: Condition) -> Iterator[Value]:
    """Split a condition at AND, unless it waits for an event: then all of it is asked at once."""
    if any(column.which in LATE for column in columns_of(condition.value)):
        return iter((condition.value,))
    return terms(condition.value)


def register_text(register: Register, singles: frozenset[str]) -> str:
    """Say what a register holds; `singles` are the variables that take one event."""
    var = register.variable
    match register.kind:
        case RegisterKind.FIRST:
            return var if var in singles else f"the first {var}"
        case RegisterKind.LAST:
            return f"the last {var}"
        case RegisterKind.NTH:
            return f"the {ORDINAL.get(register.nth, f'{register.nth}th')} {var}"
        case RegisterKind.COUNT:
            return f"how many {var}, up to {register.nth}"
        case RegisterKind.EXTREME:
            return f"the {'greatest' if register.greatest else 'least'} {_value_text(register.value)} of {var}"
        case RegisterKind.SAME:
            return f"the one {_value_text(register.value)} of every {var}"
        case RegisterKind.SET:
            return f"the different values of every {var}"
    return f"the different pairs of consecutive {var}"


def _value_text(value: Value | None) -> str:
    if isinstance(value, Column):
        return value.name
    return getattr(value, "source", "") or "value"


def _anonymous(value: Value) -> Value:
    """Return a value without which events of its variable it speaks of."""
    if isinstance(value, Column):
        return replace(value, var="", which=Which.EACH, nth=None)
    if isinstance(value, Operation):
        return replace(value, arguments=tuple(map(_anonymous, value.arguments)))
    return value
