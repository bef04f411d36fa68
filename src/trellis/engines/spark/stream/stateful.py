"""Standing queries on Structured Streaming: a streaming data frame of events in, one of what is decided out.

Spark keeps the watermark, the state and the offsets. Events are packed as columnar bytes before the shuffle, one piece
for each task and bucket of partitions, so that state and shuffle have few, large rows: the stateful operator costs by
the row and by the key. What comes out is packed likewise, and becomes rows again where it is used.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, groupby
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema

from trellis.engines.spark.batch.operate import for_spark, inside_schema
from trellis.engines.spark.session.failures import in_task
from trellis.engines.spark.session.settled import bound_batches
from trellis.engines.spark.sources.frames import EventFrame
from trellis.engines.spark.split.compile import time_column
from trellis.engines.spark.split.split import partition_value
from trellis.engines.spark.stream.files import FILE_BYTES, FileWriter, batch_number, up_to
from trellis.engines.spark.stream.processor import BucketStore, WindowStateProcessor, go_on_at_interrupts
from trellis.events.table_bytes import packed, unpacked
from trellis.events.ties import TieCount, ties_among
from trellis.language.schema import Kind, Type
from trellis.streams.bucket import Bucket, OutputTable
from trellis.streams.calendar import Number
from trellis.streams.decisions import windows_schema
from trellis.streams.query_group import QueryGroup
from trellis.streams.stream_output import BAD, LATE, REPEATED, RESULTS, TIMEOUTS, WINDOWS
from trellis.streams.timeouts import timeouts_schema

if TYPE_CHECKING:
    import pandas as pd

EVENTS = "events"  # the kind of what goes in
NUMBERS = TAKEN, HELD, TIED = "taken", "held", "tied"  # of events that came, that are held, and that share their time
BUCKET, MOMENT = "bucket", "moment"
PACKED = "bucket int, kind string, newest string, reached bigint, total bigint, blob binary"
FOUND = "kind string, query string, rows bigint, name string, payload binary"
FoundRow = tuple[str, str, int, str, bytes]
OBSERVED = "trellis"  # what Spark's listener finds the numbers of a batch under
WATCHED = {TAKEN: "events", LATE: "late", BAD: "bad", REPEATED: "repeated", RESULTS: "results"}
ROWS_A_PIECE = 1 << 20
ROWS_BYTES = 1 << 20  # of results that go on their way together
FARTHEST = 9 * 10**15  # milliseconds that a timestamp of Spark's has room for
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
PROVIDER = "spark.sql.streaming.stateStore.providerClass"
CHANGELOG = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"


@dataclass(frozen=True)
class Settings:
    """How a stream runs.

    Attributes
    ----------
    delay
        How far the watermark stays behind the latest event, as `delay_of` gives it.
    buckets
        The numbers of the buckets that hold partitions.
    keep_late
        Whether late and bad events come out with all their columns.
    ahead
        Milliseconds: an event that is farther ahead of the clock on the wall does not move the watermark. None: all do.
    paged
        Whether the state may have pages, of rank counters or of sums.
    old_ranks
        Whether it may have rank counters of the version before the pages.
    """

    delay: int
    buckets: tuple[int, ...]
    keep_late: bool = False
    ahead: int | None = None
    paged: bool = True
    old_ranks: bool = True


def found_in(group: QueryGroup, frame: DataFrame, settings: Settings, writer: FileWriter | None = None) -> DataFrame:
    """Return decided results over a streaming frame of events, packed, or already in files if `writer` is given.

    See `FOUND`: `rows` are in the file `name`, or, where that is empty, in `payload`.
    """
    set_up(frame.sparkSession)
    events = EventFrame(frame)
    schema = group.schema
    names = list(events.types)
    columns = [events.column(name).alias(f"c{i}") for i, name in enumerate(names)]
    moment = moment_of(events.column(schema.time), schema.time_type, settings.ahead)
    rows = events.frame.select(*columns, _bucket(group, events, settings.buckets).alias(BUCKET), moment.alias(MOMENT))
    rows = rows.withWatermark(MOMENT, f"{settings.delay} milliseconds")
    packer = EventPacker(group, tuple(names), _used(group, settings.buckets), settings.keep_late, settings.delay)
    pieces = rows.mapInArrow(packer, PACKED)
    found = pieces.groupBy(BUCKET).transformWithStateInPandas(
        WindowStateProcessor(WindowStateWork(group, writer), settings.paged, settings.old_ranks),
        FOUND,
        "append",
        "eventTime",
    )
    return found.observe(OBSERVED, *(_number_of(kind).alias(name) for kind, name in WATCHED.items()))


def _number_of(kind: str) -> Column:
    """Return how many rows of a kind a batch has."""
    return f.coalesce(f.sum(f.when(f.col("kind") == kind, f.col("rows"))), f.lit(0))


def set_up(session: SparkSession) -> None:
    """Have state in RocksDB, which the stateful operator needs, and rows with large pieces in small batches.

    A batch then writes what it has changed of the state, where the user has not chosen otherwise, and not all of its
    files: these follow in the background.
    """
    if session.conf.get(PROVIDER, "") != ROCKSDB:
        session.conf.set(PROVIDER, ROCKSDB)
    if CHANGELOG not in session.conf.getAll:
        session.conf.set(CHANGELOG, "true")
    bound_batches(session)


def moment_of(column: Column, time: Type, ahead: int | None) -> Column:
    """Return the time of an event as a timestamp, which is what Spark has watermarks of."""
    number = time_column(column, time)
    if time.temporal:
        moment = f.timestamp_micros(number)
        if ahead is not None:
            latest = f.unix_micros(f.current_timestamp()) + f.lit(1000 * ahead)
            # The clock is another constant in each batch, for which Spark would compile the plan anew. It does not
            # compile zip_with.
            held = f.array(number)
            moment = f.when(f.zip_with(held, held, lambda at, _: at <= latest)[0], moment)
        return moment
    whole = number if time.kind is Kind.INTEGER else f.floor(number)
    return f.when(f.abs(whole) < f.lit(FARTHEST), f.timestamp_millis(whole.cast("bigint")))


def _bucket(group: QueryGroup, events: EventFrame, buckets: tuple[int, ...]) -> Column:
    """Return the bucket of an event: equal partitions, or those aggregated together, are in the same."""
    kept = _spread(group)
    if not kept:
        return f.lit(buckets[0])
    hashed = f.xxhash64(*(partition_value(events.column(name), type_.kind) for name, type_ in kept))
    place = f.pmod(hashed, f.lit(len(buckets))).cast("int")
    return f.element_at(f.array(*map(f.lit, buckets)), place + f.lit(1))


def _spread(group: QueryGroup) -> list[tuple[str, Type]]:
    """Return the columns of partitions that spread them over buckets."""
    return [(name, type_) for name, type_ in group.queries[0].bound.partition if name in group.together]


def _used(group: QueryGroup, buckets: tuple[int, ...]) -> tuple[int, ...]:
    """Return the buckets that events go to."""
    return buckets if _spread(group) else buckets[:1]


# --- Events as pieces -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class EventPacker:
    """Makes pieces of the events of a task.

    `names` are the user's, in the order of the columns before the bucket; bad events go through the first bucket. A
    piece tells the watermark that the events of its task bring, which stays `delay` behind their moments: Spark's own
    reaches it with the next batch. Each task tells it to all `buckets`, so that a batch decides all that it can.
    """

    group: QueryGroup
    names: tuple[str, ...]
    buckets: tuple[int, ...]
    keep_late: bool
    delay: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Take the rows of a task and give a piece for each bucket."""
        go_on_at_interrupts()
        with in_task():
            held: list[pa.RecordBatch] = []
            reached, untold = 0, set(self.buckets)
            for batch in chain(batches, [None]):
                held += [] if batch is None else [batch]
                if held and (batch is None or sum(one.num_rows for one in held) >= ROWS_A_PIECE):
                    table, held = pa.Table.from_batches(held), []
                    latest = self._reached(table)
                    if latest > reached:
                        reached, untold = latest, set(self.buckets)
                    for bucket, piece in self._pieces(table, reached):
                        untold.discard(bucket)
                        yield piece
            if reached:
                yield from self.watermarks(sorted(untold), reached)

    def watermarks(self, buckets: Iterable[int], reached: int) -> Iterator[pa.RecordBatch]:
        """Yield pieces without events that tell buckets a watermark."""
        for bucket in buckets:
            yield _piece(bucket, EVENTS, None, reached, None, 0)

    def _reached(self, table: pa.Table) -> int:
        """Return the watermark that events bring."""
        latest = pc.max(table[MOMENT].cast(pa.int64())).as_py()
        return 0 if latest is None else max(0, latest // 1000 - self.delay)

    def _pieces(self, table: pa.Table, reached: int) -> Iterator[tuple[int, pa.RecordBatch]]:
        bucket = table[BUCKET].to_numpy()
        events = table.drop_columns([BUCKET, MOMENT]).rename_columns(list(self.names))
        good = self.group.readable(events)
        if not good.all():
            bad, first = events.filter(pa.array(~good)), self.buckets[0]
            yield first, _piece(first, BAD, None, reached, bad, bad.num_rows)
            events, bucket = events.filter(pa.array(good)), bucket[good]
        times = self.group.line.numbers(events, self.group.time)
        wanted = self.group.wanted(events)
        if not self.keep_late:
            events = events.select(self.group.columns)
        for number in np.unique(bucket).tolist():
            here = bucket == number
            kept = events.filter(pa.array(here & wanted))
            yield number, _piece(number, EVENTS, times[here].max().item(), reached, kept, int(here.sum()))


def _piece(
    bucket: int, kind: str, newest: Any, reached: int, table: pa.Table | None, total: int
) -> pa.RecordBatch:  # fmt: skip
    blob = b"" if table is None else packed(table.combine_chunks())
    columns = [
        pa.array([bucket], pa.int32()), pa.array([kind]), pa.array([json.dumps(newest)]),
        pa.array([reached], pa.int64()), pa.array([total], pa.int64()), pa.array([blob], pa.binary()),
    ]  # fmt: skip
    return pa.RecordBatch.from_arrays(columns, names=["bucket", "kind", "newest", "reached", "total", "blob"])


# --- The work of a task -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class WindowStateWork:
    """Holds the events of buckets, and gives what is decided as soon as the watermark says so."""

    group: QueryGroup
    writer: FileWriter | None = None

    def take(self, store: BucketStore, rows: Any, watermark: Number | None) -> Iterator[pd.DataFrame]:
        """Hold new events, and give what is decided when they are all there.

        The watermark of Spark is that of the batches before. The one that these events bring Spark has with the next
        batch, and what is before it and comes later is late. Each batch tells it to all buckets: so nothing waits for
        another one.
        """
        bucket, total, ties = Bucket(self.group, store), 0, TieCount()
        tables, newest, reached = [], [], watermark
        for row in (row for frame in rows for row in frame.itertuples(index=False)):
            total += int(row.total)
            reached = max(int(row.reached), reached or 0) or None
            if row.kind == BAD:
                yield from self._given(iter([OutputTable(BAD, "", unpacked(row.blob))]))
            elif row.blob:
                tables.append(unpacked(row.blob))
                newest.append(json.loads(row.newest))
        if tables:
            table = pa.concat_tables(tables).combine_chunks() if len(tables) > 1 else tables[0]
            ties += ties_among(table, self.group.schema, self.group.partition)
            yield from self._given(bucket.take(table, max(newest), watermark))
        yield from self._given(bucket.advance(reached))
        bucket.finish()
        yield _frame([(kind, "", n, "", b"") for kind, n in ((TAKEN, total), (HELD, ties.events), (TIED, ties.tied))])

    def expire(self, store: BucketStore, watermark: Number | None) -> Iterator[pd.DataFrame]:
        """Give the results that the watermark has decided."""
        bucket = Bucket(self.group, store)
        yield from self._given(bucket.advance(watermark))
        bucket.finish()

    def _given(self, outs: Iterator[OutputTable]) -> Iterator[pd.DataFrame]:
        """Give small results as rows, many at a time, and large ones to files: the JVM would take long."""
        rows: list[FoundRow] = []
        for row in found_rows(outs, self.writer, None):
            rows.append(row)
            if sum(len(payload) for *_, payload in rows) >= ROWS_BYTES:
                yield _frame(rows)
                rows = []
        if rows:
            yield _frame(rows)


def found_rows(outs: Iterator[OutputTable], writer: FileWriter | None, batch: str | None) -> Iterator[FoundRow]:
    """Yield rows of what a bucket gives; with a writer, large tables are written here, and unwanted ones are counted.

    `batch` is the name of the batch; None: the one that the task is of.
    """
    if writer is None:
        yield from map(_row, outs)
        return
    left = writer.large
    for (kind, query), group in groupby(outs, lambda out: (out.kind, out.query)):
        if not writer.takes(kind):
            yield kind, query, sum(out.table.num_rows for out in group), "", b""
            continue
        batches = (batch for out in group for batch in out.table.to_batches())
        while few := list(up_to(batches, writer.large)):
            size = sum(one.nbytes for one in few)
            if size < left:
                left -= size
                yield _row(OutputTable(kind, query, pa.Table.from_batches(few)))
                continue
            rest = chain(few, up_to(batches, FILE_BYTES))
            name, number = writer.write(kind, query, batch or batch_number(), rest)
            yield kind, query, number, name, b""


def _row(out: OutputTable) -> FoundRow:
    return out.kind, out.query, out.table.num_rows, "", packed(out.table, compressed=False)


def _frame(rows: list[FoundRow]) -> pd.DataFrame:
    """Return rows on their way to the JVM, for which each frame costs more than its rows."""
    import pandas as pd

    return pd.DataFrame(rows, columns=["kind", "query", "rows", "name", "payload"])


# --- What is decided, as rows -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class ResultUnpacker:
    """Makes rows of what is packed."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Take packed results, all of one query and kind, and give them."""
        for batch in batches:
            for payload in batch.column("payload").to_pylist():
                yield from map(for_spark, unpacked(payload).to_batches())


def rows_of(decided: DataFrame, schema: pa.Schema, kind: str, query: str) -> DataFrame:
    """Return decided results as rows, of one kind and query."""
    chosen = decided.where((f.col("kind") == kind) & (f.col("query") == query)).select("payload")
    return chosen.mapInArrow(ResultUnpacker(), from_arrow_schema(inside_schema(schema))).toDF(*schema.names)


def schema_of_kind(group: QueryGroup, kind: str, query: str) -> pa.Schema:
    """Return the schema of the results, the windows or the timeouts of a query."""
    (one,) = [one for one in group.queries if one.name == query]
    schemas = {RESULTS: one.schema, WINDOWS: windows_schema(one.bound), TIMEOUTS: timeouts_schema(one.bound)}
    return schemas[kind]
