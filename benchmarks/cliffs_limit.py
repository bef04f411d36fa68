"""LIMIT, the best by ORDER BY, and whole rows, each beside a short program in Numba or a copy of the same bytes.

Each entry is a query, our run of it and the peer's, both with the same number of results; compile before timing.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import trellis
from benchmarks.listing import stock

Work = Callable[[], object]
Entry = tuple[str, Work, Work]

RISING = "PATTERN E+ s[] WHERE s[i].price > s[i-1].price"
SEVERAL = "PATTERN SEQ(A a, B+ b[]) WHERE b.price < NEXT(b).price AND a.price < b.price"
GAIN, PERCENT = "LAST(s).price - FIRST(s).price DESC", "LAST(s).price / FIRST(s).price DESC"
MOST = 10**12  # results that may be listed
BATCH = 1 << 23  # bytes that are copied at a time


@cache
def entries(events: int) -> dict[str, Entry]:
    """Return the entries over so many events, in one window."""
    table = trades(events)
    price, is_a = table["price"].to_numpy(), table["type"].to_numpy(zero_copy_only=False) == "A"
    anywhere = np.ones(events, np.bool_)
    found = {
        f"row 6, {key}": (
            f"{RISING} ORDER BY {key} LIMIT 10",
            lambda key=key: listed(table, f"{RISING} ORDER BY {key} LIMIT 10"),
            lambda key=key: best_gains(price, anywhere, anywhere, key == PERCENT, 10),
        )
        for key in (GAIN, PERCENT)
    }
    several = f"{SEVERAL} ORDER BY LAST(b).price - a.price DESC LIMIT 10"
    longest, few = f"{RISING} ORDER BY LENGTH DESC LIMIT 10", f"{SEVERAL} LIMIT 100"
    many = f"{RISING} LIMIT {10 * events}"
    return found | {
        "row 6, several variables": (
            several, lambda: listed(table, several), lambda: best_gains(price, is_a, ~is_a, False, 10)
        ),
        "row 6, LENGTH": (longest, lambda: listed(table, longest), lambda: one_longest(price)),
        "row 7, LIMIT 100": (few, lambda: listed(table, few), lambda: first_paths(price, is_a, ~is_a, 100, 1 << 16)),
        "row 12, first rows": (
            many, lambda: listed(table, many),
            lambda: first_paths(price, first_events(price), anywhere, 10 * events, 1 << 28),
        ),
    }  # fmt: skip


def with_ranks(events: int, several: bool = False) -> object:
    """Return the best gains with the numbers that their ranks are made of, of one variable or of several."""
    table, anywhere = trades(events), np.ones(events, np.bool_)
    starts = table["type"].to_numpy(zero_copy_only=False) == "A" if several else anywhere
    return best_with_ranks(table["price"].to_numpy(), starts, ~starts if several else anywhere, False, 10)


def rewordings(name: str, events: int) -> tuple[str, ...]:
    """Return queries that ask nearly the same as an entry, with another comparator, constant, or a `[key]`."""
    entry = entries(events)[name][0]
    found = [entry.replace("<", "<=").replace(" > ", " >= "), entry.replace("WHERE ", "WHERE [half] AND ")]
    if "LIMIT 1000" in entry:
        found.append(entry.replace(f"LIMIT {10 * events}", f"LIMIT {9 * events}"))
    else:
        found.append(entry.replace("LIMIT 100", "LIMIT 120").replace("LIMIT 10", "LIMIT 12"))
    return tuple(dict.fromkeys(found))


def ask(text: str, events: int) -> pa.Table:
    """Return the rows of a query over so many trades."""
    return listed(trades(events), text)


def explained(text: str, events: int) -> str:
    """Return the explanation of a query over so many trades."""
    types = {"type": "type"} if "SEQ" in text else {}
    return str(trellis.query(text).explain(trades(events), event_id="id", engine="local", **types))


def rows(threads: int, quick: bool = False) -> dict[str, Entry]:
    """Return the entries of whole rows: of one variable, of several, and written to Parquet."""
    _, text, table = stock(quick)
    one = trellis.query(text).detect(table, event_id="id", max_trends=MOST)
    dense = trades(60 if quick else 190, steps=10)
    two = trellis.query(SEVERAL).detect(dense, event_id="id", type="type", max_trends=MOST)
    sizes = [sum(batch.nbytes for batch in trends.batches()) for trends in (one, two)]
    written = two.to_arrow()
    return {
        "row speed, one variable": (text, lambda: exhausted(one, threads), lambda: copied(sizes[0])),
        "row speed, several variables": (SEVERAL, lambda: exhausted(two, threads), lambda: copied(sizes[1])),
        "row speed, Parquet": (SEVERAL, lambda: in_folder(two.write), lambda: in_folder(_plainly(written))),
    }


@cache
def trades(number: int, steps: int = 10_000) -> pa.Table:
    """Return trades at random prices, one of eight of type A."""
    rng = np.random.default_rng(22)
    return pa.table(
        {
            "ts": np.arange(number),
            "id": np.arange(number) + 10**9,
            "type": pa.array(np.where(np.arange(number) % 8 == 0, "A", "B")),
            "price": rng.integers(1, steps + 1, number) / 100,
            "half": np.arange(number) * 2 // max(number, 1),
        }
    )


def listed(table: pa.Table, text: str) -> pa.Table:
    """Return the rows of a query from its events on."""
    types = {"type": "type"} if "SEQ" in text else {}
    return trellis.query(text).detect(table, event_id="id", max_trends=MOST, **types).to_arrow()


def exhausted(trends: Any, threads: int) -> int:
    """List all whole rows and let them go."""
    return sum(batch.num_rows for batch in trends.batches(threads=threads))


def in_folder(write: Callable[[Path], object]) -> None:
    """Write into a folder that is gone then."""
    folder = Path(tempfile.mkdtemp(prefix="trellis-bench-"))
    try:
        write(folder / "out")
    finally:
        shutil.rmtree(folder)


def _plainly(table: pa.Table) -> Callable[[Path], object]:
    """Return a function that writes a table as Arrow does by default, without a dictionary."""
    return lambda path: pq.write_table(table, str(path), use_dictionary=False)


# --- The peers --------------------------------------------------------------------------------------------------


@cache
def _source() -> np.ndarray:
    return np.ones(1 << 28, np.uint8)  # far more than a cache holds; every page is there


def copied(size: int) -> None:
    """Copy so many bytes, a batch at a time, from memory into new arrays."""
    source, at = _source(), 0
    while size > 0:
        number = min(BATCH, size, len(source) - at)
        source[at : at + number].copy()
        size, at = size - number, (at + number) % len(source)


@numba.njit(cache=True, nogil=True)
def first_events(price):  # type: ignore[no-untyped-def]
    """Return which events nothing comes before: those at a price not above any before them."""
    starts, least = np.zeros(price.shape[0], np.bool_), np.inf
    for x in range(price.shape[0]):
        starts[x], least = price[x] <= least, min(least, price[x])
    return starts


@numba.njit(cache=True, nogil=True)
def first_paths(price, starts, inner, most, room):  # type: ignore[no-untyped-def]
    """Write the first rising paths in order, each as far as it goes."""
    n = price.shape[0]
    highest = np.zeros(n + 1)  # of what may come behind an event
    for x in range(n - 1, -1, -1):
        highest[x] = max(highest[x + 1], price[x] if inner[x] else 0.0)
    nodes, places = np.empty(n, np.int64), np.empty(n, np.int64)
    values, used, rows = np.empty(room, np.int32), 0, 0
    for start in range(n):
        if not starts[start] or highest[start + 1] <= price[start]:
            continue
        nodes[0], places[0], depth = start, start + 1, 1
        while depth:
            x, y = nodes[depth - 1], places[depth - 1]
            while y < n and not (inner[y] and price[y] > price[x]):
                y = n if highest[y] <= price[x] else y + 1
            places[depth - 1] = y + 1
            if y == n:
                depth -= 1
                continue
            nodes[depth], places[depth], depth = y, y + 1, depth + 1
            if highest[y + 1] > price[y]:
                continue
            for d in range(depth):
                values[(used + d) % values.shape[0]] = nodes[d]
            used, rows, depth = used + depth, rows + 1, depth - 1
            if rows == most:
                return values, rows
    return values, rows


@numba.njit(cache=True, nogil=True)
def best_gains(price, starts, inner, percent, most):  # type: ignore[no-untyped-def]
    """Return the first paths with the greatest gain: from the best start to the highest price behind it."""
    n = price.shape[0]
    highest = np.zeros(n + 1)
    best, gain = 0, -np.inf
    for x in range(n - 1, -1, -1):
        highest[x] = max(highest[x + 1], price[x] if inner[x] else 0.0)
        top = max(highest[x + 1], price[x])
        here = top / price[x] if percent else top - price[x]
        if starts[x] and here >= gain:
            best, gain = x, here
    nodes, places = np.empty(n, np.int64), np.empty(n, np.int64)
    values, used, rows = np.empty(n * most, np.int32), 0, 0
    top = highest[best + 1]
    nodes[0], places[0], depth = best, best + 1, 1
    while depth:
        x, y = nodes[depth - 1], places[depth - 1]
        while y < n and not (inner[y] and price[y] > price[x]):
            y = n if highest[y] < top else y + 1
        places[depth - 1] = y + 1
        if y >= n or highest[y] < top:
            depth -= 1
            continue
        nodes[depth], places[depth], depth = y, y + 1, depth + 1
        if price[y] < top:
            continue
        values[used : used + depth] = nodes[:depth]
        used, rows, depth = used + depth, rows + 1, depth - 1
        if rows == most:
            break
    return values[:used], rows


@numba.njit(cache=True, nogil=True)
def best_with_ranks(price, starts, inner, percent, most):  # type: ignore[no-untyped-def]
    """Return the same, and how many rising paths begin at each event, up to 2^64 - 1: ranks are sums of these."""
    n = price.shape[0]
    order = np.argsort(price)
    rank = np.empty(n, np.int64)
    for i in range(n):
        rank[order[i]] = rank[order[i - 1]] if i and price[order[i]] == price[order[i - 1]] else i
    full = np.uint64(2**64 - 1)
    tree, numbers = np.zeros(n + 1, np.uint64), np.zeros(n, np.uint64)
    for x in range(n - 1, -1, -1):
        found, i = np.uint64(0), n - rank[x] - 1  # what is above
        while i > 0:
            found = full if full - found < tree[i] else found + tree[i]
            i -= i & -i
        found = max(found, np.uint64(1))
        numbers[x], i = found, n - rank[x]
        while i <= n and inner[x]:
            tree[i] = full if full - tree[i] < found else tree[i] + found
            i += i & -i
    return best_gains(price, starts, inner, percent, most), numbers


@numba.njit(cache=True, nogil=True)
def one_longest(price):  # type: ignore[no-untyped-def]
    """Return one longest rising path: by a tree of the longest behind each price."""
    n = price.shape[0]
    rank = np.searchsorted(np.sort(price), price)
    tree, longest = np.zeros(n + 1, np.int64), np.zeros(n, np.int64)
    for x in range(n - 1, -1, -1):
        found, i = 0, n - rank[x] - 1  # what is above
        while i > 0:
            found = max(found, tree[i])
            i -= i & -i
        longest[x] = found + 1
        i = n - rank[x]
        while i <= n:
            tree[i] = max(tree[i], found + 1)
            i += i & -i
    path, wanted, last = np.empty(n, np.int32), longest.max(), 0.0
    for x in range(n):
        if longest[x] == wanted and price[x] > last:
            path[longest.max() - wanted], wanted, last = x, wanted - 1, price[x]
    return path[: longest.max()]
