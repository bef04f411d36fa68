"""Split on Spark: from a data frame of events to rows that are grouped, sorted and ready for the operator.

Constant conditions and the choice of columns are Spark's own work, before any Python runs. A row is then

    __window, partition columns, __time, __id, [__usable], the other columns that the plan reads

with one copy for each window that holds the event, all rows of a window and partition in one task, in time order.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t
from pyspark.sql.window import Window as Over

from trellis.events import TYPE
from trellis.language.bound import BoundQuery, Condition, WindowKind
from trellis.language.schema import Kind
from trellis.local.prepare import unordered
from trellis.plan.plan import Plan
from trellis.spark.compile import compile_condition, raise_data_error, time_column
from trellis.spark.exactness import can_compile
from trellis.spark.late import LateConditions
from trellis.spark.repeated import FirstOfIds
from trellis.spark.rows import ID, TIME, USABLE, WINDOW, partition_name
from trellis.spark.schema import from_spark
from trellis.trends.clock import TOO_LONG, Clock

OTHER = "__other"  # columns that only order rows of one id


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
    names = [n for n, _ in bound.partition]
    ordered = [n for n in names if n in bound.group_by] + [n for n in names if n not in bound.group_by]
    return ([WINDOW] if bound.window.kind is WindowKind.SLIDING else []) + [partition_name(n) for n in ordered]


def _shuffle_keys(bound: BoundQuery) -> list[str]:
    if not bound.group_by:
        return group_keys(bound)
    kept = [partition_name(n) for n, _ in bound.partition if n in bound.group_by]
    return ([WINDOW] if bound.window.kind is WindowKind.SLIDING else []) + kept


def split(plan: Plan, frame: DataFrame, drop_repeated: bool = False) -> Split:
    """Return the rows of a plan over events whose times and ids are all readable.

    With `drop_repeated` an event whose id occurred before in one of its windows is left out.
    """
    bound = plan.bound
    schema = bound.schema
    assert schema is not None
    rows = _narrowed(plan, frame, drop_repeated and schema.event_id is not None)
    if bound.window.kind is WindowKind.SLIDING:
        rows = rows.withColumn(WINDOW, f.explode(_windows(f.col(TIME), Clock(bound.window, schema.time_type))))
    return Split(plan, rows)


def number_repeated(plan: Plan, frame: DataFrame) -> int:
    """Return how many rows `drop_repeated` leaves out."""
    return _narrowed(plan, frame, False).count() - _narrowed(plan, frame, True).count()


def _narrowed(plan: Plan, frame: DataFrame, drop_repeated: bool) -> DataFrame:
    """Return the rows before windows multiply them."""
    bound = plan.bound
    schema = bound.schema
    assert schema is not None
    if schema.event_id is None:
        frame = with_positions(frame, bound)
    early = [c for c in plan.constant if can_compile(c.value)]
    late = tuple(c for c in plan.constant if not can_compile(c.value))
    meets = _meets(bound, early, frame)
    if not plan.keep_failing:
        frame = frame.where(meets) if meets is not None else frame
    ident = ID if schema.event_id is None else schema.event_id
    columns = [frame[_quoted(n)].alias(n) for n in plan.columns]
    columns += [_partition(frame[_quoted(n)], n, kind.kind) for n, kind in bound.partition]
    columns += [_number(frame[_quoted(schema.time)], bound).alias(TIME), frame[_quoted(ident)].alias(ID)]
    if plan.keep_failing:
        columns.append((f.coalesce(meets, f.lit(False)) if meets is not None else f.lit(True)).alias(USABLE))
    rows = frame.select(*columns, *(_all_in_order(frame) if drop_repeated else []))
    if late:
        rows = rows.mapInArrow(LateConditions(late), rows.schema)
    return _without_repeated(plan, rows) if drop_repeated else rows


def _all_in_order(frame: DataFrame) -> list[Column]:
    """Return all columns that have an order, under other names."""
    known = [fld for fld in frame.schema.fields if from_spark(fld.dataType).kind is not Kind.OTHER]
    return [_ordered(frame[_quoted(fld.name)], fld.dataType).alias(f"{OTHER}{i}") for i, fld in enumerate(known)]


def _without_repeated(plan: Plan, rows: DataFrame) -> DataFrame:
    """Leave out rows whose id occurred before, in the order (time, other columns), in one of their windows."""
    keys = [partition_name(n) for n, _ in plan.bound.partition]
    others = [n for n in rows.columns if n.startswith(OTHER)]
    gathered = rows.repartition(*map(_quoted, keys), ID)
    rows = gathered.sortWithinPartitions(*map(_quoted, keys), ID, TIME, *others).drop(*others)
    return rows.mapInArrow(FirstOfIds(plan, (*keys, ID)), rows.schema)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _meets(bound: BoundQuery, conditions: list[Condition], frame: DataFrame) -> Column | None:
    """Return whether an event has the type and meets the constant conditions; None where nothing is asked."""
    schema, wanted = bound.schema, bound.variables[0].type
    assert schema is not None
    terms = [compile_condition(c.value, lambda column: frame[_quoted(column.name)]) for c in conditions]
    name = TYPE if TYPE in frame.columns else schema.type
    if name is not None and wanted is not None:
        terms.insert(0, frame[_quoted(name)] == f.lit(wanted))
    meets = None
    for term in terms:
        meets = term if meets is None else meets & term
    return meets


def _partition(column: Column, name: str, kind: Kind) -> Column:
    """Return a partition attribute so that equal ones are equal for a hash: one NaN, no negative zero."""
    if kind is Kind.DOUBLE:
        wide = column.cast("double")
        column = f.when(f.isnan(wide), f.lit(float("nan"))).otherwise(wide + f.lit(0.0))
    return column.alias(partition_name(name))


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
    """Return the numbers of the windows that hold a time."""
    if clock.time.kind is Kind.DOUBLE:
        first, last = _double_windows(time, float(clock.size), float(clock.slide))
    else:
        slide, size = f.lit(int(clock.slide)).cast("bigint"), f.lit(int(clock.size)).cast("bigint")
        last = _floor_division(time, slide)
        first = _floor_division(time - size, slide) + 1
    return f.sequence(first.cast("bigint"), last.cast("bigint"))


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


def with_positions(frame: DataFrame, bound: BoundQuery) -> DataFrame:
    """Number the events in the order (time, table, other columns), from 0: a global sort."""
    schema = bound.schema
    assert schema is not None
    names = [schema.time, TYPE] if TYPE in frame.columns else [schema.time]
    names += [n for n in frame.columns if n not in names]
    for name in names:
        if from_spark(frame.schema[name].dataType).kind is Kind.OTHER:
            raise unordered(name)
    order = [f.asc_nulls_first(_ordered(frame[_quoted(n)], frame.schema[n].dataType)) for n in names]
    return frame.withColumn(ID, f.row_number().over(Over.orderBy(*order)).cast("bigint") - 1)


def _ordered(column: Column, type_: t.DataType) -> Column:
    return column + f.lit(0.0) if isinstance(type_, t.FloatType | t.DoubleType) else column
