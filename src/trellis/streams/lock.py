"""A stream is one process: locks on its checkpoint and its outputs, which end with the process that holds them."""

from __future__ import annotations

import weakref
from pathlib import Path

from trellis.errors import DataError, UsageError
from trellis.io.locks import Lock, LockTaken

LOCK = "lock"


class StreamLock:
    """Keeps others out of the directories of a stream, until it is released or the process ends."""

    def __init__(self) -> None:
        self._held: list[Lock] = []
        self._end = weakref.finalize(self, _release, self._held)

    def take(self, directory: Path, what: str) -> None:
        """Lock a directory, which is made if it is not there; `what` it is, for a message."""
        try:
            directory.mkdir(parents=True, exist_ok=True)
            self._held.append(Lock(directory / LOCK))
        except LockTaken as holder:
            self.release()
            raise UsageError(
                f"{what} is in use: {holder} runs this stream",
                "One process runs a stream. Wait for its end or stop it, or name another checkpoint and output.",
            ) from None
        except OSError as problem:
            self.release()
            raise DataError(f"{what} cannot be written: {problem.strerror or problem}", "Name a directory.") from None

    @property
    def is_held(self) -> bool:
        """Whether something is locked."""
        return bool(self._held)

    def release(self) -> None:
        """Let others in."""
        _release(self._held)


def _release(held: list[Lock]) -> None:
    while held:
        held.pop().release()


def check_free(directory: Path, what: str) -> None:
    """Refuse a directory that is locked, and lock nothing: a second start fails at once, before any work is done."""
    if (directory / LOCK).exists():
        lock = StreamLock()
        lock.take(directory, what)
        lock.release()


def is_unused(directory: Path) -> bool:
    """Return whether a directory is not there, or holds no more than what a start that was killed leaves behind."""
    if not directory.exists():
        return True
    return directory.is_dir() and all(path.name == LOCK or path.suffix == ".tmp" for path in directory.iterdir())
