"""Work with a limit of time: a process of its own does it piece by piece, and is ended where a piece takes too long."""

from __future__ import annotations

import gc
import importlib
import json
import os
import selectors
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from benchmarks.measure import ROOT, Timing, Work, step

LONG = 4.0  # seconds; what takes longer is not run a second time
COMPILING = 180.0  # seconds that a small run may take, in which everything is compiled


@dataclass(frozen=True)
class Piece:
    """A piece of work, and a small one that compiles what it needs; a number that it returns is its answer.

    `seconds`: of all cores, after which a run is given up.
    """

    what: str
    warm: Work
    work: Work
    seconds: float


@dataclass(frozen=True)
class Done:
    """How long a piece took, None if it was given up, and its answer."""

    timing: Timing | None
    answer: int | None = None


def timed_within(module: str, function: str, quick: bool) -> Iterator[Done]:
    """Yield what became of each `Piece` that a function of a module gives for `quick`, in order.

    The process of a run that takes too long is killed, and another goes on behind it.
    """
    at = 0
    while True:
        command = [sys.executable, "-m", "benchmarks.limited", module, function, str(int(quick)), str(at)]
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, bufsize=0) as process:
            assert process.stdout is not None
            patience = COMPILING
            while (line := _line(process, process.stdout, patience)) is not None:
                told = json.loads(line) if line else {"end": True}
                if "end" in told:
                    break
                patience = told.get("begun", COMPILING)
                if "what" in told:
                    step(told["what"])
                if "answer" in told:
                    at += 1
                    yield Done(Timing(*told["timing"]), told["answer"])
            if line is None:  # killed, since it neither ends nor listens inside a kernel
                process.kill()
                at += 1
                yield Done(None)
                continue
        if process.returncode:
            raise RuntimeError(f"{' '.join(command[1:])} ended with {process.returncode}")
        return


def _line(process: subprocess.Popen[bytes], stream: IO[bytes], patience: float) -> bytes | None:
    """Return the next line, or None if it does not come before the process has taken so many seconds more."""
    begun, clock = _cpu(process.pid), time.monotonic()
    with selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ)
        while not selector.select(0.5):
            if _cpu(process.pid) - begun > patience or time.monotonic() - clock > 20 * patience:
                return None
        return stream.readline()


def _cpu(process: int) -> float:
    """Return the seconds of all cores that a process has taken."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    module, function, quick, skipped = sys.argv[1:]
    pieces: Iterator[Piece] = getattr(importlib.import_module(module), function)(bool(int(quick)))
    for number, piece in enumerate(pieces):
        if number < int(skipped):
            continue
        _tell(what=f"{piece.what}: compiling")
        piece.warm()
        found: list[tuple[float, float]] = []
        answer = None
        while not found or (len(found) < 2 and found[0][0] < LONG and not int(quick)):
            gc.collect()
            _tell(begun=piece.seconds, what=f"{piece.what}: run {len(found) + 1}")
            wall, cpu = time.perf_counter(), time.process_time()
            answer = piece.work()
            found.append((time.perf_counter() - wall, time.process_time() - cpu))
        best, worst = min(found), max(found)
        _tell(timing=[*best, len(found), worst[0] / best[0] - 1], answer=answer if isinstance(answer, int) else None)
    _tell(end=True)


def _tell(**facts: object) -> None:
    print(json.dumps(facts), flush=True)


if __name__ == "__main__":
    main()
