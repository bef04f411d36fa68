"""Conditions with their kinds, and the words of single steps: policies, greedy and UNTIL."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from typing import cast

from trellis.language import syntax as s
from trellis.language.absent import forbidden_patterns
from trellis.language.bound import AbsentPattern, Column, Condition, ConditionKind, Variable, columns_of, until_name
from trellis.language.groups import is_repeated
from trellis.language.printer import condition_text
from trellis.language.scope import Scope
from trellis.language.values import bind_condition


def condition_of(condition: s.Condition, scope: Scope) -> Condition:
    """Return a conjunct of WHERE, bound and classified."""
    value = bind_condition(condition, scope)
    columns = list(columns_of(value))
    named = {c.var for c in columns}
    variables = tuple(v for v in scope.variables if v in named)
    return Condition(_kind(columns, variables), variables, value, condition_text(condition))


def _kind(columns: list[Column], variables: tuple[str, ...]) -> ConditionKind:
    if any(c.function or c.at is not None for c in columns):
        return ConditionKind.REST
    neighbours = [c.which in (s.Which.EARLIER, s.Which.LATER) for c in columns]
    if len(variables) <= 1 and all(c.which is s.Which.EACH for c in columns):
        return ConditionKind.CONSTANT
    if len(variables) == 1 and all(neighbours):
        return ConditionKind.ADJACENT
    return ConditionKind.REST if any(neighbours) else ConditionKind.ACROSS


def plain_pattern(pattern: s.Pattern, select: s.Select) -> s.Pattern:
    """Return a pattern without what says nothing: policies that are those of SELECT, `greedy` where nothing follows."""
    needless = None if select is s.Select.NEXT else select  # the first event of one step alone may be another

    def without_own(node: s.Node) -> s.Node | None:
        if isinstance(node, s.Kleene) and node.policy is not None and node.policy is needless:
            return replace(node, policy=None)
        return None

    def plain(node: s.Node) -> s.Node | None:
        if not isinstance(node, s.PolicyStep | s.Group) or node.policy is None:
            return without_own(node)
        if node.policy is not needless:  # words inside it count before it where one event enters both parts
            return s.rebuild(node, without_own)
        return s.rebuild(node.pattern if isinstance(node, s.PolicyStep) else replace(node, policy=None), plain)

    return _without_last_greedy(cast(s.Pattern, s.rebuild(pattern, plain)))


def _without_last_greedy(pattern: s.Pattern) -> s.Pattern:
    """Return a pattern that nothing follows, without the words that say how far its last variables reach."""
    match pattern:
        case s.Kleene(greedy=True):
            return replace(pattern, greedy=False)
        case s.Or(arms=arms) | s.And(arms=arms):
            return replace(pattern, arms=tuple(map(_without_last_greedy, arms)))
        case s.PolicyStep(pattern=inner):
            return replace(pattern, pattern=_without_last_greedy(inner))
        case s.Group(pattern=inner) if not is_repeated(pattern):
            return replace(pattern, pattern=_without_last_greedy(inner))
        case s.Seq(parts=parts):
            return s.Seq((*parts[:-1], _without_last_greedy(parts[-1])))
    return pattern


def bind_untils(pattern: s.Pattern, scope: Scope) -> list[tuple[Variable, Condition]]:
    """Return for each UNTIL the events that it looks at, as a variable that must be absent, and its condition."""
    found: dict[str, tuple[Variable, Condition]] = {}
    untils: dict[str, s.Condition | None] = {}
    for node, before in _complete_before(pattern, ()):
        if untils.setdefault(node.var, node.until) != node.until:
            what = f"the arms of an OR give `{node.var}` different UNTILs"
            scope.fail(what, node, "Give each its own name.")
        if node.until is not None:
            found[node.var] = _until(node, node.until, set(before), scope)
    return [*found.values()]


def bind_absent_patterns(
    query: s.QuerySyntax, conditions: tuple[Condition, ...], scope: Scope
) -> tuple[AbsentPattern, ...]:
    """Return the patterns that NOTs forbid as a whole; refuse conditions that compare two NOTs, or look into one."""
    around = dict(_forbidden_by(query.pattern, ()))
    for condition, node in zip(
        conditions, (c for c in query.where if not isinstance(c, s.PartitionClause)), strict=False
    ):
        _refuse_two_of_not(condition, node, around, scope)
        _refuse_out_of_nots(condition, node, around, scope)
    return forbidden_patterns(query.pattern)


def _refuse_out_of_nots(
    condition: Condition, node: s.Condition, around: dict[str, tuple[int, ...]], scope: Scope
) -> None:
    """Refuse what compares more than whole variables with what is outside of a NOT."""
    named = sorted(condition.names & around.keys(), key=lambda name: (len(around[name]), name))
    columns = [*columns_of(condition.value)]
    if not named or around[named[0]] == around[named[-1]]:
        return
    outer, depth = named[0], len(around[named[0]])
    so_far = (s.Which.BEFORE, s.Which.UPTO)
    if any(column.which in so_far and len(around[column.var]) > depth for column in columns if column.var):
        what = f"`{condition.text}` compares events so far, inside NOT, with `{outer}` outside"
        scope.fail(what, node, "Write two conditions, or use an aggregate of the whole variable.")


def _forbidden_by(pattern: s.Node, around: tuple[int, ...]) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield each variable, and each label, with what NOTs forbid around it, the outermost first, each by itself."""
    name = pattern.var if isinstance(pattern, s.Single | s.Kleene) else getattr(pattern, "label", None)
    if name is not None:
        yield name, around
    for part in s.children(pattern):
        yield from _forbidden_by(part, (*around, id(part)) if isinstance(pattern, s.Absent) else around)


def _refuse_two_of_not(
    condition: Condition, node: s.Condition, around: dict[str, tuple[int, ...]], scope: Scope
) -> None:
    """Refuse a condition of two variables of which one is never there where the other is."""
    named = sorted(condition.names & around.keys(), key=lambda name: len(around[name]))
    for one, two in combinations(named, 2):
        if around[two][: len(around[one])] != around[one]:
            first, second = sorted((one, two))
            what = f"`{condition.text}` compares `{first}` and `{second}`, which are forbidden each by itself"
            scope.fail(what, node, "NOT(SEQ(A a, B b)) and NOT(AND(A a, B b)) forbid the two together.")


def _complete_before(pattern: s.Node, before: tuple[str, ...]) -> Iterator[tuple[s.Kleene, tuple[str, ...]]]:
    """Yield the Kleene variables, each with the variables that are complete before it."""
    if isinstance(pattern, s.Kleene):
        yield pattern, before
    elif isinstance(pattern, s.Seq):
        for part in pattern.parts:
            yield from _complete_before(part, before)
            if not isinstance(part, s.Absent):
                forbidden = {leaf.var for one in s.absent_patterns(part) for leaf in s.leaves(one)}
                before += tuple(leaf.var for leaf in s.leaves(part) if leaf.var not in forbidden)
    elif isinstance(pattern, s.Or | s.And | s.PolicyStep | s.Group):
        for child in s.children(pattern):
            yield from _complete_before(child, before)


def _until(node: s.Kleene, until: s.Condition, before: set[str], scope: Scope) -> tuple[Variable, Condition]:
    """Return the variable and the condition of an UNTIL."""
    groups = scope.variables[node.var].groups
    looked_at = Variable(until_name(node.var), node.type, absent=True, until=node.var, groups=groups)
    named = [n for n in s.walk(until) if isinstance(n, s.Attribute)]
    for one in named:
        if one.var == node.var and one.which is not s.Which.EACH:
            what = f"UNTIL speaks of one event; `{scope.source(one)}` names another"
            scope.fail(what, one, f"Write `{one.var}.{one.attr}`.")
        if one.var != node.var and one.var in scope.variables and one.var not in before:
            what = f"`{one.var}` is not complete before `{node.var}`, whose UNTIL names it"
            scope.fail(what, one, f"Name `{node.var}` and variables that stand before it.")
    if not any(one.var == node.var for one in named):
        hint = f"For example: UNTIL ({node.var}.attribute > 10)"
        scope.fail(f"the UNTIL of `{node.var}` does not name it", until, hint)

    condition_of(until, scope)  # mistakes in it are told by the names that were written

    def of_event(inner: s.Node) -> s.Node | None:
        return replace(inner, var=looked_at.name) if isinstance(inner, s.Attribute) and inner.var == node.var else None

    wider = replace(scope, variables={**scope.variables, looked_at.name: looked_at})
    condition = condition_of(cast(s.Condition, s.rebuild(until, of_event)), wider)
    return looked_at, replace(condition, text=f"{node.var}[] UNTIL ({condition_text(until)})")


__all__ = ["bind_absent_patterns", "bind_untils", "condition_of", "plain_pattern"]
