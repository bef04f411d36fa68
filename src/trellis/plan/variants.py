"""Plans of the same trends with other output."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from trellis.arguments import whole_number
from trellis.errors import UsageError
from trellis.language.binder import bind
from trellis.language.parser import parse
from trellis.language.printer import to_query_text
from trellis.plan.choice import make_plan
from trellis.plan.plan import Plan


def aggregate_plan(plan: Plan, items: Sequence[str]) -> Plan:
    """Return the plan of a query with AGGREGATE in place of what it returns.

    Parameters
    ----------
    plan
        The plan of the query.
    items
        Aggregates as the query language writes them: `count(*)`, `avg(s.price) AS mean`.
    """
    if not items:
        raise UsageError("no aggregate was asked for", "Ask for one, such as 'count(*)' or 'avg(s.price)'.")
    wanted = parse(f"PATTERN any_event AGGREGATE {', '.join(items)}")
    syntax = replace(
        plan.bound.syntax, returns=(), aggregates=wanted.aggregates, group_by=wanted.group_by, order_by=(), limit=None,
        per_window=False, offset=0,
    )  # fmt: skip
    return _rebound(plan, to_query_text(syntax))


def top_plan(plan: Plan, number: int, by: str) -> Plan:
    """Return the plan of a query that gives the `number` results with the greatest value of an expression `by`."""
    number = whole_number(number, "the number of the best")
    wanted = parse(f"PATTERN any_event ORDER BY {by} DESC")
    syntax = replace(
        plan.bound.syntax,
        aggregates=(),
        group_by=(),
        order_by=wanted.order_by,
        limit=number,
        per_window=False,
        offset=0,
    )
    return _rebound(plan, to_query_text(syntax))


def limited_plan(plan: Plan, rows: int) -> Plan:
    """Return the plan with LIMIT `rows`, if it has none or a larger one; nothing else changes."""
    rows = whole_number(rows, "the number of rows")
    bound = plan.bound
    if bound.aggregates or bound.per_window or (bound.limit is not None and bound.limit <= rows):
        return plan
    return replace(plan, bound=replace(bound, limit=rows))


def _rebound(plan: Plan, text: str) -> Plan:
    bound = plan.bound
    again = bind(parse(text), text, bound.schema, bound.given, str(bound.report))
    return make_plan(again, plan.algorithm, plan.settings)
