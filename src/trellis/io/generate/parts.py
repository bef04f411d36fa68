"""Parts that the kinds of sample streams share: checks of options, clocks, text by number."""

from __future__ import annotations

import datetime
import math
import operator
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from trellis.errors import UsageError
from trellis.events.columns.arrow import Array

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_LAST_SECOND = int(np.datetime64("9999-12-31T23:59:59", "s").astype(np.int64))


def count(name: str, value: int, at_least: int = 0) -> int:
    """Return a whole number that is large enough, or raise `UsageError`."""
    try:
        number = operator.index(value)
    except TypeError:
        raise UsageError(f"`{name}` must be a whole number, not {value!r}.") from None
    if number < at_least:
        raise UsageError(f"`{name}` must be at least {at_least}, not {number}.")
    return number


def positive(name: str, value: float) -> float:
    """Return a number above zero, or raise `UsageError`."""
    number = _number(name, value)
    if not (number > 0 and math.isfinite(number)):
        raise UsageError(f"`{name}` must be a number above 0, not {value!r}.")
    return number


def share(name: str, value: float) -> float:
    """Return a number from 0 to 1, or raise `UsageError`."""
    number = _number(name, value)
    if not 0 <= number <= 1:
        raise UsageError(f"`{name}` must be a number from 0 to 1, not {value!r}.")
    return number


def _number(name: str, value: float) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise UsageError(f"`{name}` must be a number, not {value!r}.") from None


def random_numbers(seed: int) -> np.random.Generator:
    """Return the generator of a seed, which must not be negative."""
    return np.random.default_rng(count("seed", seed))


def poisson_seconds(rng: np.random.Generator, events: int, rate: float) -> Integers:
    """Return whole seconds from the start, in order, `rate` a second on average; some are equal."""
    gaps = rng.exponential(1.0, events) / rate
    if gaps.sum() > _LAST_SECOND:
        raise _too_late()
    return np.floor(np.cumsum(gaps)).astype(np.int64)


def timestamps(start: str, seconds: Integers) -> Array:
    """Return the times that lie `seconds` after `start`, or raise `UsageError` where the calendar ends."""
    first = _start_second(start)
    if len(seconds) and first + int(seconds.max()) > _LAST_SECOND:
        raise _too_late()
    return pa.array((first + seconds) * 1_000_000).cast(pa.timestamp("us", tz="UTC"))


def check_span(start: str, seconds: float) -> None:
    """Raise `UsageError` where a stream of so many seconds does not fit the calendar."""
    if _start_second(start) + seconds > _LAST_SECOND:
        raise _too_late()


def _too_late() -> UsageError:
    return UsageError("So many events at this rate reach beyond the year 9999.", "Raise `rate`.")


def _start_second(start: str) -> int:
    try:
        moment = datetime.datetime.fromisoformat(start)
    except (TypeError, ValueError):
        raise UsageError(f"`start` must be a time such as 2024-01-01T00:00:00, not {start!r}.") from None
    utc = moment.replace(tzinfo=datetime.UTC) if moment.tzinfo is None else moment
    return int(utc.timestamp() // 1)


def pick(texts: Sequence[str], numbers: npt.NDArray[np.integer]) -> Array:
    """Return the text at each number."""
    return pa.array(texts, pa.string()).take(pa.array(numbers))


def everyone_then_random(rng: np.random.Generator, events: int, members: int) -> Integers:
    """Return a member, from 0, for each event: each once, in random order, then anyone."""
    first = rng.permutation(members)[:events]
    return np.concatenate([first, rng.integers(0, members, events - len(first))])


def positions_by_member(member: Integers) -> tuple[Integers, Integers, Integers]:
    """Group events by member, keeping their order.

    Returns
    -------
    order, begin, position
        The events sorted by member; and, in that order, where the member's first event lies and how many of
        its own events come before this one.
    """
    order = np.argsort(member, kind="stable")
    grouped = member[order]
    is_first = np.ones(len(member), np.bool_)
    is_first[1:] = grouped[1:] != grouped[:-1]
    begin = np.maximum.accumulate(np.where(is_first, np.arange(len(member)), 0))
    return order, begin, np.arange(len(member)) - begin
