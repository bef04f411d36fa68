"""A cliff: a way to write a query that once cost hundreds of times what a plain program needs, and that program."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

import trellis

MODULUS = 1 << 64  # plain programs count in unsigned 64 bits


def _count(text: str, events: pa.Table) -> int:
    return int(detected(text, events).count())


@dataclass(frozen=True)
class Cliff:
    """A query, the events it runs over, and a plain program with the same answer.

    Attributes
    ----------
    row
        The row of the table of cliffs that it belongs to.
    title
        What people write, in a few words.
    text
        The query.
    peer
        The plain program: from the events to the answer, which is compared (counts modulo 2^64).
    peer_name
        What the plain program is.
    rewordings
        Queries that ask nearly the same: another comparator or constant, an added `[key]`.
    sizes
        The numbers of events.
    events
        Makes so many events.
    ask
        What is asked of a query over events; by default the count.
    limit
        How many times as long as the plain program it may take; None where a lower bound forbids it (see `bound`).
    bound
        What forbids it.
    """

    row: int
    title: str
    text: str
    peer: Callable[[pa.Table], int]
    peer_name: str = "plain Numba"
    rewordings: tuple[str, ...] = ()
    sizes: tuple[int, ...] = (10_000, 100_000)
    events: Callable[[int], pa.Table] = field(default=lambda n: trades(n))
    ask: Callable[[str, pa.Table], int] = _count
    limit: float | None = 10
    bound: str = ""


def detected(text: str, events: pa.Table) -> Any:
    """Return the results of a query over the events of this benchmark."""
    typed: dict[str, Any] = {} if "Stock" in text else {"type": "kind"}
    return trellis.query(text).detect(events, time="ts", event_id="id", engine="local", max_trends=10**12, **typed)


@cache
def trades(n: int, seed: int = 22, kinds: int = 4) -> pa.Table:
    """Return one trade a second of one of four kinds: a price in a random walk, one of 100 symbols, a volume."""
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "ts": np.arange(n),
            "id": np.arange(n),
            "kind": pa.array(np.array(list("ABCDEFGH"))[rng.integers(0, kinds, n)]),
            "price": np.round(100 + np.cumsum(rng.normal(0, 0.05, n)) + rng.normal(0, 1, n), 4),
            "sym": rng.integers(0, 100, n),
            "volume": rng.integers(1, 1_000, n),
            "part": np.arange(n) // 1_000,
        }
    )


def columns(events: pa.Table, *names: str) -> tuple[Any, ...]:
    """Return columns as arrays; kinds become 0 for A, 1 for B and so on."""
    found = []
    for name in names:
        if name == "kind":
            codes = np.array([ord(kind) for kind in events["kind"].to_pylist()], np.int64)
            found.append(codes - ord("A"))
        else:
            found.append(np.ascontiguousarray(events[name].to_numpy()))
    return tuple(found)
