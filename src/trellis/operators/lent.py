"""Arrays that a thread fills one after another, lent for as long as anybody looks at them."""

from __future__ import annotations

from collections import defaultdict
from sys import getrefcount
from threading import local
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

KEPT = 8  # rooms for one purpose that a thread has lent, or may fill again
UNUSED = 2  # references to a room of which no array is left: where it is kept, and that of the question


class _Rooms(local):
    """Of the thread that asks: its rooms by purpose, of which the one that was lent last stands last."""

    def __init__(self) -> None:
        self.of = defaultdict[str, list[NDArray[np.uint8]]](list)


_rooms = _Rooms()


def lent(purpose: str, number: int, type_: Any) -> NDArray[Any]:
    """Return an array, in room that nobody looks at any more, where this thread has any.

    Its cache still holds that room, and it costs no new pages.
    """
    rooms, size = _rooms.of[purpose], number * np.dtype(type_).itemsize
    for at in range(len(rooms) - 1, -1, -1):
        if getrefcount(rooms[at]) == UNUSED and len(rooms[at]) >= size:
            rooms.append(rooms.pop(at))
            break
    else:
        del rooms[: max(0, len(rooms) - KEPT + 1)]
        rooms.append(np.frombuffer(pa.allocate_buffer(size + size // 4), np.uint8))
    return rooms[-1][:size].view(type_)


def give_back() -> None:
    """Let go of what this thread keeps; arrays that are lent stay."""
    _rooms.of.clear()
