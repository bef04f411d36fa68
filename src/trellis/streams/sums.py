"""Sums in place of events: what a query that only aggregates keeps of the past is bounded by distinct values.

The trends of a window that end at an event go on in the same way as those that end at another with the same values of
what conditions read: both are one attribute vertex, of which the number of trends and their sums are kept. Events are
added in the order of time as soon as none before them can come, and then forgotten. Windows that overlap have sums of
their own. Everything is exact: numbers have as many words as they need.
"""

from __future__ import annotations

import io
import json
from base64 import b64decode, b64encode
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from trellis.events.columns.ordering import rank_codes, row_codes
from trellis.events.columns.types import plain_value
from trellis.events.prepare import prepare
from trellis.events.slice import Groups, Slice
from trellis.events.sorting import column_of
from trellis.kernels.count import folding as kernel
from trellis.language.bound import BoundQuery, columns_of
from trellis.language.syntax import Report
from trellis.operators.aggregates import Aggregates, Sum
from trellis.operators.trends.tiles import TileEvents, place_codes
from trellis.operators.weights import Weight, weigh
from trellis.plan.plan import Plan
from trellis.streams.calendar import END, Calendar, Number
from trellis.streams.ranks import PageStore
from trellis.streams.table_bytes import packed, unpacked

if TYPE_CHECKING:
    from trellis.streams.decisions import StandingQuery

Ints = NDArray[np.int64]
Words = NDArray[np.uint64]
AT_ONCE = 1 << 22  # words of the events that are added together
FEWEST = 1 << 12  # events for which it is worth to add them
PAGE = 1 << 22  # characters of a page of a store
ARRAYS = ("window", "number", "infinite", "group", "ended", "all", "open")
COUNTED = ("", "count")  # the first number of a vertex


def _kinds(bound: BoundQuery) -> list[tuple[str, str]]:
    """Return the numbers that are kept of each vertex: trends, events of trends, values and how many there are."""
    kinds = [COUNTED]
    for named in bound.aggregates:
        output = named.output
        if output.column is not None and output.function in ("SUM", "AVG"):
            kinds += [(output.column.name, "sum"), (output.column.name, "present")]
        elif output.variable is not None or output.function in ("SUM", "AVG"):
            kinds.append(("", "length"))
    return list(dict.fromkeys(kinds))


class TrendSums:
    """The sums of a standing query over events of the past, by window and partition.

    Parameters
    ----------
    query
        The query, of which `can_be_summed`.
    state
        What `to_bytes` gave; None: there are none yet.
    """

    def __init__(self, query: StandingQuery, state: bytes | None = None) -> None:
        self.query, self.calendar = query, Calendar(query.bound)
        self.kinds, self.every = _kinds(query.bound), query.bound.report is Report.ANY
        self.extremes = [n.output for n in query.bound.aggregates if n.output.function in ("MIN", "MAX")]
        assert query.bound.schema is not None
        read = {c.name: None for condition in query.plan.adjacent for c in columns_of(condition.value)}
        self.read = list(read) or [query.bound.schema.time]
        self.units: dict[str, Fraction] = {}  # that sums are whole numbers of; those of doubles become finer
        self.bits = 1  # of the largest weight
        nothing = np.zeros((0, len(self.kinds), 1), np.uint64)
        # Of each group, a window of a partition: its window, how many events it had, one of these, and what has ended.
        self.window, self.number, self.ended = np.empty(0, np.int64), np.empty(0, np.int64), nothing
        self.groups: pa.Table | None = None
        self.best: list[pa.Array | None] = [None] * len(self.extremes)
        self.infinite = np.zeros((2 * len(self.summed), 0), np.bool_)
        # Of each vertex: its group, an event with its values, and the numbers of all trends that end there and of those
        # with which nothing goes on.
        self.group, self.all, self.open = np.empty(0, np.int64), nothing, nothing
        self.vertices: pa.Table | None = None
        if state is not None:
            self._restore(state)

    @property
    def summed(self) -> list[str]:
        """The columns of which sums are kept."""
        return [name for name, what in self.kinds if what == "sum"]

    @property
    def size(self) -> int:
        """The number of vertices."""
        return len(self.group)

    @property
    def first_window(self) -> int | None:
        """The first window that has events."""
        return int(self.window.min()) if len(self.window) else None

    # --- Events -------------------------------------------------------------------------------------------------

    def add(self, events: pa.Table, closed: Number | None, since: Number | None) -> None:
        """Add events, all later than those before, to the windows that the watermark `closed` has not decided.

        Events up to the time `since` were not all seen; the windows that they are in are left out.
        """
        schema = self.query.bound.schema
        assert schema is not None
        times = self.calendar.line.numbers(events, schema.time)
        windows = ceil(self.calendar.size / self.calendar.slide)
        most = max(FEWEST, AT_ONCE // (windows * len(self.kinds) * self.ended.shape[2]))
        if len(times) <= most:
            self._add(events, closed, since)
            return
        order = np.argsort(times, kind="stable")
        ends = np.append(np.flatnonzero(np.diff(times[order])) + 1, len(order))  # what has one time is added together
        begin = 0
        while begin < len(order):
            place = max(np.searchsorted(ends, begin + most, "right") - 1, np.searchsorted(ends, begin, "right"))
            end = int(ends[place])
            self._add(events.take(pa.array(order[begin:end])), closed, since)
            begin = end

    def _add(self, table: pa.Table, closed: Number | None, since: Number | None) -> None:
        plan, numbered = with_numbers(self.query, table)
        prepared = prepare(plan, numbered)
        events = self.calendar.restricted(prepared.events, closed, END, since)
        if not len(events.groups):
            return
        rows = prepared.source.columns(list(self.query.columns))
        of_group = self._groups_of(events, rows)
        self._note_events(events, of_group)
        weights = self._weights(events, of_group)
        joined = _joined(self.vertices, rows.select(self.read))
        columns = {name: column_of(joined, name) for name in self.read}
        size = self.size
        codes = place_codes(plan, TileEvents(columns, np.zeros(size + len(events), np.int64)))
        new = kernel.NewEvents(
            np.ascontiguousarray(events.ticks), codes.gives[size:], codes.takes[size:], codes.own[size:],
            codes.low[size:], codes.high[size:],
        )  # fmt: skip
        low, high = events.groups.lo, events.groups.hi
        while True:
            known = kernel.KnownVertices(
                np.searchsorted(self.group, of_group), np.searchsorted(self.group, of_group, "right"),
                codes.low[:size], codes.high[:size], self.all,
            )  # fmt: skip
            words = self.ended.shape[2]
            room = 64 * words - self.bits - int(self.number.max()).bit_length() - 3
            if room > 0:
                fits, *found = kernel.fold(known, new, weights, low, high, self.ended[of_group], self.every, room)
                if fits:
                    break
            self._widen(2 * words)
        numbers, followed, followed_vertices = found
        at = np.concatenate([np.arange(a, b) for a, b in zip(low.tolist(), high.tolist(), strict=True)])
        group = np.repeat(of_group, high - low)
        gives = new.gives[at]
        kernel.add_to_rows(self.ended, np.where(gives & ~self.every, -1, group), numbers)
        # Vertices and events with the same values become one.
        owner = np.append(self.group, group[gives])
        lows, highs = (np.append(array[:size], array[size:][at[gives]]) for array in (codes.low, codes.high))
        order = np.lexsort((highs, lows, owner))
        keys = np.stack([owner, lows, highs])[:, order]
        first = np.append(True, (np.diff(keys) != 0).any(axis=0))[: len(order)]
        run = np.empty(len(order), np.int64)
        run[order] = np.cumsum(first) - 1
        alone = np.append(~followed_vertices, ~followed[gives])
        numbers = numbers[gives]
        merged, still = (np.zeros((int(first.sum()), *numbers.shape[1:]), np.uint64) for _ in range(2))
        for into, kept, chosen in ((merged, self.all, run), (still, self.open, np.where(alone, run, -1))):
            if into is merged or not self.every:
                kernel.add_to_rows(into, chosen[:size], kept)
                kernel.add_to_rows(into, chosen[size:], numbers)
        self.all, self.open, self.group = merged, still, owner[order[first]]
        self.vertices = joined.take(
            pa.array(np.append(np.arange(size), size + at[gives])[order[first]])
        ).combine_chunks()

    def _groups_of(self, events: Slice, rows: pa.Table) -> Ints:
        """Return the group of each of a slice; those that are not known yet become known."""
        of_slice, number = events.groups, len(self.window)
        firsts = rows.take(pa.array(of_slice.lo))
        joined = _joined(self.groups, firsts)
        partition = [column_of(joined, name) for name, _ in self.query.bound.partition]
        codes = row_codes(partition) if partition else np.zeros(joined.num_rows, np.int64)
        windows = np.append(self.window, of_slice.number)
        order = np.lexsort((np.arange(len(codes)), windows, codes))  # of equal ones the known one is first
        new = np.append(True, (np.diff(codes[order]) != 0) | (np.diff(windows[order]) != 0))
        first = order[np.flatnonzero(new)][np.cumsum(new) - 1]
        same = np.empty(len(codes), np.int64)
        same[order] = first
        added = np.flatnonzero(same[number:] >= number)
        place = np.arange(len(codes))
        place[number + added] = number + np.arange(len(added))
        self.groups = joined.take(pa.array(np.append(np.arange(number), number + added))).combine_chunks()
        self.window, self.number = windows[np.append(np.arange(number), number + added)], _padded(self.number, added)
        self.ended, self.infinite = _padded(self.ended, added), _padded(self.infinite.T, added).T
        return place[same[number:]]

    def _note_events(self, events: Slice, of_group: Ints) -> None:
        """Note how many events groups have, and the least and greatest of their values: each event is in a trend."""
        low, high = events.groups.lo, events.groups.hi
        self.number[of_group] += high - low
        for i, output in enumerate(self.extremes):
            assert output.column is not None
            column = events.columns[output.column.name]
            kept = self.best[i]
            before = pa.nulls(0, column.type) if kept is None else kept
            joined = pa.concat_arrays([before, pa.nulls(len(self.window) - len(before), column.type), column])
            (codes,) = rank_codes([joined])
            codes = np.where(codes < 0, np.iinfo(np.int64).max, codes if output.function == "MIN" else -codes)
            own, codes = codes[: len(self.window)], np.append(codes[len(self.window) :], 0)
            where = np.arange(len(self.window))
            least = np.minimum.reduceat(codes, np.stack([low, high], axis=1).ravel())[::2]
            for g, a, b, value in zip(of_group.tolist(), low.tolist(), high.tolist(), least.tolist(), strict=True):
                if value < own[g]:
                    where[g] = len(own) + a + int(codes[a:b].argmin())
            self.best[i] = joined.take(pa.array(where))

    def _weights(self, events: Slice, of_group: Ints) -> kernel.EventWeights:
        """Return the weights of events, and note which groups have infinite values."""
        shape = (max(1, len(self.kinds) - 1), len(events))
        found = kernel.EventWeights(
            np.zeros(shape, np.uint64), np.zeros(shape, np.uint64), np.zeros(shape, np.int64), np.zeros(shape, np.bool_)
        )
        weighed = {name: weigh(events.columns[name]) for name in self.summed}
        for k, (name, what) in enumerate(self.kinds[1:]):
            if what != "sum":
                found.low[k] = weighed[name].present if what == "present" else 1
                continue
            weight = weighed[name]
            negative, high, low = weight.high < 0, weight.high.view(np.uint64), weight.low
            found.negative[k], found.shift[k] = negative, weight.shift + self._in_units(k + 1, name, weight)
            found.low[k] = np.where(negative, ~low + np.uint64(1), low)
            found.high[k] = np.where(negative, ~high + (low == 0).astype(np.uint64), high)
        for row, (name, sign) in enumerate((name, sign) for name in self.summed for sign in (1, -1)):
            number = np.append(0, np.cumsum(weighed[name].infinite == sign))
            self.infinite[row, of_group] |= number[events.groups.hi] > number[events.groups.lo]
        return found

    def _in_units(self, kind: int, name: str, weight: Weight) -> int:
        """Return by how many bits weights are to be raised; what is kept becomes finer where they are finer."""
        unit = self.units.setdefault(name, weight.unit)
        bits = _power_of_two(weight.unit / unit)
        if bits < 0:
            self._widen(self.ended.shape[2] - bits // 64 + 1)
            for numbers in (self.ended, self.all, self.open):
                kernel.raise_by(numbers, kind, -bits)
            self.units[name] = weight.unit
        self.bits = max(self.bits - min(bits, 0), weight.bits + max(bits, 0))
        return max(bits, 0)

    def _widen(self, words: int) -> None:
        self.ended, self.all, self.open = (_of_words(array, words) for array in (self.ended, self.all, self.open))

    # --- Windows ------------------------------------------------------------------------------------------------

    def decided(self, watermark: Number) -> tuple[Plan, Slice, list[Aggregates]] | None:
        """Return the groups that a watermark decides, as a slice that has them, with their numbers; forget them."""
        closing = self.window <= self.calendar.decided(watermark)
        if not closing.any():
            return None
        assert self.groups is not None
        numbers = self.ended.copy()
        if not self.every:
            kernel.add_to_rows(numbers, self.group, self.open)
        groups = np.flatnonzero(closing)
        plan, rows = with_numbers(self.query, self.groups.take(pa.array(groups)))
        events = prepare(plan, rows).events
        number = events.groups.number
        mine = np.full(len(events.groups), -1)
        of_event = groups[events.ids.to_numpy()]
        for g, (a, b) in enumerate(zip(events.groups.lo.tolist(), events.groups.hi.tolist(), strict=True)):
            own = of_event[a:b][self.window[of_event[a:b]] == number[g]]
            if len(own):
                mine[g] = own[0]
        wanted = mine >= 0
        chosen = Groups(events.groups.lo[wanted], events.groups.hi[wanted], number[wanted])
        found = [self._aggregates(group, numbers[group]) for group in mine[wanted].tolist()]
        self._keep(~closing)
        return plan, replace(events, groups=chosen), found

    def _aggregates(self, group: int, words: Words) -> Aggregates:
        """Return the states of AGGREGATE of a group."""
        whole = [int.from_bytes(row.tobytes(), "little", signed=True) for row in words]
        number = dict(zip(self.kinds, whole, strict=True))
        count, states, best = number[COUNTED], [], iter(self.best)
        for named in self.query.bound.aggregates:
            output = named.output
            if output.function in ("MIN", "MAX"):
                column = next(best)
                states.append(None if column is None or not column[group].is_valid else plain_value(column[group]))
            elif output.column is None:
                value = count if output.function == "COUNT" and output.variable is None else number["", "length"]
                states.append(value if output.function == "COUNT" else Sum(Fraction(value), count))
            else:
                name = output.column.name
                row, present = 2 * self.summed.index(name), number[name, "present"]
                plus, minus = (bool(present and self.infinite[row + i, group]) for i in range(2))
                states.append(Sum(number[name, "sum"] * self.units[name], present, plus, minus))
        return Aggregates(count, tuple(states))

    def _keep(self, groups: NDArray[np.bool_]) -> None:
        """Forget the other groups, and the words that numbers need no more."""
        vertices = groups[self.group]
        self.group = (np.cumsum(groups) - 1)[self.group[vertices]]
        self.all, self.open, self.ended = self.all[vertices], self.open[vertices], self.ended[groups]
        self.window, self.number, self.infinite = self.window[groups], self.number[groups], self.infinite[:, groups]
        self.best = [None if column is None else column.filter(pa.array(groups)) for column in self.best]
        assert self.groups is not None
        self.groups = self.groups.filter(pa.array(groups)).combine_chunks()
        if self.vertices is not None:
            self.vertices = self.vertices.filter(pa.array(vertices)).combine_chunks()
        words = self.ended.shape[2]
        if not len(self.window):
            self.units, self.bits, words = {}, 1, 1
        kept = (self.ended, self.all, self.open)
        while words > 1 and all(np.array_equal(_of_words(array[..., : words - 1], words), array) for array in kept):
            words -= 1
            kept = tuple(array[..., :words] for array in kept)  # type: ignore[assignment]
        self.ended, self.all, self.open = (np.ascontiguousarray(array[..., :words]) for array in kept)

    # --- As bytes -----------------------------------------------------------------------------------------------

    def to_bytes(self) -> bytes:
        """Return all as bytes, for another to go on from."""
        units = {name: [str(unit.numerator), str(unit.denominator)] for name, unit in self.units.items()}
        tables = {"groups": self.groups, "vertices": self.vertices}
        tables |= {f"best {i}": None if one is None else pa.table({"best": one}) for i, one in enumerate(self.best)}
        arrays: dict[str, Any] = {name: _bytes(packed(table)) for name, table in tables.items() if table is not None}
        arrays |= {name: getattr(self, name) for name in ARRAYS}
        arrays["about"] = _bytes(json.dumps({"units": units, "bits": self.bits}).encode())
        sink = io.BytesIO()
        np.savez(sink, **arrays)
        return sink.getvalue()

    def _restore(self, state: bytes) -> None:
        with np.load(io.BytesIO(state)) as arrays:
            tables = {name: unpacked(arrays[name].tobytes()) for name in arrays.files if name not in (*ARRAYS, "about")}
            about = json.loads(arrays["about"].tobytes())
            for name in ARRAYS:
                setattr(self, name, arrays[name])
        self.groups, self.vertices = tables.get("groups"), tables.get("vertices")
        best = [tables.get(f"best {i}") for i in range(len(self.best))]
        self.best = [None if table is None else column_of(table, "best") for table in best]
        self.units = {name: Fraction(int(top), int(below)) for name, (top, below) in about["units"].items()}
        self.bits = about["bits"]


@dataclass
class SumPages:
    """Sums in the pages of a store: how many, in which space, and the watermark up to which events were added."""

    space: int
    pages: int = 0
    added: Number | None = None
    vertices: int = 0
    first_window: int | None = None

    def read(self, query: StandingQuery, store: PageStore) -> TrendSums:
        """Return the sums."""
        text = "".join(store.page(self.space, number) or "" for number in range(self.pages))
        return TrendSums(query, b64decode(text) if text else None)

    def write(self, sums: TrendSums, store: PageStore) -> None:
        """Store sums in place of others."""
        text = b64encode(sums.to_bytes()).decode() if sums.first_window is not None else ""
        pages = -(-len(text) // PAGE)
        for number in range(max(pages, self.pages)):
            page = text[number * PAGE : (number + 1) * PAGE]
            store.set_page(self.space, number, page or None)
        self.pages, self.vertices, self.first_window = pages, sums.size, sums.first_window

    def clear(self, store: PageStore) -> None:
        """Remove all."""
        for number in range(self.pages):
            store.set_page(self.space, number, None)


def with_numbers(query: StandingQuery, table: pa.Table) -> tuple[Plan, pa.Table]:
    """Return events without ids with their places for ids, and the plan that reads these."""
    schema = query.bound.schema
    assert schema is not None
    assert schema.event_id is not None
    numbered = table.select(query.columns).append_column(schema.event_id, pa.array(np.arange(table.num_rows)))
    return replace(query.plan, columns=(*query.columns, schema.event_id)), numbered


def _bytes(data: bytes) -> NDArray[np.uint8]:
    return np.frombuffer(data, np.uint8)


def _joined(before: pa.Table | None, more: pa.Table) -> pa.Table:
    return more if before is None else pa.concat_tables([before, more], promote_options="permissive")


def _padded(array: NDArray[Any], added: Ints) -> NDArray[Any]:
    """Return an array with a row of zeros more for each group that is added."""
    return np.concatenate([array, np.zeros((len(added), *array.shape[1:]), array.dtype)])


def _power_of_two(ratio: Fraction) -> int:
    return ratio.numerator.bit_length() - ratio.denominator.bit_length()


def _of_words(numbers: Words, words: int) -> Words:
    """Return numbers with more words."""
    negative = (numbers[..., -1:] >> np.uint64(63)).astype(np.bool_)
    more = np.where(negative, ~np.uint64(0), np.uint64(0)).repeat(words - numbers.shape[-1], axis=-1)
    return np.ascontiguousarray(np.concatenate([numbers, more], axis=-1))
