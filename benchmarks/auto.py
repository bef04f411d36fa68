"""`auto` beside the ABI paper's algorithms by name: ten queries, of which it is to take at most 1.2 times the best."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

import trellis
from benchmarks import Peer, Row, Table, Target, Timing, at_most, median_of, step
from benchmarks.abi import Q1, Q2, compatible, extract, input_of, random_prices
from trellis.papers.contract import USUAL
from trellis.papers.registry import ABI

RATIO, LEAST = 1.2, 0.05


def run(quick: bool) -> list[Table]:
    whole, alone = [], []
    for what, text, table in variants(quick):
        names = list(ABI)
        times = {name: _whole(text, table, name, quick) for name in ["auto", *names]}
        ours = times.pop("auto")
        peers = [Peer(name, timing) for name, timing in times.items()]
        whole.append(Row(f"auto, {what}", ours, peers=peers, targets=_judged(ours, times)))
        alone.append(_alone(what, text, table, names, quick))
    return [
        Table("Ten queries, from events to the last trend: `auto` at most 1.2 times the best", whole,
              [f"Medians of 5. What `auto` and the best other do in less than {1000 * LEAST:.0f} ms is not judged."]),
        Table("Ten queries, the graph and the counts being ready", alone,
              ["Medians of 5. `auto` gives Arrow arrays in the order of ranks; the others give arrays of positions as "
               f"they find them, without ranks, in batches of some {USUAL.batch_values:,} events."]),
    ]  # fmt: skip


def variants(small: bool) -> list[tuple[str, str, pa.Table]]:
    """Return ten queries: other streams, conditions, windows and modes."""
    t, rate = (2, 500) if small else (7, 5_000)

    def trades(n: int, seed: int = 3) -> pa.Table:
        rng = np.random.default_rng(seed)
        return random_prices(n).append_column("volume", pa.array(rng.random(n))).append_column(
            "code", pa.array(rng.integers(0, 3, n))
        )  # fmt: skip

    return [
        ("transfers", Q1, compatible(t, rate)),
        ("transfers, REPORT maximal", f"{Q1} REPORT maximal", compatible(t, rate)),
        ("transfers, half of them covered", f"{Q1} AND c.type = 'not covered'",
         compatible(t + 1, rate, selectivity=0.5)),
        ("transfers, compatibility 2", Q1, compatible(t + 4, rate, 2)),
        ("transfers in sliding windows", f"{Q1} WITHIN {t - 1} s SLIDE 1 s", compatible(t + 1, rate)),
        ("transfers, REPORT any", f"{Q1} REPORT any", compatible(t - 1, rate)),
        ("prices half as high again", Q2, trades(40 if small else 300)),
        ("rising prices, REPORT maximal", "PATTERN S+ s[] WHERE s[i].price > s[i-1].price REPORT maximal",
         trades(20 if small else 180)),
        ("prices of one code", "PATTERN S+ s[] WHERE s[i].code = s[i-1].code AND s[i].price > 1.1 * s[i-1].price",
         trades(40 if small else 330)),
        ("rising prices, falling volumes",
         "PATTERN S+ s[] WHERE s[i].price > s[i-1].price AND s[i].volume < s[i-1].volume",
         trades(40 if small else 290)),
    ]  # fmt: skip


def _judged(ours: Timing, others: dict[str, Timing]) -> list[Target]:
    """Judge work that takes `auto` or the best of the others long enough."""
    best = min(timing.wall for timing in others.values())
    return [at_most(RATIO, "times the best", ours.wall / best)] if max(ours.wall, best) >= LEAST else []


def _whole(text: str, table: pa.Table, name: str, quick: bool) -> Timing:
    def work() -> None:
        trends: Any = trellis.query(text).detect(table, time="ts", event_id="id", algorithm=name, max_trends=10**12)
        step(f"{name}: {sum(b.num_rows for b in trends.batches(['events'], positions=True)):,} trends")

    return median_of(f"{name}, whole", work, quick)


def _alone(what: str, text: str, table: pa.Table, names: Sequence[str], quick: bool) -> Row:
    trends: Any = trellis.query(text).detect(table, time="ts", event_id="id", max_trends=10**12)
    total = trends.count()

    def listed() -> None:
        assert sum(b.num_rows for b in trends.batches(["events"], positions=True)) == total

    ours = median_of(f"auto, {what}", listed, quick)
    given = input_of(text, table)
    times = {name: median_of(f"{name}, {what}", lambda n=name: extract(given, n), quick) for name in names}
    targets = _judged(ours, times)
    return Row(f"auto, {what}: {total:,} trends", ours, peers=[Peer(n, t) for n, t in times.items()], targets=targets)
