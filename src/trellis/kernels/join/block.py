"""Runs the instructions of a condition on many events at once: one of its events is each of a block in turn.

What does not depend on that event is computed once for the block: its stride is 0, that of the rest 1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba.extending import register_jitable

from trellis.kernels.expression import program as p
from trellis.kernels.jit import njit

# No function here makes or keeps an array, so references are not counted: that took most of the time.
lean = njit(cache=True, nogil=True, _nrt=False)
BLOCK = 256


class BlockScratch(NamedTuple):
    """Scratch of programs over blocks.

    Attributes
    ----------
    whole, real, there
        int64, float64, bool (longest program, `BLOCK`): the values that each instruction leaves.
    stride
        int64 (longest program,): 1 where they differ in a block, 0 where there is one.
    events
        int64 (`BLOCK`,): the events of the block.
    """

    whole: np.ndarray
    real: np.ndarray
    there: np.ndarray
    stride: np.ndarray
    events: np.ndarray


@register_jitable
def _compared(op, x, y):
    """Return whether numbers compare as `op` says, without a branch for each pair."""
    less, equal = x < y, x == y
    if op == p.EQUAL:
        return equal
    if op == p.DIFFERENT:
        return not equal
    if op == p.LESS:
        return less
    if op == p.AT_MOST:
        return less or equal
    if op == p.GREATER:
        return not (less or equal)
    return not less


@lean
def _compare_columns(programs, at, chosen, slot, size, i, scratch):
    """Compare two columns, of the block or of an event that is chosen."""
    op, a, one = programs.code[at + 1], programs.code[at + 2], programs.code[at + 3]
    b, other = programs.code[at + 4], programs.code[at + 5]
    ints, known, there, whole = programs.ints, programs.there, scratch.there, scratch.whole
    vary, vary_other = one == slot, other == slot
    e, f = chosen[one] if not vary else 0, chosen[other] if not vary_other else 0
    scratch.stride[i] = 1 if vary or vary_other else 0
    for k in range(size if vary or vary_other else 1):
        x = scratch.events[k] if vary else e
        y = scratch.events[k] if vary_other else f
        there[i, k] = x >= 0 and y >= 0 and known[a, x] and known[b, y]
        whole[i, k] = 1 if there[i, k] and _compared(op, ints[a, x], ints[b, y]) else 0


@lean
def _load(programs, at, chosen, slot, size, i, scratch):
    """Load a column of the block, or of an event that is chosen."""
    op, a, ref = programs.code[at], programs.code[at + 1], programs.code[at + 2]
    vary = ref == slot
    scratch.stride[i] = 1 if vary else 0
    fixed = chosen[ref] if not vary else 0
    for k in range(size if vary else 1):
        e = scratch.events[k] if vary else fixed
        if op == p.LOAD_WHOLE:
            scratch.there[i, k] = e >= 0 and programs.there[a, e]
            scratch.whole[i, k] = programs.ints[a, e]
        else:
            scratch.real[i, k] = programs.reals[a, e] if e >= 0 else np.nan
            scratch.there[i, k] = not np.isnan(scratch.real[i, k])


@lean
def _on_reals(op, size, i, a, b, digits, scratch):
    """Compute with doubles, NaN being NULL; return whether rounding needs the decimal that is written."""
    real, there, stride = scratch.real, scratch.there, scratch.stride
    misfit = False
    for k in range(size):
        v = real[a, k * stride[a]]
        w = real[b, k * stride[b]]
        if op == p.ADD_REAL:
            u = v + w
        elif op == p.SUBTRACT_REAL:
            u = v - w
        elif op == p.MULTIPLY_REAL:
            u = v * w
        elif op == p.DIVIDE_REAL:
            u = v / w if w != 0.0 else np.nan
        elif op == p.REMAINDER_REAL:
            u = np.fmod(v, w) if w != 0.0 else np.nan
        elif op == p.NEGATIVE_REAL:
            u = -v
        elif op == p.ABSOLUTE_REAL:
            u = abs(v)
        elif op == p.FLOOR:
            u = np.floor(v)
        elif op == p.CEIL:
            u = np.ceil(v)
        elif op == p.ROOT:
            u = np.sqrt(v) if v >= 0.0 else np.nan
        elif op == p.LOGARITHM:
            u = np.log(v) if v > 0.0 else np.nan
        elif op == p.EXPONENTIAL:
            u = np.exp(v)
        else:
            u = p._rounded(v, digits) if there[a, k * stride[a]] else np.nan
            misfit |= there[a, k * stride[a]] and np.isnan(u)
        there[i, k] = there[a, k * stride[a]] and there[b, k * stride[b]] and not np.isnan(u)
        real[i, k] = u
    return misfit


@lean
def _on_wholes(op, size, i, a, b, constant, scratch):
    """Compute with integers; return whether one leaves 64 bits."""
    whole, there, stride = scratch.whole, scratch.there, scratch.stride
    misfit = False
    for k in range(size):
        known = there[a, k * stride[a]] and (op >= p.NEGATIVE or there[b, k * stride[b]])
        x = whole[a, k * stride[a]]
        y = constant if op == p.SCALE else whole[b, k * stride[b]] if op < p.NEGATIVE else np.int64(0)
        r = np.int64(0)
        if known:
            if op == p.ADD:
                misfit |= x > p.HIGHEST - y if y > 0 else x < p.LOWEST - y
                r = x + y
            elif op == p.SUBTRACT:
                misfit |= x < p.LOWEST + y if y > 0 else x > p.HIGHEST + y
                r = x - y
            elif op in (p.MULTIPLY, p.SCALE):
                misfit |= p._times_overflows(x, y)
                r = x * y
            elif op == p.REMAINDER:
                known = y != 0
                if y not in (0, -1):
                    r = x % y
                    if r != 0 and (r < 0) != (x < 0):
                        r -= y
            else:
                misfit |= x == p.LOWEST
                r = -x if op == p.NEGATIVE or x < 0 else x
        there[i, k], whole[i, k] = known, r
    return misfit


@lean
def _compare(programs, at, size, i, scratch):
    """Compare two values that instructions have left; return whether a decimal is too wide for that."""
    op, how, a, b = programs.code[at], programs.code[at + 1], programs.code[at + 2], programs.code[at + 3]
    whole, real, there, stride = scratch.whole, scratch.real, scratch.there, scratch.stride
    left = right = np.int64(1)
    decimal = op == p.COMPARE_MIXED and programs.code[at + 4] >= 0
    power = programs.real[programs.code[at + 4]] if decimal else 1.0
    if op == p.COMPARE_SCALED:
        left, right = programs.code[at + 4], programs.code[at + 5]
    for k in range(size):
        c, d = k * stride[a], k * stride[b]
        known = there[a, c] and there[b, d]
        if op == p.COMPARE_WHOLE:
            holds = _compared(how, whole[a, c], whole[b, d])
        elif op == p.COMPARE_REAL:
            holds = _compared(how, real[a, c], real[b, d])
        elif not known:
            holds = False
        elif decimal:
            if not -p.EXACT <= whole[a, c] <= p.EXACT:
                return True
            holds = _compared(how, p._sign_of_decimal(whole[a, c], real[b, d], power), 0)
        elif op == p.COMPARE_MIXED:
            holds = _compared(how, p._sign_of_mixed(whole[a, c], real[b, d]), 0)
        else:
            holds = _compared(how, p._sign_of_scaled(whole[a, c], left, whole[b, d], right), 0)
        there[i, k] = known
        whole[i, k] = 1 if known and holds else 0
    return False


@lean
def _choose(size, i, test, one, other, scratch):
    """Take one value where a test is true, else the other."""
    whole, real, there, stride = scratch.whole, scratch.real, scratch.there, scratch.stride
    for k in range(size):
        c = k * stride[test]
        chosen = one if there[test, c] and whole[test, c] == 1 else other
        d = k * stride[chosen]
        there[i, k], whole[i, k], real[i, k] = there[chosen, d], whole[chosen, d], real[chosen, d]


@lean
def _logic(op, size, i, a, b, scratch):
    """Join, negate or choose values."""
    whole, real, there, stride = scratch.whole, scratch.real, scratch.there, scratch.stride
    decisive = 0 if op == p.AND else 1
    for k in range(size):
        c, d = k * stride[a], k * stride[b]
        if op in (p.AND, p.OR):
            decided = (there[a, c] and whole[a, c] == decisive) or (there[b, d] and whole[b, d] == decisive)
            there[i, k] = decided or (there[a, c] and there[b, d])
            whole[i, k] = decisive if decided else 1 - decisive
        elif op == p.NOT:
            there[i, k], whole[i, k] = there[a, c], 1 - whole[a, c]
        elif op == p.IS_NULL:
            there[i, k], whole[i, k] = True, 0 if there[a, c] else 1
        elif op == p.COALESCE_WHOLE:
            there[i, k], whole[i, k] = there[a, c] or there[b, d], whole[a, c] if there[a, c] else whole[b, d]
        else:
            there[i, k], real[i, k] = there[a, c] or there[b, d], real[a, c] if there[a, c] else real[b, d]


@lean
def run_block(programs, program, chosen, slot, size, scratch):
    """Run a program on the events of a block, bound to a slot, and those that are chosen for others.

    Its truth is in the row of its last instruction, which is returned; -1 after a number has left 64 bits.
    """
    code, stride, there = programs.code, scratch.stride, scratch.there
    i = -1
    for at in range(code[program], code[program + 1], p.FIELDS):
        i += 1
        op, a, b = code[at], code[at + 1], code[at + 2]
        if op == p.COMPARE_COLUMNS:
            _compare_columns(programs, at, chosen, slot, size, i, scratch)
        elif op in (p.LOAD_WHOLE, p.LOAD_REAL):
            _load(programs, at, chosen, slot, size, i, scratch)
        elif op in (p.CONSTANT_WHOLE, p.CONSTANT_REAL, p.NULL):
            stride[i] = 0
            there[i, 0], scratch.whole[i, 0], scratch.real[i, 0] = op != p.NULL, 0, 0.0
            if op == p.CONSTANT_WHOLE:
                scratch.whole[i, 0] = a
            elif op == p.CONSTANT_REAL:
                scratch.real[i, 0] = programs.real[a]
                there[i, 0] = not np.isnan(programs.real[a])
        elif p.COMPARE_WHOLE <= op <= p.COMPARE_SCALED:
            stride[i] = max(stride[b], stride[code[at + 3]])
            if _compare(programs, at, size if stride[i] else 1, i, scratch):
                return -1
        elif p.ADD <= op <= p.SCALE:
            constant = b if op == p.SCALE else np.int64(0)
            other = a if op >= p.NEGATIVE else b
            stride[i] = max(stride[a], stride[other])
            if _on_wholes(op, size if stride[i] else 1, i, a, other, constant, scratch):
                return -1
        elif op == p.TO_REAL:
            stride[i] = stride[a]
            for k in range(size if stride[i] else 1):
                there[i, k], number = there[a, k], scratch.whole[a, k]
                scratch.real[i, k] = np.float64(number)
                if b >= 0:
                    if there[i, k] and not -p.EXACT <= number <= p.EXACT:
                        return -1
                    scratch.real[i, k] /= programs.real[b]
        elif p.ADD_REAL <= op <= p.ROUND:
            other = a if op >= p.NEGATIVE_REAL else b
            stride[i] = max(stride[a], stride[other])
            if _on_reals(op, size if stride[i] else 1, i, a, other, b, scratch):
                return -1
        elif op in (p.CHOOSE_WHOLE, p.CHOOSE_REAL):
            stride[i] = max(stride[a], stride[b], stride[code[at + 3]])
            _choose(size if stride[i] else 1, i, a, b, code[at + 3], scratch)
        else:
            other = a if op in (p.NOT, p.IS_NULL) else b
            stride[i] = max(stride[a], stride[other])
            _logic(op, size if stride[i] else 1, i, a, other, scratch)
    return i
