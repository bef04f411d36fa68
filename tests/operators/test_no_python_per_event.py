"""No path from events to Arrow calls Python functions for each event, vertex or match: calls do not grow with them."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import trellis

SMALL, LARGE = 600, 2_400
BESIDE = 150  # calls more: rounds of a search, buffers that grow, batches
QUERIES = {
    "trends": "PATTERN E+ s[] WHERE [part] AND s[i].x > s[i-1].x AND s[i].ts - s[i-1].ts <= 12",
    "trends, any": "PATTERN E+ s[] WHERE [part] AND s[i].x > 1.5 * s[i-1].x AND s[i].ts - s[i-1].ts <= 12 REPORT any",
    "trends, maximal": "PATTERN E+ s[] WHERE [part] AND s[i].x > s[i-1].x REPORT maximal WITHIN 40",
    "trends, span": "PATTERN E+ s[] WHERE [part] AND s[i].x > s[i-1].x WITHIN 20",
    "trends, OR": "PATTERN E+ s[] WHERE [part] AND (s[i].x > 1.5 * s[i-1].x OR s[i].y > 3 * s[i-1].y) WITHIN 20",
    "sequence": "PATTERN SEQ(A a, B b, C c) WHERE [part] AND a.x < b.x AND b.x < c.x WITHIN 20",
    "join": "PATTERN AND(A a, B b, C c) WHERE [part] AND a.x + b.x < c.x WITHIN 10",
    "join, NOT": "PATTERN SEQ(A a, NOT(D d), B b) WHERE [part] AND d.x > a.x WITHIN 20",
    "pattern by index": "PATTERN SEQ(A a, B+ b[]) WHERE [part] AND b.x > 1.5 * b[i-1].x WITHIN 20",
    "pattern by exploration": "PATTERN SEQ(A+ a[], B+ b[]) WHERE [part] AND a.x < b.x WITHIN 10",
    "b[2]": "PATTERN SEQ(A a, B+ b[]) WHERE [part] AND b[2].x > a.x WITHIN 15",
    "UNTIL": "PATTERN SEQ(A a, B+ b[] UNTIL (b.x > a.x), C c) WHERE [part] WITHIN 20",
    "NOT": "PATTERN SEQ(A a, B+ b[], NOT(D d), C c) WHERE [part] AND d.x > a.x WITHIN 20",
    "skip-till-next": "PATTERN SEQ(A a, B+ b[], C c) WHERE [part] SELECT skip-till-next",
    "contiguous": "PATTERN E+ s[] WHERE [part] AND s[i].x > s[i-1].x SELECT contiguous",
    "ambiguous": "PATTERN SEQ(E+ a[], E+ b[]) WHERE [part] AND a.x < b.x SELECT contiguous REPORT any",
    "group": "PATTERN SEQ(A a, B b)+ g[] WHERE [part] WITHIN 20",
    "greedy": "PATTERN SEQ(A a, B+ b[] greedy, C c) WHERE [part] WITHIN 20",
    "greedy in AND": "PATTERN SEQ(AND(B+ b[] greedy, A a), C c) WHERE [part] WITHIN 20",
    "so far": "PATTERN SEQ(A a, B+ b[]) WHERE [part] AND b[i].x > AVG(b[..i-1].x) WITHIN 15",
    "past last": "PATTERN SEQ(A a, B b) WHERE [part] WITHIN 20 AFTER MATCH SKIP PAST LAST",
    "to next, join": "PATTERN AND(A a, B b) WHERE [part] AND a.x + b.x > 30 WITHIN 20 AFTER MATCH SKIP TO NEXT",
    "to last, key": "PATTERN SEQ(A a, B+ b[]) WHERE [part] WITHIN 9 ORDER BY b[1].y % 7 AFTER MATCH SKIP TO LAST b",
    "past last, by a mean": """PATTERN E+ s[] WHERE [part] AND s[i].x > s[i-1].x WITHIN 20 ORDER BY AVG(s.x)
        AFTER MATCH SKIP PAST LAST""",
    "past last, whole input": "PATTERN AND(A a, B b) WHERE a.x + b.x > 30 AFTER MATCH SKIP PAST LAST",
    "to last, whole input": "PATTERN SEQ(A a, B b, C c) WHERE a.x < b.x AND a.x < c.x AFTER MATCH SKIP TO LAST b",
    "to next, chain": "PATTERN SEQ(A a, B b) WHERE a.x < b.x AFTER MATCH SKIP TO NEXT",
    "to next, trends": "PATTERN E+ s[] WHERE s[i].x > s[i-1].x REPORT any AFTER MATCH SKIP TO NEXT",
    "best, far": "PATTERN SEQ(A+ a[], B+ b[]) WHERE [part] AND a.x < b.x WITHIN 20 ORDER BY LENGTH DESC LIMIT 5",
    "best, span": "PATTERN SEQ(A a, B+ b[], C c) WHERE [part] AND b.x > b[i-1].x WITHIN 40 ORDER BY LENGTH LIMIT 5",
}
ANSWERS: dict[str, Callable[[Any], Any]] = {
    "count": lambda results: results.count(),
    "to_arrow": lambda results: results.to_arrow(),
    "per_event": lambda results: _per_event(results),
}


def _per_event(results: Any) -> pa.Table:
    var = "s" if "s[]" in repr(results) else "a"
    items = ["count(*)", "share", "avg(length)", f"sum({var}.x)", f"avg({var}.y)", f"sum({var}.y)", f"max({var}.x)"]
    return results.per_event(*items).to_arrow()


def events(n: int, of_partition: int = 0) -> pa.Table:
    """Return events of four partitions, or of partitions of so many events, at random."""
    rng = np.random.default_rng(3)
    return pa.table(
        {
            "ts": np.arange(n), "id": np.arange(n), "kind": np.array(list("ABCD"))[rng.integers(0, 4, n)],
            "x": np.round(rng.random(n) * 100, 2) + 1, "y": rng.integers(1, 1_000, n),
            "part": np.arange(n) // of_partition if of_partition else np.arange(n) % 4,
        }
    )  # fmt: skip


def calls(text: str, ask: Callable[[Any], Any], table: pa.Table) -> Counter[CodeType]:
    """Return how often each Python function is called; generators count at each value."""
    found: Counter[CodeType] = Counter()

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            found[frame.f_code] += 1

    typed = {} if "E+" in text else {"type": "kind"}
    results = trellis.query(text).detect(table, time="ts", event_id="id", engine="local", **typed)
    sys.setprofile(note)
    try:
        ask(results)
    finally:
        sys.setprofile(None)
    return found


@pytest.mark.parametrize("answer", ["count", "to_arrow", pytest.param("per_event", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", QUERIES)
def test_calls_do_not_grow_with_events(name: str, answer: str) -> None:
    _assert_same_calls(QUERIES[name], ANSWERS[answer])


@pytest.mark.parametrize("name", QUERIES)
def test_calls_do_not_grow_with_small_partitions(name: str) -> None:
    """Of each partition nothing but its range of ranks is looked at, inside an expression."""
    _assert_same_calls(QUERIES[name], ANSWERS["to_arrow"], of_partition=3)


def _assert_same_calls(text: str, ask: Callable[[Any], Any], of_partition: int = 0) -> None:
    calls(text, ask, events(LARGE, of_partition))  # imports, caches and compiled code
    few, many = (calls(text, ask, events(n, of_partition)) for n in (SMALL, LARGE))
    grown = {code: many[code] - few[code] for code in many if many[code] - few[code] > BESIDE}
    more = {code: number for code, number in grown.items() if not (of_partition and code.co_name.startswith("<"))}
    told = [f"{code.co_qualname} in {code.co_filename}: {number} more" for code, number in more.items()]
    assert not told, "\n".join(told)
