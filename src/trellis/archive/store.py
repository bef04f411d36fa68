"""How a history lies on disk: plain arrays and Parquet files, and one manifest that names those that count.

    archive/manifest.json                 what it is, and the files with their checksums
    archive/leaves-000001.npy             for each leaf: number of events, first and last time
    archive/tile-00000-000001.npy         the filters of 4,096 leaves, a bitmap over the leaves for each bit
    archive/events-000001.parquet         the events, in row groups that end where leaves end
    archive/pairs-000001.npy, keys-….parquet   with a key: which keys are in which leaf

An append writes new files beside the old ones and then swaps the manifest in one step; what a killed append leaves
behind is named nowhere and is removed by the next one.
"""

from __future__ import annotations

import json
import os
import zlib
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from trellis.errors import DataError

MANIFEST, FORMAT, VERSION = "manifest.json", "trellis archive", 1


@dataclass
class Manifest:
    """What an archive is, and its files.

    Attributes
    ----------
    columns
        The columns of its events and their types, as Arrow names them.
    time, type, event_id
        The columns that tell time, name and id.
    capacity, bits, hashes, fan_out
        Events of a leaf, bits of its filter, bits of an item, and children of a node.
    false_positive, names
        The rate that was asked for, and for how many names in a question.
    events, generation
        How many events there are, and how many appends there were.
    leaves
        The file of the leaves.
    tiles
        The files of the filters.
    parts
        The files of the events, with the first position and the number of each.
    checksums
        CRC-32 of each file.
    key, pairs, keys
        The column of keys, the file of pairs of a leaf and a key, and the file of the keys themselves.
    first
        The first leaf that is kept; those before it were dropped.
    """

    columns: dict[str, str]
    time: str
    type: str
    event_id: str | None
    capacity: int
    bits: int
    hashes: int
    fan_out: int
    false_positive: float
    names: int
    events: int = 0
    generation: int = 0
    leaves: str = ""
    tiles: list[str] = field(default_factory=list)
    parts: list[tuple[str, int, int]] = field(default_factory=list)
    checksums: dict[str, int] = field(default_factory=dict)
    key: str | None = None
    pairs: str = ""
    keys: str = ""
    first: int = 0

    @property
    def files(self) -> set[str]:
        """All files that count."""
        given = {self.leaves, self.pairs, self.keys, *self.tiles, *(name for name, _, _ in self.parts)}
        return given - {""}


def read_manifest(directory: Path) -> Manifest:
    """Return the manifest of an archive; say what is wrong if it is none."""
    path = directory / MANIFEST
    try:
        about = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise DataError(f"{directory} is no archive: it has no {MANIFEST}", "Make one with archive build.") from None
    except (ValueError, OSError) as problem:
        raise DataError(f"{path} cannot be read: {problem}", "The archive is damaged.") from None
    if not isinstance(about, dict) or about.pop("format", None) != FORMAT:
        raise DataError(f"{path} is not of an archive of Trellis")
    version = about.pop("version", None)
    if version != VERSION:
        raise DataError(f"{directory} is an archive of version {version}, and this Trellis reads {VERSION}")
    try:
        about["parts"] = [(name, first, number) for name, first, number in about["parts"]]
        return Manifest(**about)
    except (KeyError, TypeError, ValueError):
        raise DataError(f"{path} is damaged") from None


def swap_manifest(directory: Path, manifest: Manifest) -> None:
    """Make a manifest the one that counts, in one step."""
    hidden = directory / f"{MANIFEST}.tmp"
    with hidden.open("w", encoding="utf-8") as file:
        json.dump({"format": FORMAT, "version": VERSION, **asdict(manifest)}, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    hidden.replace(directory / MANIFEST)


def remove_unnamed(directory: Path, manifest: Manifest) -> None:
    """Remove files that a killed append, or one before the last, left behind."""
    named = {MANIFEST, *manifest.files}
    for path in directory.iterdir():
        if path.name not in named and path.name.startswith(
            ("leaves-", "tile-", "events-", "pairs-", "keys-", MANIFEST)
        ):
            with suppress(OSError):
                path.unlink()


def checksum(path: Path) -> int:
    """Return the CRC-32 of a file."""
    value = 0
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            value = zlib.crc32(block, value)
    return value


def save_array(directory: Path, name: str, array: np.ndarray, manifest: Manifest) -> None:
    """Write an array as a plain file."""
    with (directory / name).open("wb") as file:
        np.lib.format.write_array(file, np.ascontiguousarray(array), allow_pickle=False)
        file.flush()
        os.fsync(file.fileno())
    manifest.checksums[name] = checksum(directory / name)


def load_array(directory: Path, name: str, manifest: Manifest) -> Any:
    """Map an array into memory, if it is as it was written."""
    path = directory / name
    try:
        if checksum(path) != manifest.checksums.get(name):
            raise DataError(f"{path} is damaged: its checksum is not that of the manifest", "Build the archive anew.")
        return np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError) as problem:
        raise DataError(f"{path} cannot be read: {problem}", "The archive is damaged.") from None
