"""The best trends by the keys of ORDER BY, without the others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from trellis.events.columns.ordering import rank_codes
from trellis.events.slice import Ints, Slice
from trellis.kernels.best.ranks import ranks_of
from trellis.language.bound import BoundQuery, Ordering, OutputKind
from trellis.limits import is_extreme
from trellis.operators.batch import PathBatch
from trellis.operators.trends.ends import EndsKey, EndsSearch, ends_key
from trellis.operators.trends.ends_of_tasks import EndsOfTasks
from trellis.operators.trends.keys import Flags, OrderKeys, make_keys
from trellis.operators.trends.links import Links
from trellis.operators.trends.means import best_by_mean
from trellis.operators.trends.search import BestSearch, SearchRuns, Space, in_rank_order, longest_path
from trellis.operators.trends.tasks import NO_BOUND, TrendTasks, length_bounds
from trellis.plan.sizes import USUAL, Sizes
from trellis.properties import cached_property

MOST_PATHS = 1 << 27  # that can be searched
MOST_TIED = 1 << 14  # that are shown as equal by a rounded key before others: these are all compared


def may_be_worthwhile(number: int, total: float, sizes: Sizes) -> bool:
    """Return whether it may be quicker to search a number of trends than to list and sort all `total`."""
    return number <= MOST_PATHS and total > sizes.best_few + sizes.best_worth * number


class BestTrends:
    """Searches the best trends of a slice; `before` tells how many of a span come before those of some tasks."""

    def __init__(
        self, bound: BoundQuery, events: Slice, links: Links, tasks: TrendTasks, sizes: Sizes = USUAL,
        before: Callable[[Ints], NDArray[np.uint64]] | None = None,
    ) -> None:  # fmt: skip
        self.events, self._sizes, self._before = events, sizes, before
        self.orderings = tuple(o for o in bound.order_by if o.output.kind is not OutputKind.CONSTANT)
        least, most = length_bounds(bound.having)
        widest = int((tasks.hi - tasks.lo).max(initial=0))
        self.space = Space(links, tasks, min(least, widest + 1), most, widest)
        if (most < NO_BOUND or any(o.output.function == "AVG" for o in self.orderings)) and len(tasks):
            longest = longest_path(self.space, events.usable)
            self.space = replace(self.space, longest=longest, most=NO_BOUND if most >= longest else most)

    @cached_property
    def _ends(self) -> EndsKey | None:
        """The keys, where the first is one of both ends, unless they add up and can be searched so."""
        space, usable = self.space, self.events.usable
        key = ends_key(self.orderings, self.events, space.longest)
        if key is None or (key.alone and (space.links.lazy or space.tasks.single)):
            return key
        if space.links.lazy and len(space.tasks) and not BestSearch(space, key.keys_from(0, 0), usable).served:
            return None
        return key if make_keys(self.orderings, self.events, usable, space.longest) is None else None

    @cached_property
    def steps(self) -> int | None:
        """How many steps from event to event the search looks at, at least; None if it cannot be done with these keys.

        It cannot where values do not add up, or where it would take too much memory.
        """
        if self._ends is not None:
            return 0
        states = 0
        for orderings, required in _rounds(self.orderings):
            search = self._search(orderings, self.events.usable, required * [self.events.usable])
            search = search or self._search_to_rounded(orderings, self.events.usable, required * [self.events.usable])
            if search is None:
                return None
            states = max(states, len(search.automaton))
        links, tasks = self.space.links, self.space.tasks
        return 0 if links.lazy else int((links.offsets[tasks.hi] - links.offsets[tasks.lo]).sum()) * states

    def is_worthwhile(self, limit: int, per_group: bool, total: float) -> bool:
        """Whether it is quicker to search so many trends, of all or each group, than to list and sort all `total`."""
        number = limit * len(np.unique(self.space.tasks.group)) if per_group else limit
        return may_be_worthwhile(number, total - (self.steps or 0) // self._sizes.best_steps, self._sizes)

    def find(self, limit: int, per_group: bool, values: int = 1 << 20) -> list[PathBatch] | None:
        """Return the best trends in batches, in the order of groups and ranks; None if it turns out to be too much.

        Parameters
        ----------
        limit
            How many.
        per_group
            Whether so many of each group, or of all groups together: then, among equals, those of the first groups.
        values
            How many events per batch may name, if not in one trend.
        """
        tasks = self.space.tasks
        bucket = np.unique(tasks.group, return_inverse=True)[1] if per_group else np.zeros(len(tasks), np.int64)
        paths: PathBatch | None = PathBatch.concat([])
        if limit > 0 and len(tasks) and self._ends is not None:
            paths = self._best_by_ends(self._ends, bucket, limit)
        elif limit > 0 and len(tasks):
            paths = self._best(self.orderings, np.arange(len(tasks)), bucket, limit, self.events.usable, ())
        return None if paths is None else self._ranked(in_rank_order(paths), values)

    def _best_by_ends(self, key: EndsKey, bucket: Ints, limit: int) -> PathBatch | None:
        """Return the best trends of each bucket of tasks by a key of both ends; None where a key cannot be computed."""
        space, usable = self.space, self.events.usable
        if space.links.lazy:
            return EndsSearch(key, space.links, space.tasks, usable).best(limit)
        batches = []
        borders = np.searchsorted(bucket, np.arange(bucket[-1] + 2))
        for own in map(slice, borders[:-1], borders[1:]):
            tasks = space.tasks.chosen(own)
            lo, hi = (0, len(usable)) if len(borders) == 2 else (int(tasks.lo.min()), int(tasks.hi.max()))
            tasks = replace(tasks, lo=tasks.lo - lo, hi=tasks.hi - lo, first_end=tasks.first_end - lo)
            here = replace(space, links=space.links.between(lo, hi), tasks=tasks)
            paths = EndsOfTasks(key.between(lo, hi), here, usable[lo:hi]).best(limit)
            if paths is None:
                return None
            labels = paths.ranks, paths.groups + own.start
            batches.append(PathBatch(paths.positions + np.int32(lo), paths.offsets, labels))
        return PathBatch.concat(batches)

    def search_of_all(self) -> BestSearch | None:
        """Return the search by all keys at once, or None where a least or greatest value comes before others."""
        several = len([*_rounds(self.orderings)]) > 1
        return None if several else self._search(self.orderings, self.events.usable, ())

    def best_of_groups(self) -> PathBatch | None:
        """Return the best trend of each group, in the order of tasks; each has its task in place of a group."""
        tasks = self.space.tasks
        if not len(tasks):
            return PathBatch.concat([])
        bucket = np.unique(tasks.group, return_inverse=True)[1]
        paths = self._best(self.orderings, np.arange(len(tasks)), bucket, 1, self.events.usable, ())
        return None if paths is None else in_rank_order(paths)

    def _search(self, orderings: Sequence[Ordering], ok: Flags, required: Sequence[Flags]) -> BestSearch | None:
        keys = make_keys(orderings, self.events, ok, self.space.longest)
        search = None if keys is None else BestSearch(self.space, keys, ok, required)
        return None if search is None or search.size > self._sizes.best_nodes or not search.served else search

    def _search_to_rounded(
        self, orderings: Sequence[Ordering], ok: Flags, required: Sequence[Flags]
    ) -> BestSearch | None:
        """Return the search by the keys up to the first that is rounded, where others stand behind it; else None."""
        for last in range(1, len(orderings)):
            search = self._search(orderings[:last], ok, required)
            if search is None or search.keys.rounded is not None:
                return search
        return None

    def _best(
        self, orderings: Sequence[Ordering], tasks: Ints, bucket: Ints, limit: int, ok: Flags, required: Sequence[Flags]
    ) -> PathBatch | None:
        if len(orderings) > 1 and is_extreme(orderings[0].output):
            return self._best_of_level(orderings, tasks, bucket, limit, ok, required)
        search = self._search(orderings, ok, required)
        if search is None:
            search = self._search_to_rounded(orderings, ok, required)
            return None if search is None else search.best_and_tied(tasks, bucket, limit, MOST_TIED)
        if search.keys.mean is None:
            return search.best(tasks, bucket, limit)
        return best_by_mean(search, search.keys.mean, tasks, bucket, limit)

    def _best_of_level(
        self, orderings: Sequence[Ordering], tasks: Ints, bucket: Ints, limit: int, ok: Flags, required: Sequence[Flags]
    ) -> PathBatch | None:
        """Search by a least or greatest value and then by other keys.

        The value of the last one of the best is found first; those that are better are all known then, and of the
        trends with just this value, which are those of fewer events that meet an event with it, the best by the other
        keys are searched.
        """
        search = self._search(orderings[:1], ok, required)
        if search is None:
            return None
        found = search.candidates(tasks, bucket, limit)
        if not search.keys.words:  # no event has a value
            return self._best(orderings[1:], tasks, bucket, limit, ok, required)
        parts = []
        for part, rows in found.by_bucket():
            better, last = found.cut(rows, limit)
            parts.append(found.paths.take(better))
            if last is not None:
                missing = bool(search.keys.flags) and found.words[last, 0] == 0
                level, must = self._level(orderings[0], None if missing else int(found.words[last, -1]))
                chosen = tasks[bucket == part]
                more = self._best(
                    orderings[1:], chosen, 0 * chosen, limit - len(better), ok & level, [*required, *must]
                )
                if more is None:
                    return None
                parts.append(more)
        return PathBatch.concat(parts)

    def _level(self, ordering: Ordering, code: int | None) -> tuple[Flags, list[Flags]]:
        """Return the events of trends with a least or greatest value, and sets of which they have one event each."""
        column = ordering.output.column
        assert column is not None
        codes = rank_codes([self.events.columns[column.name]])[0]
        if code is None:
            return codes < 0, []
        beyond = codes > code if ordering.output.function == "MAX" else codes < code
        return ~beyond | (codes < 0), [codes == code]

    def _ranked(self, paths: PathBatch, values: int) -> list[PathBatch]:
        """Return paths, in the order of tasks and ranks, in batches with their ranks and groups."""
        tasks, links, of_task = self.space.tasks, self.space.links, paths.groups
        if links.lazy:
            labels = links.ranks(paths), tasks.group[of_task]
            return list(PathBatch(paths.positions, paths.offsets, labels).pieces(values))
        wanted = np.unique(of_task)
        assert self._before is not None or not tasks.single
        before = np.zeros(len(wanted), np.uint64) if self._before is None else self._before(wanted)
        counting = BestSearch(self.space, OrderKeys(), self.events.usable)
        counts = np.empty(counting.size, np.uint64)
        ranks = ranks_of(
            counting.tasks(SearchRuns(wanted, wanted)), before,
            np.searchsorted(of_task, np.append(wanted, len(tasks))), paths.positions, paths.offsets[:-1], paths.ends,
            links.arrays, counting.shape, counts, self.space.successors(),
        )  # fmt: skip
        ranked = PathBatch(paths.positions, paths.offsets, (ranks, tasks.group[of_task]))
        return list(ranked.pieces(values))


def _rounds(orderings: Sequence[Ordering]) -> Iterator[tuple[Sequence[Ordering], int]]:
    """Yield the keys that are searched by one after another, and how many sets of events are required then."""
    required = 0
    while len(orderings) > 1 and is_extreme(orderings[0].output):
        yield orderings[:1], required
        orderings, required = orderings[1:], required + 1
    yield orderings, required
