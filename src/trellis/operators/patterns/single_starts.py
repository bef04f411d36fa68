"""Results counted for each first event by itself, where it is known what may be put before them.

Classes of matches so far count without a graph, see `trellis.kernels.explore.count`, and tell what may be put after a
match. What may be put before one they tell where a longer match has the same rest: then the matches from an event are
results only if they end behind the span of that one, and in a window none of them is. So `SEQ(A+ a[], NOT(B n), C c)`
is counted under REPORT unextendable as quickly as under REPORT any.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from trellis.errors import TrellisError
from trellis.events.slice import Groups, Slice
from trellis.kernels.explore import tables as t
from trellis.kernels.explore.easier import NO_EASE, RegisterEase
from trellis.kernels.explore.starts import CountedStarts
from trellis.language.bound import WindowKind
from trellis.language.syntax import Report, Select
from trellis.operators.patterns.easier import ease_of, untold
from trellis.operators.patterns.explore import Exploration
from trellis.operators.patterns.forecast import HopelessError
from trellis.operators.patterns.variables import Variables
from trellis.plan.carried import ends_are_known
from trellis.plan.plan import Plan

Ints = NDArray[np.int64]
NO_VALUES = np.zeros((3, 0, 0), np.int64)


@dataclass(frozen=True)
class SingleStarts:
    """The tasks of a slice, each with the matches of a span that begin with one event, or with those of a window.

    Attributes
    ----------
    groups
        The events of each task.
    number
        The group of the slice of each.
    covers
        For each event the first at which matches that begin with it may end, to be results.
    chosen
        The events at which results may begin; empty for all, and for a span.
    counts
        The exact number of results of each task.
    """

    exploration: Exploration = field(repr=False)
    groups: Groups
    number: Ints
    covers: Ints
    chosen: NDArray[np.bool_]
    counts: list[int]

    @property
    def alone(self) -> bool:
        """Whether each task has one first event."""
        return self.exploration.plan.bound.window.kind is WindowKind.SPAN

    def of_groups(self, groups: int) -> list[int]:
        """Return the counts of the groups of the slice."""
        totals = [0] * groups
        for group, count in zip(self.number.tolist(), self.counts, strict=True):
            totals[group] += count
        return totals


def count_by_starts(plan: Plan, events: Slice, variables: Variables, exploration: Exploration) -> SingleStarts | None:
    """Return the counts by first events; None where classes of matches so far do not tell what is a result."""
    bound, automaton = plan.bound, plan.automaton
    if bound.having or automaton.concurrent or automaton.paced or bound.select is not Select.ANY:
        return None
    if bound.report is Report.MAXIMAL or not (bound.report is Report.ANY or ends_are_known(plan)):
        return None
    alphabet = exploration.compiled.alphabet
    firsts = {one.variable for one in automaton.transitions if one.source == 0}
    if not automaton.complete or len(firsts) > 1 or exploration.compiled.number(t.EDGED):
        return None
    if len(alphabet.letters) != len(alphabet.variables):  # REPORT does not look at iterations
        return None
    (first,) = firsts
    letter = -1
    if bound.report is Report.UNEXTENDABLE and automaton.is_preceded():
        letter = alphabet.variables[first]
    try:
        if bound.window.kind is WindowKind.SPAN:
            return _of_spans(events, variables.usable[first], exploration, letter)
        return _of_windows(events, exploration, letter)
    except HopelessError:
        raise
    except TrellisError:  # too much: perhaps not as a graph
        return None


def _of_spans(events: Slice, usable: NDArray[np.bool_], exploration: Exploration, letter: int) -> SingleStarts | None:
    firsts = np.flatnonzero(usable)
    number = np.searchsorted(events.groups.lo, firsts, side="right") - 1
    tasks = Groups(firsts, events.until[firsts].astype(np.int64), events.groups.number[number])
    covers, others = np.zeros((2, len(events) + 1), np.int64)
    none = np.empty(0, np.bool_)
    counts = exploration.numbers(
        tasks, CountedStarts(True, letter, covers, others, _ease(exploration), NO_VALUES), none
    )
    if counts is None:
        return None
    if events.begins is not None:
        counts = [count if begins else 0 for count, begins in zip(counts, events.begins[firsts].tolist(), strict=True)]
    return SingleStarts(exploration, tasks, number, covers, none, counts)


def _of_windows(events: Slice, exploration: Exploration, letter: int) -> SingleStarts | None:
    groups, size = events.groups, len(events)
    covers, others = np.zeros((2, size + 1), np.int64)
    chosen = np.empty(0, np.bool_) if events.begins is None else events.begins
    if letter >= 0:
        if (groups.lo[1:] < groups.hi[:-1]).any():  # an event has another place in each window
            return None
        nothing = np.zeros((3, len(exploration.compiled.alphabet.letters), size), np.int64)
        starts = CountedStarts(False, letter, covers, others, _ease(exploration), nothing)
        if exploration.numbers(groups, starts, np.empty(0, np.bool_), best=True) is None:  # numbers would take longer
            return None
        chosen = (covers[:size] == 0) & (True if events.begins is None else events.begins)
    counts = exploration.numbers(groups, CountedStarts(False, -1, covers, others, NO_EASE, NO_VALUES), chosen)
    return None if counts is None else SingleStarts(exploration, groups, np.arange(len(groups)), covers, chosen, counts)


def _ease(exploration: Exploration) -> RegisterEase:
    """Return the order of ease of the values of registers, where it says enough of what longer matches may do."""
    compiled, events = exploration.compiled, exploration.events
    if compiled.number(t.GROUPS) or compiled.number(t.RESULTS):
        return untold(len(compiled.registers), len(events))
    return ease_of(compiled.guard_terms, compiled.registers, events.columns, len(events))
