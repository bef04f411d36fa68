"""What a signal's handler raises while a kernel runs comes out of the call as it is."""

from __future__ import annotations

import signal

import numpy as np
import pyarrow as pa
import pytest

import trellis

LONG = "PATTERN SEQ(A+ a[], B b) WHERE SUM(a.x) <= 1.1 * b.x AND COUNT(a) >= 3 WITHIN 200"  # minutes, over 3,000 events


class Alarm(Exception):
    """Raised by the handler of a signal."""


@pytest.mark.parametrize(("number", "raised"), [(signal.SIGALRM, Alarm), (signal.SIGINT, KeyboardInterrupt)])
def test_a_search_is_interrupted(number: int, raised: type[BaseException]) -> None:
    rng, size = np.random.default_rng(0), 3_000
    kinds = np.array(["A", "B"])[rng.integers(0, 2, size)]
    table = pa.table({"ts": np.arange(size), "x": rng.random(size), "type": kinds})
    query = trellis.query(LONG)
    assert query.detect(table.slice(0, 20), time="ts", type="type").count() >= 0  # compiled

    def handler(*_: object) -> None:
        raise raised

    before, timer = (
        signal.signal(number, handler),
        signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(number)),
    )
    if number == signal.SIGALRM:
        signal.signal(number, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with pytest.raises(raised):
            query.detect(table, time="ts", type="type").count()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, timer)
        signal.signal(number, before)
