"""AGGREGATE: exact numbers of all trends of a group, in a form that can be joined with other groups'."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, log2
from typing import Any

import numpy as np

from trellis.events.columns.ordering import rank_codes
from trellis.events.columns.types import plain_value
from trellis.language.bound import Output
from trellis.operators.aggregates import Aggregates, Sum
from trellis.operators.exact import Residues
from trellis.operators.trends.count import Counter
from trellis.operators.weights import Weight, weigh
from trellis.plan.plan import Plan


def aggregate(plan: Plan, counter: Counter, counts: list[int]) -> list[Aggregates]:
    """Return the numbers of every group of a slice, which has so many trends."""
    outputs = plan.bound.aggregates
    sums: dict[str, list[Any]] = {}  # SUM and AVG of a column have the same states
    columns = []
    for output in (named.output for named in outputs):
        if output.column is not None and output.function in ("SUM", "AVG"):
            name = output.column.name
            sums[name] = states = sums.get(name) or _sums(output, counter, counts)
        else:
            states = _column_states(output, counter, counts)
        columns.append(states)
    found, of_none = list[Aggregates](), None
    for count, *own in zip(counts, *columns, strict=True):
        if count or of_none is None:
            one = Aggregates(count, tuple(own))
            of_none = of_none if count else one
            found.append(one)
        else:
            found.append(of_none)  # most windows and partitions of a rare pattern
    return found


def _column_states(output: Output, counter: Counter, counts: list[int]) -> list[Any]:
    if output.function == "COUNT" and output.variable is None:
        return list(counts)
    if output.column is None:
        return _length_states(output, counter, counts)
    return _extremes(output, counter, counts)


def _length_states(output: Output, counter: Counter, counts: list[int]) -> list[Any]:
    """COUNT(v), and MIN, MAX, AVG of LENGTH."""
    if output.function in ("MIN", "MAX"):
        shortest, longest = counter.length_range()
        chosen = shortest if output.function == "MIN" else longest
        return [length if count else None for length, count in zip(chosen, counts, strict=True)]
    n = len(counter.events)
    ones = np.ones((1, n), np.uint64)
    lengths = _exact(counter, counts, lambda prime: ones, 1, signed=False)
    if output.function == "COUNT":
        return [row[0] for row in lengths]
    return [Sum(Fraction(row[0]), count) for row, count in zip(lengths, counts, strict=True)]


def _exact(counter: Counter, counts: list[int], weights: Any, bits: int, signed: bool) -> list[list[int]]:
    """Return for each group the exact sums of its weights."""
    groups = np.flatnonzero(np.array([c > 0 for c in counts], np.bool_))
    kinds = len(weights(3))
    result = [[0] * kinds for _ in counts]
    if len(groups):
        size = max(counts).bit_length() + ceil(log2(len(counter.events) + 1)) + bits + 2
        rows = counter.sums(groups, weights, size, signed)
        for place, group in enumerate(groups.tolist()):
            result[group] = [row[place] for row in rows[1:]]
    return result


def _sums(output: Output, counter: Counter, counts: list[int]) -> list[Any]:
    assert output.column is not None
    weight = weigh(counter.events.columns[output.column.name])
    present = weight.present.astype(np.uint64)

    def residues(prime: int) -> Residues:
        return np.stack([weight.modulo(prime), present])

    rows = _exact(counter, counts, residues, weight.bits, signed=True)
    if not weight.infinite.any():
        return [Sum(row[0] * weight.unit, row[1]) for row in rows]
    return [
        Sum(row[0] * weight.unit, row[1], *_infinities(weight, counter, group, row[1]))
        for group, row in enumerate(rows)
    ]


def _infinities(weight: Weight, counter: Counter, group: int, number: int) -> tuple[bool, bool]:
    if number == 0:
        return False, False
    signs = weight.infinite[counter.members(group)]
    return bool((signs > 0).any()), bool((signs < 0).any())


def _extremes(output: Output, counter: Counter, counts: list[int]) -> list[Any]:
    assert output.column is not None
    column = counter.events.columns[output.column.name]
    codes = rank_codes([column])[0]
    best: list[Any] = []
    for group, count in enumerate(counts):
        events = counter.members(group) if count else np.empty(0, np.int64)
        events = events[codes[events] >= 0]
        if not len(events):
            best.append(None)
            continue
        place = codes[events].argmin() if output.function == "MIN" else codes[events].argmax()
        best.append(plain_value(column[int(events[place])]))
    return best
