"""Splitters: which partitions an event belongs to, by key or by predicates that open and close partitions.

A partition has an operator of its own, and so a graph of its own. It is worked on by one instance: ranges of keys and
windows of time go to the instances in turn, other partitions by their names. How many instances there are changes
nothing that comes out.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from trellis.errors import DataError, UsageError
from trellis.graphs.events import Event, duration
from trellis.graphs.graph import Change

Opens = Callable[[Event], Any]
Closes = Callable[["Partition", Event], bool]
CLOSE, DROP = "close", "drop"
EVERY = "every"
"""The key of the calls that a splitter's `every` leads to."""


@dataclass
class Partition:
    """Events that belong together.

    Attributes
    ----------
    name
        What tells it from others, in results too.
    key
        The value of its key, where there is one.
    label
        What the opening predicate called it; without that the id of the event that opened it.
    opened
        The time of the event that opened it.
    last
        The time of the latest event that was given to it.
    count
        How many were.
    memory
        Plain data, for the closing predicate to note in what it has seen.
    """

    name: str
    key: Any = None
    label: Any = None
    opened: Any = None
    last: Any = None
    last_id: Any = None
    count: int = 0
    memory: dict[str, Any] = field(default_factory=dict)

    def took(self, event: Event) -> None:
        """Note that an event was given to it."""
        self.last, self.last_id, self.count = event.time, event.event_id, self.count + 1


@dataclass(frozen=True)
class Splitter:
    """How a stream is split; make one with `by_key`, `by_predicates`, or a function of `trellis.graphs.windows`.

    Attributes
    ----------
    key
        The column whose values tell partitions apart, or None.
    ranges
        Ranges of the key, by name: a range is one partition then, not a value.
    broadcast
        Tells of an event whether all partitions that are there get it, whatever its key.
    store
        Gives what an event writes into the graph store, or None.
    every
        After how long the operator of each partition is called, again and again, from the time that it was opened on.
    opens, closes, keep_closing, at_end, max_open
        See `by_predicates`.
    windows
        The length and the slide of windows of time that the predicates make, where these are known.
    """

    key: str | None = None
    ranges: tuple[tuple[str, Any, Any], ...] | None = None
    broadcast: Callable[[Event], bool] | None = None
    store: Callable[[Event], Change | None] | None = None
    store_directed: bool = False
    every: Any = None
    opens: Opens | None = None
    closes: Closes | None = None
    keep_closing: bool = True
    at_end: str = DROP
    max_open: int = 10_000
    windows: tuple[Any, Any] | None = None

    @classmethod
    def by_key(
        cls,
        column: str,
        *,
        ranges: Sequence[tuple[Any, Any]] | Mapping[str, tuple[Any, Any]] | None = None,
        broadcast: Callable[[Event], bool] | None = None,
        store: Callable[[Event], Change | None] | None = None,
        store_directed: bool = False,
        every: str | int | float | None = None,
    ) -> Splitter:
        """Return a splitter with a partition for each value of a column, or for each range of values.

        Parameters
        ----------
        column
            The key.
        ranges
            Pairs `(low, high)`: from `low`, included, to `high`, excluded; None has no bound. They must neither overlap
            nor leave gaps; a key before the first or after the last is refused when it comes. With names, if they are
            a dictionary.
        broadcast
            Says of an event whether it goes to all partitions that are there when it comes, and not to that of its key.
        store
            Says what an event writes into the graph store, before any operator gets it; None for nothing. It may look
            at nothing but the event.
        store_directed
            Whether edges of the store lead one way only.
        every
            A duration, such as `"1 minute"`: the operator of a partition is called by `on_time(time, "every")` so
            long after the event that opened it, and then again and again.

        Raises
        ------
        UsageError
            If the ranges overlap, leave a gap, or are empty.
        """
        checked = None if ranges is None else _checked_ranges(ranges)
        return cls(
            key=column, ranges=checked, broadcast=broadcast, store=store, store_directed=store_directed,
            every=_period(every),
        )  # fmt: skip

    @classmethod
    def by_predicates(
        cls,
        opens: Opens,
        closes: Closes,
        *,
        keep_closing: bool = True,
        at_end: str = DROP,
        key: str | None = None,
        store: Callable[[Event], Change | None] | None = None,
        store_directed: bool = False,
        max_open: int = 10_000,
        every: str | int | float | None = None,
    ) -> Splitter:
        """Return a splitter whose partitions are opened by one event and closed by another; they may overlap.

        Parameters
        ----------
        opens
            Says of an event whether it opens a partition; a list opens one for each item, which is its label.
        closes
            Says of an open partition and an event whether the event closes it. It is called once for each event from
            the one that opened it, in order, and may note what it has seen in `partition.memory`; the partition is as
            it was before the event.
        keep_closing
            Whether the event that closes a partition is the last one in it, or already outside.
        at_end
            The treatment of partitions that are open when the input ends: `close` or `drop`. Both are counted.
        key
            Split the stream by this column first, and each part by the predicates.
        store, store_directed
            As in `by_key`.
        max_open
            How many partitions may be open in an instance; more are refused.
        every
            As in `by_key`.

        Raises
        ------
        UsageError
            If a bound or `at_end` is wrong.
        """
        if at_end not in (CLOSE, DROP):
            raise UsageError(f"`at_end` is `{at_end}`", "It is `close` or `drop`.")
        if max_open < 1:
            raise UsageError(f"`max_open` is {max_open}", "At least one partition must be able to be open.")
        return cls(
            key=key, store=store, store_directed=store_directed, opens=opens, closes=closes, keep_closing=keep_closing,
            at_end=at_end, max_open=max_open, every=_period(every),
        )  # fmt: skip

    def stored(self, event: Event) -> Change | None:
        """Return the change that an event makes to the graph store."""
        return None if self.store is None else self.store(event)

    def part(self, event: Event) -> str | None:
        """Return the name of the partition of an event's key, or None of an event without key that is only stored."""
        assert self.key is not None
        value = event[self.key]
        if value is None:
            if self.stored(event) is not None:
                return None
            raise DataError(
                f"the event {event.event_id!r} has no key: `{self.key}` is NULL",
                "Leave such events out, or say what becomes of them with `broadcast` or `store`.",
            )
        return str(value) if self.ranges is None else self._range(value, event)

    def _range(self, value: Any, event: Event) -> str:
        assert self.ranges is not None
        for name, low, high in self.ranges:
            if _within(value, low, high, name):
                return name
        raise DataError(
            f"no range covers the key {value!r} of the event {event.event_id!r}",
            "Let the first range begin, or the last one end, with None.",
        )

    def instances_of(self, event: Event, previous: Any, instances: int) -> Sequence[int]:
        """Return the instances that an event goes to.

        Parameters
        ----------
        event
            The event.
        previous
            The latest earlier time in the same piece of the input, None if there is none. A window is closed by the
            first event behind it, so the first ones of each piece go to its instance.
        instances
            How many there are.
        """
        everyone = range(instances)
        if instances == 1 or (self.broadcast is not None and self.broadcast(event)) or self.stored(event) is not None:
            return everyone
        if self.key is None:
            return everyone if self.windows is None else self._window_homes(event.time, previous, instances)
        name = self.part(event)
        return everyone if name is None else (self.home(name, None, instances),)

    def _window_homes(self, time: Any, previous: Any, instances: int) -> Sequence[int]:
        """Return the instances of the windows that hold a time, or end at it or since the time before."""
        assert self.windows is not None
        size, step = self.windows
        if previous is None:
            return range(instances)
        first = int((previous - size) // step)  # one too many, so that nothing depends on rounding
        last = int(time // step)
        return range(instances) if last - first + 1 >= instances else [k % instances for k in range(first, last + 1)]

    def home(self, name: str, label: Any, instances: int) -> int:
        """Return the instance that a partition belongs to; the same in every process."""
        if self.ranges is not None:
            return next(i for i, (of, _, _) in enumerate(self.ranges) if of == name) % instances
        if self.windows is not None and self.key is None:
            return round(label / self.windows[1]) % instances
        return zlib.crc32(name.encode()) % instances


def _period(given: str | int | float | None) -> int | float | None:
    if given is None:
        return None
    period = duration(given)
    if not period > 0:
        raise UsageError(f"`every` is {given}", "Calls come again after a time larger than 0.")
    return period


def _within(value: Any, low: Any, high: Any, name: str) -> bool:
    try:
        return (low is None or low <= value) and (high is None or value < high)
    except TypeError:
        raise DataError(f"the key {value!r} cannot be compared with the bounds of the range `{name}`") from None


def _checked_ranges(
    given: Sequence[tuple[Any, Any]] | Mapping[str, tuple[Any, Any]],
) -> tuple[tuple[str, Any, Any], ...]:
    named = given.items() if isinstance(given, Mapping) else ((_shown(low, high), (low, high)) for low, high in given)
    ranges = [(str(name), low, high) for name, (low, high) in named]
    if not ranges:
        raise UsageError("no ranges are given", "Give pairs of a lower and an upper bound.")
    try:
        ranges.sort(key=lambda one: (one[1] is not None, 0 if one[1] is None else one[1]))
        for name, low, high in ranges:
            if low is not None and high is not None and not low < high:
                raise UsageError(f"the range {name} is empty", "Its lower bound is included, its upper bound is not.")
        for (name, _, high), (after, low, _) in pairwise(ranges):
            if high is None or low is None or low < high:
                raise UsageError(f"the ranges {name} and {after} overlap", "A key belongs to one partition.")
            if high < low:
                raise UsageError(f"no range covers {high!r} to {low!r}", "Ranges must not leave gaps.")
    except TypeError:
        raise UsageError("the bounds of ranges cannot be compared with each other", "Give them one type.") from None
    return tuple(ranges)


def _shown(low: Any, high: Any) -> str:
    return f"{'' if low is None else low}..{'' if high is None else high}"


# --- Routing in an instance -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Delivery:
    """The effect of an event on a partition: whether it is given to it, and whether it closes it."""

    partition: Partition
    give: bool = True
    close: bool = False


@dataclass
class _Progress:
    """How far the events of a key, or all of them, have come."""

    number: int = 0
    previous: Any = None


class Router:
    """The partitions of an instance, and which of them an event belongs to."""

    def __init__(self, splitter: Splitter, instance: int, instances: int) -> None:
        self.splitter, self.instance, self.instances = splitter, instance, instances
        self.partitions: dict[str, dict[str, Partition]] = {}  # by key, then by name, as they were opened
        self._progress: dict[str, _Progress] = {}
        self._open = 0

    def deliveries(self, event: Event) -> list[Delivery]:
        """Return the partitions that an event concerns; a new one is among them."""
        splitter = self.splitter
        if splitter.opens is not None:
            key = "" if splitter.key is None else splitter.part(event)
            if key is None or (splitter.key is not None and not self._is_home(key, None)):
                return []
            return self._by_predicates(key, event)
        if splitter.broadcast is not None and splitter.broadcast(event):
            return [Delivery(partition) for some in self.partitions.values() for partition in some.values()]
        name = splitter.part(event)
        if name is None or not self._is_home(name, None):
            return []
        if name not in self.partitions:
            self.partitions[name] = {name: Partition(name, event[splitter.key or ""], name, event.time)}
        return [Delivery(self.partitions[name][name])]

    def _is_home(self, name: str, label: Any) -> bool:
        return self.instances == 1 or self.splitter.home(name, label, self.instances) == self.instance

    def _by_predicates(self, key: str, event: Event) -> list[Delivery]:
        splitter = self.splitter
        assert splitter.opens is not None
        assert splitter.closes is not None
        course = self._progress.setdefault(key, _Progress())
        event.number, event.previous = course.number, course.previous
        held = self.partitions.setdefault(key, {})
        found = []
        for partition in held.values():
            closed = bool(splitter.closes(partition, event))
            found.append(Delivery(partition, splitter.keep_closing or not closed, closed))
        for partition in self._opened(key, event):
            closed = bool(splitter.closes(partition, event))
            if closed and not splitter.keep_closing:
                continue  # nothing would be in it
            if partition.name in held:
                raise DataError(
                    f"the event {event.event_id!r} opens a partition that is open: `{partition.name}`",
                    "Ids of events and labels of partitions must not repeat.",
                )
            held[partition.name] = partition
            self._open += 1
            found.append(Delivery(partition, True, closed))
        course.number, course.previous = course.number + 1, event.time
        self._check_bound(event)
        return found

    def _opened(self, key: str, event: Event) -> Iterable[Partition]:
        splitter = self.splitter
        assert splitter.opens is not None
        labels = splitter.opens(event)
        value = None if splitter.key is None else event[splitter.key]
        if isinstance(labels, list | tuple):
            named = [(label, label) for label in labels]
        else:
            named = [(event.event_id, event.event_id)] if labels else []
        for name, label in named:
            full = str(name) if splitter.key is None else f"{key}/{name}"
            if splitter.key is not None or self._is_home(full, label):
                yield Partition(full, value, label, event.time)

    def _check_bound(self, event: Event) -> None:
        if self._open > self.splitter.max_open:
            oldest = min((p for some in self.partitions.values() for p in some.values()), key=lambda p: p.opened)
            raise DataError(
                f"{self._open:,} partitions are open at the event {event.event_id!r}; the oldest, `{oldest.name}`, has "
                f"{oldest.count:,} events and nothing has closed it",
                "Does the closing predicate ever hold? If so many may be open, give a larger `max_open`.",
            )

    def close(self, partition: Partition) -> None:
        """Forget a partition that is closed."""
        key = self.key_of(partition)
        del self.partitions[key][partition.name]
        self._open -= 1

    def state(self) -> Any:
        """Return the state besides the partitions, as plain data."""
        return [[key, course.number, course.previous] for key, course in self._progress.items()]

    def restore(self, state: Any, partitions: Iterable[Partition]) -> None:
        """Go on from a state that `state` returned, with these partitions open."""
        self._progress = {key: _Progress(number, previous) for key, number, previous in state}
        for partition in partitions:
            key = self.key_of(partition)
            self.partitions.setdefault(key, {})[partition.name] = partition
            self._open += 1

    def key_of(self, partition: Partition) -> str:
        """Return under which key a partition is held."""
        if self.splitter.opens is None:
            return partition.name
        return "" if self.splitter.key is None else str(partition.key)
