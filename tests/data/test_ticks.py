"""Rising prices of real trades, with many ties in time: the engine's counts against a plain count of every window."""

from __future__ import annotations

import csv
import datetime as dt
import gzip
from collections import defaultdict
from decimal import Decimal
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import trellis
from tests.data.places import data_file
from trellis.io.read import read_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.data

FILE = ("ticks", "trades_aig_bac_ibm_2013-10-07.csv.gz")
Trade = tuple[int, Decimal]  # milliseconds after midnight, price


@pytest.fixture(scope="module")
def table() -> pa.Table:
    """The trades of one day, as Trellis reads them."""
    return read_table(data_file(*FILE))


@pytest.fixture(scope="module")
def trades() -> dict[str, list[Trade]]:
    """The trades of each symbol, read with nothing but Python's own means."""
    found: dict[str, list[Trade]] = defaultdict(list)
    with gzip.open(data_file(*FILE), "rt") as file:
        for row in csv.DictReader(file):
            time = dt.datetime.fromisoformat(row["timestamp"])
            after = (time - time.replace(hour=0, minute=0, second=0, microsecond=0)) // dt.timedelta(milliseconds=1)
            found[row["symbol"]].append((after, Decimal(row["price"])))
    return found


def count_rising(trades: list[Trade], every: bool) -> int:
    """Count the ways through rising prices at rising times; only from end to end unless `every`."""
    trades = sorted(trades)
    ways, has_before = [0] * len(trades), [False] * len(trades)
    for i in reversed(range(len(trades))):
        time, price = trades[i]
        later = [j for j in range(i + 1, len(trades)) if trades[j][0] > time and trades[j][1] > price]
        ways[i] = sum(ways[j] for j in later) + (1 if every or not later else 0)
        for j in later:
            has_before[j] = True
    return sum(w for w, before in zip(ways, has_before, strict=True) if every or not before)


def count_windows(trades: list[Trade], size: int, slide: int, every: bool = False) -> dict[int, int]:
    """Count for every window by its start, in milliseconds; midnight, UTC, is where one begins."""
    windows: dict[int, list[Trade]] = defaultdict(list)
    for trade in trades:
        for number in range((trade[0] - size) // slide + 1, trade[0] // slide + 1):
            windows[number * slide].append(trade)
    return {start: count_rising(inside, every) for start, inside in windows.items()}


def counts_of(trends: Any) -> dict[int, int]:
    counts = trends.counts()
    midnight = dt.datetime(2013, 10, 7)
    return {
        (row["window_start"] - midnight) // dt.timedelta(milliseconds=1): int(row["count_text"])
        for row in counts.to_pylist()
    }


def query(symbol: str, within: str, report: str = "unextendable") -> trellis.api.query.Query:
    rising = "s[i].price > s[i-1].price"
    return trellis.query(f"PATTERN Trade+ s[] WHERE s.symbol = '{symbol}' AND {rising} REPORT {report} WITHIN {within}")


@pytest.mark.parametrize(
    ("symbol", "within", "size", "slide", "report"),
    [
        ("BAC", "1 s SLIDE 1 s", 1_000, 1_000, "unextendable"),
        ("IBM", "10 s SLIDE 5 s", 10_000, 5_000, "any"),
        ("IBM", "1 min SLIDE 1 min", 60_000, 60_000, "unextendable"),
        ("AIG", "1 min SLIDE 30 s", 60_000, 30_000, "unextendable"),
    ],
)
def test_every_window_is_counted_exactly(
    table: pa.Table, trades: dict[str, list[Trade]], symbol: str, within: str, size: int, slide: int, report: str
) -> None:
    trends = query(symbol, within, report).detect(table)
    wanted = count_windows(trades[symbol], size, slide, report == "any")
    assert len({t for t, _ in trades[symbol]}) < len(trades[symbol])
    assert counts_of(trends) == wanted
    assert trends.count() == sum(wanted.values())


def test_what_is_listed_is_what_is_counted(table: pa.Table, trades: dict[str, list[Trade]]) -> None:
    trends = query("IBM", "1 s SLIDE 1 s").detect(table)
    prices = trends.events["price"].to_pylist()
    times = trends.events["timestamp"].to_pylist()
    rows = pa.Table.from_batches(trends.batches(columns=["window_start", "rank", "events"], positions=True))
    number: dict[Any, int] = defaultdict(int)
    seen = set()
    for start, rank, events in zip(*(rows[name].to_pylist() for name in rows.column_names), strict=True):
        assert rank == number[start]
        assert all(prices[a] < prices[b] and times[a] < times[b] for a, b in pairwise(events))
        assert start <= times[events[0]] <= times[events[-1]] < start + dt.timedelta(seconds=1)
        seen.add((start, *events))
        number[start] += 1
    assert len(seen) == rows.num_rows == trends.count()
    assert list(number.values()) == list(counts_of(trends).values())
    assert rows.num_rows == sum(count_windows(trades["IBM"], 1_000, 1_000).values())


@pytest.mark.spark
@pytest.mark.slow
def test_spark_counts_and_lists_the_same(spark: SparkSession, table: pa.Table, trades: dict[str, list[Trade]]) -> None:
    until = dt.datetime(2013, 10, 7, 9, 40)
    early = table.filter(pc.less(table["timestamp"], until))
    early = early.append_column("id", pa.array(range(early.num_rows)))
    trends = query("IBM", "2 s SLIDE 1 s").detect(early, event_id="id", engine="spark", spark=spark)
    here = query("IBM", "2 s SLIDE 1 s").detect(early, event_id="id")
    wanted = [trade for trade in trades["IBM"] if trade[0] < (9 * 60 + 40) * 60_000]
    assert counts_of(trends) == counts_of(here) == count_windows(wanted, 2_000, 1_000)
    assert trends.to_arrow().equals(here.to_arrow())
