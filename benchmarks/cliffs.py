"""No cliffs: twelve ways to write a query, each beside a plain program with the same answer, and three rewordings."""

from __future__ import annotations

import importlib

import pyarrow as pa

from benchmarks import Peer, Row, Table, Target, Timing, at_most, best_of
from benchmarks.cliff import MODULUS, Cliff

MODULES = ("cliffs_neighbours", "cliffs_shapes", "cliffs_limit")
ALIKE = 3  # times as long as the query itself, at most, for a rewording
LEAST = 0.005  # seconds; what takes less is a call's own cost, so ratios are taken to this


def cliffs() -> list[Cliff]:
    """Return all rows, in the order of their numbers."""
    found = [cliff for name in MODULES for cliff in importlib.import_module(f"benchmarks.{name}").ROWS]
    return sorted(found, key=lambda cliff: cliff.row)


def run(quick: bool) -> list[Table]:
    return [_table(number, quick) for number in sorted({cliff.row for cliff in cliffs()})]


def _table(number: int, quick: bool) -> Table:
    chosen = [cliff for cliff in cliffs() if cliff.row == number]
    notes = [f"{cliff.title}: {cliff.bound}." for cliff in chosen if cliff.bound]
    sizes = [(cliff, size) for cliff in chosen for size in (cliff.sizes[:1] if quick else cliff.sizes)]
    rows = [row for cliff, size in sizes for row in _rows(cliff, size // 10 if quick and size > 1_000 else size, quick)]
    return Table(
        f"Row {number}", rows, [*notes, "Answers are compared, counts modulo 2^64, before anything is measured."]
    )


def _rows(cliff: Cliff, size: int, quick: bool) -> list[Row]:
    events = cliff.events(size)
    ours, theirs = cliff.ask(cliff.text, events) % MODULUS, cliff.peer(events) % MODULUS
    if ours != theirs:
        raise AssertionError(f"{cliff.title}, {size:,} events: {ours} and, by {cliff.peer_name}, {theirs}")
    timing = _timed(f"{cliff.title}, {size:,} events", cliff, cliff.text, events, quick)
    peer = best_of(f"{cliff.title}, {cliff.peer_name}", lambda: cliff.peer(events), quick=quick)
    targets = [] if cliff.limit is None else [_times(cliff.limit, "times the plain program", timing, peer)]
    found = [Row(f"{cliff.title}: {size:,} events", timing, peers=[Peer(cliff.peer_name, peer)], targets=targets)]
    for text in cliff.rewordings:
        other = _timed(text, cliff, text, events, quick)
        found.append(Row(f"`{text}`", other, targets=[_times(ALIKE, "times the row's own", other, timing)]))
    return found


def _timed(what: str, cliff: Cliff, text: str, events: pa.Table, quick: bool) -> Timing:
    return best_of(what, lambda: cliff.ask(text, events), quick=quick, runs=2)


def _times(limit: float, what: str, timing: Timing, other: Timing) -> Target:
    return at_most(limit, what, max(timing.wall, LEAST) / max(other.wall, LEAST))
