"""How many choices of events a walk goes through: where they are few, it is sooner done than an index is made."""

from __future__ import annotations

from math import factorial

import numpy as np

from trellis.events.slice import Slice
from trellis.language.bound import WindowKind
from trellis.plan.plan import Plan


def choices(events: Slice, number: int, span: bool) -> float:
    """Return how many choices of so many events there are, about, in any order: in groups, or from each of a span."""
    groups = events.groups
    if span:
        return float(((events.until - np.arange(len(events))).astype(np.float64) ** (number - 1)).sum())
    return float(((groups.hi - groups.lo).astype(np.float64) ** number).sum())


def are_few(plan: Plan, events: Slice) -> bool:
    """Return whether events are so few that a fixed sequence is walked as they are."""
    if plan.sequence is None:
        return False
    number, span = len(plan.sequence.variables), plan.bound.window.kind is WindowKind.SPAN
    return choices(events, number, span) <= plan.sizes.walked_choices * factorial(number - span)
