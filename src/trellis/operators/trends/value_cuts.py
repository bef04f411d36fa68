"""Comparisons of one value of the later event as ranges of codes: what the earlier event allows of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trellis.events.adjacency import LOWEST, Order
from trellis.events.slice import Ints
from trellis.properties import cached_property

Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class ValueCuts:
    """Codes of the later event, and for each range of what may follow two codes of the earlier one that bound it.

    It is above the first and at most the second; None: from the least, or up to the greatest.
    """

    value: Ints
    ranges: tuple[tuple[Ints | None, Ints | None], ...]

    @cached_property
    def cuts(self) -> tuple[Ints, ...]:
        """All bounds, in the order of the ranges."""
        return tuple(cut for bounds in self.ranges for cut in bounds if cut is not None)

    @property
    def is_tail(self) -> bool:
        """Whether what may follow is all above one code."""
        return len(self.ranges) == 1 and self.ranges[0][1] is None


def cuts_of(order: Order) -> ValueCuts:
    """Bring the comparisons of one value to ranges of values, one more than there are holes."""
    low = high = None
    missing = np.zeros(len(order.value), np.bool_)
    for op, earlier in order.comparisons:
        missing |= earlier == LOWEST
        if op in (">", ">="):
            cut = earlier if op == ">" else earlier - 1
            low = cut if low is None else np.maximum(low, cut)
        elif op in ("<", "<="):
            cut = earlier if op == "<=" else earlier - 1
            high = cut if high is None else np.minimum(high, cut)
    holes = [*order.holes, *((earlier, earlier) for op, earlier in order.comparisons if op == "!=")]
    if low is None and not holes:  # turned around, so that what follows is above
        assert high is not None
        return ValueCuts(_or_missing(~order.value, order.value == LOWEST), ((_or_missing(~high - 1, missing), None),))
    ranges: list[tuple[Ints | None, Ints | None]] = []
    for first, last in _rising(holes):
        ranges.append((low, first - 1 if high is None else np.minimum(first - 1, high)))
        low = last if low is None else np.maximum(low, last)
    ranges.append((low, high))
    return ValueCuts(
        order.value,
        tuple(
            (
                None if a is None else _or_missing(a, missing),
                None if b is None else _or_missing(b if a is None else np.maximum(a, b), missing),
            )
            for a, b in ranges
        ),
    )


def tails_of(cuts: ValueCuts) -> list[ValueCuts]:
    """Return a range as two orders, each without an upper bound; what is more than a range stays as it is."""
    low, high = cuts.ranges[0]
    if len(cuts.ranges) > 1 or low is None or high is None:
        return [cuts]
    turned = _or_missing(~cuts.value, cuts.value == LOWEST), _or_missing(~high - 1, high == LOWEST)
    return [ValueCuts(cuts.value, ((low, None),)), ValueCuts(turned[0], ((turned[1], None),))]


def _rising(holes: list[tuple[Ints, Ints]]) -> list[tuple[Ints, Ints]]:
    """Return holes by where they begin, for each event."""
    if len(holes) < 2:
        return holes
    lows, highs = (np.stack(borders) for borders in zip(*holes, strict=True))
    order = np.argsort(lows, axis=0, kind="stable")
    return list(zip(np.take_along_axis(lows, order, 0), np.take_along_axis(highs, order, 0), strict=True))


def _or_missing(codes: Ints, missing: Flags) -> Ints:
    return np.where(missing, LOWEST, codes) if missing.any() else codes
