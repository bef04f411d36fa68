"""Exact counts of one window, without a list: a million and ten million events, beside a count over all pairs."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pyarrow as pa

import trellis
from benchmarks import Peer, Row, Table, at_most, best_of, memory_of
from benchmarks.data import prices, transfers

RISING = "PATTERN E+ s[] WHERE s[i].price > 1.5 * s[i-1].price"
MAXIMAL = f"{RISING} REPORT maximal"
FOLLOWED = "PATTERN E+ s[] WHERE s[i].src = s[i-1].dest"
ACCOUNTS = 1_000
MEGABYTE = 1e6


def count(text: str, table: pa.Table) -> int:
    """Parse, read the table and count, as a user does."""
    total: int = trellis.query(text).detect(table, event_id="id").count()
    return total


def run(quick: bool) -> list[Table]:
    million = 2_000 if quick else 1_000_000
    return [_one_window(million, quick), _growth(million, quick), _beside_all_pairs(500 if quick else 20_000, quick)]


# --- One window -------------------------------------------------------------------------------------------------


def _one_window(n: int, quick: bool) -> Table:
    of_prices, of_accounts, of_names = prices(n), transfers(n, ACCOUNTS), transfers(n, ACCOUNTS, text=True)
    rising = best_of("prices", lambda: count(RISING, of_prices), quick=quick)
    memory = memory_of("prices", counting, RISING, n)
    followed = best_of("transfers", lambda: count(FOLLOWED, of_accounts), quick=quick)
    named = best_of("transfers, text", lambda: count(FOLLOWED, of_names), quick=quick)
    maximal = best_of("maximal", lambda: count(MAXIMAL, of_prices), quick=quick, runs=2)
    return Table(
        f"One window of {n:,} events, from an Arrow table",
        [
            Row(
                "prices: price > 1.5 * prev.price", rising, memory,
                targets=[at_most(1.5, "s", rising.wall), at_most(300 * MEGABYTE, "B", memory)],
            ),
            Row("the same, REPORT maximal", maximal, targets=[at_most(8, "s", maximal.wall)]),
            Row(
                f"transfers of {ACCOUNTS:,} accounts: src = prev.dest", followed,
                targets=[at_most(0.3, "s", followed.wall)],
            ),
            Row("the same, accounts are texts", named),
        ],
        [
            f"The prices have {_size(count(RISING, of_prices))} trends, {_size(count(MAXIMAL, of_prices))} of them "
            f"maximal; the transfers have {_size(count(FOLLOWED, of_accounts))}."
        ],
    )  # fmt: skip


def counting(text: str, n: int) -> Any:
    table = prices(n)
    return lambda: count(text, table)


def _size(number: int) -> str:
    digits = str(number)
    return f"{number:,}" if len(digits) < 10 else f"about {digits[0]}.{digits[1]} * 10^{len(digits) - 1}"


# --- Ten times the events ---------------------------------------------------------------------------------------


def _growth(n: int, quick: bool) -> Table:
    few, many = prices(n), prices(10 * n)
    small = best_of(f"{n:,} events", lambda: count(RISING, few), quick=quick)
    large = best_of(
        f"{10 * n:,} events", lambda: count(RISING, many), quick=quick, runs=2, warm=lambda: count(RISING, few)
    )
    return Table(
        "Ten times the events, the same count",
        [
            Row(f"{n:,} prices", small),
            Row(f"{10 * n:,} prices", large, targets=[at_most(18, "times as long", large.wall / small.wall)]),
        ],
    )


# --- Beside a count over all pairs ------------------------------------------------------------------------------


def _beside_all_pairs(n: int, quick: bool) -> Table:
    table = prices(n)
    values = table["price"].to_numpy()
    ours = best_of("beside all pairs", lambda: count(RISING, table), quick=quick)
    plain = best_of("all pairs", lambda: over_all_pairs(values), quick=quick)
    assert int(over_all_pairs(values)) == count(RISING, table) % 2**64, "the counts differ"
    return Table(
        f"Beside a plain count, {n:,} prices",
        [Row("prices: price > 1.5 * prev.price", ours, peers=[Peer("every pair tested, in Numba", plain)])],
        ["The peer adds numbers of 64 bits that wrap, which is less than an exact count; both agree modulo 2^64."],
    )


@numba.njit(cache=True)
def over_all_pairs(values: np.ndarray) -> np.uint64:
    """Count the unextendable trends, modulo 2^64, by testing every pair of events."""
    n = len(values)
    ways, is_start = np.zeros(n, np.uint64), np.ones(n, np.bool_)
    for x in range(n - 1, -1, -1):
        total, is_end = np.uint64(0), True
        for y in range(x + 1, n):
            if values[y] > 1.5 * values[x]:
                total += ways[y]
                is_start[y] = is_end = False
        ways[x] = np.uint64(1) if is_end else total
    return ways[is_start].sum()
