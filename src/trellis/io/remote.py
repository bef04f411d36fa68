"""Outputs in storage without renames, such as S3: files under names that no other has, and a list of those that count.

    s3://bucket/out/_trellis.json              the list: what counts is what it says, from one moment to the next
    s3://bucket/out/part-00000-RUN-TASK.parquet

Whoever writes first puts its run on the list, so that what it leaves behind when it is killed is known as Trellis's
own; the next claim removes that. The end of a run is one put of the list, then what does not count any more is removed.
Such storage has no locks: a list that somebody else has changed since the claim is not replaced.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import fs

from trellis.errors import DataError, UsageError
from trellis.io.outputs import FORMAT, LIST, PLACE, VERSION, OutputTarget, parse_list

SAME = {"s3a": "s3", "s3n": "s3", "gcs": "gs", "abfss": "abfs"}  # Hadoop's names, and pyarrow's for the same
KNOWN = ("s3", "gs", "hdfs", "viewfs", "abfs")


def shown(path: str) -> str:
    """Return an address without keys and options."""
    return re.sub(r"//[^/@]*@", "//", path.partition("?")[0])


def storage_of(path: str) -> tuple[fs.FileSystem, str]:
    """Return the file system of an address, and the directory there.

    Raises
    ------
    UsageError
        If pyarrow has none, or it cannot be opened.
    """
    scheme, _, rest = path.partition("://")
    scheme = SAME.get(scheme, scheme)
    if scheme not in KNOWN:
        raise UsageError(
            f"the output `{shown(path)}` is in storage that Trellis cannot write: it knows {', '.join(KNOWN)}",
            "Write there with trends.to_spark().write.",
        )
    try:
        system, directory = fs.FileSystem.from_uri(f"{scheme}://{rest}")
    except (pa.ArrowException, OSError, NotImplementedError) as problem:
        raise UsageError(
            f"the output `{shown(path)}` cannot be opened: {_short(problem)}", "Check the address."
        ) from None
    if not directory.strip("/"):
        raise UsageError(f"the output `{shown(path)}` has no name", "Name a directory in it.")
    return system, directory.rstrip("/")


class RemoteTarget(OutputTarget):
    """An output in storage elsewhere, which this process is about to write; made by `claimed`."""

    def __init__(self, path: PLACE, overwrite: bool, inputs: Iterable[PLACE]) -> None:
        self.path, self.is_file, self.overwrite = os.fspath(path), False, overwrite
        self.run = secrets.token_hex(8)
        self._system, self._directory = storage_of(self.path)
        for given in inputs:
            _check_apart(self.path, os.fspath(given))
        with self._failures_explained():
            self._before = self._list()
            self._check()
            self._put(self._counted, [self.run, *self._runs])
            self._mine = self._list()

    @contextmanager
    def _failures_explained(self) -> Iterator[None]:
        try:
            yield
        except (OSError, pa.ArrowException) as problem:
            raise DataError(f"the output `{shown(self.path)}` cannot be written: {_short(problem)}") from None

    @property
    def _counted(self) -> dict[str, int]:
        return dict((self._before or {}).get("files", {}))

    @property
    def _runs(self) -> list[str]:
        return list((self._before or {}).get("runs", ()))

    def _list(self) -> dict[str, Any] | None:
        """Return the list of the output, if there is one."""
        where = f"{self._directory}/{LIST}"
        if self._system.get_file_info(where).type is fs.FileType.NotFound:
            return None
        with self._system.open_input_stream(where) as stream:
            return parse_list(stream.read(), f"{shown(self.path)}/{LIST}")

    def _put(self, files: Mapping[str, int], runs: Iterable[str]) -> None:
        """Put the list there, in one step."""
        about = {"format": FORMAT, "version": VERSION, "files": dict(files), "others": [], "runs": list(runs)}
        self._system.create_dir(self._directory, recursive=True)
        with self._system.open_output_stream(f"{self._directory}/{LIST}") as stream:
            stream.write(json.dumps(about, indent=1).encode())

    def _there(self) -> dict[str, int]:
        """Return the names and sizes of all that is there, but for the list."""
        chosen = fs.FileSelector(self._directory, allow_not_found=True, recursive=True)
        start = len(self._directory) + 1
        files = [info for info in self._system.get_file_info(chosen) if info.type is fs.FileType.File]
        return {info.path[start:]: info.size for info in files if info.path[start:] != LIST}

    def _check(self) -> None:
        """Refuse an output that may not be replaced, or holds what Trellis did not write; remove what a run left."""
        there, named = self._there(), f"the output `{shown(self.path)}`"
        if (self._counted or (there and self._before is None)) and not self.overwrite:
            raise UsageError(f"{named} exists", "Choose another one, or replace it with overwrite=True or --overwrite.")
        for name, size in there.items():
            listed = self._counted.get(name)
            if listed is None and not any(f"-{run}-" in name for run in self._runs):
                raise UsageError(
                    f"{named} holds `{name}`, which Trellis did not write, and is not replaced",
                    "Choose another one, or move that elsewhere.",
                )
            if listed not in (None, size):
                raise UsageError(
                    f"{named} holds `{name}`, which was changed since Trellis wrote it, and is not replaced",
                    "Choose another one, or move that elsewhere.",
                )
        self._remove(set(there) - set(self._counted))

    def _remove(self, names: Iterable[str]) -> None:
        for name in names:
            with suppress(FileNotFoundError):
                self._system.delete_file(f"{self._directory}/{name}")

    def commit(self, names: Iterable[str]) -> None:
        """Have these files, which are there, be the output; remove all others that Trellis wrote."""
        with self._failures_explained():
            there = self._there()
            if self._list() != self._mine:
                raise DataError(
                    f"the output `{shown(self.path)}` was written by somebody else in the meantime", "Run it again."
                )
            files = {name: there[name] for name in names}
            self._put(files, [self.run, *self._runs])
            self._before = self._mine = {"files": files, "runs": [self.run, *self._runs]}
            self._remove(name for name in there if name not in files)

    def name_of(self, place: int, format: str) -> str:
        """Return a new name for a file."""
        return f"part-{place:05d}-{self.run}-{secrets.token_hex(4)}.{format}"

    @contextmanager
    def replacing(self) -> Iterator[Path]:
        """Give a directory of this machine to write into; its files are sent when all went well."""
        with tempfile.TemporaryDirectory() as folder:
            yield Path(folder)
            names = []
            with self._failures_explained():
                for place, file in enumerate(sorted(Path(folder).iterdir())):
                    names.append(self.name_of(place, file.suffix[1:]))
                    with self._system.open_output_stream(f"{self._directory}/{names[-1]}") as stream:
                        stream.write(file.read_bytes())
            self.commit(names)

    def release(self) -> None:
        """Remove what was not finished; where nothing was there before, the list too."""
        with suppress(OSError, pa.ArrowException, DataError):
            if self._list() is None:
                return
            self._remove(name for name in self._there() if f"-{self.run}-" in name and name not in self._counted)
            if not self._counted and not self._there():
                self._system.delete_file(f"{self._directory}/{LIST}")


def _check_apart(path: str, given: str) -> None:
    """Refuse an output that is, holds or lies in an input."""
    mine, other = (text.partition("://")[2].partition("?")[0].rstrip("/") + "/" for text in (path, given))
    if "://" in given and (mine.startswith(other) or other.startswith(mine)):
        raise UsageError(
            f"the output `{shown(path)}` is, holds or lies in the input `{given}`", "Choose a place apart."
        )


def _short(problem: BaseException) -> str:
    return (str(problem).splitlines() or [type(problem).__name__])[0]
