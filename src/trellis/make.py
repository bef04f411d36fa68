"""Makes the operator that a plan names."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import cache
from importlib import import_module
from itertools import chain

from trellis.events.choices import are_few
from trellis.events.slice import Slice
from trellis.events.variables import have_values
from trellis.language.once import once
from trellis.operators.contract import NotComparable, QueryOperator
from trellis.plan import spec as o
from trellis.plan.choice import plan_by_events
from trellis.plan.plan import Plan

Make = Callable[[Plan, Slice, int], QueryOperator]


def make_operator(plan: Plan, events: Slice, threads: int = 1) -> QueryOperator:
    """Return the operator of a plan over a slice, or the one that the plan names for events that it cannot work on."""
    if any(named.output.value is not None for named in plan.bound.aggregates):
        from trellis.events.derived import with_derived

        events = with_derived(plan.bound, events)
    if plan.bound.after_match is not None:
        from trellis.operators.skipping import SkippingOperator

        return SkippingOperator(plan, events, threads, make_operator(_plan_of_all(plan), events, threads))
    by_events = plan_by_events(plan)
    if by_events is not None and have_values(plan.bound, plan.constant, by_events[1], events):
        plan = by_events[0]
    few = [_plan_of_few(plan)] if plan.operator.few is not None and are_few(plan, events) else []
    plans = (plan if spec is plan.operator else replace(plan, operator=spec) for spec in plan.operator.ways())
    for chosen in chain(few, plans):
        with suppress(NotComparable):
            return operator_class(chosen.operator.name)(chosen, events, threads)
    raise AssertionError(f"no operator works on these events: {plan.operator}")


@once
def _plan_of_all(plan: Plan) -> Plan:
    """Return the plan of all results, of which AFTER MATCH leaves some."""
    return replace(plan, bound=replace(plan.bound, after_match=None, order_by=(), limit=None, limit_per=()))


@once
def _plan_of_few(plan: Plan) -> Plan:
    """Return the plan with the operator that is sooner done with few events."""
    assert plan.operator.few is not None
    return replace(plan, operator=plan.operator.few)


@cache
def operator_class(name: str) -> Make:
    """Return the class of an operator; late, since its kernels take their time."""
    module, _, called = _CLASSES[name].rpartition(".")
    made: Make = getattr(import_module(module), called)
    return made


_CLASSES = {
    o.TRENDS: "trellis.operators.trends.operator.TrendOperator",
    o.PATTERNS: "trellis.operators.patterns.operator.PatternOperator",
    o.SEQUENCES: "trellis.operators.sequences.operator.SequenceOperator",
    o.TREE_PLAN: "trellis.operators.trees.sequences.TreeOperator",
    o.JOINS: "trellis.operators.joins.operator.JoinOperator",
    o.JOIN_TREE: "trellis.operators.trees.joins.JoinTreeOperator",
    o.NAMED: "trellis.papers.operator.NamedOperator",
}
