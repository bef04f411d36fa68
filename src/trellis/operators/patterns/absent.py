"""Which events may fill which variable, and where patterns that a NOT forbids as a whole have their matches.

A gap between two events holds a match if the one that ends first, of those that begin in the gap or later, ends in it.
So all that is needed of the matches is, for each event, where that one ends.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from trellis.events.slice import Ints, Slice, next_of
from trellis.events.variables import usable_events
from trellis.kernels.event_graph.edges import note_first_ends
from trellis.kernels.explore.forbidden import ForbiddenTerms
from trellis.kernels.explore.matches import BACK, BEGIN, END_EVENT, NODE, OF
from trellis.language import syntax as s
from trellis.language.absent import absent_at_edge, forbidden_patterns
from trellis.language.bound import (
    AbsentPattern,
    BoundQuery,
    Column,
    ConditionKind,
    Operation,
    Reference,
    Value,
    columns_of,
    with_columns,
)
from trellis.language.groups import repeated_groups
from trellis.language.schema import INTEGER
from trellis.operators.patterns.explore import Exploration
from trellis.operators.patterns.parts import GroupParts
from trellis.operators.patterns.variables import ForbiddenMatches, Variables, variable_codes
from trellis.plan.choice import pattern_plan
from trellis.plan.forbidden import columns_from_inside, number_in_match, root_name, told_condition
from trellis.plan.plan import Plan
from trellis.plan.registers import GuardTerm, Register, RegisterKind, guard_terms_of, stated_terms
from trellis.properties import cached_property

PLACE = "\nplace"  # a column that numbers events
Masks = Mapping[str, NDArray[np.bool_]]


def make_variables(plan: Plan, events: Slice) -> Variables:
    """Return the variables of a plan over a slice."""
    usable = usable_events(plan.bound, plan.constant, events.columns, len(events))
    terms = guard_terms_of(plan.bound)
    ends = {one.name: forbidden_matches(plan, one, events, usable, terms) for one in plan.bound.absent_patterns}
    return Variables(usable, variable_codes(plan.bound), terms, ends)


def forbidden_matches(
    plan: Plan, absent: AbsentPattern, events: Slice, usable: Masks, guard_terms: tuple[GuardTerm, ...]
) -> ForbiddenMatches:
    """Return the matches of a pattern that a NOT forbids; `guard_terms` are those of the query."""
    asked = [one for one in guard_terms if one.absent is not None and root_name(one.absent) == absent.name]
    if asked or any(True for _ in absent_at_edge(absent.pattern)):
        return _stated_matches(plan.bound, absent, events, asked)
    return ForbiddenMatches(np.arange(len(events)), absent_ends(plan, absent, events, usable))


def _stated_matches(
    bound: BoundQuery, absent: AbsentPattern, events: Slice, terms: list[GuardTerm]
) -> ForbiddenMatches:
    """Return the matches with what the terms of the query name of them, and of what NOTs inside forbid."""
    inner, numbers = _bound_alone(bound, absent), {number: own for own, number in enumerate(absent.groups)}
    events = _in_gaps(bound, absent, events)
    events = replace(events, columns={**events.columns, PLACE: pa.array(np.arange(len(events)))})
    asked = sorted(terms, key=lambda one: one.absent != absent.name)
    named = [_named(bound, absent, one, numbers) for one in asked]
    outer = sum(one.absent == absent.name for one in asked)
    firsts = tuple(Column(v.name, PLACE, s.Which.FIRST, None, INTEGER) for v in inner.variables if not v.absent)
    told = tuple(
        told_condition(columns, (one.absent or "")[len(absent.name) + 1 :])
        for one, columns in zip(asked[outer:], named[outer:], strict=True)
    )
    plan = pattern_plan(inner)
    plan = replace(plan, bound=replace(inner, conditions=(*inner.conditions, *told)))
    own = stated_terms(plan.bound, named[:outer], firsts)
    exploration = Exploration(plan, events, replace(make_variables(plan, events), guard_terms=own, in_gap=True))
    compiled = exploration.compiled
    stating = [one for one in own if one.stated and one.absent is None]
    telling = [*stating[:outer], *(one for one in own if one.stated and one.absent is not None)]
    slots = {register: slot for slot, register in enumerate(compiled.registers)}
    views = compiled.alphabet.view_numbers
    stated = np.array([
        (
            one.number,
            slots[Register(RegisterKind.TUPLES, one.gathered[0].name)] if one.gathered else -1,
            sum(1 << views[name] for name in one.named),
        )
        for one in telling[:outer]
    ], np.int64).reshape(-1, 3)  # fmt: skip
    starts = {slots[register] for one in stating[outer:] for r in one.references if (register := one.register(r))}
    asks = ForbiddenTerms(stated, np.array([*starts], np.int64))
    found, tuples = exploration.forbidden(events.groups, asks)
    roots = found[:, BACK] == 0
    begun = np.argsort(found[roots, BEGIN], kind="stable")
    ranks = np.empty(len(begun), np.int64)
    ranks[begun] = np.arange(len(begun))
    order = np.argsort(ranks[np.cumsum(roots) - 1], kind="stable")
    nodes, letters = found[order, :NODE], len(compiled.alphabet.letters)
    nodes[:, OF] = np.where(nodes[:, BACK] == 0, 0, np.where(nodes[:, OF] < 0, -1, nodes[:, OF] - letters + 1))
    names = (absent.name, *(f"{absent.name}\n{name}" for name in compiled.alphabet.absent))
    begins, ends = found[roots][begun][:, [BEGIN, END_EVENT]].T.copy()
    return ForbiddenMatches(
        begins, ends, nodes, names, _tuples(found, tuples, order, [*zip(asked, telling, strict=True)])
    )


def _named(bound: BoundQuery, absent: AbsentPattern, one: GuardTerm, numbers: Mapping[int, int]) -> tuple[Column, ...]:
    """Return the columns of a match, by its own numbers of groups, that a term names."""
    columns = columns_from_inside(bound, absent, one.absent or "")
    return tuple(cast(Column, _numbered(columns[k], numbers)) for k in _numbers(one))


def _numbers(one: GuardTerm) -> list[int]:
    """Return the columns of a match that a term names, by their numbers."""
    found = (number_in_match(one.absent or "", reference.var) for reference in one.references)
    return [*dict.fromkeys(number for number in found if number is not None)]


def _tuples(
    matches: Ints, tuples: Ints, order: Ints, terms: list[tuple[GuardTerm, GuardTerm]]
) -> dict[int, tuple[Ints, Ints]]:
    """Return for each term of the query where the tuples of each node begin, and these, in an order of nodes."""
    sizes = np.array([len(telling.references) for _, telling in terms], np.int64)
    counts = matches[:, NODE:]
    first = np.concatenate([[0], np.cumsum(counts * sizes)])[:-1].reshape(counts.shape)
    result = {}
    for i, (asked, telling) in enumerate(terms):
        number = counts[order, i]
        begins = np.concatenate([[0], np.cumsum(number)])
        rows = np.repeat(first[order, i] - begins[:-1] * sizes[i], number) + np.arange(begins[-1]) * sizes[i]
        made = np.zeros((len(rows), len(asked.references)), np.int64)
        for k, reference in enumerate(asked.references):
            at = number_in_match(asked.absent or "", reference.var)
            if at is not None:
                made[:, k] = tuples[rows + _place(telling, _numbers(asked).index(at), reference)]
        result[asked.number] = begins, made.ravel()
    return result


def _place(telling: GuardTerm, number: int, reference: Reference) -> int:
    """Return the place in tuples of what a reference of the query names: the column of a number that is stated."""
    value = telling.condition.value
    assert isinstance(value, Operation)
    (column,) = columns_of(value.arguments[1 + number])
    return next(telling.references.index(r) for r in column.references if r.function == reference.function)


def absent_ends(plan: Plan, absent: AbsentPattern, events: Slice, usable: Masks) -> Ints:
    """Return for each event where the match of a pattern ends that ends first, of those from this event on.

    Parameters
    ----------
    plan
        The plan of the query.
    absent
        The pattern.
    events
        The slice.
    usable
        The events that may fill each variable.

    Returns
    -------
    numpy.ndarray
        The last event of that match; the number of events where there is none.
    """
    asked = [c for c in plan.bound.conditions if absent.variables & c.names]
    beside = any(isinstance(node, s.And | s.Absent) for node in s.walk(absent.pattern))
    if beside or any(c.kind is not ConditionKind.CONSTANT for c in asked):
        return _of_matches(plan.bound, absent, events)
    size = len(events)
    later = np.append(events.later, size)
    following = {name: next_of(usable[name]) for name in absent.variables if name in usable}
    return first_end(absent.pattern, np.arange(size), later, following)


def first_end(pattern: s.Pattern, places: Ints, later: Ints, following: Mapping[str, Ints]) -> Ints:
    """Return where the first match from each place on ends: each part takes as few events as it may, and these soon."""
    match pattern:
        case s.Single(var=var):
            return following[var][places]
        case s.Kleene(var=var, least=least):
            ends = following[var][places]
            for _ in range(least - 1):
                ends = following[var][later[ends]]
            return ends
        case s.Group(pattern=inner, least=least):
            ends = first_end(inner, places, later, following)
            for _ in range(least - 1):
                ends = first_end(inner, later[ends], later, following)
            return ends
        case s.Or(arms=arms):
            return np.minimum.reduce([first_end(arm, places, later, following) for arm in arms])
        case s.Seq(parts=parts):
            needed = [part for part in parts if not s.may_be_empty(part)]
            ends = first_end(needed[0], places, later, following)
            for part in needed[1:]:
                ends = first_end(part, later[ends], later, following)
            return ends
    raise AssertionError(pattern)


def _of_matches(bound: BoundQuery, absent: AbsentPattern, events: Slice) -> Ints:
    """Return the ends by the paths of all matches of the pattern."""
    inner, events = _bound_alone(bound, absent), _in_gaps(bound, absent, events)
    size = len(events)
    ends = np.full(size, size, np.int64)
    for part in _ForbiddenParts(pattern_plan(inner), events).all_parts():
        paths = part.paths
        note_first_ends(paths.offsets, paths.successors, paths.events, ends)
    return np.minimum.accumulate(ends[::-1])[::-1].copy()


class _ForbiddenParts(GroupParts):
    """The paths of the matches of a pattern that a NOT forbids."""

    @cached_property
    def variables(self) -> Variables:
        """Which events may fill which variable."""
        return make_variables(self.plan, self.events)


def _in_gaps(bound: BoundQuery, absent: AbsentPattern, events: Slice) -> Slice:
    """Return the events with how far gaps reach: as the span, or from `last - w` to `first + w` beside arms of AND."""
    edges = (edge.absent.events for edge in absent_at_edge(bound.pattern) if not (edge.before or edge.behind))
    if not any(absent.pattern in patterns for patterns in edges):
        return replace(events, begins=None)
    return replace(events, begins=None, until=events.until[events.until - 1])


def _bound_alone(bound: BoundQuery, absent: AbsentPattern) -> BoundQuery:
    """Return the query of the forbidden pattern."""
    inner = {leaf.var for one in s.absent_patterns(absent.pattern) for leaf in s.leaves(one)}
    numbers = {number: own for own, number in enumerate(absent.groups)}
    return replace(
        bound,
        pattern=absent.pattern,
        variables=tuple(
            replace(v, absent=v.name in inner, groups=tuple(numbers[group] for group in v.groups if group in numbers))
            for v in bound.variables
            if v.name in absent.variables
        ),
        conditions=tuple(
            replace(c, value=_numbered(c.value, numbers))
            for c in bound.conditions
            if c.names and c.names <= absent.variables and c.kind is not ConditionKind.TOLD
        ),
        select=s.Select.ANY, report=s.Report.ANY, having=(), filters=(), returns=(), aggregates=(),
        group_by=(), order_by=(), limit=None, per_window=False, offset=0, limit_per=(), per_event=None,
        after_match=None, groups=repeated_groups(absent.pattern), absent_patterns=forbidden_patterns(absent.pattern),
    )  # fmt: skip


def _numbered(value: Value, numbers: Mapping[int, int]) -> Value:
    """Return a value with other numbers of groups."""

    def numbered(column: Column) -> Column:
        at = column.at
        return column if at is None else replace(column, at=at._replace(group=numbers[at.group]))

    return with_columns(value, numbered)
