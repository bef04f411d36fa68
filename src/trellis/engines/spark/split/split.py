"""Split on Spark: from a data frame of events to rows that are grouped, sorted and ready for the operator.

Constant conditions and the choice of columns are Spark's own work, before any Python runs. A row is then

    c0, c1, ... (the columns that the plan reads), p0, p1, ... (partition), time, [tie0, tie1, ...], id, [usable],
    [window_batch]

with all rows of a partition and window batch in one task, in time order. A *window batch* is a number of consecutive
windows, which share one sorted copy of their events; only an event whose windows lie in two batches is copied. The task
finds the windows in the batch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t
from pyspark.sql.window import Window as Over

from trellis.engines.spark.session.raised import raise_data_error
from trellis.engines.spark.sources.frames import EventFrame
from trellis.engines.spark.sources.schema import from_spark
from trellis.engines.spark.split.compile import compile_condition, time_column
from trellis.engines.spark.split.exactness import can_compile, may_overflow
from trellis.engines.spark.split.late import LateConditions, SomeVariable
from trellis.engines.spark.split.repeated import FirstOfIds
from trellis.engines.spark.split.rows import ID, TIME, USABLE, WINDOW_BATCH, column_name, partition_name, tie_name
from trellis.events.clock import INT64, TOO_LONG, Clock
from trellis.events.columns.windows import EXACT, FARTHEST, MOST_DIGITS, TOO_FAR, DoubleWindows
from trellis.events.prepare import unordered
from trellis.language.bound import BoundQuery, Condition, Operation, Value, WindowKind
from trellis.language.schema import TYPE, Kind
from trellis.plan.plan import Plan

OTHER = "other"  # columns that only order rows of one id
LONGEST = 5  # window batches have so many times the windows that hold an event: one event in five is copied


Watch = Callable[[DataFrame, str], DataFrame]
Guard = Callable[[str, Column], Column]


def as_it_is(frame: DataFrame, moment: str) -> DataFrame:
    """Watch nothing."""
    return frame


def _unguarded(name: str, column: Column) -> Column:
    return column


@dataclass(frozen=True)
class Split:
    """The rows of a plan, unsorted; `grouped` shuffles and sorts them.

    Attributes
    ----------
    plan
        The plan.
    rows
        The rows, with copies for window batches.
    single
        The rows without copies.
    length
        The number of windows in a window batch.
    """

    plan: Plan
    rows: DataFrame
    single: DataFrame
    length: int

    @property
    def _order(self) -> list[str]:
        """The columns by which the events of a group are sorted."""
        return [*order_of_time(self.plan.bound), *([ID] if ID in self.rows.columns else [])]

    def windows(self) -> DataFrame:
        """Return the number of the window, for each event and window that holds it."""
        bound = self.plan.bound
        first, last = window_numbers(f.col(TIME), Clock(bound.window, bound.known_schema.time_type))
        return self.single.select(f.explode(f.sequence(first, last)).alias(WINDOW_BATCH))

    def grouped(self) -> DataFrame:
        """Return the rows with those of a group together, in the order (group, time, id)."""
        keys = group_keys(self.plan.bound)
        gathered = self.rows.repartition(*_shuffle_keys(self.plan.bound)) if keys else self.rows.repartition(1)
        return gathered.sortWithinPartitions(*keys, *self._order)


def order_of_time(bound: BoundQuery) -> list[str]:
    """Return the columns of rows that say which event comes first: the time, and what breaks ties."""
    return [TIME, *(tie_name(i) for i in range(len(bound.known_schema.tie_breakers)))]


def group_keys(bound: BoundQuery) -> list[str]:
    """Return the columns that make a group, those of GROUP BY first: what is aggregated together is adjacent."""
    ordered = sorted(range(len(bound.partition)), key=lambda i: bound.partition[i][0] not in bound.group_by)
    return ([WINDOW_BATCH] if bound.window.kind is WindowKind.SLIDING else []) + [partition_name(i) for i in ordered]


def _shuffle_keys(bound: BoundQuery) -> list[str]:
    if not bound.group_by:
        return group_keys(bound)
    kept = [partition_name(i) for i, (n, _) in enumerate(bound.partition) if n in bound.group_by]
    return ([WINDOW_BATCH] if bound.window.kind is WindowKind.SLIDING else []) + kept


def split(
    plan: Plan, events: EventFrame, drop_repeated: bool = False, length: int = 1, counting: bool = False,
    watch: Watch = as_it_is, guard: Guard | None = None,
) -> Split:  # fmt: skip
    """Return the rows of a plan over events whose times and ids are all readable.

    Parameters
    ----------
    plan, events
        The plan and its events.
    drop_repeated
        Whether an event whose id occurred before in one of its windows is left out.
    length
        The number of windows in a window batch.
    counting
        Whether events are only counted, so that they need no numbers where they have no ids.
    watch
        Is given the rows `before` and `after` repeated ids are left out, and returns what goes on in their place.
    guard
        Is given the columns of times and ids by name, and returns those that raise where one is not readable.
    """
    bound = plan.bound
    schema = bound.known_schema
    single = rows = _narrowed(
        plan, events, drop_repeated and schema.event_id is not None, counting, watch, guard or _unguarded
    )
    if bound.window.kind is WindowKind.SLIDING:
        clock = Clock(bound.window, schema.time_type)
        first, last = window_numbers(f.col(TIME), clock)
        if length > 1 or clock.overlaps:
            first, last = (_floor_division(number, _long(length)) for number in (first, last))
            rows = single.withColumn(WINDOW_BATCH, f.explode(f.sequence(first, last)))
        else:
            rows = single.withColumn(WINDOW_BATCH, last)
    return Split(plan, rows, single, length)


def windows_at_once(clock: Clock) -> int:
    """Return how many windows a window batch has: several times those that hold an event, so that few are copied.

    How many windows there are is not known before the events are read, and they are read once.
    """
    return LONGEST * ceil(clock.size / clock.slide) if clock.overlaps else 1


def copies(clock: Clock, length: int) -> float:
    """Return how many times an event is shuffled, where windows come `length` in a window batch."""
    if not clock.overlaps:
        return 1.0
    return 1 + (float(clock.size) / float(clock.slide) - 1) / length


def has_column(bound: BoundQuery, name: str) -> bool:
    """Return whether a column of the plan has a column of its own in the rows: neither id nor partition."""
    return name not in row_roles(bound)


def row_roles(bound: BoundQuery) -> dict[str, str]:
    """Return the columns of events that stand in the rows under the name of what they are for."""
    roles = {} if bound.known_schema.event_id is None else {bound.known_schema.event_id: ID}
    return roles | {n: partition_name(i) for i, (n, _) in enumerate(bound.partition)}


def row_names(plan: Plan) -> dict[str, str]:
    """Return for each column that a plan reads, and each of its partition, the column of the rows."""
    names = {n: column_name(i) for i, n in enumerate(plan.columns)}
    return names | {n: r for n, r in row_roles(plan.bound).items() if n in names or r != ID}


def _narrowed(
    plan: Plan, events: EventFrame, drop_repeated: bool, counting: bool, watch: Watch, guard: Guard
) -> DataFrame:
    """Return the rows before windows multiply them."""
    bound = plan.bound
    schema = bound.known_schema
    numbered = schema.event_id is None and not counting
    frame = with_positions(events, bound) if numbered else events.frame
    several = not plan.one_kleene
    early, late = ([], ()) if several else _early_and_late(plan)
    meets = _meets_some(plan, events) if several else _meets(bound, early, events)
    if not plan.keep_failing:
        frame = frame.where(meets) if meets is not None else frame
    columns = [events.column(n).alias(column_name(i)) for i, n in enumerate(plan.columns) if has_column(bound, n)]
    columns += [
        partition_value(events.column(n), kind.kind).alias(partition_name(i))
        for i, (n, kind) in enumerate(bound.partition)
    ]
    columns.append(guard(schema.time, time_number(events.column(schema.time), bound)).alias(TIME))
    columns += [
        guard(name, _ordered(events.column(name), events.types[name])).alias(tie_name(i))
        for i, name in enumerate(schema.tie_breakers)
    ]
    if schema.event_id is not None or numbered:
        columns.append(
            f.col(ID) if schema.event_id is None else guard(schema.event_id, events.column(schema.event_id)).alias(ID)
        )
    if plan.keep_failing:
        columns.append((f.coalesce(meets, f.lit(False)) if meets is not None else f.lit(True)).alias(USABLE))
    rows = frame.select(*columns, *(_all_in_order(events) if drop_repeated else []))
    names = row_names(plan)
    if late:
        rows = rows.mapInArrow(LateConditions(late, names), rows.schema)
    if several:
        rows = rows.mapInArrow(SomeVariable(plan, names), rows.schema)
    return watch(_without_repeated(plan, watch(rows, "before")), "after") if drop_repeated else rows


def _early_and_late(plan: Plan) -> tuple[list[Condition], tuple[Condition, ...]]:
    """Return the constant conditions that Spark computes, and those for Python.

    What may overflow is asked only of events that meet the conditions before it.
    """
    early: list[Condition] = []
    late: list[Condition] = []
    for condition in plan.constant:
        here = can_compile(condition.value) and not (late and _may_overflow(condition.value))
        (early if here else late).append(condition)
    return early, tuple(late)


def _all_in_order(events: EventFrame) -> list[Column]:
    """Return all columns that have an order, under other names."""
    known = [(n, type_) for n, type_ in events.types.items() if from_spark(type_).kind is not Kind.OTHER]
    return [_ordered(events.column(n), type_).alias(f"{OTHER}{i}") for i, (n, type_) in enumerate(known)]


def _without_repeated(plan: Plan, rows: DataFrame) -> DataFrame:
    """Leave out rows whose id occurred before, in the order (time, other columns), in one of their windows."""
    keys = [partition_name(i) for i in range(len(plan.bound.partition))]
    others = [n for n in rows.columns if n.startswith(OTHER)]
    rows = (
        rows.repartition(*keys, ID).sortWithinPartitions(*keys, ID, *order_of_time(plan.bound), *others).drop(*others)
    )
    return rows.mapInArrow(FirstOfIds(plan, (*keys, ID)), rows.schema)


def _meets(bound: BoundQuery, conditions: list[Condition], events: EventFrame) -> Column | None:
    """Return whether an event has the type and meets the constant conditions; None where nothing is asked."""
    schema, wanted = bound.known_schema, bound.variables[0].type
    meets: Column | None = None
    name = schema.type_column
    if name is not None and wanted is not None:
        meets = events.column(name) == f.lit(wanted)
    for condition in conditions:
        term = compile_condition(condition.value, lambda column: events.column(column.name))
        if meets is not None and _may_overflow(condition.value):  # `&` looks at the right of a NULL
            term = f.when(f.coalesce(meets, f.lit(False)), term)
        meets = term if meets is None else meets & term
    return meets


def _meets_some(plan: Plan, events: EventFrame) -> Column | None:
    """Return whether an event has the type of some variable; None where any will do. Python asks for the rest."""
    name = plan.bound.schema.type_column if plan.bound.schema is not None else None
    types = {v.type for v in plan.bound.variables}
    return None if name is None or None in types else events.column(name).isin(*sorted(map(str, types)))


def _may_overflow(value: Value) -> bool:
    return isinstance(value, Operation) and (may_overflow(value) or any(map(_may_overflow, value.arguments)))


def partition_value(column: Column, kind: Kind) -> Column:
    """Return a partition attribute so that equal ones are equal for a hash: one NaN, no negative zero."""
    if kind is Kind.DOUBLE:
        wide = column.cast("double")
        return f.when(f.isnan(wide), f.lit(float("nan"))).otherwise(wide + f.lit(0.0))
    return column


def time_number(column: Column, bound: BoundQuery) -> Column:
    """Return the time as the number that `trellis.events.clock.Clock` makes of it."""
    schema = bound.known_schema
    clock = Clock(bound.window, schema.time_type)
    number = time_column(column, schema.time_type)
    if schema.time_type.kind is Kind.DOUBLE:
        return number + f.lit(0.0)
    if schema.time_type.kind is Kind.DECIMAL or clock.digits:
        wide, unit = t.DecimalType(38, clock.digits), f.lit(10**clock.digits).cast(t.DecimalType(20, 0))
        scaled = f.try_multiply(number.try_cast(wide), unit).try_cast("bigint")
        return f.when(number.isNotNull() & scaled.isNull(), raise_data_error(*TOO_LONG)).otherwise(scaled)
    return number


def window_numbers(time: Column, clock: Clock) -> tuple[Column, Column]:
    """Return the first and the last number of the windows that hold a time; raise where `Clock.windows` does."""
    if clock.doubles is not None:
        first, last = _double_windows(time, clock.doubles)
        far = ~((f.abs(time) + f.lit(clock.doubles.size)) / f.lit(clock.doubles.slide) < f.lit(FARTHEST))
    else:
        size = int(clock.size)
        if size > int(INT64.max):
            raised = f.when(time.isNotNull(), raise_data_error(*TOO_FAR)).otherwise(time)
            return raised, raised
        far = (time < _long(int(INT64.min) + size)) | (time > _long(int(INT64.max) - size))
        last = _floor_division(time, _long(int(clock.slide)))
        first = _floor_division(time - _long(size), _long(int(clock.slide))) + 1
    last = f.when(far, raise_data_error(*TOO_FAR)).otherwise(last.cast("bigint"))
    return f.when(far, _long(0)).otherwise(first.cast("bigint")), last


def _long(number: int) -> Column:
    return f.lit(number).cast("bigint")


def _floor_division(value: Column, divisor: Column) -> Column:
    remainder = f.pmod(value, divisor)
    return f.call_function("div", value - remainder, divisor)


def _double_windows(time: Column, windows: DoubleWindows) -> tuple[Column, Column]:
    """As `DoubleWindows.of`: the nearest whole number is a guess that is off by at most one."""
    last = f.rint(time / f.lit(windows.slide))
    first = f.rint((time - f.lit(windows.size)) / f.lit(windows.slide))
    last = last - f.when(_double_bound(last, windows, 0) > time, f.lit(1.0)).otherwise(f.lit(0.0))
    first = first + f.when(_double_bound(first, windows, windows.width) <= time, f.lit(1.0)).otherwise(f.lit(0.0))
    return first, last


def _double_bound(number: Column, windows: DoubleWindows, offset: int) -> Column:
    """Return a bound of a window as `DoubleWindows` has it; what is not simple is read from its digits."""
    step, digits = t.DecimalType(MOST_DIGITS, 0), f"e{windows.exponent}"
    whole = number.try_cast(t.DecimalType(19, 0)) * f.lit(windows.step).cast(step) + f.lit(offset).cast(step)
    exact = f.concat(whole.cast("string"), f.lit(digits)).try_cast("double")
    if windows.power is None:
        return exact
    counted = number * f.lit(float(windows.step)) + f.lit(float(offset))
    power = f.lit(windows.power)
    simple = f.abs(number) * f.lit(float(windows.step)) + f.lit(float(windows.width)) < f.lit(EXACT)
    return f.when(simple, counted * power if windows.exponent > 0 else counted / power).otherwise(exact)


def check_numbering(events: EventFrame, bound: BoundQuery) -> None:
    """Refuse events without ids that cannot be numbered, since a column has no order."""
    if bound.schema is not None and bound.schema.event_id is None:
        for name, type_ in events.types.items():
            if from_spark(type_).kind is Kind.OTHER:
                raise unordered(name)


def with_positions(events: EventFrame, bound: BoundQuery) -> DataFrame:
    """Number the events in the order (time, table, other columns), from 0: a global sort."""
    schema = bound.known_schema
    names = [schema.time, *schema.tie_breakers]
    names += [TYPE] if schema.tables[0].type is not None else []
    names += [n for n in events.types if n not in names]
    order = [f.asc_nulls_first(_ordered(events.column(n), events.types[n])) for n in names]
    return events.frame.withColumn(ID, f.row_number().over(Over.orderBy(*order)).cast("bigint") - 1)


def _ordered(column: Column, type_: t.DataType) -> Column:
    return column + f.lit(0.0) if isinstance(type_, t.FloatType | t.DoubleType) else column
