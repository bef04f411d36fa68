"""Columns of windows and partitions: those of the groups at hand, each as long as was asked for."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from trellis.events.slice import Ints
from trellis.operators.batch import PathBatch, repeated
from trellis.results.lead import AT_HAND, LeadOfGroups

TEXTS = [f"part {group}" for group in range(2 * AT_HAND)]


def batch(group: int, rows: int) -> PathBatch:
    return PathBatch(
        np.zeros(rows, np.int32), np.arange(rows + 1, dtype=np.int32),
        (np.arange(rows), repeated(np.array([group]), rows)),
    )  # fmt: skip


def values(groups: Ints) -> list[pa.Array]:
    return [pa.array(10 * groups), pa.array([TEXTS[group] for group in groups])]


@pytest.mark.parametrize("groups", [[0, 0, 0], [0, 1, 0, 1], [*range(2 * AT_HAND), 0, 1], [3, 2, 1, 0, 3]])
def test_each_group_keeps_its_values(groups: list[int]) -> None:
    lead, held = LeadOfGroups(), []
    for turn, group in enumerate(groups):
        rows = 1 + 70 * turn % 200
        held.append((group, rows, [lead.column(number, batch(group, rows), values) for number in range(2)]))
    for group, rows, (numbers, texts) in held:  # what came later has changed nothing
        assert numbers.to_pylist() == [10 * group] * rows
        assert texts.to_pylist() == [TEXTS[group]] * rows
