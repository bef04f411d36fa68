"""Columns of which rows take values by position, at the speed of memory."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from trellis.errors import DataError
from trellis.operators.weights import narrow_decimals
from trellis.properties import cached_property

# Kernels are imported where they run: counts come out as rows too, and have to start fast.

WORD = 64  # bits
MOST_BYTES = (1 << 31) - 1  # of the texts of an array

Words = NDArray[np.int64]


class _Texts(NamedTuple):
    """Texts as kernels take them: their bytes, and where each begins and the last ends."""

    bytes: NDArray[np.uint8]
    offsets: NDArray[np.int64]


class TakenColumn:
    """Values by position, of which rows take some.

    Values of 64 bits and texts are taken by kernels, beside which other threads run; all others as Arrow takes them.

    Parameters
    ----------
    values
        The values.
    type_
        The type in which they come out, by default their own.
    """

    def __init__(self, values: pa.Array, type_: pa.DataType | None = None) -> None:
        self._values = values
        self._type = values.type if type_ is None else type_

    @cached_property
    def words(self) -> Words | None:
        """The values as words of 64 bits, if they have that size and none is missing."""
        values = self._values
        narrow = pa.types.is_integer(values.type) and values.type not in (pa.int64(), pa.uint64())
        if narrow and self._type == pa.int64():
            values = values.cast(pa.int64())
        if values.null_count or not _have_same_words(values.type, self._type):
            return None
        words = np.frombuffer(values.buffers()[1] or b"", np.int64)[values.offset : values.offset + len(values)]
        words.flags.writeable = False  # as most buffers are: others would need kernels of their own
        return words

    @cached_property
    def _texts(self) -> _Texts | None:
        from trellis.kernels.list.wide import SPARE

        values = self._values
        if values.null_count or not pa.types.is_string(self._type):
            return None
        if pa.types.is_string(values.type):
            values = values.cast(pa.large_string())
        if not pa.types.is_large_string(values.type):
            return None
        offsets = np.frombuffer(values.buffers()[1] or bytes(8), np.int64)[
            values.offset : values.offset + len(values) + 1
        ]
        given = np.frombuffer(values.buffers()[2] or b"", np.uint8)[offsets[0] : offsets[-1]]
        return _Texts(np.concatenate([given, np.zeros(SPARE, np.uint8)]), offsets - offsets[0])

    def taken(self, places: NDArray[np.int32]) -> pa.Array:
        """Return the values at places that are known to exist."""
        if self.words is not None:
            return _words_at(self.words, self._type, places)
        if self._texts is not None:
            return _texts_at(self._texts, places)
        return present(pc.take(self._values, pa.array(places), boundscheck=False), self._type)

    def shown(self, words: Words) -> pa.Array:
        """Return words of this column, in a buffer of Arrow's, as its values."""
        return pa.Array.from_buffers(self._type, len(words), [None, pa.py_buffer(words)])


def _have_same_words(given: pa.DataType, wanted: pa.DataType) -> bool:
    """Return whether values of both types are words of 64 bits, the same where they are the same values."""
    if pa.types.is_timestamp(given) and pa.types.is_timestamp(wanted):  # a zone changes nothing
        return bool(given.unit == wanted.unit)
    is_number = pa.types.is_integer(given) or pa.types.is_floating(given) or pa.types.is_duration(given)
    return bool(given == wanted and is_number and given.bit_width == WORD)


def _words_at(words: Words, type_: pa.DataType, places: NDArray[np.int32]) -> pa.Array:
    from trellis.kernels.list.columns import take_words

    taken = room(len(places), np.int64)
    take_words(words, unsigned(places), taken)
    return pa.Array.from_buffers(type_, len(places), [None, pa.py_buffer(taken)])


def _texts_at(texts: _Texts, places: NDArray[np.int32]) -> pa.Array:
    from trellis.kernels.list.columns import take_text, text_ends
    from trellis.kernels.list.wide import SPARE

    ends = room(len(places) + 1, np.int32)
    size = text_ends(texts.offsets, unsigned(places), ends)
    if size > MOST_BYTES:
        raise too_long()
    taken = room(size + SPARE, np.uint8)
    take_text(texts.bytes, texts.offsets, unsigned(places), taken)
    return pa.StringArray.from_buffers(len(places), pa.py_buffer(ends), pa.py_buffer(taken))


def room(number: int, type_: Any) -> NDArray[Any]:
    """Return an array in Arrow's memory: what was given back there costs no new pages."""
    return np.frombuffer(pa.allocate_buffer(max(number, 1) * np.dtype(type_).itemsize), type_)[:number]


_counting = np.arange(1, dtype=np.int32)  # all that `counting` gave, in the longest array so far


def counting(number: int) -> NDArray[np.int32]:
    """Return the numbers from 0 to a number, which is one, too; nobody writes to them."""
    global _counting
    known = _counting
    if len(known) <= number:
        known = _counting = np.arange(2 * number + 1, dtype=np.int32)
    return known[: number + 1]


def unsigned(places: NDArray[np.int32]) -> NDArray[np.uint32]:
    """Return places as kernels take them."""
    return np.ascontiguousarray(places, np.int32).view(np.uint32)


def too_long() -> DataError:
    """Return the mistake of texts that no array of Arrow's holds."""
    return DataError("the texts of some rows that come out together are longer than 2 GB")


def present(array: pa.Array, type_: pa.DataType) -> pa.Array:
    """Return a normalised array as readers see it."""
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if array.type == type_:
        return array
    if pa.types.is_decimal(array.type):
        array = narrow_decimals(array)
    try:
        return array.cast(type_)
    except pa.ArrowInvalid:
        if not pa.types.is_large_string(array.type):
            raise
        raise too_long() from None
