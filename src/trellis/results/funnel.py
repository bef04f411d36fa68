"""How far starts got: the first events of a pattern, and those of them that reach each of its steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from trellis.errors import UsageError
from trellis.language import syntax as s
from trellis.language.binder import bind
from trellis.language.printer import pattern_text, to_query_text
from trellis.plan.choice import make_plan
from trellis.plan.plan import Plan
from trellis.results.table import ResultTable


def funnel_table(plans: Sequence[Plan], reached: Sequence[int]) -> ResultTable:
    """Return how many starts reached each step, of the plans up to each: see `Results.funnel`."""
    texts = [pattern_text(plan.bound.pattern) for plan in plans]
    stopped = [a - b for a, b in zip(reached, [*reached[1:], 0], strict=True)]
    rows = pa.table({"step": range(1, len(plans) + 1), "pattern": texts, "starts": reached, "stopped": stopped})
    return ResultTable(lambda: rows)


def step_plans(plan: Plan) -> list[Plan]:
    """Return the plans of a pattern up to each of its steps, each with the conditions on what it has.

    Raises
    ------
    UsageError
        If the pattern has no steps one after another.
    """
    syntax = plan.bound.syntax
    pattern = plan.bound.pattern
    if not isinstance(pattern, s.Seq):
        raise UsageError("a funnel is for patterns of several steps", "Write them as SEQ(A a, B b).")
    return [_plan_of(plan, syntax, parts) for parts in _steps(pattern)]


def _steps(pattern: s.Seq) -> list[tuple[s.Pattern, ...]]:
    """Return the parts of a pattern up to each of its steps."""
    ends = [i + 1 for i, part in enumerate(pattern.parts) if not isinstance(part, s.Absent)]
    return [pattern.parts[:end] for end in ends if not s.may_be_empty(_pattern_of(pattern.parts[:end]))]


def pieces_plans(plan: Plan, step: int | None) -> list[Plan]:
    """Return the plans of a pattern up to the pieces of a step in which groups are repeated, the smallest piece first.

    Pieces are of the first iteration, then whole iterations until there are enough. Conditions that name a group are
    left out. `step` counts from 0 as in `step_plans`; None for a pattern that has no steps.
    """
    pattern = plan.bound.pattern
    *before, part = (pattern,) if step is None or not isinstance(pattern, s.Seq) else _steps(pattern)[step]
    return [_plan_of(plan, plan.bound.syntax, (*before, piece), labels=False) for piece in _pieces(part)]


def _pieces(part: s.Pattern) -> list[s.Pattern]:
    """Return the pieces of a part that come before the whole of it, the smallest first; none without groups."""
    match part:
        case s.PolicyStep(pattern=pattern) | s.Group(pattern=pattern, least=0):
            return [replace(part, pattern=piece) for piece in _pieces(pattern)]
        case s.Group(pattern=pattern, least=least):
            first = [*_pieces(pattern), pattern] if isinstance(pattern, s.Group) else _beginnings(pattern)
            once = [replace(part, pattern=piece, least=1, most=1) for piece in first]
            return [*once, *(replace(part, least=n, most=n) for n in range(2, least + 1))]
        case s.Seq() if any(isinstance(node, s.Group) for node in s.walk(part)):
            return _beginnings(part)[:-1]
    return []


def _beginnings(pattern: s.Pattern) -> list[s.Pattern]:
    """Return the beginnings of a SEQ, with the pieces of its parts, and the whole; another pattern is whole."""
    if not isinstance(pattern, s.Seq):
        return [pattern]
    found: list[s.Pattern] = []
    for end, part in enumerate(pattern.parts):
        if not isinstance(part, s.Absent):
            found += [_pattern_of((*pattern.parts[:end], piece)) for piece in (*_pieces(part), part)]
    found = found if found and found[-1] == pattern else [*found, pattern]
    return [one for one in found if not s.may_be_empty(one)]


def _pattern_of(parts: tuple[s.Pattern, ...]) -> s.Pattern:
    return parts[0] if len(parts) == 1 else s.Seq(parts)


def _plan_of(plan: Plan, syntax: s.QuerySyntax, parts: tuple[s.Pattern, ...], labels: bool = True) -> Plan:
    pattern = _pattern_of(parts)
    names = variables_of(pattern)
    if not labels:
        names -= {node.label for node in s.walk(pattern) if isinstance(node, s.Group)}
    where = tuple(c for c in syntax.where if isinstance(c, s.PartitionClause) or variables_of(c) <= names)
    short = replace(
        syntax, pattern=pattern, where=where, having=(), report=s.Report.ANY, returns=(), aggregates=(), group_by=(),
        order_by=(), limit=None, per_window=False, offset=0, limit_per=(), per_event=None, after_match=None,
    )  # fmt: skip
    used = {node.name for node in s.walk(short) if isinstance(node, s.Parameter)}
    given = {name: value for name, value in plan.bound.given.items() if name in used}
    return make_plan(bind(short, to_query_text(short), plan.bound.schema, given, None))


def variables_of(node: s.Node) -> set[str]:
    """Return the variables, and the labels of groups, that a pattern declares or a condition names."""
    names = ((getattr(one, "var", None), getattr(one, "label", None)) for one in s.walk(node))
    return {name for both in names for name in both if isinstance(name, str)}
