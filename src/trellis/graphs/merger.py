"""The merger: results of all instances in one order, and what is combined from them, such as lists of the best."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from itertools import groupby
from typing import Any, ClassVar

import pyarrow as pa

from trellis.errors import UsageError, did_you_mean
from trellis.graphs.operator import schema_of

Row = dict[str, Any]


class _Descending:
    """A value that sorts the other way round."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __lt__(self, other: _Descending) -> bool:
        return bool(other.value < self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Descending) and other.value == self.value


@dataclass(frozen=True)
class _Order:
    """An order of rows by columns; None comes last."""

    columns: tuple[str, ...]

    def key(self, row: Mapping[str, Any]) -> tuple[Any, ...]:
        found: list[Any] = []
        for column in self.columns:
            value = row[column.removeprefix("-")]
            down = column.startswith("-")
            found.append((value is None, _Descending(value) if down and value is not None else value))
        return tuple(found)

    def check(self, names: Sequence[str], whose: str) -> None:
        for column in self.columns:
            name = column.removeprefix("-")
            if name not in names:
                hint = did_you_mean(name, names, f"Results have {', '.join(names)}.")
                raise UsageError(f"the order of the {whose} names `{name}`, which results do not have", hint)


class Combination:
    """Combines results, one event after another; derive from it for a combination of your own.

    Attributes
    ----------
    output
        The columns of what it gives, as in `Operator`.
    """

    output: ClassVar[Mapping[str, Any]] = {}

    def schema(self, results: pa.Schema) -> pa.Schema:
        """Return the columns of what it gives, from those of the results; refuse results that it cannot take."""
        return schema_of(self.output, type(self).__name__)

    def take(self, rows: Sequence[Row]) -> Iterable[Row]:
        """Take all results of one event, in order, and give what is combined from all so far, if it is new."""
        raise NotImplementedError(f"{type(self).__name__} does not say how to combine: write `take`")

    def state(self) -> Any:
        """Return the state that a stream stores between batches, as plain data; by default the attributes."""
        return dict(vars(self))

    def restore(self, state: Any) -> None:
        """Go on from what `state` returned."""
        vars(self).update(state)


class TopK(Combination):
    """The best k of all keys by their latest results, given as a list whenever it has changed.

    Parameters
    ----------
    k
        How many.
    key
        The column that tells results apart: a later result takes the place of an earlier one with the same key.
    by
        The columns that decide, the first first; `-` before a name puts larger values first. A key whose first one is
        None is out.
    """

    def __init__(self, k: int, *, key: str, by: Sequence[str] | str) -> None:
        if k < 1:
            raise UsageError(f"a list of the best {k} cannot be", "Give a k of at least 1.")
        self.k, self.key = k, key
        self.by = (by,) if isinstance(by, str) else tuple(by)
        self._rows: dict[Any, Row] = {}
        self._ranked: list[tuple[Any, ...]] = []
        self._last: list[Row] = []

    def schema(self, results: pa.Schema) -> pa.Schema:  # noqa: D102
        self._order.check(results.names, "best")
        if self.key not in results.names:
            hint = did_you_mean(self.key, results.names, f"Results have {', '.join(results.names)}.")
            raise UsageError(f"the key `{self.key}` is not a column of results", hint)
        return pa.schema([("best", pa.list_(pa.struct(list(results))))])

    @property
    def _order(self) -> _Order:
        return _Order((*self.by, self.key))

    def take(self, rows: Sequence[Row]) -> Iterable[Row]:  # noqa: D102
        order, leading = self._order, self.by[0].removeprefix("-")
        for row in rows:
            name = row[self.key]
            before = self._rows.pop(name, None)
            if before is not None:
                del self._ranked[bisect_left(self._ranked, order.key(before))]
            if row[leading] is not None:
                self._rows[name] = row
                insort(self._ranked, order.key(row))
        best = [self._rows[_value(entry[-1])] for entry in self._ranked[: self.k]]
        if best != self._last:
            self._last = best
            yield {"best": best}

    def state(self) -> Any:  # noqa: D102
        return [list(self._rows.values()), self._last]

    def restore(self, state: Any) -> None:  # noqa: D102
        rows, self._last = state
        self._rows = {row[self.key]: row for row in rows}
        self._ranked = sorted(map(self._order.key, rows))


def _value(entry: tuple[bool, Any]) -> Any:
    return entry[1].value if isinstance(entry[1], _Descending) else entry[1]


@dataclass(frozen=True)
class Merger:
    """How results of all instances become one stream.

    They come in the order of the events that led to them: by time, then id. What the end of the input led to is last.

    Attributes
    ----------
    order
        Columns that decide which of the results of one event comes first; `-` before a name puts larger values first.
        Then the name of the partition decides, and then the order in which the operator gave them.
    combine
        What is made of the results, such as `TopK`; without it they are given as they are.
    join_calls
        Whether the results of calls are taken together with those of the first event of the same time: as what that
        event found, not as something that happened before it.
    """

    order: Sequence[str] = ()
    combine: Combination | None = None
    join_calls: bool = False

    def schema(self, results: pa.Schema) -> pa.Schema:
        """Return the columns of what comes out besides time, event and partition; refuse what does not fit."""
        _Order(tuple(self.order)).check(results.names, "merger")
        return results if self.combine is None else self.combine.schema(results)

    @property
    def plain(self) -> bool:
        """Whether results come out as they are, in the order of events, partitions and places."""
        return not self.order and self.combine is None


class MergeRun:
    """Merges results that come in the order of events; each is a tuple, `lead` items before those of the operator."""

    def __init__(self, merger: Merger, names: Sequence[str], lead: int) -> None:
        self.merger, self.names, self.lead = merger, names, lead
        self.combine = deepcopy(merger.combine)  # each run begins anew

    def merged(self, rows: Iterable[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
        """Take sorted results, and yield them in the order of the merger, or their combination."""
        if self.merger.plain:
            yield from rows
            return
        order = _Order(tuple(self.merger.order))
        for event, some in self._groups(rows):
            if order.columns:
                some.sort(key=lambda row: order.key(self._fields(row)))  # equal ones stay as they were
                some = [(*row[: self.lead - 1], i, *row[self.lead :]) for i, row in enumerate(some)]
            if self.combine is None:
                yield from some
                continue
            for made in self.combine.take([self._fields(row) for row in some]):
                yield (*event, made)

    def _groups(self, rows: Iterable[tuple[Any, ...]]) -> Iterator[tuple[tuple[Any, ...], list[tuple[Any, ...]]]]:
        """Yield the results of one event or of the calls of one time, each with end, time and event."""
        called: tuple[tuple[Any, ...], list[tuple[Any, ...]]] | None = None
        for event, group in groupby(rows, key=lambda row: row[:3]):
            some = list(group)
            if called is not None and event[:2] == called[0][:2]:
                some = [*called[1], *some]
            elif called is not None:
                yield called
            called = (event, some) if self.merger.join_calls and event[2] is None else None
            if called is None:
                yield event, some
        if called is not None:
            yield called

    def _fields(self, row: tuple[Any, ...]) -> Row:
        return dict(zip(self.names, row[self.lead :], strict=True))
