"""The syntax of values and of conditions on them."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum

from trellis.language.syntax.nodes import Name, Node


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
