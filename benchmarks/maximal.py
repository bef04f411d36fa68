"""Maximal trends: direct successors without testing all pairs, and exact counts without even these."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

import trellis
from benchmarks import Peer, Row, Table, Timing, at_most, best_of
from benchmarks.data import prices, transfers
from trellis.operators.trends.direct import Method
from trellis.operators.trends.direct_count import DirectCounter, most_trends
from trellis.operators.trends.graph import EventGraph, build_graph
from trellis.operators.trends.operator import TrendOperator

RISING = "PATTERN E+ s[] WHERE s[i].price > s[i-1].price REPORT maximal"
STEEP = "PATTERN E+ s[] WHERE s[i].price > 1.5 * s[i-1].price REPORT maximal"
BOTH = "PATTERN E+ s[] WHERE s[i].price > s[i-1].price AND s[i].other > s[i-1].other REPORT maximal"
FOLLOWED = "PATTERN E+ s[] WHERE s[i].src = s[i-1].dest REPORT maximal"
OTHER = "PATTERN E+ s[] WHERE s[i].src != s[i-1].src REPORT maximal"


def run(quick: bool) -> list[Table]:
    small, large = (2_000, 5_000) if quick else (20_000, 1_000_000)
    return [_beside_reachability(small, quick), _counts(small, large, quick)]


def walk(n: int, seed: int = 1) -> pa.Table:
    """Return trades at the prices of a random walk in whole steps, many of them equal."""
    steps = np.random.default_rng(seed).normal(size=n)
    return pa.table({"ts": np.arange(n), "id": np.arange(n), "price": np.round(np.cumsum(steps))})


def falling(n: int) -> pa.Table:
    """Return prices that fall twice, the second time from higher up: each of the first leads to all of the second."""
    run = np.arange(n // 2, dtype=np.float64)[::-1]
    return pa.table({"ts": np.arange(n), "id": np.arange(n), "price": np.concatenate([run, run + n])})


def pairs(n: int, seed: int = 1) -> pa.Table:
    """Return trades with two random prices."""
    return prices(n, seed).append_column("other", pa.array(np.random.default_rng(seed + 1).random(n)))


# --- Direct successors ------------------------------------------------------------------------------------------


def _beside_reachability(n: int, quick: bool) -> Table:
    inputs = {
        "random prices, price > prev.price": (RISING, prices(n)),
        "random prices, price > 1.5 * prev.price": (STEEP, prices(n)),
        "a random walk, price > prev.price": (RISING, walk(n)),
        "two random prices, both rising": (BOTH, pairs(n)),
        f"transfers of {n // 20:,} accounts, src = prev.dest": (FOLLOWED, transfers(n, n // 20)),
        f"transfers of {n // 20:,} accounts, src != prev.src": (OTHER, transfers(n, n // 20)),
    }
    rows, notes = [], []
    for name, (text, table) in inputs.items():
        ours = best_of(name, lambda t=text, e=table: graph_of(t, e), quick=quick)
        reach = best_of(
            f"{name}: reachability", lambda t=text, e=table: graph_of(t, e, reach=True), quick=quick, runs=1
        )
        rows.append(Row(name, ours, peers=[Peer("all pairs, then bitsets of reachability", reach)]))
        notes.append(f"{name}: {len(graph_of(text, table).successors):,} direct edges, by {method_of(text, table)}.")
    return Table(f"Direct successors of {n:,} events in one window", rows, notes)


def operator_of(text: str, table: pa.Table) -> TrendOperator:
    operator: TrendOperator = trellis.query(text).detect(table, event_id="id").operator
    return operator


def graph_of(text: str, table: pa.Table, reach: bool = False) -> EventGraph:
    """Find the edges of maximal trends; with `reach` from all pairs, by reachability."""
    operator = operator_of(text, table)
    direct = operator.direct
    assert direct is not None
    if reach:
        direct.method = Method.REACH
    return build_graph(operator.plan, operator.events, direct)


def method_of(text: str, table: pa.Table) -> str:
    direct = operator_of(text, table).direct
    assert direct is not None
    return str(direct.method)


# --- Counts -----------------------------------------------------------------------------------------------------


def _counts(small: int, large: int, quick: bool) -> Table:
    inputs: dict[str, tuple[str, Callable[[], pa.Table], float | None]] = {
        f"{large:,} random prices, price > prev.price": (RISING, lambda: prices(large), 8.0),
        f"{large:,} random prices, price > 1.5 * prev.price": (STEEP, lambda: prices(large), 8.0),
        f"{large:,} prices of a random walk": (RISING, lambda: walk(large), None),
        f"{small:,} prices that fall twice": (RISING, lambda: falling(small), None),
    }
    rows, notes = [], []
    for name, (text, make, target) in inputs.items():
        table = make()
        ours = best_of(name, lambda t=text, e=table: count(t, e), quick=quick, runs=2)
        peers = [Peer(way, timing) for way, timing in _both_ways(name, text, table, quick)]
        targets = [] if target is None else [at_most(target, "s", ours.wall)]
        rows.append(Row(name, ours, peers=peers, targets=targets))
        notes.append(f"{name}: {_size(count(text, table))} maximal trends.")
    return Table("Exact counts of maximal trends of one window", rows, notes)


def count(text: str, table: pa.Table) -> int:
    """Parse, read the table and count, as a user does."""
    total: int = trellis.query(text).detect(table, event_id="id").count()
    return total


def _both_ways(name: str, text: str, table: pa.Table, quick: bool) -> list[tuple[str, Timing]]:
    """Measure the two ways to count, of which the engine chooses one: with and without direct edges."""
    found = [("without direct edges", best_of(f"{name}: without", lambda: _without(text, table), quick=quick, runs=1))]
    direct = operator_of(text, table).direct
    assert direct is not None
    if not direct.exceeds(200 * table.num_rows):
        found.append(("over direct edges", best_of(f"{name}: over", lambda: _over(text, table), quick=quick, runs=1)))
    return found


def _without(text: str, table: pa.Table) -> list[int]:
    operator = operator_of(text, table)
    direct = operator.direct
    assert direct is not None

    def bound() -> float:
        return most_trends(operator.plan, operator.events, operator.tasks)

    return DirectCounter(direct, operator.tasks, lambda: operator.graph, bound).counts()


def _over(text: str, table: pa.Table) -> list[int]:
    from trellis.operators.trends.count import Counter, GraphRelation

    operator = operator_of(text, table)
    relation = GraphRelation(operator.events, operator.graph)
    return Counter(operator.events, relation, operator.tasks, lambda: operator.graph).counts()


def _size(number: int) -> str:
    digits = str(number) if number.bit_length() < 10_000 else ""
    if not digits:
        return f"2^{number.bit_length() - 1} or more"
    return f"{number:,}" if len(digits) < 10 else f"about {digits[0]}.{digits[1]} * 10^{len(digits) - 1}"
