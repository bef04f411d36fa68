"""pyarrow with looser types (its stubs know no scalar beside an array), and the way between it and NumPy."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow
import pyarrow.compute

Array: TypeAlias = Any
"""A `pyarrow.Array`."""

Chunked: TypeAlias = Any
"""A `pyarrow.ChunkedArray`."""

DataType: TypeAlias = Any
"""A `pyarrow.DataType`."""

Operand: TypeAlias = Any
"""A `pyarrow.Array`, or a `pyarrow.Scalar` that stands for as many equal values as are needed."""

Numbers: TypeAlias = npt.NDArray[Any]

pa: Any = pyarrow
pc: Any = pyarrow.compute


def is_scalar(x: Operand) -> bool:
    """Whether an operand is one value for all rows."""
    return isinstance(x, pa.Scalar)


def null(type_: DataType) -> Operand:
    """NULL of a type, for all rows."""
    return pa.scalar(None, type_)


def is_micros(x: Operand) -> bool:
    """Whether an operand counts microseconds: a timestamp or a duration, normalised."""
    return bool(pa.types.is_timestamp(x.type) or pa.types.is_duration(x.type))


def at_least_one(x: Operand) -> Array:
    """An operand as an array; a scalar becomes one row, which NumPy broadcasts."""
    return pa.repeat(x, 1) if is_scalar(x) else x


def numbers(x: Array, fill: float) -> Numbers:
    """The values of an array of numbers or microseconds, with `fill` in place of NULL."""
    if is_micros(x):
        x = x.view(pa.int64())
    filled = x if x.null_count == 0 else pc.fill_null(x, pa.scalar(fill, x.type))
    values: Numbers = filled.to_numpy(zero_copy_only=False)
    return values


def is_valid(x: Array) -> npt.NDArray[np.bool_]:
    """Which rows are not NULL."""
    mask: npt.NDArray[np.bool_] = pc.is_valid(x).to_numpy(zero_copy_only=False)
    return mask


def from_numbers(values: Numbers, valid: npt.NDArray[np.bool_], like: tuple[Operand, ...]) -> Operand:
    """An array of NumPy values, or the scalar that it is where all the operands it came from are scalars."""
    array = pa.array(values, mask=None if valid.all() else ~valid)
    return array[0] if all(is_scalar(x) for x in like) else array
