"""Fraud, end to end: gradient boosting with and without features of trends, beside snapml's, split by time."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from importlib import import_module, invalidate_caches
from importlib.util import find_spec
from time import perf_counter, process_time
from typing import Any

import numpy as np
import pandas as pd

from benchmarks import Peer, Row, Table, Timing, step
from benchmarks.measure import ROOT
from examples.fraud import SPLIT, arriving_features, fitted_model, judged, plain_columns
from trellis.io.generate import generate_table

PACKAGE = "snapml==1.17.2"
BATCH = 1_000  # transfers that come at a time
SPAN = 172_800  # seconds, as the queries have it
SNAPML = {
    "num_threads": 2, "time_window": SPAN, "lc-cycle": False,
    "vertex_stats": True, "vertex_stats_tw": SPAN, "vertex_stats_cols": [4],
    "vertex_stats_feats": [0, 1, 2, 3, 4, 8, 9, 10],
    "fan": True, "fan_tw": SPAN, "fan_bins": list(range(2, 12)),
    "degree": True, "degree_tw": SPAN, "degree_bins": list(range(2, 12)),
    "scatter-gather": True, "scatter-gather_tw": SPAN, "scatter-gather_bins": list(range(2, 8)),
    "temp-cycle": True, "temp-cycle_tw": SPAN, "temp-cycle_bins": list(range(2, 10)),
}  # fmt: skip

Features = Callable[[pd.DataFrame], np.ndarray]


def run(quick: bool) -> list[Table]:
    frame = generate_table("laundering", 1_000 if quick else 20_000, 1).to_pandas()
    methods: dict[str, Features] = {
        "the columns alone": lambda f: np.empty((len(f), 0)),
        "with snapml's graph features": by_snapml,
        "with features of trends": by_trends,
    }
    timings, scores = {}, {}
    for name, method in methods.items():
        step(f"{name}: compiling")
        method(frame.head(800))
        step(name)
        wall, cpu = perf_counter(), process_time()
        more = method(frame)
        timings[name] = Timing(perf_counter() - wall, process_time() - cpu)
        inputs = np.column_stack([plain_columns(frame), more])
        scores[name] = judged(fitted_model(inputs, frame["laundering"]), inputs, frame["laundering"])
    shown = {
        name: f"{name}: precision {s.precision:.2f}, recall {s.recall:.2f}, average precision {s.average_precision:.2f}"
        for name, s in scores.items()
    }
    ours, theirs, alone = (
        shown[name] for name in ("with features of trends", "with snapml's graph features", "the columns alone")
    )
    return [
        Table(
            f"Laundering among {len(frame):,} generated transfers, features as they arrive in batches of {BATCH:,}",
            [
                Row(
                    ours,
                    timings["with features of trends"],
                    peers=[Peer(theirs, timings["with snapml's graph features"])],
                ),
                Row(alone),
            ],
            [
                f"One gradient boosting of scikit-learn with its defaults; trained on the first {SPLIT:.0%} in time, "
                "judged on the rest. Features of a transfer are over the transfers up to its batch, on both sides. The "
                "seconds are those of the features of all transfers.",
                "The queries say that amounts stay alike from hop to hop, as the generator plants them; snapml's "
                "features know who pays whom and when, and statistics of amounts.",
            ],
        )
    ]


def by_trends(frame: pd.DataFrame) -> np.ndarray:
    """Return the features of trends, as transfers arrive."""
    return arriving_features(frame, BATCH)


def snapml() -> Any:
    """Return snapml, fetched the first time: its licence is its own, so that nothing here depends on it."""
    home = ROOT / ".venv" / "snapml"
    if str(home) not in sys.path:
        sys.path.append(str(home))
    if find_spec("snapml") is None:
        step("snapml: fetching it, once")
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(home), PACKAGE]
        subprocess.run(command, check=True, capture_output=True)
        invalidate_caches()
    return import_module("snapml")


def by_snapml(frame: pd.DataFrame) -> np.ndarray:
    """Return snapml's features, as transfers arrive."""
    codes = pd.factorize(pd.concat([frame["source"], frame["destination"]]))[0].reshape(2, -1)
    seconds = (frame["ts"] - frame["ts"].iloc[0]).dt.total_seconds()
    rows = np.ascontiguousarray(
        np.column_stack([frame["event_id"], codes[0], codes[1], seconds, frame["amount"]]), float
    )
    maker = snapml().GraphFeaturePreprocessor()
    maker.set_params(SNAPML)
    maker.fit(rows[:1])
    parts = [maker.transform(np.ascontiguousarray(rows[i : i + BATCH])) for i in range(0, len(rows), BATCH)]
    return np.concatenate(parts)[:, rows.shape[1] :]
