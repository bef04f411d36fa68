"""Chooses the engine for a query and its events."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from trellis.errors import UsageError, did_you_mean
from trellis.events.tables import as_tables, schema_of, union, with_readable_times
from trellis.local.trends import LocalTrends
from trellis.methods import JOIN, Methods, check_methods, with_methods
from trellis.plan.plan import Plan
from trellis.queries import Query

if TYPE_CHECKING:
    from trellis.local.arrivals import Arrivals
    from trellis.spark.trends import SparkTrends

ENGINES = ("local", "spark")


def detect(
    query: Query, data: Any, *, engine: str | None, spark: Any, methods: Methods, **options: Any
) -> LocalTrends | SparkTrends:
    """Run a query on the engine that fits its events, or the one asked for."""
    if engine is not None and engine not in ENGINES:
        raise UsageError(
            f"there is no engine `{engine}`", did_you_mean(engine, ENGINES, "Engines are local and spark.")
        )
    tables = data.values() if isinstance(data, Mapping) else [data]
    on_spark = engine == "spark" or (engine is None and any(_is_spark(t) or _is_path(t) for t in tables))
    check_methods(methods, "spark" if on_spark else "local")
    if on_spark:
        from trellis.spark.trends import spark_trends

        return spark_trends(query, data, spark=spark, make=_on_spark(methods), **options)
    return local_trends(query, data, methods=methods, **options)


def local_trends(
    query: Query, data: Any, *, methods: Methods, time: str | None, type: str | None, event_id: str | None,
    params: Mapping[str, Any] | None, report_mode: str | None, max_trends: int, on_bad_rows: str,
) -> LocalTrends:  # fmt: skip
    """Run a query in this process."""
    read = partial(_read_here, time=time)
    data = {name: read(table) for name, table in data.items()} if isinstance(data, Mapping) else read(data)
    tables, time = with_readable_times(as_tables(data), time)
    plan = query.plan(schema_of(tables, time, type, event_id), params, report_mode)
    return LocalTrends(with_methods(plan, methods, max_trends), union(tables), max_trends, on_bad_rows)


def arrivals(
    query: Query, *, time: str | None, type: str | None, event_id: str, params: Mapping[str, Any] | None,
    max_trends: int,
) -> Arrivals:  # fmt: skip
    """Return what takes events as they arrive."""
    from trellis.local.arrivals import Arrivals

    def bind(events: Any) -> Plan:
        tables, named = with_readable_times(as_tables(events), time)
        return query.plan(schema_of(tables, named, type, event_id), params, None)

    return Arrivals(bind, max_trends)


def history_on_spark() -> Any:
    """Return the module that makes histories on Spark."""
    import trellis.spark.history as history

    return history


def following(frame: Any, archive: str, checkpoint: str, **options: Any) -> Any:
    """Return what appends a stream to an archive."""
    from trellis.spark.follow import Following

    return Following(frame, archive, checkpoint, **options)


def _on_spark(methods: Methods) -> Callable[..., SparkTrends]:
    """Return what makes the trends of a plan and a frame of events."""
    if methods.algorithm == JOIN:
        from trellis.spark.join import JoinedTrends

        return partial(JoinedTrends, construction=methods.construction)
    from trellis.spark.trends import SparkTrends

    def made(plan: Plan, frame: Any, max_trends: int, on_bad_rows: str) -> SparkTrends:
        return SparkTrends(with_methods(plan, methods, max_trends), frame, max_trends, on_bad_rows)

    return made


def _read_here(data: Any, time: str | None) -> Any:
    """Bring what lies in files or on Spark into this process."""
    if _is_path(data):
        from trellis.io.read import read_table

        return read_table(_paths(data), time=time)
    return data.toArrow() if _is_spark(data) else data


def _paths(data: Any) -> list[str]:
    return [os.fspath(data)] if isinstance(data, str | os.PathLike) else [os.fspath(p) for p in data]


def _is_path(data: Any) -> bool:
    if isinstance(data, str | os.PathLike):
        return True
    return isinstance(data, list | tuple) and bool(data) and all(isinstance(p, str | os.PathLike) for p in data)


def _is_spark(data: Any) -> bool:
    return data.__class__.__module__.startswith("pyspark.")
