"""AGGREGATE PER EVENT as rows, and its states by listing where no passes tell them."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from trellis.events.columns.ordering import rank_codes
from trellis.events.columns.types import normalise, physical, plain_value
from trellis.language.bound import COUNTING, Output
from trellis.operators.bindings import counted_events
from trellis.operators.contract import ListRequest, QueryOperator
from trellis.plan.plan import Plan
from trellis.results.numbers import aggregate_schema, exact_columns, is_exact
from trellis.results.rows import RowMaker, arrow_type, taking
from trellis.results.taken import present

if TYPE_CHECKING:
    from trellis.operators.batch import PathBatch
    from trellis.operators.per_event import EventNumbers

Ints = NDArray[np.int64]
EXACT = 1 << 53  # numbers below are exact as doubles
MASK = 2**64 - 1


def per_event_table(plan: Plan, maker: RowMaker, numbers: EventNumbers, counts: Sequence[int]) -> pa.Table:
    """Return a row for each event that is in a result, in the order of windows, partitions and events.

    `counts` has the number of results of each group, of which SHARE is a part.
    """
    columns = [*maker.lead(numbers.groups), maker.event_ids(numbers.events)]
    for named, states in zip(plan.bound.aggregates, numbers.states, strict=True):
        if named.output.function == "SHARE":
            columns.append(_shares(states, numbers.groups, counts))
        else:
            columns += _columns(named.output, states)
    return pa.Table.from_arrays(columns, schema=aggregate_schema(plan.bound))


def _shares(states: Sequence[int], groups: Ints, counts: Sequence[int]) -> pa.Array:
    """Return the numbers divided by those of their groups, each rounded once."""
    if max(counts, default=0) < EXACT:
        return pa.array(np.array(states, np.float64) / np.array(counts, np.float64)[groups])
    totals = np.array(counts, object)[groups]
    shares, doubtful = _nearly(states, counts, groups)
    for i in doubtful.tolist():
        shares[i] = states[i] / totals[i]
    return pa.array(shares)


def _nearly(states: Sequence[int], counts: Sequence[int], groups: Ints) -> tuple[NDArray[np.float64], Ints]:
    """Return the shares by numbers of 64 bits, and those of them that may have been rounded to the wrong side."""
    from trellis.operators.exact import WideNumbers

    if not isinstance(states, WideNumbers) or states.words.shape[1] != 2:
        return np.zeros(len(states)), np.arange(len(states))
    if np.finfo(np.longdouble).nmant < 63 or max(counts) >> 1000:
        return np.zeros(len(states)), np.arange(len(states))
    low, high = states.words.T.astype(np.longdouble)
    wide = high * np.longdouble(2) ** 64 + low
    totals = np.array([np.longdouble(count >> 64) * np.longdouble(2) ** 64 + np.longdouble(count & MASK)
                       for count in counts])  # fmt: skip
    exact = wide / totals[groups]
    shares = exact.astype(np.float64)
    off, step = np.abs(exact - shares), np.spacing(shares).astype(np.longdouble)
    apart = np.minimum(np.abs(off - step / 2), np.abs(off - step / 4))  # a power of two has a nearer neighbour below
    return shares, np.flatnonzero(apart <= exact * np.longdouble(2) ** -62)


def _columns(output: Output, states: Sequence[Any]) -> list[pa.Array]:
    from trellis.operators.aggregates import value_of

    values = states if output.function in COUNTING else [value_of(output, state) for state in states]
    if is_exact(output):
        return exact_columns(values, output.type.scale)
    return [present(pa.array(values, physical(output.type)), arrow_type(output.type))]


class ListedNumbers:
    """States over the results through each event, of results that are listed.

    Parameters
    ----------
    plan
        The plan of the query.
    maker
        Gives the values of whole results.
    """

    def __init__(self, plan: Plan, maker: RowMaker) -> None:
        self._maker, self._events = maker, maker.events
        self._outputs = [named.output for named in plan.bound.aggregates]
        names = taking(plan.bound)
        self._codes = {name: code for code, name in enumerate(names)} if len(names) > 1 else {}
        wanted = None if plan.bound.per_event is None else plan.bound.per_event.var
        self._wanted = None if wanted is None else self._codes.get(wanted)

    def of(self, operator: QueryOperator) -> EventNumbers:
        """Return the rows of all results of an operator."""
        from trellis.operators.per_event import join_rows

        ranges = [(group, 0, count) for group, count in enumerate(operator.counts)]
        parts = list(operator.list(ListRequest(ranges, self._rows)))
        return join_rows(self._outputs, parts, len(self._events))

    def _rows(self, batch: PathBatch) -> EventNumbers:
        from trellis.operators.per_event import EventNumbers

        lengths = np.diff(batch.offsets)
        result = np.repeat(np.arange(len(batch)), lengths)
        positions = batch.positions.astype(np.int64)
        self._edges = {name: np.zeros(len(positions), np.int64) for name in ("BEGINS", "ENDS")}
        for edge, places in (("BEGINS", batch.offsets[:-1]), ("ENDS", batch.offsets[1:] - 1)):
            self._edges[edge][places] = 1
        if self._wanted is not None:
            assert batch.variables is not None
            own = batch.variables == self._wanted
            result, positions = result[own], positions[own]
            self._edges = {edge: flags[own] for edge, flags in self._edges.items()}
        keys, row = np.unique(batch.groups[result] * max(len(self._events), 1) + positions, return_inverse=True)
        counts = np.bincount(row, minlength=len(keys)).tolist()
        states = [self._states(output, batch, result, row, counts) for output in self._outputs]
        return EventNumbers(keys // max(len(self._events), 1), keys % max(len(self._events), 1), counts, states)

    def _states(
        self, output: Output, batch: PathBatch, result: Ints, row: Ints, counts: Sequence[int]
    ) -> Sequence[Any]:
        """Return the state of each row: of the results that `result` names, each in the row that `row` names."""
        from trellis.operators.aggregates import Sum

        function = output.function
        if function == "SHARE" or (function == "COUNT" and output.variable is None):
            return counts
        if function in self._edges:
            return np.bincount(row, self._edges[function], len(counts)).astype(np.int64).tolist()
        column, values = self._values(output, batch)
        if function in ("MIN", "MAX"):
            return self._extremes(function == "MAX", column, values, batch, result, row, len(counts))
        totals, numbers, plus, minus = self._sums(column, values, batch)
        found = []
        for own in (totals, numbers, plus, minus):
            table = np.zeros(len(counts), object)
            np.add.at(table, row, own[result])
            found.append(table.tolist())
        if function == "COUNT":
            return found[1]
        unit = self._unit
        return [Sum(t * unit, int(n), bool(p), bool(m)) for t, n, p, m in zip(*found, strict=True)]

    def _values(self, output: Output, batch: PathBatch) -> tuple[pa.Array, bool]:
        """Return a value for each event of the batch, or, with True, for each result."""
        if output.arguments:
            of_trend = output.arguments[0]
            return normalise(self._maker.values(of_trend, batch), of_trend.type), True
        if output.column is None and output.variable is None:
            return pa.array(batch.lengths), True
        name = output.column.var if output.column is not None else output.variable
        own = counted_events(self._maker.bound, str(name), batch.codes)
        mask = None if own is None else ~own
        if output.column is None:
            return pa.array(np.ones(len(batch.positions), np.int64), mask=mask), False
        return self._events.columns[output.column.name].take(pa.array(batch.positions, mask=mask)), False

    def _sums(self, column: pa.Array, of_results: bool, batch: PathBatch) -> list[NDArray[Any]]:
        """Return for each result the exact sum, in units of `_unit`, how many values, and whether some are infinite."""
        from trellis.operators.weights import weigh

        weight = weigh(pa.concat_arrays([column]))
        self._unit: Fraction = weight.unit
        whole = (weight.high.astype(object) * 2**64 + weight.low.astype(object)) * 2 ** weight.shift.astype(object)
        parts = [whole, weight.present.astype(object), (weight.infinite > 0) + 0, (weight.infinite < 0) + 0]
        if of_results:
            return parts
        begins = batch.offsets[:-1].astype(np.int64)
        return [np.add.reduceat(part, begins) for part in parts]

    def _extremes(
        self, greatest: bool, column: pa.Array, of_results: bool, batch: PathBatch, result: Ints, row: Ints, rows: int
    ) -> Sequence[Any]:
        codes = rank_codes([column])[0]
        known, places = np.unique(codes, return_index=True)
        better = np.maximum if greatest else np.minimum
        none = -1 if greatest else len(codes)
        codes = np.where(codes < 0, none, codes)
        if not of_results:
            codes = better.reduceat(codes, batch.offsets[:-1].astype(np.int64))
        best = np.full(rows, none, np.int64)
        better.at(best, row, codes[result])
        values = {int(c): plain_value(column[int(at)]) for c, at in zip(known, places, strict=True) if c >= 0}
        return [values.get(code) for code in best.tolist()]
