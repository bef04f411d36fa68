"""The history of a stream: building it and asking it, beside DuckDB and beside an exact list of leaves."""

from __future__ import annotations

import atexit
import gc
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks import Peer, Row, Table, Timing, at_least, at_most, best_of, step
from trellis.archive import Archive
from trellis.archive.filters import Filters
from trellis.archive.questions import Asked, Policy, Question
from trellis.archive.sizing import size_filters
from trellis.archive.words import Word

# The command line freezes what is left when it ends, and DuckDB would complain that it leaks.
atexit.register(gc.unfreeze)

LEAF = 100
RATE = 0.01
NAMES = 30_000
LENGTHS = (2, 3, 4, 8, 20)


def zipf(number: int) -> tuple[np.ndarray, pa.Array]:
    """Return the names of a stream as numbers, some frequent and most rare, and the names."""
    rng = np.random.default_rng(1)
    codes = (rng.zipf(1.15, number) % NAMES).astype(np.int64)
    return codes, pa.array([f"w{i}" for i in range(NAMES)])


def run(quick: bool) -> list[Table]:
    number = 20_000 if quick else 1_000_000
    codes, names = zipf(number)
    text = pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32)), names).cast(pa.string())
    table = pa.table({"t": np.arange(number), "n": text})
    with tempfile.TemporaryDirectory() as folder:
        return [_building(table, codes, names, Path(folder), quick), *_asking(table, codes, Path(folder), quick)]


def _building(table: pa.Table, codes: np.ndarray, names: pa.Array, folder: Path, quick: bool) -> Table:
    number = len(codes)
    distinct = [len(np.unique(codes[i : i + LEAF])) for i in range(0, number, max(LEAF, number // 300))]
    size = size_filters(distinct, -(-number // LEAF), RATE, 3)

    def fill() -> Filters:
        filters = Filters.empty(LEAF, size.bits, size.hashes)
        filters.add(codes, names, 0)
        return filters

    parquet = folder / "events.parquet"
    pq.write_table(table, parquet)
    made = iter(range(1000))

    def build() -> Archive:
        given = pq.read_table(parquet)
        target = folder / f"built-{next(made)}"
        return Archive.build(given, target, time="t", type="n", leaf=LEAF, false_positive=RATE)

    filling = best_of("filling filters", fill, quick=quick)
    building = best_of("building from Parquet", build, quick=quick)
    return Table(
        f"Building over {number:,} events, leaves of {LEAF}, rate {RATE:g}: {size.bits} bits a leaf",
        [
            Row(f"filters from coded names: {number / filling.wall / 1e6:.1f} M events/s", filling,
                targets=[at_least(5, "M events/s on one core", number / filling.cpu / 1e6)]),
            Row(f"all from Parquet, sorted, coded and written: {number / building.wall / 1e6:.1f} M events/s", building,
                targets=[at_least(1, "M events/s", number / building.wall / 1e6)]),
        ],
        [f"A limit: {size.hashes} bits an event are set, each in a cache line of its own."],
    )  # fmt: skip


def _asking(table: pa.Table, codes: np.ndarray, folder: Path, quick: bool) -> list[Table]:
    archive = Archive.build(table, folder / "asked", time="t", type="n", leaf=LEAF, false_positive=RATE)
    step("lists of leaves")
    order = np.argsort(codes, kind="stable")
    begins = np.searchsorted(codes[order], np.arange(NAMES + 1))
    lists = [np.unique(order[a:b] // LEAF) for a, b in zip(begins[:-1].tolist(), begins[1:].tolist(), strict=True)]
    base = duckdb.connect()
    base.execute("SET threads = 1")
    base.register("given", table)
    base.execute("CREATE TABLE events AS SELECT * FROM given")
    rng = np.random.default_rng(3)
    tables = []
    for what in ("rare", "frequent"):
        rows = []
        for length in LENGTHS[:2] if quick else LENGTHS:
            asked = [
                (
                    rng.integers(0, NAMES, length) if what == "rare" else codes[rng.integers(0, len(codes), length)]
                ).tolist()
                for _ in range(5 if quick else 60)
            ]
            rows.append(_row(archive, lists, base, asked, length, what))
        size = sum((archive.directory / name).stat().st_size for name in archive.manifest.tiles)
        own = sum(4 * len(one) for one in lists)
        tables.append(
            Table(
                f"SEQ of {what} names, skip-till-next, every start: microseconds a question",
                rows,
                [
                    f"Filters: {size / 1e6:.1f} MB. Lists of the leaves of each name, exact: {own / 1e6:.1f} MB and "
                    "the names. With so few names the lists are smaller, faster for rare names, and never wrong: "
                    "filters are for names without number, such as a case with its activity.",
                    "DuckDB, one thread, a loaded table, finds the first chain only, by the least later time for each "
                    "step in turn; five questions.",
                ],
            )
        )
    return tables


def _row(archive: Archive, lists: list[np.ndarray], base: Any, asked: list[list[int]], length: int, what: str) -> Row:
    leaves, wrong, ours, theirs, joined = archive.leaves, 0, [], [], []
    for number, question in enumerate(asked):
        word = Word(
            tuple((frozenset({f"w{i}"}),) for i in question), (frozenset(),) * (length - 1), (False,) * (length - 1)
        )
        work = Question(Asked((word,), Policy.NEXT), leaves)
        work.found()
        begin = perf_counter()
        found = work.__class__(work.asked, leaves).found()
        ours.append(perf_counter() - begin)
        begin = perf_counter()
        rows = _by_lists([lists[i] for i in question])
        theirs.append(perf_counter() - begin)
        wrong += list(zip(found.start.tolist(), found.end.tolist(), strict=True)) != rows
        if number < 5:
            begin = perf_counter()
            _first_chain(base, question)
            joined.append(perf_counter() - begin)
    ours_, lists_, joined_ = (Timing(median(one), median(one), len(one)) for one in (ours, theirs, joined))
    targets = [at_most(1000, "microseconds", ours_.wall * 1e6)] if length <= 8 else []
    title = f"{length} names: {ours_.wall * 1e6:,.0f} microseconds, {wrong} of {len(asked)} lists wrong"
    peers = [Peer("exact lists of leaves, in NumPy", lists_), Peer("DuckDB", joined_)]
    return Row(title, ours_, peers=peers, targets=targets)


def _by_lists(lists: list[np.ndarray]) -> list[tuple[int, int]]:
    """Return what exact lists of leaves tell: for each start the first end."""
    start = at = lists[0]
    for one in lists[1:]:
        place = np.searchsorted(one, at)
        keep = place < len(one)
        start, at = start[keep], one[place[keep]]
    return list(zip(start.tolist(), at.tolist(), strict=True))


def _first_chain(base: Any, names: list[int]) -> int | None:
    at = -1
    for name in names:
        ((found,),) = base.execute("SELECT min(t) FROM events WHERE n = ? AND t > ?", [f"w{name}", at]).fetchall()
        if found is None:
            return None
        at = found
    return at
