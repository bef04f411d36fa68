"""Trellis finds event trends, sequences and communities in event data of any size, on Spark, from Python."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trellis.errors import (
    BindError,
    DataError,
    GroupTooLarge,
    ListingRefused,
    MemoryExhausted,
    OperatorFailed,
    OutOfRange,
    QueryError,
    QuerySyntaxError,
    TrellisError,
    TrellisWarning,
    UsageError,
)
from trellis.providers import provide

__version__ = "0.1.0"

if TYPE_CHECKING:
    from collections.abc import Callable
    from os import PathLike
    from typing import Any

    from trellis.api.pipeline import Pipeline
    from trellis.api.query import Query
    from trellis.graphs import Merger, Operator, Splitter
    from trellis.methods import Methods
    from trellis.results.compact import Rows


def query(text: str | PathLike[str]) -> Query:
    """Return the query that a text stands for, or that is in a file: `trellis.query("rising.tq")`.

    Raises
    ------
    trellis.errors.QuerySyntaxError
        If the text is not a query; says where and what was expected.
    """
    from trellis.api.query import Query

    return Query(text)


def pipeline(splitter: Splitter, operator: Callable[[], Operator], merger: Merger | None = None) -> Pipeline:
    """Return an operator over graphs with its splitter and its merger, to be run over any events.

    Parameters
    ----------
    splitter
        Which partitions events belong to.
    operator
        The class of the operator, or what makes a fresh one for each partition.
    merger
        The order of results, and what is combined from them.
    """
    from trellis.api.pipeline import Pipeline

    return Pipeline(splitter, operator, merger)


def register(spark: Any) -> None:
    """Give a session of Spark's the table function `trellis_detect`, for SQL.

    `SELECT * FROM trellis_detect(TABLE(trades), 'PATTERN ...', time => 'ts', event_id => 'trade')` gives the rows of
    the query; Spark partitions the table by the attributes in the query's `[...]`.

    Parameters
    ----------
    spark
        The session.
    """
    from trellis.engines.spark.table_function import register

    register(spark)


def expand(rows: Rows) -> Rows:
    """Return rows in compact form, from `batches(compact=True)`, as whole trends: a batch, or a table of batches.

    The column `events` is in place of `shared` and `new`.

    Raises
    ------
    trellis.errors.UsageError
        If the rows have no compact form, or do not begin where a batch begins.
    """
    from trellis.results.compact import expand

    return expand(rows)


def _local_engine() -> object:
    from trellis.api.engines import LocalEngine

    return LocalEngine()


def _archives_on_spark() -> object:
    from trellis.api.engines import SparkArchives

    return SparkArchives()


def _spark_frames() -> object:
    from trellis.engines.spark.sources.frames import frame_of

    return frame_of


def _pictures() -> object:
    from trellis.report import pictures

    return pictures


def _report() -> object:
    from trellis.report.report import write_report

    return write_report


def _order_keys() -> object:
    from trellis.results.rows import order_of

    return order_of


def _walk_to_first() -> object:
    from trellis.operators.patterns.lazily import walk_join_to_first

    return walk_join_to_first


def _feature_queries() -> object:
    from trellis.features import queries

    return queries


# Rooms below the engines ask for one by name and import none: the top of the package says who gives it.
provide("local engine", _local_engine)
provide("archives on Spark", _archives_on_spark)
provide("Spark frames", _spark_frames)
provide("pictures", _pictures)
provide("report", _report)
provide("keys of ORDER BY", _order_keys)
provide("walk to the first matches", _walk_to_first)
provide("feature queries", _feature_queries)


def __getattr__(name: str) -> object:
    if name != "Methods":
        said = f"module 'trellis' has no attribute {name!r}"
        if name in {"detect", "explain", "detect_stream", "arrivals", "why_not", "prepare"}:
            said += f': it is a method of a query, trellis.query("PATTERN ...").{name}(...)'
        raise AttributeError(said)
    from trellis.methods import Methods

    return Methods


__all__ = [
    "BindError",
    "DataError",
    "GroupTooLarge",
    "ListingRefused",
    "MemoryExhausted",
    "Methods",
    "OperatorFailed",
    "OutOfRange",
    "QueryError",
    "QuerySyntaxError",
    "TrellisError",
    "TrellisWarning",
    "UsageError",
    "__version__",
    "expand",
    "pipeline",
    "query",
    "register",
]
