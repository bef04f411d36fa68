"""The k best in two tiers are the k best of a sort, also with more rows than a tier holds."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tests.papers.debs2016 import oracle
from trellis.io.generate.social import lines_of, social
from trellis.kernels.papers.debs2016.top import (
    OWN_COLUMNS,
    OWN_NUMBERS,
    ROW_ID,
    SCORE,
    SCORES,
    SPARE,
    THRESHOLD,
    TIER,
    TIER_AT,
    TOP,
    K,
    enter,
    gain,
    leave,
    lose,
    rise,
    settle,
)
from trellis.papers.debs2016 import posts

ROWS = 900


@pytest.mark.parametrize(("k", "most"), [(1, 3), (3, 10), (3, 6000), (40, 30)])
def test_the_best_are_those_of_a_sort(k: int, most: int) -> None:
    rng = random.Random(k + most)
    rows = np.zeros((ROWS, OWN_COLUMNS), np.int64)
    rows[:, ROW_ID] = rng.sample(range(10 * ROWS), ROWS)
    numbers = np.zeros(OWN_NUMBERS, np.int64)
    numbers[[K, THRESHOLD]] = k, 1
    live, tier, scores, top = (np.zeros(size, np.int64) for size in (ROWS, ROWS, SCORES, k + SPARE))
    texts = np.zeros(0, np.uint8)
    inside: set[int] = set()
    outside = set(range(ROWS))
    smallest = ROWS
    for number in range(2400):
        what = rng.random()
        if outside and (not inside or what < (0.5 if number < 1600 else 0.1)):
            row = outside.pop()
            inside.add(row)
            enter(rows, numbers, live, tier, row, rng.randint(1, most))
            rise(rows, texts, numbers, top, row)
        elif what < 0.7:
            row = rng.choice(sorted(inside))
            gain(rows, numbers, tier, row, rng.randint(1, 3))
            rise(rows, texts, numbers, top, row)
        elif what < 0.9:
            row = rng.choice([*top[: numbers[TOP]].tolist(), rng.choice(sorted(inside))])
            if rows[row, SCORE] > 1:
                rows[row, SCORE] -= 1
                if rows[row, TIER_AT] >= 0:
                    lose(rows, texts, numbers, tier, top, row)
        else:
            row = rng.choice([*top[: numbers[TOP]].tolist(), rng.choice(sorted(inside))])
            leave(rows, numbers, live, tier, top, row)
            inside.remove(row)
            outside.add(row)
        settle(rows, texts, numbers, live, tier, scores, top)
        wanted = sorted(inside, key=lambda row: (rows[row, SCORE], rows[row, ROW_ID]), reverse=True)
        assert numbers[TOP] >= min(k, len(inside))
        assert top[: numbers[TOP]].tolist() == wanted[: numbers[TOP]]
        if len(inside) > 400:
            smallest = min(smallest, int(numbers[TIER]))
    assert smallest < 400 or most == 3, "the rest was never left out"


@pytest.mark.slow
@pytest.mark.parametrize("changes", ["exact", "deaths", "events"])
def test_more_posts_than_a_tier_holds(changes: str) -> None:
    tables = social(1200, 9, users=50, rate=150.0)
    files = lines_of(tables["posts"]), lines_of(tables["comments"])
    assert posts(*files, changes=changes).output == oracle.posts(*files, 3, changes)[0]
