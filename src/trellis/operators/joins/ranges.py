"""The ranges of numbers that are computed of several events: kernels take those that stay within 64 bits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

import pyarrow as pa
import pyarrow.compute as pc

from trellis.language.bound import Column, Constant, Operation, Value, columns_of
from trellis.language.schema import Kind

WIDEST = 1 << 63
EXACT = 1 << 53
WHOLE = (Kind.INTEGER, Kind.TIMESTAMP, Kind.DATE, Kind.DURATION)
Range = tuple[int, int]
PROGRAMMED = frozenset(
    (*"+-*/%=<>", "!=", "<=", ">=", "and", "or", "not", "is null", "like", "coalesce", "case", "negative", "abs",
     "floor", "ceil", "sqrt", "ln", "exp")
)  # fmt: skip
ROUNDED = frozenset(("round",))  # the doubles next to some decimals are not told apart


class ColumnRanges:
    """Tells which numbers that conditions and keys compute of columns stay within 64 bits."""

    def __init__(self, columns: Mapping[str, pa.Array]) -> None:
        self._columns = columns
        self._known: dict[str, Range | None] = {}

    def can_compute(self, value: Value, functions: Set[str] = PROGRAMMED) -> bool:
        """Return whether some functions compute a value, and no whole number can leave 64 bits, nor a decimal 53."""
        try:
            self.of(value)
        except OverflowError:
            return False
        return _is_program(value, functions)

    def _of_column(self, column: Column) -> Range | None:
        """Return the least and the greatest value of a column as whole numbers; None without any, or for others."""
        if column.name not in self._known:
            values = self._columns[column.name]
            found = None
            if column.type.kind is Kind.DECIMAL:
                low, high = pc.min_max(values).as_py().values()
                scale = values.type.scale
                found = None if low is None else (int(low.scaleb(scale)), int(high.scaleb(scale)))
            elif not (pa.types.is_floating(values.type) or pa.types.is_null(values.type)) and column.type.kind in WHOLE:
                low, high = pc.min_max(values.cast(pa.int64())).as_py().values()
                found = None if low is None else (low, high)
            self._known[column.name] = found
        return self._known[column.name]

    def of(self, value: Value) -> Range | None:
        """Return the least and the greatest whole number, or digits of a decimal, that a value may be; None for others.

        Raises
        ------
        OverflowError
            If a whole number that it computes may leave 64 bits, or a decimal 53.
        """
        if isinstance(value, Column):
            return self._of_column(value)
        if isinstance(value, Constant):
            known = value.value
            if value.type.kind is Kind.DECIMAL and known is not None:
                return (int(known * 10**value.type.scale),) * 2
            return (known, known) if isinstance(known, int) and value.type.kind in WHOLE else None
        parts, arguments = [self.of(argument) for argument in value.arguments], value.arguments
        decimal = value.type.kind is Kind.DECIMAL
        if value.function == "case":
            parts, arguments = [*parts[1::2], parts[-1]], (*arguments[1::2], arguments[-1])
        if {argument.type.kind for argument in arguments} == {Kind.DECIMAL, Kind.DOUBLE}:
            _within([part for part in parts if part is not None], EXACT)  # compared as doubles hold them
        if value.function not in ("+", "-", "*", "%", "negative", "abs", "coalesce", "case", "floor", "ceil"):
            return (-WIDEST, WIDEST - 1) if value.type.kind in (*WHOLE, Kind.DECIMAL) else None
        if not decimal and value.type.kind not in WHOLE:
            if any(argument.type.kind is Kind.DECIMAL for argument in arguments):
                _within([part for part in parts if part is not None], EXACT)
            return None
        known_parts = [part or (0, 0) for part in parts]
        if decimal:
            known_parts = [
                (low * 10 ** max(0, value.type.scale - _scale(a)), high * 10 ** max(0, value.type.scale - _scale(a)))
                for (low, high), a in zip(known_parts, arguments, strict=True)
            ]
        found = _combined(value.function, known_parts)
        _within([found, *known_parts], EXACT if decimal else WIDEST)
        return found


def _is_program(value: Value, functions: Set[str]) -> bool:
    """Return whether all that a value computes of several events is one of some functions."""
    if not isinstance(value, Operation) or len({c.var for c in columns_of(value)}) < 2:
        return True
    return value.function in functions and all(_is_program(argument, functions) for argument in value.arguments)


def _scale(value: Value) -> int:
    return value.type.scale if value.type.kind is Kind.DECIMAL else 0


def _within(ranges: Sequence[Range], bound: int) -> None:
    if any(low < -bound or high >= bound for low, high in ranges):
        raise OverflowError


def _combined(function: str, parts: Sequence[Range]) -> Range:
    if function in ("coalesce", "case"):
        return min(low for low, _ in parts), max(high for _, high in parts)
    low, high = parts[0]
    if function in ("floor", "ceil"):
        return low, high
    if function == "negative":
        return -high, -low
    if function == "abs":
        return 0, max(abs(low), abs(high))
    other_low, other_high = parts[1]
    if function == "+":
        return low + other_low, high + other_high
    if function == "-":
        return low - other_high, high - other_low
    if function == "%":
        return min(low, 0), max(high, 0)
    corners = [a * b for a in (low, high) for b in (other_low, other_high)]
    return min(corners), max(corners)
