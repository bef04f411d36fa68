"""Batches of results in flat arrays: the one type that carries results from operators to rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trellis.events.slice import Ints
from trellis.properties import cached_property

RANK_LIMIT = 1 << 63  # ranks from here on do not fit 64 bits
NO_RANK = -1  # stands for such a rank
WORD = 63  # bits of a word but its sign
LEVEL = 8  # the bit of a code from which on it tells how many iterations an event begins
VARIABLE = (1 << LEVEL) - 1  # the bits of a code that tell the variable

RankRange = tuple[int, int, int]  # a group, and of its ranks the first and the one after the last
Small = NDArray[np.int32]
Labels = tuple[Ints, Ints]  # the rank and the group of each result


class EventWords(NamedTuple):
    """Events as words of 64 bits, for results that come out without positions of events.

    Attributes
    ----------
    ids, times : int64
        The id and the time of each event.
    codes : uint8
        For a pattern of several variables, the code of each variable (of an event, once it is bound to one).
    """

    ids: Ints
    times: Ints
    codes: NDArray[np.uint8]

    def of(self, events: Ints, variables: Ints) -> EventWords:
        """Return the same of vertices: events that are bound to variables."""
        codes = self.codes if not len(self.codes) else self.codes[variables]
        return EventWords(self.ids[events], self.times[events], codes).held()

    def held(self) -> EventWords:
        """Return the same as views that nobody writes to, so that kernels are compiled for one type."""
        views = EventWords(self.ids.view(), self.times.view(), self.codes.view())
        for view in views:
            view.flags.writeable = False
        return views


class WordRows(NamedTuple):
    """Results as the words of `EventWords`: the id and the code of each event, and the times of first and last ones."""

    ids: Ints
    codes: NDArray[np.uint8]
    firsts: Ints
    lasts: Ints


class PathBatch:
    """Some results, as a ragged array: the positions of their events in the slice, one result after another.

    A batch has one of two layouts. *Ragged*: `positions` and `offsets`. *Table*, for results of equal length: a row for
    each place in a result and a column for each result, so that one variable of all results is contiguous; `positions`
    and `offsets` are then made where they are asked for. Ranks and groups may be computed late, too: listing without
    them runs at the speed of memory.

    Parameters
    ----------
    positions : int32 array
        The events of all results.
    offsets : integer array, one longer than the results
        Result `i` is `positions[offsets[i]:offsets[i + 1]]`.
    labels
        The rank (`NO_RANK` where it does not fit 64 bits) and the group of each result, or a function that gives them.
    codes : integer array, optional
        The number of the variable that each event is bound to, for patterns of several variables, and from the bit
        `LEVEL` on of how many of the groups around that the event begins an iteration, the innermost ones.
    shared : int32 array, optional
        In the compact form: how many leading events a result has in common with the one before it, which `positions`
        then does not repeat. The first result shares none.
    words : optional
        What the results tell of their events, if not positions, which are then unknown.
    """

    def __init__(
        self, positions: Small, offsets: NDArray[Any], labels: Labels | Callable[[], Labels],
        codes: NDArray[Any] | None = None, shared: Small | None = None, words: WordRows | None = None,
    ) -> None:  # fmt: skip
        self.table: Small | None = None
        self.shared, self.words = shared, words
        self._given = positions, offsets, codes
        self._label = labels

    @classmethod
    def of_ends(
        cls,
        positions: Small,
        ends: NDArray[Any],
        labels: Labels | Callable[[], Labels],
        codes: NDArray[Any] | None = None,
    ) -> PathBatch:
        """Return the batch of results that end at places of `positions`."""
        return cls(positions, np.concatenate([np.zeros(1, ends.dtype), ends]), labels, codes)

    @classmethod
    def of_task(cls, positions: Small, ends: NDArray[Any], task: int) -> PathBatch:
        """Return results of one task, whose number stands for a group; their ranks are not known yet."""
        return cls.of_ends(positions, ends, lambda: (np.full(len(ends), NO_RANK), np.full(len(ends), task)))

    @classmethod
    def of_table(cls, table: Small, labels: Labels | Callable[[], Labels]) -> PathBatch:
        """Return the batch of results of equal length that are the columns of a table."""
        batch = cls(table, table, labels)
        batch.table = table
        return batch

    def __len__(self) -> int:
        return len(self._given[1]) - 1 if self.table is None else self.table.shape[1]

    # --- Arrays -----------------------------------------------------------------------------------------------

    @cached_property
    def positions(self) -> Small:
        """The positions of the events, one result after another; in the compact form without those that are shared."""
        assert self.words is None, "results that come out as words have no positions"
        return self._given[0] if self.table is None else np.ascontiguousarray(self.table.T).ravel()

    @cached_property
    def offsets(self) -> NDArray[Any]:
        """Where each result begins in `positions`, and where the last one ends."""
        if self.table is None:
            return self._given[1]
        return np.arange(len(self) + 1, dtype=np.int32) * np.int32(len(self.table))

    @property
    def ends(self) -> NDArray[Any]:
        """Where each result ends in `positions`."""
        return self.offsets[1:]

    @cached_property
    def codes(self) -> NDArray[Any] | None:
        """The variable of each event, and how many iterations it begins; None for a pattern of one variable."""
        return self._given[2] if self.table is None else np.tile(np.arange(len(self.table)), len(self))

    @cached_property
    def variables(self) -> NDArray[Any] | None:
        """The variable of each event; None for a pattern of one variable."""
        return None if self.codes is None else self.codes & VARIABLE

    @property
    def _labels(self) -> Labels:
        if callable(self._label):
            self._label = self._label()
        return self._label

    @property
    def ranks(self) -> Ints:
        """The rank of each result in its group; `NO_RANK` where it does not fit 64 bits."""
        return self._labels[0]

    @property
    def groups(self) -> Ints:
        """The group of each result."""
        return self._labels[1]

    @cached_property
    def lengths(self) -> Ints:
        """The number of events of each result, shared ones included."""
        if self.table is not None:
            return np.full(len(self), len(self.table))
        own = np.diff(self.offsets)
        return (own if self.shared is None else own + self.shared).astype(np.int64)

    @cached_property
    def firsts(self) -> Small:
        """The first event of each result."""
        if self.table is not None:
            return self.table[0]
        begins = self.offsets[:-1]
        if self.shared is not None:  # that of the last result before it that shares nothing
            begins = np.maximum.accumulate(np.where(self.shared == 0, begins, 0))
        return self.positions[begins]

    @cached_property
    def lasts(self) -> Small:
        """The last event of each result."""
        return self.table[-1] if self.table is not None else self.positions[self.offsets[1:] - 1]

    # --- Other batches ----------------------------------------------------------------------------------------

    def take(self, rows: Ints) -> PathBatch:
        """Return some results, in the order in which they are named: of any but the compact form."""
        assert self.shared is None
        if self.table is not None:
            return PathBatch.of_table(self.table[:, rows], lambda: (self.ranks[rows], self.groups[rows]))
        begins = self.offsets[:-1].astype(np.int64)[rows]
        lengths = self.offsets[1:][rows] - begins
        ends = np.cumsum(lengths)
        places = np.arange(ends[-1] if len(ends) else 0) + np.repeat(begins - (ends - lengths), lengths)
        codes = None if self.codes is None else self.codes[places]
        return PathBatch.of_ends(self.positions[places], ends, lambda: (self.ranks[rows], self.groups[rows]), codes)

    def pieces(self, values: int) -> Iterator[PathBatch]:
        """Yield all results in batches of at most `values` events, or of one result; arrays are shared."""
        offsets, row = self.offsets, 0
        while row < len(self):
            begin = int(offsets[row])
            behind = max(row + 1, int(np.searchsorted(offsets, begin + values, side="right")) - 1)
            end, here = int(offsets[behind]), slice(row, behind)
            yield PathBatch(
                self.positions[begin:end], (offsets[row : behind + 1] - begin).astype(np.int32),
                (self.ranks[here], self.groups[here]),
                None if self.codes is None else self.codes[begin:end],
            )  # fmt: skip
            row = behind

    @staticmethod
    def concat(batches: Sequence[PathBatch]) -> PathBatch:
        """Return several batches as one; its offsets have 64 bits."""
        if len(batches) == 1:
            return batches[0]
        sizes = np.cumsum([0, *(len(one.positions) for one in batches)])
        shifted = [one.ends.astype(np.int64) + shift for one, shift in zip(batches, sizes[:-1], strict=True)]
        codes = [one.codes for one in batches if one.codes is not None]

        def labels() -> Labels:
            return _joined([one.ranks for one in batches], np.int64), _joined([one.groups for one in batches], np.int64)

        return PathBatch.of_ends(
            _joined([one.positions for one in batches], np.int32), _joined(shifted, np.int64), labels,
            np.concatenate(codes) if codes else None,
        )  # fmt: skip

    def on(self, events: Ints, codes: Ints, first_group: int = 0) -> PathBatch:
        """Return the batch whose positions are vertices as one of events, each with its variable.

        Parameters
        ----------
        events, codes
            The event of each vertex, and its variable with the iterations that it begins.
        first_group
            The group that has the number 0 here.
        """
        from trellis.kernels.list.columns import take_bound

        def labels() -> Labels:
            one = bool(len(self)) and self.groups.strides == (0,)
            groups = repeated(self.groups[:1] + first_group, len(self)) if one else self.groups + first_group
            return self.ranks, groups

        if self.words is not None:
            return PathBatch(self._given[0], self.offsets, labels, shared=self.shared, words=self.words)
        places = np.ascontiguousarray(self.positions, np.int32).view(np.uint32)
        taken, bound = np.empty(len(places), np.int32), np.empty(len(places), np.int32)
        take_bound(events, codes, places, taken, bound)
        return PathBatch(taken, self.offsets, labels, bound)

    def of_variable(self, variable: int) -> tuple[PathBatch, NDArray[np.bool_] | None]:
        """Return the results that have events of a variable, with these events alone, and which results those are.

        The latter is None where they are all.
        """
        if self.table is not None:
            return PathBatch.of_table(self.table[variable : variable + 1], lambda: (self.ranks, self.groups)), None
        assert self.variables is not None
        table = self._of_variables
        if table is not None and variable < len(table):
            return PathBatch.of_table(table[variable : variable + 1], lambda: (self.ranks, self.groups)), None
        chosen = self.variables == variable
        positions, lengths = self.positions[chosen], np.add.reduceat(chosen, self.offsets[:-1], dtype=np.int64)
        every = bool(lengths.all())
        if every and len(positions) == len(self):
            return PathBatch.of_table(positions.reshape(1, -1), lambda: (self.ranks, self.groups)), None
        has = lengths > 0
        ends = np.cumsum(lengths[has]).astype(np.int32)
        some = PathBatch.of_ends(positions, ends, lambda: (self.ranks[has], self.groups[has]))
        return some, None if every else has

    @cached_property
    def _of_variables(self) -> Small | None:
        """The events of each variable, in a row, where all results have one of each of the first variables alone."""
        rows, values = len(self), len(self.positions)
        if not rows or values % rows or self.variables is None or self.shared is not None:
            return None
        length = values // rows
        variables = self.variables.reshape(rows, length)
        even = (self.offsets[1:] == np.arange(1, rows + 1) * length).all()
        if not even or length >= WORD or ((1 << variables.astype(np.int64)).sum(axis=1) != (1 << length) - 1).any():
            return None  # so many powers of two have that sum if they are all different
        table = np.empty((length, rows), np.int32)
        table[variables, np.arange(rows).reshape(-1, 1)] = self.positions.reshape(rows, length)
        return table

    def without_ranks(self) -> PathBatch:
        """Return the same results, of which no rank is known."""

        def labels() -> Labels:
            return np.full(len(self), NO_RANK), self.groups

        if self.table is not None:
            return PathBatch.of_table(self.table, labels)
        return PathBatch(self.positions, self.offsets, labels, self.codes, self.shared)

    def compacted(self) -> PathBatch:
        """Return the compact form: each result without the events that it shares with the one before it."""
        if self.shared is not None or not len(self):
            return self if self.shared is not None else self._with_shared(np.zeros(0, np.int32))
        offsets, lengths = self.offsets.astype(np.int64), self.lengths
        common = np.minimum(lengths[1:], lengths[:-1])
        ends = np.cumsum(common)
        row = np.repeat(np.arange(len(common)), common)
        place = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - common, common)
        differs = self.positions[offsets[row] + place] != self.positions[offsets[row + 1] + place]
        shared = np.append(0, common)
        np.minimum.at(shared, row[differs] + 1, place[differs])
        return self._with_shared(shared.astype(np.int32))

    def _with_shared(self, shared: Small) -> PathBatch:
        offsets, lengths = self.offsets.astype(np.int64), self.lengths
        place = np.arange(len(self.positions)) - np.repeat(offsets[:-1], lengths)
        new = place >= np.repeat(shared, lengths)
        ends = np.append(0, np.cumsum(lengths - shared)).astype(np.int32)
        codes = None if self.codes is None else self.codes[new]
        return PathBatch(self.positions[new], ends, lambda: (self.ranks, self.groups), codes, shared)


def repeated(one: Ints, number: int) -> Ints:
    """Return the same number again and again, in the room of one."""
    return np.ndarray(number, np.int64, one, strides=(0,))


def rank_labels(runs: Sequence[tuple[int, int, int]]) -> Labels:
    """Return the labels of results whose ranks follow one another in runs: (group, first rank, how many)."""
    groups, lengths = (np.array([run[i] for run in runs], np.int64) for i in (0, 2))
    return label_runs([rank for _, rank, _ in runs], groups, lengths)


def label_runs(firsts: Sequence[int], groups: Ints, lengths: Ints) -> Labels:
    """Return the same for the first rank, the group and the length of each run, without an array for each."""
    from trellis.kernels.list.columns import label_rows

    ranks, of_rows = np.empty(lengths.sum(), np.int64), np.empty(lengths.sum(), np.int64)
    clipped = np.array([min(first, RANK_LIMIT) for first in firsts], np.uint64)
    label_rows(clipped, groups, lengths, ranks, of_rows)
    return ranks, of_rows


def _joined(arrays: Sequence[NDArray[Any]], dtype: Any) -> NDArray[Any]:
    return np.concatenate([np.empty(0, dtype), *arrays]).astype(dtype, copy=False)
