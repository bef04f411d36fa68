"""What the benchmarks of histories run over, and their exact peers: lists of leaves, pairs by case, DuckDB."""

from __future__ import annotations

import tarfile
import tempfile
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numba import njit

from trellis.archive.step_sequences import StepSequence
from trellis.io.read import read_table

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
LOGS = {"travel declarations": "DomesticDeclarations.xes.gz", "payment requests": "RequestForPayment.xes.gz"}


def zipf(number: int, names: int, seed: int = 1) -> np.ndarray:
    """Return the names of a stream as numbers: by Zipf's law, each name at least once where there is room."""
    rng = np.random.default_rng(seed)
    weights = np.cumsum(1 / np.arange(1, names + 1))
    codes = np.searchsorted(weights / weights[-1], rng.random(number)).astype(np.int64)
    if 2 * names <= number:
        codes[rng.permutation(number)[:names]] = np.arange(names)
    return codes


def named(codes: np.ndarray, names: int) -> pa.Table:
    """Return a stream of names, one at each time."""
    vocabulary = pa.array([f"w{i}" for i in range(names)])
    text = pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32)), vocabulary).cast(pa.string())
    return pa.table({"t": np.arange(len(codes)), "n": text})


def books() -> pa.Table | None:
    """Return the words of some books as a stream, if they are here."""
    path = DATA / "words" / "books_small.tar.gz"
    if not path.exists():
        return None
    with tempfile.TemporaryDirectory() as folder, tarfile.open(path) as packed:
        packed.extractall(folder, filter="data")
        table = read_table(folder, input_format="text")
    return table.rename_columns(["t", "n"])


def log(name: str) -> pa.Table | None:
    """Return a log in the order of its times, if it is here: `t`, `n` and `case`."""
    path = DATA / "event_logs" / LOGS[name]
    if not path.exists():
        return None
    table = read_table(path, columns=["time:timestamp", "concept:name", "case:concept:name"])
    return table.rename_columns(["t", "n", "case"]).sort_by([("t", "ascending")])


def large_log(events: int, cases: int, names: int) -> pa.Table:
    """Return a generated log: cases of a walk through names, side by side in time."""
    rng = np.random.default_rng(7)
    case = np.sort(rng.integers(0, cases, events))
    begins = np.searchsorted(case, np.arange(cases))
    step = np.arange(events) - begins[case]
    time = rng.random(cases)[case] * 1e9 + step * 4e5 + rng.random(events) * 3e5
    name = (step + rng.integers(0, 6, events)) % names
    order = np.argsort(time)
    return pa.table(
        {
            "t": np.arange(events),
            "n": pa.array([f"a{i}" for i in range(names)]).take(pa.array(name[order])),
            "case": pa.array([f"c{i}" for i in range(cases)]).take(pa.array(case[order])),
        }
    )


def step_sequence(names: list[str]) -> StepSequence:
    """Return the steps of some names, one after another."""
    gaps = len(names) - 1
    return StepSequence(tuple((frozenset({name}),) for name in names), (frozenset(),) * gaps, (False,) * gaps)


# --- Exact lists of leaves --------------------------------------------------------------------------------------


class Lists:
    """For each name the leaves that it is in: exact."""

    def __init__(self, codes: np.ndarray, names: int, leaf: int) -> None:
        order = np.argsort(codes, kind="stable")
        begins = np.searchsorted(codes[order], np.arange(names + 1))
        leaves = (order // leaf).astype(np.int32)
        self.lists = [np.unique(leaves[a:b]) for a, b in zip(begins[:-1].tolist(), begins[1:].tolist(), strict=True)]

    @property
    def bytes(self) -> int:
        """What they take, without the names."""
        return sum(one.nbytes for one in self.lists)

    def find(self, names: list[int]) -> list[tuple[int, int]]:
        """Return for each start the first end."""
        start = at = self.lists[names[0]]
        for name in names[1:]:
            one = self.lists[name]
            place = np.searchsorted(one, at)
            keep = place < len(one)
            start, at = start[keep], one[place[keep]]
        return list(zip(start.tolist(), at.tolist(), strict=True))


# --- Pairs of events by case ------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _pairs(times, codes, cases, number, names, firsts, seconds, counts):  # type: ignore[no-untyped-def]
    """Count, and where there is room write, for each event and name the next event of its case with that name."""
    later = np.full((number, names), -1, np.int32)
    end = len(codes)
    while end > 0:  # from behind, the events of one time together: none of them is later than another
        begin = end - 1
        while begin > 0 and times[begin - 1] == times[end - 1]:
            begin -= 1
        for i in range(end - 1, begin - 1, -1):
            for name in range(names):
                if later[cases[i], name] >= 0:
                    pair = codes[i] * names + name
                    if len(firsts):
                        firsts[counts[pair]], seconds[counts[pair]] = i, later[cases[i], name]
                    counts[pair] += 1
        for i in range(end - 1, begin - 1, -1):
            later[cases[i], codes[i]] = i
        end = begin


class Pairs:
    """An exact index of pairs of names by case: for each event of the first name the next one of the second."""

    def __init__(self, times: np.ndarray, codes: np.ndarray, cases: np.ndarray, names: int) -> None:
        self.names, self.cases, number = names, cases, int(cases.max()) + 1
        none, counts = np.empty(0, np.int32), np.zeros(names * names, np.int64)
        _pairs(times, codes, cases, number, names, none, none, counts)
        self.begins = np.concatenate([[0], np.cumsum(counts)])
        self.firsts, self.seconds = np.empty((2, self.begins[-1]), np.int32)
        _pairs(times, codes, cases, number, names, self.firsts, self.seconds, self.begins[:-1].copy())
        for pair in range(names * names):  # they were written from behind
            some = slice(self.begins[pair], self.begins[pair + 1])
            self.firsts[some], self.seconds[some] = self.firsts[some][::-1].copy(), self.seconds[some][::-1].copy()

    @property
    def bytes(self) -> int:
        """What it takes."""
        return self.firsts.nbytes + self.seconds.nbytes

    def _rows(self, one: int, other: int) -> slice:
        pair = one * self.names + other
        return slice(self.begins[pair], self.begins[pair + 1])

    def find(self, names: list[int]) -> np.ndarray:
        """Return the cases in which names came one after another."""
        at = self.seconds[self._rows(names[0], names[1])]
        for one, other in pairwise(names[1:]):
            rows = self._rows(one, other)
            at = self.seconds[rows][np.isin(self.firsts[rows], at)]
        return np.unique(self.cases[at])


# --- DuckDB -----------------------------------------------------------------------------------------------------


def every_start(base: Any, source: str, names: list[str], case: str | None = None) -> list[tuple[Any, Any]]:
    """Return what DuckDB finds: for each event of the first name the event at which the sequence ends, next by next."""
    case = None if case is None else f'"{case}"'
    keep = "" if case is None else f", {case}"
    text = f"SELECT t AS s, t{keep} FROM {source} WHERE n = ?"
    for _ in names[1:]:
        on = "" if case is None else f"a.{case} = b.{case} AND "
        more = "" if case is None else f", a.{case}"
        text = (
            f"SELECT a.s, b.t{more} FROM ({text}) a ASOF JOIN "
            f"(SELECT t{keep} FROM {source} WHERE n = ?) b ON {on}b.t > a.t"
        )
    found: list[tuple[Any, Any]] = base.execute(text, names).fetchall()
    return found


def joined_count(base: Any, source: str, names: list[str], select: str, window: int | None) -> int:
    """Return how many matches of three names DuckDB counts under a policy, within a span."""
    if select == "skip-till-next":
        return sum(window is None or end - start <= window for start, end in every_start(base, source, names))
    a, b, c = names
    events = f"WITH e AS MATERIALIZED (SELECT t, n FROM {source} WHERE n IN ('{a}', '{b}', '{c}'))"
    if window is None:
        text = (
            f"{events}, x AS (SELECT t, n, count(*) FILTER (n = '{a}') OVER (ORDER BY t) AS one FROM e), "
            f"y AS (SELECT t, n, sum(one) FILTER (n = '{b}') OVER (ORDER BY t) AS two FROM x) "
            f"SELECT sum(two) FROM y WHERE n = '{c}'"
        )
    else:
        text = (
            f"{events} SELECT count(*) FROM e a, e b, e c WHERE a.n = '{a}' AND b.n = '{b}' AND c.n = '{c}' "
            f"AND a.t < b.t AND b.t < c.t AND b.t <= a.t + {window} AND c.t <= a.t + {window}"
        )
    return int(base.execute(text).fetchone()[0] or 0)
