"""The texts of a plan that say which attribute index it has, and how long counting on it takes."""

from __future__ import annotations

from trellis.language.bound import WindowKind
from trellis.language.syntax import Report, Select
from trellis.plan.plan import Plan

INDEXES = {
    "key": "by key: one attribute vertex for each value",
    "inequality": "by value: the events that may follow one are a range of attribute vertices, up to the last",
    "range": "by value: the events that may follow one are a few ranges of attribute vertices",
    "two inequalities": "by two values: ranges of attribute vertices for one, divide and conquer over time for both",
    "three inequalities": "by three values: as by two, and divide and conquer over one value besides",
    "either of two": "by two values: ranges of attribute vertices for one, divide and conquer over time for either",
    "several": "by values: ranges of attribute vertices for one, if a gap in time bounds the rest; else edges",
}
COSTS = {
    "key": "n",
    "inequality": "n log m",
    "range": "n log m",
    "two inequalities": "n log² n",
    "three inequalities": "n log³ n",
    "either of two": "n log² n",
    "several": "n log m with a gap in time, else e",
}


def index_text(plan: Plan) -> str:
    """Say how successors are found."""
    relation = plan.relation
    if plan.bound.select is not Select.ANY:
        return "none: at most one event follows another, and these edges are listed"
    if plan.bound.report is Report.MAXIMAL:
        return (
            "direct successors only (the transitive reduction), found without testing all pairs where values allow it"
        )
    if relation.kind is None:
        return "edges: the key, if any, and the codes of values narrow the pairs, the rest is evaluated on these"
    keyed = "by key, then " if relation.keys and relation.kind != "key" else ""
    return keyed + INDEXES[relation.kind]


def cost_text(plan: Plan) -> str:
    """Say what counting costs, with n events, m attribute vertices and e edges of a window or span."""
    relation = plan.relation
    indexed = plan.bound.select is Select.ANY and plan.bound.report is not Report.MAXIMAL and relation.kind is not None
    cost = COSTS[relation.kind or ""] if indexed else "e"
    if plan.bound.select is not Select.ANY:
        cost = "n"
    elif plan.bound.report is Report.MAXIMAL:
        cost = "n log² n for one inequality, else the edges that have no detour"
    more = []
    if plan.bound.window.kind is WindowKind.SPAN:
        more.append("for each event that starts a span, eight at a time")
    elif plan.bound.window.kind is WindowKind.SLIDING:
        more.append("for each window; the sort is shared by all")
    if plan.bound.having:
        more.append("for each length that HAVING tells apart")
    return f"time in the order of {cost}" + "".join(f", {text}" for text in more)
