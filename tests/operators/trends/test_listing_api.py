"""`batches` by threads, ranks and in compact form; LIMIT and OFFSET without what comes before; bounded memory."""

from __future__ import annotations

import threading
import tracemalloc
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import trellis
from trellis.engines.local.results import LocalResults
from trellis.errors import ListingRefused, TrellisError, UsageError
from trellis.operators.contract import ListRequest
from trellis.operators.trends.graph import EventGraph
from trellis.operators.trends.operator import TrendOperator
from trellis.operators.trends.structure import TrendStructure
from trellis.plan.sizes import Sizes

CONDITION = "PATTERN S+ s[] WHERE [g] AND s[i].x > s[i-1].x"
WINDOWS = f"{CONDITION} WITHIN 20 SLIDE 10"
QUERIES = [
    WINDOWS,
    f"{CONDITION} REPORT any WITHIN 20 SLIDE 10",
    f"{CONDITION} REPORT maximal WITHIN 20 SLIDE 10",
    f"{CONDITION} WITHIN 13",
    f"{CONDITION} HAVING LENGTH >= 2 AND LENGTH <= 4 WITHIN 20 SLIDE 10",
    "PATTERN S+ s[] WHERE s[i].x > s[i-1].x + 2 HAVING LENGTH > 3",
]


def table_of(n: int, seed: int = 0) -> pa.Table:
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "ts": np.sort(rng.integers(0, 40, n)),
            "x": rng.integers(0, 30, n),
            "g": rng.choice(["a", "b"], n),
            "id": [f"e{i}" for i in rng.permutation(n)],
        }
    )


def found(text: str, table: pa.Table | None = None, **options: Any) -> LocalResults:
    trends = trellis.query(text).detect(table_of(80) if table is None else table, event_id="id", **options)
    assert isinstance(trends, LocalResults)
    return trends


FEW_EACH = Sizes(first_rows=100, large_rows=150, batch_values=1000)  # so that several threads list a few rows each


@pytest.fixture(params=[1, 3])
def threads(request: pytest.FixtureRequest) -> int:
    """Give how many threads list."""
    return int(request.param)


# --- The same rows, whichever way they are asked for ------------------------------------------------------------


@pytest.mark.parametrize("text", QUERIES)
def test_ranks_threads_and_the_compact_form_give_the_rows_of_the_result(text: str, threads: int) -> None:
    trends = found(text, sizes=FEW_EACH)
    whole = pa.Table.from_batches(trends.batches(threads=1), trends.schema).combine_chunks()
    assert whole.num_rows == trends.count() > 200
    assert whole["rank"].to_pylist() == [r for c in trends.operator.counts for r in range(c)]
    total = whole.num_rows
    for begin, end in ((0, total), (0, 1), (total // 3, total // 3 + 150), (total - 1, total + 5), (7, 7), (9, 3)):
        for compact in (False, True):
            batches = list(trends.batches(threads=threads, ranks=range(begin, end), compact=compact))
            if compact:
                assert all(batch.column("shared")[0].as_py() == 0 for batch in batches)
                batches = [trellis.expand(batch) for batch in batches]
            assert pa.Table.from_batches(batches, trends.schema).combine_chunks() == whole[begin : max(begin, end)]


@pytest.mark.parametrize("text", QUERIES)
@pytest.mark.parametrize(("limit", "offset"), [(5, 0), (7, 60), (10**6, 100), (0, 3), (3, 10**18)])
@pytest.mark.parametrize("per_window", ["", " PER WINDOW"])
def test_limit_and_offset(text: str, limit: int, offset: int, per_window: str) -> None:
    whole = found(text).to_arrow()
    cut = found(f"{text} LIMIT {limit}{per_window} OFFSET {offset}")
    if per_window:
        rank = whole["rank"].to_numpy()
        wanted = whole.filter(pa.array((rank >= offset) & (rank < offset + limit)))
    else:
        wanted = whole[min(offset, whole.num_rows) :][:limit]
    assert cut.to_arrow().combine_chunks() == wanted.combine_chunks()
    some = pa.Table.from_batches(cut.batches(ranks=range(2, 4)), cut.schema)
    assert some.combine_chunks() == wanted[2:4].combine_chunks()
    exploded = cut.explode()
    assert exploded["rank"].to_pylist() == np.repeat(wanted["rank"], wanted["length"]).tolist()


def test_columns_of_the_compact_form() -> None:
    trends = found(WINDOWS)
    names = ["length", "new", "start_time", "shared", "end_time"]
    for batch, whole in zip(trends.batches(names, compact=True), trends.batches(), strict=True):
        assert batch.schema.names == names
        back = trellis.expand(batch)
        assert back.schema.names == ["length", "events", "start_time", "end_time"]
        assert back == whole.select(back.schema.names)
    table = pa.Table.from_batches(trends.batches(["shared", "new"], positions=True, compact=True))
    assert table.schema.field("new").type == pa.list_(pa.int32())
    expanded = trellis.expand(table)
    assert (
        expanded.combine_chunks() == pa.Table.from_batches(trends.batches(["events"], positions=True)).combine_chunks()
    )
    assert trellis.expand(table.combine_chunks()).combine_chunks() == expanded.combine_chunks()
    assert trellis.expand(table[:0]).num_rows == 0


def test_what_has_no_compact_form() -> None:
    for clause in ("RETURN s.x", "ORDER BY LENGTH", "AGGREGATE COUNT(*)"):
        with pytest.raises(UsageError, match=f"no compact form under {clause.split()[0]}"):
            next(found(f"{WINDOWS} {clause}").batches(compact=True))
    named = table_of(20).rename_columns(["ts", "x", "new", "id"])
    with pytest.raises(UsageError, match="has a column `new` already"):
        next(found("PATTERN S+ s[] WHERE [new]", named).batches(compact=True))
    with pytest.raises(UsageError, match=r"no column `events`\nColumns are .*, shared, new"):
        next(found(WINDOWS).batches(["events"], compact=True))
    (batch,) = found("PATTERN S+ s[] WHERE s[i].x > s[i-1].x LIMIT 9").batches(compact=True)
    with pytest.raises(UsageError, match="the first shares events with a row that is not there"):
        trellis.expand(batch.slice(1))
    with pytest.raises(UsageError, match="no compact form: the columns `shared` and `new`"):
        trellis.expand(batch.select(["new"]))


# --- What is asked for is what is judged ------------------------------------------------------------------------


def test_the_bound_is_on_the_rows_asked_for() -> None:
    table = pa.table({"ts": range(200), "id": range(200)})
    trends = found("PATTERN E+ s[] REPORT any", table, max_trends=10)
    first, total = 2**199 - 4, 2**200 - 1
    rows = pa.Table.from_batches(trends.batches(ranks=range(first, first + 10)))
    assert rows["events"].to_pylist()[1:5] == [[0, 198], [0, 198, 199], [0, 199], [1]]
    assert rows["rank"].to_pylist() == [None] * 10
    (last,) = trends.batches(["events"], ranks=range(total - 3, 10**90))
    assert last.column("events").to_pylist() == [[198], [198, 199], [199]]
    with pytest.raises(ListingRefused, match="the query has 11 results"):
        next(trends.batches(ranks=range(first, first + 11)))
    offset = found(f"PATTERN E+ s[] REPORT any LIMIT 2 OFFSET {5 * 10**18}", table, max_trends=2)
    assert offset.to_arrow()["rank"].to_pylist() == [5 * 10**18, 5 * 10**18 + 1]
    assert offset.to_arrow()["events"][0].as_py() == trends.trend(5 * 10**18)["events"][0].as_py()


@pytest.mark.parametrize("ranks", [range(-1, 3), range(0, 9, 2), range(9, 0, -1), slice(3), [1, 2], 5])
def test_ranks_that_are_none(ranks: Any) -> None:
    with pytest.raises(UsageError, match=r"ranks are given as a range such as range\(1000, 2000\)"):
        next(found(WINDOWS).batches(ranks=ranks))


@pytest.mark.parametrize("clause", ["ORDER BY LENGTH", "AGGREGATE COUNT(*)"])
def test_ranks_where_rows_are_not_in_their_order(clause: str) -> None:
    with pytest.raises(UsageError, match=f"under {clause[:8].strip()}.* rows do not come in the order of ranks"):
        next(found(f"{WINDOWS} {clause}").batches(ranks=range(3)))


@pytest.mark.parametrize("threads", [0, -1, 1.0, True, "2"])
def test_threads_that_cannot_be(threads: Any) -> None:
    with pytest.raises(UsageError, match="threads cannot list"):
        next(found(WINDOWS).batches(threads=threads))


def without_graph(trends: Any) -> Any:
    """Let results be found by an operator whose graph has too many edges."""

    def refuse(*_: object) -> EventGraph:
        raise TrellisError("there are too many edges")

    given = trends.plan, trends.operator.events, trends.operator.threads
    trends.operator = TrendOperator(*given, TrendStructure(*given, build=refuse))
    return trends


@pytest.mark.parametrize("pairs", [1, 1 << 60])
def test_where_there_are_too_many_edges_trends_come_one_by_one(pairs: int) -> None:
    """Whether the graph was not even tried (pairs worth little) or refused."""
    text, sizes = (
        "PATTERN S+ s[] WHERE s[i].x > s[i-1].x WITHIN 20 SLIDE 10",
        Sizes(batch_values=100, pairs_of_one=pairs, small_pairs=-1, counted_pairs=-1),
    )
    trends = without_graph(found(text, table_of(45), sizes=sizes))
    wanted = [row for window in trends.counts()["window_start"].to_pylist() for row in _by_rank(trends, window)]
    batches = list(trends.batches(ranks=range(50, 250)))
    assert [row for batch in batches for row in batch.to_pylist()] == wanted[50:250]
    assert max(batch.num_rows for batch in batches) <= 100
    trends = without_graph(found(text, table_of(45), sizes=replace(sizes, most_picked=99)))
    for options in ({"ranks": range(50, 150)}, {"ranks": range(50, 51), "compact": True}):
        with pytest.raises(TrellisError, match="too many edges"):
            next(trends.batches(**options))


def _by_rank(trends: LocalResults, window: int) -> list[dict[str, Any]]:
    rows = trends.counts().to_pylist()
    count = next(int(row["count_text"]) for row in rows if row["window_start"] == window)
    return [trends.trend(rank, window=window).to_pylist()[0] for rank in range(count)]


# --- Threads and memory -----------------------------------------------------------------------------------------


def rising(n: int) -> pa.Table:
    return pa.table({"ts": range(n), "id": range(n), "x": range(n)})


def listers() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("trellis-listing")]


@pytest.mark.parametrize("interrupted", [False, True])
def test_an_early_stop_leaves_no_thread(interrupted: bool) -> None:
    trends = found("PATTERN S+ s[] WHERE s[i].x > s[i-1].x", rising(60), max_trends=10**30)
    batches: Any = trends.batches(threads=3)
    next(batches)
    assert listers()
    if interrupted:
        with pytest.raises(KeyboardInterrupt):
            batches.throw(KeyboardInterrupt)
    else:
        batches.close()
    assert not listers()


def test_a_mistake_in_a_thread_comes_out() -> None:
    trends = found("PATTERN S+ s[] WHERE s[i].x > s[i-1].x", rising(20), sizes=Sizes(first_rows=100))
    calls = iter(range(10**9))

    def fail(trend: Any) -> None:
        if next(calls) > 3:
            raise UsageError("this one is too much")

    with pytest.raises(UsageError, match="this one is too much"):
        list(trends.operator.list(ListRequest([(0, 0, trends.count())], fail, 2)))
    assert not listers()


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("compact", [False, True])
def test_memory_does_not_grow_with_the_trends(threads: int, compact: bool) -> None:
    """Some 4 M trends of mean length 13: their events alone are 220 MB."""
    trends = found("PATTERN S+ s[] WHERE s[i].x > s[i-1].x", rising(24))
    columns = ["shared", "new"] if compact else ["events"]
    next(trends.batches(columns, compact=compact))
    pool = pa.default_memory_pool()
    arrow, most, rows = pool.bytes_allocated(), 0, 0
    tracemalloc.start()
    for batch in trends.batches(columns, positions=True, threads=threads, compact=compact):
        rows += batch.num_rows
        most = max(most, pool.bytes_allocated() - arrow)
    python = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert rows == trends.count() == 2**22
    assert most + python < 80_000_000


def test_batches_can_be_kept() -> None:
    """No batch is written over by a later one."""
    trends = found("PATTERN S+ s[] WHERE s[i].x > s[i-1].x", rising(20))
    kept = pa.Table.from_batches(trends.batches(["events"], positions=True, threads=2))
    rank = 0
    for batch in trends.batches(["events"], positions=True, threads=1):
        assert kept[rank : rank + batch.num_rows]["events"].combine_chunks() == batch.column("events")
        rank += batch.num_rows
    assert rank == kept.num_rows == 2**18
