"""Split: from a table of events to the sorted slice that an operator works on."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from trellis.columns.evaluate import evaluate
from trellis.columns.ordering import group_codes, sort_indices
from trellis.columns.types import from_arrow, normalise
from trellis.errors import DataError, OverflowInCondition, UsageError
from trellis.events import TYPE
from trellis.kernels import worlds as kernel
from trellis.language.bound import BoundQuery, Condition, WindowKind
from trellis.language.schema import STRING, Kind
from trellis.plan.plan import Plan
from trellis.trends.adjacency import is_true
from trellis.trends.clock import Clock
from trellis.trends.slice import Groups, Ints, Slice

MAX_WINDOWS = 1 << 31


@dataclass(frozen=True)
class Prepared:
    """The slice of a whole input.

    Attributes
    ----------
    events
        The slice.
    table
        The events of the slice with all their columns, in the same order.
    read, dropped
        How many rows came in, and how many of them were bad and left out.
    """

    events: Slice
    table: pa.Table
    read: int
    dropped: int


def prepare(plan: Plan, table: pa.Table, on_bad_rows: str = "error") -> Prepared:
    """Check, filter, partition, sort and window a table of events."""
    bound, read = plan.bound, table.num_rows
    assert bound.schema is not None
    table = _without_bad_rows(table.combine_chunks(), bound, on_bad_rows)
    unreadable = read - table.num_rows
    table, ids = _identified(table, bound)
    columns = {name: normalise(table[name], from_arrow(table[name].type)) for name in plan.columns}
    meets = _meets_constants(plan, table, columns)
    if not plan.keep_failing:
        keep = pa.array(meets)
        table, ids = table.filter(keep), ids.filter(keep)
        columns = {name: column.filter(keep) for name, column in columns.items()}
        meets = np.ones(len(ids), np.bool_)
    events, table, repeated = _sorted(plan, table, ids, columns, meets, on_bad_rows)
    return Prepared(events, table, read, unreadable + repeated)


def with_columns(prepared: Prepared, plan: Plan) -> Slice:
    """Return the slice with all columns that a plan reads."""
    table = prepared.table
    return replace(prepared.events, columns={n: normalise(table[n], from_arrow(table[n].type)) for n in plan.columns})


# --- Bad rows and identity --------------------------------------------------------------------------------------


def _without_bad_rows(table: pa.Table, bound: BoundQuery, on_bad_rows: str) -> pa.Table:
    schema = bound.schema
    assert schema is not None
    if on_bad_rows not in ("error", "drop"):
        raise UsageError(f"on_bad_rows is `{on_bad_rows}`", "It is `error` or `drop`.")
    for role, name in (("time", schema.time), ("id", schema.event_id)):
        if name is None:
            continue
        good = _readable(table[name])
        bad = table.num_rows - good.true_count
        if bad and on_bad_rows == "error":
            raise bad_rows(bad, role, name, table.filter(pc.invert(good)).slice(0, 1).to_pylist()[0])
        if bad:
            table = table.filter(good)
    return table.combine_chunks()


def _readable(column: pa.ChunkedArray) -> pa.Array:
    good = pc.is_valid(column)
    if pa.types.is_floating(column.type):
        good = pc.and_(good, pc.fill_null(pc.is_finite(column), False))
    return good.combine_chunks() if isinstance(good, pa.ChunkedArray) else good


def bad_rows(number: int, role: str, name: str, example: Mapping[str, object]) -> DataError:
    """Return the error for rows without a readable time or id, showing one."""
    shown = ", ".join(f"{key}={value}" for key, value in list(example.items())[:8])
    rows = "1 row has" if number == 1 else f"{number:,} rows have"
    how = "say how they are written with --time-format, " if role == "time" else ""
    return DataError(
        f"{rows} no readable {role} in the column `{name}`, for example: {shown}",
        f"Mend them, {how}or leave them out with on_bad_rows='drop' or --on-bad-rows drop.",
    )


def _identified(table: pa.Table, bound: BoundQuery) -> tuple[pa.Table, pa.Array]:
    """Return the event ids: a column, or the position in (time, table, other columns)."""
    schema = bound.schema
    assert schema is not None
    if schema.event_id is not None:
        column = table[schema.event_id]
        return table, normalise(column, from_arrow(column.type))
    order = sort_indices(_identity_columns(table, bound))
    positions = np.empty(len(order), np.int64)
    positions[order] = np.arange(len(order))
    return table, pa.array(positions)


def unordered(name: str) -> UsageError:
    """Return the error for a column by which events cannot be numbered."""
    return UsageError(
        f"events without an id are numbered by all their columns, but `{name}` has no order",
        "Name an id column with event_id= or --event-id.",
    )


def _identity_columns(table: pa.Table, bound: BoundQuery) -> list[pa.Array]:
    schema = bound.schema
    assert schema is not None
    names = [schema.time, TYPE] if schema.tables[0].type is not None else [schema.time]
    names += [n for n in table.column_names if n not in names]
    for name in names:
        if from_arrow(table[name].type).kind is Kind.OTHER:
            raise unordered(name)
    return [normalise(table[n], from_arrow(table[n].type)) for n in names]


# --- Conditions on single events --------------------------------------------------------------------------------


def _meets_constants(plan: Plan, table: pa.Table, columns: Mapping[str, pa.Array]) -> NDArray[np.bool_]:
    meets = _has_type(plan.bound, table)
    for condition in plan.constant:
        meets &= meets_condition(condition, columns, meets)
    return meets


def meets_condition(
    condition: Condition, columns: Mapping[str, pa.Array], asked: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Return which events meet a condition; only those that are `asked` can be the cause of an overflow."""
    try:
        return is_true(evaluate(condition.value, lambda c: columns[c.name], len(asked)))
    except OverflowInCondition:
        rows = pa.array(np.flatnonzero(asked))
        meets = np.zeros(len(asked), np.bool_)
        meets[asked] = is_true(evaluate(condition.value, lambda c: columns[c.name].take(rows), len(rows)))
        return meets


def _has_type(bound: BoundQuery, table: pa.Table) -> NDArray[np.bool_]:
    schema = bound.schema
    assert schema is not None
    name = TYPE if schema.tables[0].type is not None else schema.type
    wanted = bound.variables[0].type
    if name is None or wanted is None:
        return np.ones(table.num_rows, np.bool_)
    column = normalise(table[name], STRING)
    has = is_true(pc.equal(column, pa.scalar(wanted, column.type)))
    if table.num_rows and not has.any():
        warn_of_case(wanted, [v for v in pc.unique(column).to_pylist() if v is not None])
    return has


def warn_of_case(wanted: str, found: list[str]) -> None:
    """Warn where a type matches no event but differs from one only in case."""
    similar = [t for t in found if t != wanted and t.casefold() == wanted.casefold()]
    if similar:
        names = ", ".join(f"`{t}`" for t in sorted(similar))
        warnings.warn(
            f"no event has the type `{wanted}`, but some have {names}: types are case-sensitive", stacklevel=6
        )


# --- Order, windows, groups -------------------------------------------------------------------------------------


def _sorted(
    plan: Plan,
    table: pa.Table,
    ids: pa.Array,
    columns: Mapping[str, pa.Array],
    meets: NDArray[np.bool_],
    on_bad_rows: str,
) -> tuple[Slice, pa.Table, int]:
    bound = plan.bound
    assert bound.schema is not None
    clock = Clock(bound.window, bound.schema.time_type)
    times = clock.numbers(columns[bound.schema.time])
    n = len(times)
    partition = (
        group_codes([columns[name] for name, _ in bound.partition])[0] if bound.partition else np.zeros(n, np.int64)
    )
    id_codes = group_codes([ids])[0]
    order = np.lexsort((id_codes, times, partition))
    keep = _first_of_ids(bound, clock, order, partition, times, ids, id_codes, table, on_bad_rows)
    order = order[keep]
    taken = pa.array(order)
    times, partition = times[order], partition[order]
    bounds = (
        np.concatenate([[0], np.flatnonzero(np.diff(partition)) + 1, [len(order)]])
        if len(order)
        else np.zeros(1, np.int64)
    )
    groups, until = make_groups(bound, clock, times, bounds.astype(np.int64))
    events = Slice(
        columns={name: column.take(taken) for name, column in columns.items()}, ids=ids.take(taken), times=times,
        usable=meets[order], bounds=bounds.astype(np.int64), groups=groups, until=until,
    )  # fmt: skip
    return events, table.take(taken), n - len(order)


def make_groups(bound: BoundQuery, clock: Clock, times: np.ndarray, bounds: Ints) -> tuple[Groups, Ints]:
    """Return the windows of partitions in output order, and for each event the end of its possible company."""
    if bound.window.kind is not WindowKind.SLIDING:
        until = (
            clock.span_ends(times, bounds)
            if bound.window.kind is WindowKind.SPAN
            else kernel.world_ends(bounds, len(times))
        )
        return Groups(bounds[:-1], bounds[1:], np.zeros(len(bounds) - 1, np.int64)), until
    first, last = clock.windows(times)
    total = kernel.count_windows(first, last, bounds)
    if total > MAX_WINDOWS:
        raise UsageError(f"the events fall into {total:,} windows", "Make SLIDE longer or WITHIN shorter.")
    number, world, lo, hi = kernel.list_windows(first, last, bounds, total)
    order = np.lexsort((world, number))
    return Groups(lo[order], hi[order], number[order]), kernel.window_ends(first, last, bounds)


def _first_of_ids(
    bound: BoundQuery, clock: Clock, order: Ints, partition: Ints, times: np.ndarray, ids: pa.Array, id_codes: Ints,
    table: pa.Table, on_bad_rows: str,
) -> NDArray[np.bool_]:  # fmt: skip
    """Return which of the ordered events to keep: all, or without those whose id occurred before in their window."""
    keep = np.ones(len(order), np.bool_)
    schema = bound.schema
    assert schema is not None
    if schema.event_id is None or not len(order):
        return keep
    codes, groups = id_codes[order], partition[order]
    by_id = np.lexsort((codes, groups))
    same = (np.diff(codes[by_id]) == 0) & (np.diff(groups[by_id]) == 0)
    if not same.any():
        return keep
    repeated = by_id[np.concatenate([[False], same]) | np.concatenate([same, [False]])]
    run = repeated[_by_columns(order[repeated], groups[repeated], codes[repeated], times, table)]
    changes = np.flatnonzero((np.diff(codes[run]) != 0) | (np.diff(groups[run]) != 0)) + 1
    first = last = np.zeros(len(run), np.int64)
    if bound.window.kind is WindowKind.SLIDING:
        first, last = clock.windows(times[order[run]])
    keep[run] = kernel.drop_repeated(first, last, np.concatenate([[0], changes, [len(run)]]))
    if not keep.all() and on_bad_rows == "error":
        raise repeated_id(schema.event_id, ids[int(order[np.flatnonzero(~keep)[0]])].as_py(), int((~keep).sum()))
    return keep


def _by_columns(rows: Ints, groups: Ints, codes: Ints, times: np.ndarray, table: pa.Table) -> Ints:
    """Order rows by (partition, id, time, other columns)."""
    taken = table.take(pa.array(rows))
    columns = [pa.array(groups), pa.array(codes), pa.array(times[rows])]
    columns += [
        normalise(taken[n], from_arrow(taken[n].type))
        for n in taken.column_names
        if from_arrow(taken[n].type).kind is not Kind.OTHER
    ]
    return sort_indices(columns)


def repeated_id(column: str, value: object, number: int) -> DataError:
    """Return the error for an id that occurs twice in a window and partition."""
    more = f" ({number:,} such rows)" if number > 1 else ""
    return DataError(
        f"the id `{value}` in the column `{column}` occurs twice in one window and partition{more}",
        "Name another id column, or keep the first of each with on_bad_rows='drop' or --on-bad-rows drop.",
    )
