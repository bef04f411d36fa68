"""The part that both queries share: sources of lines, a state of plain arrays that grows, and lines that come out.

The same object runs over whole files, over chunks of them, and over the batches of a stream: it takes lines of its
sources as they come, holds those that may still be preceded, and writes what the others decide.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from time import perf_counter_ns
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from trellis.kernels.papers.debs2016.lines import (
    BEGIN,
    DISORDERED,
    DONE,
    EAGER,
    EVENT_FIELDS,
    FULL,
    LATEST,
    LINES,
    LINES_OUT,
    MALFORMED,
    NEVER,
    OUT,
    OUT_STAMP,
    READ,
    ROOM,
    SOURCE_FIELDS,
    STAMPED,
    TAKEN,
    WAITS,
    LineFeed,
)
from trellis.kernels.papers.debs2016.tables import FREE, refill, refill_pairs

Integers = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]
Write = Callable[[memoryview], object]

OUTPUT_BYTES = 1 << 16
MOST_SHOWN = 1_000_000  # results of a line
SMALLEST = 16  # rows of an array that grows
LINE_BYTES = 110  # of a post or a comment, about
MOST_EXPECTED = 1 << 22  # rows of a table that is made before it is needed


class LineEngine:
    """A query that runs.

    Attributes
    ----------
    sources
        The names of its sources; of events of equal time, those of an earlier source come first.
    state
        Its arrays by name: all there is to know, but for what lies in the buffers of the sources.
    """

    sources: ClassVar[tuple[str, ...]]

    def __init__(self, numbers: int) -> None:
        number = len(self.sources)
        self.state: dict[str, Any] = {
            "numbers": np.zeros(numbers, np.int64),
            "at": np.zeros(number, np.int64),
            "events": np.zeros((number, EVENT_FIELDS), np.int64),
            "read": np.zeros((number, SOURCE_FIELDS), np.int64),
            "promises": np.full(number, -NEVER, np.int64),
            "bars": np.zeros(7, np.int64),
        }
        self.state["read"][:, [LATEST, TAKEN]] = -NEVER
        self.buffers: list[Bytes] = [np.empty(0, np.uint8) for _ in self.sources]
        self._out = np.empty(OUTPUT_BYTES, np.uint8)

    # --- In -----------------------------------------------------------------------------------------------------

    def expect(self, sizes: Sequence[int]) -> None:
        """Make room for the ids of sources with so many bytes, before anything is taken: tables that grow cost time."""
        for name, size in zip(self.sources, sizes, strict=True):
            table = self._ids_of.get(name)
            rows = min(2 * size // LINE_BYTES, MOST_EXPECTED)
            if table is not None and rows > len(self.state[table]):
                self.state[table] = empty_table(2, 1 << (rows - 1).bit_length())

    _ids_of: ClassVar[Mapping[str, str]] = {}  # the table of the ids of a source

    def push(self, source: int, lines: bytes | Bytes) -> None:
        """Take more lines of a source, whole ones."""
        new = np.frombuffer(lines, np.uint8) if isinstance(lines, bytes) else lines
        held = self.held(source)
        self._go_back(source)
        self.buffers[source] = np.concatenate([held, new]) if len(held) else new
        read = self.state["read"][source]
        read[LATEST] = max(read[LATEST], self.state["promises"][source])

    def replace(self, source: int, lines: bytes) -> None:
        """Take lines of a source in place of those that are held; they may be earlier than these."""
        self._go_back(source)
        self.buffers[source] = np.frombuffer(lines, np.uint8)
        read = self.state["read"][source]
        read[LATEST] = max(read[TAKEN], self.state["promises"][source])

    def restore(self, source: int, held: Bytes) -> None:
        """Take the lines that were held when the state was stored."""
        self._go_back(source)
        self.buffers[source] = held

    def _go_back(self, source: int) -> None:
        """Forget the event that is read and not taken, and begin with the first byte."""
        self.state["read"][source, LINES] -= self.state["events"][source, READ]
        self.state["events"][source, READ] = 0
        self.state["at"][source] = 0

    def held(self, source: int) -> Bytes:
        """Return the lines of a source that are not decided."""
        event, at = self.state["events"][source], self.state["at"][source]
        return self.buffers[source][event[BEGIN] if event[READ] else at :]

    @property
    def _lines(self) -> list[Bytes]:
        """The buffers, none of which can be written: a kernel is compiled for each mixture of those that can."""
        views = [buffer.view() for buffer in self.buffers]
        for view in views:
            view.flags.writeable = False
        return views

    def promise(self, source: int, time: int) -> None:
        """Let it be known that a source has no lines before a time any more; if one comes, it is out of order."""
        self.state["promises"][source] = max(time, self.state["promises"][source])

    def close(self, source: int) -> None:
        """Let it be known that a source has no more lines."""
        self.state["promises"][source] = NEVER

    # --- Out ----------------------------------------------------------------------------------------------------

    def run(self, write: Write, delays: list[int] | None = None) -> int | None:
        """Go on as far as the lines allow.

        Parameters
        ----------
        write
            Takes lines of output; the memory is used again afterwards.
        delays
            If a list, each line of output is written by itself, and the nanoseconds are added to it that went by since
            the event was read that brought it about.

        Returns
        -------
        int or None
            The source whose lines are needed to go on; None at the end.
        """
        numbers = self.state["numbers"]
        numbers[EAGER] = numbers[STAMPED] = delays is not None
        while True:
            numbers[OUT] = 0
            reason = self._call(self._out)
            if numbers[OUT]:
                write(self._out.data[: int(numbers[OUT])])
                if delays is not None and numbers[OUT_STAMP]:
                    delays.append(perf_counter_ns() - int(numbers[OUT_STAMP]))
            if reason == DONE:
                return None
            if reason >= WAITS:
                return int(reason - WAITS)
            if reason == ROOM:
                self._grow()
            elif reason == FULL and not numbers[OUT]:
                self._out = np.empty(2 * len(self._out), np.uint8)

    def _call(self, out: Bytes) -> int:
        raise NotImplementedError

    def _feed(self) -> LineFeed:
        """Where each source is read, as the kernels take it."""
        state = self.state
        return LineFeed(state["at"], state["events"], state["read"], state["promises"], state["bars"])

    def _grow(self) -> None:
        raise NotImplementedError

    # --- Arrays that grow ---------------------------------------------------------------------------------------

    def _rows(self, names: Sequence[str], used: int) -> None:
        """Have room for one more row in arrays that have `used`."""
        for name in names:
            old = self.state[name]
            if used >= len(old):
                new = np.zeros((max(SMALLEST, 2 * len(old)), *old.shape[1:]), old.dtype)
                new[: len(old)] = old
                self.state[name] = new

    def _table(self, name: str, used: int) -> None:
        """Have room for one more entry in a hash table."""
        old = self.state[name]
        if 10 * used >= 7 * len(old):
            new = np.empty((2 * len(old), old.shape[1]), np.int64)
            (refill if old.shape[1] == 2 else refill_pairs)(old, new)
            self.state[name] = new

    # --- What was bad -------------------------------------------------------------------------------------------

    @property
    def bad(self) -> dict[str, int]:
        """Numbers of bad lines and events by what is bad about them."""
        found: dict[str, int] = {}
        for name, read in zip(self.sources, self.state["read"], strict=True):
            found[f"malformed {name}"] = int(read[MALFORMED])
            found[f"{name} out of order"] = int(read[DISORDERED])
        numbers = self.state["numbers"]
        return found | {name: int(numbers[place]) for name, place in self._bad.items()}

    _bad: ClassVar[Mapping[str, int]]

    @property
    def events(self) -> dict[str, int]:
        """Numbers of events that were read, by source."""
        return {
            name: int(read[LINES] - read[MALFORMED] - read[DISORDERED])
            for name, read in zip(self.sources, self.state["read"], strict=True)
        }

    @property
    def lines(self) -> int:
        """The number of lines that were written."""
        return int(self.state["numbers"][LINES_OUT])


def empty_table(columns: int, rows: int = SMALLEST) -> Integers:
    """Return a hash table without entries; the number of its rows is a power of two."""
    return np.full((rows, columns), FREE, np.int64)
