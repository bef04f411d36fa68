"""The progress of a match in the automaton of its pattern, and the events with which it goes on.

Events are offered in the order (time, id). Each NOT comes out as a guard between two times, that of what stands before
it and that of what comes after it; a time is None at an edge of the pattern.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from trellis.plan.automaton import Automaton, Guard, LazyAutomaton


@dataclass(frozen=True, slots=True)
class TimeGuard:
    """No event that fits one of the variables `absent` strictly between two times."""

    absent: tuple[str, ...]
    after: Any
    before: Any


@dataclass(frozen=True, slots=True)
class Progress:
    """A state of the automaton, and the times of the variables' last events that the rest of the match asks for."""

    state: int = 0
    times: tuple[tuple[str, Any], ...] = ()


class Progresses:
    """Leads from one progress to the next."""

    def __init__(self, automaton: Automaton) -> None:
        self._automaton = LazyAutomaton(automaton.root)

    def next_variables(self, progress: Progress) -> frozenset[str]:
        """Return the variables that may take the next event."""
        return frozenset(transition.variable for transition in self._automaton.transitions(progress.state))

    def open_variables(self, progress: Progress) -> frozenset[str]:
        """Return the variables that may still take an event."""
        return self._automaton.open(progress.state)

    def steps(self, progress: Progress, variable: str, time: Any) -> Iterator[tuple[Progress, tuple[TimeGuard, ...]]]:
        """Yield where an event at `time` bound to a variable leads, and the guards that it closes."""
        times = dict(progress.times)
        for one in self._automaton.transitions(progress.state):
            if one.variable == variable and all(times[name] < time for name in one.after if name in times):
                timed = self._automaton.timed(one.target)
                kept = tuple((name, at) for name, at in sorted((times | {variable: time}).items()) if name in timed)
                yield Progress(one.target, kept), tuple(_guard(guard, times, time) for guard in one.guards)

    def endings(self, progress: Progress) -> Iterator[tuple[TimeGuard, ...]]:
        """Yield the guards that stay open, for each way in which the match may end here; none if it may not."""
        times = dict(progress.times)
        for ending in self._automaton.endings(progress.state):
            yield tuple(_guard(guard, times, None) for guard in ending.guards)


def _guard(guard: Guard, times: dict[str, Any], before: Any) -> TimeGuard:
    return TimeGuard(guard.absent, max((times[name] for name in guard.after if name in times), default=None), before)
