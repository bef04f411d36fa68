"""Bounds of what the trends of a span that begin at each event give, by runs of such events.

All trends that begin at an event of a run end before the last of these may: one backward pass over the run bounds them.
The best starts are tried, which gives values that as many paths have as are wanted; of the others those that may be
better are looked at again in shorter runs, until each is alone. Where trends grow with their time, few are left soon.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trellis.events.slice import Ints
from trellis.kernels.best.nodes import SearchTasks
from trellis.operators.trends.tasks import TrendTasks

TRIED = 16  # starts of a bucket, in each round
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class SpanRuns:
    """Runs of starts as tasks of the kernels, with the starts of each: see `kernels.best.search.best_of_tasks`."""

    tasks: SearchTasks
    starts: Ints
    offsets: Ints

    @property
    def widest(self) -> int:
        """The number of events of the largest run."""
        return int((self.tasks.hi - self.tasks.lo).max(initial=0))


def span_runs(tasks: TrendTasks, some: Ints, size: int) -> SpanRuns:
    """Return runs of some tasks of spans, in rising order, that begin within `size` events; 1 for each alone."""
    lo, group = tasks.lo[some], tasks.group[some]
    place = lo // size
    new = np.ones(len(some), np.bool_)
    new[1:] = (place[1:] != place[:-1]) | (group[1:] != group[:-1])
    begins = np.flatnonzero(new)
    hi, first_end = tasks.hi[some], tasks.first_end[some]
    ranges = SearchTasks(
        lo[begins], np.maximum.reduceat(hi, begins), np.minimum.reduceat(first_end, begins),
        np.minimum.reduceat(hi, begins), True, bool(tasks.every),
    )  # fmt: skip
    return SpanRuns(ranges, lo, np.append(begins, len(some)))


def usual_size(tasks: TrendTasks) -> int:
    """Return the number of events of the first runs."""
    return max(1, int((tasks.hi - tasks.lo).mean())) if len(tasks) else 1


def compare(values: Ints, others: Ints, signs: Ints) -> Ints:
    """Return 1 where words are better than others, -1 where they are worse, 0 where they are equal."""
    order = np.zeros(len(values), np.int64)
    for w, sign in enumerate(signs.tolist()):
        above, below = values[:, w] > others[:, w], values[:, w] < others[:, w]
        order = np.where(order == 0, sign * (above.astype(np.int64) - below), order)
    return order


def promising(best: Ints, signs: Ints, bucket: Ints, limit: int) -> Ints:
    """Return the places whose best paths are the first of their buckets, in that order: others have none to give."""
    words = len(signs)
    order = np.lexsort([*(-best[:, w] * signs[w] for w in range(words - 1, -1, -1)), bucket])
    order = order[best[order, words] > 0]
    place = np.arange(len(order)) - np.searchsorted(bucket[order], bucket[order])
    return order[place < limit]


@dataclass(frozen=True)
class SpanBounds:
    """Bounds the paths of tasks of spans, so that those that cannot be among the best are not looked at one by one.

    Attributes
    ----------
    tasks, bucket
        The tasks and the bucket of each, never falling.
    signs
        The directions of words.
    limit
        How many paths are wanted of each bucket.
    evaluate
        Gives for each start of some runs what no path from it is better than, and behind it whether there is any.
    enumerate
        Gives the best paths of each bucket among those of some tasks, in their order: their tasks and words.
    """

    tasks: TrendTasks
    bucket: Ints
    signs: Ints
    limit: int
    evaluate: Callable[[SpanRuns], Ints]
    enumerate: Callable[[Ints], tuple[Ints, Ints]]

    def find(self) -> tuple[Ints, Flags]:
        """Return a bound of the paths of each task, and for which tasks the best has it.

        All tasks that the best paths of a bucket lie in are among the latter, with the first of equal ones.
        """
        words = len(self.signs)
        bounds, exact = np.empty((len(self.tasks), words + 1), np.int64), np.zeros(len(self.tasks), np.bool_)
        last = np.zeros((self.bucket[-1] + 1, words), np.int64)  # of each bucket the last of the best that are known,
        task = np.full(len(last), -1)  # and a task behind which none comes that is as good; -1 where there are too few
        some, size = np.arange(len(self.tasks)), usual_size(self.tasks)
        while len(some):
            runs = span_runs(self.tasks, some, size)
            bounds[some] = self.evaluate(runs)
            if size == 1 or len(runs.offsets) > len(some):
                exact[some] = True
                break
            self._try(some, runs, bounds, last, task)
            order, of = compare(bounds[some], last[self.bucket[some]], self.signs), task[self.bucket[some]]
            some = some[(bounds[some, words] > 0) & ((of < 0) | (order > 0) | ((order == 0) & (some <= of)))]
            size = size // 2 if len(some) > 4 * len(runs.offsets) else 1
        return bounds, exact

    def _try(self, some: Ints, runs: SpanRuns, bounds: Ints, last: Ints, task: Ints) -> None:
        """Search the starts that promise the most, each of another run, and set what that tells of buckets."""
        of_run = np.repeat(np.arange(len(runs.offsets) - 1), np.diff(runs.offsets))
        first = some[promising(bounds[some], self.signs, of_run, 1)]
        found, words = self.enumerate(first[promising(bounds[first], self.signs, self.bucket[first], TRIED)])
        order = np.lexsort([-found, *(words * self.signs).T[::-1], self.bucket[found]])  # the last of each bucket first
        found, words = found[order], words[order]
        parts, begins, counts = np.unique(self.bucket[found], return_index=True, return_counts=True)
        full = counts == self.limit
        parts, begins = parts[full], begins[full]
        order = np.where(task[parts] < 0, 1, compare(words[begins], last[parts], self.signs))
        better = (order > 0) | ((order == 0) & (found[begins] < task[parts]))
        parts, begins = parts[better], begins[better]
        last[parts], task[parts] = words[begins], found[begins]
