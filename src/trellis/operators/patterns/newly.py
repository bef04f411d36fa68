"""Results with an event that is new, of patterns every match of which is a result: as paths through layers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from trellis.events.slice import Groups, Slice
from trellis.operators.batch import PathBatch
from trellis.operators.contract import ListRequest, NotComparable
from trellis.operators.patterns.absent import make_variables
from trellis.operators.patterns.parts import PatternPart
from trellis.operators.patterns.positions import NotSeparable, PositionPaths, position_codes
from trellis.plan.layers import Layer, early_positions, layered, variable_of
from trellis.plan.plan import Plan


def parts_with_new(plan: Plan, events: Slice, new: NDArray[np.bool_], in_order: bool) -> Iterator[PatternPart]:
    """Yield the results that have a new event, of some groups at a time.

    `in_order`: no new event is before an old one of its partition.

    Raises
    ------
    NotComparable
        If a condition on the first event is not a comparison of two values, on the events at hand.
    """
    graph = early_positions(plan)
    assert graph is not None, "every match is a result"
    layers, variables = layered(graph, in_order), make_variables(plan, events)
    codes_of = position_codes(graph, variables)
    masks = {Layer.ANY: np.ones(len(events), np.bool_), Layer.NEW: new, Layer.OLD: ~new}
    usable = {
        variable_of(position.variable, layer): variables.usable[position.variable] & mask
        for position in graph.positions
        for layer, mask in masks.items()
    }
    variables = replace(variables, usable=usable)
    for first, last in _some(events.groups, plan.sizes.events_at_once):
        try:
            paths = PositionPaths(plan, layers.graph, events, variables, first, last).paths()
        except NotSeparable:
            raise NotComparable from None
        codes = codes_of[np.array(layers.positions, np.int64)[paths.codes]]
        clear = np.zeros(len(paths.ambiguous), np.bool_)  # nobody asks for the order of these results
        yield PatternPart(plan, replace(paths, codes=codes, ambiguous=clear), first, last)


def with_new(events: Slice, new: NDArray[np.bool_]) -> Slice:
    """Return a slice with those of its groups that have a new event."""
    groups, seen = events.groups, np.concatenate([[0], np.cumsum(new)])
    wanted = seen[groups.hi] > seen[groups.lo]
    return replace(events, groups=Groups(groups.lo[wanted], groups.hi[wanted], groups.number[wanted]))


def listed(part: PatternPart, most: int) -> Iterator[PathBatch]:
    """Yield the results of the groups of a part that have at most so many."""
    counts = part.operator.counts
    ranges = [(part.first + g, 0, count) for g, count in enumerate(counts) if 0 < count <= most]
    if ranges:
        yield from part.list(ListRequest(ranges, lambda batch: batch))


def _some(groups: Groups, most: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of groups of a bounded number of events."""
    sizes = np.cumsum(groups.hi - groups.lo)
    first = 0
    while first < len(groups):
        before = int(sizes[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(sizes, before + most, side="right")))
        yield first, last
        first = last
