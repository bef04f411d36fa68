"""The types of Arrow columns in the language, and the one physical form of each that evaluation works on."""

from __future__ import annotations

from typing import Any

import numpy as np

from trellis.errors import DataError
from trellis.events.columns import decimals
from trellis.events.columns.arrow import Array, Chunked, DataType, pa, pc
from trellis.language.schema import (
    BOOLEAN,
    DOUBLE,
    DURATION,
    INTEGER,
    NAIVE,
    STRING,
    TIMESTAMP,
    UNKNOWN,
    Kind,
    Type,
    decimal,
)

_PHYSICAL = {
    Kind.INTEGER: pa.int64(),
    Kind.DOUBLE: pa.float64(),
    Kind.STRING: pa.large_string(),
    Kind.BOOLEAN: pa.bool_(),
    Kind.TIMESTAMP: pa.timestamp("us"),
    Kind.DATE: pa.timestamp("us"),
    Kind.DURATION: pa.duration("us"),
    Kind.UNKNOWN: pa.null(),
}

_BY_ID = {
    arrow.id: type_
    for type_, arrows in (
        (INTEGER, (pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())),
        (DOUBLE, (pa.float16(), pa.float32(), pa.float64())),
        (STRING, (pa.string(), pa.large_string(), pa.string_view())),
        (BOOLEAN, (pa.bool_(),)),
        (Type(Kind.DATE), (pa.date32(), pa.date64())),
        (DURATION, (pa.duration("us"),)),
        (UNKNOWN, (pa.null(),)),
    )
    for arrow in arrows
}
"""The language's type for each type of Arrow that has no parameters of interest."""


def from_arrow(type_: DataType) -> Type:
    """Return the type that an Arrow column has in the language.

    Parameters
    ----------
    type_
        The type of the column. One of type null, whose values are all NULL, is UNKNOWN: it goes with everything.

    Returns
    -------
    Type
        Its kind, a decimal with its scale; OTHER, named as Arrow names it, for what conditions cannot use.
    """
    known = _BY_ID.get(type_.id)
    if known is not None:
        return known
    is_ = pa.types
    if is_.is_dictionary(type_) or is_.is_run_end_encoded(type_):
        return from_arrow(type_.value_type)
    if is_.is_decimal(type_):
        return decimal(max(0, type_.scale))
    if is_.is_timestamp(type_):
        return NAIVE if type_.tz is None else TIMESTAMP
    return Type(Kind.OTHER, name=str(type_))


def physical(type_: Type) -> DataType:
    """Return the Arrow type of a normalised column.

    Parameters
    ----------
    type_
        Any type but OTHER.

    Returns
    -------
    pyarrow.DataType
        int64, double, decimal256(76, scale), large_string, bool, timestamp[us] (without a zone; dates too),
        duration[us]; null for UNKNOWN.
    """
    return decimals.type_of(type_.scale) if type_.kind is Kind.DECIMAL else _PHYSICAL[type_.kind]


def normalise(array: Array | Chunked, type_: Type) -> Array:
    """Bring a column into the one physical form of its type.

    Parameters
    ----------
    array
        A column; numbers may also be narrower than `type_` (integers where it is DOUBLE or DECIMAL).
    type_
        Its type in the language: `from_arrow(array.type)`, or what several tables have in common.

    Returns
    -------
    pyarrow.Array
        Of the type `physical(type_)`; a column of type OTHER is only put into one piece. NaN stays NaN. Values that
        have this form already are not copied.

    Raises
    ------
    DataError
        If a value does not fit: an integer of more than 64 bits, a time finer than microseconds or too far away, a
        decimal of more than 76 digits.
    """
    wanted = None if type_.kind is Kind.OTHER else physical(type_)
    whole = _joined(array) if array.type == wanted else _one_piece(array)
    return whole if wanted is None or whole.type == wanted else converted(whole, type_)


def converted(array: Array, type_: Type) -> Array:
    """Convert an array of any physical type that can stand for `type_`; see `normalise`."""
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), physical(type_))
    try:
        if type_.kind is Kind.DECIMAL:
            return decimals.from_number(array, type_.scale)
        if type_.kind is Kind.DOUBLE:
            return decimals.to_double(array)
        if pa.types.is_timestamp(array.type) and array.type.unit == "us":
            return array.view(physical(type_))  # a zone changes nothing
        return array.cast(physical(type_))
    except (pa.ArrowInvalid, decimals.TooWide):
        raise _misfit(array, type_) from None


def _one_piece(array: Array) -> Array:
    """Lay chunks and dictionaries out flat; strings with 64-bit offsets, as 32 may not hold them all."""
    if pa.types.is_dictionary(array.type):
        array = array.cast(array.type.value_type)
    elif pa.types.is_run_end_encoded(array.type):
        array = pc.run_end_decode(array)
    if not pa.types.is_large_string(array.type) and from_arrow(array.type).kind is Kind.STRING:
        array = large_strings(_joined(array)) if _is_one(array) else array.cast(pa.large_string())
    return _joined(array)


def _is_one(array: Array | Chunked) -> bool:
    return not isinstance(array, pa.ChunkedArray) or array.num_chunks == 1


def large_strings(array: Array) -> Array:
    """Return strings with offsets of 64 bits; Arrow's cast takes as long as many small columns."""
    if array.null_count or not len(array) or not pa.types.is_string(array.type):
        return array.cast(pa.large_string())
    _, ends, text = array.buffers()
    wide = np.frombuffer(ends, np.int32, len(array) + 1, 4 * array.offset).astype(np.int64)
    return pa.Array.from_buffers(pa.large_string(), len(array), [None, pa.py_buffer(wide), text])


def _joined(array: Array | Chunked) -> Array:
    if not isinstance(array, pa.ChunkedArray):
        return array
    return array.chunk(0) if array.num_chunks == 1 else pa.concat_arrays(array.chunks or [pa.array([], array.type)])


def _misfit(array: Array, type_: Type) -> DataError:
    if type_.kind is Kind.INTEGER:
        return DataError(
            f"the integer {pc.max(array).as_py()} does not fit 64 bits with a sign", "Make the column decimal or text."
        )
    if type_.kind is Kind.DECIMAL:
        return DataError(f"a decimal has more than {decimals.WIDEST} digits")
    if array.type in (pa.timestamp("ns", getattr(array.type, "tz", None)), pa.duration("ns")):
        finer = array.filter(pc.not_equal(array, array.cast(physical(type_), safe=False).cast(array.type, safe=False)))
        return DataError(
            f"a {type_.kind} is finer than microseconds: {finer.cast(pa.string())[0]}",
            "Round it to microseconds first, in pandas by `frame[column].dt.floor('us')`.",
        )
    return DataError(f"a {type_.kind} is too far away to be counted in microseconds")


def plain_value(scalar: pa.Scalar) -> Any:
    """Return a value as Python has it; moments and dates, which Python knows to the year 9999 only, as numbers."""
    return scalar.value if pa.types.is_temporal(scalar.type) else scalar.as_py()
