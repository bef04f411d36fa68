"""The vertices and paths of a pattern's matches: they do not depend on the output, so variants share them."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import Any

from trellis.events.slice import Slice
from trellis.operators.contract import state_of
from trellis.operators.patterns.absent import make_variables
from trellis.operators.patterns.estimate import Estimate, estimate
from trellis.operators.patterns.indexed import IndexedPositions, index_positions, is_in_order
from trellis.operators.patterns.parts import GroupParts
from trellis.operators.patterns.positions import NotSeparable, PositionPaths
from trellis.operators.patterns.variables import Variables
from trellis.plan.carried import counts_alone
from trellis.plan.plan import Plan
from trellis.plan.spec import INDEX, SEARCH

MOST_APART = 1 << 24  # events of all first ones that are not alike: these are counted apart


class PatternStructure(GroupParts):
    """The variables, the indexes of steps or the paths of some groups at a time, and the counts of a slice."""

    def __init__(self, plan: Plan, events: Slice, threads: int = 1) -> None:
        super().__init__(plan, events, threads)
        self.lists = False  # whether what is counted will be listed

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what is made again where it is needed."""
        return state_of(self, "plan", "events", "threads", "lists", "counts") | {"known": None}

    @cached_property
    def variables(self) -> Variables:
        """Which events may fill which variable."""
        return make_variables(self.plan, self.events)

    @cached_property
    def indexed(self) -> IndexedPositions | None:
        """The attribute indexes of the pattern's steps, by which results are counted; None where edges are needed."""
        if self.plan.operator.method != INDEX:
            return None
        return index_positions(self.plan, self.events, self.variables, self.threads)

    @property
    def by_paths(self) -> bool:
        """Whether paths, which listing takes, count as well: those of few events, or of short spans listed so."""
        graph, sizes = self.plan.positions, self.plan.sizes
        if not self.lists and (graph is None or self.plan.operator.method == SEARCH):
            return False
        if self._pairs <= (sizes.counted_pairs if self.lists else sizes.small_pairs):
            return True
        return self.lists and graph is not None and self.is_explored and not is_in_order(graph, self.variables)

    @cached_property
    def _pairs(self) -> int:
        """The number of pairs of events in all graphs."""
        return self.events.pairs_between(0, len(self.events), each_start=True)

    @cached_property
    def counts(self) -> list[int]:
        """The exact number of results of each group."""
        if self.by_paths:
            return [count for part in self.all_parts() for count in part.operator.counts]
        if self.indexed is not None:
            return self.indexed.operator.counts
        positions = self.plan.positions
        far = self.plan.operator.method == SEARCH or (positions is not None and positions.compared)
        if far and counts_alone(self.plan) and not self.is_short:  # a graph for each first event takes longer
            apart = self._counted_apart()
            return self.exploration.counts(self.events.groups) if apart is None else apart
        return [count for part in self.all_parts() for count in part.operator.counts]

    def _counted_apart(self) -> list[int] | None:
        """Count on indexes for first events of which later ones are asked the same, where that can be; else None."""
        plan, graph, events = self.plan, self.plan.positions, self.events
        if graph is None or not graph.indexable_apart or plan.operator.method == SEARCH:
            return None
        plain = replace(graph, positions=[replace(position, anchored=()) for position in graph.positions])
        with suppress(NotSeparable):
            index = index_positions(replace(plan, positions=plain), events, self.variables, self.threads)
            if index is None:
                return None
            paths = PositionPaths(plan, graph, events, self.variables, 0, len(events.groups))
            spread = paths.apart(index.vertices.events, index.positions, MOST_APART)
            if spread is None:
                return None
            totals = [0] * len(events.groups)
            if not len(spread[0]):
                return totals
            tied = [bool(one.anchored) and graph.step_after(p) is not None for p, one in enumerate(graph.positions)]
            for group, count in zip(spread[2].tolist(), index.apart(*spread, tied).counts, strict=True):
                totals[group] += count
            return totals
        return None

    @cached_property
    def estimate(self) -> Estimate | None:
        """The cost of a search, by a sample; None for other ways."""
        if self.plan.operator.method != SEARCH:
            return None
        return estimate(self.plan, self.events, counts_alone(self.plan) and not self.is_short)
