"""The trends of a graph that AFTER MATCH keeps: one for each place, without those that are skipped."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from trellis.events.slice import Ints, Slice
from trellis.kernels.best import leading as kernel
from trellis.kernels.best.search import NOWHERE
from trellis.language.bound import BoundQuery
from trellis.language.syntax import Skip
from trellis.operators.after_match import Keeper, next_places
from trellis.operators.batch import NO_RANK, PathBatch
from trellis.operators.trends.best import BestTrends
from trellis.operators.trends.graph import EventGraph
from trellis.operators.trends.links import Links, links_of
from trellis.operators.trends.search import SearchRuns
from trellis.operators.trends.tasks import TrendTasks
from trellis.plan.sizes import Sizes

RULES = {
    Skip.PAST_LAST: kernel.PAST_LAST, Skip.TO_NEXT: kernel.TO_NEXT, Skip.TO_FIRST: kernel.TO_FIRST,
    Skip.TO_LAST: kernel.TO_LAST,
}  # fmt: skip
AIM = 1  # where a vertex has the variable that a rule names


@dataclass(frozen=True)
class Places:
    """Where the next result may begin: the rule, the event of each vertex, and which have the variable it names."""

    skip: Skip
    events: Ints
    aims: NDArray[np.bool_]


def leading_trends(
    bound: BoundQuery, events: Slice, graph: EventGraph, tasks: TrendTasks, places: Places, sizes: Sizes,
    are_few: Callable[[], bool],
) -> PathBatch | None:  # fmt: skip
    """Return the trends of all groups that are kept, in their order; None where all are to be listed.

    That is where ORDER BY has keys that cannot be searched by, or would need a search for each first event.

    Parameters
    ----------
    bound
        The query, whose ORDER BY chooses among the trends of one first event.
    events, graph, tasks
        The vertices, their edges and the tasks over them.
    places
        Where the next result may begin.
    sizes
        The sizes of searches.
    are_few
        Tells whether all trends are listed sooner than one is searched for each first event.
    """
    if not len(events) or not len(tasks):
        return PathBatch.concat([])
    best = BestTrends(bound, events, links_of(graph), tasks, sizes)
    if best.steps is None:
        return None
    search = best.search_of_all()
    if search is None or search.keys.closed:
        return None if are_few() else _by_starts(bound, events, graph, tasks, places, sizes)
    every = np.arange(len(tasks))
    found, ends, task = kernel.leading_paths(
        search.tasks(SearchRuns(every, every)), tasks.group, best.space.links.arrays, search.shape,
        search.room(), places.events, places.aims, RULES[places.skip],
    )  # fmt: skip
    return PathBatch.of_ends(found, ends, (np.full(len(task), NO_RANK), tasks.group[task]))


def leading_by_index(
    bound: BoundQuery, events: Slice, links: Links, tasks: TrendTasks, places: Places, sizes: Sizes
) -> PathBatch | None:
    """Return the same for one task without a list of edges; None where the keys cannot be searched so.

    The best suffix of each event, and of equal ones the first in the order of ranks, makes a graph of one edge each.
    """
    best = BestTrends(bound, events, links, tasks, sizes)
    search = None if best.steps is None else best.search_of_all()
    if search is None or search.keys.closed:
        return None
    size, lo, follow = len(links.latest), int(tasks.lo[0]), search.room()[:, 1]
    usable, some = np.zeros(size, np.bool_), np.zeros(size, np.bool_)
    here = slice(lo, lo + len(follow))
    usable[here], some[here] = follow != NOWHERE, follow >= 0
    successors = (follow[follow >= 0] + lo).astype(np.int32)
    graph = EventGraph(np.append(0, np.cumsum(some)), successors, links.latest)
    return leading_trends(bound, replace(events, usable=usable), graph, tasks, places, sizes, lambda: True)


def _by_starts(
    bound: BoundQuery, events: Slice, graph: EventGraph, tasks: TrendTasks, places: Places, sizes: Sizes
) -> PathBatch | None:
    """Search the best trend of every first event, and keep those that others do not skip.

    Values that do not add up do not tell the order of ranks among equals, which a search for each alone does.
    """
    if not tasks.single:
        spans = tasks.hi - tasks.lo
        own = np.repeat(np.arange(len(tasks)), spans)
        starts = np.arange(len(own)) - np.repeat(np.cumsum(spans) - spans, spans) + tasks.lo[own]
        begins = events.usable[starts] & (tasks.every | (graph.latest[starts] < tasks.lo[own]))
        own, starts = own[begins], starts[begins]
        tasks = replace(tasks.chosen(own), lo=starts, first_end=starts, number=np.arange(len(own)), single=True)
    firsts = places.events[tasks.lo]
    new = np.ones(len(tasks), np.bool_)
    new[1:] = (firsts[1:] != firsts[:-1]) | (tasks.group[1:] != tasks.group[:-1])
    apart = replace(tasks, group=np.cumsum(new) - 1)
    found = BestTrends(bound, events, links_of(graph), apart, sizes).best_of_groups()
    if found is None:
        return None
    vertices = found.positions
    events_of = places.events[vertices].astype(np.int32)
    over = PathBatch(events_of, found.offsets, (found.ranks, found.groups), places.aims[vertices] + 0)
    groups = tasks.group[found.groups]
    chosen = found.take(Keeper().rows_of(groups, over.firsts.astype(np.int64), next_places(over, places.skip, AIM)))
    return PathBatch(chosen.positions, chosen.offsets, (chosen.ranks, tasks.group[chosen.groups]))
