"""The values of vertices: an array with a number for each, or sets of numbers of any size, one after another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Sets:
    """A list of numbers for each vertex: those of vertex `i` are `members[offsets[i]:offsets[i + 1]]`."""

    offsets: Ints
    members: NDArray[Any]

    @classmethod
    def of(cls, lists: Sequence[NDArray[Any]], dtype: Any = np.int64) -> Sets:
        """Return arrays as sets, in their order."""
        offsets = np.zeros(len(lists) + 1, np.int64)
        np.cumsum([len(one) for one in lists], out=offsets[1:])
        return cls(offsets, np.concatenate([np.zeros(0, dtype), *lists]))

    @classmethod
    def empty(cls, number: int, dtype: Any = np.int64) -> Sets:
        """Return so many empty sets."""
        return cls(np.zeros(number + 1, np.int64), np.zeros(0, dtype))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, place: int) -> NDArray[Any]:
        return self.members[self.offsets[place] : self.offsets[place + 1]]

    @property
    def sizes(self) -> Ints:
        """How many members each has."""
        return np.diff(self.offsets)


Values = NDArray[Any] | Sets


def ranges(offsets: Ints, rows: Ints) -> tuple[Ints, Ints]:
    """Return the places that some rows of a list of lists have, one row after another, and where each row begins."""
    begins = np.zeros(len(rows) + 1, np.int64)
    np.cumsum(offsets[rows + 1] - offsets[rows], out=begins[1:])
    places = np.arange(begins[-1]) + np.repeat(offsets[rows] - begins[:-1], np.diff(begins))
    return places, begins


def take(values: Values, places: Ints) -> Values:
    """Return the values at some places."""
    if not isinstance(values, Sets):
        return values[places]
    found, offsets = ranges(values.offsets, places)
    return Sets(offsets, values.members[found])


def joined(parts: Sequence[Values]) -> Values:
    """Return values one after another."""
    if len(parts) == 1:
        return parts[0]
    sets = [part for part in parts if isinstance(part, Sets)]
    if not sets:
        return np.concatenate([part for part in parts if not isinstance(part, Sets)])
    offsets = np.concatenate([[0], np.cumsum(np.concatenate([part.sizes for part in sets]))])
    return Sets(offsets, np.concatenate([part.members for part in sets]))


def put(values: Values, places: Ints, new: Values) -> Values:
    """Return values with others at some places, which are in ascending order; an array is changed itself."""
    if not isinstance(values, Sets):
        values[places] = new
        return values
    assert isinstance(new, Sets)
    sizes = values.sizes
    sizes[places] = new.sizes
    offsets = np.zeros(len(values) + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    members = np.empty(offsets[-1], values.members.dtype)
    kept = np.ones(len(values), np.bool_)
    kept[places] = False
    members[ranges(offsets, np.flatnonzero(kept))[0]] = take(values, np.flatnonzero(kept)).members  # type: ignore[union-attr]
    members[ranges(offsets, places)[0]] = new.members
    return Sets(offsets, members)


def differ(old: Values, new: Values) -> Bools:
    """Return where two values are not the same; NaN is the same as NaN."""
    if not isinstance(old, Sets):
        return (old != new) & ~((old != old) & (new != new))
    assert isinstance(new, Sets)
    other = old.sizes != new.sizes
    same = np.flatnonzero(~other)
    pairs, begins = ranges(old.offsets, same)
    unequal = old.members[pairs] != new.members[ranges(new.offsets, same)[0]]
    other[same] = np.diff(np.concatenate([[0], np.cumsum(unequal)])[begins]) > 0
    return other


def to_arrow(values: Values) -> pa.Array:
    """Return values as an Arrow array."""
    if not isinstance(values, Sets):
        return pa.array(values)
    return pa.LargeListArray.from_arrays(pa.array(values.offsets), pa.array(values.members))


def from_arrow(array: pa.Array) -> Values:
    """Return the values that `to_arrow` wrote; they can be changed."""
    if not pa.types.is_large_list(array.type):
        return np.array(array.to_numpy(zero_copy_only=False))
    offsets = array.offsets.to_numpy()
    return Sets(offsets - offsets[0], array.flatten().to_numpy())
