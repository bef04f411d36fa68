"""Trends as rows: positions of events become the columns of the result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from trellis.errors import DataError, OverflowInCondition, UsageError, did_you_mean
from trellis.events.clock import MICROS, UTC_MICROS, Clock
from trellis.events.columns.evaluate import evaluate
from trellis.events.columns.ordering import rank_codes
from trellis.events.columns.types import normalise
from trellis.events.slice import Slice
from trellis.language.bound import BoundQuery, Column, Operation, Output, OutputKind, WindowKind
from trellis.language.schema import Kind, Type
from trellis.language.syntax import Which
from trellis.operators.weights import narrow_decimals
from trellis.plan.plan import Plan
from trellis.results.arrange import hidden_names
from trellis.results.sums import DIGITS_38, means_of, sums_of, up_to_38_digits

# Counts come out as rows too, and have to start fast: what only trends need is imported where it is needed.
if TYPE_CHECKING:
    from trellis.operators.batch import PathBatch

COUNT, INT32 = DIGITS_38, pa.int32()
BARE = frozenset({"events", "shared", "new", "rank", "length"})  # columns that name events by position at most


def arrow_type(type_: Type) -> pa.DataType:
    """Return the Arrow type in which values of a type come out."""
    simple = {
        Kind.INTEGER: pa.int64(), Kind.DOUBLE: pa.float64(), Kind.STRING: pa.string(), Kind.BOOLEAN: pa.bool_(),
        Kind.TIMESTAMP: MICROS if type_.naive else UTC_MICROS, Kind.DATE: pa.date32(), Kind.DURATION: pa.duration("us"),
        Kind.UNKNOWN: pa.null(),
    }  # fmt: skip
    return pa.decimal128(38, type_.scale) if type_.kind is Kind.DECIMAL else simple[type_.kind]


def output_type(output: Output) -> pa.DataType:
    """Return the Arrow type of an item of RETURN; sums of integers have room for 38 digits."""
    summed = output.kind is OutputKind.AGGREGATE and output.function == "SUM" and output.type.kind is Kind.INTEGER
    value = COUNT if summed else arrow_type(output.type)
    return pa.list_(value) if output.list else value


def present(array: pa.Array, type_: pa.DataType) -> pa.Array:
    """Return a normalised array as readers see it."""
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if array.type == type_:
        return array
    if pa.types.is_decimal(array.type):
        array = narrow_decimals(array)
    try:
        return array.cast(type_)
    except pa.ArrowInvalid:
        if not pa.types.is_large_string(array.type):
            raise
        raise DataError("the texts of some rows that come out together are longer than 2 GB") from None


def lead_schema(bound: BoundQuery, names: list[str] | None = None) -> list[pa.Field]:
    """Return the fields that tell window and partition."""
    assert bound.schema is not None
    fields = []
    if bound.window.kind is WindowKind.SLIDING:
        bounds = Clock(bound.window, bound.schema.time_type).bound_type
        fields += [pa.field("window_start", bounds), pa.field("window_end", bounds)]
    return fields + [pa.field(n, arrow_type(t)) for n, t in bound.partition if names is None or n in names]


def row_schema(bound: BoundQuery) -> pa.Schema:
    """Return the schema of the listed rows."""
    assert bound.schema is not None
    time = arrow_type(bound.schema.time_type)
    fields = [*lead_schema(bound), pa.field("rank", pa.int64()), pa.field("length", pa.int64())]
    fields += [pa.field("start_time", time), pa.field("end_time", time)]
    if bound.returns:
        return pa.schema(fields + [pa.field(n.name, output_type(n.output)) for n in bound.returns])
    ids, names = id_arrow_type(bound), taking(bound)
    if bound.fixed:
        return pa.schema(fields + [pa.field(name, ids) for name in names])
    fields.append(pa.field("events", pa.list_(ids)))
    return pa.schema([*fields, pa.field("bindings", pa.list_(pa.string()))] if len(names) > 1 else fields)


def taking(bound: BoundQuery) -> list[str]:
    """Return the variables that take events, in the order of the pattern."""
    return [v.name for v in bound.variables if not v.absent]


def plain_schema(bound: BoundQuery) -> pa.Schema:
    """Return the schema of the rows without RETURN, with all events of a result in one column."""
    kleene = tuple(replace(v, kleene=True) for v in bound.variables)
    return row_schema(replace(bound, returns=(), variables=kleene))


def compact_schema(schema: pa.Schema) -> pa.Schema:
    """Return the schema of rows in compact form: `shared` and `new` in place of `events`."""
    place = schema.get_field_index("events")
    fields = [pa.field("shared", pa.int32()), pa.field("new", schema.field(place).type)]
    return pa.schema([*list(schema)[:place], *fields, *list(schema)[place + 1 :]])


def check_compact(bound: BoundQuery) -> None:
    """Refuse a query whose rows have no compact form."""
    clauses = {"RETURN": bound.returns, "ORDER BY": bound.order_by, "AGGREGATE": bound.aggregates}
    if len(taking(bound)) > 1:
        raise UsageError("rows have no compact form for a pattern of several variables", "Leave out compact=True.")
    if bound.fixed:
        raise UsageError(
            "rows have no compact form for a pattern of single events: they have no column `events`",
            "Leave out compact=True.",
        )
    for clause, items in clauses.items():
        if items:
            raise UsageError(
                f"rows have no compact form under {clause}", f"Leave out compact=True, or {clause} in the query."
            )
    for name, _ in bound.partition:
        if name in ("shared", "new"):
            raise UsageError(f"the compact form has a column `{name}` already, like the partition")


def chosen(columns: Sequence[str], known: Sequence[str]) -> list[str]:
    """Return the columns that were asked for, if the result has them all."""
    if isinstance(columns, str) or not columns:
        raise UsageError("the columns wanted are given as a list of names", f"Columns are {', '.join(known)}.")
    for name in columns:
        if name not in known:
            hint = did_you_mean(name, known, f"Columns are {', '.join(known)}.")
            raise UsageError(f"the result has no column `{name}`", hint)
    return list(columns)


def exploded_schema(bound: BoundQuery) -> pa.Schema:
    """Return the schema of one row an event: window, partition, rank, place in the trend from 1, the event's columns.

    A pattern of several variables also tells the event's `variable`. Columns of types that conditions cannot use, and
    those whose names are taken, are left out.
    """
    assert bound.schema is not None
    fields = [*lead_schema(bound), pa.field("rank", pa.int64()), pa.field("place", pa.int64())]
    if len(taking(bound)) > 1:
        fields.append(pa.field("variable", pa.string()))
    taken = {f.name for f in fields}
    for table in bound.schema.tables:
        for name, type_ in table.columns.items():
            if name not in taken and type_.kind is not Kind.OTHER:
                fields.append(pa.field(name, arrow_type(type_)))
                taken.add(name)
    return pa.schema(fields)


def id_arrow_type(bound: BoundQuery) -> pa.DataType:
    """Return the Arrow type of event ids."""
    schema = bound.schema
    assert schema is not None
    return pa.int64() if schema.event_id is None else arrow_type(schema.tables[0].columns[schema.event_id])


def one_zero(column: pa.Array) -> pa.Array:
    """Return -0.0, which equals 0.0, as 0.0."""
    return pc.add(column, 0.0) if pa.types.is_floating(column.type) else column


class RowMaker:
    """Makes record batches of results."""

    def __init__(
        self, plan: Plan, events: Slice, positions: bool = False, plain: bool = False, compact: bool = False
    ) -> None:
        """Give ids or, with `positions`, the places of events in the slice.

        `plain` rows leave RETURN aside; `compact` ones have `shared` and `new` in place of `events`.
        """
        self.bound, self.events, self.positions = plan.bound, events, positions
        self.schema = plain_schema(plan.bound) if plain else row_schema(plan.bound)
        if compact:
            self.schema = compact_schema(self.schema)
        names = taking(plan.bound)
        self._variables = {name: code for code, name in enumerate(names)} if len(names) > 1 else {}
        self.codes, self.columns = cache(self._codes), cache(self._columns)

    def _codes(self, name: str) -> NDArray[np.int64]:
        return rank_codes([self.events.columns[name]])[0]

    def batch(self, batch: PathBatch, names: list[str] | None = None) -> pa.RecordBatch:
        """Return the rows of some trends: the columns called for (all of them), and the hidden ones of ORDER BY."""
        rows = _PathArrays(batch)
        columns = self.columns(None if names is None else tuple(names))
        return pa.RecordBatch.from_arrays([make(rows) for make in columns.values()], names=list(columns))

    def _columns(self, names: tuple[str, ...] | None) -> dict[str, Callable[[_PathArrays], pa.Array]]:
        """Return the function that makes each column that is called for, and each hidden one."""
        made = {f.name: self._column(f) for f in self.schema if names is None or f.name in names}
        keys = [partial(self._shown, o.output) for o in self.bound.order_by]
        return made | dict(zip(hidden_names(self.bound), [_PathArrays.group_numbers, *keys], strict=False))

    def _column(self, field: pa.Field) -> Callable[[_PathArrays], pa.Array]:
        """Return the function that makes one column of the output."""
        returned = {n.name: n.output for n in self.bound.returns}
        if field.name in returned and field.name in self.schema.names[-len(returned) :]:
            return partial(self._shown, returned[field.name])
        lead = [f.name for f in lead_schema(self.bound)]
        if field.name in lead:
            return partial(self._lead_column, lead.index(field.name))
        plain: dict[str, Callable[[_PathArrays], pa.Array]] = {
            "shared": _PathArrays.shared, "rank": _PathArrays.ranks, "length": _PathArrays.lengths_shown,
            "events": self.ids, "new": self.ids, "bindings": self._bindings,
            "start_time": partial(self._moment, field.type, True), "end_time": partial(self._moment, field.type, False),
        }  # fmt: skip
        if field.name in plain and not (self.bound.fixed and field.name in self._fixed):
            return plain[field.name]
        return partial(self._of_variable, field.name, self._first_ids)

    @property
    def _fixed(self) -> list[str]:
        """The columns of a fixed sequence that are named after its variables: the last ones."""
        names = taking(self.bound)
        return names if self.schema.names[-len(names) :] == names else []

    def _bindings(self, rows: _PathArrays) -> pa.Array:
        names = pa.array(taking(self.bound), pa.string())
        return pa.ListArray.from_arrays(rows.offsets, _taken(names, pa.array(rows.batch.variables)))

    def _of_variable(self, name: str | None, make: Callable[[_PathArrays], pa.Array], rows: _PathArrays) -> pa.Array:
        """Return a column made of the events of one variable; NULL where it has none."""
        if name is None or not self._variables:
            return make(rows)
        some, which = rows.of(self._variables[name])
        return make(some) if which is None else make(some).take(which)

    def _first_ids(self, rows: _PathArrays) -> pa.Array:
        """Return the id of the first event of every trend."""
        if self.positions:
            return _wrapped(rows.batch.firsts)
        return present(_taken(self.events.ids, pa.array(rows.batch.firsts)), id_arrow_type(self.bound))

    def _lead_column(self, number: int, rows: _PathArrays) -> pa.Array:
        groups, which = rows.runs
        return _taken(self.lead(groups)[number], which)

    def _moment(self, type_: pa.DataType, first: bool, rows: _PathArrays) -> pa.Array:
        """Return the time at which each trend begins or ends."""
        assert self.bound.schema is not None
        times = self.events.columns[self.bound.schema.time]
        return present(_taken(times, pa.array(rows.batch.firsts if first else rows.batch.lasts)), type_)

    def _shown(self, output: Output, rows: _PathArrays) -> pa.Array:
        """Return an item of RETURN or ORDER BY as readers see it: a sum that needs more than 38 digits is NULL."""
        item = self.item(output, rows)
        if self.positions and output.kind is OutputKind.IDS:
            return item
        if output.kind is OutputKind.AGGREGATE and output.function == "SUM" and pa.types.is_decimal(item.type):
            item = up_to_38_digits(item)
        return present(item, output_type(output))

    def exploded(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return one row an event of plain rows with positions: see `exploded_schema`."""
        lists = batch.column("events")
        lengths = lists.value_lengths().to_numpy(zero_copy_only=False).astype(np.int64)
        row = pa.array(np.repeat(np.arange(len(lists)), lengths))
        place = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths) + 1
        schema = exploded_schema(self.bound)
        of_trend = [*(f.name for f in lead_schema(self.bound)), "rank"]
        columns = []
        for field in schema:
            if field.name == "place":
                columns.append(pa.array(place))
            elif field.name == "variable" and self._variables:
                columns.append(batch.column("bindings").flatten())
            elif field.name in of_trend:
                columns.append(batch.column(field.name).take(row))
            else:
                columns.append(present(self.events.columns[field.name].take(lists.flatten()), field.type))
        return pa.RecordBatch.from_arrays(columns, schema=schema)

    def lead(self, groups: NDArray[np.int64]) -> list[pa.Array]:
        """Return the columns that tell window and partition of groups."""
        bound, events = self.bound, self.events
        assert bound.schema is not None
        columns: list[pa.Array] = []
        if bound.window.kind is WindowKind.SLIDING:
            columns += Clock(bound.window, bound.schema.time_type).bounds(events.groups.number[groups])
        firsts = pa.array(events.groups.lo[groups])
        return columns + [one_zero(present(events.columns[n].take(firsts), arrow_type(t))) for n, t in bound.partition]

    def ids(self, rows: _PathArrays) -> pa.Array:
        """Return the event ids of every trend as lists."""
        values = rows.positions
        if not self.positions:
            values = present(_taken(self.events.ids, rows.positions), id_arrow_type(self.bound))
        return pa.ListArray.from_arrays(rows.offsets, values)

    def item(self, output: Output, rows: _PathArrays) -> pa.Array:
        """Return an item of RETURN or ORDER BY for every trend."""
        match output.kind:
            case OutputKind.IDS:
                return self._of_variable(output.variable, self.ids if output.list else self._first_ids, rows)
            case OutputKind.LENGTH:
                return pa.array(rows.batch.lengths)
            case OutputKind.CONSTANT:
                assert output.constant is not None
                return evaluate(output.constant, _no_columns, len(rows.batch.lengths))
            case OutputKind.ATTRIBUTE:
                assert output.column is not None
                return self._of_variable(output.column.var, partial(self._attribute, output), rows)
            case OutputKind.AGGREGATE:
                assert output.column is not None
                return self._of_variable(output.column.var, partial(self._aggregate, output), rows)
            case OutputKind.EXPRESSION:
                return self._expression(output, rows)

    def _attribute(self, output: Output, rows: _PathArrays) -> pa.Array:
        assert output.column is not None
        column = self.events.columns[output.column.name]
        if output.list:
            values = present(column.take(rows.positions), arrow_type(output.type))
            return pa.ListArray.from_arrays(rows.offsets, values)
        if output.column.which is Which.FIRST:
            return column.take(pa.array(rows.batch.firsts))
        if output.column.which is Which.LAST:
            return column.take(pa.array(rows.batch.lasts))
        nth = min(output.column.nth or 1, 1 << 31) - 1  # no trend is longer
        place = np.where(rows.batch.lengths > nth, rows.batch.offsets[:-1] + nth, 0)
        picked = rows.batch.positions[place] if len(place) else place
        return column.take(pa.array(picked, mask=rows.batch.lengths <= nth))

    def _aggregate(self, output: Output, rows: _PathArrays) -> pa.Array:
        assert output.column is not None
        ends, positions = rows.batch.ends, rows.batch.positions
        if output.function in ("MIN", "MAX"):
            from trellis.kernels.list.aggregates import extreme_places

            places = extreme_places(ends, self.codes(output.column.name)[positions], output.function == "MAX")
            picked = np.where(places >= 0, positions[places], 0)
            return self.events.columns[output.column.name].take(pa.array(picked, mask=places < 0))
        values = self.events.columns[output.column.name].take(rows.positions)
        if output.function == "AVG":
            return means_of(values, ends)
        return sums_of(values, ends)

    def _expression(self, output: Output, rows: _PathArrays) -> pa.Array:
        names = [f"_{i}" for i in range(len(output.arguments))]
        values = {
            n: normalise(_narrow(self.item(a, rows), a), a.type) for n, a in zip(names, output.arguments, strict=True)
        }
        columns = tuple(Column("", n, Which.EACH, None, a.type) for n, a in zip(names, output.arguments, strict=True))
        operation = Operation(output.function, columns, output.type, output.function)
        return evaluate(operation, lambda c: values[c.name], len(rows.batch.lengths))


class _PathArrays:
    """A batch of results as Arrow arrays, made where they are asked for."""

    def __init__(self, batch: PathBatch) -> None:
        self.batch = batch

    @property
    def positions(self) -> pa.Array:
        return _wrapped(self.batch.positions)

    @property
    def offsets(self) -> pa.Array:
        return _wrapped(self.batch.offsets)

    def of(self, variable: int) -> tuple[_PathArrays, pa.Array | None]:
        """Return the rows that have events of a variable, with these alone, and for each row which of them it is.

        That is None where it is the same row.
        """
        some, has = self.batch.of_variable(variable)
        return _PathArrays(some), None if has is None else pa.array(np.cumsum(has) - 1, mask=~has)

    def lengths_shown(self) -> pa.Array:
        return pa.array(self.batch.lengths)

    def shared(self) -> pa.Array:
        assert self.batch.shared is not None
        return _wrapped(self.batch.shared)

    def ranks(self) -> pa.Array:
        ranks = self.batch.ranks
        return pa.array(ranks, mask=ranks < 0 if len(ranks) and ranks.min() < 0 else None)

    def group_numbers(self) -> pa.Array:
        return pa.array(self.batch.groups)

    @cached_property
    def runs(self) -> tuple[NDArray[np.int64], pa.Array]:
        """The groups that follow one another, and for each result which of them is its own."""
        groups = self.batch.groups
        changes = np.concatenate([[True], groups[1:] != groups[:-1]])[: len(groups)]
        return groups[changes], pa.array(np.cumsum(changes) - 1)


def _wrapped(numbers: NDArray[np.int32]) -> pa.Array:
    """Return numbers as Arrow has them, without a copy."""
    return pa.Array.from_buffers(INT32, len(numbers), [None, pa.py_buffer(np.ascontiguousarray(numbers, np.int32))])


def _taken(values: pa.Array, places: pa.Array) -> pa.Array:
    """Return the values at places that are known to exist."""
    return pc.take(values, places, boundscheck=False)


def _no_columns(column: Column) -> pa.Array:
    raise AssertionError(f"a constant reads no column, but this one reads {column.name}")


def _narrow(array: pa.Array, output: Output) -> pa.Array:
    """Bring a sum of integers back to 64 bits for further arithmetic."""
    if output.type.kind is not Kind.INTEGER or not pa.types.is_decimal(array.type):
        return array
    try:
        return array.cast(pa.int64())
    except pa.ArrowInvalid:
        raise OverflowInCondition("a SUM in an expression does not fit 64 bits") from None
