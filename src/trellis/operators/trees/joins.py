"""Tree plans over joins: as those over sequences, but partial matches may overlap where the pattern asks for no order.

Time between variables of the two sides, and that they hold different events, are conditions on pairs like all others.
What no comparison of two values decides is asked of the rows of the first node that has all its variables.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from trellis.events.adjacency import is_true
from trellis.events.columns.evaluate import evaluate
from trellis.kernels.sequence import walk as kernel
from trellis.language.bound import Column, Value
from trellis.operators.batch import PathBatch, rank_labels
from trellis.operators.contract import ListRequest
from trellis.operators.joins.counting import JoinCounter, Numbers, Tasks
from trellis.operators.joins.operator import JoinOperator
from trellis.operators.joins.structure import JoinStructure
from trellis.operators.joins.tables import JoinCandidates, SlotArm
from trellis.operators.matches import ranked_parts
from trellis.operators.pair_conditions import PairCondition
from trellis.operators.sequences.candidates import SequenceCandidates
from trellis.operators.sequences.structure import tiles_of
from trellis.operators.sequences.tree import (
    PLAIN,
    SWITCHED,
    PartialMatches,
    Tile,
    TreeMatches,
    TreeNode,
    TreePlan,
    drawn,
)
from trellis.plan.choice import CONDENSED
from trellis.properties import cached_property

Ints = NDArray[np.int64]
T = TypeVar("T")


@dataclass
class Residual:
    """A condition that is asked of rows, and the variables that it reads, by their numbers."""

    value: Value
    variables: frozenset[int]


@dataclass
class JoinTreePlan(TreePlan):
    """A tree plan over one arm of a join.

    Attributes
    ----------
    counter
        Counts rows in samples.
    arm
        The arm.
    columns
        The columns of the events.
    residuals
        The conditions that are asked of rows.
    begins
        The events at which matches may begin; None for all.
    """

    counter: JoinCounter = field(kw_only=True)
    arm: SlotArm = field(kw_only=True)
    columns: Mapping[str, pa.Array] = field(kw_only=True)
    residuals: list[Residual] = field(kw_only=True)
    begins: NDArray[np.bool_] | None = field(kw_only=True)

    def _rows_in(self, i: int, j: int, tile: Tile) -> float:
        """Return how many rows the node of variables `i` to `j` has in a tile, by counts over its slots alone."""
        lo, hi, first_end, limits = tile
        some = SlotArm(self.arm.arm, self.arm.slots[i : j + 1])
        if hi == first_end:
            bounds = np.array([lo]), np.array([hi])
            return float(self.counter.of_tasks(some, Tasks(*bounds, *bounds, np.zeros(1, np.int64)), Numbers())[0])
        total = 0.0
        for slot in self.counter.open_slots(some, ()):
            own = self.counter.candidates.of_slot[slot]
            begin, end = np.searchsorted(own, [lo, first_end])
            events, size = own[begin:end], int(end - begin)
            tasks = Tasks(events + 1, limits[events], np.full(size, lo), np.full(size, hi), np.zeros(size, np.int64))
            cands = np.arange(begin, end).reshape(-1, 1) + self.counter.candidates.tables.begin[slot]
            total += float(self.counter.of_tasks(some, tasks, Numbers(), (slot,), cands).sum(dtype=np.float64))
        return total

    def _first_end(self, node: TreeNode, tile: tuple[int, int, int]) -> int:
        return tile[1]  # which event is the first is known of whole matches only

    def _after(self, node: TreeNode, left: PartialMatches, limits: Ints) -> Ints:
        """Return for each left row the first event at which a right one may begin: with it they must fit a span."""
        return np.searchsorted(limits, left.ends, side="right")

    def _bounds(self, left: PartialMatches, right: PartialMatches, a: Ints, b: Ints) -> tuple[Ints, Ints]:
        return np.minimum(left.starts[a], right.starts[b]), np.maximum(left.ends[a], right.ends[b])

    def _due(self, node: TreeNode) -> list[Residual]:
        """Return the conditions that are asked of the rows of a node: those that no child has all variables of."""
        assert node.left is not None
        inside, cut = range(node.first, node.last + 1), node.left.last
        return [
            one
            for one in self.residuals
            if one.variables <= {*inside} and min(one.variables) <= cut < max(one.variables)
        ]

    def _must_hold(self, node: TreeNode, tile: tuple[int, int, int]) -> bool:
        at_root = node is self.root and (tile[2] < tile[1] or self.begins is not None)
        return at_root or bool(self._due(node))

    def _held(self, node: TreeNode, rows: PartialMatches, tile: tuple[int, int, int]) -> PartialMatches:
        keep = np.ones(len(rows), np.bool_)
        if node is self.root:
            keep = rows.starts < tile[2]
            keep &= True if self.begins is None else self.begins[rows.starts]
        names = self.leaves.names

        def resolve(column: Column) -> pa.Array:
            variable = names.index(column.var)
            events = self.leaves.of_variable[variable][rows.table[variable - node.first]]
            return self.columns[column.name].take(pa.array(events))

        for one in self._due(node):
            keep &= is_true(evaluate(one.value, resolve, len(rows)))
        return rows.taken(np.flatnonzero(keep))

    def _told_apart(self, node: TreeNode, rows: PartialMatches) -> list[Ints]:
        """Return the events that conditions above a node read."""
        inside = {*range(node.first, node.last + 1)}
        read = {v for one in self.residuals if not one.variables <= inside for v in one.variables & inside}
        return [rows.table[v - node.first] for v in sorted(read)]


def leaves_of(candidates: JoinCandidates, arm: SlotArm) -> SequenceCandidates:
    """Return the candidates of an arm as a tree plan takes them: time, too, is a condition on two variables."""
    place = {slot: i for i, slot in enumerate(arm.slots)}
    of_variable = [candidates.of_slot[slot] for slot in arm.slots]
    conditions = [
        replace(test, first=place[test.first], second=place[test.second])
        for test in candidates.pairs
        if test.first in place
    ]
    later = candidates.later
    for i, u in enumerate(arm.slots):
        for j, v in enumerate(arm.slots[i + 1 :], i + 1):
            one, other = of_variable[i], of_variable[j]
            if candidates.order[u, v] > 0:
                conditions.append(PairCondition(i, j, kernel.GREATER, later[one] - 1, other))
            elif candidates.order[u, v] < 0:
                conditions.append(PairCondition(i, j, kernel.GREATER, -one, 1 - later[other]))
            elif candidates.distinct[u, v]:
                conditions.append(PairCondition(i, j, kernel.DIFFERENT, one, other))
    sizes = [len(one) for one in of_variable]
    none: list[NDArray[np.bool_] | None] = [None] * (len(sizes) + 1)
    return SequenceCandidates(arm.arm.variables, of_variable, sizes, later, candidates.events.until, none, conditions)


class JoinTreeStructure(JoinStructure, TreeMatches):
    """The same with a tree plan, which counts by partial matches that it holds."""

    @cached_property
    def tree_plan(self) -> JoinTreePlan:
        """The tree plan."""
        arm = self.candidates.arms[0]
        way = SWITCHED if self.plan.operator.method == CONDENSED else PLAIN
        tiles = list(tiles_of(self.plan, self.events)) if self.arms else []
        place = {slot: i for i, slot in enumerate(arm.slots)}
        residuals = [
            Residual(test.value, frozenset(i for slot, i in place.items() if test.mask >> slot & 1))
            for test in self.candidates.due
            if test.value is not None
        ]
        return JoinTreePlan(
            leaves_of(self.candidates, arm), way, tiles=tiles, memory=self.plan.sizes.memory,
            counter=self.counter, arm=arm, columns=self.events.columns, residuals=residuals, begins=self.events.begins,
        )  # fmt: skip

    @cached_property
    def counts(self) -> list[int]:
        """The exact number of matches of each group."""
        return self._known_counts or self.tree_counts() or self.counts_of(self.signed)


class JoinTreeOperator(JoinOperator):
    """Counts and lists joins by a tree plan, whose partial matches it holds; sums and single matches as the others."""

    structure: JoinTreeStructure

    def _make_structure(self) -> JoinTreeStructure:
        return JoinTreeStructure(self.plan, self.events, self.threads)

    def describe(self) -> dict[str, str]:
        """Draw the tree plan, with the rows that its nodes are expected to have."""
        tree = self.structure.tree_plan
        return super().describe() | {"tree_plan": "\n".join(["", *drawn(tree.root, tree.leaves.names, False, 1)])}

    def list(self, request: ListRequest[T]) -> Iterator[T]:
        """List the matches with given ranks, those of a window or tile at a time, on one thread."""
        tables = ((group, number, self._in_order(table)) for group, number, table in self.structure.tables())
        for (positions, variables), part, (group, low, high) in ranked_parts(
            tables, request.ranges, self.plan.sizes.match_rows
        ):
            labels = partial(rank_labels, [(group, low, high - low)])
            ends = np.arange(1, high - low + 1, dtype=np.int32) * np.int32(positions.shape[1])
            yield request.made(PathBatch.of_ends(positions[part].ravel(), ends, labels, variables[part].ravel()))

    def _in_order(self, table: NDArray[np.int32]) -> tuple[NDArray[np.int32], Ints]:
        """Return matches in the order of ranks, a row for each: its events, and their variables."""
        codes = np.array([self.structure.codes[name] for name in self.structure.tree_plan.leaves.names])
        order = np.argsort(table, axis=0)
        positions, variables = np.take_along_axis(table, order, 0), codes[order]
        ranks = np.lexsort([*variables[::-1], *positions[::-1]]) if table.shape[1] else np.arange(0)
        return np.ascontiguousarray(positions[:, ranks].T), np.ascontiguousarray(variables[:, ranks].T)
