"""Streams as queries of Spark's: how they are started, locked, waited for and stopped; and those that are one query.

Of one query:

checkpoint/trellis.json     what the stream is, so that no other goes on with it
checkpoint/spark            the checkpoint of Spark
checkpoint/lock             held by the process that runs the stream
"""

from __future__ import annotations

import json
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame

from trellis.engines.spark.session.failures import in_driver, mistake_in
from trellis.engines.spark.stream.checkpoint import ABOUT, read_about
from trellis.engines.spark.stream.spark_log import check_checkpoint
from trellis.errors import TrellisError, UsageError
from trellis.io.durable import write_whole
from trellis.streams.lock import StreamLock
from trellis.streams.stream_output import RESULTS, StreamOutput


def started(frame: DataFrame, work: Callable[[DataFrame, int], None], place: Path, available_now: bool) -> Any:
    """Start a query of Spark's that does some work with each batch, and remembers in `place` how far it is."""
    writer = frame.writeStream.foreachBatch(work).option("checkpointLocation", str(place))
    writer = writer.queryName(str(place.absolute()))  # a session may have several such streams
    return (writer.trigger(availableNow=True) if available_now else writer).start()


def stop_after_batch(query: Any) -> None:
    """Stop a query of Spark's when the batch that runs has ended."""
    seen = query.lastProgress
    batch = None if seen is None else seen["batchId"]
    while query.isActive and query.status["isTriggerActive"]:
        progress = query.lastProgress
        if progress is not None and progress["batchId"] != batch:
            break
        threading.Event().wait(0.02)
    query.stop()


class RunningStream:
    """A stream that runs, as one or more queries of Spark's, by name, and keeps others out of its directories."""

    def __init__(self) -> None:
        self.running: dict[str, Any] = {}
        self._alone = StreamLock()

    @contextmanager
    def _locking(self, checkpoint: Path) -> Iterator[None]:
        """Lock the checkpoint, and let others in again if what is done then fails."""
        self._alone.take(checkpoint, f"the checkpoint {checkpoint}")
        try:
            yield
        except BaseException:
            self._alone.release()
            raise

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for the end, or for so long; return whether it has ended. Raise what went wrong."""
        for name in self.running:
            with in_driver():
                if not self._has_ended(name, seconds):
                    return False
        self._alone.release()
        return True

    def _has_ended(self, name: str, seconds: float | None) -> bool:
        return bool(self.running[name].awaitTermination(seconds)) or seconds is None

    @property
    def failure(self) -> TrellisError | BaseException | None:
        """The error that ended the stream, if one did."""
        for query in self.running.values():
            problem = query.exception()
            if problem is not None:
                return mistake_in(problem) or problem
        return None

    def stop(self) -> None:
        """Stop when the batches that run have ended."""
        for query in self.running.values():
            stop_after_batch(query)
        self._alone.release()


class OneQueryStream(RunningStream):
    """A stream that is one query; `start` starts it, `wait` waits for its end, `stop` brings it.

    Parameters
    ----------
    checkpoint
        Its directory.
    available_now
        Whether to stop when all that is there has been read.
    """

    about = ABOUT
    maker = "such a stream"  # whose checkpoint it is, for a message

    def __init__(self, checkpoint: str | Path, available_now: bool) -> None:
        self.checkpoint, self.available_now = Path(checkpoint), available_now
        super().__init__()

    @property
    def spark_checkpoint(self) -> Path:
        """The checkpoint of Spark."""
        return self.checkpoint / "spark"

    def _stored(self) -> dict[str, Any] | None:
        """Return the description of the stream in its checkpoint; None of a new one."""
        return read_about(self.checkpoint, self.about, self.maker)

    def _refuse_other(self, stored: Mapping[str, Any], known: Mapping[str, Any]) -> None:
        """Refuse a checkpoint that says something else of its stream."""
        for name, now in known.items():
            if stored.get(name) != now:
                raise UsageError(
                    f"the checkpoint {self.checkpoint} is of another stream: its {name} is {stored.get(name)}, "
                    f"not {now}",
                    "Name another checkpoint and another output.",
                )

    def _start(self, frame: DataFrame, work: Callable[[DataFrame, int], None]) -> None:
        with in_driver():
            self.running[""] = started(frame, work, self.spark_checkpoint, self.available_now)


class WritingStream(OneQueryStream, ABC):
    """A stream whose results are written to an output, and may be those at the end of the input.

    Parameters
    ----------
    out
        The directory of the output.
    checkpoint, available_now
        See `OneQueryStream`.
    """

    def __init__(self, out: str | Path, checkpoint: str | Path, available_now: bool) -> None:
        super().__init__(checkpoint, available_now)
        self.output = StreamOutput(out)

    @abstractmethod
    def _about(self) -> dict[str, Any]:
        """Return the part of the description that a stream which goes on must agree with."""

    def _description(self) -> dict[str, Any]:
        """Return the description of the stream for its checkpoint, without its output."""
        return self._about()

    def _go_on(self, stored: Mapping[str, Any]) -> None:
        """See that a checkpoint can be gone on from."""
        self._refuse_other(stored, self._about())

    def _take_places(self) -> None:
        """Lock the checkpoint and the output, see that they belong together, and make the output ready."""
        with self._locking(self.checkpoint):
            stored = self._stored()
            if stored is None:
                self.output.check_new()
            else:
                self.output.check_known(self.checkpoint, stored.get("output"))
                self._go_on(stored)
            self._alone.take(self.output.log.directory, f"the output {self.output.directory}")
            about = {**self._description(), "output": self.output.prepare([RESULTS])}
            check_checkpoint(self.spark_checkpoint, self.output.last_batch())
            write_whole(self.checkpoint / self.about, json.dumps(about, indent=2))

    def flush(self) -> Any:
        """Add the results at the end of the input, as if nothing more would come; they are taken back if more does."""
        if not self._alone.is_held:
            self._take_places()
        try:
            return self._flush()
        finally:
            self._alone.release()

    @abstractmethod
    def _flush(self) -> Any:
        """Add the results at the end of the input; the places are taken."""
