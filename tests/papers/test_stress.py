"""No trend is lost or repeated, whatever the number of threads, anchors and the window."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import trellis
from tests.papers.cases import paths_of
from trellis.papers.contract import Bounds, Meter

QUERIES = {
    "kite": "PATTERN E+ e[] WHERE e[i].src = e[i-1].dest",
    "rising": "PATTERN E+ e[] WHERE e[i].price > 1.2 * e[i-1].price",
    "keyed": "PATTERN E+ e[] WHERE e[i].src = e[i-1].dest AND e[i].price > e[i-1].price",
    "two": "PATTERN E+ e[] WHERE e[i].price > e[i-1].price AND e[i].src != e[i-1].src",
}


def events(n: int, seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    accounts = max(12, n // 6)
    columns = {
        "src": rng.integers(0, accounts, n),
        "dest": rng.integers(0, accounts, n),
        "price": rng.integers(1, 60, n),
    }
    return pa.table({"ts": np.sort(rng.integers(0, n, n)), "id": np.arange(n), **columns})


def stress(
    text: str, n: int, report: str, seed: int, threads: tuple[int, ...], anchors: tuple[int | None, ...], bounds: Bounds
) -> int:
    """Compare the trends of many settings with those of depth first, which are as many as are counted."""
    table = events(n, seed)
    trends: Any = trellis.query(text).detect(
        table, time="ts", event_id="id", report_mode=report, algorithm="anchor", max_trends=10**9
    )
    work = replace(trends.operator.algorithm_input(1), bounds=bounds)
    wanted = paths_of(work, "dfs")
    assert len(wanted) == len(set(wanted)) == trends.count()
    assert paths_of(replace(work, meter=Meter("bfs")), "bfs") == wanted
    for number in threads:
        for some in anchors:
            meter = Meter("anchor")
            chosen = replace(work, settings=replace(work.settings, threads=number, anchors=some), meter=meter)
            assert paths_of(chosen, "anchor") == wanted, (number, some)
            assert meter.held == 0
            assert meter.peak > 0
    return len(wanted)


@pytest.mark.parametrize("name", list(QUERIES))
@pytest.mark.parametrize("report", ["unextendable", "maximal", "any"])
def test_threads_and_anchors(name: str, report: str) -> None:
    bounds = Bounds(batch_values=64, few=8)  # many shares
    n = 20 if report == "any" or name != "kite" else 40
    found = stress(QUERIES[name], n, report, 3, (1, 2, 5), (None, 1, 2, 3, 7), bounds)
    assert found > 5
    stress(f"{QUERIES[name]} WITHIN 12 SLIDE 5", 30, report, 4, (1, 3), (None, 1, 4), bounds)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", list(QUERIES))
@pytest.mark.parametrize("report", ["unextendable", "maximal", "any"])
def test_many_threads_and_anchors(name: str, report: str, seed: int) -> None:
    bounds = Bounds(batch_values=5_000)
    n = {"any": 18, "unextendable": 22, "maximal": 60}[report] * (3 if name == "kite" and report != "any" else 1)
    every = (None, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10)
    stress(QUERIES[name], n, report, seed, (1, 2, 3, 4, 5, 8, 16), every, bounds)
    stress(f"{QUERIES[name]} WITHIN 30 SLIDE 10", 90, report, seed, (1, 2, 8), (None, 1, 2, 5), bounds)
