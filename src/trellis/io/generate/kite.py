"""Check kiting: transfers between accounts, with chains of checks that no money covers."""

from __future__ import annotations

import inspect
import math
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from trellis.errors import UsageError
from trellis.io.generate.parts import (
    Floats,
    Integers,
    check_span,
    count,
    pick,
    positive,
    random_numbers,
    share,
    timestamps,
)

_DAY = 86_400
_SHORTEST, _LONGEST = 3, 8
Number = TypeVar("Number", np.int64, np.float64)

_SPELLINGS = ("not covered", "notcovered")


def kite(
    events: int,
    seed: int = 0,
    *,
    accounts: int = 100,
    rate: float = 40.0,
    chains: float = 0.2,
    covered: float = 0.1,
    type_spelling: str = "not covered",
    resolution: int = 60,
    start: str = "2024-01-01T00:00:00",
    compatibility: int = 0,
    selectivity: float = 1.0,
) -> pa.Table:
    """Make transfers by check between accounts.

    Most go from anyone to anyone at any time. The others are planted chains of 3 to 8 checks that are not
    covered: the receiver of one writes the next within hours, before the first bounces. The number of chains
    in a week, planted and by chance, grows like `accounts * exp(7 * rate / accounts)`: a few hundred with the
    defaults.

    With a `compatibility` the stream is the CET paper's instead: `rate` is a second, times are whole seconds, and every
    transfer that is not covered may follow so many of an earlier second, and no others.

    Parameters
    ----------
    events
        How many transfers.
    seed
        The same seed and options give the same events.
    accounts
        How many accounts, at least 2.
    rate
        Transfers a day, on average; with a compatibility, transfers a second.
    chains
        The share of transfers that belong to planted chains, from 0 to 1.
    covered
        The share of the other transfers that are covered, from 0 to 1.
    type_spelling
        How the type of an uncovered transfer is spelled: `not covered`, or `notcovered` as in the CET paper.
    resolution
        Times are whole multiples of so many seconds after the start; the larger, the more are equal.
    start
        When the stream begins.
    compatibility
        How many earlier transfers each one may follow, as in the CET paper; 0 for a stream of accounts and chains.
    selectivity
        With a compatibility, the share of transfers that are not covered; the others follow none and are followed by
        none.

    Returns
    -------
    pyarrow.Table
        Columns `ts, event_id, src, dest, source, destination, type`, in time order; `source` is `src` and
        `destination` is `dest`, and they always differ.

    Raises
    ------
    UsageError
        If an option has a value that makes no sense.
    """
    events, accounts = count("events", events), count("accounts", accounts, 2)
    resolution = count("resolution", resolution, 1)
    if count("compatibility", compatibility):
        given = {"accounts": accounts, "chains": chains, "covered": covered, "resolution": resolution}
        _refuse_others(given)
        return _compatible(
            events, seed, positive("rate", rate), compatibility, share("selectivity", selectivity), type_spelling, start
        )
    if selectivity != 1.0:
        raise UsageError("`selectivity` goes with a `compatibility`.", "Give both, or leave it out.")
    if type_spelling not in _SPELLINGS:
        raise UsageError(f"`type_spelling` must be `not covered` or `notcovered`, not `{type_spelling}`.")
    span = events / positive("rate", rate) * _DAY
    check_span(start, span + resolution)
    rng = random_numbers(seed)
    planted = round(events * share("chains", chains))
    chain = _chains(rng, planted, accounts, span)
    anyone = _anyone(rng, events - planted, accounts, span)
    seconds, source, destination = (np.concatenate(pair) for pair in zip(chain, anyone, strict=True))
    is_covered = np.zeros(events, np.int64)
    is_covered[planted:] = rng.random(events - planted) < share("covered", covered)
    ticks = np.floor(seconds / resolution).astype(np.int64) * resolution
    order = np.lexsort((rng.permutation(events), ticks))
    return _table(start, ticks[order], source[order], destination[order], accounts, type_spelling, is_covered[order])


def _table(
    start: str, seconds: Integers, source: Integers, destination: Integers, accounts: int, spelling: str,
    is_covered: Integers,
) -> pa.Table:  # fmt: skip
    names = [f"A{number:0{max(3, len(str(accounts - 1)))}d}" for number in range(accounts)]
    payer, payee = pick(names, source), pick(names, destination)
    return pa.table(
        {
            "ts": timestamps(start, seconds),
            "event_id": pa.array(np.arange(len(seconds), dtype=np.int64)),
            "src": payer,
            "dest": payee,
            "source": payer,
            "destination": payee,
            "type": pick([spelling, "covered"], is_covered),
        }
    )


def _refuse_others(given: dict[str, float]) -> None:
    """Refuse options that mean nothing with a compatibility."""
    usual = {name: parameter.default for name, parameter in inspect.signature(kite).parameters.items()}
    for name, value in given.items():
        if value != usual[name]:
            raise UsageError(f"`{name}` means nothing with a `compatibility`.", "Leave one of them out.")


def _compatible(
    events: int, seed: int, rate: float, compatibility: int, selectivity: float, spelling: str, start: str
) -> pa.Table:
    """Make chains of groups: whoever is in a group may follow all of the group before it in its chain.

    The groups of a chain are a second apart, or where so few events match in a second, as many as fill a group.
    """
    check_span(start, events / rate + 1)
    rng = random_numbers(seed)
    numbers = np.arange(events)
    second = np.floor(numbers / rate).astype(np.int64)
    matching = np.floor((numbers + 1) * selectivity) > np.floor(numbers * selectivity)
    matching = matching[np.lexsort((rng.random(events), second))]
    step = max(1, math.ceil(compatibility / (rate * selectivity))) if selectivity else 1
    group = second // step
    chains = max(1, round(rate * selectivity * step / compatibility))
    # Those of a group that match are dealt out to the chains in turn.
    before: Integers = np.cumsum(matching) - matching
    first = np.searchsorted(group, np.arange(group[-1] + 1 if events else 0))
    chain = (before - before[first[group]]) % chains if events else group
    account = (group + 1) * chains + chain
    rest = (int(group[-1]) + 2 if events else 1) * chains + 2 * (np.cumsum(~matching) - 1)
    source, destination = np.where(matching, account - chains, rest), np.where(matching, account, rest + 1)
    accounts = int(max(source.max(initial=0), destination.max(initial=0))) + 1
    return _table(start, second, source, destination, accounts, spelling, (~matching).astype(np.int64))


def _anyone(rng: np.random.Generator, events: int, accounts: int, span: float) -> tuple[Floats, Integers, Integers]:
    source = rng.integers(0, accounts, events)
    return rng.random(events) * span, source, (source + rng.integers(1, accounts, events)) % accounts


def _chains(rng: np.random.Generator, events: int, accounts: int, span: float) -> tuple[Floats, Integers, Integers]:
    """Plant chains: each event goes from where the one before went, 1 to 12 hours later or sooner."""
    lengths = rng.integers(_SHORTEST, _LONGEST + 1, events // _SHORTEST + 1)
    chain = np.repeat(np.arange(len(lengths)), lengths)[:events]
    begin = (np.cumsum(lengths) - lengths)[chain]
    steps = rng.integers(1, accounts, events)
    source = (rng.integers(0, accounts, len(lengths))[chain] + _since(begin, steps)) % accounts
    waits = rng.uniform(1 / 24, 1 / 2, events) * _DAY
    duration = np.bincount(chain, waits, len(lengths))
    shrink = np.minimum(1.0, span / np.maximum(duration, 1.0))
    when = rng.random(len(lengths)) * (span - duration * shrink)
    seconds = when[chain] + _since(begin, waits) * shrink[chain]
    return seconds, source, (source + steps) % accounts


def _since(begin: Integers, values: npt.NDArray[Number]) -> npt.NDArray[Number]:
    """Return the sum of the values from the beginning of the chain up to, and without, each event."""
    before = np.cumsum(values) - values
    since: npt.NDArray[Number] = before - before[begin]
    return since
