"""How much memory there is."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


def free_memory() -> int:
    """Return how many bytes this machine, or the container that it is, has left."""
    left = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES")]
    with suppress(OSError, ValueError, StopIteration), open("/proc/meminfo") as lines:
        left = [1024 * int(next(line for line in lines if line.startswith("MemAvailable")).split()[1])]
    with suppress(OSError, ValueError):
        limits = Path("/sys/fs/cgroup")
        left.append(int((limits / "memory.max").read_text()) - int((limits / "memory.current").read_text()))
    return max(0, min(left))


def gigabytes(size: float) -> str:
    """Return a number of bytes as text, such as `1.5 GB`."""
    return f"{size / 1e9:,.1f} GB"
