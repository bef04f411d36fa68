"""The CET paper's algorithms: each finds what the oracle does in the modes it permits, and stores what it says."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import trellis
from tests.compare import OVERFLOW, detect, expected, plain_rows, rows_of
from tests.papers.cet_cases import detected, input_of, run
from tests.profiles import examples
from tests.strategies import Case, case
from trellis.errors import OverflowInCondition, TrellisError, UsageError
from trellis.language.syntax import Report, Select, WithinClause
from trellis.papers.contract import Bounds
from trellis.papers.registry import CET

BOTH = tuple(name for name, named in CET.items() if Report.UNEXTENDABLE in named.reports)
KITES = [(1, "A", "B"), (2, "B", "C"), (4, "B", "D"), (5, "D", "E"), (6, "D", "F"), (7, "E", "G")]  # Figure 2
Q1 = "PATTERN Check+ c[] WHERE c.destination = NEXT(c).source REPORT maximal WITHIN 100 SLIDE 100"


def kites() -> pa.Table:
    time, source, destination = zip(*KITES, strict=True)
    return pa.table({"time": time, "source": source, "destination": destination})


@pytest.mark.parametrize("algorithm", CET)
def test_figure_2_of_the_paper(algorithm: str) -> None:
    trends = trellis.query(Q1).detect(kites(), event_id="time", algorithm=algorithm)
    assert sorted(map(tuple, trends.to_arrow()["events"].to_pylist())) == [(1, 2), (1, 4, 5, 7), (1, 4, 6)]


@pytest.mark.parametrize("algorithm", CET)
def test_an_edge_with_a_detour_is_left_out(algorithm: str) -> None:
    prices = pa.table({"time": [0, 1, 2, 3], "price": [1, 5, 3, 4]})
    query = trellis.query("PATTERN S+ s[] WHERE s[i].price > s[i-1].price REPORT maximal")
    found = query.detect(prices, event_id="time", algorithm=algorithm).to_arrow()["events"].to_pylist()
    assert sorted(found) == [[0, 1], [0, 2, 3]]


def in_windows(drawn: Case, report: Report) -> Case:
    """Let a query be one that the algorithms permit: windows in place of spans."""
    within = drawn.query.within
    if within is not None and within.slide is None:
        within = WithinClause(within.size, within.size)
    return replace(drawn, query=replace(drawn.query, report=report, select=Select.ANY, within=within))


def cases(report: Report) -> Any:
    return case(most=8, clauses=False).map(lambda drawn: in_windows(drawn, report))


def assert_equal(drawn: Case, algorithms: Any) -> None:
    """Compare the rows of algorithms with the oracle's; they come in any order."""
    answer = expected(drawn)
    for algorithm in algorithms:
        if answer == OVERFLOW:
            with pytest.raises(OverflowInCondition):
                rows_of(detect(drawn, algorithm=algorithm))
        else:
            found = rows_of(detect(drawn, algorithm=algorithm))
            assert sorted(map(str, plain_rows(found))) == sorted(map(str, plain_rows(answer.rows)))


QUIET = examples(25)


@QUIET
@given(cases(Report.MAXIMAL))
def test_maximal_equals_the_oracle(drawn: Case) -> None:
    assert_equal(drawn, CET)


@QUIET
@given(cases(Report.UNEXTENDABLE))
def test_unextendable_equals_the_oracle(drawn: Case) -> None:
    assert_equal(drawn, BOTH)


@pytest.mark.slow
@settings(max_examples=300)
@given(st.sampled_from([Report.MAXIMAL, Report.UNEXTENDABLE]).flatmap(lambda r: st.tuples(st.just(r), cases(r))))
def test_many_drawn_queries_equal_the_oracle(drawn: tuple[Report, Case]) -> None:
    assert_equal(drawn[1], CET if drawn[0] is Report.MAXIMAL else BOTH)


def test_which_modes_are_permitted() -> None:
    assert {name: sorted(map(str, named.reports)) for name, named in CET.items()} == {
        "baseline": ["maximal"],
        **{
            name: ["maximal", "unextendable"]
            for name in ("flattened", "sase", "m-cet", "t-cet", "h-cet", "h-cet-unshared")
        },
    }
    with pytest.raises(UsageError, match="takes REPORT maximal only"):
        detected(1, "unextendable", algorithm="baseline")


@pytest.mark.parametrize("algorithm", CET)
def test_batches_are_bounded(algorithm: str) -> None:
    layers = np.repeat(np.arange(6), 3)
    table = pa.table({"time": layers, "id": np.arange(18), "layer": layers})
    query = trellis.query("PATTERN E+ s[] WHERE s[i].layer = s[i-1].layer + 1 REPORT maximal")
    trends = query.detect(table, event_id="id", algorithm=algorithm)
    whole = run(input_of(trends))
    assert len(set(whole)) == 3**6
    assert run(replace(input_of(trends), bounds=Bounds(batch_values=40, batch_rows=5))) == whole


# --- What is stored -------------------------------------------------------------------------------------------------


def chain_of_threes(layers: int) -> Any:
    """Detect in layers of three events, each of which follows all of the layer before: 3^layers trends."""
    layer = np.repeat(np.arange(layers), 3)
    table = pa.table({"time": layer, "id": np.arange(3 * layers), "layer": layer})
    query = trellis.query("PATTERN E+ s[] WHERE s[i].layer = s[i-1].layer + 1 REPORT maximal")
    return lambda algorithm, **options: query.detect(table, event_id="id", algorithm=algorithm, **options)


@pytest.mark.parametrize(
    ("algorithm", "events"),
    [
        ("m-cet", 4),
        ("sase", 12 + 27 + 4),
        ("t-cet", 3 + 9 * 2 + 27 * 3 + 81 * 4),
        ("baseline", 54 * 4 + 2 * 54 * 4),  # before the last event, and after it, with those found twice
        ("flattened", 4 * 12 + 3 * 27 * 2 + 2 * 54 * 3 + 81 * 4),
    ],
)
def test_what_is_stored_is_counted(algorithm: str, events: int) -> None:
    work = input_of(chain_of_threes(4)(algorithm))
    assert len(run(work)) == 81
    assert work.meter.peak == 8 * events
    assert work.meter.held == 0


@pytest.mark.parametrize("algorithm", CET)
def test_a_limit_that_is_met_is_no_limit(algorithm: str) -> None:
    detect_by = chain_of_threes(4)
    work = input_of(detect_by(algorithm))
    run(work)
    peak = work.meter.peak
    again = input_of(detect_by(algorithm, memory_limit=peak))
    assert len(run(again)) == 81
    assert again.meter.peak <= peak
    if not algorithm.startswith("h-cet"):  # these plan anew
        with pytest.raises(TrellisError, match=r"limit|bytes allowed"):
            run(input_of(detect_by(algorithm, memory_limit=peak - 1)))


def test_the_baseline_stops_in_time() -> None:
    work = replace(input_of(chain_of_threes(6)("baseline")), bounds=Bounds(steps=1000))
    with pytest.raises(TrellisError, match="for a window of 18 events this takes more than 1,000 steps"):
        run(work)


@pytest.mark.parametrize("algorithm", ["t-cet", "baseline", "flattened"])
def test_more_than_a_process_should_hold_is_refused(algorithm: str) -> None:
    work = input_of(chain_of_threes(20)(algorithm, max_trends=10**30))
    with pytest.raises(TrellisError, match=r"more than the .*80,000"):
        run(replace(work, bounds=Bounds(references=10_000)))


def test_numbers_that_are_too_large_for_any_memory_are_told() -> None:
    with pytest.raises(TrellisError, match=r"\d\.\de\+42 events, \d\.\de\+4\d bytes"):
        run(input_of(chain_of_threes(84)("t-cet", max_trends=10**60)))
