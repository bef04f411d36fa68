"""Exactness on Spark: which conditions it can be given, and the digits that decimals need."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from pyspark.sql.types import DecimalType

from trellis.engines.spark.sources.schema import precision_of
from trellis.language.bound import Column, Constant, Operation, Value
from trellis.language.schema import Kind

LONG_KINDS = (Kind.INTEGER, Kind.TIMESTAMP, Kind.DATE, Kind.DURATION)
"""The kinds that are a `bigint` inside a compiled expression."""

_WIDEST_DECIMAL = 38
_LARGEST_EXPRESSION = 3_000
_KNOWN_KINDS = (*LONG_KINDS, Kind.DOUBLE, Kind.DECIMAL, Kind.STRING, Kind.BOOLEAN)
COMPILED = frozenset((
    "+", "-", "*", "/", "%", "negative", "abs", "coalesce", "=", "!=", "<", "<=", ">", ">=", "like", "and", "or", "not",
    "is null",
))  # fmt: skip
"""The functions that Spark computes exactly as the language has them; the others are left to Trellis's own tasks."""

_COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")


def can_compile(value: Value) -> bool:
    """Tell whether Spark can compute a condition or a value of a bound query exactly.

    It cannot where a decimal may need more than 38 digits, where decimals are compared with doubles, where a type is
    unknown, where a function is one that Spark has in another way, and where the expression is very large.

    Returns
    -------
    bool
        Whether `compile_condition` takes it.
    """
    return _is_exact(value) and _size(value) + _size_of_checks(value) <= _LARGEST_EXPRESSION


@dataclass(frozen=True, slots=True)
class Digits:
    """How many digits a decimal has before and behind its point, at most."""

    before: int
    behind: int

    @property
    def fit(self) -> bool:
        """Whether Spark has a type with so many."""
        return self.before + self.behind <= _WIDEST_DECIMAL

    @property
    def type(self) -> DecimalType:
        """The narrowest type that holds them."""
        return DecimalType(max(1, self.before + self.behind), self.behind)

    def widened(self, other: Digits) -> Digits:
        """Return the digits that hold both."""
        return Digits(max(self.before, other.before), max(self.behind, other.behind))


def _is_exact(value: Value) -> bool:
    if value.type.kind not in _KNOWN_KINDS:
        return False
    if isinstance(value, Constant):
        return value.type.kind is not Kind.DECIMAL or value.value is None or digits_of(value).fit
    if isinstance(value, Column):
        return True
    if value.function not in COMPILED or not all(map(_is_exact, value.arguments)):
        return False
    if value.function in _COMPARISONS:
        return _is_exact_comparison(*value.arguments)
    return value.type.kind is not Kind.DECIMAL or _fits_spark(value)


def _is_exact_comparison(a: Value, b: Value) -> bool:
    kinds = {a.type.kind, b.type.kind}
    if Kind.DECIMAL not in kinds:
        return True
    return Kind.DOUBLE not in kinds and digits_of(a).widened(digits_of(b)).fit


def _fits_spark(value: Operation) -> bool:
    """Tell whether a decimal result, in the type that Spark gives it, keeps all digits."""
    if not digits_of(value).fit:
        return False
    if value.function == "*":  # Spark adds a digit to a product's type
        a, b = (digits_of(x) for x in value.arguments)
        return Digits(a.before + b.before + 1, a.behind + b.behind).fit
    if value.function == "%":
        a, b = (digits_of(x) for x in value.arguments)
        return a.widened(b).fit
    return True


def digits_of(value: Value) -> Digits:
    """Return the digits of an integer or decimal value."""
    if isinstance(value, Constant):
        return _of_constant(value)
    if value.type.kind is Kind.INTEGER:
        return Digits(19, 0)
    if isinstance(value, Column):
        return Digits(precision_of(value.type) - value.type.scale, value.type.scale)
    parts = [digits_of(x) for x in value.arguments]
    match value.function:
        case "+" | "-":
            wide = parts[0].widened(parts[1])
            return Digits(wide.before + 1, wide.behind)
        case "*":
            return Digits(parts[0].before + parts[1].before, parts[0].behind + parts[1].behind)
        case "%":
            wide = parts[0].widened(parts[1])
            return Digits(min(parts[0].before, parts[1].before), wide.behind)
        case "coalesce":
            wide = parts[0]
            for part in parts[1:]:
                wide = wide.widened(part)
            return wide
        case _:
            return parts[0]


def _of_constant(value: Constant) -> Digits:
    if value.value is None:
        return Digits(1, value.type.scale)
    number = Decimal(value.value)
    return Digits(max(0, number.adjusted() + 1) if number else 1, value.type.scale)


def _size(value: Value) -> int:
    """Estimate the nodes of the compiled expression."""
    if not isinstance(value, Operation):
        return 4
    inner = sum(map(_size, value.arguments))
    kinds = {x.type.kind for x in value.arguments}
    mixed = value.function in _COMPARISONS and kinds == {Kind.INTEGER, Kind.DOUBLE}
    return inner * (4 if mixed else 3 if value.function == "abs" else 1) + 2


def _size_of_checks(value: Value) -> int:
    """Estimate the nodes of the tests for overflow: each has the operands again."""
    if not isinstance(value, Operation):
        return 0
    own = 4 * sum(map(_size, value.arguments)) if may_overflow(value) else 0
    return own + sum(map(_size_of_checks, value.arguments))


def may_overflow(value: Operation) -> bool:
    """Whether an operation can leave 64 bits."""
    return value.type.kind in LONG_KINDS and value.function in ("+", "-", "*", "negative", "abs")
