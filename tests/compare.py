"""Comparing an engine's result with the oracle's, row by row and value by value."""

from __future__ import annotations

import datetime as dt
import math
import warnings
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any, ClassVar

import pyarrow as pa

from tests import oracle
from tests.strategies import Case, arrow_table
from trellis.api.query import Query
from trellis.errors import OverflowInCondition
from trellis.language.printer import to_query_text
from trellis.plan.choice import AUTO, with_algorithm
from trellis.plan.plan import Plan
from trellis.plan.settings import AlgorithmSettings
from trellis.plan.sizes import Sizes

OVERFLOW = "overflow"
MANY = Sizes(small_pairs=-1, counted_pairs=-1, few_rows=0)  # as many events are counted and listed


class BySequences(Query):
    """A query whose plan knows of no index for each step: the operator of sequences takes what it can."""

    unknown: ClassVar[dict[str, None]] = {"positions": None}

    def plan(self, *given: Any) -> Plan:
        """Return the plan with the operator that is then the first to take the query."""
        return with_algorithm(replace(super().plan(*given), **self.unknown), AUTO, AlgorithmSettings())


class ByJoins(BySequences):
    """A query whose plan does not know a fixed sequence either: the operator of joins takes what it can."""

    unknown: ClassVar[dict[str, None]] = {"positions": None, "sequence": None}


def plain(value: Any) -> Any:
    """Make values comparable with ==: NaN is a word, dates are datetimes, decimals and ints are what they equal."""
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    if isinstance(value, dt.datetime):
        return value.replace(tzinfo=dt.UTC) if value.tzinfo is None else value.astimezone(dt.UTC)
    if isinstance(value, dt.date):
        return dt.datetime(value.year, value.month, value.day, tzinfo=dt.UTC)
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else value.normalize()
    return value


def plain_rows(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Make rows comparable."""
    return [{name: plain(value) for name, value in row.items()} for row in rows]


def assert_same_rows(one: pa.Table, other: pa.Table) -> None:
    """Hold that two tables have the same rows; values are looked at only where Arrow finds them different: NaN is."""
    if not one.equals(other):
        assert plain_rows(one.to_pylist()) == plain_rows(other.to_pylist())


def expected(case: Case) -> oracle.Answer | str:
    """Ask the oracle."""
    try:
        return oracle.run(case.query, case.rows, schema=case.schema, **case.options)
    except oracle.OracleOverflow:
        return OVERFLOW


def detect(case: Case, data: Any = None, *, make: type[Query] = Query, **options: Any) -> Any:
    """Ask an engine, through the text of the query."""
    query = make(to_query_text(case.query))
    table = arrow_table(case.rows, case.schema) if data is None else data
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "no event has the type")  # drawn types often do not occur
        return query.detect(table, **{**case.options, **options})


def assert_same(case: Case, data: Any = None, **options: Any) -> None:
    """Compare rows, ranks, counts and aggregates of an engine with the oracle's."""
    answer = expected(case)
    if isinstance(answer, str):
        try:
            trends = detect(case, data, **options)
            trends.count()
            rows_of(trends)
        except OverflowInCondition:
            return
        raise AssertionError("the oracle overflows, the engine does not")
    trends = detect(case, data, **options)
    assert trends.count() == answer.count
    counts = trends.counts().to_arrow()
    assert [int(text) for text in counts["count_text"].to_pylist()] == [number for _, _, number in answer.counts]
    wanted = answer.rows if answer.aggregates is None else answer.aggregates
    found = rows_of(trends)
    if found:
        assert list(found[0]) == [c.name for c in trends.plan.bound.columns]
    assert plain_rows(found) == plain_rows(wanted)
    if not {"sizes", "engine", "make"} & options.keys():  # few events are counted and listed in ways of their own
        trends = detect(case, data, **options, sizes=MANY)
        assert trends.count() == answer.count
        assert plain_rows(rows_of(trends)) == plain_rows(wanted)


def rows_of(trends: Any) -> list[dict[str, Any]]:
    """List all rows of a result."""
    table: pa.Table = trends.to_arrow()
    return table.to_pylist()
