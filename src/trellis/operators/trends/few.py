"""Few trends: counted and listed in one go."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from trellis.events.slice import Ints
from trellis.kernels.count.paths import TaskGraph
from trellis.kernels.list.few import list_few, take_row_words
from trellis.operators.batch import EventWords, PathBatch, RankRange, WordRows, repeated


class FewPaths(NamedTuple):
    """All paths of all tasks, in the order of groups and ranks, and the number of those of each group."""

    batch: PathBatch
    counts: list[int]

    def of(self, ranges: Sequence[RankRange], values: int, words: EventWords | None) -> Iterator[PathBatch]:
        """Yield those of rank ranges, in batches of at most so many values, as words where there are any."""
        some = self.batch
        rising = all(one[0] < other[0] for one, other in pairwise(ranges))
        if not rising or len(some) != sum(end - begin for _, begin, end in ranges):
            before = np.cumsum([0, *self.counts])
            rows = (np.arange(before[group] + begin, before[group] + end) for group, begin, end in ranges)
            some = some.take(np.concatenate([before[:0], *rows]))
        for batch in [some] if len(some.positions) <= values else some.pieces(values):
            if len(batch):
                yield batch if words is None else _in_words(batch, words)


def find_few(graph: TaskGraph, group: Ints, groups: int, lengths: tuple[int, int], most: int) -> FewPaths | None:
    """Return all paths of tasks of some groups that have a length between two, if they are few: at most so many."""
    counts = np.zeros(groups, np.int64)
    values, offsets, ranks, of = list_few(graph, group, *lengths, most, counts)
    if not len(offsets):
        return None
    if len(of) and of[0] == of[-1]:
        of = repeated(of[:1], len(of))
    return FewPaths(PathBatch(values, offsets, (ranks, of)), counts.tolist())


def _in_words(batch: PathBatch, words: EventWords) -> PathBatch:
    """Return results as words of their events, in place of positions."""
    offsets = batch.offsets.astype(np.int32, copy=False)
    rows = WordRows(*take_row_words(batch.positions, offsets, *words))
    return PathBatch(batch.positions[:0], offsets, (batch.ranks, batch.groups), words=rows)
