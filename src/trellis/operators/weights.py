"""Attributes as exact whole numbers modulo primes, so that sums over more trends than can be listed stay exact."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from trellis.errors import DataError
from trellis.operators.exact import Residues, multiply_modulo
from trellis.operators.wide import WideNumbers


@dataclass(frozen=True)
class Weight:
    """The values of a column as whole numbers times `unit`; NULL, NaN and infinite values count as 0.

    `present` tells which values are not NULL or NaN, `infinite` which are infinite (and their sign).
    """

    high: NDArray[np.int64]
    low: NDArray[np.uint64]
    shift: NDArray[np.int64]
    unit: Fraction
    bits: int
    present: NDArray[np.bool_]
    infinite: NDArray[np.int8]

    def modulo(self, prime: int) -> Residues:
        """Return the whole numbers modulo a prime below 2**32, or one a little below 2**58."""
        word = np.uint64(pow(2, 64, prime))
        high = (self.high % np.int64(prime)).astype(np.uint64)
        value = multiply_modulo(high, np.full(len(high), word), prime) + self.low % np.uint64(prime)
        if not self.shift.any():
            return value % np.uint64(prime)
        powers = np.array([pow(2, k, prime) for k in range(int(self.shift.max()) + 1)], np.uint64)
        return multiply_modulo(value % np.uint64(prime), powers[self.shift], prime)

    def whole(self) -> WideNumbers:
        """Return the whole numbers."""
        words = np.empty((len(self.low), self.bits // 64 + 1), np.uint64)
        high, up, skipped = self.high.view(np.uint64), (self.shift % 64).astype(np.uint64), self.shift // 64
        sign, zero = (self.high >> 63).view(np.uint64), np.uint64(0)
        below = np.zeros(len(words), np.uint64)
        for place in range(words.shape[1]):
            at = place - skipped
            own = np.where(at < 0, zero, np.where(at == 0, self.low, np.where(at == 1, high, sign)))
            words[:, place] = own << up | np.where(up > 0, below >> (np.uint64(64) - up) % np.uint64(64), zero)
            below = own
        return WideNumbers(words, signed=True)


def weigh(column: pa.Array) -> Weight:
    """Return the weights of a normalised numeric column."""
    present = column.is_valid().to_numpy(zero_copy_only=False)
    n = len(column)
    flat, none = np.zeros(n, np.int64), np.zeros(n, np.int8)
    if pa.types.is_null(column.type):
        column = column.cast(pa.int64())
    if pa.types.is_integer(column.type):
        values = column.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
        bits = 1 + max(int(values.max(initial=0)), -int(values.min(initial=0))).bit_length()
        return Weight(values >> 63, values.view(np.uint64), flat, Fraction(1), bits, present, none)
    if pa.types.is_decimal(column.type):
        high, low = decimal_words(column)
        return Weight(high, low, flat, Fraction(1, 10**column.type.scale), 128, present, none)
    return _weigh_doubles(column, present)


def decimal_words(column: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """Return decimals, without their point, as high and low words of 128 bits; NULL is 0."""
    column = pa.concat_arrays([narrow_decimals(column).fill_null(0)])
    words = np.frombuffer(column.buffers()[1], np.int64, 2 * len(column), column.offset * 16).reshape(-1, 2)
    return words[:, 1].copy(), words[:, 0].copy().view(np.uint64)


def narrow_decimals(column: pa.Array) -> pa.Array:
    """Return decimals with room for 38 digits, what results can hold."""
    try:
        return column.cast(pa.decimal128(38, column.type.scale))
    except pa.ArrowInvalid:
        raise DataError(
            "a decimal has more than 38 digits, which a result cannot hold",
            "Conditions can use it; round it, or make it a string, to return, aggregate or partition by it.",
        ) from None


def _weigh_doubles(column: pa.Array, present: NDArray[np.bool_]) -> Weight:
    values = column.fill_null(0.0).to_numpy(zero_copy_only=False).astype(np.float64)
    present = present & ~np.isnan(values)
    infinite = np.where(np.isinf(values), np.sign(np.nan_to_num(values)), 0).astype(np.int8)
    mantissa, exponent = np.frexp(np.where(np.isfinite(values), values, 0.0))
    whole = (mantissa * 2.0**53).astype(np.int64)
    used = whole != 0
    lowest = int(exponent[used].min()) if used.any() else 0
    shift = np.where(used, exponent - lowest, 0).astype(np.int64)
    unit = Fraction(2) ** (lowest - 53)
    return Weight(whole >> 63, whole.view(np.uint64), shift, unit, 54 + int(shift.max(initial=0)), present, infinite)
