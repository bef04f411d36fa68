"""Events with conditions as arrays, and their transitive reduction by trying every detour."""

from __future__ import annotations

import itertools
import operator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from trellis.events.adjacency import LOWEST, Adjacency, Order
from trellis.events.slice import Groups, Slice
from trellis.kernels.events.partitions import partition_ends, span_ends

COMPARE = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "!=": operator.ne}
Array = np.ndarray


@dataclass
class Stage:
    """Events with conditions, from which a slice and its adjacency are made; `LOWEST` is NULL, as is a key of -1."""

    times: Array
    bounds: Array
    span: int | None
    usable: Array
    gives: Array
    takes: Array
    key: tuple[Array, Array] | None = None
    orders: list[tuple[Array, list[tuple[str, Array]]]] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.times)

    def slice(self) -> Slice:
        n, bounds = len(self), self.bounds
        until = partition_ends(bounds, n) if self.span is None else span_ends(self.times, bounds, self.span)
        groups = Groups(bounds[:-1], bounds[1:], np.zeros(len(bounds) - 1, np.int64))
        return Slice({"w": pa.array(np.arange(n))}, pa.array(range(n)), self.times, self.usable, bounds, groups, until)

    def adjacency(self) -> Adjacency:
        made = Adjacency(self.usable & self.gives, self.usable & self.takes)
        if self.key is not None:
            made.key_next, made.key_prev = self.key
        made.orders = tuple(Order(value, tuple(more)) for value, more in self.orders)
        return made

    def follow(self) -> list[list[int]]:
        """The successors of every event, by the definitions."""
        world = np.searchsorted(self.bounds, np.arange(len(self)), side="right")
        gap = self.times[None, :] - self.times[:, None]
        may = (gap > 0) & (world[:, None] == world[None, :]) & (self.usable & self.gives)[:, None]
        may &= (self.usable & self.takes)[None, :]
        if self.span is not None:
            may &= gap <= self.span
        if self.key is not None:
            may &= (self.key[0][None, :] == self.key[1][:, None]) & (self.key[1] >= 0)[:, None]
        for value, more in self.orders:
            for op, earlier in more:
                may &= COMPARE[op](value[None, :], earlier[:, None])
                may &= (value != LOWEST)[None, :] & (earlier != LOWEST)[:, None]
        return [np.flatnonzero(row).tolist() for row in may]

    def reduced(self) -> list[list[int]]:
        """The direct successors of every event: those that no other successor leads to."""
        follow = self.follow()
        reach = [0] * len(self)  # sets of events, as bits
        direct = []
        for x in reversed(range(len(self))):
            beyond = 0
            for y in follow[x]:
                beyond |= reach[y]
            direct.append([z for z in follow[x] if not beyond >> z & 1])
            reach[x] = beyond | sum(1 << y for y in follow[x])
        return direct[::-1]


def make_stage(rng: np.random.Generator, most: int) -> Stage:
    """Make up to `most` events without conditions: worlds, ties, spans, events that cannot follow or be followed."""
    n = int(rng.integers(0, most + 1))
    inner = np.sort(rng.integers(0, n + 1, int(rng.integers(0, 3))))
    bounds = np.unique(np.concatenate([[0], inner, [n]])).astype(np.int64)
    late = int(rng.choice([1, n // 4 + 1, n + 1, 4 * n + 4]))
    times = np.concatenate([np.sort(rng.integers(0, late, b - a)) for a, b in itertools.pairwise(bounds)] or [[]])
    flags = [rng.random(n) < (1 if rng.random() < 0.6 else 0.8) for _ in range(3)]
    span = None if rng.random() < 0.6 else int(rng.integers(0, late + 1))
    return Stage(times.astype(np.int64), bounds, span, *flags)


def make_values(rng: np.random.Generator, n: int, distinct: int | None = None) -> Array:
    """Make values, some of them NULL at times."""
    values = rng.integers(0, distinct or int(rng.choice([1, 2, 6, 40, 1000])), n)
    if rng.random() < 0.3:
        values[rng.random(n) < 0.2] = LOWEST
    return values


def other_side(rng: np.random.Generator, values: Array) -> Array:
    """Make what values are compared with: the same, more, less, a part of them, their opposite, or anything."""
    shape = rng.choice(["same", "more", "less", "part", "opposite", "other"])
    changed = {
        "same": values, "more": values + values // 2 + 1, "less": values - 1, "part": values // 2,
        "opposite": 6 - values, "other": make_values(rng, len(values)),
    }[shape]  # fmt: skip
    return np.where(values == LOWEST, LOWEST, changed) if shape != "other" else changed


def make_key(rng: np.random.Generator, n: int) -> Array:
    """Make keys, some of them missing at times."""
    keys = rng.integers(0, int(rng.choice([1, 2, 5, 20])), n)
    if rng.random() < 0.3:
        keys[rng.random(n) < 0.1] = -1
    return keys
