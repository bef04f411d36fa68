"""An exploration that multiplies is refused soon, and what will fit is not."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

import trellis
from trellis.errors import TrellisError
from trellis.operators.patterns.forecast import TOLD, HopelessError, doubled_within, share_before

SO_FAR = "PATTERN E+ a[] WHERE a[i].x > AVG(a[..i-1].x) REPORT any WITHIN 100 SLIDE 100"
MOST = 1e6


def events(values: list[float]) -> pa.Table:
    return pa.table({"ts": np.arange(len(values)), "id": np.arange(len(values)), "x": values})


def count(text: str, table: pa.Table) -> int:
    return int(trellis.query(text).detect(table, time="ts", event_id="id", engine="local").count())


def passed(growth: np.ndarray) -> np.ndarray:
    """Return for each power of two the first event with which there were more."""
    return np.array([int(np.argmax(growth > 2.0**power)) for power in range(40)])


@pytest.mark.parametrize(("growth", "end", "hopeless"), [
    (lambda n: 2.0 ** (n / 2), 400, True),
    (lambda n: 2.0 ** (n / 2), 44, False),  # few events are left
    (lambda n: n**3.0, 100, False),
    (lambda n: n**3.0, 5_000, True),
    (lambda n: np.minimum(2.0**n, n * 2.0**13), 60, False),  # there are no more values
])  # fmt: skip
def test_what_multiplies_is_told_from_what_does_not(growth: object, end: int, hopeless: bool) -> None:
    size, all_events = TOLD, np.arange(5_001)
    with np.errstate(over="ignore"):
        grown = growth(all_events.astype(float))  # type: ignore[operator]
    here = int(np.argmax(grown >= size))
    found = doubled_within(passed(grown), size, here, end, MOST, all_events)
    assert (found is not None) == hopeless


def test_little_is_never_hopeless() -> None:
    assert doubled_within(np.arange(40), TOLD // 2, 17, 1_000, MOST, np.arange(1_001)) is None


def test_sums_of_doubles_are_refused_soon() -> None:
    table = events((100 + np.random.default_rng(1).normal(0, 1, 100)).tolist())
    with pytest.raises(HopelessError, match=r"262,144 different matches so far after \d+ of 100 events; .*sum of x"):
        count(SO_FAR, table)


def test_a_graph_that_grows_is_refused_before_it_is_full() -> None:
    size = 4_000
    rng = np.random.default_rng(2)
    table = pa.table({
        "ts": np.arange(size), "id": np.arange(size), "x": rng.integers(0, 1_000, size),
        "kind": np.array(list("AB"))[rng.integers(0, 2, size)],
    })  # fmt: skip
    text = "PATTERN SEQ(A+ a[], B+ b[]) WHERE SUM(a.x) < 5 * LAST(b).x REPORT maximal"
    with pytest.raises(TrellisError, match=r"steps between them after \d+ of 4,000 events.* all take about .* GB"):
        trellis.query(text).detect(table, time="ts", event_id="id", type="kind", engine="local").count()


def test_doubles_that_are_whole_numbers_are_counted() -> None:
    values = [float(x) for x in np.random.default_rng(3).integers(0, 300, 60)]
    ways: Counter[tuple[int, float]] = Counter()
    for x in values:
        more = Counter({(1, x): 1})
        for (number, total), one in ways.items():
            if x > total / number:
                more[number + 1, total + x] += one
        ways += more
    assert count(SO_FAR, events(values)) == ways.total()


def test_pairs_before_an_event_are_a_share_of_all() -> None:
    from trellis.events.slice import Groups, Slice

    until = np.array([2, 3, 4, 4])
    slice_ = Slice({}, pa.array(range(4)), np.arange(4), np.ones(4, np.bool_), np.array([0, 4]),
                   Groups(np.array([0]), np.array([4]), np.array([0])), until)  # fmt: skip
    assert share_before(slice_, 0, 4, 0) == 0
    assert share_before(slice_, 0, 4, 2) == 4 / 7
    assert share_before(slice_, 0, 4, 4) == 1
