"""Tree plans, condensed or not, find what the walk finds; and how many evaluations they make."""

from __future__ import annotations

import itertools
from math import comb
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given

import trellis
from tests.compare import BySequences, assert_same, detect
from tests.profiles import examples
from tests.strategies import Case, sequence_case
from trellis.errors import OverflowInCondition, TrellisError, UsageError
from trellis.operators.contract import ListRequest
from trellis.operators.sequences import tree as trees
from trellis.operators.sequences.operator import SequenceOperator
from trellis.operators.sequences.structure import SequenceStructure
from trellis.operators.trees.sequences import TreeOperator

QUERY_1 = """
    PATTERN T1;T2;T3
    WHERE T1.name = T3.name AND T2.name = 'Google' AND T1.price >= T2.price + 2.0 AND T3.price < T2.price
    WITHIN 500 RETURN T1, T2, T3
"""


@examples(60)
@given(drawn=sequence_case(most=12, nots=False))
def test_every_tree_finds_what_the_walk_finds(drawn: Case) -> None:
    try:
        operator = detect(drawn, make=BySequences).operator
        counts = operator.counts
    except OverflowInCondition:
        return
    if not isinstance(operator, SequenceOperator):
        return
    request = ListRequest([(g, 0, c) for g, c in enumerate(counts)], _same)
    wanted = [some.table.T.tolist() for some in operator.list(request)]
    rows = [row for some in wanted for row in some]
    for way, shape, hashed in itertools.product(trees.WAYS, ("best", "left", "right"), (True, False)):
        tree = operator.structure.tree(way, shape, hashed)
        assert sum(tree.counts()) == len(rows), (way, shape, hashed)
        assert [row for table in tree.matches() for row in table.T.tolist()] == rows, (way, shape, hashed)


@pytest.mark.parametrize("algorithm", ["walk", "tree", "condensed"])
def test_the_algorithms_by_name_equal_the_oracle(algorithm: str) -> None:
    @examples(100)
    @given(drawn=sequence_case(nots=algorithm == "walk"))
    def compare(drawn: Case) -> None:
        assume(drawn.query.per_event is None and not drawn.query.limit_per)  # which no algorithm by name takes
        assert_same(drawn, algorithm=algorithm)

    compare()


def test_conditions_are_evaluated_once_for_each_pair_of_groups() -> None:
    events = pa.table(
        {
            "time": [1, 3, 5, 7, 8, 9],
            "type": ["A", "A", "B", "B", "C", "C"],
            "name": ["IBM", "IBM", "Google", "Google", "IBM", "Sun"],
            "price": [6.0, 6.0, 4.0, 4.0, 3.0, 3.0],
        }
    )
    operator = _operator(QUERY_1.replace("T1;T2;T3", "SEQ(A T1, B T2, C T3)"), events, type="type")
    structure = SequenceStructure(operator.plan, operator.events, leaves=_unreduced(operator))
    tests, found = {}, {}
    for way in (trees.PLAIN, trees.BY_VALUE):
        tree = structure.tree(way, "left", hashed=False)
        (found[way],) = tree.matches()
        tests[way] = tree.root.tests
    assert tests == {trees.PLAIN: 8, trees.BY_VALUE: 2}
    assert (
        found[trees.PLAIN].T.tolist()
        == found[trees.BY_VALUE].T.tolist()
        == [[0, 2, 4], [0, 3, 4], [1, 2, 4], [1, 3, 4]]
    )


def test_terms_are_those_that_nodes_above_ask() -> None:
    tree = _operator(QUERY_1, _prices(60)).structure.tree(shape="left")
    terms = {(node.first, node.last): set(node.terms) for node in tree.root.walk()}
    assert terms == {
        (0, 0): {"T1.name", "T1.price"},
        (1, 1): {"T2.price"},
        (2, 2): {"T3.name", "T3.price"},
        (0, 1): {"T1.name", "T2.price"},
        (0, 2): set(),
    }


def test_a_count_beyond_what_floats_hold_is_exact_and_too_much_for_a_tree() -> None:
    events = pa.table({"time": range(300), "x": range(300)})
    text = "PATTERN " + ";".join(f"v{i}" for i in range(9)) + " WHERE v0.x < v2.x"
    assert trellis.query(text).detect(events, time="time").count() == comb(300, 9) > 2**53
    with pytest.raises(TrellisError, match=r"a node of the tree plan has [\d,]* partial matches"):
        trellis.query(text).detect(events, time="time", algorithm="condensed").count()


def test_what_is_no_sequence_is_refused() -> None:
    events = pa.table({"time": [1], "x": [1]})
    with pytest.raises(UsageError, match="the algorithm `tree` is for fixed sequences"):
        trellis.query("PATTERN E+ e[]").detect(events, algorithm="tree")


def test_a_tree_takes_no_not() -> None:
    events = pa.table({"time": [1, 2], "type": ["A", "B"], "x": [1, 2]})
    with pytest.raises(UsageError, match="the algorithm `condensed` takes no NOT"):
        trellis.query("PATTERN SEQ(A a, NOT(C c), B b)").detect(events, type="type", algorithm="condensed")


def test_the_operator_is_the_one_named() -> None:
    assert isinstance(_operator(QUERY_1, _prices(10), algorithm="condensed"), TreeOperator)
    assert type(_operator(QUERY_1, _prices(10))) is SequenceOperator


@pytest.mark.parametrize("algorithm", ["tree", "condensed"])
def test_other_output_of_a_tree_is_found_by_the_tree(algorithm: str, monkeypatch: pytest.MonkeyPatch) -> None:
    trends, depth_of_walk = (
        trellis.query(QUERY_1).detect(_prices(40), time="time", algorithm=name) for name in (algorithm, "walk")
    )
    assert depth_of_walk.count() > 3
    wanted = depth_of_walk.explode(), depth_of_walk.top(3, by="T1.price")
    monkeypatch.setattr(SequenceOperator, "list", None)  # the walk lists nothing
    assert (trends.explode(), trends.top(3, by="T1.price")) == wanted


def _same(some: Any) -> Any:
    return some


def _prices(n: int) -> pa.Table:
    rng = np.random.default_rng(3)
    names = np.array(["Google", "IBM", "Sun"])[rng.integers(0, 3, n)]
    return pa.table({"time": np.arange(n), "name": names, "price": rng.integers(1, 9, n).astype(float)})


def _operator(text: str, events: pa.Table, **options: Any) -> Any:
    return trellis.query(text).detect(events, time="time", **options).operator


def _unreduced(operator: Any) -> Any:
    from trellis.operators.sequences.candidates import SequenceCandidates

    return SequenceCandidates.find(operator.plan, operator.plan.sequence, operator.events, reduce=False)
