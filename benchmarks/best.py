"""The best ten trends of a window by length, sum and other keys, beside listing and sorting them all."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

import trellis
from benchmarks import Peer, Row, Table, best_of
from benchmarks.data import prices
from trellis.operators.contract import ListRequest

RISING = "PATTERN E+ s[] WHERE s[i].price > s[i-1].price"
KEYS = {
    "length": "LENGTH DESC",
    "sum": "SUM(s.price) DESC",
    "greatest value, then length": "MAX(s.price), LENGTH DESC",
    "mean": "AVG(s.price) DESC",
}
BOUND = 10**9


def run(quick: bool) -> list[Table]:
    return [_beside_sorting(40 if quick else 120, quick), _beyond_listing(300 if quick else 4_000, quick)]


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
    rows = [
        Row(
            f"best 10 by {name}",
            best_of(name, lambda t: t.to_arrow(), given=lambda n=name: detected(n, table), quick=quick),
        )
        for name in KEYS
    ]
    digits = len(str(detected("length", table).count())) - 1
    return Table(f"More than 10^{digits} trends, of {n:,} prices", rows, ["Edges and counts are there already."])


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
