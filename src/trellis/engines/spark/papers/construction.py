"""The attribute index built by Spark's own operations, as the ABI paper builds it on Spark.

The values with which events are compared, distinct and sorted, are the *cuts*; between two neighbouring cuts lies an
attribute vertex. The edges are found by search: values and cuts are sorted together, and the number of cuts before a
value is its vertex. With equalities this is done for each key by itself, in its own *segment* of the group's vertices.
Vertices have the numbers that `trellis.operators.trends.index` gives them. A value that does not fit 64 bits is an
error, even if its event would never be compared.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.window import Window as Over

from trellis.engines.spark.papers.indexed import (
    EVENT,
    FIRST,
    FIRST_END,
    GROUP,
    LAST,
    LATER,
    NEAREST,
    STARTS,
    TO,
    UNTIL,
    VERTEX,
    WINDOW,
)
from trellis.engines.spark.session.settled import settled
from trellis.engines.spark.split.compile import compile_condition
from trellis.engines.spark.split.exactness import can_compile, digits_of
from trellis.engines.spark.split.rows import ID, WINDOW_BATCH
from trellis.engines.spark.split.split import Split, group_keys, order_of_time, row_names
from trellis.errors import UsageError
from trellis.language.bound import Operation, Value, WindowKind, columns_of
from trellis.language.schema import Kind
from trellis.language.syntax import Report, Select, Which
from trellis.plan.plan import Plan
from trellis.plan.relation import NeighbourComparison
from trellis.properties import cached_property

SEGMENT, POINT, NUMBER, WIDTH, BASE, OWNER = "segment", "point", "number", "width", "base", "owner"
GIVES, TAKES, VALUE, CUT, KIND = "gives", "takes", "value", "cut", "kind"
HOLDS, REACHES, CUTS = "holds", "reaches", "cuts"  # kinds of points: of a from-edge, of a to-edge, between vertices
FOLLOWED, PRECEDED = "followed", "preceded"
ROOM = 32  # bits for the numbers of one group
MANY = (1 << 63) - 1


# --- What it takes ----------------------------------------------------------------------------------------------


def check_construction(plan: Plan) -> None:
    """Refuse a query whose index Spark's operations do not build.

    Raises
    ------
    UsageError
        With what it is that they do not take.
    """
    relation = plan.relation
    compared = [*relation.keys, *(c for order in relation.orders for c in order)]
    values = [*relation.single, *(Operation(c.function, (c.later, c.earlier)) for c in compared)]
    reasons = {
        "SELECT other than skip-till-any": plan.bound.select is not Select.ANY,
        "REPORT maximal": plan.bound.report is Report.MAXIMAL,
        "WITHIN without SLIDE": plan.bound.window.kind is WindowKind.SPAN,
        "`!=`": any(c.function == "!=" for c in compared),
        "conditions whose sides do not each speak of one event": bool(
            relation.rest or relation.cuts or relation.either
        ),
        "more than one comparison besides equalities": sum(map(len, relation.orders)) > 1,
        "values that Spark cannot compute exactly": not all(map(can_compile, values)),
    }
    for reason, given in reasons.items():
        if given:
            raise UsageError(
                f"the construction `spark` does not take {reason}",
                "It takes equalities and one of <, <=, >, >= between neighbours. Leave out the construction: the "
                "algorithm `join` runs without it.",
            )


# --- How it is built --------------------------------------------------------------------------------------------


def index_on_spark(rows: Split) -> DataFrame:
    """Return the rows of a split, with one window in each window batch, and their index: see `indexed`."""
    return _Construction(rows).indexed()


class _Construction:
    """The frames that lead from rows to their index."""

    def __init__(self, rows: Split) -> None:
        self.bound, self.rows = rows.plan.bound, rows.rows
        self.relation = rows.plan.relation
        self.order: NeighbourComparison | None = next((order[0] for order in self.relation.orders), None)
        self.keys = len(self.relation.keys)
        self._columns = row_names(rows.plan)

    def indexed(self) -> DataFrame:
        """Put edges, starts and ends beside the events."""
        known = [f.max(name).alias(name) for name in (VERTEX, FIRST, LAST, FOLLOWED, PRECEDED)]
        edges = self._edges().groupBy(EVENT).agg(*known)
        found = self.events.select(*self.rows.columns, GROUP, WINDOW, EVENT, LATER).join(edges, EVENT, "left")
        to_edge = f.struct(FIRST, LAST)
        begin = f.shiftleft(GROUP, ROOM)
        start = f.struct(GROUP, WINDOW, (begin + (1 << ROOM)).alias(UNTIL), begin.alias(FIRST_END))
        starts = f.array(start)
        if self.bound.report is not Report.ANY:
            starts = f.filter(starts, lambda _: ~f.coalesce(PRECEDED, f.lit(False)))
        return found.select(
            *self.rows.columns,
            EVENT,
            VERTEX,
            f.filter(f.array(to_edge), lambda edge: edge[FIRST].isNotNull()).alias(TO),
            LATER,
            f.when(f.col(FOLLOWED), f.col(EVENT)).otherwise(f.lit(MANY)).alias(NEAREST),
            starts.alias(STARTS),
        )

    @cached_property
    def events(self) -> DataFrame:
        """The rows with their groups and numbers, and what the conditions say of each alone."""
        rows = self._grouped()
        base = f.shiftleft(GROUP, ROOM)
        moment = order_of_time(self.bound)
        in_order = Over.partitionBy(GROUP).orderBy(*moment, ID)
        not_later = f.count(f.lit(1)).over(Over.partitionBy(GROUP).orderBy(*moment))
        event, later = base + f.row_number().over(in_order) - 1, base + not_later
        pairs = [_alike(c, self._column) for c in (*self.relation.keys, *([self.order] if self.order else []))]
        known = rows.select(
            *rows.columns,
            event.alias(EVENT),
            later.alias(LATER),
            self._alone(Which.LATER, [after for after, _ in pairs]).alias(TAKES),
            self._alone(Which.EARLIER, [before for _, before in pairs]).alias(GIVES),
            *(after.alias(_after(i)) for i, (after, _) in enumerate(pairs[: self.keys])),
            *(before.alias(_before(i)) for i, (_, before) in enumerate(pairs[: self.keys])),
            *(
                column.alias(name)
                for pair in pairs[self.keys :]
                for column, name in zip(pair, (VALUE, CUT), strict=True)
            ),
        )
        return settled(known)  # it is read for from-edges, to-edges and starts

    def _grouped(self) -> DataFrame:
        """Number the windows of partitions."""
        window = f.col(WINDOW_BATCH) if self.bound.window.kind is WindowKind.SLIDING else f.lit(0).cast("bigint")
        rows = self.rows.withColumn(WINDOW, window)
        keys = group_keys(self.bound)
        if not keys:
            return rows.withColumn(GROUP, f.lit(0).cast("bigint"))
        names = [f"g{i}" for i in range(len(keys))]
        groups = rows.select(*keys).distinct().toDF(*names)
        together = Over.partitionBy(f.lit(0)).orderBy(*names)  # without a partition Spark warns
        number = f.row_number().over(together).cast("bigint") - 1
        same = reduce(and_, (f.col(key).eqNullSafe(f.col(name)) for key, name in zip(keys, names, strict=True)))
        return rows.join(f.broadcast(groups.withColumn(GROUP, number)), same).drop(*names)

    def _column(self, value: Value) -> Column:
        return compile_condition(value, lambda column: f.col(self._columns[column.name]))

    def _alone(self, which: Which, values: list[Column]) -> Column:
        """Whether an event can be the later, or the earlier, of two, as far as it tells by itself."""
        terms = [self._column(v) for v in self.relation.single if next(columns_of(v)).which is which]
        known = [value.isNotNull() for value in values]
        return reduce(and_, [*known, *(f.coalesce(term, f.lit(False)) for term in terms)], f.lit(True))

    def _segments(self) -> DataFrame:
        """The segments of each group: its keys, numbered by the first event of each."""
        keys = [f.col(_after(i)).alias(_key(i)) for i in range(self.keys)]
        firsts = self.events.where(TAKES).groupBy(f.col(GROUP).alias(OWNER), *keys).agg(f.min(EVENT).alias(FIRST))
        number = f.row_number().over(Over.partitionBy(OWNER).orderBy(FIRST)) - 1
        return firsts.withColumn(SEGMENT, number).drop(FIRST)

    def _points(self, kind: str) -> DataFrame:
        """The points that events have in the segments: of their own values, or of the cuts below what may follow."""
        names, wanted, point = (_after, TAKES, VALUE) if kind == HOLDS else (_before, GIVES, CUT)
        found = self.events.where(wanted)
        if self.keys:
            same = [f.col(names(i)) == f.col(_key(i)) for i in range(self.keys)]
            found = found.join(self._segments(), reduce(and_, same, f.col(GROUP) == f.col(OWNER)))
        else:
            found = found.withColumn(SEGMENT, f.lit(0))
        at = f.col(point) if self.order else f.lit(None)
        return found.select(GROUP, SEGMENT, at.alias(POINT), f.lit(kind).alias(KIND), EVENT, LATER)

    def _edges(self) -> DataFrame:
        """The from-edges and to-edges, and whether something may come before the one and after the other."""
        held, reached = self._points(HOLDS), self._points(REACHES)
        points = held.union(reached)
        if self.order:
            points = _searched(points, reached.select(GROUP, SEGMENT, POINT).distinct(), self.order.function)
        else:
            points = points.withColumn(NUMBER, f.lit(0))
        in_segment = Over.partitionBy(GROUP, SEGMENT)
        points = self._based(points.withColumn(WIDTH, f.max(NUMBER).over(in_segment) + 1))
        begin = f.shiftleft(GROUP, ROOM) + f.col(BASE)
        vertex = begin + f.col(NUMBER)
        holds, reaches = f.col(KIND) == f.lit(HOLDS), f.col(KIND) == f.lit(REACHES)
        newest = f.max(f.when(holds, f.col(EVENT))).over(in_segment.orderBy(f.desc(NUMBER)))
        earliest = f.min(f.when(reaches, f.col(LATER))).over(in_segment.orderBy(f.asc(NUMBER)))
        return points.select(
            EVENT,
            f.when(holds, vertex).alias(VERTEX),
            f.when(reaches, vertex).alias(FIRST),
            f.when(reaches, begin + f.col(WIDTH)).alias(LAST),
            (reaches & (newest >= f.col(LATER))).alias(FOLLOWED),
            (holds & (earliest <= f.col(EVENT))).alias(PRECEDED),
        )

    def _based(self, points: DataFrame) -> DataFrame:
        """Tell how many vertices the segments before that of a point have."""
        if not self.keys or not self.order:
            return points.withColumn(BASE, f.col(SEGMENT))  # each has one vertex, or there are none before
        widths = points.groupBy(GROUP, SEGMENT).agg(f.max(WIDTH).alias(WIDTH))
        before = f.sum(WIDTH).over(Over.partitionBy(GROUP).orderBy(SEGMENT)) - f.col(WIDTH)
        return points.join(widths.select(GROUP, SEGMENT, before.alias(BASE)), [GROUP, SEGMENT])


def _searched(points: DataFrame, cuts: DataFrame, function: str) -> DataFrame:
    """Find for each point how many cuts come before it: its own does, and under `<=` and `>=` one equal to a value."""
    nothing = f.lit(None).cast("bigint")
    whole = points.union(cuts.select(GROUP, SEGMENT, POINT, f.lit(CUTS), nothing, nothing))
    is_cut, below = f.col(KIND) == f.lit(CUTS), f.lit(function in ("<", ">")) & (f.col(KIND) == f.lit(HOLDS))
    side = f.when(below, 0).when(is_cut, 1).otherwise(2)
    point = f.col(POINT).asc() if function in (">", ">=") else f.col(POINT).desc()
    so_far = Over.partitionBy(GROUP, SEGMENT).orderBy(point, side).rowsBetween(Over.unboundedPreceding, 0)
    return whole.withColumn(NUMBER, f.count(f.when(is_cut, 1)).over(so_far)).where(~is_cut)


def _after(place: int) -> str:
    return f"after{place}"


def _before(place: int) -> str:
    return f"before{place}"


def _key(place: int) -> str:
    return f"key{place}"


# --- Values that compare ----------------------------------------------------------------------------------------


def _alike(compared: NeighbourComparison, column: Callable[[Value], Column]) -> tuple[Column, Column]:
    """Return both sides of a comparison as columns of one type, which sort and equal one another as they should."""
    sides = compared.later, compared.earlier
    kinds = {side.type.kind for side in sides}
    after, before = (column(side) for side in sides)
    if kinds == {Kind.INTEGER, Kind.DOUBLE}:
        after, before = (
            _exact_integer(c) if side.type.kind is Kind.INTEGER else _exact_double(c)
            for c, side in zip((after, before), sides, strict=True)
        )
    elif Kind.DECIMAL in kinds:
        wide = digits_of(sides[0]).widened(digits_of(sides[1])).type
        after, before = after.cast(wide), before.cast(wide)
    elif kinds == {Kind.DOUBLE}:
        after, before = after + f.lit(0.0), before + f.lit(0.0)  # one zero
    return after, before


def _exact_integer(column: Column) -> Column:
    """Return an integer as the nearest double and the rest, which compare as the number does: rounding keeps order."""
    rounded = column.cast("double")
    beyond = rounded == f.lit(2.0**63)  # not a bigint, though a cast makes it the greatest one instead of NULL
    rest = f.when(beyond, column - f.lit(MANY) - 1).otherwise(column - rounded.try_cast("bigint"))
    return f.when(column.isNotNull(), f.struct(rounded.alias("near"), rest.alias("rest")))


def _exact_double(column: Column) -> Column:
    zero = f.lit(0).cast("bigint")
    return f.when(column.isNotNull(), f.struct((column + f.lit(0.0)).alias("near"), zero.alias("rest")))
