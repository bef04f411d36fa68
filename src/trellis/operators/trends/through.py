"""Numbers of the trends through each event: a pass backwards counts how they go on, one forwards how they got there.

The pass forwards is the pass backwards over the same events with time running backwards: the *mirror*, in which event x
stands at `n - 1 - x`. It has an index of its own where the conditions are keys and inequalities, else the edges turned
around. Nothing is listed, and numbers of any size are exact: they are put together from residues.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from trellis.events.slice import Ints
from trellis.kernels.count import passes
from trellis.kernels.count.algebra import NO_PATH, Floats, Lengths, Modulo, lengths, modulo
from trellis.kernels.event_graph.edges import EdgeLists, latest_predecessors
from trellis.operators.exact import multiply_modulo
from trellis.operators.trends.count import GraphRelation
from trellis.operators.trends.graph import EventGraph
from trellis.operators.trends.index import AttributeIndex, mirrored_index
from trellis.operators.trends.tasks import TrendTasks
from trellis.operators.wide import EXACT, WideNumbers
from trellis.properties import cached_property

if TYPE_CHECKING:
    from trellis.operators.trends.structure import TrendStructure

ROWS_AT_ONCE = 1 << 22  # pairs of a task and one of its events that are worked on together
PART = 29  # bits of residues that are added apart, where many are added

Weights = Callable[[int], NDArray[np.uint64]]
Algebra = Floats | Modulo | Lengths


@dataclass(frozen=True)
class Direction:
    """The relation of events to those that come next in one direction of time, and the tasks in that direction."""

    relation: GraphRelation | AttributeIndex
    tasks: TrendTasks

    def values(self, algebra: Algebra, some: slice, extra: NDArray[Any] | None = None) -> NDArray[Any]:
        """Return the value of each event of some tasks, one task after another."""
        tasks = self.tasks.chosen(some)
        size = int((tasks.hi - tasks.lo).sum())
        zero = np.full(0, algebra.zero)
        values = np.full(size, algebra.zero)
        more = zero if extra is None else np.ascontiguousarray(extra, zero.dtype)
        passes.values_of_events(
            algebra, self.relation.shape, self.relation.events, self.relation.tasks(tasks), more, values
        )  # fmt: skip
        return values


def both_directions(structure: TrendStructure) -> tuple[Direction, Direction]:
    """Return how the trends of a structure go on, and how they got where they are."""
    events, tasks = structure.events, structure.tasks
    n = len(events)
    turned = replace(tasks, lo=n - tasks.hi, hi=n - tasks.lo, first_end=n - tasks.hi)
    if tasks.single:  # in the mirror, trends end where their span begins, and nowhere else
        turned = replace(turned, first_end=turned.hi - 1, every=False, single=False)
    forth = None
    if structure.index is not None and not tasks.single and not structure.given:
        forth = mirrored_index(structure.plan, events, tasks.lo, tasks.hi, structure.threads)
    if forth is not None:
        assert structure.index is not None
        return Direction(structure.index, tasks), Direction(forth, replace(turned, number=np.arange(len(tasks))))
    backs = replace(events, usable=events.usable[::-1].copy())
    back = GraphRelation(events, structure.graph)
    return Direction(back, tasks), Direction(GraphRelation(backs, mirrored_graph(structure.graph)), turned)


def mirrored_graph(graph: EventGraph) -> EventGraph:
    """Return the graph with time running backwards: its successors are the predecessors."""
    n = len(graph.offsets) - 1
    sources = np.repeat(np.arange(n, dtype=np.int32), np.diff(graph.offsets))
    begins = n - 1 - graph.successors[::-1]
    order = np.argsort(begins, kind="stable")
    successors = (n - 1 - sources[::-1])[order].astype(np.int32)
    offsets = np.concatenate([[0], np.cumsum(np.bincount(begins, minlength=n))]).astype(graph.offsets.dtype)
    lists = EdgeLists(offsets, successors)
    return EventGraph(lists.offsets, lists.successors, latest_predecessors(offsets, successors))


class TrendsThrough:
    """The numbers of the trends through each event, a row for each event of a group that is in one.

    Parameters
    ----------
    structure
        The graph or index, and the tasks.
    counts
        The exact number of trends of each group, which bounds all numbers.
    """

    def __init__(self, structure: TrendStructure, counts: list[int]) -> None:
        self._events, self._largest = structure.events, max(counts, default=0)
        self._threads = structure.threads
        self.back, self.forth = both_directions(structure)
        self._single = structure.tasks.single
        self._all_alive = isinstance(self.forth.relation, AttributeIndex)  # where values alone tell, all may stand

    # --- Rows -------------------------------------------------------------------------------------------------

    @cached_property
    def _chunks(self) -> list[slice]:
        """Runs of tasks of a bounded size."""
        tasks = self.back.tasks
        borders, size = [0], 0
        for t, own in enumerate((tasks.hi - tasks.lo).tolist()):
            if size + own > ROWS_AT_ONCE and size:
                borders.append(t)
                size = 0
            size += own
        return [slice(a, b) for a, b in zip(borders, [*borders[1:], len(tasks)], strict=True) if a < b]

    def _pairs(self, some: slice) -> tuple[Ints, Ints, Ints]:
        """Return for each event of some tasks its task's group, the event, and its place in the mirrored task."""
        tasks = self.back.tasks.chosen(some)
        sizes = tasks.hi - tasks.lo
        begins = np.cumsum(sizes) - sizes
        within = np.arange(int(sizes.sum())) - np.repeat(begins, sizes)
        turned = np.repeat(begins + sizes - 1, sizes) - within
        return np.repeat(tasks.group, sizes), np.repeat(tasks.lo, sizes) + within, turned

    @cached_property
    def _parts(self) -> list[_Chunk]:
        chunks = []
        for some in self._chunks:
            chunk = _Chunk(self.back, self.forth, some, *self._pairs(some))
            alive = self._events.usable[chunk.event] if self._all_alive else (chunk.back > 0) & (chunk.forth > 0)
            chunk.alive = np.flatnonzero(alive)
            chunks.append(chunk)
        return chunks

    @cached_property
    def _keys(self) -> tuple[Ints, Ints]:
        """The rows, by group and event as one number, and the row of each pair of a task and an event that is alive."""
        n = len(self._events)
        keys = [chunk.group[chunk.alive] * n + chunk.event[chunk.alive] for chunk in self._parts]
        whole = np.concatenate([np.empty(0, np.int64), *keys])
        if not self._single:
            return whole, np.arange(len(whole))
        return np.unique(whole, return_inverse=True)

    @property
    def size(self) -> int:
        """The number of events of the slice."""
        return len(self._events)

    @property
    def groups(self) -> Ints:
        """The group of each row."""
        return self._keys[0] // max(len(self._events), 1)

    @property
    def events(self) -> Ints:
        """The event of each row, as its position."""
        return self._keys[0] % max(len(self._events), 1)

    # --- Numbers ----------------------------------------------------------------------------------------------

    def counts(self, which: str = "COUNT") -> WideNumbers:
        """Return the exact number of trends through the event of each row.

        Parameters
        ----------
        which
            `COUNT`: all of them; `BEGINS`, `ENDS`: only those that begin, or end, with the event.
        """
        rows, of_pair = self._keys
        if self._largest < EXACT:
            exact = [np.multiply(*chunk.edged(which, chunk.back, chunk.forth))[chunk.alive] for chunk in self._parts]
            return WideNumbers.of(np.bincount(of_pair, np.concatenate([np.empty(0), *exact]), len(rows)))
        bits = self._largest.bit_length()
        return WideNumbers.of_residues(bits, lambda prime: self._residues(prime, which=which)[0], self._threads)

    def sums(self, weights: Weights, bits: int) -> list[WideNumbers]:
        """Return for each row the exact sums, over the trends through its event, of the weights of all their events.

        `weights` gives for a prime the weights of all events modulo it, one row a kind of weight.
        """
        most = self._largest.bit_length() + (len(self._events) + 1).bit_length() + bits + 2
        found = WideNumbers.of_residues(
            most, lambda prime: self._residues(prime, weights(prime)).ravel(), self._threads, signed=True
        )
        rows, kinds = len(self._keys[0]), len(weights(3))
        return [found.taken(slice(kind * rows, (kind + 1) * rows)) for kind in range(kinds)]

    def _residues(
        self, prime: int, weights: NDArray[np.uint64] | None = None, which: str = "COUNT"
    ) -> NDArray[np.uint64]:
        algebra = modulo(prime)
        kinds = 1 if weights is None else len(weights)
        table = _Residues(prime, kinds, len(self._keys[0]), self._single)
        place = 0
        for chunk in self._parts:
            some, turned, alive = chunk.tasks, chunk.turned, chunk.alive
            back = self.back.values(algebra, some)
            forth = self.forth.values(algebra, some)[turned]
            here = self._keys[1][place : place + len(alive)]
            through = multiply_modulo(*chunk.edged(which, back, forth), prime)
            for kind in range(kinds):
                if weights is None:
                    table.add(0, here, through[alive])
                    continue
                own = weights[kind][chunk.event]
                behind = self.back.values(algebra, some, multiply_modulo(own, back, prime))
                upside = np.empty(len(own), np.uint64)
                upside[turned] = multiply_modulo(own, forth, prime)
                before = self.forth.values(algebra, some, upside)[turned]
                found = multiply_modulo(before, back, prime) + multiply_modulo(forth, behind, prime)
                found = (found + np.uint64(prime) - multiply_modulo(own, through, prime)) % np.uint64(prime)
                table.add(kind, here, found[alive])
            place += len(alive)
        return table.settled()

    # --- Extremes ---------------------------------------------------------------------------------------------

    def lengths(self, longest: bool) -> Ints:
        """Return the least or greatest length of a trend through the event of each row."""
        algebra = lengths(longest)

        def both(chunk: _Chunk) -> Ints:
            back = self.back.values(algebra, chunk.tasks)
            return back + self.forth.values(algebra, chunk.tasks)[chunk.turned] - 1

        return self._extreme(both, longest)

    def extremes(self, codes: Ints, greatest: bool) -> Ints:
        """Return for each row the least or greatest code of the events of the trends through it; -1 where none has one.

        An event without a value has the code -1.
        """
        algebra = lengths(greatest)
        none = algebra.zero

        def both(chunk: _Chunk) -> Ints:
            # Only events from which, or to which, a trend leads count: the others have no code.
            own = codes[chunk.event] + 1
            behind = np.where((own > 0) & (chunk.back > 0), own, none)
            before = np.where((own > 0) & (chunk.forth > 0), own, none)
            upside = np.empty(len(own), np.int64)
            upside[chunk.turned] = before
            found = [self.back.values(algebra, chunk.tasks, behind)]
            found.append(self.forth.values(algebra, chunk.tasks, upside)[chunk.turned])
            return np.maximum(*found) if greatest else np.minimum(*found)

        best = self._extreme(both, greatest)
        return np.where(best == none, 0, best) - 1

    def _extreme(self, both: Callable[[_Chunk], Ints], greatest: bool) -> Ints:
        rows, of_pair = self._keys
        best = np.full(len(rows), 0 if greatest else NO_PATH, np.int64)
        place = 0
        for chunk in self._parts:
            here = of_pair[place : place + len(chunk.alive)]
            (np.maximum if greatest else np.minimum).at(best, here, both(chunk)[chunk.alive])
            place += len(chunk.alive)
        return best


class _Residues:
    """Numbers of rows modulo a prime, a line for each kind, to which those of pairs of a task and an event are added.

    Without a span each pair has a row of its own. Else as many may be added as there are tasks: their low and high bits
    are added apart.
    """

    def __init__(self, prime: int, kinds: int, rows: int, single: bool) -> None:
        self._prime, self._single = prime, single
        self._table = np.zeros((1 + single, kinds, rows), np.uint64)

    def add(self, kind: int, rows: Ints, own: NDArray[np.uint64]) -> None:
        """Add the numbers of pairs to those of their rows."""
        if not self._single:
            self._table[0, kind, rows] = own
            return
        np.add.at(self._table[0, kind], rows, own & np.uint64((1 << PART) - 1))
        np.add.at(self._table[1, kind], rows, own >> np.uint64(PART))

    def settled(self) -> NDArray[np.uint64]:
        """Return the numbers."""
        if not self._single:
            return self._table[0]
        prime = np.uint64(self._prime)
        low, high = (part.ravel() % prime for part in self._table)
        high = multiply_modulo(high, np.full(len(high), 1 << PART, np.uint64), self._prime)
        return ((low + high) % prime).reshape(self._table.shape[1:])


class _Chunk:
    """Some tasks, with the group and position of each of their events, and how many ways lead to and from it."""

    def __init__(self, back: Direction, forth: Direction, tasks: slice, group: Ints, event: Ints, turned: Ints) -> None:
        self._back, self._forth, self.tasks = back, forth, tasks
        self.group, self.event, self.turned = group, event, turned
        self.alive = np.empty(0, np.int64)

    def edged(self, which: str, back: NDArray[Any], forth: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the ways on from each event and to it, of the trends that `TrendsThrough.counts` is asked for."""
        least = lengths(False)
        if which == "BEGINS":  # the one way to an event that begins a trend is none
            begins = self._forth.values(least, self.tasks)[self.turned] == 1
            return back, begins.astype(forth.dtype)
        if which == "ENDS":
            return (self._back.values(least, self.tasks) == 1).astype(back.dtype), forth
        return back, forth

    @cached_property
    def back(self) -> NDArray[np.float64]:
        """How many ways lead on from each event."""
        return self._back.values(Floats(), self.tasks)

    @cached_property
    def forth(self) -> NDArray[np.float64]:
        """How many ways lead to each event."""
        return self._forth.values(Floats(), self.tasks)[self.turned]
