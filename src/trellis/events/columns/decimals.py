"""Exact arithmetic on columns of decimals.

A decimal column is always `decimal256(76, scale)`. Arrow computes with declared precisions and refuses what might not
fit; so an operand is first declared to be as narrow as its widest value is, at no cost, as no value changes. What is
wider still is computed with Python's decimals, one by one.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Context, Decimal
from functools import partial

import numpy as np
import numpy.typing as npt

from trellis.events.columns.arrow import (
    Array,
    DataType,
    Operand,
    at_least_one,
    from_numbers,
    is_scalar,
    is_valid,
    null,
    numbers,
    pa,
    pc,
)

WIDEST = 76
_EXACT = Context(prec=1000)
_EXACT_POWERS_OF_TEN = 22  # 10^22 is the largest that a double holds
_EXACT_INTEGERS = 2**53


class TooWide(Exception):
    """A decimal would need more than 76 digits."""


def type_of(scale: int) -> DataType:
    """Return the physical type of decimals with a scale; of one beyond 76 there are no values but NULL."""
    return pa.decimal256(WIDEST, min(scale, WIDEST))


def digits(x: Operand) -> int:
    """Count the digits of the widest value, those behind the point included."""
    if is_scalar(x):
        ends = [x.as_py()]
    else:
        both = pc.min_max(x)
        ends = [both["min"].as_py(), both["max"].as_py()]
    return max((len(end.as_tuple().digits) for end in ends if end is not None), default=1)


def declared(x: Operand, precision: int, scale: int | None = None) -> Operand:
    """Declare the same digits to be of another precision (and scale)."""
    type_ = pa.decimal256(precision, x.type.scale if scale is None else scale)
    if not is_scalar(x):
        return pa.Array.from_buffers(type_, len(x), x.buffers(), offset=x.offset)
    return declared(at_least_one(x), precision, scale)[0]


def rescaled(x: Operand, scale: int) -> Operand:
    """Write the same values with more digits behind the point.

    Raises
    ------
    TooWide
        If one then has more than 76 digits.
    """
    more = scale - x.type.scale
    if more == 0:
        return x
    width = digits(x)
    if width + more > WIDEST or scale > WIDEST:
        raise TooWide
    if width + more + 2 > WIDEST:
        return x.cast(type_of(scale))
    tens = pa.scalar(Decimal(10**more), pa.decimal256(more + 1, 0))
    return declared(pc.multiply(declared(x, width), tens), WIDEST, scale)


# --- From and to other numbers ----------------------------------------------------------------------------------


def from_number(x: Operand, scale: int) -> Operand:
    """Convert integers, or decimals of a smaller scale, to decimals of a scale.

    Raises
    ------
    TooWide
        If one needs more than 76 digits.
    """
    if scale > WIDEST:
        if not is_scalar(x) and x.null_count == len(x):
            return null(type_of(scale))
        raise TooWide
    if pa.types.is_decimal(x.type):
        plain = x.cast(type_of(max(0, x.type.scale)))
        return rescaled(plain, scale)
    return rescaled(_from_integers(x.cast(pa.int64())), scale)


def _from_integers(x: Operand) -> Operand:
    column = at_least_one(x)
    whole = _from_int64(numbers(column, 0), column, 0)
    return whole[0] if is_scalar(x) else whole


def _from_int64(values: npt.NDArray[np.int64], nulls_of: Array, scale: int) -> Array:
    """Make decimals of their digits; NULL where `nulls_of` is."""
    limbs = np.empty((len(values), 4), np.int64)
    limbs[:, 0] = values
    limbs[:, 1:] = (values >> 63)[:, None]
    valid = pc.is_valid(nulls_of).buffers()[1] if nulls_of.null_count else None
    return pa.Array.from_buffers(type_of(scale), len(values), [valid, pa.py_buffer(limbs)])


def as_int64(x: Array) -> npt.NDArray[np.int64] | None:
    """Return the digits as integers (0 for NULL), or None where one does not fit 64 bits."""
    if len(x) == 0:
        return np.empty(0, np.int64)
    filled = x if x.null_count == 0 else pc.fill_null(x, pa.scalar(Decimal(0), x.type))
    limbs = np.frombuffer(filled.buffers()[1], np.int64, 4 * len(x), 32 * filled.offset).reshape(-1, 4)
    sign = limbs[:, 0] >> 63
    fits = (limbs[:, 1] == sign) & (limbs[:, 2] == sign) & (limbs[:, 3] == sign)
    return np.ascontiguousarray(limbs[:, 0]) if fits.all() else None


def to_double(x: Operand) -> Operand:
    """Convert numbers of any type to doubles, each rounded once, to the nearest."""
    if pa.types.is_floating(x.type):
        return x if x.type == pa.float64() else x.cast(pa.float64())
    if not pa.types.is_decimal(x.type):
        return x.cast(pa.int64()).cast(pa.float64(), safe=False)
    if is_scalar(x):
        return pa.scalar(None if x.as_py() is None else float(x.as_py()), pa.float64())
    return _decimals_to_double(x)


def fit_doubles(values: npt.NDArray[np.int64]) -> bool:
    """Whether doubles hold all these integers exactly."""
    return bool(values.min(initial=0) >= -_EXACT_INTEGERS and values.max(initial=0) <= _EXACT_INTEGERS)


def _decimals_to_double(x: Array) -> Array:
    scale = x.type.scale
    if pa.types.is_decimal256(x.type) and 0 <= scale <= _EXACT_POWERS_OF_TEN:
        whole = as_int64(x)
        if whole is not None and fit_doubles(whole):
            return from_numbers(whole / 10.0**scale, is_valid(x), (x,))
    return x.cast(pa.string()).cast(
        pa.float64()
    )  # Arrow reads text to the nearest double; its own cast does not round so


# --- Arithmetic -------------------------------------------------------------------------------------------------


def add(a: Operand, b: Operand) -> Operand:
    """Compute a + b."""
    return _sum(pc.add, _EXACT.add, a, b)


def subtract(a: Operand, b: Operand) -> Operand:
    """Compute a - b."""
    return _sum(pc.subtract, _EXACT.subtract, a, b)


def multiply(a: Operand, b: Operand) -> Operand:
    """Compute a * b; the scales add up."""
    wide, scale = (digits(a), digits(b)), a.type.scale + b.type.scale
    if sum(wide) + 1 > WIDEST or scale > WIDEST:
        return _one_by_one(_EXACT.multiply, a, b, scale)
    return declared(pc.multiply(declared(a, wide[0]), declared(b, wide[1])), WIDEST)


def remainder(a: Operand, b: Operand) -> Operand:
    """Compute a % b with the sign of a; NULL where b is 0."""
    scale = max(a.type.scale, b.type.scale)
    b = pc.if_else(pc.equal(b, pa.scalar(Decimal(0), b.type)), null(b.type), b)
    try:
        long_a, long_b = rescaled(a, scale), rescaled(b, scale)
    except TooWide:
        return _one_by_one(_EXACT.remainder, a, b, scale)
    columns = at_least_one(long_a), at_least_one(long_b)
    dividend, divisor = (as_int64(column) for column in columns)
    if dividend is None or divisor is None:
        return _long_remainder(long_a, long_b)
    rest = np.fmod(dividend, np.where(divisor == 0, 1, divisor))
    valid = is_valid(columns[0]) & is_valid(columns[1])
    whole = _from_int64(rest, pa.array(rest, mask=~valid), scale)
    return whole[0] if is_scalar(a) and is_scalar(b) else whole


def _long_remainder(a: Operand, b: Operand) -> Operand:
    """Compute a % b, of one scale, as a - b * (the whole part of a / b)."""
    wide = digits(a), digits(b)
    if wide[0] + max(4, wide[1] + 1) > WIDEST:  # the precision of Arrow's quotient
        return _one_by_one(_EXACT.remainder, a, b, a.type.scale)
    quotient = pc.trunc(pc.divide(declared(a, wide[0], 0), declared(b, wide[1], 0))).cast(type_of(0))
    return subtract(a, multiply(quotient, b))


def _sum(fast: Callable[..., Operand], exact: Callable[..., Decimal], a: Operand, b: Operand) -> Operand:
    scale = max(a.type.scale, b.type.scale)
    try:
        long_a, long_b = rescaled(a, scale), rescaled(b, scale)
    except TooWide:
        return _one_by_one(exact, a, b, scale)
    width = max(digits(long_a), digits(long_b))
    if width + 1 > WIDEST:
        return _one_by_one(exact, a, b, scale)
    return declared(fast(declared(long_a, width), declared(long_b, width)), WIDEST)


# --- Comparison -------------------------------------------------------------------------------------------------


def compare(function: Callable[..., Operand], a: Operand, b: Operand) -> Operand:
    """Compare two columns of decimals of any scales by one of Arrow's comparisons."""
    scale = max(a.type.scale, b.type.scale)
    try:
        return function(rescaled(a, scale), rescaled(b, scale))
    except TooWide:
        order = [None if x is None or y is None else int(_EXACT.compare(x, y)) for x, y in _pairs(a, b)]
        signs = pa.array(order, pa.int8())
        return function(signs[0] if is_scalar(a) and is_scalar(b) else signs, pa.scalar(0, pa.int8()))


# --- What Arrow's precision does not hold -----------------------------------------------------------------------


def _pairs(a: Operand, b: Operand) -> list[tuple[Decimal | None, Decimal | None]]:
    left, right = at_least_one(a).to_pylist(), at_least_one(b).to_pylist()
    rows = max(len(left), len(right)) if len(left) and len(right) else 0
    left, right = (column * rows if is_scalar(x) else column for x, column in ((a, left), (b, right)))
    return list(zip(left, right, strict=True))


def _one_by_one(exact: Callable[..., Decimal], a: Operand, b: Operand, scale: int) -> Operand:
    fitted = partial(_fitted, scale=scale)
    results = [None if x is None or y is None else fitted(exact(x, y)) for x, y in _pairs(a, b)]
    column = pa.array(results, type_of(scale))
    return column[0] if is_scalar(a) and is_scalar(b) else column


def _fitted(value: Decimal, scale: int) -> Decimal:
    written = _EXACT.quantize(value, Decimal(1).scaleb(-scale))
    if scale > WIDEST or len(written.as_tuple().digits) > WIDEST:
        raise TooWide
    return written
