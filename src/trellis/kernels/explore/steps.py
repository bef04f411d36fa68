"""How matches go on where steps have policies of their own, or variables are greedy."""

from __future__ import annotations

import numpy as np

from trellis.kernels.explore import tables as t
from trellis.kernels.explore.iterations import begin_iteration
from trellis.kernels.explore.matches import BRANCHES, END, EVENT, FAILS, HOLDS, NO_ONE
from trellis.kernels.explore.moves import coming_of
from trellis.kernels.explore.progress import step
from trellis.kernels.explore.terms import asked_terms, meets, open_of
from trellis.kernels.explore.vertices import candidates, connect
from trellis.kernels.jit import njit


@njit(cache=True, nogil=True, _nrt=False)
def _joined_by(tables, columns, programs, lists, scratch, row, variable):
    """Return `HOLDS`, `FAILS`, or what went wrong, and the match that a letter's event joins; note its decided terms.

    It is the match itself, or, where the letter begins an iteration, what of it counts then.
    """
    if not t.at(tables, t.L_GROUPS, variable):
        return HOLDS, row
    status = begin_iteration(tables, columns, programs, lists, scratch, row, variable)
    if status == HOLDS:
        open_of(tables, lists, scratch, scratch.begun)
    return status, scratch.begun


@njit(cache=True, nogil=True, _nrt=False)
def _first(tables, columns, programs, lists, scratch, row, open_, variables, step_number, due, fresh, lo, hi):
    """Return the first event that a step can take for one of some variables, or -1; below that, what went wrong.

    For `contiguous` only the very next event can be it.
    """
    begin, end = row[EVENT] + 1, min(hi, row[END])
    if t.at(tables, t.A_POLICIES, step_number) == t.CONTIGUOUS:
        end = min(end, begin + 1)
    best = end
    for variable in range(tables[t.VARIABLES]):
        if begin >= best or not variables & (1 << variable):
            continue
        status, own = _joined_by(tables, columns, programs, lists, scratch, row, variable)
        if status < 0:
            return status - 1
        number = asked_terms(tables, scratch, own, variable, due)
        lowest, highest = candidates(tables, columns, own, variable, due, number, begin, best)
        for i in range(lowest, highest if status == HOLDS else lowest):
            event = tables[i]
            answer = meets(tables, columns, programs, lists, scratch, own, variable, event, due, number)
            if answer == HOLDS:
                answer = step(
                    tables, columns, programs, lists, scratch, own, open_, variable, event, lo, hi,
                    1 << step_number, False, fresh[variable],
                )  # fmt: skip
            if answer < 0:
                return answer - 1
            if answer == HOLDS:
                best = event
                break
        if t.at(tables, t.L_GROUPS, variable):
            open_of(tables, lists, scratch, row)
    return best if best < end else -1


@njit(cache=True, nogil=True, _nrt=False)
def _bar(tables, columns, programs, lists, scratch, row, open_, greedy, roaming, due, fresh, lo, hi, event):
    """Note which greedy variables could take an event that a match takes, or an earlier one.

    Return 0, or what went wrong. `roaming` are the steps, as bits, that need not take the very next event.
    """
    firsts, barred, time = scratch.firsts, scratch.barred, columns[t.SAME_ROW, event]
    barred[t.LEAVES] = barred[t.WAITS] = barred[t.WAITS_IN_TIE] = 0
    for variable in range(tables[t.VARIABLES]):
        bit, first = 1 << variable, firsts[variable]
        if not greedy & bit or first < 0 or first > event:
            continue
        answer = np.int64(HOLDS)
        if first < event:
            barred[t.WAITS] |= bit
            if columns[t.SAME_ROW, first] < time:
                barred[t.WAITS_IN_TIE] |= bit
            else:  # at the same time as the first: it may be taken, too
                upto = tables[t.E_UPTO] + variable
                if columns[upto, event] == columns[upto, event + 1]:
                    continue
                answer, own = _joined_by(tables, columns, programs, lists, scratch, row, variable)
                if answer == HOLDS:
                    number = asked_terms(tables, scratch, own, variable, due)
                    answer = meets(tables, columns, programs, lists, scratch, own, variable, event, due, number)
                if answer == HOLDS:
                    answer = step(
                        tables, columns, programs, lists, scratch, own, open_, variable, event, lo, hi, roaming, False,
                        fresh[variable],
                    )  # fmt: skip
                if t.at(tables, t.L_GROUPS, variable):
                    open_of(tables, lists, scratch, row)
                if answer < 0:
                    return answer
        if answer == HOLDS:
            barred[t.LEAVES] |= bit
    barred[t.LEAVES] |= 1 << t.NEVER
    if time > columns[t.SAME_ROW, row[EVENT]]:
        barred[t.LEAVES] |= 1 << t.TOGETHER
    return np.int64(0)


@njit(cache=True, nogil=True, _nrt=False)
def go_on_by_steps(tables, columns, programs, lists, scratch, moves, graph, vertex, row, due, fresh, lo, hi):
    """Add the edges that leave a vertex, or with -1 those to the starts; return 0, or what went wrong."""
    coming, open_ = coming_of(tables, lists, row), open_of(tables, lists, scratch, row)
    variables, last = tables[t.VARIABLES], row[EVENT]
    begin, end = last + 1 if last >= 0 else lo, min(hi, row[END]) if last >= 0 else hi
    if begin >= end:
        return 0
    steps, free = np.int64(0), np.int64(0)  # those that may come next, and of them those that may skip any event
    roaming = np.int64(0)  # those that need not take the very next event
    nexts, firsts = scratch.nexts, scratch.firsts
    first = lists.ends[row[BRANCHES] - 1] if row[BRANCHES] else 0
    for b in range(first, lists.ends[row[BRANCHES]], 2):
        steps |= t.at(tables, t.A_STEPS, lists.values[b])
    for number in range(tables[t.STEPS]):
        nexts[number] = -1
        if not steps & (1 << number):
            continue
        if t.at(tables, t.A_POLICIES, number) != t.CONTIGUOUS:
            roaming |= 1 << number
        if last < 0 or t.at(tables, t.A_POLICIES, number) == t.ANY:
            free |= 1 << number
            continue
        own = coming & t.at(tables, t.A_STEP_VARIABLES, number)
        nexts[number] = _first(tables, columns, programs, lists, scratch, row, open_, own, number, due, fresh, lo, hi)
        if nexts[number] < -1:
            return nexts[number] + 1
    greedy = tables[t.GREEDY] & coming
    asks = tables[t.GREEDY] != 0 and last >= 0
    for variable in range(variables if asks else 0):
        firsts[variable] = -1
        for number in range(tables[t.STEPS]):
            own = greedy & (1 << variable) & t.at(tables, t.A_STEP_VARIABLES, number)
            if own and steps & (1 << number):
                event = _first(tables, columns, programs, lists, scratch, row, open_, own, number, due, fresh, lo, hi)
                if event < -1:
                    return event + 1
                if event >= 0 and (firsts[variable] < 0 or event < firsts[variable]):
                    firsts[variable] = event
    for variable in range(variables):
        if not coming & (1 << variable):
            continue
        status, own = _joined_by(tables, columns, programs, lists, scratch, row, variable)
        if status < 0:
            return status
        if status == FAILS:
            open_of(tables, lists, scratch, row)
            continue
        number = asked_terms(tables, scratch, own, variable, due)
        lowest, highest = np.int64(0), np.int64(tables[t.STEPS])
        anywhere = False
        for k in range(tables[t.STEPS]):
            anywhere |= free & (1 << k) != 0 and t.at(tables, t.A_STEP_VARIABLES, k) & (1 << variable) != 0
        if anywhere:
            lowest, highest = candidates(tables, columns, own, variable, due, number, begin, end)
        for i in range(lowest, highest):
            event = tables[i] if anywhere else nexts[i]
            allowed, known = free, False
            for k in range(tables[t.STEPS]):
                if event >= 0 and nexts[k] == event:
                    allowed |= 1 << k
                    known |= not anywhere and k < i
            if event < 0 or known:
                continue
            upto = tables[t.E_UPTO] + variable
            if columns[upto, event] == columns[upto, event + 1]:
                continue
            if asks:
                answer = _bar(
                    tables, columns, programs, lists, scratch, row, open_, greedy, roaming, due, fresh, lo, hi, event
                )
                if answer < 0:
                    return answer
                _, own = _joined_by(tables, columns, programs, lists, scratch, row, variable)
                number = asked_terms(tables, scratch, own, variable, due)
            answer = meets(tables, columns, programs, lists, scratch, own, variable, event, due, number)
            if answer == HOLDS:
                answer = step(
                    tables, columns, programs, lists, scratch, own, open_, variable, event, lo, hi, allowed, asks,
                    fresh[variable],
                )  # fmt: skip
            if answer == HOLDS:
                answer = connect(
                    tables, columns, programs, lists, scratch, moves, graph, vertex, NO_ONE, fresh[variable], lo, hi
                )
            if answer < 0:
                return answer
        if t.at(tables, t.L_GROUPS, variable):
            open_of(tables, lists, scratch, row)
    return 0
