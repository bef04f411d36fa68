"""Sums in place of events: what a query that only aggregates keeps of the past is bounded by distinct values.

The trends of a window that end at an event go on in the same way as those that end at another with the same values of
what conditions read: both are one attribute vertex, of which the number of trends and their sums are kept. Events are
added in the order of time as soon as none before them can come, and then forgotten. Windows that overlap share their
sums as long as they have the same events (see `runs`), and a vertex those of the windows in which its trends are the
same. Everything is exact: numbers have as many words as they need.
"""

from __future__ import annotations

import io
import json
from dataclasses import replace
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
from trellis.events.table_bytes import packed, unpacked
from trellis.kernels.count import folding as kernel
from trellis.language.bound import BoundQuery, columns_of
from trellis.language.syntax import Report
from trellis.operators.aggregates import Aggregates, Sum
from trellis.operators.trends.tiles import PlaceCodes, TileEvents, place_codes
from trellis.operators.weights import Weight, weigh
from trellis.plan.plan import Plan
from trellis.streams.calendar import END, Calendar, Number
from trellis.streams.runs import ChangedRuns, Runs, WindowEvents, each_between, with_events

if TYPE_CHECKING:
    from trellis.streams.query import StandingQuery

Ints = NDArray[np.int64]
Words = NDArray[np.uint64]
AT_ONCE = 1 << 22  # words of the events that are added together
FEWEST = 1 << 12  # events for which it is worth to add them
ARRAYS = ("first", "last", "number", "infinite", "ended", "counted", "begin", "end", "all", "open")
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
        self.summed = [name for name, what in self.kinds if what == "sum"]
        self.extremes = [n.output for n in query.bound.aggregates if n.output.function in ("MIN", "MAX")]
        read = {c.name: None for condition in query.plan.adjacent for c in columns_of(condition.value)}
        self.read = list(read) or [query.bound.known_schema.time]
        self.units: dict[str, Fraction] = {}  # that sums are whole numbers of; those of doubles become finer
        self.bits = 1  # of the largest weight
        nothing = np.zeros((0, len(self.kinds), 1), np.uint64)
        # Of each run of windows of a partition, in the order of both: its windows, how many events it had, one of
        # these, what has ended, and the number of trends that ended at any event.
        self.first, self.last, self.number = (np.empty(0, np.int64) for _ in range(3))
        self.runs: pa.Table | None = None
        self.ended, self.counted = nothing, nothing[:, :1]
        self.best: list[pa.Array | None] = [None] * len(self.extremes)
        self.infinite = np.zeros((2 * len(self.summed), 0), np.bool_)
        # Of each vertex: between which runs it is, an event with its values, and the numbers of all trends that end
        # there and of those with which nothing goes on.
        self.begin, self.end, self.all, self.open = np.empty(0, np.int64), np.empty(0, np.int64), nothing, nothing
        self.vertices: pa.Table | None = None
        if state is not None:
            self._restore(state)

    @property
    def size(self) -> int:
        """The number of vertices, each once for all windows in which its trends are the same."""
        return len(self.begin)

    @property
    def first_window(self) -> int | None:
        """The first window that has events."""
        return int(self.first.min()) if len(self.first) else None

    # --- Events -------------------------------------------------------------------------------------------------

    def add(self, events: pa.Table, closed: Number | None, since: Number | None) -> None:
        """Add events, all later than those before, to the windows that the watermark `closed` has not decided.

        Events up to the time `since` were not all seen; the windows that they are in are left out.
        """
        schema = self.query.bound.known_schema
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
        changed = self._change_runs(events, rows)
        self._note_events(events, changed)
        weights = self._weights(events, changed)
        joined = _joined(self.vertices, rows.select(self.read))
        columns = {name: column_of(joined, name) for name in self.read}
        size = self.size
        codes = place_codes(plan, TileEvents(columns, np.zeros(size + len(events), np.int64)))
        new = kernel.NewEvents(
            np.ascontiguousarray(events.ticks), codes.gives[size:], codes.takes[size:], codes.own[size:],
            codes.low[size:], codes.high[size:],
        )  # fmt: skip
        met = self._met(events, codes, changed)
        of, run = each_between(self.begin[met], self.end[met])
        by_run = np.argsort(run, kind="stable")
        vertex, run = np.flatnonzero(met)[of[by_run]], run[by_run]
        while True:
            known = kernel.KnownVertices(
                np.searchsorted(run, changed.added), np.searchsorted(run, changed.added, "right"),
                codes.low[vertex], codes.high[vertex], self.all[vertex],
            )  # fmt: skip
            words = self.ended.shape[2]
            room = 64 * words - self.bits - int(self.number.max()).bit_length() - 3
            if room > 0:
                before = self.counted[changed.added]
                fits, *found = kernel.fold(known, new, weights, changed.lo, changed.hi, before, self.every, room)
                if fits:
                    break
            self._widen(2 * words)
        numbers, followed, followed_vertices = found
        of, at = each_between(changed.lo, changed.hi)
        group, gives = changed.added[of], new.gives[at]
        kernel.add_to_rows(self.ended, np.where(gives & ~self.every, -1, group), numbers)
        kernel.add_to_rows(self.counted, group, numbers)
        # Vertices and events with the same values become one, and so do those of runs that have the same numbers.
        owner, row = np.append(run, group[gives]), np.append(vertex, size + at[gives])
        keys = np.stack([owner, codes.low[row], codes.high[row]])
        order = np.lexsort(keys)
        keys = keys[:, order]
        first = np.append(True, (np.diff(keys) != 0).any(axis=0))[: len(order)]
        place = np.empty(len(order), np.int64)
        place[order] = np.cumsum(first) - 1
        alone, known_ones, numbers = np.append(~followed_vertices, ~followed[gives]), len(run), numbers[gives]
        merged, still = (np.zeros((int(first.sum()), *numbers.shape[1:]), np.uint64) for _ in range(2))
        for into, kept, chosen in ((merged, self.all, place), (still, self.open, np.where(alone, place, -1))):
            if into is merged or not self.every:
                kernel.add_to_rows(into, chosen[:known_ones], kept[vertex])
                kernel.add_to_rows(into, chosen[known_ones:], numbers)
        owner, low, high = keys[:, first]
        partition = changed.runs.partition[owner]
        goes_on = (np.diff(owner) == 1) & (np.diff(np.stack([partition, low, high])) == 0).all(axis=0)
        goes_on &= ((merged[1:] == merged[:-1]) & (still[1:] == still[:-1])).all(axis=(1, 2))
        first_of = np.append(True, ~goes_on)[: len(owner)]
        last_of = np.append(~goes_on, True)[: len(owner)]
        rest = np.flatnonzero(~met)
        self.begin, self.end = (
            np.append(self.begin[rest], owner[first_of]),
            np.append(self.end[rest], owner[last_of] + 1),
        )
        self.all = np.concatenate([self.all[rest], merged[first_of]])
        self.open = np.concatenate([self.open[rest], still[first_of]])
        self.vertices = joined.take(pa.array(np.append(rest, row[order[first]][first_of]))).combine_chunks()

    def _change_runs(self, events: Slice, rows: pa.Table) -> ChangedRuns:
        """Divide the runs that some events are not in as a whole, and begin those that have none yet."""
        groups, number = events.groups, len(self.first)
        codes = self._partitions(_joined(self.runs, rows.take(pa.array(groups.lo))))
        changed = with_events(
            Runs(codes[:number], self.first, self.last),
            WindowEvents(codes[number:], groups.number, groups.lo, groups.hi),
        )
        self.begin, self.end = changed.begin[self.begin], changed.end[self.end - 1]
        _, self.first, self.last = changed.runs
        self._take_runs(changed.origin, rows.take(pa.array(changed.lo)))
        return changed

    def _take_runs(self, origin: Ints, more: pa.Table) -> None:
        """Put runs in the place of others, from which they go on; those behind these are of one more event each."""
        self.number, self.ended, self.counted, infinite = (
            np.concatenate([array, np.zeros((more.num_rows, *array.shape[1:]), array.dtype)])[origin]
            for array in (self.number, self.ended, self.counted, self.infinite.T)
        )
        self.infinite = np.ascontiguousarray(infinite.T)
        places = pa.array(origin)
        self.best = [
            None if one is None else pa.concat_arrays([one, pa.nulls(more.num_rows, one.type)]).take(places)
            for one in self.best
        ]
        self.runs = _joined(self.runs, more).take(places).combine_chunks()

    def _partitions(self, rows: pa.Table) -> Ints:
        """Return numbers that are equal where rows are of one partition."""
        columns = [column_of(rows, name) for name, _ in self.query.bound.partition]
        return row_codes(columns) if columns else np.zeros(rows.num_rows, np.int64)

    def _met(self, events: Slice, codes: PlaceCodes, changed: ChangedRuns) -> NDArray[np.bool_]:
        """Return the vertices that events go on from or have the values of, and maybe others of their partitions."""
        partition = changed.runs.partition
        of_event = np.full(len(events.bounds) - 1, -1)
        of_event[np.searchsorted(events.bounds, changed.lo, "right") - 1] = partition[changed.added]
        of_event = np.repeat(of_event, np.diff(events.bounds))
        of_vertex, size = partition[self.begin], self.size
        met = np.isin(of_vertex, partition[changed.added])
        if (self.end - self.begin)[met].sum() <= (changed.hi - changed.lo).sum():
            return met  # these few are not worth to be told apart
        ranks = np.unique(np.stack([codes.own, codes.low, codes.high]), return_inverse=True)[1].reshape(3, -1)
        width = 3 * ranks.shape[1]
        values = np.unique(ranks[1] * width + ranks[2], return_inverse=True)[1].reshape(-1)
        own, low, high, values = np.append(of_vertex, of_event) * width + np.vstack([ranks, values])
        takes = (of_event >= 0) & codes.takes[size:]
        takers = np.sort(own[size:][takes])
        followed = np.searchsorted(takers, high[:size], "right") > np.searchsorted(takers, low[:size], "right")
        return followed | np.isin(values[:size], values[size:][(of_event >= 0) & codes.gives[size:]])

    def _note_events(self, events: Slice, changed: ChangedRuns) -> None:
        """Note how many events runs have, and the least and greatest of their values: each event is in a trend."""
        added, low, high = changed.added, changed.lo, changed.hi
        self.number[added] += high - low
        runs = len(self.first)
        for i, output in enumerate(self.extremes):
            assert output.column is not None
            column = events.columns[output.column.name]
            joined = pa.concat_arrays([pa.nulls(runs, column.type) if self.best[i] is None else self.best[i], column])
            (codes,) = rank_codes([joined])
            codes = np.where(codes < 0, len(joined), codes if output.function == "MIN" else -codes)
            codes = codes * len(joined) + np.arange(len(joined))  # of equal ones the one that is kept
            where = np.arange(runs)
            least = np.minimum.reduceat(np.append(codes[runs:], 0), np.stack([low, high], axis=1).ravel())[::2]
            where[added] = np.minimum(codes[added], least) % len(joined)
            self.best[i] = joined.take(pa.array(where))

    def _weights(self, events: Slice, changed: ChangedRuns) -> kernel.EventWeights:
        """Return the weights of events, and note which runs have infinite values."""
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
            self.infinite[row, changed.added] |= number[changed.hi] > number[changed.lo]
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
        self.ended, self.counted, self.all, self.open = (
            _of_words(array, words) for array in (self.ended, self.counted, self.all, self.open)
        )

    # --- Windows ------------------------------------------------------------------------------------------------

    def decided(self, watermark: Number) -> tuple[Plan, Slice, list[Aggregates]] | None:
        """Return the windows that a watermark decides, as a slice that has them, with their numbers; forget them."""
        last = int(self.calendar.decided(watermark))
        closing = np.flatnonzero(self.first <= last)
        if not len(closing):
            return None
        assert self.runs is not None
        numbers = self.ended[closing]
        if not self.every:
            before = np.searchsorted(closing, np.stack([self.begin, self.end]))
            vertex, place = each_between(*before)
            kernel.add_to_rows(numbers, place, self.open[vertex])
        plan, rows = with_numbers(self.query, self.runs.take(pa.array(closing)))
        events = prepare(plan, rows).events
        groups = events.groups
        group, event = each_between(groups.lo, groups.hi)
        place = events.ids.to_numpy()[event]
        run, window = closing[place], groups.number[group]
        own = (self.first[run] <= window) & (window <= np.minimum(self.last[run], last))
        mine = np.full(len(groups), -1)
        mine[group[own]] = place[own]
        wanted = mine >= 0
        chosen = Groups(groups.lo[wanted], groups.hi[wanted], groups.number[wanted])
        states = [self._aggregates(run, words) for run, words in zip(closing.tolist(), numbers, strict=True)]
        found = [states[place] for place in mine[wanted].tolist()]
        self._keep_after(last)
        return plan, replace(events, groups=chosen), found

    def _aggregates(self, run: int, words: Words) -> Aggregates:
        """Return the states of AGGREGATE of a run."""
        whole = [int.from_bytes(row.tobytes(), "little", signed=True) for row in words]
        number = dict(zip(self.kinds, whole, strict=True))
        count, states, best = number[COUNTED], [], iter(self.best)
        for named in self.query.bound.aggregates:
            output = named.output
            if output.function in ("MIN", "MAX"):
                column = next(best)
                states.append(None if column is None or not column[run].is_valid else plain_value(column[run]))
            elif output.column is None:
                value = count if output.function == "COUNT" and output.variable is None else number["", "length"]
                states.append(value if output.function == "COUNT" else Sum(Fraction(value), count))
            else:
                name = output.column.name
                row, present = 2 * self.summed.index(name), number[name, "present"]
                plus, minus = (bool(present and self.infinite[row + i, run]) for i in range(2))
                states.append(Sum(number[name, "sum"] * self.units[name], present, plus, minus))
        return Aggregates(count, tuple(states))

    def _keep_after(self, window: int) -> None:
        """Forget the windows up to one, and the words that numbers need no more."""
        runs = np.flatnonzero(self.last > window)
        assert self.runs is not None
        begin, end = np.searchsorted(runs, np.stack([self.begin, self.end]))
        vertices = np.flatnonzero(begin < end)
        self.begin, self.end = begin[vertices], end[vertices]
        self.all, self.open = self.all[vertices], self.open[vertices]
        self.first, self.last = np.maximum(self.first[runs], window + 1), self.last[runs]
        self._take_runs(runs, self.runs.slice(0, 0))
        if self.vertices is not None:
            self.vertices = self.vertices.take(pa.array(vertices)).combine_chunks()
        words = self.ended.shape[2]
        if not len(self.first):
            self.units, self.bits, words = {}, 1, 1
        kept = (self.ended, self.counted, self.all, self.open)
        while words > 1 and all(np.array_equal(_of_words(array[..., : words - 1], words), array) for array in kept):
            words -= 1
            kept = tuple(array[..., :words] for array in kept)  # type: ignore[assignment]
        self.ended, self.counted, self.all, self.open = (np.ascontiguousarray(array[..., :words]) for array in kept)

    # --- As bytes -----------------------------------------------------------------------------------------------

    def to_bytes(self) -> bytes:
        """Return all as bytes, for another to go on from."""
        units = {name: [str(unit.numerator), str(unit.denominator)] for name, unit in self.units.items()}
        tables = {"runs": self.runs, "vertices": self.vertices}
        tables |= {f"best {i}": None if one is None else pa.table({"best": one}) for i, one in enumerate(self.best)}
        arrays: dict[str, Any] = {name: _bytes(packed(table)) for name, table in tables.items() if table is not None}
        arrays |= {name: getattr(self, name) for name in ARRAYS}
        arrays["about"] = _bytes(json.dumps({"units": units, "bits": self.bits}).encode())
        sink = io.BytesIO()
        np.savez(sink, **arrays)
        return sink.getvalue()

    def _restore(self, state: bytes) -> None:
        with np.load(io.BytesIO(state)) as file:
            arrays = dict(file)
        about = json.loads(arrays.pop("about").tobytes())
        tables = {name: unpacked(arrays.pop(name).tobytes()) for name in list(arrays) if arrays[name].dtype == np.uint8}
        best = [tables.get(f"best {i}") for i in range(len(self.best))]
        self.best = [None if table is None else column_of(table, "best") for table in best]
        self.units = {name: Fraction(int(top), int(below)) for name, (top, below) in about["units"].items()}
        self.bits, self.vertices = about["bits"], tables.get("vertices")
        for name in arrays.keys() & set(ARRAYS):
            setattr(self, name, arrays[name])
        self.runs = tables.get("runs", tables.get("groups"))
        if "group" in arrays and self.runs is not None:
            self._take_over(arrays["window"], arrays["group"])

    def _take_over(self, window: Ints, group: Ints) -> None:
        """Go on from what earlier versions wrote: sums of each window by itself, in any order."""
        assert self.runs is not None
        order = np.lexsort((window, self._partitions(self.runs)))
        self.begin = np.argsort(order)[group]
        self.end, self.first, self.last = self.begin + 1, window[order], window[order]
        self.counted = self.ended[:, :1].copy()
        kernel.add_to_rows(self.counted, group, self.all)
        self._take_runs(order, self.runs.slice(0, 0))


def with_numbers(query: StandingQuery, table: pa.Table) -> tuple[Plan, pa.Table]:
    """Return events without ids with their places for ids, and the plan that reads these."""
    schema = query.bound.known_schema
    assert schema.event_id is not None
    numbered = table.select(query.columns).append_column(schema.event_id, pa.array(np.arange(table.num_rows)))
    return replace(query.plan, columns=(*query.columns, schema.event_id)), numbered


def _bytes(data: bytes) -> NDArray[np.uint8]:
    return np.frombuffer(data, np.uint8)


def _joined(before: pa.Table | None, more: pa.Table) -> pa.Table:
    return more if before is None else pa.concat_tables([before, more], promote_options="permissive")


def _power_of_two(ratio: Fraction) -> int:
    return ratio.numerator.bit_length() - ratio.denominator.bit_length()


def _of_words(numbers: Words, words: int) -> Words:
    """Return numbers with more words."""
    negative = (numbers[..., -1:] >> np.uint64(63)).astype(np.bool_)
    more = np.where(negative, ~np.uint64(0), np.uint64(0)).repeat(words - numbers.shape[-1], axis=-1)
    return np.ascontiguousarray(np.concatenate([numbers, more], axis=-1))
