"""Whole numbers of any size as text and back; Python's own conversion ends at 4,300 digits."""

from __future__ import annotations

from fractions import Fraction

_CONVERTED = 10**4000  # what Python itself converts, with some to spare
_SIZES = (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3))
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
        return str(number)
    size = int(number.bit_length() * 0.30103) // 2
    high, low = divmod(number, 10**size)
    return digits_of(high) + digits_of(low).rjust(size, "0")


def number_text(number: int) -> str:
    """Return a number with all its digits (where these are more than a page, how many they are), and its size."""
    if number < 10**15:
        return f"{number:,}"
    digits = digits_of(number)
    about = f"about {digits[0]}.{digits[1:3]}e{len(digits) - 1}"
    return f"{digits} ({about})" if len(digits) <= 1000 else f"{about}, a number of {len(digits):,} digits,"


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
