"""The syntax of a whole query: its clauses."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from trellis.language.syntax.nodes import Name, Node
from trellis.language.syntax.patterns import Pattern, Select
from trellis.language.syntax.values import Condition, Expression


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
