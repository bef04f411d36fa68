"""What can be asked of patterns of several variables, and what is wrong with some."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import trellis
from trellis.errors import ListingRefused, TrellisError, UsageError
from trellis.operators.patterns.operator import PatternOperator
from trellis.operators.patterns.structure import PatternStructure
from trellis.plan.sizes import Sizes

N = 12
TABLE = pa.table(
    {
        "t": list(range(N)),
        "id": [f"e{i:02}" for i in range(N)],
        "type": ["A", "B", "B", "A", "C", "B", "B", "C", "A", "B", "C", "C"],
        "x": [5, 6, 7, 1, 9, 2, 3, 4, 8, 9, 1, 0],
    }
)
TYPED = "PATTERN SEQ(A a, B+ b[], C c) WHERE b.x < NEXT(b).x"
AMBIGUOUS = "PATTERN SEQ(A+ a[], A+ b[]) WHERE a.x != NEXT(a).x"
FAR = "PATTERN SEQ(A+ a[], B+ b[]) WHERE a.x < b.x"
QUERIES = [TYPED, f"{TYPED} REPORT any", f"{TYPED} AND a.x < c.x", FAR, f"{FAR} REPORT maximal", f"{TYPED} WITHIN 8"]


def detect(text: str, table: pa.Table = TABLE, **options: Any) -> Any:
    typed = {} if "A+ b" in text else {"type": "type"}
    return trellis.query(text).detect(table, time="t", event_id="id", **typed, **options)


@pytest.mark.parametrize("text", [*QUERIES, AMBIGUOUS, f"{AMBIGUOUS} HAVING LENGTH <= 3 REPORT any"])
def test_ranks_samples_and_ranges_are_those_of_the_list(text: str) -> None:
    trends = detect(text)
    rows = trends.to_arrow().to_pylist()
    assert len(rows) == trends.count() >= 3
    assert [row["rank"] for row in rows] == list(range(len(rows)))
    for rank in {0, 1, len(rows) // 2, len(rows) - 1}:
        assert trends.trend(rank).to_pylist() == [rows[rank]]
    batches = trends.batches(ranks=range(2, len(rows) - 1))
    assert pa.Table.from_batches(batches, schema=trends.schema).to_pylist() == rows[2:-1]
    drawn = trends.sample(3, seed=4).to_pylist()
    assert len(drawn) == 3
    assert all(row in rows for row in drawn)
    longest = trends.top(2, by="length").to_pylist()
    assert longest == sorted(rows, key=lambda row: -row["length"])[:2]


def test_results_come_some_at_a_time() -> None:
    whole = detect(AMBIGUOUS).to_arrow()
    assert detect(AMBIGUOUS, sizes=Sizes(ordered_rows=3)).to_arrow().to_pylist() == whole.to_pylist()


def test_the_ways_are_those_that_explain_tells() -> None:
    graphs = [detect(text).plan.positions for text in QUERIES]
    assert [None if graph is None else graph.anchored for graph in graphs] == [False, False, True, None, None, True]


def test_rows_of_events_tell_their_variables(tmp_path: Path) -> None:
    trends = detect(TYPED)
    exploded = trends.explode()
    assert exploded.column_names == ["rank", "place", "variable", "t", "id", "type", "x"]
    listed = [(row["rank"], name) for row in trends.to_arrow().to_pylist() for name in row["bindings"]]
    assert list(zip(exploded["rank"].to_pylist(), exploded["variable"].to_pylist(), strict=True)) == listed
    trends.write(str(tmp_path / "out"))
    assert pq.read_table(tmp_path / "out").equals(trends.to_arrow())
    places = pa.Table.from_batches(trends.batches(["events"], positions=True))["events"].to_pylist()
    ids = trends.events["id"].to_pylist()
    assert [[ids[place] for place in row] for row in places] == trends.to_arrow()["events"].to_pylist()
    with pytest.raises(UsageError, match="no compact form for a pattern of several variables"):
        next(trends.batches(compact=True))


@pytest.mark.parametrize("condition", ["FIRST(b).x < 7", "LAST(b).x > 3", "b[2].x > 3", "FIRST(b).x < LAST(b).x"])
@pytest.mark.parametrize("threads", [1, 2])
def test_the_compact_form_of_one_variable(condition: str, threads: int) -> None:
    trends = detect(f"PATTERN B+ b[] WHERE b.x != NEXT(b).x AND {condition} REPORT any")
    batches = list(trends.batches(compact=True, threads=threads))
    assert sum(sum(batch["shared"].to_pylist()) for batch in batches) > 0
    assert trellis.expand(pa.Table.from_batches(batches)).to_pylist() == trends.to_arrow().to_pylist()


@pytest.mark.parametrize("where", ["", "WHERE b.x > 3"])
def test_single_events_have_no_compact_form(where: str) -> None:
    with pytest.raises(UsageError, match="no compact form for a pattern of single events"):
        next(detect(f"PATTERN B b {where}").batches(compact=True))


def test_fixed_sequences_have_a_column_for_each_variable() -> None:
    trends = detect("PATTERN SEQ(A a, OR(B b, C c)) WHERE a.x > 5 AND b.x > a.x")
    assert trends.to_arrow().column_names[-3:] == ["a", "b", "c"]
    assert [(row["a"], row["b"], row["c"]) for row in trends.to_arrow().to_pylist()] == [
        ("e08", "e09", None),
        ("e08", None, "e10"),
        ("e08", None, "e11"),
    ]


@pytest.mark.parametrize(
    "text",
    ["PATTERN SEQ(E a, E+ b[], E c)", "PATTERN SEQ(E a, E+ b[], E c) WHERE a.x < c.x"],
)
def test_more_results_than_can_be_listed_are_counted_and_unranked(text: str) -> None:
    size = 100
    table = pa.table({"t": list(range(size)), "id": list(range(size)), "x": list(range(size))})
    trends = trellis.query(text).detect(table, time="t", event_id="id")
    # A first and a last event, and any but none of those between them.
    count = sum(2 ** (last - first - 1) - 1 for first, last in itertools.combinations(range(size), 2))
    assert trends.count() == count > 2**64
    assert trends.aggregate("count(a)", "sum(a.x)")["count_a_text"].to_pylist() == [str(count)]
    with pytest.raises(ListingRefused) as refused:
        trends.to_arrow()
    assert refused.value.count == count
    assert trends.trend(count - 1)["events"].to_pylist() == [[size - 3, size - 2, size - 1]]
    assert trends.sample(5, seed=1).num_rows == 5


def test_groups_are_held_some_at_a_time() -> None:
    text = f"{TYPED} WITHIN 6 SLIDE 2"
    whole = detect(text)
    parts = detect(text, sizes=Sizes(events_at_once=7))
    assert parts.to_arrow().equals(whole.to_arrow())
    assert parts.counts().equals(whole.counts())
    assert parts.aggregate("sum(b.x)", "count(c)").equals(whole.aggregate("sum(b.x)", "count(c)"))
    assert parts.to_arrow().num_rows > 3


LARGE = pa.table(
    {
        "t": range(40),
        "id": range(40),
        "type": ["AB"[i % 3 > 0] for i in range(40)],
        "x": [i * 7 % 23 for i in range(40)],
    }
)
RISING = "PATTERN SEQ(A a, B+ b[]) WHERE b.x < NEXT(b).x AND a.x < b.x"
BEST = ["LENGTH", "LAST(b).x - a.x", "LAST(b).x / a.x", "(LAST(b).x - a.x) * 100 / a.x", "a.x", "LAST(b).x"]


@pytest.mark.parametrize("key", BEST)
@pytest.mark.parametrize("rest", ["", "DESC", "DESC LIMIT 3 PER WINDOW"])
@pytest.mark.parametrize("window", ["", "WITHIN 20 SLIDE 10"])
def test_the_best_are_searched_on_the_indexes(
    key: str, rest: str, window: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f"{RISING} {window} ORDER BY {key} {rest}" + ("" if "LIMIT" in rest else " LIMIT 15 OFFSET 2")
    whole = detect(text, LARGE).to_arrow().to_pylist()
    monkeypatch.setattr(PatternOperator, "list", None)  # nothing is listed
    assert detect(text, LARGE, sizes=Sizes(best_few=-1, best_worth=0)).to_arrow().to_pylist() == whole
    assert len(whole) > 2


def test_few_results_are_found_by_their_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = detect(RISING, LARGE).to_arrow()
    assert whole.num_rows > 500
    sizes = Sizes(pairs_of_one=0, pairs_of_many=0, pairs_of_event=0, pairs_of_group=0)
    monkeypatch.setattr(PatternStructure, "part", None)  # no edges
    for number, offset in ((5, 0), (7, 300), (1, whole.num_rows - 1), (whole.num_rows, 0)):
        found = detect(f"{RISING} LIMIT {number} OFFSET {offset}", LARGE, sizes=sizes).to_arrow()
        assert found.equals(whole.slice(offset, number))
    assert detect(RISING, LARGE, sizes=sizes).first(3).to_arrow().equals(whole.slice(0, 3))


def test_few_results_of_long_spans_are_found_by_their_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A graph for each start would take longer, though a window of as many events has few edges."""
    n = 3_000
    kinds, values = list("AB" * (n // 2)), [i * 37 % 101 for i in range(n)]
    events = pa.table({"t": range(n), "id": range(n), "k": kinds, "x": values})
    query = trellis.query("PATTERN SEQ(A a, B+ b[]) WHERE b.x < NEXT(b).x WITHIN 200 LIMIT 20 OFFSET 5")
    whole = query.detect(events, time="t", event_id="id", type="k", sizes=Sizes(most_picked=0)).to_arrow()
    monkeypatch.setattr(PatternStructure, "part", None)  # no edges
    assert query.detect(events, time="t", event_id="id", type="k").to_arrow().equals(whole)


def test_first_events_that_are_all_different_stay_in_their_order() -> None:
    """Those of which later events are asked the same are found by sorting; results come in the order of events."""
    table = pa.table({"t": range(6), "id": range(6), "type": ["A"] * 6, "x": [0.0, 1.0, 1.5, 2.0, -1.0, 0.5]})
    trends = detect("PATTERN SEQ(A a, A? b, A+ c[]) WHERE a.x < c.x", table)
    rows = [(row["events"], row["bindings"]) for row in trends.to_arrow().to_pylist()]
    assert rows == sorted(rows)
    assert len(rows) == trends.count() == 21
    assert [trends.trend(rank).to_pylist()[0]["events"] for rank in range(21)] == [events for events, _ in rows]


def test_windows_without_results_are_not_looked_into() -> None:
    """Ranks of one window are found after those of others, with what was left out for these."""
    trends = detect(f"{TYPED} WITHIN 5 SLIDE 1", sizes=Sizes(counted_pairs=-1, walked_choices=-1))
    rows = trends.to_arrow().to_pylist()
    part = trends.operator.structure.known
    assert len(part.held) > part.held.sum() == len({row["window_start"] for row in rows}) > 2
    assert [
        row for at in range(len(rows)) for b in trends.batches(ranks=range(at, at + 1)) for row in b.to_pylist()
    ] == rows
    assert trends.to_arrow().to_pylist() == rows


@pytest.mark.parametrize(
    "text",
    ["PATTERN SEQ(A a, Z+ z[])", "PATTERN SEQ(C c, A a, C d, A b)", f"{TYPED} AND b.x > 100", f"{FAR} AND a.x > 100"],
)
def test_nothing_is_found(text: str) -> None:
    for table in (TABLE, TABLE.slice(0, 1), TABLE.slice(0, 0)):
        trends = detect(text, table)
        assert (trends.count(), trends.to_arrow().num_rows, trends.counts().num_rows) == (0, 0, 0)
        assert trends.aggregate("count(*)")["count_text"].to_pylist() == ["0"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("PATTERN SEQ(A a, B+ a[])", "the variable `a` is declared twice"),
        ("PATTERN SEQ(A a, B+ b[]) WHERE a.x < NEXT(a).x", "`a`"),
        ("PATTERN SEQ(A a, B+ b[]) WHERE a.y < b.x", "`y`"),
        ("PATTERN SEQ(A a, B+ b[]) WHERE q.x < b.x", "`q`"),
        ("PATTERN SEQ(A? a, B* b[])", "the pattern can match without any event"),
    ],
)
def test_what_is_wrong_is_told(text: str, message: str) -> None:
    with pytest.raises(TrellisError, match=message):
        detect(text)


def test_a_condition_that_tells_too_much_apart_is_refused() -> None:
    refused = (
        r"4 matches so far with more than 4 different sets of events of 8 events; "
        r"most of all they differ in the greatest x of a, for `a\.x < b\.x`"
    )
    with pytest.raises(TrellisError, match=refused):
        detect(FAR, sizes=Sizes(least_vertices=4, most_vertices=4, explored_exponent=9.0)).count()
