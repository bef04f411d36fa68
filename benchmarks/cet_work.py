"""What the benchmarks of the CET paper share: its workloads, and one run of a named algorithm."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

import trellis
from benchmarks import step
from benchmarks.data import checks
from benchmarks.report import amount
from trellis.errors import TrellisError
from trellis.io.generate.activity import activity
from trellis.io.generate.kite import kite
from trellis.io.generate.stock import stock

AUTO = "auto"
PATIENCE = 8.0  # seconds that a workload may take; a method that takes longer is not tried on larger ones
QUERIES = 10
Q1 = "PATTERN Check+ c[] WHERE c.type = 'notcovered' AND c.source != '{}' AND c.destination = NEXT(c).source"
Q2 = "PATTERN Activity+ b[] WHERE [personID] AND b.rate + {} < NEXT(b).rate"
Q3 = "PATTERN Stock+ s[] WHERE [companyID] AND s.price * {} < NEXT(s).price"
VARIANTS = {
    "kite": (Q1, [f"A{i:03}" for i in range(QUERIES)]),
    "checks": (Q1, [f"X{i}" for i in range(QUERIES)]),
    "activity": (Q2, [str(i) for i in range(QUERIES)]),
    "stock": (Q3, [f"{1 + i / 5000:.4f}" for i in range(QUERIES)]),
}


def workload(kind: str, events: pa.Table, window: str, queries: int = QUERIES, report: str = "maximal") -> list[Any]:
    """Return the trends of some variants of the paper's query for a stream; nothing is found yet."""
    text, variants = VARIANTS[kind]
    return [
        trellis.query(f"{text.format(variant)} REPORT {report} {window}").detect(
            events, time="ts", event_id="event_id", max_trends=10**12
        )
        for variant in variants[:queries]
    ]


def generated(kind: str, events: int, **options: Any) -> pa.Table:
    """Make a stream as `trellis generate` does."""
    if kind == "kite":
        return kite(events, type_spelling="notcovered", **options)
    return {"stock": stock, "activity": activity}[kind](events, **options)


@dataclass(frozen=True)
class Run:
    """What a workload took: seconds, trends, windows, and the most bytes of a query in the paper's unit.

    `stored` are partial trends alone, `memory` has the graph of the largest window too, where the paper counts it.
    """

    seconds: float
    trends: int
    windows: int
    stored: int
    memory: int

    @property
    def a_window(self) -> float:
        """Seconds a window."""
        return self.seconds / max(self.windows, 1)


def worked(trends: Sequence[Any], algorithm: str, limit: int | None = None, optimizer: str = AUTO) -> Run | None:
    """Run a workload by an algorithm, from sorted events on; None if it refuses, or takes longer than `PATIENCE`."""
    seconds, found, windows, stored, memory = 0.0, 0, 0, 0, 0
    for one in trends:
        groups = one._prepared.events.groups
        began = time.perf_counter()
        if algorithm == AUTO:
            found += listed(fresh(one))
            stored_here = graph = 0
        else:
            try:
                given, number = _by_name(one, algorithm, limit, optimizer)
            except TrellisError:
                return None
            found += number
            stored_here, graph = given.meter.peak, _graph_bytes(given, algorithm)
        seconds += time.perf_counter() - began
        if seconds > PATIENCE:
            return None
        windows += len(groups)
        stored, memory = max(stored, stored_here), max(memory, stored_here + graph)
    return Run(seconds, found, windows, stored, memory)


def _by_name(trends: Any, algorithm: str, limit: int | None, optimizer: str) -> tuple[Any, int]:
    from trellis.papers.registry import load

    given = input_of(trends, algorithm, limit, optimizer)
    return given, sum(len(found) for found in load(algorithm)(given))


def input_of(trends: Any, algorithm: str, limit: int | None = None, optimizer: str = AUTO) -> Any:
    """Return an input that builds its graph anew."""
    from trellis.operators.trends.graph import build_graph
    from trellis.papers.contract import AlgorithmInput, AlgorithmSettings, Meter

    plan, operator = trends.plan, trends.operator
    settings = AlgorithmSettings(memory_limit=limit, optimizer=optimizer)
    meter = Meter(algorithm, limit)
    return AlgorithmInput(
        plan, operator.events, operator.tasks, lambda: build_graph(plan, operator.events), settings, meter
    )


def _graph_bytes(given: Any, algorithm: str) -> int:
    """Return 8 bytes for each vertex and edge of the largest window, where an algorithm of the paper has a graph."""
    if algorithm in ("baseline", "flattened", "sase"):  # the last counts its stacks and pointers as stored
        return 0
    from trellis.papers.cet.cet_graph import cet_graph_of

    cet = cet_graph_of(given)
    return 8 * int((cet.hi - cet.lo + cet.extents[1]).max(initial=0))


def fresh(trends: Any) -> Any:
    """Return trends that know nothing but their sorted events."""
    from trellis.make import make_operator

    other = copy(trends)
    other.__dict__.pop("_counts", None)
    other.operator = make_operator(trends.plan, trends._prepared.events, trends.operator.threads)
    return other


def listed(trends: Any, threads: int | None = 1) -> int:
    """List trends as the engine does by default, as positions, and return how many there are."""
    return sum(batch.num_rows for batch in trends.batches(["events"], positions=True, threads=threads))


def claim(text: str, held: bool, here: str) -> str:
    """Say what the paper claims, and whether it was seen."""
    return f"The paper: {text}. {'Seen' if held else 'Not seen'} here: {here}."


def times(ratio: float) -> str:
    """Write a ratio: `3.2 times`."""
    return amount(ratio, "times")


class Patience:
    """Leaves out methods where they refused, or took too long for a smaller workload."""

    def __init__(self, methods: Iterable[str]) -> None:
        """Take the methods; each is run on a little first, so that everything is compiled."""
        self.lines: dict[str, list[Run | None]] = {method: [] for method in methods}
        self._gone: set[str] = set()
        little = workload("checks", checks([2] * 6), "WITHIN 3 s SLIDE 1 s", 1)
        for method in self.lines:
            worked(little, method)

    def try_all(self, what: str, trends: Sequence[Any], limit: int | None = None) -> None:
        """Run a workload by each method; all that end must find as many trends."""
        found: set[int] = set()
        for method, line in self.lines.items():
            step(f"{what}: {method}")
            run = None
            if method not in self._gone:
                run = worked(trends, method, limit if method.startswith("h-cet") else None)
                if run is None:
                    self._gone.add(method)
            if run is not None:
                found.add(run.trends)
            line.append(run)
        assert len(found) == 1, f"the algorithms find {found} trends"

    def of(self, what: str) -> dict[str, list[float | None]]:
        """Return an attribute of each run."""
        return {
            method: [None if run is None else getattr(run, what) for run in line] for method, line in self.lines.items()
        }
