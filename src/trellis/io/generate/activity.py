"""Physical activity: the heart rates of persons, with phases in which they rise."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from trellis.io.generate.parts import (
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

_PHASE = 20
_ACTIVE, _RISING = 0.4, 0.3
_AT_REST, _IN_MOTION = 68.0, 110.0
_LOWEST, _HIGHEST = 45, 200


def activity(
    events: int,
    seed: int = 0,
    *,
    persons: int = 10,
    rate: float = 1.0,
    start: str = "2024-01-01T00:00:00",
) -> pa.Table:
    """Make measurements of heart rates.

    Each person goes through phases of 20 measurements, passive or active; in some the rate rises from one
    to the next, which is of interest where the person is passive.

    Parameters
    ----------
    events
        How many measurements.
    seed
        The same seed and options give the same events.
    persons
        How many persons, at least 1.
    rate
        Measurements a second, of all persons together, on average.
    start
        When the stream begins.

    Returns
    -------
    pyarrow.Table
        Columns `ts, event_id, personID, rate, type`, in time order; `rate` is in beats a minute, `type` is
        `passive` or `active`.

    Raises
    ------
    UsageError
        If an option has a value that makes no sense.
    """
    events, persons = count("events", events), count("persons", persons, 1)
    rng = random_numbers(seed)
    seconds = poisson_seconds(rng, events, positive("rate", rate))
    person = everyone_then_random(rng, events, persons)
    beats, is_active = _beats(rng, person, persons)
    return pa.table(
        {
            "ts": timestamps(start, seconds),
            "event_id": pa.array(np.arange(events, dtype=np.int64)),
            "personID": pa.array(person + 1),
            "rate": pa.array(beats),
            "type": pick(["passive", "active"], is_active),
        }
    )


def _beats(rng: np.random.Generator, person: Integers, persons: int) -> tuple[Integers, Integers]:
    order, begin, position = positions_by_member(person)
    shifted = position + rng.integers(0, _PHASE, persons)[person[order]]
    # Phases are numbered along the sorted events: a person's begin where their events do.
    phase = begin // _PHASE + shifted // _PHASE + 2 * person[order]
    phases = int(phase.max(initial=0)) + 1
    active = (rng.random(phases) < _ACTIVE)[phase]
    rising = (rng.random(phases) < _RISING)[phase]
    beats = np.where(active, _IN_MOTION, _AT_REST) + rng.normal(0.0, 3.0, len(person))
    beats += np.where(rising, 3.0 * (shifted % _PHASE), 0.0)
    result, kind = np.empty(len(person), np.int64), np.empty(len(person), np.int64)
    result[order] = np.clip(np.rint(beats), _LOWEST, _HIGHEST).astype(np.int64)
    kind[order] = active
    return result, kind
