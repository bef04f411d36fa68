"""The output directory of a standing query: what a batch wrote counts when its commit log says so, and then once.

    out/part-000000012-0-3f….parquet     results
    out/_windows/part-000000012-0-….parquet
    out/_late/…  out/_bad/…  out/_repeated/…     events that could not be used, if the user wants them
    out/_log/…                           the commit log: the files of each batch (see `commit_log`)
    out/_log/stream-id                   the stream whose output it is, which its checkpoint knows too
    out/_log/lock                        held by the process that writes

A batch that is killed leaves files that no log names. They are removed when the stream goes on; who reads in between
takes only what the log names: `committed_files`, `read_committed`.
"""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as dataset

from trellis.errors import DataError, UsageError
from trellis.io.durable import write_whole
from trellis.streams.commit_log import FLUSH, CommitLog

RESULTS, WINDOWS, LATE, BAD, REPEATED, TIMEOUTS = "results", "windows", "late", "bad", "repeated", "timeouts"
FOLDERS = {RESULTS: ""} | {kind: f"_{kind}" for kind in (WINDOWS, LATE, BAD, REPEATED, TIMEOUTS)}
LOG, IDENTITY = "_log", "stream-id"
PART = re.compile(r"part-([0-9]{9,}|flush)-[0-9]+(?:-[0-9a-f]+)?\.(?:parquet|csv|json|txt)")  # and no file of Spark's


class StreamOutput:
    """The output of one standing query."""

    def __init__(self, directory: str | Path) -> None:
        self.directory = Path(directory)
        self.log = CommitLog(self.directory / LOG)

    # --- At the start -------------------------------------------------------------------------------------------

    def check_new(self) -> None:
        """Refuse to begin with an output that has results of a stream already."""
        if not self.log.is_empty():
            raise UsageError(
                f"{self.directory} is the output of another stream",
                "Name another directory, or the checkpoint that belongs to it.",
            )

    def check_known(self, checkpoint: Path, identity: str | None) -> None:
        """Refuse to go on without what a stream has written, of which its checkpoint knows that it is done.

        `identity` is what the checkpoint knows the output by; None if it is of a version that did not write that down.
        """
        what = None
        if not self.log.directory.is_dir():
            what = f"the output {self.directory} of the checkpoint {checkpoint} is not there any more"
        elif identity is not None and self._identity() != identity:
            what = f"{self.directory} is not the output that the checkpoint {checkpoint} goes with"
        if what is not None:
            raise UsageError(
                f"{what}, and the results that it had would be missing",
                "Put it back; or begin anew, with another checkpoint and another output.",
            )

    def _identity(self) -> str | None:
        try:
            return (self.log.directory / IDENTITY).read_text(encoding="utf-8")
        except OSError:
            return None

    def prepare(self, kinds: Iterable[str]) -> str:
        """Make the folders, remove what no log names, and return what the output is known by."""
        try:
            for kind in kinds:
                (self.directory / FOLDERS[kind]).mkdir(parents=True, exist_ok=True)
            self.log.open()
            self._remove_uncommitted()
            identity = self._identity()
            if identity is None:
                identity = uuid.uuid4().hex
                write_whole(self.log.directory / IDENTITY, identity)
            return identity
        except OSError as problem:
            raise DataError(
                f"the output {self.directory} cannot be written: {problem.strerror or problem}", "Name a directory."
            ) from None

    def _remove_uncommitted(self) -> None:
        """Remove files that no log names; refuse to go on if files are not there that it names."""
        named = {path for entry in self.log.one_by_one() for path in _places(entry["files"])}
        there = set(self._parts())
        missing = sorted(named - there)
        if missing:
            raise DataError(
                f"the log of {self.directory} names {missing[0]}, which is not there"
                + (f", and {len(missing) - 1} other files" if missing[1:] else ""),
                "Put it back; or begin anew, with another checkpoint and another output.",
            )
        for place in there - named:
            (self.directory / place).unlink(missing_ok=True)

    def _parts(self) -> Iterator[str]:
        for folder in FOLDERS.values():
            with suppress(FileNotFoundError):
                for name in os.listdir(self.directory / folder):
                    if PART.fullmatch(name):
                        yield os.path.join(folder, name)

    def _paths(self, files: Mapping[str, Sequence[str]]) -> list[Path]:
        return [self.directory / place for place in _places(files)]

    # --- Batches ------------------------------------------------------------------------------------------------

    def take_back(self) -> None:
        """Take back what the end of an earlier input decided: it was not the end."""
        entry = self.log.remove(FLUSH)
        if entry is not None:
            self.discard(entry["files"])

    def has(self, batch: str) -> bool:
        """Return whether a batch is in the log."""
        return self.log.has(batch)

    def discard(self, files: Mapping[str, Sequence[str]]) -> None:
        """Remove files of a batch that do not count: of each kind the names."""
        for path in self._paths(files):
            path.unlink(missing_ok=True)

    def commit(self, batch: str, files: Mapping[str, Sequence[str]], numbers: Mapping[str, int]) -> None:
        """Have a batch count; who wrote its files has synced them."""
        self.log.commit(batch, files, numbers, {path.parent for path in self._paths(files)})

    def last_batch(self) -> int | None:
        """Return the last batch that is in the log."""
        entry = self.log.newest()
        return None if entry is None else int(entry["batch"])


def _places(files: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Yield where files of each kind lie in the output."""
    return (os.path.join(FOLDERS[kind], name) for kind, names in files.items() for name in names)


def batch_name(number: int) -> str:
    """Return a batch as it is named in the log and in files."""
    return f"{number:09d}"


def check_query_names(names: Iterable[str]) -> None:
    """Refuse names of queries that cannot be those of their output directories."""
    taken: dict[str, str] = {}
    reserved = {LOG, *FOLDERS.values()} - {""}
    for name in names:
        folded = name.casefold()
        if folded in reserved or PART.fullmatch(folded):
            raise UsageError(
                f"a query cannot be called `{name}`: an output has a directory or files of that name",
                "Rename its file.",
            )
        if name in ("", ".", "..") or "/" in name or "\\" in name or "\0" in name:
            raise UsageError(f"a query cannot be called `{name}`: that is not the name of a directory", "Rename it.")
        if folded in taken:
            both = f"two queries are called `{name}`"
            if taken[folded] != name:
                both = f"the queries `{taken[folded]}` and `{name}` differ in case only"
            raise UsageError(both, "Rename one of the files.")
        taken[folded] = name


def committed_files(directory: str | Path, kind: str = RESULTS) -> list[Path]:
    """Return the files of an output that count: `results`, `windows`, `late`, `bad`, `repeated` or `timeouts`."""
    output = StreamOutput(directory)
    if not output.log.directory.is_dir():
        raise DataError(f"{directory} is not the output of a stream: it has no `{LOG}`")
    folder = output.directory / FOLDERS[kind]
    return [folder / name for entry in output.log.entries() for name in entry["files"].get(kind, [])]


def read_committed(directory: str | Path, kind: str = RESULTS) -> pa.Table:
    """Return all rows of an output that count, in this process; those of CSV and JSON as these formats tell them."""
    files = committed_files(directory, kind)
    if not files:
        return pa.table({})
    if all(path.suffix == ".parquet" for path in files):
        return dataset.dataset(files, format="parquet").to_table()
    from trellis.io.read import read_table

    return read_table(files)
