"""Batches of results as Arrow arrays, made where they are asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from trellis.operators.lent import lent
from trellis.properties import cached_property
from trellis.results.taken import TakenColumn, Words, room, unsigned

if TYPE_CHECKING:
    from trellis.operators.batch import PathBatch

INT32, INT64 = pa.int32(), pa.int64()
_NONE = np.empty(0, np.int32)


class PathArrays:
    """A batch of results as Arrow arrays, made where they are asked for.

    Parameters
    ----------
    batch
        The results.
    times
        The times of events; those of the first and the last event of each result are taken together.
    """

    def __init__(self, batch: PathBatch, times: TakenColumn) -> None:
        self.batch, self._times = batch, times

    @property
    def positions(self) -> pa.Array:
        """The positions of all events."""
        return wrapped(self.batch.positions)

    def of(self, variable: int) -> tuple[PathArrays, pa.Array | None]:
        """Return the rows that have events of a variable, with these alone, and for each row which of them it is.

        That is None where it is the same row.
        """
        some, has = self.batch.of_variable(variable)
        return PathArrays(some, self._times), None if has is None else pa.array(np.cumsum(has) - 1, mask=~has)

    def lists(self, values: pa.Array) -> pa.Array:
        """Return values of all events as a list for each result."""
        offsets = pa.py_buffer(np.ascontiguousarray(self.batch.offsets, np.int32))
        return pa.Array.from_buffers(pa.list_(values.type), len(self.batch), [None, offsets], children=[values])

    @cached_property
    def _ends(self) -> tuple[Words, Words, Words] | None:
        """The length of each result, and the words of the times at which it begins and ends, in one pass."""
        from trellis.kernels.list.columns import take_ends, take_lengths

        batch, words, rows = self.batch, self._times.words, len(self.batch)
        if batch.words is not None:
            own = lent("lengths", rows, np.int64)
            take_lengths(unsigned(batch.offsets), _NONE if batch.shared is None else batch.shared, own)
            return own, batch.words.firsts, batch.words.lasts
        if batch.table is not None or batch.shared is not None or words is None:
            return None
        lengths, firsts, lasts = room(rows, np.int64), room(rows, np.int64), room(rows, np.int64)
        take_ends(words, unsigned(batch.positions), unsigned(batch.offsets), lengths, firsts, lasts)
        return lengths, firsts, lasts

    def lengths_shown(self) -> pa.Array:
        """Return the number of events of each result."""
        return whole(self.batch.lengths if self._ends is None else self._ends[0])

    def start_times(self) -> pa.Array:
        """Return the time at which each result begins."""
        return self._times.taken(self.batch.firsts) if self._ends is None else self._times.shown(self._ends[1])

    def end_times(self) -> pa.Array:
        """Return the time at which each result ends."""
        return self._times.taken(self.batch.lasts) if self._ends is None else self._times.shown(self._ends[2])

    def shared(self) -> pa.Array:
        """Return how many events each result has in common with the one before it, in the compact form."""
        assert self.batch.shared is not None
        return wrapped(self.batch.shared)

    def ranks(self) -> pa.Array:
        """Return the ranks; NULL where one does not fit 64 bits."""
        ranks = self.batch.ranks
        unknown = ranks[-1] < 0 if self.is_one_group else (ranks < 0).any()  # they rise in a group, up to those
        return pa.array(ranks, mask=ranks < 0) if unknown else whole(ranks)

    def group_numbers(self) -> pa.Array:
        """Return the group of each result."""
        return pa.array(self.batch.groups)

    @property
    def is_one_group(self) -> bool:
        """Whether all results are known to be of one group."""
        return len(self.batch) > 0 and self.batch.groups.strides == (0,)


def whole(numbers: Words) -> pa.Array:
    """Return whole numbers of 64 bits as Arrow has them, without a copy; `pa.array` takes as long as a small batch."""
    return pa.Array.from_buffers(INT64, len(numbers), [None, pa.py_buffer(np.ascontiguousarray(numbers))])


def wrapped(numbers: NDArray[Any]) -> pa.Array:
    """Return numbers as Arrow has them, without a copy where they have 32 bits."""
    return pa.Array.from_buffers(INT32, len(numbers), [None, pa.py_buffer(np.ascontiguousarray(numbers, np.int32))])
