"""The best trends by a key of their first and last events, such as a gain in percent, on the attribute index.

For one first event the key rises or falls with the value of the last one, whatever it is computed of: every operation
is rounded the same way in one direction. So the best key of the trends from an event is that of the least or the
greatest last value which they reach, and two passes tell it for all events. Only the first events with the best keys
are then looked at, one after another; from each, trends come in the order of the key of their last event.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from trellis.errors import TrellisError
from trellis.events.columns.evaluate import evaluate, evaluate_constant
from trellis.events.columns.ordering import rank_codes, row_codes
from trellis.events.columns.types import normalise
from trellis.events.slice import Ints, Slice
from trellis.kernels.best import nodes
from trellis.kernels.best.search import NOWHERE
from trellis.language.bound import Column, Operation, Ordering, Output, OutputKind
from trellis.language.syntax import Which
from trellis.limits import is_of_ends
from trellis.operators.batch import PathBatch
from trellis.operators.trends.keys import Flags, OrderKeys, OrderWord, make_keys
from trellis.operators.trends.links import Links
from trellis.operators.trends.search import BestSearch, Space
from trellis.operators.trends.tasks import NO_BOUND, TrendTasks
from trellis.properties import cached_property


def ends_key(orderings: Sequence[Ordering], events: Slice, longest: int) -> EndsKey | None:
    """Return the first key of ORDER BY with those behind it, if both ends decide it and values allow the search.

    `longest` is a bound on the length of trends.
    """
    if not orderings or not is_of_ends(orderings[0].output):
        return None
    rest = make_keys(orderings[1:], events, events.usable, longest)
    if rest is None or rest.mean is not None:
        return None
    key = EndsKey(orderings[0], events, rest)
    return key if key.is_monotone else None


@dataclass(frozen=True)
class EndsKey:
    """A key of ORDER BY that is computed of attributes of the first and the last event, and the keys behind it."""

    ordering: Ordering
    events: Slice
    rest: OrderKeys = field(default_factory=OrderKeys)

    @property
    def alone(self) -> bool:
        """Whether no other key stands behind it."""
        return not self.rest.words

    def between(self, lo: int, hi: int) -> EndsKey:
        """Return the key of the events from `lo` to `hi`, numbered from there."""
        columns = {c.name: self.events.columns[c.name].slice(lo, hi - lo) for c in _columns(self.ordering.output)}
        events = self.events
        here = replace(events, columns=columns, times=events.times[lo:hi], usable=events.usable[lo:hi])
        return replace(self, events=here, rest=self.rest.between(lo, hi))

    def keys_from(self, start: int, end: int) -> OrderKeys:
        """Return the keys of trends that start at an event and end before another."""
        codes, events = np.zeros(len(self.events), np.int64), np.arange(start, end)
        codes[start:end] = row_codes([self.values(np.full(len(events), start), events)])
        own, rounded = OrderWord(nodes.HIGH, self.sign, last=codes), self.rest.rounded
        if rounded is not None:
            rounded = replace(rounded, words=slice(rounded.words.start + 1, rounded.words.stop + 1))
        return replace(self.rest, words=(own, *self.rest.words), rounded=rounded)

    @property
    def sign(self) -> int:
        """1 where a greater value is better, -1 where a smaller one is."""
        return 1 if self.ordering.descending else -1

    @cached_property
    def last(self) -> Column:
        """The attribute of the last event."""
        (column,) = (c for c in _columns(self.ordering.output) if c.which is Which.LAST)
        return column

    @property
    def is_monotone(self) -> bool:
        """Whether the key rises or falls with the last value, for any first event."""
        usable = pa.array(self.events.usable)
        columns = {c.name: self.events.columns[c.name].filter(usable) for c in _columns(self.ordering.output)}
        for column in columns.values():
            if pa.types.is_floating(column.type):
                if not pc.all(pc.is_finite(column), skip_nulls=True).as_py():
                    return False
            elif not pa.types.is_integer(column.type):
                return False
        last = columns[self.last.name]
        if last.null_count:
            return False
        divides = _divides_by_last(self.ordering.output)
        return not divides or pc.all(pc.greater(last, 0)).as_py() or pc.all(pc.less(last, 0)).as_py()

    def direction(self, firsts: Ints, least: int, greatest: int) -> int | None:
        """Return 1 where the key rises with the last value, -1 where it falls, for all these first events; else None.

        `least` and `greatest` are events with the least and the greatest last value; no key between may be infinite.
        """
        found = self._direction(self.ordering.output, firsts)
        if found is None:
            return None
        for last in (least, greatest):
            values = self.values(firsts, np.full(len(firsts), last))
            if values.null_count or not pc.all(pc.is_finite(values)).as_py():
                return None
        return found

    def _direction(self, output: Output, firsts: Ints) -> int | None:
        if output.column is not None:
            return 1
        inner = [any(c.which is Which.LAST for c in _columns(argument)) for argument in output.arguments]
        at = inner.index(True)
        found = self._direction(output.arguments[at], firsts)
        if found is None:
            return None
        turned = output.function == "negative" or (output.function in "-/" and at == 1)
        sign = self._sign(output.arguments[1 - at], firsts) if output.function in "*/" else 1
        return None if sign is None else found * sign * (-1 if turned else 1)

    def _sign(self, output: Output, firsts: Ints) -> int | None:
        """Return 1 where what first events give is above 0, -1 where it is below, always; else None."""
        values = self._value(output, firsts, firsts)
        if values.null_count:
            return None
        zero = pa.scalar(0, values.type)
        if pc.all(pc.greater(values, zero)).as_py():
            return 1
        return -1 if pc.all(pc.less(values, zero)).as_py() else None

    def values(self, firsts: Ints, lasts: Ints) -> pa.Array:
        """Return the keys of trends with these first and last events."""
        return self._value(self.ordering.output, firsts, lasts)

    def _value(self, output: Output, firsts: Ints, lasts: Ints) -> pa.Array:
        if output.kind is OutputKind.CONSTANT:
            assert output.constant is not None
            return evaluate_constant(output.constant, len(firsts))
        if output.column is not None:
            return self.events.columns[output.column.name].take(
                pa.array(lasts if output.column.which is Which.LAST else firsts)
            )
        names = [f"_{i}" for i in range(len(output.arguments))]
        values = {
            name: normalise(self._value(argument, firsts, lasts), argument.type)
            for name, argument in zip(names, output.arguments, strict=True)
        }
        columns = tuple(Column("", n, Which.EACH, None, a.type) for n, a in zip(names, output.arguments, strict=True))
        operation = Operation(output.function, columns, output.type, output.function)
        return evaluate(operation, lambda column: values[column.name], len(firsts))


def _columns(output: Output) -> list[Column]:
    own = [] if output.column is None else [output.column]
    return [*own, *(column for argument in output.arguments for column in _columns(argument))]


def _divides_by_last(output: Output) -> bool:
    by = output.arguments[1:] if output.function == "/" else ()
    found = any(c.which is Which.LAST for argument in by for c in _columns(argument))
    return found or any(map(_divides_by_last, output.arguments))


@dataclass(frozen=True)
class _LastTable:
    """A pass for the least (-1) or greatest (1) last value: see `Links.best_suffixes`; an event for each value."""

    sign: int
    best: Ints
    event: Ints


def _one_word(sign: int) -> tuple[Ints, Ints]:
    """Return the kinds and signs of values of one word."""
    return np.array([nodes.HIGH]), np.array([sign])


def _comparable(values: pa.Array, sign: int) -> NDArray[Any]:
    """Return numbers of which a greater one is better."""
    if values.null_count or not (pa.types.is_floating(values.type) or pa.types.is_int64(values.type)):
        return sign * row_codes([values])
    known = values.to_numpy()
    return known if sign > 0 else (-known if known.dtype.kind == "f" else ~known)


def _first_of(best: NDArray[Any], starts: Ints, limit: int) -> Ints:
    """Return the places of the starts with the best keys, so many and those that tie with the last, in their order."""
    places = np.arange(len(best))
    if len(best) > 4 * limit:
        least = np.partition(best, len(best) - limit)[len(best) - limit]
        places = np.flatnonzero(best >= least)
    return places[np.lexsort([starts[places], -best[places]])]


class EndsSearch:
    """Searches the best trends of one task, whose links are those of the index, by a key of both ends.

    Parameters
    ----------
    key
        The key.
    links
        The links of the task, with its window.
    tasks
        The one task.
    ok
        The events that may be used.
    """

    def __init__(self, key: EndsKey, links: Links, tasks: TrendTasks, ok: Flags) -> None:
        self.key, self.links, self.tasks, self.ok = key, links, tasks, ok
        self._lo, self._hi = int(tasks.lo[0]), int(tasks.hi[0])

    def best(self, limit: int) -> PathBatch | None:
        """Return trends among which the best are, with all of these; None where a key cannot be computed."""
        try:
            return self._best(limit)
        except (TrellisError, pa.ArrowInvalid):  # an integer that overflows: going through all tells where
            return None

    def _best(self, limit: int) -> PathBatch | None:
        starts, reached, tables = self._starts()
        if not len(starts):
            return PathBatch.concat([])
        values = pa.concat_arrays([self.key.values(starts, lasts) for lasts in reached])
        if pa.types.is_decimal(values.type):
            return None  # one of more than 38 digits is shown as NULL
        both = _comparable(values, self.key.sign).reshape(len(reached), -1)
        if pa.types.is_floating(values.type):
            shown = values.fill_null(0.0).to_numpy(zero_copy_only=False).reshape(len(reached), -1)
            if np.isnan(shown).any() or (~np.isfinite(shown) & (both[0] != both[-1])).any():
                return None  # between an infinite key and another one may be what is no number
        side = both.argmax(axis=0)
        best = both.max(axis=0)
        order = _first_of(best, starts, limit)
        if self.key.alone:
            order = order[:limit]
            tied = self._equally_good(int(starts[order[0]]), tables[int(side[order[0]])], limit)
            if tied is not None:
                return tied
        found: list[PathBatch] = []
        for place in order.tolist():
            start = int(starts[place])
            if found and self._is_enough(found, values[place + len(starts) * int(side[place])], start, limit):
                break
            found.append(self._from(start, limit))
        return PathBatch.concat(found)

    def _starts(self) -> tuple[Ints, list[Ints], list[_LastTable]]:
        """Return the events at which trends start, and the last events of each with the least and greatest value.

        Where the key is known to rise or to fall with the last value, only those with the better of both. Besides, for
        each, the passes that tell it.
        """
        window = self.links.window
        assert window is not None
        event = window.begin + np.flatnonzero(window.usable if window.every else window.ends)
        ranks = rank_codes([self.key.events.columns[self.key.last.name].take(pa.array(event))])[0]
        codes = np.zeros(len(self.ok), np.int64)
        codes[event] = ranks
        of_rank = np.zeros(ranks.max(initial=0) + 1, np.int64)
        of_rank[ranks] = event
        last, none = codes[:, None], np.zeros((len(codes), 1), np.int64)
        begins = self._lo + np.flatnonzero(window.starts)
        direction = self.key.direction(begins, int(of_rank[0]), int(of_rank[-1]))
        signs = (-1, 1) if direction is None else (self.key.sign * direction,)
        passes = [self.links.best_suffixes(self._lo, none, last, *_one_word(sign)) for sign in signs]
        tables = [_LastTable(sign, best, of_rank) for sign, best in zip(signs, passes, strict=True)]
        starts = np.flatnonzero(window.starts & (tables[0].best[:, 1] != NOWHERE))
        return starts + self._lo, [of_rank[table.best[starts, 0]] for table in tables], tables

    def _equally_good(self, start: int, table: _LastTable, limit: int) -> PathBatch | None:
        """Return the first trends from the best start to the best last value, if there are so many.

        None also where another last value, of which the next one would tell, gives the same key.
        """
        code = int(table.best[start - self._lo, 0])
        beside = code - table.sign
        if 0 <= beside < len(table.event):
            lasts = np.array([table.event[code], table.event[beside]])
            one, other = row_codes([self.key.values(np.array([start, start]), lasts)])
            if one == other:
                return None
        none = np.zeros((len(self.ok), 1), np.int64)
        return self.links.tied_paths(np.array([start]), none, table.best, *_one_word(table.sign), limit)

    def _from(self, start: int, limit: int) -> PathBatch:
        """Return the best trends that start at an event."""
        one, number = np.array([start]), self.tasks
        task = TrendTasks(one, number.hi, one, number.group, number.number, True, number.every)
        keys = self.key.keys_from(start, self._hi)
        search = BestSearch(Space(self.links, task, 1, NO_BOUND, self._hi - start), keys, self.ok)
        return search.best(np.zeros(1, np.int64), np.zeros(1, np.int64), limit)

    def _is_enough(self, known: list[PathBatch], following: pa.Scalar, start: int, limit: int) -> bool:
        """Return whether no trend from a start, the best of which has a certain key, comes before the best ones."""
        paths = PathBatch.concat(known)
        firsts = paths.firsts.astype(np.int64)
        values = self.key.values(firsts, paths.lasts.astype(np.int64))
        codes = self.key.sign * row_codes([pa.concat_arrays([values, pa.array([following.as_py()], values.type)])])
        ahead = (codes[:-1] > codes[-1]) | ((codes[:-1] == codes[-1]) & (firsts < start) & self.key.alone)
        return int(ahead.sum()) >= limit
