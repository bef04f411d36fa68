"""Plans of the same trends with other output."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from trellis.arguments import whole_number
from trellis.errors import QueryError, UsageError, nearest
from trellis.language.binder import bind
from trellis.language.once import once
from trellis.language.parser import parse
from trellis.language.printer import to_query_text
from trellis.language.syntax import OF_EVENT, PerEvent
from trellis.plan.choice import make_plan
from trellis.plan.plan import Plan

AGGREGATES = ("COUNT", "SUM", "MIN", "MAX", "AVG", *OF_EVENT, "LENGTH")


@once
def aggregate_plan(plan: Plan, items: tuple[str, ...], per_event: PerEvent | None = None) -> Plan:
    """Return the plan of a query with AGGREGATE in place of what it returns.

    Parameters
    ----------
    plan
        The plan of the query.
    items
        Aggregates as the query language writes them: `count(*)`, `avg(s.price) AS mean`.
    per_event
        That they are of each event, where the items do not say so themselves.
    """
    if not items:
        raise UsageError("no aggregate was asked for", "Ask for one, such as 'count(*)' or 'avg(s.price)'.")
    with _named_alone(plan, "an aggregate", items):
        wanted = parse(f"PATTERN any_event AGGREGATE {', '.join(items)}")
    names = [v.name for v in plan.bound.variables if not v.absent]
    if per_event is not None and per_event.var is not None and per_event.var not in names:
        raise UsageError(f"the pattern declares no variable `{per_event.var}`", f"Variables are {', '.join(names)}.")
    kept_order = plan.bound.syntax.order_by if plan.bound.after_match else ()  # by which AFTER MATCH chooses
    syntax = replace(
        plan.bound.syntax, returns=(), aggregates=wanted.aggregates, group_by=wanted.group_by, order_by=kept_order,
        limit=None, per_window=False, offset=0, limit_per=(), per_event=per_event or wanted.per_event,
    )  # fmt: skip
    with _named_alone(plan, "an aggregate", items):
        return _rebound(plan, to_query_text(syntax))


@contextmanager
def _named_alone(plan: Plan, what: str, items: Sequence[str]) -> Iterator[None]:
    """Say what is wrong with items that are given on their own, in place of the place in a query nobody wrote."""
    try:
        yield
    except QueryError as error:
        names = [v.name for v in plan.bound.variables if not v.absent]
        columns = {name for table in plan.bound.known_schema.tables for name in table.columns}
        place = error.text[error.start : error.end].strip().strip("`")
        item = next((item for item in items if re.search(rf"\b{re.escape(place)}\b", item)), ", ".join(items))
        hint = re.sub(r" in column \d+", "", error.hint or "") or None
        word = item.partition("(")[0].strip()
        if place in columns:
            with_name = re.sub(rf"(?<![\w.]){re.escape(place)}\b", f"{names[0]}.{place}", item)
            hint = f"Write `{with_name if '(' in item else f'max({with_name})'}`."
        elif word.upper() not in AGGREGATES and (near := nearest(word, map(str.lower, AGGREGATES))):
            hint = f"Did you mean `{near}`?"
        elif place == item.strip():
            near = nearest(place, ["length", *names])
            hint = f"Did you mean `{near}`?" if near else f"Write `length`, or such as `sum({names[0]}.attribute)`."
        raise UsageError(f"`{item}` is not {what}: {error.what}", hint) from None


@once
def top_plan(plan: Plan, number: int, by: str) -> Plan:
    """Return the plan of a query that gives the `number` results with the greatest value of an expression `by`."""
    number = whole_number(number, "the number of the best")
    if plan.bound.after_match is not None:
        raise UsageError("top() is not for a query with AFTER MATCH", "Sort the rows of the result.")
    with _named_alone(plan, "a value of a trend", [by]):
        wanted = parse(f"PATTERN any_event ORDER BY {by} DESC")
    syntax = replace(
        plan.bound.syntax,
        aggregates=(),
        group_by=(),
        order_by=wanted.order_by,
        limit=number,
        per_window=False,
        offset=0,
        limit_per=(),
        per_event=None,
    )
    with _named_alone(plan, "a value of a trend", [by]):
        return _rebound(plan, to_query_text(syntax))


@once
def limited_plan(plan: Plan, rows: int) -> Plan:
    """Return the plan with LIMIT `rows`, if it has none or a larger one; nothing else changes."""
    rows = whole_number(rows, "the number of rows")
    bound = plan.bound
    if bound.aggregates or bound.per_window or bound.limit_per or (bound.limit is not None and bound.limit <= rows):
        return plan
    return replace(plan, bound=replace(bound, limit=rows))


def ranked_plan(plan: Plan, rows: range) -> Plan:
    """Return the plan of some rows of its result, by their ranks in it."""
    bound = plan.bound
    if bound.per_window:
        raise UsageError("ranks on Spark are not for LIMIT PER WINDOW", "Use engine='local', or trends.to_spark().")
    begin = bound.offset + rows.start
    number = max(0, rows.stop - rows.start)
    left = number if bound.limit is None else max(0, min(number, bound.limit - rows.start))
    return replace(plan, bound=replace(bound, offset=begin, limit=left))


def _rebound(plan: Plan, text: str) -> Plan:
    bound = plan.bound
    again = bind(parse(text), text, bound.schema, bound.given, str(bound.report))
    return replace(make_plan(again, plan.algorithm, plan.settings), sizes=plan.sizes)
