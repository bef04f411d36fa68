"""No cliffs: twelve ways to write a query, each beside a plain program with the same answer, and rewordings of it."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from benchmarks import Peer, Row, Table, Target, Timing, at_most, best_of, cliffs_limit, cliffs_neighbours
from benchmarks.cliff import MODULUS, Cliff
from benchmarks.cliffs_shapes import ROWS

PLAIN = "times the plain program"
LIMIT = 10  # times as long as the plain program, at most
ALIKE = 3  # times as long as the query itself, at most, for a rewording
LEAST = 0.005  # seconds of all cores; what takes less is a call's own cost, so ratios are taken to this
WIDE = ("OR, both ways", "OR of two columns")  # their numbers have as many bits as there are events


def run(quick: bool) -> list[Table]:
    sizes = (1_000,) if quick else (10_000, 100_000)
    tables = [_neighbours(size, quick) for size in sizes]
    tables += [_shapes(number, quick) for number in sorted({cliff.row for cliff in ROWS})]
    return tables + [_limits(size, quick) for size in sizes]


# --- Neighbours and spans: rows 1, 2, 9 and 10 ------------------------------------------------------------------------


def _neighbours(size: int, quick: bool) -> Table:
    rows = []
    for name, (text, ours, peer) in cliffs_neighbours.rows(size).items():
        if name in WIDE and size > 10_000:
            continue
        times = cliffs_neighbours.passes(ours())
        timing = best_of(name, ours, quick=quick, runs=2)
        plain = best_of(f"{name}, plainly", lambda peer=peer, times=times: peer(times), quick=quick, runs=2)
        rows.append(_row(f"{name}: `{text}`", timing, plain))
        rows += _reworded(cliffs_neighbours.rewordings(name, size), timing, quick)
    notes = ["The plain program passes over the events once for each 58 bits of the exact number."]
    return Table(f"Rows 1, 2, 9 and 10: neighbours, {size:,} events", rows, notes)


# --- Patterns: rows 3, 4, 5, 8 and 11 ---------------------------------------------------------------------------------


def _shapes(number: int, quick: bool) -> Table:
    chosen = [cliff for cliff in ROWS if cliff.row == number]
    notes = [f"{cliff.title}: {cliff.bound}." for cliff in chosen if cliff.bound]
    sizes = [(cliff, size) for cliff in chosen for size in (cliff.sizes[:1] if quick else cliff.sizes)]
    rows = [row for cliff, size in sizes for row in _rows(cliff, size // 10 if quick and size > 1_000 else size, quick)]
    same = "Answers are compared, counts modulo 2^64, before anything is measured; the plain program passes over the "
    same += "events once for each 58 bits of the exact number."
    return Table(f"Row {number}", rows, [*notes, same])


def _rows(cliff: Cliff, size: int, quick: bool) -> list[Row]:
    events = cliff.events(size)
    answer, theirs = cliff.ask(cliff.text, events), cliff.peer(events) % MODULUS
    if answer % MODULUS != theirs:
        raise AssertionError(f"{cliff.title}, {size:,} events: {answer % MODULUS} and, by {cliff.peer_name}, {theirs}")
    timing = _timed(f"{cliff.title}, {size:,} events", cliff, cliff.text, events, quick)
    times = cliffs_neighbours.passes(answer)
    peer = best_of(f"{cliff.title}, {cliff.peer_name}", lambda: [cliff.peer(events) for _ in range(times)], quick=quick)
    targets = [] if cliff.limit is None else [_times(cliff.limit, PLAIN, timing, peer)]
    found = [Row(f"{cliff.title}: {size:,} events", timing, peers=[Peer(cliff.peer_name, peer)], targets=targets)]
    for text in cliff.rewordings:
        other = _timed(text, cliff, text, events, quick)
        found.append(Row(f"`{text}`", other, targets=[_times(ALIKE, "times the row's own", other, timing)]))
    return found


def _timed(what: str, cliff: Cliff, text: str, events: pa.Table, quick: bool) -> Timing:
    return best_of(what, lambda: cliff.ask(text, events), quick=quick, runs=2)


# --- LIMIT and the best: rows 6, 7 and 12 -----------------------------------------------------------------------------


def _limits(size: int, quick: bool) -> Table:
    rows = []
    for name, (text, ours, peer) in cliffs_limit.entries(size).items():
        timing = best_of(name, ours, quick=quick, runs=2)
        rows.append(_row(f"{name}: `{text}`", timing, best_of(f"{name}, plainly", peer, quick=quick, runs=2)))
        rows += _reworded(cliffs_limit.rewordings(name, size), timing, quick)
    notes = ["The plain programs know that prices rise; they neither count nor sort, and number no results."]
    return Table(f"Rows 6, 7 and 12: the first and the best of {size:,} events", rows, notes)


def _reworded(others: dict[str, Callable[[], object]], own: Timing, quick: bool) -> list[Row]:
    """Return a row for each rewording of a query, beside the query's own time."""
    rows = []
    for text, run_ in others.items():
        run_()
        timing = best_of(text, run_, quick=quick, runs=2)
        rows.append(Row(f"`{text}`", timing, targets=[_times(ALIKE, "times the row's own", timing, own)]))
    return rows


def _row(what: str, timing: Timing, plain: Timing) -> Row:
    return Row(what, timing, peers=[Peer("plain Numba", plain)], targets=[_times(LIMIT, PLAIN, timing, plain)])


def _times(limit: float, what: str, timing: Timing, other: Timing) -> Target:
    return at_most(limit, what, max(timing.cpu, LEAST) / max(other.cpu, LEAST))
