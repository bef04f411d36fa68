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
from trellis.engines.spark.archive.build import quoted
from trellis.engines.spark.session.failures import in_driver, in_task, mistake_in
from trellis.engines.spark.session.masters import refuse_connect
from trellis.engines.spark.stream.spark_log import check_checkpoint, check_files
from trellis.errors import DataError, TrellisError, UsageError
from trellis.io.durable import write_whole
from trellis.language.schema import Type
from trellis.streams.delays import delay_of
from trellis.streams.lock import StreamLock, is_unused

ABOUT = "archive.json"


class ArchiveStream:
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

    def __init__(
        self, frame: DataFrame, archive: str, checkpoint: str, *, delay: str | int | None = None, late: str = "error",
        available_now: bool = False, file_columns: Sequence[str] = (),
    ) -> None:  # fmt: skip
        if not frame.isStreaming:
            raise UsageError("only a streaming data frame is followed", "Use Archive.append for one that is not.")
        refuse_connect(frame.sparkSession, "an archive that follows a stream", "")
        self.archive = Archive.open(archive)
        schema = self.archive.manifest.arrow
        missing = [name for name in schema.names if name not in frame.columns]
        if missing:
            raise UsageError(f"the events have no column `{missing[0]}`, which the archive has")
        self.frame = frame.select(*(frame[quoted(name)] for name in schema.names))
        self.delay = None if delay is None else _delay(delay, self.archive.answerer.schema.time_type)
        if late not in ("error", "drop"):
            raise UsageError(f"late is `{late}`", "It is `error` or `drop`.")
        self.late, self.available_now, self.file_columns = late, available_now, file_columns
        self.checkpoint = Path(checkpoint)
        self.name = _name_of(self.checkpoint, Path(archive).absolute())
        self.batches = self.events = 0
        self.running: Any = None
        self._alone = StreamLock()

    def start(self) -> None:
        """Start to read and append."""
        self._alone.take(self.checkpoint, f"the checkpoint {self.checkpoint}")
        try:
            check_checkpoint(self.checkpoint / "spark", self.archive.manifest.batches.get(self.name))
        except BaseException:
            self._alone.release()
            raise
        writer = self.frame.writeStream.foreachBatch(self._append)
        writer = writer.option("checkpointLocation", str(self.checkpoint / "spark"))
        with in_driver():
            self.running = (writer.trigger(availableNow=True) if self.available_now else writer).start()

    def _append(self, frame: DataFrame, number: int) -> None:
        with in_task():
            table = frame.toArrow()
            check_files(self.checkpoint / "spark", number, self.file_columns)
            added = self.archive.append(table, delay=self.delay, late=self.late, batch=(self.name, number))
            if added:
                self.batches += 1
                self.events += table.num_rows

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for the end, or for so long; return whether it has ended. Raise what went wrong."""
        with in_driver():
            ended = bool(self.running.awaitTermination(seconds)) or seconds is None
        if ended:
            self._alone.release()
        return ended

    @property
    def failure(self) -> TrellisError | BaseException | None:
        """The error that ended the stream, if one did."""
        problem = self.running.exception()
        return None if problem is None else mistake_in(problem) or problem

    def stop(self) -> None:
        """Stop when the batch that runs has ended."""
        while self.running.isActive and self.running.status["isTriggerActive"]:
            self.running.awaitTermination(0.02)
        self.running.stop()
        self._alone.release()


def _delay(text: str | int, time: Type) -> Any:
    number = delay_of(text, time, "delay")
    return dt.timedelta(milliseconds=number) if time.temporal else number


def _name_of(checkpoint: Path, archive: Path) -> str:
    """Return the name of the stream whose checkpoint it is; a new one gets one."""
    about = checkpoint / ABOUT
    if not about.exists():
        if not is_unused(checkpoint):
            raise UsageError(
                f"{checkpoint} is no checkpoint of `trellis archive follow`",
                "Name an empty directory, or one that it made.",
            )
        checkpoint.mkdir(parents=True, exist_ok=True)
        write_whole(about, json.dumps({"stream": uuid.uuid4().hex, "archive": str(archive)}))
    try:
        told = json.loads(about.read_text(encoding="utf-8"))
        name, place = told["stream"], told["archive"]
    except (ValueError, KeyError, TypeError):
        raise DataError(f"{about} cannot be read", "It is damaged, or of another version of Trellis.") from None
    if place != str(archive):
        raise UsageError(f"the checkpoint {checkpoint} is of the archive {place}", "Name that one, or another.")
    return str(name)
