"""Counting the paths of direct edges under one inequality without the edges, of which there may be n * n.

Events are bisected as in `trellis.kernels.maximal.bisection`. Across a middle, the values of the right events flow to
the left ones. With the right events numbered by `above`, what follows a left event directly is a range of them, from
its own `below` up to its ceiling, as far as their floors are not above it. So the left events are taken by rising
`below`, a right event is put into a tree when its floor is reached, and each left event asks for its range. Nothing is
ever taken out, so floats keep their precision, and least and greatest lengths are found in the same way. The right half
comes first, then what crosses the middle, then the left half: n log^2 n steps.

What flows where does not depend on the values: it is laid out once, in 12 bytes per event and level.
"""

from __future__ import annotations

import numpy as np

from trellis.kernels.arrays import first_at_least
from trellis.kernels.jit import njit
from trellis.kernels.maximal.bisection import (
    LEAF,
    NO_CEILING,
    NO_FLOOR,
    OPEN,
    code_of,
    event_of,
    lower_ceilings,
    merge,
    order_leaf,
    raise_floors,
    split,
)

NUMBER, SCALED, LENGTHS, RESIDUE = 0, 1, 2, 3
STEP = 512  # a scaled number is a float and how often 2**STEP was taken out of it
UP, DOWN = 2.0**STEP, 2.0**-STEP
WIDE = 4  # a node of a tree stands for 2**WIDE of the level below
TERMS = 64  # residues below 2**58 whose sum fits 64 bits

# --- What flows where ---------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _bounds_of_leaf(lo, hi, first, above, below, floor, ceiling):
    """Find floors and ceilings within a leaf."""
    floor[: hi - lo] = NO_FLOOR
    ceiling[: hi - lo] = NO_CEILING
    for x in range(lo, hi):
        for y in range(x + 1, hi):
            if first[y] > x and above[y] > below[x]:
                floor[y - lo] = max(floor[y - lo], above[x])
                ceiling[x - lo] = min(ceiling[x - lo], below[y])


@njit(cache=True, nogil=True)
def _first_code(keys, lo, hi, bound):
    """Return the first place in sorted `keys` whose code is at least `bound`."""
    return first_at_least(keys, lo, hi, np.int64(bound) << 32)  # a code is the upper half of its key


@njit(cache=True, nogil=True)
def _number_left(lo, middle, hi, by_above, by_below, of_below, place):
    """Number the left events that a right one may follow below their ceiling, by `below`; return how many."""
    asking, j = 0, middle
    for i in range(lo, middle):
        code, ceiling = code_of(by_below[i]), code_of(of_below[i])
        while j < hi and code_of(by_above[j]) <= code:
            j += 1
        place[i - lo] = asking
        if j < hi and code_of(by_above[j]) <= ceiling:
            asking += 1
    place[middle - lo] = asking
    return asking


@njit(cache=True, nogil=True)
def _number_right(lo, middle, hi, by_above, of_above, by_below, place, number, since):
    """Number the right events that some left event reaches, by `above`; return how many.

    `since` becomes the place of the first left event that their floors leave open.
    """
    giving, i = 0, lo
    for j in range(middle, hi):
        code, floor = code_of(by_above[j]), code_of(of_above[j])
        while i < middle and code_of(by_below[i]) < code:
            i += 1
        number[j - middle] = giving
        if floor < code and place[i - lo] > 0:
            begin = lo if floor == NO_FLOOR else _first_code(by_below, lo, i, floor)
            if place[begin - lo] < place[i - lo]:
                since[giving] = place[begin - lo]
                giving += 1
    number[hi - middle] = giving
    return giving


@njit(cache=True, nogil=True)
def _write_flows(lo, middle, hi, by_above, by_below, of_below, asks, gives, place, number, since):
    """Write the rows of `asks` in the order of places and those of `gives` by the place from which on they give."""
    j = middle
    for i in range(lo, middle):
        here = place[i - lo]
        if here < place[i - lo + 1]:
            code, ceiling = code_of(by_below[i]), code_of(of_below[i])
            while code_of(by_above[j]) <= code:
                j += 1
            end = hi if ceiling >= NO_CEILING else _first_code(by_above, j, hi, ceiling + 1)
            asks[here, 0], asks[here, 1], asks[here, 2] = (
                event_of(by_below[i]),
                number[j - middle],
                number[end - middle],
            )
    rows = np.zeros(place[middle - lo] + 1, np.int64)
    for k in range(number[hi - middle]):
        rows[since[k] + 1] += 1
    for k in range(1, rows.shape[0]):
        rows[k] += rows[k - 1]
    for j in range(middle, hi):
        k = number[j - middle]
        if k < number[j - middle + 1]:
            row = rows[since[k]]
            rows[since[k]] += 1
            gives[row, 0], gives[row, 1], gives[row, 2] = event_of(by_above[j]), k, since[k]


@njit(cache=True, nogil=True)
def _lay_out(base, nodes, begin, count, first, above, below, flows):
    """Write all that flows between the events of one piece, which begins at `base`."""
    size = nodes[begin, 2] - base
    by_above, of_above = np.empty((2, size), np.int64), np.empty((2, size), np.int64)
    by_below, of_below = np.empty((2, size), np.int64), np.empty((2, size), np.int64)
    place, number, since = np.empty(size + 1, np.int32), np.empty(size + 1, np.int32), np.empty(size, np.int32)
    floor, ceiling = np.empty(LEAF, np.int32), np.empty(LEAF, np.int32)
    for node in range(begin + count - 1, begin - 1, -1):
        lo, middle, hi, to = nodes[node, 0], nodes[node, 1], nodes[node, 2], nodes[node, 3] & 1
        if middle < 0:
            _bounds_of_leaf(lo, hi, first, above, below, floor, ceiling)
            order_leaf(
                lo, hi, base, above, below, floor, ceiling, by_above[to], of_above[to], by_below[to], of_below[to]
            )
            continue
        different = first[middle] == middle
        lo, middle, hi, at = lo - base, middle - base, hi - base, 1 - to
        if different:
            asking = _number_left(lo, middle, hi, by_above[at], by_below[at], of_below[at], place)
            giving = _number_right(lo, middle, hi, by_above[at], of_above[at], by_below[at], place, number, since)
            if giving:
                row, gives = nodes[node, 5], nodes[node, 5] + middle - lo
                nodes[node, 6], nodes[node, 7] = asking, giving
                _write_flows(
                    lo, middle, hi, by_above[at], by_below[at], of_below[at],
                    flows[row : row + asking], flows[gives : gives + giving], place, number, since,
                )  # fmt: skip
            raise_floors(lo, middle, hi, by_below[at], of_below[at], by_above[at], of_above[at])
            lower_ceilings(lo, middle, hi, by_below[at], of_below[at], by_above[at], of_above[at])
        merge(lo, middle, hi, by_above[at], of_above[at], by_above[to], of_above[to])
        merge(lo, middle, hi, by_below[at], of_below[at], by_below[to], of_below[to])


@njit(cache=True, nogil=True)
def lay_out(pieces, first, after, above, below):
    """Return the flows between the events of each piece: nodes, where those of a piece begin, and rows.

    Parameters
    ----------
    pieces
        Rows (begin, end, task): what is counted together. A task may have several, which no edge joins.
    first, after, above, below
        As `trellis.kernels.maximal.inequality.direct_edges` takes them.
    """
    most = 0
    for piece in range(pieces.shape[0]):
        most = max(most, pieces[piece, 1] - pieces[piece, 0])
    tree = np.empty((2 * most + 1, 5), np.int64)
    begins = np.zeros(pieces.shape[0] + 1, np.int64)
    for piece in range(pieces.shape[0]):
        begins[piece + 1] = begins[piece] + split(pieces[piece, 0], pieces[piece, 1], first, after, tree)
    nodes = np.zeros((begins[-1], 8), np.int64)
    rows = 0
    for piece in range(pieces.shape[0]):
        begin, count = begins[piece], split(pieces[piece, 0], pieces[piece, 1], first, after, tree)
        nodes[begin : begin + count, :5] = tree[:count]
        for node in range(begin, begin + count):
            if nodes[node, 1] >= 0:
                nodes[node, 5] = rows
                rows += nodes[node, 2] - nodes[node, 0]
    flows = np.empty((rows, 3), np.int32)
    for piece in range(pieces.shape[0]):
        _lay_out(pieces[piece, 0], nodes, begins[piece], begins[piece + 1] - begins[piece], first, above, below, flows)
    return nodes, begins, flows


# --- Values -------------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _add_scaled(into, i, number, scale):
    if scale > into[i, 1]:
        into[i, 0] = number + (into[i, 0] * DOWN if scale == into[i, 1] + 1 else 0.0)
        into[i, 1] = scale
    elif scale == into[i, 1]:
        into[i, 0] += number
    elif scale == into[i, 1] - 1:
        into[i, 0] += number * DOWN
    if into[i, 0] >= UP:
        into[i, 0] *= DOWN
        into[i, 1] += 1


@njit(cache=True, nogil=True)
def _join(into, i, values, j, kind, primes):
    """Let the values of row `j` flow into row `i`."""
    if kind == RESIDUE:
        for column in range(into.shape[1]):
            total = into[i, column] + values[j, column]
            into[i, column] = total - primes[column] if total >= primes[column] else total
    elif kind == NUMBER:
        into[i, 0] += values[j, 0]
    elif kind == SCALED:
        _add_scaled(into, i, values[j, 0], values[j, 1])
    else:
        into[i, 0] = min(into[i, 0], values[j, 0])
        into[i, 1] = max(into[i, 1], values[j, 1])


@njit(cache=True, nogil=True, fastmath={"reassoc"})  # in any order, so that several are added at once
def _sum(values, begin, end):
    total = 0.0
    for j in range(begin, end):
        total += values[j, 0]
    return total


@njit(cache=True, nogil=True)
def _join_run(into, i, values, begin, end, kind, primes):
    """Let the values of some rows flow into row `i`; residues are not reduced."""
    if kind == RESIDUE:
        for j in range(begin, end):
            for column in range(into.shape[1]):
                into[i, column] += values[j, column]
    elif kind == NUMBER:
        into[i, 0] += _sum(values, begin, end)
    else:
        for j in range(begin, end):
            _join(into, i, values, j, kind, primes)


@njit(cache=True, nogil=True)
def _reduce(into, i, primes):
    for column in range(into.shape[1]):
        into[i, column] %= primes[column]


@njit(cache=True, nogil=True)
def _clear(rows, kind):
    """Make rows what nothing has flowed into."""
    rows[:] = 0
    if kind == LENGTHS:
        rows[:, 0] = np.inf


@njit(cache=True, nogil=True)
def _settle(values, x, end, kind, primes, weights, position):
    """Make of what has flowed to an event the value that flows on; `end`: nothing may follow it."""
    if kind == RESIDUE:
        width = 1 + weights.shape[1]
        for group in range(weights.shape[0]):
            column = group * width
            if end:
                values[x, column] = 1
            for j in range(weights.shape[1]):
                total = values[x, column + 1 + j] + weights[group, j, position] * values[x, column]
                values[x, column + 1 + j] = total % primes[column]
    elif kind == LENGTHS:
        values[x, 0] = 1 if end else values[x, 0] + 1
        values[x, 1] = values[x, 1] + 1
    elif end:
        values[x, 0] = 1


@njit(cache=True, nogil=True)
def _within_leaf(lo, hi, base, first, above, below, ends, values, kind, primes, weights, order):
    """Let values flow along the direct edges of a leaf, and settle its events, from the last to the first."""
    for x in range(hi - 1, lo - 1, -1):
        code = below[x]
        least = pending = np.int32(NO_CEILING)
        time = first[x]
        for y in range(x + 1, hi):
            if first[y] != time:
                time = first[y]
                least = pending
            if time > x and above[y] > code:
                pending = min(pending, below[y])
                if above[y] <= least:
                    _join(values, x - base, values, y - base, kind, primes)
        _settle(values, x - base, ends[x - base], kind, primes, weights, order[x])


@njit(cache=True, nogil=True)
def _rows(size):
    """Return how many rows a tree of `size` leaves has, its levels one behind the other."""
    rows = size
    while size > 2 << WIDE:
        size = (size + (1 << WIDE) - 1) >> WIDE
        rows += size
    return rows


@njit(cache=True, nogil=True)
def _ask(tree, size, begin, end, values, x, kind, primes):
    """Let the leaves from `begin` to `end` of a tree of `size` leaves flow into an event."""
    level, terms = 0, 1
    while begin < end:
        if end - begin <= 2 << WIDE:
            left, right = end, end
        else:
            left, right = (begin + (1 << WIDE) - 1) >> WIDE, end >> WIDE
            _join_run(values, x, tree, level + (right << WIDE), level + end, kind, primes)
            terms += end - (right << WIDE)
            left <<= WIDE
        _join_run(values, x, tree, level + begin, level + left, kind, primes)
        terms += left - begin
        if left == end:
            break
        if kind == RESIDUE and terms > TERMS - (2 << WIDE):
            _reduce(values, x, primes)
            terms = 1
        level += size
        size = (size + (1 << WIDE) - 1) >> WIDE
        begin, end = left >> WIDE, right
    if kind == RESIDUE:
        _reduce(values, x, primes)


@njit(cache=True, nogil=True)
def _across(asks, gives, values, tree, kind, primes):
    """Let values flow across a middle, by way of a tree over the right events."""
    size = gives.shape[0]
    _clear(tree[: _rows(size)], kind)
    j = 0
    for i in range(asks.shape[0]):
        while j < size and gives[j, 2] <= i:
            z, place = gives[j, 0], gives[j, 1]
            j += 1
            level, width = 0, size
            while True:
                _join(tree, level + place, values, z, kind, primes)
                if width <= 2 << WIDE:
                    break
                level += width
                width = (width + (1 << WIDE) - 1) >> WIDE
                place >>= WIDE
        if asks[i, 1] < asks[i, 2]:
            _ask(tree, size, asks[i, 1], asks[i, 2], values, asks[i, 0], kind, primes)


@njit(cache=True, nogil=True)
def _flow(base, root, nodes, first, above, below, order, flows, ends, values, tree, kind, primes, weights):
    """Find the values of all events of a piece."""
    stack = np.empty((2 * OPEN, 2), np.int64)
    stack[0, 0], stack[0, 1] = root, 0
    waiting = 1
    while waiting:
        waiting -= 1
        node, crossing = stack[waiting, 0], stack[waiting, 1]
        lo, middle, hi = nodes[node, 0], nodes[node, 1], nodes[node, 2]
        if middle < 0:
            _within_leaf(lo, hi, base, first, above, below, ends, values, kind, primes, weights, order)
        elif crossing:
            row, asking, giving = nodes[node, 5], nodes[node, 6], nodes[node, 7]
            gives = row + middle - lo
            if giving:
                _across(flows[row : row + asking], flows[gives : gives + giving], values, tree, kind, primes)
        else:
            stack[waiting, 0], stack[waiting, 1] = node + 1, 0
            stack[waiting + 1, 0], stack[waiting + 1, 1] = node, 1
            stack[waiting + 2, 0], stack[waiting + 2, 1] = root + nodes[node, 4], 0
            waiting += 3


@njit(cache=True, nogil=True)
def _find_ends(lo, hi, first, above, below, starts, ends):
    """Find the events without predecessor and without successor in a piece: tests of codes, never of sums."""
    best = pending = np.int32(NO_FLOOR)
    x = hi - 1
    while x >= lo:
        begin = max(lo, first[x])
        for y in range(begin, x + 1):
            ends[y - lo] = best <= below[y]
            pending = max(pending, above[y])
        best = pending
        x = begin - 1
    least = pending = np.int32(NO_CEILING)
    for x in range(lo, hi):
        if first[x] == x:
            least = pending
        starts[x - lo] = least >= above[x]
        pending = min(pending, below[x])


@njit(cache=True, nogil=True)
def count_direct(kind, pieces, first, above, below, order, nodes, begins, flows, primes, weights, totals):
    """Add up over the paths of direct edges from a start to an end of each task.

    Parameters
    ----------
    kind
        `NUMBER`: how many, as floats, perhaps inf; `SCALED`: the same as (number, scale), times 2**(`STEP` * scale);
        `LENGTHS`: the shortest and the longest length, as floats; `RESIDUE`: modulo primes, with sums of weights.
    pieces, first, above, below
        As `lay_out` takes them.
    order
        The positions of the events.
    nodes, begins, flows
        What `lay_out` gives for these pieces.
    primes
        For `RESIDUE`, the prime of each column: below 2**58, or 2**31 if there are weights.
    weights
        For `RESIDUE`, the weights modulo each prime, by prime, kind of weight and position.
    totals
        A row per task, a column per value, 0 (but infinity for a shortest length). For `RESIDUE` the columns are, for
        each prime, the number and then the sum of each kind of weight over all events of all paths.
    """
    most = 0
    for piece in range(pieces.shape[0]):
        most = max(most, pieces[piece, 1] - pieces[piece, 0])
    starts, ends = np.empty(most, np.bool_), np.empty(most, np.bool_)
    values = np.empty((most, totals.shape[1]), totals.dtype)
    tree = np.empty((_rows(nodes[:, 7].max() if nodes.shape[0] else 0), totals.shape[1]), totals.dtype)
    for piece in range(pieces.shape[0]):
        lo, hi, task = pieces[piece, 0], pieces[piece, 1], pieces[piece, 2]
        _find_ends(lo, hi, first, above, below, starts, ends)
        _clear(values[: hi - lo], kind)
        _flow(lo, begins[piece], nodes, first, above, below, order, flows, ends, values, tree, kind, primes, weights)
        for x in range(hi - lo):
            if starts[x]:
                _join(totals, task, values, x, kind, primes)
