"""Listing some hundred million results as positions, as whole rows and to Parquet, beside copies of the same bytes."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import numba
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import trellis
from benchmarks import Limit, Peer, Row, Table, Timing, at_least, at_most, best_of, memory_of
from benchmarks.data import transfers

KITE = "PATTERN E+ s[] WHERE s[i].src = s[i-1].dest"
STOCK = "PATTERN E+ s[] WHERE s[i].price > s[i-1].price"
SEVERAL = """PATTERN SEQ(A a, B+ b[], C c)
    WHERE a.price < FIRST(b).price AND b[i].price > b[i-1].price AND c.price > LAST(b).price WITHIN 200 SLIDE 200"""
PAIRS = "PATTERN AND(A a, B b) WHERE a.price + b.price > 1 AND [part]"
PAIRS_SQL = (
    "FROM events a JOIN events b ON a.part = b.part WHERE a.type = 'A' AND b.type = 'B' AND a.price + b.price > 1"
)
SMALL = {  # results of many small partitions, and SQL that finds them
    "AND": (PAIRS, f"SELECT a.part, least(a.ts, b.ts), greatest(a.ts, b.ts), a.id, b.id {PAIRS_SQL} ORDER BY 1, 2, 3"),
    "AND, AFTER MATCH": (
        f"{PAIRS} AFTER MATCH SKIP TO NEXT",
        f"""SELECT a.part, least(a.ts, b.ts) AS first, greatest(a.ts, b.ts) AS last, a.id, b.id {PAIRS_SQL}
        QUALIFY row_number() OVER (PARTITION BY a.part, first ORDER BY last) = 1 ORDER BY 1, 2""",
    ),
}
OF_SQL = 10  # times as long as DuckDB, by the time of all cores, at most
COPIED, SOONER = 2, 1.2  # times as long as a copy of the same bytes, at most; as fast on two threads, at least
WRITTEN = 2  # times as long as pyarrow's writer of the table takes, at most
TIMES = {1: 4, 2: 7}  # as fast as the plain walk, on so many threads
BATCH = 1 << 20  # values that the peers write or copy at a time
SOURCE = 1 << 26  # values that are copied from, far more than a cache holds
EVENTS, COMPACT = ("events",), ("shared", "new")


def run(quick: bool) -> list[Table]:
    return [*(_listed(name, quick) for name in ("kite", "stock")), _several(quick), _parquet(quick), _small(quick)]


def kite(quick: bool) -> tuple[str, str, pa.Table]:
    n, accounts = (300, 40) if quick else (1_500, 100)
    return f"{n:,} transfers between {accounts} accounts: src = prev.dest", KITE, transfers(n, accounts, seed=1738)


def stock(quick: bool) -> tuple[str, str, pa.Table]:
    n = 45 if quick else 90
    return f"{n} trades on 21 prices: price > prev.price", STOCK, wandering(n, 21, seed=2304)


def wandering(n: int, prices: int, seed: int) -> pa.Table:
    """Return trades at a price that wanders by up to two steps and turns back at the lowest and the highest."""
    walk = np.cumsum(np.random.default_rng(seed).integers(-2, 3, n))
    top = prices - 1
    return pa.table(
        {"ts": np.arange(n), "id": np.arange(n), "price": top - np.abs((top // 2 + walk) % (2 * top) - top)}
    )


# --- One data set -----------------------------------------------------------------------------------------------


def _listed(name: str, quick: bool) -> Table:
    what, text, table = DATA[name](quick)
    trends = trellis.query(text).detect(table, event_id="id", max_trends=10**10)
    graph = (trends.operator.graph.offsets, trends.operator.graph.successors, trends.operator.graph.latest)
    _compare(trends, graph)
    rows, values = depth_of_walk(graph)

    def timed(work: str, options: dict[str, Any]) -> Timing:
        warm = trends.batches(**options)
        return best_of(f"{name}, {work}", lambda: exhaust(trends, rows, options), quick=quick, warm=lambda: next(warm))

    plain = best_of(f"{name}, plain walk", lambda: depth_of_walk(graph), quick=quick)
    copy = best_of(f"{name}, copy", lambda: copied(rows, values), quick=quick)
    peers = [Peer("a plain depth-first walk in Numba, one thread, into buffers that are used again", plain)]
    limits = [Limit("NumPy copies the same bytes, one thread", copy)]
    found = []
    for threads, times in TIMES.items():
        ours = timed(f"positions, {threads}", {"columns": EVENTS, "positions": True, "threads": threads})
        memory = memory_of(f"{name}, {threads}", listing, name, quick, threads)
        target = at_least(times, "times", plain.wall / ours.wall)
        found.append(Row(f"positions, {_threads(threads)}", ours, memory, [*peers, *limits], [target]))
    for threads in TIMES:
        work, options = "positions, compact form", {"columns": COMPACT, "positions": True, "compact": True}
        ours = timed(f"{work}, {threads}", {**options, "threads": threads})
        found.append(Row(f"{work}, {_threads(threads)}", ours, peers=peers))
    found += _whole_rows(name, trends, quick)
    return Table(
        f"{what}: {rows:,} trends of mean length {values / rows:.1f}",
        found,
        [
            "Every batch is an Arrow array of its own. The walk and the copy write no rank, length, time or id; the "
            "compact form has each shared prefix once."
        ],
    )


def _whole_rows(name: str, trends: Any, quick: bool) -> list[Row]:
    """List what people get, on one thread and on two, beside a copy of the same bytes on one."""
    size = sum(batch.nbytes for batch in trends.batches())
    copy = best_of(f"{name}, copy of rows", lambda: copied(size // 4, 0), quick=quick)
    both = best_of(f"{name}, copy of rows, 2", lambda: copied_together(size // 4), quick=quick)
    sooner = min(SOONER, copy.wall / both.wall)  # no faster than two threads copy
    rows, found, alone = trends.count(), [], None
    for threads in TIMES:
        work = f"{name}, whole rows, {threads}"
        ours = best_of(work, lambda threads=threads: exhaust(trends, rows, {"threads": threads}), quick=quick)
        targets = [at_most(COPIED, "times a copy", ours.cpu / copy.cpu)] if alone is None else []
        targets += [] if alone is None else [at_least(sooner, "times one thread", alone.wall / ours.wall)]
        alone = alone or ours
        limit = Limit(f"NumPy copies the same {size / 1e9:.1f} GB, {_threads(threads)}", copy if threads == 1 else both)
        found.append(Row(f"whole rows, {_threads(threads)}", ours, peers=[limit], targets=targets))
    return found


def _several(quick: bool) -> Table:
    """List matches of three variables, with the variable of each event."""
    found = trellis.query(SEVERAL).detect(priced(1_000 if quick else 10_000), event_id="id", type="type",
                                          max_trends=10**10)  # fmt: skip
    rows = _whole_rows("several variables", found, quick)
    return Table(f"SEQ(A, B+, C) with rising prices, windows of 200 events: {found.count():,} matches", rows)


def priced(n: int) -> pa.Table:
    """Return events of three types with random prices."""
    rng = np.random.default_rng(1)
    return pa.table({"ts": np.arange(n), "id": np.arange(n), "price": rng.random(n), "type": rng.choice([*"ABC"], n)})


def _parquet(quick: bool) -> Table:
    """Write trends to Parquet, beside pyarrow's writer of the same table."""
    trends = trellis.query(STOCK).detect(wandering(45 if quick else 63, 21, 2304), event_id="id", max_trends=10**10)
    table = trends.to_arrow()
    with tempfile.TemporaryDirectory(prefix="trellis-bench-") as folder:
        target = Path(folder)
        plain = best_of("pyarrow writes", lambda: pq.write_table(table, target / "plain.parquet"), quick=quick)
        ours = best_of("writing", lambda: trends.write(target / "ours", overwrite=True), quick=quick)
        sizes = [(target / "plain.parquet").stat().st_size, sum(f.stat().st_size for f in (target / "ours").iterdir())]
    work = f"listed and written, {sizes[1] / 1e6:,.0f} MB"
    peer = Peer(f"pyarrow writes the table that is there, by its own settings, {sizes[0] / 1e6:,.0f} MB", plain)
    row = Row(work, ours, peers=[peer], targets=[at_most(WRITTEN, "times pyarrow", ours.wall / plain.wall)])
    return Table(f"{len(table):,} trends to Parquet", [row])


def _small(quick: bool) -> Table:
    """List results of many partitions of three events, from the events on, beside joins of DuckDB."""
    partitions = 1_000 if quick else 100_000
    events = priced(3 * partitions).append_column("part", pa.array(np.arange(3 * partitions) // 3))
    base, rows = duckdb.connect(), []
    base.execute("SET threads = 1")
    base.register("events", events)
    for name, (text, sql) in SMALL.items():
        found: list[int] = []

        def ours(text: str = text, found: list[int] = found) -> None:
            listed = trellis.query(text).detect(events, time="ts", event_id="id", type="type", max_trends=10**10)
            found[:] = [len(listed.to_arrow())]

        theirs = best_of(f"{name}, DuckDB", lambda sql=sql: base.sql(sql).to_arrow_table(), quick=quick)
        timing = best_of(f"{name}, small partitions", ours, quick=quick)
        assert found == [len(base.sql(sql).to_arrow_table())], "rows differ"
        target = at_most(OF_SQL, "times DuckDB", timing.cpu / theirs.cpu)
        rows.append(Row(name, timing, peers=[Peer("DuckDB, one thread", theirs)], targets=[target]))
    return Table(f"{partitions:,} partitions of three events", rows)


DATA: dict[str, Callable[[bool], tuple[str, str, pa.Table]]] = {"kite": kite, "stock": stock}


def _threads(number: int) -> str:
    return "one thread" if number == 1 else f"{number} threads"


def exhaust(trends: Any, rows: int, options: dict[str, Any]) -> None:
    """List everything and let it go."""
    found = sum(batch.num_rows for batch in trends.batches(**options))
    assert found == rows, "rows are missing"


def listing(name: str, quick: bool, threads: int) -> Callable[[], None]:
    _, text, table = DATA[name](quick)
    trends = trellis.query(text).detect(table, event_id="id", max_trends=10**10)
    return lambda: exhaust(trends, trends.count(), {"columns": EVENTS, "positions": True, "threads": threads})


def _compare(trends: Any, graph: tuple[np.ndarray, ...]) -> None:
    """Compare the first rows with those of the plain walk."""
    ours = trends.batches(columns=EVENTS, positions=True, ranks=range(1_000_000))
    listed = pa.concat_arrays([batch.column(0) for batch in ours])
    positions, ends = next(plain_batches(graph))
    shared = min(len(listed), len(ends))
    assert listed.offsets.to_numpy()[1 : shared + 1].tolist() == ends[:shared].tolist(), "lengths differ"
    last = ends[shared - 1]
    assert np.array_equal(listed.values.to_numpy()[:last], positions[:last]), "trends differ"


# --- The peers --------------------------------------------------------------------------------------------------


def depth_of_walk(graph: tuple[np.ndarray, ...]) -> tuple[int, int]:
    """Write every trend, and return how many there are and how many events they name."""
    rows = values = 0
    for positions, ends in plain_batches(graph):
        rows, values = rows + len(ends), values + len(positions)
    return rows, values


def plain_batches(graph: tuple[np.ndarray, ...]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    events = len(graph[0])
    nodes, places, state = np.zeros(events, np.int32), np.zeros(events, np.int64), np.zeros(2, np.int64)
    values, ends = np.empty(BATCH, np.int32), np.empty(BATCH, np.int32)
    while True:
        rows, used = plain_walk(*graph, nodes, places, state, values, ends)
        if not rows:
            return
        yield values[:used], ends[:rows]


@numba.njit(cache=True, nogil=True)
def plain_walk(offsets, successors, latest, nodes, places, state, values, ends):  # type: ignore[no-untyped-def]
    """Go on with a depth-first walk until a buffer is full: the events of each path, copied one by one."""
    rows = used = 0
    start, depth = state
    while True:
        if depth == 0:
            while start < latest.shape[0] and latest[start] >= 0:
                start += 1
            if start == latest.shape[0]:
                break
            nodes[0], places[0], depth = start, offsets[start], 1
            start += 1
        x = nodes[depth - 1]
        if offsets[x] == offsets[x + 1]:
            if rows == ends.shape[0] or used + depth > values.shape[0]:
                break
            for d in range(depth):
                values[used + d] = nodes[d]
            used += depth
            ends[rows] = used
            rows += 1
            depth -= 1
        elif places[depth - 1] == offsets[x + 1]:
            depth -= 1
        else:
            y = successors[places[depth - 1]]
            places[depth - 1] += 1
            nodes[depth], places[depth] = y, offsets[y]
            depth += 1
    state[0], state[1] = start, depth
    return rows, used


def copied(rows: int, values: int) -> None:
    """Copy as many bytes as the trends and their offsets take, a batch at a time, from memory into new arrays."""
    left, at, source = rows + values, 0, _source()
    while left > 0:
        number = min(BATCH, left, len(source) - at)
        source[at : at + number].copy()
        left, at = left - number, (at + number) % len(source)


def copied_together(values: int) -> None:
    """Copy so many values on two threads, half of them each."""
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(copied, [values // 2, values - values // 2], [0, 0]))


@cache
def _source() -> np.ndarray:
    return np.ones(SOURCE, np.int32)  # every page is there
