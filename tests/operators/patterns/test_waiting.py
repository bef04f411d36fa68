"""Matches so far that take only events with a value that they know are not looked at when others come."""

from __future__ import annotations

import pyarrow as pa
import pytest

import trellis

KEYS, ROUNDS = 40, 12
TABLE = pa.table(
    {
        "t": range(KEYS * ROUNDS),
        "key": [n % KEYS for n in range(KEYS * ROUNDS)],
        "to": [n * 7 % 11 for n in range(KEYS * ROUNDS)],
        "x": [float(n * 29 % 17) for n in range(KEYS * ROUNDS)],
    }
)
FIRST = "b.key = a.key"
FAR = {
    "a set": "b.to NOT IN (b[..i-1].to)",
    "a sum": "b.x > AVG(b[..i-1].x)",
}


@pytest.mark.parametrize("report", ["any", "unextendable"])
@pytest.mark.parametrize("far", FAR.values(), ids=FAR)
def test_an_equality_beside_conditions_that_look_far_costs_about_what_a_partition_does(far: str, report: str) -> None:
    end = f"REPORT {report} WITHIN {4 * KEYS}"
    found = trellis.query(f"PATTERN SEQ(X a, X+ b[]) WHERE {FIRST} AND {far} {end}").detect(TABLE, time="t")
    apart = trellis.query(f"PATTERN SEQ(X a, X+ b[]) WHERE [key] AND {far} {end}").detect(TABLE, time="t")
    assert found.count() == apart.count() > KEYS
    steps, fewest = (one.operator.explored().steps for one in (found, apart))
    assert 0 < steps < 10 * fewest
