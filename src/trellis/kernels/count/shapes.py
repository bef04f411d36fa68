"""Tasks, and the shapes of relations between events by which passes find successors.

Arrays of events are (events,), those of tasks (tasks,), those of an index (events of all its parts,); numbers of events
and vertices are int64 or int32, flags bool. See `trellis.kernels.count.passes` for what each shape means.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class EventNeighbours(NamedTuple):
    """Of each event the first of a later time, its first successor and last predecessor, and whether it is usable."""

    later: np.ndarray  # int64 (events,)
    nearest: np.ndarray  # int64 (events,)
    latest: np.ndarray  # int64 (events,)
    usable: np.ndarray  # bool (events,)


class PassTasks(NamedTuple):
    """Ranges of events, and the part of the index that serves each: the events from `part` to `part_end`.

    `offset` is added to an event to find it in the index; the part has `width` vertices. Where tasks are `single`,
    `starts` has for each event the task that begins there, or -1; else it is empty.
    """

    lo: np.ndarray  # int64 (tasks,)
    hi: np.ndarray  # int64 (tasks,)
    first_end: np.ndarray  # int64 (tasks,)
    part: np.ndarray  # int64 (tasks,)
    part_end: np.ndarray  # int64 (tasks,)
    offset: np.ndarray  # int64 (tasks,)
    width: np.ndarray  # int64 (tasks,)
    starts: np.ndarray  # int64 (events,) or (0,)
    single: bool
    every: bool


class Tails(NamedTuple):
    """Vertices of events, first vertex and end of their successors, and begin and end of the events' own segments."""

    place: np.ndarray  # int32 (places,)
    first: np.ndarray  # int32 (places,)
    last: np.ndarray  # int32 (places,)
    own: np.ndarray  # int32 (places,)
    own_end: np.ndarray  # int32 (places,)

    @classmethod
    def of_keys(cls, place: np.ndarray, key: np.ndarray) -> Tails:
        """Return the shape in which the one vertex `key` (-1: none) holds all successors of an event."""
        one = np.int32(1)
        return cls(place, np.maximum(key, np.int32(0)), key + one, place, place + one)


class Ranges(NamedTuple):
    """Vertices of events, and ranges of vertices of their successors: in each row of `first` and `last` one of each.

    `reach` is empty, or has for each event the first one that is too late to follow it, which never falls.
    """

    place: np.ndarray  # int32 (places,)
    first: np.ndarray  # int32 (ranges, places)
    last: np.ndarray  # int32 (ranges, places)
    reach: np.ndarray  # int64 (places,) or (0,)


class Segments(NamedTuple):
    """As `Tails`, with several first vertices and ends of an event, a row for each."""

    place: np.ndarray  # int32 (places,)
    first: np.ndarray  # int32 (ranges, places)
    last: np.ndarray  # int32 (ranges, places)
    own: np.ndarray  # int32 (places,)
    own_end: np.ndarray  # int32 (places,)


class Pairs(NamedTuple):
    """As `Tails`; besides `above[y] > below[x]`. The events of each part of the index are sorted by both, falling.

    `begin` is where the segment of the successors begins. If `either`, one of both conditions is enough in it.
    """

    place: np.ndarray  # int32 (places,)
    first: np.ndarray  # int32 (places,)
    last: np.ndarray  # int32 (places,)
    own: np.ndarray  # int32 (places,)
    own_end: np.ndarray  # int32 (places,)
    above: np.ndarray  # int64 (places,)
    below: np.ndarray  # int64 (places,)
    by_above: np.ndarray  # int32 (places,)
    by_below: np.ndarray  # int32 (places,)
    begin: np.ndarray  # int32 (places,)
    either: bool
