"""Files that survive a loss of power: written through to the disk, and swapped in one step."""

from __future__ import annotations

import errno
import os
from collections.abc import Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
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
def swapped_file(path: Path, folders: Collection[Path] = ()) -> Iterator[BinaryIO]:
    """Give a file to write, which at the end takes the place of one that may be there, in one step and for good.

    The names in `folders` are on the disk before: the disk takes these in hardly more time than the file alone.
    """
    hidden = path.with_name(f"{path.name}.tmp")
    with ThreadPoolExecutor(len(folders) or 1) as pool:
        pool.map(sync_directory, folders)
        with kept_file(hidden) as file:
            yield file
    hidden.replace(path)
    sync_directory(path.parent)


def write_whole(path: Path, text: str, folders: Collection[Path] = ()) -> None:
    """Write a file, in place of one that may be there, in one step and for good; see `swapped_file`."""
    with swapped_file(path, folders) as file:
        file.write(text.encode())
