"""An output directory with a log of its own: what a batch wrote counts when the log says so, and then once.

    out/part-000000012-0-3f….parquet     results
    out/_windows/part-000000012-0-….parquet
    out/_late/…  out/_bad/…  out/_repeated/…     events that could not be used, if they are asked for
    out/_log/000000012.json              the files of the batch 12, written at last and in one step

A batch that is killed leaves files that no log names. They are removed when the stream goes on; who reads in between
takes only what the log names: `committed_files`, `read_committed`.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as dataset

from trellis.errors import DataError

RESULTS, WINDOWS, LATE, BAD, REPEATED = "results", "windows", "late", "bad", "repeated"
FOLDERS = {RESULTS: "", WINDOWS: "_windows", LATE: "_late", BAD: "_bad", REPEATED: "_repeated"}
LOG = "_log"
FLUSH = "flush"  # in place of a batch: what the end of the input decided
PART = re.compile(r"part-([0-9]+|flush)-.*")


class Outlet:
    """The output of one query."""

    def __init__(self, directory: str | Path) -> None:
        self.directory = Path(directory)

    def prepare(self, kinds: Sequence[str]) -> None:
        """Make the folders, and remove what no log names."""
        try:
            for kind in kinds:
                (self.directory / FOLDERS[kind]).mkdir(parents=True, exist_ok=True)
            (self.directory / LOG).mkdir(exist_ok=True)
            for left in (self.directory / LOG).glob("*.tmp"):
                left.unlink()
            self.remove_uncommitted()
        except OSError as problem:
            raise DataError(
                f"the output {self.directory} cannot be written: {problem.strerror or problem}", "Name a directory."
            ) from None

    def take_back(self) -> None:
        """Take back what the end of an earlier input decided: it was not the end."""
        (self.directory / LOG / f"{FLUSH}.json").unlink(missing_ok=True)
        self.remove_uncommitted(FLUSH)

    def remove_uncommitted(self, batch: str | None = None) -> None:
        """Remove files that no log names, of a batch or of all."""
        known = {(kind, name) for entry in self.entries() for kind, names in entry["files"].items() for name in names}
        for kind, folder in FOLDERS.items():
            with suppress(FileNotFoundError):
                for name in os.listdir(self.directory / folder):
                    part = PART.fullmatch(name)
                    if part and (batch is None or part[1] == batch) and (kind, name) not in known:
                        (self.directory / folder / name).unlink(missing_ok=True)

    def has(self, batch: str) -> bool:
        """Return whether a batch is in the log."""
        return (self.directory / LOG / f"{batch}.json").exists()

    def commit(self, batch: str, files: Mapping[str, Sequence[str]], numbers: Mapping[str, int]) -> None:
        """Put a batch into the log, at once and for good."""
        path = self.directory / LOG / f"{batch}.json"
        entry = {"batch": batch, "files": {kind: sorted(names) for kind, names in files.items()}, "rows": dict(numbers)}
        hidden = path.with_suffix(".tmp")
        with hidden.open("w", encoding="utf-8") as file:
            json.dump(entry, file)
            file.flush()
            os.fsync(file.fileno())
        hidden.replace(path)
        with suppress(OSError):
            folder = os.open(path.parent, os.O_RDONLY)
            os.fsync(folder)
            os.close(folder)

    def last_batch(self) -> int | None:
        """Return the last batch that is in the log."""
        numbers = [int(entry["batch"]) for entry in self.entries() if entry["batch"] != FLUSH]
        return max(numbers, default=None)

    def entries(self) -> list[dict[str, Any]]:
        """Return the log, in the order of batches."""
        folder = self.directory / LOG
        names = sorted(path.name for path in folder.glob("*.json")) if folder.is_dir() else []
        return [json.loads((folder / name).read_text(encoding="utf-8")) for name in names]


def batch_name(number: int) -> str:
    """Return a batch as it is named in the log and in files."""
    return f"{number:09d}"


def committed_files(directory: str | Path, kind: str = RESULTS) -> list[Path]:
    """Return the files of an output that count: `results`, `windows`, `late`, `bad` or `repeated`."""
    outlet = Outlet(directory)
    if not (outlet.directory / LOG).is_dir():
        raise DataError(f"{directory} is no output of a stream: it has no `{LOG}`")
    return [
        outlet.directory / FOLDERS[kind] / name for entry in outlet.entries() for name in entry["files"].get(kind, [])
    ]


def read_committed(directory: str | Path, kind: str = RESULTS) -> pa.Table:
    """Return all rows of an output that count, in this process; those of CSV and JSON as these formats tell them."""
    files = committed_files(directory, kind)
    if not files:
        return pa.table({})
    if all(path.suffix == ".parquet" for path in files):
        return dataset.dataset(files, format="parquet").to_table()
    from trellis.io.read import read_table

    return read_table(files)
