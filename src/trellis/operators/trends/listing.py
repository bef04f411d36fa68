"""Listing rank ranges in batches, in order, on any number of threads; memory does not grow with the trends.

The results wanted are *rank ranges*, each of one task. They are cut into *parts* of about one batch
each. A *list worker* is a walk that lists one part after another; there is one more than threads, and no more batches
than workers wait to be taken. Each worker takes memory for its place in the graph, and where it goes over small
tasks, also for what makes those ready: 40 bytes per event of the largest one, and the blocks. What makes a large task
ready is shared.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import islice
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import Any, Generic, NamedTuple, TypeVar
from weakref import finalize

import numpy as np
from numpy.typing import NDArray

from trellis.events.slice import Ints, Slice
from trellis.kernels.count.paths import TaskGraph
from trellis.kernels.list import walk as kernel
from trellis.kernels.list.blocks import TASK, PathBlocks, RowWords, make_ready
from trellis.kernels.list.lengths import LengthLimits
from trellis.kernels.list.walk import WalkRanges, WalkRows, WalkState
from trellis.kernels.list.wide import SPARE
from trellis.operators.batch import EventWords, Labels, PathBatch, WordRows
from trellis.operators.lent import give_back, lent
from trellis.operators.trends.graph import EventGraph
from trellis.operators.trends.task_ranges import BEYOND, CLIPPED, TaskRanges
from trellis.operators.trends.tasks import NO_BOUND, TrendTasks
from trellis.plan.sizes import USUAL, Sizes
from trellis.properties import cached_property

PATIENCE = 10.0  # seconds in which a thread that is dismissed ends its step, or is left alone
SHORT = 8  # times: rather than hold a buffer of which less is filled, results are copied
AHEAD = 1  # list workers more than threads, so that none waits for a batch to be taken

T = TypeVar("T")


@dataclass(frozen=True)
class TraversalInput:
    """The input of a walk: tasks of a graph, lengths that HAVING allows, and a function that unranks a path."""

    events: Slice
    tasks: TrendTasks
    graph: EventGraph
    least: int
    most: int
    path: Callable[[int, int], NDArray[np.int32]]

    @property
    def restricted(self) -> bool:
        """Whether HAVING leaves out any length."""
        return self.least > 1 or self.most < NO_BOUND

    @property
    def arrays(self) -> TaskGraph:
        """The arrays as kernels take them."""
        return self.graph.of_tasks(self.tasks, self.events.usable)


# --- What comes out --------------------------------------------------------------------------------------------


class _Buffers:
    """Room for a batch."""

    def __init__(self, values: int, rows: int, compact: bool, words: EventWords | None) -> None:
        def array(purpose: str, number: int, type_: Any) -> NDArray[Any]:
            return lent(purpose, number + SPARE, type_)

        self.values = array("values", values, np.int32 if words is None else np.int64)
        self.ends = array("ends", rows, np.int32)
        self.shared = array("shared", rows, np.int32) if compact else None
        self.firsts, self.lasts, self.codes = _NO_WORDS, _NO_WORDS, _NO_CODES
        if words is not None:
            self.firsts, self.lasts = array("firsts", rows, np.int64), array("lasts", rows, np.int64)
            self.codes = array("codes", values, np.uint8) if len(words.codes) else _NO_CODES

    def batch(self, rows: int, used: int, labels: Callable[[], Labels]) -> PathBatch:
        """Return the arrays as far as they are written; short results do not hold long buffers."""
        short = SHORT * used < len(self.values)

        def taken(array: NDArray[Any], number: int) -> NDArray[Any]:
            return array[:number].copy() if short else array[:number]

        values, offsets = taken(self.values, used), taken(self.ends, rows + 1)
        shared = None if self.shared is None else taken(self.shared, rows)
        if not len(self.firsts):
            return PathBatch(values, offsets, labels, shared=shared)
        words = WordRows(values, taken(self.codes, used), taken(self.firsts, rows), taken(self.lasts, rows))
        return PathBatch(np.empty(0, np.int32), offsets, labels, shared=shared, words=words)


_NO_WORDS, _NO_CODES = np.empty(0, np.int64), np.empty(0, np.uint8)


# --- The work --------------------------------------------------------------------------------------------------


class Listing(Generic[T]):
    """Rank ranges, listed batch by batch in their order; `make` turns a batch into what is wanted of it.

    Parameters
    ----------
    traversal
        The traversal input.
    ranges
        The rank ranges that are listed.
    make
        Gets each batch, on the thread that listed it.
    values
        How many events per batch names at most, if each trend has fewer.
    threads
        How many threads list; lengths that HAVING restricts are listed by one.
    compact
        Whether each trend is only written as far as it differs from the one before it.
    words
        Events as words, if these are listed in place of positions.
    sizes
        The sizes of parts and blocks.
    """

    def __init__(
        self, traversal: TraversalInput, ranges: TaskRanges, make: Callable[[PathBatch], T], values: int,
        threads: int = 1, compact: bool = False, words: EventWords | None = None, sizes: Sizes = USUAL,
    ) -> None:  # fmt: skip
        self.traversal, self.ranges, self.make, self.compact, self.words = traversal, ranges, make, compact, words
        self.sizes = sizes
        few = not len(ranges) or ranges.rows(0, 0, len(ranges)) <= sizes.first_rows
        self._threads = 1 if few or traversal.restricted else threads
        spans = traversal.tasks.hi[ranges.tasks] - traversal.tasks.lo[ranges.tasks]
        self.deepest = int(spans.max(initial=0))
        most = values // 2 if compact else values
        self.room = max(most, self.deepest)  # values of a batch at most; parts are cut to have fewer
        self.values = max(most * 2 // 3, self.deepest)
        if self._threads == 1:
            self.room = self.values
        self.graph = traversal.arrays
        self.walk_ranges = WalkRanges(ranges.tasks, ranges.first.clipped, ranges.size.clipped)
        self._wanted = sizes.first_rows if self._threads > 1 else NO_BOUND  # rows of a part
        self._lock = Lock()
        self._shared: _Ready | None = None

    def __iter__(self) -> Iterator[T]:
        """Yield the batches; whoever stops early leaves neither a thread nor room behind."""
        try:
            yield from self._alone() if self._threads == 1 else self._together()
        finally:
            give_back()

    def _alone(self) -> Iterator[T]:
        worker = _ListWorker(self)
        for part in self._parts():
            worker.open(part)
            while worker.rest:
                yield worker.step()

    def _together(self) -> Iterator[T]:
        """List on other threads, and on this one while it would wait."""
        parts = self._parts()
        with _crew(self._threads - 1) as waiting:
            running: deque[_ListWorker] = deque()
            for part in islice(parts, self._threads + AHEAD):
                running.append(_ListWorker(self))
                running[-1].open(part)
                running[-1].enter(waiting)
            while running:
                worker = running.popleft()
                made: T = worker.taken(waiting)
                self._wanted = worker.rows_of_a_batch
                if worker.rest:
                    running.appendleft(worker)
                    worker.enter(waiting)
                elif (following := next(parts, None)) is not None:
                    running.append(worker)
                    worker.open(following)
                    worker.enter(waiting)
                yield made

    def _parts(self) -> Iterator[_Part]:
        """Cut the rank ranges into parts."""
        ranges, count = self.ranges, len(self.ranges)
        borders = np.append(np.flatnonzero(self._apart), count)
        at, begin = 0, 0
        while at < count:
            stop = at + 1 if self._apart[at] else int(borders[np.searchsorted(borders, at)])
            rows = min(self._wanted, ranges.rows(at, begin, stop))
            yield _Part(at, begin, rows)
            at, begin = ranges.after(at, begin, rows)

    @cached_property
    def _apart(self) -> NDArray[np.bool_]:
        """Which rank ranges are not listed together with those around: several threads share them, or they are far."""
        large = self.sizes.large_rows if self._threads > 1 else CLIPPED
        return (self.ranges.size.clipped >= large) | (self.ranges.first.clipped >= self._far)

    @property
    def _far(self) -> int:
        return 1 if self.traversal.restricted else BEYOND

    def is_far(self, which: int, begin: int) -> bool:
        """Return whether a walk cannot skip to a row of a rank range."""
        return self.ranges.first[which] + begin >= self._far

    def shared(self, which: int) -> _Ready | None:
        """Return the blocks of the task of a rank range, if the workers that come to it share them."""
        if self._threads == 1 or not self._apart[which]:
            return None
        with self._lock:
            if self._shared is None or self._shared.task != self.ranges.tasks[which]:
                self._shared = _Ready(self, which)
            return self._shared


@contextmanager
def _crew(number: int) -> Iterator[SimpleQueue[_ListWorker | None]]:
    """Give a queue of workers, from which so many threads take the first one and let it do a step."""
    waiting: SimpleQueue[_ListWorker | None] = SimpleQueue()
    threads = [Thread(target=_work, args=(waiting,), name=f"trellis-listing-{i}", daemon=True) for i in range(number)]
    dismissed = finalize(threads[0], _dismiss, waiting, threads)  # at the end of the process, if not before
    for thread in threads:
        thread.start()
    try:
        yield waiting
    finally:
        dismissed()


def _work(waiting: SimpleQueue[_ListWorker | None]) -> None:
    for worker in iter(waiting.get, None):
        worker.run()


def _dismiss(waiting: SimpleQueue[_ListWorker | None], threads: list[Thread]) -> None:
    """Let nothing more begin, and wait for what has begun, but not forever.

    A signal that ends the process may leave a lock taken that a thread waits for.
    """
    with suppress(Empty):
        while True:
            waiting.get_nowait()
    for _ in threads:
        waiting.put(None)
    for thread in threads:
        thread.join(PATIENCE)


@dataclass(frozen=True)
class _Part:
    """Some rows, from a row of a rank range on."""

    which: int
    begin: int
    rows: int


class _Ready:
    """The blocks or limits of a task; if one is given, they are made here, else by the walk that comes to it."""

    def __init__(self, listing: Listing[Any], which: int | None = None) -> None:
        self._listing = listing
        traversal, sizes = listing.traversal, listing.ranges.size.clipped
        events, wanted = listing.deepest, int(sizes.max() if which is None else sizes[which])
        self._ready_task = np.array([-1, 0])
        self._lasts, self._codes = _NO_WORDS, _NO_CODES  # of the blocks
        self._blocks: PathBlocks | None = None
        self._limits: LengthLimits | None = None
        if traversal.restricted:
            sets = np.empty(events, np.uint64), np.empty(events, np.int64)
            self._limits = LengthLimits(self._ready_task, traversal.least, traversal.most, *sets)
            return
        words = listing.words
        most = listing.sizes.block_values
        room = min(most if words is None else most // 2, wanted) + SPARE
        values = lent("block values", room, np.int32 if words is None else np.int64)
        lengths = lent("block lengths", room, np.int32)
        if words is not None:
            self._lasts = lent("block lasts", room, np.int64)
            self._codes = lent("block codes", room, np.uint8) if len(words.codes) else _NO_CODES
        compactly = lent("block shared", room, np.int32) if listing.compact else None
        counts, table = np.empty(events, np.uint64), np.empty((events, 4), np.int64)
        self._blocks = PathBlocks(
            self._ready_task, np.empty(events, np.int32), np.zeros(events, np.int64), counts, table, values, lengths,
            compactly,
        )  # fmt: skip
        if which is not None:
            path = _HeadWords.none()
            given = self._row_words(path, _NO_WORDS, _NO_WORDS, _NO_CODES)
            make_ready(listing.graph, listing.ranges.tasks[which], sizes[which], self._blocks, compactly, given)

    @property
    def task(self) -> int:
        """The task that is ready."""
        return int(self._ready_task[TASK])

    def fill(self, walk: WalkState, path: _HeadWords, buffers: _Buffers) -> None:
        """Write the next paths of a walk."""
        listing, rows = self._listing, WalkRows(buffers.values, buffers.ends, buffers.shared)
        words = self._row_words(path, buffers.firsts, buffers.lasts, buffers.codes)
        kernel.fill(walk, listing.walk_ranges, listing.graph, self._blocks, self._limits, None, rows, words)

    def _row_words(self, path: _HeadWords, firsts: Ints, lasts: Ints, codes: NDArray[np.uint8]) -> RowWords | None:
        words = self._listing.words
        return None if words is None else RowWords(*words, *path, self._lasts, self._codes, firsts, lasts, codes)


class _HeadWords(NamedTuple):
    """The words of the path at hand."""

    ids: Ints
    codes: NDArray[np.uint8]

    @classmethod
    def none(cls) -> _HeadWords:
        return cls(_NO_WORDS, _NO_CODES)

    @classmethod
    def of(cls, words: EventWords | None, deepest: int) -> _HeadWords:
        if words is None:
            return cls.none()
        return cls(np.zeros(deepest + SPARE, np.int64), np.zeros(deepest + SPARE, np.uint8))

    def stand_on(self, path: NDArray[np.int32], words: EventWords) -> None:
        self.ids[: len(path)] = words.ids[path]
        if len(words.codes):
            self.codes[: len(path)] = words.codes[path]


class _ListWorker:
    """A walk that lists one part after another."""

    def __init__(self, listing: Listing[Any]) -> None:
        self._listing = listing
        self._state, self._numbers = np.zeros(kernel.STATE_SIZE, np.int64), np.zeros(2, np.uint64)
        nodes = np.zeros(listing.deepest + SPARE, np.int32)
        self._walk = WalkState(self._state, self._numbers, nodes, np.zeros(listing.deepest + 1, np.int64))
        self._path = _HeadWords.of(listing.words, listing.deepest)
        self._place = (-1, 0)  # the rank range and its row that come next
        self._own: _Ready | None = None
        self._busy = Lock()
        self._made: Any = None
        self._mistake: Exception | None = None
        self.rest = 0  # rows of the part that are still to be listed
        self.rows_of_a_batch = listing.sizes.first_rows  # or as many as fill one, once it is known how long trends are

    def open(self, part: _Part) -> None:
        """Go to a part; where it lies further on in the same rank range, from where the walk stands."""
        listing, state, numbers = self._listing, self._state, self._numbers
        which, begin = self._place
        if which == part.which and state[kernel.READY] and begin <= part.begin:
            numbers[kernel.SKIP] += np.uint64(part.begin - begin)
        else:
            self._begin(part)
        numbers[kernel.LEFT] = min(listing.ranges.size[part.which] - part.begin, BEYOND)
        self.rest = state[kernel.REST] = part.rows
        self._place = (part.which, part.begin)

    def _begin(self, part: _Part) -> None:
        listing, state, numbers = self._listing, self._state, self._numbers
        ranges, traversal = listing.ranges, listing.traversal
        state[kernel.RANGE], state[kernel.READY], state[kernel.DEPTH] = part.which, 1, 0
        state[kernel.CURSOR] = traversal.tasks.lo[ranges.tasks[part.which]]
        numbers[kernel.SKIP] = 0
        if listing.is_far(part.which, part.begin):
            path = traversal.path(int(ranges.groups[part.which]), ranges.rank[part.which] + part.begin)
            kernel.stand_on(path, self._walk, traversal.graph.offsets, traversal.graph.successors)
            if listing.words is not None:
                self._path.stand_on(path, listing.words)
        else:
            numbers[kernel.SKIP] = ranges.first[part.which] + part.begin

    def step(self) -> Any:
        """List a batch and return what is made of it."""
        listing, state = self._listing, self._state
        buffers = self._buffers()
        self._ready.fill(self._walk, self._path, buffers)
        rows, used = state[kernel.ROWS : kernel.VALUES + 1].tolist()
        if not rows:
            raise AssertionError("there are fewer trends than were counted")
        batch = buffers.batch(rows, used, partial(listing.ranges.labels, *self._place, rows))
        self._place = listing.ranges.after(*self._place, rows)
        self.rest -= rows
        self.rows_of_a_batch = max(1, rows * listing.values // used)
        return listing.make(batch)

    def _buffers(self) -> _Buffers:
        rows = min(2 * self.rows_of_a_batch, self.rest)
        values = min(self._listing.room, self.rest * self._listing.deepest)
        return _Buffers(values, rows, self._listing.compact, self._listing.words)

    def enter(self, waiting: SimpleQueue[_ListWorker | None]) -> None:
        """Wait for a thread that does a step."""
        self._busy.acquire()
        waiting.put(self)

    def run(self) -> None:
        """Do a step and keep its result."""
        try:
            self._made = self.step()
        except Exception as mistake:  # it is raised where the batch is taken
            self._mistake = mistake
        self._busy.release()

    def taken(self, waiting: SimpleQueue[_ListWorker | None]) -> Any:
        """Return the result of a step; until it is done, let other workers do theirs."""
        while self._busy.locked():
            try:
                worker = waiting.get_nowait()
            except Empty:
                with self._busy:
                    break
            if worker is not None:
                worker.run()
        if self._mistake is not None:
            raise self._mistake
        made, self._made = self._made, None
        return made

    @property
    def _ready(self) -> _Ready:
        shared = self._listing.shared(self._place[0])
        if shared is not None:
            return shared
        self._own = self._own or _Ready(self._listing)
        return self._own
