"""An archive that follows a stream: each micro-batch is appended, once, whatever is killed in between.

The number of a batch goes into the manifest in the same step as its events. A batch that Spark runs again after a
restart is found there, and not appended again. The checkpoint directory holds `archive.json`, which names the stream
and its archive, and the checkpoint of Spark.
"""

from __future__ import annotations

import datetime as dt
import json
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame

from trellis.archive.archive import Archive
from trellis.engines.spark.session.failures import in_task
from trellis.engines.spark.session.masters import refuse_connect
from trellis.engines.spark.sources.loading import quoted
from trellis.engines.spark.stream.checkpoint import unreadable
from trellis.engines.spark.stream.one_query import OneQueryStream
from trellis.engines.spark.stream.spark_log import check_checkpoint, check_files
from trellis.errors import UsageError
from trellis.io.durable import write_whole
from trellis.language.schema import Type
from trellis.streams.delays import delay_of


class ArchiveStream(OneQueryStream):
    """A stream that is appended to an archive; `start` starts it, `wait` waits for its end, `stop` brings it.

    Parameters
    ----------
    frame
        A streaming data frame with the columns of the archive.
    archive
        The directory of the archive.
    checkpoint
        The directory in which the stream remembers how far it is.
    delay
        How far events may be late, such as `10 minutes`, or a plain number where times are numbers: so much of the
        newest is held back in the archive, where questions see it.
    late
        `error`: an event that comes later than that ends the stream; `drop`: it is counted and left out.
    available_now
        Stop when all that is there has been read.
    file_columns
        Those that each file should have, where the frame is that of files.
    """

    about = "archive.json"
    maker = "`trellis archive follow`"

    def __init__(
        self, frame: DataFrame, archive: str, checkpoint: str, *, delay: str | int | None = None, late: str = "error",
        available_now: bool = False, file_columns: Sequence[str] = (),
    ) -> None:  # fmt: skip
        if not frame.isStreaming:
            raise UsageError("only a streaming data frame is followed", "Use Archive.append for one that is not.")
        refuse_connect(frame.sparkSession, "an archive that follows a stream", "")
        super().__init__(checkpoint, available_now)
        self.archive = Archive.open(archive)
        schema = self.archive.manifest.arrow
        missing = [name for name in schema.names if name not in frame.columns]
        if missing:
            raise UsageError(f"the events have no column `{missing[0]}`, which the archive has")
        self.frame = frame.select(*(frame[quoted(name)] for name in schema.names))
        self.delay = None if delay is None else _delay(delay, self.archive.answerer.schema.time_type)
        if late not in ("error", "drop"):
            raise UsageError(f"late is `{late}`", "It is `error` or `drop`.")
        self.late, self.file_columns = late, file_columns
        self.name = self._name_for(str(Path(archive).absolute()))
        self.batches = self.events = 0

    def start(self) -> None:
        """Start to read and append."""
        with self._locking(self.checkpoint):
            check_checkpoint(self.spark_checkpoint, self.archive.manifest.batches.get(self.name))
        self._start(self.frame, self._append)

    def _append(self, frame: DataFrame, number: int) -> None:
        with in_task():
            table = frame.toArrow()
            check_files(self.spark_checkpoint, number, self.file_columns)
            added = self.archive.append(table, delay=self.delay, late=self.late, batch=(self.name, number))
            if added:
                self.batches += 1
                self.events += table.num_rows

    def _name_for(self, archive: str) -> str:
        """Return the name of the stream whose checkpoint it is; a new one gets one."""
        stored = self._stored()
        if stored is None:
            stored = {"stream": uuid.uuid4().hex, "archive": archive}
            self.checkpoint.mkdir(parents=True, exist_ok=True)
            write_whole(self.checkpoint / self.about, json.dumps(stored))
        if not {"stream", "archive"} <= stored.keys():
            raise unreadable(self.checkpoint / self.about)
        if stored["archive"] != archive:
            raise UsageError(
                f"the checkpoint {self.checkpoint} is of the archive {stored['archive']}", "Name that one, or another."
            )
        return str(stored["stream"])


def _delay(text: str | int, time: Type) -> Any:
    number = delay_of(text, time, "delay")
    return dt.timedelta(milliseconds=number) if time.temporal else number
