"""Files that the tasks of a stream write into its outputs, under names that no other attempt has."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import pyarrow as pa
from pyspark import TaskContext

from trellis.engines.spark.batch.operate import spark_type
from trellis.engines.spark.batch.sink import task_number
from trellis.errors import DataError
from trellis.io.durable import sync_file
from trellis.io.results import write_file
from trellis.streams.stream_output import FOLDERS, RESULTS, TIMEOUTS, WINDOWS, batch_name

DIRECT_BYTES = 1 << 20  # of all tasks together: more are written sooner by the tasks, side by side
TABLES = (RESULTS, WINDOWS, TIMEOUTS)
FILE_BYTES = 256 << 20
BATCH = "streaming.sql.batchId"  # what Spark calls the number of a batch among the properties of a task


@dataclass(frozen=True)
class FileWriter:
    """Where the results of queries go, by name, and how.

    Attributes
    ----------
    large
        The bytes up to which what a task finds goes to the driver; beyond, the task writes it.
    keep_late
        Whether late, bad and repeated events are written, too.
    """

    places: Mapping[str, str]
    format: str
    large: int = DIRECT_BYTES
    raw_csv: bool = False
    keep_late: bool = False

    def takes(self, kind: str) -> bool:
        """Return whether rows of a kind are written."""
        return kind in TABLES or self.keep_late

    def write(self, kind: str, query: str, batch: str, batches: Iterable[pa.RecordBatch]) -> tuple[str, int]:
        """Write a file, and return its name and its rows. It counts when the log of the output names it."""
        batches = iter(batches)
        first = next(batches)
        schema = pa.schema([fld.with_type(spark_type(fld.type)) for fld in first.schema])
        name = f"part-{batch}-{task_number()}-{uuid.uuid4().hex}.{self.format}"
        file = Path(self.places[query]) / FOLDERS[kind] / name
        rows = 0

        def counted() -> Iterator[pa.RecordBatch]:
            nonlocal rows
            for one in chain([first], batches):
                rows += one.num_rows
                yield from pa.Table.from_batches([one]).cast(schema).to_batches()

        try:
            write_file(counted(), schema, file, self.format, self.raw_csv)
            sync_file(file)  # before the log names it
        except BaseException as problem:
            file.unlink(missing_ok=True)
            if isinstance(problem, OSError):
                raise DataError(f"the output cannot be written: {problem}") from None
            raise
        return name, rows


def up_to(batches: Iterator[pa.RecordBatch], size: int) -> Iterator[pa.RecordBatch]:
    """Take batches until they have so many bytes."""
    taken = 0
    while taken < size:
        batch = next(batches, None)
        if batch is None:
            return
        taken += batch.nbytes
        yield batch


def batch_number() -> str:
    """Return the batch that this task is of, as an output names it."""
    context = TaskContext.get()
    number = None if context is None else context.getLocalProperty(BATCH)
    assert number is not None, "the task is of no batch of a stream"
    return batch_name(int(number))
