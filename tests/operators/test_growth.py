"""What is told of many events from few is what work that grows in a known way takes, and the few are few indeed."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import trellis
from tests.profiles import examples
from trellis.events.prepare import prepare
from trellis.events.slice import Groups, Slice
from trellis.make import make_operator
from trellis.operators.contract import Explored
from trellis.operators.growth import ENOUGH, LEAST_EVENTS, MOST_STEPS, Cost, Try, cost_of, duration, sampling_plan

SMALLEST = 1e-4  # seconds for an event, so that few of them are tried


def slice_of(sizes: list[int], reach: int | None = None) -> Slice:
    """Return partitions of some sizes; with `reach`, of spans in which so many events are."""
    bounds = np.cumsum([0, *sizes])
    size = int(bounds[-1])
    until = np.repeat(bounds[1:], sizes)
    if reach is not None:
        until = np.minimum(until, np.arange(size) + reach)
    groups = Groups(bounds[:-1], bounds[1:], np.zeros(len(sizes), np.int64))
    return Slice({}, pa.array(np.arange(size)), np.arange(size), np.ones(size, np.bool_), bounds, groups, until)


def work(events: Slice, power: int) -> float:
    """Return the seconds of work that grows by a power of the events that are around each."""
    return float(SMALLEST / 100 * ((events.until - np.arange(len(events))).astype(np.float64) ** power).sum())


@examples(30)
@given(
    power=st.sampled_from((0, 1, 2)),
    reach=st.sampled_from((None, 100, 1_000)),
    sizes=st.lists(st.integers(1, 1 << 13), min_size=1, max_size=5),
    explores=st.booleans(),
)
def test_work_that_grows_by_a_power_of_the_events_around(
    power: int, reach: int | None, sizes: list[int], explores: bool
) -> None:
    events = slice_of(sizes, reach)

    def attempt(some: Slice) -> Try:
        seconds = work(some, power)
        return Try(seconds, explored=Explored(len(some), int(seconds * 1e9)) if explores else Explored())

    exact, told = work(events, power), cost_of(events, reach is not None, attempt)
    assert exact / 10 <= max(told.seconds, 1e-3)
    assert told.seconds <= 10 * max(exact, 1e-3)
    if told.share == 1:
        assert told.seconds == pytest.approx(exact)


@examples(30)
@given(power=st.sampled_from((0, 1, 2)), begin=st.integers(0, 9_000), seed=st.integers(0, 99))
def test_work_where_events_lie_closer_together_for_a_while(power: int, begin: int, seed: int) -> None:
    events = slice_of([10_000])
    near = np.where(np.abs(np.arange(10_000) - begin) < 500, 900, np.random.default_rng(seed).integers(1, 9, 10_000))
    events = replace(events, until=np.minimum.accumulate((np.arange(10_000) + near)[::-1])[::-1])
    exact = work(events, power)
    assert exact / 10 <= max(cost_of(events, True, lambda some: Try(work(some, power))).seconds, 1e-3) <= 10 * exact


def test_no_more_is_tried_where_that_would_take_long_or_is_refused() -> None:
    tried = []

    def attempt(some: Slice) -> Try:
        tried.append(len(some))
        if len(some) >= 40:
            return Try(ENOUGH, 0, Explored(0, MOST_STEPS))
        return Try(1e-3, 1, Explored(2 ** len(some), 2 ** len(some), 100 * 2 ** len(some)))

    told = cost_of(slice_of([1000]), False, attempt)
    assert max(tried) <= 64
    assert 2.0**40 < told.vertices < inf
    assert "refused, since these take more than 1GB" in told.texts(1 << 30)["time"]
    told = cost_of(slice_of([1000]), False, lambda _: Try(ENOUGH, 0))
    assert told == Cost(inf)
    assert "not known" in told.texts(1 << 25)["time"]


def test_it_is_said_what_makes_counting_quicker_beyond_a_minute() -> None:
    assert Cost(61.0).texts(1 << 30)["quicker"].startswith("with a shorter WITHIN")
    assert set(Cost(59.0).texts(1 << 30)) == {"time"}


def test_many_small_groups_take_as_long_as_a_part_of_them_tells() -> None:
    tried = []

    def attempt(some: Slice) -> Try:
        tried.append(len(some))
        assert (some.groups.hi > some.groups.lo).all()
        return Try(1e-3 + 1e-5 * len(some))  # most of it for few events is for none of them

    told = cost_of(slice_of([3] * 100_000), False, attempt)
    assert 0.5 * 3 < told.seconds < 2 * 3 + 0.1
    assert max(tried) >= 100 * LEAST_EVENTS


def trades(size: int) -> pa.Table:
    rng = np.random.default_rng(2)
    return pa.table({
        "ts": np.arange(size), "id": np.arange(size), "kind": np.array(list("ABCD"))[rng.integers(0, 4, size)],
        "price": np.round(rng.normal(100, 1, size), 3), "sym": rng.integers(0, 100, size),
        "volume": rng.integers(1, 1000, size),
    })  # fmt: skip


EXPLODING = [
    "PATTERN AND(A+ a[], B+ b[]) WHERE a.price < b.price OR a.sym = b.sym",
    "PATTERN SEQ(A+ a[], B b) WHERE SUM(a.volume) < 5 * b.volume",
    "PATTERN SEQ(A+ a[], B+ b[]) WHERE SUM(a.volume) < SUM(b.volume) WITHIN 300 SLIDE 300 HAVING LENGTH >= 3",
    "PATTERN SEQ(A a, B+ b[]) WHERE AVG(b.price) > a.price REPORT any WITHIN 300",
]


@pytest.mark.parametrize("text", EXPLODING)
def test_a_try_makes_few_steps_however_many_events_there_are(text: str) -> None:
    events, few = trades(2_000), 20_000
    plan = trellis.query(text).detect(events, time="ts", event_id="id", type="kind").plan
    plan = sampling_plan(replace(plan, sizes=replace(plan.sizes, most_steps=few)))
    operator = make_operator(plan, prepare(plan, events).events)
    with pytest.raises(trellis.TrellisError, match="so far"):
        _ = operator.counts
    assert few < operator.explored().steps < 3 * few  # what one event or match goes past is not cut in two


@pytest.mark.parametrize("text", EXPLODING)
def test_what_explodes_is_told_and_not_counted(text: str) -> None:
    told = trellis.query(text).explain(trades(2_000), time="ts", event_id="id", type="kind")
    assert "not counted here, as that takes long" in told
    assert "matches so far in the largest window and partition, by a sample" in told


@pytest.mark.parametrize(("seconds", "text"), [(0.5, "less than a second"), (7, "7 seconds"), (1e10, "317 years")])
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text
