"""The best trends of many tasks by a key of their first and last events, such as a gain in percent, on the event graph.

As on the attribute index (`trellis.operators.trends.ends`), the best key from a first event is that of the least or the
greatest last value which it reaches. One pass over a window tells that for all its events; for a span the values of all
events in reach bound it, and only the first events with the best bounds are looked at.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from trellis.errors import TrellisError
from trellis.events.columns.ordering import rank_codes
from trellis.events.slice import Ints
from trellis.kernels.best import nodes
from trellis.operators.batch import PathBatch
from trellis.operators.trends.ends import EndsKey
from trellis.operators.trends.keys import Flags, OrderKeys, OrderWord
from trellis.operators.trends.search import BestSearch, Space
from trellis.operators.trends.span_bounds import SpanRuns, span_runs
from trellis.operators.trends.tasks import TrendTasks
from trellis.properties import cached_property

AT_ONCE = 64  # starts of spans that are looked at together


class KeyNotSearchable(Exception):
    """Keys are not finite or of a kind that is not compared as numbers: all trends are to be listed."""


@dataclass(frozen=True)
class EndsOfTasks:
    """Searches the best trends of all tasks by a key of both ends; events that are `ok` may be used."""

    key: EndsKey
    space: Space
    ok: Flags

    def best(self, limit: int) -> PathBatch | None:
        """Return trends among which the best are, each with its task in place of a group; None where all are listed."""
        try:
            return self._best(limit)
        except (TrellisError, pa.ArrowInvalid, KeyNotSearchable):  # going through all tells where an integer overflows
            return None

    def _best(self, limit: int) -> PathBatch:
        batches, keys, firsts = list[PathBatch](), list[NDArray[Any]](), list[Ints]()
        for value, start in self._in_order():
            if keys:
                known, of = np.concatenate(keys), np.concatenate(firsts)
                ahead = (known > value) | ((known == value) & (of < start) & self.key.alone)
                if int(ahead.sum()) >= limit:
                    break
            paths = self._from(start, limit)
            batches.append(paths)
            keys.append(self._values(paths.firsts.astype(np.int64), paths.lasts.astype(np.int64)))
            firsts.append(np.full(len(paths), start))
        return PathBatch.concat(batches)

    # --- Starts ---------------------------------------------------------------------------------------------------

    @cached_property
    def _starts(self) -> tuple[TrendTasks, Ints]:
        """The trends that begin at each event as tasks, in the order of ranks, and the task that each is of."""
        tasks = self.space.tasks
        if tasks.single:
            return tasks, np.arange(len(tasks))
        sizes = tasks.hi - tasks.lo
        own = np.repeat(np.arange(len(tasks)), sizes)
        lo = np.arange(len(own)) - np.repeat(np.cumsum(sizes) - sizes, sizes) + tasks.lo[own]
        begins = self.ok[lo] & (tasks.every | (self.space.links.latest[lo] < tasks.lo[own]))
        own, lo = own[begins], lo[begins]
        return replace(tasks.chosen(own), lo=lo, first_end=lo, number=np.arange(len(own)), single=True), own

    @cached_property
    def _codes(self) -> tuple[Ints, Ints]:
        """The ranks of all last values, and an event for each rank."""
        event = np.flatnonzero(self.ok)
        ranks = rank_codes([self.key.events.columns[self.key.last.name].take(pa.array(event))])[0]
        codes, of_rank = np.zeros(len(self.ok), np.int64), np.zeros(ranks.max(initial=0) + 1, np.int64)
        codes[event], of_rank[ranks] = ranks, event
        return codes, of_rank

    @cached_property
    def _signs(self) -> tuple[int, ...]:
        """Whether the greatest (1) or least (-1) last values give the best keys, or either."""
        _, of_rank = self._codes
        direction = self.key.direction(np.unique(self._starts[0].lo), int(of_rank[0]), int(of_rank[-1]))
        return (-1, 1) if direction is None else (self.key.sign * direction,)

    def _in_order(self) -> Iterator[tuple[float, int]]:
        """Yield the best key from each start, times the sign, and the start, in falling order."""
        tasks, own = self._starts
        if not len(tasks):
            return
        single = self.space.tasks.single
        bounds, some = self._bounds() if single else self._reached(self._windows(own), np.arange(len(tasks)))
        order = np.lexsort([some, -bounds])
        bounds, some = bounds[order], some[order]
        heap, turn = list[tuple[float, int]](), 0
        while heap or turn < len(some):
            while turn < len(some) and (not heap or (-bounds[turn], some[turn]) < heap[0]):
                exact, here = bounds[turn : turn + AT_ONCE], some[turn : turn + AT_ONCE]
                if single:
                    here = np.sort(here)
                    exact, here = self._reached(span_runs(tasks, here, 1), here)
                for value, start in zip(exact.tolist(), here.tolist(), strict=True):
                    heappush(heap, (-value, start))
                turn += AT_ONCE
            if heap:
                value, start = heappop(heap)
                yield -value, start

    def _windows(self, own: Ints) -> SpanRuns:
        """Return the windows with all their starts."""
        tasks = self.space.tasks
        ranges = nodes.SearchTasks(tasks.lo, tasks.hi, tasks.lo, tasks.hi, True, bool(tasks.every))
        return SpanRuns(ranges, self._starts[0].lo, np.searchsorted(own, np.arange(len(tasks) + 1)))

    def _reached(self, runs: SpanRuns, some: Ints) -> tuple[NDArray[Any], Ints]:
        """Return the best keys from starts, and which of `some`, the starts of runs, have any trend."""
        codes, of_rank = self._codes
        found, has = list[NDArray[Any]](), np.ones(len(some), np.bool_)
        for sign in self._signs:
            keys = OrderKeys((OrderWord(nodes.HIGH, sign, last=codes),))
            table = BestSearch(self.space, keys, self.ok).best_of_runs(runs)
            has = table[:, 1] > 0
            found.append(self._values(runs.starts[has], of_rank[table[has, 0]]))
        return np.max(found, axis=0), some[has]

    def _bounds(self) -> tuple[NDArray[Any], Ints]:
        """Return bounds of the keys from starts of spans, and which starts may have a trend."""
        tasks, (codes, of_rank) = self._starts[0], self._codes
        lo = tasks.lo if tasks.every else np.maximum(tasks.lo, tasks.first_end)
        some = np.flatnonzero(lo < tasks.hi)
        found = list[NDArray[Any]]()
        for sign in self._signs:
            best = sign * _range_max(np.where(self.ok, sign * codes, -len(of_rank)), lo[some], tasks.hi[some])
            known = best >= 0
            some, found = some[known], [values[known] for values in found]
            best = best[known]
            found.append(self._values(tasks.lo[some], of_rank[best]))
        return np.max(found, axis=0), some

    def _from(self, start: int, limit: int) -> PathBatch:
        """Return the best trends from a start."""
        tasks, own = self._starts
        keys = self.key.keys_from(int(tasks.lo[start]), int(tasks.hi[start]))
        space = replace(self.space, tasks=tasks.chosen(np.array([start])))
        paths = BestSearch(space, keys, self.ok).best(np.zeros(1, np.int64), np.zeros(1, np.int64), limit)
        return PathBatch(paths.positions, paths.offsets, (paths.ranks, np.full(len(paths), own[start])))

    def _values(self, firsts: Ints, lasts: Ints) -> NDArray[Any]:
        """Return keys, times the sign, so that more is better; NULL, which the first event decides, as the least."""
        values = self.key.values(firsts, lasts)
        floats = pa.types.is_floating(values.type)
        if not (floats or (pa.types.is_int64(values.type) and not values.null_count)):
            raise KeyNotSearchable
        known = values.drop_null().to_numpy()
        if not np.isfinite(known).all() or (known.dtype.kind == "i" and (known == -(1 << 63)).any()):
            raise KeyNotSearchable
        return self.key.sign * (values.fill_null(-np.inf).to_numpy() if floats else known)


def _range_max(values: Ints, begins: Ints, ends: Ints) -> Ints:
    """Return the greatest value of ranges that are not empty, by tables of ranges whose lengths are powers of two."""
    found, sizes = np.empty(len(begins), np.int64), ends - begins
    table, length = values, 1
    while True:
        here = (sizes >= length) & (sizes < 2 * length)
        found[here] = np.maximum(table[begins[here]], table[ends[here] - length])
        if length > sizes.max(initial=0):
            return found
        table = np.maximum(table[: max(len(table) - length, 0)], table[length:]) if length < len(table) else table
        length *= 2
