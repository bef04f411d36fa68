"""Sums in place of events: the oracle's numbers, whatever the batches, and no more state than distinct values."""

from __future__ import annotations

import random
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import trellis
from tests import oracle
from tests.compare import plain_rows
from tests.profiles import examples
from tests.strategies import arrow_table
from tests.streams.test_bucket import Stream, in_any_order, rows_of, standing, through_a_stream
from trellis.language.parser import parse
from trellis.streams.calendar import END
from trellis.streams.stream_output import LATE

SCHEMA = {
    "ts": "int64", "id": "int64", "g": "string", "a": "int64", "b": "int64", "x": "double", "m": "decimal(10,2)",
}  # fmt: skip
CONDITIONS = [
    "", "[g]", "t[i].a = t[i-1].b", "t[i].a > t[i-1].a", "[g] AND t[i].x >= t[i-1].x", "t[i].x < t[i-1].a",
    "t[i].a = t[i-1].b AND t[i].m > t[i-1].m", "[g] AND t[i].a > t[i-1].a AND t[i].a <= t[i-1].b AND t.b > 0",
]  # fmt: skip
ITEMS = [
    "COUNT(*)", "COUNT(t)", "SUM(LENGTH)", "AVG(LENGTH)", "SUM(t.a)", "AVG(t.a)", "SUM(t.x)", "AVG(t.x)", "MIN(t.x)",
    "MAX(t.g)", "SUM(t.m)", "MIN(t.m)",
]  # fmt: skip
SPECIAL = [None, 0.0, -0.0, 1.5, -2.25, 1e300, -1e300, 5e-324, float("nan"), float("inf"), float("-inf")]
EVENT = st.fixed_dictionaries(
    {
        "ts": st.integers(0, 14),
        "g": st.sampled_from([None, "a", "b", "c"]),
        "a": st.one_of(st.none(), st.integers(0, 3), st.just(2**62)),
        "b": st.one_of(st.none(), st.integers(0, 3)),
        "x": st.sampled_from(SPECIAL),
        "m": st.one_of(st.none(), st.integers(-300, 300).map(lambda n: Decimal(n) / 100)),
    }
)


@examples(150)
@given(data=st.data(), events=st.lists(EVENT, min_size=1, max_size=8), number=st.integers(0, 10**6))
def test_any_batches_have_the_numbers_of_the_oracle(data: Any, events: list[dict[str, Any]], number: int) -> None:
    where = data.draw(st.sampled_from(CONDITIONS))
    items = data.draw(st.lists(st.sampled_from(ITEMS), min_size=1, max_size=3, unique=True))
    report = data.draw(st.sampled_from(["any", "unextendable"]))
    size, slide = data.draw(st.sampled_from([(4, 4), (6, 2), (5, 3), (9, 1)]))
    clauses = ["PATTERN T+ t[]", f"WHERE {where}" if where else "", f"WITHIN {size} SLIDE {slide} REPORT {report}"]
    text = " ".join([*clauses, "AGGREGATE " + ", ".join(items)])
    rows = [{"id": i} | event for i, event in enumerate(events)]
    rows = [{name: row[name] for name in SCHEMA} for row in rows]
    table = arrow_table(rows, SCHEMA)
    one = standing(text, table, time="ts", event_id="id")
    assert one.summed
    wanted = oracle.run(parse(text), rows, schema=SCHEMA, time="ts", event_id="id").aggregates
    outs = [out for _, some in through_a_stream(one, table, random.Random(number)) for out in some]
    assert sorted(rows_of(outs), key=place) == sorted(plain_rows(wanted or []), key=place)


def place(row: dict[str, Any]) -> tuple[int, str]:
    return row["window_start"], repr(row.get("g"))


@examples(60)
@given(
    where=st.sampled_from(CONDITIONS), report=st.sampled_from(["any", "unextendable"]), seed=st.integers(0, 10**6),
    window=st.sampled_from([(20, 1), (17, 4), (40, 3), (9, 9)]), keys=st.sampled_from([2, 12]),
    events=st.integers(1, 90), late=st.booleans(),
)  # fmt: skip
def test_sparse_keys_in_many_windows_have_the_numbers_of_a_batch(
    where: str, report: str, seed: int, window: tuple[int, int], keys: int, events: int, late: bool
) -> None:
    """Runs of windows begin, are divided and end, through restarts and with events that come too late."""
    dice, draw = random.Random(seed), np.random.default_rng(seed)
    text = f"PATTERN T+ t[] {'WHERE ' + where if where else ''} WITHIN {window[0]} SLIDE {window[1]} REPORT {report} "
    text += "AGGREGATE COUNT(*), SUM(t.x), AVG(LENGTH), MAX(t.x), MIN(t.m)"
    times = np.sort(draw.integers(0, 2 * events, events))
    columns = [
        times, np.arange(events), [dice.choice([None, *map(str, range(keys))]) for _ in times],
        *([dice.choice([None, *range(keys)]) for _ in times] for _ in range(2)),
        [dice.choice([*range(-3, 9), 0.1, *SPECIAL]) for _ in times],
        [dice.choice([None, Decimal(1), Decimal("-2.5")]) for _ in times],
    ]  # fmt: skip
    rows = [dict(zip(SCHEMA, row, strict=True)) for row in zip(*(map(_plain, one) for one in columns), strict=True)]
    table = arrow_table(rows, SCHEMA)
    table = table.take(pa.array(np.argsort(times + draw.integers(0, 9, events), kind="stable")))
    stream, outs, at = Stream(standing(text, table, time="ts", event_id="id")), [], 0
    while at < events:
        end = at + dice.choice([1, 3, 20])
        ahead = table["ts"].slice(end).to_pylist()
        seen = max(table["ts"].slice(0, end).to_pylist())
        safe = seen - dice.randint(2, 9) if late else min([seen, *ahead])
        watermark = safe if stream.watermark is None else max(stream.watermark, safe)
        outs += stream.take(table.slice(at, end - at), watermark)
        at = end
    outs += stream.take(table.slice(0, 0), END)
    missed = {row["id"] for out in outs if out.kind == LATE for row in out.table.to_pylist()}
    assert late or not missed
    table = table.filter(pa.array([row not in missed for row in table["id"].to_pylist()]))
    wanted = trellis.query(text).detect(table, time="ts", event_id="id").to_arrow().to_pylist()
    assert in_any_order(rows_of(outs)) == in_any_order(plain_rows(wanted))


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


@pytest.mark.parametrize("report", ["any", "unextendable"])
def test_long_windows_keep_as_many_vertices_as_there_are_values(report: str) -> None:
    n, size = 60_000, 5_000
    draw = np.random.default_rng(3)
    values = {"x": draw.integers(0, 15, n), "y": draw.normal(size=n).round(3), "g": draw.integers(0, 3, n)}
    table = pa.table({"ts": np.arange(n) // 2, "id": np.arange(n), **values})
    text = (
        f"PATTERN T+ t[] WHERE [g] AND t[i].x > t[i-1].x WITHIN 10000 SLIDE 5000 REPORT {report} AGGREGATE COUNT(*), "
    )
    query = trellis.query(text + "SUM(t.y), AVG(t.x), MAX(t.y)")
    arrivals, found, held, states = query.arrivals(time="ts", event_id="id"), [], [], []
    for begin in range(0, n, size):
        found.append(arrivals.take(table.slice(begin, size)))
        state = arrivals.snapshot()
        held.append(arrivals.held)
        states.append(len(state))
        arrivals = query.arrivals(time="ts", event_id="id", state=state)
    found.append(arrivals.end())
    wanted = query.detect(table, time="ts", event_id="id").to_arrow()
    assert in_any_order(pa.concat_tables(found).to_pylist()) == in_any_order(wanted.to_pylist())
    assert report != "any" or max(int(text) for text in wanted["count_text"].to_pylist()) > 2**64
    assert max(held) <= size  # of 20,000 in a window
    assert max(states) < 100_000  # bytes


@pytest.mark.parametrize("report", ["any", "unextendable"])
@pytest.mark.parametrize("where", ["[a]", "t[i].a = t[i-1].b"])
def test_sparse_keys_have_sums_for_the_panes_that_have_their_events(where: str, report: str) -> None:
    keys, slide = 150, 15  # in a window of 20 panes; each key comes twice, in neighbouring panes
    place = np.arange(20 * slide * 3)
    key = np.where(place % 2, place, place - slide) // 2
    table = pa.table({"ts": place, "id": place, "a": key, "b": key})
    query = trellis.query(
        f"PATTERN T+ t[] WHERE {where} WITHIN {20 * slide} SLIDE {slide} REPORT {report} AGGREGATE COUNT(*)"
    )
    arrivals, found, most = query.arrivals(time="ts", event_id="id"), [], 0
    for begin in range(0, len(place), 10):
        found.append(arrivals.take(table.slice(begin, 10)))
        most = max(most, arrivals.sums)
        arrivals = query.arrivals(time="ts", event_id="id", state=arrivals.snapshot())
    found.append(arrivals.end())
    wanted = query.detect(table, time="ts", event_id="id").to_arrow()
    assert in_any_order(pa.concat_tables(found).to_pylist()) == in_any_order(wanted.to_pylist())
    assert "sums, one for each of its values and pane in which trends begin" in str(query.explain())
    assert keys < most <= 2 * keys  # one for each open window would be 11 times as many as keys


def test_other_aggregates_hold_events_as_ever() -> None:
    table = pa.table({"ts": [0], "id": [0], "x": [1], "y": [2]})
    for text in (
        "WHERE t[i].x > t[i-1].x AND t[i].y > t[i-1].y WITHIN 5 SLIDE 5 AGGREGATE COUNT(*)",
        "WHERE t[i].x > t[i-1].x + 1 WITHIN 5 SLIDE 5 AGGREGATE COUNT(*)",
        "WHERE t[i].x > t[i-1].x WITHIN 5 SLIDE 5 AGGREGATE MAX(LENGTH)",
        "WHERE t[i].x > t[i-1].x WITHIN 5 SLIDE 5 REPORT maximal AGGREGATE COUNT(*)",
        "WHERE t[i].x > t[i-1].x WITHIN 5 SLIDE 5 HAVING LENGTH > 2 AGGREGATE COUNT(*)",
    ):
        assert not standing(f"PATTERN T+ t[] {text}", table, time="ts", event_id="id").summed
