"""The search for the best paths of tasks: what `trellis.kernels.best.search` finds by words, by what readers see."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.events.slice import Ints
from trellis.kernels.best import nodes
from trellis.kernels.best import search as kernel
from trellis.kernels.best.heaps import PATH_END, TASK, WANTED
from trellis.kernels.best.ranks import rank_order
from trellis.operators.batch import PathBatch
from trellis.operators.trends.keys import Flags, OrderKeys, OrderWord
from trellis.operators.trends.links import Links, paths_of_tasks
from trellis.operators.trends.span_bounds import SpanBounds, SpanRuns, promising, span_runs, usual_size
from trellis.operators.trends.tasks import NO_BOUND, TrendTasks

# --- Paths, automaton -------------------------------------------------------------------------------------------


def in_rank_order(paths: PathBatch) -> PathBatch:
    """Return paths in the order of tasks and ranks."""
    return paths.take(rank_order(paths.positions, paths.ends, paths.groups))


@dataclass(frozen=True)
class PathAutomaton:
    """The automaton of what a path has met, in the form of `kernels.best.nodes`; `met` are the flags of a state."""

    kind: Ints
    step: Ints
    first: Ints
    may_end: Flags
    place: Ints
    met: Ints

    def __len__(self) -> int:
        return len(self.step)


def path_automaton(
    n: int, least: int, most: int, nth: int = 0, flags: Sequence[Flags] = (), required: Sequence[Flags] = ()
) -> PathAutomaton:
    """Return the automaton of paths of `n` events.

    Parameters
    ----------
    n
        The number of events.
    least, most
        The lengths that a path may have.
    nth
        The last place in a path that differs from later ones; 0 for none.
    flags, required
        Sets of events: whether one was met is remembered; of those that are required one must have been at the end.
    """
    deepest = max(least, most + 1 if most < NO_BOUND else 1, nth + 1 if nth else 1)
    sets = [*flags, *required]
    every, needed = 1 << len(sets), ((1 << len(required)) - 1) << len(flags)
    kind = np.zeros(n, np.int64)
    for bit, events in enumerate(sets):
        kind |= events.astype(np.int64) << bit
    place, met = (part.ravel() for part in np.indices((deepest, every)))
    place = place + 1

    def state(at: Any, seen: Any) -> Any:
        return np.where(at <= most, (at - 1) * every + seen, -1)

    kinds = np.arange(every)
    step = state(np.minimum(place + 1, deepest)[:, None], met[:, None] | kinds).astype(np.int64)
    first = state(np.int64(1), kinds).astype(np.int64)
    may_end = (place >= least) & (place <= most) & (met & needed == needed)
    return PathAutomaton(kind, step, first, may_end, place, met)


@dataclass(frozen=True)
class Space:
    """The space of a search: links, tasks, and the lengths of trends, of which none is above `longest`."""

    links: Links
    tasks: TrendTasks
    least: int
    most: int
    longest: int

    @property
    def widest(self) -> int:
        """The number of events of the largest task."""
        return int((self.tasks.hi - self.tasks.lo).max(initial=0))

    def events(self, ok: Flags, automaton: PathAutomaton) -> Ints:
        """Return the table of events for the kernels; those that are `ok` may be used."""
        return np.stack([self.links.nearest, self.links.latest, ok, automaton.kind], axis=1).astype(np.int64)

    def successors(self) -> NDArray[np.int32]:
        """Return room for the successors of an event."""
        return np.empty(len(self.links.latest) + 1, np.int32)


# --- The search -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SearchRuns:
    """The tasks that are searched, by their numbers among all; those of a bucket are searched together."""

    number: Ints
    bucket: Ints

    def __len__(self) -> int:
        return len(self.number)


class BestSearch:
    """Searches paths by some keys, of events that may be used, with one of each set of events that is required."""

    def __init__(self, space: Space, keys: OrderKeys, ok: Flags, required: Sequence[Flags] = ()) -> None:
        self.space, self.keys, self.ok = space, keys, ok
        self.words = keys.words or (OrderWord(nodes.HIGH, 1),)
        self.signs = np.array([w.sign for w in self.words], np.int64)
        nth = max((w.nth[0] for w in self.words if w.nth is not None), default=0)
        self.required = required
        self.automaton = path_automaton(len(ok), space.least, space.most, nth, keys.flags, required)
        self.shape = self._shape()

    @property
    def size(self) -> int:
        """How many nodes the largest task has."""
        return self.space.widest * len(self.automaton)

    @property
    def served(self) -> bool:
        """Whether the links serve the search: without a list of edges, for one task, one state and sums alone."""
        simple = len(self.automaton) == 1 and all(word.kind in (nodes.HIGH, nodes.LOW) for word in self.words)
        return not self.space.links.lazy or (simple and len(self.space.tasks) == 1)

    def best(self, tasks: Ints, bucket: Ints, limit: int) -> PathBatch:
        """Return the `limit` best paths of each bucket of tasks, in no order.

        Parameters
        ----------
        tasks
            The numbers of the tasks.
        bucket
            The bucket of each, from 0 on, never falling.
        limit
            How many paths are wanted of each bucket.
        """
        found = self.candidates(tasks, bucket, limit)
        if not self.keys.closed:
            return found.paths
        kept, ties = found.cuts(limit)
        return PathBatch.concat([kept, self._tied(found, ties)] if ties else [kept])

    def best_and_tied(self, tasks: Ints, bucket: Ints, limit: int, most: int) -> PathBatch | None:
        """Return the same with all paths that are shown as good as the last of a bucket; None for `most` and more."""
        found = self.candidates(tasks, bucket, limit)
        kept, ties = found.cuts(limit)
        if not ties:
            return kept
        tied = self._tied(found, {part: (last, most) for part, (last, _) in ties.items()})
        of_task = dict(zip(tasks.tolist(), bucket.tolist(), strict=True))
        number = np.bincount([of_task[task] for task in tied.groups.tolist()], minlength=1)
        return PathBatch.concat([kept, tied]) if number.max() < most else None

    def candidates(self, tasks: Ints, bucket: Ints, limit: int) -> BestCandidates:
        """Return the best paths of each bucket by their words alone."""
        runs = SearchRuns(tasks, bucket)
        room, order = self.room(), np.arange(len(runs))
        best: Ints | None = None
        if len(runs) > runs.bucket[-1] + 1:
            best, exact = self.best_of_tasks(runs, limit)
            order = np.flatnonzero(exact)
            order = order[promising(best[order], self.signs, runs.bucket[order], limit)]
        words = len(self.words)
        tied = self._equally_good(room, limit) if self.space.links.lazy else None
        if tied is not None:
            return BestCandidates(self, runs, *tied, best, room)
        events, paths = self.enumerate(runs, order, limit, room)
        run = paths[:, words + TASK]
        found = paths_of_tasks(events, paths[:, words + PATH_END], runs.number[run])
        rows = np.flatnonzero(paths[:, words + WANTED])
        kept = room if len(tasks) == 1 else None
        return BestCandidates(self, runs, found.take(rows), run[rows], paths[rows, :words], best, kept)

    def best_of_tasks(self, runs: SearchRuns, limit: int) -> tuple[Ints, Flags]:
        """Return a bound of the paths of each task, and for which tasks the best has it: the others are not needed."""
        if not self.space.tasks.single:
            none = np.empty(0, np.int64)
            given = self.space.links.arrays, self.shape, self.room()
            return kernel.best_of_tasks(self.tasks(runs), none, none, *given), np.ones(len(runs), np.bool_)
        room = self.room()

        def enumerate_(order: Ints) -> tuple[Ints, Ints]:
            _, paths = self.enumerate(runs, order, limit, room)
            paths = paths[paths[:, len(self.words) + WANTED] > 0]
            return paths[:, len(self.words) + TASK], paths[:, : len(self.words)]

        tasks = self.space.tasks.chosen(runs.number)
        return SpanBounds(tasks, runs.bucket, self.signs, limit, self.best_of_runs, enumerate_).find()

    def best_of_runs(self, runs: SpanRuns) -> Ints:
        """Return for each start of runs what no path from it is better than, and behind it whether there is any."""
        room = np.empty((runs.widest * len(self.automaton), len(self.words) + 1), np.int64)
        return kernel.best_of_tasks(runs.tasks, runs.starts, runs.offsets, self.space.links.arrays, self.shape, room)

    def _equally_good(self, room: Ints, limit: int) -> tuple[PathBatch, Ints, Ints] | None:
        """Return the first of the best paths of the one task, their runs and words, if so many are equally good."""
        links, shape, words = self.space.links, self.shape, len(self.words)
        window, lo = links.window, int(self.space.tasks.lo[0])
        assert window is not None
        if self.space.tasks.single or lo != window.begin:  # all from one event
            return None
        starts = np.flatnonzero(window.starts & (room[:, words] != kernel.NOWHERE))
        if not len(starts):
            return None
        totals = room[starts, :words]
        for w in range(words - 1, -1, -1):
            totals[:, w] += shape.gives[nodes.FIRST, starts + lo, w]
            if shape.kinds[w] == nodes.LOW:
                totals[:, w - 1] += totals[:, w] >> nodes.WORD
                totals[:, w] &= nodes.MASK
        top = totals[np.lexsort((totals * self.signs).T[::-1])[-1]]
        equal = starts[(totals == top).all(axis=1)] + lo
        found = links.tied_paths(equal, shape.gives[nodes.EACH], room, shape.kinds, self.signs, limit)
        return None if found is None else (found, np.zeros(limit, np.int64), np.tile(top, (limit, 1)))

    def enumerate(self, runs: SearchRuns, order: Ints, limit: int, room: Ints) -> tuple[NDArray[np.int32], Ints]:
        """Return events and paths as `trellis.kernels.best.search.best_paths` writes them."""
        state = np.zeros(kernel.STATE_SIZE, np.int64)
        state[[kernel.TURN, kernel.READY]] = -1
        widest, words = self.space.widest, len(self.words)
        heaps, kept, stack = np.empty((self.size, 4), np.int64), np.empty(limit, np.int64), np.empty(widest, np.int64)
        growing: dict[int, NDArray[Any]] = {
            kernel.MORE_SUFFIXES: np.empty((256, words + 3), np.int64),
            kernel.MORE_SLOTS: np.empty((256, words + 2), np.int64),
            kernel.MORE_EVENTS: np.empty(256, np.int32),
            kernel.MORE_PATHS: np.empty((64, words + 3), np.int64),
        }
        while True:
            suffixes, slots, events, paths = growing.values()
            given = kernel.SearchRoom(room, self.space.successors(), heaps, stack, kept, suffixes, slots, events, paths)
            asked = kernel.best_paths(
                state, order, runs.bucket, self.tasks(runs), self.space.links.arrays, self.shape, self.space.links.lazy,
                given,
            )  # fmt: skip
            if asked == kernel.DONE:
                return events[: state[kernel.USED]], paths[: state[kernel.PATHS]]
            growing[asked] = _larger(growing[asked], int(state[kernel.NEEDED]))

    def _tied(self, candidates: BestCandidates, ties: dict[int, tuple[int, int]]) -> PathBatch:
        """Return the first paths in rank order that are shown as good as the last one of a bucket: so many as miss."""
        runs = candidates.runs
        missing = np.zeros(runs.bucket[-1] + 1, np.int64)
        missing[list(ties)] = [number for _, number in ties.values()]
        low, high = (np.zeros((len(missing), len(self.signs)), np.int64) for _ in range(2))
        for part, (last, _) in ties.items():
            low[part], high[part] = candidates.bounds(last)
        order = np.flatnonzero(missing[runs.bucket])
        if candidates.best is not None:
            order = order[_no_worse(candidates.best[order], low[runs.bucket[order]], self.signs)]
        return self.between(runs, order, low, high, missing, candidates.room)[0]

    def between(
        self, runs: SearchRuns, order: Ints, low: Ints, high: Ints, limit: Ints, known: Ints | None = None
    ) -> tuple[PathBatch, Ints]:
        """Return paths as `trellis.kernels.best.paths_between` lists them, and their runs."""
        state = np.zeros(kernel.STATE_SIZE, np.int64)
        state[[kernel.TURN, kernel.READY]] = -1
        widest, words = self.space.widest, len(self.words)
        room = self.room() if known is None else known
        bounds = kernel.ValueBounds(low, high, limit, np.zeros(len(limit), np.int64))
        marks = np.empty((widest, 2), np.int64)
        growing: dict[int, NDArray[Any]] = {
            kernel.MORE_WAITING: np.empty(256, np.int64),
            kernel.MORE_EVENTS: np.empty(256, np.int32),
            kernel.MORE_PATHS: np.empty((64, words + 3), np.int64),
        }
        sofar = np.empty((widest, words), np.int64)
        while True:
            waiting, events, paths = growing.values()
            given = kernel.BetweenRoom(room, self.space.successors(), marks, sofar, waiting, events, paths)
            asked = kernel.paths_between(
                state, order, runs.bucket, self.tasks(runs), self.space.links.arrays, self.shape, known is not None,
                bounds, given,
            )  # fmt: skip
            if asked == kernel.DONE:
                break
            growing[asked] = _larger(growing[asked], int(state[kernel.NEEDED]))
        events, paths = events[: state[kernel.USED]], paths[: state[kernel.PATHS]]
        run = paths[:, words + TASK]
        return paths_of_tasks(events, paths[:, words + PATH_END], runs.number[run]), run

    # --- What the kernels take

    def tasks(self, runs: SearchRuns) -> nodes.SearchTasks:
        """Return tasks as the kernels take them."""
        tasks, at = self.space.tasks, runs.number
        hi = tasks.hi[at]
        return nodes.SearchTasks(tasks.lo[at], hi, tasks.first_end[at], hi, bool(tasks.single), bool(tasks.every))

    def room(self) -> Ints:
        """Return room for the best suffixes of the nodes of a task; filled where the links know them."""
        if not self.space.links.lazy:
            return np.empty((self.size, len(self.words) + 1), np.int64)
        each, _, last = self.shape.gives
        return self.space.links.best_suffixes(int(self.space.tasks.lo[0]), each, last, self.shape.kinds, self.signs)

    def _shape(self) -> nodes.PathValues:
        words, automaton = self.words, self.automaton
        nth = [(i, *w.nth) for i, w in enumerate(words) if w.nth is not None]
        ending = [np.full(len(automaton), w.neutral) if w.flag is None else automaton.met >> w.flag & 1 for w in words]
        return nodes.PathValues(
            self.space.events(self.ok, automaton),
            np.stack([self._given([getattr(w, part) for w in words]) for part in ("each", "first", "last")]),
            np.array([w.kind for w in words], np.int64),
            self.signs,
            np.array([(place, word) for word, place, _ in nth], np.int64).reshape(-1, 2),
            np.array([codes for _, _, codes in nth], np.int64).reshape(len(nth), len(self.ok)),
            automaton.step,
            automaton.first,
            np.stack([*ending, automaton.may_end, automaton.place], axis=1).astype(np.int64),
        )

    def _given(self, columns: Sequence[Ints | None]) -> Ints:
        n = len(self.ok)
        parts = [np.full(n, w.neutral) if c is None else c for c, w in zip(columns, self.words, strict=True)]
        return np.stack(parts, axis=1).astype(np.int64)


def longest_path(space: Space, ok: Flags) -> int:
    """Return the length of the longest path of any task, whatever lengths are allowed; of spans, a bound of it."""
    keys = OrderKeys((OrderWord(nodes.HIGH, 1, each=np.ones(len(ok), np.int64)),))
    search = BestSearch(Space(space.links, space.tasks, 1, NO_BOUND, space.widest), keys, ok)
    every = np.arange(len(space.tasks))
    if space.links.lazy:
        lengths = search.room()
        lengths = lengths[lengths[:, 1] != kernel.NOWHERE]
    elif space.tasks.single:
        lengths = search.best_of_runs(span_runs(space.tasks, every, usual_size(space.tasks)))
    else:
        lengths = search.best_of_tasks(SearchRuns(every, every), 1)[0]
    return min(space.widest, int(lengths[:, 0].max(initial=0)))


def _larger(table: np.ndarray, rows: int) -> np.ndarray:
    """Return a table with more rows, of which the first are those that there are."""
    larger = np.empty((max(rows, 2 * len(table)), *table.shape[1:]), table.dtype)
    larger[: len(table)] = table
    return larger


def _no_worse(best: Ints, bounds: Ints, signs: Ints) -> Flags:
    """Return which of the best paths of tasks are as good as bounds; none is none."""
    worse, equal = best[:, len(signs)] == 0, np.ones(len(best), np.bool_)
    for w, sign in enumerate(signs):
        worse |= equal & (sign * best[:, w] < sign * bounds[:, w])
        equal &= best[:, w] == bounds[:, w]
    return ~worse


@dataclass(frozen=True)
class BestCandidates:
    """The best paths by words: the run that each was found in, and its words.

    The best of all runs is there where it was looked for, the best suffixes where there is but one task.
    """

    search: BestSearch = field(repr=False)
    runs: SearchRuns
    paths: PathBatch
    run: Ints
    words: Ints
    best: Ints | None
    room: Ints | None

    def by_bucket(self) -> list[tuple[int, Ints]]:
        """Return the paths of each bucket."""
        bucket = self.runs.bucket[self.run]
        order = np.argsort(bucket, kind="stable")
        parts, begins = np.unique(bucket[order], return_index=True)
        return list(zip(parts.tolist(), np.split(order, begins)[1:], strict=True))

    def cuts(self, limit: int) -> tuple[PathBatch, dict[int, tuple[int, int]]]:
        """Return the paths that are better than the last of each bucket, and these lasts, with how many are missing."""
        kept, ties = [], {}
        for part, rows in self.by_bucket():
            better, last = self.cut(rows, limit)
            kept.append(self.paths.take(better))
            if last is not None:
                ties[part] = last, limit - len(better)
        return PathBatch.concat(kept), ties

    def cut(self, rows: Ints, limit: int) -> tuple[Ints, int | None]:
        """Return the paths that are shown as better than the last of the `limit` best, and that last one.

        Those are all that are, but of the paths shown as equal to the last one others may come first. Where there are
        fewer than `limit` paths, they are all there are, and there is no last one.
        """
        if len(rows) < limit:
            return rows, None
        shown = self._shown(rows)
        last = np.lexsort([-column for column in reversed(shown)])[limit - 1]
        better, equal = np.zeros(len(rows), np.bool_), np.ones(len(rows), np.bool_)
        for column in shown:
            better |= equal & (column > column[last])
            equal &= column == column[last]
        return rows[better], int(rows[last])

    def _shown(self, rows: Ints) -> list[NDArray[Any]]:
        """Return the numbers that paths are compared by, the most important first; more is better."""
        rounded = self.search.keys.rounded
        signed = self.words[rows] * self.search.signs
        if rounded is None:
            return list(signed.T)
        shown = [rounded.shown(number_of(words)) for words in self.words[rows, rounded.words].tolist()]
        return [*signed[:, : rounded.words.start].T, np.array(shown)]

    def bounds(self, last: int) -> tuple[Ints, Ints]:
        """Return the words of the worst path that is shown as good as a certain one, and of the worst shown better."""
        rounded, low, high = self.search.keys.rounded, self.words[last].copy(), self.words[last].copy()
        if rounded is None:
            high[-1] += self.search.signs[-1]
            return low, high
        worst, beyond = rounded.worst(rounded.shown(number_of(low[rounded.words].tolist())))
        number = rounded.words.stop - rounded.words.start
        low[rounded.words], high[rounded.words] = words_of(worst, number), words_of(beyond, number)
        return low, high


def number_of(words: Sequence[int]) -> int:
    """Return the number that words have, the highest first."""
    number = 0
    for word in words:
        number = (number << nodes.WORD) + word
    return number


def words_of(number: int, count: int) -> list[int]:
    """Return a number as so many words, the highest first."""
    words = []
    for _ in range(count - 1):
        words.append(number & nodes.MASK)
        number >>= nodes.WORD
    return [number, *reversed(words)]
