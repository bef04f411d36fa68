"""Ties: columns behind the time order its events, and many events of one time are told by a warning."""

from __future__ import annotations

import warnings
from typing import Any

import pyarrow as pa
import pytest

import trellis
from trellis.errors import DataError, UsageError

RISING = "PATTERN E+ e[] WHERE e[i].x > e[i-1].x REPORT maximal"


def table(**columns: Any) -> pa.Table:
    return pa.table({"ts": [1, 2, 2, 3], "seq": [1, 2, 1, 1], "x": [1, 3, 2, 4], "id": list("abcd"), **columns})


def found(data: pa.Table, text: str = RISING, **options: Any) -> list[list[str]]:
    trends = trellis.query(text).detect(data, **{"time": ("ts", "seq"), "event_id": "id", **options})
    return [list(trend.ids) for trend in trends]


def test_later_columns_of_time_order_events_of_one_time() -> None:
    assert found(table()) == [["a", "c", "b", "d"]]


def test_without_them_neither_follows_the_other() -> None:
    assert found(table(), time="ts") == [["a", "b", "d"], ["a", "c", "d"]]


def test_spans_and_conditions_on_time_look_at_the_first_column() -> None:
    text = "PATTERN E+ e[] WHERE e[i].x > e[i-1].x AND e[i].time - e[i-1].time <= 0 REPORT any WITHIN 1"
    assert found(table(), f"{text} HAVING LENGTH > 1") == [["c", "b"]]


def test_events_without_ids_are_numbered_in_this_order() -> None:
    trends = trellis.query(RISING).detect(table().drop_columns("id"), time=("ts", "seq"))
    assert trends.to_arrow()["events"].to_pylist() == [[0, 1, 2, 3]]


def test_why_not_knows_the_order() -> None:
    query = trellis.query(RISING)
    assert "it is a result" in str(query.why_not(table(), ["a", "b", "c", "d"], time=("ts", "seq"), event_id="id"))
    assert "follow one another" in str(query.why_not(table(), ["a", "b", "c", "d"], time="ts", event_id="id"))


def test_a_missing_tie_breaker_is_a_bad_row() -> None:
    holed = table(seq=pa.array([1, None, 1, 1]))
    with pytest.raises(DataError, match=r"1 row has no readable tie-breaker in the column `seq`, for example: ts=2"):
        found(holed)
    assert found(holed, on_bad_rows="drop") == [["a", "c", "d"]]


@pytest.mark.parametrize(
    ("time", "said"),
    [
        (("ts", "sequence"), "no column `sequence` for the order of events of one time"),
        (("ts", "ts"), "`ts` is named twice among the columns of time"),
        (("ts", "parts"), "`parts` is of type list<item: int64>, which has no order to break ties by"),
        ((), r"time is \(\)"),
        (("ts", 3), r"time is \('ts', 3\)"),
    ],
)
def test_columns_that_cannot_break_ties_are_refused(time: Any, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        found(table(parts=[[1]] * 4), time=time)


# --- The warning ------------------------------------------------------------------------------------------------

TIED = r"2 of 4 events \(50.0%\) share `ts` with another event of their partition"


def test_many_events_of_one_time_are_told() -> None:
    with pytest.warns(UserWarning, match=TIED + r".* name it: time=\('ts', 'COLUMN'\) or --time ts,COLUMN"):
        found(table(), time="ts")


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (RISING, {}),
        ("PATTERN E+ e[] WHERE [x] AND e[i].x > e[i-1].x", {"time": "ts"}),
        ("PATTERN E+ e[] WHERE e.x != 3 AND e[i].x > e[i-1].x", {"time": "ts"}),
    ],
    ids=["broken", "in other partitions", "left out by a condition"],
)
def test_ties_that_do_not_matter_are_not_told(text: str, options: dict[str, Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found(table(), text, **options)


def test_one_event_in_a_hundred_may_be_tied() -> None:
    times = [*range(199), 198]
    data = pa.table({"ts": times, "id": range(200), "x": times})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        trellis.query(RISING).detect(data, time="ts", event_id="id").count()


# --- Events that arrive -----------------------------------------------------------------------------------------


def test_arrivals_hold_to_the_order_of_ties() -> None:
    arrivals = trellis.query("PATTERN SEQ(E a, E b) WHERE a.x < b.x WITHIN 5").arrivals(
        time=("ts", "seq"), event_id="id"
    )
    first, second = table().slice(0, 1), table().slice(1, 1)
    assert arrivals.take(first).num_rows == 0
    assert arrivals.take(second)["b"].to_pylist() == ["b"]
    with pytest.raises(DataError, match="earlier than one of an earlier batch"):
        arrivals.take(table().slice(2, 1))
    assert arrivals.take(table().slice(3, 1))["a"].to_pylist() == ["a", "b"]
