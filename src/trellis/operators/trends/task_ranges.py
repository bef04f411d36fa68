"""Rank ranges that are to be listed, task by task."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trellis.events.slice import Ints
from trellis.kernels.list.columns import count_up, label_rows
from trellis.operators.batch import RankRange, repeated
from trellis.operators.lent import lent
from trellis.operators.trends.tasks import TrendTasks
from trellis.properties import cached_property

BEYOND = 1 << 63  # ranks from here on are not found by counts of 64 bits
CLIPPED = 1 << 40


class ClippedNumbers:
    """Whole numbers of any size; `clipped` has `BEYOND` for larger ones."""

    def __init__(self, values: Ints | list[int]) -> None:
        self._large: dict[int, int] = {}
        if isinstance(values, list):
            self._large = {i: value for i, value in enumerate(values) if value >= BEYOND}
            values = [min(value, BEYOND) for value in values]
        self.clipped = np.asarray(values, np.uint64)

    def __getitem__(self, which: int) -> int:
        return self._large.get(which) or int(self.clipped[which])


class TaskRanges:
    """Ranks of tasks that are listed one after another: `size[i]` of task `tasks[i]`, from rank `first[i]` on.

    The first of them has rank `rank[i]` in its group `groups[i]`. None is empty.
    """

    def __init__(self, tasks: TrendTasks, sizes: Sequence[int], ranges: Sequence[RankRange]) -> None:
        """Take the number of trends of each task, and the ranks wanted of groups."""
        small = sum(sizes) < BEYOND and all(end < BEYOND for _, _, end in ranges)
        found = (_small_ranges if small else _ranges)(tasks, sizes, ranges)
        self.tasks = np.asarray(found[0], np.int64)
        self.groups = tasks.group[self.tasks]
        self.first, self.size, self.rank = map(ClippedNumbers, found[1:])

    def __len__(self) -> int:
        return len(self.tasks)

    @cached_property
    def _before(self) -> Ints:
        """The number of rows before each rank range; exact between those that are not larger than `CLIPPED`."""
        return np.concatenate([[0], np.cumsum(np.minimum(self.size.clipped, CLIPPED).astype(np.int64))])

    def rows(self, which: int, begin: int, stop: int) -> int:
        """Return how many rows there are from row `begin` of a rank range up to another one."""
        return self.size[which] - begin + int(self._before[stop] - self._before[which + 1])

    def after(self, which: int, begin: int, rows: int) -> tuple[int, int]:
        """Return the rank range and its row that come some rows after a row of a rank range."""
        rest = self.size[which] - begin
        if rows < rest:
            return which, begin + rows
        place = int(self._before[which + 1]) + rows - rest
        found = int(np.searchsorted(self._before, place, side="right")) - 1
        return found, place - int(self._before[found])

    def labels(self, which: int, begin: int, rows: int) -> tuple[Ints, Ints]:
        """Return the ranks and the groups of some rows from a row of a rank range on."""
        own, first, last = self.size[which] - begin, self.rank[which] + begin, which
        if rows > own:
            last, _ = self.after(which, begin, rows - 1)
        if last == which and first + rows < BEYOND:
            ranks = lent("ranks", rows, np.int64)
            count_up(first, ranks)
            return ranks, repeated(self.groups[which : which + 1], rows)
        lengths = np.array([rows])
        if last > which:
            borders = self._before[which + 1 : last + 1]
            lengths = np.concatenate([[own], np.diff(borders), [rows - own - (borders[-1] - borders[0])]])
        firsts = self.rank.clipped[which : last + 1].copy()
        firsts[0] = min(first, BEYOND)
        ranks, groups = np.empty(rows, np.int64), np.empty(rows, np.int64)
        label_rows(firsts, self.groups[which : last + 1], lengths, ranks, groups)
        return ranks, groups


def _ranges(tasks: TrendTasks, sizes: Sequence[int], ranges: Sequence[RankRange]) -> tuple[list[int], ...]:
    """Return task, first rank, size and rank in the group of each rank range."""
    found: list[tuple[int, int, int, int]] = []
    for group, begin, end in ranges:
        task, before = int(np.searchsorted(tasks.group, group)), 0
        while before < end and task < len(tasks) and tasks.group[task] == group:
            first, last = max(0, begin - before), min(sizes[task], end - before)
            if first < last:
                found.append((task, first, last - first, before + first))
            before, task = before + sizes[task], task + 1
    return tuple([row[i] for row in found] for i in range(4))


def _small_ranges(tasks: TrendTasks, sizes: Sequence[int], ranges: Sequence[RankRange]) -> tuple[Ints, ...]:
    """Do what `_ranges` does, where all numbers fit 64 bits, for all tasks at once."""
    groups, begins, ends = np.array(ranges, np.int64).reshape(-1, 3).T
    which = np.searchsorted(groups, tasks.group)
    mine = np.flatnonzero(which < len(groups))
    mine = mine[groups[which[mine]] == tasks.group[mine]]
    number, which = np.array(sizes, np.int64)[mine], which[mine]
    before = np.cumsum(number) - number
    before -= before[np.searchsorted(which, which)]  # of the tasks of the same group
    first, last = (np.minimum(np.maximum(of[which] - before, 0), number) for of in (begins, ends))
    kept = first < last
    return mine[kept], first[kept], (last - first)[kept], (before + first)[kept]
