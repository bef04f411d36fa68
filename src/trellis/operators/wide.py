"""Whole numbers of any size in columns: words of 64 bits, and no object for any of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from trellis.operators.exact import LARGE, Residues, primes_for
from trellis.operators.threads import made_on_threads

WORD, HALF = 64, np.uint64(32)
LOW = np.uint64((1 << 32) - 1)
EXACT = 1 << 53  # numbers below are exact as doubles
LEAST, MOST = -1021, 1024  # exponents of doubles with all their bits, as `frexp` has them

Ints = NDArray[np.int64]
Doubles = NDArray[np.float64]


class Leading(NamedTuple):
    """The highest 64 bits of numbers, the first of them set, times 2**exponents; and whether other bits are set."""

    bits: Residues
    exponents: Ints
    more: NDArray[np.bool_]


class WideNumbers(Sequence[int]):
    """Whole numbers of any size.

    Parameters
    ----------
    words : uint64, of two dimensions
        The words of each number, the lowest first.
    signed
        Whether the highest bit of the last word is a sign, as in two's complement.
    """

    def __init__(self, words: Residues, signed: bool = False) -> None:
        self.words, self.signed = words, signed

    # --- Where they come from ---------------------------------------------------------------------------------

    @classmethod
    def of(cls, numbers: NDArray[Any] | Sequence[int]) -> WideNumbers:
        """Return numbers that are not negative."""
        if isinstance(numbers, np.ndarray):
            return cls(numbers.astype(np.uint64).reshape(-1, 1))
        size = max(1, -(-max(numbers, default=0).bit_length() // WORD))
        written = b"".join(number.to_bytes(8 * size, "little") for number in numbers)
        return cls(np.frombuffer(written, "<u8").astype(np.uint64).reshape(-1, size))

    @classmethod
    def of_residues(
        cls, bits: int, residues: Callable[[int], Residues], threads: int = 1, signed: bool = False
    ) -> WideNumbers:
        """Return the numbers, of so many bits at most, behind arrays of residues modulo primes of `LARGE` bits."""
        from trellis.kernels.count.wide import words_of_residues  # late: most counts go without

        primes = primes_for(bits, LARGE)
        tables = np.stack(list(made_on_threads(residues, primes, threads)))
        inverses = np.array([[pow(p, -1, q) if p != q else 0 for q in primes] for p in primes], np.uint64)
        words = np.empty((tables.shape[1], (LARGE * len(primes) + 63) // WORD), np.uint64)
        words_of_residues(tables, np.array(primes, np.uint64), inverses, words)
        if not signed:
            return cls(words[:, : max(2, (bits + 63) // WORD)])
        product = 1
        for prime in primes:
            product *= prime
        place, shift = divmod(bits, WORD)  # a number below 0 stands near the product, which has another bit
        below = words[:, place] >> np.uint64(shift) > 0
        below |= words[:, place + 1 :].any(axis=1)
        size = words.shape[1]
        less = np.frombuffer((2 ** (WORD * size) - product).to_bytes(8 * size, "little"), "<u8").astype(np.uint64)
        both = np.stack([words, np.where(below[:, None], less, np.uint64(0))]).reshape(2, -1, size)
        return cls(_carried(both & LOW, both >> HALF), True)

    @classmethod
    def concat(cls, parts: Sequence[WideNumbers]) -> WideNumbers:
        """Return the numbers of several columns, one behind another."""
        signed = any(part.signed for part in parts)
        size = max((part.words.shape[1] + (signed and not part.signed) for part in parts), default=1)
        return cls(np.concatenate([np.empty((0, size), np.uint64), *(part._widened(size) for part in parts)]), signed)

    # --- As a sequence ----------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.words)

    @overload
    def __getitem__(self, place: int) -> int: ...

    @overload
    def __getitem__(self, place: slice) -> list[int]: ...

    def __getitem__(self, place: int | slice) -> int | list[int]:
        if isinstance(place, slice):
            return self.taken(place).tolist()
        return int.from_bytes(self.words[place].astype("<u8").tobytes(), "little", signed=self.signed)

    def __iter__(self) -> Iterator[int]:
        return iter(self.tolist())

    def tolist(self) -> list[int]:
        """Return the numbers."""
        if self.words.shape[1] == 1 or not (self.signed or self.words[:, 1:].any()):
            first = self.words[:, 0]
            return (first.view(np.int64) if self.signed else first).tolist()
        size, signed = 8 * self.words.shape[1], self.signed
        written = self.words.astype("<u8").tobytes()
        return [int.from_bytes(written[at : at + size], "little", signed=signed) for at in range(0, len(written), size)]

    def taken(self, rows: Ints | slice) -> WideNumbers:
        """Return some of the numbers."""
        return WideNumbers(self.words[rows], self.signed)

    # --- Arithmetic -------------------------------------------------------------------------------------------

    @property
    def negative(self) -> NDArray[np.bool_]:
        """Which numbers are below 0."""
        return (self.words[:, -1] >> np.uint64(63) > 0) & self.signed

    @property
    def positive(self) -> NDArray[np.bool_]:
        """Which numbers are above 0."""
        return self.words.any(axis=1) & ~self.negative

    def magnitudes(self) -> WideNumbers:
        """Return the numbers without their signs."""
        below = self.negative
        if not below.any():
            return WideNumbers(self.words)
        turned = np.where(below[:, None], ~self.words, self.words)
        ones = np.zeros_like(turned)
        ones[:, 0] = below
        both = np.stack([turned, ones])
        return WideNumbers(_carried(both & LOW, both >> HALF))

    def added(self, begins: Ints) -> WideNumbers:
        """Return the sum of each run of numbers; the runs begin at `begins`."""
        if not len(begins):
            return WideNumbers(self.words[:0], self.signed)
        words = self._widened(self.words.shape[1] + 1)
        low, high = (np.add.reduceat(half, begins, axis=0) for half in (words & LOW, words >> HALF))
        return WideNumbers(_carried(low[None], high[None]), self.signed)._trimmed()

    def doubled(self, times: int) -> WideNumbers:
        """Return the numbers times a power of two."""
        size, (whole, part) = self.words.shape[1], divmod(times, WORD)
        words = np.zeros((len(self), size + whole + 1), np.uint64)
        words[:, whole:] = self._widened(size + 1)
        if part:
            up, down = np.uint64(part), np.uint64(WORD - part)
            words[:, 1:] = words[:, 1:] << up | words[:, :-1] >> down
            words[:, 0] <<= up
        return WideNumbers(words, self.signed)._trimmed()

    def _widened(self, size: int) -> Residues:
        """Return the words with others above them, which do not change the numbers."""
        more = size - self.words.shape[1]
        above = np.where(self.negative, ~np.uint64(0), np.uint64(0))
        return np.concatenate([self.words, np.repeat(above[:, None], more, axis=1)], axis=1) if more else self.words

    def _trimmed(self) -> WideNumbers:
        """Return the numbers in as few words as hold them."""
        words, size = self.words, self.words.shape[1]
        above = np.where(self.negative, ~np.uint64(0), np.uint64(0))
        while size > 1 and (words[:, size - 1] == above).all():
            if self.signed and ((words[:, size - 2] >> np.uint64(63) > 0) != self.negative).any():
                break
            size -= 1
        return WideNumbers(np.ascontiguousarray(words[:, :size]), self.signed)

    # --- Doubles ----------------------------------------------------------------------------------------------

    def leading(self) -> Leading:
        """Return the highest bits of the numbers, which are not signed; all are 0 of 0."""
        words, rows = self.words, np.arange(len(self))
        top = words.shape[1] - 1 - np.argmax(words[:, ::-1] != 0, axis=1)
        high = words[rows, top]
        below = np.where(top > 0, words[rows, top - 1], np.uint64(0))
        used = np.frexp((high & ~(high >> np.uint64(1))).astype(np.float64))[1]
        shift = (WORD - used).astype(np.uint64) % np.uint64(WORD)
        back = (np.uint64(WORD) - shift) % np.uint64(WORD)
        bits = np.where(shift > 0, high << shift | below >> back, high)
        more = np.where(shift > 0, below << shift, below) != 0
        for place in range(words.shape[1] - 2):
            more |= (words[:, place] != 0) & (place < top - 1)
        return Leading(bits, WORD * top - shift.astype(np.int64), more)

    def nearest(self, exponent: int = 0) -> Doubles:
        """Return the doubles that are nearest to the numbers times 2**exponent."""
        leading = self.magnitudes().leading()
        rounded = (leading.bits | leading.more).astype(np.float64)  # lost bits decide ties
        with np.errstate(over="ignore", under="ignore"):
            found = np.ldexp(rounded, np.clip(leading.exponents + exponent, -5000, 5000).astype(np.int32))
        found = np.where(self.negative, -found, found)
        small = (np.frexp(rounded)[1] + leading.exponents + exponent < LEAST) & (rounded > 0)
        for row in np.flatnonzero(small).tolist():
            found[row] = nearest_ratio(self[row], 1 << -exponent)
        return found


def _carried(low: Residues, high: Residues) -> Residues:
    """Return words from sums of their low and high bits, in tables of which several are added."""
    low, high = low.sum(axis=0, dtype=np.uint64), high.sum(axis=0, dtype=np.uint64)
    words, carry = np.empty_like(low), np.zeros(len(low), np.uint64)
    for place in range(low.shape[1]):
        first = low[:, place] + carry
        second = high[:, place] + (first >> HALF)
        words[:, place] = (first & LOW) | (second & LOW) << HALF
        carry = second >> HALF
    return words


def nearest_ratio(part: int, whole: int) -> float:
    """Return the double nearest to a ratio: whole numbers are divided exactly, and need not be reduced before."""
    try:
        return part / whole
    except OverflowError:
        return float("inf") if part > 0 else float("-inf")


def nearest_quotients(parts: WideNumbers, wholes: WideNumbers, unit: Fraction = Fraction(1)) -> Doubles:
    """Return the doubles nearest to quotients, times a unit; of nothing by 0 nan."""
    sizes = parts.magnitudes()
    factors = [WideNumbers.of([number]).leading() for number in unit.as_integer_ratio()]
    above, below = sizes.leading(), wholes.leading()
    exponents = above.exponents - below.exponents + int(factors[0].exponents[0] - factors[1].exponents[0])
    with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
        wide = above.bits.astype(np.longdouble) * factors[0].bits.astype(np.longdouble)[0]
        wide = wide / below.bits.astype(np.longdouble) / factors[1].bits.astype(np.longdouble)[0]
        near = wide.astype(np.float64)
        found = np.ldexp(near, np.clip(exponents, -5000, 5000).astype(np.int32))
        off, step = np.abs(wide - near), np.spacing(near).astype(np.longdouble)
        apart = np.minimum(np.abs(off - step / 2), np.abs(off - step / 4))  # below a power of two they lie closer
        doubtful = apart <= wide * np.longdouble(2) ** -60
        if np.finfo(np.longdouble).nmant < 63:
            doubtful[:] = True
        size = np.frexp(near)[1] + exponents
        doubtful |= (size < LEAST) | (size >= MOST)
        divisor = unit.denominator if unit.denominator < EXACT else EXACT
        simple = [_small(sizes), _small(wholes) * divisor]
        easy = (simple[0] < EXACT) & (simple[1] < EXACT) & (unit.numerator == 1)
        found[easy] = simple[0][easy] / simple[1][easy]
    found = np.where(parts.negative, -found, found)
    for row in np.flatnonzero(doubtful & ~easy & (below.bits > 0)).tolist():
        found[row] = nearest_ratio(parts[row] * unit.numerator, wholes[row] * unit.denominator)
    found[(below.bits == 0)] = np.nan
    return found


def _small(numbers: WideNumbers) -> Doubles:
    """Return numbers of one word as doubles, nearly; all others are infinite."""
    return np.where(numbers.words[:, 1:].any(axis=1), np.inf, numbers.words[:, 0].astype(np.float64))
