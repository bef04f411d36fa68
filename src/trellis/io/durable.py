"""Files that survive a loss of power: written through to the disk, and swapped in one step."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


def sync_file(path: Path) -> None:
    """Have what was written to a file on the disk before anything that comes after."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_directory(path: Path) -> None:
    """Have the names of a directory's files on the disk, where the file system can do that for directories."""
    with suppress(OSError):
        sync_file(path)


def write_whole(path: Path, text: str) -> None:
    """Write a file, in place of one that may be there, in one step and for good."""
    hidden = path.with_name(f"{path.name}.tmp")
    with hidden.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    hidden.replace(path)
    sync_directory(path.parent)
