"""The tables of the thesis on Bloom filter trees (5.1 to 5.6), over logs, books and streams of its sizes."""

from __future__ import annotations

import atexit
import gc
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks import Peer, Row, Table, Timing, at_most, step
from benchmarks.history_data import Pairs, books, every_start, large_log, log, named, step_sequence, zipf
from trellis.archive import Archive
from trellis.archive.filters import coded
from trellis.archive.leaves import Policy, Question
from trellis.archive.search import LeafSearch

atexit.register(gc.unfreeze)  # DuckDB would complain that it leaks

LEAF = 100
RATE = 0.01  # of wrong answers, promised of likely cases
SIZES = {"D1": (511_178, 30_439), "D2": (2_489_295, 38_793), "D3": (5_489_709, 52_451), "D4": (1_705_977, 87_130)}
TYPES = {
    "SEQ(A, B, C)": "SEQ({} a, {} b, {} c)", "SEQ(A, OR(B, C))": "SEQ({} a, OR({} b, {} c))",
    "SEQ(A, AND(B, C))": "SEQ({} a, AND({} b, {} c))", "SEQ(A, NOT(B), C)": "SEQ({} a, NOT({} b), {} c)",
}  # fmt: skip
# Seconds: the thesis's Tables 5.1 and 5.2 (approach 1, approach 2, the pair index), 5.4, 5.5 and 5.6, on its machine.
TOLD_SMALL = {2: (0.0040, 0.0362, 0.0143), 3: (0.0032, 0.0309, 0.0481), 4: (0.0031, 0.0320, 0.0749),
              5: (0.0029, 0.0307, 0.1896), 6: (0.0029, 0.0295, 0.3024), 7: (0.0025, 0.0308, 0.4468),
              8: (0.0021, 0.0318, 0.6800)}  # fmt: skip
TOLD_LARGE = {2: (0.0705, 4.6239, 0.07654), 3: (0.0668, 4.3471, 0.27445), 4: (0.0665, 4.1347, 0.63936),
              5: (0.0644, 4.5579, 1.24048), 6: (0.0644, 4.5179, 2.12963), 7: (0.0619, 4.6149, 3.46484),
              8: (0.0585, 4.2729, 5.37686)}  # fmt: skip
TOLD_BUILD = {"D1": 4.58, "D2": 11.09, "D3": 51.04, "D4": 14.78}
TOLD_ADJACENT = {
    "D1": (0.001, 0.013, 0.003, 0.002), "D2": (0.005, 0.045, 0.008, 0.004), "D3": (0.015, 0.083, 0.025, 0.010),
    "D4": (0.003, 0.004, 0.004, 0.002),
}  # fmt: skip
TOLD_NEXT = {
    "D1": (0.015, 0.037, 0.023, 0.012), "D2": (0.266, 0.944, 0.562, 0.212), "D3": (1.650, 6.421, 3.510, 1.051),
    "D4": (0.029, 0.043, 0.029, 0.018),
}  # fmt: skip


def run(quick: bool) -> list[Table]:
    with tempfile.TemporaryDirectory() as folder:
        return [*_logs(Path(folder), quick), *_streams(Path(folder), quick)]


def _mean(work: Callable[[Any], Any], given: Sequence[Any]) -> Timing:
    work(given[0])
    begin = perf_counter()
    for one in given:
        work(one)
    each = (perf_counter() - begin) / len(given)
    return Timing(each, each, len(given))


def _means(archive: Archive, texts: Sequence[str], **options: Any) -> Timing:
    """Return the mean time of questions whose texts are known."""
    for text in texts:
        archive.answerer.text(text, None)
    return _mean(lambda text: archive.find(text, **options), texts)


# --- Tables 5.1 and 5.2: logs -----------------------------------------------------------------------------------


def _logs(folder: Path, quick: bool) -> Iterator[Table]:
    logs = {"travel declarations": log("travel declarations"), "payment requests": log("payment requests")}
    given = {name: table for name, table in logs.items() if table is not None}
    for name, table in given.items():
        yield _log(f"5.1, {name} of 2020", table, folder / name.replace(" ", "-"), quick, by_case=True)
    events = 3_000 if quick else 1_202_267
    table = large_log(events, events // 38, 26)
    yield _log("5.2, a generated log of the size of BPI 2017", table, folder / "large", quick, by_case=False)


def _log(title: str, table: pa.Table, folder: Path, quick: bool, by_case: bool) -> Table:
    step(title)
    archive = Archive.build(table, folder, time="t", type="n", key="case", leaf=LEAF, false_positive=RATE)
    codes, names = coded(table["n"])
    cases, case_names = coded(table["case"])
    begin = perf_counter()
    pairs = Pairs(table["t"].cast(pa.int64()).to_numpy(), codes, cases, len(names))
    paired = perf_counter() - begin
    single = _concatenated(table, folder, by_case)
    source = folder.parent / f"{folder.name}.parquet"
    pq.write_table(table, source)
    base = duckdb.connect()
    base.execute("SET threads = 1")
    rows = []
    for length in (2, 3) if quick else range(2, 9):
        asked = _asked(codes, cases, length, 10 if quick else 40 if by_case else 8)
        rows.append(
            _log_row(
                archive, pairs, single, base, f"read_parquet('{source}')", asked, names.to_pylist(), case_names, length
            )
        )
    own = archive.info()["filter_bytes"] + archive.answerer.contents.keys.pairs.nbytes
    return Table(
        f"Table {title}: {table.num_rows:,} events, {len(case_names):,} cases, {len(names)} names; mean of a question",
        rows,
        [
            f"Filters with keys {own / 1e6:.1f} MB, pair index {pairs.bytes / 1e6:.1f} MB (made in {paired:.1f} s), "
            f"events in Parquet {source.stat().st_size / 1e6:.1f} MB. With so few names the pair index is the quicker "
            f"one, and exact; it takes {pairs.bytes / own:.1f} times the space, and more the longer the cases are.",
            "The thesis's times are of its own machine, of a log of 36,796 events (5.1) and of BPI 2017 (5.2), which "
            "are not here: they are told beside these, and not compared.",
        ],
    )


def _concatenated(table: pa.Table, folder: Path, wanted: bool) -> Archive | None:
    """Return an archive whose names are those of a case and an event, as in the thesis's second approach."""
    if not wanted:
        return None
    both = pc.binary_join_element_wise(table["case"], table["n"], "|")
    renamed = table.set_column(1, "n", both)
    return Archive.build(
        renamed, folder.parent / f"{folder.name}-single", time="t", type="n", leaf=LEAF, false_positive=0.01
    )


def _asked(codes: np.ndarray, cases: np.ndarray, length: int, number: int) -> list[list[int]]:
    """Return sequences that happened in some case, where it is long enough; every other one in some other order."""
    rng = np.random.default_rng(length)
    order = np.argsort(cases, kind="stable")
    begins = np.searchsorted(cases[order], np.arange(cases.max() + 2))
    found = []
    while len(found) < number:
        case = rng.integers(0, cases.max() + 1)
        events = order[begins[case] : begins[case + 1]]
        if len(events) >= length:
            places = rng.choice(events, length, replace=False)
            found.append(codes[places if len(found) % 2 else np.sort(places)].tolist())
    return found


def _log_row(
    archive: Archive, pairs: Pairs, single: Archive | None, base: Any, source: str, asked: list[list[int]],
    names: list[str], case_names: pa.Array, length: int,
) -> Row:  # fmt: skip
    texts = {tuple(one): f"PATTERN SEQ({', '.join(f'`{names[i]}` x{j}' for j, i in enumerate(one))})" for one in asked}
    following = [f"{text} SELECT skip-till-next" for text in texts.values()]
    partitioned = [f"{text} WHERE [case]" for text in texts.values()]
    whole, by_case = _means(archive, following), _means(archive, partitioned)
    exact = _mean(pairs.find, asked)
    joined = _mean(lambda one: every_start(base, source, [names[i] for i in one], "case"), asked[:3])
    wrong, told_of, untrue = Counter[str](), Counter[str](), 0
    for number, one in enumerate(asked):
        true = set(case_names.take(pa.array(pairs.find(one))).to_pylist())
        found = archive.find(f"{texts[tuple(one)]} WHERE [case]")
        keys, answers = found["key"].to_pylist(), found["answer"].to_pylist()
        assert true <= set(keys)
        if number < 3:
            assert {row[2] for row in every_start(base, source, [names[i] for i in one], "case")} == true
        untrue += len(case_names) - len(true)
        told_of.update(answers)
        wrong.update(answer for key, answer in zip(keys, answers, strict=True) if key not in true)
    peers = [Peer("over the whole log, whatever the case (approach 1)", whole)]
    if single is not None and length in (2, 8):
        each = _mean(lambda one: _each_case(single, case_names, [names[i] for i in one]), asked[:1])
        peers.append(Peer("a question for each case (approach 2 as in the thesis)", each))
    peers += [Peer("exact pair index by case", exact), Peer("DuckDB over Parquet, exact, every start", joined)]
    told = (TOLD_LARGE if single is None else TOLD_SMALL)[length]
    shares = ", ".join(f"{wrong[kind] / max(1, told_of[kind]):.2%} of {kind}" for kind in ("likely", "maybe"))
    return Row(
        f"length {length}, [case] in one pass: wrong {shares} "
        f"(thesis: {told[0]:g}, {told[1]:g}, pair index {told[2]:g} s)",
        by_case,
        peers=peers,
        targets=[at_most(RATE, "of the other cases called likely", wrong["likely"] / max(1, untrue))],
    )


def _each_case(archive: Archive, cases: pa.Array, names: list[str]) -> int:
    found = 0
    for case in cases.to_pylist():
        question = Question((step_sequence([f"{case}|{name}" for name in names]),), Policy.NEXT)
        found += bool(len(LeafSearch(question, archive.leaves).intervals()))
    return found


# --- Tables 5.3 to 5.6: streams ---------------------------------------------------------------------------------


def _streams(folder: Path, quick: bool) -> list[Table]:
    streams: dict[str, pa.Table] = {}
    for name, (number, names) in SIZES.items():
        number, names = (number // 100, names // 100) if quick else (number, names)
        streams[name] = named(zipf(number, names, seed=int(name[1:])), names)
    words = books()
    if words is not None:
        streams["books"] = words.slice(0, 20_000) if quick else words
    built, adjacent, following, others = [], [], [], []
    for name, table in streams.items():
        step(f"{name}: building")
        begin = perf_counter()
        archive = Archive.build(
            table, folder / name, time="t", type="n", leaf=LEAF, false_positive=1e-4, query_length=3,
            memory=2_000_000_000,
        )  # fmt: skip
        wall = perf_counter() - begin
        distinct = pc.count_distinct(table["n"]).as_py()
        about = archive.info()
        told = f" (thesis: {TOLD_BUILD[name]:g} s)" if name in TOLD_BUILD else ""
        built.append(
            Row(
                f"{name}: {table.num_rows:,} events, {distinct:,} names; {about['bits']} bits a leaf, "
                f"{about['filter_bytes'] / 1e6:.1f} MB, height {about['height']}{told}",
                Timing(wall, wall),
            )
        )
        asked = _texts(table, 10 if quick else 40)
        for i, kind in enumerate(TYPES):
            step(f"{name}: {kind}")
            adjacent.append(_stream_row(archive, name, kind, asked[kind], "adjacent-leaves", TOLD_ADJACENT, i))
            following.append(_stream_row(archive, name, kind, asked[kind], "skip-till-next", TOLD_NEXT, i))
            for policy in ("skip-till-any", "contiguous"):
                others.append(_stream_row(archive, name, kind, asked[kind], policy, {}, i))
    where = "mean of questions of names drawn from the stream, with the table of all intervals"
    return [
        Table("Tables 5.3 and 5.4: streams of the thesis's sizes by Zipf's law, and books; building", built,
              ["M = 2 GB, C = 100, fpq = 0.0001, s = 3, as there. The thesis's times are of its own machine."]),
        Table(f"Table 5.5, the thesis's strict contiguity (adjacent leaves); {where}", adjacent),
        Table(f"Table 5.6, skip-till-next; {where}", following,
              ["`after` is the thesis's list, under its own reading: a start may not lie before the last end."]),
        Table(f"The same under skip-till-any and contiguous; {where}", others),
    ]  # fmt: skip


def _texts(table: pa.Table, number: int) -> dict[str, list[str]]:
    rng = np.random.default_rng(5)
    found: dict[str, list[str]] = {kind: [] for kind in TYPES}
    while len(found["SEQ(A, B, C)"]) < number:
        names = table["n"].take(pa.array(rng.integers(0, table.num_rows, 3))).to_pylist()
        if len(set(names)) == 3:
            for kind, text in TYPES.items():
                found[kind].append("PATTERN " + text.format(*(f"`{name}`" for name in names)))
    return found


def _stream_row(
    archive: Archive, name: str, kind: str, texts: list[str], policy: str, told: dict[str, tuple[float, ...]], i: int
) -> Row:
    ours = _means(archive, texts, policy=policy)
    peers = []
    if policy == "skip-till-next":
        thesis = _means(archive, texts, policy=policy, same_leaf="no", starts="after")
        peers = [Peer("the thesis's reading and list", thesis)]
    shown = f" (thesis: {told[name][i]:g} s)" if name in told else ""
    return Row(f"{name}, {kind}{', ' + policy if not told else ''}{shown}", ours, peers=peers)
