"""A splitter, an operator and a merger, run over any events: here, on Spark, and over a stream."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trellis.errors import UsageError
from trellis.events.source import is_spark_frame
from trellis.graphs import Merger, Operator, Result, Splitter, VertexProgram
from trellis.graphs.chain import PipelinePart
from trellis.graphs.job import DISTRIBUTED, LOCAL

if TYPE_CHECKING:
    from trellis.engines.spark.graphs.stream import GraphStream
    from trellis.engines.spark.graphs.vertices import SparkResult


class Pipeline:
    """A splitter, an operator over graphs, a merger; make one with `trellis.pipeline(splitter, operator, merger)`.

    `a >> b` is a pipeline whose second part takes the results of the first as its events.
    """

    def __init__(self, splitter: Splitter, operator: Callable[[], Operator], merger: Merger | None = None) -> None:
        self.parts: tuple[PipelinePart, ...] = (PipelinePart(splitter, operator, merger),)

    def __rshift__(self, other: Pipeline) -> Pipeline:
        if not isinstance(other, Pipeline):
            return NotImplemented
        chain = object.__new__(Pipeline)
        chain.parts = self.parts + other.parts
        return chain

    def run(
        self, events: Any, *, time: str | None = None, event_id: str | None = None, instances: int | None = None,
        graphs: str = LOCAL,
    ) -> Any:  # fmt: skip
        """Run over events that are all there.

        Parameters
        ----------
        events
            An Arrow table, a pandas or polars frame or a list of dictionaries, which run in this process; or a Spark
            data frame, which runs on Spark.
        time, event_id
            The columns that hold time and id. On Spark events need an id.
        instances
            How many instances share the partitions; the results are the same with any number.
        graphs
            `local`: the graph of a partition is in one process. `distributed`, on Spark: it is kept as data frames, and
            may be larger than a machine; what the operator does to it and asks of it are jobs.

        Returns
        -------
        JobOutput or pyspark.sql.DataFrame
            The merged results, in order.
        """
        if graphs not in (LOCAL, DISTRIBUTED):
            raise UsageError(f"`graphs` is `{graphs}`", f"It is `{LOCAL}` or `{DISTRIBUTED}`.")
        if is_spark_frame(events):
            from trellis.engines.spark.graphs.run import run_chain as run_there

            return run_there(events, self.parts, time=time, event_id=event_id, instances=instances, graphs=graphs)
        if graphs == DISTRIBUTED:
            raise UsageError(
                "graphs are distributed by Spark, and these events are in this process", "Give a Spark frame."
            )
        from trellis.graphs.run import run_chain as run_here

        return run_here(events, self.parts, time=time, event_id=event_id, instances=instances or 1)

    def stream(
        self, frame: Any, *, out: str | Path, checkpoint: str | Path, watermark: str | int | float,
        time: str | None = None, event_id: str | None = None, available_now: bool = False,
        max_ahead: str | None = "1 day", instances: int | None = None,
    ) -> GraphStream:  # fmt: skip
        """Return the stream over a streaming data frame, to be started: see `GraphStream`."""
        from trellis.engines.spark.graphs.stream import GraphStream

        return GraphStream(
            frame, self.parts, out=out, checkpoint=checkpoint, watermark=watermark, time=time, event_id=event_id,
            available_now=available_now, max_ahead=max_ahead, instances=instances,
        )  # fmt: skip


def execute(program: VertexProgram, edges: Any, **options: Any) -> Result | SparkResult:
    """Run a vertex program over a table of edges in this process, or over a data frame of edges on Spark.

    Parameters
    ----------
    program
        The program.
    edges
        An Arrow table or pandas frame, or a Spark data frame: a row an edge.
    options
        `source`, `target` and `weight`, the columns; `vertices`; `directed`. See `trellis.graphs.edge_list`.
    """
    if is_spark_frame(edges):
        from trellis.engines.spark.graphs.vertices import execute as execute_there

        return execute_there(program, edges, **options)
    from trellis.events.tables import as_tables
    from trellis.graphs import edge_list
    from trellis.graphs import execute as execute_here

    return execute_here(program, edge_list(as_tables(edges)[None], **options))
