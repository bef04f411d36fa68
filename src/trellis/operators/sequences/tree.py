"""Tree plans with condensed composition: partial matches of neighbouring variables, joined from the leaves up.

The rows of a node are all partial matches of its variables, whatever the tree below it; so one tree differs from
another in which nodes it has, and the cheapest is the one whose nodes have the fewest rows. A node's condensation terms
are the attributes of its variables that conditions of the nodes above it speak of. Rows that agree in these are a
group: a condition that holds for one of them holds for all, and is evaluated once for each pair of groups.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from trellis.events.slice import Slice
from trellis.kernels.sequence import tree as joins
from trellis.kernels.sequence import walk as kernel
from trellis.language.bound import WindowKind
from trellis.memory import beyond_limit
from trellis.operators.pair_conditions import PairCondition
from trellis.operators.sequences.candidates import SequenceCandidates
from trellis.operators.sequences.walk import MatchTasks, Walker
from trellis.plan.plan import Plan
from trellis.plan.sizes import USUAL
from trellis.properties import cached_property

Ints = NDArray[np.int64]
Tile = tuple[int, int, int, Ints]
EXACT = 2.0**53  # doubles below it hold whole numbers
PLAIN, BY_VALUE, BY_CLASS, SWITCHED = "plain", "value", "class", "switched"
WAYS = (PLAIN, BY_VALUE, BY_CLASS, SWITCHED)
TILE = 4  # a tile of a stream begins as many spans' worth of events
SAMPLED = 4  # tiles, about, in which rows are counted to choose a tree
FEWER = 0.9  # share of distinct rows below which those alike are joined into one
SAMPLE = 512  # rows of which the number of groups is guessed
PAIR, GROUP_ROW, GROUP_PAIR = 1.0, 60.0, 1.5  # nanoseconds to test a pair, to group a row, to test a pair of groups


@dataclass
class TreeNode:
    """A node of a tree plan: the variables `first` to `last`, and what was seen there.

    Attributes
    ----------
    left, right
        Its children; None for a leaf.
    terms
        Its condensation terms, as `variable.attribute`.
    estimate
        How many rows it is expected to have in all.
    rows, tests
        How many rows it had, and evaluations of its conditions.
    grouped, groups
        How many of its rows its parent joined in groups, and how many groups these were.
    condensed, tiles
        In how many tiles it joined groups, and in how many it ran.
    """

    first: int
    last: int
    left: TreeNode | None = None
    right: TreeNode | None = None
    terms: tuple[str, ...] = ()
    estimate: float = 0.0
    rows: int = 0
    tests: int = 0
    grouped: int = 0
    groups: int = 0
    condensed: int = 0
    tiles: int = 0

    def walk(self) -> Iterator[TreeNode]:
        """Yield this node and all below it, leaves first."""
        for child in (self.left, self.right):
            if child is not None:
                yield from child.walk()
        yield self

    @property
    def degree(self) -> float:
        """The condensation degree: groups for each row, 1 if all rows differ."""
        return self.groups / self.grouped if self.grouped else 1.0


@dataclass
class PartialMatches:
    """Partial matches by first event: a row of `table` for each variable, with places among its candidates."""

    table: Ints
    starts: Ints
    ends: Ints
    weights: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.starts)

    def taken(self, rows: Ints) -> PartialMatches:
        """Return some of them."""
        return PartialMatches(self.table[:, rows], self.starts[rows], self.ends[rows], self.weights[rows])


@dataclass(frozen=True)
class _JoinSides:
    """The two sides of a join as the kernels take them."""

    kinds: Ints
    left: Ints
    right: Ints
    by_code: Ints
    order: Ints


@dataclass
class TreePlan:
    """A tree plan over the candidates of a sequence.

    Attributes
    ----------
    leaves
        The candidates.
    way
        Whether rows are condensed: `plain` never, `value` and `class` always, by equal values or by values that the
        same opposing values accept, `switched` where it pays.
    shape
        `best`, `left` (left-deep) or `right` (right-deep).
    hashed
        Whether an equality finds its partners by a key.
    tiles
        Where matches are sought one after another: of each the events that may be in matches (from, to), the first
        event that begins none, and for every event the first one that is too late for a match that begins there.
    memory
        The bytes that the partial matches of a node may take in a tile.
    """

    leaves: SequenceCandidates
    way: str = SWITCHED
    shape: str = "best"
    hashed: bool = True
    tiles: list[Tile] = field(default_factory=list)
    memory: int = USUAL.memory
    root: TreeNode = field(init=False)

    def __post_init__(self) -> None:
        """Choose the tree."""
        number = self.leaves.number
        cost: dict[tuple[int, int], tuple[float, TreeNode]] = {}
        for width in range(number):
            for first in range(number - width):
                last = first + width
                estimate = self._estimates[first, last]
                if not width:
                    cost[first, last] = (estimate, TreeNode(first, last, estimate=estimate))
                    continue
                cuts = {"best": range(first, last), "left": [last - 1], "right": [first]}[self.shape]
                below, cut = min((cost[first, c][0] + cost[c + 1, last][0], c) for c in cuts)
                node = TreeNode(first, last, cost[first, cut][1], cost[cut + 1, last][1], estimate=estimate)
                cost[first, last] = (estimate + below, node)
        self.root = cost[0, number - 1][1]
        for node in self.root.walk():
            node.terms = self._terms(node)

    @cached_property
    def _estimates(self) -> dict[tuple[int, int], float]:
        """The rows of each node, counted in some tiles of the events and taken for all of them."""
        some = self.tiles[:: max(1, len(self.tiles) // SAMPLED)]
        events = [sum(end - begin for begin, _, end, _ in tiles) for tiles in (self.tiles, some)]
        scale = events[0] / max(1, events[1])
        nodes = [(i, j) for i in range(self.leaves.number) for j in range(i, self.leaves.number)]
        return {node: scale * sum(self._rows_in(*node, tile) for tile in some) for node in nodes}

    def _rows_in(self, i: int, j: int, tile: Tile) -> float:
        """Return how many rows the node of variables `i` to `j` has in a tile."""
        lo, hi, first_end, limits = tile
        part = self.leaves.part(i, j, lo, hi)
        events = part.of_variable[0]
        first = np.arange(np.searchsorted(events, first_end if i == 0 else hi))
        none = np.zeros(len(first), np.int64)
        tasks = MatchTasks(first, limits[events[first]], none, none)
        return float(Walker(part, tasks).count(0.0, 0.0).sum())

    def _outer(self, node: TreeNode) -> list[tuple[PairCondition, int]]:
        """Return the conditions between a node and what is outside, each with its variable inside."""
        found = []
        for condition in self.leaves.conditions:
            inside = [node.first <= v <= node.last for v in (condition.first, condition.second)]
            if inside[0] != inside[1]:
                found.append((condition, condition.first if inside[0] else condition.second))
        return found

    def _terms(self, node: TreeNode) -> tuple[str, ...]:
        names = [name for condition, v in self._outer(node) for name in condition.terms(v, self.leaves.names)]
        return tuple(dict.fromkeys(names))

    # --- Running ----------------------------------------------------------------------------------------------

    def counts(self) -> Iterator[float]:
        """Yield how many matches each tile has."""
        root = self.root
        for lo, hi, first_end, limits in self.tiles:
            if root.left is None:
                yield float(len(self._leaf(root, lo, first_end)))
            else:
                yield self._joined(root, (lo, hi, first_end), limits, counting=True)[1]

    def matches(self) -> Iterator[NDArray[np.int32]]:
        """Yield the matches of each tile, a row for each variable, in the order of their events."""
        root = self.root
        for lo, hi, first_end, limits in self.tiles:
            if root.left is None:
                rows = self._leaf(root, lo, first_end)
            else:
                rows = self._joined(root, (lo, hi, first_end), limits, counting=False)[0]
            events = np.stack([self.leaves.of_variable[v][rows.table[v]] for v in range(self.leaves.number)])
            yield events[:, np.lexsort(events[::-1])].astype(np.int32)

    def _run(self, node: TreeNode, tile: tuple[int, int, int], limits: Ints, counting: bool) -> PartialMatches:
        """Return the rows of a node; where only their number counts, those that no node above can tell apart as one."""
        if node.left is None:
            return self._leaf(node, tile[0], self._first_end(node, tile))
        rows, _ = self._joined(node, tile, limits, counting)
        return self._merged(node, rows) if counting else rows

    def _leaf(self, node: TreeNode, lo: int, hi: int) -> PartialMatches:
        events = self.leaves.of_variable[node.first]
        begin, end = np.searchsorted(events, [lo, hi])
        node.rows += int(end - begin)
        node.tiles += 1
        here = events[begin:end]
        return PartialMatches(np.arange(begin, end).reshape(1, -1), here, here, np.ones(len(here)))

    def _joined(
        self, node: TreeNode, tile: tuple[int, int, int], limits: Ints, counting: bool
    ) -> tuple[PartialMatches, float]:
        """Join the children of a node; return the rows (of the root, if they are not only counted) and their weight."""
        assert node.left is not None
        assert node.right is not None
        left, right = (self._run(child, tile, limits, counting) for child in (node.left, node.right))
        node.tiles += 1
        order = np.argsort(right.starts, kind="stable")
        right = right.taken(order) if (np.diff(order) != 1).any() else right
        sides, kept = self._sides(node, left, right)
        left = left.taken(kept) if len(kept) < len(left) else left
        after, until = self._after(node, left, limits), limits[left.starts]
        given = joins.LeftRows(after, until, left.weights)
        offered = joins.RightRows(right.starts, right.ends, right.weights)
        groups = None if self.way == PLAIN else self._groups(node, sides, left, right, after, until)
        only_number = counting and node is self.root and not self._must_hold(node, tile)
        room = 0 if only_number else 1 << 16
        while True:
            out = np.empty(room, np.int64), np.empty(room, np.int64)
            if groups is None:
                found, weight, tests = joins.join_pairs(
                    sides.kinds, sides.left, given, sides.right, offered, sides.order, sides.by_code, *out
                )
            else:
                left_groups, right_groups, by_code = joins.RowGroups(*groups[0]), joins.RowGroups(*groups[1]), groups[2]
                found, weight, tests = joins.join_groups(
                    sides.kinds, left_groups, given, right_groups, offered, by_code, *out
                )
            if only_number or found <= room:
                break
            if found * (72 + 16 * (node.last - node.first + 1)) > self.memory:  # they are joined, and put in order
                raise beyond_limit(
                    f"a node of the tree plan has {found:,} partial matches", self.memory,
                    "Leave out the algorithm, so that matches are walked instead; or use a shorter WITHIN.",
                )  # fmt: skip
            room = found
        node.rows += int(weight) if only_number else found
        node.tests += tests
        node.condensed += groups is not None
        a, b = (side[: 0 if only_number else found] for side in out)
        rows = PartialMatches(
            np.concatenate([left.table[:, a], right.table[:, b]]), *self._bounds(left, right, a, b),
            left.weights[a] * right.weights[b],
        )  # fmt: skip
        if self._must_hold(node, tile):
            rows = self._held(node, rows, tile)
            weight = float(rows.weights.sum())
        return rows.taken(np.argsort(rows.starts, kind="stable")), weight

    # --- Of sequences -----------------------------------------------------------------------------------------

    def _first_end(self, node: TreeNode, tile: tuple[int, int, int]) -> int:
        """Return the event behind the last that may be in a leaf's rows."""
        return tile[2] if node.first == 0 else tile[1]

    def _after(self, node: TreeNode, left: PartialMatches, limits: Ints) -> Ints:
        """Return for each left row the first event at which a right one may begin."""
        return self.leaves.later[left.ends]

    def _bounds(self, left: PartialMatches, right: PartialMatches, a: Ints, b: Ints) -> tuple[Ints, Ints]:
        """Return the first and last events of joined rows."""
        return left.starts[a], right.ends[b]

    def _must_hold(self, node: TreeNode, tile: tuple[int, int, int]) -> bool:
        """Return whether the rows of a node are asked something more, one by one."""
        return False

    def _held(self, node: TreeNode, rows: PartialMatches, tile: tuple[int, int, int]) -> PartialMatches:
        """Return the rows of a node for which that holds."""
        return rows

    def _told_apart(self, node: TreeNode, rows: PartialMatches) -> list[Ints]:
        """Return more numbers in which rows must agree to be one."""
        return []

    def _sides(self, node: TreeNode, left: PartialMatches, right: PartialMatches) -> tuple[_JoinSides, Ints]:
        """Return the codes that the conditions of a node compare, and which rows of the left have a partner by key."""
        assert node.left is not None
        cut = node.left.last
        own = [c for c in self.leaves.conditions if node.first <= c.first <= cut < c.second <= node.last]
        own.sort(key=lambda c: c.kind != kernel.EQUAL)
        codes = np.zeros((len(own), len(left)), np.int64), np.zeros((len(own), len(right)), np.int64)
        for i, condition in enumerate(own):
            codes[0][i] = condition.left[left.table[condition.first - node.first]]
            codes[1][i] = condition.right[right.table[condition.second - cut - 1]]
        kept, order, by_code = np.arange(len(left)), np.arange(len(right)), np.empty(0, np.int64)
        if self.hashed and own and own[0].kind == kernel.EQUAL:
            known, codes[1][0] = np.unique(codes[1][0], return_inverse=True)
            at = np.searchsorted(known, codes[0][0])
            fits = np.append(known, -1)[at] == codes[0][0]
            kept = np.flatnonzero(fits)
            codes = codes[0][:, kept], codes[1]
            codes[0][0] = at[kept]
            order = np.argsort(codes[1][0], kind="stable")
            by_code = np.searchsorted(codes[1][0][order], np.arange(len(known) + 1))
        kinds = np.array([c.kind for c in own], np.int64)
        return _JoinSides(kinds, codes[0], codes[1], by_code, order), kept

    # --- Groups -----------------------------------------------------------------------------------------------

    def _groups(
        self, node: TreeNode, sides: _JoinSides, left: PartialMatches, right: PartialMatches, after: Ints, until: Ints
    ) -> tuple[tuple[Ints, Ints, Ints], tuple[Ints, Ints, Ints], Ints] | None:
        """Return the groups of both sides, or None where it does not pay to make them."""
        assert node.left is not None
        assert node.right is not None
        if self.way == SWITCHED:
            pairs = joins.pairs_in_reach(sides.left, after, until, right.starts, sides.order, sides.by_code)
            if PAIR * pairs <= GROUP_ROW * (len(left) + len(right)):
                return None
            expected = _expected_pairs(sides)
            if PAIR * pairs <= GROUP_PAIR * expected + GROUP_ROW * (len(left) + len(right)):
                return None
        codes = [sides.left, sides.right] if self.way == BY_VALUE else _by_class(sides.left, sides.right, sides.kinds)
        found = [_grouped(one) for one in codes]
        for child, rows, (_, begins, _) in zip((node.left, node.right), (left, right), found, strict=True):
            child.grouped += len(rows)
            child.groups += len(begins) - 1
        by_code = np.empty(0, np.int64)
        if len(sides.by_code):
            by_code = np.searchsorted(found[1][0][0], np.arange(len(sides.by_code)))
        return found[0], found[1], by_code

    def _merged(self, node: TreeNode, rows: PartialMatches) -> PartialMatches:
        """Return one row for all that agree in first and last event and in what conditions above ask."""
        if self.way == PLAIN or node.last - node.first < 2:  # two events are the first and the last
            return rows
        columns = [rows.starts, rows.ends, *self._told_apart(node, rows)]
        for condition, v in self._outer(node):
            columns.append((condition.left if v == condition.first else condition.right)[rows.table[v - node.first]])
        codes = np.stack(columns[::-1])
        if self.way == SWITCHED and not _repeats(codes):
            return rows
        order, ids, first = _identified(codes)
        if len(first) == len(rows):
            return rows
        one = rows.taken(order[first])
        one.weights = np.bincount(ids, rows.weights[order], len(first)).astype(np.float64)
        return one.taken(np.argsort(one.starts, kind="stable"))


def _repeats(codes: Ints) -> bool:
    """Return whether columns occur several times, as far as some that lie together tell: they are sorted by starts."""
    size = codes.shape[1]
    some = codes[:, max(0, size // 2 - 2 * SAMPLE) : size // 2 + 2 * SAMPLE]
    return len(_identified(some)[2]) < FEWER * some.shape[1]


def _expected_pairs(sides: _JoinSides) -> float:
    """Guess how many pairs of groups there are, from some rows of each side."""
    left, right = (codes[:, :: max(1, codes.shape[1] // SAMPLE)] for codes in (sides.left, sides.right))
    expected = 1.0
    for codes, size in zip(
        _by_class(left, right, sides.kinds), (sides.left.shape[1], sides.right.shape[1]), strict=True
    ):
        known = len(_identified(codes)[2]) if len(codes) else 1
        expected *= size if known > 0.5 * codes.shape[1] else known
    return expected / max(1, len(sides.by_code) - 1) if len(sides.by_code) else expected


def _by_class(left: Ints, right: Ints, kinds: Ints) -> list[Ints]:
    """Return codes in which values are alike if the same opposing values accept them."""
    left, right = left.copy(), right.copy()
    for c, kind in enumerate(kinds.tolist()):
        if kind == kernel.GREATER:
            known, place = np.unique(right[c], return_inverse=True)
            right[c] = place + 1
            left[c] = np.searchsorted(known, left[c], side="right")
    return [left, right]


def _identified(codes: Ints) -> tuple[Ints, Ints, Ints]:
    """Return columns in order, for each in that order the number of its kind, and where each kind begins."""
    size = codes.shape[1]
    if not size:
        none = np.empty(0, np.int64)
        return none, none, none
    order = np.lexsort(codes[::-1]) if len(codes) else np.arange(size)
    differs = np.ones(size, np.bool_)
    differs[1:] = (codes[:, order[1:]] != codes[:, order[:-1]]).any(axis=0)
    return order, np.cumsum(differs) - 1, np.flatnonzero(differs)


def _grouped(codes: Ints) -> tuple[Ints, Ints, Ints]:
    """Return the codes of groups of equal columns, where each begins, and their columns, in rising order."""
    order, _, first = _identified(codes)
    return np.ascontiguousarray(codes[:, order[first]]), np.append(first, len(order)), order


def drawn(node: TreeNode, names: tuple[str, ...], ran: bool, depth: int = 0) -> list[str]:
    """Return the tree as lines of text: the parts of each node below it."""
    inside = ";".join(names[node.first : node.last + 1])
    terms = f"  terms {', '.join(node.terms)}" if node.terms else ""
    seen = ""
    if ran:
        seen = f", {node.rows:,} seen"
        if node.left is not None:
            seen += f", {node.tests:,} evaluations, condensed in {node.condensed:,} of {node.tiles:,} tiles"
        if node.grouped:
            seen += f", condensation degree {node.degree:.2g}"
    lines = [f"{'  ' * depth}{inside}{terms}  {node.estimate:,.0f} rows expected{seen}"]
    for child in (node.left, node.right):
        if child is not None:
            lines += drawn(child, names, ran, depth + 1)
    return lines


class TreeMatches:
    """The matches of a tree plan over the `events` of a `plan`, by group."""

    plan: Plan
    events: Slice

    @property
    @abstractmethod
    def tree_plan(self) -> TreePlan:
        """The tree plan."""

    def tables(self) -> Iterator[tuple[int, int, NDArray[np.int32]]]:
        """Yield tables of matches, a column for each, in the order of ranks, with their groups and numbers."""
        for group, table in zip(self._groups(), self.tree_plan.matches(), strict=True):
            yield group, table.shape[1], table

    def tree_counts(self) -> list[int] | None:
        """Return the number of matches of each group; None where doubles do not hold them."""
        totals = [0.0] * len(self.events.groups)
        for group, number in zip(self._groups(), self.tree_plan.counts(), strict=True):
            totals[group] += number
        return None if max(totals, default=0.0) >= EXACT else [int(number) for number in totals]

    def _groups(self) -> Iterator[int]:
        """Yield the group of each tile: a window, or where in a span it begins."""
        for number, tile in enumerate(self.tree_plan.tiles):
            in_span = self.plan.bound.window.kind is WindowKind.SPAN
            yield int(np.searchsorted(self.events.groups.lo, tile[0], side="right")) - 1 if in_span else number
