"""The calendar of a standing query: when its results are decided, and until when an event is needed.

A watermark is a promise: no event before it is still to come. It is a whole number of milliseconds or, where times are
plain numbers, of their units. A window is decided when the watermark has reached its end; what begins at an event under
a span when the watermark has passed the end of that span. `END` stands for the end of the input.
"""

from __future__ import annotations

from dataclasses import replace
from math import ceil, floor, inf
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from trellis.events.clock import Clock
from trellis.events.slice import Slice
from trellis.events.sorting import column_of
from trellis.language.bound import BoundQuery, Window, WindowKind
from trellis.language.schema import Kind, Type

END = inf  # the watermark when all events have come
LAST_WINDOW = 1 << 62
Number = int | float


class TimeLine:
    """Times of a type as numbers, and watermarks among them."""

    def __init__(self, time: Type, window: Window | None = None) -> None:
        self.clock = Clock(window or Window(WindowKind.WHOLE), time)
        if time.temporal:
            self.unit: Number = 1000  # microseconds in the unit of a watermark
        else:
            self.unit = 1.0 if time.kind is Kind.DOUBLE else 10**self.clock.digits

    def numbers(self, events: pa.Table, column: str) -> NDArray[Any]:
        """Return the times of events, none of which is missing."""
        return self.clock.numbers(column_of(events, column))

    def at(self, watermark: Number) -> Number:
        """Return the number of a watermark."""
        return watermark * self.unit

    def watermark_from(self, number: Number, strictly: bool) -> int:
        """Return the first watermark at or, `strictly`, after a number."""
        watermark = number / self.unit if isinstance(self.unit, float) else None
        if watermark is not None:
            return floor(watermark) + 1 if strictly else ceil(watermark)
        whole = int(number) + strictly
        return -(-whole // int(self.unit))


class Calendar:
    """The windows or the span of a query on a time line.

    A number says what is decided: the last window that is, or the first time whose results are not. Where results are
    given `early`, watermarks only tell which events are needed no more.
    """

    def __init__(self, bound: BoundQuery, early: bool = False) -> None:
        self.line = TimeLine(bound.known_schema.time_type, bound.window)
        self.early, self._whole = early, bound.window.kind is WindowKind.WHOLE
        self.sliding = bound.window.kind is WindowKind.SLIDING
        self.size, self.slide = self.line.clock.size, self.line.clock.slide
        self._doubles = self.line.clock.doubles

    def decided(self, watermark: Number | None) -> Number:
        """Return the number up to which a watermark decides; None is one that no event has moved yet."""
        if watermark is None:
            return -LAST_WINDOW if self.sliding else -inf
        if watermark == END:
            return LAST_WINDOW if self.sliding else inf
        now = self.line.at(watermark)
        if not self.sliding:
            return now - self.size
        if not isinstance(now, float):
            return (now - self.size) // self.slide
        return int(self.windows_of(np.array([now]))[0][0]) - 1

    def start(self, number: Number) -> Number:
        """Return where a window begins."""
        return int(number) * self.slide if self._doubles is None else self._doubles.starts(_one(number)).item()

    def end(self, number: Number) -> Number:
        """Return where a window ends."""
        whole = int(number) * self.slide + self.size
        return whole if self._doubles is None else self._doubles.ends(_one(number)).item()

    def needed_from(self, watermark: Number | None) -> Number:
        """Return the first time whose events may still be needed."""
        if watermark is None or self._whole:
            return -inf
        decided = self.decided(watermark)
        if self.sliding:
            return self.start(decided + 1)
        return decided if self.early else decided - self.size

    def next_watermark(self, times: NDArray[Any], watermark: Number | None) -> int | None:
        """Return the first watermark that decides more of what the events at some times are in.

        Where results are early, it is one at which enough events are needed no more for the others to be written anew.
        """
        if self.early:
            whole = self._whole or not len(times)
            return None if whole else self.line.watermark_from(times.min().item() + 2 * self.size, strictly=True)
        decided = self.decided(watermark)
        if self.sliding:
            open_ = times[times >= self.start(decided + 1)] if watermark is not None else times
            if not len(open_):
                return None
            first = max(int(self.line.clock.windows(open_.min(keepdims=True))[0][0]), int(decided) + 1)
            return self.line.watermark_from(self.end(first), strictly=False)
        open_ = times[times >= decided]
        if not len(open_):
            return None
        return self.line.watermark_from(open_.min().item() + self.size, strictly=True)

    def reach(self, before: Number | None, now: Number) -> tuple[Number, Number]:
        """Return the times between which the events lie that tell what is newly decided: from the one to the other."""
        decided = self.decided(now)
        if self.sliding:
            return self.needed_from(before), self.end(decided)
        return self.decided(before) - self.size, self.line.at(now) if now != END else inf

    def newly(self, times: NDArray[Any], before: Number | None) -> NDArray[np.bool_]:
        """Return which events were not within reach at an earlier watermark."""
        return np.ones(len(times), np.bool_) if before is None else times >= self.reach(None, before)[1]

    def restricted(self, events: Slice, before: Number | None, now: Number, since: Number | None) -> Slice:
        """Return a slice with what is newly decided as its groups, or as where its results begin.

        Events up to the time `since` were not all seen; what they might be in is left out.
        """
        old, new = self.decided(before), self.decided(now)
        if not self.sliding:
            begins = (events.times >= old) & (events.times < new)
            if since is not None:
                begins &= events.times > since + self.size
            return replace(events, begins=begins)
        groups = events.groups
        wanted = (groups.number > old) & (groups.number <= new)
        if since is not None:
            wanted &= self.line.clock.starts(groups.number) > since
        return replace(events, groups=type(groups)(groups.lo[wanted], groups.hi[wanted], groups.number[wanted]))

    def windows_of(self, times: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the first and the last window of each time."""
        return self.line.clock.windows(times)


def _one(number: Number) -> NDArray[np.int64]:
    return np.array([number], np.int64)
