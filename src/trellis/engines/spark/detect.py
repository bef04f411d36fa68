"""From events to results on Spark: frames are made, bound and planned here, and no job runs yet."""

from __future__ import annotations

from pyspark.sql import SparkSession

from trellis.engines.options import Plannable, RunOptions
from trellis.engines.spark.batch.results import SparkResults
from trellis.engines.spark.papers.join import JoinedResults
from trellis.engines.spark.session.failures import in_driver
from trellis.engines.spark.sources.frames import described_events
from trellis.events.source import EventSource
from trellis.methods import with_methods
from trellis.plan.choice import JOIN


def detect(query: Plannable, source: EventSource, options: RunOptions, spark: SparkSession | None) -> SparkResults:
    """Return the results of a query over events on Spark.

    Parameters
    ----------
    query
        The query.
    source
        The events.
    options
        The options of the run.
    spark
        The session for what is not a Spark frame yet.
    """
    with in_driver():
        events, schema = described_events(source, spark, options, fields=True)
    plan = query.plan(schema, options.params, options.report_mode)
    if options.methods.algorithm == JOIN:
        return JoinedResults(plan, events, options)
    return SparkResults(with_methods(plan, options.methods, options.max_trends), events, options)
