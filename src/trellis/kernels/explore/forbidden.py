"""The matches of a pattern that a NOT forbids, with what conditions compare with events outside."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trellis.kernels.arrays import grown
from trellis.kernels.explore import tables as t
from trellis.kernels.explore.iterations import gather
from trellis.kernels.explore.lists import FULL, keep
from trellis.kernels.explore.matches import BOUND, EVENT, NO_ROOM, SLOTS
from trellis.kernels.jit import njit

MARK = -7  # the first of lists that tell of a match


class ForbiddenTerms(NamedTuple):
    """Terms that are told of the matches that a NOT forbids.

    Attributes
    ----------
    stated
        int64 (terms, 3): terms, the slots of what they have gathered or -1, and the views that they name.
    starts
        int64: the slots of first events of variables; a match begins with the first of these.
    soonest
        Whether only the match that ends first counts of those that begin with the same event and tell the same.
    """

    stated: np.ndarray
    starts: np.ndarray
    soonest: bool


NO_TERMS = ForbiddenTerms(np.empty((0, 3), np.int64), np.empty(0, np.int64), False)


@njit(cache=True, nogil=True)
def note_matches(tables, columns, lists, scratch, graph, lo, hi, told, found, tuples, size, used):
    """Note the matches of a group that was explored.

    Parameters
    ----------
    tables, columns, lists, scratch, graph, lo, hi
        What the exploration went by and found, and the group.
    told : ForbiddenTerms
        What is noted of a match.
    found, tuples, size, used
        int64 (room, 2 + terms): the first and last event of matches, and how many tuples each term tells; int64: these
        tuples; how many there are of both.

    Returns
    -------
    status
        0, or what there was no room for: nothing is noted of the group then.
    found, tuples, size, used
        Those with the matches of the group; in larger arrays if they need them.
    """
    stated = told.stated
    whole_size, whole_used, status = size, used, np.int64(0)
    key = np.empty(4 + stated.shape[0], np.int64)
    for home in range((hi - lo) * tables[t.VARIABLES]):
        vertex = np.int64(graph.heads[home]) - 1
        while vertex >= 0:
            if graph.complete[vertex]:
                row = graph.rows[vertex]
                status = _note(tables, columns, lists, scratch, row, stated, told.starts, told.soonest, key)
                if status < 0:
                    return status, found, tuples, whole_size, whole_used
                if status > 0:
                    if size == found.shape[0]:
                        found = _grown_rows(found)
                    found[size, 0], found[size, 1] = key[1], row[EVENT]
                    for i in range(stated.shape[0]):
                        number = key[3 + i]
                        begin, end = lists.ends[number - 1] if number else 0, lists.ends[number]
                        found[size, 2 + i] = end - begin
                        for k in range(begin, end):
                            one = lists.values[k]
                            for v in range(lists.ends[one - 1], lists.ends[one]):
                                if used == tuples.shape[0]:
                                    tuples = grown(tuples, used, 2 * used)
                                tuples[used] = lists.values[v]
                                used += 1
                    size += 1
            vertex = np.int64(graph.link[vertex]) - 1
    return np.int64(0), found, tuples, size, used


@njit(cache=True, nogil=True, _nrt=False)
def _note(tables, columns, lists, scratch, row, stated, starts, soonest, key):
    """Write what a match tells, as a list with a mark; return 1 if it is to be noted, 0, or `NO_ROOM`."""
    begin = np.int64(-1)
    for i in range(starts.shape[0]):
        event = row[SLOTS + starts[i]]
        if event >= 0 and (begin < 0 or event < begin):
            begin = event
    key[0], key[1], key[2] = MARK, begin, np.int64(0) if soonest else row[EVENT]
    for i in range(stated.shape[0]):
        known = row[SLOTS + stated[i, 1]] if stated[i, 1] >= 0 else np.int64(0)
        if not stated[i, 2] & ~row[BOUND]:
            known = gather(tables, columns, lists, scratch, stated[i, 0], row, known)
            if known == FULL:
                return np.int64(NO_ROOM)
        key[3 + i] = max(known, 0)
    before = lists.used[0]
    number = keep(lists, key, 3 + stated.shape[0])
    return np.int64(NO_ROOM) if number == FULL else np.int64(number == before)


@njit(cache=True, nogil=True)
def _grown_rows(rows):
    """Return rows with twice the room."""
    more = np.empty((2 * rows.shape[0], rows.shape[1]), np.int64)
    for i in range(rows.shape[0]):
        for k in range(rows.shape[1]):
            more[i, k] = rows[i, k]
    return more
