"""Fixed sequences beside a database's self-join, and what reduction and condensing give."""

from __future__ import annotations

import atexit
import gc
from dataclasses import replace
from threading import Timer
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

import trellis
from benchmarks import Peer, Row, Table, Timing, at_least, best_of, median_of, step
from benchmarks.flink import found_by_flink
from trellis.operators.sequences import tree as trees
from trellis.operators.sequences.candidates import SequenceCandidates
from trellis.operators.sequences.structure import SequenceStructure

# The command line freezes what is left when it ends, and DuckDB would complain that it leaks.
atexit.register(gc.unfreeze)

STAR = """
    PATTERN T1;T2;T3
    WHERE T1.name = 'a' AND T2.name = 'b' AND T3.name = 'c' AND T1.price > T2.price AND T1.price > T3.price
"""
STAR_SQL = """
    FROM {table} a, {table} b, {table} c
    WHERE a.name = 'a' AND b.name = 'b' AND c.name = 'c' AND a.ts < b.ts AND b.ts < c.ts
      AND a.price > b.price AND a.price > c.price {more}
"""
CROSSING = """
    PATTERN T1;T2;T3;T4
    WHERE T1.code = T3.code AND T2.code = T4.code AND T2.code = '600210'
      AND T1.price < T2.price - 0.02 AND T3.price > T4.price + 0.02
    WITHIN {window}
"""
CROSSING_SQL = """
    SELECT count(*) FROM ticks a, ticks b, ticks c, ticks d
    WHERE a.code = c.code AND b.code = d.code AND b.code = '600210'
      AND a.price < b.price - 0.02 AND c.price > d.price + 0.02
      AND a.ts < b.ts AND b.ts < c.ts AND c.ts < d.ts AND d.ts <= a.ts + {window}
"""
NESTED_SQL = """
    WITH one AS (
        SELECT a.code, a.ts AS first, b.ts AS last FROM ticks a JOIN ticks b
        ON b.code = '600210' AND a.ts < b.ts AND b.ts <= a.ts + {window} AND a.price < b.price - 0.02
    ), other AS (
        SELECT c.code, c.ts AS first, d.ts AS last FROM ticks c JOIN ticks d
        ON d.code = '600210' AND c.ts < d.ts AND d.ts <= c.ts + {window} AND c.price > d.price + 0.02
    )
    SELECT count(*) FROM one l JOIN other r ON l.code = r.code AND l.last < r.first AND r.last <= l.first + {window}
"""
PATIENCE = 60.0  # seconds after which DuckDB is stopped


def named(n: int) -> pa.Table:
    """Return prices of three names in random order, one a time unit."""
    rng = np.random.default_rng(1)
    names = np.array(["a", "b", "c"])[rng.integers(0, 3, n)]
    return pa.table({"ts": np.arange(n), "name": names, "price": np.round(rng.random(n) * 100, 2)})


def ticks(symbols: int, seconds: int, jitter: float = 0.0) -> pa.Table:
    """Return a price of every symbol each five seconds: a random walk by cents, half of the steps none."""
    rng = np.random.default_rng(1)
    number = seconds // 5
    still = rng.random((number, symbols)) < 0.5
    cents = rng.integers(500, 10_000, symbols) + np.cumsum(np.where(still, 0, rng.integers(-2, 3, still.shape)), axis=0)
    prices = cents / 100 + jitter * rng.random(still.shape)
    codes = np.array([str(600_000 + i) for i in range(symbols)])
    times = np.repeat(np.arange(number) * 5, symbols)
    return pa.table({"ts": times, "code": np.tile(codes, number), "price": prices.ravel()})


def run(quick: bool) -> list[Table]:
    return [_star(quick), _crossing(quick), _classes(quick), _batches(quick), _parts(quick)]


def _star(quick: bool) -> Table:
    few, many, stream = (30, 60, 200) if quick else (900, 9_000, 20_000)
    base = _database({"few": named(few), "many": named(many), "stream": named(stream)})
    span = "AND c.ts <= a.ts + 60 AND b.ts <= a.ts + 60"
    ids = "SELECT a.ts, b.ts AS b, c.ts AS c"

    def ours(n: int, within: str = "") -> int:
        trends = trellis.query(STAR + within).detect(named_again[n], time="ts")
        return sum(batch.num_rows for batch in trends.batches(columns=["T1", "T2", "T3"]))

    named_again = {n: named(n) for n in (few, many, stream)}
    counted = trellis.query(STAR).detect
    listing = median_of("listing one window", lambda: ours(few), quick)
    listed = median_of("DuckDB, one window", lambda: _joined(base, "few", "", ids), quick)
    counting = median_of("counting one window", lambda: counted(named_again[many], time="ts").count(), quick)
    count = median_of("DuckDB counts", lambda: _joined(base, "many", "", "SELECT count(*)"), quick, runs=1)
    streaming = median_of("listing a stream", lambda: ours(stream, "WITHIN 60"), quick)
    streamed = median_of("DuckDB, a stream", lambda: _joined(base, "stream", span, ids), quick, runs=3)
    found = (ours(few), counted(named_again[many], time="ts").count(), ours(stream, "WITHIN 60"))
    assert found[0] == _joined(base, "few", "", ids)
    assert found[2] == _joined(base, "stream", span, ids)
    peer = "DuckDB, self-join to an Arrow table"
    spans = _against(f"{found[2]:,} matches of {stream:,} events, span of 60, listed", streaming, peer, streamed, 50)
    if not quick:  # its jars are large
        flink = found_by_flink("star", named_again[stream], span=61, patience=PATIENCE)
        assert flink.matches in (None, found[2])
        spans = replace(
            spans,
            peers=[*spans.peers, Peer("FlinkCEP, counting its matches, by its own clock", flink.timing)],
            targets=[*spans.targets, at_least(50, "times FlinkCEP", flink.timing.wall / streaming.wall)],
        )
    return Table(
        "T1;T2;T3 WHERE T1.price > T2.price AND T1.price > T3.price",
        [
            _against(f"{found[0]:,} matches of {few:,} events listed", listing, peer, listed, 3),
            _against(f"{found[1]:,} matches of {many:,} events counted", counting, "DuckDB counts them", count, 1000),
            spans,
        ],
        ["Both read tables in memory and give the ids of three events per match, on two threads."],
    )


def _crossing(quick: bool) -> Table:
    table = ticks(250, 120) if quick else ticks(800, 1_800)
    base = _database({"ticks": table})
    rows = []
    for window in (30, 90) if quick else (10, 30, 60, 90):
        query = trellis.query(CROSSING.format(window=window))
        number = query.detect(table, time="ts").count()
        ours = median_of(f"Query 3, {window} s", lambda query=query: query.detect(table, time="ts").count(), quick)
        peers, targets = [], []
        if window in (30, 90):
            by_hand = NESTED_SQL.format(window=window)
            nested = median_of(f"DuckDB by hand, {window} s", lambda s=by_hand, n=number: _one(base, s, n), quick, 3)
            peers.append(Peer("DuckDB, two joins nested by hand as a bushy tree", nested))
        if window == 90:
            text = CROSSING_SQL.format(window=window)
            theirs = median_of(f"DuckDB, {window} s", lambda s=text, n=number: _one(base, s, n), quick, runs=1)
            peers.append(Peer(f"DuckDB, one self-join, stopped after {PATIENCE:g} s at the latest", theirs))
            targets = [at_least(50, "times DuckDB's self-join", theirs.wall / ours.wall)]
        rows.append(Row(f"window of {window} s: {number:,} matches", ours, peers=peers, targets=targets))
    return Table(f"Query 3 of the condensed composition paper, {table.num_rows:,} ticks, counted", rows)


def in_turn(n: int, classes: int) -> pa.Table:
    """Return prices of names in turn, one a time unit: steps uniform in ±5, clipped to [0, 100]."""
    rng = np.random.default_rng(2)
    prices = np.empty(n)
    last = np.full(classes, 50.0)
    for i, step_ in enumerate(rng.uniform(-5, 5, n).tolist()):
        last[i % classes] = min(max(last[i % classes] + step_, 0.0), 100.0)
        prices[i] = last[i % classes]
    names = np.array([f"name{i + 1}" for i in range(classes)])
    return pa.table({"ts": np.arange(n), "id": np.arange(n), "name": names[np.arange(n) % classes], "price": prices})


def _query_2(classes: int) -> str:
    variables = [f"T{i + 1}" for i in range(classes)]
    named = [f"{v}.name = 'name{i + 1}'" for i, v in enumerate(variables)]
    lower = [f"T1.price > {v}.price" for v in variables[1:]]
    return f"PATTERN {';'.join(variables)} WHERE {' AND '.join([*named, *lower])} WITHIN 60"


def _classes(quick: bool) -> Table:
    """Measure Query 2 by the number of its variables, as Figure 8(b)."""
    rows = []
    for classes in (3,) if quick else (3, 4, 5, 6):
        table, query = in_turn(300 if quick else 20_000, classes), trellis.query(_query_2(classes))
        number = query.detect(table, time="ts").count()
        ours = median_of(f"{classes} variables", lambda q=query, t=table: q.detect(t, time="ts").count(), quick)
        peers = []
        for name in ("tree", "condensed"):
            timing = median_of(
                f"{classes} variables, {name}",
                lambda q=query, t=table, a=name: q.detect(t, time="ts", algorithm=a).count(), quick, runs=3,
            )  # fmt: skip
            peers.append(Peer(f"algorithm {name}", timing))
        rows.append(Row(f"{classes} variables: {number:,} matches counted", ours, peers=peers))
    return Table(
        "Query 2 of the condensed composition paper by its variables (Figure 8(b)), 20,000 events, span of 60",
        rows,
        ["The walk binds T1 and adds up over lists, so its time hardly grows with the variables; trees hold partial "
         "matches."],
    )  # fmt: skip


def _batches(quick: bool) -> Table:
    """Measure events that arrive in batches: Query 2 by their size and by its variables, Query 3 by its window."""
    rows = []
    for size in (10, 100) if quick else (1, 10, 100, 1_000):
        events = in_turn(200 if quick else min(20_000, 2_000 * size), 3)
        rows.append(_arriving("Query 2, 3 variables", _query_2(3), events, size, quick))
    for classes in () if quick else (4, 5, 6):
        rows.append(_arriving(f"Query 2, {classes} variables", _query_2(classes), in_turn(1_000, classes), 1, quick))
    for window in (30,) if quick else (10, 30, 60, 90):
        events = ticks(250, 15) if quick else ticks(800, 135).slice(0, 90 // 5 * 800 + 1_600)
        events = events.append_column("id", pa.array(np.arange(events.num_rows)))
        text = CROSSING.format(window=window)
        rows.append(
            _arriving(f"Query 3, window of {window} s", text, events, 1, quick, warm=max(0, events.num_rows - 1_600))
        )
    return Table(
        "Events as they arrive (Figures 8(b) and 8(c) with batches of one event)",
        rows,
        ["A batch costs some milliseconds whatever its size: what holds of a window is looked at again for each. So "
         "batches of a hundred or more are what to use where a delay of as many events is no matter."],
    )  # fmt: skip


def _arriving(what: str, text: str, events: pa.Table, size: int, quick: bool, warm: int = 0) -> Row:
    """Measure the events behind the first `warm`, which come at once before the clock starts."""
    query = trellis.query(text)

    def begun() -> Any:
        arriving = query.arrivals(time="ts", event_id="id")
        if warm:
            arriving.take(events.slice(0, warm))
        return arriving

    def take(arriving: Any) -> int:
        return sum(arriving.take(events.slice(i, size)).num_rows for i in range(warm, events.num_rows, size))

    taken = best_of(f"{what}, batches of {size:,}", take, quick=quick, runs=1, given=begun)
    return Row(f"{what}, batches of {size:,}: {(events.num_rows - warm) / taken.wall:,.0f} events per second", taken)


def _parts(quick: bool) -> Table:
    """Measure what each part gives: from the same sorted events, with and without reduction, by each way."""
    rows = []
    for what, jitter in (("prices to the cent", 0.0), ("all prices distinct", 0.009)):
        table = ticks(250, 120, jitter) if quick else ticks(800, 1_800, jitter)
        given = trellis.query(CROSSING.format(window=30 if quick else 90)).detect(table, time="ts").operator
        for reduced in (True, False):
            times = {way: _tree(given, way, reduced, quick) for way in trees.WAYS if reduced or way != trees.BY_VALUE}
            times["walk"] = median_of(f"walk, {what}", lambda r=reduced, g=given: _walk(g, r), quick, runs=3)
            best = min(times[trees.PLAIN].wall, times[trees.BY_CLASS].wall)
            names = {trees.BY_VALUE: "tree, condensed by value", trees.BY_CLASS: "tree, condensed by class",
                     trees.SWITCHED: "tree, switched by benefit", "walk": "the walk"}  # fmt: skip
            peers = [Peer(names[way], timing) for way, timing in times.items() if way != trees.PLAIN]
            worth = best >= 0.05
            targets = [at_least(1 / 1.2, "of the better of on and off", best / times[trees.SWITCHED].wall)] * worth
            if not reduced and not jitter:
                whole = median_of("all of it", lambda t=table: _whole(t, quick), quick)
                ratio = times[trees.PLAIN].wall / whole.wall
                targets.append(at_least(50, "times all of detect and count", ratio))
            title = f"plain tree, {what}, {'' if reduced else 'not '}reduced"
            rows.append(Row(title, times[trees.PLAIN], peers=peers, targets=targets))
    return Table(
        "What each part gives: Query 3 at a window of 90 s, codes and candidates included",
        rows,
        ["Reduction leaves out candidates that have no partner in reach; nearly all of the gain is its.",
         "The paper's claim of 100 times for condensing was not seen: with both sides reduced there is little left."],
    )  # fmt: skip


def _whole(table: pa.Table, quick: bool) -> int:
    return int(trellis.query(CROSSING.format(window=30 if quick else 90)).detect(table, time="ts").count())


def _leaves(operator: Any, reduced: bool) -> SequenceCandidates:
    return SequenceCandidates.find(operator.plan, operator.plan.sequence, operator.events, reduced)


def _tree(operator: Any, way: str, reduced: bool, quick: bool) -> Timing:
    def work() -> float:
        own = SequenceStructure(operator.plan, operator.events, leaves=_leaves(operator, reduced))
        return sum(own.tree(way).counts())

    return median_of(f"tree, {way}", work, quick, runs=3 if reduced else 1)


def _walk(operator: Any, reduced: bool) -> int:
    return sum(SequenceStructure(operator.plan, operator.events, 2, _leaves(operator, reduced)).counts)


def _against(what: str, ours: Timing, name: str, theirs: Timing, least: float) -> Row:
    ratio = theirs.wall / ours.wall
    return Row(what, ours, peers=[Peer(name, theirs)], targets=[at_least(least, "times DuckDB", ratio)])


def _database(tables: dict[str, pa.Table]) -> Any:
    """Return DuckDB with tables of its own."""
    step("DuckDB: tables")
    base = duckdb.connect()
    base.execute("SET threads = 2")
    for name, table in tables.items():
        base.register("given", table)
        base.execute(f"CREATE TABLE {name} AS SELECT * FROM given")
        base.unregister("given")
    return base


def _joined(base: Any, table: str, more: str, select: str) -> int:
    return int(base.sql(select + STAR_SQL.format(table=table, more=more)).to_arrow_table().num_rows)


def _one(base: Any, sql: str, expected: int) -> None:
    timer = Timer(PATIENCE, base.interrupt)
    timer.start()
    try:
        ((found,),) = base.sql(sql).fetchall()
        assert found == expected, f"{found:,} matches, not {expected:,}"
    except duckdb.InterruptException:
        pass
    finally:
        timer.cancel()
