"""The size of filters that keeps a rate of wrong answers.

The leaves of a history have few or many distinct items, so the rate of each is its own. For a question that names `s`
items, of `L` leaves with `n_i` distinct items each, the rate of any leaf that is wrongly named is at most
`s * sum_i (1 - e^(-k n_i / m))^k`. The smallest `m` is taken that brings this under half of what was asked for: items
are not independent of one another, and the other half has been seen to cover that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, expm1, log, log1p

import numpy as np

from trellis.digits import bytes_text
from trellis.errors import UsageError

MOST_BITS = 1 << 24
MOST_HASHES = 40


@dataclass(frozen=True)
class Size:
    """Bits of a filter, and bits of an item."""

    bits: int
    hashes: int


def size_filters(
    distinct: Sequence[int], leaves: int, false_positive: float, names: int, memory: int | None = None,
    above: Sequence[int] = (),
) -> Size:  # fmt: skip
    """Return the smallest filters that keep the rate of wrong lists.

    Parameters
    ----------
    distinct
        The numbers of distinct items of some leaves.
    leaves
        How many leaves there will be.
    false_positive
        The wanted rate: questions of which a leaf is wrongly named.
    names
        How many items a question names.
    memory
        Bytes that all filters may take.
    above
        The numbers of distinct items of some nodes that are to exist: at most half of their bits are set.
    """
    if not 0 < false_positive < 1:
        raise UsageError(f"a rate of {false_positive} cannot be kept", "Give a number between 0 and 1, such as 1e-4.")
    counts = np.asarray(distinct, np.float64)
    goal = false_positive / 2 / max(1, names) / max(1, leaves)
    best: Size | None = None
    most = max(above, default=0)
    for hashes in range(1, MOST_HASHES + 1):
        bits = _least_bits(counts, hashes, goal)
        if bits is not None:
            bits = max(bits, ceil(hashes * most / log(2) / 64) * 64)
        if bits is not None and (best is None or bits < best.bits):
            best = Size(bits, hashes)
    if best is None:
        raise UsageError(f"no filters keep a rate of {false_positive:g} here", "Ask for a higher rate.")
    if memory is not None and best.bits * leaves // 8 > memory:
        raise UsageError(
            f"filters for a rate of {false_positive:g} take {bytes_text(best.bits * leaves // 8)}, "
            f"and {bytes_text(memory)} are allowed",
            _what_fits(counts, leaves, names, memory),
        )
    return best


def _rate(counts: np.ndarray, hashes: int, bits: int) -> float:
    return float(np.mean((-np.expm1(-hashes * counts / bits)) ** hashes))


def _least_bits(counts: np.ndarray, hashes: int, goal: float) -> int | None:
    """Return the least multiple of 64 bits that brings the rate of a leaf under a goal."""
    low, high = 1, 1
    while _rate(counts, hashes, 64 * high) > goal:
        high *= 2
        if 64 * high > MOST_BITS:
            return None
    while low < high:
        middle = (low + high) // 2
        if _rate(counts, hashes, 64 * middle) <= goal:
            high = middle
        else:
            low = middle + 1
    return 64 * low


def _what_fits(counts: np.ndarray, leaves: int, names: int, memory: int) -> str:
    bits = memory * 8 // max(1, leaves) // 64 * 64
    if not bits:
        return "Make leaves larger, or allow more memory."
    rate = 2 * max(1, names) * leaves * min(_rate(counts, k, bits) for k in range(1, MOST_HASHES + 1))
    if rate >= 1:
        return "Make leaves larger, or allow more memory."
    return f"A rate of {rate:.2g} fits; larger leaves need fewer bits."


def thesis_size(events: int, leaf: int, false_positive: float, names: int, memory: int | None = None) -> Size:
    """Return the size by the equations of the thesis for a tree of height one: see `ERRATA`, they never choose another.

    Distinct items of `n` events are taken as 60 * sqrt(n), and the rate of one probe from all probes of a question.
    """
    probes = max(1, 2 * (names - 1)) * ceil(events / leaf)
    rate = -expm1(log1p(-false_positive) / probes)
    distinct = min(leaf, 60 * leaf**0.5)
    bits = ceil(-distinct * log(rate) / log(2) ** 2)
    whole = bits * ceil(events / leaf) // 8
    if memory is not None and whole > memory:
        raise UsageError(
            f"the thesis's filters take {bytes_text(whole)}, and {bytes_text(memory)} are allowed",
            "Ask for a higher rate or for larger leaves, or leave --sizing out.",
        )
    return Size(ceil(bits / 64) * 64, max(1, round(bits / distinct * log(2))))


def expected_rate(densities: np.ndarray, hashes: int, names: int) -> float:
    """Return the rate of questions of which a leaf is wrongly named, by the densities that filters really have."""
    each = np.clip(densities, 0.0, 1.0 - 1e-15) ** hashes
    return float(0.0 - expm1(names * np.sum(np.log1p(-each))))
