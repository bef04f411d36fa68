"""The strategies give queries that can be written, read back, and evaluated."""

from __future__ import annotations

from hypothesis import given

from tests.oracle import OracleOverflow, run
from tests.profiles import examples
from tests.strategies import Case, arrow_table, case, general_case
from trellis.language.parser import parse
from trellis.language.printer import to_query_text


@examples(150)
@given(case(across=True))
def test_cases_can_be_written_and_evaluated(drawn: Case) -> None:
    check(drawn)


@examples(150)
@given(general_case())
def test_general_cases_can_be_written_and_evaluated(drawn: Case) -> None:
    check(drawn)


def check(drawn: Case) -> None:
    assert parse(to_query_text(drawn.query)) == drawn.query
    assert arrow_table(drawn.rows, drawn.schema).num_rows == len(drawn.rows)
    try:
        answer = run(drawn.query, drawn.rows, schema=drawn.schema, **drawn.options)
    except OracleOverflow:
        return
    assert answer.count == sum(count for _, _, count in answer.counts)
