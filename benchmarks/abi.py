"""The ABI paper's figures 7 to 14, 17 and 18: construction by four ways, extraction by anchors, and its peers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numba
import numpy as np
import pyarrow as pa

import trellis
from benchmarks import Peer, Row, Table, Timing, best_of
from benchmarks.data import prices
from trellis.io.generate import generate_table
from trellis.papers.abi.graph import Values, build, values_of
from trellis.papers.abi.window import AbiWindow, pre_filtered
from trellis.papers.contract import AlgorithmInput, Meter
from trellis.papers.registry import load

Q1 = "PATTERN check+ c[] WHERE c[i].src = c[i-1].dest"
Q2 = "PATTERN stock+ s[] WHERE s[i].price > 1.5 * s[i-1].price"
RATE, COMPATIBILITY = 3_500, 3
THREADS = 2
OF_CET = ("t-cet", "h-cet")  # the other paper's
MOST_STORED = 15_000_000  # trends of which those algorithms that store them all are asked
UNITS = "Memory is what partial trends refer to, 8 bytes per event, as the papers count it."


def run(quick: bool, large: bool = False) -> list[Table]:
    sizes = QUICK if quick else LARGE if large else USUAL
    return [
        figure_7(sizes, quick), figure_8(sizes, quick),
        figure_of_threads("9", Q2, random_prices, sizes.parallel_q2, quick, 48),
        figure_of_threads("10", Q1, _accounts, sizes.parallel_q1, quick, 41),
        figure_11(sizes, quick), figure_12(sizes, quick), figure_13(sizes, quick), figure_14(sizes, quick),
        figure_17(sizes), figure_18(sizes, quick),
    ]  # fmt: skip


@dataclass(frozen=True)
class Sizes:
    """Numbers of events, or of seconds at 3,500 transfers each."""

    dynamic: Sequence[int]
    pairs: Sequence[int]
    ranges: Sequence[int]
    parallel_q2: int
    parallel_q1: int
    seconds: Sequence[int]
    stocks: Sequence[int]
    filtered: Sequence[int]
    anchors: Sequence[int]


QUICK = Sizes((100, 200), (200,), (200,), 20_000, 20_000, (2, 3), (60,), (60, 80), (1, 4))
USUAL = Sizes(
    (1_250, 2_500, 5_000), (5_000, 30_000, 200_000), (5_000, 100_000, 300_000), 600_000, 2_000_000, (5, 6, 7, 8),
    (250, 350, 450), (250, 350, 450), (4, 8, 16, 32, 64, 124),
)  # fmt: skip
LARGE = Sizes(
    (2_500, 5_000, 10_000, 20_000), (10_000, 100_000, 1_000_000), (10_000, 100_000, 500_000, 2_000_000),
    2_000_000, 5_000_000, (6, 7, 8, 9, 10), (350, 450, 550), (350, 450, 550), (4, 8, 16, 32, 64, 124),
)  # fmt: skip


# --- Events -----------------------------------------------------------------------------------------------------


def random_prices(n: int) -> pa.Table:
    """Return trades at random prices from 1 to 101."""
    table = prices(n, seed=7)
    return table.set_column(2, "price", pa.array(1 + 100 * table["price"].to_numpy()))


def _accounts(n: int) -> pa.Table:
    """Return transfers between random accounts of a fixed set, three a account."""
    rng = np.random.default_rng(9)
    return pa.table(
        {"ts": np.arange(n), "id": np.arange(n), **{c: rng.integers(0, max(2, n // 3), n) for c in ("src", "dest")}}
    )


def compatible(
    seconds: float, rate: int = RATE, compatibility: int = COMPATIBILITY, selectivity: float = 1.0
) -> pa.Table:
    """Return the stream of `trellis generate kite --rate 3500 --compatibility 3 --selectivity S`."""
    options: dict[str, Any] = {"rate": rate, "compatibility": compatibility, "selectivity": selectivity}
    table = generate_table("kite", int(rate * seconds), 1, **options)
    return table.rename_columns({"event_id": "id"})


def input_of(text: str, table: pa.Table, **settings: Any) -> AlgorithmInput:
    """Return what algorithms work on, with the graph ready."""
    trends: Any = trellis.query(text).detect(
        table, time="ts", event_id="id", algorithm="anchor", max_trends=10**12, **settings
    )
    given: AlgorithmInput = trends.operator.algorithm_input(THREADS)
    _ = given.graph
    return given


def _values(text: str, table: pa.Table) -> Values:
    given = _input_without_graph(text, table)
    return values_of(given.plan, given.events)


def _input_without_graph(text: str, table: pa.Table) -> AlgorithmInput:
    trends: Any = trellis.query(text).detect(table, time="ts", event_id="id", algorithm="anchor")
    given: AlgorithmInput = trends.operator.algorithm_input(THREADS)
    return given


# --- Construction -----------------------------------------------------------------------------------------------


def _built(values: Values, construction: str, threads: int, quick: bool) -> Timing:
    n = len(values.value)
    what = f"{construction}, {n:,} events, {threads} threads"

    def built(number: int) -> None:
        build(values, 0, number, number, construction, threads)

    return best_of(what, lambda: built(n), quick=quick, warm=lambda: built(100))


@numba.njit(cache=True, nogil=True)
def pairwise(value, low):  # type: ignore[no-untyped-def]
    """Match each new event with every one before it, as the CET graph is built; the edges are only counted."""
    edges = 0
    for y in range(value.shape[0]):
        for x in range(y):
            if low[x] <= value[y]:
                edges += 1
    return edges


def figure_7(sizes: Sizes, quick: bool) -> Table:
    rows, ratios = [], []
    for n in sorted({*sizes.dynamic, *sizes.pairs}):
        values = _values(Q2, random_prices(n))
        timing = _built(values, "parallel", THREADS, quick)
        peers = []
        if n in sizes.dynamic:
            peers.append(Peer("dynamic, explicit to-edges (seq)", _built(values, "dynamic", 1, quick)))
        if n in sizes.pairs:
            cet = best_of(f"CET graph, {n:,}", lambda v=values: pairwise(v.value, v.low), quick=quick, runs=1)
            peers.append(Peer("each event compared with all before it, as for the CET graph; no edge is stored", cet))
            ratios.append(cet.wall / timing.wall)
        rows.append(Row(f"parallel, {THREADS} threads, {n:,} events", timing, peers=peers))
    return Table(
        "Figure 7: construction time, ABI and CET graph (Q2)",
        rows,
        ["The comparison of all pairs is the least that the CET graph takes: compiled, several pairs at once, without "
         "the walk over its vertices and without edges.",
         _claim("the ABI graph is built three orders of magnitude faster than the CET graph, and the gap grows",
                ratios[-1] >= 1000,
                f"{ratios[-1]:,.1f} times at the largest size, {ratios[0]:,.1f} at the smallest")],
    )  # fmt: skip


def figure_8(sizes: Sizes, quick: bool) -> Table:
    rows, ratios = [], []
    for n in sorted({*sizes.dynamic, *sizes.ranges}):
        values = _values(Q2, random_prices(n))
        timing = _built(values, "dynamic-range", 1, quick)
        peers = []
        if n in sizes.dynamic:
            peers.append(Peer("dynamic, explicit to-edges (seq)", _built(values, "dynamic", 1, quick)))
            ratios.append(peers[0].timing.wall / timing.wall)
        rows.append(Row(f"dynamic-range (seq-rt), {n:,} events", timing, peers=peers))
    return Table(
        "Figure 8: construction time with range to-edges (Q2)",
        rows,
        [_claim("ranges of to-edges make the dynamic construction two orders of magnitude faster",
                ratios[-1] >= 100,
                f"{ratios[-1]:,.0f} times at the largest size of both, {ratios[0]:,.0f} at the smallest")],
    )  # fmt: skip


def figure_of_threads(
    number: str, text: str, events: Callable[[int], pa.Table], n: int, quick: bool, percent: int
) -> Table:
    values = _values(text, events(n))
    one, two = (_built(values, "parallel", threads, quick) for threads in (1, THREADS))
    saved = 100 * (1 - two.wall / one.wall)
    query = "Q2" if text == Q2 else "Q1"
    return Table(
        f"Figure {number}: construction time by parallelism ({query})",
        [Row(f"parallel, {THREADS} threads, {n:,} events", two, peers=[Peer("one thread", one)])],
        [_claim(f"more threads take less time (with 16 threads {percent} % less than with two)",
                saved > 10, f"{saved:.0f} % less with two threads than with one; this machine has no more cores")],
    )  # fmt: skip


# --- Extraction -------------------------------------------------------------------------------------------------


def extracted(
    given: AlgorithmInput, name: str, quick: bool, threads: int = THREADS, anchors: int | None = None, runs: int = 3
) -> tuple[Timing, Meter, int]:
    """Return the time of an algorithm on a graph that is ready, what it told, and how many trends it found."""
    told: list[tuple[Meter, int]] = []
    timing = best_of(
        f"{name}, {len(given.events):,} events", lambda: told.append(extract(given, name, threads, anchors)),
        quick=quick, runs=runs,
    )  # fmt: skip
    return timing, *told[-1]


def extract(given: AlgorithmInput, name: str, threads: int = THREADS, anchors: int | None = None) -> tuple[Meter, int]:
    """Run an algorithm on a graph that is ready; return what it told, and how many trends it found."""
    settings = replace(given.settings, threads=threads, anchors=anchors)
    chosen = replace(given, settings=settings, meter=Meter(name))
    chosen.__dict__["graph"] = given.graph
    return chosen.meter, sum(map(len, load(name)(chosen)))


def _listed_by_ranks(text: str, table: pa.Table, quick: bool) -> Timing:
    trends: Any = trellis.query(text).detect(table, time="ts", event_id="id", max_trends=10**12)
    total = trends.count()

    def work() -> None:
        assert sum(b.num_rows for b in trends.batches(["events"], positions=True, threads=THREADS)) == total

    return best_of("auto", work, quick=quick)


def _extraction(title: str, text: str, inputs: Sequence[tuple[str, pa.Table]], quick: bool) -> Table:
    rows, slower = [], []
    for what, table in inputs:
        given = input_of(text, table)
        timing, meter, number = extracted(given, "anchor", quick)
        peers = []
        for name in ["dfs", "bfs", *OF_CET] if number <= MOST_STORED else ["dfs"]:
            other, its, found = extracted(given, name, quick, runs=1)
            assert found == number, name
            peers.append(Peer(f"{name}, which stores {its.peak:,} bytes", other))
        slower += [peer.timing.wall / timing.wall for peer in peers[2:]]
        peers.append(Peer("auto", _listed_by_ranks(text, table, quick)))
        rows.append(Row(f"anchor, {THREADS} threads, {what}: {number:,} trends", timing, meter.peak, peers))
    took = f"{' and '.join(OF_CET)} took {min(slower):.1f} to {max(slower):.1f} times as long on the same graph"
    claim = _claim("anchors greatly outperform the CET graph's method", min(slower) >= 2, took)
    return Table(title, rows, [UNITS, claim])


def figure_11(sizes: Sizes, quick: bool) -> Table:
    inputs = [(f"{RATE * t:,} events of {t} s", compatible(t)) for t in sizes.seconds]
    last = sizes.seconds[-1]
    inputs += [(f"{rate:,} events per second, {last} s", compatible(last, rate)) for rate in (RATE // 4, RATE // 2)]
    inputs += [(f"selectivity {s}, {last} s", compatible(last, selectivity=s)) for s in (0.25, 0.5)]
    return _extraction("Figure 11: extraction time (Q1)", f"{Q1} AND c.type = 'not covered'", inputs, quick)


def figure_12(sizes: Sizes, quick: bool) -> Table:
    inputs = [(f"{n:,} events", random_prices(n)) for n in sizes.stocks]
    return _extraction("Figure 12: extraction time (Q2)", Q2, inputs, quick)


def _threads(title: str, given: AlgorithmInput, percent: int, quick: bool) -> Table:
    one, _, number = extracted(given, "anchor", quick, 1)
    two, meter, _ = extracted(given, "anchor", quick, THREADS)
    saved = 100 * (1 - two.wall / one.wall)
    return Table(
        title,
        [Row(f"anchor, {THREADS} threads: {number:,} trends", two, meter.peak, [Peer("one thread", one)])],
        [UNITS,
         _claim(f"more threads take less time (with 16 threads {percent} % less than with two)",
                saved > 10, f"{saved:.0f} % less with two threads than with one; this machine has no more cores")],
    )  # fmt: skip


def figure_13(sizes: Sizes, quick: bool) -> Table:
    given = input_of(Q1, compatible(sizes.seconds[-1]))
    return _threads("Figure 13: extraction time by parallelism (Q1)", given, 76, quick)


def figure_14(sizes: Sizes, quick: bool) -> Table:
    given = input_of(Q2, random_prices(sizes.stocks[-1]))
    return _threads("Figure 14: extraction time by parallelism (Q2)", given, 40, quick)


def figure_17(sizes: Sizes) -> Table:
    rows, shares = [], []
    for n in sizes.filtered:
        given = input_of(Q2, random_prices(n))
        values = values_of(given.plan, given.events)
        abi = build(values, 0, n, n, "parallel", THREADS)
        filtered = best_of(f"pre-filter, {n:,} events", lambda s=given, a=abi: pre_filtered(s, a, True, 0))
        whole, _, number = extracted(given, "anchor", False, runs=1)
        shares.append(100 * filtered.wall / whole.wall)
        rows.append(Row(f"pre-filter, {n:,} events, {shares[-1]:.3f} % of all", filtered,
                        peers=[Peer(f"the whole extraction of {number:,} trends", whole)]))  # fmt: skip
    return Table(
        "Figure 17: proportion of the pre-filter (Q2)",
        rows,
        [_claim("the pre-filter takes a vanishing share of the time as events grow (0.04 % of it in the end)",
                shares[-1] < shares[0] and shares[-1] < 1,
                f"{shares[0]:.3f} % at first, {shares[-1]:.3f} % in the end")],
    )  # fmt: skip


def figure_18(sizes: Sizes, quick: bool) -> Table:
    given = input_of(Q2, random_prices(sizes.stocks[-1] if quick else 350))
    window = AbiWindow(given, values_of(given.plan, given.events), 0)
    rows, breadth, depth, memory = [], [], [], []
    for number in sizes.anchors:
        timing, meter, found = extracted(given, "anchor", quick, anchors=number)
        breadth.append(meter.facts["breadth"])
        depth.append(meter.facts["depth"])
        memory.append(meter.peak)
        stages = [Peer("breadth first, between anchors", Timing(breadth[-1], breadth[-1])),
                  Peer("depth first, joining", Timing(depth[-1], depth[-1]))]  # fmt: skip
        rows.append(Row(f"{meter.facts['anchors']:,} anchors: {found:,} trends", timing, meter.peak, stages))
    rises = breadth[-1] > breadth[0]
    return Table(
        "Figure 18: effect of the number of anchors (Q2)",
        rows,
        [UNITS,
         f"The window has {window.abi.vertices:,} attribute vertices; where all are anchors, sub-sequences are events.",
         _claim("with more anchors breadth first takes longer and depth first less, and memory goes with breadth first",
                rises and depth[-1] < depth[0],
                f"breadth first went from {breadth[0]:.3f} s to {breadth[-1]:.3f} s, depth first from {depth[0]:.3f} s "
                f"to {depth[-1]:.3f} s; memory does go with breadth first: few anchors leave long sub-sequences "
                "between them, and these are what is stored")],
    )  # fmt: skip


def _claim(text: str, seen: bool, found: str) -> str:
    return f"The paper says: {text}. {'Seen' if seen else 'Not seen'} here: {found}."
