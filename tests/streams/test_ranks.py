"""Counters of ranks count as a dictionary does, and a batch touches only the pages of its own partitions."""

from __future__ import annotations

import json
import random
import statistics
import time as clock
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trellis.streams.ranks import KEYS_PER_PAGE, LARGEST_RANK, RankCounters


@dataclass
class Pages:
    """Pages in this process, and how often they were asked for."""

    kept: dict[tuple[int, int], str] = field(default_factory=dict)
    asked: int = 0
    written: int = 0

    def page(self, space: int, number: int) -> str | None:
        self.asked += 1
        return self.kept.get((space, number))

    def set_page(self, space: int, number: int, text: str | None) -> None:
        if text is None:
            self.kept.pop((space, number), None)
            return
        self.written += len(text)
        self.kept[space, number] = text


@given(st.lists(st.dictionaries(st.text(max_size=3), st.integers(1, LARGEST_RANK)), max_size=40))
def test_they_count_as_a_dictionary_does(batches: list[dict[str, int]]) -> None:
    pages, known = Pages(), dict[str, int]()
    space, number, keys = 1, 1, 0
    for counts in batches:
        counters = RankCounters(pages, space, number, keys)  # as a new batch finds them
        had = counters.add(counts)
        assert had == {key: min(known.get(key, 0), LARGEST_RANK + 1) for key in counts}
        for key, count in counts.items():
            known[key] = known.get(key, 0) + count
        number, keys = counters.pages, counters.keys
    assert keys == len(known)
    RankCounters(pages, space, number, keys).clear()
    assert not pages.kept


def test_spaces_are_apart() -> None:
    pages = Pages()
    RankCounters(pages, 1).add({"a": 3})
    assert RankCounters(pages, 2).add({"a": 1}) == {"a": 0}


def test_a_batch_reads_and_writes_only_what_its_partitions_need() -> None:
    pages, dice = Pages(), random.Random(1)
    counters = RankCounters(pages, 1)
    for begin in range(0, 60_000, 500):
        counters.add({f"['{i}']": 1 for i in range(begin, begin + 500)})
    pages.asked = pages.written = 0
    counters.add({f"['{i}']": 1 for i in dice.sample(range(60_000), 20)})
    assert pages.asked <= 20
    assert pages.written < 20 * 5 * KEYS_PER_PAGE * len("\"['59999']\":1,")
    largest = max(len(json.loads(text)) for text in pages.kept.values())
    assert largest < 5 * KEYS_PER_PAGE


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_with_ten_million_partitions_a_batch_costs_what_it_did_with_few() -> None:
    pages, at, seconds = Pages(), 0, dict[int, float]()
    counters = RankCounters(pages, 1)
    for size in (100_000, 10_000_000):
        while at < size:
            end = min(size, at + 1_000_000)
            counters.add({f"['{i}']": 1 for i in range(at, end)})
            at = end
        taken = []
        for number in range(40):  # each with partitions that are known and a few that are new
            known = random.Random(number).sample(range(size), 400)
            batch = {f"['{i}']": 2 for i in known} | {f"['new {size} {number} {i}']": 1 for i in range(100)}
            begun = clock.process_time()
            had = counters.add(batch)
            taken.append(clock.process_time() - begun)
            assert len(had) == 500
        seconds[size] = statistics.median(taken)
    assert seconds[10_000_000] < 3 * seconds[100_000], seconds
