"""Exact counts and sums of any size: on the index, on the graph, and by plain programming with Python's ints."""

from __future__ import annotations

from copy import copy
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numba import njit

import trellis
from tests.profiles import examples
from trellis.kernels.count.algebra import modulo, settle
from trellis.operators import exact
from trellis.operators.trends.count import Counter, GraphRelation
from trellis.operators.trends.tasks import length_bounds, make_tasks, with_first_ends
from trellis.plan.sizes import USUAL, Sizes

CONDITIONS = {
    "s[i].x > s[i-1].x": lambda a, b: b["x"] > a["x"],
    "s[i].x >= 1.5 * s[i-1].x": lambda a, b: b["x"] >= 1.5 * a["x"],
    "s[i].x < s[i-1].y": lambda a, b: b["x"] < a["y"],
    "s[i].k = s[i-1].m": lambda a, b: b["k"] == a["m"],
    "s[i].k = s[i-1].m AND s[i].x <= s[i-1].y": lambda a, b: b["k"] == a["m"] and b["x"] <= a["y"],
    "s[i].k = s[i-1].m AND s[i].m = s[i-1].k": lambda a, b: b["k"] == a["m"] and b["m"] == a["k"],
    "s[i].x != s[i-1].y": lambda a, b: b["x"] != a["y"],
    "s[i].k = s[i-1].k AND s[i].x != s[i-1].x": lambda a, b: b["k"] == a["k"] and b["x"] != a["x"],
    "s[i].x BETWEEN 0.5 * s[i-1].x AND s[i-1].y": lambda a, b: 0.5 * a["x"] <= b["x"] <= a["y"],
    "s[i].x > s[i-1].x AND s[i].x > s[i-1].y": lambda a, b: b["x"] > a["x"] and b["x"] > a["y"],
    "s[i].x > s[i-1].x AND s[i].y <= s[i-1].y": lambda a, b: b["x"] > a["x"] and b["y"] <= a["y"],
    "s[i].k = s[i-1].m AND s[i].x > s[i-1].x AND s[i].y < s[i-1].x": lambda a, b: (
        b["k"] == a["m"] and b["x"] > a["x"] and b["y"] < a["x"]
    ),
    "s[i].ts - s[i-1].ts <= 3": lambda a, b: b["ts"] - a["ts"] <= 3,
    "4 >= s[i].ts - s[i-1].ts AND s[i].x >= s[i-1].x": lambda a, b: b["ts"] - a["ts"] <= 4 and b["x"] >= a["x"],
    "s[i].ts - s[i-1].ts <= 5 AND ABS(s[i].x - s[i-1].x) < 3": lambda a, b: (
        b["ts"] - a["ts"] <= 5 and abs(b["x"] - a["x"]) < 3
    ),
    "s[i].ts - s[i-1].ts < 9 AND s[i].k = s[i-1].k AND s[i].x > s[i-1].x / 2": lambda a, b: (
        b["ts"] - a["ts"] < 9 and b["k"] == a["k"] and b["x"] > a["x"] / 2
    ),
    "s[i].x - s[i-1].x > 1": lambda a, b: b["x"] - a["x"] > 1,
    "s[i].x / s[i-1].x > 1.05": lambda a, b: a["x"] != 0 and b["x"] / a["x"] > 1.05,
    "(s[i].x - s[i-1].x) / s[i].x > 0.1": lambda a, b: b["x"] != 0 and (b["x"] - a["x"]) / b["x"] > 0.1,
    "s[i].x > 2 * s[i-1].x OR s[i].x < s[i-1].y": lambda a, b: b["x"] > 2 * a["x"] or b["x"] < a["y"],
    "s[i].k = s[i-1].k AND (s[i].x = s[i-1].x OR s[i].x = s[i-1].y OR s[i].x > s[i-1].x + 2)": lambda a, b: (
        b["k"] == a["k"] and (b["x"] in (a["x"], a["y"]) or b["x"] > a["x"] + 2)
    ),
    "s[i].x != s[i-1].x AND s[i].x != s[i-1].y AND s[i].x <= 3 * s[i-1].x": lambda a, b: (
        b["x"] not in (a["x"], a["y"]) and b["x"] <= 3 * a["x"]
    ),
    "s[i].x > s[i-1].x OR s[i].y < s[i-1].y": lambda a, b: b["x"] > a["x"] or b["y"] < a["y"],
    "s[i].k = s[i-1].m AND (s[i].x - s[i-1].y > 1 OR s[i].y <= s[i-1].x)": lambda a, b: (
        b["k"] == a["m"] and (b["x"] - a["y"] > 1 or b["y"] <= a["x"])
    ),
    "s[i].x > s[i-1].x AND s[i].y <= s[i-1].y AND s[i].k >= s[i-1].m": lambda a, b: (
        b["x"] > a["x"] and b["y"] <= a["y"] and b["k"] >= a["m"]
    ),
    "s[i].k = s[i-1].m AND ABS(s[i].x - s[i-1].x) <= 2 AND s[i].y > s[i-1].x - 1": lambda a, b: (
        b["k"] == a["m"] and abs(b["x"] - a["x"]) <= 2 and b["y"] > a["x"] - 1
    ),
    "s[i].ts >= 0": lambda a, b: True,
}
KINDS = {"key", "inequality", "range", "two inequalities", "three inequalities", "either of two"}
KINDS |= {"inequality within a gap", "range within a gap"}


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


def exactly(counter: Counter) -> list[int]:
    """Count with primes, however small the numbers are, and with 64 bits and floats."""
    wrapped = sized(counter, Sizes(exact=1.0)).counts()
    assert sized(counter, Sizes(exact=1.0, wrapping_bits=0)).counts() == wrapped
    return wrapped


def sized(counter: Counter, sizes: Sizes) -> Counter:
    """Return a counter of the same trends with other sizes."""
    other = copy(counter)
    other.sizes = sizes
    return other


def both_counters(trends: Any) -> tuple[Counter, Counter]:
    """The counter on the index, and one on the graph of the same events."""
    operator = trends.operator
    graph = operator.graph
    relation = GraphRelation(operator.events, graph)
    tasks = with_first_ends(make_tasks(operator.plan, operator.events), operator.events, graph.latest)
    bounds = length_bounds(operator.plan.bound.having)
    assert operator.index is not None
    return operator.counter, Counter(operator.events, relation, tasks, lambda: graph, *bounds)


@examples(150)
@given(
    st.sampled_from(list(CONDITIONS)),
    st.integers(0, 10**6),
    st.integers(1, 90),
    st.sampled_from([2, 5, 1000]),
    st.sampled_from([1, 3]),
    st.booleans(),
)
def test_index_and_graph_count_what_plain_programming_counts(
    condition: str, seed: int, n: int, values: int, overlap: int, every: bool
) -> None:
    table = table_of(seed, n, values)
    slide = max(1, n // 4)
    size = slide * overlap
    text = f"PATTERN S+ s[] WHERE {condition} REPORT {'any' if every else 'unextendable'} WITHIN {size} SLIDE {slide}"
    trends = trellis.query(text + " AGGREGATE COUNT(*), COUNT(s), SUM(s.x)").detect(table, event_id="id")
    assume(n > 3 or trends.operator.index is not None)  # some indexes are not made for so few events
    indexed, graph = both_counters(trends)
    assert exactly(indexed) == exactly(graph) == indexed.counts()
    assert indexed.log2(indexed.tasks) == pytest.approx(graph.log2(graph.tasks))
    assert indexed.length_range() == graph.length_range()
    wanted = [naive(table, CONDITIONS[condition], k, k + size, every) for k in range(slide - size, n, slide)]
    rows = trends.to_arrow().to_pylist()
    assert [int(r["count_text"]) for r in rows] == [w[0] for w in wanted if w[0]]
    assert [int(r["count_s_text"]) for r in rows] == [w[1] for w in wanted if w[0]]
    assert [r["sum_s_x"] for r in rows] == [float(w[2]) for w in wanted if w[0]]


@examples(60)
@given(
    st.sampled_from(list(CONDITIONS)),
    st.integers(0, 10**6),
    st.integers(2, 60),
    st.sampled_from([2, 5, 1000]),
    st.sampled_from(["", "HAVING LENGTH >= 2", "HAVING LENGTH <= 3", "HAVING LENGTH = 2"]),
    st.sampled_from([1, 7, 1000]),
    st.booleans(),
)
def test_index_and_graph_agree_on_spans_and_lengths(
    condition: str, seed: int, n: int, values: int, having: str, span: int, every: bool
) -> None:
    table = table_of(seed, n, values)
    report = "any" if every else "unextendable"
    query = trellis.query(f"PATTERN S+ s[] WHERE {condition} {having} REPORT {report} WITHIN {span}")
    indexed, graph = both_counters(query.detect(table, event_id="id"))
    assert (indexed.each.first_end == graph.each.first_end).all()
    assert exactly(indexed) == exactly(graph) == indexed.counts()
    assert indexed.length_range() == graph.length_range()
    groups = np.arange(len(indexed.events.groups))

    def lengths(prime: int) -> Any:
        return np.ones((1, n), np.uint64)

    assert indexed.sums(groups, lengths, 200) == graph.sums(groups, lengths, 200)


@pytest.mark.parametrize("report", ["any", "unextendable"])
def test_starts_whose_spans_end_together_are_counted_together(report: str) -> None:
    table = table_of(4, 300, 1000)
    bursts = pa.array(table["ts"].to_numpy() // 20 * 20)  # many at the same times
    table = table.set_column(0, "ts", bursts)
    query = trellis.query(f"PATTERN S+ s[] WHERE s[i].x > s[i-1].x REPORT {report} WITHIN 60")
    operator = query.detect(table, event_id="id").operator
    each = operator.counter.of_tasks(operator.tasks)
    assert operator.counter.counts() == [sum(each)]
    assert len(operator.counter.tasks) < len(operator.tasks) / 3
    assert sum(each) == query.detect(table, event_id="id").to_arrow().num_rows


def test_each_kind_of_index_is_among_the_conditions() -> None:
    table = table_of(1, 9, 5)
    kinds = {
        trellis.query(f"PATTERN S+ s[] WHERE {c}").detect(table, event_id="id").operator.index.kind for c in CONDITIONS
    }
    assert kinds == KINDS


@pytest.mark.parametrize("condition", ["s[i].x > s[i-1].x", "s[i].k = s[i-1].m", "s[i].x >= s[i-1].x AND s[i].y > 2"])
def test_many_overlapping_windows_and_spans_share_parts(condition: str) -> None:
    table = table_of(3, 3000, 1000)
    for within in ("WITHIN 600 SLIDE 40", "WITHIN 300", "WITHIN 20 SLIDE 3"):
        trends = trellis.query(f"PATTERN S+ s[] WHERE {condition} {within}").detect(table, event_id="id")
        indexed, graph = both_counters(trends)
        parts = indexed.relation.parts
        assert 1 < len(parts) < len(indexed.tasks) / 4
        assert parts.size < 4 * 3000
        assert indexed.counts() == graph.counts()


@examples(120)
@given(
    st.sampled_from(["s[i].x > s[i-1].x", "s[i].x >= 1.5 * s[i-1].x", "s[i].x < s[i-1].y", "s[i].ts >= 0"]),
    st.integers(0, 10**6),
    st.integers(1, 150),
    st.sampled_from([2, 40, 1000]),
    st.sampled_from([1, 2, 7, 64]),
    st.booleans(),
)
def test_blocks_count_what_one_pass_does(
    condition: str, seed: int, n: int, values: int, block: int, every: bool
) -> None:
    table = table_of(seed, n, values)
    x = pa.array(table["x"].to_pylist(), mask=np.random.default_rng(seed).random(n) < 0.1)
    table = table.set_column(2, "x", x)
    text = f"PATTERN S+ s[] WHERE {condition} AND s.k < 2 REPORT {'any' if every else 'unextendable'}"
    for window in ("", f" WITHIN {n // 2 + 1} SLIDE {n // 4 + 1}"):
        counter = trellis.query(text + window).detect(table, event_id="id").operator.counter
        wanted = counter.counts()
        in_blocks = sized(counter, Sizes(count_events=0, count_block=block))
        if len(counter.tasks) and counter.relation.one_segment:
            assert in_blocks.in_blocks
        assert in_blocks.counts() == wanted


IN_BLOCKS = Sizes(count_events=1, count_block=100)  # beyond three primes and beyond floats


@pytest.mark.parametrize("sizes", [USUAL, IN_BLOCKS], ids=["in one pass", "in blocks"])
@pytest.mark.parametrize("n", [60, 180, 1100, 3000])
def test_rising_prices_have_a_power_of_two(n: int, sizes: Sizes) -> None:
    table = pa.table({"ts": np.arange(n), "x": np.arange(n, dtype=float), "id": np.arange(n)})
    query = trellis.query("PATTERN S+ s[] WHERE s[i].x > s[i-1].x")
    assert query.detect(table, event_id="id", sizes=sizes).count() == 2 ** (n - 2)
    assert query.detect(table, event_id="id", sizes=sizes, report_mode="any").count() == 2**n - 1
    assert query.detect(table, event_id="id", sizes=sizes, report_mode="maximal").count() == 1


@pytest.mark.parametrize("n", range(55, 100))
def test_floats_tell_what_64_bits_do_not(n: int) -> None:
    table = pa.table({"ts": np.arange(n), "x": np.arange(n, dtype=float), "id": np.arange(n)})
    trends = trellis.query("PATTERN S+ s[] WHERE s[i].x > s[i-1].x REPORT any").detect(table, event_id="id")
    assert trends.count() == 2**n - 1


@pytest.mark.parametrize("report", ["any", "unextendable"])
@pytest.mark.parametrize("swing", [0, 15])
def test_spans_of_numbers_beyond_floats_add_up(report: str, swing: int) -> None:
    """More than 64 starts, each with a number of trends as large as a prime: their sum is exact all the same."""
    n, span = 400, 170
    rng = np.random.default_rng(swing)
    price = (10 * np.arange(n) + rng.integers(0, swing + 1, n)).tolist()
    table = pa.table({"ts": np.arange(n), "id": np.arange(n), "x": price})
    query = trellis.query(f"PATTERN E+ s[] WHERE s[i].x > s[i-1].x REPORT {report} WITHIN {span}")
    before = [max(0, i - span) for i in range(n)]
    total = 0
    for begin in range(n):
        end = min(n, begin + span + 1)
        paths = {begin: 1}
        for i in range(begin + 1, end):
            paths[i] = sum(paths[j] for j in range(begin, i) if price[j] < price[i])
        for last, number in paths.items():
            goes_on = any(price[i] > price[last] for i in range(last + 1, end))
            comes_from = any(price[i] < price[begin] for i in range(before[last], begin))
            total += number if report == "any" or not (goes_on or comes_from) else 0
    assert total > 2**120
    assert query.detect(table, event_id="id").count() == total


@pytest.mark.parametrize("sizes", [USUAL, IN_BLOCKS], ids=["in one pass", "in blocks"])
def test_prices_that_rise_crash_and_rise_again_do_not_underflow(sizes: Sizes) -> None:
    values = np.concatenate([np.arange(2600, dtype=float) + 5000, np.arange(2500, dtype=float)])
    table = pa.table({"ts": np.arange(5100), "x": values, "id": np.arange(5100)})
    trends = trellis.query("PATTERN S+ s[] WHERE s[i].x > s[i-1].x").detect(table, event_id="id", sizes=sizes)
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


@pytest.mark.parametrize(
    "text",
    [
        "PATTERN S+ s[] WHERE s[i].x > s[i-1].x REPORT maximal",
        "PATTERN S+ s[] WHERE s[i].x > s[i-1].x SELECT skip-till-next",
        "PATTERN S+ s[] WHERE s[i].x > s[i-1].x OR s[i].y > s[i-1].y OR s[i].m > s[i-1].m",
    ],
)
def test_edges_serve_where_the_index_does_not(text: str) -> None:
    table = table_of(1, 30, 10)
    assert trellis.query(text).detect(table, event_id="id").operator.index is None


@pytest.mark.parametrize("bits", [exact.SMALL, exact.LARGE])
def test_a_sum_of_64_residues_is_folded_into_its_remainder(bits: int) -> None:
    rng = np.random.default_rng(bits)
    for index in range(40):
        algebra = modulo(exact.prime_below(bits, index))
        prime = int(algebra.prime)
        for total in [0, 1, prime - 1, prime, prime + 1, 2 * prime - 1, 64 * (prime - 1), 2**bits - 1, 2**bits]:
            assert _settled(algebra, np.uint64(total)) == total % prime
        for total in rng.integers(0, 64 * (prime - 1), 50, np.uint64).tolist():
            assert _settled(algebra, np.uint64(total)) == total % prime


@njit
def _settled(algebra: Any, total: Any) -> Any:
    return settle(algebra, total)


def test_lengths_that_no_trend_has_are_no_mistake() -> None:
    table = pa.table({"ts": range(5), "x": range(5), "id": range(5)})
    query = trellis.query("PATTERN S+ s[] WHERE s[i].x > s[i-1].x HAVING LENGTH < 0 AGGREGATE COUNT(*), MIN(LENGTH)")
    assert [row["count"] for row in query.detect(table, event_id="id").to_arrow().to_pylist()] in ([], [0])
