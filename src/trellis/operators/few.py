"""Few results: all of them in one batch, from which every later answer is taken."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from trellis.events.slice import Ints
from trellis.operators.batch import EventWords, PathBatch, RankRange, WordRows


class FewPaths(NamedTuple):
    """All results, in the order of groups and ranks, and the number of those of each group."""

    batch: PathBatch
    counts: list[int]

    def at(self, group: int, ranks: Sequence[int]) -> PathBatch:
        """Return the results of a group with given ranks."""
        return self._taken([np.asarray(ranks, np.int64) + sum(self.counts[:group])])

    def of(self, ranges: Sequence[RankRange], values: int, words: EventWords | None = None) -> Iterator[PathBatch]:
        """Yield those of rank ranges, in batches of at most so many values, as words where there are any."""
        some = self.batch
        rising = all(one[0] < other[0] for one, other in pairwise(ranges))
        if not rising or len(some) != sum(end - begin for _, begin, end in ranges):
            before = np.cumsum([0, *self.counts])
            some = self._taken([np.arange(before[group] + begin, before[group] + end) for group, begin, end in ranges])
        for batch in [some] if len(some.positions) <= values else some.pieces(values):
            if len(batch):
                yield batch if words is None else _in_words(batch, words)

    def _taken(self, rows: Sequence[Ints]) -> PathBatch:
        return self.batch.take(np.concatenate([np.empty(0, np.int64), *rows]))


def _in_words(batch: PathBatch, words: EventWords) -> PathBatch:
    """Return results as words of their events, in place of positions."""
    from trellis.kernels.list.few import take_row_words  # late: not all results are listed so

    offsets = batch.offsets.astype(np.int32, copy=False)
    rows = WordRows(*take_row_words(batch.positions, offsets, *words))
    return PathBatch(batch.positions[:0], offsets, (batch.ranks, batch.groups), words=rows)
