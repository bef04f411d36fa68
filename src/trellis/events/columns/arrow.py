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

INT64: DataType = pa.int64()
_MICROS = frozenset(type_.id for type_ in (pa.timestamp("us"), pa.duration("us")))
_WORDS = _MICROS | {INT64.id, pa.float64().id}
_FLOATING = frozenset(type_.id for type_ in (pa.float16(), pa.float32(), pa.float64()))


def is_scalar(x: Operand) -> bool:
    """Whether an operand is one value for all rows."""
    return isinstance(x, pa.Scalar)


def null(type_: DataType) -> Operand:
    """NULL of a type, for all rows."""
    return pa.scalar(None, type_)


def is_micros(x: Operand) -> bool:
    """Whether an operand counts microseconds: a timestamp or a duration, normalised."""
    return x.type.id in _MICROS


def is_floating(x: Operand) -> bool:
    """Whether an operand has numbers with a floating point."""
    return x.type.id in _FLOATING


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


def is_words(x: Array) -> bool:
    """Whether the values of an array are numbers or microseconds of 64 bits, and none is missing."""
    return x.type.id in _WORDS and not x.null_count


def words(x: Array) -> npt.NDArray[np.int64] | None:
    """The values of an array as words of 64 bits, if they have that size and none is missing; without a copy."""
    if not is_words(x):
        return None
    return np.frombuffer(x.buffers()[1] or b"", np.int64)[x.offset : x.offset + len(x)]


def from_words(values: npt.NDArray[Any], type_: DataType = INT64) -> Array:
    """Words of 64 bits as an array, without a copy; `pa.array` takes as long as many small columns."""
    return pa.Array.from_buffers(type_, len(values), [None, pa.py_buffer(np.ascontiguousarray(values))])


def taken(x: Array, rows: npt.NDArray[np.int64]) -> Array:
    """The values of an array at some rows, which it is known to have."""
    values = words(x)
    return x.take(from_words(rows)) if values is None else from_words(values[rows], x.type)


def is_valid(x: Array) -> npt.NDArray[np.bool_]:
    """Which rows are not NULL."""
    mask: npt.NDArray[np.bool_] = pc.is_valid(x).to_numpy(zero_copy_only=False)
    return mask


def from_numbers(values: Numbers, valid: npt.NDArray[np.bool_], like: tuple[Operand, ...]) -> Operand:
    """An array of NumPy values, or the scalar that it is where all the operands it came from are scalars."""
    array = pa.array(values, mask=None if valid.all() else ~valid)
    return array[0] if all(is_scalar(x) for x in like) else array
