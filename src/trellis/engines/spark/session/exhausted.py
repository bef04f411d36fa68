"""Not enough memory on Spark, found in the text of its exception and said in a sentence."""

from __future__ import annotations

import re

from trellis.engines.spark.session.session import heap_size
from trellis.errors import MemoryExhausted
from trellis.memory import LESS

_JAVA = re.compile(r"OutOfMemoryError: ([^\n]*)|(UNABLE_TO_ACQUIRE_MEMORY|GC overhead limit exceeded)[^\n]*")
_LOST = re.compile(r"Python worker exited unexpectedly \(crashed\)")
_ASKED = re.compile(r"Unable to acquire (\d+) bytes of memory, got (\d+)")
_HEAP = "spark.driver.memory (on a cluster: spark.executor.memory)"


def exhausted_in(problem: BaseException) -> MemoryExhausted | None:
    """Return the error of a job of Spark's that lacked memory, if it failed for that.

    Parameters
    ----------
    problem
        What Spark raised.

    Returns
    -------
    trellis.errors.MemoryExhausted or None
        What ran out, how much it had, and what to try.
    """
    said = str(problem)
    if found := _JAVA.search(said):
        asked = _ASKED.search(said)
        much = f": it asked for {int(asked[1]):,} bytes and got {int(asked[2]):,}" if asked else ""
        return heap_exhausted((found[1] or found[2] or "").strip(), much)
    if _LOST.search(said):
        return MemoryExhausted(
            "a Python worker of Spark's was killed; mostly that is because the machine had no memory left for it",
            f"Leave it more: lower {_HEAP}, or fewer tasks at once (--master local[2]). {LESS}",
        )
    return None


def heap_exhausted(what: str, much: str = "") -> MemoryExhausted:
    """Return the error about a JVM whose heap is full.

    Parameters
    ----------
    what
        What Java says about it.
    much
        How much it asked for.
    """
    return MemoryExhausted(
        f"Spark's JVM has not enough memory ({what}){much}; it had {_heap()}",
        f"Give it more with --conf {_HEAP}, such as `--conf spark.driver.memory=4g`, or more and smaller tasks "
        f"with --conf spark.sql.shuffle.partitions. {LESS}",
    )


def _heap() -> str:
    """Return how large the heap is, as far as it is known."""
    told = heap_size()
    return "a heap of unknown size" if told is None else f"a heap of {told}"
