"""AGGREGATE PER EVENT: the states of its items over the results that hold one event."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from trellis.events.columns.ordering import rank_codes
from trellis.events.columns.types import plain_value
from trellis.events.slice import Ints
from trellis.language.bound import COUNTING, Output
from trellis.operators.aggregates import Sum, joined_state
from trellis.operators.exact import WideNumbers
from trellis.operators.weights import weigh

if TYPE_CHECKING:
    from trellis.operators.trends.through import TrendsThrough


@dataclass(frozen=True)
class EventNumbers:
    """A row for each event of a group that is in a result: the number of results through it, and states over them.

    Attributes
    ----------
    groups, events
        The group and the position of the event of each row.
    counts
        The number of results through it.
    states
        For each item of AGGREGATE a list with the state of each row; see `trellis.operators.aggregates`.
    """

    groups: Ints
    events: Ints
    counts: Sequence[int]
    states: Sequence[Sequence[Any]]

    def chosen(self, rows: Ints) -> EventNumbers:
        """Return some rows."""
        places = rows.tolist()

        def picked(column: Sequence[Any]) -> Sequence[Any]:
            return column.taken(rows) if isinstance(column, WideNumbers) else [column[i] for i in places]

        return EventNumbers(self.groups[rows], self.events[rows], picked(self.counts), [*map(picked, self.states)])


def numbers_through(through: TrendsThrough, outputs: Sequence[Output], columns: Mapping[str, pa.Array]) -> EventNumbers:
    """Return the rows of the trends through each event, counted without listing them."""
    counts = through.counts()
    states = [_states(output, through, columns, counts) for output in outputs]
    return EventNumbers(through.groups, through.events, counts, states)


def _states(
    output: Output, through: TrendsThrough, columns: Mapping[str, pa.Array], counts: Sequence[int]
) -> Sequence[Any]:
    function = output.function
    if function == "SHARE" or (function == "COUNT" and output.variable is None):
        return counts
    if function in ("BEGINS", "ENDS"):
        return through.counts(function)
    if output.column is None:
        if function in ("MIN", "MAX"):
            return through.lengths(function == "MAX").tolist()
        lengths = through.sums(lambda _: np.ones((1, through.size), np.uint64), 1)[0]
        if function == "COUNT":
            return lengths
        return [Sum(Fraction(total), count) for total, count in zip(lengths, counts, strict=True)]
    column = columns[output.column.name]
    if function in ("MIN", "MAX"):
        return values_of_codes(column, through.extremes(rank_codes([column])[0], function == "MAX"))
    return _sums(column, through)


def _sums(column: pa.Array, through: TrendsThrough) -> Sequence[Sum]:
    weight = weigh(column)
    flags = [weight.present]
    if weight.infinite.any():
        flags += [weight.infinite > 0, weight.infinite < 0]
    others = np.stack([flag.astype(np.uint64) for flag in flags])

    def residues(prime: int) -> NDArray[np.uint64]:
        return np.concatenate([weight.modulo(prime)[None], others])

    totals, numbers, *infinite = through.sums(residues, weight.bits)
    signs = [[number > 0 for number in row] for row in infinite] or [[False] * len(totals)] * 2
    return [
        Sum(total * weight.unit, number, plus, minus)
        for total, number, plus, minus in zip(totals, numbers, *signs, strict=True)
    ]


def values_of_codes(column: pa.Array, codes: Ints) -> Sequence[Any]:
    """Return the values that codes of `rank_codes` stand for; None for -1."""
    own = rank_codes([column])[0]
    known, places = np.unique(own, return_index=True)
    values = {int(code): plain_value(column[int(at)]) for code, at in zip(known, places, strict=True) if code >= 0}
    return [values.get(code) for code in codes.tolist()]


def join_rows(outputs: Sequence[Output], parts: Sequence[EventNumbers], events: int) -> EventNumbers:
    """Return rows in the order (group, event), with those of the same event of a group as one."""
    if len(parts) == 1 and (np.diff(parts[0].groups * max(events, 1) + parts[0].events) > 0).all():
        return parts[0]
    groups = np.concatenate([np.empty(0, np.int64), *(part.groups for part in parts)])
    places = np.concatenate([np.empty(0, np.int64), *(part.events for part in parts)])
    counts = [count for part in parts for count in part.counts]
    states = [[one for part in parts for one in part.states[i]] for i in range(len(outputs))]
    keys = groups * max(events, 1) + places
    order = np.argsort(keys, kind="stable")
    found = EventNumbers(groups, places, counts, states).chosen(order)
    begins = np.flatnonzero(np.concatenate([[True], np.diff(keys[order]) > 0])) if len(order) else order
    if len(begins) == len(order):
        return found
    joined = [_joined(output, column, begins) for output, column in zip(outputs, found.states, strict=True)]
    return EventNumbers(found.groups[begins], found.events[begins], _added(found.counts, begins), joined)


def _joined(output: Output, states: Sequence[Any], begins: Ints) -> Sequence[Any]:
    """Return one state for each run of them."""
    if output.function in (*COUNTING, "SHARE"):
        return _added(states, begins)
    ends = [*begins[1:].tolist(), len(states)]
    return [joined_state(output, list(states[a:b])) for a, b in zip(begins.tolist(), ends, strict=True)]


def _added(numbers: Sequence[int], begins: Ints) -> list[int]:
    """Return the sum of each run of numbers of any size."""
    known: list[int] = np.add.reduceat(np.array(numbers, object), begins).tolist()
    return known
