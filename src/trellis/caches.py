"""Where Trellis keeps what it made once, and the files there that only this user can have written.

Compiled code and the tables of the parser are believed when they are read again, so they lie where nobody else may
write: the directory, every one above it and the file itself belong to this user or to root, and nobody else may change
them. Where there is no such place nothing is kept. This file imports nothing but Python itself: it is sent to Spark's
workers ahead of the rest.
"""

from __future__ import annotations

import atexit
import errno
import grp
import os
import pwd
import shutil
import stat
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path

from trellis.errors import warn

COMPILED = "NUMBA_CACHE_DIR"
"""The variable of the environment that names where Numba keeps what it compiles."""

_PRIVATE = 0o700
_GROUP, _OTHERS = 0o020, 0o002  # the right to write
_told: set[Path] = set()


def cache_directory(name: str) -> Path | None:
    """Return a directory for this user's caches, made if it is not there.

    Parameters
    ----------
    name
        What the cache is for.

    Returns
    -------
    pathlib.Path or None
        Below `XDG_CACHE_HOME` or, without one, below `.cache` in the home directory. None without a home, where
        nothing can be written, and where others may write: that is told in a warning.
    """
    base = _base()
    if base is None:
        return None
    path = base / "trellis" / name
    try:
        base.mkdir(parents=True, exist_ok=True)
        for one in (path.parent, path):
            one.mkdir(_PRIVATE, exist_ok=True)
        return path.resolve() if is_trusted(path) and os.access(path, os.W_OK) else None
    except OSError:
        return None


def _base() -> Path | None:
    """Return the directory of this user's caches; None without a home. A relative one would be anybody's."""
    given = os.environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(given):
        return Path(given)
    home = os.path.expanduser("~")
    return Path(home) / ".cache" if os.path.isabs(home) and os.path.isdir(home) else None


@cache
def compiled_directory() -> Path | None:
    """Return where compiled code is kept: where the user says, in the user's caches, or until this process ends.

    None where nothing can be written at all.
    """
    given = os.environ.get(COMPILED)
    with suppress(OSError):
        if given:
            path = Path(given).absolute()
            path.mkdir(_PRIVATE, parents=True, exist_ok=True)
            if is_trusted(path) and os.access(path, os.W_OK):
                return path
    with suppress(OSError):
        return cache_directory("numba") or temporary_directory()
    return None


def temporary_directory() -> Path:
    """Return a fresh directory that goes away with this process."""
    path = tempfile.mkdtemp(prefix="trellis-")
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return Path(path)


# --- Who may write ----------------------------------------------------------------------------------------------


def is_trusted(path: Path) -> bool:
    """Return whether nobody but this user and root may write into a directory, or replace it; warn if not."""
    real = path.resolve()
    for place in (real, *real.parents):
        if not _is_ours(os.stat(place), inner=place == real):
            if place not in _told:
                _told.add(place)
                warn(
                    f"others may write into {place}, so nothing that is kept in {path} is used; "
                    f"`chmod go-w {place}` if it is yours, or name another place"
                )
            return False
    return True


def open_private(path: str | os.PathLike[str]) -> int:
    """Open a file for reading, and return its number.

    Raises
    ------
    PermissionError
        If the file is a link, belongs to somebody else, or may be written by somebody else.
    OSError
        If it cannot be opened.
    """
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as problem:
        if problem.errno == errno.ELOOP:
            raise PermissionError(f"{os.fspath(path)} is a link") from None
        raise
    if is_private(file):
        return file
    os.close(file)
    raise PermissionError(f"{os.fspath(path)} belongs to somebody else, or others may write it")


def create_private(path: str | os.PathLike[str]) -> int:
    """Make a file that is not there yet and that nobody else may read or write, and return its number."""
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


def is_private(file: int) -> bool:
    """Return whether an open file is a plain one of this user that nobody else may write."""
    about = os.fstat(file)
    plain, ours = stat.S_ISREG(about.st_mode), about.st_uid == os.geteuid()
    return plain and ours and not about.st_mode & (_GROUP | _OTHERS)


def _is_ours(about: os.stat_result, inner: bool) -> bool:
    """Return whether others can change neither a directory nor, unless it is the `inner` one, what of ours is in it."""
    if about.st_uid not in (os.geteuid(), 0):
        return False
    if about.st_mode & stat.S_ISVTX and not inner:  # as in /tmp: nobody can rename what belongs to others
        return True
    return not about.st_mode & _OTHERS and (not about.st_mode & _GROUP or _is_own_group(about.st_gid))


def _is_own_group(number: int) -> bool:
    """Return whether a group has this user's name and nobody else in it, as many systems give one to each user."""
    try:
        name, group = pwd.getpwuid(os.geteuid()).pw_name, grp.getgrgid(number)
    except KeyError:
        return False
    return group.gr_name == name and set(group.gr_mem) <= {name}
