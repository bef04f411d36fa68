"""From files to an engine: whole lines in chunks, of the source that it waits for."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import BinaryIO

import numpy as np

from trellis.errors import DataError
from trellis.kernels.papers.debs2016.lines import line_times
from trellis.papers.debs2016.engine import LineEngine, Write

CHUNK = 1 << 20  # bytes
Source = str | os.PathLike[str] | bytes | BinaryIO


def run_over(
    engine: LineEngine, given: Sequence[Source], write: Write, *, chunk: int = CHUNK, delays: list[int] | None = None,
    progress: Callable[[int], object] = lambda _: None,
) -> None:  # fmt: skip
    """Run a query over whole files.

    Parameters
    ----------
    engine
        The query.
    given
        A file of each source: a path, an open one, or its bytes.
    write
        Takes lines of output; the memory is used again afterwards.
    chunk
        How many bytes are read at once, at least.
    delays
        See `LineEngine.run`.
    told
        Is told the bytes that were read.

    Raises
    ------
    DataError
        If a file cannot be read.
    """
    files: list[BinaryIO] = []
    try:
        for one in given:
            files.append(_open(one))
        engine.expect([_size(file) for file in files])
        lines = [
            sorted_lines(file) if name == "friendships" else chunks(file, chunk)
            for name, file in zip(engine.sources, files, strict=True)
        ]
        # Threads read ahead of the query, which holds no lock.
        with ThreadPoolExecutor(len(lines)) as pool:
            ahead = [pool.submit(next, one, None) for one in lines]
            while (waits := engine.run(write, delays)) is not None:
                more = _read(ahead[waits], given[waits])
                if more is None:
                    engine.close(waits)
                else:
                    ahead[waits] = pool.submit(next, lines[waits], None)
                    progress(len(more))
                    engine.push(waits, more)
    finally:
        for file, one in zip(files, given, strict=False):
            if file is not one:
                file.close()


def _read(ahead: Future[bytes | None], given: Source) -> bytes | None:
    try:
        return ahead.result()
    except OSError as problem:
        raise DataError(f"{given!r} cannot be read: {problem.strerror or problem}", "Name a file.") from None


def _open(given: Source) -> BinaryIO:
    if isinstance(given, bytes):
        return io.BytesIO(given)
    if not isinstance(given, str | os.PathLike):
        return given
    try:
        return Path(given).open("rb", buffering=0)
    except OSError as problem:
        raise DataError(f"{given} cannot be read: {problem.strerror or problem}", "Name a file.") from None


def _size(file: BinaryIO) -> int:
    """Return the bytes of a file, or 0 where it does not tell."""
    if isinstance(file, io.BytesIO):
        return len(file.getbuffer())
    try:
        return os.fstat(file.fileno()).st_size
    except (OSError, AttributeError):
        return 0


def chunks(file: BinaryIO, size: int) -> Iterator[bytes]:
    """Yield the lines of a file, many at once."""
    rest = b""
    while data := file.read(size):
        whole, newline, behind = data.rpartition(b"\n")
        if newline:
            yield rest + whole + newline
            rest = behind
        else:
            rest += data
    if rest:
        yield rest + b"\n"


def sorted_lines(file: BinaryIO) -> Iterator[bytes]:
    """Yield all lines of a file in the order of time, those of equal time as they are."""
    lines = in_order(file.read())
    if lines:
        yield lines


def in_order(lines: bytes) -> bytes:
    """Return lines sorted by time, those of equal time as they are; a malformed one stays behind the one before it."""
    if lines and not lines.endswith(b"\n"):
        lines += b"\n"
    data = np.frombuffer(lines, np.uint8)
    begins, ends, times = line_times(data)
    if (times[1:] >= times[:-1]).all():
        return lines
    order = np.argsort(times, kind="stable")
    return b"".join([lines[begins[i] : ends[i]] for i in order.tolist()])
