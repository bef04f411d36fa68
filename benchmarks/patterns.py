"""Patterns of several variables: the CET paper's Q2 over many persons, beside one Kleene variable."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

import trellis
from benchmarks import Peer, Row, Table, Target, Timing, at_most, best_of, memory_of

WINDOW = "WITHIN 10 minutes SLIDE 1 minute"
Q2 = f"""
    PATTERN SEQ(Activity a, Activity+ b[])
    WHERE [personID] AND b.rate < NEXT(b).rate AND a.rate * 2 < b.rate AND b.type = 'passive' {WINDOW}
"""
ONE = f"PATTERN Activity+ b[] WHERE [personID] AND b.rate * 2 < NEXT(b).rate {WINDOW}"
CARRIED = Q2.replace("b.rate < NEXT(b).rate", "b.rate != NEXT(b).rate")
STEPS = 2  # of Q2, from `a` to `b` and from `b` to `b`, where one variable has one
AS_FAST = 1.25  # times as long for each step as one variable, at most
RISE, VOLUME = "{0}.price * 1.2 < {1}.price", "{0}.volume < {1}.volume"


def hearts(persons: int, seconds: int) -> pa.Table:
    """Return a measurement a second of each person: mostly at rest, at times a passive rise above twice that."""
    rng = np.random.default_rng(6)
    number = persons * seconds
    second = np.repeat(np.arange(seconds), persons)
    person = np.tile(np.arange(persons), seconds)
    rate = rng.integers(55, 66, number)
    passive = np.zeros(number, np.bool_)
    for at in rng.integers(0, max(seconds - 60, 1), (max(seconds // 3600, 1) * persons, 1))[:, 0].tolist():
        who = int(rng.integers(persons))
        when = at + np.sort(rng.choice(60, 4, replace=False))
        places = np.minimum(when, seconds - 1) * persons + who
        rate[places], passive[places] = 125 + 5 * np.arange(4), True
    return pa.table(
        {
            "ts": pa.array(1_700_000_000_000_000 + second * 1_000_000, pa.timestamp("us")),
            "id": np.arange(number),
            "personID": person,
            "rate": rate,
            "type": pa.array(np.where(passive, "passive", "active")),
        }
    )


def run(quick: bool) -> list[Table]:
    persons, seconds = (5, 1_800) if quick else (100, 86_400)
    events = hearts(persons, seconds)
    return [
        Table(
            f"Q2 of the CET paper: {persons:,} persons, one measurement a second, {seconds / 3600:g} hours, {WINDOW}",
            [
                _counted(events, memory_of("Q2", counting, persons, seconds), quick),
                _listed(events, quick),
                _maximal(events, quick),
                _carried(quick),
            ],
            [
                "One variable: rates that double, over the same events, all of which may be in a result, as in Q2.",
                "Listed means positions of events, every batch kept by no one.",
                "A limit: reading each event once in each of its ten windows at the speed of memory would take "
                f"{_at_best(events):.2g} seconds.",
            ],
        ),
        _dense(2_000 if quick else 20_000, quick),
    ]


def counting(persons: int, seconds: int) -> Any:
    """Make the events, and return the work of counting Q2 over them."""
    events = hearts(persons, seconds)
    return lambda: _detected(Q2, events).count()


def _at_best(events: pa.Table) -> float:
    return 10 * events.num_rows * 8 / 10e9


def _detected(text: str, events: pa.Table) -> Any:
    return trellis.query(text).detect(events, time="ts", event_id="id", max_trends=10**9)


def _counted(events: pa.Table, memory: int, quick: bool) -> Row:
    ours = best_of("counting Q2", lambda: _detected(Q2, events).count(), quick=quick, runs=2)
    one = best_of("counting one variable", lambda: _detected(ONE, events).count(), quick=quick, runs=2)
    return _row("counted", events, ours, one, f"{_detected(Q2, events).count():,} results", memory)


def _listed(events: pa.Table, quick: bool) -> Row:
    ours = best_of("listing Q2", lambda: _all(Q2, events), quick=quick, runs=1)
    one = best_of("listing one variable", lambda: _all(ONE, events), quick=quick, runs=1)
    return _row("listed", events, ours, one, f"{_all(Q2, events):,} results")


def _maximal(events: pa.Table, quick: bool) -> Row:
    """Measure the same where what is contained in another result is left out."""
    two, alone = (text.replace("WITHIN", "REPORT maximal WITHIN") for text in (Q2, ONE))
    ours = best_of("counting maximal Q2", lambda: _detected(two, events).count(), quick=quick, runs=2)
    one = best_of("counting one maximal variable", lambda: _detected(alone, events).count(), quick=quick, runs=2)
    return _row("counted, maximal", events, ours, one, f"{_detected(two, events).count():,} results")


def _carried(quick: bool) -> Row:
    """Measure the same with rates that need not rise, so that each first event is carried along."""
    events = hearts(5, 1_800 if quick else 7_200)
    ours = best_of("counting with a carried event", lambda: _detected(CARRIED, events).count(), quick=quick, runs=2)
    one = best_of("counting one variable", lambda: _detected(ONE, events).count(), quick=quick, runs=2)
    found = f"{_detected(CARRIED, events).count():,} results"
    return _row("counted, `a` carried", events, ours, one, found, targeted=False)


def _all(text: str, events: pa.Table) -> int:
    return sum(b.num_rows for b in _detected(text, events).batches(columns=["events"], positions=True))


def _row(
    what: str, events: pa.Table, ours: Timing, one: Timing, found: str, memory: int | None = None,
    targeted: bool = True,
) -> Row:  # fmt: skip
    speed = f"{events.num_rows / ours.wall:,.0f} events/s, {found}"
    targets = [_as_fast(ours, one, STEPS)] if targeted else []
    return Row(f"{what}: {speed}", ours, memory, peers=[Peer("one Kleene variable", one)], targets=targets)


def _as_fast(ours: Timing, one: Timing, steps: int) -> Target:
    return at_most(AS_FAST, "times one variable for each step", ours.wall / one.wall / steps)


# --- One window in which nearly every event follows many --------------------------------------------------------------


def _dense(number: int, quick: bool) -> Table:
    """Measure `SEQ(A+ a[], B+ b[])`, which has three steps, over one window of random prices."""
    rng = np.random.default_rng(7)
    events = pa.table(
        {
            "ts": np.arange(number),
            "price": rng.random(number) * 100,
            "volume": rng.random(number),
            "kind": pa.array(rng.choice(["A", "B"], number)),
        }
    )
    rows = [
        _dense_row("one inequality a step", [RISE], "", events, quick, targeted=True),
        _dense_row("two inequalities a step", [RISE, VOLUME], "", events, quick),
        _dense_row("one inequality a step, maximal", [RISE], "REPORT maximal", events, quick),
    ]
    notes = [
        "Each price at least 1.2 times the one before; with two inequalities the volume rises too.",
        "With two inequalities, and under `maximal`, patterns of several variables are counted over their edges, of "
        "which a dense window has a share of all pairs; one variable needs no edges there.",
    ]
    return Table(f"One dense window of {number:,} random prices, counted exactly: SEQ(A+ a[], B+ b[])", rows, notes)


def _dense_row(
    what: str, conditions: list[str], report: str, events: pa.Table, quick: bool, targeted: bool = False
) -> Row:
    pairs = [("a", "NEXT(a)"), ("LAST(a)", "FIRST(b)"), ("b", "NEXT(b)")]
    three = " AND ".join(condition.format(*pair) for pair in pairs for condition in conditions)
    alone = " AND ".join(condition.format("e", "NEXT(e)") for condition in conditions)
    two = trellis.query(f"PATTERN SEQ(A+ a[], B+ b[]) WHERE {three} {report}")
    one = trellis.query(f"PATTERN E+ e[] WHERE {alone} {report}")
    ours = best_of(what, lambda: two.detect(events, time="ts", type="kind").count(), quick=quick)
    theirs = best_of(f"{what}, one variable", lambda: one.detect(events, time="ts").count(), quick=quick)
    targets = [_as_fast(ours, theirs, len(pairs))] if targeted else []
    return Row(what, ours, peers=[Peer("one Kleene variable", theirs)], targets=targets)
