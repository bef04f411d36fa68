"""Operators that ask to be called at a time: when they are, in which order, and also after a restart."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.profiles import examples
from trellis.errors import OperatorFailed, UsageError
from trellis.graphs import Event, Operator, Splitter, between, duration, periodic, run
from trellis.graphs.calls import Calls
from trellis.graphs.instance import Instance
from trellis.graphs.job import Job, sort_key

QUIET = 5


class Silences(Operator):
    """Tells of each event, and when no other has followed it for so long; at that very moment."""

    output = {"said": "string"}

    def __init__(self) -> None:
        self.until = 0

    def on_event(self, event: Event) -> Any:
        self.until = event.time + QUIET
        self.call_at(self.until)
        yield {"said": f"event {event.event_id}"}

    def on_time(self, time: Any, key: Any) -> Any:
        if time == self.until:
            yield {"said": f"silent at {time}"}


class SilencesToTheEnd(Silences):
    time_runs_on = True


class Ticks(Operator):
    """Tells how many events there were when it is called, with the keys of the calls."""

    output = {"n": "int64", "key": "string"}

    def __init__(self) -> None:
        self.n = 0

    def on_event(self, event: Event) -> None:
        self.n += 1

    def on_time(self, time: Any, key: Any) -> Any:
        yield {"n": self.n, "key": str(key)}


def events(rows: list[tuple[int, str]]) -> pa.Table:
    return pa.table({"time": [time for time, _ in rows], "key": [key for _, key in rows]})


def silences(rows: list[tuple[int, str]], runs_on: bool) -> list[tuple[int, int | None, str, str]]:
    """What `Silences` gives, by its definition: times, events, partitions, texts."""
    found, times = [], defaultdict(list)
    for number, (time, key) in enumerate(rows):
        found.append((time, number, key, f"event {number}"))
        times[key].append(time)
    last = max((time for time, _ in rows), default=0)
    for key, some in times.items():
        for time in set(some):
            end = time + QUIET
            followed = any(time < other < end for other in some)
            if not followed and (runs_on or end <= last):
                found.append((end, None, key, f"silent at {end}"))
    return sorted(found, key=lambda row: (row[0], row[1] is not None, row[1], row[2]))


@examples(150)
@given(
    st.lists(st.tuples(st.integers(0, 30), st.sampled_from("abc")), min_size=1, max_size=15),
    st.integers(1, 3), st.booleans(),
)  # fmt: skip
def test_a_call_comes_before_the_events_of_its_time(rows: list[tuple[int, str]], instances: int, on: bool) -> None:
    operator = SilencesToTheEnd if on else Silences
    table = run(events(rows), Splitter.by_key("key"), operator, time="time", instances=instances).table
    got = [(row["time"], row["event"], row["partition"], row["said"]) for row in table.to_pylist()]
    assert got == silences(rows, on)


@examples(60)
@given(
    st.lists(st.tuples(st.integers(0, 30), st.sampled_from("abc")), min_size=1, max_size=12), st.integers(0, 12),
    st.sampled_from([Silences, Ticks]),
)  # fmt: skip
def test_calls_are_part_of_the_state(rows: list[tuple[int, str]], cut: int, operator: type[Operator]) -> None:
    rows = sorted(rows)
    table = events(rows)
    splitter = Splitter.by_key("key", every=7 if operator is Ticks else None)
    job = Job.over(table.schema, splitter, operator, None, "time", None)
    first = Instance(job)
    some = list(job.shape.sorted_events(table))
    got = list(first.take(some[:cut]))
    second = Instance(job, state=first.state())
    assert second.calls.first() == first.calls.first()
    got += [*second.take(some[cut:]), *second.end(rows[-1][0])]
    whole = run(table, splitter, operator, time="time").table
    assert job.merged_table(sorted(got, key=sort_key)).equals(whole)


def test_every() -> None:
    rows = [(0, "a"), (3, "a"), (4, "b"), (10, "a"), (24, "b")]
    found = run(events(rows), Splitter.by_key("key", every=5), Ticks, time="time").table.to_pylist()
    assert [(row["time"], row["partition"], row["n"]) for row in found] == [
        (5, "a", 2), (9, "b", 1), (10, "a", 2), (14, "b", 1), (15, "a", 3), (19, "b", 1), (20, "a", 3), (24, "b", 1),
    ]  # fmt: skip
    assert {row["key"] for row in found} == {"every"}
    assert {row["event"] for row in found} == {None}


def test_the_periodic_operator() -> None:
    table = pa.table({"time": [0, 4, 6, 11, 12, 30], "kind": ["on", "x", "x", "off", "x", "x"]})
    splitter = periodic(lambda event: event.kind == "on", 5, lambda event: event.kind == "off")
    found = run(table, splitter, Ticks, time="time").table.to_pylist()
    assert [(row["time"], row["n"]) for row in found] == [(5, 2), (10, 3)]
    times = pa.table({"time": pa.array([0, 130], pa.timestamp("s")), "kind": ["on", "off"]})
    splitter = periodic(lambda event: event.kind == "on", "1 minute", lambda event: event.kind == "off")
    found = run(times, splitter, Ticks, time="time").table.to_pylist()
    assert [row["time"].minute for row in found] == [1, 2]


def test_calls_of_one_time_come_as_they_were_asked_for_and_once() -> None:
    class Asks(Ticks):
        def on_event(self, event: Event) -> None:
            for key in ("z", "a", "z", None):
                self.call_at(event.time + 7, key)

    found = run(events([(0, "a"), (8, "b")]), Splitter.by_key("key"), Asks, time="time").table.to_pylist()
    assert [(row["time"], row["place"], row["key"]) for row in found] == [(7, 0, "z"), (7, 1, "a"), (7, 2, "None")]


def test_a_partition_takes_its_calls_with_it() -> None:
    class Late(Operator):
        output = {"n": "int64"}

        def on_event(self, event: Event) -> None:
            self.call_at(event.time + 10)

        def on_time(self, time: Any, key: Any) -> Any:
            yield {"n": time}

    table = pa.table({"time": [0, 5, 8, 30], "kind": ["on", "off", "on", "x"]})
    splitter = between(lambda event: event.kind == "on", lambda event: event.kind == "off")
    assert run(table, splitter, Late, time="time").table["n"].to_pylist() == [18]


@pytest.mark.parametrize(
    ("time", "key", "said"),
    [
        (3, None, "a call is asked for at 3, but it is 3 already"),
        (1, None, "a call is asked for at 1, but it is 3 already"),
        (float("nan"), None, "a call is asked for at nan"),
        ("later", None, "a call is asked for at 'later'"),
        (9, ("a",), "the key of a call is a tuple"),
    ],
)
def test_what_cannot_be_asked_for(time: Any, key: Any, said: str) -> None:
    class Asks(Ticks):
        def on_event(self, event: Event) -> None:
            self.call_at(time, key)

    with pytest.raises(OperatorFailed, match="at the event 0 in the partition `a`") as raised:
        run(events([(3, "a")]), Splitter.by_key("key"), Asks, time="time")
    assert said in raised.value.what


def test_an_operator_that_fails_at_a_time_or_does_not_say_what_to_do() -> None:
    class Fails(Silences):
        def on_time(self, time: Any, key: Any) -> Any:
            raise ValueError("no")

    rows = events([(3, "a"), (30, "a")])
    with pytest.raises(OperatorFailed, match="the operator Fails failed at the time 8 in the partition `a`"):
        run(rows, Splitter.by_key("key"), Fails, time="time")

    class Forgot(Operator):
        output = {"n": "int64"}

        def on_event(self, event: Event) -> None:
            self.call_at(event.time + 1)

    with pytest.raises(OperatorFailed, match="Forgot does not say what to do at a time: write `on_time`"):
        run(rows, Splitter.by_key("key"), Forgot, time="time")
    for every in (0, -1):
        with pytest.raises(UsageError, match="`every` is"):
            Splitter.by_key("key", every=every)
    assert duration("1 minute") == Splitter.by_key("key", every="1 minute").every


def test_a_state_without_calls_is_read() -> None:
    calls = Calls()
    calls.restore([])
    assert calls.first() is None
    assert list(calls.due(None)) == []
