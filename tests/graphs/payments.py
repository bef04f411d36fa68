"""The example of payments, as a test sees it: its module, random payments, and triangles found in the plainest way."""

from __future__ import annotations

import runpy
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

FILE = Path(__file__).parents[2] / "examples" / "graphs" / "payments.py"
SECOND = 1_000_000
BEGIN = 1_700_000_000 * SECOND


def example() -> dict[str, Any]:
    """The names that the example defines."""
    return runpy.run_path(str(FILE))


def payments(number: int, seed: int = 1, accounts: int = 8) -> pa.Table:
    """Random payments, several at one moment, in two currencies."""
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "ts": pa.array(BEGIN + rng.integers(0, number // 2, number) * 300 * SECOND, pa.timestamp("us", "UTC")),
            "id": rng.permutation(number),
            "currency": rng.choice(["EUR", "USD"], number),
            "payer": [f"a{i}" for i in rng.integers(0, accounts, number)],
            "payee": [f"a{i}" for i in rng.integers(0, accounts, number)],
            "amount": rng.integers(1, 100, number) / 4,
        }
    )


def plainly(table: pa.Table) -> list[tuple[Any, ...]]:
    """Return the triangles (event, currency, accounts) that payments close, in order, by looking at all of an hour."""
    rows = sorted(table.to_pylist(), key=lambda row: (row["ts"], row["id"]))
    found: list[tuple[Any, ...]] = []
    for i, row in enumerate(rows):
        hour = [
            frozenset([other["payer"], other["payee"]])
            for other in rows[:i]
            if other["currency"] == row["currency"] and (row["ts"] - other["ts"]).total_seconds() < 3600
        ]
        pair = frozenset([row["payer"], row["payee"]])
        if pair in hour or len(pair) < 2:
            continue
        accounts = {account for one in hour for account in one} - pair
        for third in sorted(accounts):
            three = sorted([*pair, third])
            if all(frozenset(two) == pair or frozenset(two) in hour for two in combinations(three, 2)):
                found.append((row["id"], row["currency"], *three))
    by_event = {row["id"]: i for i, row in enumerate(rows)}
    return sorted(found, key=lambda one: (by_event[one[0]], one[2:]))


def as_plain(table: pa.Table) -> list[tuple[Any, ...]]:
    """The same of what a run found."""
    columns = ["event", "partition", "first", "second", "third"]
    return [tuple(row[name] for name in columns) for row in table.to_pylist()]
