"""The first results of a pattern, by a walk in their order over matches so far that are made when they are come to."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from trellis.errors import TrellisError
from trellis.events.slice import Slice
from trellis.events.variables import are_not_negative
from trellis.kernels.explore import demand as d
from trellis.kernels.explore import lazy as kernel
from trellis.kernels.explore import levels as v
from trellis.kernels.explore import tables as t
from trellis.kernels.explore.matches import NO_ROOM
from trellis.kernels.explore.vertices import NO_EDGES, NO_VERTICES
from trellis.language.syntax import Report
from trellis.operators.batch import VARIABLE, PathBatch
from trellis.operators.patterns.absent import make_variables
from trellis.operators.patterns.explore import MODES, Exploration, Room
from trellis.operators.patterns.tables import PatternTables
from trellis.operators.trends.tasks import length_bounds
from trellis.plan.choice import of_patterns
from trellis.plan.fewest import needs_fewest
from trellis.plan.plan import Plan

Ints = NDArray[np.int64]
LEAST_NODES, MOST_NODES = 1 << 12, 1 << 22  # matches on all levels of a walk
MOST_VERTICES = MOST_LISTS = 1 << 21  # that are made for it
LEAST_STEPS = 1 << 18  # events that it may look at, however soon others would be done: some ten milliseconds
STEPS_OF_JOINS = 8  # steps of counting a join in the time in which a walk looks at an event


def walk_to_first(
    plan: Plan, events: Slice, exploration: Exploration, begin: int, end: int, steps: int
) -> PathBatch | None:
    """Return the results of all groups, one after another, from `begin` to `end`, as far as there are any.

    None where they are not found with so many events looked at, or with the room that there is.
    """
    if plan.bound.report is Report.MAXIMAL:
        return None
    try:
        return FirstResults(plan, events, exploration, steps).results(begin, end)
    except TrellisError:  # others may tell, or say why not
        return None


def walk_join_to_first(plan: Plan, events: Slice, begin: int, end: int, steps: float) -> PathBatch | None:
    """Return the same of a plan of a join, which takes so many steps to count."""
    plan, most = replace(plan, operator=of_patterns(plan)), int(min(steps / STEPS_OF_JOINS, plan.sizes.walked_steps))
    return walk_to_first(plan, events, Exploration(plan, events, make_variables(plan, events)), begin, end, most)


class FirstResults:
    """The first results of a slice, by a walk over its groups with room that grows.

    Parameters
    ----------
    plan, events, exploration
        The plan, the events with their groups, and what explores their matches.
    steps
        About how many events the walk may look at.
    """

    def __init__(self, plan: Plan, events: Slice, exploration: Exploration, steps: int) -> None:
        self._plan, self._compiled = plan, exploration.compiled
        groups, fewest = events.groups, needs_fewest(plan)
        self._fewest = fewest is not None and are_not_negative(fewest, events)
        self._lo, self._hi = groups.lo.astype(np.int64), groups.hi.astype(np.int64)
        self._most = int((self._hi - self._lo).max(initial=0))
        self._room = Room(self._compiled, self._most * self._compiled.number(t.VARIABLES), plan.sizes)
        self._nodes = LEAST_NODES
        self._left = min(plan.sizes.walked_steps, max(steps, LEAST_STEPS))
        chosen = np.empty(0, np.bool_) if events.begins is None else events.begins
        least, most = length_bounds(plan.bound.having)
        self._wanted = v.Wanted(MODES[plan.bound.report], least, most, _again(self._compiled), chosen)

    def results(self, begin: int, end: int) -> PathBatch | None:
        """Return the results from `begin` to `end`."""
        group, found, codes = 0, [], np.array(self._compiled.alphabet.codes, np.int64)
        while True:
            own, walk, known = self._arrays(codes & VARIABLE)
            status, group, place, *arrays = kernel.walk_groups(
                own, walk, known, self._wanted, self._lo, self._hi, group, begin, end - begin
            )
            self._left = int(known.numbers[d.STEPS])
            positions, letters, ends, ranks, groups = arrays
            found.append(PathBatch.of_ends(positions, ends, (ranks, groups), codes[letters]))
            begin, end = max(0, begin - place), end - place
            if status == 0 or begin >= end:
                return PathBatch.concat(found)
            if not self._grow(int(status), int(self._hi[group] - self._lo[group])):
                return None

    def _arrays(self, variables: Ints) -> tuple[d.Explorer, v.MatchWalk, d.Known]:
        compiled, room = self._compiled, self._room
        levels = self._most + 4
        own = d.Explorer(
            compiled.tables, compiled.columns, room.programs, room.known, room.scratch, room.moves, room.graph,
            room.due, room.fresh, np.empty(room.width, np.int64), np.empty(room.width + 1, np.int64),
        )  # fmt: skip
        known = d.make_known(room.vertices, levels)
        known.numbers[d.STEPS], known.numbers[d.FEWEST] = self._left, self._fewest
        return own, v.make_walk(levels, self._nodes, room.vertices, variables, room.longer), known

    def _grow(self, status: int, size: int) -> bool:
        """Make much more room for what there was none for, since groups begin anew; return whether to go on."""
        if status == d.NO_STEPS:
            return False
        if status == d.NO_LEVELS:
            self._nodes *= 4
            return self._nodes <= MOST_NODES
        if status == NO_ROOM:
            self._room.grow_all_lists(size)
        else:
            self._room.grow(status, size)
            if status in (NO_VERTICES, NO_EDGES):
                self._room.grow(status, size)
        return self._room.vertices <= MOST_VERTICES and self._room.lists <= MOST_LISTS


def _again(compiled: PatternTables) -> int:
    """Return the variables, as bits, that events can be bound to which do not begin a match."""
    following = [*_list(compiled, t.A_NEXT)]
    if 0 not in _list(compiled, t.A_TARGET):
        following = following[1:]
    bases, found = _list(compiled, t.L_BASE), 0
    for letters in following:
        for letter in range(compiled.number(t.VARIABLES)):
            found |= (letters >> letter & 1) << bases[letter]
    return found


def _list(compiled: PatternTables, field: int) -> list[int]:
    """Return one of the lists of the tables."""
    begin = int(compiled.tables[field])
    behind = [one for one in compiled.tables[t.A_BEGINS : t.HEAD].tolist() if one > begin]
    return compiled.tables[begin : min(behind, default=len(compiled.tables))].tolist()
