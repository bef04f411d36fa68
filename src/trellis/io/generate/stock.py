"""Stock trades: prices that wander, company by company."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from trellis.io.generate.parts import (
    Floats,
    Integers,
    count,
    everyone_then_random,
    pick,
    poisson_seconds,
    positions_by_member,
    positive,
    random_numbers,
    timestamps,
)

_FIRST_CODE = 600_210
_STEP = 0.005
_FARTHEST = 1.5


def stock(
    events: int,
    seed: int = 0,
    *,
    companies: int = 10,
    rate: float = 1.0,
    start: str = "2024-01-01T00:00:00",
) -> pa.Table:
    """Make trades of stocks.

    Parameters
    ----------
    events
        How many trades.
    seed
        The same seed and options give the same events.
    companies
        How many companies, at least 1; the first are called Google, name1, name2, name3 and name4. Each has a
        trade if there are enough.
    rate
        Trades a second, of all companies together, on average.
    start
        When the stream begins.

    Returns
    -------
    pyarrow.Table
        Columns `ts, tick, event_id, id, companyID, name, code, price, volume`, in time order. `tick` counts
        whole seconds from the start, and `ts` tells the same time; `id` is `companyID`, from 1; codes begin
        with 600210; prices wander at random, in cents, and are above zero.

    Raises
    ------
    UsageError
        If an option has a value that makes no sense.
    """
    events, companies = count("events", events), count("companies", companies, 1)
    rng = random_numbers(seed)
    tick = poisson_seconds(rng, events, positive("rate", rate))
    company = everyone_then_random(rng, events, companies)
    volume = 100 * np.ceil(rng.lognormal(1.0, 1.0, events)).astype(np.int64)
    return pa.table(
        {
            "ts": timestamps(start, tick),
            "tick": pa.array(tick),
            "event_id": pa.array(np.arange(events, dtype=np.int64)),
            "id": pa.array(company + 1),
            "companyID": pa.array(company + 1),
            "name": pick(["Google"] + [f"name{i}" for i in range(1, companies)], company),
            "code": pick([str(_FIRST_CODE + i) for i in range(companies)], company),
            "price": pa.array(_prices(rng, company, companies)),
            "volume": pa.array(volume),
        }
    )


def _prices(rng: np.random.Generator, company: Integers, companies: int) -> Floats:
    """Let the logarithm of each price walk at random, and turn back before it goes too far."""
    opening = rng.uniform(20.0, 400.0, companies)
    order, begin, _ = positions_by_member(company)
    walk = np.cumsum(rng.normal(0.0, _STEP, len(company)))
    walk = walk - walk[begin]
    folded = _FARTHEST - np.abs((walk + _FARTHEST) % (4 * _FARTHEST) - 2 * _FARTHEST)
    prices = np.empty(len(company), np.float64)
    prices[order] = opening[company[order]] * np.exp(folded)
    return np.round(prices, 2)
