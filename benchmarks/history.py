"""The history of a stream: building it and asking it, beside exact lists of leaves and beside DuckDB."""

from __future__ import annotations

import atexit
import gc
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import trellis
from benchmarks import Peer, Row, Table, Timing, at_least, at_most, best_of, step
from benchmarks.history_data import Lists, every_start, named, step_sequence, zipf
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
                tables.append(_exact(archive, table, codes, quick))
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
    building = best_of(f"building over {number:,}", build, quick=quick, runs=2, warm=lambda: None)
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
            f"Filters {about['filter_bytes'] / 1e6:,.1f} MB ({about['filter_bytes_an_event']:.2f} bytes an event), "
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
        for length in LENGTHS[:2] if quick else (2, 8, 20) if large else LENGTHS:
            asked = [
                (
                    rng.integers(0, NAMES, length) if what == "rare" else codes[rng.integers(0, len(codes), length)]
                ).tolist()
                for _ in range(5 if quick else 60)
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


def _exact(archive: Archive, table: pa.Table, codes: np.ndarray, quick: bool) -> Table:
    """Return what of the history exact answers take, by how frequent their names are."""
    counts, rng, rows = np.bincount(codes, minlength=NAMES), np.random.default_rng(4), []
    for low, high in ((2, 20),) if quick else ((6, 20), (21, 100), (101, 1000), (1001, 10_000)):
        names = np.flatnonzero((counts >= low) & (counts <= high))
        asked = [rng.choice(names, 3, replace=False).tolist() for _ in range(2 if quick else 5)]
        for window in ("", " WITHIN 10000", " WITHIN 1000"):
            step(f"exact, {low} to {high}{window}")
            texts = [f"PATTERN SEQ(w{a} a, w{b} b, w{c} c){window}" for a, b, c in asked]
            times: list[float] = []
            needed = read = 0
            for text in texts:
                found = _timed(times, lambda: _counted(archive, text))  # noqa: B023
                needed, read = needed + found.needed, read + found.read
            whole: list[float] = []
            total = _timed(whole, lambda: trellis.query(texts[-1]).detect(table, time="t", type="n").count())  # noqa: B023
            assert total == found.trends.count()
            events = len(texts) * len(archive)
            each = median(times)
            rows.append(
                Row(f"names {low:,} to {high:,} times{window}: {needed / events:.2%} needed, {read / events:.1%} read",
                    Timing(each, each, len(times)), peers=[Peer("the engine over all events in memory",
                                                                Timing(whole[0], whole[0]))])
            )  # fmt: skip
    return Table(
        f"Exact answers: SEQ of 3 names over {len(archive):,} events, counted", rows,
        ["Read are row groups of about a thousand events that hold a leaf that is needed. A scan of events that are in "
         "memory already is hard to beat: where most is read, reading is the slower way."],
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
