"""The schema of events: tables, columns and their types, and which columns are time, type and id."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from trellis.errors import UsageError, did_you_mean

TIME_NAMES = ("time", "ts", "timestamp", "event_time")

TYPE = "__type"  # the column that tells the type where events come from several tables


class Kind(StrEnum):
    """The kinds of values that conditions distinguish."""

    INTEGER = "integer"
    DOUBLE = "double"
    DECIMAL = "decimal"
    STRING = "string"
    BOOLEAN = "boolean"
    TIMESTAMP = "timestamp"
    DATE = "date"
    DURATION = "duration"
    UNKNOWN = "unknown"  # no schema was given
    OTHER = "other"  # a list, a struct, bytes: not for conditions


@dataclass(frozen=True, slots=True)
class Type:
    """A kind of value; decimals have a scale, others may carry their engine's own name for messages.

    A `naive` timestamp came without a zone: it is UTC inside, and comes out without a zone again.
    """

    kind: Kind
    scale: int = 0
    name: str = field(default="", compare=False)
    naive: bool = field(default=False, compare=False)

    @property
    def numeric(self) -> bool:
        """Whether arithmetic applies."""
        return self.kind in (Kind.INTEGER, Kind.DOUBLE, Kind.DECIMAL)

    @property
    def temporal(self) -> bool:
        """Whether it is a point in time; a date is its midnight, UTC."""
        return self.kind in (Kind.TIMESTAMP, Kind.DATE)

    def __str__(self) -> str:
        return self.name or str(self.kind)

    def described(self) -> str:
        """The type with its article, for sentences."""
        if self.kind is Kind.OTHER:
            return f"of type {self.name}"
        if self.kind is Kind.UNKNOWN:
            return "of unknown type"
        return ("an " if self.kind is Kind.INTEGER else "a ") + str(self.kind)


INTEGER = Type(Kind.INTEGER)
DOUBLE = Type(Kind.DOUBLE)
STRING = Type(Kind.STRING)
BOOLEAN = Type(Kind.BOOLEAN)
TIMESTAMP = Type(Kind.TIMESTAMP)
NAIVE = Type(Kind.TIMESTAMP, naive=True)
DURATION = Type(Kind.DURATION)
UNKNOWN = Type(Kind.UNKNOWN)


def moment_type(*types: Type) -> Type:
    """Return the type of a moment computed from others: naive where no timestamp among them has a zone."""
    moments = [type_ for type_ in types if type_.kind is Kind.TIMESTAMP]
    return NAIVE if moments and all(type_.naive for type_ in moments) else TIMESTAMP


def decimal(scale: int) -> Type:
    """Return the type of decimals with `scale` digits behind the point."""
    return Type(Kind.DECIMAL, scale)


@dataclass(frozen=True, slots=True)
class Table:
    """One table of events; `type` is the event type it holds, or None where rows tell or all are alike."""

    type: str | None
    columns: Mapping[str, Type]


@dataclass(frozen=True, slots=True)
class Schema:
    """The tables of events and the columns that are time, type and id in all of them.

    `tie_breakers` are the columns that order events of the same time, the most important one first.
    """

    tables: tuple[Table, ...]
    time: str
    type: str | None = None
    event_id: str | None = None
    tie_breakers: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.tables:
            raise UsageError("there are no events", "Give at least one table.")
        for table in self.tables:
            roles = [("time", self.time), ("type", self.type), ("event id", self.event_id)]
            for role, name in [*roles, *(("order of events of one time", name) for name in self.tie_breakers)]:
                if name is not None and name not in table.columns:
                    raise missing_column(name, table, role)
            _check_time(self.time, table.columns[self.time])
            _check_type(self.type, table)
            _check_id(self.event_id, table)
            _check_tie_breakers(self, table)
        _check_tables(self)

    @property
    def required(self) -> list[tuple[str, str]]:
        """The columns that must have a value in every row, each after what it is for."""
        ids = [] if self.event_id is None else [("id", self.event_id)]
        return [("time", self.time), *(("tie-breaker", name) for name in self.tie_breakers), *ids]

    @property
    def type_column(self) -> str | None:
        """The column that tells the type of an event, if one does."""
        return TYPE if self.tables[0].type is not None else self.type

    @property
    def time_type(self) -> Type:
        """The type of the time column."""
        return self.tables[0].columns[self.time]

    def tables_of(self, type_name: str | None) -> tuple[Table, ...]:
        """Return the tables in which events of a type may lie (all of them for None)."""
        if type_name is None or self.tables[0].type is None:
            return self.tables
        return tuple(t for t in self.tables if t.type == type_name)


def with_zones(schema: Schema) -> Schema:
    """Return a schema without naive timestamps: streams that earlier versions began give all times in UTC."""
    tables = tuple(
        Table(table.type, {name: replace(type_, naive=False) for name, type_ in table.columns.items()})
        for table in schema.tables
    )
    return replace(schema, tables=tables)


def missing_column(name: str, table: Table, role: str) -> UsageError:
    """Return the error for a column that an option names and the events do not have."""
    where = f"the table of `{table.type}` has" if table.type else "the events have"
    known = f"Columns are {', '.join(table.columns)}."
    return UsageError(f"{where} no column `{name}` for the {role}", did_you_mean(name, table.columns, known))


def time_columns(time: Any) -> tuple[str | None, tuple[str, ...]]:
    """Return the time column and those that break ties, from what users name: one column, or several in order."""
    if time is None or isinstance(time, str):
        return time, ()
    names = tuple(time) if isinstance(time, Iterable) else ()
    if not names or not all(isinstance(name, str) for name in names):
        raise UsageError(
            f"time is {time!r}", "Name a column, or several of which the later ones break ties: time=('ts', 'seq')."
        )
    return names[0], names[1:]


def choose_time(columns: Iterable[str], given: str | None) -> str:
    """Return the time column: the one given, or the only one with a usual name."""
    if given is not None:
        return given
    names = list(columns)
    usual = [c for c in names if c in TIME_NAMES]
    if len(usual) == 1:
        return usual[0]
    if usual:
        raise UsageError(f"several columns could be the time: {', '.join(usual)}", "Name one with time= or --time.")
    raise UsageError(
        f"no column is called {', '.join(TIME_NAMES[:-1])} or {TIME_NAMES[-1]}",
        f"Name the time column with time= or --time. Columns are {', '.join(names)}.",
    )


def _check_time(name: str, type_: Type) -> None:
    if not (type_.temporal or type_.numeric or type_.kind is Kind.UNKNOWN):
        hint = "Give its format with --time-format." if type_.kind is Kind.STRING else None
        raise UsageError(
            f"the time column `{name}` is {type_.described()}; a time is a timestamp, a date or a number", hint
        )


def _check_type(name: str | None, table: Table) -> None:
    if name is not None and table.columns[name].kind not in (Kind.STRING, Kind.UNKNOWN):
        raise UsageError(f"the type column `{name}` is {table.columns[name].described()}, not a string")


def _check_id(name: str | None, table: Table) -> None:
    if name is not None and table.columns[name].kind is Kind.OTHER:
        raise UsageError(f"the event id column `{name}` is {table.columns[name].described()}, which cannot be an id")


def _check_tie_breakers(schema: Schema, table: Table) -> None:
    columns = (schema.time, *schema.tie_breakers)
    for i, name in enumerate(schema.tie_breakers):
        if name in columns[: i + 1]:
            raise UsageError(f"`{name}` is named twice among the columns of time", "Name each column once.")
        if table.columns[name].kind is Kind.OTHER:
            raise UsageError(f"`{name}` is {table.columns[name].described()}, which has no order to break ties by")


def _check_tables(schema: Schema) -> None:
    """Either all tables hold one event type or none does, and they agree on the types of time and id."""
    first, *others = schema.tables
    if len({t.type is None for t in schema.tables}) > 1:
        raise UsageError("some tables have an event type and some have none", "Write --events Check=a.parquet.")
    for table in others:
        roles = [("time", schema.time), ("event id", schema.event_id)]
        for role, name in [*roles, *(("tie-breaking", name) for name in schema.tie_breakers)]:
            if name is not None and table.columns[name].kind is not first.columns[name].kind:
                types = f"{first.columns[name].described()} and {table.columns[name].described()}"
                raise UsageError(f"the tables disagree on the {role} column `{name}`: {types}")
