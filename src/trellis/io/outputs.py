"""Outputs that are replaced wholly or not at all, and never together with what Trellis did not write.

Who writes an output claims it first, before any work:

    .out.trellis/lock    held by the process that writes `out`
    .out.trellis/new     what is being written
    .out.trellis/next    the same, when it is complete
    .out.trellis/old     the output before, until it is removed

A complete output holds a list of its files, `_trellis.json`. Another output is replaced only if it has such a list and
nothing else lies in it, and only files on the list are removed. The new one and the old one change places in one step
where the system can do that; elsewhere the old one is renamed aside for a moment, and a claim that finds it there
gives it its name back. Where directories cannot be renamed at all, the new files go in beside the old ones, and the
list switches from these to those in one step: it also names the files that do not count, which Trellis does not read.
What a killed process leaves behind is removed by the next claim.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import secrets
import shutil
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from trellis.errors import DataError, TrellisError, UsageError, warn
from trellis.io.durable import sync_file, write_whole
from trellis.io.locks import Lock, LockTaken
from trellis.io.places import check_place

LIST, FORMAT, VERSION = "_trellis.json", "trellis output", 1
PLACE = str | os.PathLike[str]
_AT_FDCWD, _EXCHANGE = -100, 2
_ATTEMPTS = 100
_NO_EXCHANGE = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP)
_NO_RENAME = (errno.EXDEV, errno.EOPNOTSUPP)  # of directories, as in the lower layer of an overlay


class OutputTarget(os.PathLike[str]):
    """An output that this process has claimed, a directory or one file; made by `claimed`.

    Attributes
    ----------
    path
        Its name, as the user gave it.
    target
        Where it is.
    """

    def __init__(self, path: PLACE, overwrite: bool, inputs: Iterable[PLACE], is_file: bool) -> None:
        self.path, self.is_file, self.overwrite = os.fspath(path), is_file, overwrite
        if "://" in self.path:
            raise UsageError(f"the output `{self.path}` is not a place of a file system", "Name a file here.")
        self.target = _checked(path, inputs, is_file, overwrite)
        self._work = self.target.parent / f".{self.target.name}.trellis"
        self._made = [parent for parent in self.target.parents if not parent.exists()]
        with self._failures_explained():
            self._lock = self._locked()
        try:
            with self._failures_explained():
                self._recover()
            _checked(path, (), is_file, overwrite)  # now that nobody else changes it
        except BaseException:
            self.release()
            raise

    def __fspath__(self) -> str:
        return self.path

    @contextmanager
    def replacing(self) -> Iterator[Path]:
        """Give a directory to write into, or a file to write; it takes the place of the output when all went well."""
        new = self._work / "new"
        with self._failures_explained():
            try:
                if not self.is_file:
                    new.mkdir()
                yield new
                self._commit_file(new) if self.is_file else self._commit_directory(new)
            finally:
                _remove_private(new)

    def release(self) -> None:
        """Remove what was not finished, and let others write."""
        _remove_private(self._work / "new")
        with suppress(OSError, TrellisError):
            remove_listed(self._work / "next")
        self._lock.release()
        for folder in (self._work, *self._made):  # one that holds something stays
            with suppress(OSError):
                folder.rmdir()

    @contextmanager
    def _failures_explained(self) -> Iterator[None]:
        """Turn what the system says into a sentence."""
        try:
            yield
        except OSError as problem:
            full = problem.errno in (errno.ENOSPC, errno.EDQUOT)
            raise DataError(
                f"the output `{self.path}` cannot be written: {problem.strerror or problem}",
                "Free some space, or write elsewhere." if full else None,
            ) from None

    def _locked(self) -> Lock:
        for _ in range(_ATTEMPTS):
            with suppress(FileNotFoundError):  # one that ends may just have removed the directory
                return self._lock_once()
        raise DataError(
            f"the output `{self.path}` cannot be locked: no directory can be made beside it, or other runs keep "
            "removing it",
            "Choose another place.",
        )

    def _lock_once(self) -> Lock:
        self.target.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):
            self._work.mkdir()
        about = os.lstat(self._work)
        if not stat.S_ISDIR(about.st_mode) or about.st_uid != os.geteuid():
            raise UsageError(
                f"{self._work}, where Trellis writes first, is not a directory of yours",
                "Remove it, or write elsewhere.",
            )
        try:
            return Lock(self._work / "lock")
        except LockTaken as busy:
            raise UsageError(f"{busy} is writing the output `{self.path}`", "Wait for its end.") from None

    # --- Steps, each of which may be the last before a kill -----------------------------------------------------

    def _recover(self) -> None:
        """Bring an output that a killed process left aside back to its place, and remove what else it left behind."""
        _remove_private(self._work / "new")
        old = self._work / "old"
        if old.exists() and not os.path.lexists(self.target):
            os.rename(old, self.target)
            sync_file(self.target.parent)
            warn(f"the output `{self.path}` was being replaced when a run before was killed; it has been restored")
        for left in (old, self._work / "next"):
            remove_listed(left)
        if not self.is_file and self.target.is_dir() and not self.target.is_symlink():
            remove_others(self.target)

    def _commit_file(self, new: Path) -> None:
        sync_file(new)
        os.replace(new, self.target)
        sync_file(self.target.parent)

    def _commit_directory(self, new: Path) -> None:
        write_list(new)
        following, old = self._work / "next", self._work / "old"
        os.rename(new, following)
        sync_file(self._work)
        if not self.overwrite or not os.path.lexists(self.target):
            os.rename(following, self.target)
            sync_file(self.target.parent)
            return
        check_replaceable(self.target, self.path)
        try:
            if exchanged(following, self.target):
                os.rename(following, old)
            else:
                self._rename_aside(following, old)
        except OSError as problem:
            if problem.errno not in _NO_RENAME:
                raise
            _switch(following, self.target)
            return
        sync_file(self.target.parent)
        remove_listed(old)

    def _rename_aside(self, following: Path, old: Path) -> None:
        """Rename the output before aside and the new one in: between the two nothing has the name."""
        os.rename(self.target, old)
        try:
            os.rename(following, self.target)
        except BaseException:
            if not os.path.lexists(self.target):
                os.rename(old, self.target)
            raise


def _checked(path: PLACE, inputs: Iterable[PLACE], is_file: bool, overwrite: bool) -> Path:
    named = f"the output `{os.fspath(path)}`"
    if is_file and os.path.isdir(path) and not os.path.islink(path):
        raise UsageError(f"{named} is a directory", "Name a file in it.")
    target = check_place(path, inputs)
    if is_file and not target.parent.is_dir():
        raise UsageError(f"{named} lies in a folder that does not exist", "Make it first, or choose another one.")
    if not os.path.lexists(target):
        return target
    if is_file and not target.is_file():
        raise UsageError(f"{named} is not a plain file", "Name a file.")
    if not is_file and not target.is_dir():
        raise UsageError(f"{named} is a file", "Results are written into a directory.")
    if not overwrite:
        raise UsageError(f"{named} exists", "Choose another one, or replace it with overwrite=True or --overwrite.")
    if not is_file:
        check_replaceable(target, os.fspath(path))
    return target


# --- The list of files ------------------------------------------------------------------------------------------


def write_list(directory: Path) -> None:
    """Write the list of the files of a complete output into it, and have the disk keep all of them."""
    files = {}
    for entry in sorted(directory.iterdir()):
        sync_file(entry)
        files[entry.name] = entry.stat().st_size
    save_list(directory, files)


def save_list(directory: Path, files: Mapping[str, int], others: Iterable[str] = ()) -> None:
    """Write a list of files and their sizes into their directory, in one step; `others` do not count."""
    about = {"format": FORMAT, "version": VERSION, "files": dict(files), "others": list(others)}
    write_whole(directory / LIST, json.dumps(about, indent=1))


def read_list(directory: Path) -> dict[str, int] | None:
    """Return the files that Trellis wrote into a directory, with their sizes; None if there is not a list of them.

    Raises
    ------
    DataError
        If the list cannot be read, or is of a later Trellis.
    """
    found = _read_list(directory)
    return None if found is None else found[0]


def uncounted(directory: Path) -> set[str]:
    """Return the files of an output that do not count: it is being replaced, or a run that did so was killed."""
    found = _read_list(directory)
    return set() if found is None else found[1]


def _read_list(directory: Path) -> tuple[dict[str, int], set[str]] | None:
    path = directory / LIST
    try:
        about = parse_list(path.read_bytes(), str(path))
    except FileNotFoundError:
        return None
    except OSError:
        raise _no_list(str(path)) from None
    return {str(name): int(size) for name, size in about["files"].items()}, set(map(str, about.get("others", ())))


def parse_list(text: bytes, path: str) -> dict[str, Any]:
    """Return the contents of a list of the files of an output.

    Raises
    ------
    DataError
        If it is not one, or is of a later Trellis.
    """
    try:
        about: dict[str, Any] = json.loads(text)
        if about["format"] != FORMAT or not isinstance(about["files"], dict):
            raise ValueError
    except (ValueError, KeyError, TypeError):
        raise _no_list(path) from None
    if about["version"] != VERSION:
        raise DataError(f"{path} is of another version of Trellis", "Choose another output.")
    return about


def _no_list(path: str) -> DataError:
    return DataError(f"{path} is not a list of the files of an output", "Choose another output.")


def check_replaceable(directory: Path, named: str) -> None:
    """Refuse a directory in which there is anything that Trellis did not write.

    Raises
    ------
    UsageError
        If there is.
    """
    names = os.listdir(directory)
    if not names:
        return
    found = _read_list(directory)
    if found is None:
        raise UsageError(
            f"the output `{named}` has no list of files that Trellis wrote, {LIST}, and is not replaced",
            "Choose another one, or remove it yourself: what an earlier Trellis wrote has no such list.",
        )
    listed, others = found
    for name in sorted(set(names) - {LIST, f"{LIST}.tmp"}):
        about = os.lstat(directory / name)
        if name not in (listed.keys() | others) or not stat.S_ISREG(about.st_mode):
            raise UsageError(
                f"the output `{named}` holds `{name}`, which Trellis did not write, and is not replaced",
                "Choose another one, or move that elsewhere.",
            )
        if name in listed and about.st_size != listed[name]:
            raise UsageError(
                f"the output `{named}` holds `{name}`, which was changed since Trellis wrote it, and is not replaced",
                "Choose another one, or move that elsewhere.",
            )


def remove_listed(directory: Path) -> None:
    """Remove an output that Trellis wrote: the files on its list, and itself if nothing else is in it.

    Raises
    ------
    UsageError
        If something else is in it.
    """
    if not directory.exists():
        return
    for name in read_list(directory) or ():
        if os.path.basename(name) == name:
            (directory / name).unlink(missing_ok=True)
    others = sorted(set(os.listdir(directory)) - {LIST, f"{LIST}.tmp"})
    if others:
        raise UsageError(
            f"{directory} is what is left of an output that was replaced, and holds `{others[0]}`, which Trellis did "
            "not write",
            f"Move it elsewhere, and remove {directory}.",
        )
    for name in (f"{LIST}.tmp", LIST):
        (directory / name).unlink(missing_ok=True)
    directory.rmdir()


def _switch(new: Path, target: Path) -> None:
    """Put the files of an output beside those of another one, and have these count in their place."""
    before, coming = read_list(target) or {}, read_list(new) or {}
    token = secrets.token_hex(4)
    names = {name: f"{Path(name).stem}-{token}{Path(name).suffix}" for name in coming}
    save_list(target, before, names.values())
    for name, fresh in names.items():
        os.rename(new / name, target / fresh)
    sync_file(target)
    save_list(target, {fresh: coming[name] for name, fresh in names.items()}, before)
    remove_others(target)


def remove_others(directory: Path) -> None:
    """Remove the files of an output that do not count."""
    listed = _read_list(directory)
    if listed is None:
        return
    (directory / f"{LIST}.tmp").unlink(missing_ok=True)
    if not listed[1]:
        return
    for name in listed[1]:
        if os.path.basename(name) == name:
            (directory / name).unlink(missing_ok=True)
    save_list(directory, listed[0])


def check_files(folder: Path, names: Iterable[str]) -> None:
    """Refuse to replace files of a folder that are not on its list.

    Raises
    ------
    UsageError
        If there is one.
    """
    listed = read_list(folder) or {}
    for name in names:
        if os.path.lexists(folder / name) and name not in listed:
            raise UsageError(
                f"{folder / name} was not written by Trellis, or by an earlier one, and is not replaced",
                "Move it elsewhere, or choose another directory.",
            )


# --- System calls -----------------------------------------------------------------------------------------------


def exchanged(one: Path, other: Path) -> bool:
    """Let two directories change their names in one step; return whether the system can."""
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError):
        return False
    if rename(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _EXCHANGE) == 0:
        return True
    number = ctypes.get_errno()
    if number in _NO_EXCHANGE:
        return False
    raise OSError(number, os.strerror(number))


def _remove_private(path: Path) -> None:
    """Remove what was being written and is not an output yet."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
