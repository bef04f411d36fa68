"""Aggregates of conditions over the values of some events, and IN over such values: for one trend, not in kernels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import fsum, isnan
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from trellis.language.bound import Column, Constant, Operation, Value
from trellis.language.schema import BOOLEAN

Resolve = Callable[[Column], pa.Array]


def aggregate_of(column: Column, values: pa.Array) -> pa.Array:
    """Return the aggregate that a column is, over the values of its events, as one value; of LIST the values."""
    if column.function in ("COUNT", "LENGTH"):
        return pa.array([len(values)], pa.int64())
    there = values.drop_null()
    if pa.types.is_floating(there.type):
        there = there.filter(pc.invert(pc.is_nan(there)))
    if column.function == "LIST":
        return there
    if not len(there):
        return pa.nulls(1, pa.float64() if column.function.endswith("AVG") else values.type)
    if column.function in ("MIN", "MAX"):
        least = column.function == "MIN"
        order = pc.array_sort_indices(there, order="ascending" if least else "descending")
        return there.take(order[:1])
    return _summed(column.function, there)


def _summed(function: str, there: pa.Array) -> pa.Array:
    numbers: list[Any] = there.to_pylist()
    if pa.types.is_floating(there.type):
        total = fsum(numbers) if function.startswith("F") else _in_order(numbers)
        total = total / len(numbers) if function.endswith("AVG") else total
        return pa.array([None if isnan(total) else total], pa.float64())
    total = sum(numbers)
    return pa.array([float(total / len(numbers))]) if function == "AVG" else pa.array([total])


def _in_order(numbers: list[float]) -> float:
    total = 0.0
    for number in numbers:
        total += number
    return total


def aggregate_text(column: Column, values: pa.Array) -> Any:
    """Return an aggregate as people read it."""
    return values.to_pylist() if column.function == "LIST" else values[0].as_py()


def spelled_out(value: Value, resolve: Resolve) -> Value:
    """Return a value in which IN over values so far is a comparison with each of them."""
    if not isinstance(value, Operation):
        return value
    if value.function != "in list":
        return replace(value, arguments=tuple(spelled_out(argument, resolve) for argument in value.arguments))
    operand, column = value.arguments
    assert isinstance(column, Column)
    same = [
        Operation("=", (operand, Constant(_plain(one), column.type)), source=value.source) for one in resolve(column)
    ]
    if len(same) < 2:
        return same[0] if same else Constant(False, BOOLEAN)
    return Operation("or", tuple(same), source=value.source)


def _plain(scalar: pa.Scalar) -> Any:
    """Return a value as constants have it: times in microseconds."""
    return scalar.cast(pa.int64()).as_py() if pa.types.is_temporal(scalar.type) else scalar.as_py()
