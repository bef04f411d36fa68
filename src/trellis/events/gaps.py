"""Gaps in time: a bound on a value that never falls from event to event is a bound on how far successors reach."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from trellis.events.adjacency import HIGHEST, LOWEST, Adjacency, Order
from trellis.events.slice import Ints, Slice
from trellis.kernels.events.partitions import first_above

UPPER = ("<", "<=")


def gap_of(adjacency: Adjacency, events: Slice) -> tuple[Ints, tuple[Order, ...]] | None:
    """Return for each event the first one that is too late to follow it, and what is asked besides.

    None where there is no gap that never reaches back from one event to the next, or nothing but a gap. Events that
    have no value for the gap are taken out of those that give.
    """
    later = None
    for i, order in enumerate(adjacency.orders):
        rest = tuple(pair for pair in order.comparisons if pair[0] not in UPPER)
        others = [*adjacency.orders[:i], *adjacency.orders[i + 1 :]]
        others += [replace(order, comparisons=rest)] if rest else []
        if len(rest) == len(order.comparisons) or not others or order.holes or not _never_falls(order, events):
            continue
        gives = adjacency.gives & np.all([earlier != LOWEST for _, earlier in order.comparisons], axis=0)
        own = reaches(order, events)
        reach = np.maximum.accumulate(np.where(gives, own, 0))
        later = events.later if later is None else later
        apart = (reach == 0) | (later[np.maximum(reach, 1) - 1] == reach)  # it never parts events of one time
        if ((reach == own) & apart)[gives].all():
            adjacency.gives &= gives
            return reach, tuple(others)
    return None


def reach_of(adjacency: Adjacency, events: Slice) -> Ints | None:
    """Return for each event one that neither it nor what is later can follow it, by all gaps; None without a gap."""
    found = None
    for order in adjacency.orders:
        if any(op in UPPER for op, _ in order.comparisons) and _never_falls(order, events):
            reach = reaches(order, events)
            found = reach if found is None else np.minimum(found, reach)
    return found


def reaches(order: Order, events: Slice) -> Ints:
    """Return for each event the first one of its partition whose value is above all upper bounds of an order."""
    cuts = [
        np.where(earlier == LOWEST, HIGHEST, earlier - (op == "<")) for op, earlier in order.comparisons if op in UPPER
    ]
    return first_above(order.value, events.bounds, np.min(cuts, axis=0))


def _never_falls(order: Order, events: Slice) -> bool:
    falls = order.value[1:] < order.value[:-1]
    falls[events.bounds[1:-1] - 1] = False
    return bool(not falls.any() and (order.value != LOWEST).all())
