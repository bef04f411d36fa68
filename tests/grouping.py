"""Hypothesis strategies of patterns with repeated groups, nested, with labels, bounds and policies."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from tests.oracle.structure import groups, kleene_variables, labels
from tests.strategies import (
    COMPARATORS,
    EITHER,
    NONE,
    TYPED,
    TYPES,
    Case,
    Table,
    among,
    fixed_case,
    general_case,
    general_conditions,
    havings,
    integers,
    leaves_of,
    not_empty,
    one_of,
    outputs,
    patterns,
    so_far,
    tables,
    trend_conditions,
    whole,
    withins,
    worded,
)
from trellis.language import syntax as s
from trellis.language.syntax import Which

REFUSED = ("repeated apart from one another", "so far", "in a stream", "a stream has no end")
REPEATED = [*[(1, None)] * 4, (0, None), (0, 1), (1, 2), (2, 2), (2, None), (0, 2)]


def is_refused(error: Exception) -> bool:
    """Tell whether an error is one of those by which a drawn query is refused by name, here or in a stream."""
    return any(words in str(error) for words in REFUSED)


@st.composite
def grouped(draw: Any, pattern: s.Pattern, names: Iterator[str], depth: int = 3) -> s.Pattern:
    """Draw quantifiers behind some parts of a pattern."""
    made = pattern
    if isinstance(pattern, s.Seq | s.Or | s.And):
        alike = isinstance(pattern, s.Or) and pattern.arms[0] == pattern.arms[1]
        parts = pattern.parts if isinstance(pattern, s.Seq) else pattern.arms
        if not alike and not _shares(pattern):
            parts = tuple(draw(grouped(part, names, depth - 1)) for part in parts)
        made = s.Seq(parts) if isinstance(pattern, s.Seq) else type(pattern)(parts)
    if isinstance(made, s.Single) and made.type is None:
        return made
    if isinstance(made, s.Absent) or not depth or draw(integers(0, 2)):
        return made
    least, most = draw(among(tuple(REPEATED)))
    label = next(names) if draw(EITHER) else None
    policy = draw(st.sampled_from([None, None, *s.Select])) if label is not None else None
    return s.Group(made, least, most, label, policy)


def _shares(pattern: s.Pattern) -> bool:
    """Tell whether arms of an OR share a variable, which then must be in the same groups."""
    found = [{n.var for n in s.walk(arm) if isinstance(n, s.Single | s.Kleene)} for arm in s.children(pattern)]
    return any(one & other for one, other in itertools.combinations(found, 2))


def required(pattern: s.Pattern) -> s.Pattern:
    """Give the same pattern, with groups that happen where it could match without any event."""

    def once(node: s.Node) -> s.Node | None:
        if isinstance(node, s.Group) and not node.least:
            most = None if node.most is None else max(node.most, 2)
            return s.Group(s.rebuild(node.pattern, once), 1, most, node.label, node.policy)
        return None

    if not s.may_be_empty(pattern):
        return pattern
    return not_empty(s.rebuild(pattern, once))


@st.composite
def between_iterations(draw: Any, pattern: s.Pattern, leaves: list[Any]) -> s.Condition:
    """Draw a comparison of consecutive iterations of a group, or of a certain one with what is inside or outside."""
    label = draw(st.sampled_from(sorted(labels(pattern))))
    group = next(node for node in s.walk(pattern) if isinstance(node, s.Group) and node.label == label)
    known = {leaf.var for leaf in leaves}
    inside = [n.var for n in s.walk(group) if isinstance(n, s.Single | s.Kleene) and n.var in known]
    if not inside:
        return s.Comparison(">=", s.Aggregate("COUNT", s.VariableReference(label)), s.Integer(1))

    def value(which: Which, nth: int | None = None) -> s.Expression:
        at = s.Iteration(label, which, nth)
        return s.Attribute(draw(st.sampled_from(inside)), draw(among("xyn")), iteration=at)

    op = draw(among(COMPARATORS))
    if draw(EITHER):
        return s.Comparison(op, value(Which.LATER), value(Which.EARLIER))
    which = draw(among((Which.FIRST, Which.LAST, Which.NTH)))
    one = value(which, draw(integers(1, 2)) if which is Which.NTH else None)
    other = draw(st.sampled_from([leaf for leaf in leaves if isinstance(leaf, s.Single)] or leaves))
    return s.Comparison(op, one, s.Attribute(other.var, draw(among("xyn"))))


@st.composite
def of_several(draw: Any, leaves: list[Any]) -> s.Condition:
    """Draw a comparison of sums of what several variables have, so that groups apart are named in one condition."""

    def number() -> s.Expression:
        leaf = draw(st.sampled_from(leaves))
        if isinstance(leaf, s.Single) or draw(integers(0, 3)) == 0:
            return s.Attribute(leaf.var, "x")
        if draw(EITHER):
            return s.Attribute(leaf.var, "x", Which.LAST)
        return s.Aggregate(draw(among(("SUM", "MAX"))), s.Attribute(leaf.var, "x"))

    left, right = (s.Arithmetic("+", number(), number()) for _ in range(2))
    return s.Comparison(draw(among(("<=", "!=", ">"))), left, right if draw(EITHER) else number())


@st.composite
def grouped_case(draw: Any, *, most: int = 6, clauses: bool = False, table: Table | None = None) -> Case:
    """Draw a query over a pattern with repeated groups; with `clauses` also HAVING and all that is returned."""
    drawn = draw(patterns(3, draw(among((4, 9, 9)))))
    pattern = draw(grouped(drawn, iter(["g", "h", "i", "j", "k2", "l2", "m2", "n2"])))
    if not groups(pattern):
        pattern = s.Group(pattern, *draw(st.sampled_from(REPEATED[:5])), "g")
    pattern = required(pattern)
    table = table or draw(tables(types=TYPED, most=most))
    if draw(integers(0, 3)) == 0:
        pattern = draw(worded(pattern, table.clock))
    negated = {id(leaf) for forbidden in s.absent_patterns(pattern) for leaf in s.leaves(forbidden)}
    leaves = [n for n in s.walk(pattern) if isinstance(n, (s.Single, s.Kleene)) and id(n) not in negated]
    where = draw(general_conditions(pattern, table.clock))
    shape = draw(integers(0, 5))
    if shape == 0:
        where.append(draw(whole(leaves)))
    elif shape == 1 and labels(pattern):
        number = s.Aggregate("COUNT", s.VariableReference(draw(st.sampled_from(sorted(labels(pattern))))))
        where.append(s.Comparison(draw(among(COMPARATORS)), number, s.Integer(draw(integers(1, 2)))))
    elif shape == 2 and any(isinstance(leaf, s.Kleene) for leaf in leaves):
        where.append(draw(so_far(draw(st.sampled_from([leaf.var for leaf in leaves if isinstance(leaf, s.Kleene)])))))
    elif shape == 3:
        where.append(draw(of_several(leaves)))
    elif shape >= 4 and labels(pattern):
        where.append(draw(between_iterations(pattern, leaves)))
    partition = ("g",) if draw(integers(0, 4)) == 0 else ()
    if partition:
        where.append(s.PartitionClause((s.Name("g"),)))
    more: dict[str, Any] = {}
    if clauses:
        several = kleene_variables(pattern)
        var = draw(st.sampled_from(leaves)).var
        more = draw(outputs(var, partition, var in several))
        of_trend = [s.Kleene(leaf.type, leaf.var) if leaf.var in several else leaf for leaf in leaves]
        more["having"] = draw(st.one_of(havings(), trend_conditions(of_trend)))
        if labels(pattern) and more.get("aggregates"):
            label = draw(st.sampled_from(sorted(labels(pattern))))
            more["aggregates"] += (s.Item(s.Aggregate("COUNT", s.VariableReference(label)), "iterations_of_it"),)
    query = s.QuerySyntax(
        pattern=pattern,
        where=tuple(where),
        select=draw(among((s.Select.ANY, *s.Select))),
        report=draw(among(tuple(s.Report))),
        within=draw(one_of(NONE, withins(table.clock))),
        **more,
    )
    return Case(query, table.rows, table.options, table.schema)


@st.composite
def greedy_case(draw: Any, *, most: int = 7, table: Table | None = None) -> Case:
    """Draw a query over an AND in which a variable is greedy, perhaps between other parts, or in a repeated group."""
    names = iter("abcdefhijkl")

    def leaf() -> s.Pattern:
        return draw(leaves_of(TYPES, next(names), draw(among(("single", "kleene")))))

    def sequence(*parts: s.Pattern) -> s.Pattern:
        return s.Seq(parts) if len(parts) > 1 else parts[0]

    before, behind = ([leaf()] * draw(integers(0, 1)) for _ in range(2))
    arms: list[s.Pattern] = [sequence(*(leaf() for _ in range(draw(integers(1, 2))))) for _ in range(2)]
    if draw(integers(0, 3)) == 0:
        arms[1] = s.And((arms[1], leaf()))
    first = draw(leaves_of(TYPES, next(names), "kleene"))
    arms[0] = sequence(*([leaf()] * draw(integers(0, 1))), first, *([leaf()] * draw(integers(0, 1))))
    inner: s.Pattern = s.And(tuple(draw(st.permutations(arms))))
    way = draw(integers(0, 3))
    if way == 0:
        inner = s.Group(inner, *draw(st.sampled_from(REPEATED)), "g" if draw(EITHER) else None)
    pattern = sequence(*before, inner, *behind)
    if way == 1:
        pattern = s.Group(pattern, *draw(st.sampled_from(REPEATED[:5])), "g")
    pattern = required(pattern)
    table = table or draw(tables(types=TYPED, most=most))
    if draw(EITHER):
        pattern = draw(worded(pattern, table.clock))

    def eager(node: s.Node) -> s.Node | None:
        return replace(node, greedy=True) if isinstance(node, s.Kleene) and node.var == first.var else None

    query = s.QuerySyntax(
        pattern=s.rebuild(pattern, eager),
        where=tuple(draw(general_conditions(pattern, table.clock))),
        select=draw(among((s.Select.ANY, *s.Select))),
        report=draw(among((s.Report.ANY, *s.Report))),
        within=draw(one_of(NONE, withins(table.clock))),
    )
    return Case(query, table.rows, table.options, table.schema)


@st.composite
def queries_on(draw: Any, table: Table) -> Case:
    """Draw a query for a stream of a table's events: of any shape, with clauses, words at its steps, groups or AND."""
    way = draw(integers(0, 6))
    if way == 0:
        one = draw(fixed_case(table=table))
    elif way == 6:
        one = draw(greedy_case(table=table))
    elif way > 3:
        one = draw(grouped_case(table=table, clauses=way == 5))
    else:
        one = draw(general_case(table=table, clauses=way > 1, words=way == 1))
    windows = withins(table.clock).filter(lambda within: within is not None)
    within = one.query.within or draw(windows)  # a stream has no end
    per_window = one.query.per_window or one.query.limit is not None
    return replace(one, query=replace(one.query, within=within, per_window=per_window))
