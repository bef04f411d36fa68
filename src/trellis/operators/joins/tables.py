"""The candidates of a join and what is asked of them, as the kernels take them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from trellis.errors import OverflowInCondition
from trellis.events.adjacency import meets_condition
from trellis.events.columns.ordering import dense_ranks, rank_codes
from trellis.events.columns.program import compile_programs
from trellis.events.columns.program_tables import ProgramTables, TooWideForKernels
from trellis.events.slice import Slice, first_of_time, next_of
from trellis.events.variables import usable_events
from trellis.kernels.events.partitions import later_times
from trellis.kernels.join import lists as kernel
from trellis.language.bound import Condition, Reference, Value, WindowKind, columns_of
from trellis.operators.contract import NotComparable
from trellis.operators.joins.gaps import nearest_forbidden
from trellis.operators.joins.ranges import ColumnRanges
from trellis.operators.pair_conditions import Flags, Ints, PairCondition, PairEncoder, keep_candidates
from trellis.plan.cuts import Ease, ease_of
from trellis.plan.join import FixedJoin, Gap, JoinArm, JoinTerm
from trellis.plan.plan import Plan
from trellis.plan.positions import neighbour_condition
from trellis.properties import cached_property

LARGE = 1e30  # doubles from which on arithmetic may leave infinite ones
NO_PROGRAMS = compile_programs([], lambda number, reference: 0, {}, 0)
NOTHING_ASKED = (  # of several slots together, but for the events of gaps
    np.empty(0, np.uint64), np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.uint64),
    np.empty(0, np.uint64), np.empty(0, np.int64), np.zeros(1, np.int64), np.empty((0, 2), np.int64),
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class SlotArm:
    """An arm of a pattern and its slots, one for each variable, in the same order."""

    arm: JoinArm
    slots: tuple[int, ...]

    @property
    def mask(self) -> int:
        """Its slots as bits."""
        return bits(self.slots)

    def slot(self, variable: str) -> int:
        """Return the slot of a variable."""
        return self.slots[self.arm.variables.index(variable)]


@dataclass
class SlotTest:
    """A test of several slots together: a condition, or with `gap` a NOT, whose conditions come with it."""

    mask: int
    value: Value | None = None
    gap: Gap | None = None
    arm: SlotArm | None = None
    values: tuple[Value, ...] = ()

    @property
    def programmed(self) -> tuple[Value, ...]:
        """The conditions that have a program: its own, or those of the NOT."""
        return self.values if self.value is None else (self.value,)


@dataclass(eq=False)
class JoinCandidates:
    """The slots of all arms, their candidates, and the tests between them.

    Attributes
    ----------
    arms, common
        The arms, and what several of them have in common.
    of_slot
        The events that are candidates, for each slot.
    order
        1 where the first slot must be earlier than the second, -1 the other way round, else 0.
    pairs, asked
        The tests on two slots by codes, and all others.
    residuals
        The texts of the conditions that are asked of events as they are, not by codes.
    """

    plan: Plan
    events: Slice
    arms: list[SlotArm] = field(default_factory=list)
    common: list[SlotArm] = field(default_factory=list)
    of_slot: list[Ints] = field(default_factory=list)
    variable: list[str] = field(default_factory=list)
    order: NDArray[np.int8] = field(default_factory=lambda: np.zeros((0, 0), np.int8))
    pairs: list[PairCondition] = field(default_factory=list)
    due: list[SlotTest] = field(default_factory=list)
    residuals: dict[str, None] = field(default_factory=dict)
    _usable: Mapping[str, Flags] = field(default_factory=dict, repr=False)
    _overlaps: dict[tuple[int, int], bool] = field(default_factory=dict, repr=False)

    @classmethod
    def find(cls, plan: Plan, join: FixedJoin, events: Slice) -> JoinCandidates:
        """Return the candidates of a plan over a slice.

        Raises
        ------
        NotComparable
            If a number that a condition computes may leave 64 bits.
        """
        found = cls(plan, events)
        try:
            found._usable = usable_events(plan.bound, plan.constant, events.columns, len(events))
            for arm in join.arms:
                found.arms.append(found._add_slots(arm))
            for arm in join.common:
                found.common.append(found._add_slots(arm))
            found.order = np.zeros((found.number, found.number), np.int8)
            keep = [np.ones(len(one), np.bool_) for one in found.of_slot]
            for one in (*found.arms, *found.common):
                found._add_tests(one, keep)
        except OverflowInCondition:
            raise NotComparable from None
        found._keep_only(keep)
        return found

    @cached_property
    def _encoder(self) -> PairEncoder:
        return PairEncoder(self.events.columns, len(self.events), self.plan.sizes.encoded_events)

    @cached_property
    def _ranges(self) -> ColumnRanges:
        """The ranges of the columns."""
        return ColumnRanges(self.events.columns)

    @property
    def number(self) -> int:
        """The number of slots."""
        return len(self.of_slot)

    def _add_slots(self, arm: JoinArm) -> SlotArm:
        first = self.number
        for name in arm.variables:
            mask = self._usable[name]
            for term in arm.terms:
                if term.variables == (name,) and term.absent is None:
                    mask = mask & meets_condition(term.condition, self.events.columns, mask)
            self.of_slot.append(np.flatnonzero(mask))
            self.variable.append(name)
        return SlotArm(arm, tuple(range(first, self.number)))

    # --- Tests ------------------------------------------------------------------------------------------------

    def _add_tests(self, arm: SlotArm, keep: list[Flags]) -> None:
        for one, other in arm.arm.order:
            u, v = arm.slot(one), arm.slot(other)
            self.order[u, v], self.order[v, u] = 1, -1
        for term in arm.arm.terms:
            if term.absent is None and len(term.variables) > 1:
                self._add_term(arm, term, keep)
        for gap in arm.arm.gaps:
            self._add_gap(arm, gap)

    def _add_term(self, arm: SlotArm, term: JoinTerm, keep: list[Flags]) -> None:
        if len(term.variables) == 2:
            u, v = (arm.slot(name) for name in term.variables)
            if self._add_pair(u, v, neighbour_condition(term.condition, term.variables[0]), keep):
                return
        mask = bits(arm.slot(name) for name in term.variables)
        self._check(term.condition.value)
        self.residuals[term.condition.text] = None
        self.due.append(SlotTest(mask, term.condition.value, arm=arm))

    def _add_pair(self, u: int, v: int, condition: Condition, keep: list[Flags]) -> bool:
        """Add a condition as codes of two slots; return False if it cannot be decided so."""
        found = self._encoder.encode(u, v, condition, self.of_slot[u], self.of_slot[v])
        if found is None:
            return False
        made, keep_one, keep_other = found
        self.pairs += made
        keep[u] &= keep_one
        keep[v] &= keep_other
        return True

    def _add_gap(self, arm: SlotArm, gap: Gap) -> None:
        own = [term for term in arm.arm.terms if term.absent == gap.absent]
        if not own and len(gap.after) == len(gap.before) == 1:
            u, v = arm.slot(gap.after[0]), arm.slot(gap.before[0])
            behind = next_of(self._usable[gap.absent])[self.later[self.of_slot[u]]]
            self.pairs.append(PairCondition(v, u, kernel.GREATER, self.begins[self.of_slot[v]] - 1, behind))
            return
        if self._add_compared_gap(arm, gap, own):
            return
        names = {*gap.after, *gap.before, *(name for term in own for name in term.variables)}
        if self.is_span and not (gap.after and gap.before):
            names = {*arm.arm.variables}  # the first and the last event of the match bound it
        names = names or {arm.arm.variables[0]}
        for term in own:
            self._check(term.condition.value)
            self.residuals[term.condition.text] = None
        values = tuple(term.condition.value for term in own)
        self.due.append(SlotTest(bits(arm.slot(name) for name in names), gap=gap, arm=arm, values=values))

    def _add_compared_gap(self, arm: SlotArm, gap: Gap, own: list[JoinTerm]) -> bool:
        """Add a NOT between two slots whose conditions name one of them, as codes; return False if it is not so."""
        named = {name for term in own for name in term.variables}
        if not (len(gap.after) == len(gap.before) == len(named) == 1) or not named <= {*gap.after, *gap.before}:
            return False
        (name,), u, v = named, arm.slot(gap.after[0]), arm.slot(gap.before[0])
        behind = name == gap.after[0]
        slot, absent = (u if behind else v), np.flatnonzero(self._usable[gap.absent])
        bounds = (self.later if behind else self.begins)[self.of_slot[slot]]
        nearest = nearest_forbidden(
            own, name, self.events.columns, self.of_slot[slot], absent, bounds, len(self.events), behind
        )
        if nearest is None:
            return False
        left = self.begins[self.of_slot[v]] - 1 if behind else nearest
        right = nearest if behind else self.later[self.of_slot[u]]
        self.pairs.append(PairCondition(v, u, kernel.GREATER, left, right))
        return True

    def _check(self, value: Value) -> None:
        """Refuse a condition that computes a number which may leave 64 bits, or by a function that programs lack."""
        if not self._ranges.can_compute(value):
            raise NotComparable

    def _keep_only(self, keep: list[Flags]) -> None:
        for slot, mask in enumerate(keep):
            keep_candidates(slot, mask, self.of_slot, self.pairs)

    # --- Events -----------------------------------------------------------------------------------------------

    @property
    def is_span(self) -> bool:
        """Whether WITHIN is a span."""
        return self.plan.bound.window.kind is WindowKind.SPAN

    @cached_property
    def later(self) -> Ints:
        """For each event the first one of a later time in its partition."""
        return later_times(self.events.ticks, self.events.bounds)

    @cached_property
    def begins(self) -> Ints:
        """For each event the first one of its time and partition."""
        return first_of_time(self.later)

    # --- For the kernels --------------------------------------------------------------------------------------

    @cached_property
    def distinct(self) -> Flags:
        """Between which slots of an arm, without an order, the same event is a candidate of both."""
        found = np.zeros((self.number, self.number), np.bool_)
        for arm in (*self.arms, *self.common):
            for u in arm.slots:
                for v in arm.slots:
                    if u < v and not self.order[u, v]:
                        found[u, v] = found[v, u] = self.overlap(u, v)
        return found

    def overlap(self, u: int, v: int) -> bool:
        """Return whether an event is a candidate of two slots, which is looked for once."""
        pair = min(u, v), max(u, v)
        if pair not in self._overlaps:
            flags = np.zeros(len(self.events), np.bool_)
            flags[self.of_slot[u]] = True
            self._overlaps[pair] = bool(flags[self.of_slot[v]].any())
        return self._overlaps[pair]

    @cached_property
    def programs(self) -> ProgramTables:
        """The conditions that are asked of events as they are; those of a NOT stand together."""
        if not self.due:
            return NO_PROGRAMS
        values: list[tuple[Value, SlotArm]] = []
        for test in self.due:
            assert test.arm is not None
            values += [(value, test.arm) for value in test.programmed]

        def slot(number: int, reference: Reference) -> int:
            arm = values[number][1]
            return arm.slot(reference.var) if reference.var in arm.arm.variables else self.number

        try:
            return compile_programs([value for value, _ in values], slot, self.events.columns, len(self.events))
        except TooWideForKernels:
            raise NotComparable from None

    @cached_property
    def tables(self) -> kernel.JoinTables:
        """The candidates as the kernels take them."""
        events = np.concatenate([*self.of_slot, np.empty(0, np.int64)]).astype(np.int64)
        begin = np.append(0, np.cumsum([len(one) for one in self.of_slot])).astype(np.int64)
        of_events = self.later, self.begins, self.events.until.astype(np.int64), self.order, self.distinct
        return kernel.JoinTables._make(
            (events, begin, *of_events, *self._pair_arrays(begin, len(events)), *self._asked_arrays(),
             np.array([self.is_span]), *self._eases_of_gaps(), *self._eases(begin, len(events)))
        )  # fmt: skip

    def _eases(self, begin: Ints, size: int) -> tuple[Ints, Flags]:
        """Return by which numbers of candidates conditions are more easily true, and for which slots they are so."""
        numbers, eases = np.zeros((len(self.due), size), np.int64), np.zeros((len(self.due), self.number), np.bool_)
        for h, test in enumerate(self.due):
            for slot in test.arm.slots if test.arm is not None and test.value is not None else ():
                assert test.value is not None
                found = ease_of(test.value, self.variable[slot]) if test.mask >> slot & 1 else None
                if found is None:
                    continue
                codes = self._ease_codes(found, self.of_slot[slot])
                if codes is not None:
                    numbers[h, begin[slot] : begin[slot + 1]], eases[h, slot] = codes, True
        return numbers, eases

    def _eases_of_gaps(self) -> tuple[NDArray[np.uint64], Ints, Flags]:
        """Return the slots that programs read, and by which numbers of forbidden events they are more easily true."""
        asked = [(test, value) for test in self.due for value in test.programmed]
        slots, size = np.zeros(len(asked), np.uint64), len(self.events)
        numbers, eases = np.zeros((len(asked), size), np.int64), np.zeros(len(asked), np.bool_)
        for program, (test, value) in enumerate(asked):
            if test.gap is None or test.arm is None:
                continue
            absent = np.flatnonzero(self._usable[test.gap.absent])
            slots[program] = bits(test.arm.slot(c.var) for c in columns_of(value) if c.var != test.gap.absent)
            found = ease_of(value, test.gap.absent)
            codes = None if found is None else self._ease_codes(found, absent)
            if codes is not None:
                numbers[program, absent], eases[program] = codes, True
        return slots, numbers, eases

    def _ease_codes(self, ease: Ease, rows: Ints) -> Ints | None:
        """Return numbers of events that are the less the more easily a condition is true; None where they do not tell.

        Arithmetic with infinite numbers may leave NULL, of which they do not.
        """
        values = self.events.columns[ease.column.name].take(pa.array(rows))
        if pa.types.is_null(values.type):
            return None
        codes = rank_codes([values])[0]
        known = codes >= 0
        if not (ease.asks or known.all()):
            return None
        if (
            pa.types.is_floating(values.type)
            and not (np.abs(values.to_numpy(zero_copy_only=False)[known]) < LARGE).all()
        ):
            return None
        return np.where(known, codes if ease.smaller else -codes, len(codes))

    def _pair_arrays(self, begin: Ints, size: int) -> tuple[NDArray[np.int64], ...]:
        tests = sorted(self.pairs, key=lambda p: (min(p.first, p.second), max(p.first, p.second), p.kind))
        places = np.zeros((self.number, self.number, 2), np.int64)
        codes = np.zeros((len(tests), size), np.int64)
        runs, begins = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        run_at = np.full((len(tests) + 1, 2), -1)
        ran = placed = 0
        for c, test in enumerate(tests):
            u, v = test.first, test.second
            left, right = test.left, test.right
            if test.kind == kernel.GREATER:  # the codes of the others are dense
                joint = dense_ranks(np.concatenate([left, right]))
                left, right = joint[: len(left)], joint[len(left) :]
            codes[c, begin[u] : begin[u + 1]] = left
            codes[c, begin[v] : begin[v + 1]] = right
            if places[u, v, 1] == 0:
                places[u, v] = places[v, u] = c, c
                if test.kind == kernel.EQUAL:
                    dense = max(int(left.max(initial=-1)), int(right.max(initial=-1))) + 1
                    for i, (slot, own) in enumerate(((u, left), (v, right))):
                        order = own.argsort(kind="stable")
                        runs.append(order + begin[slot])
                        begins.append(own[order].searchsorted(np.arange(dense + 1)) + ran)
                        run_at[c, i] = placed
                        ran, placed = ran + len(order), placed + dense + 1
            places[u, v, 1] = places[v, u, 1] = c + 1
        kinds, first = (np.array([getattr(t, name) for t in tests], np.int64) for name in ("kind", "first"))
        return places, kinds, first, codes, np.concatenate(runs), np.concatenate(begins), run_at

    def _asked_arrays(self) -> tuple[NDArray[np.generic], ...]:
        size = len(self.events)
        if not self.due:
            return (*NOTHING_ASKED[:5], np.empty((0, size + 1), np.int64), *NOTHING_ASKED[5:])
        gaps = [test for test in self.due if test.gap is not None]
        masks = np.array([test.mask for test in self.due], np.uint64)
        asks = np.array([kernel.PROGRAM if test.gap is None else kernel.GAP for test in self.due], np.int64)
        at, ranges, program, gap = [], [], 0, 0
        for test in self.due:
            at.append(program if test.gap is None else gap)
            if test.gap is None:
                program += 1
            else:
                ranges.append((program, program + len(test.values)))
                program, gap = program + len(test.values), gap + 1
        after, before = (
            np.array([bits(t.arm.slot(n) for n in getattr(t.gap, side)) for t in gaps if t.arm], np.uint64)
            for side in ("after", "before")
        )
        forbidden = [np.flatnonzero(self._usable[test.gap.absent]) for test in gaps if test.gap]
        following = [next_of(self._usable[test.gap.absent]) for test in gaps if test.gap]
        return (
            masks, asks, np.array(at, np.int64), after, before,
            np.array(following, np.int64).reshape(len(gaps), size + 1),
            np.concatenate([np.empty(0, np.int64), *forbidden]),
            np.append(0, np.cumsum([len(one) for one in forbidden])).astype(np.int64),
            np.array(ranges, np.int64).reshape(-1, 2),
        )  # fmt: skip


def bits(slots: Iterable[int]) -> int:
    """Return slots as the bits of a word."""
    return sum(1 << slot for slot in set(slots))
