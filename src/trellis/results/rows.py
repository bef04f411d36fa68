"""Trends as rows: positions of events become the columns of the result."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from trellis.errors import OverflowInCondition, UsageError, did_you_mean
from trellis.events.clock import MICROS, UTC_MICROS, clock_of
from trellis.events.columns.evaluate import evaluate, evaluate_constant
from trellis.events.columns.ordering import rank_codes
from trellis.events.columns.types import normalise
from trellis.events.slice import Slice
from trellis.language.bound import BoundQuery, Column, Operation, Output, OutputKind, WindowKind
from trellis.language.once import once
from trellis.language.schema import Kind, Type
from trellis.language.syntax import Which
from trellis.operators.bindings import counted_events
from trellis.plan.plan import Plan
from trellis.properties import cached_property
from trellis.results.arrange import hidden_names, order_codes
from trellis.results.lead import LeadOfGroups
from trellis.results.paths import PathArrays, wrapped
from trellis.results.sums import DIGITS_38, means_of, sums_of, up_to_38_digits
from trellis.results.taken import TakenColumn, counting, present

# Counts come out as rows too, and have to start fast: what only trends need is imported where it is needed.
if TYPE_CHECKING:
    from trellis.operators.batch import EventWords, PathBatch

COUNT = DIGITS_38
BARE = frozenset({"events", "shared", "new", "rank", "length"})  # columns that name events by position at most


SIMPLE = {
    Kind.INTEGER: pa.int64(), Kind.DOUBLE: pa.float64(), Kind.STRING: pa.string(), Kind.BOOLEAN: pa.bool_(),
    Kind.TIMESTAMP: UTC_MICROS, Kind.DATE: pa.date32(), Kind.DURATION: pa.duration("us"), Kind.UNKNOWN: pa.null(),
}  # fmt: skip


def arrow_type(type_: Type) -> pa.DataType:
    """Return the Arrow type in which values of a type come out."""
    if type_.kind is Kind.DECIMAL:
        return pa.decimal128(38, type_.scale)
    return MICROS if type_.kind is Kind.TIMESTAMP and type_.naive else SIMPLE[type_.kind]


def output_type(output: Output) -> pa.DataType:
    """Return the Arrow type of an item of RETURN; sums of integers have room for 38 digits."""
    summed = output.kind is OutputKind.AGGREGATE and output.function == "SUM" and output.type.kind is Kind.INTEGER
    value = COUNT if summed else arrow_type(output.type)
    return pa.list_(value) if output.list else value


@once
def lead_schema(bound: BoundQuery) -> tuple[pa.Field, ...]:
    """Return the fields that tell window and partition."""
    assert bound.schema is not None
    fields = []
    if bound.window.kind is WindowKind.SLIDING:
        bounds = clock_of(bound).bound_type
        fields += [pa.field("window_start", bounds), pa.field("window_end", bounds)]
    return *fields, *(pa.field(name, arrow_type(type_)) for name, type_ in bound.partition)


@once
def group_schema(bound: BoundQuery) -> tuple[pa.Field, ...]:
    """Return those of the fields that tell the rows of AGGREGATE apart."""
    fields, windows = lead_schema(bound), len(lead_schema(bound)) - len(bound.partition)
    if not bound.group_by:
        return fields
    return *fields[:windows], *(field for field in fields[windows:] if field.name in bound.group_by)


@once
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
    texts = pa.list_(pa.string())
    fields += [pa.field("bindings", texts)] if len(names) > 1 else []
    return pa.schema([*fields, pa.field("iterations", texts)] if bound.groups else fields)


def taking(bound: BoundQuery) -> list[str]:
    """Return the variables that take events, in the order of the pattern."""
    return [v.name for v in bound.variables if not v.absent]


@once
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
    clauses["LIMIT PER item"] = bound.limit_per
    if len(taking(bound)) > 1:
        raise UsageError("rows have no compact form for a pattern of several variables", "Leave out compact=True.")
    if bound.groups:
        raise UsageError("rows have no compact form for a pattern with repeated groups", "Leave out compact=True.")
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


@once
def exploded_schema(bound: BoundQuery) -> pa.Schema:
    """Return the schema of one row per event: window, partition, rank, place in the trend from 1, the event's columns.

    A pattern of several variables also tells the event's `variable`, one with repeated groups its `iteration`. Columns
    of types that conditions cannot use, and those whose names are taken, are left out.
    """
    assert bound.schema is not None
    fields = [*lead_schema(bound), pa.field("rank", pa.int64()), pa.field("place", pa.int64())]
    if len(taking(bound)) > 1:
        fields.append(pa.field("variable", pa.string()))
    if bound.groups:
        fields.append(pa.field("iteration", pa.string()))
    taken = {f.name for f in fields}
    for table in bound.schema.tables:
        for name, type_ in table.columns.items():
            if name not in taken and type_.kind is not Kind.OTHER:
                fields.append(pa.field(name, arrow_type(type_)))
                taken.add(name)
    return pa.schema(fields)


def id_arrow_type(bound: BoundQuery) -> pa.DataType:
    """Return the Arrow type of event ids."""
    schema = bound.known_schema
    return pa.int64() if schema.event_id is None else arrow_type(schema.tables[0].columns[schema.event_id])


def one_zero(column: pa.Array) -> pa.Array:
    """Return -0.0, which equals 0.0, as 0.0."""
    return pc.add(column, 0.0) if pa.types.is_floating(column.type) else column


MakeColumn = Callable[["RowMaker", PathArrays], pa.Array]


@once
def _known_columns(bound: BoundQuery) -> dict[Hashable, dict[str, MakeColumn]]:
    """Return the functions that make columns, by the form of rows; of those forms that were asked for so far."""
    return {}


@once
def _codes_of_variables(bound: BoundQuery) -> dict[str, int]:
    """Return the codes of the variables that take events, where they are several."""
    names = taking(bound)
    return {name: code for code, name in enumerate(names)} if len(names) > 1 else {}


class RowMaker:
    """Makes record batches of results."""

    def __init__(
        self, plan: Plan, events: Slice, positions: bool = False, plain: bool = False, compact: bool = False
    ) -> None:
        """Give ids or, with `positions`, the places of events in the slice.

        `plain` rows leave RETURN aside; `compact` ones have `shared` and `new` in place of `events`.
        """
        self.bound, self.events, self.positions, self._form = plan.bound, events, positions, (plain, compact)
        self.schema = plain_schema(plan.bound) if plain else row_schema(plan.bound)
        if compact:
            self.schema = compact_schema(self.schema)
        self._lead_of_group = LeadOfGroups()
        self._variables = _codes_of_variables(plan.bound)
        self._codes: dict[str, NDArray[np.int64]] = {}
        self._taken: dict[str, TakenColumn] = {}

    def codes(self, name: str) -> NDArray[np.int64]:
        """Return the ranks of the values of a column, which are found once."""
        if name not in self._codes:
            self._codes[name] = rank_codes([self.events.columns[name]])[0]
        return self._codes[name]

    def _taken_column(self, name: str) -> TakenColumn:
        if name not in self._taken:
            self._taken[name] = TakenColumn(self.events.columns[name])
        return self._taken[name]

    @cached_property
    def _times(self) -> TakenColumn:
        schema = self.bound.known_schema
        return TakenColumn(self.events.columns[schema.time], arrow_type(schema.time_type))

    @cached_property
    def _ids(self) -> TakenColumn:
        return TakenColumn(self.events.ids, id_arrow_type(self.bound))

    @cached_property
    def _names(self) -> TakenColumn:
        return TakenColumn(pa.array(taking(self.bound), pa.string()))

    def batch(self, batch: PathBatch, names: list[str] | None = None) -> pa.RecordBatch:
        """Return the rows of some trends: the columns called for (all of them), and the hidden ones of ORDER BY."""
        rows = PathArrays(batch, self._times)
        columns = self._columns(None if names is None else tuple(names))
        return pa.RecordBatch.from_arrays([make(self, rows) for make in columns.values()], names=[*columns])

    def _columns(self, names: tuple[str, ...] | None) -> Mapping[str, MakeColumn]:
        """Return the function that makes each column that is called for, and each hidden one; the query keeps them."""
        known, key = _known_columns(self.bound), (*self._form, names)
        if key not in known:
            made = {name: self._column(name) for name in self.schema.names if names is None or name in names}
            keys = [_shown_as(output) for output in self.bound.arranging]
            groups: MakeColumn = lambda _, rows: rows.group_numbers()  # noqa: E731
            known[key] = made | dict(zip(hidden_names(self.bound), [groups, *keys], strict=False))
        return known[key]

    def _column(self, name: str) -> MakeColumn:
        """Return the function that makes one column of the output."""
        returned = {n.name: n.output for n in self.bound.returns}
        if name in returned and name in self.schema.names[-len(returned) :]:
            return _shown_as(returned[name])
        lead = [f.name for f in lead_schema(self.bound)]
        if name in lead:
            number = lead.index(name)
            return lambda maker, rows: maker._lead_column(number, rows)
        if name in PLAIN and not (self.bound.fixed and name in self._fixed):
            return PLAIN[name]
        return lambda maker, rows: maker._of_variable(name, maker._first_ids, rows)

    @property
    def _fixed(self) -> list[str]:
        """The columns of a fixed sequence that are named after its variables: the last ones."""
        names = taking(self.bound)
        return names if self.schema.names[-len(names) :] == names else []

    def words(self, names: list[str] | None = None) -> EventWords | None:
        """Return the events as words, if rows of these columns (all of them) show nothing else of them."""
        from trellis.operators.batch import EventWords

        bound = self.bound
        if self.positions or bound.returns or bound.arranged or bound.groups or bound.fixed:
            return None
        if self._ids.words is None or self._times.words is None:
            return None
        codes = self._words_of_variables if names is None or "bindings" in names else np.empty(0, np.uint8)
        return EventWords(self._ids.words, self._times.words, codes).held()

    @cached_property
    def _words_of_variables(self) -> NDArray[np.uint8]:
        """The byte that is the name of each variable, if all have one; else their numbers; nothing of one variable."""
        names = [name.encode() for name in self._variables]
        short = all(len(name) == 1 for name in names)
        return np.frombuffer(b"".join(names), np.uint8) if short else np.arange(len(names), dtype=np.uint8)

    def _bindings(self, rows: PathArrays) -> pa.Array:
        words = rows.batch.words
        if words is not None:
            if any(len(name.encode()) > 1 for name in self._variables):
                return rows.lists(self._names.taken(words.codes.astype(np.int32)))
            ends = pa.py_buffer(counting(len(words.codes)))
            return rows.lists(pa.StringArray.from_buffers(len(words.codes), ends, pa.py_buffer(words.codes)))
        assert rows.batch.variables is not None
        return rows.lists(self._names.taken(rows.batch.variables))

    def _iterations(self, rows: PathArrays) -> pa.Array:
        from trellis.results.iterations import iteration_texts

        assert rows.batch.codes is not None
        return rows.lists(iteration_texts(rows.batch.codes, rows.batch.offsets, self.bound))

    def _of_variable(self, name: str | None, make: Callable[[PathArrays], pa.Array], rows: PathArrays) -> pa.Array:
        """Return a column made of the events of one variable; NULL where it has none."""
        if name is None or not self._variables:
            return make(rows)
        some, which = rows.of(self._variables[name])
        return make(some) if which is None else make(some).take(which)

    def _first_ids(self, rows: PathArrays) -> pa.Array:
        """Return the id of the first event of every trend."""
        return wrapped(rows.batch.firsts) if self.positions else self._ids.taken(rows.batch.firsts)

    def _lead_column(self, number: int, rows: PathArrays) -> pa.Array:
        """Return a column that tells window or partition; batches of one group share the memory of theirs."""
        if not rows.is_one_group:
            column, places = self._lead_of_groups[number]
            return column.taken(places[rows.batch.groups])
        return self._lead_of_group.column(number, rows.batch, self.lead)

    @cached_property
    def _lead_of_groups(self) -> list[tuple[TakenColumn, NDArray[np.int32]]]:
        """For each column that tells window or partition its values, and which of them each group has."""
        groups = self.events.groups
        own, first = np.arange(len(groups), dtype=np.int32), groups.lo.astype(np.int32)
        windows = [(TakenColumn(column), own) for column in self._bounds(groups.number)]
        keys = [(TakenColumn(one_zero(self.events.columns[n]), arrow_type(t)), first) for n, t in self.bound.partition]
        return [*windows, *keys]

    def _bounds(self, numbers: NDArray[np.int64]) -> list[pa.Array]:
        """Return start and end of windows by their numbers; nothing without windows."""
        if self.bound.window.kind is not WindowKind.SLIDING:
            return []
        return clock_of(self.bound).bounds(numbers)

    def _shown(self, output: Output, rows: PathArrays) -> pa.Array:
        """Return an item of RETURN or ORDER BY as readers see it: a sum that needs more than 38 digits is NULL."""
        item = self.item(output, rows)
        if self.positions and output.kind is OutputKind.IDS:
            return item
        if output.kind is OutputKind.AGGREGATE and output.function == "SUM" and pa.types.is_decimal(item.type):
            item = up_to_38_digits(item)
        return present(item, output_type(output))

    def exploded(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return one row per event of plain rows with positions: see `exploded_schema`."""
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
            elif field.name == "iteration" and self.bound.groups:
                columns.append(batch.column("iterations").flatten())
            elif field.name in of_trend:
                columns.append(batch.column(field.name).take(row))
            else:
                columns.append(present(self.events.columns[field.name].take(lists.flatten()), field.type))
        return pa.RecordBatch.from_arrays(columns, schema=schema)

    def lead(self, groups: NDArray[np.int64]) -> list[pa.Array]:
        """Return the columns that tell window and partition of groups."""
        events, firsts = self.events, pa.array(self.events.groups.lo[groups])
        keys = [one_zero(present(events.columns[n].take(firsts), arrow_type(t))) for n, t in self.bound.partition]
        return [*self._bounds(events.groups.number[groups]), *keys]

    def ids(self, rows: PathArrays) -> pa.Array:
        """Return the event ids of every trend as lists."""
        words = rows.batch.words
        if words is not None:
            return rows.lists(self._ids.shown(words.ids))
        return rows.lists(rows.positions if self.positions else self._ids.taken(rows.batch.positions))

    def event_ids(self, positions: NDArray[np.int64]) -> pa.Array:
        """Return the ids of events."""
        return self._ids.taken(positions.astype(np.int32))

    def values(self, output: Output, batch: PathBatch) -> pa.Array:
        """Return a value of every trend of a batch."""
        return _narrow(self.item(output, PathArrays(batch, self._times)), output)

    def item(self, output: Output, rows: PathArrays) -> pa.Array:
        """Return an item of RETURN or ORDER BY for every trend."""
        match output.kind:
            case OutputKind.IDS:
                return self._of_variable(output.variable, self.ids if output.list else self._first_ids, rows)
            case OutputKind.LENGTH:
                return pa.array(rows.batch.lengths)
            case OutputKind.CONSTANT:
                assert output.constant is not None
                return evaluate_constant(output.constant, len(rows.batch.lengths))
            case OutputKind.ATTRIBUTE:
                assert output.column is not None
                return self._of_variable(output.column.var, partial(self._attribute, output), rows)
            case OutputKind.AGGREGATE if output.function == "COUNT":
                own = counted_events(self.bound, str(output.variable), rows.batch.codes)
                if own is None:
                    return pa.array(rows.batch.lengths)
                return pa.array(np.diff(np.concatenate([[0], np.cumsum(own)])[rows.batch.offsets]))
            case OutputKind.AGGREGATE:
                assert output.column is not None
                return self._of_variable(output.column.var, partial(self._aggregate, output), rows)
            case OutputKind.EXPRESSION:
                return self._expression(output, rows)

    def _attribute(self, output: Output, rows: PathArrays) -> pa.Array:
        assert output.column is not None
        column = self.events.columns[output.column.name]
        taken = self._taken_column(output.column.name).taken
        if output.list:
            return rows.lists(present(taken(rows.batch.positions), arrow_type(output.type)))
        if output.column.which is Which.FIRST:
            return taken(rows.batch.firsts)
        if output.column.which is Which.LAST:
            return taken(rows.batch.lasts)
        nth = min(output.column.nth or 1, 1 << 31) - 1  # no trend is longer
        place = np.where(rows.batch.lengths > nth, rows.batch.offsets[:-1] + nth, 0)
        picked = rows.batch.positions[place] if len(place) else place
        return column.take(pa.array(picked, mask=rows.batch.lengths <= nth))

    def _aggregate(self, output: Output, rows: PathArrays) -> pa.Array:
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

    def _expression(self, output: Output, rows: PathArrays) -> pa.Array:
        names = [f"_{i}" for i in range(len(output.arguments))]
        values = {
            n: normalise(_narrow(self.item(a, rows), a), a.type) for n, a in zip(names, output.arguments, strict=True)
        }
        columns = tuple(Column("", n, Which.EACH, None, a.type) for n, a in zip(names, output.arguments, strict=True))
        operation = output.value or Operation(output.function, columns, output.type, output.function)
        return evaluate(operation, lambda c: values[c.name], len(rows.batch.lengths))


PLAIN: dict[str, MakeColumn] = {
    "shared": lambda _, rows: rows.shared(),
    "rank": lambda _, rows: rows.ranks(),
    "length": lambda _, rows: rows.lengths_shown(),
    "start_time": lambda _, rows: rows.start_times(),
    "end_time": lambda _, rows: rows.end_times(),
    "events": RowMaker.ids,
    "new": RowMaker.ids,
    "bindings": RowMaker._bindings,
    "iterations": RowMaker._iterations,
}


def _shown_as(output: Output) -> MakeColumn:
    return lambda maker, rows: maker._shown(output, rows)


def order_of(plan: Plan, events: Slice, batch: PathBatch) -> list[NDArray[np.int64]]:
    """Return for each key of ORDER BY numbers by which the results of a batch go, the least first."""
    maker = RowMaker(plan, events)
    rows = PathArrays(batch, maker._times)
    return order_codes(plan.bound, [maker._shown(ordering.output, rows) for ordering in plan.bound.order_by])


def _narrow(array: pa.Array, output: Output) -> pa.Array:
    """Bring a sum of integers back to 64 bits for further arithmetic."""
    if output.type.kind is not Kind.INTEGER or not pa.types.is_decimal(array.type):
        return array
    try:
        return array.cast(pa.int64())
    except pa.ArrowInvalid:
        raise OverflowInCondition("a SUM in an expression does not fit 64 bits") from None
