"""Runs standing queries: one Spark query for those that share their events, with its state, its outputs and their log.

A checkpoint directory holds `trellis.json`, which tells the queries and the events that it is for, a directory for each
group of queries, with the checkpoint of Spark, and `lock`, which the process holds that runs the stream.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from warnings import warn

import pyarrow as pa
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import to_arrow_schema

from trellis.engines.options import Plannable, RunOptions
from trellis.engines.spark.session.failures import in_driver, in_task, is_too_busy
from trellis.engines.spark.session.masters import refuse_connect
from trellis.engines.spark.sources.frames import described_events
from trellis.engines.spark.split.hashing import PARTITIONS, bucket_keys, state_tasks
from trellis.engines.spark.stream.checkpoint import Checkpoint, named_as_before
from trellis.engines.spark.stream.files import DIRECT_BYTES, TABLES, FileWriter
from trellis.engines.spark.stream.one_query import RunningStream, started
from trellis.engines.spark.stream.processor import PAGES
from trellis.engines.spark.stream.progress import EPOCH, State, millis, state_of
from trellis.engines.spark.stream.spark_log import check_checkpoint, check_files
from trellis.engines.spark.stream.stateful import FOUND, NUMBERS, Settings, found_in, rows_of, schema_of_kind
from trellis.engines.spark.stream.tasks import StateFlusher, page_name, reports_of, side_by_side
from trellis.errors import UsageError
from trellis.events.source import EventSource
from trellis.events.ties import TieCount
from trellis.language.schema import Schema, with_zones
from trellis.streams.beginnings import beginnings_of
from trellis.streams.commit_log import FLUSH
from trellis.streams.delays import delay_of
from trellis.streams.early import EARLY, WATERMARK, check_emit
from trellis.streams.query import StandingQuery, check_standing_query
from trellis.streams.query_group import QueryGroup, shared_columns
from trellis.streams.stream_output import (
    BAD,
    FOLDERS,
    LATE,
    REPEATED,
    RESULTS,
    TIMEOUTS,
    WINDOWS,
    StreamOutput,
    batch_name,
    check_query_names,
)

NO_DATA = "spark.sql.streaming.noDataMicroBatches.enabled"
FILE_MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
BY_RENAME = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
RESTARTS = 10  # of a stream whose workers start too slowly for Spark
AHEAD = "1 day"
ENOUGH = 100  # events from which on a share of them is told


# --- Queries ----------------------------------------------------------------------------------------------------


def standing_queries(
    queries: Mapping[str, Plannable], schema: Schema, run: RunOptions, emit: str = WATERMARK
) -> list[StandingQuery]:
    """Return queries by name as standing ones over events of a schema."""
    found = []
    for name, query in queries.items():
        plan = query.plan(schema, run.params, run.report_mode)
        check_standing_query(plan.bound)
        waits = check_emit(emit, plan, run.on_bad_rows)
        if waits is not None:
            warn(f"the results of `{name}` wait for the watermark: {waits}", stacklevel=4)
        found.append(StandingQuery(name, plan, run.max_trends, run.on_bad_rows, emit == EARLY and waits is None))
    return found


def detect_stream(
    query: Plannable, frame: DataFrame, run: RunOptions, *, watermark: str, table: str = RESULTS,
    max_ahead: str | None = AHEAD, emit: str = WATERMARK,
) -> DataFrame:  # fmt: skip
    """Return decided results over a streaming frame of events, as a streaming frame: see `Query.detect_stream`."""
    given = list(frame.values()) if isinstance(frame, Mapping) else [frame]
    if not given or not all(getattr(one, "isStreaming", False) for one in given):
        raise UsageError("detect_stream takes a streaming data frame, as spark.readStream gives", "Use detect.")
    if table not in FOLDERS:
        raise UsageError(f"there is no table `{table}`", f"Tables are {', '.join(FOLDERS)}.")
    events, schema = described_events(EventSource.of(frame), None, run, fields=True)
    (one,) = standing_queries({"query": query}, schema, run, emit)
    group = QueryGroup((one,), _telling_timeouts([one]) if table == TIMEOUTS else frozenset())
    keys = bucket_keys(events.sparkSession)
    settings = _settings(one, watermark, len(keys), table in (LATE, BAD), max_ahead, keys)
    found = found_in(group, events, settings)
    if table in TABLES:
        return rows_of(found, schema_of_kind(group, table, "query"), table, "query")
    columns = to_arrow_schema(events.schema)
    if table == REPEATED:
        return rows_of(found, pa.schema([columns.field(name) for name in group.columns]), table, "query")
    return rows_of(found, columns, table, "")


def _settings(
    one: StandingQuery, watermark: str, buckets: int, keep_late: bool, max_ahead: str | None, keys: Sequence[int]
) -> Settings:
    time = one.bound.known_schema.time_type
    ahead = delay_of(max_ahead, time, "guard --max-ahead") if max_ahead is not None and time.temporal else None
    return Settings(delay_of(watermark, time), tuple(keys[:buckets]), keep_late, ahead)


def _set_up_checkpoints(session: SparkSession) -> None:
    """Have files of checkpoints be renamed by Java, where the user has not chosen otherwise.

    Checkpoints of `trellis stream` are local directories, where that is one step of the file system. What Spark takes
    otherwise does the same there, but starts ten processes for each file (`chmod` and `readlink`) where Hadoop's native
    library is missing: fifty in a batch.
    """
    if FILE_MANAGER not in session.conf.getAll:
        session.conf.set(FILE_MANAGER, BY_RENAME)


@contextmanager
def _set_for_start(session: SparkSession) -> Iterator[None]:
    """Have a stream that is started meanwhile few tasks, and no batches without events; the session stays as it was.

    One that goes on has the tasks that it had. Spark would run a batch without events after each that moves the
    watermark: it would decide nothing, as events tell their watermark to all buckets, and others would wait for it.
    """
    before = {key: str(session.conf.get(key)) for key in (PARTITIONS, NO_DATA)}
    session.conf.set(PARTITIONS, str(state_tasks(session)))
    session.conf.set(NO_DATA, "false")
    try:
        yield
    finally:
        for key, value in before.items():
            session.conf.set(key, value)


def _telling_timeouts(queries: Sequence[StandingQuery]) -> frozenset[str]:
    """Return the names of the queries whose partial matches can be told; warn of others, and refuse it if all are."""
    told, refused = [], []
    for one in queries:
        try:
            beginnings_of(one)
            told.append(one.name)
        except UsageError as problem:
            refused.append(problem)
    if not told:
        raise refused[0]
    for refusal in refused:
        warn(refusal.what, stacklevel=4)
    return frozenset(told)


def _query_groups(queries: Sequence[StandingQuery], timeouts: frozenset[str]) -> dict[str, QueryGroup]:
    """Return the queries that share events together, by a name that depends on what they share."""
    found: dict[str, list[StandingQuery]] = {}
    for one in queries:
        text = json.dumps(shared_columns(one), sort_keys=True)
        found.setdefault(hashlib.sha256(text.encode()).hexdigest()[:12], []).append(one)
    return {name: QueryGroup(tuple(some), timeouts) for name, some in found.items()}


# --- Running ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Options:
    """Where a stream writes and how it runs."""

    out: str
    checkpoint: str
    watermark: str
    format: str = "parquet"
    available_now: bool = False
    flush: bool = False
    keep_late: bool = False
    max_ahead: str | None = AHEAD
    raw_csv: bool = False
    emit: str = WATERMARK
    timeouts: bool = False
    controlled: bool = False  # queries come and go: one checkpoint may have none in common with the last time
    direct_bytes: int = DIRECT_BYTES  # of the results of a batch that go to the driver, which writes them
    file_columns: tuple[str, ...] = ()  # those that each file should have, where the events are those of files


@dataclass
class Totals:
    """The numbers of a stream since it was started."""

    batches: int = 0
    events: int = 0
    results: int = 0
    windows: int = 0
    late: int = 0
    bad: int = 0
    repeated: int = 0
    timeouts: int = 0
    unlisted: int = 0


class Stream(RunningStream):
    """Standing queries that run; `start` starts them, `wait` waits for their end, `stop` brings it."""

    def __init__(
        self, session: SparkSession, queries: Mapping[str, Plannable], frame: DataFrame, options: Options,
        run: RunOptions,
    ) -> None:  # fmt: skip
        refuse_connect(session, "a stream with an output of its own", "; query.detect_stream runs on Connect, too")
        check_query_names(queries)
        self.session, self.options = session, options
        self.totals = Totals()
        self._lock = threading.Lock()
        super().__init__()
        self.checkpoint = Checkpoint.at(options.checkpoint)
        with in_driver():
            naive = self.checkpoint.naive
            self.events, schema = described_events(EventSource.of(frame), session, run, naive_text=naive)
            schema = schema if naive else with_zones(schema)
            self.queries = standing_queries(queries, schema, run, options.emit)
        columns = {fld.name: fld.dataType.simpleString() for fld in self.events.schema.fields}
        self._known = set(self.checkpoint.queries)
        self.queries = named_as_before(self.queries, self.checkpoint.queries)
        self.checkpoint.check(self.queries, columns, options.controlled)
        self.checkpoint.check_output(options.out, options.format)
        self.checkpoint.columns |= columns
        self.groups = _query_groups(self.queries, _telling_timeouts(self.queries) if options.timeouts else frozenset())
        self.outputs = {one.name: StreamOutput(self._directory(one)) for one in self.queries}
        self._events: dict[str, int] = {}
        self._ties: dict[str, TieCount] = {}
        self._told_of_ties = False
        self._restarts = 0

    def _directory(self, one: StandingQuery) -> Path:
        """Return where a query writes: where it always did; else the output itself, or a directory of its own there."""
        known = self.checkpoint.queries.get(one.key)
        if known is None:
            alone = len(self.queries) == 1 and not self.checkpoint.queries
            known = self.checkpoint.queries[one.key] = "" if alone else one.name
        return Path(self.options.out) / known

    def start(self) -> None:
        """Start to read, hold and write."""
        self._take_places()
        with in_driver():
            _set_up_checkpoints(self.session)
            for name in self.groups:
                if name not in self.checkpoint.buckets:
                    with _set_for_start(self.session):
                        self.checkpoint.buckets[name] = bucket_keys(self.session, 1)
            self.checkpoint.save()
            self._known = set(self.checkpoint.queries)
            for name, group in self.groups.items():
                self.running[name] = self._start(name, group)

    def _file_writer(self, outputs: Mapping[str, StreamOutput], group: str) -> FileWriter:
        """Return where and how results are written."""
        large = self.options.direct_bytes // len(self.checkpoint.buckets[group])
        return FileWriter(_places(outputs), self.options.format, large, self.options.raw_csv, self.options.keep_late)

    def _take_places(self) -> None:
        """Lock the checkpoint and the outputs, see that they belong together, and make the outputs ready."""
        checkpoint = self.checkpoint
        with self._locking(checkpoint.directory):
            if set(Checkpoint.at(self.options.checkpoint).queries) != self._known:
                raise UsageError(
                    f"another process has changed the checkpoint {checkpoint.directory} meanwhile", "Start again."
                )
            for one in self.queries:
                output = self.outputs[one.name]
                if one.key in self._known:
                    output.check_known(checkpoint.directory, checkpoint.outputs.get(one.key))
                else:
                    output.check_new()
            kinds = [RESULTS, WINDOWS, *((LATE, BAD, REPEATED) if self.options.keep_late else ())]
            kinds += [TIMEOUTS] if self.options.timeouts else []
            for one in self.queries:
                output = self.outputs[one.name]
                self._alone.take(output.log.directory, f"the output {output.directory}")
                checkpoint.outputs[one.key] = output.prepare(kinds)
            for name, group in self.groups.items():
                for one in group.queries:
                    check_checkpoint(checkpoint.directory / name, self.outputs[one.name].last_batch())

    def _start(self, name: str, group: QueryGroup) -> Any:
        keys, options = self.checkpoint.buckets[name], self.options
        one = group.queries[0]
        settings = _settings(one, options.watermark, len(keys), options.keep_late, options.max_ahead, keys)
        gone = set(self.checkpoint.queries) - {each.key for each in self.queries}  # of which pages may be left
        settings = replace(settings, paged=group.paged or bool(gone), old_ranks=self.checkpoint.old_ranks)
        outputs = {each.name: self.outputs[each.name] for each in group.queries}
        found = found_in(group, self.events, settings, self._file_writer(outputs, name))

        def commit(frame: DataFrame, batch: int) -> None:
            self._commit(frame, batch_name(batch), outputs, name)

        with _set_for_start(self.session):
            return started(found, commit, self.checkpoint.directory / name, options.available_now)

    def _commit(self, decided: DataFrame, batch: str, outputs: Mapping[str, StreamOutput], group: str) -> None:
        """Have what was decided in a batch be written, and put it into the logs."""
        found = decided.toArrow()
        with in_task():
            files = reports_of(found, self._file_writer(outputs, group), batch)
        if batch != FLUSH:
            with in_task():
                check_files(self.checkpoint.directory / group, int(batch), self.options.file_columns)
        taken, held, tied = (sum(file["rows"] for file in files if file["kind"] == kind) for kind in NUMBERS)
        files = [file for file in files if file["kind"] not in NUMBERS]
        self._warn_of_ties(group, TieCount(held, tied))
        of_query: dict[str, list[dict[str, Any]]] = {}
        for file in files:
            of_query.setdefault(file["query"] or next(iter(outputs)), []).append(file)

        def commit(name: str, output: StreamOutput) -> None:
            if taken:
                output.take_back()
            own = of_query.get(name, [])
            names = {kind: [file["name"] for file in own if file["kind"] == kind and file["name"]] for kind in FOLDERS}
            if output.has(batch):  # it was written, and the process ended before Spark took note of it
                output.discard(names)
            elif own:
                numbers = {kind: sum(file["rows"] for file in own if file["kind"] == kind) for kind in FOLDERS}
                output.commit(batch, names, numbers)

        side_by_side(commit, list(outputs.items()))
        with self._lock:
            self.totals.batches += 1
            self._events[group] = self._events.get(group, 0) + taken
            self.totals.events = max(self._events.values())
            for file in files:
                kind = file["kind"]
                self.totals.unlisted += file["unlisted"]
                setattr(self.totals, kind, getattr(self.totals, kind) + file["rows"])

    def _warn_of_ties(self, group: str, more: TieCount) -> None:
        """Warn, once, where many of the events of a query group that came together share their time."""
        with self._lock:
            self._ties[group] = ties = self._ties.get(group, TieCount()) + more
            if self._told_of_ties or ties.events < ENOUGH or not ties.many:
                return
            self._told_of_ties = True
        ties.warn(self.groups[group].schema)

    def _has_ended(self, name: str, seconds: float | None) -> bool:
        """Wait for the end of a group; start it again where it is, if a busy machine was too slow for Spark."""
        while True:
            try:
                return super()._has_ended(name, seconds)
            except StreamingQueryException as problem:
                if not is_too_busy(problem) or self._restarts >= RESTARTS:
                    raise
                self._restarts += 1
                self.running[name] = self._start(name, self.groups[name])

    def flush(self) -> None:
        """Decide the rest: the input has ended. What this writes is taken back when the stream goes on."""
        if not self._alone.is_held:
            self._take_places()
        try:
            for name, group in self.groups.items():
                if any((self.checkpoint.directory / name / "commits").glob("[0-9]*")):  # else nothing ever came
                    with in_driver():
                        self._flush(str(self.checkpoint.directory / name), group, name)
        finally:
            self._alone.release()

    def _flush(self, checkpoint: str, group: QueryGroup, name: str) -> None:
        bucket = f.col("key.bucket").alias("bucket")
        state: DataFrame | None = None
        for variable, column in (("chunks", "list_element.blob"), ("note", "value.text"), ("ranks", "value.text")):
            value = f.col(column).cast("binary").alias("value")
            rows = self._variable(checkpoint, variable).select(bucket, f.lit(variable).alias("variable"), value)
            state = rows if state is None else state.unionByName(rows)
        assert state is not None
        if PAGES in self._variables(checkpoint):  # a checkpoint of an earlier version has none before its next batch
            page = f.format_string(page_name("%d", "%d"), f.col("user_map_key.space"), f.col("user_map_key.page"))
            value = f.col("user_map_value.counters").cast("binary").alias("value")
            state = state.unionByName(self._variable(checkpoint, PAGES).select(bucket, page.alias("variable"), value))
        outputs = {one.name: self.outputs[one.name] for one in group.queries}
        work = StateFlusher(group, self._file_writer(outputs, name))
        found = state.repartition("bucket").sortWithinPartitions("bucket").mapInArrow(work, FOUND)
        self._commit(found, FLUSH, outputs, name)

    def _variable(self, checkpoint: str, name: str) -> DataFrame:
        """Return a variable of the state of a checkpoint."""
        return self.session.read.format("statestore").option("stateVarName", name).load(checkpoint)

    def _variables(self, checkpoint: str) -> set[str]:
        """Return the names of the variables that the state of a checkpoint has."""
        about = self.session.read.format("state-metadata").load(checkpoint).select("operatorProperties").head()
        return set() if about is None else {one["stateName"] for one in json.loads(about[0])["stateVariables"]}

    def stuck(self) -> str | None:
        """Return why no event of the last batch that had some can move the watermark, if none can."""
        for query in self.running.values():
            filled = [one for one in query.recentProgress if one["numInputRows"]]
            moments = (filled[-1].get("eventTime") or {}) if filled else {}
            if not filled or millis(moments.get("watermark")) is not None:
                continue
            latest = str(moments.get("max", EPOCH))
            if latest.startswith(EPOCH) and self._guards_the_watermark():  # Spark takes what is left out for the epoch
                return f"all are more than {self.options.max_ahead} ahead of the clock of this machine (--max-ahead)"
            if latest < f"{EPOCH}.001":
                return "Spark's watermark begins with 1970, or with 0 where times are numbers, and all are before that"
        return None

    def _guards_the_watermark(self) -> bool:
        schema = self.queries[0].bound.schema
        return self.options.max_ahead is not None and schema is not None and schema.time_type.temporal

    def newest(self) -> int | None:
        """Return the latest time of all events so far, in milliseconds or, rounded up, in the unit of the times."""
        schema = self.queries[0].bound.known_schema
        delay, found = delay_of(self.options.watermark, schema.time_type), []
        for progress in (dict(one) for query in self.running.values() for one in query.recentProgress):
            told = progress.get("eventTime") or {}
            latest, watermark = millis(told.get("max")), millis(told.get("watermark"))
            found += [] if latest is None else [latest]
            found += [] if watermark is None else [watermark + delay]
        return max(found) + 1 if found else None  # Spark tells whole milliseconds

    def states(self) -> list[State]:
        """Return how the groups stand after their last batches."""
        found = []
        for name, group in self.groups.items():
            recent = [dict(one) for one in self.running[name].recentProgress]
            last = recent[-1] if recent else {}
            found.append(state_of(group, last, [one for one in recent if one["numInputRows"]]))
        return found


def _places(outputs: Mapping[str, StreamOutput]) -> dict[str, str]:
    """Return the directories of queries; late and bad events, which are of no query, go where the first one writes."""
    places = {name: str(output.directory.absolute()) for name, output in outputs.items()}
    return {"": next(iter(places.values())), **places}
