"""The first results of groups in their order, by a walk over matches so far that are made when they are come to.

Results go by their events first, so the walk goes over events, depth first: on each level lie all matches so far that a
sequence of events can have made, with the longer matches beside each by which REPORT leaves results out (see `report`).
The variables are told apart when the sequence is complete, as in `order`. A match from which no result was come to is a
dead end, and is not entered again.
"""

from __future__ import annotations

import numpy as np

from trellis.kernels.arrays import grown
from trellis.kernels.explore import tables as t
from trellis.kernels.explore.demand import (
    HI,
    IS_DEAD,
    IS_PRECEDED,
    LO,
    NO_LEVELS,
    REACHES_NOT,
    ROOT,
    find_preceded,
    is_followed,
    reaches,
)
from trellis.kernels.explore.graph import begin_row
from trellis.kernels.explore.levels import (
    BEFORE,
    BESIDE,
    LAST,
    LETTER,
    OF,
    PLACE,
    SOURCE,
    bury,
    forget_walk,
    next_event,
    open_level,
    place_of_dead,
    shortened,
    size_of,
)
from trellis.kernels.explore.lists import FULL, clear, keep
from trellis.kernels.explore.matches import EVENT, NO_ROOM, VARIABLE
from trellis.kernels.explore.moves import has_moves, refresh, shape_of
from trellis.kernels.explore.order import Levels, mark_useful, next_result
from trellis.kernels.explore.report import UNEXTENDABLE
from trellis.kernels.jit import njit

DROPPED = -20  # a longer match has come to the same vertex, and ends wherever this one does


@njit(cache=True, nogil=True, _nrt=False)
def _add_member(own, walk, known, count, vertex, shift):
    """Add a longer match to those that come to an event, unless nothing comes of it; return how many there are."""
    if known.bits[vertex] & REACHES_NOT:
        return count
    members, value = walk.members, 2 * vertex + shift
    if count >= members.shape[0]:
        return np.int64(NO_ROOM)
    k = count
    while k > 0 and members[k - 1] > value:
        k -= 1
    if k > 0 and members[k - 1] == value:
        return count
    for j in range(count, k, -1):
        members[j] = members[j - 1]
    members[k] = value
    return count + 1


@njit(cache=True, nogil=True, _nrt=False)
def _list_of_longer(walk, vertex, count):
    """Return the list of the longer matches that were gathered; `DROPPED`, or what there is no room for."""
    for i in range(count):
        if walk.members[i] == 2 * vertex:
            return np.int64(DROPPED)
    number = keep(walk.longer, walk.members, count)
    return np.int64(NO_ROOM) if number == FULL else np.int64(number)


@njit(cache=True, nogil=True, _nrt=False)
def _beside_start(own, walk, known, wanted, floor, vertex):
    """Return the list of the longer matches beside one that begins; `DROPPED`, or what went wrong."""
    tables, graph = own.tables, own.graph
    event, letter = graph.rows[vertex, EVENT], graph.rows[vertex, VARIABLE]
    base = t.at(tables, t.L_BASE, letter)
    if not wanted.again & (1 << base):
        return np.int64(0)
    status = find_preceded(own, known, floor, event)
    if status < 0:
        return status
    count, home = np.int64(0), (event - known.numbers[LO]) * tables[t.VARIABLES]
    for other in range(tables[t.VARIABLES]):
        one = np.int64(graph.heads[home + other]) - 1 if t.at(tables, t.L_BASE, other) == base else np.int64(-1)
        while one >= 0:
            if known.bits[one] & IS_PRECEDED:
                count = _add_member(own, walk, known, count, one, 0)
                if count < 0:
                    return count
            one = np.int64(graph.link[one]) - 1
    return _list_of_longer(walk, vertex, count)


@njit(cache=True, nogil=True, _nrt=False)
def _beside(own, walk, known, node, first, last, vertex):
    """Return the list of the longer matches beside one that goes on to a vertex; `DROPPED`, or what went wrong.

    `first` and `last` are the edges of the match to the same event.
    """
    tables, graph, sources = own.tables, own.graph, walk.sources
    event, base = graph.rows[vertex, EVENT], t.at(tables, t.L_BASE, graph.rows[vertex, VARIABLE])
    count, beside, own_source = np.int64(0), walk.nodes[node, BESIDE], walk.nodes[node, SOURCE]
    size = size_of(walk.longer, beside)
    for k in range(size):
        s, shift = own_source + 1 + k, walk.longer.values[walk.longer.ends[beside] - size + k] & 1
        while sources[s, PLACE] < sources[s, LAST] and graph.rows[graph.edges[sources[s, PLACE]], EVENT] < event:
            sources[s, PLACE] += 1
        for i in range(sources[s, PLACE], sources[s, LAST]):
            other = np.int64(graph.edges[i])
            if graph.rows[other, EVENT] != event:
                break
            same = shift == 1 and other == vertex
            if not same and t.at(tables, t.L_BASE, graph.rows[other, VARIABLE]) == base:
                count = _add_member(own, walk, known, count, other, shift)
                if count < 0:
                    return count
    for i in range(first, last):
        other = np.int64(graph.edges[i])
        if other != vertex and t.at(tables, t.L_BASE, graph.rows[other, VARIABLE]) == base:
            count = _add_member(own, walk, known, count, other, 1)
            if count < 0:
                return count
    return _list_of_longer(walk, vertex, count)


@njit(cache=True, nogil=True, _nrt=False)
def _gather(own, walk, known, wanted, top, event, floor):
    """Gather the matches behind a level that take an event; return how many, or what went wrong."""
    nodes, sources, graph, begins = walk.nodes, walk.sources, own.graph, walk.order.begins
    count, length = np.int64(0), shortened(wanted, top + 1)
    for i in range(begins[top], begins[top + 1]):
        s = nodes[i, SOURCE]
        first = last = sources[s, PLACE]
        while last < sources[s, LAST] and graph.rows[graph.edges[last], EVENT] == event:
            last += 1
        sources[s, PLACE] = last
        for k in range(first, last):
            vertex, beside = np.int64(graph.edges[k]), np.int64(0)
            if top == 0 and wanted.chosen.shape[0] and not wanted.chosen[event]:
                continue
            answer = reaches(own, known, vertex)
            if answer < 0:
                return answer
            if answer == 0:
                continue
            if wanted.mode == UNEXTENDABLE:
                if top == 0:
                    beside = _beside_start(own, walk, known, wanted, floor, vertex)
                else:
                    beside = _beside(own, walk, known, i, first, last, vertex)
                if beside == DROPPED:
                    continue
                if beside < 0:
                    return beside
            if known.bits[vertex] & IS_DEAD and walk.table[place_of_dead(walk, vertex, beside, length)]:
                continue
            if count == walk.gathered.shape[0]:
                return np.int64(NO_LEVELS)
            one = walk.gathered[count]
            one[0], one[1], one[2], one[3] = i, graph.rows[vertex, VARIABLE], vertex, beside
            count += 1
    return count


@njit(cache=True, nogil=True, _nrt=False)
def _lay_out(walk, top, count):
    """Make the next level of matches that were gathered, in the order of letters; return 0, or `NO_LEVELS`."""
    nodes, gathered, begins, variables = walk.nodes, walk.gathered, walk.order.begins, walk.variables
    begin = begins[top + 1]
    end, letter = begin, np.int64(-1)
    while True:  # a letter after the other
        following = np.int64(-1)
        for k in range(count):
            if gathered[k, 1] > letter and (following < 0 or gathered[k, 1] < following):
                following = gathered[k, 1]
        if following < 0:
            break
        letter = following
        first = end
        for k in range(count):
            if gathered[k, 1] != letter:
                continue
            node = first
            while node < end and (nodes[node, OF] != gathered[k, 2] or nodes[node, BESIDE] != gathered[k, 3]):
                node += 1
            if node == end:
                if end + 1 >= nodes.shape[0]:
                    return NO_LEVELS
                nodes[node, OF], nodes[node, BESIDE], nodes[node, LETTER] = gathered[k, 2], gathered[k, 3], letter
                walk.order.vertices[node], walk.own_variables[node] = node, variables[letter]
                end += 1
            gathered[k, 2] = node
    begins[top + 2] = end
    offsets, links, k = walk.offsets, walk.links, 0
    link = offsets[begins[top]]
    for i in range(begins[top], begin):
        offsets[i] = link
        while k < count and gathered[k, 0] == i:
            if link == links.shape[0]:
                return NO_LEVELS
            j = link
            while j > offsets[i] and links[j - 1] > gathered[k, 2]:
                links[j] = links[j - 1]
                j -= 1
            links[j] = gathered[k, 2]
            link += 1
            k += 1
    for i in range(begin, end + 1):
        offsets[i] = link
    return 0


@njit(cache=True, nogil=True, _nrt=False)
def _mark_results(own, walk, known, wanted, top):
    """Mark the matches of a level that are results; return how many there are, or what went wrong."""
    nodes, graph, begins, longer = walk.nodes, own.graph, walk.order.begins, walk.longer
    number = np.int64(0)
    for i in range(begins[top], begins[top + 1]):
        vertex, beside = nodes[i, OF], nodes[i, BESIDE]
        good = graph.wanted[vertex] and wanted.least <= top <= wanted.most
        if good and wanted.mode == UNEXTENDABLE:
            answer = is_followed(own, known, vertex)
            size = size_of(longer, beside)
            good = answer == 0
            for k in range(longer.ends[beside] - size, longer.ends[beside]):
                other, shift = longer.values[k] >> 1, longer.values[k] & 1
                if answer < 0 or not good:
                    break
                if shift:
                    answer = is_followed(own, known, other)
                    good = answer == 0
                else:
                    good = not graph.complete[other]
            if answer < 0:
                return answer
        walk.order.useful[i] = good
        number += 1 if good else 0
    return number


@njit(cache=True, nogil=True, branching=True)
def walk_groups(own, walk, known, wanted, groups_lo, groups_hi, group, begin, number):
    """Return the results of groups one after another, from the one with the place `begin` on, at most a `number`.

    Parameters
    ----------
    own, walk, known
        What the exploration goes by, and works in.
    wanted
        Which results count.
    groups_lo, groups_hi, group
        The events of groups, and the first of these that is gone through.
    begin, number
        The place of the first result among all of these groups, and how many of them.

    Returns
    -------
    status, group, place
        0, or what there was no room for; the group that it happened in, and how many results its first ones are behind.
    events, letters, ends, ranks, of_groups
        Of the results of the groups before it: their events with the letters, where each ends, its rank and its group.
    """
    tables, graph, columns, order = own.tables, own.graph, own.columns, walk.order
    below = Levels(
        order.begins[1:], order.vertices, order.places, order.useful, order.active, order.ways, order.chosen,
        order.variables,
    )  # fmt: skip
    events, letters = np.empty(1024, np.int32), np.empty(1024, np.int32)
    ends, ranks, of_groups = np.empty(64, np.int64), np.empty(64, np.int64), np.empty(64, np.int64)
    rows = used = place = 0
    width, status = own.row.shape[0], np.int64(0)
    kept_rows, kept_place = 0, 0
    while group < groups_lo.shape[0] and rows < number:
        lo, hi = groups_lo[group], groups_hi[group]
        kept_rows, kept_place, kept_used, floor, rank = rows, place, used, lo, 0
        known.numbers[LO], known.numbers[HI] = lo, hi
        clear(walk.longer)
        refresh(tables, own.lists, own.moves)
        begin_row(own.lists, own.scratch, own.row, hi)
        for i in range(width):
            own.root[i] = own.row[i]
        own.root[width] = shape_of(tables, own.lists, own.moves, own.row) if has_moves(tables) else np.int64(FULL)
        walk.nodes[0, OF], walk.nodes[0, BESIDE] = ROOT, 0
        order.begins[0], order.begins[1], walk.offsets[0], walk.offsets[1] = 0, 1, 0, 0
        top = 0
        status = np.int64(open_level(own, walk, known, 0, 0))
        while top >= 0 and rows < number and status >= 0:
            event = next_event(own, walk, known, top)
            if event < -1:
                status = event + 1
                break
            if event < 0:
                if walk.levels[top, BEFORE] == place:
                    status = np.int64(bury(walk, known, wanted, top))
                top -= 1
                continue
            while tables[t.SPAN] and top == 0 and columns[t.UNTIL_ROW, floor] <= event:
                floor += 1
            count = _gather(own, walk, known, wanted, top, event, floor)
            if count <= 0:
                status = count
                continue
            if top + 3 >= walk.levels.shape[0] or _lay_out(walk, top, count) < 0:
                status = np.int64(NO_LEVELS)
                break
            top += 1
            before = place
            status = _mark_results(own, walk, known, wanted, top)
            if status > 0:
                mark_useful(walk.offsets, walk.links, top - 1, below)
                more = next_result(walk.offsets, walk.links, walk.own_variables, top - 1, below, True)
                while more and rows < number:
                    place += 1
                    rank += 1
                    if place > begin:
                        if used + top > events.shape[0]:
                            room = 2 * (used + top)
                            events, letters = grown(events, used, room), grown(letters, used, room)
                        if rows == ends.shape[0]:
                            ends, ranks = grown(ends, rows, 2 * rows), grown(ranks, rows, 2 * rows)
                            of_groups = grown(of_groups, rows, 2 * rows)
                        for k in range(top):
                            node = below.chosen[k]
                            events[used + k] = graph.rows[walk.nodes[node, OF], EVENT]
                            letters[used + k] = walk.nodes[node, LETTER]
                        used += top
                        ends[rows], ranks[rows], of_groups[rows] = used, rank - 1, group
                        rows += 1
                    more = next_result(walk.offsets, walk.links, walk.own_variables, top - 1, below, False)
            if status < 0:
                break
            if top >= wanted.most:
                if before == place:
                    status = np.int64(bury(walk, known, wanted, top))
                top -= 1
                continue
            status = np.int64(open_level(own, walk, known, top, before))
        forget_walk(own, walk, known)
        if status < 0:
            rows, place, used = kept_rows, kept_place, kept_used
            break
        group += 1
    return (
        min(status, 0), group, place, events[:used], letters[:used], ends[:rows], ranks[:rows], of_groups[:rows]
    )  # fmt: skip
