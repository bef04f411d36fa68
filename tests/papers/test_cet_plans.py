"""H-CET: where a graph may be cut, plans that are optimal and fit the limit, and graphlets that windows share."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import trellis
from tests.papers.cet_cases import detected, input_of, run
from tests.profiles import examples
from trellis.kernels.papers.cet.cuts import COSTS, GROWN, KEPT, UPDATES, VISITS
from trellis.papers.cet.cet_graph import cet_graph_of
from trellis.papers.cet.graphlets import CetPartition, partitions
from trellis.papers.cet.h_cet import explain
from trellis.papers.cet.optimizer import OPTIMIZERS, TooLarge
from trellis.papers.cet.plans import NoPlan, PlannedWindow, Problem

SEEDS = st.integers(0, 10**6)
REPORTS = st.sampled_from(["maximal", "unextendable"])
QUIET = examples(40)
LIKE_EXHAUSTIVE = ("auto", "bnb", "exhaustive")


# --- Cuts -----------------------------------------------------------------------------------------------------------


def pieces_of(trends: Any) -> list[CetPartition]:
    work = input_of(trends)
    return list(partitions(work, cet_graph_of(work)))


def may_be_cut(graph: Any, begin: int, end: int, cut: int) -> bool:
    """Whether edges over a cut run only from events without successor before it to such without predecessor behind."""
    edges = [(x, int(y)) for x in range(begin, end) for y in graph.successors[graph.offsets[x] : graph.offsets[x + 1]]]
    over = [(x, y) for x, y in edges if x < cut <= y]
    return not any((x == a and b < cut) or (y == b and a >= cut) for x, y in over for a, b in edges)


@QUIET
@given(SEEDS, REPORTS)
def test_pieces_lie_between_all_places_that_may_be_cut(seed: int, report: str) -> None:
    trends = detected(seed, report, algorithm="h-cet")
    work = input_of(trends)
    for partition in pieces_of(trends):
        lo, hi = work.tasks.lo[partition.tasks], work.tasks.hi[partition.tasks]
        begin, end = int(lo.min()), int(hi.max())
        times = work.events.times
        wanted = {
            cut
            for cut in range(begin + 1, end)
            if times[cut - 1] < times[cut] and may_be_cut(work.graph, begin, end, cut)
        }
        assert set(partition.bounds.tolist()) == wanted | set(lo.tolist()) | set(hi.tolist())


def test_the_papers_own_rule_would_lose_a_trend() -> None:
    """A to B, B to C, C to D, then E to C, C to F: cut after the third, as Definition 6 allows, (1, 2, 5) is lost."""
    table = pa.table({"time": range(1, 6), "src": list("ABCEC"), "dest": list("BCDCF")})
    query = trellis.query("PATTERN E+ s[] WHERE s[i].src = s[i-1].dest REPORT maximal")
    trends = query.detect(table, event_id="time", algorithm="h-cet")
    (partition,) = pieces_of(trends)
    assert partition.bounds.tolist() == [0, 1, 5]
    assert sorted(trends.to_arrow()["events"].to_pylist()) == [[1, 2, 3], [1, 2, 5], [4, 5]]


# --- Plans ----------------------------------------------------------------------------------------------------------


def with_limit(problem: Problem, share: float) -> Problem:
    """Return the problem with a limit between the least memory of a plan and that of the coarsest one."""
    least, most = problem.smallest, problem.cost(tuple(sorted(problem.forced)))[1]
    problem.limit = int(least + share * (most - least))
    return problem


@QUIET
@given(SEEDS, REPORTS, st.floats(0, 1))
def test_branch_and_bound_finds_what_exhaustive_search_does(seed: int, report: str, share: float) -> None:
    for partition in pieces_of(detected(seed, report, most=20, algorithm="h-cet")):
        if len(partition.problem.optional) > 12:
            continue
        problem = with_limit(partition.problem, share)
        best = OPTIMIZERS["exhaustive"](problem)
        for name, search in OPTIMIZERS.items():
            found = search(problem)
            assert found.memory <= problem.limit
            assert (found.cpu, found.memory) == problem.cost(found.cuts)
            assert found.cpu >= best.cpu
            if name in LIKE_EXHAUSTIVE:
                assert found.cpu == best.cpu


def made_up(seed: int) -> Problem:
    """Make a problem of any costs that obey what real ones do: a longer graphlet stores more than its parts."""
    rng = np.random.default_rng(seed)
    number = int(rng.integers(1, 9))
    borders = sorted({0, number, *rng.integers(0, number + 1, int(rng.integers(0, 4))).tolist()})
    windows = []
    for width in range(1, len(borders)):
        if width == 1 or rng.random() < 0.5:
            windows += [(borders[i], borders[i + width]) for i in range(len(borders) - width)]
    kept = rng.integers(1, 20, (number, number)).astype(float)
    for length in range(2, number + 1):
        for first in range(number - length + 1):
            stop = first + length - 1
            parts = max(kept[first, cut] + kept[cut + 1, stop] for cut in range(first, stop))
            kept[first, stop] = parts + rng.integers(0, 20)
    cpu = rng.integers(1, 200, (number, number)).astype(float)

    def costs_from(first: int, stop: int) -> np.ndarray:
        costs = np.zeros((stop - first, COSTS))
        costs[:, UPDATES], costs[:, KEPT] = cpu[first, first:stop], kept[first, first:stop]
        costs[:, GROWN] = kept[first, first:stop] * 2
        return costs

    made = [PlannedWindow(a, b, int(rng.integers(1, 9)), 3.0**number, 4.0) for a, b in sorted(set(windows))]
    return Problem(rng.integers(1, 9, number).tolist(), borders[1:-1], made, costs_from, 10**9)


@QUIET
@given(SEEDS, st.floats(0, 1))
def test_made_up_problems_with_windows_that_overlap(seed: int, share: float) -> None:
    problem = with_limit(made_up(seed), share)
    best = OPTIMIZERS["exhaustive"](problem)
    assert OPTIMIZERS["bnb"](problem).cpu == best.cpu
    assert OPTIMIZERS["bnb-paper"](problem).cpu >= best.cpu
    assert OPTIMIZERS["greedy"](problem).memory <= problem.limit


def test_the_papers_search_misses_the_optimum_where_pieces_are_uneven() -> None:
    """Pieces of 3, 1, 4 and 1 events and room for 3 + 1 | 4 | 1, which Definition 8 does not call nearly balanced."""
    kept = {(0, 1): 20, (1, 2): 2, (2, 3): 30, (3, 4): 2, (0, 2): 24, (1, 3): 40, (2, 4): 60, (0, 3): 90, (1, 4): 80}

    def costs_from(first: int, stop: int) -> np.ndarray:
        costs = np.zeros((stop - first, COSTS))
        for row, end in zip(costs, range(first + 1, stop + 1), strict=True):
            row[[KEPT, GROWN, UPDATES]] = kept.get((first, end), 200)
            row[VISITS] = 100
            row[UPDATES] -= 50 * ((first, end) == (0, 2))
        return costs

    problem = Problem([3, 1, 4, 1], [], [PlannedWindow(0, 4, 0, 3.0**3, 3.0)], costs_from, 8 * 57)
    assert {name: search(problem).cuts for name, search in OPTIMIZERS.items()} == {
        "auto": (2, 3), "bnb": (2, 3), "exhaustive": (2, 3), "bnb-paper": (1, 2, 3), "greedy": (1, 2, 3),
    }  # fmt: skip


def test_searches_that_would_take_too_long() -> None:
    table = pa.table({"time": np.arange(450), "x": np.arange(450)})
    query = trellis.query("PATTERN E+ s[] WHERE s[i].x = s[i-1].x + 1 REPORT maximal")
    trends = query.detect(table, algorithm="h-cet")
    (partition,) = pieces_of(trends)
    assert len(partition.problem) == 450
    with pytest.raises(TooLarge, match=r"450 atomic graphlets .* have 449 cuts to choose from"):
        OPTIMIZERS["exhaustive"](partition.problem)
    assert OPTIMIZERS["auto"](partition.problem).looked_at == 1
    assert len(run(input_of(trends))) == 1


# --- The limit ------------------------------------------------------------------------------------------------------


@QUIET
@given(SEEDS, REPORTS, st.integers(8, 400), st.sampled_from(sorted(OPTIMIZERS)))
def test_the_memory_limit_is_honoured(seed: int, report: str, limit: int, name: str) -> None:
    wanted = run(input_of(detected(seed, report, most=10, algorithm="m-cet")))

    def found_within(limit: int) -> None:
        options = {"algorithm": "h-cet", "memory_limit": limit, "optimizer": name}
        work = input_of(detected(seed, report, most=10, **options))
        assert run(work) == wanted
        assert work.meter.peak <= limit
        assert work.meter.held == 0

    refused: NoPlan | None = None
    try:
        found_within(limit)
    except NoPlan as error:
        refused = error
    if refused is not None:
        assert limit < refused.smallest
        assert f"smallest limit that one fits is {refused.smallest:,} bytes" in str(refused)
        found_within(refused.smallest)
        with pytest.raises(NoPlan):
            found_within(refused.smallest - 1)


def test_where_atomic_graphlets_do_not_fit_cuts_may_be_anywhere() -> None:
    table = pa.table({"time": np.arange(30), "x": np.arange(30) % 7 * 4 + np.arange(30) // 5})
    query = trellis.query("PATTERN E+ s[] WHERE s[i].x > s[i-1].x REPORT maximal")
    free = query.detect(table, algorithm="h-cet")
    (partition,) = pieces_of(free)
    assert len(partition.problem) == 2
    wanted = run(input_of(free))
    longest = max(len(events) for _, events in wanted)
    for limit in (8 * (30 + longest), 400, 600):
        work = input_of(query.detect(table, algorithm="h-cet", memory_limit=limit))
        assert run(work) == wanted
        assert work.meter.peak <= limit < partition.problem.smallest
        assert "1 of which are cut at any time" in explain(work)["atomic_graphlets"]
    with pytest.raises(NoPlan, match=f"is {8 * (30 + longest)} bytes"):
        run(input_of(query.detect(table, algorithm="h-cet", memory_limit=8 * (30 + longest) - 1)))


@QUIET
@given(SEEDS, REPORTS)
def test_what_is_expected_is_what_is_measured(seed: int, report: str) -> None:
    work = input_of(detected(seed, report, algorithm="h-cet"))
    run(work)
    told = explain(work)
    expected = int(told["expected_memory"].split()[0].replace(",", "")) if told else 0
    assert work.meter.peak == expected


# --- Windows that share graphlets -----------------------------------------------------------------------------------


def layers(number: int, window: str) -> Any:
    layer = np.repeat(np.arange(number), 2)
    table = pa.table({"time": layer, "id": np.arange(2 * number), "layer": layer})
    query = trellis.query(f"PATTERN E+ s[] WHERE s[i].layer = s[i-1].layer + 1 REPORT maximal {window}")
    return query.detect(table, event_id="id", algorithm="h-cet")


def test_each_graphlet_is_worked_on_once() -> None:
    trends = layers(60, "WITHIN 12 SLIDE 3")
    work = input_of(trends)
    found = run(work)
    assert len(found) == trends.count()
    (partition,) = pieces_of(trends)
    borders = {0, 120, *range(0, 120, 6)}
    assert borders.issubset(partition.bounds.tolist())
    choice = OPTIMIZERS["auto"](partition.problem)
    assert work.meter.facts["graphlets"] == len(choice.cuts) + 1
    assert len(work.tasks) == 23  # windows, of four graphlets each but for those at both ends


def test_windows_store_only_what_they_hold() -> None:
    few, many = (input_of(layers(number, "WITHIN 8 SLIDE 4")) for number in (16, 160))
    for work in (few, many):
        run(work)
    assert few.meter.peak == many.meter.peak


def test_what_explain_tells() -> None:
    told = explain(input_of(layers(6, "")))
    assert set(told) == {"optimizer", "atomic_graphlets", "plan", "expected_cpu", "expected_memory"}
    assert told["atomic_graphlets"] == "6 in 1 partitions"
    sizes = told["plan"].partition("events: ")[2].split(" + ")
    assert sum(map(int, sizes)) == 12


def test_steps_are_those_of_table_2() -> None:
    """Two layers of two events: edges, partial trends and visits by hand."""
    (partition,) = pieces_of(layers(2, ""))
    problem = partition.problem
    assert problem.cost(()) == (4 + (2 + 4) + 2 * 4, 8 * (2 * 1 + 4 * 2))
    assert problem.cost((1,)) == (2 * (2 + 2 * 4), 8 * (2 + 2 + 2))
