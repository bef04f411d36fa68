"""Single trends out of some 10^50: uniform samples, the trend with a rank, and rows far behind an OFFSET."""

from __future__ import annotations

import random
import time
from typing import Any

import pyarrow as pa

import trellis
from benchmarks import Row, Table, Timing, at_most, best_of, step
from benchmarks.data import prices

RISING = "PATTERN E+ s[] WHERE s[i].price > 1.5 * s[i-1].price"
OFFSET = 10**12


def run(quick: bool) -> list[Table]:
    n, samples, asked = (2_000, 100, 5) if quick else (1_000_000, 1_000_000, 200)
    table = prices(n)
    total = trellis.query(RISING).detect(table, event_id="id").count()

    def counted(tail: str = "") -> Any:
        trends = trellis.query(f"{RISING} {tail}").detect(table, event_id="id")
        trends.count()
        return trends

    sampled = best_of(f"{samples:,} samples", lambda t: t.sample(samples), given=counted, quick=quick, runs=2)
    first, later = _ranks(counted(), asked, total)
    offset = 1_000 if quick else OFFSET
    deep = best_of(f"OFFSET {offset}", listed, given=lambda: counted(f"LIMIT 10 OFFSET {offset}"), quick=quick)
    return [
        Table(
            f"Out of the trends of {n:,} prices",
            [
                Row(f"sample({samples:,})", sampled, targets=[at_most(5, "s", sampled.wall)]),
                Row("trend(rank), the first time", first),
                Row("trend(rank), then", later, targets=[at_most(2e-3, "s", later.wall)]),
                Row(f"LIMIT 10 OFFSET {offset:,}, the first time", deep),
            ],
            [f"There are more than 10^{len(str(total)) - 1} trends, and they have been counted already."],
        )
    ]


def listed(trends: Any) -> pa.Table:
    return trends.to_arrow()


def _ranks(trends: Any, asked: int, total: int) -> tuple[Timing, Timing]:
    """Return how long the first trend took, and the mean of those after it."""
    rng = random.Random(1)
    ranks = [rng.randrange(total) for _ in range(asked + 1)]
    step("trend(rank)")
    trellis.query(RISING).detect(prices(100), event_id="id").trend(0)
    first = _seconds(trends, ranks[:1])
    later = _seconds(trends, ranks[1:])
    return first, later


def _seconds(trends: Any, ranks: list[int]) -> Timing:
    wall, cpu = time.perf_counter(), time.process_time()
    for rank in ranks:
        trends.trend(rank)
    return Timing((time.perf_counter() - wall) / len(ranks), (time.process_time() - cpu) / len(ranks), len(ranks))
