"""Values beside names: ranges of numbers, and equal values, that tell leaves which cannot hold what a condition asks.

Each leaf has the least and the largest number of every numeric column, as doubles that are rounded outwards; and where
the archive was asked for it, the filters hold the items `name|column|value`. So of `a.amount > 10000` the leaves are
left out whose largest amount is less, and of `a.account = 'x'` those without an `A` of that account.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from trellis.archive.filters import Filters, Records, coded, distinct_pairs, hashes_of
from trellis.errors import UsageError
from trellis.events.columns.types import from_arrow
from trellis.kernels.bloom import filters as kernel
from trellis.language.bound import BoundQuery, Column, ConditionKind, Constant, Operation, Value
from trellis.language.schema import Kind

Flags = NDArray[np.bool_]
Ints = NDArray[np.int64]
Doubles = NDArray[np.float64]

EQUAL = (Kind.STRING, Kind.INTEGER)  # kinds whose values are equal exactly where they are written alike
MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}


class ValuedName(NamedTuple):
    """A name, and conditions on the values of the event that has it."""

    name: str
    conditions: tuple[Value, ...]


def wanted_names(bound: BoundQuery) -> dict[str, str | ValuedName | None]:
    """Return for each variable the name that its events have, with what they alone must meet."""
    out: dict[str, str | ValuedName | None] = {}
    for variable in bound.variables:
        conditions = tuple(
            one.value for one in bound.conditions
            if one.kind is ConditionKind.CONSTANT and one.variables == (variable.name,)
        )  # fmt: skip
        with_values = conditions and variable.type is not None and not variable.absent
        out[variable.name] = ValuedName(str(variable.type), conditions) if with_values else variable.type
    return out


# --- Ranges of the leaves ---------------------------------------------------------------------------------------


def ranged_columns(schema: pa.Schema, without: Iterable[str | None]) -> list[str]:
    """Return the columns whose ranges are kept: the numeric ones, but for some."""
    left_out = set(without)
    return [f.name for f in schema if f.name not in left_out and _is_numeric(f.type)]


def _is_numeric(type_: pa.DataType) -> bool:
    return bool(pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_decimal(type_))


def range_fields(columns: Sequence[str]) -> list[tuple[str, str]]:
    """Return the fields of ranges in the array of leaves."""
    return [(f"{side}:{name}", "<f8") for name in columns for side in ("least", "most")]


def fill_ranges(entries: Records, table: pa.Table, columns: Sequence[str], begins: Ints) -> None:
    """Write the ranges of leaves that begin at given rows of a table."""
    for name in columns if len(begins) else ():
        least, most = _rounded(table[name])
        entries[f"least:{name}"] = np.minimum.reduceat(least, begins)
        entries[f"most:{name}"] = np.maximum.reduceat(most, begins)


def _rounded(column: pa.ChunkedArray) -> tuple[Doubles, Doubles]:
    """Return numbers as doubles that are not larger, and not smaller; a missing one is in no range, NaN in any."""
    missing = column.is_null().to_numpy()
    exact = pa.types.is_floating(column.type)
    numbers = pc.cast(column, pa.float64(), safe=False).to_numpy()
    numbers = np.array(numbers, np.float64)  # one's own
    nan = np.isnan(numbers) & ~missing
    large = np.zeros(len(numbers), np.bool_) if exact else np.abs(numbers) >= 2.0**53
    if pa.types.is_decimal(column.type):
        large[:] = True
    least, most = numbers.copy(), numbers
    least[large], most[large] = np.nextafter(least[large], -np.inf), np.nextafter(most[large], np.inf)
    least[nan], most[nan] = -np.inf, np.inf
    least[missing], most[missing] = np.inf, -np.inf
    return least, most


def join_ranges(one: Any, other: Any) -> None:
    """Add the ranges of a leaf to those of another part of it, in place."""
    for name in one.dtype.names:
        if name.startswith("least:"):
            one[name] = min(one[name], other[name])
        elif name.startswith("most:"):
            one[name] = max(one[name], other[name])


# --- Equal values -----------------------------------------------------------------------------------------------


def check_values(schema: pa.Schema, values: Sequence[str]) -> None:
    """Refuse columns whose values are not equal exactly where they are written alike."""
    for name in values:
        if from_arrow(schema.field(name).type).kind not in EQUAL:
            raise UsageError(
                f"values of `{name}`, which is {schema.field(name).type}, cannot be kept",
                "Keep columns of text or whole numbers; ranges of numbers are kept without asking.",
            )


def value_items(table: pa.Table, column: str, codes: Ints, names: pa.Array) -> tuple[Ints, NDArray[np.uint64]]:
    """Return the items `name|column|value` of events as numbers of distinct ones, -1 for none, and their hashes."""
    values, texts = coded(table[column])
    items, value, name = distinct_pairs(values, codes, len(names))
    return items, _item_hashes(column, hashes_of(names)[name], hashes_of(texts)[value])


def _item_hashes(column: str, names: NDArray[np.uint64], values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    own = np.repeat(hashes_of(pa.array([column])), len(names))
    joined: NDArray[np.uint64] = kernel.join_hashes(kernel.join_hashes(own, names), values)
    return joined


# --- Conditions -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LeafValues:
    """The values of events, as far as leaves tell them.

    Attributes
    ----------
    entries
        The leaves, with their ranges.
    filters
        Hold the items of equal values.
    columns
        The columns of which they hold them.
    """

    entries: Records
    filters: Filters
    columns: frozenset[str]

    def may_hold(self, wanted: ValuedName) -> Flags:
        """Return which leaves may hold an event of a name that meets its conditions; never wrongly that none does."""
        flags = np.ones(len(self.entries), np.bool_)
        for condition in wanted.conditions:
            flags &= self._may_be(condition, wanted.name)
        return flags

    def _may_be(self, value: Value, name: str) -> Flags:
        """Return in which leaves a condition may be true."""
        every = np.ones(len(self.entries), np.bool_)
        if not isinstance(value, Operation):
            return every
        if value.function in ("and", "or"):
            parts = [self._may_be(one, name) for one in value.arguments]
            return (np.logical_and if value.function == "and" else np.logical_or).reduce(parts)
        if value.function not in MIRRORED or len(value.arguments) != 2:
            return every
        left, right = value.arguments
        if isinstance(left, Column) and isinstance(right, Constant):
            return self._compared(left, value.function, right, name)
        if isinstance(left, Constant) and isinstance(right, Column):
            return self._compared(right, MIRRORED[value.function], left, name)
        return every

    def _compared(self, column: Column, compare: str, constant: Constant, name: str) -> Flags:
        flags, given = np.ones(len(self.entries), np.bool_), constant.value
        if column.function or column.at is not None or isinstance(given, bool) or given is None:
            return flags
        if isinstance(given, int | float | Decimal) and f"least:{column.name}" in (self.entries.dtype.names or ()):
            try:
                low, high = np.nextafter(float(given), -np.inf), np.nextafter(float(given), np.inf)
            except OverflowError:
                return flags
            tests: dict[str, Callable[[], Flags]] = {
                "<": lambda: least <= high, "<=": lambda: least <= high,
                ">": lambda: most >= low, ">=": lambda: most >= low,
                "=": lambda: (least <= high) & (most >= low),
            }  # fmt: skip
            least, most = self.entries[f"least:{column.name}"], self.entries[f"most:{column.name}"]
            flags &= tests[compare]()
        if compare == "=" and column.name in self.columns and (text := _written(column, constant)) is not None:
            names, values = hashes_of(pa.array([name])), hashes_of(pa.array([text]))
            flags &= self.filters.has_items(_item_hashes(column.name, names, values))
        return flags


@dataclass(frozen=True)
class ChosenValues:
    """The same of some leaves."""

    values: LeafValues | ChosenValues
    chosen: Ints

    def may_hold(self, wanted: ValuedName) -> Flags:
        """Return which of them may hold an event of a name that meets its conditions."""
        return self.values.may_hold(wanted)[self.chosen]


def _written(column: Column, constant: Constant) -> str | None:
    """Return a constant as the values of a column are written, if it can be."""
    given = constant.value
    if column.type.kind is Kind.STRING:
        return given if isinstance(given, str) else None
    if isinstance(given, int):
        return str(given)
    return None
