"""The explanations of the papers' queries, as text and as data, compared with golden files character by character."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import trellis
from trellis.language.schema import DOUBLE, INTEGER, STRING, TIMESTAMP, Kind, Schema, Table, Type, decimal
from trellis.plan.explain import explain_data, explain_text

ROOT = Path(__file__).parents[2]
GOLDEN = Path(__file__).parent / "golden"
WRITE = "TRELLIS_WRITE_GOLDEN"
AGAIN = f"If the change is meant, write the files again with `{WRITE}=1 .venv/bin/python -m pytest tests/plan`."


@dataclass(frozen=True)
class Case:
    """A query with what it is bound to; its golden files bear its name."""

    name: str
    text: str
    schema: Schema | None = None
    params: Mapping[str, Any] = field(default_factory=dict)
    report_mode: str | None = None

    def data(self) -> dict[str, Any]:
        return explain_data(trellis.query(self.text).plan(self.schema, self.params, self.report_mode))


def example(name: str) -> str:
    return (ROOT / "examples" / f"{name}.tq").read_text(encoding="utf-8")


def of(columns: Mapping[str, Type], **roles: str) -> Schema:
    """The schema of one table; its first column is the time."""
    return Schema((Table(None, columns),), next(iter(columns)), **roles)


PARAMETERS = {
    "abi_q2_rising_price": {"ratio": 1.05},
    "condensed_q2_n_classes": {"windowsize": "90 s"},
    "condensed_q3_crossing": {"windowsize": 90},
}
NAMES = sorted(path.stem for path in (ROOT / "examples").glob("*.tq"))
ALONE = [Case(name, example(name), params=PARAMETERS.get(name, {})) for name in NAMES]

EVERY_CLAUSE = """
PATTERN Stock+ s[]
WHERE   [id, sector] AND s.volume > least AND s[i].price > s[i-1].price AND s[i].time - s[i-1].time <= 5 min
HAVING  LENGTH >= 2 AND LENGTH < 10
SELECT  skip-till-next
REPORT  maximal
WITHIN  1 hour SLIDE 1 hour
RETURN  s, s.price, LAST(s).price - FIRST(s).price AS gain
ORDER BY gain DESC, LENGTH
LIMIT   3 PER WINDOW
OFFSET  1
"""
TOTALS = """
PATTERN Stock+ s[]
WHERE   [id, sector] AND s[i].price > s[i-1].price
WITHIN  1 day SLIDE 6 hours
AGGREGATE COUNT(*), COUNT(s), SUM(s.volume) AS traded, AVG(s.price), MAX(LENGTH) GROUP BY sector
"""
TWO_TABLES = "PATTERN SEQ(Check c, NOT(Stock n), Stock+ s[]) WHERE c.amount < s.price WITHIN 1 day"

TRADES = of(
    {"ts": TIMESTAMP, "trade": STRING, "id": INTEGER, "sector": STRING, "price": DOUBLE, "volume": INTEGER},
    event_id="trade",
)
CHECKS = of({"day": Type(Kind.DATE), "check": INTEGER, "type": STRING, "src": STRING, "dest": STRING}, event_id="check")
PEOPLE = of({"time": TIMESTAMP, "n": INTEGER, "personID": INTEGER, "rate": INTEGER, "type": STRING}, event_id="n")
BY_TABLE = Schema(
    (
        Table("Check", {"time": TIMESTAMP, "n": INTEGER, "amount": DOUBLE}),
        Table("Stock", {"time": TIMESTAMP, "n": INTEGER, "price": DOUBLE}),
    ),
    "time",
    event_id="n",
)
BOUND = [
    Case(
        "bound_timestamp_without_id",
        example("abi_q2_rising_price"),
        of({"ts": TIMESTAMP, "id": INTEGER, "price": DOUBLE}),
        {"ratio": 1.05},
    ),
    Case("bound_date_with_id", example("abi_q1_check_kiting"), CHECKS),
    Case(
        "bound_numeric_time",
        example("condensed_q3_crossing"),
        of({"tick": INTEGER, "n": INTEGER, "code": STRING, "price": DOUBLE}, event_id="n"),
        {"windowsize": 90},
    ),
    Case(
        "bound_duration_parameter",
        example("condensed_q2_n_classes"),
        of({"ts": TIMESTAMP, "name": STRING, "price": decimal(2)}),
        {"windowsize": "90 s"},
    ),
    Case("bound_type_column", example("history_seq_not"), of({"time": TIMESTAMP, "type": STRING}, type="type")),
    Case("bound_two_tables", TWO_TABLES, BY_TABLE),
    Case("bound_several_variables", example("cet_q2_heart_rate"), PEOPLE, report_mode="maximal"),
    Case("bound_every_clause", EVERY_CLAUSE, TRADES, {"least": 100}),
    Case("bound_aggregates", TOTALS, TRADES),
]
CASES = ALONE + BOUND


def compare(name: str, found: str) -> None:
    """Compare with a golden file; write it instead where that is asked for."""
    path = GOLDEN / name
    if os.environ.get(WRITE):
        path.write_text(found, encoding="utf-8")
    assert path.exists(), f"{path.name} is missing. {AGAIN}"
    assert found == path.read_text(encoding="utf-8"), f"{path.name} differs. {AGAIN}"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_text(case: Case) -> None:
    compare(f"{case.name}.txt", explain_text(case.data()) + "\n")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_data(case: Case) -> None:
    compare(f"{case.name}.json", json.dumps(case.data(), indent=2, ensure_ascii=False) + "\n")


def test_every_golden_file_is_used() -> None:
    wanted = {f"{case.name}{end}" for case in CASES for end in (".txt", ".json")}
    assert {path.name for path in GOLDEN.iterdir()} == wanted, f"Remove what is not used. {AGAIN}"


def test_there_are_all_examples() -> None:
    assert len(ALONE) == 16


def test_a_query_explains_itself() -> None:
    case = next(case for case in ALONE if case.params)
    assert trellis.query(case.text).explain(case.params) == explain_text(case.data())


def test_the_data_is_plain() -> None:
    """What `--json` prints and what a notebook reads: JSON gives back the same."""
    for case in CASES:
        assert json.loads(json.dumps(case.data())) == case.data()
