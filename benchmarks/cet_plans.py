"""The CET paper's optimizer: searches for plans beside one another, its Figures 15 to 17, 19 and 20."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, pairwise
from typing import Any

import numpy as np

from benchmarks import Figure, Row, Table, at_most, best_of, step
from benchmarks.cet_work import claim, generated, input_of, times, workload
from benchmarks.data import checks
from trellis.errors import TrellisError
from trellis.papers.cet.cet_graph import cet_graph_of
from trellis.papers.cet.graphlets import CetPartition, partitions
from trellis.papers.cet.h_cet import execute
from trellis.papers.cet.optimizer import OPTIMIZERS
from trellis.papers.cet.plans import Choice, Problem
from trellis.papers.contract import REFERENCE, USUAL

SEARCHES = ("exhaustive", "bnb-paper", "bnb", "greedy")
NODE = 20  # bytes of a plan for each of its graphlets, as the paper counts


def run(quick: bool, large: bool = False) -> list[Table]:
    return [
        *_searches(quick, large),
        *_quality(quick, large),
        *_limits(quick, large),
        *_space(quick, large),
        _gaps(quick),
    ]


def _layers(number: int, width: int = 3, uneven: bool = False) -> list[int]:
    rng = np.random.default_rng(number)
    return rng.integers(1, 6, number).tolist() if uneven else [width] * number


def _partition(layers: Sequence[int]) -> tuple[Any, CetPartition]:
    """Return the input of h-cet over one window of checks, and its only partition, whose costs are not yet known."""
    (trends,) = workload("checks", checks(layers), "", 1)
    given = input_of(trends, "h-cet")
    (partition,) = partitions(given, cet_graph_of(given))
    return given, partition


def _between(problem: Problem, share: float) -> int:
    """Return a limit between the least memory of a plan and that of one graphlet, on a logarithmic scale.

    One graphlet that no process should store counts as what one may.
    """
    least, most = problem.smallest, min(problem.cost(())[1], REFERENCE * USUAL.references)
    return int(least * (most / least) ** share)


def _searched(layers: Sequence[int], share: float, name: str) -> tuple[float | None, Choice | None]:
    """Return the seconds that a search takes, with the costs of graphlets, and what it finds."""
    _, known = _partition(layers)
    limit = _between(known.problem, share)
    _, partition = _partition(layers)
    partition.problem.limit = limit
    began = time.perf_counter()
    try:
        choice = OPTIMIZERS[name](partition.problem)
    except TrellisError:
        return None, None
    return time.perf_counter() - began, choice


class _Lines:
    """Seconds, memory and plans looked at of all searches, place by place."""

    def __init__(self) -> None:
        self.seconds: dict[str, list[float | None]] = {name: [] for name in SEARCHES}
        self.held: dict[str, list[float | None]] = {name: [] for name in SEARCHES}
        self.looked_at: dict[str, list[float | None]] = {name: [] for name in SEARCHES}
        for name in SEARCHES:
            _searched(_layers(4), 0.5, name)

    def search(self, what: str, layers: Sequence[int], share: float) -> None:
        for name in SEARCHES:
            step(f"{what}: {name}")
            seconds, choice = _searched(layers, share, name)
            self.seconds[name].append(seconds)
            self.held[name].append(None if choice is None else float(choice.held * NODE * len(layers)))
            self.looked_at[name].append(None if choice is None else float(choice.looked_at))

    def ratio(self, one: str, other: str, lines: dict[str, list[float | None]] | None = None) -> float:
        """Return how many times as much one search takes as another, at most."""
        lines = self.seconds if lines is None else lines
        pairs = zip(lines[one], lines[other], strict=True)
        return max((a / b for a, b in pairs if a is not None and b), default=float("nan"))


def _searches(quick: bool, large: bool) -> list[Table]:
    """Vary the events per window, and its length with uneven layers."""
    sizes = [4, 6] if quick else [8, 10, 12, 14, 16] + ([18, 20] if large else [])
    tables: list[Table] = []
    for part, what, uneven in (("a", "events per window", False), ("b", "length of windows, uneven layers", True)):
        lines = _Lines()
        for size in sizes:
            lines.search(f"Figure 15({part}), {size}", _layers(size, uneven=uneven), 0.5)
        faster = lines.ratio("exhaustive", "bnb")
        tables += [
            Figure(
                f"Figure 15({part}): seconds of the search, by {what}, FT", [],
                [
                    claim(
                        "branch and bound is up to 100 times as fast as exhaustive search, greedy up to 3 times as "
                        "fast again", faster >= 30,
                        f"bnb is up to {times(faster)} as fast as exhaustive, bnb-paper "
                        f"{times(lines.ratio('exhaustive', 'bnb-paper'))}, greedy "
                        f"{times(lines.ratio('exhaustive', 'greedy'))}",
                    )
                ],
                setting="layers", places=sizes, lines=lines.seconds,
            ),
            Figure(
                f"Figure 16({part}): memory of the search, by {what}, FT", [],
                [
                    f"{NODE} bytes a graphlet of each plan held. "
                    + claim(
                        "branch and bound holds up to 12 times less than exhaustive search",
                        lines.ratio("exhaustive", "bnb", lines.held) >= 12,
                        "our exhaustive search holds one plan at a time. It looked at up to "
                        f"{times(lines.ratio('exhaustive', 'bnb', lines.looked_at))} as many plans as bnb did "
                        "partial plans",
                    )
                ],
                setting="layers", places=sizes, unit="B", lines=lines.held,
            ),
        ]  # fmt: skip
    return tables


def _executed(given: Any, partition: CetPartition, choice: Choice, quick: bool) -> tuple[float, int]:
    """Return the seconds that h-cet takes by a plan, from the graph on, and what it stored."""
    cet = cet_graph_of(given)

    def work() -> int:
        return sum(len(found) for found in execute(given, cet, [(partition, choice)]))

    timing = best_of("h-cet by a plan", work, quick=quick)
    given.meter.held = given.meter.peak = 0
    work()
    assert given.meter.peak == choice.memory, "what is stored is not what was expected"
    return timing.wall, given.meter.peak


def _quality(quick: bool, large: bool) -> list[Table]:
    """Run h-cet by the plans of the searches."""
    sizes = [5] if quick else [10, 11, 12, 13] + ([14] if large else [])
    names = ("exhaustive", "bnb", "bnb-paper", "greedy")
    seconds: dict[str, list[float | None]] = {name: [] for name in names}
    memory: dict[str, list[float | None]] = {name: [] for name in names}
    steps: dict[str, list[float]] = {name: [] for name in names}
    for size in sizes:
        layers = _layers(size, uneven=True)
        for name in names:
            _, choice = _searched(layers, 0.35, name)
            assert choice is not None
            took, stored = _executed(*_partition(layers), choice, quick)
            seconds[name].append(took)
            memory[name].append(stored)
            steps[name].append(choice.cpu)
    slower = max((g or 0.0) / (b or 1.0) for g, b in zip(seconds["greedy"], seconds["bnb"], strict=True))
    more = max(g / b for g, b in zip(steps["greedy"], steps["bnb"], strict=True))
    note = claim(
        "a greedy plan is up to 2.8 times slower than an optimal one, and leaves memory unused",
        slower >= 1.5,
        f"up to {times(slower)} slower on the clock, {times(more)} in expected steps",
    )
    where = {"setting": "layers", "places": sizes}
    return [
        Figure("Figure 17(a): seconds of h-cet by the plans found, FT", [], [note], lines=seconds, **where),
        Figure("Figure 17(b): stored partial trends by the plans found, FT", [], unit="B", lines=memory, **where),
    ]


def _limits(quick: bool, large: bool) -> list[Table]:
    """Vary the memory limit, and the compatibility of events."""
    size = 6 if quick else (17 if large else 15)
    shares = [0.2, 0.8] if quick else [0.1, 0.3, 0.5, 0.7, 0.9]
    by_limit, by_width = _Lines(), _Lines()
    for share in shares:
        by_limit.search(f"Figure 19(a), {share}", _layers(size, uneven=True), share)
    widths = [2, 3] if quick else [3, 4, 6, 9, 15]
    events = 12 if quick else 45
    for width in widths:
        by_width.search(f"Figure 19(b), {width}", _layers(events // width, width), 0.5)
    first, last = (by_width.seconds["exhaustive"][i] or 0.0 for i in (0, -1))
    flat = [s for s in by_limit.seconds["exhaustive"] if s is not None]
    return [
        Figure(
            "Figure 19(a): seconds of the search, by memory limit, FT", [],
            [
                claim(
                    "exhaustive search is indifferent to the limit, branch and bound 100 times as fast",
                    max(flat) < 2 * min(flat) and by_limit.ratio("exhaustive", "bnb") >= 30,
                    f"exhaustive varies {times(max(flat) / min(flat))}; bnb is up to "
                    f"{times(by_limit.ratio('exhaustive', 'bnb'))} as fast, bnb-paper "
                    f"{times(by_limit.ratio('exhaustive', 'bnb-paper'))}",
                )
            ],
            setting="limit between least and most", places=[f"{share:.0%}" for share in shares],
            lines=by_limit.seconds,
        ),
        Figure(
            "Figure 19(b): seconds of the search, by compatibility, FT", [],
            [
                claim(
                    "all searches get quicker as graphlets grow and their number falls", first > last,
                    f"exhaustive takes {first:.3g} seconds at first and {last:.3g} at last",
                )
            ],
            setting="compatible events", places=widths, lines=by_width.seconds,
        ),
    ]  # fmt: skip


def _space(quick: bool, large: bool) -> list[Table]:
    """Measure the best plan of each number of graphlets, and two graphlets of uneven sizes."""
    size = 5 if quick else (14 if large else 13)
    layers = _layers(size)
    _, known = _partition(layers)
    problem = known.problem
    seconds: list[float | None] = []
    memory: list[float | None] = []
    for number in range(size):
        best = min(combinations(range(1, size), number), key=lambda cuts: problem.cost(cuts)[0])
        took, stored = _executed(*_partition(layers), problem.chosen(best), quick)
        seconds.append(took)
        memory.append(stored)
    falls = all((a or 0.0) >= (b or 0.0) for a, b in pairwise(memory))
    quickest = min(range(size), key=lambda i: seconds[i] or 0.0)
    grows = (seconds[-1] or 0.0) / (seconds[quickest] or 1.0)
    across = claim(
        "with the number of graphlets memory falls and time grows 7 times",
        falls and quickest == 0 and grows > 2,
        f"memory falls {(memory[0] or 0.0) / (memory[-1] or 1.0):,.0f} times; time is least with {quickest + 1} "
        f"graphlets and grows {times(grows)} from there on",
    )
    cuts = list(range(size // 2, 0, -1))
    within = [_executed(*_partition(layers), problem.chosen((cut,)), quick) for cut in cuts]
    grow, slow = within[-1][1] / within[0][1], within[-1][0] / within[0][0]
    uneven = claim(
        "with uneven sizes memory grows a hundred times, time hardly (1.03 times)",
        grow > 30 and slow < 1.5,
        f"memory grows {grow:,.0f} times, time {times(slow)}",
    )
    places = list(range(1, size + 1))
    ratios = [f"{(size - cut) / cut:.3g}" for cut in cuts]
    took, bytes_ = ([pair[i] for pair in within] for i in (0, 1))
    one, two = {"setting": "graphlets", "places": places}, {"setting": "ratio of sizes", "places": ratios}
    return [
        Figure("Figure 20(a): seconds of h-cet, by graphlets", [], [across], lines={"h-cet": seconds}, **one),
        Figure("Figure 20(a): memory of h-cet, by graphlets", [], unit="B", lines={"h-cet": memory}, **one),
        Figure("Figure 20(b): seconds of h-cet, by ratio of sizes", [], [uneven], lines={"h-cet": took}, **two),
        Figure("Figure 20(b): memory of h-cet, by ratio of sizes", [], unit="B", lines={"h-cet": bytes_}, **two),
    ]  # fmt: skip


# --- How far from the optimum ---------------------------------------------------------------------------------------


def _gaps(quick: bool) -> Table:
    """Search plans of random graphs small enough to look at every plan."""
    problems = list(_random_problems(3 if quick else 60))
    found: dict[str, list[float]] = {name: [] for name in SEARCHES}
    for problem, limit in problems:
        problem.limit = limit
        best = OPTIMIZERS["exhaustive"](problem)
        for name in SEARCHES:
            found[name].append(OPTIMIZERS[name](problem).cpu / best.cpu)
    rows = []
    for name, gaps in found.items():
        missed = sum(gap > 1 for gap in gaps)
        told = f"optimum missed {missed} times, {sum(gaps) / len(gaps):.3f} times its steps on average, at most"
        targets = [at_most(1, "times the optimum", max(gaps))] if name in ("bnb", "exhaustive") else []
        rows.append(Row(f"{name}: {told} {max(gaps):.3g}", targets=targets))
    return Table(
        f"Gap to the optimum, in expected steps, on {len(problems):,} random graphs and limits", rows,
        [
            claim(
                "branch and bound returns an optimal plan (Theorem 6)", max(found["bnb-paper"]) == 1,
                f"as printed it takes up to {times(max(found['bnb-paper']))} the steps of the optimum",
            )
        ],
    )  # fmt: skip


def _random_problems(number: int) -> Iterator[tuple[Problem, int]]:
    makers: list[Callable[[int], list[Any]]] = [
        lambda seed: workload("checks", checks(np.random.default_rng(seed).integers(1, 6, 9).tolist()), "", 1),
        lambda seed: workload("kite", generated("kite", 60, accounts=20, rate=60.0, seed=seed), "", 1),
        lambda seed: workload("stock", generated("stock", 40, companies=1, rate=1.0, seed=seed), "", 1),
    ]
    for seed in range(number):
        for make in makers:
            given = input_of(make(seed)[0], "h-cet")
            for partition in partitions(given, cet_graph_of(given)):
                problem = partition.problem
                if 3 <= len(problem.optional) <= 11:
                    yield from ((problem, _between(problem, share)) for share in (0.2, 0.5, 0.8))
