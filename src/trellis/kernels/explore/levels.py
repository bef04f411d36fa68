"""The levels of a walk to the first results: the matches so far that a sequence of events can have made, and dead ends.

See `trellis.kernels.explore.lazy`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trellis.kernels.explore import tables as t
from trellis.kernels.explore.demand import (
    EVENTS,
    FACTOR,
    HI,
    IS_DEAD,
    LO,
    NO_LEVELS,
    expand,
    is_whole,
    limit_of,
    sort_edges,
)
from trellis.kernels.explore.graph import ALL_LETTERS
from trellis.kernels.explore.lists import Lists, clear, hashed
from trellis.kernels.explore.matches import EVENT
from trellis.kernels.explore.order import Levels, make_levels
from trellis.kernels.explore.vertices import EDGES, NO_VERTICES, VERTICES, forget_graph
from trellis.kernels.jit import njit

UPTO, SIZE, LIMIT, BASE, BEFORE, SOURCES = range(6)
"""Numbers of a level: the event up to which it was looked for the next ones, how many are looked at next, the event at
which none can follow; the first edge, the number of results before it, and its first source."""
OF, BESIDE, LETTER, SOURCE = range(4)
"""Numbers of a match on a level: its vertex, the list of the longer matches beside it, its letter, its first source."""
AT, PLACE, LAST = range(3)  # numbers of a source of edges: the vertex, the next edge, and the one behind the last


class MatchWalk(NamedTuple):
    """Room for a walk.

    Attributes
    ----------
    levels, nodes, sources, gathered
        The levels, the matches on them, the vertices whose edges these follow, and matches of the level that is made:
        the place of the one before, the letter, the vertex and the list of longer matches.
    offsets, links
        For each match of a level those of the next one that follow it.
    order
        The levels as `trellis.kernels.explore.order` has them, behind that of the match without events.
    own_variables, variables
        The number of the variable of each match on a level, and of each letter.
    longer
        Lists of longer matches: twice a vertex, and one more where it is the same match, cut otherwise.
    dead, table
        Dead ends, each a vertex, a list of longer matches and a number of events; and a hash of them, plus one.
    members, used
        Room for a list; how many dead ends there are.
    """

    levels: np.ndarray  # int64 (levels, 6)
    nodes: np.ndarray  # int64 (room, 4)
    sources: np.ndarray  # int64 (room, 3)
    gathered: np.ndarray  # int64 (room, 4)
    offsets: np.ndarray  # int64 (room + 1,)
    links: np.ndarray  # int32 (room,)
    order: Levels
    own_variables: np.ndarray  # int64 (room,)
    variables: np.ndarray  # int64 (letters,)
    longer: Lists
    dead: np.ndarray  # int64 (vertices, 3)
    table: np.ndarray  # int32 (power of two,)
    members: np.ndarray  # int64 (room,)
    used: np.ndarray  # int64 (1,)


class Wanted(NamedTuple):
    """Which results are wanted.

    Attributes
    ----------
    mode, least, most
        REPORT, and the lengths of results that count.
    again
        The variables, as bits, that events can be bound to which do not begin a match.
    chosen
        The events at which results may begin (empty: all).
    """

    mode: int
    least: int
    most: int
    again: int
    chosen: np.ndarray  # bool (events,)


def make_walk(levels: int, room: int, vertices: int, variables: np.ndarray, longer: Lists) -> MatchWalk:
    """Return room for so many levels, matches on all of them, and dead ends, of which there is a power of two."""
    return MatchWalk(
        np.zeros((levels, 6), np.int64), np.zeros((room, 4), np.int64), np.zeros((room, 3), np.int64),
        np.empty((room, 4), np.int64), np.zeros(room + 1, np.int64), np.empty(room, np.int32),
        make_levels(levels, room, 1), np.empty(room, np.int64), variables, longer, np.empty((vertices, 3), np.int64),
        np.zeros(2 * vertices, np.int32), np.empty(len(longer.values), np.int64), np.zeros(1, np.int64),
    )  # fmt: skip


# --- Dead ends -----------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True, _nrt=False)
def shortened(wanted, depth):
    """Return as much of a number of events as decides which longer matches are results."""
    return min(depth, wanted.least if wanted.most > depth + (1 << 40) else depth)


@njit(cache=True, nogil=True, _nrt=False)
def place_of_dead(walk, vertex, beside, length):
    """Return the place of a dead end in the hash, or where it belongs."""
    key, dead, table = walk.members, walk.dead, walk.table
    key[0], key[1], key[2] = vertex, beside, length
    mask = np.uint64(table.shape[0] - 1)
    place = hashed(key, 0, 3) & mask
    while table[place]:
        one = np.int64(table[place]) - 1
        if dead[one, 0] == vertex and dead[one, 1] == beside and dead[one, 2] == length:
            break
        place = (place + np.uint64(1)) & mask
    return np.int64(place)


@njit(cache=True, nogil=True, _nrt=False)
def bury(walk, known, wanted, top):
    """Note that nothing comes of the matches of a level; return 0, or what there is no room for."""
    nodes, begins, length = walk.nodes, walk.order.begins, shortened(wanted, top)
    for i in range(begins[top], begins[top + 1] if top else 0):
        place = place_of_dead(walk, nodes[i, OF], nodes[i, BESIDE], length)
        if walk.table[place]:
            continue
        one = walk.used[0]
        if one == walk.dead.shape[0]:
            return NO_VERTICES
        walk.dead[one, 0], walk.dead[one, 1], walk.dead[one, 2] = nodes[i, OF], nodes[i, BESIDE], length
        walk.table[place] = one + 1
        walk.used[0] = one + 1
        known.bits[nodes[i, OF]] |= IS_DEAD
    return 0


@njit(cache=True, nogil=True, _nrt=False)
def forget_walk(own, walk, known):
    """Begin anew with no vertices."""
    graph, (lo, hi) = own.graph, (known.numbers[LO], known.numbers[HI])
    for v in range(graph.sizes[VERTICES]):
        known.bits[v], known.done[v] = 0, 0
    forget_graph(graph, lo, hi, own.tables[t.VARIABLES])
    for i in range(walk.used[0]):
        walk.table[place_of_dead(walk, walk.dead[i, 0], walk.dead[i, 1], walk.dead[i, 2])] = 0
    walk.used[0] = 0
    clear(walk.longer)


# --- Levels -----------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True, _nrt=False)
def open_level(own, walk, known, top, results):
    """Make a level ready to be looked for what follows it; return 0, or what there is no room for."""
    levels, nodes, sources, begins = walk.levels, walk.nodes, walk.sources, walk.order.begins
    hi, number, limit = known.numbers[HI], np.int64(0), np.int64(0)
    event = np.int64(-1)
    if top:
        event = own.graph.rows[nodes[begins[top], OF], EVENT]
        last = begins[top] - 1  # the sources of the level before end behind those of its last match
        number = nodes[last, SOURCE] + 1 + size_of(walk.longer, nodes[last, BESIDE])
    levels[top, SOURCES] = number
    for i in range(begins[top], begins[top + 1]):
        limit = max(limit, limit_of(own, nodes[i, OF], hi))
        nodes[i, SOURCE] = number
        beside = nodes[i, BESIDE]
        size = size_of(walk.longer, beside)
        if number + size + 1 > sources.shape[0]:
            return NO_LEVELS
        sources[number, AT] = nodes[i, OF]
        for k in range(size):
            sources[number + 1 + k, AT] = walk.longer.values[walk.longer.ends[beside] - size + k] >> 1
        for k in range(size + 1):
            sources[number + k, PLACE] = sources[number + k, LAST] = 0
        number += size + 1
    levels[top, UPTO] = event + 1 if top else known.numbers[LO]
    levels[top, SIZE] = hi if is_whole(own.tables, event) else EVENTS
    levels[top, LIMIT], levels[top, BASE], levels[top, BEFORE] = limit, own.graph.sizes[EDGES], results
    return 0


@njit(cache=True, nogil=True, _nrt=False)
def size_of(lists, number):
    """Return the size of a list."""
    return lists.ends[number] - lists.ends[number - 1] if number else lists.ends[0]


@njit(cache=True, nogil=True, _nrt=False)
def _look_farther(own, walk, known, top):
    """Find the edges to the next events behind a level; return 0, or what went wrong."""
    levels, sources, graph, begins = walk.levels, walk.sources, own.graph, walk.order.begins
    last = begins[top + 1] - 1
    behind = walk.nodes[last, SOURCE] + 1 + size_of(walk.longer, walk.nodes[last, BESIDE])
    begin = levels[top, UPTO]
    end = min(begin + levels[top, SIZE], levels[top, LIMIT])
    graph.sizes[EDGES] = levels[top, BASE]
    for s in range(levels[top, SOURCES], behind):
        sources[s, PLACE] = graph.sizes[EDGES]
        status = expand(own, known, sources[s, AT], begin, end, ALL_LETTERS)
        if status < 0:
            return status
        sort_edges(graph, sources[s, PLACE], 0)
        sources[s, LAST] = graph.sizes[EDGES]
    levels[top, UPTO] = end
    levels[top, SIZE] *= FACTOR
    return np.int64(0)


@njit(cache=True, nogil=True, _nrt=False)
def next_event(own, walk, known, top):
    """Return the next event behind a level, -1 for none; below that, what went wrong, less one."""
    levels, nodes, sources, graph, begins = walk.levels, walk.nodes, walk.sources, own.graph, walk.order.begins
    while True:
        event = np.int64(-1)
        for i in range(begins[top], begins[top + 1]):
            s = nodes[i, SOURCE]
            if sources[s, PLACE] < sources[s, LAST]:
                other = graph.rows[graph.edges[sources[s, PLACE]], EVENT]
                if event < 0 or other < event:
                    event = other
        if event >= 0 or levels[top, UPTO] >= levels[top, LIMIT]:
            return event
        status = _look_farther(own, walk, known, top)
        if status < 0:
            return status - 1
