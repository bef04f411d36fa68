"""Every example of the pages on meaning, patterns and sequences gives what the page says, by oracle and engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import trellis
from tests import oracle
from tests.docs.examples import Example, Row, examples, shown
from trellis.errors import TrellisError
from trellis.events.tables import as_tables, schema_of
from trellis.language.bound import ConditionKind
from trellis.language.schema import time_columns

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "semantics.md"
EXAMPLES = [
    *examples(PAGE),
    *examples(DOCS / "patterns.md"),
    *examples(DOCS / "sequences.md"),
    *examples(DOCS / "algorithms.md"),
]
RESULTS = [example for example in EXAMPLES if example.error is None]
ERRORS = [example for example in EXAMPLES if example.error is not None]
LOCAL = (ConditionKind.CONSTANT, ConditionKind.ADJACENT)


def name(example: Example) -> str:
    return f"line {example.line}, {example.section}"


def arrow(example: Example) -> Any:
    tables = example.tables
    if isinstance(tables, list):
        return pa.Table.from_pylist(tables)
    return {type_: pa.Table.from_pylist(rows) for type_, rows in tables.items()}


def params(example: Example) -> dict[str, Any]:
    return {key: value for key, value in example.given.items() if key != "max_trends"}


def bounds(example: Example) -> dict[str, Any]:
    return {key: value for key, value in example.given.items() if key == "max_trends"}


def plan(example: Example) -> Any:
    tables = as_tables(arrow(example))
    roles = {"type": None, "event_id": None, **example.options}
    time, tie_breakers = time_columns(roles.pop("time"))
    schema = schema_of(tables, str(time), tie_breakers=tie_breakers, **roles)
    return trellis.query(example.query).plan(schema, params(example))


def compare(example: Example, columns: list[str], rows: list[Row]) -> None:
    """Compare the rows of an engine with what the page shows of them."""
    names, wanted = example.wanted
    assert [[shown(row[column]) for column in names] for row in rows] == wanted
    if not wanted:
        return
    assert [column for column in columns if column in names] == names, "the columns stand in another order"
    assert not example.all_columns or columns == names


def test_there_are_enough_examples() -> None:
    assert len(EXAMPLES) >= 25


@pytest.mark.parametrize("example", EXAMPLES, ids=name)
def test_every_example_has_events_and_a_result(example: Example) -> None:
    assert example.events.strip(), "no events above the query"
    assert (example.result is None) != (example.error is None), "a query needs one block `result` or `error` below it"
    assert (example.result or example.error or "").strip(), "the block is empty"


@pytest.mark.parametrize("example", RESULTS, ids=name)
def test_oracle(example: Example) -> None:
    tree = trellis.query(example.query).syntax
    answer = oracle.run(tree, example.tables, params=params(example), **example.options)
    rows = answer.rows if answer.aggregates is None else answer.aggregates
    columns = [column.name for column in plan(example).bound.columns]
    assert all(list(row) == columns for row in rows)
    compare(example, columns, rows)


def detected(example: Example) -> Any:
    query = trellis.query(example.query)
    return query.detect(arrow(example), **example.options, params=params(example), **bounds(example))


@pytest.mark.parametrize("example", RESULTS, ids=name)
def test_local_engine(example: Example) -> None:
    table = detected(example).to_arrow()
    compare(example, table.column_names, table.to_pylist())


@pytest.mark.parametrize("example", ERRORS, ids=name)
def test_errors(example: Example) -> None:
    with pytest.raises(TrellisError) as raised:
        detected(example).to_arrow()
    assert str(raised.value).strip() == (example.error or "").strip()


def test_an_overflow_is_one_for_the_oracle_too() -> None:
    example = next(example for example in ERRORS if "64 bits" in (example.error or ""))
    with pytest.raises(oracle.OracleOverflow):
        oracle.run(trellis.query(example.query).syntax, example.tables, **example.options)
