"""Exact sums in columns: what SUM and AVG know of the results through each event."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from trellis.operators.wide import Ints, WideNumbers, nearest_quotients

Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class SumColumn:
    """Sums over pairs of a result and one of its events.

    Attributes
    ----------
    totals
        The finite parts, in units.
    numbers
        How many values were added.
    plus, minus
        Whether infinities were among them.
    unit
        The unit of all totals.
    """

    totals: WideNumbers
    numbers: WideNumbers
    plus: Flags
    minus: Flags
    unit: Fraction = Fraction(1)

    def __len__(self) -> int:
        return len(self.totals)

    def taken(self, rows: Ints) -> SumColumn:
        """Return some of the sums."""
        plus, minus = self.plus[rows], self.minus[rows]
        return SumColumn(self.totals.taken(rows), self.numbers.taken(rows), plus, minus, self.unit)

    def added(self, begins: Ints) -> SumColumn:
        """Return each run of sums as one."""
        plus, minus = (np.logical_or.reduceat(own, begins) if len(begins) else own for own in (self.plus, self.minus))
        return SumColumn(self.totals.added(begins), self.numbers.added(begins), plus, minus, self.unit)

    @classmethod
    def concat(cls, parts: Sequence[SumColumn]) -> SumColumn:
        """Return the sums of several columns; their units differ by powers of two, if they do."""
        unit = min((part.unit for part in parts), default=Fraction(1))
        totals = [part.totals.doubled(int(part.unit / unit).bit_length() - 1) for part in parts]
        none = np.empty(0, np.bool_)
        plus, minus = ([part.plus for part in parts], [part.minus for part in parts])
        return cls(
            WideNumbers.concat(totals), WideNumbers.concat([part.numbers for part in parts]),
            np.concatenate([none, *plus]), np.concatenate([none, *minus]), unit,
        )  # fmt: skip

    @property
    def known(self) -> Flags:
        """Which sums have a value: something was added, and infinities do not cancel."""
        return self.numbers.positive & ~(self.plus & self.minus)

    def doubles(self) -> pa.Array:
        """Return the sums as doubles, each rounded once."""
        return self._with_infinities(self.totals.nearest(self._exponent))

    def means(self) -> pa.Array:
        """Return the means as doubles, each rounded once."""
        return self._with_infinities(nearest_quotients(self.totals, self.numbers, self.unit))

    @property
    def _exponent(self) -> int:
        """The unit as a power of two: sums of doubles have no other."""
        found = self.unit.numerator.bit_length() - self.unit.denominator.bit_length()
        assert self.unit == Fraction(2) ** found
        return found

    def _with_infinities(self, values: NDArray[np.float64]) -> pa.Array:
        values = np.where(self.plus, np.inf, np.where(self.minus, -np.inf, values))
        return pa.array(values, pa.float64(), mask=~self.known)
