"""An archive: events in Parquet, with filters beside them that tell where names may be."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from trellis.archive.filters import Filters, coded, hashes_of, top_nodes, tree_of
from trellis.archive.keys import Keys, pair_items, walk
from trellis.archive.questions import Answer, Asked, Found, Leaves, Policy, Question, Reading, Within
from trellis.archive.sizing import Size, expected_rate, size_filters, thesis_size
from trellis.archive.store import (
    Manifest,
    checksum,
    load_array,
    read_manifest,
    remove_unnamed,
    save_array,
    swap_manifest,
)
from trellis.archive.words import words_of
from trellis.columns.ordering import sort_indices
from trellis.columns.types import from_arrow, normalise
from trellis.engines import detect_here
from trellis.errors import DataError, UsageError, did_you_mean
from trellis.events import as_tables
from trellis.kernels.bloom import TILE, WORDS
from trellis.language import syntax as s
from trellis.language.binder import bind
from trellis.language.bound import BoundQuery, WindowKind
from trellis.language.parser import parse
from trellis.language.schema import Kind, Schema, Table

GROUP = 1024  # rows of a row group, about
SAMPLED = 400  # leaves of which the distinct names are counted
POSITION = "__position"
POLICIES = {s.Select.ANY: Policy.ANY, s.Select.NEXT: Policy.NEXT, s.Select.CONTIGUOUS: Policy.CONTIGUOUS}
LEAF = np.dtype([("events", "<i8"), ("since", "<f8"), ("until", "<f8")])
WHOLE = np.dtype([("events", "<i8"), ("since", "<i8"), ("until", "<i8")])


@dataclass(frozen=True)
class Exact:
    """An exact answer, and what of the history it took.

    Attributes
    ----------
    trends
        What `query.detect` gives over all events.
    needed, read, events
        How many events lie in leaves that may matter, how many were read, and how many there are.
    """

    trends: Any
    needed: int
    read: int
    events: int


class Archive:
    """A history on disk; make one with `Archive.build`, go on with `Archive.open`."""

    def __init__(self, directory: str | Path) -> None:
        self.directory = Path(directory)
        self.manifest = read_manifest(self.directory)

    # --- Making one -------------------------------------------------------------------------------------------

    @classmethod
    def open(cls, directory: str | Path) -> Archive:
        """Return the archive in a directory."""
        return cls(directory)

    @classmethod
    def build(
        cls, data: Any, directory: str | Path, *, time: str, type: str, event_id: str | None = None, leaf: int = 100,
        false_positive: float = 1e-4, memory: int | None = None, expected_events: int | None = None,
        query_length: int = 3, fan_out: int = 2, sizing: str = "sample", key: str | None = None,
    ) -> Archive:  # fmt: skip
        """Make an archive of events.

        Parameters
        ----------
        data
            An Arrow table, a pandas or polars frame.
        directory
            Where it is made; it must not exist, or be empty.
        time, type, event_id
            The columns of times, of names, and of ids.
        leaf
            How many events a leaf has.
        false_positive
            The rate of questions whose list of leaves may be wrong.
        memory
            Bytes that the filters may take; it is refused if they would take more.
        expected_events
            How many events there will be; those that there are by default.
        query_length
            How many names a question has.
        fan_out
            The children of a node of the tree.
        sizing
            `sample`: by the names that leaves have; `thesis`: by the equations of the thesis.
        key
            A column such as the case of a log: questions with `[key]` are then answered for each of its values.
        """
        path = Path(directory)
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise UsageError(
                f"{directory} exists and is not empty", "Name another directory, or append to the archive."
            )
        if leaf < 1 or fan_out < 2:
            raise UsageError("a leaf has at least one event, and a node at least two children")
        table = _table(data)
        for role, name in (("time", time), ("type", type), ("event_id", event_id), ("key", key)):
            if name is not None and name not in table.column_names:
                hint = did_you_mean(name, table.column_names, f"Columns are {', '.join(table.column_names)}.")
                raise UsageError(f"the events have no column `{name}` ({role})", hint)
        columns = {fld.name: str(fld.type) for fld in table.schema}
        ordered = _in_order(table, time, event_id)
        expected = max(expected_events or 0, table.num_rows, 1)
        size = _size(ordered, type, key, leaf, false_positive, memory, expected, query_length, sizing)
        manifest = Manifest(
            columns, time, type, event_id, leaf, size.bits, size.hashes, fan_out, false_positive, query_length, key=key
        )
        path.mkdir(parents=True, exist_ok=True)
        swap_manifest(path, manifest)
        archive = cls(path)
        archive._add(ordered)
        return archive

    def append(self, data: Any) -> None:
        """Add later events: all after the last time that the archive has."""
        manifest = self.manifest
        table = _table(data)
        for name, type_ in manifest.columns.items():
            found = str(table.schema.field(name).type) if name in table.column_names else None
            if found != type_:
                now = "is missing" if found is None else f"is {found}"
                raise DataError(f"the column `{name}` {now}, and the archive has it as {type_}")
        table = _in_order(table.select(list(manifest.columns)), manifest.time, manifest.event_id)
        if table.num_rows and len(self.leaves):
            first, last = _numbers(table[manifest.time])[0], self.leaves.until[-1]
            if first <= last:
                raise DataError(
                    "an event is not later than the last one of the archive",
                    "Append events in the order of their times, all of one time together.",
                )
        self._add(table)

    def drop_before(self, moment: Any) -> int:
        """Forget the leaves that end before a time; return how many events are forgotten.

        Positions stay what they were. The files of events and filters that nothing needs any more are removed.
        """
        manifest, bound = self.manifest, self._number(moment)
        until = np.asarray(self._summary["until"])
        first = max(manifest.first, int(np.searchsorted(until, bound, side="left")))
        first = min(first, self.closed)  # a leaf that is still open stays
        if first == manifest.first:
            return 0
        begin = first * manifest.capacity
        parts = [part for part in manifest.parts if part[1] + part[2] > begin]
        gone = first // TILE
        tiles = ["" if tile < gone else name for tile, name in enumerate(manifest.tiles)]
        new = Manifest(**{**vars(manifest), "parts": parts, "tiles": tiles, "first": first})
        new.checksums = {name: value for name, value in manifest.checksums.items() if name in new.files}
        swap_manifest(self.directory, new)
        self._use(new)
        return (first - manifest.first) * manifest.capacity

    def _use(self, manifest: Manifest) -> None:
        """Go on with a manifest that counts."""
        self.manifest = manifest
        for name in ("filters", "leaves", "keys", "_summary"):
            self.__dict__.pop(name, None)
        remove_unnamed(self.directory, manifest)

    def _add(self, table: pa.Table) -> None:
        """Write events and what is known of them, and then make them count."""
        manifest = self.manifest
        remove_unnamed(self.directory, manifest)
        if not table.num_rows:
            return
        generation, first = manifest.generation + 1, manifest.events
        new = Manifest(**{**vars(manifest), "parts": list(manifest.parts), "tiles": list(manifest.tiles),
                          "checksums": dict(manifest.checksums)})  # fmt: skip
        codes, names = coded(table[manifest.type])
        filters = self.filters
        changed = filters.add(codes, names, first)
        if manifest.key is not None:
            keys, of_event = self.keys.with_events(table[manifest.key], first, manifest.capacity)
            changed |= filters.add_items(*pair_items(of_event, hashes_of(keys.values), codes, names), first)
            new.pairs, new.keys = f"pairs-{generation:06d}.npy", f"keys-{generation:06d}.parquet"
            save_array(self.directory, new.pairs, keys.pairs, new)
            pq.write_table(pa.table({"key": keys.values}), self.directory / new.keys)
            new.checksums[new.keys] = checksum(self.directory / new.keys)
        for tile in sorted(changed):
            name = f"tile-{tile:05d}-{generation:06d}.npy"
            save_array(self.directory, name, filters.tiles[tile], new)
            new.tiles[tile : tile + 1] = [name]
        leaves = self._leaves_with(_numbers(table[manifest.time]), first)
        new.leaves = f"leaves-{generation:06d}.npy"
        save_array(self.directory, new.leaves, leaves, new)
        part = f"events-{generation:06d}.parquet"
        self._write_events(table, part, first)
        new.checksums[part] = checksum(self.directory / part)
        new.parts.append((part, first, table.num_rows))
        new.events, new.generation = first + table.num_rows, generation
        new.checksums = {name: value for name, value in new.checksums.items() if name in new.files}
        swap_manifest(self.directory, new)
        self._use(new)

    def _leaves_with(self, times: NDArray[Any], first: int) -> np.ndarray:
        """Return the summary of all leaves, with events from position `first` on."""
        capacity, old = self.manifest.capacity, self._summary
        number = -(-(first + len(times)) // capacity)
        leaves = np.zeros(number, LEAF if times.dtype.kind == "f" else WHOLE)
        leaves[: len(old)] = old
        leaf = (first + np.arange(len(times))) // capacity
        begins = np.flatnonzero(np.diff(leaf, prepend=-1))
        here = leaf[begins]
        ends = np.append(begins[1:], len(leaf)) - 1
        fresh = leaves["events"][here] == 0
        leaves["since"][here[fresh]] = times[begins[fresh]]
        leaves["until"][here] = times[ends]
        leaves["events"][here] += ends - begins + 1
        return leaves

    def _write_events(self, table: pa.Table, name: str, first: int) -> None:
        """Write events in row groups that end where leaves end."""
        capacity = self.manifest.capacity
        rows = max(1, GROUP // capacity) * capacity
        with (self.directory / name).open("wb") as file:
            with pq.ParquetWriter(file, table.schema) as writer:
                at = 0
                while at < table.num_rows:
                    size = rows - (first + at) % rows
                    writer.write_table(table.slice(at, size), row_group_size=size)
                    at += size
            file.flush()
            os.fsync(file.fileno())

    # --- What is there ----------------------------------------------------------------------------------------

    @cached_property
    def _summary(self) -> Any:
        manifest = self.manifest
        if not manifest.leaves:
            return np.zeros(0, WHOLE)
        return load_array(self.directory, manifest.leaves, manifest)

    @cached_property
    def filters(self) -> Filters:
        """The filters of the leaves, mapped into memory."""
        manifest = self.manifest
        none = np.zeros((manifest.bits, WORDS), np.uint64)  # of leaves that were dropped
        tiles = [load_array(self.directory, name, manifest) if name else none for name in manifest.tiles]
        return Filters(manifest.capacity, manifest.bits, manifest.hashes, tiles, len(self._summary), manifest.first)

    @cached_property
    def keys(self) -> Keys:
        """The keys of the events, and in which leaves they are."""
        manifest = self.manifest
        if not manifest.pairs:
            return Keys.none()
        path = self.directory / manifest.keys
        if checksum(path) != manifest.checksums.get(manifest.keys):
            raise DataError(f"{path} is damaged: its checksum is not that of the manifest", "Build the archive anew.")
        values = pq.read_table(path)["key"].combine_chunks()
        return Keys(values, np.array(load_array(self.directory, manifest.pairs, manifest)))

    @cached_property
    def leaves(self) -> Leaves:
        """The leaves, as questions see them."""
        summary, capacity = self._summary, self.manifest.capacity
        first = np.arange(len(summary)) * capacity
        return Leaves(
            self.filters, capacity, first, first + summary["events"] - 1, np.asarray(summary["since"]),
            np.asarray(summary["until"]),
        )  # fmt: skip

    @property
    def closed(self) -> int:
        """How many leaves are full."""
        return self.manifest.events // self.manifest.capacity

    def info(self) -> dict[str, Any]:
        """Return size, bytes an event, height of the tree, density of the filters and the expected rate."""
        manifest, filters = self.manifest, self.filters
        size = sum((self.directory / name).stat().st_size for name in manifest.tiles if name)
        stored = sum((self.directory / name).stat().st_size for name, _, _ in manifest.parts)
        tree = tree_of(filters, self.closed, manifest.fan_out)
        densities = filters.densities[manifest.first :]
        return {
            "events": manifest.events - manifest.first * manifest.capacity,
            "dropped": manifest.first * manifest.capacity,
            "leaves": len(self.leaves) - manifest.first,
            "events_a_leaf": manifest.capacity,
            "bits": manifest.bits,
            "hashes": manifest.hashes,
            "filter_bytes": size,
            "filter_bytes_an_event": manifest.bits * len(self.leaves) / 8 / max(1, manifest.events),
            "event_bytes": stored,
            "fan_out": manifest.fan_out,
            "height": len(tree) - 1 if len(self.leaves) else 0,
            "top_nodes": top_nodes(tree, manifest.fan_out) if len(self.leaves) else 0,
            "density": float(densities.mean()) if len(densities) else 0.0,
            "asked_rate": manifest.false_positive,
            "expected_rate": expected_rate(densities, manifest.hashes, manifest.names),
            "since": self._moment(manifest.first, "since"),
            "until": self._moment(-1, "until"),
        }

    def _moment(self, leaf: int, which: str) -> Any:
        if self.manifest.first >= len(self._summary):
            return None
        return self._times(np.asarray(self._summary[which][[leaf]]))[0].as_py()

    def _times(self, numbers: NDArray[Any]) -> pa.Array:
        """Return numbers as the times that they are."""
        if self.schema.time_type.temporal:
            return pa.array(numbers, pa.int64()).cast(pa.timestamp("us", tz="UTC"))
        return pa.array(numbers)

    @cached_property
    def schema(self) -> Schema:
        """The schema of the events."""
        manifest = self.manifest
        if manifest.parts:
            arrow = pq.read_schema(self.directory / manifest.parts[0][0])
            columns = {fld.name: from_arrow(fld.type) for fld in arrow}
        else:
            columns = {name: from_arrow(_type_named(text)) for name, text in manifest.columns.items()}
        return Schema((Table(None, columns),), manifest.time, manifest.type, manifest.event_id)

    # --- Questions --------------------------------------------------------------------------------------------

    def exists(self, pattern: str, **options: Any) -> Answer:
        """Return whether a pattern happened: `no`, which is certain, `maybe` or `likely`; options as in `find`."""
        question = self._question(pattern, **options)
        answer = question.simple()
        if answer is Answer.NO or not self._is_by_key(pattern, question.asked, options.get("params")):
            return answer
        found = walk(question.asked.words, question.asked.reading, self.keys, self.filters)
        return Answer.MAYBE if len(found.key) else Answer.NO

    def _is_by_key(self, pattern: str, asked: Asked, params: Mapping[str, Any] | None) -> bool:
        """Return whether a question is of single keys, and one walk answers it for all of them."""
        partition = [name for name, _ in self._bound(pattern, params).partition]
        plain = asked.within is None and asked.begin is None and asked.end is None
        typed = not any(word.untyped for word in asked.words)
        return partition == [self.manifest.key] and plain and typed and asked.policy in (Policy.ANY, Policy.NEXT)

    def find(
        self, pattern: str, *, policy: str | None = None, same_leaf: str = "maybe", begin: Any = None, end: Any = None,
        level: int = 0, exact: bool = False, params: Mapping[str, Any] | None = None,
    ) -> pa.Table | Exact:  # fmt: skip
        """Return where a pattern may have happened, or, exactly, what happened.

        Parameters
        ----------
        pattern
            A query, whose variables have types.
        policy
            Overrides SELECT: `skip-till-any`, `skip-till-next`, `contiguous` or `adjacent-leaves`.
        same_leaf
            `maybe`: two steps may be in one leaf, so that nothing is missed. `no`: the reading of the thesis.
        begin, end
            Times between which it happened, both included.
        level
            Blocks of `fan_out**level` leaves in place of leaves.
        exact
            Read the events that may matter, and give what `query.detect` gives over all of them.
        params
            Values of the query's parameters.
        """
        if exact:
            return self._exact(pattern, policy, begin, end, params)
        question = self._question(pattern, policy, same_leaf, begin, end, level, params)
        if level == 0 and self._is_by_key(pattern, question.asked, params):
            return self._rows_of_keys(question.asked)
        return self._rows(question, question.found())

    def _rows_of_keys(self, asked: Asked) -> pa.Table:
        """Return a row for each key to which it may have happened: the leaves of its first and last step."""
        found, leaves = walk(asked.words, asked.reading, self.keys, self.filters), self.leaves
        forbids = any(any(word.forbidden) for word in asked.words)
        return pa.table(
            {
                "key": self.keys.values.take(pa.array(found.key)),
                "start_leaf": found.start,
                "end_leaf": found.end,
                "since": self._times(leaves.since[found.start]),
                "until": self._times(leaves.until[found.end]),
                "negation": pa.repeat("open" if forbids else "clear", len(found.key)),
            }
        )

    def _rows(self, question: Question, found: Found) -> pa.Table:
        leaves = question.leaves
        return pa.table(
            {
                "start_leaf": found.start,
                "end_leaf": found.end,
                "last_end_leaf": found.last_end,
                "ends": found.ends,
                "first_position": leaves.first[found.start],
                "last_position": leaves.last[found.last_end],
                "since": self._times(leaves.since[found.start]),
                "until": self._times(leaves.until[found.last_end]),
                "negation": pa.array(np.where(found.clear, "clear", "open")),
            }
        )

    def _question(
        self, pattern: str, policy: str | None = None, same_leaf: str = "maybe", begin: Any = None, end: Any = None,
        level: int = 0, params: Mapping[str, Any] | None = None,
    ) -> Question:  # fmt: skip
        if level < 0:
            raise UsageError("a level is 0 or more")
        if same_leaf not in tuple(Reading):
            raise UsageError(f"same_leaf is `{same_leaf}`", "It is `maybe` or `no`.")
        bound = self._bound(pattern, params)
        asked = self._asked(bound, policy, Reading(same_leaf), begin, end)
        leaves = self.leaves if level == 0 else self.leaves.coarser(self.manifest.fan_out**level)
        return Question(asked, leaves)

    def _bound(self, pattern: str, params: Mapping[str, Any] | None) -> BoundQuery:
        return bind(parse(pattern), pattern, self.schema, params, None)

    def _asked(
        self, bound: BoundQuery, policy: str | None, reading: Reading, begin: Any = None, end: Any = None
    ) -> Asked:
        if policy is not None and policy not in tuple(Policy):
            hint = did_you_mean(policy, list(Policy), f"Policies are {', '.join(Policy)}.")
            raise UsageError(f"there is no policy `{policy}`", hint)
        words = tuple(words_of(bound.pattern, {v.name: v.type for v in bound.variables}))
        chosen = POLICIES[bound.select] if policy is None else Policy(policy)
        low, high = (None if one is None else self._number(one) for one in (begin, end))
        return Asked(words, chosen, reading, _within(bound), low, high, bool(bound.partition))

    def _number(self, moment: Any) -> Any:
        """Return a time that the user gave as a number."""
        time = self.schema.time_type
        try:
            if not time.temporal:
                return float(moment) if time.kind is Kind.DOUBLE else int(moment)
            array = pa.array([moment])
            if pa.types.is_string(array.type):
                array = array.cast(pa.timestamp("us"))
            return array.cast(pa.timestamp("us")).cast(pa.int64())[0].as_py()
        except (ValueError, TypeError, pa.ArrowException):
            raise UsageError(
                f"`{moment}` is no time of this history", "Write it like the times of the events: 2024-05-01T09:00:00."
            ) from None

    # --- Exact ------------------------------------------------------------------------------------------------

    def _exact(self, pattern: str, policy: str | None, begin: Any, end: Any, params: Mapping[str, Any] | None) -> Exact:
        if policy is not None or begin is not None or end is not None:
            raise UsageError(
                "an exact answer is that of the query itself", "Write SELECT, and conditions on the time, in the query."
            )
        bound = self._bound(pattern, params)
        needed = self._needed(self._asked(bound, None, Reading.MAYBE))
        table, read = self._events_of(needed)
        manifest = self.manifest
        trends = detect_here(
            pattern, table, time=manifest.time, type=manifest.type, event_id=manifest.event_id or POSITION,
            params=params,
        )  # fmt: skip
        return Exact(trends, table.num_rows, read, manifest.events - manifest.first * manifest.capacity)

    def _needed(self, asked: Asked) -> NDArray[np.bool_]:
        """Return the leaves that the engine must see to say what it says of all of them."""
        leaves = self.leaves
        every = np.arange(len(leaves)) >= self.manifest.first
        if asked.policy is Policy.CONTIGUOUS or any(word.untyped for word in asked.words):
            return every  # neighbours are decided by all events; and any leaf may hold an event without a type
        question = Question(Asked(asked.words, Policy.ANY, Reading.MAYBE, asked.within), leaves)
        needed = question.needed() & every
        several = len(asked.words) > 1 and asked.policy is Policy.NEXT
        forbids = any(any(word.forbidden) for word in asked.words)
        if not several and not forbids:
            return needed
        wanted = set().union(*(word.names for word in asked.words)) if several else set()
        wanted = wanted.union(*(names for word in asked.words for names in word.forbidden))
        found = question.found()
        inside = np.zeros(len(leaves) + 1, np.int64)
        np.add.at(inside, found.start, 1)
        np.add.at(inside, found.last_end + 1, -1)
        return needed | (leaves.has(frozenset(wanted)) & (np.cumsum(inside)[:-1] > 0))

    def _events_of(self, needed: NDArray[np.bool_]) -> tuple[pa.Table, int]:
        """Return the events of leaves with their positions, and how many were read for them."""
        tables, read, capacity = [], 0, self.manifest.capacity
        for name, first, _ in self.manifest.parts:
            try:
                with pq.ParquetFile(self.directory / name) as file:
                    at = first
                    for group in range(file.metadata.num_row_groups):
                        rows = file.metadata.row_group(group).num_rows
                        positions = np.arange(at, at + rows)
                        at += rows
                        kept = needed[positions // capacity]
                        if kept.any():
                            read += rows
                            table = file.read_row_group(group).append_column(POSITION, pa.array(positions))
                            tables.append(table.filter(pa.array(kept)))
            except (OSError, pa.ArrowException) as problem:
                raise DataError(
                    f"{self.directory / name} cannot be read: {problem}", "The archive is damaged."
                ) from None
        if tables:
            return pa.concat_tables(tables), read
        schema = pa.schema([pa.field(n, _type_named(text)) for n, text in self.manifest.columns.items()])
        if self.manifest.parts:
            schema = pq.read_schema(self.directory / self.manifest.parts[0][0])
        return schema.append(pa.field(POSITION, pa.int64())).empty_table(), read


def _within(bound: BoundQuery) -> Within | None:
    window = bound.window
    if window.kind is WindowKind.WHOLE or window.size is None:
        return None
    size = window.size if isinstance(window.size, int) else float(window.size)
    if window.slide is None:
        return Within(size)
    return Within(size, window.slide if isinstance(window.slide, int) else float(window.slide))


def _table(data: Any) -> pa.Table:
    tables = as_tables(data)
    if None not in tables:
        raise UsageError("a history is of one table of events", "Give one, with a column that tells the names.")
    return tables[None]


def _in_order(table: pa.Table, time: str, event_id: str | None) -> pa.Table:
    """Return events in the order of their positions: by time, then by id or by all columns."""
    for name in (time, event_id):
        if name is not None and table[name].null_count:
            raise DataError(f"{table[name].null_count:,} events have no `{name}`", "Leave them out.")
    others = [event_id] if event_id is not None else [n for n in table.column_names if n != time]
    kinds = {name: from_arrow(table[name].type) for name in [time, *others]}
    for name, kind in kinds.items():
        if kind.kind is Kind.OTHER:
            raise UsageError(
                f"events without an id are ordered by all columns, and `{name}` has no order", "Name an id."
            )
    columns = [normalise(table[name], kind) for name, kind in kinds.items()]
    return table.take(pa.array(sort_indices(columns))).combine_chunks() if table.num_rows else table


def _numbers(column: pa.ChunkedArray) -> NDArray[Any]:
    kind = from_arrow(column.type)
    array = normalise(column, kind)
    if kind.kind is Kind.DOUBLE:
        return array.to_numpy(zero_copy_only=False)
    if kind.kind is Kind.DECIMAL:
        return array.cast(pa.float64()).to_numpy(zero_copy_only=False)
    return array.cast(pa.int64()).to_numpy(zero_copy_only=False)


def _size(
    ordered: pa.Table, type_: str, key: str | None, leaf: int, false_positive: float, memory: int | None,
    expected: int, names: int, sizing: str,
) -> Size:  # fmt: skip
    if sizing == "thesis":
        return thesis_size(expected, leaf, false_positive, names)
    if sizing != "sample":
        raise UsageError(f"there is no sizing `{sizing}`", "It is `sample` or `thesis`.")
    codes, _ = coded(ordered[type_])
    number = -(-len(codes) // leaf)
    chosen = np.unique(np.linspace(0, max(0, number - 1), min(number, SAMPLED)).astype(int)).tolist() if number else []
    several = [codes] if key is None else [codes, codes + (codes.max(initial=0) + 1) * coded(ordered[key])[0]]
    distinct = [sum(len(np.unique(some[i * leaf : (i + 1) * leaf])) for some in several) for i in chosen] or [
        leaf * len(several)
    ]
    return size_filters(distinct, -(-expected // leaf), false_positive, names, memory)


def _type_named(text: str) -> pa.DataType:
    """Return a type by its name, for the columns of an archive that has no events yet."""
    simple = {"string": pa.string(), "large_string": pa.large_string(), "int64": pa.int64(), "double": pa.float64()}
    if text in simple:
        return simple[text]
    if text.startswith("timestamp"):
        unit, _, zone = text[10:-1].partition(", tz=")
        return pa.timestamp(unit, zone or None)
    try:
        return pa.type_for_alias(text)
    except ValueError:
        return pa.null()
