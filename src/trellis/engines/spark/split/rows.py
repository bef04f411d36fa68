"""The rows between split and operator: the names of their columns, and where groups of them begin.

Their columns have names of their own. Those of the events never get into Spark's expressions: dots, backticks, names
that differ only in case and names that are taken would all mean something there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from trellis.errors import GroupTooLarge
from trellis.events.columns.ordering import group_codes
from trellis.events.columns.types import from_arrow, normalise
from trellis.memory import free_memory

WINDOW_BATCH, TIME, ID, USABLE = "window_batch", "time", "id", "usable"
ROWS_AT_ONCE = 1 << 16
BYTES_AN_EVENT = 64  # that counting takes beyond the events


def partition_name(place: int) -> str:
    """Return the column that holds a partition attribute, by its place in the query."""
    return f"p{place}"


def tie_name(place: int) -> str:
    """Return the column that holds a tie-breaker, by its place behind the time."""
    return f"tie{place}"


def column_name(place: int) -> str:
    """Return the column that holds a column of the plan, by its place there."""
    return f"c{place}"


def output_names(number: int) -> list[str]:
    """Return the names that columns of results have until they get their own."""
    return [f"o{i}" for i in range(number)]


def whole_groups(
    batches: Iterable[pa.RecordBatch], keys: Sequence[str], memory: int | None = None, at_once: int = ROWS_AT_ONCE
) -> Iterator[pa.Table]:
    """Yield sorted rows as tables that each hold whole groups of equal keys, many small ones together.

    Groups are looked for when `at_once` rows have come, or more. A group that does not fit the `memory` of this machine
    is refused, with its size.
    """
    memory = free_memory() if memory is None else memory
    held: list[pa.RecordBatch] = []
    rows, enough = 0, at_once
    arriving = iter(batches)
    for batch in arriving:
        held.append(batch)
        rows += batch.num_rows
        if rows < enough:
            continue
        if not keys:
            enough = 2 * rows
            _check_memory(held, rows, keys, memory, arriving)
            continue
        table = pa.Table.from_batches(held).combine_chunks()
        last = int(group_begins(table, keys)[-1])
        enough = at_once if last else 2 * rows  # a large group is not looked at again for each batch of it
        if last:
            yield table.slice(0, last)
        held, rows = table.slice(last).to_batches(), table.num_rows - last
        _check_memory(held, rows, keys, memory, arriving)
    if rows:
        yield pa.Table.from_batches(held).combine_chunks()


def _check_memory(
    held: list[pa.RecordBatch], rows: int, keys: Sequence[str], memory: int, arriving: Iterator[pa.RecordBatch]
) -> None:
    """Refuse a group that is too large for the memory, when half of that is taken: the rest comes as fast."""
    size = sum(batch.nbytes for batch in held)
    if size + BYTES_AN_EVENT * rows <= memory // 2:
        return
    first = held[0].slice(0, 1)
    held.clear()
    for batch in arriving:  # the whole size is told, so nothing is kept from here on
        table = pa.Table.from_batches([first, batch])
        same = int((group_begins(table, keys)[1:2] if keys else np.zeros(0, np.int64)).sum() or table.num_rows) - 1
        rows += same
        if same < batch.num_rows:
            break
    raise GroupTooLarge(
        f"a window (or the partition it is of) has {rows:,} events, which take about "
        f"{(BYTES_AN_EVENT + size / max(1, rows)) * rows / 1e9:,.1f} GB; the worker has {memory / 1e9:,.1f} GB free",
        "Make WITHIN shorter, partition the pattern with [attribute], select events with constant conditions, or give "
        "the machines more memory.",
        memory,
    )


def group_begins(table: pa.Table, keys: Sequence[str]) -> NDArray[np.int64]:
    """Return the first rows of groups of adjacent rows with equal keys."""
    if not table.num_rows:
        return np.zeros(0, np.int64)
    if not keys:
        return np.zeros(1, np.int64)
    codes = group_codes([normalise(table[k], from_arrow(table[k].type)) for k in keys])[0]
    return np.concatenate([[0], np.flatnonzero(np.diff(codes)) + 1])
