"""REPORT maximal as a whole: the engine equals the oracle, whichever way the direct successors are found."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

import trellis
from tests.compare import assert_same
from tests.profiles import examples
from tests.strategies import Case, case
from trellis.errors import TrellisError
from trellis.events.adjacency import encode
from trellis.language.parser import parse
from trellis.language.syntax import Report, Select
from trellis.operators.trends.direct import DirectEdges, Method, find_direct
from trellis.plan.sizes import Sizes

SCHEMA = {"time": "int64", "id": "int64", "x": "int64", "y": "double", "k": "string", "m": "string"}
CONDITIONS = {
    "s[i].x > s[i-1].x": Method.BISECTION,
    "s[i].x <= s[i-1].x": Method.BISECTION,
    "s[i].x >= 0.5 * s[i-1].x": Method.BISECTION,
    "s[i].y < s[i-1].x AND s[i].y < s[i-1].y": Method.BISECTION,
    "s[i].k = s[i-1].k": Method.BISECTION,
    "s[i].k = s[i-1].k AND s[i].x > 1.5 * s[i-1].x": Method.BISECTION,
    "s[i].k = s[i-1].m": Method.RETURNS,
    "s[i].k != s[i-1].k": Method.TURNS,
    "s[i].x != s[i-1].x AND s[i].k = s[i-1].k": Method.TURNS,
    "s[i].x > s[i-1].x AND s[i].y < s[i-1].y": Method.SCAN,
    "s[i].x > s[i-1].x AND s[i].y >= s[i-1].x AND s[i].k = s[i-1].k": Method.SCAN,
    "s[i].x >= s[i-1].x - 1 AND s[i].y <= s[i-1].y + 1": Method.REACH,
    "s[i].k != s[i-1].m": Method.REACH,
    "s[i].k = s[i-1].m AND s[i].x > s[i-1].x": Method.REACH,
    "s[i].x + s[i-1].x > 3": Method.BISECTION,
}


def rows_of(rng: np.random.Generator, n: int) -> list[dict[str, Any]]:
    late = int(rng.choice([3, n, 4 * n]))

    def some(values: list[Any]) -> Any:
        return values[int(rng.integers(len(values)))]

    return [
        {
            "time": int(rng.integers(late)),
            "id": i,
            "x": some([0, 1, 2, 3, 4, 5, None]),
            "y": some([0.0, 0.5, 1.0, 2.0, 2.5, 4.0, 7.0, float("nan")]),
            "k": some(["a", "b", "c", None]),
            "m": some(["a", "b", "c", None]),
        }
        for i in range(n)
    ]


@pytest.mark.parametrize("condition", CONDITIONS)
def test_each_way_equals_the_oracle(condition: str) -> None:
    ways = set()
    for seed in range(12):
        rng = np.random.default_rng(seed)
        within = ["", " WITHIN 4", " WITHIN 6 SLIDE 3", " WITHIN 5 SLIDE 5"][seed % 4]
        query = parse(f"PATTERN E+ s[] WHERE {condition} REPORT maximal{within}")
        options = {"time": "time", "type": None, "event_id": "id", "params": {}}
        drawn = Case(query, rows_of(rng, int(rng.integers(6, 11))), options, SCHEMA)
        assert_same(drawn)
        ways.add(method_of(condition, drawn.rows))
    assert CONDITIONS[condition] in ways


def method_of(condition: str, rows: list[dict[str, Any]]) -> Method:
    table = pa.Table.from_pylist(rows)
    operator = trellis.query(f"PATTERN E+ s[] WHERE {condition}").detect(table, event_id="id").operator
    adjacency = encode(operator.plan.adjacent, operator.events.columns, operator.events.usable)
    return DirectEdges(operator.events, adjacency).method


def maximal(drawn: Case) -> Case:
    return replace(drawn, query=replace(drawn.query, report=Report.MAXIMAL, select=Select.ANY))


@examples(60)
@given(case(most=9).map(maximal))
def test_drawn_queries_equal_the_oracle(drawn: Case) -> None:
    assert_same(drawn)


def table_of(n: int, seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "time": np.sort(rng.integers(0, n, n)),
            "id": np.arange(n),
            "x": rng.integers(0, 40, n),
            "y": rng.integers(0, 40, n),
            "k": rng.integers(0, 4, n),
            "m": rng.integers(0, 4, n),
        }
    )


def listed(text: str, table: pa.Table, **options: Any) -> list[Any]:
    operator = trellis.query(text).detect(table, event_id="id", **options).operator
    graph = operator.graph
    return [graph.successors[a:b].tolist() for a, b in zip(graph.offsets[:-1], graph.offsets[1:], strict=True)]


@pytest.mark.parametrize("within", ["", " WITHIN 30", " WITHIN 60 SLIDE 20"])
@pytest.mark.parametrize("condition", [c for c, way in CONDITIONS.items() if way is not Method.REACH])
def test_each_way_equals_reachability(condition: str, within: str) -> None:
    table = table_of(300, 5)
    edges = listed(f"PATTERN E+ s[] WHERE {condition} REPORT maximal{within}", table)
    besides = f"{condition} AND (s[i].id - s[i-1].id) * (s[i].id - s[i-1].id) >= 0"  # always true, and asked of pairs
    assert method_of(besides, table.to_pylist()) is Method.REACH
    text = f"PATTERN E+ s[] WHERE {besides} REPORT maximal{within}"
    assert listed(text, table) == edges
    assert listed(text, table, sizes=Sizes(reach_bytes=1000)) == edges  # a few columns at a time


def test_reachability_that_takes_too_long_is_refused() -> None:
    trends = trellis.query("PATTERN E+ s[] WHERE s[i].k != s[i-1].m REPORT maximal").detect(
        table_of(300, 5), event_id="id", sizes=Sizes(reach_steps=100)
    )
    with pytest.raises(TrellisError, match="takes more than 100 steps"):
        trends.count()


@pytest.mark.parametrize("condition", ["s[i].x > s[i-1].x", "s[i].k != s[i-1].k", "s[i].k = s[i-1].m"])
def test_too_many_direct_edges_are_refused(condition: str) -> None:
    query = trellis.query(f"PATTERN E+ s[] WHERE {condition} REPORT maximal")
    trends = query.detect(table_of(300, 5), event_id="id", sizes=Sizes(graph_edges=100))
    with pytest.raises(TrellisError, match="more than 100 pairs that follow one another directly"):
        _ = trends.operator.graph


def test_the_way_is_told_beforehand() -> None:
    def direct_of(text: str) -> DirectEdges | None:
        operator = trellis.query(text).detect(table_of(9, 1), event_id="id").operator
        return find_direct(operator.plan, operator.events)

    told = direct_of("PATTERN E+ s[] WHERE s[i].k != s[i-1].k REPORT maximal")
    assert told is not None
    assert (told.method, told.complexity) == ("first other values", "n + direct edges")
    assert direct_of("PATTERN E+ s[] WHERE s[i].k != s[i-1].k") is None
    assert direct_of("PATTERN E+ s[] WHERE s[i].k != s[i-1].k SELECT contiguous REPORT maximal") is None


def test_counts_need_no_edges_where_there_are_too_many() -> None:
    n = 3000
    value = np.concatenate([np.arange(n // 2)[::-1], np.arange(n // 2)[::-1] + n])
    table = pa.table({"time": np.arange(n), "id": np.arange(n), "x": value})
    query = trellis.query(
        "PATTERN E+ s[] WHERE s[i].x > s[i-1].x REPORT maximal AGGREGATE COUNT(*), COUNT(s), SUM(s.x)"
    )
    sizes = Sizes(graph_edges=n * n // 4 - 1)
    (row,) = query.detect(table, event_id="id", sizes=sizes).to_arrow().to_pylist()
    assert (row["count"], row["count_s"], row["sum_s_x"]) == (n * n // 4, n * n // 2, int(value.sum()) * n // 2)
