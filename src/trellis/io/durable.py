"""Files that survive a loss of power: written through to the disk, and swapped in one step."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO


def sync_file(path: Path) -> None:
    """Have a file, or the names of a directory, on the disk before anything that comes after.

    Some file systems do not sync directories.
    """
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as problem:
        if problem.errno != errno.EINVAL or not path.is_dir():
            raise
    finally:
        os.close(handle)


def sync_directory(path: Path) -> None:
    """Have the names of a directory's files on the disk, where the file system can do that for directories."""
    with suppress(OSError):
        sync_file(path)


@contextmanager
def kept_file(path: Path) -> Iterator[BinaryIO]:
    """Give a file to write; at the end it is on the disk."""
    with path.open("wb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def swapped_file(path: Path) -> Iterator[BinaryIO]:
    """Give a file to write, which at the end takes the place of one that may be there, in one step and for good."""
    hidden = path.with_name(f"{path.name}.tmp")
    with kept_file(hidden) as file:
        yield file
    hidden.replace(path)
    sync_directory(path.parent)


def write_whole(path: Path, text: str) -> None:
    """Write a file, in place of one that may be there, in one step and for good."""
    with swapped_file(path) as file:
        file.write(text.encode())
