"""The keys of ORDER BY as rows of words that add up along a trend: what the search for the best trends compares.

See `trellis.kernels.best.nodes` for what words are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from trellis.events.columns.ordering import group_codes, rank_codes
from trellis.events.slice import Ints, Slice
from trellis.kernels.best import nodes
from trellis.language.bound import Ordering, Output, OutputKind
from trellis.language.syntax import Which
from trellis.operators.weights import Weight, weigh

Flags = NDArray[np.bool_]
DOUBLE_BITS = 53
LARGEST_DOUBLE = Fraction(2) ** 1023
INTEGERS, DECIMALS = 1 << 63, 10**38  # whole numbers, and decimals without their point, stay below these


@dataclass(frozen=True)
class OrderWord:
    """One word: what every event, the first, the last or the n-th one gives, or whether a flag was met."""

    kind: int
    sign: int
    each: Ints | None = None
    first: Ints | None = None
    last: Ints | None = None
    nth: tuple[int, Ints] | None = None
    flag: int | None = None

    def between(self, lo: int, hi: int) -> OrderWord:
        """Return the word of the events from `lo` to `hi`, numbered from there."""
        each, first, last = (None if part is None else part[lo:hi] for part in (self.each, self.first, self.last))
        nth = None if self.nth is None else (self.nth[0], self.nth[1][lo:hi])
        return replace(self, each=each, first=first, last=last, nth=nth)

    @property
    def neutral(self) -> int:
        """The value of a trend without events."""
        return {nodes.LEAST: nodes.NONE, nodes.GREATEST: -1}.get(self.kind, 0)


@dataclass(frozen=True)
class Rounding:
    """The rounding of the last words to a double: `unit` times their number, which has at most `size` bits."""

    words: slice
    unit: Fraction
    size: int
    sign: int

    def shown(self, number: int) -> float:
        """Return the double that a number is shown as, times the sign, so that more is better."""
        return shown(number, 1, self.unit, self.sign)

    def worst(self, bound: float) -> tuple[int, int]:
        """Return the worst number that is shown as no worse than a bound, and the worst that is shown as better."""
        return self._first(lambda shown: shown >= bound), self._first(lambda shown: shown > bound)

    def _first(self, holds: Callable[[float], bool]) -> int:
        low, high = -(1 << self.size), 1 << self.size  # in the direction of the sign
        while low < high:
            middle = (low + high) >> 1
            if holds(self.shown(self.sign * middle)):
                high = middle
            else:
                low = middle + 1
        return self.sign * low


def shown(number: int, count: int, unit: Fraction, sign: int) -> float:
    """Return the double that a mean of `count` numbers of a unit is shown as, times a sign, so that more is better."""
    try:
        value = number * unit.numerator / (unit.denominator * count)
    except OverflowError:
        value = float("inf") if number > 0 else float("-inf")
    return sign * value + 0.0


@dataclass(frozen=True)
class Mean:
    """A mean as the last key: the words of the numbers, which are of a unit and have some bits, and who has one."""

    numbers: Ints
    present: Flags
    unit: Fraction
    size: int
    sign: int


@dataclass(frozen=True)
class OrderKeys:
    """All that compares trends.

    Attributes
    ----------
    words
        The words, the most important first.
    flags
        For each flag which events set it.
    rounded
        What the last words are shown as, if it is not their number itself.
    mean
        The last key, if it is a mean, which no words tell: see `trellis.operators.trends.means`.
    """

    words: tuple[OrderWord, ...] = ()
    flags: tuple[Flags, ...] = ()
    rounded: Rounding | None = None
    mean: Mean | None = None

    def between(self, lo: int, hi: int) -> OrderKeys:
        """Return the keys of the events from `lo` to `hi`, numbered from there."""
        words = tuple(word.between(lo, hi) for word in self.words)
        return replace(self, words=words, flags=tuple(flag[lo:hi] for flag in self.flags))

    @property
    def extreme(self) -> bool:
        """Whether the last word is a least or greatest value, which do not tell trends with equal values apart."""
        return bool(self.words) and self.words[-1].kind in (nodes.LEAST, nodes.GREATEST)

    @property
    def closed(self) -> bool:
        """Whether no further key can stand behind these."""
        return self.extreme or self.rounded is not None or self.mean is not None


@dataclass
class _Maker:
    """Makes words of the usable events of a slice, for trends of at most `longest` events."""

    events: Slice
    usable: Flags
    longest: int
    keys: OrderKeys = field(default_factory=OrderKeys)

    def add(self, ordering: Ordering) -> bool:
        """Add a key; return False if this cannot be done."""
        output, sign = ordering.output, 1 if ordering.descending else -1
        if output.kind is OutputKind.CONSTANT:
            return True
        if self.keys.closed:
            return False
        match output.kind:
            case OutputKind.LENGTH:
                return self._put(OrderWord(nodes.HIGH, sign, each=np.ones(len(self.events), np.int64)))
            case OutputKind.ATTRIBUTE:
                return self._attribute(output, sign)
            case OutputKind.AGGREGATE if output.function == "COUNT":  # of the one variable
                return self._put(OrderWord(nodes.HIGH, sign, each=np.ones(len(self.events), np.int64)))
            case OutputKind.AGGREGATE if output.function in ("MIN", "MAX"):
                return self._extreme(output, sign)
            case OutputKind.AGGREGATE if output.function in ("SUM", "AVG"):
                return self._sum(output, sign)
            case OutputKind.EXPRESSION:
                return self._difference(output, sign)
        return False

    def _put(self, *words: OrderWord) -> bool:
        self.keys = replace(self.keys, words=self.keys.words + words)
        return True

    def _flag(self, present: Flags, sign: int) -> None:
        """Put a word that tells trends with a value from those without, if there may be any: NULL comes first."""
        if not present[self.usable].all():
            self._put(OrderWord(nodes.HIGH, sign, flag=len(self.keys.flags)))
            self.keys = replace(self.keys, flags=(*self.keys.flags, present))

    def _attribute(self, output: Output, sign: int) -> bool:
        assert output.column is not None
        column = self.events.columns[output.column.name]
        codes = group_codes([column])[0] if len(column) else np.zeros(0, np.int64)
        if output.column.which is Which.LAST:
            return self._put(OrderWord(nodes.HIGH, sign, last=codes))
        nth = output.column.nth or 1
        if output.column.which is Which.FIRST or nth == 1:
            return self._put(OrderWord(nodes.HIGH, sign, first=codes))
        if nth > self.longest:
            return True  # NULL for all
        valid = column.is_valid().to_numpy(zero_copy_only=False)
        return self._put(
            OrderWord(nodes.HIGH, sign, nth=(nth, np.where(valid, codes + 1, 0)))
        )  # NULL as in short trends

    def _extreme(self, output: Output, sign: int) -> bool:
        assert output.column is not None
        codes = rank_codes([self.events.columns[output.column.name]])[0]
        known = codes >= 0
        if not known[self.usable].any():
            return True  # NULL for all
        self._flag(known, sign)
        word = OrderWord(nodes.LEAST if output.function == "MIN" else nodes.GREATEST, sign)
        return self._put(replace(word, each=np.where(known, codes, word.neutral)))

    def _sum(self, output: Output, sign: int) -> bool:
        assert output.column is not None
        column = self.events.columns[output.column.name]
        weight = self._weigh(column)
        if weight is None:
            return False
        if not weight.present[self.usable].any():
            return True  # NULL for all
        unit, size, words = self._split([weight], self.longest)
        if pa.types.is_decimal(column.type) and unit * 10**column.type.scale * 2**size > DECIMALS:
            return False  # sums of more than 38 digits are NULL
        self._flag(weight.present, sign)
        if output.function == "AVG":
            self.keys = replace(self.keys, mean=Mean(words[0], weight.present, unit, size, sign))
            return True
        kinds = [nodes.HIGH] + [nodes.LOW] * (words[0].shape[1] - 1)
        self._put(*(OrderWord(kind, sign, each=words[0][:, w]) for w, kind in enumerate(kinds)))
        if pa.types.is_floating(column.type) and not _exact(unit, size):
            self._round(len(kinds), unit, size, sign)
        return True

    def _difference(self, output: Output, sign: int) -> bool:
        """`LAST(v).attr - FIRST(v).attr`, or the other way round, of columns that have all values."""
        if output.function != "-" or any(a.kind is not OutputKind.ATTRIBUTE for a in output.arguments):
            return False
        attributes = [a.column for a in output.arguments if a.column is not None]
        columns = [self.events.columns[a.name] for a in attributes]
        last = [a.which is Which.LAST for a in attributes]
        first = [a.which is Which.FIRST or a.nth == 1 for a in attributes]
        if sum(last) != 1 or sum(first) != 1 or columns[0].type != columns[1].type:
            return False
        weights = [self._weigh(c) for c in columns]
        if any(w is None or not w.present[self.usable].all() for w in weights):
            return False
        unit, size, words = self._split([weights[0], _negative(weights[1])], 2)  # type: ignore[arg-type, list-item]
        if pa.types.is_integer(columns[0].type) and unit * 2**size > INTEGERS:
            return False  # may leave 64 bits, which is an error
        if pa.types.is_decimal(columns[0].type) and unit * 10 ** columns[0].type.scale * 2**size > DECIMALS:
            return False
        kinds = [nodes.HIGH] + [nodes.LOW] * (words[0].shape[1] - 1)
        of_last, of_first = (words[0], words[1]) if last[0] else (words[1], words[0])
        self._put(*(OrderWord(k, sign, first=of_first[:, w], last=of_last[:, w]) for w, k in enumerate(kinds)))
        if pa.types.is_floating(columns[0].type) and not _exact(unit, size):
            self._round(len(kinds), unit, size, sign)
        return True

    def _round(self, words: int, unit: Fraction, size: int, sign: int) -> None:
        last = len(self.keys.words)
        self.keys = replace(self.keys, rounded=Rounding(slice(last - words, last), unit, size, sign))

    def _weigh(self, column: pa.Array) -> Weight | None:
        """Return the weights of a column of numbers, or None if some are infinite."""
        weight = weigh(column)
        if weight.infinite[self.usable].any():
            return None
        unused = ~self.usable
        return replace(
            weight,
            high=np.where(unused, 0, weight.high),
            low=np.where(unused, np.uint64(0), weight.low),
            shift=np.where(unused, 0, weight.shift),
        )

    def _split(self, weights: Sequence[Weight], terms: int) -> tuple[Fraction, int, list[Ints]]:
        """Return the unit, the bits that sums of some terms of the weights have at most, and the weights as words."""
        unit = min(w.unit for w in weights)
        # Units differ by powers of two: those of doubles, whose numbers are shifted to one unit.
        shifts = [w.shift + ((w.unit / unit).numerator.bit_length() - 1) for w in weights]
        widths = [nodes.widths(w.high, w.low, s) for w, s in zip(weights, shifts, strict=True)]
        twos = min((t for b, t in widths if b), default=0)
        size = max(1, max(b for b, _ in widths) - twos + terms.bit_length())
        count = 1 if size < nodes.WORD else size // nodes.WORD + 1
        parts = []
        for weight, shift in zip(weights, shifts, strict=True):
            words = np.zeros((len(shift), count), np.int64)
            nodes.words_of(weight.high, weight.low, shift - twos, words)
            parts.append(words)
        return unit * 2**twos, size, parts


def _exact(unit: Fraction, size: int) -> bool:
    """Whether doubles hold all whole numbers of so many bits times a unit."""
    return size <= DOUBLE_BITS and unit * 2**size < LARGEST_DOUBLE


def _negative(weight: Weight) -> Weight:
    low = ~weight.low + np.uint64(1)
    return replace(weight, high=~weight.high + (low == 0), low=low)


def make_keys(orderings: Sequence[Ordering], events: Slice, usable: Flags, longest: int) -> OrderKeys | None:
    """Return the keys of ORDER BY as words, or None where these cannot compare trends.

    Parameters
    ----------
    orderings
        The keys: lengths, sums, attributes of the first, last or n-th event, differences of such; last of them also a
        least, greatest or mean value.
    events
        The slice.
    usable
        The events that trends are made of.
    longest
        A bound on the length of trends.
    """
    maker = _Maker(events, usable, longest)
    return maker.keys if all(maker.add(ordering) for ordering in orderings) else None
