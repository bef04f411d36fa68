"""AFTER MATCH SKIP keeps what its definition says, by listing and by bisection among ranks."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given

import trellis
from tests.compare import assert_same
from tests.profiles import examples
from tests.strategies import Case, skipping_case
from trellis.errors import BindError, UsageError
from trellis.operators import skipping

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


def test_bisection_finds_what_listing_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    for skip in ("PAST LAST", "TO NEXT", "TO LAST s"):
        text = f"PATTERN E+ s[] WHERE s[i].x > s[i-1].x AFTER MATCH SKIP {skip}"
        wanted = events_of(text)
        with monkeypatch.context() as patched:
            patched.setattr(skipping, "FEW", 0)
            assert events_of(text) == wanted


def test_more_results_than_can_be_listed() -> None:
    events = pa.table({"t": range(200), "id": range(200), "x": range(200)})
    text = "PATTERN E+ s[] WHERE s[i].x > s[i-1].x HAVING LENGTH >= 1 AFTER MATCH SKIP PAST LAST"
    found = trellis.query(text).detect(events, time="t", event_id="id")
    assert found.count() == 1
    assert found.to_arrow()["length"].to_pylist() == [200]
    numbers = found.aggregate("count(*)", "sum(s.x)", "max(length)").to_arrow().to_pylist()
    assert [numbers[0][name] for name in ("count", "sum_s_x", "max_length")] == [1, sum(range(200)), 200]


@examples(25)
@given(skipping_case())
def test_against_the_oracle(drawn: Case) -> None:
    assert_same(drawn)


def test_what_is_refused() -> None:
    with pytest.raises(BindError, match="AFTER MATCH goes to `a`, which some results do not have"):
        trellis.query("PATTERN SEQ(OR(E a, E b), E c) AFTER MATCH SKIP TO LAST a").detect(EVENTS, time="t")
    for optional in ("E? b", "contiguous E? b", "E* b[]"):
        with pytest.raises(BindError, match="AFTER MATCH goes to `b`, which some results do not have"):
            trellis.query(f"PATTERN SEQ(E a, {optional}) AFTER MATCH SKIP TO FIRST b").detect(EVENTS, time="t")
    with pytest.raises(BindError, match="beside AFTER MATCH, ORDER BY takes LENGTH as yet"):
        trellis.query("PATTERN E+ s[] ORDER BY SUM(s.x) AFTER MATCH SKIP TO NEXT").detect(EVENTS, time="t")
    with pytest.raises(UsageError, match="takes no AFTER MATCH"):
        trellis.query("PATTERN E+ s[] AFTER MATCH SKIP TO NEXT").detect(EVENTS, time="t", algorithm="m-cet")
