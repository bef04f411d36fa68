"""An archive as it lies on disk at one moment: what is read of it, when it is first asked for, and what it is.

A writer puts new files beside the old ones, swaps the manifest and removes the files that it names no more. What a
reader has opened by then stays as it is; what it has not, it opens of the manifest that counts now.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from trellis.archive.asking import Asker
from trellis.archive.contents import Contents, chunk_of
from trellis.archive.filters import Filters, whole_tile
from trellis.archive.keys import Keys
from trellis.archive.leaves import Leaves
from trellis.archive.sizing import expected_rate
from trellis.archive.store import Manifest, UnreadableError, load_array, load_table, read_manifest, size_of
from trellis.archive.tree import Tree, levels_of, node_type
from trellis.errors import DataError
from trellis.language.schema import Kind

TRIES = 1000  # times that an archive may change under a question
T = TypeVar("T")


class Kept:
    """What an archive keeps, as one manifest tells it; it never changes.

    Parameters
    ----------
    directory
        Where it lies.
    manifest
        What names its files.
    checked
        Files of events that are as they were written.
    """

    def __init__(self, directory: Path, manifest: Manifest, checked: set[str] | None = None) -> None:
        self.directory, self.manifest = directory, manifest
        self.checked = set() if checked is None else checked

    @cached_property
    def stored(self) -> Contents:
        """What is known of the events that have their places, mapped into memory."""
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
            contents.keys = Keys(values, load_array(self.directory, manifest.pairs, manifest))
            contents.keyless = manifest.keyless
        return contents

    @cached_property
    def held(self) -> pa.Table:
        """The newest events, which have no places before later ones come."""
        if not self.manifest.held:
            return self.manifest.arrow.empty_table()
        return load_table(self.directory, self.manifest.held, self.manifest)

    @cached_property
    def tree(self) -> Tree:
        """The nodes above the leaves."""
        manifest = self.manifest
        segments = [load_array(self.directory, name, manifest) for name in manifest.tree]
        none = np.zeros(0, node_type(manifest.bits, self.stored.entries["since"].dtype))
        return Tree(manifest.capacity, manifest.fan_out, np.concatenate(segments) if segments else none)

    @cached_property
    def asker(self) -> Asker:
        """What answers questions, over all events."""
        contents = self.stored
        if self.held.num_rows:
            contents = contents.copied()
            contents.add(chunk_of(self.held, self.manifest.events, self.manifest))
        return Asker(self.manifest, contents)

    def __len__(self) -> int:
        return self.manifest.events + self.manifest.holds - self.manifest.dropped

    def info(self) -> dict[str, Any]:
        """Return size, bytes an event, height of the tree, density of the filters and the expected rate."""
        manifest, contents = self.manifest, self.asker.contents
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
        return self.asker.times(np.asarray(numbers))[0].as_py() if len(numbers) else None


class Current:
    """What an archive keeps now, or kept when it was last looked at."""

    def __init__(self, directory: str | Path) -> None:
        self.directory = Path(directory)
        self._kept = Kept(self.directory, read_manifest(self.directory))

    def _use(self, manifest: Manifest) -> None:
        """Go on with a manifest that counts; who has begun with another one ends with that."""
        self._kept = Kept(self.directory, manifest, self._kept.checked)

    def _asked(self, question: Callable[[Kept], T]) -> T:
        """Return what a question has for an answer: of what is open or, if that is gone, of what counts now.

        Raises
        ------
        DataError
            If a file cannot be read that the manifest names.
        """
        for _ in range(TRIES):
            kept = self._kept
            try:
                return question(kept)
            except UnreadableError:
                now = read_manifest(self.directory)
                if now == kept.manifest:
                    raise
                self._use(now)
        raise DataError(
            f"{self.directory} has changed {TRIES} times while it was read", "Ask again when less is written to it."
        )

    @property
    def manifest(self) -> Manifest:
        """What the archive is, and its files."""
        return self._kept.manifest

    @property
    def stored(self) -> Contents:
        """What is known of the events that have their places."""
        return self._asked(lambda kept: kept.stored)

    @property
    def held(self) -> pa.Table:
        """The newest events, which have no places before later ones come."""
        return self._asked(lambda kept: kept.held)

    @property
    def tree(self) -> Tree:
        """The nodes above the leaves."""
        return self._asked(lambda kept: kept.tree)

    @property
    def asker(self) -> Asker:
        """What answers questions, over all events."""
        return self._asked(lambda kept: kept.asker)

    @property
    def leaves(self) -> Leaves:
        """The leaves, as questions see them."""
        return self.asker.leaves

    @property
    def filters(self) -> Filters:
        """The filters of the leaves, as questions see them."""
        return self.asker.contents.filters

    @property
    def texts(self) -> set[str]:
        """The columns of the events that are text."""
        return {name for name, type_ in self.asker.schema.tables[0].columns.items() if type_.kind is Kind.STRING}

    def __len__(self) -> int:
        return len(self._kept)

    def info(self) -> dict[str, Any]:
        """Return size, bytes an event, height of the tree, density of the filters and the expected rate."""
        return self._asked(Kept.info)
