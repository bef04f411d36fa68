"""Runs a job over graphs as a stream: one Spark query with its state, and a merger whose output is written once.

The merger runs in the driver, batch by batch: what a batch gives is before all that later ones give. What it keeps from
batch to batch stands in the files that it writes, so that a batch and the state after it count together or not at all.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from trellis.engines.options import RunOptions
from trellis.engines.spark.graphs.handover import (
    OPERATORS,
    WAITING,
    Handover,
    InstanceState,
    by_instance,
    handed_over,
    state_rows,
)
from trellis.engines.spark.graphs.run import make_job
from trellis.engines.spark.graphs.stateful import FOUND, LAST_TIME, PACKED, Flush, InstanceProcessor, LastTime, Pack
from trellis.engines.spark.graphs.tasks import inner_rows
from trellis.engines.spark.session.failures import in_driver, in_task
from trellis.engines.spark.session.masters import refuse_connect
from trellis.engines.spark.ship.ship import ship
from trellis.engines.spark.sources.frames import EventFrame, described_events
from trellis.engines.spark.split.hashing import PARTITIONS, bucket_keys, spread_keys
from trellis.engines.spark.split.rows import column_name
from trellis.engines.spark.stream.checkpoint import unreadable
from trellis.engines.spark.stream.one_query import WritingStream
from trellis.engines.spark.stream.running import AHEAD
from trellis.engines.spark.stream.spark_log import check_files
from trellis.engines.spark.stream.stateful import moment_of, set_up
from trellis.errors import UsageError
from trellis.events.source import EventSource
from trellis.events.table_bytes import unpacked
from trellis.graphs.chain import Following, PipelinePart
from trellis.graphs.events import IN_UTC, NAIVE
from trellis.graphs.job import sort_key
from trellis.graphs.merger import MergeRun
from trellis.graphs.plain import from_bytes, to_bytes
from trellis.io.durable import sync_file
from trellis.streams.commit_log import FLUSH
from trellis.streams.delays import delay_of
from trellis.streams.stream_output import RESULTS, batch_name

MERGER = b"trellis.merger"  # in the metadata of a file: what the merger keeps after it
CHAIN = b"trellis.chain"  # the same of the later parts of a chain
SHARED = 2  # the version of which instance a partition belongs to: `Splitter.home`
MOMENT = "moment"


@dataclass
class GraphTotals:
    """The numbers of a stream since it was started."""

    batches: int = 0
    events: int = 0
    results: int = 0
    late: int = 0
    bad: int = 0


class GraphStream(WritingStream):
    """A job that runs over a streaming frame; `start` starts it, `wait` waits for its end, `stop` brings it.

    Parameters
    ----------
    frame
        A streaming data frame of events, from any source.
    parts
        A splitter, an operator and a merger, as in `trellis.graphs.run`; they run here as they run there. Of a chain,
        the first of these is shared among the instances; the later ones run where its results are merged.
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
    instances
        How many instances share the partitions: by default as many as before, or about two for each core. A stream may
        go on with another number than it had; the results are the same.
    """

    def __init__(
        self, frame: DataFrame, parts: Sequence[PipelinePart], *, out: str | Path, checkpoint: str | Path,
        watermark: str | int | float, time: str | None = None, event_id: str | None = None,
        available_now: bool = False, max_ahead: str | None = AHEAD, instances: int | None = None,
    ) -> None:  # fmt: skip
        if instances is not None and instances < 1:
            raise UsageError(f"{instances} instances cannot run", "At least one is needed.")
        if not frame.isStreaming:
            raise UsageError("this is no streaming data frame, as spark.readStream gives", "Use `run` for others.")
        refuse_connect(frame.sparkSession, "an operator over a stream", "")
        super().__init__(out, checkpoint, available_now)
        with in_driver():
            events, schema = described_events(EventSource.of(frame), None, RunOptions(time=time, event_id=event_id))
            first, *self._later = parts
            self.job = make_job(events, schema, first.splitter, first.operator, first.merger)
            if self.job.shape.time_type == NAIVE and self._began_in_utc():
                self.job = replace(self.job, shape=replace(self.job.shape, time_type=IN_UTC))
            self._following = Following(self.job, self._later)  # refuses what does not fit before anything runs
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
        self.totals = GraphTotals()
        self._instances = instances
        self._numbers, self._generation, _ = self._known(self._stored())
        self._handover = Handover()

    def _began_in_utc(self) -> bool:
        """Return whether an earlier version of Trellis began the stream, in which all times of results had a zone."""
        stored = self._stored()
        return stored is not None and "shared" not in stored

    def _about(self) -> dict[str, Any]:
        columns = {fld.name: fld.dataType.simpleString() for fld in self._events.schema.fields}
        name = " >> ".join([self.job.name, *self._following.names])
        return {"operator": name, "names": list(self._names), "columns": columns,
                "out": str(self.output.directory.absolute())}  # fmt: skip

    def _description(self) -> dict[str, Any]:
        return {**self._about(), "numbers": self._numbers, "generation": self._generation, "shared": SHARED}

    def _known(self, stored: Mapping[str, Any] | None) -> tuple[tuple[int, ...], int, bool]:
        """Return the numbers of the instances, their generation, and whether they share partitions as of today.

        These are those that the checkpoint has state of, or new ones.
        """
        if stored is None:
            return self._chosen(()), 0, True
        try:
            numbers = tuple(int(number) for number in stored["numbers"])
            generation, shared = int(stored.get("generation", 0)), int(stored.get("shared", 1))
        except (ValueError, KeyError, TypeError):
            raise unreadable(self.checkpoint / self.about) from None
        self._refuse_other(stored, self._about())
        return numbers, generation, shared == SHARED

    def _chosen(self, known: tuple[int, ...]) -> tuple[int, ...]:
        """Return the numbers of the instances that are asked for, or those that are known."""
        if self._instances is None:
            return known or tuple(bucket_keys(self.session))
        if len(known) == self._instances:
            return known
        tasks = int(self.session.conf.get(PARTITIONS) or 1)
        return tuple(spread_keys(self._instances, tasks))

    def start(self) -> None:
        """Start to read, to hold and to write."""
        self._take_places()
        with in_driver():
            ship(self.session)
            set_up(self.session)
            pack = Pack(self.job, self._names, self._numbers, self._generation > 0)
            pieces = self._events.mapInArrow(pack, PACKED)
            holding = InstanceProcessor(self.job, self._numbers, self._handover)
            found = pieces.groupBy("instance").transformWithStateInPandas(holding, FOUND, "append", "eventTime")
        self._start(found, lambda frame, batch: self._write(frame, batch_name(batch)))

    def _go_on(self, stored: Mapping[str, Any]) -> None:
        """Go on from the state of the instances before, which others may share from now on."""
        before, generation, as_today = self._known(stored)
        self._numbers, self._generation = self._chosen(before), generation
        self._handover = Handover.read(self.checkpoint, generation)
        if self._numbers == before and as_today:
            return
        with in_driver():
            states = list(self._held(before).values())
        self._generation += 1
        self._handover = handed_over(self.job, states, self._numbers, self._generation)
        self._handover.write(self.checkpoint)

    def _held(self, numbers: tuple[int, ...]) -> dict[int, InstanceState]:
        """Return the state of the instances, as it is before the next batch."""
        state = self._state()
        kept = {} if state is None else by_instance(map(tuple, state.collect()))
        return {number: self._handover.current(number, kept.get(number, InstanceState())) for number in numbers}

    def _state(self) -> DataFrame | None:
        """Return the rows of Spark's state: `instance`, `variable` and `value`; None before the first batch."""
        place = self.spark_checkpoint
        if not any((place / "commits").glob("[0-9]*")):
            return None
        found: DataFrame | None = None
        for variable, column in ((WAITING, "list_element.blob"), (OPERATORS, "value.blob")):
            held = self.session.read.format("statestore").option("stateVarName", variable).load(str(place))
            rows = held.select("key.instance", f.lit(variable).alias("variable"), f.col(column).alias("value"))
            found = rows if found is None else found.unionByName(rows)
        return found

    def _flush(self) -> None:
        """Run over what still waits."""
        with in_driver():
            state, last = self._state(), None
            if state is None:
                return  # nothing ever came
            if self._generation:  # some may not have taken yet what they were handed
                rows = list(state_rows(self._held(self._numbers)))
                state = self.session.createDataFrame(rows, state.schema)
            state = state.repartition("instance")
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
                check_files(self.spark_checkpoint, int(batch))
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
        if not found and not (self._later and batch == FLUSH):
            return 0
        merging = self.job.merging()
        following = self._restored(merging)
        merged = following.take(self.job.merged_table(sorted(found, key=sort_key), merging), end=batch == FLUSH)
        combine = merging.combine
        kept = b"" if combine is None else to_bytes(combine.state(), f"the combination {type(combine).__name__}")
        name = f"part-{batch}-0-{uuid.uuid4().hex}.parquet"
        about = {MERGER: kept, CHAIN: following.state()}
        pq.write_table(merged.replace_schema_metadata(about), self.output.directory / name)
        sync_file(self.output.directory / name)
        self.output.commit(batch, {RESULTS: [name]}, {RESULTS: merged.num_rows})
        return merged.num_rows

    def _restored(self, merging: MergeRun) -> Following:
        """Go on merging from where the last batch left off, and return what follows."""
        last = self.output.log.newest() if merging.combine is not None or self._later else None
        if last is None:
            return Following(self.job, self._later)
        kept = pq.read_schema(self.output.directory / last["files"][RESULTS][0]).metadata
        if merging.combine is not None:
            merging.combine.restore(from_bytes(kept[MERGER]))
        return Following(self.job, self._later, kept.get(CHAIN))
