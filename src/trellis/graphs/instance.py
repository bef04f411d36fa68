"""An operator instance: takes its events in order, gives them to the operators of its partitions, and can be kept."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict
from functools import partial
from typing import Any

import pyarrow as pa

from trellis.errors import DataError, OperatorFailed, TrellisError, UsageError
from trellis.graphs.calls import Calls, OwnCalls, Place
from trellis.graphs.events import Event
from trellis.graphs.graph import Graph
from trellis.graphs.job import Job, Row
from trellis.graphs.operator import Operator
from trellis.graphs.plain import from_bytes, to_bytes
from trellis.graphs.splitter import CLOSE, EVERY, Delivery, Partition, Router

STATE = pa.schema([("kind", pa.string()), ("data", pa.binary())])
INSTANCE, OPERATOR = "instance", "operator"


class Instance:
    """One of the instances of a job.

    Parameters
    ----------
    job
        The job.
    number, instances
        Which of how many it is.
    state
        What an earlier one's `state` returned, to go on from.
    graphs
        Makes the graph of a partition, given whether it is directed.
    """

    def __init__(
        self, job: Job, number: int = 0, instances: int = 1, state: pa.Table | None = None,
        graphs: Callable[[bool], Any] = Graph,
    ) -> None:  # fmt: skip
        self.job, self.number, self._graphs = job, number, graphs
        self.router = Router(job.splitter, number, instances)
        self._stored = Graph(job.splitter.store_directed)
        self.calls = Calls()
        self._operators: dict[Place, Operator] = {}
        self._asleep: dict[Place, bytes] = {}  # operators that nothing has come for since they were kept
        self._last: tuple[Any, Any] | None = None
        if state is not None:
            self._restore(state)
        self.store = self._stored.view()

    # --- Events ---------------------------------------------------------------------------------------------------

    def take(self, events: Iterable[Event]) -> Iterator[Row]:
        """Take the next events, in order, and yield results.

        Raises
        ------
        OperatorFailed
            If the operator or a predicate raises; says at which event.
        DataError
            If an event occurs twice.
        """
        for event in events:
            self._check_order(event)
            yield from self.advance(event.time)
            self.calls.now = event.time
            try:
                change = self.job.splitter.stored(event)
                if change is not None:
                    self._stored.change(change, missing="ignore")
                deliveries = self.router.deliveries(event)
            except TrellisError:  # what the splitter refuses names the event already
                raise
            except Exception as problem:
                raise failed(problem, "the splitter", event.event_id, f", instance {self.number}") from problem
            for delivery in deliveries:
                yield from self._deliver(event, delivery)

    def advance(self, limit: Any, before: bool = False) -> Iterator[Row]:
        """Make the calls that are due up to a time, or before it; the events before it must have been taken."""
        places: dict[tuple[Any, Place], int] = {}
        for time, place, key in self.calls.due(limit, before):
            partition = self.router.partitions[place[0]][place[1]]
            operator = self._operator(partition)
            begin = places.get((time, place), 0)
            rows = self._called(partial(operator.on_time, time, key), operator, time, None, begin)
            places[time, place] = begin + len(rows)
            yield from rows
            self._repeat(time, place, key)

    def _repeat(self, time: Any, place: Place, key: Any) -> None:
        """Ask for the next of the calls that the splitter wants of each partition."""
        if key == EVERY and self.job.splitter.every is not None:
            self.calls.add(time + self.job.splitter.every, place, EVERY)

    def _deliver(self, event: Event, delivery: Delivery) -> Iterator[Row]:
        partition = delivery.partition
        operator = self._operator(partition)
        rows: list[Row] = []
        if delivery.give:
            rows += self._called(partial(operator.on_event, event), operator, event.time, event.event_id)
            partition.took(event)
        if delivery.close:
            rows += self._closed(operator, event.time, event.event_id, len(rows))
        yield from rows

    def end(self, last: Any) -> Iterator[Row]:
        """Take note that the input has ended; yield what is due then, and what open partitions give that close."""
        if last is not None:
            yield from self.advance(last)
        if self.job.time_runs_on:
            self.calls.forget_repeated(EVERY)
            yield from self.advance(None)
        for partition in list(self.unclosed()):
            operator = self._operator(partition)
            if self.job.splitter.at_end == CLOSE:
                yield from self._closed(operator, partition.last, partition.last_id, 0, end=True)

    def unclosed(self) -> Iterator[Partition]:
        """Yield the partitions that were opened by a predicate and not closed."""
        if self.job.splitter.opens is not None:
            for some in self.router.partitions.values():
                yield from some.values()

    def _closed(self, operator: Operator, time: Any, event_id: Any, place: int, end: bool = False) -> list[Row]:
        rows = self._called(operator.on_close, operator, time, event_id, place, end)
        self.router.close(operator.partition)
        where = self._at(operator.partition)
        self.calls.forget(where)
        del self._operators[where]
        return rows

    def _called(
        self, method: Callable[[], Any], operator: Operator, time: Any, event_id: Any, place: int = 0,
        end: bool = False,
    ) -> list[Row]:  # fmt: skip
        """Call a method of an operator and return its results."""
        partition = operator.partition.name
        try:
            found = method()
            if found is None:
                return []
            return [(end, time, event_id, partition, place + i, *self._fields(row)) for i, row in enumerate(found)]
        except Exception as problem:
            where = f" in the partition `{partition}`, instance {self.number}"
            if event_id is None:
                where = f" at the time {time}{where}"
            raise failed(problem, f"the operator {self.job.name}", event_id, where) from problem

    def _fields(self, row: Any) -> Row:
        if not isinstance(row, Mapping):
            raise UsageError(f"a result is a {type(row).__name__}", "Give dictionaries with the columns of `output`.")
        unknown = sorted(map(str, row.keys() - set(self.job.results.names)))
        if unknown:
            raise UsageError(
                f"a result has `{unknown[0]}`, which is not in `output`", f"`output` has {self.job.results.names}."
            )
        return tuple(row.get(name) for name in self.job.results.names)

    def _operator(self, partition: Partition) -> Operator:
        place = self._at(partition)
        found = self._operators.get(place)
        if found is None:
            found = self.job.fresh()
            found.graph, found.store, found.partition = self._graphs(found.directed), self.store, partition
            found.calls = OwnCalls(self.calls, place)
            kept = self._asleep.pop(place, None)
            if kept is not None:
                _, graph, own = from_bytes(kept)
                found.graph.restore(graph)
                found.restore(own)
            elif self.job.splitter.every is not None:
                self.calls.add(partition.opened + self.job.splitter.every, place, EVERY)
            self._operators[place] = found
        return found

    def _at(self, partition: Partition) -> Place:
        return self.router.key_of(partition), partition.name

    @property
    def last(self) -> Any:
        """The time of the last event so far, or None."""
        return None if self._last is None else self._last[0]

    def _check_order(self, event: Event) -> None:
        now = (event.time, event.event_id)
        if self._last is not None and now <= self._last:
            if now == self._last:
                raise DataError(f"the event {event.event_id!r} occurs twice", "Ids of events must not repeat.")
            raise DataError(f"the event {event.event_id!r} comes after a later one", "Events come in order of time.")
        self._last = now

    # --- State ----------------------------------------------------------------------------------------------------

    def state(self) -> pa.Table:
        """Return all that must be kept to go on later, as a table of bytes; only what has changed is made anew."""
        about = [self.router.state(), self._stored.state(), list(self._last or ()), self.calls.state()]
        rows = [(INSTANCE, to_bytes(about, "the graph store"))]
        for some in self.router.partitions.values():
            rows += [(OPERATOR, self._saved_state(partition)) for partition in some.values()]
        kinds, data = zip(*rows, strict=True)
        return pa.table([kinds, data], schema=STATE)

    def _saved_state(self, partition: Partition) -> bytes:
        place = self._at(partition)
        if place in self._asleep:
            return self._asleep[place]
        operator = self._operators[place]
        content = [asdict(partition), operator.graph.state(), operator.state()]
        return to_bytes(content, f"the operator {self.job.name}")

    def _restore(self, state: pa.Table) -> None:
        partitions = []
        for kind, data in zip(state["kind"].to_pylist(), state["data"].to_pylist(), strict=True):
            if kind == INSTANCE:
                courses, stored, last, *calls = from_bytes(data)
            else:
                partitions.append(Partition(**from_bytes(data)[0]))
                self._asleep[self._at(partitions[-1])] = data
        self._stored.restore(stored)
        self._last = tuple(last) if last else None
        self.calls.restore(*calls or ([],))  # a state of an earlier version has none
        self.router.restore(courses, partitions)


def divided(job: Job, states: Iterable[pa.Table], instances: int) -> list[pa.Table]:
    """Return the states of other instances, which share the partitions of those that had these states.

    Parameters
    ----------
    job
        The job.
    states
        What `state` returned of all instances, which have taken all events up to the same time.
    instances
        How many there are to be.
    """
    progress: dict[str, list[Any]] = {}
    operators: list[list[bytes]] = [[] for _ in range(instances)]
    calls: list[list[Any]] = [[] for _ in range(instances)]
    homes: dict[str, int] = {}
    stored, last = Graph(job.splitter.store_directed).state(), None
    splitter = job.splitter
    for state in states:
        asked: list[Any] = []
        for kind, data in zip(state["kind"].to_pylist(), state["data"].to_pylist(), strict=True):
            if kind == OPERATOR:
                partition = Partition(**from_bytes(data)[0])
                by_key = splitter.opens is not None and splitter.key is not None
                name = str(partition.key) if by_key else partition.name
                homes[partition.name] = splitter.home(name, partition.label, instances)
                operators[homes[partition.name]].append(data)
                continue
            courses, graph, latest, *own = from_bytes(data)
            asked += own[0] if own else []
            for key, number, previous in courses:
                known = progress.setdefault(key, [key, number, previous])
                known[1:] = [max(known[1], number), max(known[2], previous)]
            if latest and (last is None or latest > last):
                stored, last = graph, latest
        for call in asked:
            calls[homes[call[1][1]]].append(call)
    found = []
    for place in range(instances):
        every = splitter.key is None
        courses = [one for key, one in progress.items() if every or splitter.home(key, None, instances) == place]
        about = to_bytes([courses, stored, last or [], calls[place]], "the graph store")
        rows = [(INSTANCE, about), *((OPERATOR, data) for data in operators[place])]
        kinds, contents = zip(*rows, strict=True)
        found.append(pa.table([kinds, contents], schema=STATE))
    return found


def failed(problem: Exception, who: str, event_id: Any, where: str) -> OperatorFailed:
    """Return the error that says at which event the user's own code raised an exception; raise it from that."""
    event = "" if event_id is None else f" at the event {event_id!r}"
    return OperatorFailed(f"{who} failed{event}{where}: {_description(problem)}", _where(problem))


def _description(problem: BaseException) -> str:
    said = problem.what if isinstance(problem, TrellisError) else str(problem)
    return f"{type(problem).__name__}: {said}" if said else type(problem).__name__


def _where(problem: BaseException) -> str:
    """Return the places in the user's code that an exception came by, and what it advises."""
    frames = [frame for frame in traceback.extract_tb(problem.__traceback__) if frame.filename != __file__]
    places = [
        f"{frame.filename}, line {frame.lineno}, in {frame.name}: {frame.line or ''}".rstrip(": ") for frame in frames
    ]
    hint = [problem.hint] if isinstance(problem, TrellisError) and problem.hint else []
    return "\n".join([*places, *hint])
