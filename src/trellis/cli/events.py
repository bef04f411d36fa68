"""Events, read for an engine with what the query and the options tell of their columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from trellis.cli.options import EventOptions
from trellis.errors import UsageError
from trellis.language.schema import Kind, Schema, Table, Type, choose_time

Reader = Callable[..., Any]
Types = Callable[[Any], dict[str, Type]]


def check_given(events: EventOptions) -> None:
    """Refuse no events, and events given in both ways."""
    if events.paths and events.tables:
        raise UsageError(
            "events are given both as one table and by type",
            "Give EVENTS, or --events TYPE=PATH for each type.",
        )
    if not events.given:
        raise UsageError("no events were given", "Name files, directories or globs, or use --events TYPE=PATH.")


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
    wanted = set(texts) | ({events.type} if events.type else set())
    read, types = _reader(spark)
    read = partial(read, input_format=events.input_format, text_columns=wanted)
    if events.paths:
        return _with_times(read, types, list(events.paths), events)
    return {name: _with_times(read, types, paths, events) for name, paths in events.tables.items()}


def schema_of(data: Any, events: EventOptions, spark: Any = None) -> Schema:
    """Return what the binder needs to know of events that were read."""
    _, types = _reader(spark)
    tables = data if isinstance(data, dict) else {None: data}
    described = tuple(Table(name, types(table)) for name, table in tables.items())
    return Schema(described, choose_time(described[0].columns, events.time), events.type, events.event_id)


def _with_times(read: Reader, types: Types, paths: list[str], events: EventOptions) -> Any:
    """Read a table; if only its columns tell which one is the time, and that is text, read it again as time."""
    if events.time is not None:
        return read(paths, time=events.time, time_format=events.time_format)
    table = read(paths)
    columns = types(table)
    time = choose_time(columns, None)
    if events.time_format is None and columns[time].kind is not Kind.STRING:
        return table
    return read(paths, time=time, time_format=events.time_format)


def _reader(spark: Any) -> tuple[Reader, Types]:
    if spark is None:
        from trellis.columns.types import from_arrow
        from trellis.io.read import read_table

        return read_table, lambda table: {field.name: from_arrow(field.type) for field in table.schema}
    from trellis.spark.read import read
    from trellis.spark.schema import from_spark

    return partial(read, spark), lambda frame: {f.name: from_spark(f.dataType) for f in frame.schema.fields}
