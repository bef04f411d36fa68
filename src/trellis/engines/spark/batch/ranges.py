"""Listing on all cores whatever the groups: tasks count, and what is too much for one task is listed by ranks.

A task that has counted a slice writes its results at once while these are few. A larger slice is saved, index, graph
and counts, in a file that is mapped by all tasks of a second job, each with its own range of ranks: no partial result
is shuffled, and no two of these tasks list numbers of results that differ by more than one.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import pyarrow as pa

from trellis.digits import digits_of, number_of
from trellis.engines.spark.batch.operate import Work, make_slice
from trellis.engines.spark.batch.sink import RemoteSink, Sink, WrittenFile, report, task_number
from trellis.engines.spark.batch.tiles import TileSize
from trellis.engines.spark.session.failures import in_task
from trellis.engines.spark.ship.shared import load, save
from trellis.engines.spark.split.rows import whole_groups
from trellis.language.bound import BoundQuery
from trellis.limits import refuse_listing, result_size
from trellis.make import make_operator
from trellis.operators.batch import RankRange
from trellis.operators.contract import ListRequest, QueryOperator
from trellis.plan.plan import Plan
from trellis.results.arrange import possible_ranges
from trellis.results.rows import RowMaker

MOST_TASKS = 20_000  # more would keep the driver busy
SAVED = "slice"


def can_be_ranged(bound: BoundQuery) -> bool:
    """Return whether each group tells by itself which of its ranks are in the result."""
    return not bound.arranged and (bound.per_window or (bound.limit is None and not bound.offset))


@dataclass(frozen=True)
class TaskSettings:
    """How tasks list results and write them.

    Parameters
    ----------
    at_once
        Results that a task writes before it is known how many there are in all.
    rows
        Results of a range at most, so that a lost task costs little.
    memory
        Bytes that a worker may hold; None: as it finds it.
    sink, remote
        Where tasks write to: a directory, or storage elsewhere.
    tile
        The size of a tile, if groups of more than twice as many events are counted in tiles; None: those that a task
        has no memory for.
    """

    at_once: int = 2_000_000
    rows: int = 4_000_000
    memory: int | None = None
    sink: type[Sink] = Sink
    remote: type[RemoteSink] = RemoteSink
    tile: TileSize | None = None


@dataclass(frozen=True)
class SavedSlice:
    """A slice that was saved: its file, and the number of its results."""

    name: str
    rows: int


@dataclass(frozen=True)
class CountAndWrite:
    """Counts the groups of a task, writes the results of some slices, and saves the others."""

    work: Work
    sink: Sink
    at_once: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Take the rows of a task, in the order (group, time, id), and report what was done."""
        with in_task():
            state = _State(self)
            files = list(self.sink.write(state.rows(batches), task_number()))
            about = {
                "files": [vars(file) for file in files],
                "slices": [vars(one) for one in state.saved],
                "counts": digits_of(state.total),
                "rows": digits_of(state.wanted),
            }
            yield report(about)


class _State:
    """The counts of a task so far, and the slices that it saved."""

    def __init__(self, task: CountAndWrite) -> None:
        self.work, self.sink, self.left = task.work, task.sink, task.at_once
        self.total = self.wanted = 0
        self.saved: list[SavedSlice] = []

    def rows(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the results of slices that have few; save the others."""
        plan, bound = self.work.plan, self.work.plan.bound
        for table in whole_groups(batches, self.work.boundary, self.work.memory):
            operator = make_operator(plan, make_slice(plan, table, self.work.length))
            counts = operator.counts_before_listing()
            rows = result_size(bound, counts)
            self.total, self.wanted = self.total + sum(counts), self.wanted + rows
            refuse_listing(bound, [self.total] if not bound.per_window else counts, self.work.max_trends)
            if rows > self.left:
                if self.wanted > self.work.max_trends:
                    continue
                name = self._save(operator)
                if name is not None:
                    self.saved.append(SavedSlice(name, rows))
                    continue
            self.left = max(0, self.left - rows)
            ranges = possible_ranges(bound, counts)
            maker = RowMaker(plan, operator.events)
            yield from operator.list(ListRequest(ranges, maker.batch, words=maker.words()))

    def _save(self, operator: QueryOperator) -> str | None:
        """Save the operator of a slice, and return the name of the file; None where files cannot be private."""
        self.sink.check()
        operator.prepare()
        name = f"{SAVED}-{secrets.token_hex(16)}"
        return None if save(operator, Path(self.sink.directory) / name) is None else name


@dataclass(frozen=True)
class WriteRanges:
    """Writes ranges of the results of saved slices: range number `i` is that of task `i`."""

    plan: Plan
    sink: Sink
    ranges: Sequence[Sequence[tuple[str, int, int]]]
    place: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Take the numbers of ranges, and tell what was written."""
        with in_task():
            for batch in batches:
                for number in batch.column(0).to_pylist():
                    for file in self.sink.write(self._rows(number), self.place + number):
                        yield report({"files": [vars(file)], "task": number})

    def _rows(self, number: int) -> Iterator[pa.RecordBatch]:
        for name, begin, end in self.ranges[number]:
            operator = _loaded(str(Path(self.sink.directory) / name))
            ranges = within(possible_ranges(self.plan.bound, operator.counts), begin, end)
            maker = RowMaker(self.plan, operator.events)
            yield from operator.list(ListRequest(ranges, maker.batch, words=maker.words()))


@lru_cache(maxsize=2)
def _loaded(file: str) -> QueryOperator:
    operator: QueryOperator = load(Path(file))
    return operator


def within(ranges: Sequence[RankRange], begin: int, end: int) -> list[RankRange]:
    """Return the part of consecutive rank ranges that is from row `begin` to before row `end`."""
    found: list[RankRange] = []
    before = 0
    for group, first, last in ranges:
        low, high = max(first, first + begin - before), min(last, first + end - before)
        if low < high:
            found.append((group, low, high))
        before += last - first
    return found


def even_ranges(slices: Sequence[SavedSlice], cores: int, most: int) -> list[list[tuple[str, int, int]]]:
    """Cut the results of slices into ranges that differ by at most one row, as many for each core, of bounded size."""
    total = sum(one.rows for one in slices)
    number = min(total, cores * max(1, min(-(-total // (cores * most)), MOST_TASKS // cores)))
    ranges: list[list[tuple[str, int, int]]] = []
    for i in range(number):
        begin, end = total * i // number, total * (i + 1) // number
        before, found = 0, []
        for one in slices:
            low, high = max(0, begin - before), min(one.rows, end - before)
            if low < high:
                found.append((one.name, low, high))
            before += one.rows
        ranges.append(found)
    return ranges


@dataclass(frozen=True)
class Survey:
    """The joined reports of the tasks of `CountAndWrite`."""

    files: list[WrittenFile]
    slices: list[SavedSlice]
    total: int
    rows: int


def joined_reports(answers: Iterable[dict[str, list[dict[str, object]]]]) -> Survey:
    """Join the reports of tasks."""
    files, slices, total, rows = [], [], 0, 0
    for about in answers:
        files += [WrittenFile(**file) for file in about["files"]]  # type: ignore[arg-type]
        slices += [SavedSlice(**one) for one in about["slices"]]  # type: ignore[arg-type]
        total += number_of(about["counts"])  # type: ignore[arg-type]
        rows += number_of(about["rows"])  # type: ignore[arg-type]
    return Survey(files, slices, total, rows)
