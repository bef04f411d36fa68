"""The event graph of a slice: the successors of every event in flat arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from trellis.errors import TrellisError
from trellis.events.adjacency import HIGHEST, LOWEST, Adjacency, encode, residual_holds
from trellis.events.gaps import reach_of
from trellis.events.slice import Ints, Slice
from trellis.kernels.count.paths import TaskGraph
from trellis.kernels.event_graph import edges as kernel
from trellis.language.syntax import Report, Select
from trellis.memory import allow_more, limit_text
from trellis.operators.trends.tasks import NO_BOUND, TrendTasks
from trellis.plan.plan import Plan
from trellis.plan.sizes import EDGE_BYTES, Sizes

if TYPE_CHECKING:
    from trellis.operators.trends.direct import DirectEdges, Edges

PAIRS_AT_ONCE = 1 << 21
FEW_PAIRS = 1 << 14  # for which there is room before they are counted
POLICIES = {Select.ANY: kernel.ANY, Select.NEXT: kernel.NEXT}


@dataclass(frozen=True)
class EventGraph:
    """Edges between events that may follow one another; the successors of one event are in time order.

    `latest[x]` is the latest predecessor of x, or -1. `nearest_end[x]` is the first event with which a path from x may
    end, where that is not x itself for every event that is usable.
    """

    offsets: Ints
    successors: NDArray[np.int32]
    latest: Ints
    nearest_end: Ints | None = None

    def of_tasks(self, tasks: TrendTasks, usable: NDArray[np.bool_]) -> TaskGraph:
        """Return the graph with tasks, as kernels take it."""
        nearest_end = self.nearest_end
        if nearest_end is None:
            nearest_end = np.where(usable, np.arange(len(usable)), NO_BOUND)
        return TaskGraph(
            tasks.lo, tasks.hi, tasks.first_end, tasks.single, tasks.every, self.offsets, self.successors, self.latest,
            nearest_end,
        )  # fmt: skip


def build_graph(plan: Plan, events: Slice, direct: DirectEdges | None = None) -> EventGraph:
    """Return the graph whose paths are the trends of a plan of one Kleene variable.

    Under REPORT maximal edges with a detour are left out (the transitive reduction); `direct` is what is already known
    of those that are not.
    """
    if direct is None and plan.bound.report is Report.MAXIMAL:
        from trellis.operators.trends.direct import (
            find_direct,  # late: few graphs need its kernels, which take their time
        )

        direct = find_direct(plan, events)
    if direct is not None:
        offsets, successors = _direct_edges(events, direct, plan.sizes)
    else:
        cuts = events.pairs > plan.sizes.small_pairs
        adjacency = encode(plan.adjacent, events.columns, events.usable, cuts=cuts)
        if plan.bound.select is Select.CONTIGUOUS:
            degrees, successors = consecutive_edges(events, adjacency)
        else:
            degrees, successors = edges_between(events, adjacency, POLICIES[plan.bound.select], plan.sizes)
        offsets = np.concatenate([[0], np.cumsum(degrees)])
    return EventGraph(offsets, successors, kernel.latest_predecessors(offsets, successors))


def _direct_edges(events: Slice, direct: DirectEdges, sizes: Sizes) -> Edges:
    from trellis.operators.trends.direct import Method

    if direct.method is Method.REACH:
        degrees, successors = edges_between(events, direct.adjacency, kernel.ANY, sizes)
        return reduced(events, np.concatenate([[0], np.cumsum(degrees)]), successors, sizes)
    edges = direct.edges(sizes.graph_edges)
    if edges is None:
        raise TrellisError(
            f"{len(events):,} events have more than {sizes.graph_edges:,} pairs that follow one another directly; "
            f"their graph would take more than {limit_text(sizes.graph_edges * EDGE_BYTES)}B",
            f"Use a shorter WITHIN, a partition such as `[id]`, or a narrower condition. {_more(sizes)}",
        )
    return edges


def edges_between(events: Slice, adjacency: Adjacency, policy: int, sizes: Sizes) -> tuple[Ints, NDArray[np.int32]]:
    """Return how many events may follow each event, and these one after another, in rising order."""
    n = len(events)
    degrees = np.zeros(n, np.int64)
    codes = edge_codes(events, adjacency, policy)
    if adjacency.residual:
        return _filtered_edges(events, adjacency, codes, degrees, sizes)
    room = n if policy == kernel.NEXT else n * (n - 1) // 2  # an event has one successor at most, or any of the later
    if room > max(n, FEW_PAIRS):
        room = kernel.edges_of_rows(0, n, codes, degrees, np.empty(0, np.int32))
        _refuse_too_many(room, n, sizes)
    successors = np.empty(room, np.int32)
    return degrees, successors[: kernel.edges_of_rows(0, n, codes, degrees, successors)] if room else successors


def consecutive_edges(events: Slice, adjacency: Adjacency) -> tuple[Ints, NDArray[np.int32]]:
    """Return whether the very next event may follow each event, and those that may; the next one must be later."""
    behind = np.arange(1, len(events) + 1)
    later = events.later
    follows = (adjacency.gives & (later == behind) & (events.until > behind))[:-1] & adjacency.takes[1:]
    if adjacency.key_next is not None and adjacency.key_prev is not None:
        follows &= (adjacency.key_next[1:] == adjacency.key_prev[:-1]) & (adjacency.key_prev[:-1] >= 0)
    for above, below in zip(adjacency.above, adjacency.below, strict=True):
        follows &= above[1:] > below[:-1]
    for after, before in zip(adjacency.differ_next, adjacency.differ_prev, strict=True):
        follows &= (after[1:] != before[:-1]) & (after[1:] >= 0) & (before[:-1] >= 0)
    for clause in adjacency.clauses:
        follows &= np.logical_or.reduce([above[1:] > below[:-1] for above, below in clause])
    sources = np.flatnonzero(follows)
    targets = (sources + 1).astype(np.int32)
    if adjacency.residual:
        holds = residual_holds(adjacency.residual, events.columns, sources, targets)
        sources, targets = sources[holds], targets[holds]
    degrees = np.zeros(len(events), np.int64)
    degrees[sources] = 1
    return degrees, targets


def edge_codes(events: Slice, adjacency: Adjacency, policy: int) -> kernel.EdgeCodes:
    """Return the codes by which kernels find edges."""
    n = len(events)
    later, until = events.later, events.until
    reach = reach_of(adjacency, events)
    if reach is not None:
        until = np.minimum(until, np.maximum(reach, later))
    key_prev, key_runs, by_key = np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int64)
    if adjacency.key_next is not None and adjacency.key_prev is not None:
        key_prev = adjacency.key_prev
        by_key = np.argsort(adjacency.key_next, kind="stable")
        keys = adjacency.key_next[by_key]
        most = max(key_prev.max(initial=-1), keys[-1] if n else -1)
        key_runs = np.searchsorted(keys, np.arange(most + 2))
    return kernel.EdgeCodes(
        policy, later, until, adjacency.gives, adjacency.takes, key_prev, key_runs, by_key,
        _rows(adjacency.above, n), _rows(adjacency.below, n),
        _rows(adjacency.differ_next, n), _rows(adjacency.differ_prev, n), *_clauses(adjacency, n),
    )  # fmt: skip


def _rows(arrays: list[Ints], n: int) -> np.ndarray:
    return np.concatenate(arrays).reshape(len(arrays), n) if arrays else np.empty((0, n), np.int64)


def _clauses(adjacency: Adjacency, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return clauses as arrays; a shorter one gets choices that never hold."""
    clauses = adjacency.clauses
    if not clauses:
        return np.empty((0, 0, n), np.int64), np.empty((0, 0, n), np.int64)
    shape = len(clauses), max(map(len, clauses), default=0), n
    above, below = np.full(shape, LOWEST), np.full(shape, HIGHEST)
    for j, clause in enumerate(clauses):
        for i, pair in enumerate(clause):
            above[j, i], below[j, i] = pair
    return above, below


def _filtered_edges(
    events: Slice, adjacency: Adjacency, codes: kernel.EdgeCodes, degrees: Ints, sizes: Sizes
) -> tuple[Ints, NDArray[np.int32]]:
    """Find the pairs that the codes allow, some rows at a time, and keep those that the residual conditions do."""
    n = len(events)
    only_first = codes.policy == kernel.NEXT
    if only_first:
        codes = codes._replace(policy=kernel.ANY)
    candidates = np.cumsum(np.maximum(codes.until - codes.later, 0))
    parts, begin, found = [], 0, 0
    while begin < n:
        before = candidates[begin - 1] if begin else 0
        end = max(begin + 1, int(np.searchsorted(candidates, before + PAIRS_AT_ONCE, side="right")))
        rows = degrees[begin:end]
        total = kernel.edges_of_rows(begin, end, codes, rows, np.empty(0, np.int32))
        if total:
            successors = np.empty(total, np.int32)
            kernel.edges_of_rows(begin, end, codes, rows, successors)
            sources = kernel.sources_of(begin, rows, total)
            holds = residual_holds(adjacency.residual, events.columns, sources, successors)
            kept = kernel.keep_edges(rows, successors, holds, only_first)
            parts.append(successors[:kept].copy())
            found += kept
            _refuse_too_many(found, n, sizes)
        begin = end
    return degrees, np.concatenate(parts) if parts else np.empty(0, np.int32)


def reduced(events: Slice, offsets: Ints, successors: NDArray[np.int32], sizes: Sizes) -> Edges:
    """Leave out edges with a detour, partition by partition, for some columns of reachability at a time."""
    read, kept = offsets[:-1].copy(), np.zeros(len(events), np.int64)
    joined = 0
    for begin, end in zip(events.bounds[:-1], events.bounds[1:], strict=True):
        if offsets[begin] == offsets[end]:
            continue
        until = events.until[begin:end]
        columns = _columns_at_once(int((until - np.arange(begin, end)).max()), int(end - begin), sizes.reach_bytes)
        for column in range(begin, end, columns):
            last = min(column + columns, end)
            row = begin + int(np.searchsorted(until, column, side="right"))
            reach = np.empty((max(last - row, 0), (last - column + 63) // 64), np.uint64)
            joined += kernel.reduce_columns(row, column, last, offsets, successors, read, kept, reach)
            if joined > sizes.reach_steps:
                raise TrellisError(
                    f"REPORT maximal of {end - begin:,} events in one window takes more than {sizes.reach_steps:,} "
                    "steps: the conditions are not transitive on them",
                    "Use REPORT unextendable, a shorter WITHIN, or a partition.",
                )
    total = kernel.pack_rows(offsets, kept, successors)
    return np.concatenate([[0], np.cumsum(kept)]), successors[:total].copy()


def _columns_at_once(width: int, size: int, room: int) -> int:
    """Return how many columns fit so many bytes, with a row for each of them and for `width` events before them."""
    fitting = int((np.sqrt(float(width) ** 2 + 32.0 * room) - width) / 2)
    return min(max(fitting // 64 * 64, 64), size)


def _refuse_too_many(edges: int, events: int, sizes: Sizes) -> None:
    if edges > sizes.graph_edges:
        raise TrellisError(
            f"{events:,} events have {edges:,} pairs that may follow one another; "
            f"their graph would take {limit_text(edges * EDGE_BYTES)}B",
            f"Use a shorter WITHIN, a partition such as `[id]`, or a narrower condition. {_more(sizes)}",
        )


def _more(sizes: Sizes) -> str:
    return allow_more(sizes.graph_edges * EDGE_BYTES)
