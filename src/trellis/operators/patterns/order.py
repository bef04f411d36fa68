"""Results in their order where the same events may be bound to different variables.

Results are ordered by their events first and by their variables only where all events are the same, so the paths of an
event graph are not in their order vertex by vertex: a walk goes over events, with all vertices that a sequence of
events can have reached, and the ways to bind them are told apart when the sequence is complete.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Path = list[int]


class EventOrder:
    """The paths of one group: vertices `[lo, hi)` of a graph, in the order of their events."""

    def __init__(self, offsets: Ints, successors: NDArray[np.int32], events: Ints, lo: int, hi: int) -> None:
        self._after = [successors[offsets[v] : offsets[v + 1]].tolist() for v in range(lo, hi)]
        self._lo, self._events = lo, events[lo:hi].tolist()
        entered = {n for row in self._after for n in row}
        self._starts = [v for v in range(lo, hi) if v not in entered]
        self._ways = [0] * (hi - lo)  # paths from each vertex to an end
        for v in range(hi - lo - 1, -1, -1):
            self._ways[v] = sum(self._ways[n - lo] for n in self._after[v]) or 1

    def paths(self, begin: int, end: int, least: int, most: int) -> Iterator[Path]:
        """Yield the paths with the ranks `[begin, end)` among those of `least` to `most` vertices, in their order."""
        bounded = least > 1 or most < len(self._events)
        left, wanted = begin, end - begin
        for path in self._walk(self._next(None), [], most, 0 if bounded else begin):
            if len(path) < least:
                continue
            if bounded and left > 0:
                left -= 1
                continue
            if wanted <= 0:
                return
            wanted -= 1
            yield path

    def _next(self, level: dict[int, int] | None) -> list[dict[int, int]]:
        """Return the vertices that events lead to from those of a level, or at first, with the number of ways to each.

        There is a level for each event, in their order.
        """
        found: dict[int, dict[int, int]] = {}
        for vertex, ways in ({-1: 1} if level is None else level).items():
            for after in self._starts if level is None else self._after[vertex - self._lo]:
                at = found.setdefault(self._events[after - self._lo], {})
                at[after] = at.get(after, 0) + ways
        return [dict(sorted(found[event].items())) for event in sorted(found)]

    def _walk(self, steps: list[dict[int, int]], levels: list[dict[int, int]], most: int, skip: int) -> Iterator[Path]:
        """Yield the paths over sequences of events, without the first `skip`."""
        stack = [iter(steps)]
        while stack:
            level = next(stack[-1], None)
            if level is None:
                stack.pop()
                if levels:
                    levels.pop()
                continue
            size = sum(ways * self._ways[v - self._lo] for v, ways in level.items())
            if skip >= size:
                skip -= size
                continue
            levels.append(level)
            ends = sum(ways for v, ways in level.items() if not self._after[v - self._lo])
            if skip >= ends:
                skip -= ends
            else:
                for path in self._bindings(levels):
                    if skip:
                        skip -= 1
                    else:
                        yield path
            stack.append(iter(self._next(level) if len(levels) < most else []))

    def _bindings(self, levels: list[dict[int, int]]) -> Iterator[Path]:
        """Yield the paths along a sequence of events that end at its last one, in the order of their variables."""
        useful = [{v for v in levels[-1] if not self._after[v - self._lo]}]
        for level in reversed(levels[:-1]):
            useful.append({v for v in level if not useful[-1].isdisjoint(self._after[v - self._lo])})
        useful.reverse()

        def along(path: Path) -> Iterator[Path]:
            if len(path) == len(useful):
                yield list(path)
                return
            after = self._after[path[-1] - self._lo] if path else sorted(useful[0])
            for vertex in after:
                if vertex in useful[len(path)]:
                    path.append(vertex)
                    yield from along(path)
                    path.pop()

        return along([])
