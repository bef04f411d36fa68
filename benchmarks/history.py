"""The history of a stream: building it and asking it, beside exact lists of leaves and beside DuckDB."""

from __future__ import annotations

import atexit
import gc
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks import Peer, Row, Table, Timing, at_least, at_most, best_of, step
from benchmarks.history_data import Lists, every_start, joined_count, named, step_sequence, zipf
from trellis.archive import Archive
from trellis.archive.filters import Filters, hashes_of
from trellis.archive.leaves import Policy, Question
from trellis.archive.search import LeafSearch
from trellis.archive.sizing import size_filters

# The command line freezes what is left when it ends, and DuckDB would complain that it leaks.
atexit.register(gc.unfreeze)

LEAF = 100
RATE = 0.01
NAMES = 30_000
LENGTHS = (2, 3, 4, 8, 20)


def run(quick: bool) -> list[Table]:
    tables = []
    with tempfile.TemporaryDirectory() as folder:
        for number in (20_000,) if quick else (1_000_000, 10_000_000):
            codes = zipf(number, NAMES)
            place = Path(folder) / str(number)
            place.mkdir()
            parquet = place / "events.parquet"
            table = named(codes, NAMES)
            pq.write_table(table, parquet)
            building, archive = _building(table, codes, parquet, place, quick)
            tables += [building, *_asking(archive, codes, parquet, quick)]
            if number <= 1_000_000:
                tables.append(_exact(archive, codes, parquet, quick))
        tables.append(_values(Path(folder), quick))
    return tables


def _building(table: pa.Table, codes: np.ndarray, parquet: Path, folder: Path, quick: bool) -> tuple[Table, Archive]:
    number = len(codes)
    distinct = [len(np.unique(codes[i : i + LEAF])) for i in range(0, number, max(LEAF, number // 300))]
    size = size_filters(distinct, -(-number // LEAF), RATE, 3)
    hashes = hashes_of(pa.array([f"w{i}" for i in range(NAMES)]))

    def fill() -> None:
        Filters(size.bits, size.hashes).add(codes, hashes, 0, LEAF)

    made = iter(range(1000))

    def build() -> Archive:
        target = folder / f"built-{next(made)}"
        return Archive.build(
            pq.read_table(parquet), target, time="t", type="n", leaf=LEAF, false_positive=RATE, query_length=3
        )

    filling = best_of(f"filling filters of {number:,}", fill, quick=quick)
    building = best_of(
        f"building over {number:,}", build, quick=quick, runs=2 if number <= 1_000_000 else 1, warm=lambda: None
    )
    archive = Archive.open(folder / f"built-{next(made) - 1}")
    about = archive.info()
    return Table(
        f"Building over {number:,} events, leaves of {LEAF}, rate {RATE:g}: {size.bits} bits a leaf",
        [
            Row(f"filters from coded names: {number / filling.wall / 1e6:.1f} M events/s", filling,
                targets=[at_least(5, "M events/s on one core", number / filling.cpu / 1e6)]),
            Row(f"all from Parquet, checked, coded and written: {number / building.wall / 1e6:.1f} M events/s",
                building, targets=[at_least(1, "M events/s", number / building.wall / 1e6)]),
        ],
        [
            f"A limit: {size.hashes} bits an event are set, each in a cache line of its own.",
            f"Filters {about['filter_bytes'] / 1e6:,.1f} MB ({about['filter_bytes_an_event']:.2f} bytes per event), "
            f"events {about['event_bytes'] / 1e6:,.1f} MB against {parquet.stat().st_size / 1e6:,.1f} MB in "
            f"large row groups; height {about['height']}, density {about['density']:.2f}, expected rate "
            f"{about['expected_rate']:.2g}.",
        ],
    ), archive  # fmt: skip


def _asking(archive: Archive, codes: np.ndarray, parquet: Path, quick: bool) -> list[Table]:
    step("lists of leaves")
    lists = Lists(codes, NAMES, LEAF)
    base = duckdb.connect()
    base.execute("SET threads = 1")
    source = f"read_parquet('{parquet}')"
    rng = np.random.default_rng(3)
    large = len(codes) > 1_000_000
    tables = []
    for what in ("rare", "frequent"):
        rows = []
        for length in LENGTHS[:2] if quick else (2, 8) if large else LENGTHS:
            asked = [
                (
                    rng.integers(0, NAMES, length) if what == "rare" else codes[rng.integers(0, len(codes), length)]
                ).tolist()
                for _ in range(5 if quick else 20 if large else 60)
            ]
            step(f"{what}, length {length}, over {len(codes):,}")
            exactly = 1 if large else 5
            rows.append(_row(archive, lists, lambda some: every_start(base, source, some), asked, length, exactly))
        tables.append(
            Table(
                f"SEQ of {what} names over {len(codes):,} events, skip-till-next, every start",
                rows,
                [
                    f"Filters: {archive.info()['filter_bytes'] / 1e6:.1f} MB. Lists of the leaves "
                    f"of each name, exact: {lists.bytes / 1e6:.1f} MB and the names. With a bounded number of names "
                    "the lists are smaller, mostly quicker, and never wrong: filters are for names without "
                    "number, such as a case with its activity, and where no dictionary may be kept.",
                    "DuckDB, one thread, over the same events in Parquet, joins each event of the first name with the "
                    "next of the second and so on (ASOF): its answer is of events and exact, ours of leaves. Its start "
                    "leaves are all among ours; the share of ours that are true is told.",
                ],
            )
        )
    return tables


def _exact(archive: Archive, codes: np.ndarray, parquet: Path, quick: bool) -> Table:
    """Return what exact answers take, by how frequent their names are, beside DuckDB."""
    counts, rng, rows = np.bincount(codes, minlength=NAMES), np.random.default_rng(4), []
    base = duckdb.connect()
    base.execute("SET threads = 1")
    source = f"read_parquet('{parquet}')"
    for low, high in ((2, 20),) if quick else ((6, 20), (21, 100), (101, 1000), (1001, 10_000)):
        names = np.flatnonzero((counts >= low) & (counts <= high))
        asked = [[f"w{i}" for i in rng.choice(names, 3, replace=False)]] * (2 if quick else 5)
        for select, window in ((s, w) for s in ("skip-till-next", "skip-till-any") for w in (None, 10_000, 1000)):
            step(f"exact, {low} to {high}, {select}, {window}")
            within = "" if window is None else f" WITHIN {window}"
            texts = [f"PATTERN SEQ({a} a, {b} b, {c} c) SELECT {select}{within}" for a, b, c in asked]
            times: list[float] = []
            theirs: list[float] = []
            needed = 0
            for text, some in zip(texts, asked, strict=True):
                found = _timed(times, lambda: _counted(archive, text))  # noqa: B023
                needed += found.needed
                if select == "skip-till-any" and window is not None and high > 1000:
                    continue  # its joins take seconds
                number = _timed(theirs, lambda: joined_count(base, source, some, select, window))  # noqa: B023
                assert number == found.trends.count()
            what = f"names {low:,} to {high:,} times, {select}{within}: {needed / len(texts) / len(archive):.2%} needed"
            each = Timing(median(times), median(times), len(times))
            if not theirs:
                rows.append(Row(what, each))
                continue
            peer = Timing(median(theirs), median(theirs), len(theirs))
            rows.append(
                Row(what, each, peers=[Peer("DuckDB over Parquet", peer)],
                    targets=[at_least(1, "times as fast as DuckDB", peer.wall / each.wall)])
            )  # fmt: skip
    return Table(
        f"Exact answers: SEQ of 3 names over {len(archive):,} events, counted, median of {len(asked)}", rows,
        ["Times and coded names lie beside the events as they lie in memory, 12 bytes per event; of leaves that may "
         "matter the events of the names are taken from there, and other columns from their row groups.",
         "DuckDB, one thread, over the same events in Parquet with large row groups: ASOF joins for skip-till-next, "
         "running sums for skip-till-any, joins with a span; the same counts."],
    )  # fmt: skip


def _values(folder: Path, quick: bool) -> Table:
    """Return what conditions on values read: the archive has ranges of numbers, and accounts beside the names."""
    number = 20_000 if quick else 1_000_000
    rng = np.random.default_rng(5)
    table = pa.table(
        {
            "t": np.arange(number),
            "n": pa.array([f"k{i}" for i in range(20)]).take(pa.array(rng.integers(0, 20, number))),
            "amount": rng.lognormal(5, 1.1, number).round(2),
            "account": pa.array([f"acc{i}" for i in range(number // 20)]).take(
                pa.array(rng.integers(0, number // 20, number))
            ),
        }
    )
    parquet = folder / "amounts.parquet"
    pq.write_table(table, parquet)
    with_values = Archive.build(table, folder / "with-values", time="t", type="n", values=["account"])
    without = Archive.build(table, folder / "without-values", time="t", type="n")
    without.answerer.__dict__["leaves"] = replace(without.leaves, values=None)
    base = duckdb.connect()
    base.execute("SET threads = 1")
    rows = []
    for condition in (
        "a.amount > 10000",
        "a.amount > 50000",
        "a.account = 'acc7'",
        "a.account = 'acc7' AND b.account = 'acc7'",
    ):
        step(condition)
        text = f"PATTERN SEQ(k1 a, k2 b) WHERE {condition} WITHIN 2000"
        times: dict[str, list[float]] = {"with": [], "without": [], "duckdb": []}
        sql = (
            f"SELECT count(*) FROM (SELECT * FROM read_parquet('{parquet}') WHERE n = 'k1') a, (SELECT * FROM "
            f"read_parquet('{parquet}') WHERE n = 'k2') b WHERE a.t < b.t AND b.t <= a.t + 2000 AND {condition}"
        )
        for _ in range(2 if quick else 5):
            found = _timed(times["with"], lambda: _counted(with_values, text))  # noqa: B023
            plain = _timed(times["without"], lambda: _counted(without, text))  # noqa: B023
            (total,) = _timed(times["duckdb"], lambda: base.execute(sql).fetchone())  # noqa: B023
        assert total == found.trends.count() == plain.trends.count()
        best = {name: Timing(median(some), median(some), len(some)) for name, some in times.items()}
        rows.append(
            Row(f"{condition}: {found.read / number:.1%} read, {plain.read / number:.1%} without", best["with"],
                peers=[Peer("without ranges and values", best["without"]), Peer("DuckDB over Parquet", best["duckdb"])],
                targets=[at_most(0.5, "of what is read without", found.read / plain.read),
                         at_least(1, "times as fast as DuckDB", best["duckdb"].wall / best["with"].wall)])
        )  # fmt: skip
    kept, bare = (one.info()["filter_bytes"] / number for one in (with_values, without))
    return Table(
        f"Conditions on values: SEQ(k1 a, k2 b) WITHIN 2000 over {number:,} payments", rows,
        [f"Filters with accounts {kept:.1f} bytes per event, without {bare:.1f}; ranges 16 a leaf and column."],
    )  # fmt: skip


def _counted(archive: Archive, text: str) -> Any:
    found = archive.find(text, exact=True)
    found.trends.count()
    return found


def _row(
    archive: Archive, lists: Lists, joined: Callable[[list[str]], list[tuple[Any, Any]]], asked: list[list[int]],
    length: int, exactly: int,
) -> Row:  # fmt: skip
    times: dict[str, list[float]] = {name: [] for name in ("leaves", "first", "again", "lists", "duckdb")}
    wrong = ours = true = 0
    for number, question in enumerate(asked):
        names = [f"w{i}" for i in question]
        found = _timed(
            times["leaves"],
            lambda: LeafSearch(Question((step_sequence(names),), Policy.NEXT), archive.leaves).intervals(),  # noqa: B023
        )
        text = f"PATTERN SEQ({', '.join(f'{name} x{i}' for i, name in enumerate(names))}) SELECT skip-till-next"
        for kind in ("first", "again"):
            table = _timed(times[kind], lambda: archive.find(text))  # noqa: B023
        assert table.num_rows == len(found)
        rows = _timed(times["lists"], lambda: lists.find(question))  # noqa: B023
        wrong += list(zip(found.start.tolist(), found.end.tolist(), strict=True)) != rows
        if number < exactly:
            events = _timed(times["duckdb"], lambda: joined(names))  # noqa: B023
            starts = {begin // LEAF for begin, _ in events}
            assert starts <= set(found.start.tolist())
            ours, true = ours + len(found), true + len(starts)
    best = {name: Timing(median(some), median(some), len(some)) for name, some in times.items()}
    whole = best["again"].wall
    title = (
        f"{length} names: {best['leaves'].wall * 1e6:,.0f} µs by leaves, {whole * 1e6:,.0f} with its table, "
        f"{best['first'].wall * 1e6:,.0f} if the text is new; {wrong} of {len(asked)} lists wrong"
    )
    if ours:
        title += f"; {true / ours:.0%} of start leaves true"
    peers = [Peer("exact lists of leaves, in NumPy", best["lists"]), Peer("DuckDB over Parquet", best["duckdb"])]
    targets = [at_most(1000, "microseconds", whole * 1e6)] if length <= 8 and len(archive) <= 1_000_000 else []
    return Row(title, best["again"], peers=peers, targets=targets)


def _timed(times: list[float], work: Callable[[], Any]) -> Any:
    if not times:
        work()  # so that everything is compiled
    begin = perf_counter()
    result = work()
    times.append(perf_counter() - begin)
    return result
