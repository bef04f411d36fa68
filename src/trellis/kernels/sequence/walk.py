"""Fixed sequences: leaving out what can be in no match, and a walk that counts and lists the rest.

A candidate is an event that may fill a variable. Candidates of one variable stand together in the order of their
events, and are named by their place among all candidates. Conditions on two variables are compared by codes of both.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trellis.kernels.arrays import first_at_least_in
from trellis.kernels.jit import njit

EQUAL, GREATER, DIFFERENT = range(3)  # the code of the later variable is ... that of the earlier


class WalkCandidates(NamedTuple):
    """The candidates of all variables, and what is asked of them.

    Attributes
    ----------
    events
        The event of each candidate; those of variable `v` are `begin[v]` to `begin[v + 1]`.
    later, until, bound
        For each candidate the first event of a later time, the first that is too late for a match with it, and the
        first that is too late for the next variable because of a NOT in between.
    pairs
        For two variables the first condition on them, and the one behind the last.
    kinds, codes
        What each condition asks; the codes of each condition, one for each candidate of its two variables.
    runs, run_begins, run_at
        For a condition `c` with `run_at[c]` from 0 on: the candidates of the later variable by code, and from
        `run_begins[run_at[c] + code]` on those with a code.
    fresh
        Whether no variable before `v` is asked about `w`.
    """

    events: np.ndarray  # int64 (candidates,)
    begin: np.ndarray  # int64 (variables + 1,)
    later: np.ndarray  # int64 (candidates,)
    until: np.ndarray  # int64 (candidates,)
    bound: np.ndarray  # int64 (candidates,)
    pairs: np.ndarray  # int64 (variables, variables, 2)
    kinds: np.ndarray  # int64 (conditions,)
    codes: np.ndarray  # int64 (conditions, candidates)
    runs: np.ndarray  # int64 (room,)
    run_begins: np.ndarray  # int64 (room,)
    run_at: np.ndarray  # int64 (conditions,)
    fresh: np.ndarray  # bool (variables, variables)


class SequenceTasks(NamedTuple):
    """First candidates, the event behind the last that may be in a match with each, and the first that may end one."""

    first: np.ndarray  # int64 (tasks,)
    limit: np.ndarray  # int64 (tasks,)
    least: np.ndarray  # int64 (tasks,)


class Walk(NamedTuple):
    """The state of a walk: lists of candidates for each depth and variable, `at` which of them, and the rest."""

    low: np.ndarray  # int64 (variables, variables)
    high: np.ndarray  # int64 (variables, variables)
    at: np.ndarray  # int64 (variables + 1,)
    pool: np.ndarray  # int64 (room,)
    state: np.ndarray  # int64 (variables + 2,)


# --- Reduction ---------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def keep_with_partner(events, later, until, others, keep, keep_others):
    """Drop candidates that have none of another, later variable in their reach, and those of it that none reaches."""
    low = high = 0
    for i in range(events.shape[0]):
        while low < others.shape[0] and others[low] < later[i]:
            low += 1
        keep[i] &= low < others.shape[0] and others[low] < until[i]
    reached = np.int64(-1)
    for j in range(others.shape[0]):
        while high < events.shape[0] and later[high] <= others[j]:
            reached = max(reached, until[high])
            high += 1
        keep_others[j] &= reached > others[j]


@njit(cache=True, nogil=True)
def keep_equal(size, events, later, until, others, codes, other_codes, keep, keep_others):
    """Drop candidates of two variables that have no candidate of the other with an equal code in reach."""
    seen = np.full(size, np.int64(1) << 62)
    j = others.shape[0] - 1
    for i in range(events.shape[0] - 1, -1, -1):
        while j >= 0 and others[j] >= later[i]:
            if keep_others[j] and other_codes[j] >= 0:
                seen[other_codes[j]] = others[j]
            j -= 1
        keep[i] &= codes[i] >= 0 and seen[codes[i]] < until[i]
    seen[:] = -1
    i = 0
    for j in range(others.shape[0]):
        while i < events.shape[0] and later[i] <= others[j]:
            if keep[i]:
                seen[codes[i]] = max(seen[codes[i]], until[i])
            i += 1
        keep_others[j] &= other_codes[j] >= 0 and seen[other_codes[j]] > others[j]


@njit(cache=True, nogil=True)
def keep_greater(events, later, until, others, codes, other_codes, keep, keep_others):
    """Drop candidates that no later one in reach has a greater code than, and those that exceed none before them."""
    queue = np.empty(max(events.shape[0], others.shape[0]), np.int64)
    head = tail = j = 0
    for i in range(events.shape[0]):  # the greatest in reach: later and until never fall
        while j < others.shape[0] and others[j] < until[i]:
            if keep_others[j]:
                while tail > head and other_codes[queue[tail - 1]] <= other_codes[j]:
                    tail -= 1
                queue[tail] = j
                tail += 1
            j += 1
        while tail > head and others[queue[head]] < later[i]:
            head += 1
        keep[i] &= tail > head and other_codes[queue[head]] > codes[i]
    head = tail = i = 0
    for j in range(others.shape[0]):  # the least that reaches it
        while i < events.shape[0] and later[i] <= others[j]:
            if keep[i]:
                while tail > head and codes[queue[tail - 1]] >= codes[i]:
                    tail -= 1
                queue[tail] = i
                tail += 1
            i += 1
        while tail > head and until[queue[head]] <= others[j]:
            head += 1
        keep_others[j] &= tail > head and other_codes[j] > codes[queue[head]]


# --- The walk ----------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def accepts(kinds, c, end, codes, a, later_codes, b):
    """Return whether the conditions from `c` to `end` of some `kinds` hold for two candidates or rows.

    `codes` has those of `a`, the earlier one, and `later_codes` those of `b`: a row for each condition.
    """
    for i in range(c, end):
        earlier, later = codes[i, a], later_codes[i, b]
        if kinds[i] == EQUAL:
            if earlier != later:
                return False
        elif kinds[i] == GREATER:
            if later <= earlier:
                return False
        elif later == earlier:
            return False
    return True


@njit(cache=True, nogil=True)
def _bind(candidates, walk, depth, a, limit, least, used):
    """Bind candidate `a` to the variable `depth`: leave of the later variables' lists what may still follow.

    Events must be before `limit`, those of the last variable not before `least`.

    The pool is used from `used` on. Return where it is free again, or -1 if a list is empty.
    """
    low, high, pool, events = walk.low, walk.high, walk.pool, candidates.events
    begin, pairs, codes = candidates.begin, candidates.pairs, candidates.codes
    number, after = begin.shape[0] - 1, candidates.later[a]
    for v in range(depth + 1, number):
        c, end = pairs[depth, v, 0], pairs[depth, v, 1]
        from_event = max(after, least) if v == number - 1 else after
        before = min(limit, candidates.bound[a]) if v == depth + 1 else limit
        if depth == 0:
            first, last = begin[v], begin[v + 1]
        else:
            first, last = low[depth - 1, v], high[depth - 1, v]
        if c < end and candidates.fresh[depth, v] and candidates.run_at[c] >= 0:
            code = candidates.run_at[c] + codes[c, a]
            runs = candidates.runs
            i, behind = candidates.run_begins[code], candidates.run_begins[code + 1]
            i = first_at_least_in(runs, events, i, behind, from_event)
            begins = used
            while i < behind and events[runs[i]] < before:
                if accepts(candidates.kinds, c + 1, end, codes, a, codes, runs[i]):
                    pool[used] = runs[i]
                    used += 1
                i += 1
            first, last = begins, used
        else:
            first = first_at_least_in(pool, events, first, last, from_event)
            if depth == 0 or v == depth + 1:
                last = first_at_least_in(pool, events, first, last, before)
            if c < end:
                begins = used
                if end == c + 1 and candidates.kinds[c] == GREATER:
                    own = codes[c, a]
                    for i in range(first, last):
                        pool[used] = pool[i]
                        used += codes[c, pool[i]] > own
                else:
                    for i in range(first, last):
                        if accepts(candidates.kinds, c, end, codes, a, codes, pool[i]):
                            pool[used] = pool[i]
                            used += 1
                first, last = begins, used
        if first == last:
            return -1
        low[depth, v], high[depth, v] = first, last
    return used


# Where the variables behind a depth are asked of time alone, sums over their matches need no walk but one pass over the
# lists. `scratch` has a row for each variable and a column for each place of its list.


@njit(cache=True, nogil=True)
def _count_chain(candidates, walk, depth, zero, modulus, scratch):
    """Return how many matches the lists of a depth have, between which only time is asked; modulo, unless that is 0."""
    low, high, pool, events, later = walk.low, walk.high, walk.pool, candidates.events, candidates.later
    last = candidates.begin.shape[0] - 2
    total = zero + (high[depth, last] - low[depth, last])
    for v in range(last - 1, depth, -1):
        first, after, j = low[depth, v], low[depth, v + 1], high[depth, v + 1]
        running, total = zero, zero
        for i in range(high[depth, v] - 1, first - 1, -1):
            event = later[pool[i]]
            while j > after and events[pool[j - 1]] >= event:
                j -= 1
                running += scratch[v + 1, j - after] if v + 1 < last else zero + 1
                if modulus > 0 and running >= modulus:
                    running -= modulus
            scratch[v, i - first] = running
            total += running
            if modulus > 0 and total >= modulus:
                total -= modulus
    return total


@njit(cache=True, nogil=True)
def _weigh_chain(candidates, walk, depth, modulus, weights, scratch, sums):
    """Return the number of matches of the lists of a depth, and the sum of the weights of their candidates, modulo."""
    low, high, pool, events, later = walk.low, walk.high, walk.pool, candidates.events, candidates.later
    last = candidates.begin.shape[0] - 2
    zero, one = np.uint64(0), np.uint64(1)
    total, total_sum = one, zero
    for v in range(last, depth, -1):
        first = low[depth, v]
        after, j = (low[depth, v + 1], high[depth, v + 1]) if v < last else (0, 0)
        running, running_sum = (zero, zero) if v < last else (one, zero)
        total, total_sum = zero, zero
        for i in range(high[depth, v] - 1, first - 1, -1):
            event = later[pool[i]]
            while j > after and events[pool[j - 1]] >= event:
                j -= 1
                running = (running + scratch[v + 1, j - after]) % modulus
                running_sum = (running_sum + sums[v + 1, j - after]) % modulus
            weight = (running_sum + weights[pool[i]] * running) % modulus
            scratch[v, i - first], sums[v, i - first] = running, weight
            total = (total + running) % modulus
            total_sum = (total_sum + weight) % modulus
    return total, total_sum


@njit(cache=True, nogil=True)
def _least_chain(candidates, walk, depth, values, none, scratch):
    """Return the least value of a candidate on a match of the lists of a depth; `none` if there is no match."""
    low, high, pool, events, later = walk.low, walk.high, walk.pool, candidates.events, candidates.later
    last = candidates.begin.shape[0] - 2
    least = none
    for v in range(last, depth, -1):
        first = low[depth, v]
        after, j = (low[depth, v + 1], high[depth, v + 1]) if v < last else (0, 0)
        running = none if v < last else none - 1
        least = none
        for i in range(high[depth, v] - 1, first - 1, -1):
            event = later[pool[i]]
            while j > after and events[pool[j - 1]] >= event:
                j -= 1
                running = min(running, scratch[v + 1, j - after])
            scratch[v, i - first] = running if running == none else min(running, values[pool[i]])
            least = min(least, scratch[v, i - first])
    return least


@njit(cache=True, nogil=True)
def _next_binding(candidates, walk, cut, limit, least, used):
    """Go on to the next candidates that can be bound to the variables up to `cut`; return False if there are none.

    The depth is `walk.state[0]`; -1 with a first candidate in `walk.at[0]` begins, `cut` goes on behind what was found.
    """
    low, high, at, pool, state = walk.low, walk.high, walk.at, walk.pool, walk.state
    depth = state[0]
    if depth < 0:
        state[1] = _bind(candidates, walk, 0, at[0], limit, least, used)
        depth = 0
        if state[1] < 0 or cut == 0:
            state[0] = 0
            return state[1] >= 0
        depth = 1
        at[1] = low[0, 1]
    elif depth == 0:
        return False
    else:
        at[depth] += 1
    while depth > 0:
        if at[depth] == high[depth - 1, depth]:
            depth -= 1
            at[depth] += 1
            continue
        free = _bind(candidates, walk, depth, pool[at[depth]], limit, least, state[depth])
        if free < 0:
            at[depth] += 1
        elif depth == cut:
            state[0] = depth
            return True
        else:
            depth += 1
            state[depth] = free
            at[depth] = low[depth - 1, depth]
    state[0] = 0
    return False


@njit(cache=True, nogil=True)
def count(candidates, tasks, cut, zero, modulus, walk, scratch):
    """Return the number of matches of each task; behind the variable `cut` no two are asked but about time."""
    totals = np.full(tasks.first.shape[0], zero)
    used = candidates.events.shape[0]
    single = candidates.begin.shape[0] == 2
    for t in range(tasks.first.shape[0]):
        if single:
            totals[t] = zero + 1
            continue
        walk.at[0], walk.state[0] = tasks.first[t], -1
        while _next_binding(candidates, walk, cut, tasks.limit[t], tasks.least[t], used):
            totals[t] += _count_chain(candidates, walk, cut, zero, modulus, scratch)
            if modulus > 0 and totals[t] >= modulus:
                totals[t] -= modulus
    return totals


@njit(cache=True, nogil=True)
def weigh(candidates, tasks, cut, modulus, weights, walk, scratch, sums):
    """Return for each task the sum, over its matches, of the weights of their candidates, modulo a prime of 31 bits."""
    totals = np.zeros(tasks.first.shape[0], np.uint64)
    used, pool, at = candidates.events.shape[0], walk.pool, walk.at
    single = candidates.begin.shape[0] == 2
    for t in range(tasks.first.shape[0]):
        if single:
            totals[t] = weights[tasks.first[t]]
            continue
        at[0], walk.state[0] = tasks.first[t], -1
        while _next_binding(candidates, walk, cut, tasks.limit[t], tasks.least[t], used):
            number, weight = _weigh_chain(candidates, walk, cut, modulus, weights, scratch, sums)
            own = weights[at[0]]
            for v in range(1, cut + 1):
                own = (own + weights[pool[at[v]]]) % modulus
            totals[t] = (totals[t] + weight + own * number) % modulus
    return totals


@njit(cache=True, nogil=True)
def least(candidates, tasks, cut, values, none, walk, scratch):
    """Return for each task the least value of a candidate on any of its matches; `none` if it has no match."""
    found = np.full(tasks.first.shape[0], none)
    used, pool, at = candidates.events.shape[0], walk.pool, walk.at
    single = candidates.begin.shape[0] == 2
    for t in range(tasks.first.shape[0]):
        if single:
            found[t] = values[tasks.first[t]]
            continue
        at[0], walk.state[0] = tasks.first[t], -1
        while _next_binding(candidates, walk, cut, tasks.limit[t], tasks.least[t], used):
            value = _least_chain(candidates, walk, cut, values, none, scratch)
            if value == none:
                continue
            value = min(value, values[at[0]])
            for v in range(1, cut + 1):
                value = min(value, values[pool[at[v]]])
            found[t] = min(found[t], value)
    return found


@njit(cache=True, nogil=True)
def fill(candidates, tasks, t, skip, walk, out, rows, size, each):
    """Write matches in their order from task `t` on, without the first `skip`, as columns `rows` to `size` of `out`.

    No more than `each` come of a task.
    """
    events, pool, at, low, high, state = candidates.events, walk.pool, walk.at, walk.low, walk.high, walk.state
    last, used = candidates.begin.shape[0] - 2, candidates.events.shape[0]
    while t < tasks.first.shape[0] and rows < size:
        at[0], state[0] = tasks.first[t], -1
        most = min(size, rows + each)
        if last == 0:
            if skip == 0:
                out[0, rows] = events[at[0]]
            rows += skip == 0
            skip = max(skip - 1, 0)
        while (
            last > 0 and rows < most and _next_binding(candidates, walk, last - 1, tasks.limit[t], tasks.least[t], used)
        ):
            first, end = low[last - 1, last], high[last - 1, last]
            passed = min(skip, end - first)
            skip -= passed
            first += passed
            number = min(end - first, most - rows)
            for v in range(last):
                event = events[pool[at[v]]] if v > 0 else events[at[0]]
                for i in range(rows, rows + number):
                    out[v, i] = event
            for i in range(number):
                out[last, rows + i] = events[pool[first + i]]
            rows += number
        t += 1


@njit(cache=True, nogil=True)
def unrank_match(candidates, tasks, t, rank, cut, walk, scratch, out):
    """Write the events of the match of a task that has a rank among those of the task; numbers are below 2**64."""
    events, later, pool, at = candidates.events, candidates.later, walk.pool, walk.at
    low, used = walk.low, candidates.events.shape[0]
    last = candidates.begin.shape[0] - 2
    zero = np.uint64(0)
    out[0] = events[tasks.first[t]]
    at[0], walk.state[0] = tasks.first[t], -1
    if last == 0:
        return
    while _next_binding(candidates, walk, cut, tasks.limit[t], tasks.least[t], used):
        total = _count_chain(candidates, walk, cut, zero, zero, scratch)
        if rank >= total:
            rank -= total
            continue
        after = later[at[0]]
        for v in range(1, cut + 1):
            out[v] = events[pool[at[v]]]
            after = later[pool[at[v]]]
        for v in range(cut + 1, last + 1):
            i = low[cut, v]
            while True:
                if events[pool[i]] >= after:
                    number = scratch[v, i - low[cut, v]] if v < last else np.uint64(1)
                    if rank < number:
                        break
                    rank -= number
                i += 1
            out[v] = events[pool[i]]
            after = later[pool[i]]
        return
