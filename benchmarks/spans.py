"""Spans (WITHIN without SLIDE) beside windows of the same length: counted, and listed by the row."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

import trellis
from benchmarks import Peer, Row, Table, at_least, at_most, best_of
from benchmarks.cliffs_neighbours import spans

TIMES = 3  # a span may take beside windows
FEW = {  # attribute vertices: nothing is compared, or keys are
    "E+, nothing compared": "PATTERN E+ s[] REPORT any",
    "E+, equal keys": "PATTERN E+ s[] WHERE s[i].k = s[i-1].k REPORT any",
    "E+ next, HAVING LENGTH": "PATTERN E+ s[] WHERE s[i].k >= s[i-1].k SELECT skip-till-next HAVING LENGTH >= 20",
    "SEQ(A+, B) REPORT any": "PATTERN SEQ(A+ a[], B b) REPORT any",
    "SEQ(A+, B)": "PATTERN SEQ(A+ a[], B b)",
    "SEQ(A, B+, C)": "PATTERN SEQ(A a, B+ b[], C c)",
}
RISING = "PATTERN E+ s[] WHERE s[i].price > s[i-1].price REPORT any"
A_RISING, B_RISING = (f"{v}[i].price > {v}[i-1].price" for v in "ab")
MANY = {
    "SEQ(A+, B), A rising, REPORT any": f"PATTERN SEQ(A+ a[], B b) WHERE {A_RISING} REPORT any",
    "SEQ(A, B+, C), B rising": f"PATTERN SEQ(A a, B+ b[], C c) WHERE {B_RISING}",
    "SEQ(A+, B+, C), A and B rising": f"PATTERN SEQ(A+ a[], B+ b[], C c) WHERE {A_RISING} AND {B_RISING}",
}
LISTED = {
    "SEQ(A+, B) REPORT any": "PATTERN SEQ(A+ a[], B b) REPORT any",
    "SEQ(A+, B)": "PATTERN SEQ(A+ a[], B b)",
    "SEQ(A, B+, C)": "PATTERN SEQ(A a, B+ b[], C c)",
}
A_EQUAL, B_EQUAL = (f"{v}[i].key = {v}[i-1].key" for v in "ab")
SAME_KEY = f"PATTERN SEQ(A+ a[], B b) WHERE {A_EQUAL} AND LAST(a).key = b.key"
BEST_TIMES = 5  # the best ten of spans may take beside those of windows
BEST = {
    "E+, rising, LENGTH": (60, "LENGTH DESC"),
    "E+, rising, SUM": (60, "SUM(s.price) DESC"),
    "E+, rising, a gain in percent": (600, "LAST(s).price / FIRST(s).price - 1 DESC"),
    "E+, rising, a gain": (600, "LAST(s).price - FIRST(s).price DESC"),
}
FIRST = {
    "SEQ(A, B+), COUNT(b) >= 3": "PATTERN SEQ(A a, B+ b[]) WHERE COUNT(b) >= 3",
    "SEQ(A, B{3,})": "PATTERN SEQ(A a, B{3,} b[])",
    "SEQ(A, B+, C), MAX(b.price) > a.price": "PATTERN SEQ(A a, B+ b[], C c) WHERE MAX(b.price) > a.price",
}
LONG = {
    "SEQ(A+, B), equal keys, REPORT any": f"{SAME_KEY} REPORT any",
    "SEQ(A+, B), equal keys": SAME_KEY,
    "SEQ(A, B+, C), equal keys": (
        f"PATTERN SEQ(A a, B+ b[], C c) WHERE a.key = FIRST(b).key AND {B_EQUAL} AND LAST(b).key = c.key"
    ),
}


def run(quick: bool) -> list[Table]:
    size, span, short, long = (600, 60, 6, 200) if quick else (10_000, 600, 20, 3_600)
    events = _events(size)
    return [
        Table(
            f"{size:,} events in spans of {span}, counted, with few attribute vertices",
            list(_counted(FEW, events, span, quick)),
            ["Windows do not overlap: each event is in one of them, and in as many spans as there are starts in one."],
        ),
        Table(
            f"{size:,} events in spans of {span}, counted, values compared",
            [_rising(events, span, quick), *_counted(MANY, events, span, quick)],
            [
                "For each pair of a first and a last event in a span there is another number of rising paths,",
                "and a count has the sum of all: no way is known that takes less than events times events of a span.",
                "So of one variable the peer that is judged is a plain loop, which adds numbers of 64 bits that wrap:",
                "once for each 64 bits of the number that we find. Spans of several variables hold fewer events.",
            ],
        ),
        Table(
            f"{size:,} events in spans of {short}, listed",
            list(_listed(LISTED, events, short, quick)),
            ["Spans have several times as many results as windows; what is judged is the time of a row."],
        ),
        Table(
            f"{size:,} events in spans of {long:,}, listed",
            list(_listed(LONG, events, long, quick)),
            ["All starts share the edges between events."],
        ),
        Table(
            f"{10 * size:,} events, the first 100 in spans of {span // 2}",
            list(_first(_events(10 * size), span // 2, quick)),
            ["The first events and what is in their reach are looked at; counting in windows takes all."],
        ),
        Table(
            f"{size:,} events, the best ten by ORDER BY in spans",
            list(_best(events, quick)),
            ["Runs of starts are bounded together; ranks are counted over the whole input, where windows count one."],
        ),
    ]


def _events(size: int) -> pa.Table:
    rng = np.random.default_rng(7)
    return pa.table(
        {
            "id": np.arange(size),
            "ts": np.arange(size),
            "type": rng.choice(list("ABCD"), size),
            "price": np.round(100 + np.cumsum(rng.normal(0, 1, size)), 2),
            "k": rng.integers(0, 10, size),
            "key": rng.integers(0, size // 25, size),
        }
    )


def _asked(text: str, within: str, events: pa.Table) -> Callable[[], Any]:
    query = trellis.query(f"{text} {within}")
    kind = None if "E+" in text else "type"
    return lambda: query.detect(events, time="ts", event_id="id", type=kind)


def _counted(queries: dict[str, str], events: pa.Table, span: int, quick: bool) -> Iterator[Row]:
    for name, text in queries.items():
        ours, windows = (_asked(text, within, events) for within in (f"WITHIN {span}", f"WITHIN {span} SLIDE {span}"))
        mine = best_of(name, lambda ours=ours: ours().count(), quick=quick)
        other = best_of(f"{name}, windows", lambda windows=windows: windows().count(), quick=quick)
        target = at_most(TIMES, "times", mine.cpu / other.cpu)
        yield Row(name, mine, peers=[Peer("in windows", other)], targets=[target])


def _first(events: pa.Table, span: int, quick: bool) -> Iterator[Row]:
    for name, text in FIRST.items():
        ours, windows = (
            _asked(text, f"WITHIN {span} LIMIT 100", events),
            _asked(text, f"WITHIN {span} SLIDE {span}", events),
        )
        mine = best_of(f"{name}, LIMIT 100", lambda ours=ours: ours().to_arrow(), quick=quick)
        other = best_of(f"{name}, counted in windows", lambda windows=windows: windows().count(), quick=quick)
        target = at_most(1, "times as long as to count all in windows", mine.cpu / other.cpu)
        yield Row(f"{name}, LIMIT 100", mine, peers=[Peer("counted in windows", other)], targets=[target])


def _rising(events: pa.Table, span: int, quick: bool) -> Row:
    ours, rank = _asked(RISING, f"WITHIN {span}", events), np.unique(events["price"], return_inverse=True)[1]
    mine = best_of("E+, rising", lambda: ours().count(), quick=quick)
    plain = best_of("E+, rising, a plain loop", lambda: spans(rank, span), quick=quick, runs=2)
    found = ours().count()
    assert found % 2**64 == int(spans(rank, span)), "the counts differ"
    words = found.bit_length() // 64 + 1
    return Row(
        "E+, rising, REPORT any", mine, peers=[Peer("a Fenwick tree for each start, 64 bits, in Numba", plain)],
        targets=[at_least(1, f"times as fast as {words} such loops", words * plain.cpu / mine.cpu)],
    )  # fmt: skip


def _best(events: pa.Table, quick: bool) -> Iterator[Row]:
    rising = RISING.removesuffix(" REPORT any")
    for name, (span, key) in BEST.items():
        texts = (f"WITHIN {span}", f"WITHIN {span} SLIDE {span}")
        mine, other = (
            best_of(f"{name}, {within}", lambda ask=ask: ask().to_arrow(), quick=quick)
            for within, ask in ((w, _asked(rising, f"{w} ORDER BY {key} LIMIT 10", events)) for w in texts)
        )
        target = at_most(BEST_TIMES, "times", mine.cpu / other.cpu)
        yield Row(f"{name}, in spans of {span}", mine, peers=[Peer("in windows", other)], targets=[target])


def _listed(queries: dict[str, str], events: pa.Table, span: int, quick: bool) -> Iterator[Row]:
    for name, text in queries.items():
        rows, timings = [], []
        for within in (f"WITHIN {span}", f"WITHIN {span} SLIDE {span}"):
            ask = _asked(text, within, events)
            timings.append(best_of(f"{name}, {within}, listed", lambda ask=ask: ask().to_arrow(), quick=quick))
            rows.append(ask().count())
        (mine, other), (many, few) = timings, rows
        work = f"{name}: {many:,} rows, {few:,} in windows"
        target = at_most(TIMES, "times for each row", (mine.cpu / many) / (other.cpu / few))
        yield Row(work, mine, peers=[Peer("in windows", other)], targets=[target])
