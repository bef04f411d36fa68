"""AFTER MATCH SKIP keeps what its definition says, along a graph, by walks, by listing and by bisection of ranks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

import trellis
from tests.compare import assert_same
from tests.profiles import examples
from tests.strategies import Case, skipping_case
from trellis.errors import BindError, ListingRefused, UsageError
from trellis.operators.joins.operator import JoinOperator
from trellis.operators.patterns.operator import PatternOperator
from trellis.operators.sequences.operator import SequenceOperator
from trellis.operators.trends.operator import TrendOperator
from trellis.plan.sizes import Sizes

EVENTS = pa.table({"t": range(8), "id": range(8), "x": [1, 5, 2, 6, 3, 7, 4, 8], "k": list("ABABABAB")})
RISING = "PATTERN E+ s[] WHERE s[i].x > s[i-1].x REPORT any"


def events_of(text: str, **options: Any) -> list[list[int]]:
    return trellis.query(text).detect(EVENTS, time="t", event_id="id", **options).to_arrow()["events"].to_pylist()


@pytest.mark.parametrize(
    ("skip", "kept"),
    [
        ("PAST LAST ROW", [[0, 1, 3, 5, 7]]),
        ("TO NEXT ROW", [[0, 1, 3, 5, 7], [1, 3, 5, 7], [2, 3, 5, 7], [3, 5, 7], [4, 5, 7], [5, 7], [6, 7], [7]]),
        ("TO LAST s", [[0, 1, 3, 5, 7], [7]]),
        ("TO FIRST s", [[0, 1, 3, 5, 7], [1, 3, 5, 7], [2, 3, 5, 7], [3, 5, 7], [4, 5, 7], [5, 7], [6, 7], [7]]),
    ],
)
def test_the_longest_at_each_place(skip: str, kept: list[list[int]]) -> None:
    assert events_of(f"{RISING} ORDER BY LENGTH DESC AFTER MATCH SKIP {skip}") == sorted(kept, key=len, reverse=True)


KEYS = ("", "ORDER BY LENGTH", "ORDER BY SUM(s.x) DESC", "ORDER BY AVG(s.x), LENGTH DESC", "ORDER BY s[2].x % 3 DESC")


@pytest.mark.parametrize("keys", KEYS)
def test_graph_listing_and_bisection_agree(monkeypatch: pytest.MonkeyPatch, keys: str) -> None:
    for skip in ("PAST LAST", "TO NEXT", "TO LAST s"):
        text = f"{RISING} {keys} AFTER MATCH SKIP {skip}"
        wanted = events_of(text)
        assert events_of(text, sizes=Sizes(skip_few=0)) == wanted
        with monkeypatch.context() as patched:
            patched.setattr(TrendOperator, "leading", lambda *_: None)
            assert events_of(text) == wanted
            assert events_of(text, sizes=Sizes(skip_few=0)) == wanted


@pytest.mark.parametrize("rest", ["ORDER BY b.x % 3 DESC AFTER MATCH SKIP TO NEXT", "AFTER MATCH SKIP TO LAST b"])
def test_batches_of_one_result_and_bisection_agree(rest: str) -> None:
    """What is kept of one first event may come in several batches."""
    query = trellis.query(f"PATTERN AND(A a, B b) WHERE a.x + b.x > 6 {rest}")
    wanted, *others = (
        query.detect(EVENTS, time="t", event_id="id", type="k", sizes=sizes).to_arrow().to_pylist()
        for sizes in (Sizes(), Sizes(match_rows=1), Sizes(skip_few=0))
    )
    assert len(wanted) > 2
    assert others == [wanted, wanted]


def test_more_results_than_can_be_listed_by_a_key() -> None:
    """Of 2^200 results those that are kept are found by sums, counts and the greatest value."""
    events = pa.table({"t": range(200), "id": range(200), "x": range(200), "k": list("AB") * 100})
    for key in ("SUM(b.x) DESC", "COUNT(b) DESC", "MAX(b.x) DESC", "a.x, LENGTH DESC"):
        text = f"PATTERN SEQ(A a, B+ b[]) REPORT any ORDER BY {key} AFTER MATCH SKIP PAST LAST"
        found = trellis.query(text).detect(events, time="t", event_id="id", type="k").to_arrow().to_pylist()
        assert len(found) == 1
        assert found[0]["length"] == 101, key
        assert found[0]["end_time"] == 199
    with pytest.raises(ListingRefused, match="goes through all results of one first event by ORDER BY"):
        trellis.query("PATTERN SEQ(A a, B+ b[]) ORDER BY b[2].x AFTER MATCH SKIP TO NEXT").detect(
            events, time="t", event_id="id", type="k"
        ).count()


def test_more_results_than_can_be_listed() -> None:
    events = pa.table({"t": range(200), "id": range(200), "x": range(200)})
    text = "PATTERN E+ s[] WHERE s[i].x > s[i-1].x HAVING LENGTH >= 1 AFTER MATCH SKIP PAST LAST"
    found = trellis.query(text).detect(events, time="t", event_id="id")
    assert found.count() == 1
    assert found.to_arrow()["length"].to_pylist() == [200]
    numbers = found.aggregate("count(*)", "sum(s.x)", "max(length)").to_arrow().to_pylist()
    assert [numbers[0][name] for name in ("count", "sum_s_x", "max_length")] == [1, sum(range(200)), 200]


@examples(60)
@given(skipping_case())
def test_against_the_oracle(drawn: Case) -> None:
    assert_same(drawn)


@examples(60)
@given(skipping_case())
def test_without_a_graph_against_the_oracle(drawn: Case) -> None:
    assert_same(drawn, sizes=Sizes(pairs_of_graph=-1))


@pytest.mark.parametrize("skip", ["PAST LAST", "TO NEXT", "TO LAST b"])
@pytest.mark.parametrize(
    "pattern",
    ["SEQ(A a, B b)", "SEQ(A a, B b, C c) WHERE a.x < c.x", "AND(A a, B b) WHERE a.x + b.x > 90", "SEQ(A a, B+ b[])"],
)
def test_of_many_results_none_is_found_by_its_rank(monkeypatch: pytest.MonkeyPatch, pattern: str, skip: str) -> None:
    """What is kept of a group of very many results is followed or walked: no rank is looked for."""
    n = 3_000
    kinds, values = np.array(list("ABC"))[np.arange(n) % 3], np.arange(n) * 37 % 101
    events = pa.table({"t": range(n), "id": range(n), "x": values, "k": kinds})
    for operator in (JoinOperator, PatternOperator, SequenceOperator):
        monkeypatch.setattr(operator, "at", None)
    query = trellis.query(f"PATTERN {pattern} AFTER MATCH SKIP {skip}")
    found = query.detect(events, time="t", event_id="id", type="k")
    assert found.count() > 0
    rows = found.to_arrow()
    firsts, lasts = (rows[name].to_numpy() for name in ("start_time", "end_time"))
    assert (firsts[1:] > (lasts[:-1] if skip == "PAST LAST" else firsts[:-1])).all()


def test_what_is_refused() -> None:
    with pytest.raises(BindError, match="AFTER MATCH goes to `a`, which some results do not have"):
        trellis.query("PATTERN SEQ(OR(E a, E b), E c) AFTER MATCH SKIP TO LAST a").detect(EVENTS, time="t")
    for optional in ("E? b", "contiguous E? b", "E* b[]"):
        with pytest.raises(BindError, match="AFTER MATCH goes to `b`, which some results do not have"):
            trellis.query(f"PATTERN SEQ(E a, {optional}) AFTER MATCH SKIP TO FIRST b").detect(EVENTS, time="t")
    with pytest.raises(UsageError, match="takes no AFTER MATCH"):
        trellis.query("PATTERN E+ s[] AFTER MATCH SKIP TO NEXT").detect(EVENTS, time="t", algorithm="m-cet")


@examples(60)
@given(skipping_case())
def test_by_ranks_against_the_oracle(drawn: Case) -> None:
    """Where each first event's results begin among the ranks is found without listing those that are skipped."""
    with pytest.MonkeyPatch.context() as patched:
        for operator in (JoinOperator, PatternOperator, SequenceOperator, TrendOperator):
            patched.setattr(operator, "leading", lambda *_: None)
            patched.setattr(operator, "leading_of_firsts", lambda *_: None)
        assert_same(drawn, sizes=Sizes(skip_few=0))


@pytest.mark.parametrize("window", ["", "WITHIN 20", "WITHIN 20 SLIDE 20"])
@pytest.mark.parametrize(
    "pattern",
    [
        "A+ a[] WHERE a[i].x > a[i-1].x", "SEQ(A a, B b, C c)", "SEQ(A a, B+ b[]) WHERE a.x < b.x", "AND(A a, B b)",
        "SEQ(A+ a[], A+ c[])", "SEQ(A a, B+ b[]) WHERE FIRST(b).x < LAST(b).x", "A+ a[] REPORT maximal",
    ],
)  # fmt: skip
def test_where_the_results_of_each_first_event_end(pattern: str, window: str) -> None:
    rng, size = np.random.default_rng(3), 70
    kinds = np.array(list("ABC"))[rng.integers(0, 3, size)]
    times = np.sort(rng.integers(0, 60, size))
    events = pa.table({"t": times, "id": range(size), "x": rng.integers(0, 9, size), "k": kinds})
    results = trellis.query(f"PATTERN {pattern} {window}").detect(
        events, time="t", event_id="id", type="k", sizes=Sizes(small_pairs=0)
    )
    operator = results.operator
    for group, count in enumerate(operator.counts):
        if not 0 < count < 100_000:
            continue
        firsts = operator.at(group, range(count)).firsts
        found, ends = operator.rank_ends(group)
        assert found.tolist() == sorted(set(firsts.tolist()))
        assert ends.tolist() == [int(np.searchsorted(firsts, first, side="right")) for first in found.tolist()]


def test_ranks_of_any_size_end_where_another_first_event_begins() -> None:
    events = pa.table({"t": range(200), "id": range(200), "x": range(200), "k": list("AB") * 100})
    query = trellis.query("PATTERN SEQ(A a, B+ b[]) WHERE a.x < b.x REPORT any")
    operator = query.detect(events, time="t", event_id="id", type="k").operator
    found, ends = operator.rank_ends(0)
    assert found.tolist() == [*range(0, 200, 2)]
    assert np.diff(ends, prepend=0).tolist() == [2 ** (100 - i) - 1 for i in range(100)]
