"""Where a graph of events may be cut into graphlets, and what each graphlet costs: exact numbers of paths.

Predecessors of an event are the latest first, successors the earliest first. A cut at `b` lies before event `b`.
"""

from __future__ import annotations

import numpy as np

from trellis.kernels.arrays import first_at_least
from trellis.kernels.jit import njit
from trellis.kernels.papers.cet.grow import HUGE, is_entry

EDGES, UPDATES, KEPT, GROWN, VISITS, COSTS = range(6)


@njit(cache=True, nogil=True)
def forbidden_cuts(lo, hi, graph):
    """Return for each place from `lo` to `hi` whether an edge over it forbids a cut.

    An edge may be cut only if it runs from an event without successor before the cut to one without predecessor behind
    it (the CET paper's Definition 6, corrected). So an event with several successors forbids cuts between its first and
    its last one, and one with several predecessors those between them.
    """
    offsets, successors, before_offsets, before = graph.offsets, graph.successors, graph.before_offsets, graph.before
    change = np.zeros(hi - lo + 2, np.int64)
    for x in range(lo, hi):
        if offsets[x + 1] - offsets[x] > 1:
            change[successors[offsets[x]] - lo + 1] += 1
            change[successors[offsets[x + 1] - 1] - lo + 1] -= 1
        if before_offsets[x + 1] - before_offsets[x] > 1:
            change[before[before_offsets[x + 1] - 1] - lo + 1] += 1
            change[before[before_offsets[x]] - lo + 1] -= 1
    depth = np.int64(0)
    forbidden = np.zeros(hi - lo + 1, np.bool_)
    for b in range(hi - lo + 1):
        depth += change[b]
        forbidden[b] = depth > 0
    return forbidden


@njit(cache=True, nogil=True)
def paths_of_windows(lo, hi, bases, graph):
    """Return the number of paths from a start to each event, and from each event to an end, for window after window.

    What belongs to event x of window w stands at `bases[w] + x - lo[w]`.
    """
    offsets, successors, before_offsets, before = graph.offsets, graph.successors, graph.before_offsets, graph.before
    ok = graph.usable
    forwards, backwards = np.zeros(bases[-1]), np.zeros(bases[-1])
    for w in range(lo.shape[0]):
        base = bases[w] - lo[w]
        for x in range(lo[w], hi[w]):
            i = before_offsets[x]
            if not ok[x]:
                continue
            if i == before_offsets[x + 1] or before[i] < lo[w]:
                forwards[base + x] = 1.0
            while i < before_offsets[x + 1] and before[i] >= lo[w]:
                forwards[base + x] = min(forwards[base + x] + forwards[base + before[i]], HUGE)
                i += 1
        for x in range(hi[w] - 1, lo[w] - 1, -1):
            i = offsets[x]
            if not ok[x]:
                continue
            if i == offsets[x + 1] or successors[i] >= hi[w]:
                backwards[base + x] = 1.0
            while i < offsets[x + 1] and successors[i] < hi[w]:
                backwards[base + x] = min(backwards[base + x] + backwards[base + successors[i]], HUGE)
                i += 1
    return forwards, backwards


@njit(cache=True, nogil=True)
def graphlet_costs(bounds, first, stop, limit, lo, hi, bases, forwards, backwards, graph, costs):
    """Set `costs[j]` of the graphlet that begins with piece `first` and ends with piece `first + j`; return how many.

    Pieces up to `stop` are tried, until what is stored while the graphlet grows is more events than `limit`. The costs:
    edges inside; partial trends made; events that the stored ones name in the end, and while it grows; and how often
    the trends of all windows visit it. `lo`, `hi`, `bases`, `forwards` and `backwards` are those of the windows that
    hold the pieces, as in `paths_of_windows`.
    """
    offsets, successors, before_offsets, before = graph.offsets, graph.successors, graph.before_offsets, graph.before
    ok = graph.usable
    u = bounds[first]
    size = bounds[stop] - u
    number, named, gone = np.zeros(size), np.zeros(size), np.zeros(stop - first + 1)
    edges = updates = kept = grown = visits = 0.0
    for j in range(first, stop):
        for x in range(bounds[j], bounds[j + 1]):
            if is_entry(x, u, True, ok, before_offsets, before):
                number[x - u] = named[x - u] = 1.0
            i = before_offsets[x]
            while i < before_offsets[x + 1] and before[i] >= u:
                p = before[i] - u
                number[x - u] = min(number[x - u] + number[p], HUGE)
                named[x - u] = min(named[x - u] + named[p] + number[p], HUGE)
                edges += 1.0
                i += 1
            updates += number[x - u]
            grown += named[x - u]
            kept += named[x - u]
            if offsets[x] < offsets[x + 1]:
                last = successors[offsets[x + 1] - 1]
                if last < bounds[stop]:  # an exit only of graphlets that end before its last successor
                    piece = first_at_least(bounds, 0, bounds.shape[0], last + 1) - 1
                    gone[piece - first] += named[x - u]
            if ok[x]:
                for w in range(lo.shape[0]):
                    base = bases[w] - lo[w]
                    enter = (
                        1.0 if before_offsets[x] == before_offsets[x + 1] or before[before_offsets[x]] < lo[w] else 0.0
                    )
                    k = i
                    while k < before_offsets[x + 1] and before[k] >= lo[w]:
                        enter += forwards[base + before[k]]
                        k += 1
                    visits = min(visits + enter * backwards[base + x], HUGE)
        kept -= gone[j - first]
        costs[j - first, EDGES], costs[j - first, UPDATES] = edges, updates
        costs[j - first, KEPT], costs[j - first, GROWN] = kept, grown
        costs[j - first, VISITS] = visits
        if grown > limit:
            return j - first
    return stop - first
