"""The columns that tell the window and the partition of results, for batches of one group at a time."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from trellis.events.slice import Ints
from trellis.operators.batch import PathBatch
from trellis.operators.lent import lent
from trellis.results.taken import TakenColumn

AT_HAND = 3  # groups: threads that list are in different ones


class LeadOfGroups:
    """Columns that have one value for each group, repeated as often as its longest batch so far has rows."""

    def __init__(self) -> None:
        self._known: dict[int, list[pa.Array]] = {}

    def column(self, number: int, batch: PathBatch, lead: Callable[[Ints], list[pa.Array]]) -> pa.Array:
        """Return the column with a number for a batch of one group, of which `lead` gives the values, a column each.

        It is not held: it belongs to what holds this.
        """
        group, length, known = int(batch.groups[0]), len(batch), self._known
        columns = known.get(group)
        if columns is None or len(columns[0]) < length:
            longer = 1 << (length - 1).bit_length()
            columns = [_repeated(column, longer, f"lead {i}") for i, column in enumerate(lead(batch.groups[:1]))]
            for before in [*known][: 1 - AT_HAND]:
                known.pop(before, None)
            known[group] = columns
        return columns[number][:length]


def _repeated(column: pa.Array, number: int, purpose: str) -> pa.Array:
    """Return the one value of a column so many times; see `lent` of the purpose."""
    words = TakenColumn(column).words
    if words is None:
        return pa.repeat(column[0], number)
    filled = lent(purpose, number, words.dtype)
    filled.fill(words[0])
    return pa.Array.from_buffers(column.type, number, [None, pa.py_buffer(filled)])
