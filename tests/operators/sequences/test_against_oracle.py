"""Fixed sequences equal the oracle: some hundred random queries in every run, more in the slow one."""

from __future__ import annotations

from bisect import bisect_left
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

import trellis
from tests.compare import BySequences, assert_same, detect
from tests.profiles import examples
from tests.strategies import Case, sequence_case
from trellis.errors import OverflowInCondition
from trellis.operators.contract import ListRequest
from trellis.operators.sequences.operator import SequenceOperator
from trellis.operators.sequences.walk import Walker
from trellis.plan.sizes import Sizes

AS_MANY = Sizes(walked_choices=-1, encoded_events=-1)  # few events are treated as many are


@examples(500)
@given(drawn=sequence_case(), sizes=st.sampled_from([Sizes(), AS_MANY]))
def test_sequences(drawn: Case, sizes: Sizes) -> None:
    assert_same(drawn, make=BySequences, sizes=sizes)


@examples(150)
@given(drawn=sequence_case(most=12))
def test_results_found_by_rank_are_those_listed(drawn: Case) -> None:
    try:
        operator = detect(drawn, make=BySequences).operator
        counts = operator.counts
    except OverflowInCondition:
        return
    for group, count in enumerate(counts):
        listed = list(operator.list(ListRequest([(group, 0, count)], _same)))
        assert _rows([operator.at(group, range(count))]) == _rows(listed)


@examples(100)
@given(drawn=sequence_case(most=12))
def test_batches_of_any_size_on_any_threads_are_the_same(drawn: Case) -> None:
    try:
        operator = detect(drawn, make=BySequences).operator
        ranges = [(group, 0, count) for group, count in enumerate(operator.counts)]
    except OverflowInCondition:
        return
    if not isinstance(operator, SequenceOperator):
        return
    wanted = _rows(list(operator.list(ListRequest(ranges, _same))))
    operator = detect(drawn, make=BySequences, sizes=Sizes(match_rows=2)).operator
    assert _rows(list(operator.list(ListRequest(ranges, _same)))) == wanted
    assert _rows(list(operator.list(ListRequest(ranges, _same, threads=3)))) == wanted
    counted = Walker(operator.leaves, operator.structure.tasks, threads=3, worth=0).count(0.0, 0.0)
    assert counted.astype(int).tolist() == operator.structure.task_counts


@examples(100)
@given(drawn=sequence_case(most=12, nots=False, star=True))
def test_a_sweep_counts_what_the_walk_does(drawn: Case) -> None:
    try:
        operator = detect(drawn, make=BySequences).operator
    except OverflowInCondition:
        return
    if not isinstance(operator, SequenceOperator):
        return
    walker = Walker(operator.leaves, operator.structure.tasks)
    if walker.star is None:
        return
    depth_of_walk = walker.count(0.0, 0.0)
    walker.sweeps = True
    assert walker.count(0.0, 0.0).tolist() == depth_of_walk.tolist()
    assert (walker.count(np.uint64(0), np.uint64(7)) == depth_of_walk.astype(np.uint64) % 7).all()


def test_a_long_window_is_counted_by_a_sweep() -> None:
    n = 50_000
    table = pa.table({"ts": np.arange(n), "x": np.random.default_rng(1).permutation(n)})
    trends = trellis.query("PATTERN a;b;c WHERE a.x > b.x AND a.x > c.x").detect(table, time="ts")
    assert trends.operator.structure.walker.sweeps
    lower = [0] * n  # of each event, how many later ones are lower
    held: list[int] = []
    for i in range(n - 1, -1, -1):
        value = table["x"][i].as_py()
        lower[i] = bisect_left(held, value)
        held.insert(lower[i], value)
    assert trends.count() == sum(k * (k - 1) // 2 for k in lower)


@pytest.mark.slow
@settings(max_examples=1000)
@given(drawn=sequence_case(most=10))
def test_many_more(drawn: Case) -> None:
    assert_same(drawn, make=BySequences)


@examples(6)
@given(drawn=sequence_case())
def test_on_spark(spark: SparkSession, drawn: Case) -> None:
    assert_same(drawn, make=BySequences, engine="spark", spark=spark)


@pytest.mark.slow
@settings(max_examples=60)
@given(drawn=sequence_case())
def test_more_on_spark(spark: SparkSession, drawn: Case) -> None:
    assert_same(drawn, make=BySequences, engine="spark", spark=spark)


def _same(some: Any) -> Any:
    return some


def _rows(lots: list[Any]) -> list[Any]:
    """Return the events and rank of each result."""
    found: list[Any] = []
    for some in lots:
        begins = [0, *some.ends[:-1]] if len(some) else []
        for begin, end, rank in zip(begins, some.ends, some.ranks, strict=True):
            found.append((some.positions[begin:end].tolist(), int(rank)))
    return found
