"""How an archive comes to be and grows: new files beside the old ones, then one manifest in place of the other.

Events of the newest time are *held*: others of the same time may still come, and their order is not known before. They
lie in a file of their own, questions see them, and they get their places when later events come.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from trellis.archive.contents import Chunk, Contents, chunk_of
from trellis.archive.events import (
    GROUP,
    Progress,
    check_columns,
    check_key,
    numbers,
    schema_of,
    write_events,
)
from trellis.archive.filters import coded
from trellis.archive.sizing import Size, size_filters, thesis_size
from trellis.archive.store import (
    Manifest,
    checksum,
    footer_checksum,
    names_file,
    refuse_taken,
    remove_unnamed,
    save_array,
    save_table,
    schema_text,
    swap_manifest,
)
from trellis.archive.tree import FilterTree
from trellis.archive.values import check_values, ranged_columns
from trellis.errors import DataError, UsageError
from trellis.kernels.bloom.filters import TILE

SAMPLED = 400  # leaves of which the distinct names are counted
PIECE = 1_000_000  # events of a chunk
MOST_HEIGHT = 12  # levels that a tree may be made for
SEGMENTS = 16  # files of the tree, before they become one


@dataclass(frozen=True)
class ArchivePlan:
    """The parameters of an archive that is to be built: see `Archive.build`."""

    time: str
    type: str
    event_id: str | None = None
    leaf: int = 100
    false_positive: float = 1e-4
    memory: int | None = None
    expected_events: int | None = None
    query_length: int = 3
    fan_out: int = 2
    sizing: str = "sample"
    key: str | None = None
    height: int = 0
    tie_breakers: tuple[str, ...] = ()
    values: tuple[str, ...] = ()

    def check(self, directory: Path, schema: pa.Schema) -> None:
        """Refuse what cannot be."""
        refuse_taken(directory)
        if self.leaf < 1 or self.fan_out < 2 or self.height < 0:
            raise UsageError(
                "a leaf has at least one event, a node at least two children, and a tree no height below 0"
            )
        check_columns(schema.names, time=self.time, type=self.type, event_id=self.event_id, key=self.key)
        for name in self.tie_breakers:
            check_columns(schema.names, ties=name)
        schema_of(schema, self.time, self.type, self.event_id)
        check_key(schema, self.key)
        check_columns(schema.names, **{f"values {i}": name for i, name in enumerate(self.values)})
        check_values(schema, self.values)

    def manifest(self, schema: pa.Schema, events: int, read: Callable[[int, int], pa.Table]) -> Manifest:
        """Return the manifest of an archive without events; `read` gives those between two positions."""
        size = self._size(max(self.expected_events or 0, events, 1), events, read)
        return Manifest(
            schema_text(schema), self.time, self.type, self.event_id, self.key, self.leaf, size.bits, size.hashes,
            self.fan_out, self.false_positive, self.query_length, tie_breakers=list(self.tie_breakers),
            ranged=ranged_columns(schema, (self.time, self.type, self.event_id, self.key)), values=list(self.values),
        )  # fmt: skip

    def _size(self, expected: int, events: int, read: Callable[[int, int], pa.Table]) -> Size:
        if self.sizing == "thesis":
            return thesis_size(expected, self.leaf, self.false_positive, self.query_length, self.memory)
        if self.sizing not in ("sample", "tree"):
            raise UsageError(f"there is no sizing `{self.sizing}`", "It is `sample`, `tree` or `thesis`.")
        distinct = self._distinct(1, events, read)
        if self.sizing == "tree":
            return self._tree_size(expected, distinct, events, read)
        above = self._distinct(self.fan_out**self.height, events, read) if self.height else []
        return size_filters(
            distinct, -(-expected // self.leaf), self.false_positive, self.query_length, self.memory, above
        )

    def _tree_size(self, expected: int, distinct: list[int], events: int, read: Callable[[int, int], pa.Table]) -> Size:
        """Return the size whose nodes make a walk for rare names cheapest: half of the top ones are looked below."""
        leaves, best = -(-expected // self.leaf), (float("inf"), Size(64, 1))
        for height in range(MOST_HEIGHT + 1):
            factor = self.fan_out**height
            if factor > max(1, leaves):
                break
            # A fifth more, so that the nodes that are fuller than most exist too.
            above = [-(-6 * items // 5) for items in self._distinct(factor, events, read)] if height else []
            try:
                size = size_filters(distinct, leaves, self.false_positive, self.query_length, self.memory, above)
            except UsageError:
                if not height:
                    raise
                break  # larger filters do not fit
            cost = leaves / factor * (1.5 if height else 1.0) * size.hashes  # bits that are looked at
            best = min(best, (cost, size), key=lambda one: one[0])
        return best[1]

    def _distinct(self, factor: int, events: int, read: Callable[[int, int], pa.Table]) -> list[int]:
        """Return how many distinct items some blocks of leaves have."""
        size = self.leaf * factor
        number = -(-events // size)
        most = max(1, min(number, SAMPLED // factor if factor > 1 else SAMPLED, number))
        chosen = np.unique(np.linspace(0, max(0, number - 1), most).astype(int)).tolist() if number else []
        sizes = [self._items(read(i * size, min(events, (i + 1) * size))) for i in chosen]
        return sizes or [size * (1 + (self.key is not None) + len(self.values))]

    def _items(self, table: pa.Table) -> int:
        codes, names = coded(table[self.type])
        items = len(np.unique(codes))
        for column in (self.key, *self.values):
            if column is not None:
                others, _ = coded(table[column])
                items += len(np.unique((others + 1) * (len(names) + 1) + codes + 1))
        return items


# --- In this process --------------------------------------------------------------------------------------------


def split_newest(table: pa.Table, time: str, delay: Any) -> tuple[pa.Table, pa.Table]:
    """Return events in order as those that get places and those that are held, `delay` or less behind the last."""
    if not table.num_rows:
        return table, table
    times = numbers(table[time])
    cut = int(np.searchsorted(times, times[-1] - delay, side="left"))
    return table.slice(0, cut), table.slice(cut)


def number_too_late(table: pa.Table, manifest: Manifest, late: str = "error") -> int:
    """Return how many events, in order, would have to stand before some that have places; refuse them on `error`."""
    if not table.num_rows or manifest.last is None:
        return 0
    number = int(np.searchsorted(numbers(table[manifest.time]), manifest.last, side="right"))
    if number and late == "error":
        raise DataError(
            "an event is not later than the last one of the archive that has its place",
            "Append events in the order of their times; those of the newest time may come in several parts.",
        )
    return number


def pieces(table: pa.Table, first: int, manifest: Manifest, progress: Progress) -> Iterator[Chunk]:
    """Yield the chunks of events in order, piece by piece."""
    for at in range(0, table.num_rows, PIECE):
        progress(f"filters: {at:,} of {table.num_rows:,} events")
        yield chunk_of(table.slice(at, PIECE), first + at, manifest)


def settle(
    directory: Path, manifest: Manifest, contents: Contents, tree: FilterTree, settled: pa.Table, held: pa.Table,
    progress: Progress, batch: tuple[str, int] | None = None, late: int = 0,
) -> Manifest:  # fmt: skip
    """Give places to events in order, keep others held, and make this count; return the new manifest."""
    new, first = manifest.next(), manifest.events
    new.late += late
    if batch is not None:
        new.batches[batch[0]] = batch[1]
    parts = []
    if settled.num_rows:
        name = new.named("events", "parquet")
        write_events(settled, directory / name, first, manifest, progress)
        parts = [(name, first, settled.num_rows)]
    return commit(directory, new, contents, tree, pieces(settled, first, manifest, progress), parts, held)


def commit(
    directory: Path, new: Manifest, contents: Contents, tree: FilterTree, chunks: Iterable[Chunk],
    parts: Sequence[tuple[str, int, int]], held: pa.Table,
) -> Manifest:  # fmt: skip
    """Add chunks to the contents, write what changed, and swap the manifest; the events are written already."""
    contents, before, changed = contents.copied(), new.events, set()
    for chunk in chunks:
        changed |= contents.add(chunk)
    for name, _, rows in parts:
        new.checksums[name] = checksum(directory / name)
        new.footers[name] = footer_checksum(directory / name)
        new.checksums[names_file(name)] = checksum(directory / names_file(name))
        new.events += rows
    new.parts += parts
    new.held, new.holds = "", held.num_rows
    if held.num_rows:
        new.held = new.named("held", "parquet")
        save_table(directory, new.held, held, new, GROUP)
    if changed:
        new.last = contents.entries["until"][-1].item()
        write_contents(directory, new, contents, changed)
        nodes = tree.grown(contents.entries, contents.filters, before, new.events)
        if len(nodes):
            if len(new.tree) >= SEGMENTS:
                nodes, new.tree = np.concatenate([tree.nodes, nodes]), []
            new.tree.append(new.named("tree"))
            save_array(directory, new.tree[-1], nodes, new)
    swap_manifest(directory, new)
    remove_unnamed(directory, new)
    return new


def write_contents(directory: Path, new: Manifest, contents: Contents, changed: Iterable[int]) -> None:
    """Write leaves, keys, and the tiles that changed."""
    for tile in sorted(changed):
        name = new.named(f"tile-{tile:05d}")
        used = -(-min(TILE, len(contents.entries) - tile * TILE) // 64)  # words of a slice; the rest is empty
        save_array(directory, name, contents.filters.tiles[tile][:, :used], new)
        new.tiles[tile : tile + 1] = [name]
    new.leaves = new.named("leaves")
    save_array(directory, new.leaves, contents.entries, new)
    if new.key is not None:
        new.pairs, new.keys, new.keyless = new.named("pairs"), new.named("keys", "parquet"), contents.keyless
        save_array(directory, new.pairs, contents.keys.pairs, new)
        save_table(directory, new.keys, pa.table({"key": contents.keys.values}), new)
