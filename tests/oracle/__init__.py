"""The oracle: a slow, obviously right evaluator of queries, written from the page on semantics.

It shares no code with the engine (only the syntax tree, which is its input), lists every trend, and tests
completeness by definition. Use it on inputs with at most some 10^5 trends.

    answer = run(query, rows, time="ts", event_id="id")

In `answer.trends` windows and event times are microseconds since the epoch for timestamps and dates, and
the numbers themselves otherwise. In `answer.rows` and `answer.aggregates` they are datetimes in UTC (midnight
for dates), or the numbers. An attribute in RETURN is what the row holds (a datetime is made aware); what is
computed never is NaN (it is None then), a difference of timestamps is a timedelta.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from trellis.language import syntax

from .aggregates import aggregate_rows
from .conditions import Conjunct, compile_condition, compile_conjunct
from .events import Event, Input, OracleError, Rows, Schema, read
from .matching import Matcher
from .output import Setting, Trend, make_trend, rows, skipped, trend_leaf
from .report import ranked, reported
from .structure import absents, leaves, untyped, variables
from .values import OracleOverflow
from .windows import Window, length, worlds

__all__ = ["Answer", "Event", "OracleError", "OracleOverflow", "Trend", "run"]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a query gives."""

    trends: list[Trend]  # after HAVING, in the order (window, partition, rank); ORDER BY and LIMIT not applied
    rows: list[dict[str, Any]]  # the output, after ORDER BY, LIMIT and OFFSET
    aggregates: list[dict[str, Any]] | None  # the rows of AGGREGATE; None where the query has none
    counts: list[tuple[Window | None, tuple[Any, ...], int]] = field(default_factory=list)

    @property
    def count(self) -> int:
        """The number of results."""
        return len(self.trends)


def run(
    query: syntax.QuerySyntax,
    tables: Rows | Mapping[str, Rows],
    *,
    time: str | tuple[str, ...],
    type: str | None = None,
    event_id: str | None = None,
    params: Mapping[str, Any] | None = None,
    report_mode: str | None = None,
    schema: Schema | Mapping[str, Schema] | None = None,
) -> Answer:
    """Evaluate a query on one table (a list of rows) or on several by type name.

    Rows are dicts from column to int, float, Decimal, str, bool, None, datetime or date. `params` are values
    that have been read already (int, float, Decimal, str, bool, timedelta, datetime). `schema` (column ->
    type name such as `int64`, `double`, `decimal(10,2)`, `string`, `boolean`, `timestamp`, `date`; with
    several tables one for each) tells what the values cannot: the columns of an empty table, the kind of one
    that is all NULL, the scale of a decimal.
    """
    given = params or {}
    data = read(tables, time=time, type=type, event_id=event_id, schema=schema)
    pattern = _pattern(query.pattern, data)
    types = _types(pattern)
    partition, conjuncts = _where(query, types, data, given)
    size = length(query.within.size, data.time_kind, given) if query.within else None
    slide = length(query.within.slide, data.time_kind, given) if query.within else None
    untils = {
        leaf.var: compile_conjunct(leaf.until, types, data, given)
        for leaf in leaves(pattern)
        if isinstance(leaf, syntax.Kleene) and leaf.until is not None
    }
    mode = syntax.Report(report_mode or query.report)
    names = variables(pattern)

    setting = Setting(query, data, types, given, partition)
    having = [compile_condition(condition, trend_leaf(setting), given) for condition in query.having]
    trends: list[Trend] = []
    counts: list[tuple[Window | None, tuple[Any, ...], int]] = []
    for world in worlds(data, partition, size, slide):
        span = size if slide is None else None
        found = Matcher(pattern, conjuncts, world.events, query.select, span, untils).trends()
        results = ranked(reported(found, mode), names)
        candidates = (make_trend(world.window, world.partition, 0, *one) for one in results)
        kept = skipped([trend for trend in candidates if all(test(trend) for test in having)], setting)
        trends += [replace(trend, rank=rank) for rank, trend in enumerate(kept)]
        if kept:
            counts.append((world.window, world.partition, len(kept)))

    totals = aggregate_rows(trends, setting) if query.aggregates else None
    return Answer(trends, rows(trends, setting), totals, counts)


def _pattern(pattern: syntax.Pattern, data: Input) -> syntax.Pattern:
    """Where the input has no types, one declared type stands for all rows."""
    if data.typed:
        return pattern
    declared = {leaf.type for leaf in (*leaves(pattern), *absents(pattern))} - {None}
    if len(declared) > 1:
        raise OracleError(f"the input has no types, but the pattern names {sorted(map(str, declared))}")
    return untyped(pattern)


def _types(pattern: syntax.Pattern) -> dict[str, set[str | None]]:
    types: dict[str, set[str | None]] = {}
    for leaf in (*leaves(pattern), *absents(pattern)):
        types.setdefault(leaf.var, set()).add(leaf.type)
    return types


def _where(
    query: syntax.QuerySyntax, types: Mapping[str, set[str | None]], data: Input, params: Mapping[str, Any]
) -> tuple[tuple[str, ...], list[Conjunct]]:
    """Split WHERE into the partition's attributes and the other conjuncts."""
    attributes = [name.value for c in query.where if isinstance(c, syntax.PartitionClause) for name in c.attributes]
    others = [c for c in query.where if not isinstance(c, syntax.PartitionClause)]
    conjuncts = [compile_conjunct(condition, types, data, params) for condition in others]
    forbidden = [{leaf.var for leaf in syntax.leaves(one)} for one in syntax.absent_patterns(query.pattern)]
    if any(sum(bool(own & conjunct.names) for own in forbidden) > 1 for conjunct in conjuncts):
        raise OracleError("a condition between variables of two NOTs")
    return tuple(dict.fromkeys(attributes)), conjuncts
