"""Unranking trends, without those before them: on the attribute index, or on the graph where edges are needed."""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, partial
from itertools import accumulate
from threading import Lock
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from trellis.arguments import whole_number
from trellis.digits import number_text
from trellis.errors import TrellisError, UsageError
from trellis.events.slice import Ints, Slice
from trellis.kernels.best.suffixes import suffix_counts
from trellis.kernels.count import shapes
from trellis.kernels.unrank import by_edges, by_index, many
from trellis.kernels.unrank.by_index import IndexWindow
from trellis.language.bound import LengthBound
from trellis.memory import allow_more
from trellis.operators.batch import PathBatch
from trellis.operators.ranks import Ranks, draw
from trellis.operators.trends.graph import EventGraph
from trellis.operators.trends.index import DIVIDED, AttributeIndex
from trellis.operators.trends.tasks import NO_BOUND, TrendTasks, length_bounds
from trellis.plan.sizes import USUAL, Sizes

Small = NDArray[np.int32]
Paths = tuple[Small, Ints]  # events one after another, and where each path ends
LIMBS = (1, 2, 3, 4, 6, 8)  # numbers of limbs that loops are compiled for
MOST_VALUES = (1 << 31) - 1
RANKS_TOGETHER = 1 << 20


# --- One task ---------------------------------------------------------------------------------------------------


class TaskUnranker(Protocol):
    """Unranks the trends of one task."""

    @property
    def nbytes(self) -> int:
        """The memory that this takes."""

    def trends(self, ranks: Ranks) -> Paths:
        """Return the trends with given ranks, in rising order and below their number."""


def window_of(index: AttributeIndex, tasks: TrendTasks, task: int) -> IndexWindow | None:
    """Return a task on the index; None where successors are not ranges of vertices."""
    shape, part = index.shape, int(index.parts.of_task[tasks.number[task]])
    if isinstance(shape, DIVIDED):
        return None
    lo, hi, first_end = int(tasks.lo[task]), int(tasks.hi[task]), int(tasks.first_end[task])
    offset, here = int(index.parts.offset[part]), slice(lo, hi)
    ours, none = slice(lo + offset, hi + offset), np.empty(0, np.int32)
    firsts, lasts = _ranges(shape, ours)
    usable, starts, ends = index.events.usable[here], index.events.latest[here] < lo, index.events.nearest[here] >= hi
    reach = shape.reach if isinstance(shape, shapes.Ranges) else np.empty(0, np.int64)
    if tasks.single:
        starts = np.arange(hi - lo) == 0
        ends[: max(0, first_end - lo)] = False
    own, own_end = (shape.own[ours], shape.own_end[ours]) if isinstance(shape, shapes.Tails) else (none, none)
    return IndexWindow(
        lo, int(index.parts.width[part]), np.minimum(index.events.later[here], hi) - lo,
        shape.place[ours], firsts, lasts, usable & (starts | (tasks.every and not tasks.single)),
        usable & ends, usable.copy(), tasks.every, reach[here] - lo, own, own_end,
    )  # fmt: skip


def _ranges(shape: shapes.Tails | shapes.Ranges, here: slice) -> tuple[tuple[Small, ...], tuple[Small, ...]]:
    if isinstance(shape, shapes.Tails):
        return (shape.first[here],), (shape.last[here],)
    rows = [(first[here], last[here]) for first, last in zip(shape.first, shape.last, strict=True)]
    some = [(first, last) for first, last in rows if (first < last).any()] or rows[:1]
    return tuple(first for first, _ in some), tuple(last for _, last in some)


class IndexUnranker:
    """Unranks the trends of a task by the ranges of the attribute index: n log n time to make ready.

    It holds 8 bytes per limb and event and some 30 more, and twice that while it is made; a limb has 61 bits. Finding
    many ranks at once takes as much again for each thread, besides 60 bytes and 40 per limb for each rank, and some 20
    for each event of the trends.
    """

    def __init__(self, window: IndexWindow, total: int, threads: int = 1, sizes: Sizes = USUAL) -> None:
        self.window, self.threads, self._alone = window, threads, sizes.found_alone
        size = len(window.place)
        bits = 63 - size.bit_length()
        room, limbs = _limbs(total, bits)
        _refuse_too_large(size, 16 * room * size, sizes)
        counts = by_index.path_counts(bits, limbs, room, window)
        largest = sum(int(column) << (bits * i) for i, column in enumerate(counts.sum(axis=0)))
        self.room, self.limbs = _limbs(largest, by_index.BITS)
        counts = by_index.widened(counts, bits, self.room)
        self._heads = by_index.start_heads(window.starts, counts)
        self._blocks = _block_sums(window, counts)

    @classmethod
    def of_first(cls, window: IndexWindow) -> IndexUnranker:
        """Return one for ranks below `most_first`, for which it is enough to know of larger numbers that they are."""
        made = cls.__new__(cls)
        made.window, made.threads, made.room, made.limbs = window, 1, 1, (0,)
        most = np.uint64(most_first(len(window.place)))
        counts = np.minimum(suffix_counts(window), most).astype(np.int64).reshape(-1, 1)
        made._heads = by_index.start_heads(window.starts, counts)
        made._blocks = _block_sums(window, counts)
        return made

    @property
    def total(self) -> int:
        """The number of trends; of one for the first ranks at least that, or more than it tells apart."""
        return sum(int(limb) << (by_index.BITS * i) for i, limb in enumerate(self._heads[-1]))

    @property
    def nbytes(self) -> int:
        """The memory that this takes, what it shares with the index included."""
        return 24 * len(self.window.place) + sum(array.nbytes for array in self._blocks)

    def trends(self, ranks: Ranks) -> Paths:
        """Return the trends with given ranks, in rising order."""
        return self.one_by_one(ranks) if len(ranks) <= self._alone else self.together(ranks)

    def one_by_one(self, ranks: Ranks) -> Paths:
        """Return the trends with given ranks; the time of each grows with the number of blocks of events."""
        limbs = ranks.limbs(by_index.BITS, self.room)
        events, ends = by_index.unrank(limbs, self.limbs, self.window, self._blocks, self._heads)
        events += np.int32(self.window.begin)
        return events, ends

    def together(self, ranks: Ranks) -> Paths:
        """Return the trends with given ranks, in rising order, in one go through all events."""
        window = self.window
        counts = by_index.unfold(self._blocks)
        order = np.argsort(window.place, kind="stable").astype(np.int32)
        order = order[np.searchsorted(window.place[order], 0) :]

        def unranked(part: Ints) -> tuple[Small, Small]:
            return many.unrank_many(part, self.limbs, order, window, counts)

        with ThreadPoolExecutor(self.threads) as pool:
            logs = list(pool.map(unranked, np.array_split(ranks.limbs(by_index.BITS, self.room), self.threads)))
            events = np.empty(sum(len(who) for who, _ in logs), np.int32)
            ends = np.zeros(len(ranks), np.int64)
            begins = accumulate((len(who) for who, _ in logs), initial=0)
            parts = zip(logs, begins, np.array_split(ends, self.threads), strict=False)
            list(pool.map(lambda p: many.collect(*p[0], window.begin, p[1], events, p[2]), parts))
        return events, ends


def _block_sums(window: IndexWindow, counts: Ints) -> by_index.BlockSums:
    return by_index.BlockSums(*by_index.sum_blocks(by_index.block_orders(window.place), window.place, counts))


def most_first(events: int) -> int:
    """Return up to which rank, at least, those of so many events are found without exact numbers."""
    return (1 << by_index.BITS) // (events + by_index.BLOCK)  # so that all numbers together fit a limb


def _limbs(largest: int, bits: int) -> tuple[int, tuple[int, ...]]:
    """Return how many limbs of so many bits numbers get, and the tuple that tells kernels."""
    needed = max(1, -(-largest.bit_length() // bits))
    room = next((number for number in LIMBS if number >= needed), needed)
    return room, (0,) * room if room in LIMBS else ()


class GraphUnranker:
    """Unranks the trends of a task by the edges of the graph.

    It holds 8 bytes for each 32 bits of their number, each event and length. Lengths count where HAVING restricts them.
    """

    def __init__(
        self, events: Slice, graph: EventGraph, tasks: TrendTasks, task: int, bits: int,
        having: tuple[LengthBound, ...], sizes: Sizes = USUAL,
    ) -> None:  # fmt: skip
        least, most = length_bounds(having)
        self.limbs = bits // by_edges.LIMB + 2
        lo, hi = int(tasks.lo[task]), int(tasks.hi[task])
        lengths = 0
        if least > 1 or most < NO_BOUND:
            lengths = max(1, min(hi - lo, least if most >= NO_BOUND else most))
        _refuse_too_large(hi - lo, 8 * self.limbs * (hi - lo) * (1 + lengths), sizes)
        arrays = graph.of_tasks(tasks, events.usable)
        self._counts = by_edges.suffix_counts(arrays, task, self.limbs)
        self._layers = np.zeros((0, 0, self.limbs), np.uint64)
        if lengths:
            self._layers = by_edges.layered_counts(arrays, task, self.limbs, lengths)
        self._question = (arrays, task, self._counts, self._layers, least, most)

    @property
    def nbytes(self) -> int:
        """The memory that this takes, beside the graph."""
        return self._counts.nbytes + self._layers.nbytes

    def trends(self, ranks: Ranks) -> Paths:
        """Return the trends with given ranks."""
        return by_edges.unrank(ranks.limbs(by_edges.LIMB, self.limbs).astype(np.uint64), *self._question)


def _refuse_too_large(events: int, needed: int, sizes: Sizes) -> None:
    if needed > sizes.unrank_bytes:
        raise TrellisError(
            f"to find trends by their ranks, the numbers of trends from {events:,} events on are needed, which take "
            f"{needed / 2**30:.1f} GiB",
            "Use a shorter WITHIN, a partition such as `[id]`, or a narrower condition. "
            f"{allow_more(sizes.unrank_bytes)}",
        )


# --- All tasks of a slice ---------------------------------------------------------------------------------------


class SliceUnranker:
    """Unranks the trends of a slice, by group and rank; what a task needs for it is kept, up to a bound."""

    def __init__(
        self, events: Slice, tasks: TrendTasks, index: AttributeIndex | None, graph: Callable[[], EventGraph],
        having: tuple[LengthBound, ...], numbers: Callable[[], Sequence[int]], threads: int, sizes: Sizes,
    ) -> None:  # fmt: skip
        """Take, besides what there is, the number of trends of each task."""
        self.events, self.tasks, self.threads, self.having = events, tasks, threads, having
        self.index = index if length_bounds(having) == (1, NO_BOUND) else None
        self._graph, self._numbers, self._sizes = graph, numbers, sizes
        self._ends = lru_cache(maxsize=1)(partial(_task_ends, tasks, numbers))
        self.unrankers: OrderedDict[int, TaskUnranker] = OrderedDict()
        self._bytes = 0
        self._lock = Lock()

    def at(self, group: int, ranks: Sequence[int]) -> PathBatch:
        """Return the trends of a group with given ranks, in rising order, without those before them."""
        batch = self._paths(group, Ranks.of(ranks))
        if len(batch.positions) > MOST_VALUES:
            raise TrellisError(
                f"{len(batch):,} trends have {len(batch.positions):,} events together", "Ask for fewer at once."
            )
        return PathBatch(batch.positions, batch.offsets.astype(np.int32), (batch.ranks, batch.groups))

    def at_each(self, chosen: Mapping[int, Ranks], most: int) -> Iterator[PathBatch]:
        """Yield the trends of groups with given ranks, in rising order, in batches of so many events or one trend."""
        lots: list[PathBatch] = []
        size = 0
        for group, ranks in chosen.items():
            for begin in range(0, len(ranks), RANKS_TOGETHER):
                lots.append(self._paths(group, ranks[begin : begin + RANKS_TOGETHER]))
                size += len(lots[-1].positions)
                if size >= most:
                    yield from PathBatch.concat(lots).pieces(most)
                    lots, size = [], 0
        yield from PathBatch.concat(lots).pieces(most)

    def _paths(self, group: int, ranks: Ranks) -> PathBatch:
        first, ends = self._ends(group)
        labels = ranks.shown(), np.full(len(ranks), group, np.int64)
        found = [self._of_task(first + task).trends(inner) for task, inner in shares(ranks, ends)]
        whole = PathBatch.concat([PathBatch.of_ends(*paths, labels) for paths in found])
        return PathBatch(whole.positions, whole.offsets, labels)

    def _of_task(self, task: int) -> TaskUnranker:
        with self._lock:
            if task in self.unrankers:
                self.unrankers.move_to_end(task)
            else:
                self.unrankers[task] = self._make(task)
                self._bytes += self.unrankers[task].nbytes
                while len(self.unrankers) > 1 and self._bytes > self._sizes.kept_bytes:
                    self._bytes -= self.unrankers.popitem(last=False)[1].nbytes
            return self.unrankers[task]

    def _make(self, task: int) -> TaskUnranker:
        total = self._numbers()[task]
        window = None if self.index is None else window_of(self.index, self.tasks, task)
        if window is not None:
            return IndexUnranker(window, total, self.threads, self._sizes)
        bits = total.bit_length()
        return GraphUnranker(self.events, self._graph(), self.tasks, task, bits, self.having, self._sizes)


def _task_ends(tasks: TrendTasks, numbers: Callable[[], Sequence[int]], group: int) -> tuple[int, list[int]]:
    """Return the first task of a group, and how many trends its tasks have up to each of them."""
    first, behind = np.searchsorted(tasks.group, [group, group + 1]).tolist()
    return first, list(accumulate(numbers()[first:behind]))


def shares(ranks: Ranks, ends: Sequence[int]) -> Iterator[tuple[int, Ranks]]:
    """Share out ranks, in rising order, among consecutive ranges with these ends: yield a range, and those in it."""
    done = 0
    while done < len(ranks):
        found = bisect_right(ends, ranks[done])
        behind = ranks.first_at_least(ends[found], done)
        yield found, ranks[done:behind].minus(ends[found - 1] if found else 0)
        done = behind


def sampled_ranks(counts: Sequence[int], number: int, seed: int) -> dict[int, Ranks]:
    """Draw results of consecutive groups of these sizes; return the ranks drawn of each group that has any."""
    number, seed = whole_number(number, "the number of a sample"), whole_number(seed, "the seed", None)
    return dict(shares(draw(sum(counts), number, seed), list(accumulate(counts))))


# --- What users name --------------------------------------------------------------------------------------------


def check_rank(rank: int, count: int) -> None:
    """Refuse what is not a rank, and a rank that no trend of a group of this size has."""
    if isinstance(rank, bool) or not isinstance(rank, int | np.integer):
        raise UsageError(f"a rank is a whole number, not a {type(rank).__name__}")
    if not 0 <= rank < count:
        shown = number_text(int(rank)) if rank >= 0 else str(rank)
        raise UsageError(f"there is no trend with rank {shown}", f"Ranks go from 0 to {number_text(count - 1)}.")
