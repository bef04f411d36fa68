"""The first results of a pattern, by the first groups alone, and in spans by the first events of the first group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from trellis.events.slice import Groups
from trellis.language.bound import WindowKind
from trellis.operators.batch import PathBatch, RankRange
from trellis.operators.contract import ListRequest, QueryOperator

TIMES = 4  # as many groups or first events are looked at where some do not suffice


def first_results(operator: QueryOperator, begin: int, end: int) -> PathBatch:
    """Return the results of all groups, one after another, from `begin` to `end`, as far as there are any.

    Groups are looked into until there are enough, more of them at a time.
    """
    groups = operator.events.groups
    if operator.plan.bound.window.kind is WindowKind.SPAN and len(groups):
        early = _first_of_span(operator, begin, end)
        if early is not None:
            return early
    found, first, number = list[PathBatch](), 0, 1
    while first < len(groups) and begin < end:
        total, batches = _results(operator, _alone(groups, first, first + number), begin, end)
        found += batches
        begin, end = max(0, begin - total), end - total
        first, number = first + number, number * TIMES
    return PathBatch.concat(found)


def _first_of_span(operator: QueryOperator, begin: int, end: int) -> PathBatch | None:
    """Return the same by the first events of the first group and all in their reach; None where these are too few.

    What follows the reach of a first event decides nothing about the results that begin there, and those come first
    that begin first.
    """
    events = operator.events
    lo, hi, number = int(events.groups.lo[0]), int(events.groups.hi[0]), operator.plan.sizes.first_events
    while lo + number < hi:
        reach = int(events.until[lo : lo + number].max())
        if reach >= hi:
            return None
        total, batches = _results(operator, _alone(events.groups, 0, 1, reach), begin, end, lo + number)
        if total >= end:
            return PathBatch.concat(batches)
        number *= TIMES
    return None


def _results(
    operator: QueryOperator, groups: Groups, begin: int, end: int, behind: int | None = None
) -> tuple[int, list[PathBatch]]:
    """Return how many results groups have, and those of them from `begin` to `end`.

    Those of a span begin at an event of the groups, and before the one `behind` these, if there is any.
    """
    events = replace(operator.events, groups=groups)
    if operator.plan.bound.window.kind is WindowKind.SPAN:
        begins = np.zeros(len(events), np.bool_)
        begins[groups.lo[0] : groups.hi[-1] if behind is None else behind] = True
        events = replace(events, begins=begins if events.begins is None else begins & events.begins)
    if behind is not None:  # nor does anything reach beyond what is left of the group
        until, here = events.until.copy(), slice(int(groups.lo[0]), int(groups.hi[0]))
        until[here] = np.minimum(until[here], here.stop)
        events = replace(events, until=until)
    some = type(operator)(operator.plan, events, operator.threads)
    counts = some.counts_before_listing()
    request = ListRequest(_ranges(counts, begin, end), lambda batch: batch, operator.threads)
    return sum(counts), list(some.list(request))


def _ranges(counts: Sequence[int], begin: int, end: int) -> list[RankRange]:
    found, before = [], 0
    for group, count in enumerate(counts):
        first, last = max(begin - before, 0), min(end - before, count)
        if first < last:
            found.append((group, first, last))
        before += count
    return found


def _alone(groups: Groups, first: int, last: int, end: int | None = None) -> Groups:
    """Return groups of which only those from `first` to `last` have events, the last of them none from `end` on."""
    lo, hi = groups.lo.copy(), groups.hi.copy()
    lo[:first], hi[:first] = lo[first], lo[first]
    lo[last:], hi[last:] = hi[min(last, len(hi)) - 1], hi[min(last, len(hi)) - 1]
    if end is not None:
        hi[last - 1] = end
        lo[last:] = hi[last:] = end
    return Groups(lo, hi, groups.number)
