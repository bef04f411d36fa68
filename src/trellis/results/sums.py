"""Sums and means of the values of each result, exact and rounded once."""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from trellis.operators.weights import narrow_decimals

DIGITS_38 = pa.decimal128(38, 0)
SMALLEST = 2**1074  # how many of the smallest double make 1


def sums_of(values: pa.Array, ends: NDArray[np.int32]) -> pa.Array:
    """Return exact sums, of doubles rounded once.

    Parameters
    ----------
    values
        The values of all rows, one row after another.
    ends
        For each row where its values end.
    """
    if pa.types.is_floating(values.type):
        return folded_floats(values, ends, mean=False)
    valid = values.is_valid().to_numpy(zero_copy_only=False)
    if pa.types.is_integer(values.type):
        from trellis.kernels.list.aggregates import sum_integers

        numbers = values.fill_null(0).to_numpy(zero_copy_only=False)
        sums, found, overflow = sum_integers(ends, numbers, valid)
        if overflow < 0:
            return pa.array(sums, mask=~found).cast(DIGITS_38)
    return _wide_sums(values, ends)


def _wide_sums(values: pa.Array, ends: NDArray[np.int32]) -> pa.Array:
    """Sum decimals that do not fit 64 bits: values of 38 digits, row by row, in Arrow's decimals of 76."""
    scale = values.type.scale if pa.types.is_decimal(values.type) else 0
    narrow = narrow_decimals(values) if pa.types.is_decimal(values.type) else values.cast(DIGITS_38)
    row_of = np.repeat(np.arange(len(ends)), np.diff(np.concatenate([[0], ends])))
    table = pa.table({"row": row_of, "value": narrow.cast(pa.decimal256(76, scale))})
    sums = table.group_by("row", use_threads=False).aggregate([("value", "sum")]).sort_by("row")
    return sums["value_sum"].combine_chunks().cast(pa.decimal256(76, scale))


def up_to_38_digits(sums: pa.Array) -> pa.Array:
    """Put NULL for decimals that need more than 38 digits."""
    if sums.type.bit_width == 128:
        return sums
    most = pa.scalar(Decimal((0, (9,) * 38, -sums.type.scale)), sums.type)
    least = pa.scalar(Decimal((1, (9,) * 38, -sums.type.scale)), sums.type)
    fits = pc.and_(pc.less_equal(sums, most), pc.greater_equal(sums, least))
    return pc.if_else(fits, sums, pa.scalar(None, sums.type))


def means_of(values: pa.Array, ends: NDArray[np.int32]) -> pa.Array:
    """Return exact means, rounded once; parameters as in `sums_of`."""
    if pa.types.is_floating(values.type):
        return folded_floats(values, ends, mean=True)
    valid = values.is_valid().to_numpy(zero_copy_only=False)
    sums = sums_of(values, ends)
    begins = np.concatenate([[0], ends[:-1]]).astype(np.int64)
    counts = np.add.reduceat(valid.astype(np.int64), begins) if len(ends) else np.zeros(0, np.int64)
    return _quotients(sums, counts)


def _quotients(sums: pa.Array, counts: NDArray[np.int64]) -> pa.Array:
    """Divide decimals by whole numbers, rounding once: in doubles where both sides are exact there."""
    unit = 10**sums.type.scale
    wide = pa.concat_arrays([sums.cast(pa.decimal256(76, sums.type.scale)).fill_null(0)])
    words = np.frombuffer(wide.buffers()[1], np.int64, 4 * len(wide), wide.offset * 32).reshape(-1, 4)
    known = sums.is_valid().to_numpy(zero_copy_only=False) & (counts > 0)
    whole = words[:, 0]
    small = (words[:, 1:] == (whole >> 63)[:, None]).all(axis=1) & (np.abs(whole) < 1 << 53)
    small &= counts <= ((1 << 53) - 1) // unit
    quotients = whole / (np.maximum(counts, 1) * float(unit))
    for row in np.flatnonzero(known & ~small):
        quotients[row] = int.from_bytes(words[row].tobytes(), "little", signed=True) / (int(counts[row]) * unit)
    return pa.array(quotients, mask=~known)


def folded_floats(values: pa.Array, ends: NDArray[np.int32], mean: bool) -> pa.Array:
    """Return exact sums (or means) of doubles, rounded once; NULL where no number is."""
    from trellis.kernels.list.aggregates import fold_floats

    valid = values.is_valid().to_numpy(zero_copy_only=False)
    numbers = values.fill_null(0.0).to_numpy(zero_copy_only=False)
    valid = valid & ~np.isnan(numbers)
    results, counts, hard = fold_floats(ends, numbers, valid, mean)
    for row in np.flatnonzero(hard):
        part = slice(ends[row - 1] if row else 0, ends[row])
        results[row] = _exactly_folded(numbers[part][valid[part]].tolist(), mean)
    return pa.array(results + 0.0, mask=(counts == 0) | np.isnan(results))


def _exactly_folded(numbers: list[float], mean: bool) -> float:
    """Return the sum (or mean) of finite numbers in whole multiples of the smallest double."""
    total = 0
    for number in numbers:
        above, below = number.as_integer_ratio()
        total += above * (SMALLEST // below)
    try:
        return total / (SMALLEST * (len(numbers) if mean else 1))
    except OverflowError:
        return math.inf if total > 0 else -math.inf
