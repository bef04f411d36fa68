"""Aggregates without events: state and memory of a stream of which only sums are kept, however long it is."""

from __future__ import annotations

import ctypes
import gc
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

import trellis
from benchmarks import Row, Table, Timing, at_most, step

BATCH = 100_000
SYMBOLS, PRICES = 50, 20
PANES = 20  # of a window, where keys are sparse
WINDOWS = 4  # windows in all: each is so long that its events would not be held for long


def run(quick: bool, large: bool = False) -> list[Table]:
    sizes = [400_000] if quick else [1_000_000, 10_000_000, *([100_000_000] if large else [])]
    rows = [_row(n, report) for n in sizes for report in ("any", "unextendable")]
    rows.append(_row(sizes[0], "any", overlap=4))
    rows.append(_sparse(10_000 if quick else 100_000))
    notes = [
        f"{SYMBOLS} symbols with {PRICES} prices each, rising trends, COUNT(*) and AVG of a price, {WINDOWS} windows. "
        f"Batches of {BATCH:,} events by `query.arrivals`, which are made meanwhile. The first window is compared with "
        "`detect` over its events, up to a million of them. Windows that overlap share sums as long as they have the "
        "same events of a partition. Where each pane has some, so many times the distinct values are kept, and an "
        "event is added so many times.",
        f"Sparse keys are seen twice, in two neighbouring panes of the {PANES} that a window has: of a key the value "
        "of its first event has one set of sums, that of its second one two, for the windows with the first and for "
        f"the one without. One set for each open window would be up to {2 * PANES - 1} of a key, and half of that on "
        "average. The numbers of every hundredth key are compared with `detect`.",
    ]
    return [Table("Aggregates without events", rows, notes)]


def _row(n: int, report: str, overlap: int = 1) -> Row:
    step(f"{n:,} events, REPORT {report}, each in {overlap} windows")
    size = n // WINDOWS
    text = (
        f"PATTERN Trade+ t[] WHERE [symbol] AND t[i].price > t[i-1].price WITHIN {size} SLIDE {size // overlap} "
        f"REPORT {report} AGGREGATE COUNT(*), AVG(t.price)"
    )
    query = trellis.query(text)
    _through(query, 2 * BATCH)  # compiles
    memory, held, taken = [], 0, 0.0
    arrivals, found = query.arrivals(time="ts", event_id="id"), []
    for place, batch in enumerate(_batches(n)):
        begun = time.process_time()
        found.append(arrivals.take(batch))
        taken += time.process_time() - begun
        held = max(held, arrivals.held)
        if place % max(1, n // BATCH // 10) == 0:
            memory.append(_resident())
            step(f"{(place + 1) * BATCH:,} events: {memory[-1] / 1e6:,.0f} MB")
    found.append(arrivals.end())
    _check(query, pa.concat_tables(found), n, size)
    grown = max(memory[1:]) - memory[1] if len(memory) > 1 else 0
    speed = n / taken / 1e6
    name = f"{n:,} events, REPORT {report}, overlap {overlap}: at most {held:,} held, {speed:.2f} million a CPU second"
    return Row(name, Timing(taken, taken, 1), targets=[at_most(16, "MB more than after a tenth", grown / 1e6)])


def _sparse(keys: int) -> Row:
    """Take two windows of sparse keys, of which each has so many."""
    step(f"{keys:,} sparse keys in {PANES} windows")
    size, slide = 2 * keys, 2 * keys // PANES
    text = (
        f"PATTERN Trade+ t[] WHERE [symbol] AND t[i].price > t[i-1].price WITHIN {size} SLIDE {slide} "
        "REPORT any AGGREGATE COUNT(*), AVG(t.price)"
    )
    query, draw, place = trellis.query(text), np.random.default_rng(1), np.arange(size + slide)
    symbol = np.where(place % 2, place, place - slide) // 2
    events = pa.table({"ts": place, "id": place, "symbol": symbol, "price": draw.integers(0, PRICES, len(place))})
    arrivals, found, sums, begun = query.arrivals(time="ts", event_id="id"), [], 0, time.process_time()
    for begin in range(0, len(place), slide // 2):
        found.append(arrivals.take(events.slice(begin, slide // 2)))
        sums = max(sums, arrivals.sums)
    taken = time.process_time() - begun
    state = len(arrivals.snapshot())
    told = [row for row in pa.concat_tables(found).to_pylist() if row["symbol"] % 100 == 0]
    some = query.detect(events.filter(pa.array(symbol % 100 == 0)), time="ts", event_id="id").to_arrow().to_pylist()
    ended = max(row["window_end"] for row in told)
    if sorted(map(repr, told)) != sorted(repr(row) for row in some if row["window_end"] <= ended):
        raise AssertionError("sums and events give different numbers")
    name = f"{keys:,} keys, each in 2 of the {PANES} panes of a window: state of {state / 1e6:,.1f} MB"
    return Row(name, Timing(taken, taken, 1), targets=[at_most(3 * keys, "sums of values", sums)])


def _through(query: trellis.Query, n: int) -> None:
    arrivals = query.arrivals(time="ts", event_id="id")
    for batch in _batches(n):
        arrivals.take(batch)
    arrivals.end()


def _batches(n: int) -> Iterator[pa.Table]:
    draw = np.random.default_rng(1)
    for begin in range(0, n, BATCH):
        place = np.arange(begin, min(n, begin + BATCH))
        drawn = {"symbol": draw.integers(0, SYMBOLS, len(place)), "price": draw.integers(0, PRICES, len(place))}
        yield pa.table({"ts": place, "id": place, **drawn})


def _check(query: trellis.Query, found: pa.Table, n: int, size: int) -> None:
    """Compare the first window with what its events have."""
    if size > 1_000_000:
        return
    first = pa.concat_tables([batch for _, batch in zip(range(0, size, BATCH), _batches(n), strict=False)]).slice(
        0, size
    )
    whole = query.detect(first, time="ts", event_id="id").to_arrow()
    wanted, rows = ([row for row in table.to_pylist() if row["window_start"] == 0] for table in (whole, found))
    if sorted(map(repr, rows)) != sorted(map(repr, wanted)):
        raise AssertionError("sums and events give different numbers")


def _resident() -> int:
    """Return the memory that is in use; allocators give back first what they only keep for later, some 40 MB."""
    pa.default_memory_pool().release_unused()
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # of glibc
    if trim is not None:
        trim(0)
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith("VmRSS"))
