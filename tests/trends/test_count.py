"""Exact counts and sums of any size: on the index, on the graph, and by plain programming with Python's ints."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import trellis
from trellis.trends import count, exact
from trellis.trends.count import Counter, IndexedCounter
from trellis.trends.operator import TrendOperator

CONDITIONS = {
    "s[i].x > s[i-1].x": lambda a, b: b["x"] > a["x"],
    "s[i].x >= 1.5 * s[i-1].x": lambda a, b: b["x"] >= 1.5 * a["x"],
    "s[i].x < s[i-1].y": lambda a, b: b["x"] < a["y"],
    "s[i].k = s[i-1].m": lambda a, b: b["k"] == a["m"],
    "s[i].k = s[i-1].m AND s[i].x <= s[i-1].y": lambda a, b: b["k"] == a["m"] and b["x"] <= a["y"],
    "s[i].k = s[i-1].m AND s[i].m = s[i-1].k": lambda a, b: b["k"] == a["m"] and b["m"] == a["k"],
}


def table_of(seed: int, n: int, values: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "ts": np.sort(rng.integers(0, n, n)),
            "id": np.arange(n),
            "x": rng.integers(0, values, n).astype(float),
            "y": rng.integers(0, values, n).astype(float),
            "k": rng.integers(0, 3, n),
            "m": rng.integers(0, 3, n),
        }
    )


def naive(table: pa.Table, may_follow: object, lo: int, hi: int, every: bool) -> tuple[int, int, Fraction]:
    """Number of trends of the events with lo <= ts < hi, the sum of their lengths, and the sum of their x."""
    rows = [row for row in table.to_pylist() if lo <= row["ts"] < hi]
    n = len(rows)
    follows = [
        [j for j in range(n) if rows[j]["ts"] > rows[i]["ts"] and may_follow(rows[i], rows[j])] for i in range(n)
    ]  # type: ignore[operator]
    has_before = {j for successors in follows for j in successors}
    number, length, total = [0] * n, [0] * n, [Fraction(0)] * n
    for i in reversed(range(n)):
        number[i] = (1 if every or not follows[i] else 0) + sum(number[j] for j in follows[i])
        length[i] = number[i] + sum(length[j] for j in follows[i])
        total[i] = Fraction(rows[i]["x"]) * number[i] + sum(total[j] for j in follows[i])
    starts = [i for i in range(n) if every or i not in has_before]
    return sum(number[i] for i in starts), sum(length[i] for i in starts), sum((total[i] for i in starts), Fraction(0))


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(list(CONDITIONS)),
    st.integers(0, 10**6),
    st.integers(1, 90),
    st.sampled_from([2, 5, 1000]),
    st.booleans(),
)
def test_index_and_graph_count_what_plain_programming_counts(
    condition: str, seed: int, n: int, values: int, every: bool
) -> None:
    table = table_of(seed, n, values)
    size = max(1, n // 2)
    text = f"PATTERN S+ s[] WHERE {condition} REPORT {'any' if every else 'unextendable'} WITHIN {size} SLIDE {size}"
    trends = trellis.query(text + " AGGREGATE COUNT(*), COUNT(s), SUM(s.x)").detect(table, event_id="id")
    operator = trends._operator
    assert isinstance(operator.counter, IndexedCounter)
    graph = Counter(operator.events, lambda: operator.graph, operator.tasks)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(count, "EXACT", 1.0)
        indexed_counts, graph_counts = operator.counter.counts(), graph.counts()
    assert indexed_counts == graph_counts == operator.counter.counts()
    assert operator.counter.log2(operator.tasks) == pytest.approx(graph.log2(operator.tasks))
    wanted = [naive(table, CONDITIONS[condition], k, k + size, every) for k in range(0, n, size)]
    rows = trends.to_arrow().to_pylist()
    assert [int(r["count_text"]) for r in rows] == [w[0] for w in wanted if w[0]]
    assert [int(r["count_s_text"]) for r in rows] == [w[1] for w in wanted if w[0]]
    assert [r["sum_s_x"] for r in rows] == [float(w[2]) for w in wanted if w[0]]


@pytest.mark.parametrize("n", [60, 1100, 3000])
def test_rising_prices_have_a_power_of_two(n: int) -> None:
    table = pa.table({"ts": np.arange(n), "x": np.arange(n, dtype=float), "id": np.arange(n)})
    query = trellis.query("PATTERN S+ s[] WHERE s[i].x > s[i-1].x")
    assert query.detect(table, event_id="id").count() == 2 ** (n - 2)
    assert query.detect(table, event_id="id", report_mode="any").count() == 2**n - 1
    assert query.detect(table, event_id="id", report_mode="maximal").count() == 1


def test_prices_that_rise_crash_and_rise_again_do_not_underflow() -> None:
    values = np.concatenate([np.arange(2600, dtype=float) + 5000, np.arange(2500, dtype=float)])
    table = pa.table({"ts": np.arange(5100), "x": values, "id": np.arange(5100)})
    trends = trellis.query("PATTERN S+ s[] WHERE s[i].x > s[i-1].x").detect(table, event_id="id")
    assert trends.count() == 2**2598 + 2**2498


def test_having_is_counted_exactly_beyond_64_bits() -> None:
    n = 90
    table = pa.table({"ts": np.arange(n), "x": np.arange(n, dtype=float), "id": np.arange(n)})

    def count_of(having: str) -> int:
        return (
            trellis.query(f"PATTERN S+ s[] WHERE s[i].x > s[i-1].x HAVING {having}")
            .detect(table, event_id="id")
            .count()
        )

    from math import comb

    assert count_of("LENGTH >= 4") == 2**88 - sum(comb(88, k) for k in (0, 1))
    assert count_of("LENGTH = 45") == comb(88, 43)
    assert count_of("LENGTH > 2 AND LENGTH <= 4") == 88 + comb(88, 2)
    assert count_of("LENGTH > 90") == 0


@pytest.mark.parametrize("bits", [exact.SMALL, exact.LARGE])
def test_primes_are_prime_and_enough(bits: int) -> None:
    primes = exact.primes_for(400, bits)
    assert len(set(primes)) == len(primes)
    assert all(2 ** (bits - 1) < p < 2**bits and pow(3, p - 1, p) == 1 for p in primes)
    product = 1
    for p in primes:
        product *= p
    assert product > 2**401


@given(st.lists(st.integers(-(10**80), 10**80), min_size=1, max_size=4))
def test_numbers_are_put_together_from_their_residues(numbers: list[int]) -> None:
    found = exact.reconstruct(270, lambda p: np.array([[x % p for x in numbers]], np.uint64), signed=True)
    assert found == [numbers]


def test_operator_uses_edges_where_the_index_does_not_serve() -> None:
    table = table_of(1, 30, 10)
    for text in (
        "PATTERN S+ s[] WHERE s[i].x > s[i-1].x REPORT maximal",
        "PATTERN S+ s[] WHERE s[i].x != s[i-1].x",
        "PATTERN S+ s[] WHERE s[i].x > s[i-1].x AND s[i].y < s[i-1].y",
        "PATTERN S+ s[] WHERE s[i].x > s[i-1].x WITHIN 5",
        "PATTERN S+ s[] WHERE s[i].x - s[i-1].x > 1",
    ):
        operator: TrendOperator = trellis.query(text).detect(table, event_id="id")._operator
        assert type(operator.counter) is Counter
