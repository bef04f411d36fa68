"""Where an output may be: nowhere that an input, somebody's work or a whole file system would be lost.

Places are compared by what they are and not by their names, so that links, mounts and upper and lower case do not
matter.
"""

from __future__ import annotations

import fnmatch
import glob
import os
import pwd
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

from trellis.errors import UsageError

_Identity = tuple[int, int]
APART = "Choose a place apart from the events."
_EXTENSIONS = ("parquet", "csv", "json")


def resolved(path: str | os.PathLike[str]) -> Path:
    """Return where a name leads, but for a link that it names itself."""
    text = os.fspath(path).rstrip("/") or "/"
    folder, name = os.path.split(text)
    if name in ("", ".", ".."):
        return Path(os.path.realpath(text))
    return Path(os.path.realpath(folder or "."), name)


def check_place(path: str | os.PathLike[str], inputs: Iterable[str | os.PathLike[str]] = ()) -> Path:
    """Refuse a place whose replacement would destroy more than an output, and return where it is.

    Parameters
    ----------
    path
        The output.
    inputs
        The files, directories and globs that are read.

    Raises
    ------
    UsageError
        If the output is a link, the root of a file system, a home, the working directory, or holds one of these; or
        if it is, holds or lies in an input.
    """
    if not os.fspath(path):
        raise UsageError("the output has no name", "Name one.")
    target = resolved(path)
    named = f"the output `{os.fspath(path)}`"
    if target.is_symlink():
        raise UsageError(f"{named} is a link to {os.readlink(target)}", "Name the place that it leads to.")
    own = _identity(target)
    if own is not None:
        if os.path.ismount(target):
            raise UsageError(f"{named} is the root of a file system", "Name a directory in it.")
        if own in _lineage(Path.cwd()):
            raise UsageError(
                f"{named} is the working directory or holds it", "Choose another place, or a new name in this one."
            )
        for home in _homes():
            if own in _lineage(home):
                raise UsageError(f"{named} is or holds the home directory {home}", "Name a directory in it.")
    check_apart(path, inputs)
    return target


def check_apart(path: str | os.PathLike[str], inputs: Iterable[str | os.PathLike[str]]) -> None:
    """Refuse an output that is, holds or lies in an input, or that an input's glob would read the next time.

    Raises
    ------
    UsageError
        If it does.
    """
    target = resolved(path)
    named = f"the output `{os.fspath(path)}`"
    lineage = cache(_lineage)  # many files lie in few directories
    own, above = _identity(target), set(lineage(target.parent))
    for given in inputs:
        name = _local(os.fspath(given))
        if name is None:
            continue
        if glob.has_magic(name) and not os.path.lexists(name):
            if _would_match(name, target):
                raise UsageError(f"{named} lies among the files of the input `{given}`", APART)
            places: Iterable[str] = glob.iglob(name, recursive=True)
        else:
            places = [name]
        for place in (one for found in places for one in _with_links(found)):
            where, real = Path(os.path.realpath(place)), resolved(place)
            if own is not None and own in (_identity(where), _identity(real)):
                raise UsageError(f"{named} is the input `{given}`", APART)
            if own is not None and (own in lineage(where.parent) or own in lineage(real.parent)):
                raise UsageError(f"{named} holds the input `{given}`", APART)
            if where.is_dir() and _identity(where) in above:
                raise UsageError(f"{named} lies in the input `{given}`", APART)


def _identity(path: Path) -> _Identity | None:
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _lineage(path: Path) -> tuple[_Identity, ...]:
    """Return a place and all above it."""
    real = Path(os.path.realpath(path))
    found = (_identity(one) for one in (real, *real.parents))
    return tuple(one for one in found if one is not None)


def _homes() -> list[Path]:
    """Return the home directories that there are, the user's own first."""
    found = [os.path.expanduser("~"), *(entry.pw_dir for entry in pwd.getpwall())]
    return [Path(home) for home in dict.fromkeys(found) if os.path.isabs(home) and os.path.isdir(home)]


def _local(name: str) -> str | None:
    """Return a path of this machine's, or None for an address elsewhere."""
    if "://" not in name and not name.startswith("file:/"):
        return name
    parts = urlsplit(name)
    return unquote(parts.path) if parts.scheme == "file" else None


def _with_links(place: str) -> Iterator[str]:
    """Yield a file or directory, and the links in the latter, which lead to what is read as well."""
    yield place
    folders = [place] if os.path.isdir(place) else []
    while folders:
        with suppress(OSError), os.scandir(folders.pop()) as entries:  # who reads says what cannot be read
            for entry in entries:
                if entry.is_symlink():
                    yield entry.path
                elif entry.is_dir():
                    folders.append(entry.path)


def _would_match(pattern: str, target: Path) -> bool:
    """Return whether a glob would find an output, or a file in it."""
    parts = pattern.split("/")
    first = next(i for i, part in enumerate(parts) if glob.has_magic(part))
    folder = Path(os.path.realpath("/".join(parts[:first]) or ("/" if pattern.startswith("/") else ".")))
    candidates = (target, *(target / f"part-00000.{extension}" for extension in _EXTENSIONS))
    return any(
        _parts_match(parts[first:], one.relative_to(folder).parts) for one in candidates if one.is_relative_to(folder)
    )


def _parts_match(parts: Sequence[str], names: Sequence[str]) -> bool:
    """Return whether a glob, in parts, finds a path or a directory above it."""
    if not parts:
        return True
    if parts[0] == "**":
        return _parts_match(parts[1:], names) or (bool(names) and _parts_match(parts, names[1:]))
    if not names or (names[0].startswith(".") and not parts[0].startswith(".")):
        return False
    return fnmatch.fnmatchcase(names[0], parts[0]) and _parts_match(parts[1:], names[1:])
