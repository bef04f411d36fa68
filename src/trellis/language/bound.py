"""A query that fits its events: names resolved, parameters filled in, types known, conditions classified.

Values and conditions are trees of three nodes, `Column`, `Constant` and `Operation`, so that whoever evaluates them
(Arrow, Spark) has one thing to dispatch on: `Operation.function`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from enum import StrEnum
from typing import Any, NamedTuple

from trellis.language import syntax as s
from trellis.language.groups import RepeatedGroup
from trellis.language.once import MadeOnce, once
from trellis.language.schema import BOOLEAN, Schema, Type


class AtIteration(NamedTuple):
    """Which iteration of a group a value is of: `g[i-1]` is EARLIER; FIRST, LAST, or the NTH."""

    group: int
    which: s.Which
    nth: int | None = None


class Reference(NamedTuple):
    """An event of a variable that a value reads; with a function, a number or set of its events' values of `name`.

    `function` is COUNT, LENGTH (of all variables), SUM, FSUM (of doubles, rounded once), NUMBER (of values that are not
    NULL), MANY (whether that is more than none), MIN, MAX, LIST or MET.
    """

    var: str
    which: s.Which
    nth: int | None = None
    function: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True)
class Column:
    """An attribute of an event bound to `var`.

    With a `function` it is an aggregate over the events that `which` tells: COUNT, SUM, FSUM, AVG, FAVG (of doubles,
    rounded once), MIN or MAX; LIST, the set of their values; LENGTH, the number of all events; or MET, an event for
    which the term with the number `nth` was true. `at` tells the iteration, where it is not the one that goes on.
    """

    var: str
    name: str
    which: s.Which
    nth: int | None
    type: Type
    function: str = ""
    at: AtIteration | None = None

    @property
    def references(self) -> tuple[Reference, ...]:
        """The events, or what is remembered of them, that the value is made of."""
        if not self.function:
            return (Reference(self.var, self.which, self.nth),)
        name = "" if self.function in ("COUNT", "LENGTH") else self.name
        parts = PARTS.get(self.function, (self.function,))
        return tuple(Reference(self.var, self.which, self.nth, part, name) for part in parts)


PARTS = {"SUM": ("SUM", "MANY"), "FSUM": ("FSUM", "MANY"), "AVG": ("SUM", "NUMBER"), "FAVG": ("FSUM", "NUMBER")}
"""The numbers that an aggregate is computed of."""


@dataclass(frozen=True, slots=True)
class Constant:
    """A known value: int (also microseconds of a timestamp or duration), float, Decimal, str, bool, or None."""

    value: int | float | Decimal | str | bool | None
    type: Type


@dataclass(frozen=True, slots=True)
class Operation:
    """A function of values.

    `function` is one of: `+ - * / %`, `negative`, `abs`, `coalesce`, a scalar function in lower case such as `round`,
    `cast`, `case` with tests and values by turns and the last value (values); `= != < <= > >=`, `is null`, `like`,
    `and`, `or`, `not` (conditions, three-valued). IN and BETWEEN have become these, but for `in list`, of a value and a
    column that is a list.
    """

    function: str
    arguments: tuple[Value, ...]
    type: Type = BOOLEAN
    source: str = field(default="", compare=False)


Value = Column | Constant | Operation


def columns_of(value: Value) -> Iterator[Column]:
    """Yield the columns that a value reads."""
    if isinstance(value, Column):
        yield value
    elif isinstance(value, Operation):
        for argument in value.arguments:
            yield from columns_of(argument)


def with_columns(value: Value, make: Callable[[Column], Value]) -> Value:
    """Return a value with something else in the place of each column that it reads."""
    if isinstance(value, Column):
        return make(value)
    if isinstance(value, Operation):
        return replace(value, arguments=tuple(with_columns(argument, make) for argument in value.arguments))
    return value


def references_of(value: Value) -> tuple[Reference, ...]:
    """Return the events, and what is remembered of events, that a value reads, each once."""
    return tuple(dict.fromkeys(reference for column in columns_of(value) for reference in column.references))


class ConditionKind(StrEnum):
    """The kind of a conjunct of WHERE, by the events it refers to."""

    CONSTANT = "constant"  # each event of one variable
    ADJACENT = "adjacent"  # two consecutive events of one Kleene variable
    ACROSS = "across"  # several variables, or fixed events of one
    REST = "rest"  # neighbours mixed with other variables; events so far, and whole variables
    TOLD = "told"  # never asked: what it names, of what its text tells by name, is compared with what is outside a NOT


@dataclass(frozen=True, slots=True)
class Condition:
    """One conjunct of WHERE, classified; `variables` are those it names, in the order of the pattern.

    `written` is the one that the user wrote, where the plan puts this one in its place.
    """

    kind: ConditionKind
    variables: tuple[str, ...]
    value: Value
    text: str
    written: Condition | None = None
    made: MadeOnce = field(default_factory=MadeOnce, init=False, repr=False, compare=False)

    @property
    def names(self) -> frozenset[str]:
        """The variables, and the labels of groups, that it names."""
        return frozenset(column.var for column in columns_of(self.value))


@dataclass(frozen=True, slots=True)
class LengthBound:
    """One `LENGTH cmp n` of HAVING."""

    op: str
    value: int


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable of the pattern; `absent` where NOT declares it.

    `until` is the variable whose UNTIL asks for such events: then it is absent, too, and nobody can write its name.
    `groups` are the numbers of the repeated groups around it, outermost first.
    """

    name: str
    type: str | None
    kleene: bool = False
    absent: bool = False
    until: str | None = None
    groups: tuple[int, ...] = ()

    @property
    def several(self) -> bool:
        """Whether a trend may bind several events to it: it is a Kleene variable, or bound anew in each iteration."""
        return self.kleene or bool(self.groups)


@dataclass(frozen=True, slots=True)
class AbsentPattern:
    """A pattern of more than one event that a NOT forbids: its name, itself, its variables and labels.

    `groups` are the numbers, in the whole query, of the groups that are repeated inside of it, by their own.
    """

    name: str
    pattern: s.Pattern
    variables: frozenset[str]
    groups: tuple[int, ...] = ()


def until_name(variable: str) -> str:
    """Return the name of the events that a variable's UNTIL looks at."""
    return f"{variable}\nUNTIL"


class WindowKind(StrEnum):
    """How WITHIN bounds a trend."""

    WHOLE = "whole"  # no WITHIN: the whole input is one window
    SPAN = "span"  # WITHIN alone
    SLIDING = "sliding"  # WITHIN and SLIDE


@dataclass(frozen=True, slots=True)
class Window:
    """WITHIN and SLIDE as written: in microseconds for timestamps and dates, else in the unit of the time column."""

    kind: WindowKind
    size: int | Decimal | None = None
    slide: int | Decimal | None = None
    has_unit: bool = False


@dataclass(frozen=True, slots=True)
class OutputColumn:
    """A column of the result: its name, and its type as readers see it."""

    name: str
    type: str


COUNTING = ("COUNT", "BEGINS", "ENDS")  # aggregates that are whole numbers of results or of events


class OutputKind(StrEnum):
    """The kind of an item of RETURN, ORDER BY or AGGREGATE."""

    IDS = "ids"  # v
    ATTRIBUTE = "attribute"  # v.attr, FIRST(v).attr, v[k].attr
    LENGTH = "length"
    AGGREGATE = "aggregate"  # SUM|MIN|MAX|AVG(v.attr), COUNT(v), COUNT(*), MIN|MAX|AVG(LENGTH)
    CONSTANT = "constant"
    EXPRESSION = "expression"  # arithmetic on these


@dataclass(frozen=True, slots=True)
class Output:
    """An item of RETURN, ORDER BY or AGGREGATE, resolved.

    `function` is SUM, MIN, MAX, AVG, COUNT, SHARE, BEGINS or ENDS for an aggregate, the operation for an expression;
    `column` the attribute it reads; `arguments` the operands of an expression, or the one value of a trend that is
    aggregated. `value` is an expression whose columns `_0`, `_1`, ... are the arguments, or, of an aggregate, the value
    of each event that `column` names.
    """

    kind: OutputKind
    type: Type
    list: bool = False
    function: str = ""
    column: Column | None = None
    variable: str | None = None
    constant: Constant | None = None
    arguments: tuple[Output, ...] = ()
    value: Value | None = None


@dataclass(frozen=True, slots=True)
class NamedOutput:
    """An output and the name of its column."""

    name: str
    output: Output


@dataclass(frozen=True, slots=True)
class Ordering:
    """One key of ORDER BY."""

    output: Output
    descending: bool


@dataclass(frozen=True, slots=True)
class BoundQuery:
    """A query bound to a schema and parameters; `parameters` as people see them, `given` as they were given.

    HAVING is bounds of the length (`having`) and other conditions on a trend (`filters`). `counted` are conditions that
    have become bounds of quantifiers; see `trellis.plan.rewrites`.
    """

    text: str
    syntax: s.QuerySyntax
    schema: Schema | None
    pattern: s.Pattern
    variables: tuple[Variable, ...]
    conditions: tuple[Condition, ...]
    partition: tuple[tuple[str, Type], ...]
    window: Window
    select: s.Select
    report: s.Report
    having: tuple[LengthBound, ...]
    filters: tuple[Condition, ...]
    returns: tuple[NamedOutput, ...]
    aggregates: tuple[NamedOutput, ...]
    group_by: tuple[str, ...]
    order_by: tuple[Ordering, ...]
    limit: int | None
    per_window: bool
    offset: int
    columns: tuple[OutputColumn, ...]
    parameters: tuple[tuple[str, str], ...]
    given: Mapping[str, Any]
    limit_per: tuple[Output, ...] = ()
    per_event: s.PerEvent | None = None
    after_match: s.AfterMatch | None = None
    groups: tuple[RepeatedGroup, ...] = ()
    absent_patterns: tuple[AbsentPattern, ...] = ()
    counted: tuple[Condition, ...] = ()
    made: MadeOnce = field(default_factory=MadeOnce, init=False, repr=False, compare=False)

    @property
    def known_schema(self) -> Schema:
        """The schema of the events, of a query that is bound to some."""
        assert self.schema is not None
        return self.schema

    @property
    def inside_not(self) -> frozenset[str]:
        """The variables and labels of patterns that a NOT forbids as a whole."""
        return frozenset().union(*(one.variables for one in self.absent_patterns))

    @property
    def arranged(self) -> bool:
        """Whether rows get another order than that of ranks, or are left out by their values."""
        return bool(self.order_by or self.limit_per)

    @property
    def arranging(self) -> tuple[Output, ...]:
        """The values by which rows are arranged: the keys of ORDER BY, then the items of LIMIT PER."""
        return (*(ordering.output for ordering in self.order_by), *self.limit_per)

    @property
    @once
    def fixed(self) -> bool:
        """Whether the pattern is a sequence of fixed length: no Kleene operator."""
        return not any(v.several and not v.absent for v in self.variables)

    def variable(self, name: str) -> Variable:
        """Return a variable by its name."""
        return next(v for v in self.variables if v.name == name)
