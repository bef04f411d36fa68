"""From nothing to an answer: import, parse, bind, prepare, compile, run, cold and warm; small calls; Spark's start."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import trellis
from benchmarks import Limit, Row, Table, Timing, at_most, best_of, step
from trellis.io.generate import generate_table
from trellis.language.parser import parse

ROOT = Path(__file__).parents[1]
QUERY = "PATTERN Stock+ s[] WHERE [name] AND s[i].price > 1.02 * s[i-1].price"
KINDS = {
    "one inequality": QUERY,
    "two inequalities": f"{QUERY} AND s[i].volume > s[i-1].volume",
    "the longest": f"{QUERY} ORDER BY LENGTH DESC LIMIT 3",
    "windows": f"{QUERY} WITHIN 10 min SLIDE 5 min",
    "maximal": f"{QUERY} REPORT maximal",
    "aggregates": f"{QUERY} AGGREGATE COUNT(*), AVG(s.price), MAX(LENGTH)",
    "a sequence": "PATTERN T1; T2 WHERE T1.name = T2.name AND T1.price > T2.price WITHIN 1 min",
    "three conditions": f"{QUERY} AND s[i].volume < s[i-1].volume AND s[i].ts - s[i-1].ts <= 1 min",
    "a span": f"{QUERY} WITHIN 1 min",
    "skip-till-next": f"{QUERY} SELECT skip-till-next",
    "every part": f"{QUERY} REPORT any LIMIT 20 OFFSET 100",
    "the greatest gain": f"{QUERY} RETURN LAST(s).price - FIRST(s).price AS gain ORDER BY gain DESC LIMIT 3",
    "the best of each window": f"{QUERY} WITHIN 10 min SLIDE 5 min ORDER BY SUM(s.price) DESC LIMIT 1 PER WINDOW",
    "SKIP PAST LAST": f"{QUERY} AFTER MATCH SKIP PAST LAST",
    "per event": f"{QUERY} AGGREGATE COUNT(*), SHARE, MAX(LENGTH) PER EVENT",
    "Kleene between others": "PATTERN SEQ(Stock a, Stock+ b[], Stock c) WHERE [name] AND b[i].price > b[i-1].price "
    "AND a.price < c.price WITHIN 20 s",
    "NOT": "PATTERN SEQ(Stock a, NOT(Stock x), Stock b) WHERE [name] AND x.price > a.price AND b.price > a.price",
    "AND": "PATTERN AND(Stock a, Stock b) WHERE a.name = b.name AND a.price < b.price WITHIN 1 min",
    "OR, a group": "PATTERN SEQ(Stock a, OR(Stock b, Stock c))+ g[] WHERE [name] AND b.price > a.price WITHIN 10 s",
}
"""Kinds of queries that the README and the cheat sheet show; `PAGES` run as they are."""

PAGES = ("README", "docs/tutorial", "docs/features", "docs/from-match-recognize", "docs/graphs", "docs/debs2016")
FIRST = 3  # seconds of CPU that the first run takes at most beyond a later one
STAGES = ("import", "parse", "bind", "prepare", "compile", "run")
RUNS = 5
SMALL = 100  # events of a small call
SMALL_MS = 1  # that one takes at most, and to_pandas what pyarrow takes for the rows besides
SMALL_KINDS = {
    "rising": "PATTERN Stock+ s[] WHERE s[i].price > 1.02 * s[i-1].price AND s[i].volume > 3 * s[i-1].volume",
    "rising, by key": QUERY,
    "windows": f"{QUERY} WITHIN 1 min SLIDE 30 s",
    "a span": f"{QUERY} WITHIN 1 min",
    "a sequence": "PATTERN SEQ(Stock a, Stock b, Stock c) WHERE a.name = b.name AND b.name = c.name AND "
    "a.price < b.price AND c.price < b.price WITHIN 1 min",
    "a sequence with Kleene": "PATTERN SEQ(Stock a, Stock+ b[], Stock c) WHERE [name] AND "
    "b[i].price > b[i-1].price AND a.price < c.price WITHIN 1 min",
    "AND": "PATTERN AND(Stock a, Stock b) WHERE a.name = b.name AND a.price < b.price WITHIN 1 min",
}
CALLS, TABLES = 200, 20


def run(quick: bool) -> list[Table]:
    with tempfile.TemporaryDirectory(prefix="trellis-bench-") as folder:
        file = Path(folder) / "stock.parquet"
        write(generate_table("stock", 1_000, 1), file)
        tables = [_processes(file, quick), *_stages(file, Path(folder), quick), *_small_calls(quick)]
        return tables if quick else [*tables, _tour(Path(folder)), _spark(file), _build(Path(folder))]


def write(table: pa.Table, file: Path) -> None:
    pq.write_table(table, file)


# --- Whole processes --------------------------------------------------------------------------------------------


def _processes(file: Path, quick: bool) -> Table:
    count = [sys.executable, "-m", "trellis.cli.main", "count", QUERY, str(file), "--engine", "local", "--quiet"]
    ours = _best("trellis count", count, quick)
    bare = _best("bare imports", [sys.executable, "-c", "import numpy, pyarrow.compute, numba, rich, typer"], quick)
    row = Row(
        "trellis count, 1,000 events, --engine local", ours,
        peers=[Limit("Python with NumPy, Arrow, Numba, rich and typer imported", bare)],
        targets=[at_most(1.5, "s", ours.wall)],
    )  # fmt: skip
    return Table("From the start of the process to its end", [row])


def _best(what: str, command: list[str], quick: bool) -> Timing:
    step(f"{what}: first run")
    _timed(command)
    step(what)
    found = [_timed(command) for _ in range(1 if quick else RUNS)]
    return Timing(*min(found), len(found))


def _tour(folder: Path) -> Table:
    """Time the guided tour as somebody sees it for the first time, with no cache but what ships."""
    step("the tour")
    seconds = Timing(*_timed([sys.executable, "-m", "trellis.cli.main", "demo"], _environment(folder / "tour")))
    return Table(
        "The tour, from an empty cache", [Row("trellis demo", seconds, targets=[at_most(45, "s", seconds.wall)])]
    )


def _build(folder: Path) -> Table:
    """Time what set-up compiles, and weigh it: it is nearly all of the wheel."""
    step("what ships")
    place = folder / "shipped"
    seconds = Timing(*_timed([sys.executable, "-m", "trellis.compiled", "build", "--to", str(place)]))
    size = sum(file.stat().st_size for file in place.rglob("*") if file.is_file()) / 1e6
    targets = [at_most(60, "s of CPU", seconds.cpu), at_most(60, "MB", size)]
    return Table("Compiling what ships, in two processes", [Row("compiled kernels", seconds, targets=targets)])


def _timed(command: list[str], environment: dict[str, str] | None = None) -> tuple[float, float]:
    """Run a command; return its seconds on the clock and of all cores."""
    begin = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=environment)
    _, status, used = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - begin
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with code {process.returncode}")
    return seconds, used.ru_utime + used.ru_stime


# --- Stages, cold and warm --------------------------------------------------------------------------------------


def _stages(file: Path, folder: Path, quick: bool) -> list[Table]:
    """Return the stages of one query, and of each kind of query what the first time costs beyond the second."""
    rows: dict[str, list[Row]] = {"cold": [], "warm": []}
    kinds = []
    for place, (kind, query) in enumerate(KINDS.items()):
        kept = folder / f"kept-{place}"
        found = {}
        for temperature in ("cold", "warm"):
            step(f"{kind}, {temperature}")
            found[temperature] = _child("local", query, file, kept)
        cold, warm = (_total(found[temperature]) for temperature in ("cold", "warm"))
        kinds.append(_first(kind, cold, warm))
        if place == 0:
            for temperature in ("cold", "warm"):
                stages = found[temperature]
                rows[temperature] = [Row(name, Timing(*stages[name])) for name in STAGES if name in stages]
        if quick:
            break
    cold_note = "Cold: no caches but the compiled kernels that ship. `compile` is loading these, or compiling."
    return [
        Table("Stages, cold", rows["cold"], [cold_note]),
        Table("Stages, warm", rows["warm"]),
        Table("The first count and list of each kind of query", kinds),
        *([] if quick else [_pages(folder)]),
    ]


def _first(what: str, cold: Timing, warm: Timing) -> Row:
    target = at_most(FIRST, "s of CPU more than warm", cold.cpu - warm.cpu)
    return Row(what, cold, peers=[Limit("warm", warm)], targets=[target])


def _pages(folder: Path) -> Table:
    """Return what the Python of pages takes at first, block by block."""
    rows = []
    for page in PAGES:
        step(page)
        cold, warm = (_child("page", f"{page}.md", folder, folder / page) for _ in range(2))
        rows += [_first(f"{page}, block {block}", Timing(*cold[block]), Timing(*warm[block])) for block in cold]
    return Table("The first run of what pages show", rows)


def _child(engine: str, query: str, file: Path, kept: Path) -> dict[str, tuple[float, float]]:
    """Ask a query in a fresh process that keeps what it makes in a folder; return the seconds of its stages."""
    command = [sys.executable, "-m", "benchmarks.startup_child", engine, query, str(file)]
    done = subprocess.run(command, env=_environment(kept), cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    return {name: (wall, cpu) for name, (wall, cpu) in json.loads(done.stdout.splitlines()[-1]).items()}


def _environment(kept: Path) -> dict[str, str]:
    """Return the environment of a process that keeps what it makes in a folder."""
    places = {"NUMBA_CACHE_DIR": str(kept / "numba"), "XDG_CACHE_HOME": str(kept), "PYTHONPATH": str(ROOT)}
    return {name: value for name, value in os.environ.items() if name != "NUMBA_OPT"} | places


def _total(stages: dict[str, tuple[float, float]]) -> Timing:
    return Timing(sum(wall for wall, _ in stages.values()), sum(cpu for _, cpu in stages.values()))


# --- Small calls ------------------------------------------------------------------------------------------------


def _small_calls(quick: bool) -> list[Table]:
    tables = [generate_table("stock", SMALL, seed) for seed in range(1, TABLES + 1)]
    calls = CALLS // 5 if quick else CALLS

    def timed(what: str, call: Callable[[pa.Table], object]) -> Timing:
        def work() -> None:
            for place in range(calls):
                call(tables[place % TABLES])

        found = best_of(what, work, quick=quick)
        return Timing(found.wall / calls, found.cpu / calls, found.runs)

    parsing, asking = [], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", trellis.TrellisWarning)  # of events that share their time
        for kind, text in SMALL_KINDS.items():
            each = timed(f"parse {kind}", lambda _, text=text: parse.__wrapped__(text))
            parsing.append(Row(kind, each, targets=[at_most(0.2, "ms", 1000 * each.cpu)]))
            query = trellis.query(text)
            prepared = query.prepare(tables[0].schema, event_id="event_id")
            results = {id(table): prepared.detect(table).to_arrow() for table in tables}
            alone = timed(f"{kind}: pandas alone", lambda t, r=results: r[id(t)].to_pandas())
            for answer in ("count", "to_arrow", "to_pandas"):
                what = f"{kind}: {answer}"
                plain = timed(what, lambda t, q=query, a=answer: getattr(q.detect(t, event_id="event_id"), a)())
                ready = timed(f"{what}, prepared", lambda t, q=prepared, a=answer: getattr(q.detect(t), a)())
                most, peers = SMALL_MS, [Limit("prepared", ready)]
                if answer == "to_pandas":  # which no call of ours makes faster
                    most += round(1000 * alone.cpu, 2)
                    peers.append(Limit("pyarrow's to_pandas of the same rows", alone))
                targets = [at_most(most, "ms", 1000 * plain.cpu), at_most(most, "ms prepared", 1000 * ready.cpu)]
                asking.append(Row(what, plain, peers=peers, targets=targets))
    note = (
        f"Each of {calls} calls has another of {TABLES} tables; the query is parsed, and has had such a table before."
    )
    return [Table("Parsing", parsing), Table(f"One of many small calls, {SMALL} events", asking, [note])]


# --- Spark ------------------------------------------------------------------------------------------------------


def _spark(file: Path) -> Table:
    with tempfile.TemporaryDirectory(prefix="trellis-bench-") as kept:
        step("Spark alone")
        bare = _child("bare", QUERY, file, Path(kept))["session"]
        step("Trellis on Spark")
        found = _child("spark", QUERY, file, Path(kept))
        compiled = len(list(Path(kept).rglob("*.nbc")))
    rows = [Row(name, Timing(*seconds)) for name, seconds in found.items() if name != "session"]
    more = at_most(1, "s more than Spark alone", found["session"][0] - bare[0])
    session = Row("session", Timing(*found["session"]), peers=[Limit("Spark alone", Timing(*bare))], targets=[more])
    note = f"Without caches but what ships; {compiled} kernels were compiled."
    return Table("On Spark, 2 cores", [session, *rows], [note])
