"""Partial matches that ran out of time, beside all of them by their definition."""

from __future__ import annotations

import random
from itertools import combinations, pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.profiles import examples
from tests.streams.test_bucket import Stream, rows_of, standing, through_a_stream
from trellis.errors import UsageError
from trellis.streams.query_group import QueryGroup
from trellis.streams.stream_output import TIMEOUTS

WHERE = "WHERE [g] AND a.x < b.x AND b.x <= c.x AND c.x > 1"
SIZE = 5


def by_definition(rows: list[dict[str, Any]], windows: bool, forbids: bool = False) -> list[tuple[Any, ...]]:
    """Return the beginnings that no event goes on from, and none ends if it `forbids`, within their window or span.

    Forbidden are: before `a` an event with x = 3, between `a` and `b` one like `a`, behind `b` one with x = 0.
    """
    meets = (
        lambda a: True,
        lambda a, b: a["x"] < b["x"],
        lambda a, b, c: b["x"] <= c["x"] and c["x"] > 1,
    )

    def is_one(path: tuple[dict[str, Any], ...]) -> bool:
        in_order = all(one["ts"] < two["ts"] and one["g"] == two["g"] for one, two in pairwise(path))
        first, last = path[0]["ts"], path[-1]["ts"]
        near = first // SIZE == last // SIZE if windows else last - first <= SIZE
        return in_order and near and all(meets[i](*path[: i + 1]) for i in range(len(path))) and not ended(path)

    def within(one: dict[str, Any], other: dict[str, Any]) -> bool:
        times = one["ts"], other["ts"]
        near = times[0] // SIZE == times[1] // SIZE if windows else abs(times[0] - times[1]) <= SIZE
        return near and one["g"] == other["g"]

    def ended(path: tuple[dict[str, Any], ...], waits: bool = False) -> bool:
        """Whether an event is forbidden in a path; or behind it, while it waits."""
        if not forbids:
            return False
        a, b, last = path[0], path[1] if len(path) > 1 else None, path[-1]
        for row in rows:
            if not within(a, row):
                continue
            until = b["ts"] if b else (float("inf") if waits else last["ts"])
            reaches = windows or row["ts"] >= last["ts"] - SIZE  # a NOT that begins looks back from the last event
            if row["ts"] < a["ts"] and row["x"] == 3 and reaches:
                return True
            if a["ts"] < row["ts"] < until and row["x"] == a["x"]:
                return True
            end = path[2]["ts"] if len(path) > 2 else (float("inf") if waits else last["ts"])
            if b and b["ts"] < row["ts"] < end and row["x"] == 0:
                return True
        return False

    found = []
    for size in (1, 2):
        for path in combinations(sorted(rows, key=lambda row: row["ts"]), size):
            if is_one(path) and not ended(path, waits=True) and not any(is_one((*path, row)) for row in rows):
                found.append((["a", "a, b"][size - 1], "bc"[size - 1], [row["id"] for row in path]))
    return sorted(found)


@examples(25)
@given(n=st.integers(0, 14), windows=st.booleans(), forbids=st.booleans(), dice=st.randoms(use_true_random=False))
def test_beginnings_that_went_no_farther(n: int, windows: bool, forbids: bool, dice: random.Random) -> None:
    rows = [{"ts": dice.randint(0, 12), "id": i, "x": dice.randint(0, 3), "g": dice.randint(0, 1)} for i in range(n)]
    table = pa.Table.from_pylist(rows, pa.schema({name: pa.int64() for name in ("ts", "id", "x", "g")}))
    within = f"WITHIN {SIZE} SLIDE {SIZE}" if windows else f"WITHIN {SIZE}"
    pattern, where = "SEQ(E a, E b, E c)", WHERE
    if forbids:
        pattern = "SEQ(NOT(E l), E a, NOT(E m), E b, NOT(E n), E c)"
        where += " AND l.x = 3 AND m.x = a.x AND n.x = 0"
    one = standing(f"PATTERN {pattern} {where} {within}", table, time="ts", event_id="id")
    outs = [out for _, some in through_a_stream(one, table, dice, timeouts=frozenset({"q"})) for out in some]
    told = rows_of(outs, TIMEOUTS)
    assert sorted((row["matched"], row["awaited"], row["events"]) for row in told) == by_definition(
        rows, windows, forbids
    )
    assert {row["condition"] for row in told} <= {"a.x < b.x", "b.x <= c.x AND c.x > 1"}


def test_a_kleene_variable_is_awaited_too_many_are_counted_and_other_queries_refused() -> None:
    table = pa.table({"ts": [1, 2, 3, 20], "id": [1, 2, 3, 4], "x": [1, 2, 3, 0], "g": [1, 1, 1, 1]})
    text = "PATTERN SEQ(E a, E+ b[]) WHERE a.x = 1 AND FIRST(b).x > 7 AND NEXT(b).x > b.x WITHIN 5 SLIDE 5"
    told = frozenset({"q"})
    stream = Stream(standing(text, table, time="ts", event_id="id"), timeouts=told)
    (row,) = rows_of(stream.take(table, 10), TIMEOUTS)
    assert (row["events"], row["awaited"], row["condition"]) == ([1], "b", "b.x > 7")
    text = "PATTERN a;b;c WHERE c.x > 9 WITHIN 5 SLIDE 5"
    few = Stream(standing(text, table, max_trends=2, time="ts", event_id="id"), timeouts=told)
    assert [row["count_text"] for row in rows_of(few.take(table, 10), TIMEOUTS)] == [None, "3"]
    for text in ("PATTERN SEQ(E a, NOT(E b), E c) WHERE b.x < c.x WITHIN 5", "PATTERN E+ e[] WITHIN 5"):
        with pytest.raises(UsageError, match="cannot be told"):
            QueryGroup((standing(text, table, time="ts", event_id="id"),), told)
