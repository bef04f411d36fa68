"""Whole numbers of any size as text and back; Python's own conversion ends at 4,300 digits."""

from __future__ import annotations

from fractions import Fraction
from typing import SupportsIndex

_CONVERTED = 10**4000  # what Python itself converts, with some to spare
_SIZES = (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3))
LINE = 72  # digits that a message shows
_LARGE = 1e6  # from here on a number is given by its exponent


def number_of(text: str) -> int:
    """Return the number that digits stand for, however many: the opposite of `digits_of`."""
    if len(text) <= 4000:
        return int(text)
    size = len(text) // 2
    return number_of(text[:-size]) * 10**size + number_of(text[-size:])


def digits_of(number: int) -> str:
    """Return all digits of a number that is not negative, however many (Python's own limit is 4,300)."""
    if number < _CONVERTED:
        return int.__repr__(number)
    size = int(number.bit_length() * 0.30103) // 2
    high, low = divmod(number, 10**size)
    return digits_of(high) + digits_of(low).rjust(size, "0")


def number_text(number: int) -> str:
    """Return a number with all its digits (where these are more than a line, how many they are), and its size."""
    if number < 10**15:
        return f"{number:,}"
    digits = digits_of(number)
    about = f"about {digits[0]}.{digits[1:3]}e{len(digits) - 1}"
    return f"{digits} ({about})" if len(digits) <= LINE else f"{about} ({len(digits):,} digits)"


def bytes_text(size: int) -> str:
    """Return a number of bytes in the largest unit that it has one of."""
    for name, unit in _SIZES:
        if size >= unit:
            return f"{short_number(size / Fraction(unit), 1)} {name}"
    return f"{size:,} bytes"


def short_number(number: Fraction, places: int) -> str:
    """Return a number with so many decimal places, or from a million on by its exponent."""
    if number < _LARGE:
        return f"{float(number):,.{places}f}"
    return f"{float(number):.1e}" if number < 1e300 else f"more than 1e{len(str(int(number))) - 1}"


class Count(int):
    """A number of results: an int that is printed with all its digits, however many they are.

    What is computed from it is an int of Python's, which prints up to 4,300 digits.
    """

    def __repr__(self) -> str:
        return digits_of(self) if self >= _CONVERTED else int.__repr__(self)

    __str__ = __repr__

    def __format__(self, how: str) -> str:
        if self < _CONVERTED or how not in ("", "d", ",", "_"):
            return int.__format__(self, how)
        digits = digits_of(self)
        if how in ("", "d"):
            return digits
        first = len(digits) % 3
        return how.join(([digits[:first]] if first else []) + [digits[i : i + 3] for i in range(first, len(digits), 3)])

    def __reduce_ex__(self, protocol: SupportsIndex) -> tuple[object, ...]:
        return Count, (int(self),)
