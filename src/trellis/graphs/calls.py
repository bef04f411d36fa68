"""The calls that operators have asked for: at which time, of which partition, and with which key."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from heapq import heapify, heappop, heappush
from typing import Any

from trellis.errors import UsageError

Place = tuple[str, str]  # of a partition: its key and its name


class Calls:
    """The calls of an instance, in the order of their times; of one time in the order in which they were asked for.

    Attributes
    ----------
    now
        The time of the event or call at hand, which new calls must be later than.
    """

    def __init__(self) -> None:
        self.now: Any = None
        self._number = 0
        self._queue: list[tuple[Any, int]] = []
        self._calls: dict[int, tuple[Any, Place, Any]] = {}
        self._known: set[tuple[Any, Place, Any]] = set()

    def add(self, time: Any, place: Place, key: Any) -> None:
        """Add a call; it stays one if it is there."""
        if isinstance(time, bool) or not isinstance(time, int | float) or not math.isfinite(time):
            raise UsageError(f"a call is asked for at {time!r}", "Give a time as `event.time` is: a finite number.")
        if not isinstance(key, str | int | float | None):
            raise UsageError(f"the key of a call is a {type(key).__name__}", "Give a text, a number or None.")
        if self.now is not None and time <= self.now:
            raise UsageError(f"a call is asked for at {time}, but it is {self.now} already", "Ask for a later time.")
        call = (time, place, key)
        if call not in self._known:
            self._known.add(call)
            self._calls[self._number] = call
            heappush(self._queue, (time, self._number))
            self._number += 1

    def due(self, limit: Any, before: bool = False) -> Iterator[tuple[Any, Place, Any]]:
        """Take away the calls up to a time, or before it, None for all, and yield them; more may be added meanwhile."""
        while self._queue and (limit is None or self._queue[0][0] <= limit):
            if before and self._queue[0][0] == limit:
                break
            time, number = heappop(self._queue)
            call = self._calls.pop(number, None)
            if call is not None:
                self._known.discard(call)
                self.now = time
                yield call

    def first(self) -> Any:
        """Return the time of the next call, or None."""
        while self._queue and self._queue[0][1] not in self._calls:
            heappop(self._queue)
        return self._queue[0][0] if self._queue else None

    def forget(self, place: Place) -> None:
        """Take away the calls of a partition."""
        for number in [number for number, (_, of, _) in self._calls.items() if of == place]:
            self._known.discard(self._calls.pop(number))

    def forget_repeated(self, key: str) -> None:
        """Take away the calls of a key that would come again and again."""
        for number in [number for number, (_, _, of) in self._calls.items() if of == key]:
            self._known.discard(self._calls.pop(number))

    def state(self) -> list[Any]:
        """Return the calls as plain data."""
        return [[time, list(place), key] for time, place, key in self._calls.values()]

    def restore(self, state: Iterable[Any]) -> None:
        """Go on from what `state` returned."""
        for number, (time, place, key) in enumerate(state):
            self._calls[number] = call = (time, tuple(place), key)
            self._known.add(call)
            self._queue.append((time, number))
        self._number = len(self._calls)
        heapify(self._queue)


class OwnCalls:
    """The calls of one operator."""

    def __init__(self, calls: Calls, place: Place) -> None:
        self._calls, self._place = calls, place

    def add(self, time: Any, key: Any) -> None:
        """Ask for a call."""
        self._calls.add(time, self._place, key)
