"""Numbers far beyond 64 bits that arithmetic knows: where prices rise, every subset of a span is a trend."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import trellis

EVENTS, SPAN = 400, 170
LATER = [min(SPAN, EVENTS - 1 - begin) for begin in range(EVENTS)]  # events that a trend may have behind its first one
WINDOWS = [min(SPAN, EVENTS - begin) for begin in range(0, EVENTS, SPAN)]
SUBSETS = sum(2**k for k in LATER)
LARGER = SUBSETS - EVENTS  # than one event
DIVIDED = sum(k * 2**k // 2 for k in LATER)  # subsets of two events or more, in two parts
RISING = "s[i].x > s[i-1].x"
NUMBERS = {
    "E+ s[]": SUBSETS,
    f"E+ s[] WHERE {RISING}": SUBSETS,
    "E+ s[] WHERE s[i].x != s[i-1].x": SUBSETS,
    f"E+ s[] WHERE {RISING} AND s[i].k = s[i-1].k": SUBSETS,
    f"E+ s[] WHERE {RISING} AND s[i].x - s[i-1].x < 1000": SUBSETS,
    "E{2,} s[]": LARGER,
    "E+ s[] HAVING LENGTH >= 3": LARGER - sum(LATER),
    "SEQ(E a, E+ b[])": LARGER,
    "SEQ(E a, E+ b[]) WHERE b[i].x > b[i-1].x": LARGER,
    "SEQ(E+ a[], E b)": LARGER,
    "SEQ(E+ a[], E+ b[])": DIVIDED,
    "SEQ(E+ a[], E+ b[]) WHERE a.x < b.x": DIVIDED,
    "SEQ(E a, E b)+ g[]": sum(2**k // 2 for k in LATER),
}


@pytest.fixture(scope="module")
def table() -> pa.Table:
    """Prices that rise."""
    return pa.table({"ts": np.arange(EVENTS), "id": np.arange(EVENTS), "x": np.arange(EVENTS), "k": np.zeros(EVENTS)})


@pytest.mark.parametrize("text", NUMBERS)
def test_spans(table: pa.Table, text: str) -> None:
    query = trellis.query(f"PATTERN {text} REPORT any WITHIN {SPAN}")
    assert query.detect(table, event_id="id").count() == NUMBERS[text] > 2**SPAN


def test_windows(table: pa.Table) -> None:
    def count(text: str) -> int:
        return (
            trellis.query(f"PATTERN {text} REPORT any WITHIN {SPAN} SLIDE {SPAN}").detect(table, event_id="id").count()
        )

    assert count("E+ s[]") == sum(2**n - 1 for n in WINDOWS)
    assert count("SEQ(E+ a[], E+ b[]) WHERE a.x < b.x") == sum((n - 2) * 2 ** (n - 1) + 1 for n in WINDOWS)
    assert count("SEQ(E a, E b)+ g[]") == sum(2 ** (n - 1) - 1 for n in WINDOWS)


def test_sums_of_spans(table: pa.Table) -> None:
    aggregates = "AGGREGATE COUNT(*), SUM(LENGTH), SUM(s.x)"
    query = trellis.query(f"PATTERN E+ s[] WHERE {RISING} REPORT any {aggregates} WITHIN {SPAN}")
    (row,) = query.detect(table, event_id="id").to_arrow().to_pylist()
    lengths = sum(2**k + k * 2**k // 2 for k in LATER)
    prices = sum(a * 2**k + sum(a + j for j in range(1, k + 1)) * 2**k // 2 for a, k in enumerate(LATER))
    assert [row[f"{name}_text"] for name in ("count", "sum_length", "sum_s_x")] == list(
        map(str, (SUBSETS, lengths, prices))
    )
    through = trellis.query(f"PATTERN E+ s[] WHERE {RISING} REPORT any WITHIN {SPAN}").detect(table, event_id="id")
    numbers = through.per_event("count(*)").to_arrow()["count_text"].to_pylist()
    assert sum(map(int, numbers)) == lengths
