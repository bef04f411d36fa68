"""The structure of the attribute index: vertices, from-edges and to-edges, event by event."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import trellis
from trellis.events.adjacency import encode
from trellis.operators.trends.index import AttributeIndex

VALUES = [32, 7, 15, 35, 40, 17]  # the ABI paper's Table 2
DOUBLED = "PATTERN E+ e[] WHERE e[i].attr > 2 * e[i-1].attr"


def table_of(values: list[Any], **columns: list[Any]) -> pa.Table:
    n = len(values)
    return pa.table({"ts": list(range(n)), "id": list(range(1, n + 1)), "attr": values, **columns})


def index_of(query: str, table: pa.Table) -> AttributeIndex:
    index = trellis.query(query).detect(table, event_id="id").operator.index
    assert index is not None
    return index


def ranges_of(values: list[int]) -> list[tuple[int, int]]:
    """The vertices that splitting [0, 100) under `attr > 2 * prev.attr` leaves, with the paper's mistakes mended."""
    borders = sorted({0, 100, *(2 * v + 1 for v in values if 2 * v + 1 < 100)})
    return list(pairwise(borders))


@pytest.mark.parametrize("count", range(1, 7))
def test_vertices_and_edges_follow_the_papers_table_event_by_event(count: int) -> None:
    values = VALUES[:count]
    index = index_of(DOUBLED, table_of(values))
    vertices = ranges_of(values)
    assert index.vertices == len(vertices)
    offsets, events = index.from_edges(0)
    held = [[values[e] for e in events[a:b]] for a, b in pairwise(offsets)]
    assert held == [[v for v in values if low <= v < high] for low, high in vertices]
    first, last = index.shape.first, index.shape.last
    for event, value in enumerate(values):
        relevant = [i for i, (low, _) in enumerate(vertices) if low > 2 * value]
        assert list(range(first[event], last[event])) == relevant


def test_after_five_events_the_vertices_are_those_of_the_papers_figure() -> None:
    assert ranges_of(VALUES[:5]) == [(0, 15), (15, 31), (31, 65), (65, 71), (71, 81), (81, 100)]
    assert {(31, 35), (35, 65)} < set(ranges_of(VALUES))


def test_the_papers_trends() -> None:
    trends = trellis.query(DOUBLED).detect(table_of(VALUES), event_id="id")
    assert trends.to_arrow()["events"].to_pylist() == [[1], [2, 3, 4], [2, 3, 5], [2, 4], [2, 5], [2, 6]]
    maximal = trellis.query(DOUBLED).detect(table_of(VALUES), event_id="id", report_mode="maximal")
    assert maximal.to_arrow()["events"].to_pylist() == [[1], [2, 3, 4], [2, 3, 5], [2, 6]]


def test_an_equality_has_one_vertex_for_each_value_that_an_event_has() -> None:
    transfers = table_of([0] * 6, src=list("ABBCCA"), dest=list("BACBAB"))  # the paper's Figure 2
    index = index_of("PATTERN E+ e[] WHERE e[i].src = e[i-1].dest", transfers)
    assert (index.kind, index.vertices) == ("key", 3)
    offsets, events = index.from_edges(0)
    assert [events[a:b].tolist() for a, b in pairwise(offsets)] == [[0, 5], [1, 2], [3, 4]]
    follows = [events[offsets[f] : offsets[f + 1]].tolist() for f in index.shape.first]
    assert follows == [[1, 2], [0, 5], [3, 4], [1, 2], [0, 5], [1, 2]]  # of any time; a pass looks at later ones only


COLUMNS: dict[str, Any] = {
    "text": ["b", "a", None, "a\0b", "c", "a\0", ""],
    "number": [3, 1, None, 2, 3, -5, 2**62],
    "double": [0.5, -0.0, 0.0, float("nan"), None, float("inf"), 5e-324],
    "flag": [True, False, None, True, False, False, True],
    "decimal": [None, *map(Decimal, ("1.00", "2.50", "2.50", "-3.00", "7.00", "0.00"))],
    "moment": [v if v is None else datetime(2026, 1, v) for v in (2, 3, 2, None, 9, 1, 5)],
}


@pytest.mark.parametrize("name", list(COLUMNS))
@pytest.mark.parametrize("op", ["=", "!=", "<", "<=", ">", ">="])
def test_ranges_hold_exactly_what_the_condition_allows(name: str, op: str) -> None:
    table = table_of([0] * 7, **{name: COLUMNS[name]})
    trends = trellis.query(f"PATTERN E+ e[] WHERE e[i].{name} {op} e[i-1].{name}").detect(table, event_id="id")
    operator = trends.operator
    index, column = operator.index, operator.events.columns[name]
    plain = [None if v != v else v for v in column.to_pylist()]
    compare = {"=": "__eq__", "!=": "__ne__", "<": "__lt__", "<=": "__le__", ">": "__gt__", ">=": "__ge__"}[op]
    for x in range(7):
        for y in range(7):
            allowed = plain[x] is not None and plain[y] is not None and bool(_call(plain[y], compare, plain[x]))
            assert _in_range(index, x, y) == allowed, (name, op, plain[x], plain[y])


def _call(a: Any, method: str, b: Any) -> Any:
    return getattr(a, method)(b)


def _in_range(index: Any, x: int, y: int) -> bool:
    shape, place = index.shape, index.shape.place[y]
    if place < 0:
        return False
    first, last = np.atleast_2d(shape.first), np.atleast_2d(shape.last)
    return bool(((first[:, x] <= place) & (place < last[:, x])).any())


@pytest.mark.parametrize("within", ["", "WITHIN 5", "WITHIN 8 SLIDE 2", "WITHIN 600 SLIDE 100"])
@pytest.mark.parametrize(
    "condition",
    ["e[i].key = e[i-1].to", "e[i].attr > e[i-1].attr", "e[i].key != e[i-1].to", "e[i].key = e[i-1].to AND [world]"],
)
def test_neighbours_are_those_of_the_edges(condition: str, within: str) -> None:
    n = 2_000 if "600" in within else 60
    rng = np.random.default_rng(n)
    columns = {name: pa.array(rng.integers(0, 9, n), mask=rng.random(n) < 0.1) for name in ("key", "to", "attr")}
    ts = np.sort(rng.integers(0, n, n))  # some at the same time
    table = pa.table({"ts": ts, "id": np.arange(n), "world": rng.integers(0, 2, n), **columns})
    operator = trellis.query(f"PATTERN E+ e[] WHERE {condition} {within}").detect(table, event_id="id").operator
    index, graph, until = operator.index, operator.graph, operator.events.until
    assert index is not None
    degrees = np.diff(graph.offsets)
    followed = index.events.nearest < until  # what lies beyond is a neighbour of no window
    assert (followed == (degrees > 0)).all()
    preceded = (index.events.latest >= 0) & (until[index.events.latest] > np.arange(n))
    assert (preceded == (graph.latest >= 0)).all()


def test_an_index_takes_at_most_64_bytes_an_event() -> None:
    n = 20_000
    rng = np.random.default_rng(1)
    table = pa.table({"ts": np.arange(n), "id": np.arange(n), "attr": rng.random(n), "key": rng.integers(0, 99, n)})
    for condition in ("e[i].attr > e[i-1].attr", "e[i].key = e[i-1].key", "e[i].key != e[i-1].key"):
        assert index_of(f"PATTERN E+ e[] WHERE {condition}", table).nbytes <= 64 * n


def test_codes_agree_with_edges_for_a_gap_in_time() -> None:
    table = table_of([0] * 5)
    trends = trellis.query("PATTERN E+ e[] WHERE e[i].ts - e[i-1].ts <= 2").detect(table, event_id="id")
    operator = trends.operator
    assert not encode(operator.plan.adjacent, operator.events.columns, operator.events.usable).residual
    assert trends.to_arrow()["events"].to_pylist() == [
        [1, 2, 3, 4, 5],
        [1, 2, 3, 5],
        [1, 2, 4, 5],
        [1, 3, 4, 5],
        [1, 3, 5],
    ]
