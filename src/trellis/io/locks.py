"""Locks that end with their process: one that is killed keeps nobody out."""

from __future__ import annotations

import errno
import fcntl
import os
import socket
from contextlib import suppress
from pathlib import Path

from trellis.errors import DataError

_UNSUPPORTED = (errno.ENOSYS, errno.ENOTSUP, errno.ENOLCK, errno.EBADF, errno.EINVAL)


class LockTaken(Exception):
    """Another process, or another part of this one, holds the lock; the text says which."""


class Lock:
    """A lock on a file that is made for it, held until it is released or the process ends.

    Raises
    ------
    LockTaken
        If somebody else holds it.
    DataError
        If the file system has no locks.
    OSError
        If the file cannot be made.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        while True:
            held = _try(path)
            if held is not None:
                self._held = held
                break
        os.ftruncate(self._held, 0)
        with suppress(OSError):  # a full disk: who holds the lock is not recorded then
            os.write(self._held, f"process {os.getpid()} on {socket.gethostname()}".encode())

    def release(self) -> None:
        """Remove the file, and let others in."""
        with suppress(OSError):
            self.path.unlink()
        os.close(self._held)


def _try(path: Path) -> int | None:
    """Return the descriptor of a locked file, or None if its last holder has just removed it."""
    held = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(held), os.stat(path)):
                return held
    except BlockingIOError:
        holder = os.read(held, 200).decode(errors="replace")
        os.close(held)
        raise LockTaken(holder or "another process") from None
    except OSError as problem:
        os.close(held)
        if problem.errno in _UNSUPPORTED:
            raise DataError(
                f"{path.parent} lies on a file system without locks", "Mount it with locks, or choose another place."
            ) from None
        raise
    os.close(held)
    return None
