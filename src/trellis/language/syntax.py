"""The syntax tree of a query: frozen nodes that compare by meaning, not by place.

Every node carries the `Span` of text it came from, which equality ignores. Two notations of one thing
(`NEXT(s).price` and `s[i].price` beside `s[i-1]`) are the same node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, replace
from decimal import Decimal
from enum import StrEnum
from typing import Any


@dataclass(frozen=True, slots=True)
class Span:
    """A range `[start, end)` of characters of the query text."""

    start: int
    end: int


NOWHERE = Span(0, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A node of the syntax tree, with its place in the text."""

    span: Span = field(default=NOWHERE, compare=False, repr=False)


_PARTS: dict[str, tuple[str, ...]] = {}  # of each kind of node by its name


def _parts(node: Node) -> tuple[str, ...]:
    """Return the names of the fields of a node that may hold others."""
    kind = type(node).__qualname__
    if kind not in _PARTS:
        _PARTS[kind] = tuple(f.name for f in fields(node) if f.name != "span")
    return _PARTS[kind]


def children(node: Node) -> Iterator[Node]:
    """Yield the nodes directly below `node`, in the order they are written."""
    for name in _parts(node):
        value = getattr(node, name)
        if isinstance(value, Node):
            yield value
        elif isinstance(value, tuple):
            yield from (item for item in value if isinstance(item, Node))


def walk(node: Node) -> Iterator[Node]:
    """Yield `node` and everything below it, parents first."""
    yield node
    for child in children(node):
        yield from walk(child)


def rebuild(node: Node, change: Callable[[Node], Node | None]) -> Node:
    """Return `node` with every node for which `change` gives one replaced by it, parents first."""
    changed = change(node)
    if changed is not None:
        return changed
    updates: dict[str, Any] = {}
    for name in _parts(node):
        value = getattr(node, name)
        if isinstance(value, Node):
            updates[name] = rebuild(value, change)
        elif isinstance(value, tuple):
            updates[name] = tuple(rebuild(v, change) if isinstance(v, Node) else v for v in value)
    return replace(node, **updates) if updates else node


@dataclass(frozen=True, slots=True)
class Name(Node):
    """A column named without a variable, as in `[id]` and GROUP BY."""

    value: str


# --- Patterns ---------------------------------------------------------------------------------------------------


class Select(StrEnum):
    """How a trend may go on."""

    ANY = "skip-till-any"
    NEXT = "skip-till-next"
    CONTIGUOUS = "contiguous"


@dataclass(frozen=True, slots=True)
class Single(Node):
    """`E v`: one event, or with `optional` (`E? v`) perhaps none; `type` is None where any event may fill it."""

    type: str | None
    var: str
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Kleene(Node):
    """`E+ v[]`, `E* v[]`, `E{2,5} v[]`: at least `least` and at most `most` events, in time order; None: any number.

    `policy` says how its own repetition selects; `greedy` and `until` are the words behind its brackets.
    """

    type: str | None
    var: str
    least: int = 1
    most: int | None = None
    policy: Select | None = None
    greedy: bool = False
    until: Condition | None = None


@dataclass(frozen=True, slots=True)
class Seq(Node):
    """`SEQ(p, ...)` or `p; ...`: the parts, two or more, one after another; not all of them NOT."""

    parts: tuple[Pattern, ...]


@dataclass(frozen=True, slots=True)
class Or(Node):
    """`OR(p, ...)`: one of the arms, two or more."""

    arms: tuple[Pattern, ...]


@dataclass(frozen=True, slots=True)
class And(Node):
    """`AND(p, ...)`: all arms, two or more, in any order, interleaved."""

    arms: tuple[Pattern, ...]


@dataclass(frozen=True, slots=True)
class Absent(Node):
    """`NOT(E v, ...)`: none of these events, nor a match of these patterns, at this place of a SEQ or an AND."""

    events: tuple[Pattern, ...]


@dataclass(frozen=True, slots=True)
class Group(Node):
    """`SEQ(A+ a[], B b)+ g[]`: a pattern, at least `least` and at most `most` times; `label` is `g`, or None."""

    pattern: Pattern
    least: int = 1
    most: int | None = None
    label: str | None = None
    policy: Select | None = None


@dataclass(frozen=True, slots=True)
class PolicyStep(Node):
    """`contiguous B b` inside a SEQ: a part, and how the step into it selects."""

    policy: Select
    pattern: Pattern


Pattern = Single | Kleene | Seq | Or | And | Absent | Group | PolicyStep


def may_be_empty(pattern: Pattern) -> bool:
    """Return whether a pattern can match without any event."""
    match pattern:
        case Single(optional=optional):
            return optional
        case Kleene(least=least):
            return least == 0
        case Group(pattern=inner, least=least):
            return least == 0 or may_be_empty(inner)
        case Or(arms=arms):
            return any(map(may_be_empty, arms))
        case And(arms=parts) | Seq(parts=parts):
            return all(map(may_be_empty, parts))
        case PolicyStep(pattern=inner):
            return may_be_empty(inner)
    return True


def leaves(pattern: Node) -> Iterator[Single | Kleene]:
    """Yield the variables below a pattern, those of NOT too."""
    for node in walk(pattern):
        if isinstance(node, Single | Kleene):
            yield node


def absent_patterns(pattern: Node) -> Iterator[Pattern]:
    """Yield the patterns that NOTs below a pattern forbid, but for NOTs inside of these."""
    if isinstance(pattern, Absent):
        yield from pattern.events
    else:
        for child in children(pattern):
            yield from absent_patterns(child)


# --- Expressions ------------------------------------------------------------------------------------------------


class Which(StrEnum):
    """Which event or events of a variable a reference means."""

    EACH = "each"  # v.x, or s[i].x with no s[i-1] in the conjunct: every event of the variable
    EARLIER = "earlier"  # s[i-1].x, or s.x beside NEXT(s): the first of two consecutive events
    LATER = "later"  # NEXT(s).x, or s[i].x and s.x beside s[i-1]: the second of two consecutive events
    FIRST = "first"  # FIRST(v).x
    LAST = "last"  # LAST(v).x
    NTH = "nth"  # v[k].x, k from 1
    WHOLE = "whole"  # SUM(v.x): all events of the variable
    BEFORE = "before"  # SUM(s[..i-1].x): the events before s[i]
    UPTO = "upto"  # SUM(s[..i].x): the events up to s[i]


@dataclass(frozen=True, slots=True)
class Iteration(Node):
    """An iteration of the group with a label: `g[i-1]` (EARLIER), `g[i]` (LATER), FIRST(g), LAST(g), `g[k]` (NTH)."""

    label: str
    which: Which
    nth: int | None = None


@dataclass(frozen=True, slots=True)
class Attribute(Node):
    """An attribute of an event (or of each event) of a variable; `nth` is k in `v[k].x`, else None.

    `iteration` tells of which iteration of a group the variable is: `g[i-1].a.x`.
    """

    var: str
    attr: str
    which: Which = Which.EACH
    nth: int | None = None
    iteration: Iteration | None = None


@dataclass(frozen=True, slots=True)
class Prefix(Node):
    """An aggregate over the events so far: `AVG(s[..i-1].price)`, `COUNT(s[..i])`.

    `function` is empty for the list of their values, which stands in `IN (...)`; `attr` is None for COUNT; `inclusive`
    tells `[..i]` from `[..i-1]`.
    """

    function: str
    var: str
    attr: str | None
    inclusive: bool = False


@dataclass(frozen=True, slots=True)
class VariableReference(Node):
    """In RETURN and ORDER BY: the event id (for a Kleene variable: ids) bound to a variable."""

    var: str


@dataclass(frozen=True, slots=True)
class Parameter(Node):
    """A value given at run time."""

    name: str


@dataclass(frozen=True, slots=True)
class Integer(Node):
    """A whole number, never negative in the text (a minus sign is a `Negative`)."""

    value: int


@dataclass(frozen=True, slots=True)
class Real(Node):
    """A number with a point or an exponent: a double, beside decimals a decimal."""

    value: Decimal


@dataclass(frozen=True, slots=True)
class String(Node):
    """A string in single quotes; two of them inside stand for one."""

    value: str


@dataclass(frozen=True, slots=True)
class Boolean(Node):
    """TRUE or FALSE."""

    value: bool


@dataclass(frozen=True, slots=True)
class Timestamp(Node):
    """`TIMESTAMP '...'`: microseconds since the epoch, UTC where the text has no zone."""

    micros: int


@dataclass(frozen=True, slots=True)
class Duration(Node):
    """A number with a unit: `5 min`, in microseconds."""

    micros: int


Literal = Integer | Real | String | Boolean | Timestamp | Duration


@dataclass(frozen=True, slots=True)
class Literals(Node):
    """`[1, 2]`: a list, as a parameter of IN may be; each a literal or a `Negative` of one."""

    items: tuple[Literal | Negative, ...]


@dataclass(frozen=True, slots=True)
class Negative(Node):
    """`-x`."""

    operand: Expression


@dataclass(frozen=True, slots=True)
class Arithmetic(Node):
    """`left op right`, `op` one of `+ - * / %`."""

    op: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Call(Node):
    """`COALESCE(x, ...)` or a scalar function such as `ROUND(x, 2)`; `function` is in upper case."""

    function: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Case(Node):
    """`CASE WHEN test THEN value ... [ELSE otherwise] END`."""

    tests: tuple[Condition, ...]
    values: tuple[Expression, ...]
    otherwise: Expression | None = None


@dataclass(frozen=True, slots=True)
class Cast(Node):
    """`CAST(operand AS type)`; `type` is in upper case."""

    operand: Expression
    type: str


@dataclass(frozen=True, slots=True)
class Aggregate(Node):
    """`COUNT(*)`, `COUNT(v)`, `SUM|MIN|MAX|AVG` of LENGTH, of an attribute or of other values; None stands for `*`."""

    function: str
    argument: Expression | None


@dataclass(frozen=True, slots=True)
class Length(Node):
    """LENGTH: the number of events of a trend."""


# The items of AGGREGATE that only an event has, and their meaning.
OF_EVENT = {
    "SHARE": "the part of all results that hold an event",
    "BEGINS": "the number of results that begin with an event",
    "ENDS": "the number of results that end with an event",
}


@dataclass(frozen=True, slots=True)
class OfEvent(Node):
    """SHARE, BEGINS or ENDS: an item of AGGREGATE PER EVENT."""

    function: str


Expression = (
    Attribute
    | Prefix
    | VariableReference
    | Parameter
    | Integer
    | Real
    | String
    | Boolean
    | Timestamp
    | Duration
    | Negative
    | Arithmetic
    | Call
    | Case
    | Cast
    | Aggregate
    | Length
    | OfEvent
)


# --- Conditions -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Comparison(Node):
    """`left op right`, `op` one of `= != < <= > >=` (`<>` is read as `!=`)."""

    op: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Membership(Node):
    """`x IN (a, ...)`."""

    operand: Expression
    items: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class RangeTest(Node):
    """`x BETWEEN low AND high`."""

    operand: Expression
    low: Expression
    high: Expression


@dataclass(frozen=True, slots=True)
class NullTest(Node):
    """`x IS NULL`."""

    operand: Expression


@dataclass(frozen=True, slots=True)
class LikeTest(Node):
    """`x LIKE pattern`: `%` any run, `_` any one character, backslash escapes."""

    operand: Expression
    pattern: Expression


@dataclass(frozen=True, slots=True)
class Truth(Node):
    """A boolean value as a condition: `c.flagged`, TRUE, a boolean parameter."""

    operand: Expression


@dataclass(frozen=True, slots=True)
class Conjunction(Node):
    """`a AND b`, two or more; none of them a Conjunction itself."""

    terms: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Disjunction(Node):
    """`a OR b`, two or more; none of them a Disjunction itself."""

    terms: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Negation(Node):
    """`NOT a`."""

    term: Condition


@dataclass(frozen=True, slots=True)
class PartitionClause(Node):
    """`[id, sector]`: all events of a trend share these attributes."""

    attributes: tuple[Name, ...]


Condition = (
    Comparison
    | Membership
    | RangeTest
    | NullTest
    | LikeTest
    | Truth
    | Conjunction
    | Disjunction
    | Negation
    | PartitionClause
)


# --- Clauses ----------------------------------------------------------------------------------------------------


class Report(StrEnum):
    """Which trends are results."""

    UNEXTENDABLE = "unextendable"
    MAXIMAL = "maximal"
    ANY = "any"


@dataclass(frozen=True, slots=True)
class WithinClause(Node):
    """`WITHIN size [SLIDE slide]`; each an Integer, Real, Duration or Parameter."""

    size: Expression
    slide: Expression | None = None


@dataclass(frozen=True, slots=True)
class Item(Node):
    """One item of RETURN or AGGREGATE."""

    expression: Expression
    alias: str | None = None


@dataclass(frozen=True, slots=True)
class Sort(Node):
    """One item of ORDER BY."""

    expression: Expression
    descending: bool = False


class Skip(StrEnum):
    """Where the next result may begin, under AFTER MATCH SKIP."""

    PAST_LAST = "PAST LAST"  # strictly after the last event of the one before
    TO_NEXT = "TO NEXT"  # at another first event
    TO_FIRST = "TO FIRST"  # at or after the first event of a variable
    TO_LAST = "TO LAST"  # at or after the last event of a variable


@dataclass(frozen=True, slots=True)
class AfterMatch(Node):
    """`AFTER MATCH SKIP ...`; `var` is the variable of TO FIRST and TO LAST, else None."""

    skip: Skip
    var: str | None = None


@dataclass(frozen=True, slots=True)
class PerEvent(Node):
    """`PER EVENT [OF v]` behind AGGREGATE; `var` is `v`, or None."""

    var: str | None = None


@dataclass(frozen=True, slots=True)
class QuerySyntax(Node):
    """A whole query.

    `where` and `having` are lists of conjuncts, split at AND. At most one of `returns` and `aggregates` is not empty.
    In `order_by` and `limit_per` a name that RETURN gives with AS has been replaced by what it stands for.
    """

    pattern: Pattern
    where: tuple[Condition, ...] = ()
    having: tuple[Condition, ...] = ()
    select: Select = Select.ANY
    report: Report = Report.UNEXTENDABLE
    within: WithinClause | None = None
    returns: tuple[Item, ...] = ()
    aggregates: tuple[Item, ...] = ()
    group_by: tuple[Name, ...] = ()
    order_by: tuple[Sort, ...] = ()
    limit: int | None = None
    per_window: bool = False
    offset: int = 0
    limit_per: tuple[Expression, ...] = ()
    per_event: PerEvent | None = None
    after_match: AfterMatch | None = None
