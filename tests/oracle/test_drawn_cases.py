"""The random cases hold what the engines are to be tried with; a strategy that lost one of these would go unnoticed."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, seed, settings

from tests.compare import expected
from tests.oracle import Answer
from tests.strategies import Case, case, time_column
from trellis.language.syntax import Report, Select


def kinds_of(drawn: Case) -> set[str]:
    rows, time, query = drawn.rows, time_column(drawn.options), drawn.query
    values = [v for row in rows for v in row.values()]
    times = [row[time] for row in rows]
    plain = [tuple((k, repr(v)) for k, v in row.items() if k != "id") for row in rows]
    found = {
        "ties in time": len(set(times)) < len(times),
        "broken ties": "seq" in drawn.schema and len(set(times)) < len(times),
        "NULL": None in values,
        "NaN": any(isinstance(v, float) and v != v for v in values),
        "duplicate rows": len(set(plain)) < len(plain),
        "unsorted": times != sorted(times),
        "no event": not rows,
        "one event": len(rows) == 1,
        "no id": drawn.options["event_id"] is None,
        "span": query.within is not None and query.within.slide is None,
        "windows": query.within is not None and query.within.slide is not None,
        "whole": query.within is None,
        "having": bool(query.having),
        "returns": bool(query.returns),
        "aggregates": bool(query.aggregates),
        "order": bool(query.order_by),
        "limit": query.limit is not None,
        **{f"select {policy}": query.select is policy for policy in Select},
        **{f"report {mode}": query.report is mode for mode in Report},
    }
    answer = expected(drawn)
    if isinstance(answer, Answer):
        found["no result"] = bool(rows) and not answer.trends
        found["a trend of two or more"] = any(t.length > 1 for t in answer.trends)
    return {name for name, there in found.items() if there}


def test_three_hundred_cases_hold_everything() -> None:
    seen: Counter[str] = Counter()

    @settings(max_examples=20, derandomize=False, database=None)
    @given(case())
    def draw(drawn: Case) -> None:
        seen.update(kinds_of(drawn))

    for number in range(15):  # the examples of one run resemble each other; what is counted must not vary
        seed(number)(draw)()
    wanted = """ties in time|broken ties|NULL|NaN|duplicate rows|unsorted|no event|one event|no id|span|windows|whole
        |having|returns|aggregates|order|limit|no result|a trend of two or more"""
    names = [name.strip() for name in wanted.split("|")]
    names += [f"select {policy}" for policy in Select] + [f"report {mode}" for mode in Report]
    assert {name: seen[name] for name in names if seen[name] < 3} == {}
