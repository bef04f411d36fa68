"""The order of values: joint codes of several columns, a stable sort, and codes of distinct rows.

Strings are ordered by their UTF-8 bytes, false before true, numbers of different types exactly, -0.0 equals 0.0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from trellis.errors import DataError
from trellis.events.columns import decimals
from trellis.events.columns.arrow import Array, is_micros, is_valid, numbers, pa, pc
from trellis.events.columns.mixed import residuals
from trellis.events.columns.types import from_arrow, normalise
from trellis.events.columns.words import words
from trellis.kernels.sort import radix_order

Codes: TypeAlias = npt.NDArray[np.int64]

MISSING = np.iinfo(np.int64).min
"""The order code of NULL and NaN."""

_NONE = -1
_HIGHEST = np.iinfo(np.int64).max
_ROOM = 4
_FEW = 1 << 8  # texts that Python ranks sooner than Arrow
_MANY = 1 << 12  # rows from which on they are sorted digit by digit, and strings matched as words


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
    return _jointly(arrays, _joint, _NONE)


def order_codes(arrays: Sequence[Array]) -> list[Codes]:
    """Give the values of several columns joint codes that compare as they do; nothing is sorted where that is easy.

    Parameters
    ----------
    arrays
        As for `rank_codes`.

    Returns
    -------
    list of numpy.ndarray
        One array of int64 for each column, the same for the same one. Equal values have equal codes and a smaller value
        a smaller code, across all the columns, but the codes are not dense: integers and times stand for themselves,
        doubles for the bits of their order, all else for its rank. NULL and NaN have MISSING; all others leave room for
        one to be added and for the bits to be inverted.
    """
    return _jointly(arrays, _ordered, MISSING)


def match_codes(arrays: Sequence[Array]) -> list[Codes]:
    """Give the values of several columns joint codes that are equal where the values are; nothing is sorted.

    Parameters
    ----------
    arrays
        As for `rank_codes`; columns of different types are ranked after all, unless they are doubles and integers that
        doubles hold exactly.

    Returns
    -------
    list of numpy.ndarray
        One array of int64 for each column, the same for the same one. Codes are dense from 0 and in no particular
        order; NULL and NaN have -1.
    """
    return _jointly(arrays, _matched, _NONE)


def sort_codes(column: Array) -> Codes:
    """Return codes of one column that compare as its values do, NULL first and NaN last; not dense."""
    (codes,) = order_codes([column])
    if pa.types.is_floating(column.type):
        codes[(codes == MISSING) & is_valid(column)] = _HIGHEST
    return codes


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
    return argsort(row_codes(columns))


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
    codes = row_codes(columns)
    first = np.empty(codes.max() + 1 if len(codes) else 0, np.int64)
    first[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)  # of several rows, the last assigned stays
    return codes, first


def row_codes(columns: Sequence[Array]) -> Codes:
    """Return only the codes of `group_codes`; each step stays below the square of their number."""
    codes = _column_codes(columns[0])
    for column in columns[1:]:
        more = _column_codes(column)
        codes = codes * (more.max(initial=0) + 1) + more
        codes = dense_ranks(codes)
    return codes


def argsort(values: Codes) -> Codes:
    """Sort rows by integers, equal ones in the order of rows."""
    return small_argsort(values).astype(np.int64)


def small_argsort(values: Codes) -> npt.NDArray[np.int32]:
    """Return the same as 32-bit integers: digit by digit where there are many, which is several times as fast."""
    if len(values) < _MANY:
        return np.argsort(values, kind="stable").astype(np.int32)
    return radix_order(np.ascontiguousarray(values))


def _column_codes(column: Array) -> Codes:
    """Return dense codes of the values of one column, NULL first, NaN last."""
    (codes,) = rank_codes([column])
    missing = codes == _NONE
    if not missing.any():
        return codes
    nulls = ~is_valid(column)
    codes[missing & ~nulls] = codes.max() + 1
    return codes + 1 if nulls.any() else codes


def _jointly(arrays: Sequence[Array], encode: Callable[[list[Array]], list[Codes]], missing: int) -> list[Codes]:
    """Encode several columns together, in their one physical form; one without a type is `missing` everywhere."""
    columns = {id(array): normalise(array, from_arrow(array.type)) for array in arrays}
    known = {key: column for key, column in columns.items() if not pa.types.is_null(column.type)}
    codes = dict(zip(known, encode([*known.values()]) if known else [], strict=True))
    return [codes[id(array)] if id(array) in known else np.full(len(array), missing, np.int64) for array in arrays]


# --- Order codes, by type ---------------------------------------------------------------------------------------


def _ordered(columns: list[Array]) -> list[Codes]:
    if _are_doubles(columns):
        return [_ordered_doubles(column) for column in columns]
    if _of_one_type(columns) and _are_integers(columns[0]):
        values = [_integers(column) for column in columns]
        if all(_leave_room(part) for part in values):
            return [_known(part.copy(), column) for part, column in zip(values, columns, strict=True)]
    return [np.where(codes == _NONE, MISSING, codes) for codes in rank_codes(columns)]


def _of_one_type(columns: list[Array]) -> bool:
    return len({column.type for column in columns}) == 1


def _are_doubles(columns: list[Array]) -> bool:
    """Whether the columns are doubles, and integers that doubles hold exactly."""
    floating = [pa.types.is_floating(column.type) for column in columns]
    return any(floating) and all(is_ or _small(column) for is_, column in zip(floating, columns, strict=True))


def _are_integers(column: Array) -> bool:
    """Whether a column's values are 64 bits that compare as integers do."""
    return bool(pa.types.is_integer(column.type) or pa.types.is_boolean(column.type) or is_micros(column))


def _integers(column: Array) -> Codes:
    return numbers(column.cast(pa.int64()) if pa.types.is_boolean(column.type) else column, 0)


def _leave_room(values: Codes) -> bool:
    return bool(values.min(initial=0) >= MISSING + _ROOM and values.max(initial=0) <= _HIGHEST - _ROOM)


def _known(codes: Codes, column: Array) -> Codes:
    if column.null_count:
        codes[~is_valid(column)] = MISSING
    return codes


def _ordered_doubles(column: Array) -> Codes:
    return _double_bits(numbers(decimals.to_double(column), np.nan))


def _double_bits(values: npt.NDArray[np.float64]) -> Codes:
    """Return the bits of doubles, of negative ones all but the sign inverted: as integers they have the same order.

    NaN has MISSING.
    """
    codes = (values + 0.0).view(np.int64)  # -0.0 becomes 0.0
    inverted = codes >> 63
    inverted &= _HIGHEST
    codes ^= inverted
    codes[np.isnan(values)] = MISSING
    return codes


# --- Match codes, by type ---------------------------------------------------------------------------------------


def _matched(columns: list[Array]) -> list[Codes]:
    if _are_doubles(columns):
        return _encoded([_with_one_zero(column) for column in columns])
    if not _of_one_type(columns):
        return rank_codes(columns)
    if _are_integers(columns[0]):
        return _matched_integers(columns)
    many = sum(map(len, columns)) >= _MANY and pa.types.is_large_string(columns[0].type)
    short = [words(column) for column in columns] if many else [None]
    return _encoded(columns) if any(column is None for column in short) else _matched_integers(short)


def _with_one_zero(column: Array) -> Array:
    """Return numbers as doubles, NULL in place of NaN and 0.0 in place of -0.0."""
    return pa.array(numbers(decimals.to_double(column), np.nan) + 0.0, from_pandas=True)


def _matched_integers(columns: list[Array]) -> list[Codes]:
    """Number integers by a table of all that lie between the least and the greatest, or by hash if that is too long."""
    values = [_integers(column if column.null_count == 0 else column.drop_null()) for column in columns]
    low = min((int(part.min()) for part in values if len(part)), default=0)
    high = max((int(part.max()) for part in values if len(part)), default=0)
    if high - low >= 2 * sum(map(len, values)):
        return _encoded(columns)
    codes = _present(values, low, high)
    return [_at_rows(codes[part - low], column) for part, column in zip(values, columns, strict=True)]


def _at_rows(codes: Codes, column: Array) -> Codes:
    """Put the codes of the values that are known where these are."""
    if column.null_count == 0:
        return codes
    spread = np.full(len(column), _NONE, np.int64)
    spread[is_valid(column)] = codes
    return spread


def _encoded(columns: list[Array]) -> list[Codes]:
    """Number values by hash."""
    try:
        encoded = pc.dictionary_encode(pa.chunked_array(columns) if len(columns) > 1 else columns[0])
    except pa.ArrowNotImplementedError:
        return rank_codes(columns)
    chunks = [encoded] if len(columns) == 1 else encoded.chunks  # empty columns have none
    codes = [numbers(chunk.indices, _NONE) for chunk in chunks]
    return _split(np.concatenate([np.empty(0, np.int64), *codes]), columns)


# --- Joint ranks, by type ---------------------------------------------------------------------------------------


def _joint(columns: list[Array]) -> list[Codes]:
    types = {column.type for column in columns}
    if any(pa.types.is_floating(type_) or pa.types.is_decimal(type_) for type_ in types):
        return _joint_numbers(columns)
    column = columns[0] if len(columns) == 1 else pa.concat_arrays(columns)
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int64())
    counted = pa.types.is_integer(column.type) or is_micros(column)
    return _split(_ranked_integers(column) if counted else _ranked_words(column), columns)


def _split(codes: Codes, columns: Sequence[Array]) -> list[Codes]:
    ends = accumulate(map(len, columns), initial=0)
    return [codes[begin:end] for begin, end in pairwise(ends)]


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
    return _ranked_where(is_valid(column), numbers(column, 0)) if column.null_count else dense_ranks(numbers(column, 0))


def _ranked_where(valid: npt.NDArray[np.bool_], values: Codes) -> Codes:
    codes = np.full(len(values), _NONE, np.int64)
    codes[valid] = dense_ranks(values[valid])
    return codes


def _ranked_doubles(values: npt.NDArray[np.float64]) -> Codes:
    """Rank doubles; NaN, which sorts before all others by its bits, has -1."""
    bits = _double_bits(values)
    order = small_argsort(bits)
    missing = np.count_nonzero(np.isnan(values))
    codes = np.empty(len(values), np.int64)
    codes[order[missing:]] = _steps(bits[order[missing:]])
    codes[order[:missing]] = _NONE
    return codes


def _ranked_exact(column: Array) -> Codes:
    """Rank integers, or decimals of one scale."""
    if pa.types.is_integer(column.type):
        return _ranked_integers(column)
    whole = decimals.as_int64(column)
    return _ranked_words(column) if whole is None else _ranked_where(is_valid(column), whole)


def _ranked_words(column: Array) -> Codes:
    """Rank values that only Arrow can compare, and few texts: first the distinct ones, then each by its own."""
    if len(column) < _FEW and pa.types.is_large_string(column.type):
        texts = column.to_pylist()
        distinct = sorted({*texts} - {None})  # by code points, which is by the bytes of UTF-8
        rank_of = {None: _NONE} | {text: rank for rank, text in enumerate(distinct)}
        return np.array([rank_of[text] for text in texts], np.int64)
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


def dense_ranks(values: Codes) -> Codes:
    """Rank integers: equal ones have equal ranks, which are dense from 0."""
    if len(values) == 0:
        return np.empty(0, np.int64)
    low, high = int(values.min()), int(values.max())
    if high - low < 4 * len(values):
        return _present([values], low, high)[values - low]
    order = small_argsort(values)
    codes = np.empty(len(values), np.int64)
    codes[order] = _steps(values[order])
    return codes


def _present(parts: list[Codes], low: int, high: int) -> Codes:
    """Return for each integer from `low` to `high` its rank among those that occur; of the others what comes."""
    occurs = np.zeros(high - low + 1, np.bool_)
    for values in parts:
        occurs[values - low] = True
    ranks = np.cumsum(occurs, dtype=np.int64)
    ranks -= 1
    return ranks


def _steps(ordered: npt.NDArray[np.generic]) -> Codes:
    """Number the distinct values of a sorted array."""
    steps = np.zeros(len(ordered), np.int64)
    np.cumsum(ordered[1:] != ordered[:-1], out=steps[1:])
    return steps
