"""Few trends: counted and listed in one go."""

from __future__ import annotations

import numpy as np

from trellis.events.slice import Ints
from trellis.kernels.count.paths import TaskGraph
from trellis.kernels.list.few import list_few
from trellis.operators.batch import PathBatch, repeated
from trellis.operators.few import FewPaths


def find_few(graph: TaskGraph, group: Ints, groups: int, lengths: tuple[int, int], most: int) -> FewPaths | None:
    """Return all paths of tasks of some groups that have a length between two, if they are few: at most so many."""
    counts = np.zeros(groups, np.int64)
    values, offsets, ranks, of = list_few(graph, group, *lengths, most, counts)
    if not len(offsets):
        return None
    if len(of) and of[0] == of[-1]:
        of = repeated(of[:1], len(of))
    return FewPaths(PathBatch(values, offsets, (ranks, of)), counts.tolist())
