"""Explores the matches of groups by the compiled tables, with room that grows within the bytes that are allowed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
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
from trellis.kernels.explore.beside import count_beside
from trellis.kernels.explore.count import count_groups
from trellis.kernels.explore.easier import RegisterEase
from trellis.kernels.explore.forbidden import NO_TERMS, ForbiddenTerms
from trellis.kernels.explore.groups import GroupGraphs, explore_groups, report_groups
from trellis.kernels.explore.lists import Lists, grow_lists, make_lists
from trellis.kernels.explore.moves import make_moves
from trellis.kernels.explore.starts import NOT_ALIKE, CountedStarts, plain_starts
from trellis.language.syntax import Report
from trellis.memory import beyond_limit, fits_memory, gigabytes, limit_text
from trellis.operators.patterns import forecast as f
from trellis.operators.patterns.bounded import with_bounds_of_sums
from trellis.operators.patterns.easier import ease_of
from trellis.operators.patterns.paths import Paths
from trellis.operators.patterns.tables import PatternTables, compile_tables
from trellis.operators.patterns.variables import Variables
from trellis.plan.plan import Plan
from trellis.plan.registers import guard_terms_of, register_text
from trellis.plan.sizes import Sizes
from trellis.properties import cached_property

Ints = NDArray[np.int64]
FEWEST_LISTS, LEAST_LISTS, LEAST_LIMBS, LEAST_DEPTH = 4, 1 << 10, 4, 64
MOST_BESIDE = 128  # classes beside one
GROWING = c.NO_CLASSES, c.NO_PAIRS, c.NO_LIMBS  # of which there may be too little room
MOST_TIMES = 64  # as much room, at once
QUICKER = 5  # times, from which on classes multiply
SHAPES = 1 << 10  # matches of more shapes look at every event anew
MODES = {Report.ANY: r.EVERY, Report.UNEXTENDABLE: r.UNEXTENDABLE, Report.MAXIMAL: r.MAXIMAL}
ADVICE = "Use a shorter WITHIN, a partition such as `[id]`, or narrower conditions."
SAMPLED = 1 << 18  # vertices that are looked at for what multiplies them
PART_OF_BEST = 4  # of the bytes that are allowed, for the values of classes: graphs take many times as much
NO_COVERS = np.zeros(0, np.int64)
PATHS_AT_ONCE = 4  # of the bytes that are allowed, the part from which on groups wait for the next paths


class Room:
    """The arrays that an exploration works in. They grow in place, within the bytes that the plan's sizes allow."""

    def __init__(self, compiled: PatternTables, places: int, sizes: Sizes) -> None:
        self.compiled, self.places, self._sizes = compiled, places, sizes
        self.vertices, self.lists = sizes.least_vertices, max(FEWEST_LISTS, min(LEAST_LISTS, sizes.least_vertices))
        self.edges = 4 * self.vertices
        self.steps_left = np.array([sizes.most_steps])
        self.graph = g.make_graph(self.vertices, self.edges, self.width, places)
        self._name_lists(make_lists(self.lists, 8 * self.lists))
        self.longer: Lists = make_lists(LEAST_LISTS, 8 * LEAST_LISTS)
        self._make_scratch(LEAST_LISTS)
        variables, terms = compiled.number(t.VARIABLES), compiled.number(t.TERMS)
        self.moves = make_moves(SHAPES, self.width, variables, terms)
        self.due = np.empty(terms + 1, np.int64)
        self.fresh = np.empty((variables, self.width), np.int64)
        self._first_bytes = self.bytes

    @property
    def width(self) -> int:
        """The numbers of a match so far."""
        return self.compiled.number(t.WIDTH)

    @property
    def bytes(self) -> int:
        """The bytes of the arrays that grow."""
        of_lists = (self.known, self.longer, self.scratch)
        return sum(array.nbytes for arrays in (self.graph, *of_lists) for array in arrays)

    @property
    def bytes_left(self) -> int:
        """The bytes that these arrays may still grow by, or that the graphs and results of groups may take."""
        return self._sizes.memory + self._first_bytes - self.bytes

    def _name_lists(self, lists: Lists) -> None:
        self.known: Lists = lists
        self.programs = self.compiled.programs.programs._replace(values=lists.values, ends=lists.ends)

    def _make_scratch(self, size: int) -> None:
        compiled = self.compiled
        variables, terms = compiled.number(t.VARIABLES), compiled.number(t.TERMS)
        self.scratch = m.Scratch(
            np.zeros(int(compiled.begins[-1]) + 1, np.int64), *compiled.programs.scratch(),
            np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size, np.int64),
            np.zeros((max(m.LOOPS, variables, compiled.number(t.BASES)), 4), np.int64), np.zeros(terms + 1, np.int64),
            np.zeros(compiled.number(t.STEPS), np.int64), np.zeros(variables, np.int64), np.zeros(3, np.int64),
            np.zeros(self.width, np.int64), np.zeros(self.width, np.int64), np.empty(8 * size, np.int64),
            np.empty(size, np.int64), self.steps_left,
        )  # fmt: skip

    def release(self) -> None:
        """Let go of a large graph, which nothing is asked of any more, but for what errors tell of it."""
        if self.vertices > SAMPLED:
            self.graph = g.make_graph(1, 1, self.width, 0)._replace(rows=self.graph.rows[:SAMPLED].copy())

    def grow(
        self, status: int, size: int, reported: int | None = None, known: Ints | None = None, times: int = 2
    ) -> None:  # fmt: skip
        """Make more room for what there was none for, or refuse.

        Parameters
        ----------
        status
            What there was no room for.
        size
            The number of events of the group that it happened in.
        reported
            The number of its matches so far, if they are all known, and results were being made of them.
        known
            The rows of its matches so far, if they are not those of the graph.
        times
            How many times as many lists there may be, as long as there is memory.
        """
        if status == m.TROUBLE:
            raise self.compiled.misfit(int(self.scratch.decided[-1]), self.scratch.events)
        if known is None:
            known = self.graph.rows[: int(self.graph.sizes[g.VERTICES]) if reported is None else reported]
        rows, number = known, len(known)
        if status == m.SPENT:
            raise TrellisError(
                f"there are more steps between matches so far of {size:,} events than may be made", ADVICE
            )
        if status == r.NO_BITS:
            what = f"{number:,} matches so far, every two of which REPORT maximal compares,"
            raise self.too_many(rows, what, size, f"Use REPORT unextendable. {ADVICE}")
        if status == r.NO_MEMORY:
            raise self.too_many(rows, f"{number:,} matches so far, with steps between them,", size)
        if status == g.NO_VERTICES:
            what = f"more than {self.vertices:,} matches so far"
            self._grow_graph(2 * self.vertices, max(self.edges, 4 * self.vertices), rows, what, size)
        elif status == g.NO_EDGES:
            what = f"{number:,} matches so far with more than {self.edges:,} steps between them"
            self._grow_graph(self.vertices, 2 * self.edges, rows, what, size)
        else:
            self._grow_lists(rows, number, size, reported is not None, times)

    def _grow_graph(self, vertices: int, edges: int, rows: Ints, what: str, size: int) -> None:
        """Make more room for the graph, if there is as well for the same graph in order, which comes of it."""
        more = (vertices - self.vertices) * (8 * self.width + 54) + (edges - self.edges) * r.EDGE_BYTES
        self._allow(more + vertices * r.VERTEX_BYTES + edges * r.EDGE_BYTES, rows, what, size, vertices)
        self.graph = g.grow_graph(self.graph, vertices, edges)
        self.vertices, self.edges = vertices, edges

    def _grow_lists(self, rows: Ints, number: int, size: int, reporting: bool, times: int) -> None:
        """Make more room for lists, or where there is enough, for one that is being made."""
        lists, longest = self.longer if reporting else self.known, len(self.scratch.members)
        used, numbers, values = int(lists.used[0]), len(lists.ends), len(lists.values)
        filled = int(lists.ends[used - 1]) if used else 0
        kept = f"{number:,} matches so far with more than {used:,} different sets of events"
        if used < numbers and filled + longest <= values:
            self._allow(longest * 8 * 12, rows, kept, size)
            self._make_scratch(2 * longest)
            return
        more_numbers, more_values = 2 * used > numbers, filled + longest > values
        while True:
            numbers = (times if more_numbers else 1) * len(lists.ends)
            values = max(times * len(lists.values), filled + 2 * longest) if more_values else len(lists.values)
            needed = 8 * (values - len(lists.values)) + 32 * (numbers - len(lists.ends))
            if times == 2 or self._may_take(needed, numbers):
                break
            times //= 2
        self._allow(needed, rows, kept, size, numbers)
        more = grow_lists(lists, numbers, values)
        if reporting:
            self.longer = more
        else:
            self.lists = numbers
            self._name_lists(more)

    def grow_all_lists(self, size: int) -> None:
        """Make more room for lists of every kind, or refuse."""
        number, values = 4 * self.lists, 4 * len(self.known.values)
        longer, longest = (4 * len(array) for array in (self.longer.ends, self.longer.values))
        self._allow(24 * (number + longer) + 6 * (values + longest), self.graph.rows[:0], "too many sets", size)
        self.lists = number
        self._name_lists(grow_lists(self.known, number, values))
        self.longer = grow_lists(self.longer, longer, longest)
        self._make_scratch(2 * len(self.scratch.members))

    def _allow(self, size: int, rows: Ints, what: str, events: int, vertices: int = 0) -> None:
        """Refuse so many bytes more: what is copied to larger arrays takes no more than these in the end."""
        if not self._may_take(size, vertices):
            raise self.too_many(rows, what, events)

    def _may_take(self, size: int, vertices: int) -> bool:
        return size <= self.bytes_left and vertices <= self._sizes.most_vertices and fits_memory(size)

    def too_many(self, rows: Ints, what: str, size: int, advice: str = ADVICE) -> TrellisError:
        """Return the error for too many matches so far, with the register that multiplies them most."""
        what = f"there are {what} of {size:,} events{self._why(rows)}"
        return beyond_limit(what, self._sizes.memory, advice)

    def hopeless(self, rows: Ints, what: str, size: int, grows: str) -> f.HopelessError:
        """Return the error for what grows far beyond the memory, and how."""
        limit = f"this takes far more than the memory limit of {limit_text(self._sizes.memory)}B"
        return f.HopelessError(f"there are {what} of {size:,} events{self._why(rows)}; {grows}; {limit}", ADVICE)

    def _why(self, rows: Ints) -> str:
        """Return in which register rows differ most, and what asks for it."""
        rows, compiled = rows[:SAMPLED], self.compiled
        different = [len(np.unique(rows[:, m.SLOTS + slot])) for slot in range(len(compiled.registers))]
        if not different:
            return ""
        register = compiled.registers[int(np.argmax(different))]
        texts = [
            one.condition.text
            for one in compiled.guard_terms
            if register.variable in one.variables and register in map(one.register, one.references)
        ]
        asks = f", for `{texts[0]}`" if texts else ""
        return f"; most of all they differ in {register_text(register, compiled.guard_terms[0].singles)}{asks}"


class Exploration:
    """The matches of a slice by exploration."""

    def __init__(self, plan: Plan, events: Slice, variables: Variables) -> None:
        self.plan = plan if variables.in_gap else with_bounds_of_sums(plan, events, variables.usable)
        if self.plan is not plan:
            variables = replace(variables, guard_terms=guard_terms_of(self.plan.bound))
        self.events, self.variables = events, variables
        self.most = self.bytes = 0  # matches so far of a group, at most, that were told apart, and their bytes
        self._lefts: list[Ints] = []  # of each use the steps that were left

    @property
    def steps(self) -> int:
        """The steps that were made, also by what was refused."""
        return sum(self.plan.sizes.most_steps - int(left[0]) for left in self._lefts)

    @cached_property
    def compiled(self) -> PatternTables:
        """The tables."""
        try:
            return compile_tables(self.plan, self.events, self.variables)
        except OverflowInCondition:  # perhaps of an event that is never asked: then no value of it is an extreme
            plain = tuple(replace(one, sets=True) for one in self.variables.guard_terms)
            return compile_tables(self.plan, self.events, replace(self.variables, guard_terms=plain))

    def paths(self, groups: Groups, first: int, last: int, covers: Ints = NO_COVERS) -> Paths:
        """Return the results of the groups `[first, last)` as paths, or of as many of them as fit into memory.

        With `covers` the groups are those of single first events: see `explore_groups`.
        """
        room, found, taken = self._room(groups, first, last), [], 0
        for graphs, sizes in self._graphs(groups, first, last, room, covers):
            found += self._reported(graphs, room, sizes)
            taken += sum(array.nbytes for array in found[-1])
            if taken > self.plan.sizes.memory // PATHS_AT_ONCE:
                break
        paths = _joined(found)
        return replace(paths, codes=np.array(self.compiled.alphabet.codes, np.int64)[paths.codes])

    def forbidden(self, groups: Groups, terms: ForbiddenTerms) -> tuple[Ints, Ints]:
        """Return all matches, and what terms tell of them; see `trellis.kernels.explore.forbidden.note_matches`."""
        room, found = self._room(groups, 0, len(groups)), []
        for (_, *arrays), _ in self._explored(groups, 0, len(groups), room, terms):
            found.append(arrays)
        matches, tuples = zip(*found, strict=True)
        return np.concatenate(matches), np.concatenate(tuples)

    def _room(self, groups: Groups, first: int, last: int) -> Room:
        most = int((groups.hi[first:last] - groups.lo[first:last]).max(initial=0))
        return self._made(most * self.compiled.number(t.VARIABLES))

    def _made(self, places: int) -> Room:
        room = Room(self.compiled, places, self.plan.sizes)
        self._lefts.append(room.steps_left)
        return room

    def _graphs(
        self, groups: Groups, first: int, last: int, room: Room, covers: Ints
    ) -> Iterator[tuple[GroupGraphs, Ints]]:
        """Yield the graphs of groups, and their numbers of events."""
        for (graphs, *_), sizes in self._explored(groups, first, last, room, covers=covers):
            found = GroupGraphs(*graphs)
            vertices, edges = np.diff(found.begins[:, :2], axis=0).T
            sizes_in_bytes = vertices * (8 * room.width + 54 + r.VERTEX_BYTES) + edges * 2 * r.EDGE_BYTES
            self.most = max(self.most, int(vertices.max(initial=0)))
            self.bytes = max(self.bytes, int(sizes_in_bytes.max(initial=0)))
            yield found, sizes

    def _explored(
        self, groups: Groups, first: int, last: int, room: Room, terms: ForbiddenTerms | None = None,
        covers: Ints = NO_COVERS,
    ) -> Iterator[tuple[list[Any], Ints]]:  # fmt: skip
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
                room.graph, room.due, room.fresh, lo, hi, first, last, covers, room.bytes_left,
                terms is not None, terms or NO_TERMS,
            )  # fmt: skip
            if not status:
                room.release()
            if at > first or not status:
                yield found, hi[first:at] - lo[first:at]
            if status and (at == first or status != r.NO_MEMORY):
                if not len(covers):
                    self._foresee_graph(room, int(lo[at]), int(hi[at]))
                room.grow(status, int(hi[at] - lo[at]))
            first = at

    def counts(self, groups: Groups) -> list[int]:
        """Return the exact numbers of results of groups; see `trellis.plan.carried.counts_alone`."""
        found = self.numbers(groups, plain_starts(), self._chosen)
        assert found is not None
        return found

    def counts_beside(self, groups: Groups) -> list[int] | None:
        """Return the same, as `trellis.plan.carried.counts_beside` says; None if too much may be put before matches."""
        compiled = self.compiled
        ease = ease_of(compiled.guard_terms, compiled.registers, self.events.columns, len(self.events))
        return self.numbers(groups, plain_starts(), self._chosen, ease=ease)

    def numbers(
        self, groups: Groups, starts: CountedStarts, chosen: NDArray[np.bool_], best: bool = False,
        ease: RegisterEase | None = None,
    ) -> list[int] | None:  # fmt: skip
        """Return the exact numbers of matches of groups that are not followed, or the value of the best one of each.

        Parameters
        ----------
        groups
            The groups.
        starts
            What is asked of the first events; see `CountedStarts`.
        chosen
            The events at which matches may begin; empty for all.
        best
            Whether values are asked for, also of matches that are followed: less `NONE_YET`, and 0 for none.
        ease
            What tells which rests are easier, where matches that something may be put before do not count.

        Returns
        -------
        The numbers; None where what is put before matches has another rest, or too much may be put there.
        """
        compiled, first, last = self.compiled, 0, len(groups)
        lo, hi = groups.lo.astype(np.int64), groups.hi.astype(np.int64)
        sizes, room = self.plan.sizes, self._made(0)
        size, depth, couples = sizes.least_vertices, LEAST_DEPTH, sizes.least_vertices
        limbs = 1 if best else LEAST_LIMBS
        every = self.plan.bound.report is Report.ANY or not self.plan.automaton.is_followed()
        variables = compiled.number(t.VARIABLES) + compiled.number(t.NOTS)
        row, alone = np.empty(room.width, np.int64), ease is None
        beside = [
            np.empty(1 if alone else number, np.int64) for number in (MOST_BESIDE + 1, MOST_BESIDE + 1, MOST_BESIDE)
        ]
        classes, pairs = self._classes(room, size, variables, limbs, depth, couples, alone)
        totals, found = np.zeros((len(groups), limbs), np.uint64), list[int]()
        while True:
            classes.sizes[c.BEST] = best
            if ease is None:
                status, at = count_groups(
                    compiled.tables, compiled.columns, room.programs, room.known, room.scratch, room.moves, classes,
                    starts, row, room.fresh[0], room.due, lo, hi, first, last, chosen, totals, every,
                )  # fmt: skip
            else:
                status, at = count_beside(
                    compiled.tables, compiled.columns, room.programs, room.known, room.scratch, room.moves, classes,
                    pairs, ease, row, room.fresh[0], room.due, lo, hi, first, last, chosen, totals, every, *beside,
                )  # fmt: skip
            found += [sum(limb << (64 * i) for i, limb in enumerate(one)) for one in totals[first:at].tolist()]
            own_bytes = c.class_bytes(room.width, variables, limbs if alone else 0)
            pair_bytes = 0 if alone else c.class_bytes(2, 0, limbs)
            if status == 0:
                most, couples = int(classes.sizes[c.MOST]), int(pairs.sizes[c.MOST])
                self.most = max(self.most, most, couples)
                self.bytes = max(self.bytes, most * own_bytes + couples * pair_bytes)
                return found
            first = at
            if status in (c.TOO_MANY_BESIDE, NOT_ALIKE):
                return None
            most_pairs = max(sizes.beside_pairs, sizes.beside_steps // int(hi[at] - lo[at]))
            if status == c.NO_CLASSES:
                self._foresee(room, classes, int(lo[at]), int(hi[at]), room.bytes_left / own_bytes)
            elif status == c.NO_PAIRS and 2 * couples > most_pairs:
                return None  # perhaps a graph tells sooner that there are too many
            elif status == c.NO_DEPTH:
                depth *= 4
            times = _times_as_much(classes, int(lo[at]), int(hi[at]), multiplies=status == c.NO_CLASSES)
            if status not in (c.NO_CLASSES, c.NO_PAIRS, c.NO_LIMBS, c.NO_DEPTH):
                known = classes.rows[: int(classes.sizes[c.MOST])]
                room.grow(status, int(hi[at] - lo[at]), known=known, times=times)
            before, fits = (size, couples, limbs), False
            while not fits and times > 1:
                size, couples, limbs = (
                    number * (times if status == kind else 1) for number, kind in zip(before, GROWING, strict=True)
                )
                needed = c.class_bytes(room.width, variables, limbs if alone else 0) * size
                needed += 0 if alone else c.class_bytes(2, 0, limbs) * couples
                needed *= PART_OF_BEST if best else 1
                fits = needed <= room.bytes_left and max(size, couples) <= sizes.most_vertices and fits_memory(needed)
                fits = fits and (status != c.NO_PAIRS or couples <= most_pairs)
                times //= 2
            if not fits:
                rows = classes.rows[: int(classes.sizes[c.MOST])]
                what = f"more than {max(len(rows), int(pairs.sizes[c.MOST])):,} different matches so far"
                raise room.too_many(rows, what, int(hi[at] - lo[at]))
            if status == c.NO_LIMBS:
                totals = np.zeros((len(groups), limbs), np.uint64)
            del classes, pairs  # before there are larger ones
            classes, pairs = self._classes(room, size, variables, limbs, depth, couples, alone)

    @cached_property
    def _usable_before(self) -> Ints:
        """For each event how many before it a variable may take."""
        return np.append(0, np.cumsum(np.any([*self.variables.usable.values()], axis=0)))

    def _foresee(self, room: Room, classes: c.Classes, lo: int, hi: int, most: float) -> None:
        """Refuse to go on with a group whose classes multiply far beyond what there may be."""
        size, here, passed = len(classes.rows), int(classes.sizes[c.PLACE]), classes.sizes[c.PASSED :]
        doubled = f.doubled_within(passed, size, here, hi, most, self._usable_before)
        if doubled is None:
            return
        registers = self.compiled.registers
        if f.multiplies(registers, classes.rows[:, m.SLOTS : m.SLOTS + len(registers)], self.events):
            what = f"{size:,} different matches so far after {here - lo:,}"
            raise room.hopeless(classes.rows, what, hi - lo, f"about {doubled:.1f} more that they may take double them")

    def _foresee_graph(self, room: Room, lo: int, hi: int) -> None:
        """Refuse to go on with a group whose graph would take far more than it may, by the steps that it has so far."""
        vertices, edges, _, _, home, _ = room.graph.sizes.tolist()
        done = home // self.compiled.number(t.VARIABLES)
        share = f.share_before(self.events, lo, hi, lo + done)
        needed = edges * 2 * r.EDGE_BYTES / share if share else 0.0
        if edges >= f.TOLD and needed > f.TIMES * self.plan.sizes.memory:
            what = f"{vertices:,} matches so far with {edges:,} steps between them after {done:,}"
            raise room.hopeless(room.graph.rows[:vertices], what, hi - lo, f"all take about {gigabytes(needed)}")

    @staticmethod
    def _classes(
        room: Room, size: int, variables: int, limbs: int, depth: int, couples: int, alone: bool
    ) -> tuple[c.Classes, c.Classes]:
        """Return room for classes, and for those beside which others are."""
        moves = len(room.moves.rows)
        if alone:
            return c.make_classes(size, room.width, variables, limbs, moves, depth), c.make_classes(1, 2, 0, 0, 0)
        return c.make_classes(size, room.width, variables, 0, moves, depth), c.make_classes(couples, 2, 0, limbs, 0)

    @property
    def _chosen(self) -> NDArray[np.bool_]:
        return np.empty(0, np.bool_) if self.events.begins is None else self.events.begins

    def _reported(self, graphs: GroupGraphs, room: Room, sizes: Ints) -> list[list[NDArray[Any]]]:
        """Return the results of groups that were explored."""
        chosen = self._chosen
        mode, same = MODES[self.plan.bound.report], self.compiled.columns[t.SAME_ROW]
        found, group = [], 0
        while True:
            before = group
            status, group, *arrays = report_groups(
                graphs,
                group,
                mode,
                same,
                room.longer,
                room.scratch.members,
                chosen,
                room.bytes_left,
                room.steps_left,
            )
            found.append(arrays)
            if status == 0:
                return found
            if status != r.NO_MEMORY or group == before:
                vertices = int(graphs.begins[group + 1, 0] - graphs.begins[group, 0])
                room.grow(status, int(sizes[group]), vertices)


def _times_as_much(classes: c.Classes, lo: int, hi: int, multiplies: bool) -> int:
    """Return how many times as much room the events of a group take as those that are done, as far as that is told.

    Where classes may multiply, it is told only if the last half of them did not come much quicker than the first.
    """
    here, passed = int(classes.sizes[c.PLACE]), classes.sizes[c.PASSED :]
    half = len(classes.rows).bit_length() - 2
    if multiplies and (half < 0 or QUICKER * (here - int(passed[half])) < here - lo):
        return 2
    ratio = (hi - lo) // max(here - lo, 1)
    return min(2 << ratio.bit_length(), MOST_TIMES)  # twice what is told, since later events bring more


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
