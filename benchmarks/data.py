"""The events that benchmarks run over: random prices and transfers, from a seed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa


def prices(n: int, seed: int = 1) -> pa.Table:
    """Return trades at distinct random prices, one at each time."""
    return pa.table({"ts": np.arange(n), "id": np.arange(n), "price": np.random.default_rng(seed).random(n)})


def transfers(n: int, accounts: int, seed: int = 1, text: bool = False) -> pa.Table:
    """Return transfers between random accounts, one at each time; accounts are numbers, or texts."""
    rng = np.random.default_rng(seed)
    columns = {name: pa.array(rng.integers(0, accounts, n)) for name in ("src", "dest")}
    if text:
        names = pa.array([f"account-{i:06}" for i in range(accounts)])
        columns = {name: names.take(column) for name, column in columns.items()}
    return pa.table({"ts": np.arange(n), "id": np.arange(n), **columns})


def checks(layers: Sequence[int]) -> pa.Table:
    """Return checks as the CET paper's generator makes them: each may follow all of the second before.

    There are so many in each second; the columns are those of `trellis generate kite`.
    """
    second = np.repeat(np.arange(len(layers)), layers)
    source, destination = ([f"B{bank}" for bank in banks] for banks in (second.tolist(), (second + 1).tolist()))
    return pa.table(
        {
            "ts": pa.array(second * 1_000_000, pa.timestamp("us")),
            "event_id": np.arange(len(second)),
            "source": source,
            "destination": destination,
            "type": ["notcovered"] * len(second),
        }
    )
