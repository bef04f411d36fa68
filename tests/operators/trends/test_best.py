"""The best trends by ORDER BY and LIMIT, searched without the others: those of the oracle, and of sorting them all."""

from __future__ import annotations

import random
import time
import warnings
from dataclasses import replace
from decimal import Decimal
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import trellis
from tests.compare import assert_same, plain_rows
from tests.strategies import Case, arrow_table
from trellis.engines.local.results import LocalResults
from trellis.errors import OverflowInCondition
from trellis.language.parser import parse
from trellis.operators.trends.best import BestTrends
from trellis.operators.trends.links import Links, links_by_index, links_of
from trellis.operators.trends.operator import TrendOperator
from trellis.plan.sizes import Sizes

KEYS = [
    "LENGTH", "SUM(s.x)", "SUM(s.y)", "SUM(s.d)", "SUM(s.z)", "SUM(s.h)", "SUM(s.n)", "SUM(s.p)",
    "MIN(s.x)", "MAX(s.y)", "MIN(s.d)", "MAX(s.k)", "MIN(s.z)", "AVG(s.x)", "AVG(s.y)", "AVG(s.z)", "AVG(s.d)",
    "FIRST(s).x", "LAST(s).y", "LAST(s).k", "s[1].y", "s[2].x", "s[3].k",
    "LAST(s).z - FIRST(s).z", "LAST(s).p - FIRST(s).p", "FIRST(s).w - LAST(s).w", "LAST(s).p / FIRST(s).z - 1",
    "FIRST(s).w * LAST(s).w",
]  # fmt: skip
VALUES: dict[str, tuple[str, list[Any]]] = {
    "g": ("string", ["a", "b"]),
    "x": ("int64", [0, 1, 2, 3, 4, 5, -1, -2, None]),
    "w": ("int64", [0, 1, 2, 3, 4, 5, -1, -2]),
    "y": ("double", [0.5, 1.5, 2.0, -1.0, 0.1, 0.2, 0.3, float("nan"), None]),
    "z": ("double", [0.1, 0.2, 0.3, 0.4, 0.7, 1.1, 10.1, 10.2, 10.3]),  # sums that are equal only when rounded
    "p": ("double", [10.0, 11.0, 12.5, 13.0]),
    "h": ("double", [1e300, 1e-300, -1e300, 1e17, 1.0, -1.0, 3.0]),  # sums of 2,000 bits
    "d": ("decimal(10,2)", [*map(Decimal, ("0.10", "1.00", "2.25", "-1.10")), None]),
    "n": ("int64", [2**62, -(2**62), 1, 2, 0, 2**63 - 1, -(2**63)]),  # sums beyond 64 bits
    "k": ("string", ["a", "b", "é", "", None]),
}
CONDITIONS = [
    "s[i].x >= s[i-1].x",
    "s[i].x != s[i-1].x",
    "s[i].z > s[i-1].z",
    "s[i].ts > s[i-1].ts",
    "s[i].w > s[i-1].w",
]


def random_case(seed: int) -> Case:
    """Draw some events, with ties in time and NULLs, and a query with ORDER BY and LIMIT."""
    rng = random.Random(seed)
    n = rng.choice([1, 4, 6, 8, 9, 10])
    rows = [{"ts": rng.randrange(n), "id": i} | {c: rng.choice(v) for c, (_, v) in VALUES.items()} for i in range(n)]
    schema = {"ts": "int64", "id": "int64"} | {name: kind for name, (kind, _) in VALUES.items()}
    keys = [rng.choice(KEYS) + rng.choice(["", " DESC"]) for _ in range(rng.choice([1, 1, 1, 2, 2, 3]))]
    parts = [
        f"PATTERN E+ s[] WHERE {rng.choice(['', '', '[g] AND '])}{rng.choice(CONDITIONS)}",
        rng.choice(["", "", "", "HAVING LENGTH >= 2", "HAVING LENGTH <= 3", "HAVING LENGTH > 1 AND LENGTH < 4"]),
        rng.choice(["", "", "", "SELECT skip-till-next"]),
        f"REPORT {rng.choice(['any', 'any', 'unextendable', 'maximal'])}",
        rng.choice(["", "", "WITHIN 4 SLIDE 2", "WITHIN 3", "WITHIN 5"]),
        f"ORDER BY {', '.join(keys)} LIMIT {rng.choice([0, 1, 2, 3, 5, 10, 30])}",
        rng.choice(["", "PER WINDOW"]) + rng.choice(["", " OFFSET 2"]),
    ]
    return Case(parse(" ".join(parts)), rows, {"time": "ts", "event_id": "id"}, schema)


SEARCHING = Sizes(best_few=-1, best_worth=0, best_steps=1 << 60)  # even where listing would be quicker
LISTING = Sizes(best_worth=1 << 200)  # all trends, which are then sorted


@pytest.fixture
def searched(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Give how many trends each search found, -1 where it could not."""
    found: list[int] = []
    find = BestTrends.find

    def noting(self: BestTrends, *arguments: Any) -> Any:
        batches = find(self, *arguments)
        found.append(-1 if batches is None else sum(map(len, batches)))
        return batches

    monkeypatch.setattr(BestTrends, "find", noting)
    return found


def test_the_best_trends_are_those_of_the_oracle(searched: list[int]) -> None:
    for seed in range(250):
        assert_same(random_case(seed), sizes=SEARCHING)
    assert len(searched) > 170
    assert sum(number > 0 for number in searched) > 100
    assert -1 not in searched


def test_lengths_and_places_that_no_trend_has(searched: list[int]) -> None:
    table = prices(12)
    text = "PATTERN S+ s[] WHERE s[i].x > s[i-1].x HAVING LENGTH {} ORDER BY s[1000000000000].x, LENGTH DESC LIMIT 2"
    for having, number in ((">= 2", 2), (f">= {10**12}", 0), (f"<= {10**12}", 2), ("< 1", 0)):
        found = trellis.query(text.format(having)).detect(table, event_id="id", sizes=SEARCHING)
        assert found.to_arrow().num_rows == number
    assert len(searched) == 4


@pytest.mark.parametrize("values", [1, 30])
def test_batches_are_bounded(values: int) -> None:
    for seed in range(250, 300):
        assert_same(random_case(seed), sizes=replace(SEARCHING, batch_values=values))


@pytest.mark.parametrize(
    "keys", ["LENGTH DESC", "SUM(s.x)", "AVG(s.v) DESC", "MAX(s.v) DESC", "LAST(s).x / FIRST(s).x"]
)
@pytest.mark.parametrize("report", ["any", "unextendable"])
def test_the_best_of_spans_are_those_that_sorting_gives(keys: str, report: str) -> None:
    """Runs of starts are bounded together, in several rounds, and ranks are of the whole input."""
    text = f"PATTERN S+ s[] WHERE s[i].x > s[i-1].x REPORT {report} WITHIN 20 ORDER BY {keys} LIMIT 12 OFFSET 3"
    rows = [
        plain_rows(trellis.query(text).detect(prices(300), event_id="id", sizes=sizes).to_arrow().to_pylist())
        for sizes in (SEARCHING, LISTING)
    ]
    assert rows[0] == rows[1]
    assert len(rows[0]) == 12


# --- Larger ones ------------------------------------------------------------------------------------------------


def prices(n: int, seed: int = 1) -> pa.Table:
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "ts": np.sort(rng.integers(0, n, n)),
            "id": np.arange(n),
            "x": np.round(rng.random(n) * 100, 2),
            "v": pa.array(rng.integers(1, 50, n), mask=rng.random(n) < 0.1),
        }
    )


LARGE = [
    ("LENGTH DESC", 90, 761_532), ("LENGTH, SUM(s.v) DESC", 60, 57_458), ("SUM(s.x) DESC", 60, 57_458),
    ("SUM(s.x)", 60, 57_458), ("MAX(s.v) DESC, LENGTH DESC", 60, 57_458), ("MIN(s.x) DESC", 60, 57_458),
    ("LENGTH, MAX(s.v)", 60, 57_458), ("AVG(s.v)", 60, 57_458), ("AVG(s.x) DESC", 60, 57_458),
    ("LAST(s).x - FIRST(s).x DESC", 60, 57_458),
]  # fmt: skip


@pytest.mark.parametrize(("keys", "events", "count"), LARGE)
def test_the_best_of_many_are_those_that_sorting_gives(
    keys: str, events: int, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = trellis.query(f"PATTERN S+ s[] WHERE s[i].x > s[i-1].x ORDER BY {keys} LIMIT 300 OFFSET 10")
    trends = query.detect(prices(events), event_id="id")
    assert trends.count() == count
    with monkeypatch.context() as patch:
        patch.setattr(TrendOperator, "list", None)  # nothing is listed
        found = plain_rows(trends.to_arrow().to_pylist())
    listed = query.detect(prices(events), event_id="id", sizes=LISTING)
    assert found == plain_rows(listed.to_arrow().to_pylist())


@pytest.mark.parametrize("report", ["any", "unextendable"])
def test_the_longest_of_more_than_can_be_listed(report: str) -> None:
    table = prices(4000)
    text = "PATTERN S+ s[] WHERE s[i].x > s[i-1].x REPORT " + report
    trends = trellis.query(text).detect(table, event_id="id")
    assert trends.count() > 10**50
    trends.operator.graph  # noqa: B018 (built before the clock runs)
    begin = time.thread_time()
    rows = trends.top(10).to_pylist()
    assert time.thread_time() - begin < 1.0
    times, values = table["ts"].to_pylist(), table["x"].to_pylist()
    longest = [1] * 4000
    for i in range(3999, -1, -1):
        behind = [longest[j] for j in range(i + 1, 4000) if times[j] > times[i] and values[j] > values[i]]
        longest[i] = 1 + max(behind, default=0)
    events = [row["events"] for row in rows]
    assert [len(e) for e in events] == [max(longest)] * 10
    assert events == sorted(events)
    assert len({*map(tuple, events)}) == 10
    for trend in events:
        assert all(times[i] < times[j] and values[i] < values[j] for i, j in pairwise(trend))
        assert all(longest[i] == longest[j] + 1 for i, j in pairwise(trend))
    starts = [i for i in range(4000) if longest[i] == max(longest)]
    assert events[0][0] == starts[0]


def test_ranks_of_any_size() -> None:
    table = pa.table({"ts": np.arange(100), "x": np.arange(100), "id": np.arange(100)})
    query = trellis.query(
        "PATTERN S+ s[] WHERE s[i].x > s[i-1].x REPORT any ORDER BY LENGTH DESC, FIRST(s).x DESC LIMIT 3"
    )
    rows = query.detect(table, event_id="id").to_arrow().to_pylist()
    assert [(row["length"], row["rank"]) for row in rows] == [(100, 99), (99, None), (99, 98)]
    ends = trellis.query(
        "PATTERN S+ s[] WHERE s[i].x > s[i-1].x HAVING LENGTH >= 40 REPORT any ORDER BY LENGTH LIMIT 2"
    )
    trends = ends.detect(table, event_id="id")
    for row in trends.to_arrow().to_pylist():
        assert row["length"] == 40
        assert trends.trend(row["rank"]).to_pylist() == [row]


def test_sums_that_are_equal_only_when_rounded_stay_in_the_order_of_ranks() -> None:
    rows: list[tuple[str, str, float]] = []
    for layer in range(40):
        rows += [(f"{layer}", f"{layer}a", 0.2), (f"{layer}", f"{layer}b", 0.1)]
        rows += [(f"{layer}a", f"{layer + 1}", 0.2), (f"{layer}b", f"{layer + 1}", 0.3)]
    begins, ends, values = zip(*rows, strict=True)
    table = pa.table({"ts": range(160), "id": range(160), "a": begins, "b": ends, "x": values})
    text = "PATTERN S+ s[] WHERE s[i].a = s[i-1].b ORDER BY SUM(s.x) {} LIMIT 3 OFFSET 1"
    for order in ("", "DESC"):
        trends = trellis.query(text.format(order)).detect(table, event_id="id")
        assert trends.count() == 2**40  # 0.1 + 0.3 and 0.2 + 0.2 differ, 40 of them do not when rounded: all are 16.0
        assert trends.to_arrow()["rank"].to_pylist() == [1, 2, 3]


# --- What is listed all the same --------------------------------------------------------------------------------


def test_what_cannot_be_searched_is_told() -> None:
    table = pa.table({"ts": range(10), "id": range(10), "x": [1.0] * 9 + [float("inf")], "y": [1.5] * 10})

    def found(keys: str) -> list[int]:
        query = trellis.query(f"PATTERN E+ s[] REPORT any ORDER BY {keys} LIMIT 1")
        return query.detect(table, event_id="id", max_trends=5).to_arrow()["length"].to_pylist()

    for keys in ("SUM(s.y) / LENGTH, LENGTH DESC", "SUM(s.x), LENGTH DESC", "LENGTH DESC, MAX(s.x), SUM(s.y)"):
        with pytest.warns(UserWarning, match="ORDER BY goes through all 1,023 results"):
            assert found(keys) == [1 if "SUM(s.x)" in keys else 10]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert found("LENGTH DESC, SUM(s.y)") == [10]
        assert found("MAX(s.x) DESC, LENGTH") == [1]
        assert found("LENGTH DESC, MAX(s.x)") == [10]


def test_more_than_memory_holds_is_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    query = trellis.query("PATTERN S+ s[] WHERE s[i].x > s[i-1].x ORDER BY LENGTH DESC LIMIT 3")
    trends = query.detect(prices(60), event_id="id")
    whole = plain_rows(trends.to_arrow().to_pylist())
    monkeypatch.setattr(BestTrends, "find", None)
    small = query.detect(prices(60), event_id="id", sizes=Sizes(best_nodes=10))
    assert plain_rows(small.to_arrow().to_pylist()) == whole


# --- Without a list of edges ------------------------------------------------------------------------------------


LAZY = [
    "LENGTH DESC", "LENGTH", "SUM(s.v) DESC", "SUM(s.x)", "LAST(s).x DESC", "FIRST(s).v", "AVG(s.v)", "AVG(s.x) DESC",
]  # fmt: skip


def lazy_links(trends: LocalResults) -> Links:
    """The links of one window whose edges are not listed."""
    op = trends.operator
    assert op.index is not None
    links = links_by_index(op.index, op.tasks, 0)
    assert links is not None
    return links


@pytest.mark.parametrize("keys", LAZY)
@pytest.mark.parametrize("report", ["any", "unextendable"])
def test_successors_need_not_be_listed(keys: str, report: str) -> None:
    table = prices(80, 3)
    table = table.set_column(3, "v", table["v"].fill_null(1)).set_column(2, "x", pa.array(np.arange(80.0) % 17))
    text = f"PATTERN S+ s[] WHERE s[i].x > s[i-1].x REPORT {report} ORDER BY {keys} LIMIT 25"
    trends = trellis.query(text).detect(table, event_id="id")
    op = trends.operator
    wanted = BestTrends(trends.plan.bound, op.events, links_of(op.graph), op.tasks).find(25, False)
    lazy = BestTrends(trends.plan.bound, op.events, lazy_links(trends), op.tasks)
    found = lazy.find(25, False)
    assert lazy.steps == 0
    assert wanted is not None
    assert found is not None
    for a, b in zip(found, wanted, strict=True):
        for name in ("positions", "ends", "ranks", "groups"):
            assert np.array_equal(getattr(a, name), getattr(b, name))


def test_without_a_list_of_edges_other_keys_are_not_searched() -> None:
    for keys in ("LENGTH, SUM(s.v)", "MAX(s.x)", "SUM(s.v)", "s[2].x", "LAST(s).x / LAST(s).v"):
        query = trellis.query(f"PATTERN S+ s[] WHERE s[i].x > s[i-1].x ORDER BY {keys} LIMIT 5")
        trends = query.detect(prices(80, 3), event_id="id")
        op = trends.operator
        assert BestTrends(trends.plan.bound, op.events, lazy_links(trends), op.tasks).steps is None


ENDS = [
    "LENGTH", "LAST(s).x / FIRST(s).x", "(LAST(s).x - FIRST(s).x) / FIRST(s).x * 100", "LAST(s).w * FIRST(s).w",
    "FIRST(s).x / LAST(s).p", "-LAST(s).w + FIRST(s).w", "LAST(s).x * 0.1 + 3", "LAST(s).w - FIRST(s).v", "LAST(s).g",
    "FIRST(s).w", "LAST(s).w / FIRST(s).p", "LAST(s).x / FIRST(s).p, LENGTH", "LAST(s).x - FIRST(s).x, SUM(s.x)",
    "LAST(s).w * FIRST(s).w DESC, MAX(s.p)", "FIRST(s).w - LAST(s).w, LAST(s).x", "SUM(s.x), LENGTH", "SUM(s.x)",
    "SUM(s.x) DESC, LAST(s).x - FIRST(s).x", "LENGTH, SUM(s.x), SUM(s.p)", "AVG(s.x)",
]  # fmt: skip
RELATIONS = [
    "s[i].x > s[i-1].x", "[g] AND s[i].x >= s[i-1].x", "s[i].x > s[i-1].x AND s[i].x < s[i-1].x + 4",
    "s[i].g = s[i-1].g", "s[i].w != s[i-1].w AND s[i].x > s[i-1].x",
    "s[i].ts - s[i-1].ts <= 4 AND ABS(s[i].w - s[i-1].w) < 3",
]  # fmt: skip


def ends_table(rng: random.Random, n: int) -> pa.Table:
    """Draw events with few values, so that keys are often equal, some of them only when rounded."""
    return pa.table(
        {
            "ts": sorted(rng.randrange(n) for _ in range(n)),
            "id": list(range(n)),
            "g": [rng.choice("ab") for _ in range(n)],
            "x": [rng.choice([0.1, 0.2, 0.3, 0.7, 1.1, 2.2, 3.3, 5.0, -0.4]) for _ in range(n)],
            "p": [rng.choice([0.1, 0.3, 7.0, 49.0]) for _ in range(n)],
            "w": [rng.choice([-2, -1, 0, 1, 2, 3]) for _ in range(n)],
            "v": [rng.choice([1, 2, None]) for _ in range(n)],
        }
    )


@pytest.mark.parametrize("key", ENDS)
def test_the_best_by_index_are_those_that_sorting_gives(key: str, searched: list[int]) -> None:
    by_index = replace(SEARCHING, pairs_of_graph=0)
    rng = random.Random(key)
    for _ in range(12):
        table = ends_table(rng, rng.choice([1, 5, 12, 20]))
        parts = [
            f"PATTERN E+ s[] WHERE {rng.choice(RELATIONS)} REPORT {rng.choice(['any', 'unextendable'])}",
            rng.choice(["", "", "WITHIN 8 SLIDE 4"]),
            f"ORDER BY {key} {rng.choice(['', 'DESC'])} LIMIT {rng.choice([1, 2, 3, 10, 40])}",
            rng.choice(["", "PER WINDOW"]) + rng.choice(["", " OFFSET 2"]),
        ]
        query = trellis.query(" ".join(parts))
        found, listed = (
            plain_rows(query.detect(table, event_id="id", sizes=sizes).to_arrow().to_pylist())
            for sizes in (by_index, replace(LISTING, pairs_of_graph=0))
        )
        assert found == listed, parts
    assert len(searched) > 8
    assert -1 not in searched


@pytest.mark.parametrize(
    "key", ["LAST(s).x / FIRST(s).p DESC", "LAST(s).x / FIRST(s).w", "LAST(s).x - FIRST(s).x, LENGTH DESC"]
)
@pytest.mark.parametrize("spans", ["WITHIN 12 SLIDE 4", "WITHIN 6"])
def test_keys_of_both_ends_in_many_groups(key: str, spans: str, searched: list[int]) -> None:
    rng = random.Random(key)
    table = ends_table(rng, 1200)
    text = f"PATTERN E+ s[] WHERE [g] AND s[i].x > s[i-1].x {spans} ORDER BY {key} LIMIT 3 PER WINDOW OFFSET 1"
    found, listed = (
        plain_rows(trellis.query(text).detect(table, event_id="id", sizes=sizes).to_arrow().to_pylist())
        for sizes in (SEARCHING, LISTING)
    )
    assert found == listed
    assert len(searched) == 1
    assert searched[0] >= len(found)


def test_a_key_that_overflows_is_told() -> None:
    table = pa.table({"ts": np.arange(15), "id": np.arange(15), "w": np.arange(15) << 57})
    query = trellis.query("PATTERN E+ s[] WHERE s[i].w > s[i-1].w REPORT any ORDER BY LAST(s).w * FIRST(s).w LIMIT 1")
    with pytest.raises(OverflowInCondition):
        query.detect(table, event_id="id").first(1)


@pytest.mark.parametrize("key", ["LENGTH DESC", "LAST(s).x / FIRST(s).x DESC", "LAST(s).x - FIRST(s).x DESC"])
def test_the_best_of_a_large_window_need_no_graph(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TrendOperator, "graph", property(lambda self: pytest.fail("a graph was built")))
    query = trellis.query(f"PATTERN S+ s[] WHERE s[i].x > s[i-1].x ORDER BY {key} LIMIT 10")
    rows = query.detect(prices(20_000), event_id="id").to_arrow().to_pylist()
    assert len(rows) == 10
    assert len({tuple(row["events"]) for row in rows}) == 10


def test_tables_of_cases_hold_what_they_must() -> None:
    """Drawn cases have ties in time, NULL, NaN, every clause, and results."""
    cases = [random_case(seed) for seed in range(250)]
    texts = [repr(case.query) for case in cases]
    assert all(any(word in text for text in texts) for word in ("per_window=True", "offset=2", "MAXIMAL", "descending"))
    tables = [arrow_table(case.rows, case.schema) for case in cases]
    assert sum(len(set(t["ts"].to_pylist())) < t.num_rows for t in tables) > 150
    assert sum(t["x"].null_count > 0 for t in tables) > 100
