"""Times as plain numbers, and the windows they fall into.

Timestamps and dates are microseconds, decimals whole numbers of their smallest unit, doubles stay doubles, so that the
kernels see int64 or float64 and nothing else.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from trellis.errors import DataError
from trellis.events.columns.arrow import from_words, numbers
from trellis.events.columns.windows import TOO_FAR, DoubleWindows
from trellis.kernels.events import partitions as kernel
from trellis.language.bound import BoundQuery, Window
from trellis.language.once import once
from trellis.language.schema import Kind, Type

MICROS, UTC_MICROS = pa.timestamp("us"), pa.timestamp("us", tz="UTC")
TOO_LONG = ("a time has too many digits", "Times must fit 64 bits with their digits behind the point.")
INT64 = np.iinfo(np.int64)
LONGEST = 2**64 - 1  # no two times are farther apart
Times = NDArray[Any]


class Clock:
    """Turns times into numbers and numbers of windows back into times."""

    def __init__(self, window: Window, time: Type) -> None:
        self.window, self.time = window, time
        self.digits = _digits(window, time)
        self.size, self.slide = self._duration(window.size), self._duration(window.slide)
        self.doubles: DoubleWindows | None = None
        if time.kind is Kind.DOUBLE and window.size is not None and window.slide is not None:
            self.doubles = DoubleWindows(window.size, window.slide)

    def _duration(self, value: int | float | Decimal | None) -> int | float:
        if value is None:
            return 0
        if self.time.kind is Kind.DOUBLE:
            return float(value)
        return int(Decimal(value) * 10**self.digits)

    @property
    def overlaps(self) -> bool:
        """Whether a time may be in several windows."""
        size, slide = self.window.size, self.window.slide
        return size is not None and slide is not None and size > slide

    def numbers(self, column: pa.Array) -> Times:
        """Return a normalised time column (without NULL) as numbers."""
        if self.time.kind is Kind.DOUBLE:
            return column.to_numpy(zero_copy_only=False) + 0.0
        if self.time.kind is Kind.DECIMAL or self.digits:
            return self._scaled(column)
        return numbers(column.cast(pa.int64()) if pa.types.is_null(column.type) else column, 0)

    def _scaled(self, column: pa.Array) -> NDArray[np.int64]:
        try:
            wide = column.cast(pa.decimal128(38, self.digits))
        except pa.ArrowInvalid:
            raise DataError(*TOO_LONG) from None
        words = np.frombuffer(wide.buffers()[1], np.int64, 2 * len(wide), wide.offset * 16).reshape(-1, 2)
        if ((words[:, 0] >> 63) != words[:, 1]).any():
            raise DataError(*TOO_LONG)
        return words[:, 0].copy()

    def windows(self, times: Times) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the numbers of the first and the last window that hold each time."""
        if self.doubles is not None:
            return self.doubles.of(times)
        size, slide = int(self.size), int(self.slide)
        if len(times) and (int(times.min()) - size < INT64.min or int(times.max()) + size > INT64.max):
            raise DataError(*TOO_FAR)
        return (times - size) // slide + 1, times // slide

    def starts(self, numbers: NDArray[np.int64]) -> Times:
        """Return where windows begin, by their numbers."""
        return numbers * self.slide if self.doubles is None else self.doubles.starts(numbers)

    def ends(self, numbers: NDArray[np.int64]) -> Times:
        """Return where windows end, by their numbers."""
        return numbers * self.slide + self.size if self.doubles is None else self.doubles.ends(numbers)

    def span_ends(self, times: Times, bounds: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return for each event the first event of its partition that is more than the span later."""
        if self.time.kind is Kind.DOUBLE:
            return kernel.span_ends(times, bounds, float(self.size))
        unsigned = (times ^ INT64.min).view(np.uint64)  # the same order and distances, without overflow
        return kernel.span_ends(unsigned, bounds, np.uint64(min(int(self.size), LONGEST)))

    @property
    def bound_type(self) -> pa.DataType:
        """The Arrow type of the bounds of windows."""
        if self.time.temporal:
            return MICROS if self.time.naive else UTC_MICROS
        if self.time.kind is Kind.DECIMAL:
            return pa.decimal128(38, self.digits)
        return pa.float64() if self.time.kind is Kind.DOUBLE or self.digits else pa.int64()

    def bounds(self, numbers: NDArray[np.int64]) -> list[pa.Array]:
        """Return start and end of windows by their numbers."""
        return [self._shown(self.starts(numbers)), self._shown(self.ends(numbers))]

    def _shown(self, values: Times) -> pa.Array:
        if self.time.kind is Kind.DECIMAL:
            words = np.empty((len(values), 2), np.int64)
            words[:, 0], words[:, 1] = values, values.astype(np.int64) >> 63
            return pa.Array.from_buffers(self.bound_type, len(values), [None, pa.py_buffer(words.tobytes())])
        return from_words(values / 10**self.digits if self.digits else values, self.bound_type)


@once
def clock_of(bound: BoundQuery) -> Clock:
    """Return the clock of a query."""
    assert bound.schema is not None
    return Clock(bound.window, bound.schema.time_type)


def _digits(window: Window, time: Type) -> int:
    """Return the digits behind the point that times and durations need together."""
    if time.kind is Kind.DOUBLE:
        return 0
    digits = time.scale if time.kind is Kind.DECIMAL else 0
    for value in (window.size, window.slide):
        if isinstance(value, Decimal):
            digits = max(digits, -int(value.normalize().as_tuple().exponent))
    return digits
