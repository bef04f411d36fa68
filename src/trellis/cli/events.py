"""Events, read for an engine with what the query and the options tell of their columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

from trellis.cli.options import EventOptions
from trellis.errors import UsageError
from trellis.language.schema import Kind, Type, choose_time


@dataclass(frozen=True)
class _Files:
    """How an engine reads files: `read` them, and tell the `types` of columns."""

    read: Callable[..., Any]
    types: Callable[[Any], dict[str, Type]]


def check_given(events: EventOptions) -> None:
    """Refuse no events, and events given in both ways."""
    if sum(map(bool, (events.paths, events.tables, events.table))) > 1:
        raise UsageError(
            "events are given in more than one way",
            "Give EVENTS, or --events TYPE=PATH for each type, or --table.",
        )
    if not events.given:
        raise UsageError(
            "no events were given", "Name files, directories or globs, or use --events TYPE=PATH, or --table."
        )


def check_paths(events: EventOptions) -> None:
    """Refuse files that are not there; those on a cluster's own storage are left to the engine."""
    from trellis.io.sources import expand

    for paths in [list(events.paths)] if events.paths else events.tables.values():
        if not any("://" in path for path in paths):
            expand(paths, events.input_format)


def read_events(events: EventOptions, texts: Iterable[str], spark: Any = None) -> Any:
    """Read the events: an Arrow table or, with a Spark session, a data frame; or a dictionary of these by type.

    Parameters
    ----------
    events
        Which.
    texts
        The columns that stay text where a file does not tell types; the column of types is one of them.
    spark
        The Spark session.
    """
    check_given(events)
    if events.table is not None:
        return _spark_table(events.table, spark)
    wanted = set(texts) | ({events.type} if events.type else set())
    files = _files(spark)
    read = partial(_read, files, events, wanted)
    return read(list(events.paths)) if events.paths else {name: read(paths) for name, paths in events.tables.items()}


def _read(files: _Files, events: EventOptions, texts: set[str], paths: list[str]) -> Any:
    """Read a table; if only its columns tell which one is the time, and that is text, read it again as time."""
    read = partial(files.read, paths, input_format=events.input_format, text_columns=texts, delimiter=events.delimiter)
    table = read(time=events.time_column, time_format=events.time_format if events.time is not None else None)
    columns = files.types(table)
    if not columns:  # as a file of JSON without an object has it
        return table
    time = choose_time(columns, events.time_column)
    is_text = time in columns and columns[time].kind is Kind.STRING
    if events.time is None and (is_text or events.time_format is not None):
        table = read(time=time, time_format=events.time_format)
    return table


# --- The engines ------------------------------------------------------------------------------------------------


def _files(spark: Any) -> _Files:
    if spark is None:
        from trellis.events.columns.types import from_arrow
        from trellis.io.read import read_table

        return _Files(read_table, lambda t: {f.name: from_arrow(f.type) for f in t.schema})
    from trellis.engines.spark.sources.read import read
    from trellis.engines.spark.sources.schema import from_spark

    types = partial(_spark_types, from_spark)
    return _Files(partial(read, spark), types)


def _spark_table(name: str, spark: Any) -> Any:
    if spark is None:
        raise UsageError("--table is for Spark", "Leave out --engine local.")
    from trellis.engines.spark.sources.tables import frame_of_table

    return frame_of_table(name, spark)


def _spark_types(from_spark: Callable[[Any], Type], frame: Any) -> dict[str, Type]:
    return {field.name: from_spark(field.dataType) for field in frame.schema.fields}
