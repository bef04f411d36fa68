"""Every construction gives the same ABI graph, the same edges as any other way, and the pre-filter its ends."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

import trellis
from tests.compare import detect
from tests.papers.cases import CONSTRUCTIONS, named_cases
from tests.profiles import examples
from tests.strategies import Case
from trellis.errors import OverflowInCondition, TrellisError, UsageError
from trellis.operators.trends.graph import EventGraph, build_graph
from trellis.papers.abi.event_graph import constructed_graph, source_ranges
from trellis.papers.abi.graph import build, values_of
from trellis.papers.abi.window import AbiWindow
from trellis.papers.contract import Bounds

FIELDS = ("vertices", "vertex", "offsets", "held", "first", "last")
TABLE_2 = [32, 7, 15, 35, 40, 17]  # the ABI paper's
ABOVE_DOUBLE = "PATTERN E+ e[] WHERE e[i].attr > e[i-1].attr * 2"


def of_values(attr: list[int], text: str = ABOVE_DOUBLE, **options: Any) -> Any:
    numbers = np.arange(len(attr))
    table = pa.table({"ts": numbers, "id": numbers + 1, "attr": pa.array(attr, pa.int64())})
    return trellis.query(text).detect(table, time="ts", event_id="id", **options)


def assert_equal(one: EventGraph, other: EventGraph) -> None:
    for name in ("offsets", "successors", "latest"):
        assert np.array_equal(getattr(one, name), getattr(other, name)), name


@examples(60)
@given(named_cases(most=16, clauses=False))
def test_constructions_agree(drawn: Case) -> None:
    try:
        operator = detect(drawn).operator
        values = values_of(operator.plan, operator.events)
        usual = build_graph(operator.plan, operator.events)
    except (UsageError, OverflowInCondition):
        return
    for construction in CONSTRUCTIONS:
        assert_equal(constructed_graph(operator.plan, operator.events, construction, 2), usual)
    for source_range in source_ranges(operator.events):
        first, *others = (build(values, *source_range, construction, 3) for construction in CONSTRUCTIONS)
        for other in others:
            for name in FIELDS:
                assert np.array_equal(getattr(first, name), getattr(other, name)), name
    work = detect(drawn, algorithm="anchor").operator.algorithm_input()
    for task in range(len(work.tasks)):
        window = AbiWindow(work, values, task)
        assert np.array_equal(window.starts, work.may_start(task))
        assert np.array_equal(window.ends, work.may_end(task))


@pytest.mark.parametrize("construction", CONSTRUCTIONS)
def test_the_example_of_the_paper(construction: str) -> None:
    sizes, stored = [], []
    for number in (1, 2, 5, 6):
        operator = of_values(TABLE_2[:number]).operator
        values = values_of(operator.plan, operator.events)
        abi = build(values, 0, number, number, construction, 1)
        sizes.append(abi.vertices)
        stored.append(abi.stored)
    assert sizes == [2, 3, 6, 7]
    # After all six, the events lead to 2, 6, 5, 1 and 1 of the seven vertices, and the last one to 4.
    assert (abi.last - abi.first).tolist() == [3, 6, 5, 2, 1, 4]
    assert stored[-1] >= 21 if construction == "dynamic" else stored[-1] == 6
    found = of_values(TABLE_2, algorithm="anchor", construction=construction).to_arrow()
    assert sorted(found["events"].to_pylist()) == [[1], [2, 3, 4], [2, 3, 5], [2, 4], [2, 5], [2, 6]]


def test_large_parts_are_built_on_threads() -> None:
    rng = np.random.default_rng(5)
    operator = of_values(rng.integers(0, 5000, 3000).tolist()).operator
    values = values_of(operator.plan, operator.events)
    usual = build(values, 0, 3000, 3000, "dynamic-range", 1)
    for threads in (1, 2, 3, 7):
        other = build(values, 0, 3000, 3000, "parallel", threads, bounds=Bounds(few=10))
        for name in FIELDS:
            assert np.array_equal(getattr(usual, name), getattr(other, name)), (threads, name)


def test_keys_that_are_many_more_than_events_of_a_window() -> None:
    n = 40_000
    table = pa.table({"ts": np.arange(n), "id": np.arange(n), "src": np.arange(n), "dest": np.arange(n) + 1})
    query = trellis.query("PATTERN E+ e[] WHERE e[i].src = e[i-1].dest WITHIN 20 SLIDE 20")
    operator = query.detect(table, time="ts", event_id="id").operator
    assert_equal(constructed_graph(operator.plan, operator.events, "dynamic", 1), operator.graph)


def test_too_many_edges_are_refused() -> None:
    operator = of_values(list(range(40))).operator
    values = values_of(operator.plan, operator.events)
    assert build(values, 0, 40, 40, "dynamic-range", 1, bounds=Bounds(to_edges=100)).vertices > 0
    with pytest.raises(TrellisError, match=r"more than 100 to-edges(?s:.*)dynamic-range"):
        build(values, 0, 40, 40, "dynamic", 1, bounds=Bounds(to_edges=100))
