"""The vertices and paths of a pattern's matches: they do not depend on the output, so variants share them."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from trellis.events.slice import Slice, read_backwards
from trellis.operators.contract import Explored, state_of
from trellis.operators.patterns.absent import make_variables
from trellis.operators.patterns.bounded import sums_fit
from trellis.operators.patterns.indexed import IndexedPositions, index_positions, is_in_order
from trellis.operators.patterns.parts import GroupParts
from trellis.operators.patterns.pivot_counts import counts_by_pivots
from trellis.operators.patterns.positions import NotSeparable, PositionPaths
from trellis.operators.patterns.single_starts import SingleStarts, count_by_starts
from trellis.operators.patterns.variables import Variables
from trellis.plan.carried import counts_alone, counts_beside
from trellis.plan.mirror import mirrored
from trellis.plan.plan import Plan
from trellis.plan.spec import INDEX, SEARCH
from trellis.properties import cached_property

MOST_APART = 1 << 24  # events of all first ones that are not alike: these are counted apart


class PatternStructure(GroupParts):
    """The variables, the indexes of steps or the paths of some groups at a time, and the counts of a slice."""

    def __init__(self, plan: Plan, events: Slice, threads: int = 1) -> None:
        super().__init__(plan, events, threads)
        self.lists = False  # whether what is counted will be listed
        self.on_paths: tuple[int, int] | None = None  # the vertices and edges of paths that were counted

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what is made again where it is needed."""
        return state_of(self, "plan", "events", "threads", "lists", "counts", "on_paths") | {"known": None}

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
    def _mirror(self) -> PatternStructure | None:
        """The same matches read backwards in time, if they are counted so."""
        plan = None if self.events.begins is not None else mirrored(self.plan)
        if plan is not None and not sums_fit(plan.bound, self.events):
            return None
        return None if plan is None else PatternStructure(plan, read_backwards(self.events), self.threads)

    @cached_property
    def pivot_counts(self) -> list[int] | None:
        """The counts, where they are those of each event that all conditions compare with, added up."""
        return counts_by_pivots(self.plan, self.events, self.variables)

    @cached_property
    def _has_no_ties(self) -> bool:
        """Whether no two events that a variable may take have the same time."""
        rows = np.flatnonzero(np.any([*self.variables.usable.values()], axis=0))
        return bool((np.diff(self.events.ticks[rows]) != 0).all())

    @cached_property
    def _pairs(self) -> int:
        """The number of pairs of events in all graphs."""
        return self.events.pairs_between(0, len(self.events), each_start=True)

    @cached_property
    def counts(self) -> list[int]:
        """The exact number of results of each group."""
        if self.by_paths:
            return self._counted_on_paths()
        if self.indexed is not None:
            return self.indexed.operator.counts
        if self.pivot_counts is not None:
            return self.pivot_counts
        if self._mirror is not None:
            return self._mirror.counts[::-1]
        far = self.is_far
        alone = counts_alone(self.plan, self._has_no_ties)
        if far and alone and not self.is_short:  # a graph for each first event takes longer
            apart = self._counted_apart()
            return self.exploration.counts(self.events.groups) if apart is None else apart
        if far and not self.is_short and self.single_starts is not None:
            return self.single_starts.of_groups(len(self.events.groups))
        if far and counts_beside(self.plan, self._has_no_ties) and not self.is_short:
            beside = self.exploration.counts_beside(self.events.groups)
            if beside is not None:
                return beside
        return self._counted_on_paths()

    @property
    def is_far(self) -> bool:
        """Whether conditions look farther than neighbours."""
        positions = self.plan.positions
        return self.plan.operator.method == SEARCH or (positions is not None and positions.compared)

    @cached_property
    def single_starts(self) -> SingleStarts | None:
        """The counts by first events, where classes of matches so far tell what is a result."""
        return count_by_starts(self.plan, self.events, self.variables, self.exploration)

    def _counted_on_paths(self) -> list[int]:
        counts, vertices, edges = list[int](), 0, 0
        for part in self.all_parts():
            counts += part.operator.counts
            vertices, edges = vertices + len(part.paths.events), edges + len(part.paths.successors)
        self.on_paths = vertices, edges
        return counts

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

    @property
    def explored(self) -> Explored:
        """The work of the exploration that counted, or tried to."""
        mirror: PatternStructure | None = vars(self).get("_mirror")
        if mirror is not None:
            return mirror.explored
        if "exploration" not in vars(self):
            return Explored()
        return Explored(self.exploration.most, self.exploration.steps, self.exploration.bytes)
