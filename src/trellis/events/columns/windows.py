"""Windows over times that are doubles: their bounds are the doubles nearest to the exact decimals.

Window `k` of `WITHIN w SLIDE s` goes from the double nearest to `k * s` to the one nearest to `k * s + w`, as they are
written. With `s` and `w` as whole multiples of a power of ten, `step` and `width`, most bounds take one operation of
doubles, which is rounded once: whole numbers below 2**53 and powers of ten up to 10**22 are doubles. The others are
computed in whole numbers of any size.
"""

from __future__ import annotations

from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from trellis.errors import DataError, UsageError

Ints = NDArray[np.int64]
Doubles = NDArray[np.float64]

TOO_FAR = (
    "a time is too far away for windows: their numbers or bounds do not fit 64 bits",
    "Leave such events out: times like the smallest integer often stand for none.",
)
FARTHEST = 2.0**49
"""The number of windows from time zero up to which a quotient of doubles is off by less than a half."""
EXACT = 2.0**53
"""The number below which all whole numbers are doubles."""
MOST_DIGITS = 17
"""The digits of durations: as many as it takes to write any double."""
_LARGEST_POWER = 22  # of ten that is a double


class DoubleWindows:
    """The windows of `WITHIN size SLIDE slide`.

    Attributes
    ----------
    step, width, exponent
        Slide and size are these numbers times ten to the power of `exponent`.
    size, slide
        Both as doubles.

    Raises
    ------
    UsageError
        If slide and size together have too many digits.
    """

    def __init__(self, size: int | float | Decimal, slide: int | float | Decimal) -> None:
        numbers = [_decimal(value) for value in (slide, size)]
        self.exponent = min(int(number.as_tuple().exponent) for number in numbers)
        self.step, self.width = (_whole(number, self.exponent) for number in numbers)
        if max(self.step, self.width) >= 10**MOST_DIGITS:
            raise UsageError(
                f"WITHIN {size} and SLIDE {slide} have more than {MOST_DIGITS} digits together",
                "Windows over times that are floats have at most that; round one of the two.",
            )
        self.size, self.slide = float(size), float(slide)

    def of(self, times: Doubles) -> tuple[Ints, Ints]:
        """Return the numbers of the first and the last window that hold each time.

        Raises
        ------
        DataError
            If a time is too far away.
        """
        if not ((np.abs(times) + self.size) / self.slide < FARTHEST).all():
            raise DataError(*TOO_FAR)
        last = np.rint(times / self.slide).astype(np.int64)
        last -= self.starts(last) > times
        first = np.rint((times - self.size) / self.slide).astype(np.int64)
        first += self.ends(first) <= times
        return first, last

    def starts(self, numbers: Ints) -> Doubles:
        """Return where windows begin."""
        return self._bounds(numbers, 0)

    def ends(self, numbers: Ints) -> Doubles:
        """Return where windows end; that time is in them no more."""
        return self._bounds(numbers, self.width)

    @property
    def power(self) -> float | None:
        """The power of ten to multiply by or, where the exponent is negative, to divide by; None if it is no double."""
        return 10.0 ** abs(self.exponent) if abs(self.exponent) <= _LARGEST_POWER else None

    def _bounds(self, numbers: Ints, offset: int) -> Doubles:
        whole = numbers.astype(np.float64) * float(self.step) + float(offset)
        if self.power is None:
            simple = np.zeros(len(numbers), np.bool_)
            bounds = np.empty(len(numbers), np.float64)
        else:
            simple = np.abs(numbers.astype(np.float64)) * float(self.step) + float(self.width) < EXACT
            bounds = whole * self.power if self.exponent > 0 else whole / self.power
        if not simple.all():
            hard, places = np.unique(numbers[~simple], return_inverse=True)
            bounds[~simple] = np.array([self._exact(k * self.step + offset) for k in hard.tolist()])[places]
        return bounds

    def _exact(self, number: int) -> float:
        """Return the double that is nearest to a number times the power of ten."""
        return float(f"{number}e{self.exponent}")


def _decimal(value: int | float | Decimal) -> Decimal:
    """Return a number as it is written."""
    number = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    return number.normalize() if len(number.as_tuple().digits) <= 28 else _stripped(number)


def _stripped(number: Decimal) -> Decimal:
    """Return a number of many digits without the zeros behind them; `normalize` would round it."""
    sign, digits = number.as_tuple().sign, number.as_tuple().digits
    exponent = int(number.as_tuple().exponent)
    while len(digits) > 1 and digits[-1] == 0:
        digits, exponent = digits[:-1], exponent + 1
    return Decimal((sign, digits, exponent))


def _whole(number: Decimal, exponent: int) -> int:
    shift = int(number.as_tuple().exponent) - exponent
    digits = int("".join(map(str, number.as_tuple().digits)))
    return digits * 10 ** min(shift, 10 * MOST_DIGITS)  # so far behind the bound that it need not be right
