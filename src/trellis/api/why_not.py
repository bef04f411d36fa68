"""Why events are not a result: the best reading of them, the condition that failed, and what would have been needed.

Everything is asked of the engine itself, over the few events that matter: these alone, and these with one other event.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
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
from trellis.language.bound import BoundQuery, WindowKind
from trellis.language.printer import pattern_text, to_query_text
from trellis.language.schema import INTEGER, Table
from trellis.operators.batch import LEVEL
from trellis.plan.choice import make_plan
from trellis.plan.plan import Plan
from trellis.plan.remainders import LazyAutomaton, Letter
from trellis.results.display import array_text, python_values, value_text
from trellis.results.funnel import pieces_plans, step_plans
from trellis.results.iterations import iteration_texts
from trellis.results.trend import Trend
from trellis.results.why import Candidate, Check, Reasons, having_checks, partition_check

Reading = tuple[list[str], list[str]]  # the variable of each event, and its iterations

NUMBER = "__number"  # the column of ids of events that have none
MOST_READINGS = 2000  # ways to bind the events to variables that are tried
TYPE = "the type of "  # begins the conditions that say one
MOST_OTHERS = 200  # other events that are tried as the cause


def why_not(results: LocalResults, ids: Any, partition: Any) -> Reasons:
    """Return why events, or a whole partition, have no result: see `Query.why_not`."""
    if (ids is None) == (partition is None):
        raise UsageError("why_not() asks of certain events or of a partition", "Give ids=[...] or partition={...}.")
    if ids is not None and (isinstance(ids, str) or not isinstance(ids, Iterable) or not list(ids)):
        raise UsageError(f"ids is {ids!r}", "Give the ids of some events, in a list.")
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
        reading = next((one for one in readings if not self._failing(one, alone)), readings[0])
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
            return [Check(f"the pattern takes {_lengths(self.plan, len(ids))} events", False, {"events": len(ids)})]
        failing = [self._failing(one, alone) for one in readings]
        best = min(failing, key=_distance)
        tied = len(set(self.ticks_of(alone))) < alone.num_rows
        arms = any(isinstance(node, s.And) for node in s.walk(self.bound.pattern))  # these may take events of one time
        if (best or explained) and not (tied and not arms):
            return best
        if not tied:
            return [*best, self._word_check(alone, ids)]
        times = ", ".join(map(value_text, python_values(alone[self.schema.time])))
        return [*best, Check("events follow one another in time", False, {"times": times})]

    def _word_check(self, alone: pa.Table, ids: Sequence[Any]) -> Check:
        """Return the word of a repetition or a step that keeps events from being a match."""
        words: list[tuple[str, dict[str, Any]]] = [("UNTIL", {"until": None}), ("greedy", {"greedy": False})]
        for word, changes in words:

            def plain(node: s.Node, changes: dict[str, Any] = changes) -> s.Node | None:
                return replace(node, **changes) if isinstance(node, s.Kleene) else None

            free = s.rebuild(self.bound.syntax.pattern, plain)
            if self._matches(alone, ids, self._variant(report=s.Report.ANY, select=s.Select.ANY, pattern=free)):
                return Check(word, False, events=tuple(ids))
        return Check("a policy of a step, greedy or UNTIL", False, events=tuple(ids))

    def times_of(self, table: pa.Table) -> list[Any]:
        """Return the times of events as numbers."""
        return [plain_value(time) for time in table[self.schema.time]]

    def ticks_of(self, table: pa.Table) -> list[Any]:
        """Return the keys of the order of events: the times, and the values that break ties."""
        ties = [map(plain_value, table[name]) for name in self.schema.tie_breakers]
        return list(zip(self.times_of(table), *ties, strict=True))

    def _readings(self, alone: pa.Table, ids: Sequence[Any]) -> list[Candidate]:
        found = islice(_bindings(self.plan, len(ids)), MOST_READINGS)
        return [Candidate(self.bound, alone, ids, *_reading_of(self.bound, letters)) for letters in found]

    def _failing(self, reading: Candidate, alone: pa.Table) -> list[Check]:
        """Return the checks that do not hold: of types, then of conditions."""
        return [*self._type_checks(reading, alone), *(check for check in reading.checks() if not check.holds)]

    def _type_checks(self, reading: Candidate, alone: pa.Table) -> list[Check]:
        column = self.schema.type_column
        if column is None:
            return []
        checks = []
        for name, event, type_ in zip(reading.variables, reading.ids, python_values(alone[column]), strict=True):
            wanted = self.bound.variable(name).type
            if wanted is not None and type_ != wanted:
                checks.append(Check(f"{TYPE}{name} is {wanted}", False, {f"{name}.{column}": type_}, (event,)))
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
                return [Check("NOT", False, said, event, "no such event")]
            if not self._matches(both, ids, steps):
                return [Check(f"SELECT {self.bound.select}", False, said, event, "a match that does not skip it")]
            return [Check(f"REPORT {self.bound.report}", False, said, event, "the longer match with this event")]
        return []

    def _others(self, places: list[int]) -> Iterator[int]:
        """Yield other events of the partition, those nearest in time first.

        Under `contiguous` these are the events between, the one before and the one behind: nothing looks farther.
        """
        same = pa.array([True] * self.table.num_rows)
        for name, _ in self.bound.partition:
            column, value = self.table[name], self.table[name][places[0]]
            equal = pc.equal(column, value) if value.is_valid else pc.is_null(column)
            same = pc.and_(same, pc.fill_null(equal, False))
        times = self.times
        first, last = times[places[0]], times[places[-1]]
        rows = [i for i, holds in enumerate(same.to_pylist()) if holds and i not in places and times[i] is not None]
        if self.bound.select is s.Select.CONTIGUOUS:
            order = sorted([*rows, *places], key=lambda i: (self.ticks[i], self.ids[i]))
            begin, end = order.index(places[0]), order.index(places[-1])
            rows = [i for i in order[max(begin - 1, 0) : end + 2] if i not in places]
        yield from sorted(rows, key=lambda i: max(first - times[i], times[i] - last, 0 * times[i]))[:MOST_OTHERS]

    # --- A partition ------------------------------------------------------------------------------------------

    def of_partition(self, partition: Any) -> Reasons:
        names = [name for name, _ in self.bound.partition]
        given = partition if isinstance(partition, Mapping) else dict(zip(names, [partition], strict=False))
        if not names:
            raise UsageError("the query has no partition, as `WHERE [account]` makes", "Ask of events: ids=[...].")
        if set(given) != set(names):
            raise UsageError(f"the partition of the query is by {', '.join(names)}", "Give a value for each.")
        keep = [
            all(str(row[name]) == str(value) for name, value in given.items())
            for row in self.table.select(names).to_pylist()
        ]
        inside = self.table.filter(pa.array(keep, pa.bool_()))
        shown = ", ".join(f"{name}={value_text(value)}" for name, value in given.items())
        if not inside.num_rows:
            return Reasons(f"no event has {shown}", [Check(f"[{', '.join(names)}]", False, dict(given))])
        steps = isinstance(self.bound.pattern, s.Seq)
        plans = step_plans(self.plan) if steps else [self._variant()]
        reached, best = self._furthest(inside, plans, None)
        ids = array_text(best.ids) if best is not None else ""
        if reached == len(plans):
            checks = [c for c in having_checks(self.bound, self._longest(inside)) if not c.holds]
            return Reasons(f"{shown}: the whole pattern matches", checks)
        step, plan = pattern_text(plans[reached].bound.pattern), plans[reached]
        if self.bound.groups:
            pieces = [*pieces_plans(self.plan, reached if steps else None), plan]
            number, best = self._furthest(inside, pieces, best)
            plan = pieces[number]
        if best is None:
            return Reasons(f"{shown}: no event begins `{step}`", _Case(self._results(plan, inside)).nearest(None))
        heading = f"{shown}: step {reached} of {len(plans)} is reached by {ids}; `{step}` is not"
        if not reached:
            heading = f"{shown}: `{step}` is not reached; it begins with {array_text(best.ids)}"
        return Reasons(heading, _Case(self._results(plan, inside)).nearest(best))

    def _results(self, plan: Plan, inside: pa.Table) -> LocalResults:
        return LocalResults(plan, inside, self.results.options)

    def _furthest(self, inside: pa.Table, plans: Sequence[Plan], best: Trend | None) -> tuple[int, Trend | None]:
        """Return how many plans one after another have a match, and one of the last of these."""
        for reached, plan in enumerate(plans):
            found = self._results(plan, inside)
            if not found.count():
                return reached, best
            best = found[0]
        return len(plans), best

    def _longest(self, inside: pa.Table) -> int:
        """Return the length of the longest match among events."""
        return int(self._results(self._variant(), inside).top(1).to_pylist()[0]["length"])

    def nearest(self, best: Trend | None) -> list[Check]:
        """Return the failing checks of the event that comes nearest to going on with a match of a beginning."""
        ids: list[Any] = list(best.ids) if best is not None else []
        reading = _read(best) if best is not None else ([], [])
        while True:
            before = self._in_time([self._place(one) for one in ids])
            after = {"after": ids[-1]} if ids else {}
            names = list(dict.fromkeys(variables[-1] for variables, _ in _continued(self.plan, *reading)))
            tried = list(self._tried(before, ids, reading))
            fitting = next((one for one in tried if not one[0]), None)
            if fitting is None:
                break
            _, place, reading = fitting
            ids.append(self.ids[place])
        if not names:  # all of it is there: conditions of groups fail, a word of the pattern, or other events
            alone = self.table.take(pa.array(before))
            failing = self._failing(Candidate(self.bound, alone, ids, *reading), alone)
            if not failing and not self._matches(alone, ids, self._variant(report=s.Report.ANY, select=s.Select.ANY)):
                failing = [self._word_check(alone, ids)]
            return failing or self._because_of_others(before, ids)
        types = {name: self.bound.variable(name).type for name in names}
        wanted = " or ".join(f"{name} of type {type_}" if type_ else name for name, type_ in types.items())
        nothing = [Check(f"an event for {wanted}", False, after)]
        return min((one for one, _, _ in tried), key=_distance, default=nothing)

    def _tried(
        self, before: Sequence[int], ids: Sequence[Any], reading: Reading
    ) -> Iterator[tuple[list[Check], int, Reading]]:
        """Yield the later events that a beginning may go on with, as it reads them, and the checks that fail."""
        ways = _continued(self.plan, *reading)
        for place in range(self.table.num_rows):
            if before and self.ticks[place] <= self.ticks[before[-1]]:
                continue
            rows, known = self.table.take(pa.array([*before, place])), [*ids, self.ids[place]]
            shape = [check for check in self._shape_checks(rows, known) if not check.holds]
            for way in ways:
                candidate = Candidate(self.bound, rows, known, *way)
                yield [*shape, *self._failing(candidate, rows)], place, way


def _distance(failing: Sequence[Check]) -> tuple[int, int]:
    """Return how far a reading is from a match: how many types are others, and how many checks fail."""
    return sum(check.condition.startswith(TYPE) for check in failing), len(failing)


def _read(trend: Trend) -> Reading:
    """Return the variables of the events of a trend, and their iterations."""
    table = trend.to_arrow()
    iterations = python_values(table["iteration"]) if "iteration" in table.column_names else [""] * trend.length
    return trend.variables, iterations


def _continued(plan: Plan, variables: list[str], iterations: list[str]) -> list[Reading]:
    """Return the ways in which a reading of events can take one more: as a new variable, or in a new iteration."""
    automaton = LazyAutomaton(plan.automaton.root)
    paths: list[tuple[int, list[Letter]]] = [(0, [])]
    for name in variables:
        paths = [
            (t.target, [*letters, Letter(name, len(t.begun))])
            for state, letters in paths
            for t in automaton.transitions(state)
            if t.variable == name
        ]
    found: list[Reading] = []
    for state, letters in paths:
        if _reading_of(plan.bound, letters) == (variables, iterations):
            for t in automaton.transitions(state):
                names, texts = _reading_of(plan.bound, [*letters, Letter(t.variable, len(t.begun))])
                if (names[-1], texts[-1]) not in zip(variables, iterations, strict=True):
                    found.append((names, texts))
    new = [one for one in found if one[0][-1] not in variables]
    return [one for i, one in enumerate(new or found) if one not in (new or found)[:i]]


def _reading_of(bound: BoundQuery, letters: Sequence[Letter]) -> Reading:
    """Return the variables of events and their iterations, as rows tell them."""
    variables = [letter.variable for letter in letters]
    if not bound.groups:
        return variables, [""] * len(variables)
    names = [v.name for v in bound.variables if not v.absent]
    codes = np.array([names.index(letter.variable) | letter.begins << LEVEL for letter in letters], np.int64)
    return variables, iteration_texts(codes, np.array([0, len(codes)]), bound).to_pylist()


def _bindings(plan: Plan, length: int) -> Iterator[list[Letter]]:
    """Yield the sequences of variables, with the iterations they begin, that the pattern can give to so many events."""
    automaton = LazyAutomaton(plan.automaton.root)

    @cache
    def steps(state: int) -> tuple[tuple[Letter, int], ...]:
        found = ((Letter(t.variable, len(t.begun)), t.target) for t in automaton.transitions(state))
        return tuple(dict.fromkeys(found))

    @cache
    def can_end(state: int, left: int) -> bool:
        return any(can_end(to, left - 1) for _, to in steps(state)) if left else bool(automaton.endings(state))

    def go(state: int, left: int) -> Iterator[list[Letter]]:
        if left == 0:
            yield []
            return
        for letter, to in steps(state):
            if can_end(to, left - 1):
                for rest in go(to, left - 1):
                    yield [letter, *rest]

    if can_end(0, length):
        yield from go(0, length)


def _lengths(plan: Plan, number: int) -> str:
    """Return how many events a pattern takes, where it does not take so many: the numbers below and above."""
    automaton, states, length = LazyAutomaton(plan.automaton.root), {0}, 0
    takes: list[int] = []
    while states and not (takes and takes[-1] > number):
        states, length = {t.target for state in states for t in automaton.transitions(state)}, length + 1
        takes += [length] if any(automaton.endings(state) for state in states) else []
    nearest = [n for n in takes if n < number][-1:] + [n for n in takes if n > number][:1]
    more = len(nearest) == 1 and nearest[0] > number and next(_bindings(plan, nearest[0] + 1), None) is not None
    return ("at least " if more else "") + " or ".join(f"{n:,}" for n in nearest)
