"""Windows that overlap, and spans: counted together, beside one window or one start after the other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numba
import numpy as np

import trellis
from benchmarks import Peer, Row, Table, Timing, at_least, best_of
from benchmarks.data import prices

RISING = "PATTERN E+ s[] WHERE s[i].price > 1.5 * s[i-1].price"
RATIO = 1.5
OVERLAP = 10
TIMES = 3  # as fast as one by one


def run(quick: bool) -> list[Table]:
    large, small = ((2_000, 500), (2_000, 200)) if quick else ((1_000_000, 10_000), (1_000_000, 1_000))
    spans = [(500, 50)] if quick else [(200_000, 100), (50_000, 1_000), (20_000, 5_000)]
    return [
        Table(
            f"Windows that share nine tenths of their events: price > {RATIO} * prev.price",
            [_large_windows(*large, quick), _small_windows(*small, quick)],
            [
                "Events are read and sorted by time already. The loop in Numba adds numbers of 64 bits that wrap.",
                "Windows counted together are counted on all threads that Trellis uses here; CPU tells what they took.",
            ],
        ),
        Table(
            f"Spans: price > {RATIO} * prev.price",
            [_spans(n, size, quick) for n, size in spans],
            ["The peers add numbers of 64 bits that wrap: where counts are larger they do less than an exact count."],
        ),
    ]


# --- Windows ----------------------------------------------------------------------------------------------------


def _large_windows(n: int, size: int, quick: bool) -> Row:
    """Measure windows whose counts fit no 64 bits, beside the same code window by window."""
    trends, work = _overlapping(n, size)
    ours = best_of(work, lambda: together(trends), quick=quick)
    single = best_of(f"{work}, one by one", lambda: one_by_one(trends), quick=quick, runs=2)
    assert together(trends) == one_by_one(trends), "the counts differ"
    peers = [Peer("one by one, ranks and all, by Trellis", single)]
    return Row(work, ours, peers=peers, targets=[at_least(TIMES, "times", single.wall / ours.wall)])


def _small_windows(n: int, size: int, quick: bool) -> Row:
    """Measure windows that take so little time each that only a loop without Python is a fair peer."""
    trends, work = _overlapping(n, size)
    values = trends.events["price"].to_numpy()
    lo, hi = windows_of(trends)
    ours = best_of(work, lambda: together(trends), quick=quick)
    plain = best_of(f"{work}, one by one", lambda: window_after_window(values, lo, hi), quick=quick, runs=2)
    found = window_after_window(values, lo, hi).tolist()
    assert [count % 2**64 for count in together(trends)] == found, "the counts differ"
    peers = [Peer("one by one in Numba: a sort and a Fenwick tree each", plain)]
    return Row(work, ours, peers=peers, targets=[at_least(TIMES, "times", plain.wall / ours.wall)])


def _overlapping(n: int, size: int) -> tuple[Any, str]:
    trends = trellis.query(f"{RISING} WITHIN {size} SLIDE {size // OVERLAP}").detect(prices(n), event_id="id")
    return trends, f"{len(windows_of(trends)[0]):,} windows of {size:,} events"


def windows_of(trends: Any) -> tuple[np.ndarray, np.ndarray]:
    groups = trends._prepared.events.groups
    return groups.lo, groups.hi


def together(trends: Any) -> list[int]:
    """Count all windows anew, from events that are read and sorted; no public call does that alone."""
    from trellis.operators.trends.operator import TrendOperator

    return TrendOperator(trends.plan, trends._prepared.events, trends.operator.threads).counts


def one_by_one(trends: Any) -> list[int]:
    """Count each window as if it were the whole input."""
    from trellis.operators.trends.operator import TrendOperator

    threads = trends.operator.threads
    parts = _parts(trends._prepared.events)
    return [count for part in parts for count in TrendOperator(trends.plan, part, threads).counts]


def _parts(events: Any) -> Iterator[Any]:
    """Yield each window as a slice of its own."""
    from trellis.events.slice import Groups, Slice

    groups = events.groups
    for lo, hi, number in zip(groups.lo.tolist(), groups.hi.tolist(), groups.number.tolist(), strict=True):
        n = hi - lo
        yield Slice(
            {name: column.slice(lo, n) for name, column in events.columns.items()}, events.ids.slice(lo, n),
            events.times[lo:hi], events.usable[lo:hi], np.array([0, n]),
            Groups(np.array([0]), np.array([n]), np.array([number])), np.full(n, n),
        )  # fmt: skip


@numba.njit(cache=True)
def window_after_window(values, lo, hi):
    """Count the unextendable trends of each window, modulo 2^64: sort it, then go backwards over a Fenwick tree."""
    totals = np.zeros(len(lo), np.uint64)
    for w in range(len(lo)):
        window = values[lo[w] : hi[w]]
        n = len(window)
        order = np.argsort(window)
        rank, cut = np.empty(n, np.int64), np.searchsorted(window[order], RATIO * window, "right")
        rank[order] = np.arange(n)
        # Prices are above zero, so what no earlier price can precede, and what no later one can follow, is told by
        # the lowest price before and the highest after.
        highest, lowest = np.empty(n), np.empty(n)
        most, least = -np.inf, np.inf
        for x in range(n - 1, -1, -1):
            highest[x] = most
            most = max(most, window[x])
        for x in range(n):
            lowest[x] = least
            least = min(least, window[x])
        tree = np.zeros(n + 1, np.uint64)
        for x in range(n - 1, -1, -1):
            ways = np.uint64(1)
            if highest[x] > RATIO * window[x]:
                ways = _above(tree, cut[x])
            _insert(tree, rank[x], ways)
            if not window[x] > RATIO * lowest[x]:
                totals[w] += ways
    return totals


@numba.njit(cache=True)
def _above(tree, rank):
    """Add up what was inserted at a rank or above; ranks run backwards in the tree."""
    total, i = np.uint64(0), len(tree) - 1 - rank
    while i > 0:
        total += tree[i]
        i -= i & -i
    return total


@numba.njit(cache=True)
def _insert(tree, rank, ways):
    i = len(tree) - 1 - rank
    while i < len(tree):
        tree[i] += ways
        i += i & -i


# --- Spans ------------------------------------------------------------------------------------------------------


def _spans(n: int, size: int, quick: bool) -> Row:
    query, table = trellis.query(f"{RISING} WITHIN {size}"), prices(n)
    values = table["price"].to_numpy()
    trends = query.detect(table, event_id="id")
    work = f"{n:,} starts, {size:,} events in a span"
    ours = best_of(work, lambda: together(trends), quick=quick, runs=2)
    alone, plain = (
        _of_peer(f"{work}, {peer.__name__}", peer, values, size, quick) for peer in (start_by_itself, start_after_start)
    )
    total, few = sum(together(trends)), values[:1_000]
    assert total % 2**64 == int(start_after_start(values, size)), "the counts differ"
    assert start_by_itself(few, size) == start_after_start(few, size), "the counts of the peers differ"
    peers = [
        Peer("one start after the other, ranks and all, in Numba", alone),
        Peer("the same, ranks made once for each stretch of two spans", plain),
    ]
    return Row(work, ours, peers=peers, targets=[at_least(TIMES, "times", alone.wall / ours.wall)])


def _of_peer(what: str, peer: Any, values: np.ndarray, size: int, quick: bool) -> Timing:
    """Measure a peer once: it takes long, and few events are enough to have it compiled."""
    return best_of(what, lambda: peer(values, size), quick=quick, runs=1, warm=lambda: peer(values[:10], size))


@numba.njit(cache=True)
def start_after_start(values, size):
    """Count the unextendable trends of at most `size` from first to last, modulo 2^64; event `x` is at time `x`."""
    n = len(values)
    total = np.uint64(0)
    for begin in range(0, n, size):
        stretch = values[begin : min(begin + 2 * size, n)]
        order = np.argsort(stretch)
        rank, cut = np.empty(len(stretch), np.int64), np.searchsorted(stretch[order], RATIO * stretch, "right")
        rank[order] = np.arange(len(stretch))
        for s in range(min(size, len(stretch))):
            first_end = _latest_below(values, begin + s, size) + size + 1 - begin
            total += _of_start(stretch, rank, cut, s, min(s + size + 1, len(stretch)), first_end)
    return total


@numba.njit(cache=True)
def start_by_itself(values, size):
    """Count what `start_after_start` does, with the events of each span ranked for its start alone."""
    n = len(values)
    total = np.uint64(0)
    for s in range(n):
        stretch = values[s : min(s + size + 1, n)]
        order = np.argsort(stretch)
        rank, cut = np.empty(len(stretch), np.int64), np.searchsorted(stretch[order], RATIO * stretch, "right")
        rank[order] = np.arange(len(stretch))
        first_end = _latest_below(values, s, size) + size + 1 - s
        total += _of_start(stretch, rank, cut, 0, len(stretch), first_end)
    return total


@numba.njit(cache=True)
def _of_start(stretch, rank, cut, start, stop, first_end):
    """Count the trends that begin at `start`, end from `first_end` on, and cannot go on before `stop`."""
    tree = np.zeros(len(rank) + 1, np.uint64)
    ways = np.uint64(0)
    highest = -np.inf  # of the prices from x to `stop`: tells whether any may follow
    for x in range(stop - 1, start - 1, -1):
        ways = _above(tree, cut[x]) if highest > RATIO * stretch[x] else np.uint64(x >= first_end)
        _insert(tree, rank[x], ways)
        highest = max(highest, stretch[x])
    return ways


@numba.njit(cache=True)
def _latest_below(values, x, size):
    """Return the latest event that may stand before one within the span, or one that is too early to matter."""
    for y in range(x - 1, max(x - size, 0) - 1, -1):
        if values[x] > RATIO * values[y]:
            return y
    return x - size - 1
