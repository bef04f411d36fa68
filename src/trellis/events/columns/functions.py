"""The scalar functions over whole columns: rounding, roots, texts, parts of times, casts."""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal

import numpy as np

from trellis.events.columns import decimals
from trellis.events.columns.arithmetic import without_nan
from trellis.events.columns.arrow import Numbers, Operand, at_least_one, from_numbers, is_valid, null, numbers, pa, pc
from trellis.events.columns.types import physical
from trellis.language.bound import Operation
from trellis.language.schema import Kind, Type
from trellis.language.times import format_timestamp, parse_timestamp

LARGEST_WHOLE = float(1 << 52)  # from here on doubles have no digits behind the point
WIDE = Context(prec=700)


def scalar(operation: Operation, operands: list[Operand]) -> Operand:
    """Compute a scalar function; where its domain ends its value is NULL."""
    target = physical(operation.type)
    if any(pa.types.is_null(x.type) for x in operands):
        return null(target)
    if operation.function == "cast":
        return _cast(operands[0], operation.arguments[0].type, operation.type)
    return SCALARS[operation.function](*operands)


# --- Numbers ----------------------------------------------------------------------------------------------------


def _rounded(x: Operand, places: Operand | None = None) -> Operand:
    """Round half away from zero, as the shortest decimal that stands for a double has its digits."""
    digits = 0 if places is None else int(places.as_py())
    if pa.types.is_decimal(x.type):
        return _rounded_decimal(x, digits)
    if pa.types.is_integer(x.type):
        return x if digits >= 0 else _mapped(x, lambda values: _rounded_integers(values, 10**-digits))
    return _mapped(x, lambda values: round_half_away(values, digits))


def round_half_away(values: Numbers, digits: int) -> Numbers:
    """Round doubles to so many decimal places, half away from zero.

    A double is half-way if it is the one nearest to the decimal that is: 2.675 is rounded to 2.68, though the double
    itself lies a little below.
    """
    size = np.abs(values)
    unit = 10.0 ** abs(digits)

    def decimal(number: Numbers, scale: float = 1.0) -> Numbers:
        """Return the double nearest to `number / scale` units; both are whole, so one division rounds once."""
        return number / (scale * unit) if digits >= 0 else number * unit / scale

    with np.errstate(over="ignore", invalid="ignore"):
        whole = np.floor(size * unit if digits >= 0 else size / unit)
        whole = np.where(decimal(whole) > size, whole - 1, whole)
        whole = np.where(decimal(whole + 1) <= size, whole + 1, whole)
        up = size >= decimal((2 * whole + 1) * 5, 10.0)
        found = decimal(np.where(up, whole + 1, whole))
        units = size * unit if digits >= 0 else size
    result: Numbers = np.where(units < 2 * LARGEST_WHOLE, np.copysign(found, values), values)
    # Where doubles are as far apart as the digits that decide, several decimals stand for one: read the shortest.
    apart = (units * 16 >= LARGEST_WHOLE) & (np.isfinite(size) if digits < 0 else units < 2 * LARGEST_WHOLE)
    for place in np.flatnonzero(apart):
        shortest = Decimal(repr(float(values[place])))
        result[place] = float(shortest.quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP, WIDE))
    return result


def _rounded_integers(values: Numbers, unit: int) -> Numbers:
    rest = np.remainder(np.abs(values), unit)
    away = np.abs(values) - rest + np.where(2 * rest >= unit, unit, 0)
    return np.sign(values) * away


def _rounded_decimal(x: Operand, digits: int) -> Operand:
    scale = min(x.type.scale, max(digits, 0))
    found = pc.round(x, ndigits=digits, round_mode="half_towards_infinity")
    return found.cast(decimals.type_of(scale))


def _floor(x: Operand) -> Operand:
    return _toward(x, pc.floor)


def _ceil(x: Operand) -> Operand:
    return _toward(x, pc.ceil)


def _toward(x: Operand, function: Callable[[Operand], Operand]) -> Operand:
    if pa.types.is_integer(x.type):
        return x
    found = function(x)
    return found.cast(decimals.type_of(0)) if pa.types.is_decimal(x.type) else found


def _of_doubles(function: Callable[[Operand], Operand]) -> Callable[[Operand], Operand]:
    def applied(x: Operand) -> Operand:
        return without_nan(function(decimals.to_double(x)))

    return applied


def _logarithm(x: Operand) -> Operand:
    positive = pc.if_else(pc.greater(x, pa.scalar(0.0)), x, null(x.type))
    return pc.ln(positive)


def _mapped(x: Operand, function: Callable[[Numbers], Numbers]) -> Operand:
    column = at_least_one(x)
    return from_numbers(function(numbers(column, 0)), is_valid(column), (x,))


# --- Texts and times --------------------------------------------------------------------------------------------


def _substring(x: Operand, begin: Operand, length: Operand | None = None) -> Operand:
    start = int(begin.as_py()) - 1
    stop = None if length is None else start + max(int(length.as_py()), 0)
    return pc.utf8_slice_codeunits(x, start, stop)


def _whole(function: Callable[[Operand], Operand]) -> Callable[[Operand], Operand]:
    return lambda x: function(x).cast(pa.int64())


def _second(x: Operand) -> Operand:
    return pc.second(x)


# --- Casts ------------------------------------------------------------------------------------------------------


def _cast(x: Operand, source: Type, target: Type) -> Operand:
    if source.kind is target.kind:
        return x
    if source.kind is Kind.STRING:
        return _read(x, target)
    if target.kind is Kind.STRING:
        return _written(x, source)
    if target.kind is Kind.INTEGER and source.kind in (Kind.DOUBLE, Kind.DECIMAL):
        return _truncated(x)
    if target.kind is Kind.DOUBLE:
        return decimals.to_double(x.cast(pa.int8()) if source.kind is Kind.BOOLEAN else x)
    return x.cast(physical(target))


def _truncated(x: Operand) -> Operand:
    """Cut what stands behind the point off; what does not fit 64 bits is NULL."""
    whole = pc.trunc(x)
    low, high = (pa.scalar(float(bound)) for bound in (-(2**63), 2**63))
    sizes = decimals.to_double(whole)
    fits = pc.and_(pc.greater_equal(sizes, low), pc.less(sizes, high))
    return pc.if_else(fits, whole, null(whole.type)).cast(pa.int64())


def _written(x: Operand, source: Type) -> Operand:
    if source.kind in (Kind.INTEGER, Kind.BOOLEAN, Kind.DECIMAL):
        return x.cast(pa.string())
    show = repr if source.kind is Kind.DOUBLE else lambda micros: format_timestamp(int(micros))
    column = at_least_one(x)
    values = column if source.kind is Kind.DOUBLE else column.view(pa.int64())
    return _by_value(values, x, show, pa.string())


def _read(x: Operand, target: Type) -> Operand:
    return _by_value(at_least_one(x), x, READERS[target.kind], physical(target))


def _by_value(column: Operand, like: Operand, function: Callable[..., object], type_: object) -> Operand:
    """Apply a function once to each different value."""
    coded = column.dictionary_encode()
    known = [None if value is None else function(value) for value in coded.dictionary.to_pylist()]
    found = pa.array(known, type_).take(coded.indices)
    return found[0] if isinstance(like, pa.Scalar) else found


def _integer(text: str) -> int | None:
    try:
        number = int(text)
    except ValueError:
        return None
    return number if -(2**63) <= number < 2**63 and text.isascii() and "_" not in text else None


def _double(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return None if number != number or "_" in text else number


def _boolean(text: str) -> bool | None:
    return {"true": True, "false": False}.get(text.strip().lower())


READERS: dict[Kind, Callable[[str], object]] = {
    Kind.INTEGER: _integer,
    Kind.DOUBLE: _double,
    Kind.BOOLEAN: _boolean,
    Kind.TIMESTAMP: parse_timestamp,
}

SCALARS: dict[str, Callable[..., Operand]] = {
    "round": _rounded,
    "floor": _floor,
    "ceil": _ceil,
    "sqrt": _of_doubles(pc.sqrt),
    "ln": _of_doubles(_logarithm),
    "exp": _of_doubles(pc.exp),
    "lower": pc.utf8_lower,
    "upper": pc.utf8_upper,
    "substr": _substring,
    "char_length": _whole(pc.utf8_length),
    "year": _whole(pc.year),
    "month": _whole(pc.month),
    "day": _whole(pc.day),
    "hour": _whole(pc.hour),
    "minute": _whole(pc.minute),
    "second": _whole(_second),
    "day_of_week": _whole(lambda x: pc.day_of_week(x, count_from_zero=False, week_start=1)),
    "cast": _truncated,  # by the types: see `scalar`
}
