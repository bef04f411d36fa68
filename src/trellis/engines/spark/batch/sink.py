"""Files that tasks write themselves: through the JVM rows would take several times as long.

Tasks write into a hidden directory, under names that no other attempt has, and report what they have written to
the driver. Only the files of tasks that Spark counts as finished are kept; the directory then takes the name of the
result. Whatever an attempt left behind that failed, was killed or came second vanishes with the hidden directory.
"""

from __future__ import annotations

import json
import os
import socket
import uuid
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark import TaskContext

from trellis.engines.spark.batch.operate import fitted
from trellis.engines.spark.session.failures import in_task
from trellis.errors import DataError
from trellis.io.remote import storage_of
from trellis.io.results import write_file

REPORT = pa.schema([("report", pa.string())])
_SIGN = "trellis"  # a file that tells a task that it sees the driver's directory


@dataclass(frozen=True)
class WrittenFile:
    """A file of a task: its name, its rows, and the place of the task among all."""

    place: int
    name: str
    rows: int


@dataclass(frozen=True)
class Sink:
    """Where and how tasks write; `schema` is the user's."""

    directory: str
    format: str
    schema: pa.Schema
    raw_csv: bool = False

    def prepare(self) -> None:
        """Leave a sign for the tasks; in the driver."""
        (Path(self.directory) / _SIGN).touch()

    def check(self) -> None:
        """Refuse to write where the driver does not look."""
        if not (Path(self.directory) / _SIGN).exists():
            raise DataError(
                f"the worker on {socket.gethostname()} does not see the output directory {self.directory}",
                "Write to a directory that all machines share, or to other storage with trends.to_spark().write.",
            )

    def write(self, batches: Iterable[pa.RecordBatch], place: int) -> Iterator[WrittenFile]:
        """Write rows to a file, if there are any; an attempt that fails takes it away again."""
        self.check()
        counted = _CountedBatches(map(self._fitting, batches))
        name = self.name_of(place)
        try:
            if counted.peek():
                self.save(name, counted)
        except BaseException as problem:
            with suppress(OSError):
                self._remove(name)
            if isinstance(problem, OSError | pa.ArrowException):
                raise DataError(f"the output cannot be written on {socket.gethostname()}: {problem}") from None
            raise
        if counted.rows:
            yield WrittenFile(place, name, counted.rows)

    def name_of(self, place: int) -> str:
        """Return a name that no other attempt has."""
        return f"{place:05d}-{uuid.uuid4().hex}.{self.format}"

    def save(self, name: str, batches: Iterable[pa.RecordBatch]) -> None:
        """Write a file."""
        write_file(batches, self.schema, Path(self.directory) / name, self.format, self.raw_csv)

    def _remove(self, name: str) -> None:
        (Path(self.directory) / name).unlink(missing_ok=True)

    def _fitting(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return a batch whose columns of type null are of the file's type."""
        if batch.schema.equals(self.schema):
            return batch
        columns = [c.cast(fld.type) for c, fld in zip(batch.columns, self.schema, strict=True)]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def commit(self, files: Iterable[WrittenFile]) -> None:
        """Keep these files, in their order, and remove all others; in the driver."""
        kept = sorted(files, key=lambda file: (file.place, file.name))
        directory = Path(self.directory)
        for other in set(os.listdir(directory)) - {file.name for file in kept}:
            (directory / other).unlink()
        for number, file in enumerate(kept):
            (directory / file.name).rename(directory / f"part-{number:05d}.{self.format}")
        if not kept:
            write_file([], self.schema, directory / f"part-00000.{self.format}", self.format, self.raw_csv)


@dataclass(frozen=True)
class RemoteSink(Sink):
    """Where and how tasks write to storage elsewhere; `directory` is its address, `run` that of `RemoteTarget`."""

    run: str = ""

    def prepare(self) -> None:
        """Do nothing: storage is there or is not."""

    def check(self) -> None:
        """Do nothing: who cannot write there fails."""

    def name_of(self, place: int) -> str:
        """Return a name that no other attempt has, and that tells the run."""
        return f"part-{place:05d}-{self.run}-{uuid.uuid4().hex[:8]}.{self.format}"

    def save(self, name: str, batches: Iterable[pa.RecordBatch]) -> None:
        """Write a file."""
        system, directory = storage_of(self.directory)
        with system.open_output_stream(f"{directory}/{name}") as stream:
            write_file(batches, self.schema, stream, self.format, self.raw_csv)

    def _remove(self, name: str) -> None:
        system, directory = storage_of(self.directory)
        with suppress(pa.ArrowException):
            system.delete_file(f"{directory}/{name}")

    def written_names(self, files: Iterable[WrittenFile]) -> list[str]:
        """Return the names of what tasks wrote, in their order; one file without rows if they wrote none."""
        names = [file.name for file in sorted(files, key=lambda file: (file.place, file.name))]
        if not names:
            names = [self.name_of(0)]
            self.save(names[0], [])
        return names


class _CountedBatches:
    """Batches that are not empty, and the number of their rows so far."""

    def __init__(self, batches: Iterable[pa.RecordBatch]) -> None:
        self._batches = (batch for batch in batches if batch.num_rows)
        self._first: pa.RecordBatch | None = None
        self.rows = 0

    def peek(self) -> bool:
        """Return whether there are any."""
        self._first = next(self._batches, None)
        return self._first is not None

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        while self._first is not None:
            batch, self._first = self._first, None
            self.rows += batch.num_rows
            yield batch
            self._first = next(self._batches, None)


def report(about: dict[str, Any]) -> pa.RecordBatch:
    """Return the report of a task to the driver, as a row of `REPORT`."""
    return pa.RecordBatch.from_arrays([pa.array([json.dumps(about)])], schema=REPORT)


def reports_in(table: pa.Table) -> list[dict[str, Any]]:
    """Return the reports of tasks."""
    return [json.loads(text) for text in table.column(0).to_pylist()]


@dataclass(frozen=True)
class WriteRows:
    """Writes the rows of a data frame, whose columns are in the order of the sink's schema, one file a task."""

    sink: Sink

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Take the rows of a task and report what was written."""
        with in_task():
            for file in self.sink.write(self._fitted(batches), task_number()):
                yield report(vars(file))

    def _fitted(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield from fitted(pa.Table.from_batches([batch]), self.sink.schema).to_batches()


def task_number() -> int:
    """Return the place of this task among those of its job."""
    context = TaskContext.get()
    return 0 if context is None else context.partitionId()
