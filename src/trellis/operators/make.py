"""Which operator runs a plan."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from trellis.algorithms.registry import NAMED
from trellis.events.slice import Slice
from trellis.operators.trends.operator import TrendOperator
from trellis.plan.plan import Plan, is_one_kleene
from trellis.plan.sequence import CONDENSED, OF_SEQUENCES, TREE, looks_at_neighbours, sequence_of

if TYPE_CHECKING:
    from trellis.operators.patterns.operator import PatternOperator
    from trellis.operators.sequences.operator import SequenceOperator

    Operator = TrendOperator | PatternOperator | SequenceOperator
else:
    Operator = object


def make_operator(plan: Plan, events: Slice, threads: int = 1) -> Operator:
    """Return what answers questions about the results of a plan over a slice."""
    if plan.algorithm in NAMED:
        from trellis.algorithms.operator import NamedOperator  # late: its kernels take their time

        return NamedOperator(plan, events, threads)
    if is_one_kleene(plan.bound):
        return TrendOperator(plan, events, threads)
    from trellis.operators.patterns.operator import PatternOperator  # late: what counts one variable starts without it

    if plan.algorithm in OF_SEQUENCES or (sequence_of(plan) is not None and not looks_at_neighbours(plan)):
        from trellis.operators.sequences.candidates import NotComparable
        from trellis.operators.sequences.operator import SequenceOperator, TreeOperator

        with suppress(NotComparable):
            return (TreeOperator if plan.algorithm in (TREE, CONDENSED) else SequenceOperator)(plan, events, threads)
    return PatternOperator(plan, events, threads)
