"""Why events are not a result: the best reading of them, the condition that failed, and what would have been needed.

Everything is asked of the engine itself, over the few events that matter: these alone, and these with one other event.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trellis.engines.local.results import LocalResults
from trellis.errors import UsageError
from trellis.events.clock import Clock
from trellis.events.columns.types import normalise, plain_value
from trellis.events.prepare import positions_of
from trellis.language import syntax as s
from trellis.language.binder import bind
from trellis.language.bound import WindowKind
from trellis.language.printer import pattern_text, to_query_text
from trellis.language.schema import INTEGER, Table
from trellis.plan.choice import make_plan
from trellis.plan.plan import Plan
from trellis.results.display import array_text, python_values, value_text
from trellis.results.funnel import step_plans, variables_of
from trellis.results.why import Candidate, Check, Reasons, having_checks, partition_check

NUMBER = "__number"  # the column of ids of events that have none
MOST_READINGS = 2000  # ways to bind the events to variables that are tried
MOST_OTHERS = 200  # other events that are tried as the cause


def why_not(results: LocalResults, ids: Sequence[Any] | None, partition: Any) -> Reasons:
    """Return why events, or a whole partition, have no result: see `Query.why_not`."""
    if (ids is None) == (partition is None):
        raise UsageError("why_not() asks of certain events or of a partition", "Give ids=[...] or partition={...}.")
    case = _Case(results)
    return case.of_ids(list(ids)) if ids is not None else case.of_partition(partition)


class _Case:
    """The events of a question, with their ids, and the query in parts."""

    def __init__(self, results: LocalResults) -> None:
        schema = results.plan.bound.schema
        assert schema is not None
        self.results, self.schema, self.plan = results, schema, results.plan
        self.table: pa.Table = results.source_table
        if schema.event_id is None:  # the numbers of events must stay theirs in a part of the table
            self._number_events()
        self.bound = self.plan.bound
        assert self.schema.event_id is not None
        self.ids = python_values(self.table[self.schema.event_id])
        self.times, self.ticks = self.times_of(self.table), self.ticks_of(self.table)

    def _number_events(self) -> None:
        bound = self.plan.bound
        self.table = self.table.append_column(NUMBER, positions_of(self.table, bound))
        tables = tuple(Table(t.type, {**t.columns, NUMBER: INTEGER}) for t in self.schema.tables)
        self.schema = replace(self.schema, tables=tables, event_id=NUMBER)
        self.plan = make_plan(bind(bound.syntax, bound.text, self.schema, bound.given, str(bound.report)))

    # --- Certain events ---------------------------------------------------------------------------------------

    def of_ids(self, ids: list[Any]) -> Reasons:
        places = self._in_time([self._place(one) for one in ids])
        wanted = [self.ids[place] for place in places]
        shown = array_text(wanted)
        alone = self.table.take(pa.array(places))
        failing = [c for c in self._shape_checks(alone, wanted) if not c.holds]
        if failing or not self._matches(alone, wanted, self._variant(report=s.Report.ANY, select=s.Select.ANY)):
            failing += self._best_reading(alone, wanted, bool(failing))
        if failing:
            return Reasons(f"not a match: {shown}", failing)
        readings = self._readings(alone, wanted)
        reading = next((one for one in readings if not one.failures()), readings[0])
        asked = having_checks(self.bound, len(wanted)) + reading.filters()
        failing = [check for check in asked if not check.holds]
        failing = failing or self._because_of_others(places, wanted)
        if failing:
            return Reasons(f"a match, but not a result: {shown}", failing)
        return Reasons(f"it is a result: {shown}", reading.checks())

    def _place(self, one: Any) -> int:
        try:
            return self.ids.index(one)
        except ValueError:
            raise UsageError(f"no event has the id `{one}`", f"Ids are such as {array_text(self.ids[:3])}.") from None

    def _in_time(self, places: list[int]) -> list[int]:
        return sorted(dict.fromkeys(places), key=lambda place: self.ticks[place])

    def _shape_checks(self, alone: pa.Table, ids: Sequence[Any]) -> list[Check]:
        """Return whether the events agree in the partition, and lie in one window or span."""
        checks = partition_check(self.bound, {name: python_values(alone[name]) for name, _ in self.bound.partition})
        if self.bound.window.kind is not WindowKind.WHOLE and not self._fits_window(alone):
            times = python_values(alone[self.schema.time])
            clause = to_query_text(self._variant().bound.syntax).splitlines()[-1].strip()
            checks.append(Check(clause, False, {"first": times[0], "last": times[-1]}, (ids[0], ids[-1])))
        return checks

    def _fits_window(self, alone: pa.Table) -> bool:
        """Return whether some window, or the span, holds all of the events."""
        clock = Clock(self.bound.window, self.schema.time_type)
        times = clock.numbers(normalise(alone[self.schema.time], self.schema.time_type))
        if self.bound.window.kind is WindowKind.SPAN:
            return bool(clock.span_ends(times, np.array([0, len(times)]))[0] == len(times))
        first, last = clock.windows(times)
        return bool(first.max() <= last.min())

    def _variant(self, **changes: Any) -> Plan:
        """Return the plan of the query with other clauses, and with nothing about its output."""
        plain: dict[str, Any] = {
            "having": (), "returns": (), "aggregates": (), "group_by": (), "order_by": (), "limit": None,
            "per_window": False, "offset": 0, "limit_per": (), "per_event": None, "after_match": None,
        }  # fmt: skip
        syntax = replace(self.bound.syntax, **plain, **changes)
        report = None if "report" in changes else str(self.bound.report)
        used = {node.name for node in s.walk(syntax) if isinstance(node, s.Parameter)}
        given = {name: value for name, value in self.bound.given.items() if name in used}
        return make_plan(bind(syntax, to_query_text(syntax), self.schema, given, report))

    def _matches(self, table: pa.Table, ids: Sequence[Any], plan: Plan) -> bool:
        """Return whether the events with these ids, all of them and no other, are a result over a table."""
        found = LocalResults(plan, table, replace(self.results.options, max_trends=10**6))
        wanted = sorted(map(str, ids))
        return any(sorted(map(str, trend.ids)) == wanted for trend in found if trend.length == len(ids))

    # --- Readings ---------------------------------------------------------------------------------------------

    def _best_reading(self, alone: pa.Table, ids: Sequence[Any], explained: bool) -> list[Check]:
        """Return the failing checks of the reading of the events that has the fewest."""
        readings = self._readings(alone, ids)
        if not readings:
            least, most = _lengths(self.plan)
            takes = f"{least:,}" if most == least else f"at least {least:,}"
            return [Check(f"the pattern takes {takes} events", False, {"events": len(ids)})]
        failing = [[*self._type_checks(one, alone), *(c for c in one.checks() if not c.holds)] for one in readings]
        best = min(failing, key=len)
        tied = len(set(self.ticks_of(alone))) < alone.num_rows
        arms = any(isinstance(node, s.And) for node in s.walk(self.bound.pattern))  # these may take events of one time
        if (best or explained) and not (tied and not arms):
            return best
        times = ", ".join(map(value_text, python_values(alone[self.schema.time])))
        return [*best, Check("events follow one another in time", False, {"times": times})]

    def times_of(self, table: pa.Table) -> list[Any]:
        """Return the times of events as numbers."""
        return [plain_value(time) for time in table[self.schema.time]]

    def ticks_of(self, table: pa.Table) -> list[Any]:
        """Return the keys of the order of events: the times, and the values that break ties."""
        ties = [map(plain_value, table[name]) for name in self.schema.tie_breakers]
        return list(zip(self.times_of(table), *ties, strict=True))

    def _readings(self, alone: pa.Table, ids: Sequence[Any]) -> list[Candidate]:
        names = islice(_bindings(self.plan, len(ids)), MOST_READINGS)
        return [Candidate(self.bound, alone, ids, variables) for variables in names]

    def _type_checks(self, reading: Candidate, alone: pa.Table) -> list[Check]:
        column = self.schema.type_column
        if column is None:
            return []
        checks = []
        for name, event, type_ in zip(reading.variables, reading.ids, python_values(alone[column]), strict=True):
            wanted = self.bound.variable(name).type
            if wanted is not None and type_ != wanted:
                checks.append(Check(f"the type of {name} is {wanted}", False, {f"{name}.{column}": type_}, (event,)))
        return checks

    # --- Other events -----------------------------------------------------------------------------------------

    def _because_of_others(self, places: list[int], ids: Sequence[Any]) -> list[Check]:
        """Return the other event for which a match is not a result: one that NOT, SELECT or REPORT looks at."""
        free = self._variant(report=s.Report.ANY, select=s.Select.ANY)
        steps = self._variant(report=s.Report.ANY)
        reported = self._variant()
        for other in self._others(places):
            both = self.table.take(pa.array(self._in_time([*places, other])))
            if self._matches(both, ids, reported):
                continue
            event = (self.ids[other],)
            said = {"event": self.ids[other], self.schema.time: self.table[self.schema.time][other].as_py()}
            if not self._matches(both, ids, free):
                return [Check("NOT", False, said, event)]
            if not self._matches(both, ids, steps):
                return [Check(f"SELECT {self.bound.select}", False, said, event)]
            return [Check(f"REPORT {self.bound.report}", False, said, event)]
        return []

    def _others(self, places: list[int]) -> Iterator[int]:
        """Yield other events of the partition, those nearest in time first."""
        same = pa.array([True] * self.table.num_rows)
        for name, _ in self.bound.partition:
            column, value = self.table[name], self.table[name][places[0]]
            equal = pc.equal(column, value) if value.is_valid else pc.is_null(column)
            same = pc.and_(same, pc.fill_null(equal, False))
        times = self.times
        first, last = times[places[0]], times[places[-1]]
        rows = [i for i, holds in enumerate(same.to_pylist()) if holds and i not in places and times[i] is not None]
        yield from sorted(rows, key=lambda i: max(first - times[i], times[i] - last, 0 * times[i]))[:MOST_OTHERS]

    # --- A partition ------------------------------------------------------------------------------------------

    def of_partition(self, partition: Any) -> Reasons:
        names = [name for name, _ in self.bound.partition]
        given = partition if isinstance(partition, Mapping) else dict(zip(names, [partition], strict=False))
        if set(given) != set(names):
            raise UsageError(f"the partition of the query is by {', '.join(names) or 'nothing'}", "Name its values.")
        keep = [
            all(str(row[name]) == str(value) for name, value in given.items())
            for row in self.table.select(names).to_pylist()
        ]
        inside = self.table.filter(pa.array(keep, pa.bool_()))
        shown = ", ".join(f"{name}={value_text(value)}" for name, value in given.items())
        if not inside.num_rows:
            return Reasons(f"no event has {shown}", [Check(f"[{', '.join(names)}]", False, dict(given))])
        plans = step_plans(self.plan) if isinstance(self.bound.pattern, s.Seq) else [self._variant()]
        best: Any = None
        reached = 0
        for plan in plans:
            found = LocalResults(plan, inside, self.results.options)
            if not found.count():
                break
            best, reached = found[0], reached + 1
        if reached == len(plans):
            longest = best if len(plans) > 1 else found.top(1).to_pylist()[0]
            length = longest.length if len(plans) > 1 else longest["length"]
            checks = [c for c in having_checks(self.bound, length) if not c.holds]
            return Reasons(f"{shown}: the whole pattern matches", checks)
        step = pattern_text(plans[reached].bound.pattern)
        if best is None:
            return Reasons(f"{shown}: no event begins `{step}`", self._nearest(inside, [], [], plans[reached]))
        heading = f"{shown}: step {reached} of {len(plans)} is reached by {array_text(best.ids)}; `{step}` is not"
        return Reasons(heading, self._nearest(inside, best.ids, best.variables, plans[reached]))

    def _nearest(self, inside: pa.Table, ids: list[Any], variables: list[str], plan: Plan) -> list[Check]:
        """Return the failing checks of the event that comes nearest to going on with a match."""
        case = _Case(LocalResults(plan, inside, self.results.options))
        before = case._in_time([case._place(one) for one in ids])
        last = case.ticks[before[-1]] if before else None
        new = [v for v in plan.bound.variables if not v.absent and v.name not in variables]
        tried: list[list[Check]] = []
        for place in range(case.table.num_rows):
            if last is not None and case.ticks[place] <= last:
                continue
            rows = case.table.take(pa.array([*before, place]))
            for variable in new[:1]:
                reading = Candidate(plan.bound, rows, [*ids, case.ids[place]], [*variables, variable.name])
                failing = [*case._type_checks(reading, rows), *(c for c in reading.checks() if not c.holds)]
                tried.append(failing)
        wanted = f"an event for {new[0].name}" + (f" of type {new[0].type}" if new[0].type else "")
        after = {"after": case.ids[before[-1]]} if before else {}
        return min((one for one in tried if one), key=len, default=[Check(wanted, False, after)])


def _bindings(plan: Plan, length: int) -> Iterator[list[str]]:
    """Yield the sequences of variables that the pattern can give to so many events."""
    automaton = plan.automaton
    ends = {a.state for a in automaton.accepting}
    steps: dict[int, list[tuple[str, int]]] = {}
    for t in automaton.transitions:
        steps.setdefault(t.source, []).append((t.variable, t.target))
    enough: dict[tuple[int, int], bool] = {}

    def can_end(state: int, left: int) -> bool:
        key = (state, left)
        if key not in enough:
            enough[key] = state in ends if left == 0 else any(can_end(to, left - 1) for _, to in steps.get(state, ()))
        return enough[key]

    def go(state: int, left: int) -> Iterator[list[str]]:
        if left == 0:
            yield []
            return
        for variable, to in steps.get(state, ()):
            if can_end(to, left - 1):
                for rest in go(to, left - 1):
                    yield [variable, *rest]

    if can_end(0, length):
        yield from go(0, length)


def _lengths(plan: Plan) -> tuple[int, int | None]:
    """Return the least number of events that a pattern takes, and the greatest, None where there is none."""
    needed = len(variables_of(plan.bound.pattern) - {v.name for v in plan.bound.variables if v.absent})
    least = next((n for n in range(1, needed + 1) if next(_bindings(plan, n), None) is not None), needed)
    return least, least if plan.bound.fixed and next(_bindings(plan, least + 1), None) is None else None
