"""Adjacent conditions as integer codes that the edge kernels compare."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from trellis.columns.evaluate import evaluate
from trellis.columns.ordering import rank_codes
from trellis.errors import OverflowInCondition
from trellis.language.bound import Column, Condition, Operation, Value, columns_of
from trellis.language.syntax import Which

Ints = NDArray[np.int64]
LOWEST, HIGHEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max
FLIPPED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


@dataclass
class Adjacency:
    """When an event `y` may follow an event `x`, in the form of `trellis.kernels.edges`.

    `gives[x]` and `takes[y]` are asked of one event alone; the keys must be equal; `above[j][y] > below[j][x]`;
    `differ_next[j][y]` and `differ_prev[j][x]` must differ; `residual` is evaluated on the pairs that are left.
    """

    gives: NDArray[np.bool_]
    takes: NDArray[np.bool_]
    key_next: Ints | None = None
    key_prev: Ints | None = None
    above: list[Ints] = field(default_factory=list)
    below: list[Ints] = field(default_factory=list)
    differ_next: list[Ints] = field(default_factory=list)
    differ_prev: list[Ints] = field(default_factory=list)
    residual: list[Value] = field(default_factory=list)


def encode(conditions: tuple[Condition, ...], columns: Mapping[str, pa.Array], usable: NDArray[np.bool_]) -> Adjacency:
    """Return the adjacent conditions of one Kleene variable over sorted events."""
    adjacency = Adjacency(usable.copy(), usable.copy())
    for condition in conditions:
        for term in _terms(condition.value):
            try:
                _add(term, columns, adjacency)
            except OverflowInCondition:
                adjacency.residual.append(term)  # perhaps no pair that is asked overflows
    return adjacency


def _terms(value: Value) -> Iterator[Value]:
    """Split at AND: all must be true."""
    if isinstance(value, Operation) and value.function == "and":
        for argument in value.arguments:
            yield from _terms(argument)
    else:
        yield value


def _add(term: Value, columns: Mapping[str, pa.Array], adjacency: Adjacency) -> None:
    which = {c.which for c in columns_of(term)}
    if which == {Which.LATER}:
        adjacency.takes &= is_true(_of_events(term, columns, len(adjacency.takes)))
    elif which == {Which.EARLIER}:
        adjacency.gives &= is_true(_of_events(term, columns, len(adjacency.gives)))
    elif isinstance(term, Operation) and term.function in FLIPPED and _one_sided(term):
        _compare(term, columns, adjacency)
    else:
        adjacency.residual.append(term)


def _one_sided(term: Operation) -> bool:
    return all(len({c.which for c in columns_of(side)}) == 1 for side in term.arguments)


def _of_events(value: Value, columns: Mapping[str, pa.Array], length: int) -> pa.Array:
    return evaluate(value, lambda column: columns[column.name], length)


def is_true(result: pa.Array) -> NDArray[np.bool_]:
    """Return where a three-valued result is true."""
    return result.fill_null(False).to_numpy(zero_copy_only=False).astype(np.bool_, copy=False)


def _compare(term: Operation, columns: Mapping[str, pa.Array], adjacency: Adjacency) -> None:
    left, right = term.arguments
    function = term.function
    if next(columns_of(left)).which is Which.EARLIER:
        left, right, function = right, left, FLIPPED[function]
    length = len(adjacency.takes)
    later, earlier = rank_codes([_of_events(left, columns, length), _of_events(right, columns, length)])
    if function == "=":
        _add_key(later, earlier, adjacency)
    elif function == "!=":
        adjacency.differ_next.append(later)
        adjacency.differ_prev.append(earlier)
    else:
        sign = 1 if function in (">", ">=") else -1
        equal = 1 if function in (">=", "<=") else 0
        adjacency.above.append(np.where(later < 0, LOWEST, sign * 2 * later + equal))
        adjacency.below.append(np.where(earlier < 0, HIGHEST, sign * 2 * earlier))


def _add_key(later: Ints, earlier: Ints, adjacency: Adjacency) -> None:
    """Join the key with those before it: together they are one dense number, -1 where one is missing."""
    if adjacency.key_next is None or adjacency.key_prev is None:
        adjacency.key_next, adjacency.key_prev = later, earlier
        return
    width = max(later.max(initial=0), earlier.max(initial=0)) + 1
    n = len(later)
    joined = np.concatenate([adjacency.key_next, adjacency.key_prev]) * width + np.concatenate([later, earlier])
    missing = np.concatenate([(adjacency.key_next < 0) | (later < 0), (adjacency.key_prev < 0) | (earlier < 0)])
    _, codes = np.unique(joined, return_inverse=True)
    codes = np.where(missing, -1, codes)
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
