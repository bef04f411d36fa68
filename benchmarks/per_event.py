"""AGGREGATE COUNT(*) PER EVENT of a million events under one inequality, beside the plain count of the same trends."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

import trellis
from benchmarks import Peer, Row, Table, at_most, best_of

LIMIT = 4  # times as long as the plain count, at most


def run(quick: bool) -> list[Table]:
    sizes = (
        [(10_000, 100), (10_000, 10_000)] if quick else [(10**6, 100), (10**6, 1_000), (10**5, 10**5), (10**6, 10**6)]
    )
    notes = ["A row for each event, with the exact number of trends through it as a decimal and as text."]
    return [Table("Numbers per event", [_row(events, group, quick) for events, group in sizes], notes)]


def _row(events: int, group: int, quick: bool) -> Row:
    table, text = _priced(events, group), _text(events, group)

    def per_event() -> int:
        return trellis.query(f"{text} AGGREGATE COUNT(*) PER EVENT").detect(table, event_id="id").to_arrow().num_rows

    assert per_event() == events, "every event is in a trend"
    what = f"{events:,} events in groups of {group:,}" if group < events else f"{events:,} events in one window"
    plain = best_of(f"{what}, count", lambda: trellis.query(text).detect(table, event_id="id").count(), quick=quick)
    ours = best_of(what, per_event, quick=quick)
    target = at_most(LIMIT, "times the count", ours.cpu / plain.cpu)
    return Row(f"{what}: `{text}`", ours, peers=[Peer("the plain count", plain)], targets=[target])


def _priced(events: int, group: int) -> pa.Table:
    rng = np.random.default_rng(1)
    return pa.table(
        {"ts": np.arange(events), "id": np.arange(events), "price": rng.random(events), "k": np.arange(events) // group}
    )


def _text(events: int, group: int) -> str:
    """Return a query whose numbers have some 10 to 50 digits."""
    if group < events:
        return "PATTERN E+ s[] WHERE s[i].price > 1.05 * s[i-1].price AND [k]"
    return "PATTERN E+ s[] WHERE s[i].price > 1.5 * s[i-1].price"
