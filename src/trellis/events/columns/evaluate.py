"""Evaluates bound values and conditions over whole columns."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from functools import reduce

from trellis.errors import OverflowInCondition
from trellis.events.columns import decimals
from trellis.events.columns.arithmetic import compute, convert, without_nan
from trellis.events.columns.arrow import Array, Operand, is_scalar, null, pa, pc
from trellis.events.columns.functions import SCALARS, scalar
from trellis.events.columns.like import like_to_regex
from trellis.events.columns.mixed import signs
from trellis.events.columns.types import physical
from trellis.language.bound import Column, Constant, Operation, Value
from trellis.language.schema import Kind

Resolve = Callable[[Column], Array]

_COMPARISONS = {
    "=": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}
_MIRRORED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_ZERO = pa.scalar(0, pa.int8())


def evaluate(value: Value, resolve: Resolve, length: int) -> Array:
    """Evaluate a bound value or condition over all rows at once.

    Every part is evaluated in every row: an overflow in one arm of an OR is an error whatever the other arm says.
    Numbers of different types are compared exactly, as if written out in full; arithmetic on an integer or decimal
    beside a double is on doubles.

    Parameters
    ----------
    value
        The tree.
    resolve
        Gives the normalised array (see `trellis.events.columns.types.normalise`) for a column of the tree.
    length
        The number of rows.

    Returns
    -------
    pyarrow.Array
        `length` values in the physical form of the value's type; a condition is true, false or NULL. Never NaN.

    Raises
    ------
    OverflowInCondition
        If an integer leaves 64 bits or a decimal 76 digits; it names the expression and the operands of one row.
    """
    target = physical(value.type)
    if length == 0:
        return pa.array([], target)
    result = _evaluated(value, resolve)
    if pa.types.is_null(result.type):
        return pa.nulls(length, target)
    return pa.repeat(result, length) if is_scalar(result) else result


def evaluate_constant(value: Value, length: int) -> Array:
    """Evaluate a value that reads no column, for so many rows."""

    def no_columns(column: Column) -> Array:
        raise AssertionError(f"a constant reads no column, but this one reads {column.name}")

    return evaluate(value, no_columns, length)


def _evaluated(value: Value, resolve: Resolve) -> Operand:
    if isinstance(value, Column):
        return without_nan(resolve(value))
    if isinstance(value, Constant):
        return _constant(value)
    function, arguments = value.function, value.arguments
    if function == "like":
        return _like(_evaluated(arguments[0], resolve), arguments[1])
    operands = [_evaluated(argument, resolve) for argument in arguments]
    if function in _COMPARISONS:
        return compare(function, operands[0], operands[1])
    if function in _CONDITIONS:
        return _CONDITIONS[function](operands)
    if function == "coalesce":
        return pc.coalesce(*(convert(value, x) for x in operands))
    if function == "case":
        return _case(value, operands)
    if function in SCALARS:
        return scalar(value, operands)
    return compute(value, operands)


def _case(value: Operation, operands: list[Operand]) -> Operand:
    """Take the first value whose test is true, from the last test to the first."""
    *arms, result = operands
    result = convert(value, result)
    for test, chosen in zip(arms[-2::-2], arms[::-2], strict=True):
        given = null(pa.bool_()) if pa.types.is_null(test.type) else test
        result = pc.if_else(pc.fill_null(given, False), convert(value, chosen), result)
    return result


def _constant(constant: Constant) -> Operand:
    value = constant.value
    if constant.type.kind is Kind.DECIMAL and isinstance(value, int | Decimal):
        return _decimal_constant(Decimal(value), constant.type.scale)
    if constant.type.kind is Kind.DOUBLE and value is not None:
        value = None if value != value else float(value)  # no NaN
    return pa.scalar(value, physical(constant.type))


def _decimal_constant(value: Decimal, scale: int) -> Operand:
    try:
        return pa.scalar(value, decimals.type_of(scale))
    except (pa.ArrowInvalid, ValueError):
        raise OverflowInCondition(f"{value} has more than {decimals.WIDEST} digits") from None


# --- Conditions -------------------------------------------------------------------------------------------------


def compare(op: str, a: Operand, b: Operand) -> Operand:
    """Compare two operands of comparable types; numbers of different types exactly.

    Parameters
    ----------
    op
        One of = != < <= > >=.
    a, b
        Normalised arrays of the same length, or scalars; no NaN.

    Returns
    -------
    Operand
        True, false or NULL.
    """
    if pa.types.is_null(a.type) or pa.types.is_null(b.type):
        return null(pa.bool_())
    doubles = pa.types.is_floating(a.type), pa.types.is_floating(b.type)
    if doubles == (False, True):
        return _COMPARISONS[op](signs(a, b), _ZERO)
    if doubles == (True, False):
        return _COMPARISONS[_MIRRORED[op]](signs(b, a), _ZERO)
    if pa.types.is_decimal(a.type) or pa.types.is_decimal(b.type):
        return decimals.compare(
            _COMPARISONS[op], *(decimals.from_number(x, getattr(x.type, "scale", 0)) for x in (a, b))
        )
    return _COMPARISONS[op](a, b)


def _like(x: Operand, pattern: Value) -> Operand:
    assert isinstance(pattern, Constant)
    if pattern.value is None or pa.types.is_null(x.type):
        return null(pa.bool_())
    return pc.match_substring_regex(x, like_to_regex(str(pattern.value)))


def _booleans(operands: list[Operand]) -> list[Operand]:
    return [null(pa.bool_()) if pa.types.is_null(x.type) else x for x in operands]


_CONDITIONS: dict[str, Callable[[list[Operand]], Operand]] = {
    "is null": lambda xs: pa.scalar(True) if pa.types.is_null(xs[0].type) else pc.is_null(xs[0]),
    "and": lambda xs: reduce(pc.and_kleene, _booleans(xs)),
    "or": lambda xs: reduce(pc.or_kleene, _booleans(xs)),
    "not": lambda xs: pc.invert(_booleans(xs)[0]),
}
