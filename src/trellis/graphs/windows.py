"""Splitters for the operators that people know: windows, sequences, AND, OR and the aperiodic operator.

Each is a pair of predicates, one that opens partitions and one that closes them; nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from trellis.errors import UsageError
from trellis.graphs.events import Event, duration
from trellis.graphs.splitter import CLOSE, Partition, Splitter

Holds = Callable[[Event], bool]


def time_windows(length: str | int, slide: str | int | None = None, **options: Any) -> Splitter:
    """Return a splitter into windows of time, `[start, start + length)` for each multiple of `slide`.

    A window without events is not opened. It closes at the first event behind it, or with the input.

    Parameters
    ----------
    length, slide
        Durations, such as `"10 minutes"`, or numbers where times are numbers; `slide` is `length` by default.
    options
        Those of `Splitter.by_predicates`, such as `key`.
    """
    size, step = duration(length), duration(length if slide is None else slide)
    if size <= 0 or step <= 0:
        raise UsageError("a window has no length, or no slide", "Both must be larger than 0.")
    opens, closes = _WindowOpens(size, step), _WindowCloses(size)
    found = Splitter.by_predicates(opens, closes, keep_closing=False, **{"at_end": CLOSE, **options})
    return replace(found, windows=(size, step))


@dataclass(frozen=True)
class _WindowOpens:
    size: Any
    step: Any

    def __call__(self, event: Event) -> list[Any]:
        """Return the beginnings of the windows that hold the event and not the one before it."""
        first = (event.time - self.size) // self.step + 1
        if event.previous is not None:
            first = max(first, event.previous // self.step + 1)
        last = event.time // self.step
        return [number * self.step for number in range(int(first), int(last) + 1)]


@dataclass(frozen=True)
class _WindowCloses:
    size: Any

    def __call__(self, partition: Partition, event: Event) -> bool:
        return bool(event.time >= partition.label + self.size)


def count_windows(size: int, slide: int | None = None, **options: Any) -> Splitter:
    """Return a splitter into windows of so many events, one from each `slide`-th event on.

    Parameters
    ----------
    size, slide
        Numbers of events; `slide` is `size` by default.
    options
        Those of `Splitter.by_predicates`.
    """
    step = size if slide is None else slide
    if size < 1 or step < 1:
        raise UsageError(f"a window of {size} events every {step} events cannot be", "Both must be at least 1.")
    return Splitter.by_predicates(
        lambda event: event.number % step == 0,
        lambda partition, event: partition.count + 1 >= size,
        **{"at_end": CLOSE, **options},
    )


def sequence(*steps: Holds, **options: Any) -> Splitter:
    """Return a splitter for a sequence: opened by its first step, closed when all the others have come in order."""
    _check_steps(steps, 2)

    def closes(partition: Partition, event: Event) -> bool:
        reached: int = partition.memory.get("steps", 0)
        if steps[reached](event):
            partition.memory["steps"] = reached = reached + 1
        return reached == len(steps)

    return Splitter.by_predicates(steps[0], closes, **options)


def all_of(*parts: Holds, **options: Any) -> Splitter:
    """Return a splitter for AND: opened by any of its parts, closed when all have come, in whatever order."""
    _check_steps(parts, 2)

    def closes(partition: Partition, event: Event) -> bool:
        seen: list[int] = partition.memory.setdefault("seen", [])
        seen += [i for i, holds in enumerate(parts) if i not in seen and holds(event)]
        return len(seen) == len(parts)

    return Splitter.by_predicates(lambda event: any(holds(event) for holds in parts), closes, **options)


def any_of(*parts: Holds, **options: Any) -> Splitter:
    """Return a splitter for OR: each event that fits one of its parts is a partition of its own."""
    _check_steps(parts, 1)
    return Splitter.by_predicates(
        lambda event: any(holds(event) for holds in parts), lambda partition, event: True, **options
    )


def between(opening: Holds, closing: Holds, **options: Any) -> Splitter:
    """Return a splitter for the aperiodic operator: what comes from an opening event to a closing one, with both."""
    return Splitter.by_predicates(
        opening, lambda partition, event: partition.count > 0 and bool(closing(event)), **options
    )


def periodic(opening: Holds, every: str | int | float, closing: Holds, **options: Any) -> Splitter:
    """Return a splitter for the periodic operator: from an opening event to a closing one, called again and again.

    The operator of a partition is called by `on_time(time, "every")` so long after its opening event, and then each
    time as long after the last call, until a closing event comes.
    """
    return between(opening, closing, every=every, **options)


def _check_steps(steps: tuple[Holds, ...], least: int) -> None:
    if len(steps) < least:
        raise UsageError(f"{len(steps)} predicates are given", f"Give at least {least}, each on an event.")
