"""Integers and decimals against doubles, compared exactly: the decimal 0.1 is less than the double 0.1.

Rounding to the nearest double keeps the order, so a number's nearest double decides, unless it is the very double that
the number is compared with; then the sign of what rounding took away does.
"""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import numpy.typing as npt

from trellis.events.columns import decimals
from trellis.events.columns.arrow import Array, Operand, at_least_one, from_numbers, numbers, pa, pc


def signs(exact: Operand, doubles: Operand) -> Operand:
    """Compare integers or decimals with doubles.

    Parameters
    ----------
    exact
        int64 or decimals.
    doubles
        Doubles; NaN counts as NULL.

    Returns
    -------
    Operand
        int8: -1, 0 or 1 as the exact number is less than, equal to or more than the double; NULL where one is NULL.
    """
    column, other = at_least_one(exact), at_least_one(doubles)
    near, far = np.broadcast_arrays(numbers(decimals.to_double(column), np.nan), numbers(other, np.nan))
    order = (near > far).astype(np.int8) - (near < far).astype(np.int8)
    ties = np.flatnonzero(near == far)
    if len(ties):
        rows = np.zeros_like(ties) if len(column) == 1 else ties
        order[ties] = residuals(column.take(pa.array(rows)), far[ties])
    valid = ~(np.isnan(near) | np.isnan(far))
    return from_numbers(order, valid, (exact, doubles))


def residuals(exact: Array, nearest: npt.NDArray[np.float64]) -> npt.NDArray[np.int8]:
    """Return the signs of `exact - nearest`, where `nearest` are the doubles nearest to the exact numbers."""
    if pa.types.is_decimal(exact.type):
        return _decimal_residuals(exact)
    inside = nearest < 2.0**63
    whole = np.where(inside, nearest, 0.0).astype(np.int64)
    values = numbers(exact, 0)
    order = (values > whole).astype(np.int8) - (values < whole).astype(np.int8)
    return np.where(inside, order, np.int8(-1))


def _decimal_residuals(exact: Array) -> npt.NDArray[np.int8]:
    encoded = pc.dictionary_encode(exact)
    distinct = [_decimal_residual(value) for value in encoded.dictionary.to_pylist()]
    codes: npt.NDArray[np.int64] = numbers(encoded.indices, 0)
    return np.array(distinct, np.int8)[codes]


def _decimal_residual(value: Decimal) -> int:
    nearest = Decimal(float(value))
    return (value > nearest) - (value < nearest)
