"""Values and expressions: arithmetic in three-valued logic, with NaN as NULL and 64-bit integers."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Any

from trellis.language import syntax

from .events import MICROSECOND, OracleError, to_micros
from .functions import CAST_KINDS, FUNCTIONS, cast

Evaluate = Callable[[Any], Any]
EXACT = Context(prec=500)
NUMBERS = {"int", "float", "decimal"}


class OracleOverflow(OracleError):
    """An integer left 64 bits."""


@dataclass(frozen=True, slots=True)
class Typed:
    """An expression ready to be evaluated, and the kind of its values.

    Kinds: int, float, decimal, string, bool, time, duration (both in microseconds), null (always NULL), id
    and array (only in RETURN and ORDER BY), point (a literal with a point that has not met its neighbour).
    """

    kind: str
    evaluate: Evaluate


Leaf = Callable[[syntax.Node], Typed | None]


def constant(kind: str, value: Any) -> Typed:
    """Make an expression that always has this value."""
    return Typed(kind, lambda _: value)


# --- Operations on values ---------------------------------------------------------------------------------


def int64(value: int) -> int:
    """Give `value` back, or raise where it does not fit 64 bits."""
    if not -(2**63) <= value < 2**63:
        raise OracleOverflow(f"{value} does not fit 64 bits")
    return value


def clean(value: Any) -> Any:
    """Make NaN NULL and check integers."""
    if isinstance(value, float):
        return None if math.isnan(value) else value
    if isinstance(value, int) and not isinstance(value, bool):
        return int64(value)
    return value


def arithmetic(op: str, a: Any, b: Any) -> Any:
    """Compute `a op b` on numbers: integers in 64 bits, decimals exactly, else (and for `/`) doubles."""
    if a is None or b is None:
        return None
    if op in "/%" and b == 0:
        return None
    if op == "/" or isinstance(a, float) or isinstance(b, float):
        return clean(_on_floats(op, float(a), float(b)))
    if isinstance(a, Decimal) or isinstance(b, Decimal):
        return _on_decimals(op, Decimal(a), Decimal(b))
    return int64(_on_integers(op, a, b))


def _on_floats(op: str, a: float, b: float) -> float:
    if op == "+":
        return a + b
    if op == "-":
        return a - b
    if op == "*":
        return a * b
    if op == "/":
        return a / b
    return math.nan if math.isinf(a) else math.fmod(a, b)


def _on_decimals(op: str, a: Decimal, b: Decimal) -> Decimal:
    named = {"+": EXACT.add, "-": EXACT.subtract, "*": EXACT.multiply, "%": EXACT.remainder}
    return named[op](a, b)


def _on_integers(op: str, a: int, b: int) -> int:
    if op == "+":
        return a + b
    if op == "-":
        return a - b
    if op == "*":
        return a * b
    rest = abs(a) % abs(b)
    return -rest if a < 0 else rest


def negative(value: Any) -> Any:
    """Compute `-value`."""
    if value is None:
        return None
    return EXACT.minus(value) if isinstance(value, Decimal) else clean(-value)


def absolute(value: Any) -> Any:
    """Compute the absolute value."""
    if value is None:
        return None
    return EXACT.abs(value) if isinstance(value, Decimal) else clean(abs(value))


# --- Expressions ------------------------------------------------------------------------------------------


def compile_expression(node: syntax.Node, leaf: Leaf, params: Mapping[str, Any]) -> Typed:
    """Make an expression ready; `leaf` gives a meaning to the nodes that speak of events."""

    def recur(inner: syntax.Node) -> Typed:
        return compile_expression(inner, leaf, params)

    def test_of(inner: syntax.Node) -> Evaluate:
        from .conditions import compile_condition

        return compile_condition(inner, leaf, params)

    own = leaf(node)
    if own is not None:
        return own
    match node:
        case syntax.Integer(value):
            return constant("int", int64(value))
        case syntax.Real(value):
            return constant("point", value)
        case syntax.String(value):
            return constant("string", value)
        case syntax.Boolean(value):
            return constant("bool", value)
        case syntax.Timestamp(micros):
            return constant("time", micros)
        case syntax.Duration(micros):
            return constant("duration", micros)
        case syntax.Parameter(name):
            return parameter(name, params)
        case syntax.Negative(syntax.Integer(value)):
            return constant("int", int64(-value))
        case syntax.Negative(operand):
            return _negative(recur(operand))
        case syntax.Arithmetic(op, left, right):
            return _arithmetic(op, *settle(recur(left), recur(right)))
        case syntax.Call("ABS", (argument,)):
            (inner,) = settle(recur(argument))
            _require(inner, NUMBERS | {"duration", "null"})
            return Typed(inner.kind, lambda at: absolute(inner.evaluate(at)))
        case syntax.Call("COALESCE", arguments):
            return _coalesce(*settle(*(recur(argument) for argument in arguments)))
        case syntax.Call(function, arguments):
            return _function(function, *settle(*(recur(argument) for argument in arguments)))
        case syntax.Case(tests, values, otherwise):
            given = [*values] if otherwise is None else [*values, otherwise]
            return _case([test_of(test) for test in tests], settle(*map(recur, given)))
        case syntax.Cast(operand, name):
            (inner,) = settle(recur(operand))
            kind = CAST_KINDS[name]
            return Typed(kind, lambda at: _unless_null(lambda x: cast(x, inner.kind, kind), inner.evaluate(at)))
    raise OracleError(f"{node!r} has no meaning here")


def parameter(name: str, params: Mapping[str, Any]) -> Typed:
    """Read a parameter's value as a literal: a float or Decimal is a literal with a point."""
    if name not in params:
        raise OracleError(f"no value for the parameter {name}")
    value = params[name]
    if isinstance(value, bool):
        return constant("bool", value)
    if isinstance(value, int):
        return constant("int", int64(value))
    if isinstance(value, float):
        return constant("point", Decimal(repr(value)))
    if isinstance(value, Decimal):
        return constant("point", value)
    if isinstance(value, str):
        return constant("string", value)
    if isinstance(value, dt.timedelta):
        return constant("duration", value // MICROSECOND)
    if isinstance(value, dt.date):
        return constant("time", to_micros(value))
    raise OracleError(f"parameter {name} has the value {value!r}")


def settle(*operands: Typed) -> tuple[Typed, ...]:
    """Decide what literals with a point are: decimals beside a decimal, else doubles."""
    beside_decimal = any(operand.kind == "decimal" for operand in operands)
    return tuple(_settled(operand, beside_decimal) if operand.kind == "point" else operand for operand in operands)


def _settled(point: Typed, beside_decimal: bool) -> Typed:
    value = point.evaluate(None)
    return constant("decimal", value) if beside_decimal else constant("float", float(value))


def _require(operand: Typed, kinds: set[str]) -> None:
    if operand.kind not in kinds:
        raise OracleError(f"a value of kind {operand.kind} where one of {sorted(kinds)} is needed")


def _negative(operand: Typed) -> Typed:
    _require(operand, NUMBERS | {"duration", "null", "point"})
    if operand.kind == "point":
        return constant("point", EXACT.minus(operand.evaluate(None)))
    return Typed(operand.kind, lambda at: negative(operand.evaluate(at)))


def _arithmetic(op: str, left: Typed, right: Typed) -> Typed:
    kind = _result_kind(op, left.kind, right.kind)
    return Typed(kind, lambda at: arithmetic(op, left.evaluate(at), right.evaluate(at)))


def _result_kind(op: str, left: str, right: str) -> str:
    if "null" in (left, right):
        return "null"
    if left in NUMBERS and right in NUMBERS:
        if op == "/" or "float" in (left, right):
            return "float"
        return "decimal" if "decimal" in (left, right) else "int"
    kinds = {
        ("time", "-", "time"): "duration",
        ("time", "+", "duration"): "time",
        ("time", "-", "duration"): "time",
        ("duration", "+", "time"): "time",
        ("duration", "+", "duration"): "duration",
        ("duration", "-", "duration"): "duration",
        ("duration", "%", "duration"): "duration",
        ("duration", "/", "duration"): "float",
    }
    if (left, op, right) in kinds:
        return kinds[left, op, right]
    if (left == "duration" and right in NUMBERS and op in "*/") or (
        right == "duration" and left in NUMBERS and op == "*"
    ):
        return "duration"
    raise OracleError(f"{left} {op} {right} has no meaning")


def _function(name: str, *operands: Typed) -> Typed:
    kind, function = FUNCTIONS[name]

    def evaluate(at: Any) -> Any:
        values = [operand.evaluate(at) for operand in operands]
        return None if None in values else clean(function(*values))

    return Typed(kind or operands[0].kind, evaluate)


def _unless_null(function: Evaluate, value: Any) -> Any:
    return None if value is None else function(value)


def _case(tests: list[Evaluate], operands: tuple[Typed, ...]) -> Typed:
    kind, convert = _common(*operands)

    def evaluate(at: Any) -> Any:
        values = [operand.evaluate(at) for operand in operands]
        holding = next((i for i, test in enumerate(tests) if test(at)), len(tests))
        value = values[holding] if holding < len(values) else None
        return None if value is None else convert(value)

    return Typed(kind, evaluate)


def _common(*operands: Typed) -> tuple[str, Callable[[Any], Any]]:
    """Find the one kind of several values, and how to make it of them."""
    kinds = {operand.kind for operand in operands} - {"null"}
    if len(kinds) > 1:
        if not kinds <= NUMBERS:
            raise OracleError(f"values of different kinds: {sorted(kinds)}")
        kinds = {"float"} if "float" in kinds else {"decimal"}
    kind = kinds.pop() if kinds else "null"
    convert: Callable[[Any], Any] = {"float": float, "decimal": Decimal}.get(kind, lambda value: value)
    return kind, convert


def _coalesce(*operands: Typed) -> Typed:
    kind, convert = _common(*operands)

    def evaluate(at: Any) -> Any:
        values = [operand.evaluate(at) for operand in operands]
        return next((convert(value) for value in values if value is not None), None)

    return Typed(kind, evaluate)
