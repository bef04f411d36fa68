"""The order of values: joint ranks of several columns, a stable sort, and codes of distinct rows.

Strings are ordered by their UTF-8 bytes, false before true, numbers of different types exactly, -0.0 equals 0.0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from trellis.columns import decimals
from trellis.columns.arrow import Array, is_micros, is_valid, numbers, pa, pc
from trellis.columns.mixed import residuals
from trellis.columns.types import from_arrow, normalise
from trellis.errors import DataError

Codes: TypeAlias = npt.NDArray[np.int64]

_NONE = -1


def rank_codes(arrays: Sequence[Array]) -> list[Codes]:
    """Give the values of several columns joint ranks.

    Parameters
    ----------
    arrays
        Columns of comparable types: all numbers (of any types), all times, all strings, all booleans, all durations.

    Returns
    -------
    list of numpy.ndarray
        One array of int64 for each column. Codes are dense from 0; equal values have equal codes and a smaller value a
        smaller code, across all the columns; NULL and NaN have -1.
    """
    columns = [normalise(array, from_arrow(array.type)) for array in arrays]
    known = [column for column in columns if not pa.types.is_null(column.type)]
    codes = iter(_joint(known) if known else [])
    return [
        np.full(len(column), _NONE, np.int64) if pa.types.is_null(column.type) else next(codes) for column in columns
    ]


def sort_indices(columns: Sequence[Array]) -> Codes:
    """Sort rows by several columns, in the order of the language: NULL first, NaN last; stable.

    Parameters
    ----------
    columns
        At least one column; all of the same length.

    Returns
    -------
    numpy.ndarray
        The rows in order.
    """
    return _argsort(_row_codes(columns))


def group_codes(columns: Sequence[Array]) -> tuple[Codes, Codes]:
    """Number the distinct rows of several columns, in the order of the language.

    NULL equals NULL, NaN equals NaN, -0.0 equals 0.0.

    Parameters
    ----------
    columns
        At least one column; all of the same length.

    Returns
    -------
    codes : numpy.ndarray
        For each row the number of its group, dense from 0.
    first : numpy.ndarray
        For each group its first row.
    """
    codes = _row_codes(columns)
    first = np.empty(codes.max() + 1 if len(codes) else 0, np.int64)
    first[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)  # of several rows, the last assigned stays
    return codes, first


def _row_codes(columns: Sequence[Array]) -> Codes:
    """Return dense codes of rows; each step stays below the square of their number."""
    codes = _column_codes(columns[0])
    for column in columns[1:]:
        more = _column_codes(column)
        codes = codes * (more.max(initial=0) + 1) + more
        codes = _dense(codes)
    return codes


def _column_codes(column: Array) -> Codes:
    """Return dense codes of the values of one column, NULL first, NaN last."""
    (codes,) = rank_codes([column])
    missing = codes == _NONE
    if not missing.any():
        return codes
    nulls = ~is_valid(column)
    codes[missing & ~nulls] = codes.max() + 1
    return codes + 1 if nulls.any() else codes


# --- Joint ranks, by type ---------------------------------------------------------------------------------------


def _joint(columns: list[Array]) -> list[Codes]:
    types = {column.type for column in columns}
    if any(pa.types.is_floating(type_) or pa.types.is_decimal(type_) for type_ in types):
        return _joint_numbers(columns)
    column = pa.concat_arrays(columns)
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int64())
    counted = pa.types.is_integer(column.type) or is_micros(column)
    return _split(_ranked_integers(column) if counted else _ranked_words(column), columns)


def _split(codes: Codes, columns: Sequence[Array]) -> list[Codes]:
    return np.split(codes, np.cumsum([len(column) for column in columns])[:-1])


def _joint_numbers(columns: list[Array]) -> list[Codes]:
    floating = [pa.types.is_floating(column.type) or _small(column) for column in columns]
    doubles = [column for column, is_double in zip(columns, floating, strict=True) if is_double]
    others = [column for column, is_double in zip(columns, floating, strict=True) if not is_double]
    values = np.concatenate([numbers(decimals.to_double(column), np.nan) for column in doubles] or [np.empty(0)])
    try:
        exact = _together(others)
    except decimals.TooWide:
        return _ranked_one_by_one(columns)
    if exact is None:
        return _split(_ranked_doubles(values), columns)
    if not doubles:
        return _split(_ranked_exact(exact), columns)
    of_doubles, of_others = _merged(values, exact)
    parts = iter(_split(of_doubles, doubles)), iter(_split(of_others, others))
    return [next(parts[0] if is_double else parts[1]) for is_double in floating]


def _small(column: Array) -> bool:
    """Whether a column's numbers are integers that doubles hold exactly."""
    return pa.types.is_integer(column.type) and decimals.fit_doubles(numbers(column, 0))


def _together(columns: list[Array]) -> Array | None:
    """Lay integers and decimals end to end, as integers if they all are, else as decimals of one scale."""
    if not columns:
        return None
    if all(pa.types.is_integer(column.type) for column in columns):
        return pa.concat_arrays(columns)
    scale = max(getattr(column.type, "scale", 0) for column in columns)
    return pa.concat_arrays([decimals.from_number(column, scale) for column in columns])


def _ranked_integers(column: Array) -> Codes:
    return _ranked_where(is_valid(column), numbers(column, 0)) if column.null_count else _dense(numbers(column, 0))


def _ranked_where(valid: npt.NDArray[np.bool_], values: Codes) -> Codes:
    codes = np.full(len(values), _NONE, np.int64)
    codes[valid] = _dense(values[valid])
    return codes


def _ranked_doubles(values: npt.NDArray[np.float64]) -> Codes:
    """Rank doubles; NaN, which sorts behind all others, has -1."""
    order = np.argsort(values)
    known = len(values) - np.count_nonzero(np.isnan(values))
    codes = np.empty(len(values), np.int64)
    codes[order[:known]] = _steps(values[order[:known]])
    codes[order[known:]] = _NONE
    return codes


def _ranked_exact(column: Array) -> Codes:
    """Rank integers, or decimals of one scale."""
    if pa.types.is_integer(column.type):
        return _ranked_integers(column)
    whole = decimals.as_int64(column)
    return _ranked_words(column) if whole is None else _ranked_where(is_valid(column), whole)


def _ranked_words(column: Array) -> Codes:
    """Rank values that only Arrow can compare: first the distinct ones, then each by its own."""
    try:
        encoded = pc.dictionary_encode(column)
        order = pc.array_sort_indices(encoded.dictionary).to_numpy()
    except (pa.ArrowNotImplementedError, pa.ArrowTypeError):
        raise DataError(f"values of type {column.type} have no order") from None
    ranks = np.empty(len(order) + 1, np.int64)
    ranks[order] = np.arange(len(order))
    ranks[-1] = _NONE
    codes: Codes = ranks[numbers(encoded.indices, -1)]
    return codes


def _merged(doubles: npt.NDArray[np.float64], exact: Array) -> tuple[Codes, Codes]:
    """Rank doubles and exact numbers apart, then put the distinct ones into one order.

    An exact number stands where its nearest double does, or, by what rounding took away, just before or behind it.
    """
    own, other = _ranked_doubles(doubles), _ranked_exact(exact)
    levels = doubles[_representatives(own)]
    rows = exact.take(pa.array(_representatives(other)))
    nearest = numbers(decimals.to_double(rows), np.nan)
    aside = np.zeros(len(nearest), np.int8)
    met = np.flatnonzero(np.isin(nearest, levels))
    aside[met] = residuals(rows.take(pa.array(met)), nearest[met])
    place = np.concatenate([levels, nearest])
    side = np.concatenate([np.zeros(len(levels), np.int8), aside])
    order = np.lexsort((side, place))
    place, side, exactly = place[order], side[order], order >= len(levels)
    equal = (place[1:] == place[:-1]) & (side[1:] == side[:-1]) & exactly[1:] & ~exactly[:-1]
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.cumsum(np.concatenate([[False], ~equal]))
    return _through(own, ranks[: len(levels)]), _through(other, ranks[len(levels) :])


def _representatives(codes: Codes) -> Codes:
    """Return for each code a row that has it."""
    rows = np.empty(codes.max(initial=_NONE) + 2, np.int64)
    rows[codes] = np.arange(len(codes))
    return rows[:-1]


def _through(codes: Codes, ranks: Codes) -> Codes:
    renamed: Codes = np.append(ranks, _NONE)[codes]
    return renamed


def _ranked_one_by_one(columns: list[Array]) -> list[Codes]:
    """Rank numbers that no common decimal holds, as Python compares them."""
    rows = [[None if x != x else x for x in column.to_pylist()] for column in columns]
    distinct = sorted({x for column in rows for x in column if x is not None})
    ranks = {x: rank for rank, x in enumerate(distinct)} | {None: _NONE}
    return [np.array([ranks[x] for x in column], np.int64) for column in rows]


# --- Integers ---------------------------------------------------------------------------------------------------


def _dense(values: Codes) -> Codes:
    """Rank integers, without NULLs."""
    if len(values) == 0:
        return np.empty(0, np.int64)
    low, high = int(values.min()), int(values.max())
    if high - low < 4 * len(values):
        present = np.zeros(high - low + 1, np.int64)
        present[values - low] = 1
        return (np.cumsum(present) - 1)[values - low]
    order = _argsort(values)
    codes = np.empty(len(values), np.int64)
    codes[order] = _steps(values[order])
    return codes


def _steps(ordered: npt.NDArray[np.generic]) -> Codes:
    """Number the distinct values of a sorted array."""
    steps = np.zeros(len(ordered), np.int64)
    np.cumsum(ordered[1:] != ordered[:-1], out=steps[1:])
    return steps


def _argsort(values: Codes) -> Codes:
    """Sort rows by integers, stably: by (value, row) in one word where that fits, which is several times as fast."""
    rows = len(values)
    if rows == 0:
        return np.empty(0, np.int64)
    low, high = int(values.min()), int(values.max())
    bits = rows.bit_length()
    if (high - low + 1) << bits > 2**63:
        return np.argsort(values, kind="stable")
    words = np.sort((values - low) << bits | np.arange(rows))
    return words & ((1 << bits) - 1)
