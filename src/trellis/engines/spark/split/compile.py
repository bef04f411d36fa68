"""Conditions as Spark columns, with the meaning of the language whatever the settings of the session.

Inside a compiled expression an integer is a `bigint`, a timestamp, date or duration is a `bigint` of microseconds, and
a `double` is never NaN.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import reduce
from operator import and_
from typing import Any

from pyspark.sql import Column as SparkColumn
from pyspark.sql import functions as f
from pyspark.sql.types import DecimalType, StringType

from trellis.engines.spark.session.raised import error_message
from trellis.engines.spark.sources.schema import interval_micros, precision_of, timestamp_micros
from trellis.engines.spark.split.exactness import LONG_KINDS, can_compile, digits_of
from trellis.language.bound import Column, Constant, Operation, Value
from trellis.language.schema import Kind, Type

Resolve = Callable[[Column], SparkColumn]

_MICROS_A_DAY = 86_400_000_000

_COMPARE: dict[str, Callable[[SparkColumn, SparkColumn], SparkColumn]] = {
    "=": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}
_SWAPPED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_PLAIN: dict[str, Callable[[SparkColumn, SparkColumn], SparkColumn]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": f.try_divide,
    "%": f.try_mod,
}
_CHECKED: dict[str, Callable[[SparkColumn, SparkColumn], SparkColumn]] = {
    "+": f.try_add,
    "-": f.try_subtract,
    "*": f.try_multiply,
}


def compile_condition(value: Value, resolve: Resolve) -> SparkColumn:
    """Return a condition, or any value, as a column of Spark.

    As in `trellis.events.columns.evaluate`, every part counts in every row: an overflow in one arm of an OR is an error
    whatever the other arm says.

    Parameters
    ----------
    value
        A condition or value of a bound query, for which `can_compile` holds.
    resolve
        Gives the column of the data frame for an attribute. A decimal must have at most the precision that the name
        of the attribute's type tells (`trellis.engines.spark.sources.schema.from_spark` writes it there).

    Returns
    -------
    pyspark.sql.Column
        Boolean for a condition: true, false or NULL.

    Raises
    ------
    ValueError
        If `can_compile` does not hold.
    """
    if not can_compile(value):
        raise ValueError(f"Spark cannot compute this exactly: {getattr(value, 'source', value)}")
    compiler = _Compiler(resolve)
    return _raising(compiler.failures, compiler.column(value))


def time_column(column: SparkColumn, type_: Type) -> SparkColumn:
    """Return a time as the number that the engine computes with.

    Returns
    -------
    pyspark.sql.Column
        Microseconds since the epoch for timestamps and dates, whatever the session's time zone; `bigint` for other
        integers, `double` for doubles (NULL for NaN), and decimals as they are.
    """
    failures = [_date_failure(column)] if type_.kind is Kind.DATE else []
    return _raising(failures, _column_of(column, type_))


# --- Compiling --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Failure:
    """A test for what can go wrong in a row, and the message about it."""

    test: SparkColumn
    message: SparkColumn


@dataclass(frozen=True, slots=True)
class _Compiler:
    """Turns bound trees into columns of Spark, and collects what can go wrong in them.

    An integer that does not fit is NULL in the column itself; the tests in `failures` find it.
    """

    resolve: Resolve
    failures: list[_Failure] = field(default_factory=list)

    def column(self, value: Value) -> SparkColumn:
        """Return a value as a column."""
        if isinstance(value, Constant):
            return _constant(value)
        if isinstance(value, Column):
            return self._attribute(self.resolve(value), value.type)
        match value.function:
            case "and" | "or" | "not":
                return self._logic(value)
            case "is null":
                return self.column(value.arguments[0]).isNull()
            case "like":
                return self._like(*value.arguments)
            case "coalesce":
                return f.coalesce(*(self._converted(x, value) for x in value.arguments))
            case "negative" | "abs":
                return self._signed(value)
            case function if function in _COMPARE:
                return self._comparison(function, *value.arguments)
            case _:
                return self._arithmetic(value)

    def _logic(self, value: Operation) -> SparkColumn:
        first, *others = (self.column(x) for x in value.arguments)
        if value.function == "not":
            return ~first
        for other in others:
            first = first & other if value.function == "and" else first | other
        return first

    def _like(self, value: Value, pattern: Value) -> SparkColumn:
        assert isinstance(pattern, Constant)
        return f.like(self.column(value), f.lit(_plain_pattern(str(pattern.value))))

    def _comparison(self, op: str, a: Value, b: Value) -> SparkColumn:
        kinds = (a.type.kind, b.type.kind)
        if kinds == (Kind.DOUBLE, Kind.INTEGER):
            return self._comparison(_SWAPPED[op], b, a)
        if kinds == (Kind.INTEGER, Kind.DOUBLE):
            return self._integer_with_double(op, a, b)
        if Kind.DECIMAL in kinds:
            return _COMPARE[op](self._decimal(a), self._decimal(b))
        return _COMPARE[op](self.column(a), self.column(b))

    def _integer_with_double(self, op: str, a: Value, b: Value) -> SparkColumn:
        """Compare exactly: round the integer to a double, and look closer only where that equals the other.

        Rounding keeps the order, so the rounded integer is below the double only if the integer is.
        """
        if isinstance(a, Constant) and a.value is not None and float(a.value) == a.value:
            return _COMPARE[op](f.lit(float(a.value)), self.column(b))
        if isinstance(b, Constant) and _is_int64(b.value):
            return _COMPARE[op](self.column(a), _long(int(b.value)))  # type: ignore[arg-type]
        whole, real = self.column(a), self.column(b)
        rounded, compare = whole.cast("double"), _COMPARE[op]
        return (
            f.when(rounded != real, compare(rounded, real))
            .when(whole.isNotNull() & (real >= f.lit(2.0**63)), compare(f.lit(0), f.lit(1)))
            .otherwise(compare(whole, real.try_cast("bigint")))
        )

    def _signed(self, value: Operation) -> SparkColumn:
        inner = self.column(value.arguments[0])
        if value.type.kind not in LONG_KINDS:
            return f.abs(inner) if value.function == "abs" else -inner
        opposite = f.try_subtract(_long(0), inner)
        self._check(value, opposite, inner)
        return opposite if value.function == "negative" else f.when(inner >= _long(0), inner).otherwise(opposite)

    def _arithmetic(self, value: Operation) -> SparkColumn:
        op, (left, right) = value.function, value.arguments
        if value.type.kind is Kind.DOUBLE:
            return _without_nan(_PLAIN[op](self._double(left), self._double(right)))
        if value.type.kind is Kind.DECIMAL:
            return _PLAIN[op](self._decimal(left), self._decimal(right))
        if op == "%":
            return f.try_mod(self.column(left), self.column(right))
        a, b = self.column(left), self.column(right)
        result = _CHECKED[op](a, b)
        self._check(value, result, a, b)
        return result

    def _check(self, value: Operation, result: SparkColumn, *operands: SparkColumn) -> None:
        """Remember to fail where there are operands and no result."""
        known = reduce(and_, (x.isNotNull() for x in operands))
        about = {
            "expression": value.source or value.function,
            "function": value.function,
            "kinds": [x.type.kind for x in value.arguments],
        }
        self.failures.append(_Failure(known & result.isNull(), error_message(about, *operands)))

    def _attribute(self, column: SparkColumn, type_: Type) -> SparkColumn:
        if type_.kind is Kind.DECIMAL:
            return _of_precision(column, type_)
        if type_.kind is Kind.DATE:
            self.failures.append(_date_failure(column))
        return _column_of(column, type_)

    def _double(self, value: Value) -> SparkColumn:
        inner = self.column(value)
        return inner if value.type.kind is Kind.DOUBLE else inner.cast("double")

    def _decimal(self, value: Value) -> SparkColumn:
        inner = self.column(value)
        return inner.cast(digits_of(value).type) if value.type.kind is Kind.INTEGER else inner

    def _converted(self, value: Value, result: Operation) -> SparkColumn:
        if result.type.kind is Kind.DOUBLE:
            return self._double(value)
        if result.type.kind is Kind.DECIMAL:
            return self._decimal(value).cast(digits_of(result).type)
        return self.column(value)


# --- What goes wrong --------------------------------------------------------------------------------------------


def _raising(failures: Sequence[_Failure], column: SparkColumn) -> SparkColumn:
    """Return the column, but raise where a test finds a failure."""
    if not failures:
        return column
    first, *others = failures
    chain = f.when(first.test, f.raise_error(first.message))
    for other in others:
        chain = chain.when(other.test, f.raise_error(other.message))
    return chain.otherwise(column)


# --- Leaves -----------------------------------------------------------------------------------------------------


def _column_of(column: SparkColumn, type_: Type) -> SparkColumn:
    match type_.kind:
        case Kind.INTEGER:
            return column.cast("bigint")
        case Kind.DOUBLE:
            return _without_nan(column.cast("double"))
        case Kind.STRING:
            return column.cast(StringType())  # out of any collation: compared by bytes
        case Kind.TIMESTAMP:
            return timestamp_micros(column, type_)
        case Kind.DATE:
            return _date_micros(column)
        case Kind.DURATION:
            return interval_micros(column)
        case _:
            return column


def _of_precision(column: SparkColumn, type_: Type) -> SparkColumn:
    """Give a decimal the precision that its type tells; where it has that, Spark leaves the cast out.

    What it is must not be asked of Spark: code that is generated for `typeof` does not compile.
    """
    return column.cast(DecimalType(precision_of(type_), type_.scale))


def _without_nan(column: SparkColumn) -> SparkColumn:
    return f.nanvl(column, f.lit(None).cast("double"))


def _date_micros(column: SparkColumn) -> SparkColumn:
    return f.try_multiply(f.unix_date(column).cast("bigint"), _long(_MICROS_A_DAY))


def _date_failure(column: SparkColumn) -> _Failure:
    """The test for a date that microseconds cannot tell, 290,000 years away."""
    test = column.isNotNull() & _date_micros(column).isNull()
    return _Failure(test, error_message({"function": "date"}, column))


def _constant(value: Constant) -> SparkColumn:
    given = value.value
    match value.type.kind:
        case Kind.DOUBLE:
            number = None if given is None else float(given)
            return f.lit(None if number is None or math.isnan(number) else number).cast("double")
        case Kind.DECIMAL:
            digits = None if given is None else format(Decimal(given), "f")
            return f.lit(digits).cast(digits_of(value).type)
        case Kind.STRING:
            return f.lit(given).cast(StringType())
        case Kind.BOOLEAN:
            return f.lit(given).cast("boolean")
        case _:
            return f.lit(given).cast("bigint")


def _long(number: int) -> SparkColumn:
    return f.lit(number).cast("bigint")


def _is_int64(number: Any) -> bool:
    return isinstance(number, float) and number.is_integer() and -(2.0**63) <= number < 2.0**63


def _plain_pattern(pattern: str) -> str:
    """Escape a pattern as Spark wants it: a backslash only before `%`, `_` and itself."""
    parts = re.findall(r"\\.|.", pattern, re.DOTALL)
    return "".join(_escaped(part) for part in parts)


def _escaped(part: str) -> str:
    literal = part[1] if len(part) == 2 else part
    if part in ("%", "_") or literal not in ("%", "_", "\\"):
        return literal
    return "\\" + literal
