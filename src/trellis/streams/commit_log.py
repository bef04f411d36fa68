"""The commit log of an output: an entry for each batch that counts; old entries are joined, so no batch costs more.

    _log/000000000-000001207.jsonl     a segment: the entries of these batches, one in a line
    _log/000001208.json …              the newest entries, each in a file that is swapped in in one step
    _log/flush.json                    what the end of the input decided

A commit writes one small file. When there are `segment + newest` of them, the oldest `segment` are joined into a
segment, which is never written again; so an entry is written twice in all, however long the log becomes. Nothing of the
log is read for a batch. A segment is there before its entries are removed, and who meets both takes the segment.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trellis.errors import DataError
from trellis.io.durable import sync_directory, write_whole
from trellis.properties import cached_property

FLUSH = "flush"  # in place of a batch: what the end of the input decided
OVERTAKEN = 100  # times that a reader looks again because entries were joined in between
_ENTRY = re.compile(r"([0-9]+|flush)\.json")
_SEGMENT = re.compile(r"([0-9]+)-([0-9]+)\.jsonl")

Entry = dict[str, Any]


@dataclass
class _Names:
    """The names in a log: segments by their first and last batch, and batches with files of their own."""

    segments: list[tuple[str, str]]
    single: list[str]


class CommitLog:
    """The log in a directory. One process writes to it; others may read meanwhile.

    A segment joins so many entries, and the newest ones stay by themselves.
    """

    def __init__(self, directory: Path, segment: int = 1000, newest: int = 100) -> None:
        self.directory, self.segment_size, self._newest = directory, segment, newest

    @cached_property
    def _names(self) -> _Names:
        """The names in the log, which the one process that writes looks up once."""
        return self._listed()

    def _listed(self) -> _Names:
        names = sorted(path.name for path in self.directory.iterdir()) if self.directory.is_dir() else []
        segments = [(match[1], match[2]) for name in names if (match := _SEGMENT.fullmatch(name))]
        single = [match[1] for name in names if (match := _ENTRY.fullmatch(name))]
        joined = _last(segments)
        return _Names(segments, [batch for batch in single if batch > joined])

    # --- Writing ------------------------------------------------------------------------------------------------

    def open(self) -> None:
        """Make the directory, and remove what a killed process left of a step that did not come to its end."""
        self.directory.mkdir(parents=True, exist_ok=True)
        self.__dict__.pop("_names", None)
        joined = _last(self._names.segments)
        for path in list(self.directory.iterdir()):
            entry = _ENTRY.fullmatch(path.name)
            if path.suffix == ".tmp" or (entry and entry[1] <= joined):
                path.unlink()

    def has(self, batch: str) -> bool:
        """Return whether a batch is in the log."""
        if self._path(batch).exists():
            return True
        around = [one for one in self._names.segments if one[0] <= batch <= one[1]]
        return any(entry["batch"] == batch for one in around for entry in self._segment(one))

    def commit(
        self, batch: str, files: Mapping[str, Sequence[str]], numbers: Mapping[str, int],
        folders: Collection[Path] = (),
    ) -> None:  # fmt: skip
        """Put a batch into the log, at once and for good; the names in `folders`, those of its files, before."""
        entry = {"batch": batch, "files": {kind: sorted(names) for kind, names in files.items()}, "rows": dict(numbers)}
        names = self._names
        write_whole(self._path(batch), json.dumps(entry), folders)
        if batch == FLUSH:
            return
        names.single = [*(one for one in names.single if one not in (batch, FLUSH)), batch]
        if len(names.single) >= self.segment_size + self._newest:
            self._join(names.single[: self.segment_size])

    def _join(self, batches: list[str]) -> None:
        """Make a segment of entries."""
        texts = [self._path(batch).read_text(encoding="utf-8") for batch in batches]
        one = (batches[0], batches[-1])
        write_whole(self._segment_path(one), "".join(f"{text}\n" for text in texts))
        self._names.segments.append(one)
        self._names.single = self._names.single[len(batches) :]
        for batch in batches:
            self._path(batch).unlink()
        sync_directory(self.directory)

    def remove(self, batch: str) -> Entry | None:
        """Take an entry that has a file of its own out of the log, and return it."""
        path = self._path(batch)
        if not path.exists():
            return None
        entry = _read_entry(path)
        path.unlink()
        sync_directory(self.directory)
        return entry

    # --- Reading ------------------------------------------------------------------------------------------------

    def newest(self) -> Entry | None:
        """Return the entry of the last batch; for the process that writes."""
        single = [batch for batch in self._names.single if batch != FLUSH]
        if single:
            return _read_entry(self._path(single[-1]))
        return self._segment(self._names.segments[-1])[-1] if self._names.segments else None

    def entries(self) -> list[Entry]:
        """Return the log, in the order of batches, as it was at one moment."""
        for _ in range(OVERTAKEN):
            try:
                return list(self.one_by_one())
            except FileNotFoundError:  # joined, or taken back, since it was looked at
                continue
        raise DataError(f"the log {self.directory} changes faster than it is read")

    def one_by_one(self) -> Iterator[Entry]:
        """Yield the entries in the order of batches; for the process that writes, as others may be overtaken."""
        names = self._listed()
        for one in names.segments:
            yield from self._segment(one)
        for batch in names.single:
            yield _read_entry(self._path(batch))

    def is_empty(self) -> bool:
        """Return whether no batch is in the log; or there is no log."""
        names = self._listed()
        return not names.segments and not names.single

    def _segment(self, one: tuple[str, str]) -> list[Entry]:
        return _read_lines(self._segment_path(one))

    def _path(self, batch: str) -> Path:
        return self.directory / f"{batch}.json"

    def _segment_path(self, one: tuple[str, str]) -> Path:
        return self.directory / f"{one[0]}-{one[1]}.jsonl"


def _last(segments: list[tuple[str, str]]) -> str:
    """Return the last batch that is in a segment; a text before all batches if there is none."""
    return max((last for _, last in segments), default="")


def _read_entry(path: Path) -> Entry:
    return _read_lines(path)[-1]


def _read_lines(path: Path) -> list[Entry]:
    text = path.read_text(encoding="utf-8")
    try:
        entries = [json.loads(line) for line in text.splitlines()]
        if entries and all({"batch", "files"} <= entry.keys() for entry in entries):
            return entries
    except (ValueError, AttributeError):
        pass
    raise DataError(f"{path} cannot be read: it is damaged", "Begin anew, with another output and checkpoint.")
