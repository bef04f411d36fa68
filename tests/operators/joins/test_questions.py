"""What can be asked of joins: exact counts without listing, trees, ranks, and what falls to other operators."""

from __future__ import annotations

import itertools
from math import comb, perm
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import trellis
from trellis.operators.joins.counting import Numbers
from trellis.operators.joins.operator import JoinOperator
from trellis.operators.patterns.operator import PatternOperator
from trellis.operators.trees.joins import JoinTreeOperator
from trellis.plan.sizes import Sizes

RNG = np.random.default_rng(5)
N = 60
TABLE = pa.table(
    {
        "t": np.arange(N) // 2,
        "id": np.arange(N),
        "type": RNG.choice(list("ABCDE"), N),
        "x": RNG.integers(0, 9, N),
        "y": RNG.random(N).round(2),
    }
)
OF_TYPE = {kind: [i for i in range(N) if TABLE["type"][i].as_py() == kind] for kind in "ABCDE"}


def detect(text: str, table: pa.Table = TABLE, **options: Any) -> Any:
    return trellis.query(f"PATTERN {text}").detect(table, time="t", type="type", event_id="id", **options)


def counted(text: str, table: pa.Table = TABLE, **options: Any) -> int:
    trends = detect(text, table, **options)
    assert isinstance(trends.operator, JoinOperator), trends.plan.operator
    return trends.count()


def test_independent_parts_are_multiplied() -> None:
    sizes = {kind: len(places) for kind, places in OF_TYPE.items()}
    assert counted("AND(A a, B b, C c)") == sizes["A"] * sizes["B"] * sizes["C"]
    assert counted("AND(A a, B b, C c, D d, E e)") == np.prod([*sizes.values()])
    assert counted("AND(A a, A b, A c)") == perm(sizes["A"], 3)
    times = TABLE["t"].to_pylist()
    in_turn = sum(times[i] < times[j] for i in OF_TYPE["A"] for j in OF_TYPE["B"])
    assert counted("AND(SEQ(A a, B b), C c, D d)") == in_turn * sizes["C"] * sizes["D"]


def test_many_matches_are_counted_without_a_walk() -> None:
    n = 30_000
    table = pa.table({"t": np.arange(n), "id": np.arange(n), "type": np.array(list("ABC"))[np.arange(n) % 3]})
    third = n // 3
    assert counted("AND(A a, B b, C c)", table) == third**3
    assert counted("AND(A a, A b)", table) == third * (third - 1)
    whole = detect("AND(SEQ(A a, A b, A d), C c, B e)", table)
    assert whole.count() == comb(third, 3) * third**2 > 2**53


def test_another_thread_that_counts_few_does_not_make_many_seem_few() -> None:
    n = 30_000
    table = pa.table({"t": np.arange(n), "id": np.arange(n), "type": np.array(list("ABC"))[np.arange(n) % 3]})
    structure = detect("AND(SEQ(A a, A b, A d), C c, B e)", table).operator.structure
    counter = structure.counter

    def count(numbers: Numbers) -> Any:
        found = counter.of_groups(structure.signed, numbers)
        assert counter.exactly(lambda _: np.ones(1, np.uint64)) == [1]  # what another asks meanwhile
        return found

    assert counter.exactly(count) == [comb(n // 3, 3) * (n // 3) ** 2]


def test_four_variables_that_cross_bind_one() -> None:
    trends = detect("AND(SEQ(A a, B b), SEQ(C c, D d)) WHERE a.x < c.x AND b.x < d.x AND a.x < d.x AND b.x < c.x")
    assert trends.count() == len(trends.to_arrow())
    shapes = trends.operator.structure.counter.shapes
    part = trends.operator.structure.candidates.arms[0].slots
    assert len(shapes.of_part(part).bound) == 2
    crossing = detect("AND(SEQ(A a, B b), SEQ(C c, D d)) WHERE a.x < c.x AND b.x < d.x").operator.structure
    assert len(crossing.counter.shapes.of_part(crossing.candidates.arms[0].slots).bound) == 1


LONG = 160
SEVERAL = pa.table(
    {
        "t": np.cumsum(RNG.random(LONG) < 0.8),
        "id": np.arange(LONG),
        "type": RNG.choice(list("ABCD"), LONG),
        "x": pa.array(RNG.integers(0, 40, LONG), mask=RNG.random(LONG) < 0.05),
    }
)


def _pairs(types: str, orders: list[str], compared: list[str], seconds: int | None) -> int:
    """Count four variables by looking at all their events: `ab` says that `a` comes before `b`, or is the lesser."""
    times, kinds = SEVERAL["t"].to_numpy(), SEVERAL["type"].to_numpy(zero_copy_only=False)
    x = SEVERAL["x"].to_numpy()  # NULL is NaN, which is not below anything
    at = [np.flatnonzero(kinds == kind) for kind in types]
    met = np.ones([len(one) for one in at], bool)
    axes = [one.reshape([-1 if i == k else 1 for i in range(len(at))]) for k, one in enumerate(at)]
    of = dict(zip("abcd", axes, strict=True))
    for first, second in orders:
        met &= times[of[first]] < times[of[second]]
    for first, second in compared:
        met &= x[of[first]] < x[of[second]]
    for u, v in itertools.combinations("abcd", 2):
        met &= of[u] != of[v]
    if seconds is not None:
        stamps = [times[one] for one in axes]
        lasting = np.maximum.reduce(np.broadcast_arrays(*stamps)) - np.minimum.reduce(np.broadcast_arrays(*stamps))
        met &= lasting <= seconds
    return int(met.sum())


@pytest.mark.parametrize("seconds", [None, 90])
@pytest.mark.parametrize(
    ("pattern", "types", "orders"),
    [
        ("SEQ(A a, B b, C c, D d)", "ABCD", ["ab", "bc", "cd"]),
        ("AND(SEQ(A a, B b), SEQ(C c, D d))", "ABCD", ["ab", "cd"]),
        ("AND(SEQ(A a, B b), SEQ(A c, B d))", "ABAB", ["ab", "cd"]),
    ],
)
@pytest.mark.parametrize("compared", [["ac", "bd"], ["ca", "bd"], ["ac", "db"], ["ad", "cb"], ["ab", "cd", "ca"]])
def test_long_lists_are_counted_as_all_their_pairs(
    pattern: str, types: str, orders: list[str], compared: list[str], seconds: int | None
) -> None:
    conditions = " AND ".join(f"{first}.x < {second}.x" for first, second in compared)
    text = f"{pattern} WHERE {conditions}" + (f" WITHIN {seconds}" if seconds else "")
    assert detect(text, SEVERAL).count() == _pairs(types, orders, compared, seconds)


def test_conditions_on_three_variables() -> None:
    times, x = TABLE["t"].to_pylist(), TABLE["x"].to_pylist()
    rows = [
        (a, b, c)
        for a, b, c in itertools.product(OF_TYPE["A"], OF_TYPE["B"], OF_TYPE["C"])
        if times[a] < times[b] < times[c] and x[a] + x[b] < x[c]
    ]
    trends = detect("SEQ(A a, B b, C c) WHERE a.x + b.x < c.x")
    assert isinstance(trends.operator, JoinOperator)
    assert trends.count() == len(rows)
    found = trends.to_arrow()
    assert [*zip(*(found[name].to_pylist() for name in "abc"), strict=True)] == sorted(rows)


def test_not_that_is_compared_with_its_neighbours() -> None:
    times, x = TABLE["t"].to_pylist(), TABLE["x"].to_pylist()
    wanted = [
        (a, c)
        for a, c in itertools.product(OF_TYPE["A"], OF_TYPE["C"])
        if times[a] < times[c]
        and not any(times[a] < times[b] < times[c] and x[a] < x[b] and x[c] < x[b] for b in OF_TYPE["B"])
    ]
    trends = detect("SEQ(A a, NOT(B b), C c) WHERE b.x > a.x AND b.x > c.x")
    assert trends.count() == len(wanted)
    rows = trends.to_arrow()
    assert [*zip(rows["a"].to_pylist(), rows["c"].to_pylist(), strict=True)] == sorted(wanted)


ASKED = [
    "AND(A a, B b, C c) WHERE a.x < b.x",
    "AND(A a, A b, B c) WHERE a.x + b.x > c.x",
    "SEQ(A a, AND(B b, C c), D d) WHERE ABS(a.y - d.y) < 0.2 WITHIN 20",
    "AND(SEQ(A a, B b), C c) WHERE a.x = c.x OR b.y < c.y WITHIN 8 SLIDE 4",
    "AND(A a, A b) WITHIN 6",
]


@pytest.mark.parametrize("text", ASKED)
@pytest.mark.parametrize("algorithm", ["tree", "condensed"])
def test_trees_find_what_the_walk_does(text: str, algorithm: str) -> None:
    depth_of_walk, tree = detect(text), detect(text, algorithm=algorithm)
    assert isinstance(tree.operator, JoinTreeOperator)
    assert tree.count() == depth_of_walk.count() > 0
    assert tree.to_arrow().equals(depth_of_walk.to_arrow())
    assert tree.aggregate("sum(a.x)") == depth_of_walk.aggregate("sum(a.x)")
    assert "terms" in tree.operator.describe()["tree_plan"] or "rows expected" in tree.operator.describe()["tree_plan"]


@pytest.mark.parametrize("text", [*ASKED, "OR(AND(A a, B b), SEQ(B b, A a), SEQ(C c, D d))"])
def test_ranks_ranges_and_samples_are_those_of_the_list(text: str) -> None:
    trends = detect(text)
    rows = trends.to_arrow().to_pylist()
    assert len(rows) == trends.count()
    if "SLIDE" not in text:
        for rank in {0, 1, len(rows) // 2, len(rows) - 1}:
            assert trends.trend(rank).to_pylist() == [rows[rank]]
    sizes = Sizes(match_rows=7)  # ranges that begin later are found by counts
    assert detect(text, sizes=sizes).to_arrow().to_pylist() == rows
    some = detect(f"{text} LIMIT 5 OFFSET {len(rows) // 2}", sizes=sizes).to_arrow().to_pylist()
    assert some == rows[len(rows) // 2 :][:5]


def test_what_may_leave_64_bits_falls_to_the_patterns() -> None:
    table = TABLE.set_column(3, "x", pa.array([2**62] * N))
    trends = detect("SEQ(A a, B b, C c) WHERE a.x + b.x < c.x WITHIN 1", table)
    assert isinstance(trends.operator, PatternOperator)


def test_ways_to_bind_the_same_events_are_bounded() -> None:
    with pytest.raises(trellis.TrellisError, match="can be bound to the variables in more than 8 ways"):
        detect("AND(A a, A b, A c)", sizes=Sizes(join_ways=8)).to_arrow()
