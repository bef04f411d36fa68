"""The factor of 100 of condensed composition searched for: Query 3 on few prices, long windows, unreduced input."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa

import trellis
from benchmarks import Peer, Row, Table, Timing, median_of
from benchmarks.sequences import CROSSING
from trellis.operators.sequences import tree as trees
from trellis.operators.sequences.candidates import SequenceCandidates
from trellis.operators.sequences.structure import SequenceStructure

NAME = "600210"


def ticks(symbols: int, seconds: int, distinct: int) -> pa.Table:
    """Return a price of every symbol each five seconds, one of so many prices for all; half of them stay."""
    rng = np.random.default_rng(7)
    number = seconds // 5
    steps = np.where(rng.random((number, symbols)) < 0.5, 0, rng.integers(-2, 3, (number, symbols)))
    levels = np.abs(rng.integers(0, distinct, symbols) + np.cumsum(steps, axis=0)) % (2 * distinct)
    levels = np.minimum(levels, 2 * distinct - 1 - levels)
    codes = np.array([NAME, *(str(601_000 + i) for i in range(1, symbols))])
    return pa.table(
        {
            "ts": np.repeat(np.arange(number) * 5, symbols),
            "code": np.tile(codes, number),
            "price": (10 + levels / 20).ravel(),
        }
    )


def run(quick: bool) -> list[Table]:
    """Count Query 3 by trees with and without condensing, equalities tested pair by pair and found by key."""
    rows = []
    settings = [(40, 10, 30)] if quick else [*product((300,), (3, 10, 100), (30, 90)), (800, 10, 90)]
    for symbols, distinct, window in settings:
        table = ticks(symbols, 60 if quick else 200, distinct)
        given = trellis.query(CROSSING.format(window=window)).detect(table, time="ts")
        for hashed in (False, True):
            what = f"{symbols} stocks, {distinct} prices, window of {window} s"
            rows.append(_row(given.operator, given.count(), what, hashed, quick))
    return [
        Table(
            "Query 3 of the condensed composition paper, unreduced: condensing beside not condensing", rows,
            ["Evaluations are those of the paper's predicates; the degree is groups for each row, of the node with "
             "the fewest. Evaluations fall by the paper's factor of 100 and more. Times do not: an evaluation is a "
             "comparison of two numbers here, some 1 ns, and to put a row into its group takes some 60, so it pays "
             "only where pairs are tested one by one and are very many. A key leaves few pairs to test."],
        )
    ]  # fmt: skip


def _row(operator: Any, number: int, what: str, hashed: bool, quick: bool) -> Row:
    plain, plan = _counted(operator, trees.PLAIN, hashed, number, quick)
    condensed, other = _counted(operator, trees.BY_CLASS, hashed, number, quick)
    tests, fewer = (sum(node.tests for node in one.root.walk()) for one in (plan, other))
    degree = min((node.degree for node in other.root.walk() if node.grouped), default=1.0)
    how = "equalities by key" if hashed else "pair by pair"
    found = (
        f"{what}, {how}: {number:,} matches; evaluations {tests:,} and {fewer:,} ({tests / max(1, fewer):,.1f} times), "
        f"degree {degree:.2g}"
    )
    return Row(found, condensed, peers=[Peer("not condensed", plain)])


def _counted(operator: Any, way: str, hashed: bool, number: int, quick: bool) -> tuple[Timing, Any]:
    plans: list[Any] = []

    def work() -> None:
        leaves = SequenceCandidates.find(operator.plan, operator.plan.sequence, operator.events, False)
        plans.append(SequenceStructure(operator.plan, operator.events, leaves=leaves).tree(way, hashed=hashed))
        assert sum(plans[-1].counts()) == number

    return median_of(f"tree, {way}", work, quick, runs=1), plans[-1]
