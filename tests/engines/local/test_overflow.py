"""Integers that do not fit 64 bits: an error where the condition is asked, and only there."""

from __future__ import annotations

import pyarrow as pa
import pytest

import trellis
from trellis.errors import OverflowInCondition

LARGE = 2**63 - 1
EVENTS = pa.table({"ts": [1, 2, 3], "id": [1, 2, 3], "kind": ["odd", "even", "odd"], "n": [1, LARGE, 3]})


def ids(text: str, **options: str) -> list[list[int]]:
    return trellis.query(text).detect(EVENTS, event_id="id", **options).to_arrow()["events"].to_pylist()


def test_an_event_is_not_asked_what_it_need_not_meet() -> None:
    assert ids("PATTERN E+ s[] WHERE s.kind = 'odd' AND s.n + 1 > 0") == [[1, 3]]
    assert ids("PATTERN odd+ s[] WHERE s.n + 1 > 0", type="kind") == [[1, 3]]


def test_an_event_that_is_asked_is_an_error() -> None:
    with pytest.raises(OverflowInCondition, match=r"`s.n \+ 1` does not fit 64 bits"):
        ids("PATTERN E+ s[] WHERE s.n + 1 > 0")
    with pytest.raises(OverflowInCondition):
        ids("PATTERN E+ s[] WHERE s.kind = 'odd' OR s.n + 1 > 0")


def test_only_pairs_that_are_asked_overflow() -> None:
    assert ids("PATTERN E+ s[] WHERE s.kind = 'odd' AND s[i].n + 1 > s[i-1].n") == [[1, 3]]
    assert ids("PATTERN E+ s[] WHERE s[i].kind = s[i-1].kind AND s[i].n + 1 > s[i-1].n") == [[1, 3], [2]]
    with pytest.raises(OverflowInCondition):
        ids("PATTERN E+ s[] WHERE s[i].n + 1 > s[i-1].n")
