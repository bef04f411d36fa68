"""The scale law: processor time and memory over the number of events, for each family of queries, with the exponent."""

from __future__ import annotations

from collections.abc import Callable
from math import log
from typing import Any

import numpy as np
import pyarrow as pa

import trellis
from benchmarks import Figure, Row, Table, at_most, best_of, memory_of

PATIENCE = 20.0  # seconds: a family that took longer at one size is not tried at the next
PARTITION = 1_000  # events of one symbol, about
RISING = "PATTERN E+ s[] WHERE [symbol] AND s[i].price > s[i-1].price"
FAMILIES = {
    "count by value": "PATTERN E+ s[] WHERE s[i].price > 1.5 * s[i-1].price AGGREGATE COUNT(*)",
    "count by key": "PATTERN E+ s[] WHERE s[i].symbol = s[i-1].symbol AGGREGATE COUNT(*)",
    "count in partitions": f"{RISING} AGGREGATE COUNT(*)",
    "sums and lengths": f"{RISING} AGGREGATE SUM(s.price), MAX(LENGTH)",
    "per event": f"{RISING} AGGREGATE COUNT(*) PER EVENT",
    "contiguous": f"{RISING} SELECT contiguous AGGREGATE COUNT(*)",
    "sequence of three": "PATTERN SEQ(E a, E b, E c) WHERE [symbol] AND a.price < b.price AND b.price < c.price "
    "WITHIN 5000 AGGREGATE COUNT(*)",
    "two Kleene variables": "PATTERN SEQ(E+ a[], E+ b[]) WHERE [symbol] AND a[i].price > a[i-1].price "
    "AND b[i].price < b[i-1].price WITHIN 20000 SLIDE 20000 AGGREGATE COUNT(*)",
}


def events(n: int) -> pa.Table:
    """Return prices of symbols, one a time unit, a thousand events of each symbol."""
    rng = np.random.default_rng(9)
    symbols = rng.integers(0, max(n // PARTITION, 1), n)
    return pa.table({"ts": np.arange(n), "id": np.arange(n), "symbol": symbols, "price": rng.random(n)})


def answer(text: str, table: pa.Table) -> int:
    rows: int = trellis.query(text).detect(table, time="ts", event_id="id").aggregates().num_rows
    return rows


def answering(text: str, n: int) -> Callable[[], Any]:
    """Return the work of one family, for a process of its own."""
    table = events(n)
    return lambda: answer(text, table)


def run(quick: bool, large: bool = False) -> list[Table]:
    sizes = (200, 400) if quick else (1_000, 10_000, 100_000, 1_000_000, *((10_000_000,) if large else ()))
    tables = {n: events(n) for n in sizes}
    lines = {name: _measured(name, lambda t, q=text: answer(q, t), tables, quick) for name, text in FAMILIES.items()}
    lines["limit: one sort of as many keys"] = _measured("sort", _sorted, tables, quick)
    lines["limit: one pass over the columns"] = _measured("pass", _passed, tables, quick)
    tables.clear()
    upper = sizes[-2:]  # below, a process's own memory hides that of the work
    memory = {name: _held(name, upper, lines[name][-len(upper) :]) for name in FAMILIES}
    rows = []
    for name in FAMILIES:
        for what, found in (("time", fitted(sizes, lines[name])), ("memory", fitted(upper, memory[name]))):
            if found is not None:
                rows.append(
                    Row(f"{name}: {what} grows as n^{found:.2f}", targets=[at_most(1.25, "as exponent", found)])
                )
    return [
        Figure("Seconds of the processor over the number of events", rows, setting="events", places=sizes, lines=lines),
        Figure("Memory beyond the input", [], setting="events", places=upper, unit="B", lines=memory),
    ]


def _held(name: str, sizes: tuple[int, ...], seconds: list[float | None]) -> list[float | None]:
    """Return the peak memory of a family at each size that it was done with in time."""
    return [
        None if took is None else float(memory_of(f"{name}, {n:,}", answering, FAMILIES[name], n))
        for n, took in zip(sizes, seconds, strict=True)
    ]


def _measured(
    name: str, work: Callable[[pa.Table], object], tables: dict[int, pa.Table], quick: bool
) -> list[float | None]:
    found: list[float | None] = []
    small = next(iter(tables.values()))
    for n, table in tables.items():
        if found and (found[-1] is None or found[-1] > PATIENCE):
            found.append(None)
            continue
        runs = 3 if n <= 100_000 else 2 if n <= 1_000_000 else 1
        timing = best_of(f"{name}, {n:,}", lambda t=table: work(t), quick=quick, runs=runs, warm=lambda: work(small))
        found.append(timing.cpu)
    return found


def fitted(sizes: tuple[int, ...], found: list[float | None]) -> float | None:
    """Return the exponent between the two largest sizes that were measured, where what a call itself takes is least."""
    known = [(n, s) for n, s in zip(sizes, found, strict=True) if s]
    if len(known) < 2:
        return None
    (n, s), (m, t) = known[-2:]
    return log(t / s) / log(m / n)


def _sorted(table: pa.Table) -> Any:
    return np.sort(table["price"].to_numpy())


def _passed(table: pa.Table) -> float:
    return float(sum(table[name].to_numpy().sum() for name in table.column_names))
