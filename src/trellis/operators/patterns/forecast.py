"""Whether an exploration will need far more memory than it may take: told early, by how it has grown so far."""

from __future__ import annotations

from collections.abc import Sequence
from math import log2

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from trellis.errors import TrellisError
from trellis.events.columns.arrow import numbers
from trellis.events.columns.ordering import group_codes
from trellis.events.slice import Slice
from trellis.plan.registers import Register, RegisterKind

Ints = NDArray[np.int64]
SUMS = (RegisterKind.SUM, RegisterKind.REAL_SUM, RegisterKind.EXACT_SUM)
FEW = 64  # values of a register that do not multiply much
SAMPLED = 16  # one match so far in so many is looked at
TOLD = 1 << 18  # matches so far, or steps between them, from which on it is told
DOUBLINGS = 4  # that are compared with as many before them
SPARE = 6  # more doublings than there is memory for, which the events that are left would bring
TIMES = 4  # as much memory as there is, which a graph would take


class HopelessError(TrellisError):
    """The error for what multiplies so fast that no other way of counting takes much less."""


def multiplies(registers: Sequence[Register], rows: Ints, events: Slice) -> bool:
    """Return whether a register in which matches so far differ may be more than could ever be told apart.

    Such are sets of many values, and sums of doubles with digits behind the point. What else there is soon has all
    values that it can have. `rows` are the registers of each match.
    """
    different = [len(np.unique(column)) for column in rows[::SAMPLED].T]
    return any(number > FEW and _has_many_values(one, events) for one, number in zip(registers, different, strict=True))


def _has_many_values(register: Register, events: Slice) -> bool:
    columns = [events.columns[name] for name in register.columns if name in events.columns]
    if not columns or len(columns) < len(register.columns):
        return False
    if register.kind is RegisterKind.SET:
        return len(np.unique(group_codes(columns)[0])) > log2(TOLD) + 2 * SPARE
    if register.kind in SUMS and pa.types.is_floating(columns[0].type):
        values = numbers(columns[0], 0.0)
        return bool((values != np.floor(values)).any())
    return False


def doubled_within(passed: Ints, size: int, here: int, end: int, most: float, usable: Ints) -> float | None:
    """Return with how many events classes double, if they will be far more than `most` as they grow; else None.

    Parameters
    ----------
    passed
        For each power of two the event with which there were more.
    size, here
        How many there are now, a power of two, and the event.
    end
        The end of the group.
    most
        How many there may be.
    usable
        For each event how many before it a variable may take.
    """
    power = size.bit_length() - 1
    if size < TOLD or power < 2 * DOUBLINGS:
        return None
    before, between, now = usable[[passed[power - 2 * DOUBLINGS], passed[power - DOUBLINGS], here]].tolist()
    early, late = between - before, now - between
    if not early or not late:
        return None
    slower, taken = max(late / early, 1.0), late
    missing = log2(max(most / size, 1)) + SPARE
    left = float(usable[end] - now)
    while missing > 0 and left > 0:  # as much more slowly again each time
        taken *= slower
        part = min(missing / DOUBLINGS, 1.0)
        left -= taken * part
        missing -= DOUBLINGS * part
    return late / DOUBLINGS if left > 0 else None


def share_before(events: Slice, lo: int, hi: int, at: int) -> float:
    """Return how many of the pairs of events of a group begin with those before one."""
    reach = np.minimum(events.until[lo:hi], hi) - np.arange(lo, hi)
    return float(reach[: at - lo].sum() / max(reach.sum(), 1))
