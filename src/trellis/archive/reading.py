"""Reads the events that a question needs: which they are from names that lie in memory, and the rest by row groups."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from trellis.archive.filters import Records
from trellis.archive.leaves import Flags, Ints
from trellis.archive.store import Manifest, UnreadableError, check_events, load_names

POSITION = "__position"
AT_ONCE = 256  # row groups that are in memory before the rows that matter are taken


@dataclass
class EventFiles:
    """The files of events that were checked: what their footers say, and their names, are read once.

    Files up to `small` bytes are looked at whole before they are read.
    """

    footers: dict[str, tuple[pq.FileMetaData, Ints]] = field(default_factory=dict)
    names: dict[str, pa.Table | None] = field(default_factory=dict)
    small: int = 64_000_000

    def footer(self, directory: Path, name: str, manifest: Manifest) -> tuple[pq.FileMetaData, Ints]:
        """Return the footer of a file, and where its row groups begin and the last one ends, in rows of the file."""
        if name not in self.footers:
            footer = check_events(directory, name, manifest, self.small)
            rows = [footer.row_group(group).num_rows for group in range(footer.num_row_groups)]
            self.footers[name] = footer, np.concatenate([[0], np.cumsum(rows)]).astype(np.int64)
        return self.footers[name]

    def narrow(self, directory: Path, name: str, manifest: Manifest) -> pa.Table | None:
        """Return the times and names of the events of a file, if they lie beside it."""
        if name not in self.names:
            self.names[name] = load_names(directory, name, manifest)
        return self.names[name]


@dataclass(frozen=True)
class WantedRows:
    """The rows of a history that a question needs.

    Attributes
    ----------
    leaves
        The leaves that they lie in.
    names
        The names that they have; None for any.
    with_gaps
        Whether the first event behind some leaves is needed too, to tell that there is a gap; it has no name then.
    """

    leaves: Flags
    names: frozenset[str] | None = None
    with_gaps: bool = False


def schema_with_ids(manifest: Manifest) -> pa.Schema:
    """Return the columns of events as exact answers see them: positions are the ids of events that have none."""
    schema = manifest.arrow
    return schema if manifest.event_id is not None else schema.append(pa.field(POSITION, pa.int64()))


class EventReader:
    """Reads the events that are wanted; `read` tells of how many something was read."""

    def __init__(
        self, directory: Path, manifest: Manifest, held: pa.Table, files: EventFiles, entries: Records,
        wanted: WantedRows,
    ) -> None:  # fmt: skip
        self.directory, self.manifest, self.held, self.files = directory, manifest, held, files
        self.names, self.read = wanted.names, 0
        chosen = entries[wanted.leaves]
        self.begins, self.ends = chosen["at"], chosen["at"] + chosen["events"]
        none = np.empty(0, np.int64)
        self.gaps = entries["at"][gaps_after(wanted.leaves)] if wanted.with_gaps else none

    def rows(self, columns: Sequence[str] | None = None) -> pa.Table:
        """Return some or all columns of the events."""
        schema = schema_with_ids(self.manifest)
        names = schema.names if columns is None else [name for name in schema.names if name in columns]
        tables = [schema.empty_table().select(names)]
        self.read = 0
        for table, positions in self._pieces([name for name in names if name != POSITION]):
            if POSITION in names:
                table = table.append_column(POSITION, pa.array(positions))
            table = table.select(names)
            if self.manifest.type in names:
                table = self._named(table, positions, schema.field(self.manifest.type))
            tables.append(table)
        return pa.concat_tables(tables)

    def _named(self, table: pa.Table, positions: Ints, field: pa.Field) -> pa.Table:
        """Take the names away from the events that only tell that there is a gap."""
        column = table.column_names.index(field.name)
        names = table[column].cast(field.type)
        nameless = np.isin(positions, self.gaps)
        if nameless.any():
            names = pc.if_else(pa.array(nameless), pa.scalar(None, names.type), names)
        return table.set_column(column, field, names)

    def _pieces(self, columns: list[str]) -> Iterator[tuple[pa.Table, Ints]]:
        for name, first, rows in self.manifest.parts:
            needed = self._places(first, first + rows)
            if not len(needed):
                continue
            narrow = self.files.narrow(self.directory, name, self.manifest)
            before = self.read
            wanted = needed
            if narrow is not None and self.names is not None:
                wanted = needed[_has_name(narrow[self.manifest.type], self.names, needed - first)]
            if narrow is not None and set(columns) <= set(narrow.column_names):
                yield narrow.select(columns).take(pa.array(wanted - first)), wanted
            elif len(wanted):
                yield from self._of_groups(name, first, wanted, columns, by_name=narrow is None)
            self.read = max(self.read, before + len(needed))
        at = self._places(self.manifest.events, self.manifest.events + self.held.num_rows)
        if len(at):
            self.read += len(at)
            table = self.held.take(pa.array(at - self.manifest.events))
            if self.names is not None:
                flags = _has_name(table[self.manifest.type], self.names)
                table, at = table.filter(pa.array(flags)), at[flags]
            yield table.select(columns), at

    def _places(self, low: int, high: int) -> Ints:
        """Return the positions between two that leaves or gaps want, in order."""
        begins, ends = np.clip(self.begins, low, high), np.clip(self.ends, low, high)
        sizes = ends - begins
        places = np.repeat(begins - np.concatenate([[0], np.cumsum(sizes)[:-1]]), sizes) + np.arange(sizes.sum())
        gaps = self.gaps[(self.gaps >= low) & (self.gaps < high)]
        return np.sort(np.concatenate([places, gaps])) if len(gaps) else places

    def _of_groups(
        self, name: str, first: int, wanted: Ints, columns: list[str], by_name: bool
    ) -> Iterator[tuple[pa.Table, Ints]]:
        """Yield the wanted rows of the row groups that have some, many at a time."""
        footer, begins = self.files.footer(self.directory, name, self.manifest)
        of_row = np.searchsorted(begins, wanted - first, side="right") - 1
        groups = np.unique(of_row)
        type_, filtered = self.manifest.type, by_name and self.names is not None
        needed = list(dict.fromkeys([*columns, type_])) if filtered else columns
        encoded = [type_] if _is_text(self.held.schema.field(type_).type) else None
        try:
            with pq.ParquetFile(
                self.directory / name, metadata=footer, read_dictionary=encoded, pre_buffer=False,
                page_checksum_verification=True,
            ) as file:  # fmt: skip
                for some in range(0, len(groups), AT_ONCE):
                    chosen = groups[some : some + AT_ONCE]
                    table = file.read_row_groups(chosen.tolist(), columns=needed, use_threads=False)
                    sizes = begins[chosen + 1] - begins[chosen]
                    self.read += int(sizes.sum())
                    low, high = np.searchsorted(of_row, [chosen[0], chosen[-1] + 1])
                    at = wanted[low:high]
                    ahead = np.concatenate([[0], np.cumsum(sizes)[:-1]]) - begins[chosen] - first
                    rows = at + ahead[np.searchsorted(chosen, of_row[low:high])]
                    if filtered:
                        flags = _has_name(table[type_], self.names or frozenset(), rows)
                        rows, at = rows[flags], at[flags]
                    yield table.select(columns).take(pa.array(rows)), at
        except (OSError, pa.ArrowException) as problem:
            raise UnreadableError(
                f"{self.directory / name} cannot be read: {problem}", "The archive is damaged."
            ) from None


def gaps_after(needed: Flags) -> Ints:
    """Return the leaves that are left out behind one that is not: their first events end what is contiguous."""
    return np.flatnonzero(~needed[1:] & needed[:-1]) + 1


def _is_text(type_: pa.DataType) -> bool:
    return bool(pa.types.is_string(type_) or pa.types.is_large_string(type_))


def _has_name(column: pa.ChunkedArray, names: frozenset[str], rows: Ints | None = None) -> Flags:
    """Return which events, all or those of some rows, have one of some names."""
    wanted = pa.array(sorted(names), pa.string())
    if column.num_chunks == 1 and pa.types.is_dictionary(column.type):
        return _has_code(column.chunk(0), wanted, rows)
    found: list[NDArray[np.bool_]] = [np.zeros(0, np.bool_)]
    for chunk in column.chunks:
        if pa.types.is_dictionary(chunk.type):
            found.append(_has_code(chunk, wanted, None))
        else:
            found.append(pc.is_in(chunk.cast(pa.string()), wanted).to_numpy(zero_copy_only=False))
    every = np.concatenate(found)
    return every if rows is None else every[rows]


def _has_code(chunk: pa.DictionaryArray, wanted: pa.Array, rows: Ints | None) -> Flags:
    known = pc.is_in(chunk.dictionary.cast(pa.string()), wanted).to_numpy(zero_copy_only=False)
    known = np.append(known, False)  # of events without a name
    codes = chunk.indices
    codes = codes.fill_null(len(known) - 1) if codes.null_count else codes
    numbers = codes.to_numpy(zero_copy_only=False)
    flags: Flags = known[numbers if rows is None else numbers[rows]]
    return flags
