"""Work on several threads, in order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain, islice
from typing import TypeVar

W = TypeVar("W")
T = TypeVar("T")


def made_on_threads(make: Callable[[W], T], work: Iterable[W], threads: int) -> Iterator[T]:
    """Make something of each piece of work, in order, on so many threads; twice as many wait to be taken."""
    pieces = iter(work)
    first = list(islice(pieces, 2))
    if threads < 2 or len(first) < 2:  # a thread takes longer to start than most lists of one piece
        yield from map(make, chain(first, pieces))
        return
    with ThreadPoolExecutor(threads) as pool:
        waiting: list[Future[T]] = []
        for piece in chain(first, pieces):
            waiting.append(pool.submit(make, piece))
            if len(waiting) > 2 * threads:
                yield waiting.pop(0).result()
        yield from (future.result() for future in waiting)
