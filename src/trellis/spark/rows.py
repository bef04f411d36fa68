"""The rows between split and operator: the names of their columns, and where groups of them begin."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from trellis.columns.ordering import group_codes
from trellis.columns.types import from_arrow, normalise

WINDOW, TIME, ID, USABLE = "__window", "__time", "__id", "__usable"
ROWS_AT_ONCE = 1 << 16


def partition_name(name: str) -> str:
    """Return the column that holds a partition attribute."""
    return f"__partition_{name}"


def whole_groups(batches: Iterable[pa.RecordBatch], keys: Sequence[str]) -> Iterator[pa.Table]:
    """Yield sorted rows as tables that each hold whole groups of equal keys, many small ones together."""
    held: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        held.append(batch)
        rows += batch.num_rows
        if rows < ROWS_AT_ONCE or not keys:
            continue
        table = pa.Table.from_batches(held).combine_chunks()
        last = int(group_begins(table, keys)[-1])
        if last:
            yield table.slice(0, last)
        held, rows = table.slice(last).to_batches(), table.num_rows - last
    if rows:
        yield pa.Table.from_batches(held).combine_chunks()


def group_begins(table: pa.Table, keys: Sequence[str]) -> NDArray[np.int64]:
    """Return the first rows of groups of adjacent rows with equal keys."""
    if not table.num_rows:
        return np.zeros(0, np.int64)
    if not keys:
        return np.zeros(1, np.int64)
    codes = group_codes([normalise(table[k], from_arrow(table[k].type)) for k in keys])[0]
    return np.concatenate([[0], np.flatnonzero(np.diff(codes)) + 1])
