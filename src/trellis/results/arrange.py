"""ORDER BY, LIMIT and OFFSET over trends in the order (window, partition, rank)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from trellis.errors import UsageError
from trellis.events.columns.ordering import group_codes
from trellis.language.bound import BoundQuery
from trellis.plan.sizes import USUAL

if TYPE_CHECKING:
    from trellis.operators.batch import RankRange

# Hidden columns: the number of the group, the keys of ORDER BY, the items of LIMIT PER.
GROUP, KEY, PER = "__group", "__key", "__per"


def hidden_names(bound: BoundQuery) -> list[str]:
    """Return the names of the hidden columns that ordering needs."""
    if not bound.arranged:
        return []
    keys = [f"{KEY}{i}" for i in range(len(bound.order_by))]
    return [GROUP, *keys, *(f"{PER}{i}" for i in range(len(bound.limit_per)))]


def checked_ranks(bound: BoundQuery, ranks: Any) -> range | None:
    """Return the rows of the result that are asked for, if they can be."""
    if ranks is None:
        return None
    if not isinstance(ranks, range) or ranks.step != 1 or ranks.start < 0:
        raise UsageError("ranks are given as a range such as range(1000, 2000)", "It has step 1 and no negative end.")
    clauses = {"ORDER BY": bound.order_by, "LIMIT PER item": bound.limit_per, "AGGREGATE": bound.aggregates}
    for clause, items in clauses.items():
        if items:
            raise UsageError(f"under {clause} rows do not come in the order of ranks", "Use LIMIT and OFFSET.")
    return ranks


def wanted_ranges(bound: BoundQuery, counts: Sequence[int], ranks: range | None = None) -> list[RankRange]:
    """Return the ranks of each group that are in the result, or in some rows of it, where nothing orders them anew.

    Parameters
    ----------
    bound
        The query, whose LIMIT and OFFSET count.
    counts
        The number of trends of each group.
    ranks
        Rows of the result, counted over all groups; all of them by default.
    """
    whole = [(group, 0, count) for group, count in enumerate(counts)]
    if bound.per_window:
        whole = [part for one in whole for part in _cut_ranges([one], bound.offset, bound.limit)]
    else:
        whole = _cut_ranges(whole, bound.offset, bound.limit)
    return whole if ranks is None else _cut_ranges(whole, ranks.start, max(0, ranks.stop - ranks.start))


def _cut_ranges(ranges: Iterable[RankRange], offset: int, limit: int | None) -> list[RankRange]:
    if not offset and limit is None:
        return [one for one in ranges if one[1] < one[2]]
    found: list[RankRange] = []
    skip, left = offset, limit
    for group, begin, end in ranges:
        first = min(end, begin + skip)
        last = end if left is None else min(end, first + left)
        skip -= first - begin
        if left is not None:
            left -= last - first
        if first < last:
            found.append((group, first, last))
        if left == 0:
            break
    return found


def possible_ranges(bound: BoundQuery, counts: Sequence[int]) -> list[RankRange]:
    """Return the ranks of each group that can be in the result, if others may list more groups before these."""
    if bound.arranged:
        return [(group, 0, count) for group, count in enumerate(counts)]
    if bound.per_window:
        return wanted_ranges(bound, counts)
    most = None if bound.limit is None else bound.limit + bound.offset
    return [(group, 0, count if most is None else min(count, most)) for group, count in enumerate(counts)]


def arrange(
    bound: BoundQuery, batches: Iterable[pa.RecordBatch], spare: int = USUAL.arranged_rows
) -> Iterator[pa.RecordBatch]:
    """Yield the rows that ORDER BY, LIMIT and OFFSET make of rows with hidden columns, without those.

    With LIMIT only what can still be in the result is kept meanwhile, and `spare` rows more.
    """
    kept: list[pa.RecordBatch] = []
    most = None if bound.limit is None else bound.limit + bound.offset
    fresh, left = 0, 0
    for batch in batches:
        kept.append(batch)
        fresh += batch.num_rows
        if most is not None and fresh > most + spare + left:
            kept, fresh = _best(bound, pa.Table.from_batches(kept), 0, most).to_batches(), 0
            left = sum(one.num_rows for one in kept) if bound.limit_per else 0
    if kept:
        table = _best(bound, pa.Table.from_batches(kept), bound.offset, most)
        yield from table.drop_columns(hidden_names(bound)).to_batches()


def _best(bound: BoundQuery, table: pa.Table, offset: int, end: int | None) -> pa.Table:
    table = table.combine_chunks()
    order = _sorted_rows(bound, table)
    if bound.limit_per:
        place = _place_among_equals(_classes(bound, table)[order])
    elif not bound.per_window:
        return table.take(pa.array(order[offset:end]))
    else:
        place = _place_in_run(table[GROUP].to_numpy()[order])
    keep = (place >= offset) & (place < (np.inf if end is None else end))
    return table.take(pa.array(order[keep]))


def _sorted_rows(bound: BoundQuery, table: pa.Table) -> NDArray[np.int64]:
    """Return the rows in order; what comes first stays first among equals."""
    keys = order_codes(bound, [table[f"{KEY}{i}"].combine_chunks() for i in range(len(bound.order_by))])
    if bound.per_window:
        keys.insert(0, table[GROUP].to_numpy())
    return np.lexsort((np.arange(table.num_rows), *reversed(keys)))


def order_codes(bound: BoundQuery, values: Sequence[pa.Array]) -> list[NDArray[np.int64]]:
    """Return for each key of ORDER BY numbers by which rows with these values go, the least first."""
    codes = (group_codes([column])[0] for column in values)
    return [-of if ordering.descending else of for of, ordering in zip(codes, bound.order_by, strict=True)]


def _classes(bound: BoundQuery, table: pa.Table) -> NDArray[np.int64]:
    """Return for each row a number that it shares with those that LIMIT PER counts with it."""
    columns = [table[f"{PER}{i}"].combine_chunks() for i in range(len(bound.limit_per))]
    return group_codes([table[GROUP].combine_chunks(), *columns] if bound.per_window else columns)[0]


def _place_among_equals(classes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return how many rows of the same class come before each."""
    order = np.argsort(classes, kind="stable")
    places = np.empty(len(classes), np.int64)
    places[order] = _place_in_run(classes[order])
    return places


def _place_in_run(groups: NDArray[np.int64]) -> NDArray[np.int64]:
    begins = np.concatenate([[True], groups[1:] != groups[:-1]]) if len(groups) else np.zeros(0, np.bool_)
    starts = np.maximum.accumulate(np.where(begins, np.arange(len(groups)), 0))
    return np.arange(len(groups)) - starts
