"""Arithmetic on columns: 64-bit integers that never wrap, exact decimals, doubles whose NaN is NULL."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from trellis.errors import OverflowInCondition
from trellis.events.columns import decimals
from trellis.events.columns.arrow import (
    Operand,
    at_least_one,
    from_numbers,
    is_floating,
    is_micros,
    is_scalar,
    is_valid,
    null,
    numbers,
    pa,
    pc,
)
from trellis.events.columns.types import physical
from trellis.language.bound import Operation
from trellis.language.schema import Kind, Type
from trellis.language.times import format_timestamp

_INTEGERS = {"+": pc.add_checked, "-": pc.subtract_checked, "*": pc.multiply_checked}
_DOUBLES = {"+": pc.add, "-": pc.subtract, "*": pc.multiply}
_DECIMALS = {"+": decimals.add, "-": decimals.subtract, "*": decimals.multiply, "%": decimals.remainder}
_SIGNS_CHECKED = {"negative": pc.negate_checked, "abs": pc.abs_checked}
_SIGNS = {"negative": pc.negate, "abs": pc.abs}
_MISFITS = (pa.ArrowInvalid, decimals.TooWide)


def without_nan(x: Operand) -> Operand:
    """NaN made NULL."""
    if not is_floating(x):
        return x
    if not is_scalar(x) and not x.null_count and not np.isnan(x.to_numpy(zero_copy_only=False)).any():
        return x
    nan = pc.is_nan(x)
    some = nan.as_py() if is_scalar(x) else pc.any(nan).as_py()
    return pc.if_else(nan, null(x.type), x) if some else x


def compute(operation: Operation, operands: list[Operand]) -> Operand:
    """Compute an arithmetic operation: + - * / %, `negative`, `abs`.

    Parameters
    ----------
    operation
        The operation; its type is the type of the result.
    operands
        Its arguments, evaluated.

    Returns
    -------
    Operand
        In the physical form of the operation's type; a scalar where all the operands are.

    Raises
    ------
    OverflowInCondition
        If an integer leaves 64 bits or a decimal 76 digits.
    """
    if any(pa.types.is_null(x.type) for x in operands):
        return null(physical(operation.type))
    function = _function(operation)
    try:
        return function(*operands)
    except _MISFITS:
        raise _overflow(operation, function, operands) from None


def convert(operation: Operation, x: Operand) -> Operand:
    """Convert an argument of an operation to the operation's own type (for COALESCE)."""
    target = physical(operation.type)
    if pa.types.is_null(x.type):
        return null(target)
    if x.type == target:
        return x
    if operation.type.kind is Kind.DOUBLE:
        return decimals.to_double(x)
    try:
        return decimals.from_number(x, operation.type.scale)
    except decimals.TooWide:
        raise _overflow(operation, lambda y: decimals.from_number(y, operation.type.scale), [x]) from None


# --- One function for each operation and type -------------------------------------------------------------------


def _function(operation: Operation) -> Callable[..., Operand]:
    name, kind = operation.function, operation.type.kind
    if name == "/":
        return _divide
    if kind is Kind.DOUBLE:
        return lambda *xs: _on_doubles(name, *(decimals.to_double(x) for x in xs))
    if kind is Kind.DECIMAL:
        return lambda *xs: _on_decimals(name, *(_decimal(x) for x in xs))
    return lambda *xs: _as(operation.type, _on_integers(name, *(_integer(x) for x in xs)))


def _divide(a: Operand, b: Operand) -> Operand:
    """Real division of anything that has numbers; by zero NULL."""
    dividend, divisor = (decimals.to_double(_integer(x)) for x in (a, b))
    return without_nan(pc.divide(dividend, _nonzero(divisor)))


def _on_doubles(name: str, *xs: Operand) -> Operand:
    if name in _SIGNS:
        return _SIGNS[name](*xs)
    return without_nan(_remainder(*xs) if name == "%" else _DOUBLES[name](*xs))


def _on_decimals(name: str, *xs: Operand) -> Operand:
    return _SIGNS[name](*xs) if name in _SIGNS else _DECIMALS[name](*xs)


def _on_integers(name: str, *xs: Operand) -> Operand:
    if name in _SIGNS_CHECKED:
        return _SIGNS_CHECKED[name](*xs)
    return _remainder(*xs) if name == "%" else _INTEGERS[name](*xs)


def _remainder(a: Operand, b: Operand) -> Operand:
    columns = at_least_one(a), at_least_one(_nonzero(b))
    with np.errstate(invalid="ignore"):
        rest = np.fmod(numbers(columns[0], 0), numbers(columns[1], 1))
    return from_numbers(rest, is_valid(columns[0]) & is_valid(columns[1]), (a, b))


def _nonzero(x: Operand) -> Operand:
    return pc.if_else(pc.equal(x, pa.scalar(0, x.type)), null(x.type), x)


def _integer(x: Operand) -> Operand:
    """Times and durations as integers; what is a number stays."""
    if not is_micros(x):
        return x
    return x.cast(pa.int64()) if is_scalar(x) else x.view(pa.int64())


def _decimal(x: Operand) -> Operand:
    return x if pa.types.is_decimal(x.type) else decimals.from_number(x, 0)


def _as(type_: Type, x: Operand) -> Operand:
    return x.cast(physical(type_)) if is_scalar(x) else x.view(physical(type_))


# --- Overflow ---------------------------------------------------------------------------------------------------


def _overflow(operation: Operation, function: Callable[..., Operand], operands: list[Operand]) -> OverflowInCondition:
    row = _first_misfit(function, operands)
    written = _written(operation.function, [_shown(x if is_scalar(x) else x[row]) for x in operands])
    room = f"{decimals.WIDEST} digits" if operation.type.kind is Kind.DECIMAL else "64 bits"
    return OverflowInCondition(
        f"`{operation.source or operation.function}` does not fit {room} in a row where it is {written}",
        "Multiply by 1.0 first to compute with doubles." if operation.type.kind is Kind.INTEGER else None,
    )


def _written(function: str, values: list[str]) -> str:
    if len(values) == 2:
        return f"{values[0]} {function} {values[1]}"
    return {"negative": f"-({values[0]})", "abs": f"ABS({values[0]})"}.get(function, values[0])


def _first_misfit(function: Callable[..., Operand], operands: list[Operand]) -> int:
    """Halve the rows until one is left that fails."""
    low, high = 0, max((len(x) for x in operands if not is_scalar(x)), default=1)
    while high - low > 1:
        middle = (low + high) // 2
        try:
            function(*(x if is_scalar(x) else x[low:middle] for x in operands))
            low = middle
        except _MISFITS:
            high = middle
    return low


def _shown(x: Operand) -> str:
    if pa.types.is_timestamp(x.type):
        try:
            return format_timestamp(x.value)
        except (OverflowError, ValueError):
            return f"{x.value} microseconds after 1970"
    return f"{x.value} microseconds" if pa.types.is_duration(x.type) else str(x.as_py())
