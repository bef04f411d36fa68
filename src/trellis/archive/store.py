"""How a history lies on disk: plain arrays and Parquet files, and one manifest that names those that count.

    archive/manifest.json                 what it is, and the files with their checksums
    archive/leaves-000001.npy             for each leaf: first position, number of events, first and last time
    archive/tile-00000-000001.npy         the filters of 4,096 leaves, a bitmap over the leaves for each bit
    archive/tree-000001.npy               the nodes above the leaves that an append made
    archive/events-000001.parquet         the events, in row groups that end where leaves end
    archive/names-000001.arrow            their times and coded names, as they lie in memory; version 2 has none
    archive/held-000001.parquet           the newest events, which have no place before later ones come
    archive/pairs-000001.npy, keys-….parquet   with a key: which keys are in which leaf

An append writes new files beside the old ones and then swaps the manifest in one step; what a killed append leaves
behind is named nowhere and is removed by the next one.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import re
import shutil
import zlib
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from trellis.errors import DataError, UsageError
from trellis.io.durable import kept_file, write_whole

MANIFEST, FORMAT, VERSION = "manifest.json", "trellis archive", 3
READABLE = (2, 3)  # archives of version 2 have no ranges and no values
# The whole of a name that an archive gives: anything else in its directory is somebody's and stays.
OWN = re.compile(
    r"(leaves|tree|pairs)-\d{6,}\.npy|tile-\d{5,}-\d{6,}\.npy|(events|held|keys)-\d{6,}\.parquet"
    r"|events-\d{6,}-[0-9a-f]{32}-\d{6,}\.parquet|names-\d{6,}(-[0-9a-f]{32}-\d{6,})?\.arrow|staged-[0-9a-f]{32}|manifest\.json(\.tmp)?"
)
BEGUN = re.compile(r"staged-[0-9a-f]{32}|manifest\.json\.tmp")  # what a build makes before it has a manifest


class UnreadableError(DataError):
    """A file that the manifest names is not there, cannot be read, or is not as it was written."""


@dataclass
class Manifest:
    """The parameters of an archive, and its files.

    Attributes
    ----------
    schema
        The schema of its events, as Arrow writes it, in base 64.
    time, type, event_id, key
        The columns that tell time, name, id and key.
    capacity, bits, hashes, fan_out
        Events of a leaf, bits of its filter, bits of an item, and children of a node.
    false_positive, names
        The wanted rate, and for how many names in a question.
    events, generation
        How many events have their places, those that were dropped too, and how often the files changed.
    last
        The time of the last event that has its place.
    dropped, shift
        The first position that is kept, and by how much the number of a leaf is larger than its place in the files.
    leaves, tiles, tree
        The files of the leaves, of the filters and of the nodes above them.
    parts
        The files of the events, with the first position and the number of each.
    held, holds
        The file of the newest events, and how many these are.
    pairs, keys, keyless
        The file of pairs of a leaf and a key, that of the keys themselves, and whether there are events without one.
    batches, late
        The last batch that came of each stream, and how many events came too late and were left out.
    tie_breakers
        The columns that tell the order of events of one time.
    ranged, values
        The columns whose ranges leaves have, and those whose values the filters hold with the names.
    checksums, footers
        CRC-32 of each file, and of the footers of the files of events.
    """

    schema: str
    time: str
    type: str
    event_id: str | None
    key: str | None
    capacity: int
    bits: int
    hashes: int
    fan_out: int
    false_positive: float
    names: int
    events: int = 0
    generation: int = 0
    last: int | float | None = None
    dropped: int = 0
    shift: int = 0
    leaves: str = ""
    tiles: list[str] = field(default_factory=list)
    tree: list[str] = field(default_factory=list)
    parts: list[tuple[str, int, int]] = field(default_factory=list)
    held: str = ""
    holds: int = 0
    pairs: str = ""
    keys: str = ""
    keyless: bool = False
    batches: dict[str, int] = field(default_factory=dict)
    late: int = 0
    tie_breakers: list[str] = field(default_factory=list)
    ranged: list[str] = field(default_factory=list)
    values: list[str] = field(default_factory=list)
    checksums: dict[str, int] = field(default_factory=dict)
    footers: dict[str, int] = field(default_factory=dict)

    @property
    def arrow(self) -> pa.Schema:
        """The schema of its events."""
        return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(self.schema)))

    @property
    def order(self) -> tuple[str, str | None, list[str]]:
        """The columns that events are ordered by: time, id, and what breaks ties before the id."""
        return self.time, self.event_id, self.tie_breakers

    def next(self) -> Manifest:
        """Return a copy for the next generation, which may be changed."""
        return replace(
            self, generation=self.generation + 1, tiles=list(self.tiles), tree=list(self.tree), parts=list(self.parts),
            batches=dict(self.batches), checksums=dict(self.checksums), footers=dict(self.footers),
        )  # fmt: skip

    def named(self, what: str, extension: str = "npy") -> str:
        """Return the name of a file of this generation."""
        return f"{what}-{self.generation:06d}.{extension}"

    @property
    def files(self) -> set[str]:
        """All files that count."""
        given = {self.leaves, self.pairs, self.keys, self.held, *self.tiles, *self.tree}
        events = {name for name, _, _ in self.parts}
        return (given | events | {names_file(name) for name in events} & self.checksums.keys()) - {""}


def names_file(name: str) -> str:
    """Return the file of times and names that lies beside a file of events."""
    return "names" + name.removeprefix("events").removesuffix(".parquet") + ".arrow"


def schema_text(schema: pa.Schema) -> str:
    """Return a schema as text."""
    return base64.b64encode(schema.remove_metadata().serialize().to_pybytes()).decode()


def read_manifest(directory: Path) -> Manifest:
    """Return the manifest of an archive; say what is wrong if it is none."""
    path = directory / MANIFEST
    try:
        about = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise DataError(
            f"{directory} is not an archive: it has no {MANIFEST}", "Make one with archive build."
        ) from None
    except (ValueError, OSError) as problem:
        raise DataError(f"{path} cannot be read: {problem}", "The archive is damaged.") from None
    if not isinstance(about, dict) or about.pop("format", None) != FORMAT:
        raise DataError(f"{path} is not of an archive of Trellis")
    version = about.pop("version", None)
    if version not in READABLE:
        raise DataError(
            f"{directory} is an archive of version {version}, and this Trellis reads {READABLE[0]} to {VERSION}",
            "Read it with the Trellis that made it, or build it anew.",
        )
    recorded = about.pop("checksum", None)  # archives that were made before it was kept have none
    if recorded is not None and recorded != zlib.crc32(json.dumps(about).encode()):
        raise DataError(f"{path} is damaged: its checksum is not that of what it says", "Build the archive anew.")
    try:
        about["parts"] = [(name, first, number) for name, first, number in about["parts"]]
        manifest = Manifest(**about)
        roles = (manifest.time, manifest.type, manifest.event_id, manifest.key, *manifest.tie_breakers)
        if not {role for role in roles if role is not None} <= set(manifest.arrow.names):
            raise KeyError
        return manifest
    except (KeyError, TypeError, ValueError, OSError, pa.ArrowException):
        raise DataError(f"{path} is damaged") from None


def swap_manifest(directory: Path, manifest: Manifest) -> None:
    """Make a manifest the one that counts, in one step; of files it names none, the checksum is forgotten."""
    files = manifest.files
    manifest.checksums = {name: value for name, value in manifest.checksums.items() if name in files}
    manifest.footers = {name: value for name, value in manifest.footers.items() if name in files}
    about = asdict(manifest)
    about["checksum"] = zlib.crc32(json.dumps(about).encode())
    write_whole(directory / MANIFEST, json.dumps({"format": FORMAT, "version": VERSION, **about}, indent=1))


@contextmanager
def writing(directory: Path) -> Iterator[None]:
    """Keep other processes from writing to an archive; one that is killed keeps nobody."""
    folder = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise DataError(f"another process writes to {directory}", "Wait for its end.") from None
    finally:
        os.close(folder)


@contextmanager
def making(directory: Path) -> Iterator[None]:
    """Keep a directory for an archive that is being made; if that fails, take away again what was made there."""
    existed = directory.exists()
    directory.mkdir(parents=True, exist_ok=True)
    with writing(directory):
        refuse_taken(directory)
        _remove_all(directory)
        try:
            yield
        except BaseException:
            _remove_all(directory)
            if not existed:
                with suppress(OSError):
                    directory.rmdir()
            raise


def refuse_taken(directory: Path) -> None:
    """Refuse to make an archive where something is; what a killed build left, which never counted, is nothing."""
    if not directory.exists():
        return
    if not directory.is_dir() or not _never_counted(directory, [path.name for path in directory.iterdir()]):
        raise UsageError(f"{directory} exists and is not empty", "Name another directory, or append to the archive.")


def _never_counted(directory: Path, names: Sequence[str]) -> bool:
    """Return whether the files of a directory are those of a build that did not come to its end, if there are any."""
    if MANIFEST not in names:
        return all(map(BEGUN.fullmatch, names))
    return all(map(OWN.fullmatch, names)) and read_manifest(directory).generation == 0


def _remove_all(directory: Path) -> None:
    """Remove the files of an archive, the manifest first: without it the others count for nothing."""
    for path in sorted(directory.iterdir(), key=lambda path: path.name != MANIFEST):
        if OWN.fullmatch(path.name) and not path.is_symlink():
            _remove(path)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()


def remove_unnamed(directory: Path, manifest: Manifest) -> None:
    """Remove files that a killed append, or one before the last, left behind."""
    remove_own(directory, {MANIFEST, *manifest.files})


def remove_own(directory: Path, names: Collection[str] = ()) -> None:
    """Remove the files that have names of an archive, but for `names`, and nothing else."""
    for path in directory.iterdir():
        if path.name not in names and OWN.fullmatch(path.name) and not path.is_symlink():
            _remove(path)


def checksum(path: Path) -> int:
    """Return the CRC-32 of a file."""
    value = 0
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            value = zlib.crc32(block, value)
    return value


def footer_checksum(path: Path) -> int:
    """Return the CRC-32 of the footer of a Parquet file, whose length stands before its last four bytes."""
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - 8))
        length = int.from_bytes(file.read(4), "little") + 8
        file.seek(max(0, size - length))
        return zlib.crc32(file.read(length))


def save_array(directory: Path, name: str, array: np.ndarray, manifest: Manifest) -> None:
    """Write an array as a plain file."""
    with kept_file(directory / name) as file:
        np.lib.format.write_array(file, np.ascontiguousarray(array), allow_pickle=False)
    manifest.checksums[name] = checksum(directory / name)


def save_table(directory: Path, name: str, table: pa.Table, manifest: Manifest, rows: int | None = None) -> None:
    """Write a table as Parquet; `rows`: those of a row group."""
    with kept_file(directory / name) as file:
        pq.write_table(table, file, row_group_size=rows, write_page_checksum=True)
    manifest.checksums[name] = checksum(directory / name)


def size_of(directory: Path, name: str) -> int:
    """Return the bytes of a file."""
    try:
        return (directory / name).stat().st_size
    except OSError as problem:
        raise UnreadableError(f"{directory / name} cannot be read: {problem}", "The archive is damaged.") from None


def load_array(directory: Path, name: str, manifest: Manifest) -> Any:
    """Map an array into memory, if it is as it was written."""
    with _whole(directory, name, manifest) as path:
        return np.load(path, mmap_mode="r", allow_pickle=False)


def load_table(directory: Path, name: str, manifest: Manifest) -> pa.Table:
    """Read a table, if it is as it was written."""
    with _whole(directory, name, manifest) as path:
        return pq.read_table(path)


def load_names(directory: Path, name: str, manifest: Manifest) -> pa.Table | None:
    """Map the times and names of a file of events into memory; None for files of archives that have none."""
    beside = names_file(name)
    if beside not in manifest.checksums:
        return None
    with _whole(directory, beside, manifest) as path:
        return pa.ipc.open_file(pa.memory_map(str(path))).read_all()


def check_events(directory: Path, name: str, manifest: Manifest, small: int) -> pq.FileMetaData:
    """Return the footer of a file of events; a file up to `small` bytes is checked whole, of a large one the footer."""
    path = directory / name
    try:
        if size_of(directory, name) <= small:
            with _whole(directory, name, manifest):
                pass
        elif footer_checksum(path) != manifest.footers.get(name, footer_checksum(path)):
            raise UnreadableError(f"{path} is damaged: its footer is not as it was written", "Build the archive anew.")
        return pq.read_metadata(path)
    except (OSError, pa.ArrowException) as problem:
        raise UnreadableError(f"{path} cannot be read: {problem}", "The archive is damaged.") from None


@contextmanager
def _whole(directory: Path, name: str, manifest: Manifest) -> Iterator[Path]:
    path = directory / name
    try:
        if checksum(path) != manifest.checksums.get(name):
            what = f"{path} is damaged: its checksum is not that of the manifest"
            raise UnreadableError(what, "Build the archive anew.")
        yield path
    except (OSError, ValueError) as problem:
        raise UnreadableError(f"{path} cannot be read: {problem}", "The archive is damaged.") from None
