"""More events than the oracle can take: the engine against plain programs over Python's own sets and ints.

The events of a window are numbered in the order (time, id); `edges` gives for each the set of those that may follow.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import trellis

Edges = list[set[int]]
Rows = list[dict[str, Any]]

SELECTS = ("skip-till-any", "skip-till-next", "contiguous")
REPORTS = ("unextendable", "maximal", "any")
CONDITION = "s[i].k = s[i-1].m AND s[i].x > s[i-1].x AND s.x != 7"


def table_of(n: int, seed: int, late: int, keys: int = 6) -> pa.Table:
    """Make events with ties in time, in no order."""
    rng = random.Random(seed)
    return pa.table(
        {
            "ts": [rng.randrange(late) for _ in range(n)],
            "id": rng.sample(range(n), n),
            "x": [rng.choice([*range(20), None]) for _ in range(n)],
            "k": [rng.randrange(keys) for _ in range(n)],
            "m": [rng.randrange(keys) for _ in range(n)],
        }
    )


def may_follow(a: dict[str, Any], b: dict[str, Any]) -> bool:
    known = a["x"] is not None and b["x"] is not None
    return bool(known and b["k"] == a["m"] and b["x"] > a["x"])


def usable(row: dict[str, Any]) -> bool:
    return row["x"] is not None and row["x"] != 7


def edges_of(rows: Rows, select: str) -> Edges:
    edges: Edges = []
    for i, a in enumerate(rows):
        later = [j for j in range(i + 1, len(rows)) if rows[j]["ts"] > a["ts"]]
        fits = [j for j in later if usable(a) and usable(rows[j]) and may_follow(a, rows[j])]
        if select == "skip-till-next":
            fits = fits[:1]
        if select == "contiguous":
            fits = [j for j in fits if j == i + 1]
        edges.append(set(fits))
    return edges


def reduced(edges: Edges) -> Edges:
    """Leave out edges with a detour."""
    reach: Edges = [set() for _ in edges]
    for i in reversed(range(len(edges))):
        reach[i] = edges[i].union(*(reach[j] for j in edges[i]))
    return [{j for j in edges[i] if not any(j in reach[k] for k in edges[i])} for i in range(len(edges))]


def sorted_rows(table: pa.Table, lo: int, hi: int, select: str) -> Rows:
    rows = [row for row in table.to_pylist() if lo <= row["ts"] < hi]
    if select != "contiguous":
        rows = [row for row in rows if usable(row)]
    return sorted(rows, key=lambda row: (row["ts"], row["id"]))


def trends_of(rows: Rows, select: str, report: str, span: int) -> list[list[int]]:
    """List the trends of a window, by their ids, in rank order; with a span of at most `span`."""
    edges = edges_of(rows, select)
    before: Edges = [{i for i in range(len(rows)) if j in edges[i]} for j in range(len(rows))]
    paths = reduced(edges) if report == "maximal" else edges

    def fits(first: int, last: int) -> bool:
        return bool(rows[last]["ts"] - rows[first]["ts"] <= span)

    def walk(path: list[int]) -> Iterator[list[int]]:
        first, last = path[0], path[-1]
        longer = any(fits(i, last) for i in before[first]) or any(fits(first, j) for j in edges[last])
        if report == "any" or not longer:
            yield path
        for j in sorted(paths[last]):
            if fits(first, j):
                yield from walk([*path, j])

    return [
        [rows[i]["id"] for i in path] for start in range(len(rows)) if usable(rows[start]) for path in walk([start])
    ]


def windows_of(table: pa.Table, within: str) -> list[tuple[int, int, int]]:
    """Return the windows and the longest span of a trend."""
    numbers = [int(word) for word in within.split() if word.isdigit()]
    everything = (-(10**9), 10**9)
    if len(numbers) < 2:
        return [(*everything, numbers[0] if numbers else 10**9)]
    size, slide = numbers
    times = table["ts"].to_pylist()
    starts = range((min(times) - size) // slide * slide, max(times) + slide, slide)
    return [(k, k + size, size) for k in starts]


@pytest.mark.parametrize("within", ["", "WITHIN 25", "WITHIN 30 SLIDE 12"])
@pytest.mark.parametrize("report", REPORTS)
@pytest.mark.parametrize("select", SELECTS)
def test_listing(select: str, report: str, within: str) -> None:
    table = table_of(150, SELECTS.index(select) * 3 + REPORTS.index(report), 120)
    text = f"PATTERN E+ s[] WHERE {CONDITION} SELECT {select} REPORT {report} {within}"
    trends = trellis.query(text).detect(table, event_id="id")
    wanted = [
        trends_of(sorted_rows(table, lo, hi, select), select, report, w) for lo, hi, w in windows_of(table, within)
    ]
    assert trends.to_arrow()["events"].to_pylist() == [ids for rows in wanted for ids in rows]
    assert trends.to_arrow()["rank"].to_pylist() == [rank for rows in wanted for rank in range(len(rows))]
    assert [int(c) for c in trends.counts()["count_text"].to_pylist()] == [len(rows) for rows in wanted if rows]


@pytest.mark.parametrize("within", ["", "WITHIN 40", "WITHIN 45 SLIDE 20"])
@pytest.mark.parametrize("report", REPORTS)
@pytest.mark.parametrize("select", SELECTS)
def test_aggregates_and_having_equal_what_is_listed(select: str, report: str, within: str) -> None:
    table = table_of(200, 40 + SELECTS.index(select), 160)
    values = dict(zip(table["id"].to_pylist(), table["x"].to_pylist(), strict=True))

    def detect(having: str = "", tail: str = "") -> Any:
        text = (
            f"PATTERN E+ s[] WHERE [m] AND s[i].x >= s[i-1].x {having} SELECT {select} REPORT {report} {within} {tail}"
        )
        return trellis.query(text).detect(table, event_id="id")

    lead = ["window_start", "m"] if "SLIDE" in within else ["m"]
    for having, keep in (("", range(1, 999)), ("HAVING LENGTH > 2 AND LENGTH <= 4", range(3, 5))):
        groups: dict[Any, list[list[int]]] = {}
        for row in detect().to_arrow().to_pylist():
            if row["length"] in keep:
                groups.setdefault(tuple(row[n] for n in lead), []).append(row["events"])
        listed = {}
        for key, rows in groups.items():
            known = [values[i] for ids in rows for i in ids if values[i] is not None]
            lengths = [len(ids) for ids in rows]
            numbers = (sum(known), min(known), max(known), sum(known) / len(known)) if known else (None,) * 4
            listed[key] = (len(rows), sum(lengths), *numbers, min(lengths), max(lengths), sum(lengths) / len(rows))
        of_x = [f"{function}(s.x) AS {function}_x" for function in ("SUM", "MIN", "MAX", "AVG")]
        of_length = [f"{function}(LENGTH) AS {function}_length" for function in ("MIN", "MAX", "AVG")]
        tail = f"AGGREGATE COUNT(*), COUNT(s), {', '.join(of_x + of_length)}"
        names = ["count", "count_s", *(item.split()[-1] for item in of_x + of_length)]
        found = {
            tuple(r[n] for n in lead): tuple(r[n] for n in names) for r in detect(having, tail).to_arrow().to_pylist()
        }
        assert found == listed
        assert detect(having).count() == sum(len(rows) for rows in groups.values())


def count_of(rows: Rows, edges: Edges, every: bool) -> int:
    """Count paths, from events without predecessor to events without successor, or all of them."""
    ways = [0] * len(rows)
    for i in reversed(range(len(rows))):
        ways[i] = (1 if every or not edges[i] else 0) + sum(ways[j] for j in edges[i])
    followers = set().union(*edges)
    return sum(w for i, w in enumerate(ways) if every or i not in followers)


@pytest.mark.parametrize(
    ("n", "condition", "at_least"),
    [(75, "", 2**53), (90, "", 2**64), (250, "", 10**50), (300, "s[i].x >= s[i-1].x", 10**15)],
)
@pytest.mark.parametrize("within", ["", "WITHIN 200 SLIDE 150"])
def test_counts_that_fit_no_word(n: int, condition: str, at_least: int, within: str) -> None:
    """Both ways of counting: the second condition is one that only the graph can answer."""
    table = table_of(n, n, 3 * n // 2)
    for extra in ("", "s[i].x - s[i-1].x > -100"):
        where = " AND ".join(c for c in (condition, extra) if c)
        for report in ("unextendable", "any"):
            text = f"PATTERN E+ s[] {'WHERE ' + where if where else ''} REPORT {report} {within}"
            trends = trellis.query(text).detect(table, event_id="id")
            wanted = []
            for lo, hi, _ in windows_of(table, within):
                rows = sorted([r for r in table.to_pylist() if lo <= r["ts"] < hi], key=lambda r: (r["ts"], r["id"]))
                wanted.append(count_of(rows, _plain_edges(rows, bool(condition), bool(extra)), report == "any"))
            assert [int(c) for c in trends.counts()["count_text"].to_pylist()] == [w for w in wanted if w]
            assert trends.count() == sum(wanted)
            assert within or report == "unextendable" or trends.count() > at_least


def _plain_edges(rows: Rows, rising: bool, known: bool) -> Edges:
    def follows(a: dict[str, Any], b: dict[str, Any]) -> bool:
        if (rising or known) and (a["x"] is None or b["x"] is None):
            return False
        return bool(b["ts"] > a["ts"] and (not rising or b["x"] >= a["x"]))

    return [{j for j in range(i + 1, len(rows)) if follows(a, rows[j])} for i, a in enumerate(rows)]


@pytest.mark.parametrize("condition", [CONDITION, "s[i].k = s[i-1].m", "s[i].k = s[i-1].m AND s[i].x < s[i-1].x"])
@pytest.mark.parametrize("within", ["", "WITHIN 60 SLIDE 40"])
def test_counts_of_partitions_equal_what_is_listed(condition: str, within: str) -> None:
    """Keys of one partition are not those of another, also where few keys are on one side of the condition."""
    table = table_of(120, 3, 150).append_column("g", pa.array([i % 7 for i in range(120)]))
    table = table.set_column(4, "m", pa.array([m % 4 for m in table["m"].to_pylist()]))
    trends = trellis.query(f"PATTERN E+ s[] WHERE [g] AND {condition} {within}").detect(table, event_id="id")
    lead = ["window_start", "g"] if within else ["g"]
    listed = Counter(tuple(row[n] for n in lead) for row in trends.to_arrow().to_pylist())
    assert {tuple(row[n] for n in lead): row["count"] for row in trends.counts().to_pylist()} == listed


@pytest.mark.parametrize("size", [5, 18, 40, 100])
def test_maximal_trends_of_many_windows(size: int) -> None:
    """Rings of bits turn many times in small windows; large ones take several words."""
    table = table_of(400, size, 300, keys=1)
    text = f"PATTERN E+ s[] WHERE s[i].x > s[i-1].x AND s.x != 7 REPORT maximal WITHIN {size} SLIDE {max(1, size // 3)}"
    trends = trellis.query(text).detect(table, event_id="id")
    wanted = []
    for lo, hi, _ in windows_of(table, f"{size} {max(1, size // 3)}"):
        rows = sorted_rows(table, lo, hi, "skip-till-any")
        wanted.append(count_of(rows, reduced(edges_of(rows, "skip-till-any")), False))
    assert [int(c) for c in trends.counts()["count_text"].to_pylist()] == [w for w in wanted if w]


@pytest.mark.parametrize("report", REPORTS)
def test_spans_beyond_words(report: str) -> None:
    """All that begins at one event: ends where nothing follows within the span, and nothing could stand before."""
    table = table_of(160, 5, 400, keys=1)
    span = 230
    trends = trellis.query(f"PATTERN E+ s[] REPORT {report} WITHIN {span}").detect(table, event_id="id")
    rows = sorted(table.to_pylist(), key=lambda r: (r["ts"], r["id"]))
    times = [r["ts"] for r in rows]
    total = 0
    for start in range(len(rows)):
        inside = [i for i in range(start, len(rows)) if i == start or times[start] < times[i] <= times[start] + span]
        earlier = [t for t in times if t < times[start]]
        ways: dict[int, int] = {}
        for i in reversed(inside):
            later = [j for j in inside if times[j] > times[i]]
            if report == "maximal":  # in a full order only the next time is not a detour
                later = [j for j in later if times[j] == min(times[k] for k in later)]
            ends = not later and not (earlier and times[i] - max(earlier) <= span)
            ways[i] = (1 if ends or report == "any" else 0) + sum(ways[j] for j in later)
        total += ways[start]
    assert trends.count() == total
    assert total > 2**64 or report == "maximal"
