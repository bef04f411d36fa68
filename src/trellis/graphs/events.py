"""Events one at a time: the rows of a table in the order of time and id, with their columns as attributes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trellis.errors import DataError, UsageError, did_you_mean
from trellis.language.durations import UNITS, to_micros

IN_UTC, NAIVE = pa.timestamp("us", "UTC"), pa.timestamp("us")
AT_ONCE = 1 << 14  # rows that become events together


class Event(Mapping[str, Any]):
    """An event: `event.amount` or `event["amount"]` is what its column holds.

    Attributes
    ----------
    time
        Its time as a number: microseconds since 1970 where times are timestamps, else the number itself.
    event_id
        Its id, or its place in the input where events have none.
    number, previous
        How many events came before it, and the time of the last of these (None of the first); of its key, where the
        stream is split by predicates within keys. Only predicates that open partitions may ask for these.
    """

    __slots__ = ("_names", "_row", "event_id", "number", "previous", "time")

    def __init__(self, names: dict[str, int], row: tuple[Any, ...], time: Any, event_id: Any) -> None:
        self._names, self._row, self.time, self.event_id = names, row, time, event_id
        self.number: int = 0
        self.previous: Any = None

    def __getitem__(self, name: str) -> Any:
        return self._row[self._names[name]]

    def __getattr__(self, name: str) -> Any:
        try:
            return self._row[self._names[name]]
        except KeyError:
            known = ", ".join(self._names)
            hint = did_you_mean(name, self._names, f"Columns are {known}.")
            raise AttributeError(f"an event has no column `{name}`. {hint}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __repr__(self) -> str:
        return f"Event({', '.join(f'{name}={self[name]!r}' for name in self)})"


def duration(text: str | int | float) -> int | float:
    """Return a duration in the unit of `Event.time`: `duration("1 hour")` in microseconds, a number as it is."""
    if not isinstance(text, str):
        return text
    number, _, unit = text.strip().partition(" ")
    try:
        micros = to_micros(int(number), unit.strip()) if unit.strip().lower() in UNITS else None
    except ValueError:
        micros = None
    if micros is None or micros <= 0:
        raise UsageError(f"`{text}` is not a duration", "Write a whole number and a unit, such as `10 minutes`.")
    return micros


@dataclass(frozen=True)
class EventShape:
    """Which columns say when and which an event is, and of what types these are.

    Without `event_id` events are numbered as they come.
    """

    time: str
    event_id: str | None
    time_type: pa.DataType
    id_type: pa.DataType

    @classmethod
    def of(cls, schema: pa.Schema, time: str, event_id: str | None) -> EventShape:
        """Return that of events with certain columns.

        Raises
        ------
        UsageError
            If a column is missing, or times are neither timestamps nor numbers.
        """
        check_columns([name for name in (time, event_id) if name is not None], schema.names)
        kind = schema.field(time).type
        if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
            time_type = IN_UTC if getattr(kind, "tz", None) is not None else NAIVE
        elif pa.types.is_integer(kind):
            time_type = pa.int64()
        elif pa.types.is_floating(kind):
            time_type = pa.float64()
        else:
            raise UsageError(f"the time column `{time}` is of type {kind}", "Give timestamps or numbers.")
        if event_id is None:
            return cls(time, None, time_type, pa.int64())
        kind = schema.field(event_id).type
        if pa.types.is_integer(kind):
            return cls(time, event_id, time_type, pa.int64())
        if pa.types.is_string(kind) or pa.types.is_large_string(kind):
            return cls(time, event_id, time_type, pa.string())
        raise UsageError(f"the id column `{event_id}` is of type {kind}", "Give whole numbers or texts.")

    @property
    def temporal(self) -> bool:
        """Whether times are moments, and not plain numbers."""
        return bool(pa.types.is_timestamp(self.time_type))

    def times(self, table: pa.Table) -> pa.ChunkedArray:
        """Return the times of events as numbers."""
        column = table[self.time]
        if self.temporal:
            if not pa.types.is_timestamp(column.type):
                column = column.cast(pa.timestamp("us"))
            column = column.cast(pa.timestamp("us", column.type.tz), safe=False)
            return column.cast(pa.int64())
        return column.cast(self.time_type)

    def ids(self, table: pa.Table) -> pa.ChunkedArray | pa.Array:
        """Return the ids of events, or their numbers."""
        if self.event_id is None:
            return pa.array(np.arange(table.num_rows))
        return table[self.event_id].cast(self.id_type)

    def usable(self, table: pa.Table) -> np.ndarray:
        """Return which events have a time and an id."""
        times = self.times(table)
        good = pc.is_valid(times)
        if pa.types.is_floating(self.time_type):
            good = pc.and_(good, pc.fill_null(pc.is_finite(times), False))
        if self.event_id is not None:
            good = pc.and_(good, pc.is_valid(table[self.event_id]))
        return np.asarray(good.to_numpy(zero_copy_only=False) if isinstance(good, pa.Array) else good.to_numpy())

    def refuse_unusable(self, table: pa.Table) -> None:
        """Refuse events without a time or an id."""
        bad = int((~self.usable(table)).sum())
        if bad:
            raise DataError(f"{bad:,} events have no time or no id", "Give each one, or leave these events out.")

    def sorted_events(self, table: pa.Table) -> Iterator[Event]:
        """Yield the events of a table in the order of time and id; equal ones in the order they have there.

        Raises
        ------
        DataError
            If an event has no time or id, or occurs twice.
        """
        self.refuse_unusable(table)
        order = pa.table({"time": self.times(table), "id": self.ids(table)})
        places = pc.sort_indices(order, sort_keys=[("time", "ascending"), ("id", "ascending")])
        yield from self.events(table.take(places), order.take(places))

    def events(self, table: pa.Table, order: pa.Table | None = None) -> Iterator[Event]:
        """Yield the events of a table that is sorted; `order` holds times and ids where these are known."""
        if order is None:
            order = pa.table({"time": self.times(table), "id": self.ids(table)})
        names = {name: i for i, name in enumerate(table.column_names)}
        for begin in range(0, table.num_rows, AT_ONCE):
            batch, keys = table.slice(begin, AT_ONCE), order.slice(begin, AT_ONCE)
            columns = [_values(column) for column in batch.columns]
            rows = zip(*columns, strict=True)
            for row, time, event_id in zip(rows, keys["time"].to_pylist(), keys["id"].to_pylist(), strict=True):
                yield Event(names, row, time, event_id)


def _values(column: pa.ChunkedArray) -> list[Any]:
    if pa.types.is_timestamp(column.type) and column.type.unit == "ns":
        column = column.cast(pa.timestamp("us", column.type.tz), safe=False)  # Python's times have no more
    return list(column.to_pylist())


def check_columns(names: list[str], known: list[str], what: str = "") -> None:
    """Refuse columns that events do not have."""
    for name in names:
        if name not in known:
            hint = did_you_mean(name, known, f"Columns are {', '.join(known)}.")
            raise UsageError(f"the events have no column `{name}`{what}", hint)
