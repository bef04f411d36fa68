"""AGGREGATE PER EVENT: numbers of any size, by every relation of successors, agree with what listing gives."""

from __future__ import annotations

import itertools
import random
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import trellis
from trellis.errors import BindError, ListingRefused, UsageError
from trellis.language.schema import Kind
from trellis.operators.aggregates import Sum
from trellis.operators.sums import SumColumn
from trellis.operators.wide import WideNumbers
from trellis.results.numbers import exact_columns
from trellis.results.per_event import shares_of

ITEMS = (
    "COUNT(*), SHARE, BEGINS, ENDS, COUNT(s), MIN(LENGTH), MAX(LENGTH), AVG(LENGTH), SUM(s.x), AVG(s.y), MIN(s.x), "
    "MAX(s.k), SUM(s.x * s.x) AS squares PER EVENT"
)
CONDITIONS = {
    "an inequality": "s[i].x > s[i-1].x",
    "a key": "s[i].k = s[i-1].k",
    "an inequality within a key": "s[i].k = s[i-1].k AND s[i].x > s[i-1].x",
    "two inequalities": "s[i].x > s[i-1].x AND s[i].y < s[i-1].y",
    "a gap": "s[i].x > s[i-1].x AND s[i].t - s[i-1].t <= 4",
    "a range": "s[i].x != s[i-1].x",
}


def table(size: int, seed: int = 5) -> pa.Table:
    some = random.Random(seed)
    return pa.table(
        {
            "t": [some.randrange(size) for _ in range(size)],
            "id": list(range(size)),
            "x": [some.choice([1, 2, 3, 4, 5, 6, None]) for _ in range(size)],
            "y": [some.choice([0.5, 1.5, -2.0, float("inf"), None]) for _ in range(size)],
            "k": [some.choice("ab") for _ in range(size)],
        }
    )


def rows(text: str, events: pa.Table, **options: Any) -> list[dict[str, Any]]:
    return trellis.query(text).detect(events, time="t", event_id="id", **options).to_arrow().to_pylist()


@pytest.mark.parametrize("where", CONDITIONS.values(), ids=CONDITIONS)
@pytest.mark.parametrize("rest", ["", "REPORT any WITHIN 8 SLIDE 5", "WITHIN 6", "REPORT maximal"])
def test_passes_and_listing_agree(where: str, rest: str) -> None:
    text = f"PATTERN E+ s[] WHERE {where} {rest} AGGREGATE {ITEMS}"
    found = rows(text, table(14))
    assert found == rows(text.replace("AGGREGATE", "HAVING LENGTH >= 1 AGGREGATE"), table(14))
    assert found


def test_counts_of_any_size() -> None:
    size = 120
    events = pa.table({"t": range(size), "id": range(size), "x": range(size)})
    items = "COUNT(*), SHARE, BEGINS, ENDS, SUM(s.x), AVG(LENGTH) PER EVENT"
    text = f"PATTERN E+ s[] WHERE s[i].x > s[i-1].x REPORT any AGGREGATE {items}"
    found = rows(text, events)
    whole = 2**size - 1
    assert [row["count_text"] for row in found] == [str(2 ** (size - 1))] * size
    assert [row["begins_text"] for row in found] == [str(2 ** (size - 1 - x)) for x in range(size)]
    assert [row["ends_text"] for row in found] == [str(2**x) for x in range(size)]
    assert {row["share"] for row in found} == {2 ** (size - 1) / whole}
    # Each other event is in half of the trends through one.
    total = sum(range(size))
    sums = [x * 2 ** (size - 1) + (total - x) * 2 ** (size - 2) for x in range(size)]
    assert [row["sum_s_x_text"] for row in found] == list(map(str, sums))
    assert {row["avg_length"] for row in found} == {float(Fraction(size + 1, 2))}


def test_an_event_of_several_variables() -> None:
    events = pa.table({"t": range(4), "id": range(4), "x": [1, 2, 3, 4]})
    text = "PATTERN SEQ(E+ a[], E b) WHERE a[i].x > a[i-1].x AGGREGATE COUNT(*), COUNT(a), MAX(b.x)"
    counts = {row["event"]: row["count"] for row in rows(f"{text} PER EVENT", events)}
    own = {row["event"]: row["count"] for row in rows(f"{text} PER EVENT OF b", events)}
    assert counts == {0: 7, 1: 4, 2: 4, 3: 4}
    assert own == {1: 1, 2: 2, 3: 4}


def test_what_is_refused() -> None:
    events = table(30)
    with pytest.raises(BindError, match="SHARE is the part of all results that hold an event"):
        rows("PATTERN E+ s[] AGGREGATE SHARE", events)
    with pytest.raises(BindError, match="the pattern declares no variable `q`"):
        rows("PATTERN E+ s[] AGGREGATE COUNT(*) PER EVENT OF q", events)
    with pytest.raises(UsageError, match="takes no AGGREGATE PER EVENT"):
        rows("PATTERN E+ s[] AGGREGATE COUNT(*) PER EVENT", events, algorithm="m-cet")
    many = "PATTERN E+ s[] REPORT any HAVING LENGTH >= 2 AGGREGATE COUNT(*) PER EVENT"
    with pytest.raises(ListingRefused, match="this AGGREGATE goes through all results, and there are"):
        rows(many, events, max_trends=1000)


@pytest.mark.parametrize("bits", [114, 170, 1000])
def test_numbers_of_several_words_are_exact(bits: int) -> None:
    """Numbers of words, their text and their quotients are those of Python's own numbers."""
    dice = random.Random(5)
    numbers = [0, 1, 10**9 - 1, 10**9, 10**18, 2**53, 2**64 - 1, 2**64, 2**bits - 1]
    numbers += [10**38 - 1, 10**38, 10**45] if bits > 160 else []
    numbers += [dice.getrandbits(dice.randint(1, bits)) for _ in range(3000)]
    wide = WideNumbers.of_residues(bits, lambda prime: np.array([one % prime for one in numbers], np.uint64), 2)
    assert wide.tolist() == numbers
    assert [wide[0], wide[8], *wide[6:8]] == [0, 2**bits - 1, 2**64 - 1, 2**64]
    whole, text = exact_columns(wide, 0)
    whole.validate(full=True)
    text.validate(full=True)
    assert [None if one is None else int(one) for one in whole.to_pylist()] == [
        one if one < 10**38 else None for one in numbers
    ]
    assert text.to_pylist() == [str(number) for number in numbers]
    total = sum(numbers)
    shares = shares_of(wide, np.zeros(len(numbers), np.int64), [total]).to_pylist()
    assert shares == [number / total for number in numbers]


def _written(number: int, scale: int) -> str:
    digits = str(abs(number)).rjust(scale + 1, "0")
    return ("-" if number < 0 else "") + (f"{digits[:-scale]}.{digits[-scale:]}" if scale else digits)


@pytest.mark.parametrize("bits", [50, 63, 64, 120, 700])
def test_sums_in_columns_are_exact(bits: int) -> None:
    """Signed numbers of words, added in runs, written and divided, are those of Python's own numbers."""
    dice = random.Random(bits)
    edges = [0, 1, -1, 2**bits - 1, 1 - 2**bits, 2 ** (bits - 1), -(2 ** (bits - 1)), 2**49 + 1, 3 * 2**48]
    numbers = edges + [dice.choice([-1, 1]) * dice.getrandbits(dice.randint(1, bits)) for _ in range(2000)]
    many = [dice.choice([0, 1, 2, 3, 7, dice.getrandbits(bits)]) for _ in numbers]
    wide = WideNumbers.of_residues(bits, lambda prime: np.array([one % prime for one in numbers], np.uint64), 1, True)
    assert wide.tolist() == numbers
    assert [*wide.negative] == [one < 0 for one in numbers]
    assert [*wide.positive] == [one > 0 for one in numbers]
    assert wide.magnitudes().tolist() == [*map(abs, numbers)]
    assert wide.doubled(75).tolist() == [one << 75 for one in numbers]
    begins = np.array(sorted({0, *dice.sample(range(len(numbers)), 300)}))
    runs = [sum(numbers[a:b]) for a, b in itertools.pairwise([*begins.tolist(), len(numbers)])]
    assert wide.added(begins).tolist() == runs
    both = WideNumbers.concat([wide, WideNumbers.of(many), wide.doubled(3)])
    assert both.tolist() == numbers + many + [8 * one for one in numbers]
    flags = np.zeros(len(numbers), np.bool_)
    for unit in (Fraction(1), Fraction(1, 2**60), Fraction(1, 2**1070), Fraction(2**400), Fraction(1, 1000)):
        sums = SumColumn(wide, WideNumbers.of(many), flags, flags, unit)
        parts = zip(numbers, many, strict=True)
        assert sums.means().to_pylist() == [Sum(one * unit, n).mean() for one, n in parts]
        if unit.denominator != 1000:
            parts = zip(numbers, many, strict=True)
            assert sums.doubles().to_pylist() == [Sum(one * unit, n).value(Kind.DOUBLE) for one, n in parts]
    for scale in (0, 4):
        whole, text = exact_columns(wide, scale, np.array(many) > 0)
        whole.validate(full=True)
        text.validate(full=True)
        there = [number if n else None for number, n in zip(numbers, many, strict=True)]
        assert text.to_pylist() == [None if one is None else _written(one, scale) for one in there]
        assert [None if one is None else int(Fraction(one) * 10**scale) for one in whole.to_pylist()] == [
            None if one is None or abs(one) >= 10**38 else one for one in there
        ]


def test_what_is_skipped_is_listed_without_a_bound() -> None:
    """AFTER MATCH keeps at most one result for each event."""
    text = "PATTERN E+ s[] WHERE s[i].x > s[i-1].x REPORT any AFTER MATCH SKIP PAST LAST AGGREGATE SUM(s.x), AVG(s.y)"
    assert rows(f"{text} PER EVENT", table(60), max_trends=1) == rows(f"{text} PER EVENT", table(60))


@pytest.mark.parametrize(
    "pattern", ["E+ s[] WHERE s[i].x > s[i-1].x", "SEQ(E s, E e, E f) WHERE s.x < f.x AND e.x < f.x"]
)
def test_results_know_their_numbers_per_event(pattern: str) -> None:
    """`per_event` is AGGREGATE ... PER EVENT, of fixed sequences too, whose own operator has no such numbers."""
    found = trellis.query(f"PATTERN {pattern}").detect(table(14), time="t", event_id="id")
    assert found.count() > 0
    for of, words in ((None, ""), ("s", " OF s")):
        wanted = rows(f"PATTERN {pattern} AGGREGATE COUNT(*), MAX(LENGTH) PER EVENT{words}", table(14))
        assert found.per_event("count(*)", "max(length)", of=of).to_arrow().to_pylist() == wanted
    assert found.per_event().to_arrow().column_names[-3:-1] == ["event", "count"]
