"""Random streams and queries for the CET algorithms, and their results in an order of their own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa

import trellis
from trellis.papers.contract import AlgorithmInput
from trellis.papers.registry import load

CONDITIONS = (
    "s[i].x > s[i-1].x",
    "s[i].a = s[i-1].b",
    "[g] AND s[i].x >= s[i-1].x",
    "s[i].layer = s[i-1].layer + 1",
)
WINDOWS = ("", "WITHIN 4 SLIDE 4", "WITHIN 6 SLIDE 2", "WITHIN 5 SLIDE 1", "WITHIN 7 SLIDE 3")


def stream(seed: int, most: int = 14) -> pa.Table:
    """Make up to `most` events; `layer` has few values that rise, so that graphs can be cut."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(0, most + 1))
    time = np.sort(rng.integers(0, n + 1, n)) if seed % 2 else np.arange(n)
    return pa.table(
        {
            "time": time,
            "id": np.arange(n),
            "x": rng.integers(0, 8, n),
            "a": rng.integers(0, 3, n),
            "b": rng.integers(0, 3, n),
            "g": rng.integers(0, 2, n),
            "layer": time // int(rng.integers(1, 4)),
        }
    )


def text(seed: int, report: str) -> str:
    """Write a query."""
    rng = np.random.default_rng(seed + 7)
    condition, window = CONDITIONS[int(rng.integers(len(CONDITIONS)))], WINDOWS[int(rng.integers(len(WINDOWS)))]
    return f"PATTERN E+ s[] WHERE {condition} REPORT {report} {window}"


def detected(seed: int, report: str, most: int = 14, **options: Any) -> Any:
    """Detect the trends of a random query over a random stream."""
    return trellis.query(text(seed, report)).detect(stream(seed, most), event_id="id", **options)


def input_of(trends: Any) -> AlgorithmInput:
    """Return what the algorithm works on."""
    work: AlgorithmInput = trends.operator.algorithm_input()
    return work


def run(work: AlgorithmInput) -> list[tuple[int, tuple[int, ...]]]:
    """Run an algorithm, and return the task and events of each trend, sorted."""
    rows: list[tuple[int, tuple[int, ...]]] = []
    for found in load(work.meter.algorithm)(work):
        parts: Iterable[np.ndarray] = np.split(found.positions, found.ends[:-1])
        rows += [(int(found.groups[0]), tuple(part.tolist())) for part in parts]
    return sorted(rows)
