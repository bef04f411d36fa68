"""Cliffs 1, 2, 9 and 10: neighbours compared by differences, quotients, OR and gaps, and spans, beside plain programs.

Each peer is what somebody would write in Numba for this one query: it counts the same trends modulo 2**64. An exact
number needs a pass for each 58 bits, so a peer makes as many passes as our number has such digits: see `passes`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
from numba import njit

import trellis

SECOND = 1_000_000
BITS = 58  # of a prime by which a pass counts
Row = tuple[str, Callable[[], int], Callable[[int], int]]
CONDITIONS = {  # those of OR in both directions have numbers of n bits: not for more than 10**4 events
    "difference": "s[i].price - s[i-1].price > 5",
    "difference, >=": "s[i].price - s[i-1].price >= 2.5",
    "difference, [sym]": "s[i].price - s[i-1].price > 5 AND [sym]",
    "quotient": "s[i].price / s[i-1].price > 1.05",
    "quotient, <": "s[i].price / s[i-1].price < 0.9",
    "band": "ABS(s[i].price - s[i-1].price) < 2",
    "OR": "s[i].price > 1.05 * s[i-1].price OR s[i].price - s[i-1].price > 3",
    "OR, both ways": "s[i].price > 1.05 * s[i-1].price OR s[i].price < 0.95 * s[i-1].price",
    "OR of two columns": "s[i].price > 1.05 * s[i-1].price OR s[i].volume > 2 * s[i-1].volume",
    "gap and band": "s[i].ts - s[i-1].ts <= 10 minutes AND ABS(s[i].price - s[i-1].price) < 2",
}
SPANS = {"span of 10 minutes": "WITHIN 10 minutes", "span of 1 hour": "WITHIN 1 hour"}


@cache
def trades(n: int, seed: int = 1) -> pa.Table:
    """Return trades of 20 symbols, one a second, with prices of two decimals as doubles."""
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "ts": pa.array(np.arange(n) * SECOND, pa.timestamp("us")),
            "id": np.arange(n),
            "sym": rng.integers(0, 20, n),
            "price": np.round(rng.random(n) * 100, 2) + 1,
            "volume": rng.random(n),
        }
    )


def rows(n: int) -> dict[str, Row]:
    """Return for each row the query, a run of it, which gives the number of trends, and so many passes of its peer.

    The peer gives the number modulo 2**64.
    """
    table = trades(n)
    price, volume, sym = (table[name].to_numpy() for name in ("price", "volume", "sym"))
    peers: dict[str, Callable[[], int]] = {
        "difference": lambda: above(price, cuts_by(price, 5.0, DIFFERENCE, False)),
        "difference, >=": lambda: above(price, cuts_by(price, 2.5, DIFFERENCE, True)),
        "difference, [sym]": lambda: of_symbols(price, sym),
        "quotient": lambda: above(price, cuts_by(price, 1.05, QUOTIENT, False)),
        "quotient, <": lambda: below(price, cuts_by(price, 0.9, QUOTIENT, True)),
        "band": lambda: within(price, 2.0, n),
        "OR": lambda: above_either(price),
        "OR, both ways": lambda: either(price, 1.05, 0.95),
        "OR of two columns": lambda: either_pairs(price, volume),
        "gap and band": lambda: within(price, 2.0, 600),
    }
    found: dict[str, Row] = {}
    for name, condition in CONDITIONS.items():
        text = f"PATTERN E+ s[] WHERE {condition} REPORT any"
        found[name] = text, lambda text=text: ask(text, n), _repeated(peers[name])
    for name, within_ in SPANS.items():
        text = f"PATTERN E+ s[] WHERE s[i].price > s[i-1].price REPORT any {within_}"
        found[name] = text, lambda text=text: ask(text, n), _repeated(_span(price, 600 if "10" in name else 3600))
    return found


REWORDED = {  # of rows that are not rewordings of others themselves
    "quotient": ("s[i].price / s[i-1].price >= 1.05", "s[i].price / s[i-1].price > 1.07",
                 "s[i].price / s[i-1].price > 1.05 AND [sym]"),
    "band": ("ABS(s[i].price - s[i-1].price) <= 2", "ABS(s[i].price - s[i-1].price) < 1.5",
             "ABS(s[i].price - s[i-1].price) < 2 AND [sym]"),
    "OR": ("s[i].price >= 1.05 * s[i-1].price OR s[i].price - s[i-1].price >= 3",
           "s[i].price > 1.04 * s[i-1].price OR s[i].price - s[i-1].price > 4",
           "(s[i].price > 1.05 * s[i-1].price OR s[i].price - s[i-1].price > 3) AND [sym]"),
    "gap and band": ("s[i].ts - s[i-1].ts < 10 minutes AND ABS(s[i].price - s[i-1].price) <= 2",
                     "s[i].ts - s[i-1].ts <= 9 minutes AND ABS(s[i].price - s[i-1].price) < 1.5",
                     "s[i].ts - s[i-1].ts <= 10 minutes AND ABS(s[i].price - s[i-1].price) < 2 AND [sym]"),
    "span of 10 minutes": ("s[i].price >= s[i-1].price", "s[i].price > 1.001 * s[i-1].price",
                           "s[i].price > s[i-1].price AND [sym]"),
}  # fmt: skip


def rewordings(name: str) -> tuple[str, ...]:
    """Return queries that ask nearly the same as a row, with another comparator, constant, or a `[key]`."""
    within = SPANS.get(name, "")
    return tuple(
        f"PATTERN E+ s[] WHERE {condition} REPORT any {within}".strip() for condition in REWORDED.get(name, ())
    )


def ask(text: str, n: int) -> int:
    """Return the number of trends of a query over so many trades."""
    return int(trellis.query(text).detect(trades(n), event_id="id").count())


def passes(number: int) -> int:
    """Return how many passes an exact number takes."""
    return max(1, -(-number.bit_length() // BITS))


def _repeated(peer: Callable[[], int]) -> Callable[[int], int]:
    return lambda times: [peer() for _ in range(times)][-1]


def _span(price: Any, span: int) -> Callable[[], int]:
    return lambda: int(spans(np.unique(price, return_inverse=True)[1], span))


# --- Plain programs -------------------------------------------------------------------------------------------------

DIFFERENCE, QUOTIENT = 0, 1


@njit(cache=True)
def _cuts(values, ordered, bound, kind, equal, found):
    """Bisect for the first value, in rising order, that is far enough above each one."""
    for x in range(values.shape[0]):
        low, high = 0, ordered.shape[0]
        while low < high:
            middle = (low + high) >> 1
            y = ordered[middle] - values[x] if kind == 0 else ordered[middle] / values[x]
            if y > bound or (equal and y == bound):
                high = middle
            else:
                low = middle + 1
        found[x] = low


def cuts_by(values: Any, bound: float, kind: int, equal: bool) -> tuple[Any, Any, int]:
    ordered, rank = np.unique(values, return_inverse=True)
    found = np.empty(len(values), np.int64)
    _cuts(values, ordered, bound, kind, equal, found)
    return rank, found, len(ordered)


@njit(cache=True)
def _ranges(rank, first, last, size):
    """Count paths backwards with a Fenwick tree; successors have ranks from `first` to before `last`."""
    tree = np.zeros(size + 1, np.uint64)
    total = np.uint64(0)
    for x in range(rank.shape[0] - 1, -1, -1):
        value = np.uint64(1)
        i = last[x]
        while i > 0:
            value += tree[i]
            i &= i - 1
        i = first[x]
        while i > 0:
            value -= tree[i]
            i &= i - 1
        total += value
        i = rank[x] + 1
        while i <= size:
            tree[i] += value
            i += i & -i
    return total


def above(_: Any, cuts: tuple[Any, Any, int]) -> int:
    rank, first, size = cuts
    return int(_ranges(rank, first, np.full(len(rank), size), size))


def above_either(price: Any) -> int:
    rank, first, size = cuts_by(price, 3.0, DIFFERENCE, False)
    other = np.searchsorted(np.unique(price), 1.05 * price, side="right")
    return int(_ranges(rank, np.minimum(first, other), np.full(len(rank), size), size))


def below(_: Any, cuts: tuple[Any, Any, int]) -> int:
    rank, last, size = cuts
    return int(_ranges(rank, np.zeros(len(rank), np.int64), last, size))


def of_symbols(price: Any, sym: Any) -> int:
    return sum(above(price, cuts_by(price[sym == s], 5.0, DIFFERENCE, False)) for s in np.unique(sym)) % 2**64


@njit(cache=True)
def _within(values, rank, size, bound, gap):
    """Count paths between values less than a bound apart, and at most `gap` events."""
    n = values.shape[0]
    paths, total = np.ones(n, np.uint64), np.uint64(0)
    for x in range(n - 1, -1, -1):
        value = np.uint64(1)
        for y in range(x + 1, min(n, x + gap + 1)):
            if abs(values[y] - values[x]) < bound:
                value += paths[y]
        paths[x] = value
        total += value
    return total


def within(price: Any, bound: float, gap: int) -> int:
    if gap < len(price):
        return int(_within(price, price, 0, bound, gap))
    ordered, rank = np.unique(price, return_inverse=True)
    first, last = np.empty(len(price), np.int64), np.empty(len(price), np.int64)
    _cuts(price, ordered, -bound, 0, False, first)
    _cuts(price, ordered, bound, 0, True, last)
    return int(_ranges(rank, first, last, len(ordered)))


def either(price: Any, up: float, down: float) -> int:
    ordered, rank = np.unique(price, return_inverse=True)
    first = np.searchsorted(ordered, down * price, side="left")
    last = np.searchsorted(ordered, up * price, side="right")
    return int(_outside(rank, first, last, len(ordered)))


@njit(cache=True)
def _outside(rank, first, last, size):
    """Count as `_ranges` does, with successors whose ranks are below `first` or from `last` on."""
    tree = np.zeros(size + 1, np.uint64)
    total = every = np.uint64(0)
    for x in range(rank.shape[0] - 1, -1, -1):
        value = np.uint64(1) + every
        i = last[x]
        while i > 0:
            value -= tree[i]
            i &= i - 1
        i = first[x]
        while i > 0:
            value += tree[i]
            i &= i - 1
        total += value
        every += value
        i = rank[x] + 1
        while i <= size:
            tree[i] += value
            i += i & -i
    return total


@njit(cache=True)
def _either_pairs(price, volume):
    n = price.shape[0]
    paths, total = np.ones(n, np.uint64), np.uint64(0)
    for x in range(n - 1, -1, -1):
        value = np.uint64(1)
        for y in range(x + 1, n):
            if price[y] > 1.05 * price[x] or volume[y] > 2 * volume[x]:
                value += paths[y]
        paths[x] = value
        total += value
    return total


def either_pairs(price: Any, volume: Any) -> int:
    return int(_either_pairs(price, volume))


@njit(cache=True)
def spans(rank, span):
    """Count rising paths from each event to events at most `span` later: a Fenwick tree for each start."""
    n, size = rank.shape[0], rank.max() + 1
    tree, total = np.zeros(size + 1, np.uint64), np.uint64(0)
    for start in range(n):
        end = min(n, start + span + 1)
        for x in range(start, end):  # forwards: the paths from the start to x
            value = np.uint64(1 if x == start else 0)
            i = rank[x]
            while i > 0 and x > start:
                value += tree[i]
                i &= i - 1
            total += value
            i = rank[x] + 1
            while value > 0 and i <= size:
                tree[i] += value
                i += i & -i
        for x in range(start, end):
            i = rank[x] + 1
            while i <= size:
                tree[i] = 0
                i += i & -i
    return total
