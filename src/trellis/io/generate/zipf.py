"""Names by Zipf's law: few that are frequent, many that are rare, as in texts and logs."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from trellis.io.generate.parts import count, pick, poisson_seconds, positive, random_numbers, timestamps


def zipf(
    events: int,
    seed: int = 0,
    *,
    names: int = 1000,
    exponent: float = 1.0,
    rate: float = 1.0,
    start: str = "2024-01-01T00:00:00",
) -> pa.Table:
    """Make a stream of names.

    The name of rank `r` comes as often as `1 / r ** exponent` tells, whatever came before it.

    Parameters
    ----------
    events
        How many events.
    seed
        The same seed and options give the same events.
    names
        How many names there are, at least 1.
    exponent
        How much rarer rare names are.
    rate
        Events a second, on average.
    start
        When the stream begins.

    Returns
    -------
    pyarrow.Table
        Columns `ts, event_id, name`, in time order; names are `A, B, ..., Z, AA, AB, ...` from the most frequent on.

    Raises
    ------
    UsageError
        If a value is out of its range.
    """
    count("events", events)
    number = count("names", names, at_least=1)
    rng = random_numbers(seed)
    weights = np.arange(1, number + 1, dtype=np.float64) ** -positive("exponent", exponent)
    seconds = poisson_seconds(rng, events, positive("rate", rate))
    chosen = np.searchsorted(np.cumsum(weights) / weights.sum(), rng.random(events), side="right")
    chosen = np.minimum(chosen, number - 1)
    return pa.table(
        {
            "ts": timestamps(start, seconds),
            "event_id": pa.array(np.arange(events, dtype=np.int64)),
            "name": pick([_name(i) for i in range(number)], chosen),
        }
    )


def _name(number: int) -> str:
    """Return a number as letters: A to Z, then AA, AB and so on."""
    text = ""
    number += 1
    while number:
        number, letter = divmod(number - 1, 26)
        text = chr(ord("A") + letter) + text
    return text
