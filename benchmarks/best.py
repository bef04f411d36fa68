"""The best ten trends or matches of a window by length, sum and other keys, beside listing and sorting them all."""

from __future__ import annotations

from functools import partial
from typing import Any

import numba
import numpy as np
import pyarrow as pa

import trellis
from benchmarks import Peer, Row, Table, at_most, best_of
from benchmarks.data import prices
from trellis.operators.contract import ListRequest

RISING = "PATTERN E+ s[] WHERE s[i].price > s[i-1].price"
KEYS = {
    "length": "LENGTH DESC",
    "sum": "SUM(s.price) DESC",
    "greatest value, then length": "MAX(s.price), LENGTH DESC",
    "mean": "AVG(s.price) DESC",
}
WIDE_KEYS = ("SUM(s.price) DESC", "AVG(s.price) DESC", "LAST(s).price - FIRST(s).price DESC, LENGTH")
BOUND = 10**9
INDEX_TIMES = 10  # the best on the index may take beside counting all
MEAN_TIMES = 10  # the best by a mean may take beside those by a sum


def run(quick: bool) -> list[Table]:
    return [
        _beside_sorting(40 if quick else 120, quick),
        _beyond_listing(300 if quick else 4_000, quick),
        *(_by_index(n, quick) for n in ((300,) if quick else (10_000, 100_000))),
        _of_joins(300 if quick else 5_000, quick),
    ]


def _beside_sorting(n: int, quick: bool) -> Table:
    table = prices(n)
    rows = []
    for name in ("length", "sum"):
        trends = detected(name, table)
        ours = best_of(f"best by {name}", lambda t=trends: t.to_arrow(), quick=quick)
        sort = best_of(f"sorting by {name}", lambda t=trends: all_sorted(t), quick=quick, runs=1, warm=lambda: None)
        rows.append(Row(f"best 10 by {name}", ours, peers=[Peer("list all and sort", sort)]))
    return Table(f"The {trends.count():,} trends of {n:,} prices", rows, ["Edges and counts are there already."])


def _beyond_listing(n: int, quick: bool) -> Table:
    table = prices(n)
    times = {
        name: best_of(name, lambda t: t.to_arrow(), given=lambda n=name: detected(n, table), quick=quick)
        for name in KEYS
    }
    mean = at_most(MEAN_TIMES, "times as long as by a sum", times["mean"].cpu / times["sum"].cpu)
    rows = [
        Row(f"best 10 by {name}", timing, targets=[mean] if name == "mean" else []) for name, timing in times.items()
    ]
    digits = len(str(detected("length", table).count())) - 1
    return Table(f"More than 10^{digits} trends, of {n:,} prices", rows, ["Edges and counts are there already."])


def _by_index(n: int, quick: bool) -> Table:
    """Time the best by keys of several words, of one window whose edges are not listed, beside counting it."""
    table = prices(n)

    def asked(order: str = "") -> Any:
        return trellis.query(f"{RISING}{order}").detect(table, event_id="id", max_trends=BOUND)

    count = best_of("count", lambda t: t.count(), given=asked, quick=quick)
    rows = []
    for key in WIDE_KEYS:
        given = partial(asked, f" ORDER BY {key} LIMIT 10")
        ours = best_of(key, lambda t: t.to_arrow(), given=given, quick=quick)
        target = at_most(INDEX_TIMES, "times as long as counting", ours.cpu / count.cpu)
        rows.append(Row(f"best 10 by {key}", ours, peers=[Peer("count", count)], targets=[target]))
    return Table(f"{n:,} prices in one window, from events on", rows)


def _of_joins(n: int, quick: bool) -> Table:
    """Time the best matches of patterns without repetition beside plain loops, one for each variable."""
    kinds, values = np.arange(n) * 7 % 3, np.random.default_rng(1).random(n).round(4)
    table = pa.table({"t": np.arange(n), "id": np.arange(n), "kind": np.array(["A", "B", "C"])[kinds], "v": values})
    rows = []
    for pattern, rest, key, loop in JOINS:
        query = trellis.query(f"PATTERN {pattern} WHERE {rest} RETURN {key} AS key ORDER BY {key} DESC LIMIT 10")

        def ours(query: Any = query) -> pa.Table:
            return query.detect(table, time="t", type="kind", event_id="id").to_arrow()

        assert ours()["key"].to_pylist() == loop(kinds, values, 10)[::-1].tolist()
        mine = best_of(f"best of {pattern}", ours, quick=quick)
        plain = best_of(f"plain loops of {pattern}", lambda loop=loop: loop(kinds, values, 10), quick=quick, runs=1)
        rows.append(Row(f"best 10 of {pattern}", mine, peers=[Peer("plain Numba loops", plain)]))
    return Table(f"Matches over {n:,} events", rows, ["The peer finds the keys alone, without ranks and rows."])


@numba.njit(cache=True, nogil=True)
def _keep(best, key):
    """Put a key into the best, the least of which is first, in the place of that one."""
    i = 0
    while i + 1 < best.shape[0] and best[i + 1] < key:
        best[i] = best[i + 1]
        i += 1
    best[i] = key


@numba.njit(cache=True, nogil=True)
def _gains(kinds, values, number):
    best = np.full(number, -np.inf)
    for a in np.flatnonzero(kinds == 0):
        for b in range(a + 1, len(kinds)):
            if kinds[b] == 1 and values[a] < values[b]:
                for c in range(b + 1, len(kinds)):
                    if kinds[c] == 2 and values[a] < values[c] and values[c] - values[a] > best[0]:
                        _keep(best, values[c] - values[a])
    return best


@numba.njit(cache=True, nogil=True)
def _sums(kinds, values, number):
    best = np.full(number, -np.inf)
    for a in np.flatnonzero(kinds == 0):
        for b in np.flatnonzero(kinds == 1):
            if values[a] < values[b] and values[a] + values[b] > best[0]:
                _keep(best, values[a] + values[b])
    return best


JOINS = (
    ("SEQ(A a, B b, C c)", "a.v < b.v AND a.v < c.v", "c.v - a.v", _gains),
    ("AND(A a, B b)", "a.v < b.v", "a.v + b.v", _sums),
)


def detected(name: str, table: pa.Table) -> Any:
    """Return trends with their edges found and counted."""
    query = trellis.query(f"{RISING} ORDER BY {KEYS[name]} LIMIT 10")
    trends = query.detect(table, event_id="id", max_trends=BOUND)
    trends.count()
    trends.operator.graph  # noqa: B018 (built here, not while the clock runs)
    return trends


def all_sorted(trends: Any) -> pa.Table:
    """Make rows of all trends, and keep the best: what ORDER BY does where it cannot search."""
    from trellis.results.arrange import arrange
    from trellis.results.rows import RowMaker

    bound, operator = trends.plan.bound, trends.operator
    rows = operator.list(ListRequest([(0, 0, trends.count())], RowMaker(trends.plan, operator.events).batch))
    return pa.Table.from_batches(list(arrange(bound, rows)))
