"""AGGREGATE PER EVENT as rows, and its states by listing where no passes tell them."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, cast

import numpy as np
import pyarrow as pa

from trellis.events.columns.ordering import rank_codes
from trellis.events.columns.types import normalise
from trellis.language.bound import Output
from trellis.operators.bindings import counted_events
from trellis.operators.contract import ListRequest, QueryOperator
from trellis.operators.per_event import EventNumbers, States, join_rows, values_of_codes
from trellis.operators.sums import SumColumn
from trellis.operators.weights import weigh
from trellis.operators.wide import Ints, WideNumbers, nearest_quotients
from trellis.plan.plan import Plan
from trellis.results.numbers import aggregate_schema, exact_columns, is_exact
from trellis.results.rows import RowMaker, arrow_type, taking
from trellis.results.taken import present

if TYPE_CHECKING:
    from trellis.operators.batch import PathBatch


def per_event_table(plan: Plan, maker: RowMaker, numbers: EventNumbers, counts: Sequence[int]) -> pa.Table:
    """Return a row for each event that is in a result, in the order of windows, partitions and events.

    `counts` has the number of results of each group, of which SHARE is a part.
    """
    columns = [*maker.lead(numbers.groups), maker.event_ids(numbers.events)]
    for named, states in zip(plan.bound.aggregates, numbers.states, strict=True):
        if named.output.function == "SHARE":
            columns.append(shares_of(cast(WideNumbers, states), numbers.groups, counts))
        else:
            columns += _columns(named.output, states)
    return pa.Table.from_arrays(columns, schema=aggregate_schema(plan.bound))


def shares_of(states: WideNumbers, groups: Ints, counts: Sequence[int]) -> pa.Array:
    """Return the numbers divided by those of their groups, each rounded once."""
    return pa.array(nearest_quotients(states, WideNumbers.of(list(counts)).taken(groups)))


def _columns(output: Output, states: States) -> list[pa.Array]:
    if isinstance(states, WideNumbers):
        return exact_columns(states, 0)
    if isinstance(states, SumColumn):
        if output.function == "AVG":
            return [states.means()]
        if not is_exact(output):
            return [states.doubles()]
        assert not len(states) or states.unit == Fraction(1, 10**output.type.scale)
        return exact_columns(states.totals, output.type.scale, states.known)
    return [present(normalise(states, output.type), arrow_type(output.type))]


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
        ranges = [(group, 0, count) for group, count in enumerate(operator.counts_before_listing())]
        parts = list(operator.list(ListRequest(ranges, self._rows)))
        return join_rows(self._outputs, parts, len(self._events))

    def _rows(self, batch: PathBatch) -> EventNumbers:
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
        counts = np.bincount(row, minlength=len(keys))
        states = [self._states(output, batch, result, row, counts) for output in self._outputs]
        return EventNumbers(keys // max(len(self._events), 1), keys % max(len(self._events), 1), states)

    def _states(self, output: Output, batch: PathBatch, result: Ints, row: Ints, counts: Ints) -> States:
        """Return the state of each row: of the results that `result` names, each in the row that `row` names."""
        function = output.function
        if function == "SHARE" or (function == "COUNT" and output.variable is None):
            return WideNumbers.of(counts)
        if function in self._edges:
            return WideNumbers.of(np.bincount(row, self._edges[function], len(counts)))
        column, values = self._values(output, batch)
        if function in ("MIN", "MAX"):
            return self._extremes(function == "MAX", column, values, batch, result, row, len(counts))
        sums = self._sums(column, values, batch)
        order = np.argsort(row, kind="stable")
        found = sums.taken(result[order]).added(np.cumsum(counts) - counts)
        return found.numbers if function == "COUNT" else found

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

    def _sums(self, column: pa.Array, of_results: bool, batch: PathBatch) -> SumColumn:
        """Return the exact sum of each result."""
        weight = weigh(pa.concat_arrays([column]))
        numbers = WideNumbers.of(weight.present)
        sums = SumColumn(weight.whole(), numbers, weight.infinite > 0, weight.infinite < 0, weight.unit)
        return sums if of_results else sums.added(batch.offsets[:-1].astype(np.int64))

    def _extremes(
        self, greatest: bool, column: pa.Array, of_results: bool, batch: PathBatch, result: Ints, row: Ints, rows: int
    ) -> pa.Array:
        codes = rank_codes([column])[0]
        better = np.maximum if greatest else np.minimum
        none = -1 if greatest else len(codes)
        codes = np.where(codes < 0, none, codes)
        if not of_results:
            codes = better.reduceat(codes, batch.offsets[:-1].astype(np.int64))
        best = np.full(rows, none, np.int64)
        better.at(best, row, codes[result])
        return values_of_codes(column, np.where(best == none, -1, best))
