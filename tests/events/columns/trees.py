"""Random bound trees over columns of every type, and what they are worth, row by row, in plain Python."""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal
from functools import reduce
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from tests.oracle.conditions import both, compare, either, like, opposite
from tests.oracle.values import EXACT, OracleOverflow, absolute, arithmetic, negative
from trellis.events.columns.types import from_arrow, normalise
from trellis.language.bound import Column, Constant, Operation, Value, columns_of
from trellis.language.schema import BOOLEAN, DOUBLE, DURATION, INTEGER, STRING, TIMESTAMP, UNKNOWN, Kind, Type, decimal
from trellis.language.syntax import Which

EXTREMES = [-(2**63), -(2**63) + 1, -(2**53) - 1, -7, -1, 0, 1, 2, 3, 7, 2**31, 2**53, 2**53 + 1, 2**62, 2**63 - 1]
WORDS = ["", "a", "b", "ab", "a%", "a_b", "é", "\uffff", "\U00010000", "a\nb", "\\", "%", "A", "a.b", "\0", "(x)+"]
PATTERNS = ["%", "_", "a%", "%b", "a_b", "__", "\\%", "a\\_b", "\\\\", "", "_%_", "%.%", "é", "\0", "(x)+", "a\n%"]

integers = st.sampled_from(EXTREMES) | st.integers(-(2**63), 2**63 - 1) | st.integers(-9, 9)
doubles = (
    st.sampled_from([math.nan, math.inf, -math.inf, -0.0, 0.0, 0.1, 0.5, 1.1, 2.0**53, 2.0**63, -(2.0**63), 5e-324])
    | st.floats()
    | st.integers(-9, 9).map(float)
)
micros = st.sampled_from([-(2**63), 2**63 - 1, 0, 1, -1, 86_400_000_000]) | st.integers(-(10**15), 10**15)


def decimals(width: int, scale: int) -> st.SearchStrategy[Decimal]:
    usual = st.sampled_from([0, 10**width - 1, 11 * 10**scale // 10])
    digits = usual | st.integers(-(10**width) + 1, 10**width - 1) | st.integers(-99, 99)
    return digits.map(lambda n: Decimal((n < 0, tuple(map(int, str(abs(n)))), -scale)))


COLUMNS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "i": (pa.int64(), integers),
    "j": (pa.int8(), st.integers(-3, 3)),
    "f": (pa.float64(), doubles),
    "g": (pa.float32(), st.floats(width=32)),
    "d": (pa.decimal128(9, 2), decimals(9, 2)),
    "e": (pa.decimal128(38, 18), decimals(38, 18)),
    "w": (pa.decimal256(76, 0), decimals(76, 0)),
    "s": (pa.string(), st.sampled_from(WORDS) | st.text(max_size=4)),
    "k": (pa.dictionary(pa.int32(), pa.string()), st.sampled_from(WORDS)),
    "b": (pa.bool_(), st.booleans()),
    "t": (pa.timestamp("us"), micros),
    "z": (pa.timestamp("s", "Europe/Berlin"), st.integers(-(10**9), 10**9)),
    "y": (pa.date32(), st.integers(-50_000, 50_000)),
    "r": (pa.duration("us"), micros),
    "n": (pa.null(), st.none()),
}
BOUND = {name: Column("v", name, Which.EACH, None, from_arrow(type_)) for name, (type_, _) in COLUMNS.items()}
PER_UNIT = {"z": 1_000_000, "y": 86_400_000_000}

constants = (
    integers.map(lambda x: Constant(x, INTEGER))
    | doubles.map(lambda x: Constant(x, DOUBLE))
    | decimals(4, 1).map(lambda x: Constant(x, decimal(1)))
    | decimals(30, 20).map(lambda x: Constant(x, decimal(20)))
    | st.sampled_from(WORDS).map(lambda x: Constant(x, STRING))
    | st.booleans().map(lambda x: Constant(x, BOOLEAN))
    | micros.map(lambda x: Constant(x, TIMESTAMP))
    | micros.map(lambda x: Constant(x, DURATION))
    | st.sampled_from([INTEGER, DOUBLE, STRING, decimal(3), TIMESTAMP]).map(lambda x: Constant(None, x))
)  # fmt: skip
leaves = st.sampled_from(list(BOUND.values())) | st.sampled_from(list(BOUND.values())) | constants


def comparable(a: Type, b: Type) -> bool:
    if Kind.UNKNOWN in (a.kind, b.kind) or (a.numeric and b.numeric) or (a.temporal and b.temporal):
        return True
    return a.kind is b.kind


def merged(a: Type, b: Type) -> Type:
    """The type of COALESCE, and of + - % on numbers."""
    if a.numeric and b.numeric:
        if DOUBLE in (a, b):
            return DOUBLE
        return INTEGER if a == b == INTEGER else decimal(max(a.scale, b.scale))
    if a.temporal and b.temporal:
        return TIMESTAMP
    return a if b == UNKNOWN else b


def computed(op: str, a: Type, b: Type) -> Type | None:
    """The type of arithmetic, or None where it has no meaning."""
    if a.numeric and b.numeric:
        type_ = DOUBLE if op == "/" else merged(a, b)
        return decimal(a.scale + b.scale) if op == "*" and type_.kind is Kind.DECIMAL else type_
    if UNKNOWN in (a, b):
        return None if {a, b} & {STRING, BOOLEAN} else UNKNOWN
    if a.temporal or b.temporal:
        if a.temporal and b.temporal:
            return DURATION if op == "-" else None
        return TIMESTAMP if (op == "+" and DURATION in (a, b)) or (op == "-" and b == DURATION) else None
    if a == b == DURATION:
        return {"+": DURATION, "-": DURATION, "%": DURATION, "/": DOUBLE}.get(op)
    return DURATION if op == "*" and {a, b} == {DURATION, INTEGER} else None


@st.composite
def values(draw: Any, depth: int = 3) -> Value:
    """Any value; what the types do not allow becomes its first argument."""
    if depth == 0 or draw(st.integers(0, 4)) == 0:
        return draw(leaves)
    first = draw(values(depth - 1))
    function = draw(st.sampled_from(["+", "-", "*", "/", "%", "negative", "abs", "coalesce"]))
    if function in ("negative", "abs"):
        signed = first.type.numeric or first.type.kind in (Kind.DURATION, Kind.UNKNOWN)
        return Operation(function, (first,), first.type, "signed") if signed else first
    second = draw(values(depth - 1))
    if function == "coalesce":
        third = draw(values(depth - 1))
        kept = tuple(x for x in (first, second, third) if comparable(first.type, x.type))
        alike = all(comparable(x.type, y.type) for x in kept for y in kept)
        return Operation(function, kept, reduce(merged, (x.type for x in kept)), "merged") if alike else first
    type_ = computed(function, first.type, second.type)
    return first if type_ is None else Operation(function, (first, second), type_, "computed")


@st.composite
def conditions(draw: Any, depth: int = 2) -> Value:
    if depth and draw(st.booleans()):
        function = draw(st.sampled_from(["and", "or", "not"]))
        terms = draw(st.lists(conditions(depth - 1), min_size=2, max_size=3))
        return Operation(function, tuple(terms[:1] if function == "not" else terms))
    function = draw(st.sampled_from(["compare"] * 5 + ["is null", "like", "truth"]))
    if function == "truth":
        return BOUND[draw(st.sampled_from("bn"))]
    first = draw(values(2))
    if function == "like" and first.type.kind in (Kind.STRING, Kind.UNKNOWN):
        return Operation("like", (first, Constant(draw(st.sampled_from(PATTERNS)), STRING)))
    if function == "compare":
        second = next((x for x in (draw(values(1)) for _ in range(3)) if comparable(first.type, x.type)), first)
        ordered = Kind.BOOLEAN not in (first.type.kind, second.type.kind)
        op = draw(st.sampled_from(["=", "!=", "<", "<=", ">", ">="] if ordered else ["=", "!="]))
        return Operation(op, (first, second))
    return Operation("is null", (first,))


Table = dict[str, list[Any]]


@st.composite
def cases(draw: Any, of: st.SearchStrategy[Value]) -> tuple[Value, int, Table]:
    """A value, a number of rows, and the columns that it reads."""
    value, rows = draw(of), draw(st.integers(1, 4))
    names = sorted({column.name for column in columns_of(value)})
    kinds = {name: st.none() | COLUMNS[name][1] for name in names}
    return value, rows, {name: draw(st.lists(kinds[name], min_size=rows, max_size=rows)) for name in names}


def arrow_columns(table: Table) -> dict[str, pa.Array]:
    """Normalised arrays; each is a slice of a longer one, as arrays may be."""
    longer = {name: pa.array([values[0], *values], COLUMNS[name][0]) for name, values in table.items()}
    return {name: normalise(array[1:], BOUND[name].type) for name, array in longer.items()}


def plain_row(table: Table, row: int) -> dict[str, Any]:
    """A row of Python values: NaN is None, times are microseconds."""
    return {
        name: None if values[row] != values[row] else in_micros(name, values[row]) for name, values in table.items()
    }


def in_micros(name: str, value: Any) -> Any:
    return value * PER_UNIT[name] if name in PER_UNIT and value is not None else value


def worth(value: Value, row: Mapping[str, Any]) -> Any:
    """Evaluate a tree for one row.

    Raises OracleOverflow where an integer leaves 64 bits or a decimal 76 digits.
    """
    if isinstance(value, Column):
        return row[value.name]
    if isinstance(value, Constant):
        return None if value.value != value.value else value.value
    return _applied(value, [worth(argument, row) for argument in value.arguments])


def _applied(operation: Operation, xs: list[Any]) -> Any:
    match operation.function:
        case "and":
            return both(xs)
        case "or":
            return either(xs)
        case "not":
            return opposite(xs[0])
        case "is null":
            return xs[0] is None
        case "like":
            return like(xs[0], xs[1])
        case "=" | "!=" | "<" | "<=" | ">" | ">=":
            return compare(operation.function, xs[0], xs[1])
        case "negative":
            return negative(xs[0])
        case "abs":
            return absolute(xs[0])
        case "coalesce":
            return next((x for x in [_fitted(operation, x) for x in xs] if x is not None), None)
        case op:
            return _fitted(operation, arithmetic(op, xs[0], xs[1]))


def _fitted(operation: Operation, x: Any) -> Any:
    """A value in the type of an operation."""
    if x is None:
        return None
    if operation.type.kind is Kind.DOUBLE:
        return float(x)
    if operation.type.kind is Kind.DECIMAL:
        whole = EXACT.scaleb(EXACT.abs(Decimal(x)), operation.type.scale)
        if operation.type.scale > 76 or whole >= 10**76:
            raise OracleOverflow(f"{x} has more than 76 digits")
        return Decimal(x)
    return x
