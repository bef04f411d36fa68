"""The exact counts of patterns in which all conditions compare with one event: those of each such event, added up."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from trellis.errors import OverflowInCondition
from trellis.events.columns.program_tables import TooWideForKernels
from trellis.events.slice import Slice
from trellis.kernels.pivots.counts import count_of_pivots
from trellis.operators.patterns.pivot_automaton import NotPivotal
from trellis.operators.patterns.pivot_events import PivotEvents
from trellis.operators.patterns.variables import Variables
from trellis.plan.pivots import pivots_that_count
from trellis.plan.plan import Plan


def counts_by_pivots(plan: Plan, events: Slice, variables: Variables) -> list[int] | None:
    """Return the exact number of results of each group; None where they are to be counted in another way."""
    pivots = pivots_that_count(plan)
    if pivots is None:
        return None
    try:
        read = PivotEvents(plan, pivots, events, variables, ordered=False)
        return _counts(read)
    except (NotPivotal, TooWideForKernels, OverflowInCondition):
        return None


def _counts(read: PivotEvents) -> list[int]:
    nothing = np.zeros(len(read.rows), np.int64)
    symbols = read.symbols(nothing, nothing, nothing)
    most = read.longest // 64 + 2
    here, later = (np.empty((read.states, most), np.uint64) for _ in range(2))
    ends = np.cumsum((read.end - read.begin) // 64 + 2)
    limbs = np.empty(int(ends[-1]) if len(ends) else 0, np.uint64)
    room = here, later, np.zeros((1, most), np.uint64)
    if not count_of_pivots(symbols, *read.given, read.begin, read.end, *room, limbs, ends):
        raise NotPivotal
    numbers = memoryview(limbs.astype("<u8").tobytes())  # the least limb first, as the bytes of each
    return [int.from_bytes(numbers[8 * lo : 8 * hi], "little") for lo, hi in pairwise([0, *ends.tolist()])]
