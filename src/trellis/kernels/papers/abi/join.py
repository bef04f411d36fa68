"""Sub-sequences between anchors, found breadth first, and trends that are joined of them, depth first.

An event is anchored if an anchor vertex holds it: a path passes the anchor when it comes to the event. A sub-sequence
begins with a head (a start, or an anchored event), goes over events that are not anchored, and stops where a trend may
end or an anchored event may follow. Sub-sequences are numbered in the order of their heads. All arrays that end in
`_here` begin with the first event of the window.
"""

from __future__ import annotations

import numpy as np

from trellis.kernels.arrays import first_at_least, grown
from trellis.kernels.jit import njit


@njit(cache=True, nogil=True)
def measure(lo, hi, offsets, successors, anchored_here, ends_here):
    """Return the numbers of sub-sequences and trends that begin at each event of a window, in a row each.

    Rows: partial sub-sequences, whole ones, references of the whole ones, trends, references of those, and trends that
    go on from here over an anchored event.
    """
    numbers = np.zeros((6, hi - lo))
    for x in range(hi - 1, lo - 1, -1):
        own = x - lo
        partial, subs, references, trends, length, joined = 1.0, 0.0, 0.0, 0.0, 0.0, 0.0
        stops = ends_here[own]
        if stops:
            trends = 1.0
        for i in range(offsets[x], offsets[x + 1]):
            y = successors[i] - lo
            if y >= hi - lo:
                break
            trends += numbers[3, y]
            length += numbers[4, y]
            if anchored_here[y]:
                stops = True
                joined += numbers[3, y]
            else:
                partial += numbers[0, y]
                subs += numbers[1, y]
                references += numbers[2, y]
        if stops:
            subs += 1.0
        numbers[0, own], numbers[1, own], numbers[2, own] = partial, subs, references + subs
        numbers[3, own], numbers[4, own], numbers[5, own] = trends, length + trends, joined
    return numbers


@njit(cache=True, nogil=True)
def find_subs(
    heads, first, last, lo, hi, offsets, successors, anchored_here, ends_here, partial_here, sub_begins, value_begins,
    sub_ends, values,
):  # fmt: skip
    """Write the sub-sequences of some heads, each head's from where they begin, breadth first."""
    for h in range(first, last):
        nodes = np.int64(partial_here[heads[h] - lo])
        event, parent, depth = np.empty(nodes, np.int32), np.empty(nodes, np.int32), np.empty(nodes, np.int32)
        event[0], parent[0], depth[0] = heads[h], -1, 1
        size, sub, used = 1, sub_begins[h], value_begins[h]
        for node in range(nodes):
            x = np.int64(event[node])
            stops = ends_here[x - lo]
            for i in range(offsets[x], offsets[x + 1]):
                y = np.int64(successors[i])
                if y >= hi:
                    break
                if anchored_here[y - lo]:
                    stops = True
                else:
                    event[size], parent[size], depth[size] = y, node, depth[node] + 1
                    size += 1
            if stops:
                place, up = used + depth[node] - 1, node
                while up >= 0:
                    values[place] = event[up]
                    place -= 1
                    up = parent[up]
                used += depth[node]
                sub_ends[sub] = used
                sub += 1


@njit(cache=True, nogil=True)
def find_joints(
    exact, lo, hi, later_here, first_here, last_here, anchors, anchor_heads, heads, head_of, sub_begins, offsets,
    successors, anchored_here, joints, runs,
):  # fmt: skip
    """Write for each event the runs of sub-sequences that may be joined behind it; return how many runs there are.

    Parameters
    ----------
    exact
        Whether what an event has to-edges to may follow it if only it is later: the time check is all that is left.
        Else each of its edges is looked at.
    anchors, anchor_heads
        The anchors in rising order, and where the heads of each begin among all heads.
    head_of
        For each event its number among the anchored heads, or -1.
    joints, runs
        Where the runs of each event begin, and the runs: the first sub-sequence and the one after the last. No room:
        they are counted only.
    """
    filling = runs.shape[0] > 0
    total = 0
    for own in range(hi - lo):
        joints[own] = total
        before = np.int64(-1)
        if exact:
            a = first_at_least(anchors, 0, anchors.shape[0], first_here[own])
            while a < anchors.shape[0] and anchors[a] < last_here[own]:
                stop = anchor_heads[a + 1]
                begin = first_at_least(heads, anchor_heads[a], stop, later_here[own])  # the first head that is later
                if begin < stop:
                    if sub_begins[begin] == before:  # it goes on where the last run ended
                        total -= 1
                    elif filling:
                        runs[total, 0] = sub_begins[begin]
                    if filling:
                        runs[total, 1] = sub_begins[stop]
                    before = sub_begins[stop]
                    total += 1
                a += 1
        else:
            for i in range(offsets[lo + own], offsets[lo + own + 1]):
                y = successors[i]
                if y >= hi:
                    break
                if anchored_here[y - lo]:
                    h = head_of[y - lo]
                    if filling:
                        runs[total, 0], runs[total, 1] = sub_begins[h], sub_begins[h + 1]
                    total += 1
    joints[hi - lo] = total
    return total


@njit(cache=True, nogil=True)
def _sub_at(weight, begin, end, rank):
    """Return the sub-sequence of a run under which the trend with a rank among those of the run lies."""
    return first_at_least(weight, begin + 1, end, weight[begin] + rank + 1) - 1


@njit(cache=True, nogil=True)
def join_subs(rank, rows, starts, weight, sub_ends, values, joints, runs, lo, deepest, ends_here, room):
    """Return trends, from one on, that sub-sequences make when they are joined: their events, and where each ends.

    Parameters
    ----------
    rank
        The place of the first trend in the order of the sub-sequences; the counts behind each lead to it.
    rows
        How many trends are wanted.
    starts
        How many sub-sequences, the first ones, begin with a start.
    weight
        How many trends begin with the sub-sequences before each, if each is taken as the first.
    deepest
        The number of events of the longest trend at most.
    room
        How many events there is room for at first.
    """
    subs, place = np.empty(deepest + 1, np.int64), np.empty(deepest + 1, np.int64)
    run, length = np.empty(deepest + 1, np.int64), np.zeros(deepest + 2, np.int64)
    path = np.empty(deepest, np.int32)
    out, out_ends = np.empty(max(room, deepest), np.int32), np.empty(rows, np.int32)
    depth, found, used = 0, 0, 0
    next_start = np.int64(0)
    entering, seeking = np.int64(-1), True
    left = rank
    is_written = False
    if rows:
        entering = _sub_at(weight, 0, starts, left)
        left -= weight[entering]
        next_start = entering + 1
    while found < rows:
        if entering >= 0:  # the path goes on with a sub-sequence
            begin = sub_ends[entering - 1] if entering > 0 else 0
            size = sub_ends[entering] - begin
            at = length[depth]
            last = values[begin + size - 1] - lo
            if joints[last] == joints[last + 1] and not seeking:  # nothing goes on from it: it is written at once
                if used + at + size > out.shape[0]:
                    out = grown(out, used, 2 * (used + at + size))
                for i in range(at):
                    out[used + i] = path[i]
                used += at
                for i in range(size):
                    out[used + i] = values[begin + i]
                used += size
                out_ends[found] = used
                found += 1
                if depth > 0 and place[depth - 1] < runs[run[depth - 1], 1]:
                    entering = place[depth - 1]
                    place[depth - 1] += 1
                else:
                    entering = np.int64(-1)
                continue
            for i in range(size):
                path[at + i] = values[begin + i]
            subs[depth] = entering
            depth += 1
            length[depth] = at + size
            run[depth - 1] = joints[last]
            place[depth - 1] = runs[joints[last], 0] if joints[last] < joints[last + 1] else 0
            entering = np.int64(-1)
            is_written = False
            if seeking:
                if ends_here[last]:
                    is_written = left > 0
                    seeking = is_written
                    left -= 1
                k = joints[last]
                while seeking and k < joints[last + 1]:
                    size = weight[runs[k, 1]] - weight[runs[k, 0]]
                    if left < size:
                        entering = _sub_at(weight, runs[k, 0], runs[k, 1], left)
                        left -= weight[entering] - weight[runs[k, 0]]
                        run[depth - 1], place[depth - 1] = k, entering + 1
                        break
                    left -= size
                    k += 1
                if entering >= 0:
                    continue
                seeking = False
        if depth == 0:
            entering = next_start
            next_start += 1
            continue
        last = path[length[depth] - 1] - lo
        if not is_written and ends_here[last]:
            if used + length[depth] > out.shape[0]:
                out = grown(out, used, 2 * (used + length[depth]))
            for i in range(length[depth]):
                out[used + i] = path[i]
            used += length[depth]
            out_ends[found] = used
            found += 1
        is_written = True
        k = run[depth - 1]
        while k < joints[last + 1] and place[depth - 1] >= runs[k, 1]:
            k += 1
            if k < joints[last + 1]:
                place[depth - 1] = runs[k, 0]
        run[depth - 1] = k
        if k < joints[last + 1]:
            entering = place[depth - 1]
            place[depth - 1] += 1
        else:
            depth -= 1
    return out[:used].copy(), out_ends
