"""A disk so small that it can be filled."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_disk(place: Path, megabytes: float) -> Iterator[Path]:
    """Mount a disk of some megabytes; skip the test where that is not allowed."""
    place.mkdir(parents=True, exist_ok=True)
    size = f"size={int(megabytes * 1024)}k"
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", size, "none", place], capture_output=True, text=True)
    if mounted.returncode:
        pytest.skip(f"a small disk needs root: {mounted.stderr.strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", place], check=True)


@contextmanager
def nearly_full(disk: Path, left: int) -> Iterator[None]:
    """Leave so many bytes of a disk."""
    about = os.statvfs(disk)
    filler = disk / "filler"
    filler.write_bytes(b"x" * max(0, about.f_bavail * about.f_frsize - left))
    try:
        yield
    finally:
        filler.unlink()
