"""The archive reader: snapshots of an archive on disk, of which each part is read when it is first needed.

A writer puts new files beside the old ones, swaps the manifest and removes the files that it no longer names. Files
that a reader has opened by then stay as they are; the others are opened by the manifest that counts now.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from trellis.archive.answers import Answerer
from trellis.archive.contents import Contents, chunk_of
from trellis.archive.filters import Filters, whole_tile
from trellis.archive.keys import LeafKeys
from trellis.archive.leaves import Leaves
from trellis.archive.reading import EventFiles
from trellis.archive.sizing import expected_rate
from trellis.archive.store import Manifest, UnreadableError, load_array, load_table, read_manifest, size_of
from trellis.archive.tree import FilterTree, levels_of, node_type
from trellis.errors import DataError
from trellis.language.schema import Kind
from trellis.properties import cached_property

TRIES = 1000  # times that an archive may change while a question is answered
T = TypeVar("T")


class ArchiveSnapshot:
    """The archive that one manifest describes; it never changes.

    Parameters
    ----------
    directory
        Where it lies.
    manifest
        Names its files.
    files
        Files of events that are as they were written.
    """

    def __init__(self, directory: Path, manifest: Manifest, files: EventFiles | None = None) -> None:
        self.directory, self.manifest = directory, manifest
        self.files = EventFiles() if files is None else files

    @cached_property
    def stored(self) -> Contents:
        """The contents of the events that have their places, mapped into memory."""
        manifest, contents = (
            self.manifest,
            Contents.none(self.manifest.capacity, self.manifest.bits, self.manifest.hashes),
        )
        if manifest.leaves:
            contents.entries = load_array(self.directory, manifest.leaves, manifest)
        tiles = [whole_tile(load_array(self.directory, name, manifest)) for name in manifest.tiles]
        contents.filters = Filters(manifest.bits, manifest.hashes, tiles, len(contents.entries))
        if manifest.pairs:
            values = load_table(self.directory, manifest.keys, manifest)["key"].combine_chunks()
            contents.keys = LeafKeys(values, load_array(self.directory, manifest.pairs, manifest))
            contents.keyless = manifest.keyless
        return contents

    @cached_property
    def held(self) -> pa.Table:
        """The newest events, which have no places before later ones come."""
        if not self.manifest.held:
            return self.manifest.arrow.empty_table()
        return load_table(self.directory, self.manifest.held, self.manifest)

    @cached_property
    def tree(self) -> FilterTree:
        """The nodes above the leaves."""
        manifest = self.manifest
        segments = [load_array(self.directory, name, manifest) for name in manifest.tree]
        none = np.zeros(0, node_type(manifest.bits, self.stored.entries["since"].dtype))
        return FilterTree(manifest.capacity, manifest.fan_out, np.concatenate(segments) if segments else none)

    @cached_property
    def answerer(self) -> Answerer:
        """Answers questions over all events."""
        contents = self.stored
        if self.held.num_rows:
            contents = contents.copied()
            contents.add(chunk_of(self.held, self.manifest.events, self.manifest))
        return Answerer(self.manifest, contents, lambda: self.tree)

    def __len__(self) -> int:
        return self.manifest.events + self.manifest.holds - self.manifest.dropped

    def info(self) -> dict[str, Any]:
        """Return size, bytes per event, height of the tree, density of the filters and the expected rate."""
        manifest, contents = self.manifest, self.answerer.contents
        entries, densities = contents.entries, contents.filters.densities
        of_leaves = manifest.bits * len(entries) / 8
        return {
            "events": len(self),
            "dropped": manifest.dropped,
            "held": manifest.holds,
            "late": manifest.late,
            "leaves": len(entries),
            "coarse": int((levels_of(entries, manifest.capacity, manifest.fan_out) > 0).sum()),
            "events_a_leaf": manifest.capacity,
            "bits": manifest.bits,
            "hashes": manifest.hashes,
            "filter_bytes": self._bytes(manifest.tiles),
            "filter_bytes_an_event": of_leaves / max(1, len(self)),
            "tree_bytes": self._bytes(manifest.tree),
            "event_bytes": self._bytes([*(name for name, _, _ in manifest.parts), manifest.held]),
            "fan_out": manifest.fan_out,
            "height": self.tree.height,
            "top_nodes": self.tree.tops(entries),
            "density": float(densities.mean()) if len(densities) else 0.0,
            "asked_rate": manifest.false_positive,
            "expected_rate": expected_rate(densities, manifest.hashes, manifest.names),
            "since": self._moment(entries["since"][:1]),
            "until": self._moment(entries["until"][-1:]),
        }

    def _bytes(self, names: list[str]) -> int:
        return sum(size_of(self.directory, name) for name in names if name)

    def _moment(self, numbers: np.ndarray) -> Any:
        return self.answerer.times(np.asarray(numbers))[0].as_py() if len(numbers) else None


class ArchiveReader:
    """Reads an archive by its current manifest, or by the one that was current when it was last read."""

    def __init__(self, directory: str | Path, files: EventFiles | None = None) -> None:
        self.directory = Path(directory)
        self._snapshot = ArchiveSnapshot(self.directory, read_manifest(self.directory), files)

    def _use(self, manifest: Manifest) -> None:
        """Go on with a newer manifest; a question that began with another one ends with that."""
        self._snapshot = ArchiveSnapshot(self.directory, manifest, self._snapshot.files)

    def _answer(self, question: Callable[[ArchiveSnapshot], T]) -> T:
        """Answer a question by the open snapshot or, if its files are gone, by the current one.

        Raises
        ------
        DataError
            If a file cannot be read that the manifest names.
        """
        for _ in range(TRIES):
            snapshot = self._snapshot
            try:
                return question(snapshot)
            except UnreadableError:
                now = read_manifest(self.directory)
                if now == snapshot.manifest:
                    raise
                self._use(now)
        raise DataError(
            f"{self.directory} has changed {TRIES} times while it was read", "Ask again when less is written to it."
        )

    @property
    def manifest(self) -> Manifest:
        """The manifest: the parameters of the archive, and its files."""
        return self._snapshot.manifest

    @property
    def stored(self) -> Contents:
        """The contents of the events that have their places."""
        return self._answer(lambda snapshot: snapshot.stored)

    @property
    def held(self) -> pa.Table:
        """The newest events, which have no places before later ones come."""
        return self._answer(lambda snapshot: snapshot.held)

    @property
    def tree(self) -> FilterTree:
        """The nodes above the leaves."""
        return self._answer(lambda snapshot: snapshot.tree)

    @property
    def answerer(self) -> Answerer:
        """Answers questions over all events."""
        return self._answer(lambda snapshot: snapshot.answerer)

    @property
    def leaves(self) -> Leaves:
        """The leaves, as questions see them."""
        return self.answerer.leaves

    @property
    def filters(self) -> Filters:
        """The filters of the leaves, as questions see them."""
        return self.answerer.contents.filters

    @property
    def texts(self) -> set[str]:
        """The columns of the events that are text."""
        return {name for name, type_ in self.answerer.schema.tables[0].columns.items() if type_.kind is Kind.STRING}

    def __len__(self) -> int:
        return len(self._snapshot)

    def info(self) -> dict[str, Any]:
        """Return size, bytes per event, height of the tree, density of the filters and the expected rate."""
        return self._answer(ArchiveSnapshot.info)
