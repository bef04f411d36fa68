"""The order of events, found with no more work than their rows need: mostly they lie in it already.

An order is an array of rows, or None where the rows stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from trellis.events.columns.arrow import is_words, numbers, taken
from trellis.events.columns.ordering import argsort, match_codes, row_codes, sort_codes
from trellis.events.columns.types import from_arrow, normalise
from trellis.events.slice import Ints

Order: TypeAlias = Ints | None


def column_of(table: pa.Table, name: str) -> pa.Array:
    """Return a column in its one physical form."""
    column = table[name]
    return normalise(column, from_arrow(column.type))


def event_order(times: NDArray[Any], ids: pa.Array, partition: Ints | None) -> Order:
    """Order events by (partition, time, id); ids are looked at only where times are equal.

    Parameters
    ----------
    times
        Integers or doubles.
    ids
        As many ids, of any type with an order.
    partition
        Numbers of partitions; None for one.

    Returns
    -------
    numpy.ndarray or None
        The rows in order; which of two equal ones comes first is not said.
    """
    order = _sorted_by(times, None)
    if partition is not None:
        order = _sorted_by(partition, order)
    same = _same(times, partition, order)
    places = np.flatnonzero(same)
    if not len(places) or _are_less(ids, _rows_at(order, places), _rows_at(order, places + 1)).all():
        return order
    ties = _ties(same, order)
    assert ties is not None
    return _without_ties(order, len(times), ties, sort_codes(taken(ids, ties.rows)))[0]


def tie_order(times: NDArray[Any], tie_breakers: Sequence[pa.Array]) -> Ints | None:
    """Return numbers in the order of (time, tie-breakers), equal where all of them are; None without tie-breakers."""
    return row_codes([pa.array(times), *tie_breakers]) if tie_breakers else None


def table_order(table: pa.Table, names: list[str]) -> Order:
    """Order rows by the columns named, the time first; each is looked at only where all before it are equal."""
    times = sort_codes(column_of(table, names[0]))
    order = _sorted_by(times, None)
    ties = _ties(_same(times, None, order), order)
    for name in names[1:]:
        if ties is None:
            break
        theirs = column_of(table.select([name]).take(pa.array(ties.rows)), name)
        order, ties = _without_ties(order, len(times), ties, sort_codes(theirs))
    return order


def _sorted_by(values: NDArray[Any], order: Order) -> Order:
    """Sort by values, and where they are equal by the order so far."""
    ordered = _in_order(values, order)
    if (ordered[1:] >= ordered[:-1]).all():
        return order
    more = argsort(ordered) if ordered.dtype == np.int64 else np.argsort(ordered, kind="stable")
    return more if order is None else order[more]


def _rows_at(order: Order, places: Ints) -> Ints:
    return places if order is None else order[places]


def _in_order(values: NDArray[Any], order: Order) -> NDArray[Any]:
    return values if order is None else values[order]


def _are_less(ids: pa.Array, rows: Ints, others: Ints) -> NDArray[np.bool_]:
    """Return for pairs of rows whether the former has the lesser id."""
    if is_words(ids):
        values = numbers(ids, 0)
        return np.asarray(values[rows] < values[others])
    return pc.less(taken(ids, rows), taken(ids, others)).to_numpy(zero_copy_only=False)


def _rise(ids: pa.Array) -> NDArray[np.bool_]:
    """Return for each id but the first whether it is greater than the one before it."""
    if is_words(ids):
        values = numbers(ids, 0)
        return np.asarray(values[:-1] < values[1:])
    if len(ids) < 2:
        return np.empty(0, np.bool_)
    return pc.less(ids[:-1], ids[1:]).to_numpy(zero_copy_only=False)


# --- Rows with the same time ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Ties:
    """The rows that share time and partition with others, in order.

    `places` are where they are in the order, `rows` which they are, `begins` tells whether one is the first of its
    run of equal ones.
    """

    places: Ints
    rows: Ints
    begins: NDArray[np.bool_]

    @property
    def runs(self) -> Ints:
        """The numbers of the runs that the rows are in."""
        return np.cumsum(self.begins)


def _same(times: NDArray[Any], partition: Ints | None, order: Order) -> NDArray[np.bool_]:
    """Return for each event but the first whether it has the time and partition of the one before it."""
    same = _same_as_before(_in_order(times, order))
    if partition is not None:
        same &= _same_as_before(_in_order(partition, order))
    return same


def _ties(same: NDArray[np.bool_], order: Order) -> _Ties | None:
    tied, begins = _runs(same)
    places = np.flatnonzero(tied)
    return _Ties(places, _rows_at(order, places), begins[places]) if len(places) else None


def _same_as_before(values: NDArray[Any]) -> NDArray[np.bool_]:
    return np.asarray(values[1:] == values[:-1])


def _runs(same: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which of the values are the same as a neighbour, and which not the same as the one before."""
    begins, ends = np.concatenate([[True], ~same]), np.concatenate([~same, [True]])
    return ~(begins & ends), begins


def _without_ties(order: Order, size: int, ties: _Ties, codes: Ints) -> tuple[Order, _Ties | None]:
    """Sort each run of tied rows by codes; return the order and the ties that are left."""
    rows = ties.rows
    if not ((codes[1:] >= codes[:-1]) | ties.begins[1:]).all():
        by_code = argsort(codes)
        among = by_code[argsort(ties.runs[by_code])]
        rows, codes = rows[among], codes[among]
        order = np.arange(size) if order is None else order
        order[ties.places] = rows
    tied, begins = _runs(_same_as_before(codes) & ~ties.begins[1:])
    return order, _Ties(ties.places[tied], rows[tied], begins[tied]) if tied.any() else None


# --- Repeated ids -----------------------------------------------------------------------------------------------


def repeated_rows(ids: pa.Array, partition: Ints | None) -> tuple[Ints, Ints]:
    """Find the ids that occur more than once in their partition; ids that rise along it are not looked at further.

    Parameters
    ----------
    ids, partition
        Of events in the order (partition, time, id).

    Returns
    -------
    rows : numpy.ndarray
        The rows with such an id.
    codes : numpy.ndarray
        For each of these rows a number that stands for its partition and id.
    """
    rises = _rise(ids)
    if partition is not None:
        rises |= ~_same_as_before(partition)
    if rises.all():
        return np.empty(0, np.int64), np.empty(0, np.int64)
    (codes,) = match_codes([ids])
    if partition is not None:
        (codes,) = match_codes([pa.array(codes * (partition.max() + 1) + partition)])
    rows = np.flatnonzero(np.bincount(codes)[codes] > 1)
    return rows, codes[rows]
