"""Listing ranges of ranks in batches, in order, on any number of threads; memory does not grow with the trends.

The results wanted are *stretches*: for each task the ranks from one on. They are cut into *parts* of about one batch
each. A *lane* is a walk that lists one part after another; there is one lane more than threads, and no more batches
than lanes wait to be taken. Each lane takes memory for its place in the graph, and where it goes over small
tasks, also for what makes those ready: 40 bytes an event of the largest one, and the blocks. What makes a large task
ready is shared.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import islice
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import Any, Generic, TypeVar
from weakref import finalize

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from trellis.events.slice import Slice
from trellis.kernels.count.paths import TaskGraph
from trellis.kernels.list import walk as kernel
from trellis.kernels.list.blocks import TASK, PathBlocks, make_ready
from trellis.kernels.list.lengths import LengthLimits
from trellis.kernels.list.walk import WalkRanges, WalkRows, WalkState
from trellis.kernels.list.wide import SPARE
from trellis.operators.batch import PathBatch
from trellis.operators.trends.graph import EventGraph
from trellis.operators.trends.stretches import BEYOND, CLIPPED, Stretches
from trellis.operators.trends.tasks import NO_BOUND, TrendTasks

BLOCK_VALUES = 1 << 19  # of all blocks of a task: they are to stay in a cache
FIRST_ROWS = 1 << 14  # of a part, before it is known how long trends are
LARGE_ROWS = 1 << 16  # of a task that several threads share
PATIENCE = 10.0  # seconds in which a thread that is dismissed ends its step, or is left alone
AHEAD = 1  # lanes more than threads, so that none waits for a batch to be taken

T = TypeVar("T")


@dataclass(frozen=True)
class TraversalInput:
    """What is walked over: tasks of a graph, the lengths that HAVING allows, and a way to a path by group and rank."""

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
        tasks, graph = self.tasks, self.graph
        return TaskGraph(
            tasks.lo, tasks.hi, tasks.first_end, tasks.single, tasks.every,
            graph.offsets, graph.successors, graph.latest, self.events.usable,
        )  # fmt: skip


# --- What comes out --------------------------------------------------------------------------------------------


class _Buffers:
    """Room for a batch, from Arrow's pool: what was given back there costs no new pages."""

    def __init__(self, values: int, rows: int, compact: bool) -> None:
        self.values, self.ends = _room(values), _room(rows)
        self.shared = _room(rows) if compact else None

    def taken(self, rows: int, used: int) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32] | None]:
        """Return what was written; short results do not hold long buffers."""
        parts = (self.values[:used], self.ends[: rows + 1], None if self.shared is None else self.shared[:rows])
        if 2 * used < len(self.values):
            return parts[0].copy(), parts[1].copy(), None if parts[2] is None else parts[2].copy()
        return parts


def _room(number: int) -> NDArray[np.int32]:
    return np.frombuffer(pa.allocate_buffer(4 * (number + SPARE)), np.int32)


# --- The work --------------------------------------------------------------------------------------------------


class Listing(Generic[T]):
    """Stretches, listed batch by batch in their order; `make` turns a batch into what is wanted of it.

    Parameters
    ----------
    ground
        What is walked over.
    stretches
        What is listed.
    make
        Gets each batch, on the thread that listed it.
    values
        How many events a batch names at most, if each trend has fewer.
    threads
        How many threads list; lengths that HAVING restricts are listed by one.
    compact
        Whether each trend is only told as far as it differs from the one before it.
    """

    def __init__(
        self, ground: TraversalInput, stretches: Stretches, make: Callable[[PathBatch], T], values: int,
        threads: int = 1, compact: bool = False,
    ) -> None:  # fmt: skip
        self.ground, self.stretches, self.make, self.compact = ground, stretches, make, compact
        few = not len(stretches) or stretches.rows(0, 0, len(stretches)) <= FIRST_ROWS
        self._threads = 1 if few or ground.restricted else threads
        spans = ground.tasks.hi[stretches.tasks] - ground.tasks.lo[stretches.tasks]
        self.deepest = int(spans.max(initial=0))
        most = values // 2 if compact else values
        self.room = max(most, self.deepest)  # values of a batch at most; parts are cut to have fewer
        self.values = max(most * 2 // 3, self.deepest)
        if self._threads == 1:
            self.room = self.values
        self.graph = ground.arrays
        self.ranges = WalkRanges(stretches.tasks, stretches.first.clipped, stretches.size.clipped)
        self._wanted = FIRST_ROWS if self._threads > 1 else NO_BOUND  # rows of a part
        self._lock = Lock()
        self._shared: _Ready | None = None

    def __iter__(self) -> Iterator[T]:
        """Yield the batches; whoever stops early leaves no thread behind."""
        return self._alone() if self._threads == 1 else self._together()

    def _alone(self) -> Iterator[T]:
        lane = _Lane(self)
        for part in self._parts():
            lane.open(part)
            while lane.rest:
                yield lane.step()

    def _together(self) -> Iterator[T]:
        """List on other threads, and on this one while it would wait."""
        parts = self._parts()
        with _crew(self._threads - 1) as waiting:
            running: deque[_Lane] = deque()
            for part in islice(parts, self._threads + AHEAD):
                running.append(_Lane(self))
                running[-1].open(part)
                running[-1].enter(waiting)
            while running:
                lane = running.popleft()
                made: T = lane.taken(waiting)
                self._wanted = lane.rows_of_a_batch
                if lane.rest:
                    running.appendleft(lane)
                    lane.enter(waiting)
                elif (following := next(parts, None)) is not None:
                    running.append(lane)
                    lane.open(following)
                    lane.enter(waiting)
                yield made

    def _parts(self) -> Iterator[_Part]:
        """Cut the stretches into parts."""
        stretches, count = self.stretches, len(self.stretches)
        borders = np.append(np.flatnonzero(self._apart), count)
        at, begin = 0, 0
        while at < count:
            stop = at + 1 if self._apart[at] else int(borders[np.searchsorted(borders, at)])
            rows = min(self._wanted, stretches.rows(at, begin, stop))
            yield _Part(at, begin, rows)
            at, begin = stretches.after(at, begin, rows)

    @cached_property
    def _apart(self) -> NDArray[np.bool_]:
        """Which stretches are not listed together with those around: several threads share them, or they are far."""
        large = LARGE_ROWS if self._threads > 1 else CLIPPED
        return (self.stretches.size.clipped >= large) | (self.stretches.first.clipped >= self._far)

    @property
    def _far(self) -> int:
        return 1 if self.ground.restricted else BEYOND

    def is_far(self, stretch: int, begin: int) -> bool:
        """Return whether a walk cannot skip to a row of a stretch."""
        return self.stretches.first[stretch] + begin >= self._far

    def shared(self, stretch: int) -> _Ready | None:
        """Return what makes the task of a stretch ready, if it is shared by the lanes that come to it."""
        if self._threads == 1 or not self._apart[stretch]:
            return None
        with self._lock:
            if self._shared is None or self._shared.task != self.stretches.tasks[stretch]:
                self._shared = _Ready(self, stretch)
            return self._shared


@contextmanager
def _crew(number: int) -> Iterator[SimpleQueue[_Lane | None]]:
    """Give a queue of lanes, from which so many threads take the first one and let it do a step."""
    waiting: SimpleQueue[_Lane | None] = SimpleQueue()
    threads = [Thread(target=_work, args=(waiting,), name=f"trellis-listing-{i}", daemon=True) for i in range(number)]
    dismissed = finalize(threads[0], _dismiss, waiting, threads)  # at the end of the process, if not before
    for thread in threads:
        thread.start()
    try:
        yield waiting
    finally:
        dismissed()


def _work(waiting: SimpleQueue[_Lane | None]) -> None:
    for lane in iter(waiting.get, None):
        lane.run()


def _dismiss(waiting: SimpleQueue[_Lane | None], threads: list[Thread]) -> None:
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
    """Some rows, from a row of a stretch on."""

    stretch: int
    begin: int
    rows: int


class _Ready:
    """Room for what makes a task ready; if one is given, it is made ready here, else by whoever walks on to it."""

    def __init__(self, listing: Listing[Any], stretch: int | None = None) -> None:
        self._listing = listing
        ground, sizes = listing.ground, listing.stretches.size.clipped
        events, wanted = listing.deepest, int(sizes.max() if stretch is None else sizes[stretch])
        self._told = np.array([-1, 0])
        self._blocks: PathBlocks | None = None
        self._limits: LengthLimits | None = None
        if ground.restricted:
            sets = np.empty(events, np.uint64), np.empty(events, np.int64)
            self._limits = LengthLimits(self._told, ground.least, ground.most, *sets)
            return
        room = min(BLOCK_VALUES, wanted) + SPARE
        values, lengths = np.zeros(room, np.int32), np.zeros(room, np.int32)
        compactly = np.zeros(room, np.int32) if listing.compact else None
        counts, table = np.empty(events, np.uint64), np.empty((events, 4), np.int64)
        self._blocks = PathBlocks(self._told, counts, table, values, lengths, compactly)
        if stretch is not None:
            make_ready(listing.graph, listing.stretches.tasks[stretch], sizes[stretch], self._blocks, compactly)

    @property
    def task(self) -> int:
        """The task that is ready."""
        return int(self._told[TASK])

    def fill(self, walk: WalkState, buffers: _Buffers) -> None:
        """Write the next paths of a walk."""
        rows = WalkRows(buffers.values, buffers.ends, buffers.shared)
        kernel.fill(walk, self._listing.ranges, self._listing.graph, self._blocks, self._limits, None, rows)


class _Lane:
    """A walk that lists one part after another."""

    def __init__(self, listing: Listing[Any]) -> None:
        self._listing = listing
        self._state, self._numbers = np.zeros(kernel.STATE_SIZE, np.int64), np.zeros(2, np.uint64)
        nodes = np.zeros(listing.deepest + SPARE, np.int32)
        self._walk = WalkState(self._state, self._numbers, nodes, np.zeros(listing.deepest + 1, np.int64))
        self._place = (-1, 0)  # the stretch and its row that come next
        self._own: _Ready | None = None
        self._buffers: _Buffers | None = None
        self._busy = Lock()
        self._made: Any = None
        self._mistake: Exception | None = None
        self.rest = 0  # rows of the part that are still to be listed
        self.rows_of_a_batch = FIRST_ROWS  # or as many as fill one, once it is known how long trends are

    def open(self, part: _Part) -> None:
        """Go to a part; where it lies further on in the same stretch, from where the walk stands."""
        listing, state, numbers = self._listing, self._state, self._numbers
        stretch, begin = self._place
        if stretch == part.stretch and state[kernel.READY] and begin <= part.begin:
            numbers[kernel.SKIP] += np.uint64(part.begin - begin)
        else:
            self._begin(part)
        numbers[kernel.LEFT] = min(listing.stretches.size[part.stretch] - part.begin, BEYOND)
        self.rest = state[kernel.REST] = part.rows
        self._place = (part.stretch, part.begin)

    def _begin(self, part: _Part) -> None:
        listing, state, numbers = self._listing, self._state, self._numbers
        stretches, ground = listing.stretches, listing.ground
        state[kernel.RANGE], state[kernel.READY], state[kernel.DEPTH] = part.stretch, 1, 0
        state[kernel.CURSOR] = ground.tasks.lo[stretches.tasks[part.stretch]]
        numbers[kernel.SKIP] = 0
        if listing.is_far(part.stretch, part.begin):
            path = ground.path(int(stretches.groups[part.stretch]), stretches.rank[part.stretch] + part.begin)
            kernel.stand_on(path, self._walk, ground.graph.offsets, ground.graph.successors)
        else:
            numbers[kernel.SKIP] = stretches.first[part.stretch] + part.begin

    def step(self) -> Any:
        """List a batch and return what is made of it."""
        listing, state = self._listing, self._state
        buffers, self._buffers = self._buffers or self._new_buffers(), None
        self._ready.fill(self._walk, buffers)
        rows, used = state[kernel.ROWS : kernel.VALUES + 1].tolist()
        if not rows:
            raise AssertionError("there are fewer trends than were counted")
        positions, offsets, shared = buffers.taken(rows, used)
        labels = partial(listing.stretches.told, *self._place, rows)
        batch = PathBatch(positions, offsets, labels, shared=shared)
        self._place = listing.stretches.after(*self._place, rows)
        self.rest -= rows
        self.rows_of_a_batch = max(1, rows * listing.values // used)
        return listing.make(batch)

    def _new_buffers(self) -> _Buffers:
        rows = min(2 * self.rows_of_a_batch, self.rest)
        values = min(self._listing.room, self.rest * self._listing.deepest)
        return _Buffers(values, rows, self._listing.compact)

    def enter(self, waiting: SimpleQueue[_Lane | None]) -> None:
        """Wait for a thread that does a step; buffers come from the thread that gives them back, so they stay warm."""
        self._busy.acquire()
        self._buffers = self._new_buffers()
        waiting.put(self)

    def run(self) -> None:
        """Do a step; what comes of it is kept."""
        try:
            self._made = self.step()
        except Exception as mistake:  # it is raised where the batch is taken
            self._mistake = mistake
        self._busy.release()

    def taken(self, waiting: SimpleQueue[_Lane | None]) -> Any:
        """Return what came of a step; until it is done, let other lanes do theirs."""
        while self._busy.locked():
            try:
                lane = waiting.get_nowait()
            except Empty:
                with self._busy:
                    break
            if lane is not None:
                lane.run()
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
