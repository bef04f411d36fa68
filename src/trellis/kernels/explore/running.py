"""Registers that run along with the events of a variable: how many there are, their sum, the best one."""

from __future__ import annotations

import numpy as np

from trellis.kernels.explore import tables as t
from trellis.kernels.explore.lists import with_summand
from trellis.kernels.expression.program import HIGHEST, LOWEST
from trellis.kernels.expression.sums import as_bits, as_real
from trellis.kernels.jit import njit

MISSING = -HIGHEST  # the code of an event without a value


@njit(cache=True, nogil=True, _nrt=False, inline="always")
def is_simple(kind):
    """Return whether a running register is a number that nothing but its value and an event decide."""
    return kind >= t.TALLY and kind not in (t.SUM, t.EXACT_SUM, t.MET)


@njit(cache=True, nogil=True, _nrt=False)
def run_simply(tables, columns, register, kind, value, is_bound, event):
    """Return the value of a register that is simple, of some `kind`, with one more event; see `running`."""
    r = register
    own = columns[tables[t.R_CODES] + r, event]
    there = columns[tables[t.R_ALIKE] + r, event]
    if kind == t.BEST:
        known = is_bound and value >= 0
        if own == MISSING or (known and columns[tables[t.R_CODES] + r, value] >= own):
            return value if known else np.int64(t.NONE)
        return there
    if kind == t.REAL_SUM:
        total = value if is_bound else np.int64(0)
        return as_bits(as_real(total) + as_real(own)) if there else total
    count = value if value > 0 and (is_bound or kind == t.LENGTH) else np.int64(0)
    most = t.at(tables, t.R_NTH, r)
    if most < 0:
        return (count + 1) % -most
    return count + 1 if (kind != t.NUMBER or there) and (most == 0 or count < most) else count


@njit(cache=True, nogil=True, _nrt=False)
def running(tables, columns, lists, scratch, register, value, is_bound, event):
    """Return the value of a running register with one more event.

    Parameters
    ----------
    tables, columns, lists, scratch, event
        See the package; a sum that leaves 64 bits is noted in `scratch`.
    register, value, is_bound
        Its place in the tables, its value, and whether the variable has events so far.
    """
    r = register
    kind = t.at(tables, t.R_KIND, r)
    if is_simple(kind):
        return run_simply(tables, columns, r, kind, value, is_bound, event)
    own = columns[tables[t.R_CODES] + r, event]
    total = value if is_bound else np.int64(0)
    if kind == t.SUM:
        if total > HIGHEST - own if own > 0 else total < LOWEST - own:
            scratch.decided[tables[t.TERMS]] = -1 - t.at(tables, t.R_SLOT, r)
            return np.int64(0)
        return total + own
    if not columns[tables[t.R_ALIKE] + r, event]:
        return total
    return with_summand(lists, total if total > 0 else 0, own, scratch.members)
