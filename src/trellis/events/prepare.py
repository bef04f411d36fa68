"""Split: from a table of events to the sorted slice that an operator works on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from trellis.errors import DataError, UsageError, nearest, warn
from trellis.events.adjacency import is_true, meets_condition
from trellis.events.clock import clock_of
from trellis.events.columns.arrow import from_words, is_floating, taken
from trellis.events.columns.ordering import row_codes, sort_indices
from trellis.events.columns.types import from_arrow, normalise
from trellis.events.groups import make_groups
from trellis.events.slice import Ints, Slice
from trellis.events.sorting import Order, column_of, event_order, repeated_rows, table_order, tie_order
from trellis.events.times import unreadable_text
from trellis.kernels.events import partitions as kernel
from trellis.language.bound import BoundQuery, WindowKind, columns_of
from trellis.language.schema import STRING, TYPE, Kind
from trellis.plan.plan import Plan
from trellis.properties import cached_property


class SortedTable:
    """All columns of the events, brought into their order only when they are asked for.

    Parameters
    ----------
    table
        The events as they came.
    rows
        The rows that are left, in order; None for all as they are.
    load
        Gives all columns of the events where the table has only some.
    """

    def __init__(self, table: pa.Table, rows: Order, load: Callable[[], pa.Table] | None = None) -> None:
        self._table, self._rows, self._load = table, rows, load

    def _all(self) -> pa.Table:
        load = self._load  # another thread may have loaded them by then
        if load is not None:
            self._table, self._load = load(), None
        return self._table

    @cached_property
    def whole(self) -> pa.Table:
        """All the columns."""
        return self.columns(self._all().column_names)

    def columns(self, names: Sequence[str]) -> pa.Table:
        """Return some of the columns."""
        if not set(names) <= set(self._table.column_names):
            self._all()
        return _taken(self._table.select(names).combine_chunks(), self._rows)


@dataclass(frozen=True)
class PreparedEvents:
    """The slice of a whole input.

    Attributes
    ----------
    events
        The slice.
    source
        The events of the slice with all their columns.
    read, dropped
        How many rows came in, and how many of them were bad and left out.
    repeated
        The events that were left out because their id had occurred before, in the order of time.
    """

    events: Slice
    source: SortedTable
    read: int
    dropped: int
    repeated: pa.Table

    @property
    def table(self) -> pa.Table:
        """The events of the slice with all their columns, in the same order."""
        return self.source.whole


def prepare(
    plan: Plan, table: pa.Table, on_bad_rows: str = "error", load: Callable[[], pa.Table] | None = None
) -> PreparedEvents:
    """Check, filter, partition, sort and window a table of events; `load` gives the columns that it does not have."""
    read = table.num_rows
    table = _without_bad_rows(table, plan.bound, on_bad_rows)
    events = _sorted(_filtered(plan, table))
    first = _first_of_ids(plan.bound, events, table, on_bad_rows)
    kept = events.taken(first)
    repeated = table.slice(0, 0)
    if first is not None:
        again = np.setdiff1d(np.arange(len(events)), first, assume_unique=True)
        repeated = _taken(table, _places(events.rows, again))
    dropped = read - table.num_rows + repeated.num_rows
    return PreparedEvents(_slice(plan.bound, kept), SortedTable(table, kept.rows, load), read, dropped, repeated)


def with_columns(prepared: PreparedEvents, plan: Plan) -> Slice:
    """Return the slice with all columns that a plan reads."""
    known = prepared.events.columns
    more = prepared.source.columns([name for name in plan.columns if name not in known])
    columns = {name: known[name] if name in known else column_of(more, name) for name in plan.columns}
    return replace(prepared.events, columns=columns)


def _taken(table: pa.Table, rows: Order) -> pa.Table:
    """Return the rows of a table; the same one for all as they are."""
    return table if rows is None else table.take(from_words(rows))


# --- Bad rows and identity --------------------------------------------------------------------------------------


def _without_bad_rows(table: pa.Table, bound: BoundQuery, on_bad_rows: str) -> pa.Table:
    schema = bound.schema
    assert schema is not None
    if on_bad_rows not in ("error", "drop"):
        raise UsageError(f"on_bad_rows is `{on_bad_rows}`", "It is `error` or `drop`.")
    for role, name in schema.required:
        good = readable(table[name])
        if good is None:
            continue
        bad = table.num_rows - good.true_count
        if bad and on_bad_rows == "error":
            example = _first_row(table.filter(pc.invert(good)))
            raise bad_rows(bad, role, name, example | unreadable_text(table, name))
        if bad:
            table = table.filter(good)
    return table


def readable(column: pa.ChunkedArray) -> pa.Array | None:
    """Return which times, tie-breakers or ids can be read; None for all of them."""
    if not column.null_count and not is_floating(column):
        return None
    good = pc.is_valid(column)
    if is_floating(column):
        good = pc.and_(good, pc.fill_null(pc.is_finite(column), False))
    return good.combine_chunks() if isinstance(good, pa.ChunkedArray) else good


def _first_row(table: pa.Table) -> dict[str, object]:
    """Return the first row as it is shown; moments that Python cannot tell as Arrow writes them."""
    row: dict[str, object] = {}
    for name in table.column_names:
        value = table[name][0]
        try:
            row[name] = value.as_py()
        except (ValueError, OverflowError):
            row[name] = value.cast(pa.string()).as_py()
    return row


def bad_rows(number: int, role: str, name: str, example: Mapping[str, object]) -> DataError:
    """Return the error for rows without a readable time, tie-breaker or id, showing one."""
    shown = ", ".join(f"{key}={value}" for key, value in list(example.items())[:8])
    rows = "1 row has" if number == 1 else f"{number:,} rows have"
    how = "say how they are written with --time-format, " if role == "time" else ""
    return DataError(
        f"{rows} no readable {role} in the column `{name}`, for example: {shown}",
        f"Correct them, {how}or leave them out with on_bad_rows='drop' or --on-bad-rows drop.",
    )


def positions_of(table: pa.Table, bound: BoundQuery) -> pa.Array:
    """Return the positions of events in the order (time, table, other columns)."""
    positions = np.arange(table.num_rows)
    order = table_order(table, _identity_columns(table, bound))
    if order is not None:
        positions[order] = np.arange(table.num_rows)
    return pa.array(positions)


def unordered(name: str) -> UsageError:
    """Return the error for a column by which events cannot be numbered."""
    return UsageError(
        f"events without an id are numbered by all their columns, but `{name}` has no order",
        "Name an id column with event_id= or --event-id.",
    )


def _identity_columns(table: pa.Table, bound: BoundQuery) -> list[str]:
    schema = bound.schema
    assert schema is not None
    names = [schema.time, *schema.tie_breakers]
    names += [TYPE] if schema.tables[0].type is not None else []
    names += [n for n in table.column_names if n not in names]
    for name in names:
        if from_arrow(table[name].type).kind is Kind.OTHER:
            raise unordered(name)
    return names


# --- Conditions on single events --------------------------------------------------------------------------------


def meets_constants(plan: Plan, table: pa.Table) -> NDArray[np.bool_]:
    """Return which events of a table may be in a result, as far as they alone tell."""
    schema = plan.bound.schema
    asked = {column.name for condition in plan.constant for column in columns_of(condition.value)}
    asked |= {schema.type_column} if schema is not None and schema.type_column is not None else set()
    names = [name for name in plan.columns if name in asked and name in table.column_names]
    return _meets_constants(plan, table, {name: column_of(table, name) for name in names})


def _meets_constants(plan: Plan, table: pa.Table, columns: Mapping[str | None, pa.Array]) -> NDArray[np.bool_]:
    schema = plan.bound.schema
    if not plan.constant and (schema is None or schema.type_column is None):
        return np.ones(table.num_rows, np.bool_)
    if not plan.one_kleene:
        return _fills_some(plan, table, columns)
    meets = _has_type(plan.bound, table)
    for condition in plan.constant:
        meets &= meets_condition(condition, columns, meets)
    return meets


def _fills_some(plan: Plan, table: pa.Table, columns: Mapping[str | None, pa.Array]) -> NDArray[np.bool_]:
    """Return which events may fill some variable."""
    from trellis.events.variables import usable_events  # late: one variable goes without

    known = {key: column for key, column in columns.items() if key is not None}
    usable = usable_events(plan.bound, plan.constant, known, table.num_rows)
    warn_of_missing_types(plan.bound, known, usable)
    return np.logical_or.reduce([*usable.values()])


def warn_of_missing_types(
    bound: BoundQuery, columns: Mapping[str, pa.Array], usable: Mapping[str, NDArray[np.bool_]]
) -> None:
    """Warn of types that no event has, by the events that each variable may take; these alone are looked up."""
    name = None if bound.schema is None else bound.schema.type_column
    if name is None or not len(columns[name]):
        return
    wanted = list(dict.fromkeys(v.type for v in bound.variables if v.type is not None))
    there = {v.type for v in bound.variables if usable[v.name].any()}
    if there.issuperset(wanted):
        return
    found = [value for value in pc.unique(columns[name]).to_pylist() if value is not None]
    warn_of_types(name, wanted, [one for one in wanted if one not in found], found)


def _has_type(bound: BoundQuery, table: pa.Table) -> NDArray[np.bool_]:
    schema = bound.schema
    assert schema is not None
    name = schema.type_column
    wanted = bound.variables[0].type
    if name is None or wanted is None:
        return np.ones(table.num_rows, np.bool_)
    column = normalise(table[name], STRING)
    has = is_true(pc.equal(column, pa.scalar(wanted, column.type)))
    if table.num_rows and not has.any():
        found = [v for v in pc.unique(column).to_pylist() if v is not None]
        warn_of_types(name, [wanted], [wanted], found)
    return has


def warn_of_types(column: str, wanted: Sequence[str], missing: Sequence[str], types: Sequence[str] | None) -> None:
    """Warn of types that match no event: where one differs from another only in case, and where none matches any.

    Parameters
    ----------
    column
        The column of types.
    wanted, missing
        The types that the pattern names, and those of them that no event has.
    types
        The types that events have, as far as they are known; None where they are not.
    """
    alike = {one: sorted(t for t in types or () if t.casefold() == one.casefold()) for one in missing}
    for one, similar in alike.items():
        if similar:
            names = ", ".join(f"`{t}`" for t in similar)
            warn(f"no event has the type `{one}`, but some have {names}: types are case-sensitive")
    if len(missing) < len(wanted) or not wanted or any(alike.values()) or column == TYPE:
        return
    said = " or ".join(f"`{one}`" for one in wanted)
    near = [name for one in wanted if (name := nearest(one, types or ())) is not None]
    shown = sorted(types or ())[:MOST_TYPES]
    there = ", ".join(f"`{t}`" for t in shown) + (", …" if types and len(types) > len(shown) else "")
    has = f"; did you mean `{near[0]}`?" if near else f", which has {there}" if shown else ""
    warn(f"no event has the type {said} in the column `{column}`{has}")


MOST_TYPES = 5  # that a warning names


# --- Order, windows, groups -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Events:
    """The events that are left, each in one place of every column and array.

    `columns` has those that the plan reads, and the positions under None where `id` is. `rows` are the rows of the
    events in the table of those that can be read; None for all as they are.
    """

    columns: Mapping[str | None, pa.Array]
    id: str | None
    meets: NDArray[np.bool_]
    times: NDArray[Any]
    order: Ints | None
    partition: Ints | None
    rows: Order

    @property
    def ticks(self) -> NDArray[Any]:
        """Numbers that tell which of two events comes first."""
        return self.times if self.order is None else self.order

    @property
    def ids(self) -> pa.Array:
        """The ids, or positions in their place."""
        return self.columns[self.id]

    def __len__(self) -> int:
        return len(self.times)

    def taken(self, places: Order) -> _Events:
        """Return some of the events, in an order."""
        if places is None:
            return self
        return replace(
            self,
            columns={name: taken(column, places) for name, column in self.columns.items()},
            meets=self.meets[places],
            times=self.times[places],
            order=None if self.order is None else self.order[places],
            partition=None if self.partition is None else self.partition[places],
            rows=places if self.rows is None else self.rows[places],
        )


def _filtered(plan: Plan, table: pa.Table) -> _Events:
    """Return the events of a table that take part."""
    bound = plan.bound
    assert bound.schema is not None
    columns: dict[str | None, pa.Array] = {name: column_of(table, name) for name in plan.columns}
    if bound.schema.event_id is None:
        columns[None] = positions_of(table, bound)
    meets = _meets_constants(plan, table, columns)
    rows = None if plan.keep_failing or meets.all() else np.flatnonzero(meets)
    if rows is not None:
        columns, meets = {name: taken(column, rows) for name, column in columns.items()}, meets[rows]
    times = clock_of(bound).numbers(columns[bound.schema.time])
    order = tie_order(times, [columns[name] for name in bound.schema.tie_breakers])
    partition = row_codes([columns[name] for name, _ in bound.partition]) if bound.partition else None
    return _Events(columns, bound.schema.event_id, meets, times, order, partition, rows)


def _sorted(events: _Events) -> _Events:
    """Bring events into the order (partition, time, id); positions are in the order of times themselves."""
    by = events.ids.to_numpy() if events.id is None else events.ticks
    return events.taken(event_order(by, events.ids, events.partition))


def _slice(bound: BoundQuery, events: _Events) -> Slice:
    times = events.times if events.times.flags.writeable else events.times.copy()  # kernels tell the two apart
    bounds = _bounds(len(times), events.partition)
    groups, until = make_groups(bound, clock_of(bound), times, bounds)
    columns = {name: column for name, column in events.columns.items() if name is not None}
    return Slice(columns, events.ids, times, events.meets, bounds, groups, until, order=events.order)


def _bounds(size: int, partition: Ints | None) -> Ints:
    """Return where the runs of equal numbers begin, and where the last one ends."""
    if size == 0:
        return np.zeros(1, np.int64)
    begins = np.ones(size + 1, np.bool_)
    begins[1:-1] = False if partition is None else partition[1:] != partition[:-1]
    return np.flatnonzero(begins)


def _first_of_ids(bound: BoundQuery, events: _Events, table: pa.Table, on_bad_rows: str) -> Order:
    """Return which of the sorted events to keep: all, or those whose id did not occur before in their window."""
    if events.id is None:
        return None
    repeated, codes = repeated_rows(events.ids, events.partition)
    if not len(repeated):
        return None
    by = _by_columns(codes, events.ticks[repeated], _taken(table, _places(events.rows, repeated)))
    run, codes = repeated[by], codes[by]
    first = last = np.zeros(len(run), np.int64)
    if bound.window.kind is WindowKind.SLIDING:
        first, last = clock_of(bound).windows(events.times[run])
    keep = np.ones(len(events.times), np.bool_)
    keep[run] = kernel.drop_repeated(first, last, _bounds(len(run), codes))
    if not keep.all() and on_bad_rows == "error":
        again = np.flatnonzero(~keep)
        raise repeated_id(events.id, events.ids[int(again[0])].as_py(), len(again))
    return np.flatnonzero(keep)


def _places(rows: Order, places: Ints) -> Ints:
    return places if rows is None else rows[places]


def _by_columns(codes: Ints, times: NDArray[Any], table: pa.Table) -> Ints:
    """Order rows by (id, time, other columns)."""
    ordered = [n for n in table.column_names if from_arrow(table[n].type).kind is not Kind.OTHER]
    return sort_indices([pa.array(codes), pa.array(times), *(column_of(table, name) for name in ordered)])


def repeated_id(column: str, value: object, number: int) -> DataError:
    """Return the error for an id that occurs twice in a window and partition."""
    more = f" ({number:,} such rows)" if number > 1 else ""
    return DataError(
        f"the id `{value}` in the column `{column}` occurs twice in one window and partition{more}",
        "Name another id column, or keep the first of each with on_bad_rows='drop' or --on-bad-rows drop.",
    )
