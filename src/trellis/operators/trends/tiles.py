"""One group counted in tiles of time and columns of values, of which each fits a machine that the group does not fit.

Events are cut by time into *tiles*, and what may follow an event, by key and value, into *columns*: an event has a
place in one column, and what may follow it is a range of places, which may go over several columns. Tiles are counted
from the last to the first. What a tile needs of later ones are sums over ranges of places, and these are made of the
sums over parts of columns: numbers of paths are sent, a few words for each event, and no event is.

Places are found without a sort of the whole: rows that lie on the *borders* of tiles and columns are known to all, so
each can compare its own events with them. All here is of one group, whatever moves the messages between tiles and
columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from trellis.errors import DataError
from trellis.events.adjacency import HIGHEST, LOWEST, PairValues, encode, gap_is_safe
from trellis.events.columns.ordering import rank_codes
from trellis.events.slice import Ints
from trellis.events.table_bytes import packed, unpacked
from trellis.kernels.count import tiles as kernel
from trellis.operators.trends.value_cuts import cuts_of
from trellis.plan.plan import Plan
from trellis.plan.relation import neighbour_terms

Flags = NDArray[np.bool_]
Words = NDArray[np.uint64]
GIVEN, LOW, HIGH, STARTS = 1, 2, 4, 8  # of an event in a column: its place, the ends of its range; a trend begins there
FAR = np.int64(1) << 32  # between the places of two columns
NEVER = np.iinfo(np.int64).max


class TileEvents(NamedTuple):
    """Some events: the columns that conditions read, and numbers that tell which of two comes first."""

    columns: Mapping[str, pa.Array]
    ticks: NDArray[Any]

    def __len__(self) -> int:
        return len(self.ticks)


class PlaceCodes(NamedTuple):
    """Codes that compare as places in the order (key, value) do, among the events that they were made of.

    An event that `takes` has the place `own`; what follows one that `gives` is above `low` and at most `high`.
    `key` is that of the own place.
    """

    gives: Flags
    takes: Flags
    own: Ints
    low: Ints
    high: Ints
    key: Ints


def place_codes(plan: Plan, events: TileEvents) -> PlaceCodes:
    """Return the codes of events.

    Raises
    ------
    DataError
        If a condition can only be asked of pairs: its numbers may leave 64 bits.
    """
    number = len(events)
    adjacency = encode(plan.adjacent, events.columns, np.ones(number, np.bool_))
    sides = PairValues(events.columns, (number, number), None)
    compared = [term for condition in plan.adjacent for term in neighbour_terms(condition) if term.compared]
    if adjacency.residual or not all(gap_is_safe(term, sides) for term in compared):
        raise DataError(
            "a window that is larger than a machine cannot be counted: a condition has numbers that may leave 64 bits",
            "Make WITHIN shorter, or partition the pattern with [attribute].",
        )
    gives, takes = adjacency.gives, adjacency.takes
    value, low, high = np.zeros(number, np.int64), None, None
    for order in adjacency.orders:
        cuts = cuts_of(order)
        value, ((low, high),) = cuts.value, cuts.ranges
        takes &= value != LOWEST
        gives &= cuts.cuts[0] != LOWEST
    key_own, key_after = np.zeros(number, np.int64), np.zeros(number, np.int64)
    for one in plan.relation.keys:
        later, earlier = rank_codes([sides.of(one.later), sides.of(one.earlier)])
        takes &= later >= 0
        gives &= earlier >= 0
        width = max(int(later.max(initial=0)), int(earlier.max(initial=0))) + 1
        key_own, key_after = _dense(key_own * width + later, key_after * width + earlier)
    least, most = np.full(number, LOWEST), np.full(number, HIGHEST)
    values = _dense(value, least if low is None else low, most if high is None else high)
    width = 3 * number + 1
    own, low, high = (k * width + v for k, v in zip((key_own, key_after, key_after), values, strict=True))
    return PlaceCodes(gives & (low < high), takes, own, low, high, key_own)


def _dense(*codes: Ints) -> list[Ints]:
    """Return codes that compare in the same way, all below the number of them."""
    return np.split(np.unique(np.concatenate(codes), return_inverse=True)[1].reshape(-1), len(codes))


# --- Messages ---------------------------------------------------------------------------------------------------


class Message(NamedTuple):
    """Arrays for a tile or a column (`to`), of a tile and a column.

    `size` is the number of places in the column; the first `head` of them have the key of the border where the column
    begins, the last `tail` that of the border where it ends. Of the kind `covers`, the three are the first ticks over
    these places of events whose ranges go over several columns.

    A tile or column gets its messages in the order of their kinds: `covers`, `rows`; `numbers`, `piece`, `sums`.
    """

    kind: str
    to: int
    tile: int
    column: int
    size: int
    head: int
    tail: int
    body: bytes | pa.Buffer

    def table(self) -> pa.Table:
        """Return the arrays as the columns of a table."""
        return unpacked(self.body)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays by name."""
        table = self.table()
        return {name: table[name].to_numpy() for name in table.column_names}

    def numbers(self) -> tuple[dict[str, NDArray[Any]], Words, NDArray[np.float64]]:
        """Return the arrays, with the numbers of paths that it has and their logarithms."""
        found = self.arrays()
        words = np.stack([array for name, array in found.items() if name.startswith("word")], axis=1)
        return found, np.ascontiguousarray(words), found["log"]


def _numbers(words: Words, logs: NDArray[np.float64], **more: NDArray[Any]) -> bytes:
    return packed(pa.table(more | {f"word{w}": words[:, w] for w in range(words.shape[1])} | {"log": logs}), False)


# --- Borders ----------------------------------------------------------------------------------------------------


def border_rows(plan: Plan, sample: TileEvents, tiles: int, columns: int) -> tuple[Ints, Ints]:
    """Return the rows of a sample that cut all events into about so many tiles, and those that cut into columns."""
    first = np.unique(sample.ticks, return_index=True)[1]
    order = np.argsort(sample.ticks, kind="stable")
    by_time = np.searchsorted(sample.ticks[first], sample.ticks[_evenly(order, tiles)])
    codes = place_codes(plan, sample)
    takes = np.flatnonzero(codes.takes)
    by_place = _evenly(takes[np.lexsort((sample.ticks[takes], codes.own[takes]))], columns)
    same = (np.diff(codes.own[by_place]) == 0) & (np.diff(sample.ticks[by_place]) == 0)
    return first[np.unique(by_time)], by_place[np.append(True, ~same)[: len(by_place)]]


def _evenly(rows: Ints, number: int) -> Ints:
    """Return the rows that cut rows into so many parts."""
    return rows[np.unique(len(rows) * np.arange(1, number) // number)] if len(rows) else rows


def tile_of(ticks: NDArray[Any], borders: int) -> Ints:
    """Return the tile of each event; `ticks` are those of the events, and of the borders behind them."""
    own = len(ticks) - borders
    return np.searchsorted(ticks[own:], ticks[:own], side="right")


# --- Places -----------------------------------------------------------------------------------------------------


class BorderEvents(NamedTuple):
    """The events of a tile and the borders of columns behind them: their ticks and codes."""

    ticks: NDArray[Any]
    codes: PlaceCodes
    columns: int

    @property
    def own(self) -> int:
        """The number of its own events."""
        return len(self.ticks) - (self.columns - 1)

    def column_of_places(self) -> Ints:
        """Return in which column the place of each event lies; events of one place are told apart by their time."""
        n, codes = self.own, self.codes.own
        borders, times = codes[n:], self.ticks[n:]
        left, found = (np.searchsorted(borders, codes[:n], side=side) for side in ("left", "right"))
        for begin in np.unique(left[left < found]).tolist():
            some = np.flatnonzero((left == begin) & (left < found))
            end = int(found[some[0]])
            found[some] = begin + np.searchsorted(times[begin:end], self.ticks[some], side="right")
        return found.astype(np.int64)

    def columns_of_ranges(self) -> tuple[Ints, Ints]:
        """Return in which columns what may follow an event begins and ends; -1 where nothing may."""
        n, (low, high) = self.own, (self.codes.low, self.codes.high)
        borders, gives = self.codes.own[n:], self.codes.gives[:n]
        first, last = (np.searchsorted(borders, ends[:n], side="right") for ends in (low, high))
        return np.where(gives, first, -1), np.where(gives, last, -1)


@dataclass(frozen=True)
class OpenEnds:
    """Whether the range of what may follow an event begins with the first place of its key, and ends with the last."""

    low: bool
    high: bool

    @classmethod
    def of(cls, plan: Plan) -> OpenEnds:
        """Return those of a query: an inequality closes one of them, which one depends on where values are turned."""
        compared = [one.function[0] for order in plan.relation.orders for one in order]
        return cls(not compared, len(set(compared)) < 2)


class ColumnRows(NamedTuple):
    """Rows of a tile for columns: the event, its column and roles there; and the first ticks over parts of columns."""

    event: Ints
    column: Ints
    roles: NDArray[np.uint8]
    first: Ints
    last: Ints
    covers: Ints  # (columns, 3): the first tick over a column, its head and its tail


def rows_for_columns(events: BorderEvents, tick: Ints, ends: OpenEnds) -> ColumnRows:
    """Return the rows for columns of a tile whose events are in order of time."""
    n, codes, columns = events.own, events.codes, events.columns
    first, last = events.columns_of_ranges()
    across = last > first
    takes, gives = codes.takes[:n], codes.gives[:n]
    index = np.arange(n)
    sent = [
        (takes, events.column_of_places(), GIVEN),
        (gives & ~(across & ends.low), first, LOW),
        (gives & ~(across & ends.high), last, HIGH),
    ]
    event = np.concatenate([index[some] for some, _, _ in sent])
    column = np.concatenate([where[some] for some, where, _ in sent])
    role = np.concatenate([np.full(some.sum(), bit, np.uint8) for some, _, bit in sent])
    alone = np.setdiff1d(index, event)
    event, column = np.append(event, alone), np.append(column, np.zeros(len(alone), np.int64))
    role = np.append(role, np.zeros(len(alone), np.uint8))
    order = np.lexsort((column, event))
    event, column, role = event[order], column[order], role[order]
    new = np.flatnonzero(np.append(True, (np.diff(event) != 0) | (np.diff(column) != 0))) if n else index
    roles = np.bitwise_or.reduceat(role, new) if n else role
    covers = np.full((columns, 3), NEVER)
    spans, which = np.unique(first[across] * columns + last[across], return_inverse=True)
    earliest = np.full(len(spans), NEVER)
    np.minimum.at(earliest, which.reshape(-1), tick[across])
    for span, time in zip(spans.tolist(), earliest.tolist(), strict=True):
        begin, end = divmod(span, columns)
        covers[begin + 1 : end, 0] = np.minimum(covers[begin + 1 : end, 0], time)
        if ends.high:
            covers[end, 1] = min(covers[end, 1], time)
        if ends.low:
            covers[begin, 2] = min(covers[begin, 2], time)
    return ColumnRows(event[new], column[new], roles, first[event[new]], last[event[new]], covers)


class RowsOfColumn(NamedTuple):
    """Rows of tiles for a column: of each its tile, event and tick there, and the columns of its range."""

    tile: NDArray[np.int32]
    event: NDArray[np.int32]
    tick: NDArray[np.int32]
    roles: NDArray[np.uint8]
    first: NDArray[np.int32]
    last: NDArray[np.int32]


def pieces_of_column(
    column: int, tiles: int, rows: RowsOfColumn, codes: PlaceCodes, covers: Ints, borders: tuple[bool, bool]
) -> Iterator[Message]:
    """Yield the piece of a column for each tile: the places of its events, and the ranges of what may follow them.

    Parameters
    ----------
    column, tiles
        Which column it is, and how many tiles there are.
    rows
        What tiles sent.
    codes
        Those of the rows, and of the borders of the column behind them.
    covers : int64 (tiles, 3)
        The first tick of each tile over the column, its head and its tail.
    borders
        Whether there is a border where the column begins, and where it ends.
    """
    n = len(rows.tile)
    given = np.flatnonzero(rows.roles & GIVEN)
    given = given[np.lexsort((rows.event[given], rows.tile[given], codes.own[given]))]
    size, sorted_codes = len(given), codes.own[given]
    place = np.zeros(n, np.int32)
    place[given] = np.arange(size)
    keys, behind = codes.key[given], n
    head = tail = 0
    if borders[0]:
        head, behind = int((keys == codes.key[behind]).sum()), behind + 1
    if borders[1]:
        tail = int((keys == codes.key[behind]).sum())
    low = np.where(rows.roles & LOW, np.searchsorted(sorted_codes, codes.low[:n], side="right"), 0)
    high = np.where(rows.roles & HIGH, np.searchsorted(sorted_codes, codes.high[:n], side="right"), size)
    asks = np.flatnonzero(rows.roles & (LOW | HIGH))
    parts = np.array([[0, size], [0, head], [size - tail, size]])
    cover_tile, cover_part = np.nonzero(covers != NEVER)
    times = np.concatenate([rows.tile[asks] * FAR + rows.tick[asks], cover_tile * FAR + covers[cover_tile, cover_part]])
    lows, highs = np.append(low[asks], parts[cover_part, 0]), np.append(high[asks], parts[cover_part, 1])
    order = np.argsort(times, kind="stable")
    earliest = kernel.first_over(size, lows[order], highs[order], times[order], NEVER)
    roles = rows.roles.copy()
    starts = earliest >= rows.tile[given] * FAR + rows.tick[given]
    roles[given[starts]] |= STARTS
    order = np.argsort(rows.tile, kind="stable")
    bounds = np.searchsorted(rows.tile[order], np.arange(tiles + 1))
    for tile in range(tiles):
        some = order[bounds[tile] : bounds[tile + 1]]
        about = {"index": rows.event, "tick": rows.tick, "place": place, "low": low, "high": high}
        about |= {"first": rows.first, "last": rows.last}
        arrays = {name: array[some].astype(np.int32) for name, array in about.items()}
        yield Message(
            "piece", tile, tile, column, size, head, tail, packed(pa.table(arrays | {"roles": roles[some]}), False)
        )


# --- Numbers ----------------------------------------------------------------------------------------------------


def steps(begin: int, end: int) -> Iterator[tuple[range, range]]:
    """Yield the steps that count the tiles from `begin` to before `end`.

    A step counts one tile; or it adds to earlier tiles what all of some later ones, which are counted, give them.
    """
    if end - begin == 1:
        yield range(begin, end), range(0)
        return
    middle = (begin + end) // 2
    yield from steps(middle, end)
    yield range(begin, middle), range(middle, end)
    yield from steps(begin, middle)


def sums_of_column(messages: Iterable[Message], moduli: Words) -> Iterator[Message]:
    """Yield for each tile with a piece of a column what later tiles, whose numbers come first, add to its events."""
    tree, logs, filled = np.zeros((0, len(moduli)), np.uint64), np.zeros(0), False
    for message in messages:
        size = message.size
        if not len(tree):
            tree, logs = np.zeros((2 * size, len(moduli)), np.uint64), np.full(2 * size, -np.inf)
        if message.kind != "piece":
            found, more, more_logs = message.numbers()
            kernel.add_rows(tree, logs, found["place"].astype(np.int64) + size, more, more_logs, moduli)
            continue
        if not filled:
            kernel.fill_tree(tree, logs, moduli)
            filled = True
        found = message.arrays()
        asks = np.flatnonzero(found["roles"] & (LOW | HIGH))
        low = np.append(found["low"][asks].astype(np.int64), [0, 0, size - message.tail])
        high = np.append(found["high"][asks].astype(np.int64), [size, message.head, size])
        sums = kernel.sums_of_ranges(tree, logs, low, high, moduli)
        index = np.append(found["index"][asks], np.array([-1, -2, -3], np.int32))
        yield message._replace(kind="sums", to=message.tile, body=_numbers(*sums, index=index))


@dataclass
class TileArrays:
    """The events of a tile, in order of time, as the columns say."""

    columns: int
    tick: NDArray[np.int32]
    starts: Flags
    given: Ints
    low: Ints
    high: Ints
    first: NDArray[np.int32]
    last: NDArray[np.int32]

    def places(self) -> tuple[Ints, Ints, Ints]:
        """Return the events that have a place, in the order of places; these places; and of each event its number."""
        takes = np.flatnonzero(self.given >= 0)
        order = takes[np.argsort(self.given[takes])]
        place = np.full(len(self.tick), -1)
        place[order] = np.arange(len(order))
        return order, self.given[order], place


def tile_of_pieces(pieces: Sequence[Message], ends: OpenEnds) -> TileArrays:
    """Put the pieces of a tile together."""
    arrays = [piece.arrays() for piece in pieces]
    events = max((int(a["index"].max(initial=-1)) for a in arrays), default=-1) + 1
    columns = len(pieces)
    tile = TileArrays(
        columns, np.zeros(events, np.int32), np.ones(events, np.bool_), np.full(events, -1),
        np.zeros(events, np.int64), np.zeros(events, np.int64), np.full(events, -1, np.int32),
        np.full(events, -1, np.int32),
    )  # fmt: skip
    sizes = np.zeros((columns, 3), np.int64)
    for piece, a in zip(pieces, arrays, strict=True):
        sizes[piece.column] = piece.size, piece.head, piece.tail
        index, roles, at = a["index"], a["roles"], piece.column * FAR
        tile.tick[index], tile.first[index], tile.last[index] = a["tick"], a["first"], a["last"]
        for bit, array, name in ((GIVEN, tile.given, "place"), (LOW, tile.low, "low"), (HIGH, tile.high, "high")):
            some = np.flatnonzero(roles & bit)
            array[index[some]] = at + a[name][some]
        some = np.flatnonzero(roles & GIVEN)
        tile.starts[index[some]] = (roles[some] & STARTS) != 0
    across = np.flatnonzero(tile.last > tile.first)
    if ends.low:
        begin = tile.first[across].astype(np.int64)
        tile.low[across] = begin * FAR + sizes[begin, 0] - sizes[begin, 2]
    if ends.high:
        end = tile.last[across].astype(np.int64)
        tile.high[across] = end * FAR + sizes[end, 1]
    return tile


def numbers_of_tile(
    messages: Iterable[Message], moduli: Words, every: bool, ends: OpenEnds, keep: bool = False
) -> Iterator[Message]:
    """Yield the numbers of paths from the events of a tile on, for each column; and `done`, the sum over its trends.

    `messages` are the pieces of all columns, and then the sums that later tiles add. With `keep`, a message `paths` for
    the tile itself has the numbers of all its events, and which of them begin and end trends.
    """
    kinds = groupby(messages, lambda message: message.kind)
    kept = list(next(kinds)[1])
    tile, width = tile_of_pieces(kept, ends), len(moduli)
    pieces = [piece._replace(body=b"") for piece in kept]
    del kept
    words, logs = np.zeros((len(tile.tick), width), np.uint64), np.full(len(tile.tick), -np.inf)
    parts, part_logs = np.zeros((3 * tile.columns, width), np.uint64), np.full(3 * tile.columns, -np.inf)
    for message in (message for _, some in kinds for message in some):
        found, more, more_logs = message.numbers()
        index = found["index"].astype(np.int64)
        own = len(index) - 3  # then the sums over the column, its head and its tail
        kernel.add_rows(words, logs, index[:own], more[:own], more_logs[:own], moduli)
        rows = message.column + tile.columns * np.arange(3)
        kernel.add_rows(parts, part_logs, rows, more[own:], more_logs[own:], moduli)
    _add_parts(tile, ends, parts, part_logs, words, logs, moduli)
    order, codes, place = tile.places()
    low, high = np.searchsorted(codes, tile.low), np.searchsorted(codes, tile.high)
    last = kernel.solve_tile(tile.tick, place, low, high, every, moduli, words, logs)
    number = pieces[0].tile
    column = codes // FAR
    for piece in pieces:
        begin, end = np.searchsorted(column, [piece.column, piece.column + 1])
        some = order[begin:end]
        body = _numbers(words[some], logs[some], place=(codes[begin:end] % FAR).astype(np.int32))
        yield piece._replace(kind="numbers", to=piece.column, body=body)
    starts = np.ones(len(tile.tick), np.bool_) if every else tile.starts
    if keep:
        yield Message("paths", number, number, -1, 0, 0, 0, _numbers(words, logs, starts=starts, ends=last))
    counted = np.flatnonzero(starts)
    total, total_log = np.zeros((1, width), np.uint64), np.full(1, -np.inf)
    kernel.add_rows(total, total_log, np.zeros(len(counted), np.int64), words[counted], logs[counted], moduli)
    yield Message("done", -1, number, -1, 0, 0, 0, _numbers(total, total_log))


def _add_parts(
    tile: TileArrays, ends: OpenEnds, parts: Words, part_logs: NDArray[np.float64], words: Words,
    logs: NDArray[np.float64], moduli: Words,
) -> None:  # fmt: skip
    """Add the sums over whole columns, heads and tails to the events whose ranges hold them."""
    across = np.flatnonzero(tile.last > tile.first)
    begin = tile.first[across].astype(np.int64)
    spans, which = np.unique(begin * tile.columns + tile.last[across], return_inverse=True)
    sums, sum_logs = np.zeros((len(spans), len(moduli)), np.uint64), np.full(len(spans), -np.inf)
    for i, span in enumerate(spans.tolist()):
        begin, end = divmod(span, tile.columns)
        rows = list(range(begin + 1, end))
        rows += [tile.columns + end] if ends.high else []
        rows += [2 * tile.columns + begin] if ends.low else []
        to = np.full(len(rows), i, np.int64)
        kernel.add_rows(sums, sum_logs, to, parts[rows], part_logs[rows], moduli)
    which = which.reshape(-1)
    kernel.add_rows(words, logs, across, sums[which], sum_logs[which], moduli)
