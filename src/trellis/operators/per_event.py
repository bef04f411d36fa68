"""AGGREGATE PER EVENT: the states of its items over the results that hold one event, in columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias, cast

import numpy as np
import pyarrow as pa

from trellis.events.columns.ordering import rank_codes
from trellis.events.slice import Ints
from trellis.language.bound import COUNTING, Output
from trellis.operators.sums import SumColumn
from trellis.operators.wide import WideNumbers

States: TypeAlias = WideNumbers | SumColumn | pa.Array  # of counts, of SUM and AVG, of MIN and MAX


@dataclass(frozen=True)
class EventNumbers:
    """A row for each event of a group that is in a result: states over the results through it.

    Attributes
    ----------
    groups, events
        The group and the position of the event of each row.
    states
        For each item of AGGREGATE a column with the state of each row.
    """

    groups: Ints
    events: Ints
    states: Sequence[States]

    def chosen(self, rows: Ints) -> EventNumbers:
        """Return some rows."""
        return EventNumbers(self.groups[rows], self.events[rows], [_taken(states, rows) for states in self.states])


def _taken(states: States, rows: Ints) -> States:
    return states.take(pa.array(rows)) if isinstance(states, pa.Array) else states.taken(rows)


def values_of_codes(column: pa.Array, codes: Ints) -> pa.Array:
    """Return the values that codes of `rank_codes` stand for; NULL for -1."""
    known, places = np.unique(rank_codes([column])[0], return_index=True)
    at = places[np.minimum(np.searchsorted(known, codes), len(known) - 1)] if len(known) else codes
    return column.take(pa.array(at, mask=codes < 0))


def join_rows(outputs: Sequence[Output], parts: Sequence[EventNumbers], events: int) -> EventNumbers:
    """Return rows in the order (group, event), with those of the same event of a group as one."""
    if len(parts) == 1 and (np.diff(parts[0].groups * max(events, 1) + parts[0].events) > 0).all():
        return parts[0]
    groups = np.concatenate([np.empty(0, np.int64), *(part.groups for part in parts)])
    places = np.concatenate([np.empty(0, np.int64), *(part.events for part in parts)])
    keys = groups * max(events, 1) + places
    order = np.argsort(keys, kind="stable")
    begins = np.flatnonzero(np.concatenate([[True], np.diff(keys[order]) > 0])) if len(order) else order
    states = [_joined(output, [part.states[i] for part in parts], order, begins) for i, output in enumerate(outputs)]
    return EventNumbers(groups[order][begins], places[order][begins], states)


def _joined(output: Output, parts: Sequence[States], order: Ints, begins: Ints) -> States:
    """Return one state for each run of the states of several columns in an order."""
    if output.function in (*COUNTING, "SHARE"):
        return WideNumbers.concat(cast(Sequence[WideNumbers], parts)).taken(order).added(begins)
    if output.function in ("SUM", "AVG"):
        return SumColumn.concat(cast(Sequence[SumColumn], parts)).taken(order).added(begins)
    if not len(begins):
        return pa.nulls(0)
    values = pa.concat_arrays(parts)
    codes, greatest = rank_codes([values])[0][order], output.function == "MAX"
    none = -1 if greatest else len(codes)
    best = (np.maximum if greatest else np.minimum).reduceat(np.where(codes < 0, none, codes), begins)
    return values_of_codes(values, np.where(best == none, -1, best))
