"""Adjacent conditions as integer codes that the edge kernels compare."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from trellis.errors import OverflowInCondition
from trellis.events.columns.arrow import taken
from trellis.events.columns.evaluate import evaluate
from trellis.events.columns.ordering import dense_ranks, match_codes, order_codes
from trellis.events.cuts import CutRanges, Undecided, ranges_of
from trellis.language.bound import Column, Condition, Operation, Value, columns_of
from trellis.language.syntax import Which
from trellis.plan.cuts import cut_of
from trellis.plan.relation import NeighbourTerm, neighbour_term, neighbour_terms, terms
from trellis.properties import cached_property

Ints = NDArray[np.int64]
LOWEST, HIGHEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max
NO_HOLE = HIGHEST - 1  # as both borders of a hole: there is none
MOST_CLAUSES, MOST_LITERALS = 4, 4  # of what one condition with OR may become
Literal = tuple[Ints, Ints]  # codes of the later event, and of the earlier one, that they must exceed
SMALL = 1 << 60  # sums and differences of two such numbers stay within 64 bits


@dataclass(frozen=True)
class Order:
    """Comparisons of one value of the later event with values of the earlier one.

    `value[y] OP earlier[x]` for each of `comparisons`, as integers that compare as the values do; `LOWEST`: no value.
    Besides, it is not between `low[x]` and `high[x]`, or equal to one of them, for each (low, high) of `holes`.
    """

    value: Ints
    comparisons: tuple[tuple[str, Ints], ...]
    holes: tuple[tuple[Ints, Ints], ...] = ()


@dataclass
class Adjacency:
    """When an event `y` may follow an event `x`.

    `gives[x]` and `takes[y]` are asked of one event alone; the keys must be equal (-1: none); all comparisons of all
    `orders` must hold, and none of their holes be met; of each of `either`, pairs of codes of the later and of the
    earlier event, one must have the former greater; `residual` is evaluated on the pairs that are left.
    """

    gives: NDArray[np.bool_]
    takes: NDArray[np.bool_]
    key_next: Ints | None = None
    key_prev: Ints | None = None
    orders: tuple[Order, ...] = ()
    either: list[list[Literal]] = field(default_factory=list)
    residual: list[Value] = field(default_factory=list)

    @cached_property
    def above(self) -> list[Ints]:
        """For each inequality codes of the later event that must be greater than those of `below`; `LOWEST`: never."""
        return [_above(op, order.value) for order, op, _ in self._comparisons() if op != "!="]

    @cached_property
    def below(self) -> list[Ints]:
        """For each inequality codes of the earlier event; `HIGHEST`: never."""
        return [_below(op, earlier) for _, op, earlier in self._comparisons() if op != "!="]

    @cached_property
    def differ_next(self) -> list[Ints]:
        """For each `!=` codes of the later event that must differ from those of `differ_prev`; -1: never."""
        return [later for later, _ in self._differences]

    @cached_property
    def differ_prev(self) -> list[Ints]:
        """For each `!=` codes of the earlier event; -1: never."""
        return [earlier for _, earlier in self._differences]

    @cached_property
    def _differences(self) -> list[tuple[Ints, Ints]]:
        return [_dense(order.value, earlier) for order, op, earlier in self._comparisons() if op == "!="]

    @cached_property
    def clauses(self) -> list[list[Literal]]:
        """The `either`, and as much for each hole of an order."""
        holes = [
            [(_above("<", order.value), _below("<", low)), (_above(">", order.value), _below(">", high))]
            for order in self.orders
            for low, high in order.holes
        ]
        return [*holes, *self.either]

    def _comparisons(self) -> Iterator[tuple[Order, str, Ints]]:
        return ((order, op, earlier) for order in self.orders for op, earlier in order.comparisons)


def _above(op: str, value: Ints) -> Ints:
    if op == ">":
        return value
    codes = value if op in (">", ">=") else ~value
    return np.where(value == LOWEST, LOWEST, codes + 1 if op in (">=", "<=") else codes)


def _below(op: str, earlier: Ints) -> Ints:
    return np.where(earlier == LOWEST, HIGHEST, earlier if op in (">", ">=") else ~earlier)


def _dense(later: Ints, earlier: Ints) -> tuple[Ints, Ints]:
    both = np.concatenate([later, earlier])
    codes = np.where(both == LOWEST, -1, dense_ranks(both))
    return codes[: len(later)], codes[len(later) :]


class PairValues:
    """The values of the earlier and the later event: of all events, or of chosen rows for each; found once."""

    def __init__(self, columns: Mapping[str, pa.Array], sizes: tuple[int, int], rows: tuple[Ints, Ints] | None) -> None:
        self.columns, self.sizes, self._rows = columns, sizes, rows
        self.alike = rows is None or np.array_equal(*rows)
        self._values: dict[tuple[str, bool], pa.Array] = {}
        self._codes: dict[tuple[Any, ...], tuple[Sequence[pa.Array], list[Ints]]] = {}

    @classmethod
    def of_all(cls, columns: Mapping[str, pa.Array], size: int) -> PairValues:
        """Return the values of all events."""
        return cls(columns, (size, size), None)

    def of(self, value: Value) -> pa.Array:
        """Return a value of one of the two."""
        if isinstance(value, Column):
            later = value.which is Which.LATER
            key = value.name, later and not self.alike
            if key not in self._values:
                self._values[key] = evaluate(value, lambda _: self.column(value.name, later), self.sizes[later])
            return self._values[key]
        later = any(c.which is Which.LATER for c in columns_of(value))
        return evaluate(value, lambda column: self.column(column.name, later), self.sizes[later])

    def column(self, name: str, later: bool) -> pa.Array:
        """Return a column of one of the two."""
        column = self.columns[name]
        every = self._rows is None or len(self._rows[later]) == len(column)
        return column if every or self._rows is None else taken(column, self._rows[later])

    def codes(self, make: Callable[[Sequence[pa.Array]], list[Ints]], arrays: Sequence[pa.Array]) -> list[Ints]:
        """Return the codes of values, such as `match_codes` or `order_codes`, which nobody writes to."""
        key = make, *map(id, arrays)
        if key not in self._codes:
            self._codes[key] = arrays, make(arrays)
        return self._codes[key][1]


def encode(
    conditions: tuple[Condition, ...], columns: Mapping[str, pa.Array], usable: NDArray[np.bool_], holes: bool = True,
    cuts: bool = True,
) -> Adjacency:  # fmt: skip
    """Return the adjacent conditions of one Kleene variable over sorted events.

    Without `holes` all is comparisons; a condition that allows several ranges is one of the rest. Without `cuts` so is
    each for which ranges would have to be looked for, which takes longer than to test few pairs.
    """
    return encode_values(conditions, PairValues.of_all(columns, len(usable)), usable, holes, cuts)


def encode_values(
    conditions: tuple[Condition, ...], sides: PairValues, usable: NDArray[np.bool_], holes: bool = True,
    cuts: bool = True,
) -> Adjacency:  # fmt: skip
    """Return the same for values that several steps share."""
    return _Encoding(sides, Adjacency(usable.copy(), usable.copy()), holes, cuts).encode(conditions)


def encode_rows(
    conditions: tuple[Condition, ...], columns: Mapping[str, pa.Array], earlier: Ints, later: Ints
) -> Adjacency:
    """Return the codes of `encode`, without holes, for rows that may be the earlier event, rising, and the later."""
    sizes = len(earlier), len(later)
    gives, takes = (np.ones(size, np.bool_) for size in sizes)
    return _Encoding(PairValues(columns, sizes, (earlier, later)), Adjacency(gives, takes), False).encode(conditions)


@dataclass
class _Compared:
    """A value of the later event, and all that is asked of it."""

    later: pa.Array
    values: list[tuple[str, pa.Array]] = field(default_factory=list)
    cuts: list[CutRanges] = field(default_factory=list)

    def order(self, sides: PairValues) -> Order:
        """Return all as codes."""
        value, *earlier = sides.codes(order_codes, [self.later, *(array for _, array in self.values)])
        comparisons = [(op, codes) for (op, _), codes in zip(self.values, earlier, strict=True)]
        holes = []
        for cut in self.cuts:
            codes = np.append(value[cut.rows], 0)  # of what no rank has, which is not looked at
            first, behind = _hull(cut)
            never, top = first >= behind, len(cut.rows)
            low, high = first[~never].any(), (behind != top)[~never].any()
            if low or not high:
                comparisons.append((">=", np.where(never, LOWEST, codes[np.minimum(first, top)])))
            if high:
                comparisons.append(("<=", np.where(never, LOWEST, codes[np.maximum(behind, 1) - 1])))
            for end, begin in zip(cut.ends, cut.begins[1:], strict=False):
                met = (end < begin) & (begin < top)
                holes.append((np.where(met, codes[end], NO_HOLE), np.where(met, codes[begin - 1], NO_HOLE)))
        return Order(value, tuple(comparisons), tuple(holes))


class _Encoding:
    """Brings conditions to codes, term by term."""

    def __init__(self, sides: PairValues, adjacency: Adjacency, holes: bool, cuts: bool = True) -> None:
        self.sides, self.adjacency, self.holes, self.cuts = sides, adjacency, holes, cuts
        self.compared: dict[Value, _Compared] = {}
        self.orders: list[Order] = []

    def encode(self, conditions: tuple[Condition, ...]) -> Adjacency:
        """Return the adjacency of all conditions."""
        for condition in conditions:
            for term in neighbour_terms(condition):
                try:
                    self._add(term)
                except (OverflowInCondition, Undecided):
                    self.adjacency.residual.append(term.value)  # perhaps no pair that is asked overflows
        return self._finished()

    def _finished(self) -> Adjacency:
        self.adjacency.orders = (*(one.order(self.sides) for one in self.compared.values()), *self.orders)
        return self.adjacency

    def _add(self, term: NeighbourTerm) -> None:
        compared, sides, adjacency = term.compared, self.sides, self.adjacency
        if term.of is Which.LATER:
            adjacency.takes &= is_true(sides.of(term.value))
        elif term.of is Which.EARLIER:
            adjacency.gives &= is_true(sides.of(term.value))
        elif compared is None or not gap_is_safe(term, sides):
            self._add_cut(term.value)
        elif compared.function == "=":
            next_, prev = sides.codes(match_codes, [sides.of(compared.later), sides.of(compared.earlier)])
            _add_key(next_, prev, adjacency)
        else:
            later, earlier = sides.of(compared.later), sides.of(compared.earlier)
            self.compared.setdefault(compared.later, _Compared(later)).values.append((compared.function, earlier))

    def _add_cut(self, term: Value) -> None:
        """Add a condition that cuts values into ranges, or leave it to the rest."""
        if not self.cuts:
            raise Undecided
        cut = cut_of(term)
        if cut is None:
            self._add_either(term)
            return
        found = ranges_of(cut, self.sides)
        if len(found.begins) > 1 and (cut.which is Which.EARLIER or not self.holes):
            raise Undecided
        if cut.which is Which.LATER:
            self.compared.setdefault(cut.value, _Compared(self.sides.of(cut.value))).cuts.append(found)
        else:
            self.orders += _mirrored_orders(found, self.sides.of(cut.value))

    def _add_either(self, term: Value) -> None:
        """Add OR of conditions on different values, each of which comes to comparisons, or leave it to the rest.

        `(A AND B) OR C` is `(A OR C) AND (B OR C)`.
        """
        is_either = isinstance(term, Operation) and term.function == "or"
        if not self.holes or not is_either:
            raise Undecided
        assert isinstance(term, Operation)
        clauses: list[list[Literal]] = [[]]
        for arm in term.arguments:
            clauses = [[*clause, *more] for clause in clauses for more in self._literals(arm)]
            if len(clauses) > MOST_CLAUSES or any(len(clause) > MOST_LITERALS for clause in clauses):
                raise Undecided
        self.adjacency.either += clauses

    def _literals(self, arm: Value) -> list[list[Literal]]:
        """Return one arm of an OR as clauses."""
        sides, gives, takes = self.sides, *(np.ones(size, np.bool_) for size in self.sides.sizes)
        inner = _Encoding(sides, Adjacency(gives, takes), holes=True)
        for term in terms(arm):
            inner._add(neighbour_term(term))
        found = inner._finished()
        if found.residual:
            raise Undecided
        clauses = [*([pair] for pair in zip(found.above, found.below, strict=True)), *found.clauses]
        for next_, prev in zip(found.differ_next, found.differ_prev, strict=True):
            clauses.append([(_coded(sign * next_, next_ < 0), _uncoded(sign * prev, prev < 0)) for sign in (1, -1)])
        if found.key_next is not None and found.key_prev is not None:
            next_, prev = found.key_next.astype(np.int64), found.key_prev.astype(np.int64)
            for sign in (1, -1):
                clauses.append([(_coded(sign * next_, next_ < 0), _uncoded(sign * prev - 1, prev < 0))])
        if not takes.all():
            clauses.append([(takes.astype(np.int64), np.zeros(len(gives), np.int64))])
        if not gives.all() or not clauses:
            clauses.append([(np.ones(len(takes), np.int64), (~gives).astype(np.int64))])
        return clauses


def _coded(codes: Ints, missing: NDArray[np.bool_]) -> Ints:
    return np.where(missing, LOWEST, codes)


def _uncoded(codes: Ints, missing: NDArray[np.bool_]) -> Ints:
    return np.where(missing, HIGHEST, codes)


def _hull(cut: CutRanges) -> tuple[Ints, Ints]:
    """Return the first rank that each event allows and the one behind the last; equal where it allows none."""
    first = cut.begins[0]
    behind = np.where(cut.begins < cut.ends, cut.ends, 0).max(axis=0)
    return first, np.maximum(first, behind)


def _mirrored_orders(cut: CutRanges, earlier: pa.Array) -> list[Order]:
    """Return as orders, with ranks as values, what the earlier event's value must be for each later event."""
    (codes,) = order_codes([earlier])
    known = codes != LOWEST
    ranks = np.where(known, np.searchsorted(codes[cut.rows], codes), LOWEST)
    first, behind = _hull(cut)
    never = first >= behind
    orders = []
    if first[~never].any():
        orders.append(Order(np.where(never, LOWEST, first), (("<=", ranks),)))
    if (behind != len(cut.rows))[~never].any() or not orders:
        orders.append(Order(np.where(never, LOWEST, behind), ((">", ranks),)))
    return orders


def gap_is_safe(term: NeighbourTerm, sides: PairValues) -> bool:
    """Whether `later - earlier OP gap`, if it was that, may be `later OP earlier + gap`: no number can overflow."""
    return all(_is_small(value, sides) for value in term.summed)


def _is_small(value: Value, sides: PairValues) -> bool:
    extremes = pc.min_max(sides.of(value).cast(pa.int64())).as_py()
    return all(abs(extreme or 0) < SMALL for extreme in extremes.values())


def is_true(result: pa.Array) -> NDArray[np.bool_]:
    """Return where a three-valued result is true."""
    known = result if result.null_count == 0 else result.fill_null(False)
    return known.to_numpy(zero_copy_only=False).astype(np.bool_, copy=False)


def meets_condition(
    condition: Condition, columns: Mapping[Any, pa.Array], candidates: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Return which events meet a condition; only the `candidates` can be the cause of an overflow."""
    try:
        return is_true(evaluate(condition.value, lambda c: columns[c.name], len(candidates)))
    except OverflowInCondition:
        rows = pa.array(np.flatnonzero(candidates))
        meets = np.zeros(len(candidates), np.bool_)
        meets[candidates] = is_true(evaluate(condition.value, lambda c: columns[c.name].take(rows), len(rows)))
        return meets


def _add_key(later: Ints, earlier: Ints, adjacency: Adjacency) -> None:
    """Join the key with those before it: together they are one dense number, -1 where one is missing."""
    if adjacency.key_next is None or adjacency.key_prev is None:
        adjacency.key_next, adjacency.key_prev = later, earlier
        return
    width = max(int(later.max(initial=0)), int(earlier.max(initial=0))) + 1
    n = len(later)
    joined = np.concatenate([adjacency.key_next, adjacency.key_prev]).astype(np.int64) * width
    joined += np.concatenate([later, earlier])
    missing = np.concatenate([(adjacency.key_next < 0) | (later < 0), (adjacency.key_prev < 0) | (earlier < 0)])
    codes = match_codes([pa.array(joined, mask=missing)])[0]
    adjacency.key_next, adjacency.key_prev = codes[:n], codes[n:]


def residual_holds(
    residual: list[Value], columns: Mapping[str, pa.Array], sources: Ints, targets: NDArray[np.int32]
) -> NDArray[np.bool_]:
    """Return for each pair of events whether all residual conditions are true."""
    earlier, later = pa.array(sources), pa.array(targets)

    def resolve(column: Column) -> pa.Array:
        return columns[column.name].take(earlier if column.which is Which.EARLIER else later)

    holds = np.ones(len(sources), np.bool_)
    for value in residual:
        holds &= is_true(evaluate(value, resolve, len(sources)))
    return holds
