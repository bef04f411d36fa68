"""The language: every construct over 100,000 events in groups of 1,000, counted or listed; plain peers for some."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pyarrow as pa

import trellis
from benchmarks import Peer, Row, Table, Timing, at_least, best_of
from benchmarks.cliff import MODULUS, columns, trades

EVENTS, GROUP = 100_000, 1_000
RATE = 20_000  # events per second of all cores, at least
A, B, C, D = range(4)
ABC = "SEQ(A a, B+ b[], C c) WHERE [part]"
AB = "SEQ(A a, B b)+ g[] WHERE [part]"
NEXT = "SELECT skip-till-next"

QUERIES: dict[str, dict[str, str]] = {
    "Quantifiers": {
        "E?": "SEQ(A a, B? b, C c) WHERE [part, sym]",
        "E*": "SEQ(A a, B* b[], C c) WHERE [part]",
        "E{n}": "SEQ(A a, B{3} b[], C c) WHERE [part]",
        "E{n,m}": "SEQ(A a, B{2,4} b[], C c) WHERE [part] AND b[i].price > b[i-1].price",
        "E{n,}": "SEQ(A a, B{3,} b[], C c) WHERE [part]",
    },
    "Groups": {
        "SEQ(...)+": AB,
        "SEQ(...){n,m}": "SEQ(SEQ(A a, B b){2,3} g[], C c) WHERE [part]",
        "each iteration": f"SEQ(SEQ(A a, B b)+ g[], C c) WHERE [part] AND a.price + b.price < 2 * c.price {NEXT}",
        "OR(...)*": "SEQ(A a, OR(B b, C c)* g[], D d) WHERE [part]",
        "AND(...)+": f"SEQ(A a, AND(B b, C c)+ g[], D d) WHERE [part] {NEXT}",
        "nested": f"SEQ(SEQ(A a, B+ b[])+ h[], C c)+ g[] WHERE [part] {NEXT}",
        "g[i] and g[i-1]": f"{AB} AND g[i].a.price > g[i-1].b.price {NEXT}",
        "FIRST(g)": f"SEQ(SEQ(A a, B b)+ g[], C c) WHERE [part] AND FIRST(g).a.price < c.price {NEXT}",
        "g[k]": f"SEQ(SEQ(A a, B b)+ g[], C c) WHERE [part] AND g[2].a.price < c.price {NEXT}",
        "COUNT(g)": f"SEQ(SEQ(A a, B b)+ g[], C c) WHERE [part] HAVING COUNT(g) > 2 {NEXT}",
    },
    "Steps": {
        "contiguous, then next": "SEQ(A a, contiguous B+ b[] skip-till-next, C c) WHERE [part]",
        "next, then any, then contiguous": "SEQ(A a, skip-till-next B+ b[] skip-till-any, contiguous C c) WHERE [part]",
        "greedy": "SEQ(A a, B+ b[] skip-till-next greedy, skip-till-next C c) WHERE [part]",
        "UNTIL": "SEQ(A a, B+ b[] UNTIL (b.price > 105), C c) WHERE [part]",
        "UNTIL beside another": f"SEQ(A a, B+ b[] UNTIL (b.price > 1.05 * a.price), C c) WHERE [part] {NEXT}",
    },
    "After a match": {
        "PAST LAST": f"{ABC} AFTER MATCH SKIP PAST LAST",
        "TO NEXT": f"{ABC} AFTER MATCH SKIP TO NEXT",
        "TO FIRST": f"{ABC} AFTER MATCH SKIP TO FIRST b",
        "TO LAST": f"{ABC} AFTER MATCH SKIP TO LAST b",
        "the longest": f"{ABC} ORDER BY LENGTH DESC AFTER MATCH SKIP PAST LAST",
        "the greatest sum": f"{ABC} ORDER BY SUM(b.volume) DESC AFTER MATCH SKIP PAST LAST",
        "contiguous": f"{ABC} SELECT contiguous REPORT any ORDER BY LENGTH DESC AFTER MATCH SKIP PAST LAST",
    },
    "So far, and whole variables": {
        "COUNT so far": "A+ a[] WHERE [part] AND COUNT(a[..i]) <= 5",
        "COUNT so far, any": "A+ a[] WHERE [part] AND COUNT(a[..i]) <= 5 REPORT any",
        "AVG so far": f"A+ a[] WHERE [part] AND a[i].price > AVG(a[..i-1].price) {NEXT}",
        "SUM so far": f"{ABC} AND SUM(b[..i].volume) < 2000 {NEXT}",
        "MAX so far": "A+ a[] WHERE [part] AND a[i].volume > MAX(a[..i-1].volume)",
        "NOT IN so far": f"{ABC} AND b[i].sym NOT IN (b[..i-1].sym) {NEXT}",
        "SUM of all": f"{ABC} AND SUM(b.volume) > c.volume {NEXT}",
        "COUNT of all": f"{ABC} AND COUNT(b) BETWEEN 2 AND 4",
        "HAVING LENGTH": f"{ABC} HAVING LENGTH >= 5",
        "HAVING a sum": f"{ABC} HAVING SUM(b.volume) > 3000 {NEXT}",
        "HAVING FIRST and LAST": f"{ABC} HAVING LAST(b).price > FIRST(b).price + 1 {NEXT}",
    },
    "NOT": {
        "NOT": "SEQ(A a, NOT(D d), B b) WHERE [part]",
        "inside AND": "AND(A a, B b, NOT(D d)) WHERE [part] AND d.price > 110",
        "inside AND in SEQ": "SEQ(A a, AND(B b, NOT(D d)), C c) WHERE [part]",
        "of a composite": "SEQ(A a, NOT(SEQ(B b, D d)), C c) WHERE [part]",
        "of a composite, compared": "SEQ(A a, NOT(SEQ(B b, D d)), C c) WHERE [part] AND b.price > a.price",
        "with NOT at its edge": "SEQ(A a, NOT(SEQ(NOT(B b), D d)), C c) WHERE [part]",
        "of a group, in NOT": "SEQ(A a, NOT(SEQ(B b, NOT(C c), D d){2,}), C e) WHERE [part]",
        "inside AND of a group": f"SEQ(C x, AND(A a, B b, NOT(D d))+ g[], C c) WHERE [part] {NEXT}",
        "beside an optional part": "SEQ(A a, NOT(D d), B? b, C c) WHERE [part]",
    },
    "Output": {
        "LIMIT PER": f"SEQ(A a, B b, C c) WHERE [part] {NEXT} LIMIT 1 PER a.sym",
        "RETURN": f"{ABC} {NEXT} RETURN COUNT(b), CASE WHEN LENGTH > 3 THEN 'long' ELSE 'short' END AS size",
        "functions": "SEQ(A a, B b) WHERE [part] AND ROUND(a.price) = FLOOR(b.price) AND CAST(a.sym AS text) LIKE '1%'",
        "AGGREGATE": f"{ABC} AGGREGATE SUM(LENGTH), MAX(2 * b.volume + 1) AS most, AVG(b.price)",
        "PER EVENT": f"{ABC} AGGREGATE COUNT(*), SHARE PER EVENT",
        "PER EVENT OF v": f"{ABC} AGGREGATE COUNT(*), AVG(LENGTH) PER EVENT OF b",
        "ties broken": "SEQ(A a, B b, C c) WHERE [part] AND a.price < b.price SELECT skip-till-next",
    },
}  # fmt: skip


# --- Plain programs ---------------------------------------------------------------------------------------------------


@numba.njit(cache=True)
def _three_between(kind: Any, part: Any) -> Any:
    """Count `SEQ(A a, B{3} b[], C c)`, modulo 2^64."""
    found = np.uint64(0)
    ways = np.zeros(4, np.uint64)
    for i in range(len(kind)):
        if i == 0 or part[i] != part[i - 1]:
            ways[:] = 0
        if kind[i] == A:
            ways[0] += np.uint64(1)
        elif kind[i] == B:
            for k in range(3, 0, -1):
                ways[k] += ways[k - 1]
        elif kind[i] == C:
            found += ways[3]
    return found


@numba.njit(cache=True)
def _past_last(kind: Any, part: Any) -> int:
    """Count the matches of `SEQ(A a, B+ b[], C c)` one behind the other, each the first that there is."""
    found = state = 0
    for i in range(len(kind)):
        if i == 0 or part[i] != part[i - 1]:
            state = 0
        if (state == 0 and kind[i] == A) or (state == 1 and kind[i] == B):
            state += 1
        elif state == 2 and kind[i] == C:
            found, state = found + 1, 0
    return found


@numba.njit(cache=True)
def _without(kind: Any, part: Any) -> int:
    """Count `SEQ(A a, NOT(D d), B b)`."""
    found = open_ = 0
    for i in range(len(kind)):
        if i == 0 or part[i] != part[i - 1] or kind[i] == D:
            open_ = 0
        open_ += kind[i] == A
        found += open_ if kind[i] == B else 0
    return found


TIES = "ties broken"
PEERS = {"E{n}": _three_between, "PAST LAST": _past_last, "NOT": _without}

# --- Rows -------------------------------------------------------------------------------------------------------------


def run(quick: bool) -> list[Table]:
    events = trades(EVENTS // 50 if quick else EVENTS)
    events = events.append_column("moment", pa.array(events["ts"].to_numpy() // 4))
    notes = [f"One group has {GROUP:,} events. Counted, or listed where there is an output; a first run compiles."]
    return [
        Table(f"{title}, {events.num_rows:,} events", [_row(*one, events, quick) for one in queries.items()], notes)
        for title, queries in QUERIES.items()
    ]


def _row(name: str, text: str, events: pa.Table, quick: bool) -> Row:
    whole, peers = f"PATTERN {text}", list[Peer]()
    small = events.slice(0, 2 * GROUP)
    if name in PEERS:
        given = columns(events, "kind", "part")
        ours, theirs = ask(whole, events) % MODULUS, int(PEERS[name](*given)) % MODULUS
        if ours != theirs:
            raise AssertionError(f"{name}: {ours} and, plainly, {theirs}")
        peers = [Peer("plain Numba", best_of(f"{name}, plainly", lambda: PEERS[name](*given), quick=quick, runs=2))]
    time = ("moment", "ts") if name == TIES else ("ts",)
    if name == TIES and ask(whole, events, time) != ask(whole, events):
        raise AssertionError("four events a moment, in order, are the same as one after another")
    timing = best_of(name, lambda: ask(whole, events, time), quick=quick, runs=2, warm=lambda: ask(whole, small, time))
    return Row(f"{name}: `{text}`", timing, peers=peers, targets=[_rate(timing, events.num_rows)])


def ask(text: str, events: pa.Table, time: tuple[str, ...] = ("ts",)) -> int:
    """Return how many results a query has, or, where it says what is to come out, how many rows it lists."""
    options: dict[str, Any] = {"event_id": "id", "type": "kind", "engine": "local", "max_trends": 10**12}
    trends = trellis.query(text).detect(events, time=time, **options)
    listed = any(word in text for word in ("AGGREGATE", "RETURN", "LIMIT"))
    return int(trends.to_arrow().num_rows if listed else trends.count())


def _rate(timing: Timing, events: int) -> Any:
    return at_least(RATE, "events per second", events / timing.cpu)
