"""The ABI graph: attribute vertices for ranges of values, from-edges to the events they hold, ranges of to-edges."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from trellis.errors import TrellisError, UsageError
from trellis.events.adjacency import HIGHEST, LOWEST, Adjacency, encode
from trellis.events.slice import Ints, Slice
from trellis.kernels.papers.abi import build as kernel
from trellis.papers.contract import USUAL, Bounds
from trellis.plan.plan import Plan

DYNAMIC, PARALLEL = "dynamic", "parallel"


@dataclass(frozen=True)
class Values:
    """The values of an ABI graph: `low[x] <= value[y] < high[x]` where y may follow x by what is indexed.

    Attributes
    ----------
    top
        The end of all values.
    single
        Whether each value is a vertex of its own: what is indexed is an equality alone.
    adjacency
        All that is asked; `rest` of it is not indexed.
    """

    value: Ints
    low: Ints
    high: Ints
    top: int
    single: bool
    adjacency: Adjacency

    @property
    def exact(self) -> bool:
        """Whether nothing is asked beyond what is indexed."""
        rest = self.adjacency
        return len(rest.above) <= (not self.single) and not rest.differ_next and not rest.residual


def values_of(plan: Plan, events: Slice) -> Values:
    """Return the values of events: by the equalities of a query, its first inequality, or both together.

    Raises
    ------
    UsageError
        If it has neither.
    """
    adjacency = encode(plan.adjacent, events.columns, events.usable, holes=False)
    gives, takes = adjacency.gives.copy(), adjacency.takes.copy()
    n = len(events)
    value, low, width = np.zeros(n, np.int64), np.zeros(n, np.int64), 1
    if adjacency.above:
        above, below = adjacency.above[0], adjacency.below[0]
        takes &= above != LOWEST
        gives &= below != HIGHEST
        known, codes = np.unique(np.concatenate([above[takes], below[gives]]), return_inverse=True)
        width = len(known) + 1
        value[takes], low[gives] = codes[: takes.sum()], codes[takes.sum() :] + 1
    elif adjacency.key_next is None:
        raise UsageError(
            "an ABI graph indexes an equality or an inequality of two neighbours, and the query has neither",
            "Leave out the construction, or the algorithm.",
        )
    top, high = width, np.full(n, width, np.int64)
    if adjacency.key_next is not None and adjacency.key_prev is not None:
        next_, prev = adjacency.key_next.astype(np.int64), adjacency.key_prev.astype(np.int64)
        takes &= next_ >= 0
        gives &= prev >= 0
        value, low, high = next_ * width + value, prev * width + low, (prev + 1) * width
        top = (max(int(next_.max(initial=0)), int(prev.max(initial=0))) + 1) * width
    return Values(
        np.where(takes, value, -1), np.where(gives, low, 0), np.where(gives, high, 0), top, width == 1, adjacency
    )


@dataclass(frozen=True)
class AbiGraph:
    """The graph of the events from `begin` on; the first ones of them, as many as `first` has, are sources of to-edges.

    Attributes
    ----------
    vertices
        The number of attribute vertices.
    vertex
        The vertex that holds each event; -1 for none.
    offsets, held
        The from-edges: for each vertex where its events begin in `held`, which has positions in the slice, by time.
    first, last
        The to-edges of each source: from one vertex to before another.
    stored
        How many to-edges were stored while the graph was built; a range counts as one.
    """

    begin: int
    vertices: int
    vertex: Ints
    offsets: Ints
    held: NDArray[np.int32]
    first: Ints
    last: Ints
    stored: int


def build(
    values: Values, begin: int, middle: int, end: int, construction: str, threads: int, *,
    bounds: Bounds = USUAL,
) -> AbiGraph:  # fmt: skip
    """Return the graph of the events from `begin` to before `end`, those before `middle` with to-edges.

    Parameters
    ----------
    construction
        `dynamic`: event by event, with explicit to-edges. `dynamic-range`: with ranges. `parallel`: all at once.
    threads
        How many threads work on `parallel`.
    bounds
        From how many events on threads are worth it, and how many explicit to-edges may be stored.
    """
    value, low, high = values.value[begin:end], values.low[begin:middle], values.high[begin:middle]
    if values.single:
        vertices, vertex, first, last = _single_values(value, low, high, values.top, bounds.few)
        stored = int(np.count_nonzero(low < high))
    elif construction == PARALLEL:
        vertices, vertex, first, last = _in_parallel(value, low, high, values.top, threads, bounds.few)
        stored = int(np.count_nonzero(low < high))
    else:
        explicit = construction == DYNAMIC
        vertices, vertex, first, last, stored = kernel.build_dynamically(
            value, low, high, middle - begin, values.top, explicit, bounds.to_edges
        )
        if vertices < 0:
            raise TrellisError(
                f"the construction `dynamic` would store more than {bounds.to_edges:,} to-edges",
                "Use construction dynamic-range or parallel, or a shorter WITHIN.",
            )
        stored = stored if explicit else int(np.count_nonzero(low < high))
    offsets, held = _from_edges(vertex, vertices, threads, bounds.few)
    return AbiGraph(begin, vertices, vertex, offsets, held + np.int32(begin), first, last, stored)


def _single_values(value: Ints, low: Ints, high: Ints, top: int, few: int) -> tuple[int, Ints, Ints, Ints]:
    """Make a vertex of each value: of all there are, or where these are many more than events, of those that occur."""
    gives = low < high
    if top <= 4 * len(value) + few:
        return top, value, low, high
    occurring = np.unique(np.concatenate([value[value >= 0], low[gives]]))
    vertex = np.where(value >= 0, np.searchsorted(occurring, value), -1)
    first = np.where(gives, np.searchsorted(occurring, low), 0)
    return len(occurring), vertex, first, first + gives


def _in_parallel(value: Ints, low: Ints, high: Ints, top: int, threads: int, few: int) -> tuple[int, Ints, Ints, Ints]:
    """Do Algorithm 1's steps: cuts of parts on threads, sorted and merged, then the vertex of each value."""
    number = threads if len(value) >= few else 1
    with ThreadPoolExecutor(number) as pool:

        def cuts_of(part: tuple[Ints, Ints]) -> Ints:
            gives = part[0] < part[1]
            cuts = np.concatenate([part[0][gives], part[1][gives]])
            return np.unique(cuts[(cuts > 0) & (cuts < top)])

        parts = zip(np.array_split(low, number), np.array_split(high, number), strict=True)
        cuts = reduce(kernel.merge_distinct, pool.map(cuts_of, parts), np.empty(0, np.int64))

        def vertices_of(wanted: Ints) -> Ints:
            places = np.empty(len(wanted), np.int64)
            bounds = np.linspace(0, len(wanted), number + 1).astype(np.int64)
            list(
                pool.map(lambda i: kernel.find_vertices(cuts, wanted, bounds[i], bounds[i + 1], places), range(number))
            )
            return places

        gives = low < high
        first, last = np.where(gives, vertices_of(low), 0), np.where(gives, len(cuts) + 1, 0)
        ended = np.flatnonzero(gives & (high < top))
        last[ended] = vertices_of(high[ended])
        return len(cuts) + 1, vertices_of(value), first, last


def _from_edges(vertex: Ints, vertices: int, threads: int, few: int) -> tuple[Ints, NDArray[np.int32]]:
    """Return where the events of each vertex begin, and the events; threads take vertices of their own."""
    counts = np.bincount(vertex[vertex >= 0], minlength=vertices)
    offsets = np.concatenate([[0], np.cumsum(counts)])
    held = np.empty(offsets[-1], np.int32)
    number = threads if len(vertex) >= few else 1
    shares = np.searchsorted(offsets, np.linspace(0, offsets[-1], number + 1)[1:-1].astype(np.int64))
    bounds = [0, *shares.tolist(), vertices]

    def gather(i: int) -> None:
        kernel.gather_events(vertex, bounds[i], bounds[i + 1], offsets, held)

    if number == 1:
        gather(0)
    else:
        with ThreadPoolExecutor(number) as pool:
            list(pool.map(gather, range(number)))
    return offsets, held
