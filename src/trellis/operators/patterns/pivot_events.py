"""The events of a slice as results with a pivot read them: which variable each has, and room for those of one pivot."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from trellis.events.columns.program import compile_programs
from trellis.events.slice import Slice
from trellis.kernels.expression.program import COMPARE_COLUMNS
from trellis.kernels.pivots.cases import EventSymbols, PivotCase
from trellis.language.bound import WindowKind
from trellis.operators.patterns.pivot_automaton import NotPivotal, PivotMachine
from trellis.operators.patterns.variables import Variables
from trellis.plan.pivots import PivotPlan
from trellis.plan.plan import Plan

Ints = NDArray[np.int64]
MOST_STEPS = 1 << 31  # of pivots times events


class PivotEvents:
    """The events of a slice that have a variable, once for each that they have.

    Parameters
    ----------
    ordered
        Whether results must come in their order: that looks at all events first and then at the variables, so an event
        may have one alone.

    Raises
    ------
    NotPivotal
        If an event has several variables that may have one, attributes lack values that they must have, or there are
        too many events.
    """

    def __init__(
        self, plan: Plan, pivots: PivotPlan, events: Slice, variables: Variables, ordered: bool = True
    ) -> None:
        if any(_lacks_values(events.columns[name]) for name in pivots.present):
            raise NotPivotal
        self.names = [*variables.codes]
        self.code = variables.codes[pivots.pivot]
        usable = np.stack([variables.usable[name] for name in self.names])
        if ordered and (usable.sum(axis=0) > 1).any():
            raise NotPivotal
        self.rows, self.codes = (one.astype(np.int64) for one in np.nonzero(usable.T))
        self.times = np.append(0, np.cumsum(np.diff(events.ticks[self.rows]) != 0)).astype(np.int64)
        self.begin, self.end = (np.searchsorted(self.rows, at) for at in (events.groups.lo, events.groups.hi))
        self.span = plan.bound.window.kind is WindowKind.SPAN
        self._until = np.searchsorted(self.rows, events.until[self.rows])
        self._begins = np.ones(len(self.rows), np.bool_) if events.begins is None else events.begins[self.rows]
        self.longest = int((self.end - self.begin).max(initial=0))
        if self._steps() > MOST_STEPS:
            raise NotPivotal
        if plan.automaton.concurrent and (np.diff(self.times) == 0).any():
            raise NotPivotal  # arms may take events of the same time
        machine = PivotMachine(pivots, plan.automaton, dict(variables.codes), plan.bound.report)
        programs = compile_programs(
            machine.values, lambda _, reference: int(reference.var != pivots.pivot), events.columns, len(events)
        )
        self.machine, self.asks, self._programs = machine, machine.asks, programs.programs
        if pivots.extreme is not None:
            self.asks = self.asks._replace(column=self._column(programs.instructions(len(machine.values) - 1)))
        whole, real, there = programs.scratch()
        size, self.states = self.longest + 1, len(machine.tables.step)
        self._case = PivotCase(
            places=np.empty(size, np.int64), symbols=np.empty(size, np.int64), later=np.empty(size, np.int64),
            before=np.empty(size, np.int64), behind=np.empty(size, np.int64), starts=np.empty(size, np.int64),
            rest=np.empty((size, self.states), np.int64), counts=np.empty((size, self.states), np.uint64),
            latest=np.empty((size, len(machine.tables.every)), np.int64), turn=np.zeros(5, np.int64),
            chosen=np.zeros(2, np.int64), whole=whole, real=real, there=there,
        )  # fmt: skip

    def _steps(self) -> float:
        """Return about how many events are looked at for each pivot, and under a span for each first event as well."""
        pivots = np.append(0, np.cumsum(self.codes == self.code)).astype(np.float64)
        if self.span:
            reach = (self._until - np.arange(len(self._until))).astype(np.float64)
            return float((reach * (pivots[self._until] - pivots[:-1])).sum())
        return float(((self.end - self.begin) * (pivots[self.end] - pivots[self.begin])).sum())

    def _column(self, instructions: Any) -> int:
        """Return the row of codes by which an extreme pivot is the most extreme of its variable's events."""
        first, *more = instructions.tolist()
        if more or first[0] != COMPARE_COLUMNS:
            raise NotPivotal
        return int(first[2])

    @property
    def given(self) -> tuple[Any, ...]:
        """The arguments of kernels behind the events of a group."""
        return self.machine.tables, self.asks, self._programs, self._case, self.code

    def symbols(self, each: Ints, first: Ints, last: Ints) -> EventSymbols:
        """Return the events of all groups, with what each gives to the value of a result, and as its first and last."""
        until = self._until
        if self.span:  # no event is in two groups, and some are in none
            group = np.searchsorted(self.begin, np.arange(len(until)), side="right") - 1
            until = until - np.append(self.begin, 0)[group]
        return EventSymbols(self.rows, self.codes, self.times, each, first, last, until, self._begins, self.span)


def _lacks_values(values: pa.Array) -> bool:
    """Return whether some event has NULL or NaN."""
    return bool(values.null_count or (pa.types.is_floating(values.type) and pc.any(pc.is_nan(values)).as_py()))
