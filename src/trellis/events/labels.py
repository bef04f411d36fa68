"""The index of a pandas frame as event ids: results then refer to rows as `frame.loc` does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from trellis.errors import DataError, UsageError
from trellis.events.source import EventSource, is_pandas_frame
from trellis.events.tables import as_tables
from trellis.language.schema import TIME_NAMES

if TYPE_CHECKING:
    import pandas

NAMES = ("index", "__index")  # of the column of labels, where the index has no name of its own


def with_labels(source: EventSource, time: str | None) -> tuple[EventSource, str | None]:
    """Return events with the labels of their pandas index as a column, and its name; None where there is no such index.

    Parameters
    ----------
    source
        The events as they were given, without an id column. Several tables by type have no index in common: their
        events are numbered.
    time
        The time column, if the user names one.

    Raises
    ------
    DataError
        If labels are repeated, or cannot be ids.
    UsageError
        If the times are in the index, and not in a column.
    """
    if len(source.tables) != 1:
        return source, None
    ((type_, frame),) = source.tables.items()
    if not is_pandas_frame(frame):
        return source, None
    name = _column_name(frame)
    _check_times(frame, time, name)
    _check_labels(frame)
    table = as_tables(frame)[None]
    return EventSource({type_: table.append_column(name, _labels(frame))}), name


def _column_name(frame: pandas.DataFrame) -> str:
    columns = {str(column) for column in frame.columns}
    own = frame.index.name
    return next(name for name in (*([own] if isinstance(own, str) else []), *NAMES) if name not in columns)


def _check_times(frame: pandas.DataFrame, time: str | None, name: str) -> None:
    """Refuse a frame whose times are its index, and no column."""
    if type(frame.index).__name__ != "DatetimeIndex":
        return
    columns = [*map(str, frame.columns), name]
    if not (time in columns if time is not None else any(usual in columns for usual in TIME_NAMES)):
        asked = "" if time is None else f", and there is no column `{time}`"
        wanted = time or "ts"
        raise UsageError(
            f"the times of the frame are in its index{asked}",
            f"Make them a column: frame.reset_index(names={wanted!r}), with time={wanted!r}.",
        )


def _check_labels(frame: pandas.DataFrame) -> None:
    index = frame.index
    if index.nlevels > 1:
        raise DataError(
            f"the index of the frame has {index.nlevels} levels, and its labels are the ids of events",
            "Name an id column with event_id=, or number the rows with frame.reset_index().",
        )
    if not index.is_unique:
        label: Any = index[index.duplicated()][0]
        raise DataError(
            f"the index of the frame has the label `{label}` twice, and its labels are the ids of events",
            "Name an id column with event_id=, or number the rows with frame.reset_index(drop=True).",
        )


def _labels(frame: pandas.DataFrame) -> pa.Array:
    try:
        return pa.array(frame.index)
    except pa.ArrowException:
        raise DataError(
            "the labels in the index of the frame have several types, and are the ids of events",
            "Name an id column with event_id=, or number the rows with frame.reset_index(drop=True).",
        ) from None
