"""Histories made on Spark: events are cut into chunks by time, and tasks sort them, filter them and write them.

1. Spark cuts the events by time: those of one time are in one chunk. A task sorts its chunk and writes it down.
2. The driver counts: now it knows the position of each chunk's first event. It looks at some leaves for the size.
3. Tasks write the events of their chunks again, in row groups that end where leaves end, and what is known of them.
4. The driver joins what is known, and makes it count.
"""

from __future__ import annotations

import shutil
import socket
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from trellis.archive.contents import Chunk, chunk_of
from trellis.archive.events import GROUP, Progress, fitted, in_order, write_events
from trellis.archive.growth import ArchivePlan, commit, number_too_late, split_newest
from trellis.archive.store import Manifest, making
from trellis.engines.spark.batch.sink import REPORT, report, reports_in, task_number
from trellis.engines.spark.session.failures import in_driver, in_task
from trellis.engines.spark.sources.loading import quoted
from trellis.errors import DataError, UsageError

if TYPE_CHECKING:
    from trellis.archive.archive import Archive

CHUNK = 1_000_000  # events, about


@dataclass(frozen=True)
class SortedChunk:
    """A chunk of events in order: its file, its first position and its number of events."""

    name: str
    first: int
    rows: int


@dataclass(frozen=True)
class SortAndWrite:
    """Sorts the events of a task and writes them down."""

    directory: str
    schema: pa.Schema
    time: str
    event_id: str | None
    tie_breakers: tuple[str, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Take the events of a task, and report its file."""
        with in_task():
            parts = [batch for batch in batches if batch.num_rows]
            if not parts:
                return
            events = fitted(pa.Table.from_batches(parts), self.schema)
            table = in_order(events, self.time, self.event_id, self.tie_breakers)
            name = f"{task_number():06d}-{uuid.uuid4().hex}.parquet"
            if not Path(self.directory).is_dir():
                raise DataError(
                    f"the worker on {socket.gethostname()} does not see the directory {self.directory}",
                    "Make the archive in a directory that all machines share.",
                )
            pq.write_table(table, Path(self.directory) / name, row_group_size=64 * GROUP)
            yield report({"place": task_number(), "name": name, "rows": table.num_rows})


@dataclass(frozen=True)
class ChunkWriter:
    """Writes the events of chunks to their places, and what is known of them."""

    directory: str
    staging: str
    staged: tuple[SortedChunk, ...]
    manifest: Manifest

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Take numbers of chunks, and tell the files of each."""
        with in_task():
            for batch in batches:
                for number in batch.column(0).to_pylist():
                    yield self._settled(number)

    def _settled(self, number: int) -> pa.RecordBatch:
        one, staging = self.staged[number], Path(self.staging)
        table = pq.read_table(staging / one.name).slice(0, one.rows)
        unique = f"{number:06d}-{uuid.uuid4().hex}"
        name = self.manifest.named(f"events-{unique}", "parquet")
        write_events(table, Path(self.directory) / name, one.first, self.manifest)
        chunk_of(table, one.first, self.manifest).save(staging / f"{unique}.npz")
        return report({"place": number, "name": name, "chunk": f"{unique}.npz"})


def build(frame: DataFrame, directory: Path, plan: ArchivePlan, step: Progress) -> Path:
    """Make an archive of a frame of events, and return its directory."""
    from trellis.archive.archive import Archive

    schema = to_arrow_schema(frame.schema)
    plan.check(directory, schema)
    with (
        making(directory),
        _staging(frame, directory, schema, (plan.time, plan.event_id, plan.tie_breakers), step) as (staging, staged),
    ):
        events = staged[-1].first + staged[-1].rows if staged else 0
        manifest = plan.manifest(schema, events, _reader(staging, staged, [plan.type, plan.key, *plan.values]))
        archive = Archive.begin(directory, manifest)
        _settled(frame, archive, staging, staged, step)
    return directory


def append(frame: DataFrame, archive: Archive, step: Progress) -> Manifest:
    """Add the events of a frame to an archive, and return its new manifest."""
    manifest = archive.manifest
    schema = manifest.arrow
    whole = frame.select(*(frame[quoted(name)] for name in schema.names if name in frame.columns))
    if archive.held.num_rows:
        whole = whole.unionByName(frame.sparkSession.createDataFrame(archive.held.select(whole.columns)))
    with _staging(whole, archive.directory, schema, manifest.order, step) as (staging, staged):
        if not staged:
            return manifest
        number_too_late(_reader(staging, staged, [manifest.time])(0, 1), manifest)
        return _settled(whole, archive, staging, staged, step)


@contextmanager
def _staging(
    frame: DataFrame, directory: Path, schema: pa.Schema, order: tuple[str, str | None, Sequence[str]], step: Progress
) -> Iterator[tuple[Path, list[SortedChunk]]]:
    """Cut events into sorted chunks in a directory that goes away in the end."""
    path = directory / f"staged-{uuid.uuid4().hex}"
    path.mkdir(parents=True)
    try:
        yield path, _staged(frame, path, schema, order, step)
    finally:
        shutil.rmtree(path, ignore_errors=True)


def _staged(
    frame: DataFrame, path: Path, schema: pa.Schema, order: tuple[str, str | None, Sequence[str]], step: Progress
) -> list[SortedChunk]:
    time, event_id, tie_breakers = order
    with in_driver():
        step("counting")
        number = frame.count()
        if not number:
            return []
        tasks = int(frame.sparkSession.conf.get("spark.sql.shuffle.partitions") or 1)
        step(f"sorting {number:,} events")
        cut = frame.repartitionByRange(max(tasks, -(-number // CHUNK)), quoted(time))
        work = SortAndWrite(str(path.absolute()), schema, time, event_id, tuple(tie_breakers))
        files = reports_in(cut.mapInArrow(work, from_arrow_schema(REPORT)).toArrow())
    found: list[SortedChunk] = []
    first = 0
    for file in sorted(files, key=lambda file: file["place"]):
        found.append(SortedChunk(file["name"], first, file["rows"]))
        first += file["rows"]
    if first != number:
        raise UsageError(
            f"the events are not the same each time they are read: {number:,}, then {first:,}", "Write them first."
        )
    return found


def _reader(
    staging: Path, staged: Sequence[SortedChunk], columns: Sequence[str | None]
) -> Callable[[int, int], pa.Table]:
    """Return a function that reads some columns of the events between two positions."""
    wanted = [name for name in columns if name is not None]
    rows = 64 * GROUP

    @lru_cache(maxsize=2)
    def group(name: str, number: int) -> pa.Table:
        with pq.ParquetFile(staging / name) as file:
            return file.read_row_group(number, columns=wanted)

    def read(low: int, high: int) -> pa.Table:
        tables = []
        for one in staged:
            begin, end = max(low - one.first, 0), min(high - one.first, one.rows)
            while begin < end:
                until = min(end, (begin // rows + 1) * rows)
                tables.append(group(one.name, begin // rows).slice(begin % rows, until - begin))
                begin = until
        return pa.concat_tables(tables)

    return read


def _settled(frame: DataFrame, archive: Archive, staging: Path, staged: list[SortedChunk], step: Progress) -> Manifest:
    """Give the events of chunks their places, but for the newest, and make this count."""
    manifest = archive.manifest
    held = manifest.arrow.empty_table()
    chosen = [SortedChunk(one.name, manifest.events + one.first, one.rows) for one in staged]
    if staged:
        settled, held = split_newest(pq.read_table(staging / staged[-1].name), manifest.time, 0)
        chosen[-1] = SortedChunk(staged[-1].name, chosen[-1].first, settled.num_rows)
    chosen = [one for one in chosen if one.rows]
    new = manifest.next()
    files: list[dict[str, Any]] = []
    if chosen:
        step(f"filters of {len(chosen):,} chunk{'' if len(chosen) == 1 else 's'}")
        named = Manifest(**{**vars(manifest), "generation": new.generation})
        work = ChunkWriter(str(archive.directory.absolute()), str(staging.absolute()), tuple(chosen), named)
        with in_driver():
            numbers = frame.sparkSession.range(0, len(chosen), 1, len(chosen))
            files = reports_in(numbers.mapInArrow(work, from_arrow_schema(REPORT)).toArrow())
    files.sort(key=lambda file: file["place"])
    parts = [(file["name"], chosen[file["place"]].first, chosen[file["place"]].rows) for file in files]
    step("joining")
    chunks = (Chunk.load(staging / file["chunk"]) for file in files)
    return commit(archive.directory, new, archive.stored, archive.tree, chunks, parts, held)
