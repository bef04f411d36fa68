"""Queries that share events, slices, operators and numbers give what each gives alone."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.profiles import examples
from tests.streams.test_bucket import Stream, in_any_order, rows_of, standing
from trellis.streams import sharing
from trellis.streams.bucket import OutputTable
from trellis.streams.calendar import END
from trellis.streams.query import StandingQuery
from trellis.streams.stream_output import REPEATED, RESULTS, WINDOWS

RISING = "PATTERN E+ s[] WHERE [k] AND s[i].x > s[i-1].x"
WINDOW, SPAN = " WITHIN 4 SLIDE 2", " WITHIN 3"
TEXTS = [
    RISING + WINDOW,
    RISING + WINDOW + " RETURN SUM(s.x), s.x",
    RISING + WINDOW + " HAVING LENGTH >= 2",
    RISING + WINDOW + " HAVING LENGTH BETWEEN 2 AND 3 RETURN FIRST(s).y ORDER BY FIRST(s).y DESC LIMIT 2 PER WINDOW",
    RISING + WINDOW + " REPORT any",
    RISING + WINDOW + " REPORT any AGGREGATE COUNT(*), SUM(s.x)",
    RISING + WINDOW + " AGGREGATE COUNT(*), MAX(s.y)",
    RISING + WINDOW + " AGGREGATE MIN(s.y), COUNT(s), AVG(s.x)",
    RISING + WINDOW + " AGGREGATE COUNT(*), AVG(LENGTH), MAX(s.x) GROUP BY k",
    RISING + WINDOW + " HAVING LENGTH >= 2 AGGREGATE COUNT(*)",
    RISING + WINDOW + " HAVING LENGTH >= 2 AGGREGATE SUM(s.y), MIN(LENGTH)",
    RISING + WINDOW + " AGGREGATE SUM(s.x * s.y) AS product",
    RISING + " AND s.y > 1" + WINDOW,
    RISING + " AND s.y > 1" + WINDOW + " HAVING LENGTH <= 2",
    RISING.replace("s[i].x > s[i-1].x", "NEXT(s).x > s.x") + WINDOW + " RETURN s.y",
    RISING + SPAN,
    RISING + SPAN + " HAVING LENGTH >= 2",
    RISING + SPAN + " RETURN s.x",
    RISING + WINDOW + " AFTER MATCH SKIP PAST LAST ROW",
    "PATTERN a;b WHERE [k] AND a.x < b.x" + WINDOW,
    "PATTERN a;b WHERE [k] AND a.x < b.x" + WINDOW + " RETURN b.y",
    "PATTERN a;b WHERE [k] AND a.x < b.x" + WINDOW + " AGGREGATE COUNT(*), SUM(a.x)",
    "PATTERN a;b WHERE [k] AND a.x < b.x" + WINDOW + " AGGREGATE MAX(b.y)",
    "PATTERN SEQ(E a, E+ b[]) WHERE [k] AND a.x < b[i].x" + WINDOW + " AGGREGATE COUNT(*)",
    "PATTERN SEQ(E a, E+ b[]) WHERE [k] AND a.x < b[i].x" + WINDOW + " AGGREGATE SUM(a.x)",
    "PATTERN SEQ(E a, E+ b[]) WHERE [k] AND a.x < b[i].x" + WINDOW + " RETURN a.y",
]


def through(
    queries: Sequence[StandingQuery], table: pa.Table, seed: int, later: Sequence[StandingQuery] = ()
) -> list[OutputTable]:
    """Let events come, some of them late; queries that come `later` are added in the middle."""
    dice, stream, at = random.Random(seed), Stream(*queries), 0
    found: list[OutputTable] = []
    while at < table.num_rows:
        size = dice.randint(1, 4)
        if later and at >= table.num_rows // 2:
            stream.group, later = replace(stream.group, queries=(*queries, *later)), ()
        watermark = max(stream.watermark or 1, table["t"][at].as_py() - dice.randint(0, 2))
        found += stream.take(table.slice(at, size), watermark)
        at += size
    found += stream.take(table.slice(0, 0), END)
    return found


@given(
    st.lists(st.tuples(st.integers(1, 9), st.integers(0, 1), st.integers(0, 3) | st.none(), st.integers(0, 2))),
    st.lists(st.sampled_from(TEXTS), min_size=2, max_size=8), st.integers(0, 2), st.booleans(), st.integers(0, 9),
)  # fmt: skip
@examples(60)
def test_together_as_alone(
    drawn: list[tuple[int, int, int | None, int]], texts: list[str], added: int, repeated: bool, seed: int
) -> None:
    events = [(t, i, *rest) for i, (t, *rest) in enumerate(sorted(drawn, key=lambda row: row[0]))]
    events = events[: 1 + seed // 5] * repeated + events
    names = ["t", "id", "k", "x", "y"]
    table = pa.Table.from_pylist(
        [dict(zip(names, row, strict=True)) for row in events], pa.schema([(name, pa.int64()) for name in names])
    )
    queries = [standing(text, table, f"q{i}", 4, time="t", event_id="id") for i, text in enumerate(texts)]
    if repeated:
        queries = [replace(one, on_bad_rows="drop") for one in queries]
    first, later = queries[added:] or queries, queries[:added] if queries[added:] else []
    together = through(first, table, seed, later)
    for one in queries:
        begins = [queries[-1]] if one in later else [one]  # there must be one from the beginning
        alone = through(begins, table, seed, [one] if one in later else [])
        for kind in (RESULTS, WINDOWS):
            got, wanted = (in_any_order(rows_of(outs, kind, one.name)) for outs in (together, alone))
            assert got == wanted, (one.bound.text, kind)
        if one not in later:  # of what was held before it came, others have kept different events
            assert len(rows_of(together, REPEATED, one.name)) == len(rows_of(alone, REPEATED, one.name))


def test_equal_conditions_are_worked_on_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made, prepared = [], []
    make, prepare = sharing.make_operator, sharing.prepare
    monkeypatch.setattr(sharing, "make_operator", lambda plan, *rest: made.append(plan) or make(plan, *rest))
    monkeypatch.setattr(sharing, "prepare", lambda plan, *rest: prepared.append(plan) or prepare(plan, *rest))
    table = pa.table({"t": range(40), "id": range(40), "k": [1] * 40, "x": [i % 7 for i in range(40)], "y": range(40)})
    ends = [
        "",
        " RETURN s.y",
        " HAVING LENGTH >= 2",
        " HAVING LENGTH >= 3 RETURN s.x",
        " RETURN s.x ORDER BY LENGTH LIMIT 1 PER WINDOW",
    ]
    queries = [standing(f"{RISING} WITHIN 4 SLIDE 4{end}", table, f"q{i}", time="t", event_id="id")
               for i, end in enumerate(ends)]  # fmt: skip
    stream = Stream(*queries)
    assert stream.take(table, 20)
    assert len(made) == len(prepared) == 1
