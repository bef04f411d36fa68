"""The one place where an engine is chosen: for a query, a pipeline, a vertex program or an archive."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from trellis.engines.options import Plannable, RunOptions
from trellis.errors import UsageError, did_you_mean
from trellis.events.labels import with_labels
from trellis.events.source import EventSource, paths_of
from trellis.io.sources import are_small
from trellis.language.schema import choose_time
from trellis.methods import check_methods
from trellis.plan.choice import JOIN

if TYPE_CHECKING:
    from trellis.api.query import Query
    from trellis.engines.local.arrivals import Arrivals
    from trellis.plan.plan import Plan
    from trellis.results.results import Results

ENGINES = ("local", "spark")


def detect(query: Plannable, data: Any, options: RunOptions, engine: str | None = None, spark: Any = None) -> Results:
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
    source, options = _identified(EventSource.of(data), options)
    if _runs_on_spark(source, options, engine, spark):
        from trellis.engines.spark.batch.detect import detect as detect_there

        check_methods(options.methods, "spark")
        found: Results = detect_there(query, source, options, spark)
        found.inputs = source.paths
        return found
    from trellis.engines.local.detect import detect as detect_here

    check_methods(options.methods, "local")
    found = detect_here(query, source, options)
    found.inputs = source.paths
    return found


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


def arrivals(query: Query, options: RunOptions) -> Arrivals:
    """Return the operator that takes events of a query as they arrive."""
    from trellis.engines.local.arrivals import Arrivals
    from trellis.events.tables import Tables, schema_of

    def bind(tables: Tables) -> Plan:
        time = choose_time(tables[None].column_names, options.time)
        return query.plan(schema_of(tables, time, options.type, options.event_id), options.params, None)

    return Arrivals(bind, options.time, options.max_trends)


class LocalEngine:
    """The local engine as rooms below the engines are given it: see `trellis.providers`."""

    def detect(self, text: str, table: Any, **options: Any) -> Results:
        """Return the results of a query text over an Arrow table."""
        from trellis.api.query import Query

        return detect(Query(text), table, RunOptions(**options), engine="local")


class SparkArchives:
    """Archives on Spark as the archive room is given them: see `trellis.providers`."""

    def build(self, *given: Any) -> Any:
        """Build an archive of a Spark data frame: see `trellis.engines.spark.archive.build.build`."""
        from trellis.engines.spark.archive.build import build

        return build(*given)

    def append(self, *given: Any) -> Any:
        """Append a Spark data frame to an archive: see `trellis.engines.spark.archive.build.append`."""
        from trellis.engines.spark.archive.build import append

        return append(*given)

    def follow(self, *given: Any, **options: Any) -> Any:
        """Return the stream that appends a streaming data frame to an archive."""
        from trellis.engines.spark.archive.follow import Following

        return Following(*given, **options)
