"""Runs a job over graphs as a stream: one Spark query with its state, and a merger whose output is written once.

The merger runs in the driver, batch by batch: what a batch gives is before all that later ones give. What it keeps from
batch to batch stands in the files that it writes, so that a batch and the state after it count together or not at all.
"""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from trellis.engines.spark.graphs.run import make_job
from trellis.engines.spark.graphs.stateful import FOUND, LAST_TIME, PACKED, Flush, InstanceProcessor, LastTime, Pack
from trellis.engines.spark.graphs.tasks import inner_rows
from trellis.engines.spark.session.failures import in_driver, in_task
from trellis.engines.spark.session.masters import refuse_connect
from trellis.engines.spark.ship.ship import ship
from trellis.engines.spark.sources.frames import EventFrame, described_events
from trellis.engines.spark.split.rows import column_name
from trellis.engines.spark.stream.running import AHEAD, bucket_keys
from trellis.engines.spark.stream.spark_log import check_checkpoint, check_files
from trellis.engines.spark.stream.stateful import moment_of, set_up
from trellis.errors import DataError, UsageError
from trellis.events.source import EventSource
from trellis.graphs.job import sort_key
from trellis.graphs.merger import Merger, MergeRun
from trellis.graphs.plain import from_bytes, to_bytes
from trellis.graphs.splitter import Splitter
from trellis.io.durable import sync_file, write_whole
from trellis.streams.commit_log import FLUSH
from trellis.streams.delays import delay_of
from trellis.streams.lock import StreamLock, is_unused
from trellis.streams.stream_output import RESULTS, StreamOutput, batch_name
from trellis.streams.table_bytes import unpacked

ABOUT = "trellis.json"
MERGER = b"trellis.merger"  # in the metadata of a file: what the merger keeps after it
MOMENT = "moment"


@dataclass
class GraphTotals:
    """The numbers of a stream since it was started."""

    batches: int = 0
    events: int = 0
    results: int = 0
    late: int = 0
    bad: int = 0


class GraphStream:
    """A job that runs over a streaming frame; `start` starts it, `wait` waits for its end, `stop` brings it.

    Parameters
    ----------
    frame
        A streaming data frame of events, from any source.
    splitter, operator, merger
        As in `trellis.graphs.run`; they run here as they run there.
    out, checkpoint
        Directories for the results, which `trellis.streams.stream_output.read_committed` reads in order, and for the
        state.
    watermark
        How far events may be late, such as `10 minutes`; a plain number where times are numbers.
    time, event_id
        The columns that hold time and id.
    available_now
        Whether to stop when all that is there has been read.
    max_ahead
        An event that is farther ahead of the clock on the wall does not move the watermark; None for no guard.
    """

    def __init__(
        self, frame: DataFrame, splitter: Splitter, operator: Any, merger: Merger | None = None, *, out: str | Path,
        checkpoint: str | Path, watermark: str | int | float, time: str | None = None, event_id: str | None = None,
        available_now: bool = False, max_ahead: str | None = AHEAD,
    ) -> None:  # fmt: skip
        if not frame.isStreaming:
            raise UsageError("this is no streaming data frame, as spark.readStream gives", "Use `run` for others.")
        refuse_connect(frame.sparkSession, "an operator over a stream", "")
        with in_driver():
            events, schema = described_events(EventSource.of(frame), None, time, None, event_id)
            self.job = make_job(events, schema, splitter, operator, merger)
            self.session = events.sparkSession
            delay = delay_of(watermark, schema.time_type)
            ahead = (
                None if max_ahead is None or not schema.time_type.temporal else delay_of(max_ahead, schema.time_type)
            )
            rows = EventFrame(events)
            names = list(rows.types)
            moment = moment_of(rows.column(schema.time), schema.time_type, ahead).alias(MOMENT)
            columns = [rows.column(name).alias(column_name(i)) for i, name in enumerate(names)]
            marked = rows.frame.select(*columns, moment).withWatermark(MOMENT, f"{delay} milliseconds").drop(MOMENT)
        self._names, self._events = tuple(names), marked
        self.output = StreamOutput(out)
        self.checkpoint = Path(checkpoint)
        self.available_now = available_now
        self.totals = GraphTotals()
        self.running: Any = None
        self._alone = StreamLock()
        self._numbers = self._known_numbers()

    def _about(self) -> dict[str, Any]:
        columns = {fld.name: fld.dataType.simpleString() for fld in self._events.schema.fields}
        return {"operator": self.job.name, "names": list(self._names), "columns": columns,
                "out": str(self.output.directory.absolute())}  # fmt: skip

    def _known_numbers(self) -> tuple[int, ...]:
        """Return the numbers of the instances: those that the checkpoint has state of, or new ones."""
        path = self.checkpoint / ABOUT
        if not path.exists():
            if not is_unused(self.checkpoint):
                raise UsageError(f"{self.checkpoint} is no checkpoint of such a stream", "Name an empty directory.")
            return tuple(bucket_keys(self.session))
        try:
            kept = json.loads(path.read_text(encoding="utf-8"))
            numbers = tuple(int(number) for number in kept.pop("numbers"))
        except (ValueError, KeyError, TypeError):
            raise DataError(f"{path} cannot be read", "It is damaged, or of another version of Trellis.") from None
        for name, now in self._about().items():
            if kept.get(name) != now:
                raise UsageError(
                    f"the checkpoint {self.checkpoint} is of another stream: its {name} is {kept.get(name)}, not {now}",
                    "Name another checkpoint and another output.",
                )
        return numbers

    def start(self) -> None:
        """Start to read, to hold and to write."""
        self._take_places()
        with in_driver():
            ship(self.session)
            set_up(self.session)
            pieces = self._events.mapInArrow(Pack(self.job, self._names, self._numbers), PACKED)
            holding = InstanceProcessor(self.job, self._numbers)
            found = pieces.groupBy("instance").transformWithStateInPandas(holding, FOUND, "append", "eventTime")
            writer = found.writeStream.foreachBatch(lambda frame, batch: self._write(frame, batch_name(batch)))
            writer = writer.option("checkpointLocation", str(self.checkpoint / "spark"))
            self.running = (writer.trigger(availableNow=True) if self.available_now else writer).start()

    def _take_places(self) -> None:
        """Lock the checkpoint and the output, see that they belong together, and make the output ready."""
        self._alone.take(self.checkpoint, f"the checkpoint {self.checkpoint}")
        try:
            about = self.checkpoint / ABOUT
            if about.exists():
                known = json.loads(about.read_text(encoding="utf-8"))
                self._numbers = self._known_numbers()  # another process may have begun meanwhile
                self.output.check_known(self.checkpoint, known.get("output"))
            else:
                self.output.check_new()
            self._alone.take(self.output.log.directory, f"the output {self.output.directory}")
            kept = {**self._about(), "numbers": self._numbers, "output": self.output.prepare([RESULTS])}
            check_checkpoint(self.checkpoint / "spark", self.output.last_batch())
            write_whole(about, json.dumps(kept, indent=2))
        except BaseException:
            self._alone.release()
            raise

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for the end, or for so long; return whether it has ended. Raise what went wrong."""
        with in_driver():
            ended = bool(self.running.awaitTermination(seconds)) or seconds is None
        if ended:
            self._alone.release()
        return ended

    def stop(self) -> None:
        """Stop it."""
        self.running.stop()
        self._alone.release()

    def flush(self) -> None:
        """Run over what still waits: the input has ended. What this writes is taken back when the stream goes on."""
        if not self._alone.is_held:
            self._take_places()
        try:
            self._flush()
        finally:
            self._alone.release()

    def _flush(self) -> None:
        place = str(self.checkpoint / "spark")
        if not any((self.checkpoint / "spark" / "commits").glob("[0-9]*")):
            return  # nothing ever came
        with in_driver():
            state: DataFrame | None = None
            for variable, column in (("waiting", "list_element.blob"), ("operators", "value.blob")):
                held = self.session.read.format("statestore").option("stateVarName", variable).load(place)
                rows = held.select("key.instance", f.lit(variable).alias("variable"), f.col(column).alias("value"))
                state = rows if state is None else state.unionByName(rows)
            assert state is not None
            state, last = state.repartition("instance"), None
            if self.job.is_timed:
                column = LAST_TIME[not pa.types.is_floating(self.job.shape.time_type)][0]
                latest = state.mapInArrow(LastTime(self.job, self._numbers), column)
                last = latest.agg(f.max("last")).collect()[0][0]
            found = state.mapInArrow(Flush(self.job, self._numbers, last), FOUND)
            self.output.take_back()
            self._write(found, FLUSH)

    # --- The merger -----------------------------------------------------------------------------------------------

    def _write(self, frame: DataFrame, batch: str) -> None:
        """Merge the results of a batch, and write them, once."""
        table = frame.toArrow()
        if batch != FLUSH:
            with in_task():
                check_files(self.checkpoint / "spark", int(batch))
        taken, late, bad = (sum(table[name].to_pylist()) for name in ("taken", "late", "bad"))
        if taken and batch != FLUSH:
            self.output.take_back()
        if not self.output.has(batch):
            self.totals.results += self._commit(table, batch)
        self.totals.batches += 1
        self.totals.events += taken
        self.totals.late += late
        self.totals.bad += bad

    def _commit(self, table: pa.Table, batch: str) -> int:
        """Write the results of a batch with the state of the merger, and put it into the log; return how many."""
        found = [row for blob in table["blob"].to_pylist() if blob for row in inner_rows(self.job, unpacked(blob))]
        if not found:
            return 0
        merging = self.job.merging()
        self._restore(merging)
        merged = self.job.merged_table(sorted(found, key=sort_key), merging)
        combine = merging.combine
        kept = b"" if combine is None else to_bytes(combine.state(), f"the combination {type(combine).__name__}")
        name = f"part-{batch}-0-{uuid.uuid4().hex}.parquet"
        pq.write_table(merged.replace_schema_metadata({MERGER: kept}), self.output.directory / name)
        sync_file(self.output.directory / name)
        self.output.commit(batch, {RESULTS: [name]}, {RESULTS: merged.num_rows})
        return merged.num_rows

    def _restore(self, merging: MergeRun) -> None:
        """Go on merging from where the last batch left off."""
        if merging.combine is None:
            return
        last = self.output.log.newest()
        if last is not None:
            kept = pq.read_schema(self.output.directory / last["files"][RESULTS][0]).metadata[MERGER]
            merging.combine.restore(from_bytes(kept))
