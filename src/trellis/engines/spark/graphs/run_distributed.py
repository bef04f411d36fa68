"""Runs a job whose graphs are kept as data frames: events come to the driver in order, the graphs stay on the cluster.

The driver runs the operators' own code and holds no more than some events, changes and results at a time. What these do
to graphs and ask of them are jobs.
"""

from __future__ import annotations

import dis
from collections.abc import Iterable, Iterator
from functools import reduce
from types import CodeType, FunctionType
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from trellis.engines.spark.batch.operate import for_spark
from trellis.engines.spark.graphs.distributed import DistributedGraph
from trellis.engines.spark.session.sent_rows import fetched_rows, sent_rows
from trellis.engines.spark.split.rows import column_name, output_names
from trellis.errors import UsageError, did_you_mean
from trellis.events.table_bytes import packed, unpacked
from trellis.graphs.graph import Graph
from trellis.graphs.instance import Instance, failed
from trellis.graphs.job import Job, Row
from trellis.graphs.operator import Operator

ROWS_AT_ONCE, SAMPLE = 50_000, 100
BYTES_AT_ONCE = 8 << 20  # of a piece of the events, one of which comes to the driver at a time
PACKED = 1 << 20  # bytes of a packed batch: Spark makes several copies of it on its way


def unmerged(job: Job, events: DataFrame) -> DataFrame:
    """Return the results before they are merged, with the columns of `Job.inner`.

    Raises
    ------
    UsageError
        If the operator asks its graph for something that a graph on the cluster does not offer.
    """
    refuse_unoffered(job.fresh(), job.name)
    session = events.sparkSession
    unchecked: set[DistributedGraph] = set()
    instance = Instance(job, graphs=lambda directed: DistributedGraph(session, directed, unchecked=unchecked))
    frames: list[DataFrame] = []
    rows: list[Row] = []
    for table in in_order(job, events):
        job.shape.refuse_unusable(table)
        for row in instance.take(job.shape.events(table)):
            rows.append(row)
            if len(rows) >= ROWS_AT_ONCE:
                frames.append(_sent(job, rows, session))
                rows = []
    rows += instance.end(instance.last)
    for graph in list(unchecked):
        try:
            graph.settle()
        except UsageError as problem:
            raise failed(problem, f"the operator {job.name}", None, "") from problem
    return reduce(DataFrame.union, [*frames, _sent(job, rows, session)])


def in_order(job: Job, events: DataFrame) -> Iterator[pa.Table]:
    """Yield events in the order of time and id, a batch at a time."""
    names = list(events.columns)
    inner = events.toDF(*map(column_name, range(len(names))))
    assert job.shape.event_id is not None
    order = [column_name(names.index(name)) for name in (job.shape.time, job.shape.event_id)]
    sample = inner.limit(SAMPLE).toArrow()
    at_once = max(1, min(ROWS_AT_ONCE, BYTES_AT_ONCE * max(1, sample.num_rows) // max(1, sample.nbytes)))
    pieces = -(-inner.count() // at_once) or 1
    ranged = inner.repartitionByRange(pieces, *order).sortWithinPartitions(*order)
    for row in fetched_rows(ranged.mapInArrow(_pack, "batch binary")):
        yield unpacked(bytes(row["batch"])).rename_columns(names)


def _pack(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        rows = max(1, batch.num_rows * PACKED // max(PACKED, batch.nbytes))
        for begin in range(0, batch.num_rows, rows):
            blob = packed(pa.Table.from_batches([batch.slice(begin, rows)]), compressed=False)
            yield pa.RecordBatch.from_arrays([pa.array([blob], pa.binary())], names=["batch"])


def _sent(job: Job, rows: list[Row], session: SparkSession) -> DataFrame:
    """Have the cluster keep results."""
    table = job.inner_table(rows).rename_columns(output_names(len(job.inner)))
    batches = [for_spark(batch) for batch in table.combine_chunks().to_batches()]
    return sent_rows(session, pa.Table.from_batches(batches, None if batches else table.schema))


# --- What graphs on the cluster do not offer -----------------------------------------------------------------------


OFFERED = ("directed", *(name for name in vars(DistributedGraph) if hasattr(Graph, name) and name[0] != "_"))
STREAMED = ("state", "restore")  # methods that only streams call


def refuse_unoffered(operator: Operator, name: str) -> None:
    """Refuse an operator that asks its graph for something that only a graph in one process has.

    Raises
    ------
    UsageError
        If it does, with the method and what it asks for.
    """
    for method, code in _methods(type(operator)):
        for asked in _asked_of_graph(code):
            if asked not in OFFERED:
                raise UsageError(
                    f"the operator {name} asks for `graph.{asked}` in `{method}`, which a graph on the cluster does "
                    "not have",
                    did_you_mean(
                        asked, OFFERED, f'It has {", ".join(OFFERED)}. For anything else run with `graphs="local"`.'
                    ),
                )


def _methods(kind: type) -> Iterator[tuple[str, CodeType]]:
    for cls in kind.__mro__[: kind.__mro__.index(Operator)]:
        for name, member in vars(cls).items():
            inner: Any = getattr(member, "fget", None) or getattr(member, "__func__", member)
            if isinstance(inner, FunctionType) and name not in STREAMED:
                yield from ((name, code) for code in _nested(inner.__code__))


def _nested(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _nested(constant)


def _asked_of_graph(code: CodeType) -> Iterator[str]:
    """Yield the attributes that are read of `self.graph`, or of a variable that it was given to."""
    graphs: set[Any] = set()
    before: tuple[str, Any] = ("", None)
    for step in dis.get_instructions(code):
        if step.opname.startswith(("CACHE", "PUSH_NULL", "PRECALL")):
            continue
        is_graph = before == ("attribute", "graph") or (before[0] == "variable" and before[1] in graphs)
        if step.opname in ("LOAD_ATTR", "LOAD_METHOD"):
            if is_graph:
                yield str(step.argval)
            before = ("attribute", step.argval)
        elif step.opname.startswith("STORE_"):
            if is_graph and step.opname.startswith(("STORE_FAST", "STORE_DEREF")):
                graphs.add(step.argval if not isinstance(step.argval, tuple) else step.argval[0])
            before = ("", None)
        elif step.opname.startswith(("LOAD_FAST", "LOAD_DEREF")):
            before = ("variable", step.argval if not isinstance(step.argval, tuple) else step.argval[-1])
        else:
            before = ("", None)
