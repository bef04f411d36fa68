"""Split on Spark: from a data frame of events to rows that are grouped, sorted and ready for the operator.

Constant conditions and the choice of columns are Spark's own work, before any Python runs. A row is then

    c0, c1, ... (the columns that the plan reads), p0, p1, ... (partition), time, id, [usable], [window]

with one copy for each window that holds the event, all rows of a window and partition in one task, in time order.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t
from pyspark.sql.window import Window as Over

from trellis.events import TYPE
from trellis.language.bound import BoundQuery, Condition, Operation, Value, WindowKind
from trellis.language.schema import Kind, Schema
from trellis.local.prepare import unordered
from trellis.plan.plan import Plan
from trellis.spark.compile import compile_condition, raise_data_error, time_column
from trellis.spark.exactness import can_compile, may_overflow
from trellis.spark.frames import Events
from trellis.spark.late import LateConditions
from trellis.spark.repeated import FirstOfIds
from trellis.spark.rows import ID, TIME, USABLE, WINDOW, column_name, partition_name
from trellis.spark.schema import from_spark
from trellis.trends.clock import FARTHEST, INT64, TOO_FAR, TOO_LONG, Clock

OTHER = "other"  # columns that only order rows of one id


@dataclass(frozen=True)
class Split:
    """The rows of a plan, unsorted; `grouped` shuffles and sorts them."""

    plan: Plan
    rows: DataFrame

    def grouped(self) -> DataFrame:
        """Return the rows with those of a group together, in the order (group, time, id)."""
        keys = group_keys(self.plan.bound)
        gathered = self.rows.repartition(*_shuffle_keys(self.plan.bound)) if keys else self.rows.repartition(1)
        return gathered.sortWithinPartitions(*keys, TIME, ID)


def group_keys(bound: BoundQuery) -> list[str]:
    """Return the columns that make a group, those of GROUP BY first: what is aggregated together is adjacent."""
    ordered = sorted(range(len(bound.partition)), key=lambda i: bound.partition[i][0] not in bound.group_by)
    return ([WINDOW] if bound.window.kind is WindowKind.SLIDING else []) + [partition_name(i) for i in ordered]


def _shuffle_keys(bound: BoundQuery) -> list[str]:
    if not bound.group_by:
        return group_keys(bound)
    kept = [partition_name(i) for i, (n, _) in enumerate(bound.partition) if n in bound.group_by]
    return ([WINDOW] if bound.window.kind is WindowKind.SLIDING else []) + kept


def split(plan: Plan, events: Events, drop_repeated: bool = False) -> Split:
    """Return the rows of a plan over events whose times and ids are all readable.

    With `drop_repeated` an event whose id occurred before in one of its windows is left out.
    """
    bound = plan.bound
    schema = bound.schema
    assert schema is not None
    rows = _narrowed(plan, events, drop_repeated and schema.event_id is not None)
    if bound.window.kind is WindowKind.SLIDING:
        rows = rows.withColumn(WINDOW, f.explode(_windows(f.col(TIME), Clock(bound.window, schema.time_type))))
    return Split(plan, rows)


def number_repeated(plan: Plan, events: Events) -> int:
    """Return how many rows `drop_repeated` leaves out."""
    return _narrowed(plan, events, False).count() - _narrowed(plan, events, True).count()


def _narrowed(plan: Plan, events: Events, drop_repeated: bool) -> DataFrame:
    """Return the rows before windows multiply them."""
    bound = plan.bound
    schema = bound.schema
    assert schema is not None
    frame = events.frame if schema.event_id is not None else with_positions(events, bound)
    early, late = _early_and_late(plan)
    meets = _meets(bound, early, events)
    if not plan.keep_failing:
        frame = frame.where(meets) if meets is not None else frame
    columns = [events.column(n).alias(column_name(i)) for i, n in enumerate(plan.columns)]
    columns += [
        _partition(events.column(n), kind.kind).alias(partition_name(i)) for i, (n, kind) in enumerate(bound.partition)
    ]
    ident = f.col(ID) if schema.event_id is None else events.column(schema.event_id)
    columns += [_number(events.column(schema.time), bound).alias(TIME), ident.alias(ID)]
    if plan.keep_failing:
        columns.append((f.coalesce(meets, f.lit(False)) if meets is not None else f.lit(True)).alias(USABLE))
    rows = frame.select(*columns, *(_all_in_order(events) if drop_repeated else []))
    if late:
        names = {n: column_name(i) for i, n in enumerate(plan.columns)}
        rows = rows.mapInArrow(LateConditions(late, names), rows.schema)
    return _without_repeated(plan, rows) if drop_repeated else rows


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


def _all_in_order(events: Events) -> list[Column]:
    """Return all columns that have an order, under other names."""
    known = [(n, type_) for n, type_ in events.types.items() if from_spark(type_).kind is not Kind.OTHER]
    return [_ordered(events.column(n), type_).alias(f"{OTHER}{i}") for i, (n, type_) in enumerate(known)]


def _without_repeated(plan: Plan, rows: DataFrame) -> DataFrame:
    """Leave out rows whose id occurred before, in the order (time, other columns), in one of their windows."""
    keys = [partition_name(i) for i in range(len(plan.bound.partition))]
    others = [n for n in rows.columns if n.startswith(OTHER)]
    rows = rows.repartition(*keys, ID).sortWithinPartitions(*keys, ID, TIME, *others).drop(*others)
    return rows.mapInArrow(FirstOfIds(plan, (*keys, ID)), rows.schema)


def _meets(bound: BoundQuery, conditions: list[Condition], events: Events) -> Column | None:
    """Return whether an event has the type and meets the constant conditions; None where nothing is asked."""
    schema, wanted = bound.schema, bound.variables[0].type
    assert schema is not None
    meets: Column | None = None
    name = type_column(schema)
    if name is not None and wanted is not None:
        meets = events.column(name) == f.lit(wanted)
    for condition in conditions:
        term = compile_condition(condition.value, lambda column: events.column(column.name))
        if meets is not None and _may_overflow(condition.value):  # `&` looks at the right of a NULL
            term = f.when(f.coalesce(meets, f.lit(False)), term)
        meets = term if meets is None else meets & term
    return meets


def _may_overflow(value: Value) -> bool:
    return isinstance(value, Operation) and (may_overflow(value) or any(map(_may_overflow, value.arguments)))


def type_column(schema: Schema) -> str | None:
    """Return the column that tells the type of an event, if one does."""
    return TYPE if schema.tables[0].type is not None else schema.type


def _partition(column: Column, kind: Kind) -> Column:
    """Return a partition attribute so that equal ones are equal for a hash: one NaN, no negative zero."""
    if kind is Kind.DOUBLE:
        wide = column.cast("double")
        return f.when(f.isnan(wide), f.lit(float("nan"))).otherwise(wide + f.lit(0.0))
    return column


def _number(column: Column, bound: BoundQuery) -> Column:
    """Return the time as the number that `trellis.trends.clock.Clock` makes of it."""
    schema = bound.schema
    assert schema is not None
    clock = Clock(bound.window, schema.time_type)
    number = time_column(column, schema.time_type)
    if schema.time_type.kind is Kind.DOUBLE:
        return number + f.lit(0.0)
    if schema.time_type.kind is Kind.DECIMAL or clock.digits:
        wide, unit = t.DecimalType(38, clock.digits), f.lit(10**clock.digits).cast(t.DecimalType(20, 0))
        scaled = f.try_multiply(number.try_cast(wide), unit).try_cast("bigint")
        return f.when(number.isNotNull() & scaled.isNull(), raise_data_error(*TOO_LONG)).otherwise(scaled)
    return number


def _windows(time: Column, clock: Clock) -> Column:
    """Return the numbers of the windows that hold a time; raise where `Clock.windows` does."""
    if clock.time.kind is Kind.DOUBLE:
        first, last = _double_windows(time, float(clock.size), float(clock.slide))
        quotients = time / f.lit(float(clock.slide)), (time - f.lit(float(clock.size))) / f.lit(float(clock.slide))
        far = ~((f.abs(quotients[0]) < f.lit(FARTHEST)) & (f.abs(quotients[1]) < f.lit(FARTHEST)))
    else:
        size = int(clock.size)
        if size > int(INT64.max):
            return f.when(time.isNotNull(), raise_data_error(*TOO_FAR)).otherwise(f.array(time))
        far = (time < _long(int(INT64.min) + size)) | (time > _long(int(INT64.max) - size))
        last = _floor_division(time, _long(int(clock.slide)))
        first = _floor_division(time - _long(size), _long(int(clock.slide))) + 1
    return f.when(far, raise_data_error(*TOO_FAR)).otherwise(f.sequence(first.cast("bigint"), last.cast("bigint")))


def _long(number: int) -> Column:
    return f.lit(number).cast("bigint")


def _floor_division(value: Column, divisor: Column) -> Column:
    remainder = f.pmod(value, divisor)
    return f.call_function("div", value - remainder, divisor)


def _double_windows(time: Column, size: float, slide: float) -> tuple[Column, Column]:
    """As `Clock.windows`: the quotient is a guess, mended by at most one."""
    step, width = f.lit(slide), f.lit(size)

    def one_if(condition: Column) -> Column:
        return f.when(condition, f.lit(1.0)).otherwise(f.lit(0.0))

    last = f.floor(time / step).cast("double")
    last = last - one_if(last * step > time)
    last = last + one_if((last + 1) * step <= time)
    first = f.floor((time - width) / step).cast("double") + 1
    first = first + one_if(first * step + width <= time)
    first = first - one_if((first - 1) * step + width > time)
    return first, last


def with_positions(events: Events, bound: BoundQuery) -> DataFrame:
    """Number the events in the order (time, table, other columns), from 0: a global sort."""
    schema = bound.schema
    assert schema is not None
    names = [schema.time, TYPE] if schema.tables[0].type is not None else [schema.time]
    names += [n for n in events.types if n not in names]
    for name in names:
        if from_spark(events.types[name]).kind is Kind.OTHER:
            raise unordered(name)
    order = [f.asc_nulls_first(_ordered(events.column(n), events.types[n])) for n in names]
    return events.frame.withColumn(ID, f.row_number().over(Over.orderBy(*order)).cast("bigint") - 1)


def _ordered(column: Column, type_: t.DataType) -> Column:
    return column + f.lit(0.0) if isinstance(type_, t.FloatType | t.DoubleType) else column
