"""The one place where an engine is chosen: for a query, a pipeline, a vertex program or an archive."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from trellis.engines.options import Plannable, RunOptions
from trellis.errors import UsageError, did_you_mean
from trellis.events.labels import with_labels
from trellis.events.source import EventSource, is_spark_frame, paths_of
from trellis.io.sources import are_small, is_table
from trellis.language.schema import choose_time
from trellis.methods import check_methods
from trellis.plan.choice import JOIN

if TYPE_CHECKING:
    from trellis.engines.local.arrivals import Arrivals
    from trellis.engines.local.detect import Askable
    from trellis.plan.plan import Plan
    from trellis.results.results import Results

ENGINES = ("local", "spark")


def detect(query: Askable, data: Any, options: RunOptions, engine: str | None = None, spark: Any = None) -> Results:
    """Return the results of a query on the engine that fits its events, or the one asked for; nothing runs yet.

    Parameters
    ----------
    query
        The query.
    data
        The events, as `Query.detect` takes them.
    options
        The options of the run.
    engine
        `local` or `spark`; None chooses by the events.
    spark
        The Spark session for events that do not bring one.
    """
    if engine is not None and engine not in ENGINES:
        raise UsageError(
            f"there is no engine `{engine}`", did_you_mean(engine, ENGINES, "Engines are local and spark.")
        )
    last = query.last  # read once: another thread may ask the same query of other columns meanwhile
    taken = type(data) is pa.Table and engine != "spark" and spark is None
    if last is not None and taken and last.fits({None: data}, options):  # columns that need no look then
        from trellis.engines.local.results import LocalResults

        return LocalResults(last.plan, data, options, warns_of_ties=True)
    source, options = _identified(_with_tables(EventSource.of(data), spark), options)
    _check_frames(source)
    if _runs_on_spark(source, options, engine, spark):
        from trellis.engines.spark.detect import detect as detect_there

        check_methods(options.methods, "spark")
        found: Results = detect_there(query, source, options, spark)
        found.inputs = source.paths
        return found
    from trellis.engines.local.detect import detect as detect_here

    check_methods(options.methods, "local")
    found = detect_here(query, source, options)
    found.inputs = source.paths
    return found


def _with_tables(source: EventSource, spark: Any) -> EventSource:
    """Take the names of tables and views of Spark's, and SQL, as data frames of Spark's."""
    known = spark is not None or _has_session()
    named = {name for name, table in source.tables.items() if isinstance(table, str) and is_table(table, known)}
    if not named:
        return source
    from trellis.engines.spark.sources.tables import frame_of_table

    return EventSource({n: frame_of_table(t, spark) if n in named else t for n, t in source.tables.items()})


def _check_frames(source: EventSource) -> None:
    """Refuse streaming frames, and frames of more than one application of Spark's."""
    frames = [table for table in source.tables.values() if is_spark_frame(table)]
    if any(map(_is_stream, frames)):
        raise UsageError(
            "detect takes events that end, and this data frame is a stream",
            "Use query.detect_stream(frame, watermark=...), which gives a streaming data frame.",
        )
    if len({id(frame.sparkSession) for frame in frames}) > 1:
        raise UsageError("the tables are data frames of different Spark sessions", "Make all of them with one session.")


def _has_session() -> bool:
    """Return whether this process has a session of Spark's; pyspark is not imported to find out."""
    sql = sys.modules.get("pyspark.sql")
    return sql is not None and sql.SparkSession.getActiveSession() is not None


def _identified(source: EventSource, options: RunOptions) -> tuple[EventSource, RunOptions]:
    """Take the labels of a pandas frame as ids where no column is named."""
    if options.event_id is not None:
        return source, options
    labelled, name = with_labels(source, options.time)
    return labelled, replace(options, event_id=name)


def _runs_on_spark(source: EventSource, options: RunOptions, engine: str | None, spark: Any) -> bool:
    """Return whether Spark runs a query: asked for, over its data frames, or over files that are not small."""
    if engine is not None or not source.is_for_spark:
        return engine == "spark"
    if spark is not None or options.methods.algorithm == JOIN or source.has_spark_frames:
        return True
    return not are_small(paths for table in source.tables.values() if (paths := paths_of(table)))


def arrivals(query: Plannable, options: RunOptions, state: bytes | None) -> Arrivals:
    """Return the operator that takes events of a query as they arrive."""
    from trellis.engines.local.arrivals import Arrivals
    from trellis.events.tables import Tables, schema_of

    def bind(tables: Tables) -> Plan:
        time = choose_time(tables[None].column_names, options.time)
        schema = schema_of(tables, time, options.type, options.event_id, options.tie_breakers)
        return query.plan(schema, options.params, None)

    return Arrivals(bind, options.time, options.max_trends, options.on_bad_rows, state)


def _is_stream(frame: Any) -> bool:
    """Return whether a data frame is a stream; a pipeline does not let its functions ask."""
    try:
        return bool(frame.isStreaming)
    except Exception as problem:
        if "ATTEMPT_ANALYSIS_IN_PIPELINE_QUERY_FUNCTION" not in str(problem):
            raise
        raise UsageError(
            "a function of a Declarative Pipeline cannot look at the columns of a data frame, and detect must",
            "Call detect(...).to_spark() outside of the function and return the frame, or use trellis_detect in SQL.",
        ) from None
