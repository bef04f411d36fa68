"""The exact counts of patterns in which all conditions compare with one event: those of each such event, added up."""

from __future__ import annotations

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
        return [_count(read, group) for group in range(len(events.groups))]
    except (NotPivotal, TooWideForKernels, OverflowInCondition):
        return None


def _count(read: PivotEvents, group: int) -> int:
    nothing = np.zeros(len(read.rows), np.int64)
    events, pivots = read.symbols(group, nothing, nothing, nothing)
    limbs = len(events.rows) // 64 + 2
    here, later = (np.empty((read.states, limbs), np.uint64) for _ in range(2))
    total = np.zeros((1, limbs), np.uint64)
    if not count_of_pivots(events, *read.given, pivots, here, later, total):
        raise NotPivotal
    return sum(limb << (64 * i) for i, limb in enumerate(total[0].tolist()))
