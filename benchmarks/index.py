"""Building the attribute index: half a million events, beside NumPy's sort of the same column."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

import trellis
from benchmarks import Peer, Row, Table, at_most, best_of, memory_of
from benchmarks.data import prices, transfers

RISING = "PATTERN E+ s[] WHERE s[i].price > s[i-1].price"
FOLLOWED = "PATTERN E+ s[] WHERE s[i].src = s[i-1].dest"
ACCOUNTS = 1_000
BYTES = 64


def run(quick: bool) -> list[Table]:
    n = 2_000 if quick else 500_000
    rows = [
        _row(f"price > prev.price, {n:,} distinct prices", RISING, "price", 0.25, n, quick),
        _row(f"src = prev.dest, {ACCOUNTS:,} accounts", FOLLOWED, "src", 0.15, n, quick),
    ]
    held = [build(detected(text, n)).nbytes / n for text in (RISING, FOLLOWED)]
    notes = [
        "Events are read and sorted by time already. Memory is the peak while the index is built, beyond the events.",
        f"The finished index takes {held[0]:.0f} and {held[1]:.0f} bytes per event.",
    ]
    return [Table(f"The index of {n:,} events", rows, notes)]


def _row(work: str, text: str, column: str, seconds: float, n: int, quick: bool) -> Row:
    trends = detected(text, n)
    ours = best_of(work, lambda: build(trends), quick=quick, runs=5)
    values = table_of(text, n)[column].to_numpy()
    sort = best_of(f"argsort of {column}", lambda: np.argsort(values, kind="stable"), quick=quick, runs=5)
    memory = memory_of(work, building, text, n)
    targets = [at_most(seconds, "s", ours.wall), at_most(BYTES, "bytes per event", memory / n)]
    return Row(work, ours, memory, [Peer(f"NumPy argsort of {column} alone", sort)], targets)


def table_of(text: str, n: int) -> pa.Table:
    return prices(n) if text == RISING else transfers(n, ACCOUNTS)


def detected(text: str, n: int) -> Any:
    return trellis.query(text).detect(table_of(text, n), event_id="id")


def building(text: str, n: int) -> Any:
    trends = detected(text, n)
    return lambda: build(trends)


def build(trends: Any) -> Any:
    """Build the index of a result's events anew; no public call does that alone."""
    from trellis.operators.trends.operator import TrendOperator

    index = TrendOperator(trends.plan, trends._prepared.events).index
    assert index is not None
    return index
