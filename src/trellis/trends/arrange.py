"""ORDER BY, LIMIT and OFFSET over rows that come in the order (window, partition, rank)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from trellis.columns.ordering import group_codes
from trellis.language.bound import BoundQuery

GROUP, KEY = "__group", "__key"  # hidden columns: the number of the group, the keys of ORDER BY
SPARE = 1 << 16


def hidden_names(bound: BoundQuery) -> list[str]:
    """Return the names of the hidden columns that ordering needs."""
    if not bound.order_by:
        return []
    return [GROUP, *(f"{KEY}{i}" for i in range(len(bound.order_by)))]


def walk_limit(bound: BoundQuery) -> int | None:
    """Return how many trends of each group can be in the result at most, taken in rank order; None for all."""
    if bound.limit is None or bound.order_by:
        return None
    return bound.limit + bound.offset


def arrange(bound: BoundQuery, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of the result of rows with hidden columns, in the order of the result and without those."""
    if bound.order_by:
        yield from _ordered(bound, batches)
    elif bound.per_window:
        for batch in batches:
            rank = batch.column("rank").to_numpy()
            end = np.inf if bound.limit is None else bound.offset + bound.limit
            yield batch.filter(pa.array((rank >= bound.offset) & (rank < end)))
    else:
        yield from _cut(batches, bound.offset, bound.limit)


def _cut(batches: Iterable[pa.RecordBatch], offset: int, limit: int | None) -> Iterator[pa.RecordBatch]:
    skip, left = offset, limit
    for batch in batches:
        if left == 0:
            return
        batch, skip = batch.slice(skip), max(0, skip - batch.num_rows)
        if left is not None:
            batch = batch.slice(0, left)
            left -= batch.num_rows
        if batch.num_rows:
            yield batch


def _ordered(bound: BoundQuery, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Sort; with LIMIT only what can still be in the result is kept meanwhile."""
    kept: list[pa.RecordBatch] = []
    most = None if bound.limit is None else bound.limit + bound.offset
    fresh = 0
    for batch in batches:
        kept.append(batch)
        fresh += batch.num_rows
        if most is not None and fresh > most + SPARE:
            kept, fresh = _best(bound, pa.Table.from_batches(kept), 0, most).to_batches(), 0
    if kept:
        table = _best(bound, pa.Table.from_batches(kept), bound.offset, most)
        yield from table.drop_columns(hidden_names(bound)).to_batches()


def _best(bound: BoundQuery, table: pa.Table, offset: int, end: int | None) -> pa.Table:
    table = table.combine_chunks()
    order = _sorted_rows(bound, table)
    if not bound.per_window:
        return table.take(pa.array(order[offset:end]))
    place = _place_in_run(table[GROUP].to_numpy()[order])
    keep = (place >= offset) & (place < (np.inf if end is None else end))
    return table.take(pa.array(order[keep]))


def _sorted_rows(bound: BoundQuery, table: pa.Table) -> NDArray[np.int64]:
    """Return the rows in order; what comes first stays first among equals."""
    keys = []
    for i, ordering in enumerate(bound.order_by):
        codes = group_codes([table[f"{KEY}{i}"].combine_chunks()])[0]
        keys.append(-codes if ordering.descending else codes)
    if bound.per_window:
        keys.insert(0, table[GROUP].to_numpy())
    return np.lexsort((np.arange(table.num_rows), *reversed(keys)))


def _place_in_run(groups: NDArray[np.int64]) -> NDArray[np.int64]:
    begins = np.concatenate([[True], groups[1:] != groups[:-1]]) if len(groups) else np.zeros(0, np.bool_)
    starts = np.maximum.accumulate(np.where(begins, np.arange(len(groups)), 0))
    return np.arange(len(groups)) - starts
