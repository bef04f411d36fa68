"""Every operator keeps the contract: for each query, all that take it answer alike, and each agrees with itself.

The operators come from the registry of the plan: whichever of them goes by some algorithm and takes the query, and
those that would take its place. A new operator in the registry is tested here without a test of its own.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.compare import OVERFLOW, detect, expected
from tests.profiles import examples
from tests.strategies import Case, case, chain_case, fixed_case, general_case, sequence_case
from trellis.errors import OverflowInCondition, UsageError
from trellis.language import syntax as s
from trellis.language.schema import Kind
from trellis.make import make_operator, operator_class
from trellis.operators.aggregates import value_of
from trellis.operators.batch import PathBatch
from trellis.operators.contract import BestRequest, ListRequest, NotComparable, QueryOperator
from trellis.operators.ranks import Ranks
from trellis.plan.choice import OPERATORS, with_algorithm
from trellis.plan.papers import NAMED as PAPERS
from trellis.plan.plan import Plan
from trellis.plan.spec import NAMED
from trellis.plan.variants import aggregate_plan, top_plan
from trellis.results.arrange import arrange
from trellis.results.rows import RowMaker

ALGORITHMS = list(dict.fromkeys(name for entry in OPERATORS for name in entry.algorithms))
MANY = 10**9  # results that may be listed
Row = tuple[int, int, tuple[int, ...], tuple[int, ...]]  # group, rank, events, variables


# --- Which operators there are ----------------------------------------------------------------------------------


def ways_of(plan: Plan) -> dict[tuple[str, str], Plan]:
    """Return the plan of every operator that takes a query, by its name and method."""
    found: dict[tuple[str, str], Plan] = {}
    for algorithm in ALGORITHMS:
        with suppress(UsageError):
            for spec in with_algorithm(plan, algorithm, plan.settings).operator.ways():
                found.setdefault((spec.name, spec.method), replace(plan, operator=spec))
    return found


def operators_of(drawn: Case) -> Iterator[QueryOperator]:
    """Yield the operators that take a query and its events, the default one first."""
    trends = detect(drawn)
    if trends.plan.bound.after_match is not None:  # over whichever operator finds the results that it keeps
        yield trends.operator
        return
    for (name, _), plan in ways_of(trends.plan).items():
        with suppress(NotComparable):
            yield operator_class(name)(plan, trends.operator.events, 2)


def label(operator: QueryOperator) -> str:
    return f"{operator.plan.operator.name} by {operator.plan.operator.method}"


# --- What they answer -------------------------------------------------------------------------------------------


def rows_of(batches: list[PathBatch]) -> list[Row]:
    """Return results as plain values."""
    found = []
    for batch in batches:
        assert len(batch), "no batch is empty"
        variables = [0] * len(batch.positions) if batch.variables is None else batch.variables.tolist()
        events, groups, ranks = batch.positions.tolist(), batch.groups.tolist(), batch.ranks.tolist()
        for group, rank, (begin, end) in zip(groups, ranks, pairwise(batch.offsets.tolist()), strict=True):
            found.append((group, rank, tuple(events[begin:end]), tuple(variables[begin:end])))
    return found


def expanded(batches: list[PathBatch]) -> list[Row]:
    """Return results in compact form, by the definition: each begins with what it shares with the one before it."""
    found: list[Row] = []
    for batch in batches:
        assert batch.shared is not None
        assert batch.shared[0] == 0
        for row, shared in zip(rows_of([batch]), batch.shared.tolist(), strict=True):
            before = found[-1][2][:shared] if shared else ()
            found.append((row[0], row[1], (*before, *row[2]), ()))
    return found


def same(batch: PathBatch) -> PathBatch:
    return batch


def listed(operator: QueryOperator, ranges: list[tuple[int, int, int]], **how: Any) -> list[PathBatch]:
    return list(operator.list(ListRequest(ranges, same, **how)))


def whole(operator: QueryOperator) -> list[tuple[int, int, int]]:
    return [(group, 0, count) for group, count in enumerate(operator.counts)]


def in_order(operator: QueryOperator, rows: list[Row]) -> list[Row]:
    """Return rows as they came; those of named algorithms, which have an order of their own, by group and rank."""
    return sorted(rows) if operator.plan.operator.name == NAMED else rows


# --- The contract -----------------------------------------------------------------------------------------------


def check_listing(operator: QueryOperator, wanted: list[Row], data: st.DataObject) -> None:
    """`list` in ranges, on threads, with positions only and compact is `list` as a whole."""
    counts = operator.counts
    assert in_order(operator, rows_of(listed(operator, whole(operator)))) == wanted
    assert in_order(operator, rows_of(listed(operator, whole(operator), threads=3))) == wanted
    assert in_order(operator, rows_of(listed(operator, whole(operator), positions_only=True))) == wanted
    ranges = []
    for group, count in enumerate(counts):
        begin = data.draw(st.integers(0, count))
        ranges.append((group, begin, data.draw(st.integers(begin, count))))
    some = [row for row in wanted if ranges[row[0]][1] <= row[1] < ranges[row[0]][2]]
    assert in_order(operator, rows_of(listed(operator, ranges))) == some
    try:
        compact = listed(operator, ranges, compact=True)
    except UsageError:
        assert operator.plan.operator.name == NAMED
    else:
        assert expanded(compact) == [(*row[:3], ()) for row in some]


def check_ranks(operator: QueryOperator, wanted: list[Row]) -> None:
    """`at` and `at_each` give what `list` gives at these ranks."""
    every_other = {
        group: [row for row in wanted if row[0] == group][::2] for group, count in enumerate(operator.counts) if count
    }
    for group, rows in every_other.items():
        assert rows_of([operator.at(group, [row[1] for row in rows])]) == rows
    chosen = {group: Ranks.of([row[1] for row in rows]) for group, rows in every_other.items()}
    assert rows_of(list(operator.at_each(chosen))) == [row for rows in every_other.values() for row in rows]


def check_best(operator: QueryOperator, per_group: bool) -> None:
    """`best` has what comes first when all are sorted."""
    plan = top_plan(operator.plan, 2, "length")
    plan = replace(plan, bound=replace(plan.bound, per_window=per_group))
    other = operator.variant(replace(plan, operator=operator.plan.operator), operator.events)
    maker = RowMaker(plan, operator.events)
    best = other.best(BestRequest(plan.bound, maker.batch, MANY, per_group))
    every = [maker.batch(PathBatch.concat([one])) for one in listed(operator, whole(operator))]
    if operator.plan.operator.name != NAMED:  # among equals the order in which results come counts
        assert _table(arrange(plan.bound, best)) == _table(arrange(plan.bound, iter(every)))


def _table(batches: Any) -> list[str]:
    return [repr(row) for batch in batches for row in batch.to_pylist()]  # as texts: NaN equals NaN there


def check_aggregates(operator: QueryOperator, wanted: list[Row]) -> None:
    """`aggregate` is what the list gives."""
    bound = operator.plan.bound
    names = [v.name for v in bound.variables if not v.absent]
    assert bound.schema is not None
    whole_numbers = [n for n, t in bound.schema.tables[0].columns.items() if t.kind is Kind.INTEGER][:1]
    items = ["count(*)", "min(length)", "max(length)", "avg(length)"]
    items += [f"{f}(`{v}`.`{c}`)" for v in names for c in whole_numbers for f in ("sum", "min", "max")]
    plan = aggregate_plan(operator.plan, tuple(items))
    plan = replace(plan, operator=operator.plan.operator)
    missing = [c for c in whole_numbers if c not in operator.events.columns]
    if missing:
        return  # the events were read without these columns
    found = operator.variant(plan, operator.events).aggregate()
    if found is None:
        assert plan.bound.after_match is not None, "only what AFTER MATCH keeps has to be listed"
        return
    values = {c: operator.events.columns[c].to_pylist() for c in whole_numbers}
    for group, numbers in enumerate(found):
        rows = [row for row in wanted if row[0] == group]
        assert numbers.count == len(rows)
        lengths = [len(row[2]) for row in rows]
        mean = float(Fraction(sum(lengths), len(lengths))) if rows else None
        expect: list[Any] = [len(rows), min(lengths, default=None), max(lengths, default=None), mean]
        for code in range(len(names)):
            for column in whole_numbers:
                own = [values[column][e] for row in rows for e, v in zip(row[2], row[3], strict=True) if v == code]
                known = [value for value in own if value is not None]
                expect += [sum(known) if known else None, min(known, default=None), max(known, default=None)]
        shown = [value_of(n.output, s) for n, s in zip(plan.bound.aggregates, numbers.states, strict=True)]
        assert shown == expect


def check_copies(operator: QueryOperator, wanted: list[Row]) -> None:
    """A pickle answers alike; a variant is of the same kind."""
    fresh = make_operator(operator.plan, operator.events, 1)
    assert type(fresh) is type(operator) or operator.plan.operator.otherwise is not None
    for one in (fresh, operator):
        again = pickle.loads(pickle.dumps(one))
        assert again.counts == operator.counts
        assert in_order(again, rows_of(listed(again, whole(again)))) == wanted
        one.prepare()
    assert type(operator.variant(operator.plan, operator.events)) is type(operator)


def check_words(operator: QueryOperator) -> None:
    said = operator.describe()
    assert said
    assert all(isinstance(name, str) and isinstance(text, str) for name, text in said.items())


def refuses(operator: QueryOperator) -> bool:
    """Return whether a named algorithm says that it cannot list these events, as `anchor` does without an index."""
    try:
        listed(operator, whole(operator))
    except UsageError:
        assert operator.plan.operator.name == NAMED
        return True
    return False


def check(drawn: Case, data: st.DataObject) -> None:
    """Hold all operators that take a query against the oracle, the first one, and themselves."""
    answer = expected(drawn)
    if isinstance(answer, str):
        assert answer == OVERFLOW
        return
    numbers = [number for _, _, number in answer.counts]
    wanted: list[Row] | None = None
    per_group = data.draw(st.booleans())
    for operator in operators_of(drawn):
        assert [count for count in operator.counts if count] == numbers, label(operator)
        if wanted is None:
            wanted = rows_of(listed(operator, whole(operator)))
            assert wanted == sorted(wanted, key=lambda row: row[:2]), "in the order of groups and ranks"
            assert [row[1] for row in wanted] == [rank for _, _, count in whole(operator) for rank in range(count)]
        if refuses(operator):
            continue
        check_listing(operator, wanted, data)
        check_ranks(operator, wanted)
        if operator.plan.bound.after_match is None:  # which `top` is not for
            check_best(operator, per_group)
        check_aggregates(operator, wanted)
        check_copies(operator, wanted)
        check_words(operator)


@st.composite
def skipping_case(draw: Any) -> Case:
    """Draw a query with AFTER MATCH."""
    drawn = draw(st.one_of(case(most=7, clauses=False), sequence_case(most=7), fixed_case(most=6)))
    after = s.AfterMatch(draw(st.sampled_from((s.Skip.PAST_LAST, s.Skip.TO_NEXT))), None)
    of_results = tuple(item for item in drawn.query.aggregates if not isinstance(item.expression, s.OfEvent))
    return replace(drawn, query=replace(drawn.query, after_match=after, per_event=None, aggregates=of_results))


@pytest.mark.parametrize(
    ("cases", "number"),
    [
        (case(most=8, clauses=False), 40),
        (chain_case(most=7), 40),
        (sequence_case(most=7), 40),
        (general_case(most=6), 40),
        (fixed_case(most=6), 60),
        (skipping_case(), 40),
    ],
    ids=["trends", "chains", "sequences", "patterns", "joins", "after match"],
)
def test_every_operator_keeps_the_contract(cases: Any, number: int) -> None:
    @examples(number)
    @given(drawn=cases, data=st.data())
    def hold(drawn: Case, data: st.DataObject) -> None:
        with suppress(OverflowInCondition):
            check(drawn, data)

    hold()


def test_the_registry_leads_to_all_operators() -> None:
    """The random cases reach every operator: one query of each kind does."""
    import trellis

    texts = [
        "PATTERN E+ e[] WHERE e[i].x > e[i-1].x REPORT maximal",
        "PATTERN SEQ(A a, B b) WHERE a.x < b.x",
        "PATTERN AND(A a, B b)",
    ]
    found = {way for text in texts for way in ways_of(trellis.query(text).plan(None, None, None))}
    assert {name for name, _ in found} == {"trends", "named", "sequences", "tree", "joins", "join tree", "patterns"}
    assert {method for name, method in found if name == NAMED} == {*PAPERS}
