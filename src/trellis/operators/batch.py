"""Results in flat arrays: the positions of their events, and where each ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from trellis.events.slice import Ints

TOO_LARGE = 1 << 63  # for a rank to be told

Range = tuple[int, int, int]  # a group, and of its ranks the first and the one after the last


class Trends(Protocol):
    """Some trends: the positions of their events one after another, and where each trend ends.

    A rank that does not fit 64 bits is -1.
    """

    @property
    def positions(self) -> NDArray[np.int32]:
        """The positions of the events of one trend after another."""

    @property
    def ends(self) -> NDArray[Any]:
        """Where each trend ends in `positions`."""

    @property
    def ranks(self) -> Ints:
        """The rank of each trend in its group."""

    @property
    def groups(self) -> Ints:
        """The group of each trend."""

    def __len__(self) -> int: ...


@dataclass(frozen=True)
class Walked:
    """Some trends, as `Trends` says."""

    positions: NDArray[np.int32]
    ends: NDArray[np.int32]
    ranks: Ints
    groups: Ints

    def __len__(self) -> int:
        return len(self.ends)


@dataclass(frozen=True)
class Bound:
    """Some results of a pattern of several variables, as `Trends` says, with the variable of each event."""

    positions: NDArray[np.int32]
    ends: NDArray[Any]
    ranks: Ints
    groups: Ints
    variables: Ints

    def __len__(self) -> int:
        return len(self.ends)


@dataclass(frozen=True)
class Matches:
    """Some results of a fixed sequence: in `table` a row for each variable, a column for each result.

    `runs` are their ranks and groups: rows (group, first rank, how many), ranks that follow one another.
    """

    table: NDArray[np.int32]
    runs: Sequence[tuple[int, int, int]]

    def __len__(self) -> int:
        return self.table.shape[1]

    @cached_property
    def ranks(self) -> Ints:
        """The rank of each result; -1 where it does not fit."""
        runs = [
            np.arange(rank, rank + number)
            if rank + number < TOO_LARGE
            else np.array([r if r < TOO_LARGE else -1 for r in range(rank, rank + number)], np.int64)
            for _, rank, number in self.runs
        ]
        return np.concatenate(runs) if runs else np.empty(0, np.int64)

    @cached_property
    def groups(self) -> Ints:
        """The group of each result."""
        return np.repeat([group for group, _, _ in self.runs], [number for _, _, number in self.runs]).astype(np.int64)

    @cached_property
    def positions(self) -> NDArray[np.int32]:
        """The events of each result, one after another."""
        return np.ascontiguousarray(self.table.T).ravel()

    @property
    def ends(self) -> NDArray[np.int32]:
        """Where the events of each result end."""
        return np.arange(1, len(self) + 1, dtype=np.int32) * np.int32(len(self.table))

    @property
    def variables(self) -> Ints:
        """The variable of each event."""
        return np.tile(np.arange(len(self.table)), len(self))
