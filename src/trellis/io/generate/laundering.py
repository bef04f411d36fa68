"""Money laundering: transfers between accounts, with planted patterns of the published AML data, labelled."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa

from trellis.io.generate.parts import check_span, count, pick, positive, random_numbers, share, timestamps

_DAY = 86_400
_FEWEST = 20  # accounts, of which the largest attempt takes 17
Hop = tuple[int, int, int]  # payer, payee and step; steps follow each other in time
Draw = Callable[[np.random.Generator, int, int], list[Hop]]


def laundering(
    events: int, seed: int = 0, *, accounts: int = 0, rate: float = 2000.0, launders: float = 0.02,
    start: str = "2024-01-01T00:00:00",
) -> pa.Table:  # fmt: skip
    """Make transfers between accounts, some of which launder money.

    Most go from anyone to anyone, a few accounts having much of the traffic. The others are planted attempts of 3 to 16
    transfers within two days, of the schemes of the published AML data: fan-in, fan-out, cycle, gather-scatter,
    scatter-gather and stack. Their amounts are like all others, and shrink by a few percent from hop to hop; only how
    they hang together tells them apart.

    Parameters
    ----------
    events
        How many transfers.
    seed
        The same seed and options give the same events.
    accounts
        How many accounts, at least 20; 0 for one to five transfers.
    rate
        Transfers a day, on average.
    launders
        The share of transfers that belong to an attempt, from 0 to 1.
    start
        When the stream begins.

    Returns
    -------
    pyarrow.Table
        Columns `ts, event_id, source, destination, amount, attempt, scheme, laundering`, in time order; `attempt` is 0,
        `scheme` empty and `laundering` 0 for all but the planted ones.
    """
    events = count("events", events)
    accounts = count("accounts", accounts, _FEWEST) if accounts else max(events // 5, _FEWEST)
    span = events / positive("rate", rate) * _DAY
    check_span(start, span)
    rng = random_numbers(seed)
    planted = _planted(rng, round(events * share("launders", launders)), accounts, span)
    plain = events - len(planted["seconds"])
    popular = (accounts * rng.random((2, plain)) ** 2).astype(np.int64)
    source = popular[0]
    destination = np.where(popular[1] == source, (source + 1) % accounts, popular[1])
    amounts = np.round(np.exp(rng.normal(7, 1.5, plain)), 2)
    whole = {
        "seconds": np.concatenate([planted["seconds"], (rng.random(plain) * span).astype(np.int64)]),
        "source": np.concatenate([planted["source"], source]),
        "destination": np.concatenate([planted["destination"], destination]),
        "amount": np.concatenate([planted["amount"], amounts]),
        "attempt": np.concatenate([planted["attempt"], np.zeros(plain, np.int64)]),
        "scheme": np.concatenate([planted["scheme"], np.zeros(plain, np.int64)]),
    }
    order = np.lexsort((rng.permutation(events), whole["seconds"]))
    sorted_ = {name: column[order] for name, column in whole.items()}
    names = [f"A{number:0{max(3, len(str(accounts - 1)))}d}" for number in range(accounts)]
    return pa.table(
        {
            "ts": timestamps(start, sorted_["seconds"]),
            "event_id": pa.array(np.arange(events, dtype=np.int64)),
            "source": pick(names, sorted_["source"]),
            "destination": pick(names, sorted_["destination"]),
            "amount": sorted_["amount"],
            "attempt": sorted_["attempt"],
            "scheme": pick(["", *SCHEMES], sorted_["scheme"]),
            "laundering": (sorted_["attempt"] > 0).astype(np.int64),
        }
    )


def _planted(rng: np.random.Generator, wanted: int, accounts: int, span: float) -> dict[str, np.ndarray]:
    """Return so many transfers of attempts, the last of which may be cut short."""
    rows: list[tuple[int, int, int, float, int, int]] = []
    attempt = 0
    while len(rows) < wanted:
        attempt += 1
        scheme = int(rng.integers(len(SCHEMES)))
        hops = list(SCHEMES.values())[scheme](rng, int(rng.integers(3, 9)), accounts)
        begin = rng.random() * max(span - 2 * _DAY, 1)
        length = min(2 * _DAY, span)
        steps = max(step for _, _, step in hops) + 1
        first = float(np.exp(rng.normal(7, 1.5)))
        for payer, payee, step in hops:
            second = begin + length * (step + rng.random() * 0.9) / steps
            amount = round(first * 0.97**step * (1 + 0.02 * rng.random()), 2)
            rows.append((int(second), payer, payee, amount, attempt, scheme + 1))
    columns = list(zip(*rows[:wanted], strict=True)) or [()] * 6
    names = ("seconds", "source", "destination", "amount", "attempt", "scheme")
    return {
        name: np.array(column, np.float64 if name == "amount" else np.int64)
        for name, column in zip(names, columns, strict=True)
    }


def _some(rng: np.random.Generator, number: int, accounts: int) -> list[int]:
    return [int(account) for account in rng.choice(accounts, number, replace=False)]


def _fan_in(rng: np.random.Generator, size: int, accounts: int) -> list[Hop]:
    middle, *others = _some(rng, size + 1, accounts)
    return [(other, middle, 0) for other in others]


def _fan_out(rng: np.random.Generator, size: int, accounts: int) -> list[Hop]:
    middle, *others = _some(rng, size + 1, accounts)
    return [(middle, other, 0) for other in others]


def _cycle(rng: np.random.Generator, size: int, accounts: int) -> list[Hop]:
    members = _some(rng, size, accounts)
    return [(payer, members[(i + 1) % size], i) for i, payer in enumerate(members)]


def _gather_scatter(rng: np.random.Generator, size: int, accounts: int) -> list[Hop]:
    middle, *others = _some(rng, 2 * size + 1, accounts)
    return [*((other, middle, 0) for other in others[:size]), *((middle, other, 1) for other in others[size:])]


def _scatter_gather(rng: np.random.Generator, size: int, accounts: int) -> list[Hop]:
    first, last, *others = _some(rng, size + 2, accounts)
    return [*((first, other, 0) for other in others), *((other, last, 1) for other in others)]


def _stack(rng: np.random.Generator, size: int, accounts: int) -> list[Hop]:
    wide = max(size // 2, 2)
    members = _some(rng, 3 * wide, accounts)

    def layer(step: int) -> Iterator[Hop]:
        for i in range(wide):
            yield members[step * wide + i], members[(step + 1) * wide + i], step
            yield members[step * wide + i], members[(step + 1) * wide + (i + 1) % wide], step

    return [*layer(0), *layer(1)]


SCHEMES: dict[str, Draw] = {
    "fan-in": _fan_in,
    "fan-out": _fan_out,
    "cycle": _cycle,
    "gather-scatter": _gather_scatter,
    "scatter-gather": _scatter_gather,
    "stack": _stack,
}
"""The schemes of attempts: each draws the hops of one."""
