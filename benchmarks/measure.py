"""Seconds and bytes: best of several runs after a warm-up, and peak memory in a process of its own."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
RUNS = 3

Work = Callable[[], object]
_listeners: list[Callable[[str], None]] = []
_readers: list[Callable[[Any], None]] = []


@dataclass(frozen=True)
class Timing:
    """How long a piece of work took: seconds on the clock, and seconds of all cores, in the quickest of its runs.

    `spread` is by how much of that the slowest run took longer.
    """

    wall: float
    cpu: float
    runs: int = 1
    spread: float = 0.0


def step(what: str) -> None:
    """Tell what is being measured now."""
    for listener in _listeners:
        listener(what)


def finished(row: object) -> None:
    """Tell that a row of a table is known."""
    for reader in _readers:
        reader(row)


@contextmanager
def _told(receivers: list[Callable[[Any], None]], receiver: Callable[[Any], None]) -> Iterator[None]:
    receivers.append(receiver)
    try:
        yield
    finally:
        receivers.remove(receiver)


def reading(reader: Callable[[Any], None]) -> AbstractContextManager[None]:
    """Pass each row, as soon as it is known, to a function."""
    return _told(_readers, reader)


def listening(listener: Callable[[str], None]) -> AbstractContextManager[None]:
    """Pass what `step` tells to a function."""
    return _told(_listeners, listener)


def best_of(
    what: str, work: Callable[..., object], *, quick: bool = False, runs: int = RUNS, warm: Work | None = None,
    given: Work | None = None,
) -> Timing:  # fmt: skip
    """Return the quickest of several runs.

    Parameters
    ----------
    what
        What is measured, for those who wait.
    work
        What is run; each run does all of it, so nothing may be kept from one to the next.
    quick
        Run it once.
    runs
        How often it is run otherwise.
    warm
        What is run before, so that everything is compiled; the work itself by default. Name a smaller piece where the
        work is long.
    given
        Makes what the work is given, anew for each run; this takes no part in the time.
    """
    step(f"{what}: compiling")
    if warm is not None:
        warm()
    else:
        _timed(work, given)
    found = []
    for i in range(1 if quick else runs):
        step(f"{what}: run {i + 1}")
        found.append(_timed(work, given))
    wall, cpu = min(found)
    return Timing(wall, cpu, len(found), max(found)[0] / wall - 1)


def median_of(what: str, work: Work, quick: bool = False, runs: int = 5) -> Timing:
    """Return the median of several runs, after one before that compiles everything, if there are several."""
    if quick or runs > 1:
        step(f"{what}: compiling")
        work()
    found = []
    for i in range(1 if quick else runs):
        step(f"{what}: run {i + 1}")
        found.append(_timed(work, None))
    wall, cpu = sorted(found)[len(found) // 2]
    return Timing(wall, cpu, len(found), (max(found)[0] - min(found)[0]) / wall)


def _timed(work: Callable[..., object], given: Work | None) -> tuple[float, float]:
    arguments = () if given is None else (given(),)
    gc.collect()
    wall, cpu = time.perf_counter(), time.process_time()
    work(*arguments)
    return time.perf_counter() - wall, time.process_time() - cpu


def memory_of(what: str, prepare: Callable[..., Work], *arguments: Any) -> int:
    """Return by how many bytes the peak memory of a process grows while it does a piece of work.

    A fresh process calls `prepare(*arguments)`, which makes the input and returns the work. It does the work once, so
    that everything is loaded and compiled, gives back what is free, and does it again: the growth is the peak of the
    second time less what the process held before it.

    Parameters
    ----------
    what
        What is measured, for those who wait.
    prepare
        A function at the top of a module of this package.
    arguments
        Numbers and texts.
    """
    step(f"{what}: memory")
    command = [sys.executable, "-m", "benchmarks.child", prepare.__module__, prepare.__name__, json.dumps(arguments)]
    # Every array has pages of its own, which go back when it is freed; so what was free before is not counted as held.
    environment = os.environ | {"MALLOC_MMAP_THRESHOLD_": "65536", "ARROW_DEFAULT_MEMORY_POOL": "system"}
    done = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, check=True)
    return int(done.stdout.split()[-1])
