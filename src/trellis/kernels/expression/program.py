"""Runs the instructions of a condition on chosen events.

Numbers of different types are compared exactly. A decimal is a whole number of units of its last digit.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba.extending import register_jitable

from trellis.kernels.expression.sums import as_real, leaves_doubles, rounded_mean, rounded_sum
from trellis.kernels.jit import njit

EQUAL, DIFFERENT, LESS, AT_MOST, GREATER, AT_LEAST = range(6)
(
    COMPARE_COLUMNS, LOAD_WHOLE, LOAD_REAL, CONSTANT_WHOLE, CONSTANT_REAL, NULL, COMPARE_WHOLE, COMPARE_REAL,
    COMPARE_MIXED, COMPARE_SCALED, ADD, SUBTRACT, MULTIPLY, REMAINDER, NEGATIVE, ABSOLUTE, SCALE, ADD_REAL,
    SUBTRACT_REAL, MULTIPLY_REAL, DIVIDE_REAL, REMAINDER_REAL, NEGATIVE_REAL, ABSOLUTE_REAL, FLOOR, CEIL, ROOT,
    LOGARITHM, EXPONENTIAL, ROUND, TO_REAL, AND, OR, NOT, IS_NULL, COALESCE_WHOLE, COALESCE_REAL, CHOOSE_WHOLE,
    CHOOSE_REAL, LOAD_NUMBER, LOAD_SUM, LOAD_MEAN, LOAD_REAL_SUM, LOAD_EXACT_SUM, LOAD_EXACT_MEAN, IN_LIST,
) = range(46)  # fmt: skip
FALSE, TRUE, MISFIT = 0, 1, 2  # the answers; MISFIT: a number leaves 64 bits
LOWEST, HIGHEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max
EXACT = 1 << 53  # doubles hold all integers up to here
LARGEST_WHOLE = float(1 << 52)  # from here on doubles have no digits behind the point
SMALL = 1 << 31  # products of two such numbers stay within 64 bits
FIELDS = 6


class Programs(NamedTuple):
    """Programs and the columns that they read.

    Attributes
    ----------
    code
        int64: where each program begins, and where the last ends; then the instructions, `FIELDS` numbers each: the
        operation, and its operands by their places in the program, or as they are.
    real
        float64: constants.
    ints, there
        int64, bool (columns, events + 1): whole numbers, microseconds, codes of texts; and where they are not NULL.
        The last row, which -1 names as well, stands for no event.
    reals
        float64 (columns, events + 1): doubles; NaN is NULL.
    values, ends
        Lists that registers name by their numbers: their values one after another, and where each ends.
    """

    code: np.ndarray  # int64 (room,)
    real: np.ndarray  # float64 (room,)
    ints: np.ndarray
    there: np.ndarray
    reals: np.ndarray
    values: np.ndarray  # int64 (room,)
    ends: np.ndarray  # int64 (room,)


@register_jitable
def compares(op, x, y):
    """Return whether two numbers compare as `op` says."""
    if op == EQUAL:
        return x == y
    if op == DIFFERENT:
        return x != y
    if op == LESS:
        return x < y
    if op == AT_MOST:
        return x <= y
    if op == GREATER:
        return x > y
    return x >= y


@register_jitable
def _sign_of_mixed(x, y):
    """Return the sign of an integer less a double, exactly."""
    if y >= 9223372036854775808.0:
        return -1
    if y < -9223372036854775808.0:
        return 1
    floor = np.floor(y)
    below = np.int64(floor)
    if x != below:
        return 1 if x > below else -1
    return -1 if y > floor else 0


@register_jitable
def _sign_of_decimal(x, y, power):
    """Return the sign of the decimal `x / power` less a double, exactly, for numbers that doubles hold."""
    quotient = x / power
    if quotient != y:
        return 1 if quotient > y else -1
    product = y * power  # what rounding takes away from it, by the products of the upper and lower bits (Dekker)
    big = 134217729.0 * y
    y_high = big - (big - y)
    big = 134217729.0 * power
    power_high = big - (big - power)
    y_low, power_low = y - y_high, power - power_high
    lost = ((y_high * power_high - product) + y_high * power_low + y_low * power_high) + y_low * power_low
    rest = (np.float64(x) - product) - lost
    return 1 if rest > 0.0 else -1 if rest < 0.0 else 0


@register_jitable
def _in_units(number, scale, unit, digits):
    """Return the double nearest to `number / scale` units; both are whole, so one division rounds once."""
    return number / (scale * unit) if digits >= 0 else number * unit / scale


@register_jitable
def _rounded(value, digits):
    """Round half away from zero, as the columns do; NaN where only the shortest decimal tells."""
    size, unit = abs(value), 10.0 ** abs(digits)
    units = size * unit if digits >= 0 else size
    if units >= 2.0 * LARGEST_WHOLE if digits >= 0 else np.isinf(size):
        return value
    if units * 16.0 >= LARGEST_WHOLE:
        return np.nan
    whole = np.floor(size * unit if digits >= 0 else size / unit)
    if _in_units(whole, 1.0, unit, digits) > size:
        whole -= 1.0
    if _in_units(whole + 1.0, 1.0, unit, digits) <= size:
        whole += 1.0
    if size >= _in_units((2.0 * whole + 1.0) * 5.0, 10.0, unit, digits):
        whole += 1.0
    found = _in_units(whole, 1.0, unit, digits)
    return -found if value < 0.0 else found


@register_jitable
def _times_overflows(x, y):
    """Return whether a product leaves 64 bits; it is not computed, since LLVM takes it for granted that none does."""
    if (-SMALL < x < SMALL and -SMALL < y < SMALL) or x == 0 or y == 0:
        return False
    if x == LOWEST or y == LOWEST:
        return x != 1 and y != 1
    room = np.uint64(HIGHEST) + np.uint64(1 if (x < 0) != (y < 0) else 0)
    return np.uint64(abs(x)) > room // np.uint64(abs(y))


@register_jitable
def _sign_of_scaled(x, left, y, right):
    """Return the sign of `x * left - y * right`, exactly; one of the powers of ten `left` and `right` is 1."""
    if left != 1 and _times_overflows(x, left):
        return 1 if x > 0 else -1
    if right != 1 and _times_overflows(y, right):
        return -1 if y > 0 else 1
    x, y = x * left, y * right
    return 1 if x > y else -1 if x < y else 0


@register_jitable
def _is_in_list(programs, event, number, own, of):
    """Return whether the value of an event is among those of a list of events: 1, 0, or -1 for NULL."""
    begin = programs.ends[number - 1] if number > 0 else 0
    end = programs.ends[number] if number > 0 else begin
    answer = 0
    for k in range(begin, end):
        member = programs.values[k]
        if programs.there[of, member]:
            if not programs.there[own, event]:
                return -1
            if programs.ints[of, member] == programs.ints[own, event]:
                answer = 1
    return answer


@register_jitable
def is_comparison(code, program):
    """Return whether a program does nothing but compare two columns."""
    return code[program + 1] == code[program] + FIELDS and code[code[program]] == COMPARE_COLUMNS


@njit(cache=True, nogil=True, _nrt=False)
def is_true(programs, program, events, at, whole, real, there):
    """Return whether a program is `TRUE` of some events, `FALSE` (or NULL), or has a `MISFIT`."""
    code = programs.code
    p, end = code[program], code[program + 1]
    if is_comparison(code, program):
        e, f = events[at + code[p + 3]], events[at + code[p + 5]]
        if not programs.there[code[p + 2], e] or not programs.there[code[p + 4], f]:
            return FALSE
        return TRUE if compares(code[p + 1], programs.ints[code[p + 2], e], programs.ints[code[p + 4], f]) else FALSE
    return _run(programs, p, end, events, at, whole, real, there)


@njit(cache=True, nogil=True, _nrt=False)
def _run(programs, begin, end, events, at, whole, real, there):
    """Run the instructions from `begin` to `end`; see `is_true`."""
    code, ints, known, reals = programs.code, programs.ints, programs.there, programs.reals
    i = -1
    for p in range(begin, end, FIELDS):
        i += 1
        op, a, b, c = code[p], code[p + 1], code[p + 2], code[p + 3]
        if op == LOAD_WHOLE:
            e = events[at + b]
            there[i], whole[i] = known[a, e], ints[a, e]
        elif op == LOAD_REAL:
            e = events[at + b]
            real[i] = reals[a, e]
            there[i] = not np.isnan(real[i])
        elif op == COMPARE_COLUMNS:
            e, f = events[at + c], events[at + code[p + 5]]
            there[i] = known[b, e] and known[code[p + 4], f]
            whole[i] = 1 if there[i] and compares(a, ints[b, e], ints[code[p + 4], f]) else 0
        elif op == CONSTANT_WHOLE:
            whole[i], there[i] = a, True
        elif op == CONSTANT_REAL:
            real[i] = programs.real[a]
            there[i] = not np.isnan(real[i])
        elif op == NULL:
            whole[i], real[i], there[i] = 0, 0.0, False
        elif op in (AND, OR):
            decisive = 0 if op == AND else 1
            decided = (there[a] and whole[a] == decisive) or (there[b] and whole[b] == decisive)
            there[i] = decided or (there[a] and there[b])
            whole[i] = decisive if decided else 1 - decisive
        elif op == NOT:
            there[i], whole[i] = there[a], 1 - whole[a]
        elif op == IS_NULL:
            there[i], whole[i] = True, 0 if there[a] else 1
        elif op == COALESCE_WHOLE:
            there[i], whole[i] = there[a] or there[b], whole[a] if there[a] else whole[b]
        elif op == COALESCE_REAL:
            there[i], real[i] = there[a] or there[b], real[a] if there[a] else real[b]
        elif op in (CHOOSE_WHOLE, CHOOSE_REAL):
            k = b if there[a] and whole[a] == 1 else c
            there[i], whole[i], real[i] = there[k], whole[k], real[k]
        elif COMPARE_WHOLE <= op <= COMPARE_SCALED:
            there[i] = there[b] and there[c]
            whole[i] = 0
            if there[i]:
                if op == COMPARE_WHOLE:
                    holds = compares(a, whole[b], whole[c])
                elif op == COMPARE_REAL:
                    holds = compares(a, real[b], real[c])
                elif op == COMPARE_MIXED and code[p + 4] < 0:
                    holds = compares(a, _sign_of_mixed(whole[b], real[c]), 0)
                elif op == COMPARE_MIXED:
                    if not -EXACT <= whole[b] <= EXACT:
                        return MISFIT
                    holds = compares(a, _sign_of_decimal(whole[b], real[c], programs.real[code[p + 4]]), 0)
                else:
                    holds = compares(a, _sign_of_scaled(whole[b], code[p + 4], whole[c], code[p + 5]), 0)
                whole[i] = 1 if holds else 0
        elif ADD <= op <= SCALE:
            there[i] = there[a] and (op >= NEGATIVE or there[b])
            whole[i] = 0
            if there[i]:
                x = whole[a]
                y = b if op == SCALE else whole[b] if op < NEGATIVE else 0
                if op == ADD:
                    if x > HIGHEST - y if y > 0 else x < LOWEST - y:
                        return MISFIT
                    r = x + y
                elif op == SUBTRACT:
                    if x < LOWEST + y if y > 0 else x > HIGHEST + y:
                        return MISFIT
                    r = x - y
                elif op in (MULTIPLY, SCALE):
                    if _times_overflows(x, y):
                        return MISFIT
                    r = x * y
                elif op == REMAINDER:
                    there[i] = y != 0
                    r = 0
                    if y != 0 and y != -1:
                        r = x % y
                        if r != 0 and (r < 0) != (x < 0):
                            r -= y
                else:
                    if x == LOWEST:
                        return MISFIT
                    r = -x if op == NEGATIVE or x < 0 else x
                whole[i] = r
        elif op == IN_LIST:
            answer = _is_in_list(programs, events[at + b], events[at + code[p + 4]], a, c)
            there[i], whole[i] = answer >= 0, answer
        elif op == LOAD_NUMBER:
            there[i], whole[i] = True, max(events[at + a], 0)
        elif LOAD_SUM <= op <= LOAD_EXACT_MEAN:
            held, number = events[at + a], events[at + b]
            there[i], whole[i], real[i] = number > 0, held, 0.0
            if there[i] and op == LOAD_MEAN:
                divisor = np.float64(number) * (1.0 if c < 0 else programs.real[c])
                if not -EXACT <= held <= EXACT or divisor > EXACT:
                    return MISFIT
                real[i] = np.float64(held) / divisor
            elif there[i] and op == LOAD_REAL_SUM:
                real[i] = as_real(held) / (np.float64(number) if c else 1.0)
            elif there[i] and op > LOAD_REAL_SUM:
                begin = programs.ends[held - 1] if held > 0 else 0
                end = programs.ends[held] if held > 0 else begin
                if op == LOAD_EXACT_SUM:
                    real[i] = rounded_sum(programs.values, begin, end)
                else:
                    real[i] = rounded_mean(programs.values, begin, end, number, whole, i + 1)
                if np.isnan(real[i]) and (leaves_doubles(programs.values, begin, end) or end > begin + 1):
                    return MISFIT
            there[i] = there[i] and not np.isnan(real[i])
        elif op == TO_REAL:
            there[i] = there[a]
            real[i] = 0.0
            if there[i]:
                real[i] = np.float64(whole[a])
                if b >= 0:
                    if not -EXACT <= whole[a] <= EXACT:
                        return MISFIT
                    real[i] /= programs.real[b]
        else:
            there[i] = there[a] and (op >= NEGATIVE_REAL or there[b])
            real[i] = 0.0
            if there[i]:
                v = real[a]
                w = real[b] if op < NEGATIVE_REAL else 0.0
                u = 0.0
                if op == ADD_REAL:
                    u = v + w
                elif op == SUBTRACT_REAL:
                    u = v - w
                elif op == MULTIPLY_REAL:
                    u = v * w
                elif op == DIVIDE_REAL:
                    u = v / w if w != 0.0 else np.nan
                elif op == REMAINDER_REAL:
                    u = np.fmod(v, w) if w != 0.0 else np.nan
                elif op == NEGATIVE_REAL:
                    u = -v
                elif op == ABSOLUTE_REAL:
                    u = abs(v)
                elif op == FLOOR:
                    u = np.floor(v)
                elif op == CEIL:
                    u = np.ceil(v)
                elif op == ROOT:
                    u = np.sqrt(v) if v >= 0.0 else np.nan
                elif op == LOGARITHM:
                    u = np.log(v) if v > 0.0 else np.nan
                elif op == EXPONENTIAL:
                    u = np.exp(v)
                else:
                    u = _rounded(v, b)
                    if np.isnan(u):
                        return MISFIT
                there[i] = not np.isnan(u)
                real[i] = u
    return TRUE if there[i] and whole[i] == 1 else FALSE
