"""Explores the matches of groups by the compiled tables, with room that grows up to a bound."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.errors import OverflowInCondition, TrellisError
from trellis.events.slice import Groups, Slice
from trellis.kernels.explore import classes as c
from trellis.kernels.explore import matches as m
from trellis.kernels.explore import report as r
from trellis.kernels.explore import tables as t
from trellis.kernels.explore import vertices as g
from trellis.kernels.explore.count import count_groups
from trellis.kernels.explore.forbidden import NO_TERMS, ForbiddenTerms
from trellis.kernels.explore.groups import GroupGraphs, explore_groups, report_groups
from trellis.kernels.explore.lists import Lists, make_lists
from trellis.kernels.explore.moves import make_moves
from trellis.language.syntax import Report
from trellis.memory import free_memory
from trellis.operators.patterns.paths import Paths
from trellis.operators.patterns.tables import PatternTables, compile_tables
from trellis.operators.patterns.variables import Variables
from trellis.plan.plan import Plan
from trellis.plan.registers import register_text
from trellis.plan.sizes import Sizes

Ints = NDArray[np.int64]
MOST_EDGES = 1 << 30
LEAST_LISTS, LEAST_LIMBS = 1 << 10, 4
SHAPES = 1 << 10  # matches of more shapes look at every event anew
MODES = {Report.ANY: r.EVERY, Report.UNEXTENDABLE: r.UNEXTENDABLE, Report.MAXIMAL: r.MAXIMAL}
ADVICE = "Use a shorter WITHIN, a partition such as `[id]`, or narrower conditions."
SAMPLED = 1 << 18  # vertices that are looked at for what multiplies them


class Room:
    """The arrays that an exploration works in."""

    def __init__(self, compiled: PatternTables, places: int, sizes: Sizes) -> None:
        self.compiled, self.places, self._most = compiled, places, sizes.most_vertices
        least = min(max(compiled.number(t.VARIABLES), 1), 4)
        self.vertices = max(sizes.least_vertices, 1 << min(places // least, self._most >> 4).bit_length())
        self.edges, self.lists = 4 * self.vertices, LEAST_LISTS
        self._make_graph()
        self._make_lists()

    @property
    def width(self) -> int:
        """The numbers of a match so far."""
        return self.compiled.number(t.WIDTH)

    def _make_graph(self) -> None:
        self.graph = g.make_graph(self.vertices, self.edges, self.width, self.places)

    def _make_lists(self) -> None:
        compiled = self.compiled
        variables, terms = compiled.number(t.VARIABLES), compiled.number(t.TERMS)
        self.known: Lists = make_lists(self.lists, 8 * self.lists)
        self.programs = compiled.programs.programs._replace(values=self.known.values, ends=self.known.ends)
        self.longer: Lists = make_lists(self.lists, 8 * self.lists)
        self.scratch = m.Scratch(
            np.zeros(int(compiled.begins[-1]) + 1, np.int64), *compiled.programs.scratch(),
            np.empty(self.lists, np.int64), np.empty(self.lists, np.int64), np.empty(self.lists, np.int64),
            np.zeros((max(m.LOOPS, variables, compiled.number(t.BASES)), 4), np.int64), np.zeros(terms + 1, np.int64),
            np.zeros(compiled.number(t.STEPS), np.int64), np.zeros(variables, np.int64), np.zeros(3, np.int64),
            np.zeros(self.width, np.int64), np.zeros(self.width, np.int64), np.empty(8 * self.lists, np.int64),
            np.empty(self.lists, np.int64),
        )  # fmt: skip
        self.moves = make_moves(SHAPES, self.width, variables, terms)
        self.due = np.empty(terms + 1, np.int64)
        self.fresh = np.empty((variables, self.width), np.int64)

    def grow(self, status: int, size: int) -> None:
        """Make more room for what there was none for, or refuse."""
        if status == m.TROUBLE:
            raise self.compiled.misfit(int(self.scratch.decided[-1]), self.scratch.events)
        if status == r.NO_BITS:
            raise TrellisError(
                f"REPORT maximal compares every two of the matches so far of {size:,} events, which are too many",
                "Use REPORT unextendable, a shorter WITHIN, or a partition such as `[id]`.",
            )
        bytes_needed = 2 * (self.vertices * (8 * self.width + 48) + 4 * self.edges + 150 * self.lists)
        if status == g.NO_VERTICES and (2 * self.vertices > self._most or bytes_needed > free_memory()):
            raise self.too_many(self.graph.rows, f"more than {self.vertices:,} matches so far", size)
        if status == g.NO_EDGES and (2 * self.edges > MOST_EDGES or bytes_needed > free_memory()):
            raise self.too_many(self.graph.rows, f"more than {self.edges:,} steps between matches so far", size)
        if status == m.NO_ROOM and (2 * self.lists > self._most or bytes_needed > free_memory()):
            raise self.too_many(self.graph.rows, f"more than {self.lists:,} different sets of events", size)
        if status == g.NO_VERTICES:
            self.vertices *= 2
            self.edges = max(self.edges, 2 * self.vertices)
            self._make_graph()
        elif status == g.NO_EDGES:
            self.edges *= 2
            self._make_graph()
        else:
            self.lists *= 4
            self._make_lists()

    def too_many(self, rows: Ints, what: str, size: int) -> TrellisError:
        """Return the error for too many matches so far, with the register that multiplies them most."""
        rows, compiled = rows[:SAMPLED], self.compiled
        different = [len(np.unique(rows[:, m.SLOTS + slot])) for slot in range(len(compiled.registers))]
        why = ""
        if different:
            register = compiled.registers[int(np.argmax(different))]
            texts = [
                one.condition.text
                for one in compiled.guard_terms
                if register.variable in one.variables and register in map(one.register, one.references)
            ]
            asks = f", for `{texts[0]}`" if texts else ""
            why = f"; most of all they differ in {register_text(register, compiled.guard_terms[0].singles)}{asks}"
        return TrellisError(f"there are {what} of {size:,} events{why}", ADVICE)


class Exploration:
    """The matches of a slice by exploration."""

    def __init__(self, plan: Plan, events: Slice, variables: Variables) -> None:
        self.plan, self.events, self.variables = plan, events, variables
        self._classes = 0

    @cached_property
    def compiled(self) -> PatternTables:
        """The tables."""
        try:
            return compile_tables(self.plan, self.events, self.variables)
        except OverflowInCondition:  # perhaps of an event that is never asked: then no value of it is an extreme
            plain = tuple(replace(one, sets=True) for one in self.variables.guard_terms)
            return compile_tables(self.plan, self.events, replace(self.variables, guard_terms=plain))

    def paths(self, groups: Groups, first: int, last: int) -> Paths:
        """Return the results of the groups `[first, last)` as paths."""
        room, found = self._room(groups, first, last), []
        for graphs, sizes in self._graphs(groups, first, last, room):
            found += self._reported(graphs, room, sizes)
        paths = _joined(found)
        return replace(paths, codes=np.array(self.compiled.alphabet.codes, np.int64)[paths.codes])

    def forbidden(self, groups: Groups, terms: ForbiddenTerms) -> tuple[Ints, Ints]:
        """Return all matches, and what terms tell of them; see `trellis.kernels.explore.forbidden.note_matches`."""
        room, found = self._room(groups, 0, len(groups)), []
        for (_, *arrays), _ in self._explored(groups, 0, len(groups), room, terms):
            found.append(arrays)
        matches, tuples = zip(*found, strict=True)
        return np.concatenate(matches), np.concatenate(tuples)

    def vertices(self, groups: Groups) -> int:
        """Return how many matches so far there are."""
        room = self._room(groups, 0, len(groups))
        return sum(len(graphs.events) for graphs, _ in self._graphs(groups, 0, len(groups), room))

    def _room(self, groups: Groups, first: int, last: int) -> Room:
        most = int((groups.hi[first:last] - groups.lo[first:last]).max(initial=0))
        return Room(self.compiled, most * self.compiled.number(t.VARIABLES), self.plan.sizes)

    def _graphs(self, groups: Groups, first: int, last: int, room: Room) -> Iterator[tuple[GroupGraphs, Ints]]:
        """Yield the graphs of groups, and their numbers of events."""
        for (graphs, *_), sizes in self._explored(groups, first, last, room):
            yield GroupGraphs(*graphs), sizes

    def _explored(
        self, groups: Groups, first: int, last: int, room: Room, terms: ForbiddenTerms | None = None
    ) -> Iterator[tuple[list[Any], Ints]]:
        """Yield the graphs of groups, or what is told of their matches, and their numbers of events."""
        compiled = self.compiled
        lo, hi = groups.lo.astype(np.int64), groups.hi.astype(np.int64)
        if terms is not None:
            order = np.lexsort((hi, lo))
            lo, hi = lo[order], hi[order]
        status = 1
        while status:
            status, at, *found = explore_groups(
                compiled.tables, compiled.columns, room.programs, room.known, room.scratch, room.moves,
                room.graph, room.due, room.fresh, lo, hi, first, last, terms is not None, terms or NO_TERMS,
            )  # fmt: skip
            yield found, hi[first:at] - lo[first:at]
            if status:
                first = at
                room.grow(status, int(hi[at] - lo[at]))

    def classes(self, groups: Groups) -> int:
        """Return how many matches so far are stated apart when they are counted, at most at once."""
        self.counts(groups)
        return self._classes

    def counts(self, groups: Groups) -> list[int]:
        """Return the exact numbers of results of groups; see `trellis.plan.carried.counts_alone`."""
        compiled, first, last = self.compiled, 0, len(groups)
        lo, hi = groups.lo.astype(np.int64), groups.hi.astype(np.int64)
        room, chosen = Room(compiled, 0, self.plan.sizes), self._chosen
        size, limbs = self.plan.sizes.least_vertices, LEAST_LIMBS
        some = self.plan.bound.report is Report.UNEXTENDABLE and self.plan.automaton.is_followed()
        steps = size if some else 0
        variables = compiled.number(t.VARIABLES) + compiled.number(t.NOTS)
        row = np.empty(room.width, np.int64)
        classes = c.make_classes(size, room.width, variables, limbs, len(room.moves.rows), steps)
        totals, found = np.zeros((len(groups), limbs), np.uint64), []
        while True:
            status, at = count_groups(
                compiled.tables, compiled.columns, room.programs, room.known, room.scratch, room.moves, classes, row,
                room.fresh[0], room.due, lo, hi, first, last, chosen, totals,
            )  # fmt: skip
            found += [sum(limb << (64 * i) for i, limb in enumerate(one)) for one in totals[first:at].tolist()]
            if status == 0:
                self._classes = int(classes.sizes[c.MOST])
                return found
            first = at
            if status == c.NO_LIMBS:
                limbs *= 2
                totals = np.zeros((len(groups), limbs), np.uint64)
            elif status == c.NO_CLASSES:
                size *= 2
                if size > self.plan.sizes.most_vertices or size * self._class_bytes(room, limbs) > free_memory():
                    rows = classes.rows
                    raise room.too_many(rows, f"more than {size // 2:,} different matches so far", int(hi[at] - lo[at]))
            elif status == c.NO_STEPS:
                steps *= 4
                if steps > MOST_EDGES or steps * (20 + 8 * limbs) > free_memory():
                    what = f"more than {steps // 4:,} steps between matches so far"
                    raise room.too_many(classes.rows[: classes.sizes[c.MOST]], what, int(hi[at] - lo[at]))
            else:
                room.grow(status, int(hi[at] - lo[at]))
            classes = c.make_classes(size, room.width, variables, limbs, len(room.moves.rows), steps)

    def _class_bytes(self, room: Room, limbs: int) -> int:
        return 8 * room.width + 32 * limbs + 112 + sum(map(self.compiled.number, (t.VARIABLES, t.NOTS))) * 8 * c.WAY

    @property
    def _chosen(self) -> NDArray[np.bool_]:
        return np.empty(0, np.bool_) if self.events.begins is None else self.events.begins

    def _reported(self, graphs: GroupGraphs, room: Room, sizes: Ints) -> list[list[NDArray[Any]]]:
        """Return the results of groups that were explored."""
        chosen = self._chosen
        mode, same = MODES[self.plan.bound.report], self.compiled.columns[t.SAME_ROW]
        found, group = [], 0
        while True:
            status, group, *arrays = report_groups(graphs, group, mode, same, room.longer, room.scratch.members, chosen)
            found.append(arrays)
            if status == 0:
                return found
            room.grow(status, int(sizes[group]))


def _joined(parts: list[list[NDArray[Any]]]) -> Paths:
    if len(parts) == 1:
        events, variables, offsets, targets, begins, ambiguous = parts[0]
    else:
        columns = [*zip(*parts, strict=True)]
        vertices = np.cumsum([0, *(len(one) for one in columns[0])])
        edges = np.cumsum([0, *(len(one) for one in columns[3])])
        events, variables = np.concatenate(columns[0]), np.concatenate(columns[1])
        offsets = np.concatenate([[0], *(one[1:] + edge for one, edge in zip(columns[2], edges, strict=False))])
        targets = np.concatenate(columns[3])
        for k, v in enumerate(vertices[:-1].tolist()):
            targets[edges[k] : edges[k + 1]] += v
        begins = np.concatenate([[0], *(one[1:] + v for one, v in zip(columns[4], vertices, strict=False))])
        ambiguous = np.concatenate(columns[5])
    return Paths(events, variables, offsets, targets, begins, ambiguous)
