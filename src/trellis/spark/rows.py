"""The rows between split and operator: the names of their columns, and where groups of them begin.

Their columns have names of their own. Those of the events never get into Spark's expressions: dots, backticks, names
that differ only in case and names that are taken would all mean something there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from trellis.columns.ordering import group_codes
from trellis.columns.types import from_arrow, normalise

STRETCH, TIME, ID, USABLE = "stretch", "time", "id", "usable"
ROWS_AT_ONCE = 1 << 16


def partition_name(place: int) -> str:
    """Return the column that holds a partition attribute, by its place in the query."""
    return f"p{place}"


def column_name(place: int) -> str:
    """Return the column that holds a column of the plan, by its place there."""
    return f"c{place}"


def output_names(number: int) -> list[str]:
    """Return the names that columns of results have until they get their own."""
    return [f"o{i}" for i in range(number)]


def whole_groups(batches: Iterable[pa.RecordBatch], keys: Sequence[str]) -> Iterator[pa.Table]:
    """Yield sorted rows as tables that each hold whole groups of equal keys, many small ones together."""
    held: list[pa.RecordBatch] = []
    rows, enough = 0, ROWS_AT_ONCE
    for batch in batches:
        held.append(batch)
        rows += batch.num_rows
        if rows < enough or not keys:
            continue
        table = pa.Table.from_batches(held).combine_chunks()
        last = int(group_begins(table, keys)[-1])
        enough = ROWS_AT_ONCE if last else 2 * rows  # a large group is not looked at again for each batch of it
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
