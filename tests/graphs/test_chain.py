"""Pipelines one after another, and partitions that pass from some instances to others."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import trellis
from tests.profiles import examples
from trellis.errors import UsageError
from trellis.graphs import (
    Event,
    Merger,
    Operator,
    Splitter,
    TopK,
    between,
    count_windows,
    run,
    time_windows,
)
from trellis.graphs.chain import Following
from trellis.graphs.instance import Instance, divided
from trellis.graphs.job import Job, sort_key
from trellis.graphs.run import destinations


class Talks(Operator):
    """Tells all that it has had at each event, when it is called, and when it closes."""

    output = {"said": "string", "n": "int64"}

    def __init__(self) -> None:
        self.kinds = ""

    def on_event(self, event: Event) -> Any:
        self.kinds += event.kind
        self.call_at(event.time + 3)
        yield {"said": self.kinds, "n": len(self.kinds)}

    def on_time(self, time: Any, key: Any) -> Any:
        yield {"said": f"call {self.kinds}", "n": 0}

    def on_close(self) -> Any:
        yield {"said": f"closed {self.kinds}", "n": -1}


class Adds(Operator):
    """Adds up what the pipeline before it has found."""

    output = {"total": "int64", "at": "int64"}

    def __init__(self) -> None:
        self.total = 0

    def on_event(self, event: Event) -> Any:
        self.total += event.n
        yield {"total": self.total, "at": event.event_id}

    def on_close(self) -> Any:
        yield {"total": self.total, "at": -1}


SPLITTERS = {
    "keys": Splitter.by_key("kind"),
    "ranges": Splitter.by_key("value", ranges=[(None, 2), (2, 4), (4, None)]),
    "sliding windows": time_windows(5, 2),
    "windows": time_windows(4),
    "windows of keys": time_windows(6, 3, key="kind"),
    "counts": count_windows(3, 2),
    "between": between(lambda event: event.kind == "a", lambda event: event.kind == "b"),
}
EVENTS = st.lists(st.tuples(st.integers(0, 30), st.sampled_from("abc"), st.integers(0, 6)), min_size=1, max_size=25)


def table_of(rows: list[tuple[int, str, int]]) -> pa.Table:
    times, letters, values = zip(*sorted(rows), strict=True)
    return pa.table({"time": times, "id": list(range(len(rows))), "kind": letters, "value": values})


# --- Instances --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("splitter", SPLITTERS.values(), ids=SPLITTERS.keys())
@given(rows=EVENTS, cuts=st.lists(st.tuples(st.integers(0, 30), st.integers(1, 4)), min_size=1, max_size=3))
@examples(40)
def test_partitions_pass_to_other_instances(splitter: Splitter, rows: list[Any], cuts: list[tuple[int, int]]) -> None:
    """Whenever other instances take over, what comes out is what one instance gives."""
    table = table_of(rows)
    job = Job.over(table.schema, splitter, Talks, None, "time", "id")
    left = sorted(cuts)
    workers, found, last = [Instance(job, number, 2) for number in range(2)], [], None
    for event in job.shape.sorted_events(table):
        while left and left[0][0] <= event.time:
            limit, number = left.pop(0)
            for worker in workers:
                found += worker.advance(limit, before=True)
            states = divided(job, [worker.state() for worker in workers], number)
            workers = [Instance(job, place, number, state) for place, state in enumerate(states)]
        for place in destinations(job, event, last, len(workers)):
            found += workers[place].take((event,))
        last = event.time
    for worker in workers:
        found += worker.end(last)
    assert job.merged_table(sorted(found, key=sort_key)) == run(table, splitter, Talks, event_id="id").table


def test_windows_and_ranges_go_to_instances_in_turn() -> None:
    """An event goes to the instances of its windows, and of those that it may close; not to all."""
    events = [(time, "a", time % 6) for time in range(40)]
    job = Job.over(table_of(events).schema, time_windows(4), Talks, None, "time", "id")
    sent = {}
    for event in job.shape.sorted_events(table_of(events)):
        sent[event.time] = set(destinations(job, event, event.time - 1 if event.time else None, 8))
    assert sent[0] == set(range(8))  # none is before it
    assert all(time // 4 % 8 in places and len(places) <= 3 for time, places in sent.items() if time)
    ranges = SPLITTERS["ranges"]
    assert [ranges.home(name, None, 2) for name, _, _ in ranges.ranges or ()] == [0, 1, 0]


# --- Chains -----------------------------------------------------------------------------------------------------------


@given(rows=EVENTS, instances=st.integers(1, 4))
@examples(40)
def test_a_chain_is_one_run_after_another(rows: list[Any], instances: int) -> None:
    table = table_of(rows)
    first = trellis.pipeline(time_windows(5), Talks)
    second = trellis.pipeline(Splitter.by_key("partition"), Adds, Merger(order=["-total"]))

    def events_of(results: pa.Table) -> list[dict[str, Any]]:
        latest, found = -1, []
        for number, row in enumerate(results.to_pylist()):
            latest = max(latest, row["time"])  # what the end brings is not earlier than what was before
            found.append({**row, "time": latest, "number": number})
        return found

    wanted = first.run(table, event_id="id").table
    both = second.run(events_of(wanted), time="time", event_id="number").table
    assert (first >> second).run(table, event_id="id", instances=instances).table == both
    renamed = type("Renamed", (Adds,), {"on_event": lambda self, event: [{"total": event.total, "at": event.at}]})
    last = trellis.pipeline(time_windows(7), renamed)
    everything = last.run(events_of(both), time="time", event_id="number").table
    assert (first >> second >> last).run(table, event_id="id", instances=instances).table == everything


@given(rows=EVENTS, cut=st.integers(0, 25))
@examples(40)
def test_the_later_parts_of_a_chain_go_on_from_their_state(rows: list[Any], cut: int) -> None:
    table = table_of(rows)
    first = trellis.pipeline(Splitter.by_key("kind"), Talks)
    best = trellis.pipeline(time_windows(9), Adds, Merger(combine=TopK(2, key="at", by="-total")))
    results = first.run(table, event_id="id").table
    job = Job.over(table.schema, SPLITTERS["keys"], Talks, None, "time", "id")
    before = Following(job, best.parts)
    begin = before.take(results.slice(0, cut))
    after = Following(job, best.parts, before.state())
    found = pa.concat_tables([begin, after.take(results.slice(cut), end=True)])
    assert found == (first >> best).run(table, event_id="id").table


def test_what_cannot_be_chained() -> None:
    class Numbers(Operator):
        output = {"number": "int64"}

        def on_event(self, event: Event) -> Any:
            return [{"number": 1}]

    pipeline = trellis.pipeline(Splitter.by_key("kind"), Numbers)
    with pytest.raises(UsageError, match="gives a column `number`, which numbers the events of the next pipeline"):
        (pipeline >> pipeline).run(table_of([(1, "a", 1)]), event_id="id")
    with pytest.raises(TypeError):
        pipeline >> Numbers  # type: ignore[operator]
    with pytest.raises(UsageError, match="no column `kind`"):
        (trellis.pipeline(Splitter.by_key("kind"), Talks) >> pipeline).run(table_of([(1, "a", 1)]), event_id="id")
