"""Short strings as integers, which are compared and hashed in no time."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from trellis.events.columns.arrow import Array, is_valid, pa

LONGEST = 7
_OF_LENGTH = np.array([(1 << 8 * length) - 1 for length in range(LONGEST + 1)], np.uint64)


def text_widths(column: Array) -> npt.NDArray[Any]:
    """Return the bytes of each string of a column, those of NULL included."""
    type_ = np.int64 if pa.types.is_large_string(column.type) else np.int32
    if not len(column):
        return np.empty(0, type_)
    ends: npt.NDArray[Any] = np.frombuffer(column.buffers()[1], type_)[column.offset : column.offset + len(column) + 1]
    return ends[1:] - ends[:-1]


def words(column: Array) -> Array | None:
    """Put the bytes and the length of each string into one integer: equal where the strings are.

    Parameters
    ----------
    column
        A column of type large_string.

    Returns
    -------
    pyarrow.Array or None
        A column of int64, NULL where the string is; None where one has more than 7 bytes.
    """
    if len(column) == 0:
        return pa.array([], pa.int64())
    _, ends, data = column.buffers()
    offsets = np.frombuffer(ends, np.int64, len(column) + 1, 8 * column.offset)
    lengths = offsets[1:] - offsets[:-1]
    if lengths.max() > LONGEST:
        return None
    start, size = int(offsets[0]), int(offsets[-1] - offsets[0])
    text = np.zeros(size + 8, np.uint8)  # eight bytes can be read from where the last string begins
    if size:
        text[:size] = np.frombuffer(data, np.uint8, size, start)
    following = np.ndarray((size + 1,), "<u8", text, strides=(1,))
    codes = following[offsets[:-1] - start] & _OF_LENGTH[lengths]
    codes |= lengths.view(np.uint64) << np.uint64(8 * LONGEST)
    return pa.array(codes.view(np.int64), mask=~is_valid(column) if column.null_count else None)
