"""What comes out as watermarks rise equals what all events together have, whatever the order and the batches."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from math import floor
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import trellis
from tests.compare import expected, plain_rows
from tests.grouping import is_refused, queries_on
from tests.profiles import examples
from tests.strategies import (
    TYPED,
    Case,
    arrow_table,
    case,
    chain_case,
    sequence_case,
    skipping_case,
    tables,
)
from trellis.errors import DataError, OverflowInCondition, UsageError
from trellis.events.columns.types import from_arrow, normalise
from trellis.events.table_bytes import packed
from trellis.events.tables import schema_of
from trellis.language.schema import time_columns
from trellis.streams.bucket import Bucket, OutputTable
from trellis.streams.calendar import END, Calendar, TimeLine
from trellis.streams.early import why_not_early
from trellis.streams.memory_store import MemoryStore
from trellis.streams.query import StandingQuery, check_standing_query
from trellis.streams.query_group import QueryGroup
from trellis.streams.stream_output import LATE, REPEATED, RESULTS, WINDOWS

IDENTIFIED = tables(types=TYPED, most=7).filter(lambda table: bool(table.options["event_id"]))
ANY_SHAPE = IDENTIFIED.flatmap(queries_on)  # with the ids that streams ask for


def standing(text: str, table: pa.Table, name: str = "q", max_trends: int = 10**8, **options: Any) -> StandingQuery:
    params = options.pop("params", None)
    given = {"type": None, "event_id": None} | options
    time, tie_breakers = time_columns(given.pop("time"))
    schema = schema_of({None: table}, str(time), tie_breakers=tie_breakers, **given)
    plan = trellis.query(text).plan(schema, params)
    check_standing_query(plan.bound)
    return StandingQuery(name, plan, max_trends)


class Stream:
    """Events that arrive for some queries, in one bucket."""

    def __init__(self, *standing: StandingQuery, timeouts: frozenset[str] = frozenset()) -> None:
        self.group, self.store = QueryGroup(standing, timeouts), MemoryStore()
        self.watermark: Any = None

    def take(self, events: pa.Table, watermark: Any) -> list[OutputTable]:
        """Let events come, then the watermark rise, as a micro-batch does."""
        bucket = Bucket(self.group, self.store)
        found: list[OutputTable] = []
        if events.num_rows:
            newest = self.group.line.numbers(events, self.group.time).max().item()
            wanted = events.filter(pa.array(self.group.wanted(events)))
            found += bucket.take(wanted, newest, self.watermark)
            bucket.fold(self.watermark, least=1)
        bucket.finish()
        self.watermark = watermark
        bucket = Bucket(self.group, self.store)
        due = bucket.next_watermark
        if watermark == END or (watermark is not None and due is not None and due <= watermark):
            found += bucket.close(watermark)
        bucket.finish()
        json.loads((self.store.note() or "").replace("Infinity", "0"))
        return found


def rows_of(outs: list[OutputTable], kind: str = RESULTS, name: str = "q") -> list[dict[str, Any]]:
    return plain_rows([row for out in outs if (out.kind, out.query) == (kind, name) for row in out.table.to_pylist()])


def in_any_order(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(map(repr, rows))


def through_a_stream(
    one: StandingQuery, table: pa.Table, dice: random.Random, timeouts: frozenset[str] = frozenset()
) -> list[tuple[Any, list[OutputTable]]]:
    """Let events come in a random order and random batches; return what came out at each watermark."""
    schema = one.bound.schema
    assert schema is not None
    line = TimeLine(schema.time_type)
    order = list(range(table.num_rows))
    dice.shuffle(order)
    if dice.random() < 0.85:  # nearly in order
        times = line.numbers(table, schema.time)
        order.sort(key=lambda i: times[i] + dice.choice([0, 0, 1, 2]) * dice.random() * float(line.unit))
    table = table.take(pa.array(order, pa.int64()))
    times = line.numbers(table, schema.time)
    stream = Stream(one, timeouts=timeouts)
    found, at = [], 0
    while at < table.num_rows:
        end = min(table.num_rows, at + dice.randint(0, 3))
        watermark = stream.watermark
        if end < table.num_rows:
            highest = floor(times[end:].min().item() / line.unit) - dice.choice([0, 0, 0, 1])
            if highest != 0 and (watermark is None or highest > watermark) and dice.random() < 0.95:
                watermark = highest
        found.append((watermark, stream.take(table.slice(at, end - at), watermark)))
        at = end
    found.append((END, stream.take(table.slice(0, 0), END)))
    assert not stream.store.chunks()
    return found


def assert_same_as_batch(drawn: Case, dice: random.Random) -> None:
    """Compare what comes out of a stream, whatever the batches, with what the oracle finds in all events."""
    assume(drawn.options.get("event_id"))
    table = arrow_table(drawn.rows, drawn.schema)
    from trellis.language.printer import to_query_text

    try:
        one = standing(to_query_text(drawn.query), table, **drawn.options)
    except UsageError as error:
        if not is_refused(error):
            raise
        assume(False)
    answer = expected(drawn)
    try:
        found = through_a_stream(one, table, dice)
    except (OverflowInCondition, DataError):
        return
    if isinstance(answer, str):
        return  # what overflows may be in no window that is computed
    outs = [out for _, some in found for out in some]
    wanted = plain_rows(answer.rows if answer.aggregates is None else answer.aggregates)
    assert in_any_order(rows_of(outs)) == in_any_order(wanted)
    assert not [out for out in outs if out.kind == LATE]
    _assert_prompt(one, found)


def _assert_prompt(one: StandingQuery, found: list[tuple[Any, list[OutputTable]]]) -> None:
    """Check that what comes out at a watermark was decided there, and at none before."""
    bound, before = one.bound, None
    assert bound.schema is not None
    calendar = Calendar(bound)
    line = calendar.line
    for watermark, outs in found:
        decided, known = calendar.decided(watermark), calendar.decided(before)
        for out in (o for o in outs if o.kind == RESULTS):
            if calendar.sliding:
                starts = line.clock.numbers(normalised(out.table["window_start"], line))
                assert (starts <= calendar.start(decided)).all()
                assert (starts > calendar.start(known)).all()
            else:
                starts = line.clock.numbers(normalised(out.table["start_time"], line))
                assert (starts < decided).all()
                assert (starts >= known).all()
        before = watermark


def normalised(column: pa.ChunkedArray, line: TimeLine) -> pa.Array:
    return normalise(column, from_arrow(column.type))


@examples(60)
@given(drawn=case(), number=st.integers(0, 10**6))
def test_one_variable(drawn: Case, number: int) -> None:
    assert_same_as_batch(drawn, random.Random(number))


@examples(40)
@given(drawn=chain_case(), number=st.integers(0, 10**6))
def test_neighbours(drawn: Case, number: int) -> None:
    assert_same_as_batch(drawn, random.Random(number))


@examples(60)
@given(drawn=ANY_SHAPE, number=st.integers(0, 10**6))
def test_patterns(drawn: Case, number: int) -> None:
    assert_same_as_batch(drawn, random.Random(number))


@pytest.mark.slow
@settings(max_examples=400)
@given(drawn=ANY_SHAPE, number=st.integers(0, 10**6))
def test_many_more_patterns(drawn: Case, number: int) -> None:
    assert_same_as_batch(drawn, random.Random(number))


@examples(40)
@given(drawn=sequence_case(), number=st.integers(0, 10**6))
def test_sequences(drawn: Case, number: int) -> None:
    assert_same_as_batch(drawn, random.Random(number))


@examples(40)
@given(drawn=skipping_case(), number=st.integers(0, 10**6))
def test_after_match(drawn: Case, number: int) -> None:
    assert_same_as_batch(drawn, random.Random(number))


# --- Chosen queries over longer streams -------------------------------------------------------------------------------

SPANS = [
    "PATTERN E+ s[] WHERE [g] AND s[i].x > s[i-1].x WITHIN 4",
    "PATTERN E+ s[] WHERE s[i].x > s[i-1].x REPORT maximal WITHIN 4",
    "PATTERN E+ s[] WHERE s[i].x != s[i-1].x REPORT any WITHIN 3 RETURN s, SUM(s.x)",
    "PATTERN E+ s[] WHERE s.x > 1 SELECT contiguous WITHIN 6",
    "PATTERN E+ s[] WHERE s[i].x > s[i-1].x SELECT skip-till-next WITHIN 6",
    "PATTERN SEQ(E a, E+ b[]) WHERE a.x < b.x AND b.x < NEXT(b).x WITHIN 5",
    "PATTERN SEQ(E a, E+ b[]) WHERE a.x < b.x AND b.x < NEXT(b).x REPORT maximal WITHIN 5",
    "PATTERN SEQ(E+ a[], E b) WHERE a.x < NEXT(a).x AND FIRST(a).x = b.x WITHIN 5",
    "PATTERN SEQ(E a, E+ b[]) WHERE a.x < b.x AND b.x != NEXT(b).x AND [g] WITHIN 4",
    "PATTERN AND(E a, E b) WHERE a.x < b.x WITHIN 2",
    "PATTERN SEQ(NOT(E n), E a, E b, NOT(E m)) WHERE n.x = 5 AND m.x = 0 AND a.x < b.x WITHIN 4",
    "PATTERN a;b;c WHERE a.x > c.x AND b.x = a.x WITHIN 7",
    "PATTERN a;b;c WHERE a.x > c.x AND [g] WITHIN 5",
    "PATTERN SEQ(E a, NOT(E n), E c) WHERE n.x = 3 AND a.x > c.x WITHIN 4",
    "PATTERN E+ s[] WHERE [g] AND s[i].x > s[i-1].x REPORT any WITHIN 6 AFTER MATCH SKIP PAST LAST",
    "PATTERN SEQ(E a, E+ b[]) WHERE a.x < b.x AND b.x < NEXT(b).x REPORT any WITHIN 9 AFTER MATCH SKIP TO LAST b",
    "PATTERN a;b;c WHERE a.x > c.x AND [g] WITHIN 7 AFTER MATCH SKIP TO FIRST b",
    "PATTERN a;b WHERE a.x < b.x",
]
WINDOWED = [
    "PATTERN E+ s[] WHERE [g] AND s[i].x > s[i-1].x WITHIN 6 SLIDE 2 AGGREGATE COUNT(*), SUM(s.x), AVG(LENGTH)",
    "PATTERN E+ s[] WHERE [g, k] AND s[i].x > s[i-1].x WITHIN 6 SLIDE 3 AGGREGATE COUNT(*), MAX(s.x) GROUP BY g",
    "PATTERN E+ s[] WHERE s[i].x > s[i-1].x REPORT any WITHIN 5 SLIDE 1 ORDER BY LENGTH DESC LIMIT 2 PER WINDOW",
    "PATTERN a;b WHERE a.x < b.x AND [g] WITHIN 4 SLIDE 4",
]
MORE = [text for text in (*SPANS, *WINDOWED) if "WITHIN" in text]


def random_events(number: int, dice: random.Random) -> pa.Table:
    return pa.table(
        {
            "ts": [dice.randrange(number) + 1 for _ in range(number)],
            "id": [f"e{i:03}" for i in range(number)],
            "x": [dice.randrange(6) for _ in range(number)],
            "g": [dice.choice(["a", "b", None]) for _ in range(number)],
            "k": [dice.choice([0.0, -0.0, float("nan")]) for _ in range(number)],
        }
    )


@pytest.mark.parametrize("text", MORE)
def test_longer_streams(text: str) -> None:
    early = 0
    for number in range(6):
        dice = random.Random(number)
        table = random_events(dice.choice([20, 40]), dice)
        wanted = trellis.query(text).detect(table, time="ts", event_id="id").to_arrow()
        one = standing(text, table, time="ts", event_id="id")
        found = through_a_stream(one, table, dice)
        outs = [out for _, some in found for out in some]
        assert in_any_order(rows_of(outs)) == in_any_order(plain_rows(wanted.to_pylist()))
        _assert_prompt(one, found) if not one.bound.aggregates else None
        early += sum(len(rows_of(some)) for watermark, some in found if watermark != END)
    assert early


@pytest.mark.parametrize("windows", ["WITHIN 0.1 SLIDE 0.1", "WITHIN 0.7 SLIDE 0.1", "WITHIN 1.1 SLIDE 0.3"])
def test_windows_over_doubles(windows: str) -> None:
    text = f"PATTERN E+ s[] WHERE s[i].x > s[i-1].x {windows}"
    for number in range(4):
        dice = random.Random(number)
        table = random_events(40, dice)
        times = pa.array([float(f"{dice.randrange(1, 300)}e-1") for _ in range(40)])
        table = table.set_column(0, "ts", times)
        wanted = trellis.query(text).detect(table, time="ts", event_id="id").to_arrow()
        one = standing(text, table, time="ts", event_id="id")
        found = through_a_stream(one, table, dice)
        assert in_any_order(rows_of([o for _, some in found for o in some])) == in_any_order(
            plain_rows(wanted.to_pylist())
        )
        _assert_prompt(one, found)


def test_events_are_held_once_and_dropped_when_no_window_needs_them() -> None:
    number = 2_000
    rng = np.random.default_rng(1)
    table = pa.table({"ts": np.arange(number), "id": np.arange(number), "x": rng.integers(0, 50, number)})
    text = "PATTERN E+ s[] WHERE s[i].x > 2 * s[i-1].x WITHIN 40 SLIDE 1 AGGREGATE COUNT(*)"
    stream = Stream(standing(text, table, time="ts", event_id="id"))
    most = 0
    for at in range(0, number, 20):
        stream.take(table.slice(at, 20), at - 5 if at > 5 else None)
        bucket = Bucket(stream.group, stream.store)
        most = max(most, bucket.held)
        assert sum(len(chunk) for chunk in map(packed, stream.store.chunks())) < 40_000
    assert most < 2 * (40 + 20 + 20)


def test_what_is_behind_the_watermark_is_given_back_and_counted() -> None:
    table = pa.table(
        {"ts": [10, 11, 20, 9, 14, 30], "id": list("abcdef"), "x": [1, 2, 3, 4, 5, 6], "g": list("uuuuvu")}
    )
    text = "PATTERN E+ s[] WHERE [g] WITHIN 10 SLIDE 5"
    stream = Stream(standing(text, table, time="ts", event_id="id"))
    stream.take(table.slice(0, 3), 15)
    outs = stream.take(table.slice(3, 2), 16)
    assert [row["id"] for out in outs if out.kind == LATE for row in out.table.to_pylist()] == ["d", "e"]
    outs += stream.take(table.slice(5), 100)
    windows = {(row["window_start"], row["g"]): (row["count"], row["late"]) for row in rows_of(outs, WINDOWS)}
    assert windows == {(10, "u"): (1, 0), (15, "u"): (1, 0), (20, "u"): (1, 0), (25, "u"): (1, 0), (30, "u"): (1, 0)}
    # `e` would have been in the window from 10 on, of the partition `v`, which has no other event; `d` in none.


def test_events_that_come_again_are_left_out_and_told_once() -> None:
    table = pa.table({"ts": [10, 13, 13, 22, 27, 26], "id": list("abacdc"), "x": [1, 2, 3, 4, 5, 6]})
    text = "PATTERN E+ s[] WITHIN 10 SLIDE 5"
    stream = Stream(replace(standing(text, table, time="ts", event_id="id"), on_bad_rows="drop"))
    outs = [out for i in range(table.num_rows) for out in stream.take(table.slice(i, 1), table["ts"][i].as_py() - 5)]
    outs += stream.take(table.slice(0, 0), 100)
    assert [(row["id"], row["ts"]) for row in rows_of(outs, REPEATED)] == [("a", 13), ("c", 26)]


def test_late_events_of_open_windows_are_told() -> None:
    table = pa.table({"ts": [10, 13, 20, 11], "id": list("abcd"), "x": [1, 2, 3, 4]})
    stream = Stream(standing("PATTERN E+ s[] WITHIN 10 SLIDE 10", table, time="ts", event_id="id"))
    stream.take(table.slice(0, 2), 12)
    outs = stream.take(table.slice(2), 20)
    assert [(row["window_start"], row["late"]) for row in rows_of(outs, WINDOWS)] == [(10, 1)]


def test_a_window_over_the_bound_is_counted_and_not_listed() -> None:
    number = 80
    table = pa.table({"ts": np.arange(number), "id": np.arange(number), "x": np.arange(number) % 40})
    text = "PATTERN E+ s[] WHERE s[i].x > s[i-1].x REPORT any WITHIN 40 SLIDE 40"
    stream = Stream(standing(text, table, max_trends=100, time="ts", event_id="id"))
    outs = stream.take(table.slice(0, 45), None) + stream.take(table.slice(45), END)
    found = rows_of(outs, WINDOWS)
    assert [(row["count_text"], row["listed"]) for row in found] == [(str(2**40 - 1), False)] * 2
    assert not rows_of(outs)


def test_what_begins_at_one_event_of_a_span_is_bounded() -> None:
    number = 30
    table = pa.table({"ts": np.arange(number), "id": np.arange(number), "x": np.arange(number) % 10})
    text = "PATTERN E+ s[] WHERE s[i].x > s[i-1].x REPORT any WITHIN 9"
    whole = trellis.query(text).detect(table, time="ts", event_id="id").to_arrow().to_pylist()
    stream = Stream(standing(text, table, max_trends=64, time="ts", event_id="id"))
    outs = stream.take(table, 20) + stream.take(table.slice(0, 0), END)
    refused = {row["event"]: row["count"] for row in rows_of(outs, WINDOWS)}
    starts = [row["events"][0] for row in whole]
    assert refused == {first: starts.count(first) for first in set(starts) if starts.count(first) > 64}
    assert refused
    assert in_any_order(rows_of(outs)) == in_any_order(plain_rows([r for r in whole if r["events"][0] not in refused]))


def test_queries_share_their_events_and_come_and_go() -> None:
    dice = random.Random(5)
    table = random_events(60, dice).sort_by("ts")
    one = standing(MORE[0], table, "one", time="ts", event_id="id")
    two = standing("PATTERN E+ s[] WHERE [g] AND s.k = 0 WITHIN 8 SLIDE 2", table, "two", time="ts", event_id="id")
    at = [table.num_rows // 3, 2 * table.num_rows // 3]
    stream = Stream(one)
    outs = stream.take(table.slice(0, at[0]), table["ts"][at[0]].as_py())
    seen = max(table["ts"].slice(0, at[0]).to_pylist())
    stream.group = QueryGroup((one, two))
    outs += stream.take(table.slice(at[0], at[1] - at[0]), table["ts"][at[1]].as_py())
    stream.group = QueryGroup((two,))
    outs += stream.take(table.slice(at[1]), END)
    whole = trellis.query("PATTERN E+ s[] WHERE [g] AND s.k = 0 WITHIN 8 SLIDE 2").detect(
        table, time="ts", event_id="id"
    )
    wanted = [row for row in plain_rows(whole.to_arrow().to_pylist()) if row["window_start"] > seen]
    assert in_any_order(rows_of(outs, name="two")) == in_any_order(wanted)
    assert wanted
    first = plain_rows(trellis.query(MORE[0]).detect(table, time="ts", event_id="id").to_arrow().to_pylist())
    assert in_any_order(rows_of(outs, name="one")) == in_any_order(
        [row for row in first if row["start_time"] < table["ts"][at[1]].as_py() - 4]
    )


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("PATTERN E+ s[]", "no WITHIN"),
        ("PATTERN E+ s[] WITHIN 3 AGGREGATE COUNT(*)", "AGGREGATE needs windows"),
        ("PATTERN E+ s[] WITHIN 3 LIMIT 4", "LIMIT needs windows"),
        ("PATTERN E+ s[] WITHIN 3 SLIDE 1 LIMIT 4", "go over all windows"),
    ],
)
def test_what_cannot_stand(text: str, wrong: str) -> None:
    table = random_events(3, random.Random(1))
    with pytest.raises(UsageError, match=wrong):
        standing(text, table, time="ts", event_id="id")
    with pytest.raises(UsageError, match="need an id"):
        standing("PATTERN E+ s[] WITHIN 3", table, time="ts")


# --- Early ------------------------------------------------------------------------------------------------------

EARLY = [
    "PATTERN a;b;c WHERE a.x > b.x AND a.x > c.x WITHIN 5",
    "PATTERN a;b WHERE [g] AND a.x = b.x WITHIN 6 SLIDE 2",
    "PATTERN E+ e[] WHERE [g] AND NEXT(e).x > e.x REPORT any WITHIN 5",
    "PATTERN E+ e[] WHERE NEXT(e).x > e.x REPORT any WITHIN 6 SLIDE 3 HAVING LENGTH > 1",
    "PATTERN SEQ(E a, E+ b[], E? c) WHERE a.x < 3 AND b.x > 1 AND NEXT(b).x >= b.x AND c.x = 0 REPORT any WITHIN 5",
]


@examples(40)
@given(text=st.sampled_from(EARLY), n=st.integers(1, 22), dice=st.randoms(use_true_random=False))
def test_early_results_come_once_and_with_their_last_event(text: str, n: int, dice: random.Random) -> None:
    table = pa.table(
        {
            "ts": [dice.randint(0, n) for _ in range(n)], "id": list(range(n)),
            "x": [dice.choice([None, 0, 1, 2, 3, 4]) for _ in range(n)], "g": [dice.randint(0, 1) for _ in range(n)],
        }
    )  # fmt: skip
    one = replace(standing(text, table, time="ts", event_id="id"), early=True)
    assert why_not_early(one.plan, in_order=False) is None
    found = [row for _, outs in through_a_stream(one, table, dice) for row in rows_of(outs)]
    whole = trellis.query(text).detect(table, time="ts", event_id="id").to_arrow().to_pylist()
    assert {row["rank"] for row in found} <= {None}
    assert in_any_order([row | {"rank": 0} for row in found]) == in_any_order(
        [row | {"rank": 0} for row in plain_rows(whole)]
    )
    stream, seen = Stream(one), set[int]()
    for i in range(n):  # each by itself: every result that comes has the event that just came, so none could be sooner
        outs = rows_of(stream.take(table.slice(i, 1), None))
        seen.add(i)
        assert all(i in ids_of(row) <= seen for row in outs)


def ids_of(row: dict[str, Any]) -> set[int]:
    """Return the ids of all events of a row."""
    return {value for name in ("events", *"abce") for value in _listed(row.get(name))}


def _listed(value: Any) -> list[int]:
    return [] if value is None else list(value) if isinstance(value, list) else [value]


def test_too_many_early_results_are_counted_and_the_rest_waits() -> None:
    table = pa.table({"ts": [1, 2, 3], "id": [1, 2, 3], "x": [1, 2, 3], "g": [1, 1, 2]})
    for text, counts in (("PATTERN a;b WITHIN 5", ["3"]), ("PATTERN E+ e[] REPORT any WITHIN 5 SLIDE 5", ["7"])):
        stream = Stream(replace(standing(text, table, max_trends=2, time="ts", event_id="id"), early=True))
        outs = stream.take(table, None)
        assert [row["count_text"] for row in rows_of(outs, WINDOWS)] == counts
        assert not rows_of(outs)
    for text in (
        "PATTERN E+ e[] WITHIN 5", "PATTERN SEQ(E a, NOT(E b), E c) WITHIN 5",
        "PATTERN a;b WITHIN 5 SLIDE 5 AGGREGATE COUNT(*)", "PATTERN E+ e[] SELECT skip-till-next REPORT any WITHIN 5",
    ):  # fmt: skip
        assert why_not_early(standing(text, table, time="ts", event_id="id").plan, in_order=False)
