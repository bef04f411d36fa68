"""Adjacent conditions as integer codes that the edge kernels compare."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from trellis.errors import OverflowInCondition
from trellis.events.columns.evaluate import evaluate
from trellis.events.columns.ordering import match_codes, order_codes
from trellis.language.bound import Column, Condition, Operation, Value, columns_of
from trellis.language.syntax import Which
from trellis.plan.relation import comparison, terms, without_gap

Ints = NDArray[np.int64]
LOWEST, HIGHEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max
SMALL = 1 << 60  # sums and differences of two such numbers stay within 64 bits


@dataclass(frozen=True)
class Order:
    """Comparisons of one value of the later event with values of the earlier one.

    `value[y] OP earlier[x]` for each of `comparisons`, as integers that compare as the values do; `LOWEST`: no value.
    """

    value: Ints
    comparisons: tuple[tuple[str, Ints], ...]


@dataclass
class Adjacency:
    """When an event `y` may follow an event `x`.

    `gives[x]` and `takes[y]` are asked of one event alone; the keys must be equal (-1: none); all comparisons of all
    `orders` must hold; `residual` is evaluated on the pairs that are left.
    """

    gives: NDArray[np.bool_]
    takes: NDArray[np.bool_]
    key_next: Ints | None = None
    key_prev: Ints | None = None
    orders: tuple[Order, ...] = ()
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

    def _comparisons(self) -> Iterator[tuple[Order, str, Ints]]:
        return ((order, op, earlier) for order in self.orders for op, earlier in order.comparisons)


def _above(op: str, value: Ints) -> Ints:
    codes = value if op in (">", ">=") else ~value
    return np.where(value == LOWEST, LOWEST, codes + 1 if op in (">=", "<=") else codes)


def _below(op: str, earlier: Ints) -> Ints:
    return np.where(earlier == LOWEST, HIGHEST, earlier if op in (">", ">=") else ~earlier)


def _dense(later: Ints, earlier: Ints) -> tuple[Ints, Ints]:
    both = np.concatenate([later, earlier])
    codes = np.where(both == LOWEST, -1, np.unique(both, return_inverse=True)[1])
    return codes[: len(later)], codes[len(later) :]


class _PairValues:
    """The values of the earlier and the later event: of all events, or of chosen rows for each."""

    def __init__(self, columns: Mapping[str, pa.Array], sizes: tuple[int, int], rows: tuple[Ints, Ints] | None) -> None:
        self.columns, self.sizes = columns, sizes
        self.alike = rows is None or np.array_equal(*rows)
        self._rows = None if rows is None else tuple(map(pa.array, rows))
        self._taken: dict[tuple[str, bool], pa.Array] = {}

    def of(self, value: Value) -> pa.Array:
        """Return a value of one of the two."""
        later = any(c.which is Which.LATER for c in columns_of(value))
        return evaluate(value, lambda column: self._column(column.name, later), self.sizes[later])

    def _column(self, name: str, later: bool) -> pa.Array:
        if self._rows is None:
            return self.columns[name]
        if (name, later) not in self._taken:
            column = self.columns[name]
            rows = self._rows[later]
            self._taken[name, later] = column if len(rows) == len(column) else column.take(rows)
        return self._taken[name, later]


def encode(conditions: tuple[Condition, ...], columns: Mapping[str, pa.Array], usable: NDArray[np.bool_]) -> Adjacency:
    """Return the adjacent conditions of one Kleene variable over sorted events."""
    return _encode(
        conditions, _PairValues(columns, (len(usable), len(usable)), None), Adjacency(usable.copy(), usable.copy())
    )


def encode_rows(
    conditions: tuple[Condition, ...], columns: Mapping[str, pa.Array], earlier: Ints, later: Ints
) -> Adjacency:
    """Return the codes of `encode` for rows that may be the earlier event, in rising order, and others the later."""
    sizes = len(earlier), len(later)
    gives, takes = (np.ones(size, np.bool_) for size in sizes)
    return _encode(conditions, _PairValues(columns, sizes, (earlier, later)), Adjacency(gives, takes))


def _encode(conditions: tuple[Condition, ...], sides: _PairValues, adjacency: Adjacency) -> Adjacency:
    ordered: dict[Value, tuple[pa.Array, list[tuple[str, pa.Array]]]] = {}
    for condition in conditions:
        for term in terms(condition.value):
            try:
                _add(term, sides, adjacency, ordered)
            except OverflowInCondition:
                adjacency.residual.append(term)  # perhaps no pair that is asked overflows
    adjacency.orders = tuple(_order(later, compared) for later, compared in ordered.values())
    return adjacency


def _order(later: pa.Array, compared: list[tuple[str, pa.Array]]) -> Order:
    value, *earlier = order_codes([later, *(array for _, array in compared)])
    return Order(value, tuple((op, codes) for (op, _), codes in zip(compared, earlier, strict=True)))


def _add(
    term: Value,
    sides: _PairValues,
    adjacency: Adjacency,
    ordered: dict[Value, tuple[pa.Array, list[tuple[str, pa.Array]]]],
) -> None:
    which = {c.which for c in columns_of(term)}
    compared = comparison(term)
    if which == {Which.LATER}:
        adjacency.takes &= is_true(sides.of(term))
    elif which == {Which.EARLIER}:
        adjacency.gives &= is_true(sides.of(term))
    elif compared is None or not _gap_is_safe(term, sides):
        adjacency.residual.append(term)
    elif compared.function == "=":
        if sides.alike and _is_one_column(compared.later, compared.earlier):
            (codes,) = match_codes([sides.of(compared.later)])
            _add_key(codes, codes.copy(), adjacency)
        else:
            next_, prev = match_codes([sides.of(compared.later), sides.of(compared.earlier)])
            _add_key(next_, prev, adjacency)
    else:
        later, earlier = sides.of(compared.later), sides.of(compared.earlier)
        ordered.setdefault(compared.later, (later, []))[1].append((compared.function, earlier))


def _is_one_column(later: Value, earlier: Value) -> bool:
    return isinstance(later, Column) and isinstance(earlier, Column) and later.name == earlier.name


def _gap_is_safe(term: Value, sides: _PairValues) -> bool:
    """Whether `later - earlier OP gap`, if it was that, may be `later OP earlier + gap`: no number can overflow."""
    assert isinstance(term, Operation)
    later, total = without_gap(term).arguments
    if later in term.arguments:
        return True
    assert isinstance(total, Operation)
    return all(_is_small(value, sides) for value in (later, *total.arguments))


def _is_small(value: Value, sides: _PairValues) -> bool:
    extremes = pc.min_max(sides.of(value).cast(pa.int64())).as_py()
    return all(abs(extreme or 0) < SMALL for extreme in extremes.values())


def is_true(result: pa.Array) -> NDArray[np.bool_]:
    """Return where a three-valued result is true."""
    return result.fill_null(False).to_numpy(zero_copy_only=False).astype(np.bool_, copy=False)


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
