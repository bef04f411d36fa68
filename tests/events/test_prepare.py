"""From a table to the sorted slice, against a slow version in plain Python; and what is not looked at on the way."""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import asdict, dataclass
from decimal import Decimal
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import trellis
from tests.profiles import examples
from trellis.errors import DataError, UsageError
from trellis.events.prepare import PreparedEvents, prepare, with_columns
from trellis.events.tables import schema_of
from trellis.make import make_operator
from trellis.plan.plan import Plan, with_all_columns

EPOCH = dt.datetime(1970, 1, 1)
MICRO = dt.timedelta(microseconds=1)
TIMES: dict[str, tuple[pa.DataType, Any]] = {
    "int": (pa.int64(), int),
    "double": (pa.float64(), float),
    "decimal": (pa.decimal128(10, 1), lambda n: Decimal(n).quantize(Decimal("0.1"))),
    "timestamp": (pa.timestamp("us"), lambda n: EPOCH + n * MICRO),
}
IDS: dict[str, tuple[pa.DataType, Any]] = {
    "int": (pa.int64(), int),
    "wide": (pa.int64(), lambda n: n * 2**58),
    "double": (pa.float64(), lambda n: -0.0 if n == 0 else n / 4),
    "string": (pa.string(), lambda n: f"id-{n}"),
    "short": (pa.string(), lambda n: f"é{n}"),
    "decimal": (pa.decimal128(38, 2), lambda n: Decimal(n).quantize(Decimal("0.01"))),
    "boolean": (pa.bool_(), lambda n: n > 0),
    "timestamp": (pa.timestamp("ms"), lambda n: EPOCH + n * 1000 * MICRO),
}
PARTS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "int": (pa.int64(), [1, 1, -2, None]),
    "string": (pa.string(), ["p", "é", "", None]),
    "double": (pa.float64(), [0.0, -0.0, 1.5, math.nan, None]),
}
WINDOWS = {"": None, "WITHIN 3": (3, None), "WITHIN 4 SLIDE 2": (4, 2), "WITHIN 3 SLIDE 3": (3, 3)}


@dataclass
class Case:
    """A table in rows, what the query says of it, and how it is cut into chunks."""

    table: pa.Table
    event_id: str | None
    partition: tuple[str, ...]
    positive: bool
    contiguous: bool
    window: str
    drop: bool
    temporal: bool

    @property
    def plan(self) -> Plan:
        conditions = [
            *(["s.x > 0"] if self.positive else []),
            *([f"[{', '.join(self.partition)}]"] * any(self.partition)),
        ]
        window = self.window.replace("3", "3 us").replace("4", "4 us").replace("2", "2 us")
        text = " ".join(
            [
                "PATTERN E+ s[]",
                *([f"WHERE {' AND '.join(conditions)}"] if conditions else []),
                *(["SELECT contiguous"] if self.contiguous else []),
                window if self.temporal else self.window,
            ]
        )
        return trellis.query(text).plan(schema_of({None: self.table}, "ts", None, self.event_id))


@st.composite
def cases(draw: Any) -> Case:
    size = draw(st.integers(0, 12))
    ordered = draw(st.booleans())

    def numbers(low: int, high: int, bad: bool) -> list[Any]:
        value = st.integers(low, high)
        drawn = draw(st.lists(st.none() | value if bad else value, min_size=size, max_size=size))
        return sorted(drawn, key=lambda n: -99 if n is None else n) if ordered else drawn

    bad, unique = draw(st.booleans()), draw(st.booleans())
    time, id_, part = (draw(st.sampled_from(list(kinds))) for kinds in (TIMES, IDS, PARTS))
    ids: list[Any] = draw(st.permutations(range(size))) if unique and not ordered else list(range(size))
    columns = {
        "g": pa.array([draw(st.sampled_from(PARTS[part][1])) for _ in range(size)], PARTS[part][0]),
        "x": pa.array([draw(st.sampled_from([1, 2, 2, -1, None])) for _ in range(size)], pa.int64()),
        "ts": made(numbers(-4, 8, bad), TIMES[time]),
        "id": made(ids if unique else numbers(-2, 6, bad), IDS[id_]),
        "y": pa.array([draw(st.sampled_from([0.5, math.nan, None])) for _ in range(size)], pa.float64()),
    }
    table = pa.table({name: columns[name] for name in draw(st.permutations(list(columns)))})
    cut = draw(st.integers(0, size))
    return Case(
        table=pa.concat_tables([table.slice(0, cut), table.slice(cut)]) if draw(st.booleans()) else table,
        event_id=draw(st.sampled_from(["id", None])),
        partition=draw(st.sampled_from([(), (), ("g",), ("g", "x")])),
        positive=draw(st.booleans()),
        contiguous=draw(st.booleans()),
        window=draw(st.sampled_from(list(WINDOWS))),
        drop=draw(st.booleans()),
        temporal=time == "timestamp",
    )


def made(numbers: list[Any], kind: tuple[pa.DataType, Any]) -> pa.Array:
    return pa.array([None if n is None else kind[1](n) for n in numbers], kind[0])


# --- The slow version -------------------------------------------------------------------------------------------


@dataclass
class Slow:
    """What `Prepared` holds, row by row."""

    rows: list[dict[str, Any]]
    ids: list[Any]
    times: list[Any]
    usable: list[bool]
    bounds: list[int]
    groups: list[tuple[int, int, int]]
    until: list[int]
    dropped: int


def key(value: Any) -> tuple[int, Any]:
    """Sorts as the language does: NULL first, NaN last, strings by bytes."""
    if value is None:
        return 0, 0
    if isinstance(value, float) and math.isnan(value):
        return 2, 0
    return 1, value.encode() if isinstance(value, str) else value


def windows_of(time: Any, window: str) -> set[int]:
    """The numbers of the windows that hold a time; one for all where there are none."""
    sliding = WINDOWS[window]
    if sliding is None or sliding[1] is None:
        return {0}
    size, slide = sliding
    return {k for k in range(-20, 20) if k * slide <= time < k * slide + size}


def slow_prepare(case: Case) -> Slow:
    """Follow the page on what a query means; raise ValueError where that says bad data."""
    read = case.table.to_pylist()
    good = [r for r in read if r["ts"] is not None and (case.event_id is None or r["id"] is not None)]
    if len(good) < len(read) and not case.drop:
        raise ValueError("bad rows")
    for row in good:
        row["#time"] = (row["ts"] - EPOCH) // MICRO if case.temporal else row["ts"]
    others = [name for name in case.table.column_names if name != "ts"]
    by_position = sorted(good, key=lambda r: (key(r["ts"]), [key(r[n]) for n in others]))
    for position, row in enumerate(by_position):
        row["#id"] = position if case.event_id is None else row["id"]
    for row in good:
        row["#usable"] = not case.positive or (row["x"] is not None and row["x"] > 0)
        row["#world"] = [key(row[n]) for n in case.partition]
    left = [r for r in good if r["#usable"] or case.contiguous]
    kept: list[dict[str, Any]] = []
    for row in sorted(left, key=lambda r: (r["#world"], key(r["ts"]), [key(r[n]) for n in case.table.column_names])):
        met = windows_of(row["#time"], case.window)
        same = [r for r in kept if r["#world"] == row["#world"] and r["#id"] == row["#id"]]
        if not any(windows_of(r["#time"], case.window) & met for r in same):
            kept.append(row)
    if len(kept) < len(left) and not case.drop:
        raise ValueError("repeated ids")
    kept.sort(key=lambda r: (r["#world"], key(r["ts"]), key(r["#id"])))
    return sliced(case, kept, len(read) - len(good) + len(left) - len(kept))


def sliced(case: Case, events: list[dict[str, Any]], dropped: int) -> Slow:
    bounds = [i for i in range(len(events)) if i == 0 or events[i]["#world"] != events[i - 1]["#world"]] + [len(events)]
    groups, until = [], []
    for world, (begin, end) in enumerate(pairwise(bounds)):
        windows = [windows_of(e["#time"], case.window) for e in events[begin:end]]
        for number in sorted(set().union(*windows)):
            members = [begin + i for i, held in enumerate(windows) if number in held]
            groups.append((number, world, members[0], members[-1] + 1))
        for x in range(begin, end):
            apart = [y for y in range(x, end) if not company(case, events[x]["#time"], events[y]["#time"])]
            until.append(min(apart, default=end))
    scale = 10 if case.table.schema.field("ts").type == pa.decimal128(10, 1) else 1
    return Slow(
        rows=[{n: row[n] for n in case.table.column_names} for row in events],
        ids=[row["#id"] for row in events],
        times=[row["#time"] * scale for row in events],
        usable=[row["#usable"] for row in events],
        bounds=bounds,
        groups=[(lo, hi, number) for number, _, lo, hi in sorted(groups)],
        until=until,
        dropped=dropped,
    )


def company(case: Case, x: Any, y: Any) -> bool:
    """Whether two events can be in one trend, as far as their times tell."""
    window = WINDOWS[case.window]
    if window is not None and window[1] is None:
        return bool(y - x <= window[0])
    return bool(windows_of(x, case.window) & windows_of(y, case.window))


def plainly(prepared: PreparedEvents) -> Slow:
    events = prepared.events
    groups = zip(events.groups.lo.tolist(), events.groups.hi.tolist(), events.groups.number.tolist(), strict=True)
    return Slow(
        rows=prepared.table.to_pylist(),
        ids=events.ids.to_pylist(),
        times=events.times.tolist(),
        usable=events.usable.tolist(),
        bounds=events.bounds.tolist(),
        groups=list(groups),
        until=events.until.tolist(),
        dropped=prepared.dropped,
    )


@examples(200)
@given(cases())
def test_prepare(case: Case) -> None:
    on_bad_rows = "drop" if case.drop else "error"
    try:
        expected = slow_prepare(case)
    except ValueError:
        with pytest.raises(DataError, match=r"no readable|occurs twice"):
            prepare(case.plan, case.table, on_bad_rows)
        return
    prepared = prepare(case.plan, case.table, on_bad_rows)
    assert comparable(asdict(plainly(prepared))) == comparable(asdict(expected))
    assert prepared.read == case.table.num_rows
    check_columns(prepared, with_all_columns(case.plan), expected)


def comparable(value: Any) -> Any:
    """NaN does not equal itself; all else is compared as Python does."""
    if isinstance(value, dict):
        return {name: comparable(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [comparable(inner) for inner in value]
    return "NaN" if isinstance(value, float) and math.isnan(value) else value


def check_columns(prepared: PreparedEvents, plan: Plan, expected: Slow) -> None:
    """The slice has the columns that the plan reads, and takes more where another plan asks for them."""
    assert set(prepared.events.columns) < set(plan.columns)
    for events in (prepared.events, with_columns(prepared, plan)):
        for name, column in events.columns.items():
            assert comparable(column.to_pylist()) == comparable([row[name] for row in expected.rows])
        assert len(events) == len(expected.rows)
    assert list(with_columns(prepared, plan).columns) == list(plan.columns)
    assert prepared.events.times.flags.writeable, "kernels are compiled for arrays that can be written"


@pytest.mark.parametrize("spread", [40, 10**6, 2**61])
@pytest.mark.parametrize("event_id", [None, "id"])
def test_many_rows_in_no_order(spread: int, event_id: str | None) -> None:
    random = np.random.default_rng(5)
    size = 200
    ids = random.permutation(size)
    table = pa.table(
        {"ts": random.integers(-spread, spread, size), "id": ids, "x": random.integers(0, 3, size), "g": ids % 5 - 2}
    )
    for partition in ((), ("g",)):
        case = Case(table, event_id, partition, bool(partition), False, "", False, False)
        assert plainly(prepare(case.plan, table)) == slow_prepare(case)


# --- What is not looked at, and not copied ----------------------------------------------------------------------

TOO_FINE = pa.array([1, 2, 3], pa.timestamp("ns"))


def planned(table: pa.Table, event_id: str | None = None, text: str = "PATTERN E+ s[]") -> Plan:
    return trellis.query(text).plan(schema_of({None: table}, "ts", None, event_id))


def test_positions_need_other_columns_only_where_times_are_equal() -> None:
    table = pa.table({"ts": [3, 1, 2], "other": TOO_FINE})
    assert prepare(planned(table), table).events.ids.to_pylist() == [0, 1, 2]
    tied = pa.table({"ts": [3, 1, 3], "other": TOO_FINE})
    with pytest.raises(DataError, match="finer than microseconds"):
        prepare(planned(tied), tied)
    unordered = pa.table({"ts": [3, 1, 2], "other": [[1], [2], [3]]})
    with pytest.raises(UsageError, match="`other` has no order"):
        prepare(planned(unordered), unordered)


def test_sorted_events_are_not_copied() -> None:
    table = pa.table({"ts": pa.array([1, 2, 2]).cast(pa.timestamp("us")), "id": [4, 5, 6], "x": [0.5, 1.5, 2.5]})
    prepared = prepare(planned(table, "id", "PATTERN E+ s[] WHERE s[i].x > s[i-1].x AND s.x > 0"), table)
    columns = {**prepared.events.columns, "id": prepared.events.ids}
    for name, column in columns.items():
        assert column.buffers()[1].address == table[name].chunk(0).buffers()[1].address, name
    assert prepared.table["x"].chunk(0).buffers()[1].address == table["x"].chunk(0).buffers()[1].address


def test_counting_does_not_bring_all_columns_into_order() -> None:
    table = pa.table({"ts": [3, 1, 2], "id": [4, 5, 6], "x": [0.5, 1.5, 2.5], "other": [[1], [2], [3]]})
    plan = planned(table, "id", "PATTERN E+ s[] WHERE s[i].x > s[i-1].x")
    prepared = prepare(plan, table)
    assert make_operator(plan, prepared.events, 1).counts == [2]
    assert "whole" not in vars(prepared.source)
    trends = trellis.query("PATTERN E+ s[] WHERE s[i].x > s[i-1].x").detect(table, event_id="id")
    assert trends.events.to_pylist() == table.take([1, 2, 0]).to_pylist()
    assert trends.events is trends.events
