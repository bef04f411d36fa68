"""AGGREGATE of the results of an operator: by its numbers, and, of values that only whole trends have, by listing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from trellis.digits import number_text
from trellis.errors import ListingRefused
from trellis.events.columns.types import normalise, plain_value
from trellis.language.bound import BoundQuery, NamedOutput, Output, OutputKind
from trellis.language.schema import INTEGER
from trellis.operators.bindings import counted_events
from trellis.operators.contract import ListRequest, QueryOperator
from trellis.plan.plan import Plan
from trellis.results.numbers import aggregate_rows
from trellis.results.rows import RowMaker

if TYPE_CHECKING:
    from trellis.operators.aggregates import Aggregates
    from trellis.operators.batch import PathBatch

COUNT_ALL = Output(OutputKind.AGGREGATE, INTEGER, function="COUNT")
HALF = 32  # bits of a word that are summed at a time


def needs_listing(bound: BoundQuery) -> bool:
    """Return whether only listing tells what AGGREGATE asks for: values of whole trends, HAVING PER EVENT."""
    of_trends = any(named.output.arguments for named in bound.aggregates)
    return of_trends or (bound.per_event is not None and bool(bound.having))


def aggregate_answer(plan: Plan, maker: RowMaker, operator: QueryOperator, max_trends: int | None) -> pa.Table:
    """Return the rows of AGGREGATE of all groups of an operator.

    `max_trends` bounds the results that are listed, where that is the only way; None where it was looked at before.

    Raises
    ------
    ListingRefused
        If only listing tells the answer, and there are too many results.
    """
    bound = plan.bound
    if bound.per_event is None:
        return aggregate_rows(plan, maker, _aggregated(plan, maker, operator, max_trends))
    from trellis.results.per_event import ListedNumbers, per_event_table

    numbers = None if needs_listing(bound) else operator.per_event()
    if numbers is None:
        _refuse_many(sum(operator.counts), None if bound.after_match is not None else max_trends)
        numbers = ListedNumbers(plan, RowMaker(plan, operator.events)).of(operator)
    return per_event_table(plan, maker, numbers, operator.counts)


def _refuse_many(total: int, max_trends: int | None) -> None:
    if max_trends is not None and total > max_trends:
        raise ListingRefused(
            f"this AGGREGATE goes through all results, and there are {number_text(total)} of them, more than the bound "
            f"of {max_trends:,} on listing",
            "Aggregate attributes or LENGTH, which needs no listing, make fewer results (HAVING, a shorter WITHIN), or "
            "raise max_trends.",
            total,
        )


def _aggregated(plan: Plan, maker: RowMaker, operator: QueryOperator, max_trends: int | None) -> Sequence[Aggregates]:
    """Return the states of AGGREGATE of each group."""
    bound = plan.bound
    if not needs_listing(bound):
        return operator.aggregate() or _all_listed(plan, operator)
    from trellis.operators.aggregates import Aggregates

    outputs = [named.output for named in bound.aggregates]
    counted = tuple(named for named in bound.aggregates if not named.output.arguments)
    plain = replace(plan, bound=replace(bound, aggregates=counted or (NamedOutput("", COUNT_ALL),)))
    numbers = operator.variant(plain, operator.events).aggregate()
    if numbers is None:
        return _all_listed(plan, operator)
    _refuse_many(sum(one.count for one in numbers), max_trends)
    listed = _Listed([output for output in outputs if output.arguments], maker)
    ranges = [(group, 0, one.count) for group, one in enumerate(numbers)]
    for batch in operator.list(ListRequest(ranges, lambda batch: batch)):
        listed.add(batch)
    found = []
    for group, one in enumerate(numbers):
        own, of_trends = iter(one.states), iter(listed.states(group))
        states = tuple(next(of_trends) if output.arguments else next(own) for output in outputs)
        found.append(Aggregates(one.count, states))
    return found


def _all_listed(plan: Plan, operator: QueryOperator) -> Sequence[Aggregates]:
    """Return the states over the results of an operator that lists them."""
    from trellis.operators.aggregates import Aggregates

    listed = _Listed([named.output for named in plan.bound.aggregates], RowMaker(plan, operator.events))
    counts = operator.counts_before_listing()
    for batch in operator.list(ListRequest([(group, 0, n) for group, n in enumerate(counts)], lambda batch: batch)):
        listed.add(batch)
    return [Aggregates(count, tuple(listed.states(group))) for group, count in enumerate(counts)]


class _Listed:
    """States of aggregates of values of trends, which grow with every batch of these."""

    def __init__(self, outputs: Sequence[Output], maker: RowMaker) -> None:
        from trellis.operators.aggregates import Sum

        self._outputs, self._maker = outputs, maker
        none = {"SUM": Sum(Fraction(0), 0), "AVG": Sum(Fraction(0), 0), "COUNT": 0}
        self._none = [none.get(output.function) for output in outputs]
        self._states: dict[int, list[Any]] = {}

    def states(self, group: int) -> list[Any]:
        """Return the state of each output in a group."""
        return self._states.get(group, self._none)

    def add(self, batch: PathBatch) -> None:
        """Add some trends, in the order of their groups."""
        for place, output in enumerate(self._outputs):
            values, groups = self._values(output, batch)
            begins = np.concatenate([[0], np.flatnonzero(np.diff(groups)) + 1, [len(groups)]])
            for begin, end in zip(begins[:-1].tolist(), begins[1:].tolist(), strict=True):
                if begin < end:
                    states = self._states.setdefault(int(groups[begin]), [*self._none])
                    states[place] = _grown(output.function, states[place], values.slice(begin, end - begin))

    def _values(self, output: Output, batch: PathBatch) -> tuple[pa.Array, NDArray[np.int64]]:
        """Return the values of an item, one for each result or for each of its events, and the groups of these."""
        if output.arguments:
            of_trend = output.arguments[0]
            return normalise(self._maker.values(of_trend, batch), of_trend.type), batch.groups
        if output.column is None and output.variable is None:
            return pa.array(batch.lengths), batch.groups
        of = output.variable if output.column is None else output.column.var
        groups, positions = np.repeat(batch.groups, np.diff(batch.offsets)), batch.positions
        own = counted_events(self._maker.bound, str(of), batch.codes)
        if own is not None:
            groups, positions = groups[own], positions[own]
        if output.column is None:
            return pa.array(positions), groups
        return self._maker.events.columns[output.column.name].take(pa.array(positions)), groups


def _grown(function: str, state: Any, values: pa.Array) -> Any:
    if function == "COUNT":
        return state + len(values)
    if function in ("SUM", "AVG"):
        return state + _sum(values)
    if pa.types.is_floating(values.type):
        values = values.filter(pc.invert(pc.is_nan(values)))
    found = plain_value(pc.min_max(values)["min" if function == "MIN" else "max"]) if len(values) else None
    known = [one for one in (state, found) if one is not None]
    return (min if function == "MIN" else max)(known) if known else None


def _sum(values: pa.Array) -> Any:
    """Return the exact sum of values, with how many there are."""
    from trellis.operators.aggregates import Sum
    from trellis.operators.weights import weigh

    weight = weigh(pa.concat_arrays([values]))
    low, high = weight.low & np.uint64((1 << HALF) - 1), weight.low >> np.uint64(HALF)
    total = 0
    for shift in np.unique(weight.shift).tolist():
        own = weight.shift == shift
        parts = [int(part[own].sum()) for part in (low, high, weight.high)]
        total += (parts[0] + (parts[1] << HALF) + (parts[2] << 2 * HALF)) << shift
    return Sum(
        total * weight.unit, int(weight.present.sum()), bool((weight.infinite > 0).any()),
        bool((weight.infinite < 0).any()),
    )  # fmt: skip
