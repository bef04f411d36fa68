"""Building the attribute index: parts of the events, attribute vertices, and the ranges of vertices that may follow.

A part is a range of events that some tasks need together; parts may overlap, and each has its own vertices. Event x of
part p stands at `x + offset[p]` in the arrays of the index. Within a part the events of one key own a segment of the
vertices. Cuts divide the values of a segment: vertex j holds the values above exactly j of its distinct cuts.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trellis.kernels.jit import njit


class IndexParts(NamedTuple):
    """The parts of an index: the events `begin[p]` to before `end[p]`, of which x stands at `x + offset[p]`.

    All are int64 (parts,); `width` is the number of attribute vertices of each part, once that is known.
    """

    begin: np.ndarray  # int64 (parts,)
    end: np.ndarray  # int64 (parts,)
    offset: np.ndarray  # int64 (parts,)
    width: np.ndarray  # int64 (parts,)


class KeySegments(NamedTuple):
    """The segments of keys, numbered in each part: see `segments_of_keys`.

    `own` and `target` are int32 (places,): the segment of an event and of its successors, -1 for none; both are empty
    where there is no key. `number` is int64 (parts,): how many segments there are.
    """

    own: np.ndarray  # int32 (places,)
    target: np.ndarray  # int32 (places,)
    number: np.ndarray  # int64 (parts,)


class SortedCuts(NamedTuple):
    """Values and cuts of the events, sorted part by part: see `spread`.

    Attributes
    ----------
    values, value_bounds : int32 (entries,), int64 (parts + 1,)
        The events of each part by rising value, and where those of each part begin.
    cuts, cut_bounds : int32 (entries,), int64 (parts + 1,)
        The entries of each part by rising cut: e is the first cut of event e, the second one of event e - n, and so on.
    value, cut : int64 (events,), int64 (cuts * events,)
        The value of each event and the cut of each entry.
    """

    values: np.ndarray
    value_bounds: np.ndarray
    cuts: np.ndarray
    cut_bounds: np.ndarray
    value: np.ndarray
    cut: np.ndarray


class VertexPlaces(NamedTuple):
    """The vertices of events and of their successors, for each place of an index.

    All are int32 (places,), but `at_cut` is (cuts, places).

    Attributes
    ----------
    place
        The vertex of each event, -1 for none.
    own_begin, own_end
        The vertices of the segment of each event.
    at_cut
        For each cut of an event the first vertex above it.
    target_begin, target_end
        The vertices of the segment of the successors of each event; empty where it has none.
    """

    place: np.ndarray  # int32 (places,)
    own_begin: np.ndarray  # int32 (places,)
    own_end: np.ndarray  # int32 (places,)
    at_cut: np.ndarray  # int32 (cuts, places)
    target_begin: np.ndarray  # int32 (places,)
    target_end: np.ndarray  # int32 (places,)


@njit(cache=True, nogil=True)
def make_parts(lo, hi, partition_end, least):
    """Join tasks, sorted by (lo, hi), to parts of at most twice the first task's size, or of `least` events.

    Return the part of each task, and begin, end and offset of each part.
    """
    tasks = lo.shape[0]
    part_of = np.empty(tasks, np.int64)
    begin, end, offset = np.empty(tasks, np.int64), np.empty(tasks, np.int64), np.empty(tasks, np.int64)
    parts = 0
    used = np.int64(0)
    t = 0
    while t < tasks:
        near = min(partition_end[lo[t]] if lo[t] < partition_end.shape[0] else hi[t], max(hi[t], lo[t] + least // 2))
        most = max(lo[t] + max(2 * (hi[t] - lo[t]), least), hi[t])
        begin[parts], end[parts] = lo[t], hi[t]
        first = t
        while t < tasks and (t == first or (lo[t] < near and hi[t] <= most)):
            end[parts] = max(end[parts], hi[t])
            part_of[t] = parts
            t += 1
        offset[parts] = used - begin[parts]
        used += end[parts] - begin[parts]
        parts += 1
    return part_of, begin[:parts].copy(), end[:parts].copy(), offset[:parts].copy()


@njit(cache=True, nogil=True)
def parts_of_events(begin, end, n):
    """Return for each event its first part and the one behind its last; parts neither begin nor end out of order."""
    first, behind = np.empty(n, np.int32), np.empty(n, np.int32)
    a = b = 0
    parts = begin.shape[0]
    for x in range(n):
        while a < parts and end[a] <= x:
            a += 1
        while b < parts and begin[b] <= x:
            b += 1
        first[x], behind[x] = a, max(a, b)
    return first, behind


@njit(cache=True, nogil=True)
def spread(order, first_part, behind_part, parts, wanted, n):
    """Distribute sorted entries over the parts of their events, keeping the order; entry e is of event e modulo n.

    Only entries of `wanted` events count. Return the entries, part by part, and where each part begins.
    """
    bounds = np.zeros(parts + 1, np.int64)
    for e in order:
        x = e
        while x >= n:
            x -= n
        if wanted[x]:
            for p in range(first_part[x], behind_part[x]):
                bounds[p + 1] += 1
    for p in range(parts):
        bounds[p + 1] += bounds[p]
    used = bounds[:-1].copy()
    entries = np.empty(bounds[parts], order.dtype)
    for e in order:
        x = e
        while x >= n:
            x -= n
        if wanted[x]:
            for p in range(first_part[x], behind_part[x]):
                entries[used[p]] = e
                used[p] += 1
    return entries, bounds


@njit(cache=True, nogil=True)
def segments_of_keys(begin, end, offset, total, keys, key_next, key_prev, gives, takes):
    """Number the keys of each part from 0: return the segment of each event, that of its successors, and how many.

    -1: no segment.
    """
    own, target = np.empty(total, np.int32), np.empty(total, np.int32)
    number = np.empty(begin.shape[0], np.int64)
    seen, code = np.full(keys, -1, np.int64), np.empty(keys, np.int32)
    for p in range(begin.shape[0]):
        used = 0
        for y in range(begin[p], end[p]):
            own[y + offset[p]] = -1
            if takes[y]:
                key = key_next[y]
                if seen[key] != p:
                    seen[key], code[key] = p, used
                    used += 1
                own[y + offset[p]] = code[key]
        for x in range(begin[p], end[p]):
            known = gives[x] and seen[key_prev[x]] == p
            target[x + offset[p]] = code[key_prev[x]] if known else -1
        number[p] = used
    return own, target, number


@njit(cache=True, nogil=True)
def _by_segment(entries, segment, number, offset, n):
    """Sort the entries of one part by segment, keeping the order; return them and where each segment begins."""
    bounds = np.zeros(number + 1, np.int64)
    for e in entries:
        x = e
        while x >= n:
            x -= n
        s = segment[x + offset]
        if s >= 0:
            bounds[s + 1] += 1
    for s in range(number):
        bounds[s + 1] += bounds[s]
    used = bounds[:-1].copy()
    found = np.empty(bounds[number], entries.dtype)
    for e in entries:
        x = e
        while x >= n:
            x -= n
        s = segment[x + offset]
        if s >= 0:
            found[used[s]] = e
            used[s] += 1
    return found, bounds


@njit(cache=True, nogil=True)
def looked_up(places, numbers):
    """Return the numbers at some places."""
    found = np.empty(places.shape[0], numbers.dtype)
    for i in range(places.shape[0]):
        found[i] = numbers[places[i]]
    return found


@njit(cache=True, nogil=True)
def place_values(values, sorted_value, sorted_cut, shift, place):
    """Set the vertex of each event: how many different cuts are below its value."""
    j, vertex = 0, 0
    for i in range(values.shape[0]):
        while j < sorted_cut.shape[0] and sorted_cut[j] < sorted_value[i]:
            if j == 0 or sorted_cut[j] != sorted_cut[j - 1]:
                vertex += 1
            j += 1
        place[values[i] + shift] = vertex


@njit(cache=True, nogil=True)
def place_cuts(entries, sorted_cut, shift, at_cut):
    """Set for each event the first vertex above its cut; return the number of vertices."""
    vertex = 0
    for j in range(entries.shape[0]):
        if j == 0 or sorted_cut[j] != sorted_cut[j - 1]:
            vertex += 1
        at_cut[entries[j] + shift] = vertex
    return vertex + 1


@njit(cache=True, nogil=True)
def cut_values(parts, segments, ordered, gives, keyed, n, out):
    """Lay out the attribute vertices of all parts; return how many each part has.

    Parameters
    ----------
    parts, segments, ordered : IndexParts, KeySegments, SortedCuts
        What is laid out; `parts.width` is not read.
    gives : bool (events,)
        Whether an event may be followed.
    keyed : bool
        Whether there is a key; else every part is one segment.
    n : int
        The number of events.
    out : VertexPlaces
        What is filled; -1 (`place`) and 0 (the rest) at first.
    """
    begin_of, end_of, offset = parts.begin, parts.end, parts.offset
    own, target, number = segments.own, segments.target, segments.number
    values, value_bounds, cuts, cut_bounds = ordered.values, ordered.value_bounds, ordered.cuts, ordered.cut_bounds
    value, cut, place, at_cut = ordered.value, ordered.cut, out.place, out.at_cut
    own_begin, own_end, target_begin, target_end = out.own_begin, out.own_end, out.target_begin, out.target_end
    width = np.zeros(number.shape[0], np.int64)
    for p in range(number.shape[0]):
        part_values, part_cuts = values[value_bounds[p] : value_bounds[p + 1]], cuts[cut_bounds[p] : cut_bounds[p + 1]]
        shift = offset[p]
        if keyed:
            part_values, by_value = _by_segment(part_values, own, number[p], shift, n)
            part_cuts, by_cut = _by_segment(part_cuts, target, number[p], shift, n)
        else:
            by_value = np.array([0, part_values.shape[0]])
            by_cut = np.array([0, part_cuts.shape[0]])
        vertex = 0
        for s in range(number[p]):
            begin = vertex
            i = by_value[s]
            for j in range(by_cut[s], by_cut[s + 1]):
                e = part_cuts[j]
                if j == by_cut[s] or cut[part_cuts[j - 1]] != cut[e]:
                    while i < by_value[s + 1] and value[part_values[i]] <= cut[e]:
                        place[part_values[i] + shift] = vertex
                        i += 1
                    vertex += 1
                row = 0
                while e >= n:
                    row, e = row + 1, e - n
                at_cut[row, e + shift] = vertex
            while i < by_value[s + 1]:
                place[part_values[i] + shift] = vertex
                i += 1
            vertex += 1
            if keyed:
                for i in range(by_value[s], by_value[s + 1]):
                    own_begin[part_values[i] + shift], own_end[part_values[i] + shift] = begin, vertex
                for j in range(by_cut[s], by_cut[s + 1]):
                    x = part_cuts[j]
                    while x >= n:
                        x -= n
                    target_begin[x + shift], target_end[x + shift] = begin, vertex
        if not keyed:
            for x in range(begin_of[p], end_of[p]):
                own_end[x + shift] = vertex
                if gives[x]:
                    target_end[x + shift] = vertex
        width[p] = vertex
    return width


@njit(cache=True, nogil=True)
def neighbours_of_tails(parts, later, shape, target_begin, nearest, latest):
    """Set `nearest` and `latest` of an event that has a successor or a predecessor in its part to the event itself.

    That is enough where each part is one window: two scans, with the highest vertex so far of each segment, and then
    the lowest that follows an event. `shape` is `trellis.kernels.count.shapes.Tails`; see `latest_of_ranges`.
    """
    begin, end, offset, width = parts.begin, parts.end, parts.offset, parts.width
    place, first, last, own = shape.place, shape.first, shape.last, shape.own
    most = width.max() if width.shape[0] else 0
    highest = lowest = np.empty(most, np.int32)
    for p in range(begin.shape[0]):
        highest[: width[p]] = -1
        x = end[p] - 1
        while x >= begin[p]:
            behind = x
            while behind >= begin[p] and later[behind] == later[x]:
                v = behind + offset[p]
                if first[v] < last[v] and highest[target_begin[v]] >= first[v]:
                    nearest[behind] = behind
                behind -= 1
            for y in range(behind + 1, x + 1):
                v = y + offset[p]
                if place[v] >= 0:
                    highest[own[v]] = max(highest[own[v]], place[v])
            x = behind
        lowest[: width[p]] = most
        x = begin[p]
        while x < end[p]:
            behind = x
            while behind < end[p] and later[behind] == later[x]:
                v = behind + offset[p]
                if place[v] >= 0 and lowest[own[v]] <= place[v]:
                    latest[behind] = behind
                behind += 1
            for y in range(x, behind):
                v = y + offset[p]
                if first[v] < last[v]:
                    lowest[target_begin[v]] = min(lowest[target_begin[v]], first[v])
            x = behind


@njit(cache=True, nogil=True)
def latest_of_tails(parts, later, shape, target_begin, latest):
    """Raise `latest` to the last predecessor of each event of the parts, where ranges are tails of segments."""
    begin, end, offset, width = parts.begin, parts.end, parts.offset, parts.width
    place, first, last, own = shape.place, shape.first, shape.last, shape.own
    tree = np.empty(width.max() if width.shape[0] else 0, np.int64)
    for p in range(begin.shape[0]):
        tree[: width[p]] = -1
        x = begin[p]
        while x < end[p]:
            behind = x
            while behind < end[p] and later[behind] == later[x]:
                v = behind + offset[p]
                if place[v] >= 0:
                    i = place[v] - own[v] + 1
                    while i > 0:
                        latest[behind] = max(latest[behind], tree[own[v] + i - 1])
                        i &= i - 1
                behind += 1
            for y in range(x, behind):
                v = y + offset[p]
                if first[v] < last[v]:
                    i, size = first[v] - target_begin[v] + 1, last[v] - target_begin[v]
                    while i <= size:
                        tree[target_begin[v] + i - 1] = y
                        i += i & -i
            x = behind


@njit(cache=True, nogil=True)
def latest_of_ranges(parts, later, shape, latest):
    """Raise `latest` to the last predecessor of each event of the parts, whatever the ranges are.

    Parameters
    ----------
    parts : IndexParts
        The parts.
    later : int64 (events,)
        The first event of a later time.
    shape : trellis.kernels.count.shapes.Ranges
        Where events and their successors stand in the index.
    latest : int64 (events,)
        What is raised; -1 at first.
    """
    begin, end, offset, width = parts.begin, parts.end, parts.offset, parts.width
    place, first, last = shape.place, shape.first, shape.last
    tree = np.empty(2 * width.max() if width.shape[0] else 0, np.int64)
    for p in range(begin.shape[0]):
        tree[: 2 * width[p]] = -1
        x = begin[p]
        while x < end[p]:
            behind = x
            while behind < end[p] and later[behind] == later[x]:
                i = place[behind + offset[p]] + width[p]
                if i >= width[p]:
                    while i > 0:
                        latest[behind] = max(latest[behind], tree[i])
                        i >>= 1
                behind += 1
            for y in range(x, behind):
                v = y + offset[p]
                for r in range(first.shape[0]):
                    _mark(tree, first[r, v] + width[p], last[r, v] + width[p], y)
            x = behind


@njit(cache=True, nogil=True)
def _mark(tree, a, b, x):
    """Mark the nodes that make up the leaves `[a, b)`."""
    while a < b:
        if a & 1:
            tree[a] = x
            a += 1
        if b & 1:
            b -= 1
            tree[b] = x
        a >>= 1
        b >>= 1
