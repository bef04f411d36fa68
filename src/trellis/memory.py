"""Memory: how much is free and how much was taken, and the error when there is no more."""

from __future__ import annotations

import os
import resource
import sys
from contextlib import suppress
from pathlib import Path

from trellis.errors import MemoryExhausted, TrellisError

FEW_BYTES = 1 << 20
LESS = (
    "Take fewer events at a time: a shorter WITHIN, more conditions, a partition such as `[account]`; count or "
    "aggregate in place of listing; or use a machine with more memory."
)
IN_PIECES = (
    "Write the results to files (trends.write, trellis detect --out), go through them in pieces (trends.batches()), "
    "list some (LIMIT, HAVING), or count and aggregate them."
)


def free_memory() -> int:
    """Return how many bytes this machine, or the container that it is, has left."""
    left = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES")]
    with suppress(OSError, ValueError, StopIteration), open("/proc/meminfo") as lines:
        left = [1024 * int(next(line for line in lines if line.startswith("MemAvailable")).split()[1])]
    with suppress(OSError, ValueError):
        limits = Path("/sys/fs/cgroup")
        left.append(int((limits / "memory.max").read_text()) - int((limits / "memory.current").read_text()))
    return max(0, min(left))


def fits_memory(size: int) -> bool:
    """Return whether so many bytes are free; few are not worth the question, which takes as long as a small query."""
    return size < FEW_BYTES or size <= free_memory()


def gigabytes(size: float) -> str:
    """Return a number of bytes as text, such as `1.5 GB`."""
    return f"{size / 1e9:,.1f} GB"


def limit_text(size: int) -> str:
    """Return a number of bytes as users give limits, such as `2G` or `512M`: about, where it is no whole number."""
    for unit, letter in ((1 << 30, "G"), (1 << 20, "M"), (1 << 10, "K")):
        if size >= unit:
            return f"{size / unit:.3g}{letter}"
    return str(size)


def allow_more(limit: int) -> str:
    """Return the sentence that says how a query may take more memory than by the limit that it has."""
    more = limit_text(4 * limit)
    return f'To allow more: memory_limit="{more}" (--memory-limit {more}).'


def beyond_limit(what: str, limit: int, advice: str) -> TrellisError:
    """Return the error for what would take more memory than a query may, with advice and the way to allow more."""
    return TrellisError(
        f"{what}; this takes more than the memory limit of {limit_text(limit)}B", f"{advice} {allow_more(limit)}"
    )


def taken_memory() -> int:
    """Return the most bytes that this process has had in memory."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else 1024 * most


def exhausted(problem: MemoryError, who: str = "this process") -> MemoryExhausted:
    """Return the error for an allocation of a process that failed; the exception may say how much it was."""
    requested = f" ({str(problem).rstrip('.')})" if str(problem) else ""
    what = f"there is not enough memory{requested}: {who} has taken {gigabytes(taken_memory())}"
    return MemoryExhausted(f"{what}, and {gigabytes(free_memory())} are free", LESS)
