"""Where the patterns that a NOT forbids as a whole have their matches.

A gap between two events holds a match if the one that ends first, of those that begin in the gap or later, ends in it.
So all that is needed of the matches is, for each event, where that one ends.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from trellis.events.slice import Groups, Ints, Slice
from trellis.kernels.event_graph.edges import note_first_ends
from trellis.kernels.events.partitions import later_times
from trellis.language import syntax as s
from trellis.language.absent import forbidden_patterns
from trellis.language.bound import (
    AbsentPattern,
    BoundQuery,
    Column,
    ConditionKind,
    Operation,
    Value,
    Window,
    WindowKind,
)
from trellis.language.groups import repeated_groups
from trellis.plan.choice import pattern_plan
from trellis.plan.plan import Plan

Masks = Mapping[str, NDArray[np.bool_]]


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
    later = np.append(later_times(events.ticks, events.bounds), size)
    following = {name: np.append(next_of(usable[name]), size) for name in absent.variables if name in usable}
    return first_end(absent.pattern, np.arange(size), later, following)


def next_of(flags: NDArray[np.bool_]) -> Ints:
    """Return for each place the first one from there on that has the flag; the size where none has."""
    found = np.where(flags, np.arange(len(flags)), len(flags))
    return np.minimum.accumulate(found[::-1])[::-1]


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
    from trellis.operators.patterns.structure import PatternStructure  # late: it asks for this

    inner = _bound_alone(bound, absent)
    if inner.window.kind is WindowKind.WHOLE:
        lo, hi = events.bounds[:-1], events.bounds[1:]
        until = np.repeat(hi, hi - lo)
        events = replace(events, groups=Groups(lo, hi, np.zeros(len(lo), np.int64)), until=until, begins=None)
    size = len(events)
    ends = np.full(size, size, np.int64)
    for part in PatternStructure(pattern_plan(inner), events).all_parts():
        paths = part.paths
        note_first_ends(paths.offsets, paths.successors, paths.events, ends)
    return np.minimum.accumulate(ends[::-1])[::-1].copy()


def _bound_alone(bound: BoundQuery, absent: AbsentPattern) -> BoundQuery:
    """Return the query of the forbidden pattern, in each window, or in each partition where there is a span."""
    window = bound.window if bound.window.kind is WindowKind.SLIDING else Window(WindowKind.WHOLE)
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
            if c.names and c.names <= absent.variables
        ),
        window=window, select=s.Select.ANY, report=s.Report.ANY, having=(), filters=(), returns=(), aggregates=(),
        group_by=(), order_by=(), limit=None, per_window=False, offset=0, limit_per=(), per_event=None,
        after_match=None, groups=repeated_groups(absent.pattern), absent_patterns=forbidden_patterns(absent.pattern),
    )  # fmt: skip


def _numbered(value: Value, numbers: Mapping[int, int]) -> Value:
    """Return a value with other numbers of groups."""
    if isinstance(value, Column) and value.at is not None:
        return replace(value, at=value.at._replace(group=numbers[value.at.group]))
    if isinstance(value, Operation):
        return replace(value, arguments=tuple(_numbered(argument, numbers) for argument in value.arguments))
    return value
