"""Patterns of several variables over real data, against plain programs for the same question."""

from __future__ import annotations

import csv
import datetime as dt
import gzip
from collections import defaultdict
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

import trellis
from tests.data.places import data_file

pytestmark = pytest.mark.data


def rows_of(path: Path) -> list[dict[str, str]]:
    with gzip.open(path, "rt") as file:
        return list(csv.DictReader(file))


def test_hearts_that_rise_to_one_and_a_fifth_of_the_first_rate() -> None:
    size, slide = 60, 30
    path = next(iter(data_file("heart_rate").glob("*.gz")))
    rows = [row for row in rows_of(path) if row["subject"] in ("S1", "S5")][:20_000]
    table = pa.table(
        {
            "ts": [int(row["epoch_s"]) for row in rows],
            "subject": [row["subject"] for row in rows],
            "rate": [float(row["heart_rate_bpm"]) for row in rows],
        }
    )
    found = trellis.query(f"""
        PATTERN SEQ(Heart first, Heart+ rise[])
        WHERE [subject] AND rise.rate < NEXT(rise).rate AND 1.2 * first.rate < rise.rate
        WITHIN {size} SLIDE {slide}
    """).detect(table, time="ts")
    windows: dict[tuple[int, str], list[tuple[int, float]]] = defaultdict(list)
    for ts, subject, rate in zip(*(table[name].to_pylist() for name in table.column_names), strict=True):
        for number in range((ts - size) // slide + 1, ts // slide + 1):
            windows[number * slide, subject].append((ts, rate))
    wanted = {key: number for key, events in windows.items() if (number := plainly(sorted(events)))}
    counted = found.counts().to_pylist()
    assert {(row["window_start"], row["subject"]): int(row["count_text"]) for row in counted} == wanted
    assert len(wanted) > 50


def plainly(events: list[tuple[int, float]]) -> int:
    """Count, for each first event, the rising series above it that cannot go on."""
    ways = [0] * len(events)
    for i in range(len(events) - 1, -1, -1):
        after = [
            ways[j] for j in range(i + 1, len(events)) if events[j][0] > events[i][0] and events[j][1] > events[i][1]
        ]
        ways[i] = sum(after) or 1
    return sum(
        ways[j]
        for i in range(len(events))
        for j in range(i + 1, len(events))
        if events[j][0] > events[i][0] and 1.2 * events[i][1] < events[j][1]
    )


def test_prices_that_rise_and_break() -> None:
    rows = [r for r in rows_of(data_file("ticks", "trades_aig_bac_ibm_2013-10-07.csv.gz")) if r["symbol"] == "IBM"]
    trades = [(dt.datetime.fromisoformat(row["timestamp"]), Decimal(row["price"])) for row in rows[:6000]]
    table = pa.table({"ts": [time for time, _ in trades], "price": [float(price) for _, price in trades]})
    found = trellis.query("""
        PATTERN SEQ(Trade first, Trade+ up[], Trade drop)
        WHERE up.price > first.price AND up.price < NEXT(up).price AND drop.price < first.price
        WITHIN 5 s SLIDE 5 s
    """).detect(table, time="ts")
    windows: dict[int, list[tuple[dt.datetime, Decimal]]] = defaultdict(list)
    for time, price in trades:
        windows[int(time.replace(tzinfo=dt.UTC).timestamp()) // 5].append((time, price))
    wanted = [number for _, events in sorted(windows.items()) if (number := broken(events))]
    assert [int(text) for text in found.counts()["count_text"].to_pylist()] == wanted
    assert len(wanted) > 50


def broken(trades: list[tuple[dt.datetime, Decimal]]) -> int:
    """Count rises above a first trade that end in one below it."""
    total = 0
    for first, low in trades:
        ways = [0] * len(trades)
        for i in range(len(trades) - 1, -1, -1):
            time, price = trades[i]
            if time > first and price > low:
                later = [(j, trades[j][1]) for j in range(i + 1, len(trades)) if trades[j][0] > time]
                ways[i] = sum(1 for _, other in later if other < low)
                ways[i] += sum(ways[j] for j, other in later if other > price)
        total += sum(ways)
    return total
