"""The queries in `examples`: ours find what they are for, those of the papers run as they are printed."""

from __future__ import annotations

from pathlib import Path

import pytest

import trellis
from tests import oracle
from trellis.io.generate import generate_table

EXAMPLES = Path(__file__).parents[2] / "examples"
EVENTS = {"fraud_return": ("kite", 600), "health_rise": ("activity", 5000), "stock_break": ("stock", 3000)}


@pytest.mark.parametrize("name", EVENTS)
def test_an_example_finds_something(name: str) -> None:
    kind, number = EVENTS[name]
    query = trellis.query((EXAMPLES / f"{name}.tq").read_text())
    found = query.detect(generate_table(kind, number, 1), event_id="event_id")
    assert found.count() > 0
    assert found.to_arrow().num_rows > 0


def test_the_example_for_health_is_what_the_oracle_says() -> None:
    query = trellis.query((EXAMPLES / "health_rise.tq").read_text())
    table = generate_table("activity", 100, 1, persons=2)
    answer = oracle.run(query.syntax, table.to_pylist(), time="ts", event_id="event_id")
    found = query.detect(table, event_id="event_id")
    assert found.count() == answer.count > 0
    assert found.to_arrow().to_pylist() == answer.aggregates


@pytest.mark.parametrize(
    ("name", "kind", "options"),
    [
        ("cet_q1_check_kiting", "kite", {"type_spelling": "notcovered"}),
        ("cet_q2_heart_rate", "activity", {}),
        ("cet_q3_rising_price", "stock", {}),
    ],
)
def test_the_queries_of_the_cet_paper_run_as_printed(name: str, kind: str, options: dict[str, str]) -> None:
    query = trellis.query((EXAMPLES / f"{name}.tq").read_text())
    found = query.detect(generate_table(kind, 600, 3, **options), time="ts", event_id="event_id")
    counts = found.counts()
    assert found.count() == sum(map(int, counts["count_text"].to_pylist()))
    if name != "cet_q2_heart_rate":  # no generated heart doubles its rate at rest
        assert found.count() > 0
