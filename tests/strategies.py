"""Hypothesis strategies: random event tables and random queries, for the oracle's tests and the engine's.

`case()` is one Kleene variable with every clause; `general_case()` mixes SEQ, OR, AND, NOT and Kleene
variables on few events. Queries are syntax trees that the printer can write and the parser reads back.
The attributes:

| column | values |
| --- | --- |
| `x` | int, small, NULLs |
| `y` | double, NULL, NaN, infinities, -0.0 |
| `n` | int beyond 2^53, NULLs: for exact comparisons with doubles |
| `d` | decimal(10,2), NULLs |
| `k` | string, few values, NULLs |
| `b` | boolean, NULLs |
| `g` | what partitions are made of: int, string or double, with NULL and NaN |
"""

from __future__ import annotations

import datetime as dt
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cache
from typing import Any

from hypothesis import strategies as st

from trellis.language import syntax as s
from trellis.language.syntax import Which

integers = cache(st.integers)
"""Integers from one to another; built once, as Hypothesis looks at each strategy anew that is built."""

among = cache(st.sampled_from)
"""One of some values; built once for equal ones."""

one_of = cache(st.one_of)
"""A value of one of some strategies; built once where these are."""

lists = cache(st.lists)
"""Lists of values of a strategy; built once for equal bounds."""


@cache
def permutations(count: int) -> st.SearchStrategy[list[int]]:
    """Draw the numbers below a count in any order."""
    return st.permutations(range(count))


EITHER = st.booleans()
NONE = st.none()
LIMITS = st.none() | st.integers(0, 4)
COMPARATORS = ("=", "!=", "<", "<=", ">", ">=")
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
SECOND = 1_000_000

INTS = st.sampled_from([0, 1, 2, 3, 4, 5, -1, -2, -3, 1, 2, 3, None])
FLOATS = st.sampled_from(
    [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, -1.0, 0.1, 0.3, 1.0, 2.0, 2.0**53, -0.0, math.inf, -math.inf, math.nan, None]
)
BIG = st.sampled_from([0, 1, 2**53, 2**53 + 1, -(2**53) - 1, 2**62, None])
DECIMALS = st.sampled_from(
    [*map(Decimal, ("0.00", "0.10", "0.30", "1.00", "1.50", "2.00", "2.25", "3.00", "-1.10")), None]
)
WORDS = st.sampled_from(["a", "b", "ab", "a", "B", "é", "a%", "", "\U0001f600", None])
BOOLEANS = st.sampled_from([True, False, True, None])
GROUPS = {
    "int64": st.sampled_from([1, 1, 2, None]),
    "string": st.sampled_from(["p", "p", "é", "", None]),
    "double": st.sampled_from([0.0, -0.0, 0.0, 1.5, math.nan, None]),
}
ATTRIBUTES = {
    "x": ("int64", INTS),
    "y": ("double", FLOATS),
    "n": ("int64", BIG),
    "d": ("decimal(10,2)", DECIMALS),
    "k": ("string", WORDS),
    "b": ("boolean", BOOLEANS),
}


ORDERS = st.permutations(list(ATTRIBUTES))


@dataclass(frozen=True)
class Case:
    """A query and a table; `run(case.query, case.rows, schema=case.schema, **case.options)` answers it."""

    query: s.QuerySyntax
    rows: list[dict[str, Any]]
    options: dict[str, Any]  # time, type, event_id, params
    schema: dict[str, str]  # column -> int64, double, decimal(10,2), string, boolean, timestamp, date


def arrow_table(rows: Sequence[dict[str, Any]], schema: dict[str, str]) -> Any:
    """Make an Arrow table of a case's rows."""
    import pyarrow as pa

    types = {
        "int64": pa.int64(),
        "double": pa.float64(),
        "string": pa.string(),
        "boolean": pa.bool_(),
        "timestamp": pa.timestamp("us", tz="UTC"),
        "date": pa.date32(),
        "decimal(10,2)": pa.decimal128(10, 2),
    }
    columns = {
        name: pa.array([row[name] for row in rows], types[kind], from_pandas=False) for name, kind in schema.items()
    }
    return pa.table(columns)


# --- Tables -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Clock:
    """A kind of time column: its ticks, and durations and points in time as they are written for it."""

    kind: str
    at: Callable[[int], Any]  # the time of a tick
    durations: tuple[s.Expression, ...]  # rising
    point: Callable[[int], s.Expression]


def _seconds(*amounts: int) -> tuple[s.Expression, ...]:
    return tuple(s.Duration(amount * SECOND) for amount in amounts)


CLOCKS = (
    Clock("int64", lambda tick: tick, tuple(map(s.Integer, (1, 2, 3, 5, 8))), lambda tick: integer(tick)),
    Clock(
        "double",
        lambda tick: tick / 2,
        (s.Real(Decimal("0.5")), s.Integer(1), s.Real(Decimal("1.5")), s.Integer(3), s.Real(Decimal("5.0"))),
        lambda tick: integer(tick),
    ),
    Clock(
        "timestamp",
        lambda tick: EPOCH + dt.timedelta(seconds=tick),
        (s.Duration(SECOND // 2), *_seconds(1, 2, 3, 7)),
        lambda tick: s.Timestamp(tick * SECOND),
    ),
    Clock(
        "date",
        lambda tick: dt.date(1970, 1, 1) + dt.timedelta(days=tick),
        _seconds(43_200, 86_400, 2 * 86_400, 3 * 86_400, 7 * 86_400),
        lambda tick: s.Timestamp(tick * 86_400 * SECOND),
    ),
)


TIE_BREAKERS = {
    "int64": st.integers(-1, 3),
    "string": st.sampled_from(["", "a", "b", "é", "€"]),
    "double": st.sampled_from([-0.5, -0.0, 0.0, 1.5]),
}
"""Types of columns that order events of the same time, with values for them."""


@dataclass(frozen=True)
class Table:
    """A drawn table with its clock and the options that say what its columns mean."""

    rows: list[dict[str, Any]]
    schema: dict[str, str]
    clock: Clock
    options: dict[str, Any]


def time_column(options: dict[str, Any]) -> str:
    """Return the time column of a drawn case, without what breaks ties."""
    time = options["time"]
    return time if isinstance(time, str) else str(time[0])


@st.composite
def tables(draw: Any, types: Sequence[str | None] = (), most: int = 10) -> Table:
    """Draw a table of 0 to `most` rows in any order, with ties, repeated rows, and unique ids or none.

    With `types`, the column `type` holds them.
    """
    clock = draw(among(CLOCKS))
    time = draw(among(("t", "time")))
    group = draw(st.sampled_from(list(GROUPS)))
    names = tuple(draw(ORDERS))
    schema = {time: clock.kind, "g": group, **{name: ATTRIBUTES[name][0] for name in names}}
    if types:
        schema["type"] = "string"
    many = [(most // 2, most)] * 5 + [(most - 1, most)] * 2
    least, largest = draw(st.sampled_from([*many, (1, most), (0, most), (0, 1)]))
    rows = draw(_rows(time, group, names, tuple(types), least, largest))
    ticks = draw(_ticks(len(rows)))
    rows = [{**row, time: clock.at(tick)} for row, tick in zip(rows, ticks, strict=True)]
    if rows and len(rows) < most and draw(integers(0, 3)) == 0:
        rows.append(dict(rows[0]))
    if draw(integers(0, 3)) == 0:
        breaking, values = draw(st.sampled_from(list(TIE_BREAKERS.items())))
        rows = [{**row, "seq": draw(values)} for row in rows]
        schema["seq"], time = breaking, (time, "seq")
    options = {"time": time, "type": "type" if types else None, "event_id": None, "params": {}}
    kind = draw(among((None, "int64", "string")))
    if kind is not None:
        numbers = draw(permutations(len(rows)))
        rows = [{**row, "id": _identity(i, kind)} for row, i in zip(rows, numbers, strict=True)]
        schema["id"] = kind
        options["event_id"] = "id"
    return Table(rows, schema, clock, options)


@cache
def _rows(
    time: str, group: str, names: tuple[str, ...], types: tuple[str | None, ...], least: int, most: int
) -> st.SearchStrategy[list[dict[str, Any]]]:
    """Draw rows without times."""
    row = {time: st.none(), "g": GROUPS[group], **{name: ATTRIBUTES[name][1] for name in names}}
    if types:
        row["type"] = among(types)
    return st.lists(st.fixed_dictionaries(row), min_size=least, max_size=most)


NULLS = st.none() | st.just(math.nan)


@cache
def typed_rows(
    types: str, most: int, greatest: int = 3, reals: tuple[float, ...] = (0.0, 0.5, 1.0), nulls: bool = False
) -> st.SearchStrategy[list[dict[str, Any]]]:
    """Draw events with `ts`, `id`, a `type` of some letters and values `x` and `y`, which may be NULL, and `y` NaN."""
    x, y = st.integers(0, greatest), st.sampled_from(reals)
    row = {"x": x | st.none(), "y": y | NULLS} if nulls else {"x": x, "y": y}
    rows = st.fixed_dictionaries({"ts": st.integers(0, 9), "type": st.sampled_from(types), **row})
    return st.lists(rows, max_size=most).map(lambda drawn: [{"id": i, **one} for i, one in enumerate(drawn)])


ROW = st.tuples(
    st.sampled_from((0, 1, 1, 1, 2)), st.integers(0, 3), st.sampled_from((0.0, 0.5, 1.0)), st.integers(0, 11)
)


@cache
@st.composite
def rows_in_order(draw: Any, kinds: tuple[str, ...]) -> list[dict[str, Any]]:
    """Draw events as `typed_rows`, of one of some rows of types, most of them one after another; few have no value."""
    types, rows, now = draw(among(kinds)), [], 0
    for i, (kind, (gap, x, y, rare)) in enumerate(zip(types, draw(lists(ROW, min_size=9, max_size=9)), strict=False)):
        now += gap
        values = {0: (None, y), 1: (x, math.nan), 2: (-x, y)}.get(rare, (x, y))
        rows.append({"id": i, "ts": now, "type": kind, **dict(zip("xy", values, strict=True))})
    return rows


@cache
@st.composite
def _ticks(draw: Any, count: int) -> list[int]:
    """Draw times that are all different, that meet at times, or that mostly meet."""
    shape = draw(among(("different", "different", "some", "many")))
    if shape == "different":
        start = draw(among((0, 0, -3, 5)))
        return [start + tick for tick in draw(permutations(count))]
    ticks = integers(-3, 8) if shape == "some" else integers(0, 2)
    return draw(lists(ticks, min_size=count, max_size=count))


def _identity(number: int, kind: str) -> Any:
    return number * 7 - 10 if kind == "int64" else "éa9Z0b-€B1"[number % 10] + str(number // 10)


# --- Expressions ------------------------------------------------------------------------------------------

Reference = Callable[[str], s.Attribute]  # from an attribute's name to a reference to it


def attribute_of(var: str, which: Which = Which.EACH, nth: int | None = None) -> Reference:
    """Refer to attributes of one event or each event of a variable."""
    return lambda attr: s.Attribute(var, attr, which, nth)


def integer(value: int) -> s.Expression:
    """Write a whole number; a negative one has a minus sign."""
    return s.Integer(value) if value >= 0 else s.Negative(s.Integer(-value))


NUMBERS = st.one_of(
    st.integers(-2, 5).map(integer),
    st.sampled_from(["0.0", "0.1", "0.5", "1.0", "1.5", "2.25"]).map(lambda text: s.Real(Decimal(text))),
)
STRINGS = st.sampled_from(["", "a", "b", "ab", "é"]).map(s.String)


@st.composite
def numeric(draw: Any, references: Sequence[Reference], depth: int = 2) -> s.Expression:
    """Draw arithmetic over the numeric attributes of the references; at least one occurs."""
    at = draw(st.sampled_from(references))
    shape = draw(st.integers(0, 7 if depth > 0 else 2))
    if shape <= 1:
        return at(draw(among("xyd")))
    if shape == 2:
        return at("n")
    inner = draw(numeric(references, depth - 1))
    if shape == 3:
        return s.Negative(inner) if not isinstance(inner, s.Negative) else inner
    if shape == 4:
        return s.Call("ABS", (inner,))
    if shape == 5:
        return s.Call("COALESCE", (inner, draw(NUMBERS)))
    other = draw(st.one_of(NUMBERS, among("xyd").map(at)))
    big = any(isinstance(node, s.Attribute) and node.attr == "n" for node in s.walk(inner))
    op = draw(among("+-/%" if big else "+-*/%"))
    left, right = (inner, other) if draw(EITHER) else (other, inner)
    return s.Arithmetic(op, left, right)


@st.composite
def comparisons(draw: Any, left: Sequence[Reference], right: Sequence[Reference]) -> s.Condition:
    """Draw a comparison of attributes of `left` with attributes of `right`."""
    op = draw(among(COMPARATORS))
    if draw(integers(0, 2)) == 2:
        return s.Comparison(op, draw(numeric(left)), draw(numeric(right)))
    attr = draw(among("xxyydkb"))
    other = draw(st.sampled_from(left))(attr)
    if attr in "xyd" and draw(EITHER):
        other = s.Arithmetic(draw(among("+-*")), other, draw(NUMBERS))
    return s.Comparison(op, other, draw(st.sampled_from(right))(attr))


@st.composite
def simple(draw: Any, at: Reference, clock: Clock) -> s.Condition:
    """Draw a condition on one event."""
    shape = draw(integers(0, 8))
    if shape <= 1:
        return s.Comparison(draw(among(COMPARATORS)), draw(numeric([at])), draw(NUMBERS))
    if shape == 2:
        return s.Comparison(draw(among(COMPARATORS)), at("k"), draw(STRINGS))
    if shape == 3:
        if draw(EITHER):
            return s.Membership(at("k"), tuple(draw(lists(STRINGS, min_size=1, max_size=3))))
        return s.Membership(draw(numeric([at], 1)), tuple(draw(lists(NUMBERS, min_size=1, max_size=3))))
    if shape == 4:
        return s.RangeTest(draw(numeric([at], 1)), draw(NUMBERS), draw(NUMBERS))
    if shape == 5:
        return s.NullTest(draw(st.one_of(among("xydkb").map(at), numeric([at], 1))))
    if shape == 6:
        return s.LikeTest(at("k"), s.String(draw(among(("a%", "%b", "_", "", "%", "a\\%")))))
    if shape == 7:
        return s.Truth(at("b"))
    return s.Comparison(draw(among(COMPARATORS)), at("time"), clock.point(draw(integers(-2, 8))))


@st.composite
def gaps(draw: Any, later: Reference, earlier: Reference, clock: Clock) -> s.Condition:
    """Draw a bound on the time between two events."""
    op = draw(among(("<=", "<", ">", ">=")))
    gap = s.Arithmetic("-", later("time"), earlier("time"))
    return s.Comparison(op, gap, draw(st.sampled_from(clock.durations)))


def any_of(*terms: s.Condition) -> s.Condition:
    """OR, flat."""
    flat = [part for term in terms for part in (term.terms if isinstance(term, s.Disjunction) else (term,))]
    return s.Disjunction(tuple(flat))


def all_of(*terms: s.Condition) -> s.Condition:
    """AND, flat."""
    flat = [part for term in terms for part in (term.terms if isinstance(term, s.Conjunction) else (term,))]
    return s.Conjunction(tuple(flat))


@st.composite
def adjacent(draw: Any, var: str, clock: Clock) -> s.Condition:
    """Draw a condition on two consecutive events of a Kleene variable, which names both."""
    earlier, later = attribute_of(var, Which.EARLIER), attribute_of(var, Which.LATER)
    pair = _pairs(var, clock)
    first = draw(pair)
    shape = draw(integers(0, 6))
    if shape == 0:
        first = s.Negation(first)
    elif shape == 1:
        first = any_of(first, draw(pair))
    elif shape == 2:
        first = any_of(first, draw(simple(later, clock)))
    elif shape == 3:
        first = any_of(all_of(draw(pair), draw(simple(earlier, clock))), first)
    return _naming_both(first, var, draw)


@cache
def _pairs(var: str, clock: Clock) -> st.SearchStrategy[s.Condition]:
    """Draw a comparison of two consecutive events of a Kleene variable."""
    earlier, later = attribute_of(var, Which.EARLIER), attribute_of(var, Which.LATER)
    return st.one_of(
        comparisons([later], [earlier]),
        comparisons([earlier], [later]),
        comparisons([later, earlier], [later, earlier]),
        gaps(later, earlier, clock),
    )


def _naming_both(condition: s.Condition, var: str, draw: Any) -> s.Condition:
    """Make sure that both events are named: `s[i]` alone would be each event, `s[i-1]` alone is an error."""
    named = {node.which for node in s.walk(condition) if isinstance(node, s.Attribute)}
    if {Which.EARLIER, Which.LATER} <= named:
        return condition
    attr = draw(among("xyk"))
    both = s.Comparison("=", s.Attribute(var, attr, Which.LATER), s.Attribute(var, attr, Which.EARLIER))
    return any_of(condition, both)


@cache
@st.composite
def constant(draw: Any, var: str, clock: Clock) -> s.Condition:
    """Draw a condition on each event of a variable."""
    at = attribute_of(var)
    first = draw(simple(at, clock))
    shape = draw(integers(0, 5))
    if shape == 0:
        return any_of(first, draw(simple(at, clock)))
    return s.Negation(first) if shape == 1 else first


# --- Clauses ----------------------------------------------------------------------------------------------


@cache
@st.composite
def withins(draw: Any, clock: Clock) -> s.WithinClause | None:
    """Draw nothing, a span, tumbling or sliding windows."""
    shape = draw(among(("none", "span", "tumbling", "sliding")))
    if shape == "none":
        return None
    i = draw(among((4, 4, 3, 3, 2, 1, 0)))
    size = clock.durations[i]
    if shape == "span":
        return s.WithinClause(size)
    return s.WithinClause(size, size if shape == "tumbling" else clock.durations[draw(st.integers(0, i))])


@cache
def _perhaps_withins(clock: Clock) -> st.SearchStrategy[s.WithinClause | None]:
    return st.one_of(st.none(), withins(clock))


LENGTHS = st.lists(
    st.builds(s.Comparison, among(("=", "<", "<=", ">", ">=")), st.just(s.Length()), integers(0, 4).map(s.Integer)),
    max_size=2,
)


@cache
@st.composite
def havings(draw: Any) -> tuple[s.Condition, ...]:
    """Draw bounds on the length, mostly none."""
    return tuple(draw(LENGTHS)) if draw(integers(0, 3)) == 0 else ()


@cache
def _one_value(var: str, kleene: bool = True) -> st.SearchStrategy[s.Expression]:
    """Draw an expression over one trend that gives one value."""
    if not kleene:
        single = st.sampled_from(["x", "y", "n", "d", "k", "b", "g", "time"])
        return st.one_of(st.just(s.Length()), single.map(lambda attr: s.Attribute(var, attr)))
    numbers = among("xyd").map(lambda attr: s.Attribute(var, attr))
    comparable = among("xydk").map(lambda attr: s.Attribute(var, attr))
    attr = st.sampled_from(["x", "y", "n", "d", "k", "b", "g", "time"])
    return st.one_of(
        st.sampled_from([s.Length(), s.Aggregate("COUNT", s.VariableReference(var))]),
        st.builds(s.Aggregate, st.sampled_from(["SUM", "AVG"]), numbers),
        st.builds(s.Aggregate, st.sampled_from(["MIN", "MAX"]), comparable),
        st.builds(s.Attribute, st.just(var), attr, st.sampled_from([Which.FIRST, Which.LAST])),
        st.builds(s.Attribute, st.just(var), attr, st.just(Which.NTH), st.integers(1, 3)),
        st.builds(
            s.Arithmetic,
            among("+-*/%"),
            st.builds(s.Aggregate, st.sampled_from(["SUM", "MIN", "MAX", "AVG"]), numbers),
            st.one_of(
                st.just(s.Length()),
                NUMBERS,
                st.builds(s.Attribute, st.just(var), among("xyd"), st.just(Which.FIRST)),
            ),
        ),
        among("xy").map(lambda attr: s.Call("ROUND", (s.Aggregate("AVG", s.Attribute(var, attr)),))),
        st.builds(_long_or_first, st.just(var), st.sampled_from(["k", "x"]), st.integers(1, 3)),
    )


def _long_or_first(var: str, attr: str, length: int) -> s.Expression:
    """A CASE of a trend: NULL for long ones, else an attribute of the first event."""
    short = s.Comparison("<=", s.Length(), s.Integer(length))
    return s.Case((short,), (s.Attribute(var, attr, Which.FIRST),))


def _named(expressions: Sequence[s.Expression]) -> tuple[s.Item, ...]:
    """Name what has no name of its own, and every other item."""
    items = []
    for i, expression in enumerate(expressions):
        nameless = isinstance(expression, (s.Arithmetic, s.Length, s.Call, s.Case)) or (
            isinstance(expression, s.Attribute) and expression.which is Which.NTH
        )
        if isinstance(expression, s.Aggregate):
            plain = isinstance(expression.argument, s.Length | s.VariableReference | None)
            nameless = not plain and getattr(expression.argument, "which", None) is not Which.EACH
        items.append(s.Item(expression, f"item{i}" if nameless or i % 2 else None))
    return tuple(items)


@st.composite
def returns(draw: Any, var: str, kleene: bool = True) -> tuple[s.Item, ...]:
    """Draw the items of RETURN."""
    return _named(draw(_returned(var, kleene)))


@cache
def _returned(var: str, kleene: bool) -> st.SearchStrategy[list[s.Expression]]:
    arrays = st.one_of(
        st.just(s.VariableReference(var)),
        st.sampled_from(["x", "y", "n", "d", "k", "b", "g", "time"]).map(lambda attr: s.Attribute(var, attr)),
    )
    return st.lists(st.one_of(arrays, _one_value(var, kleene)), min_size=1, max_size=3, unique=True)


@st.composite
def aggregates(draw: Any, var: str, kleene: bool = True) -> tuple[s.Item, ...]:
    """Draw the items of AGGREGATE."""
    return _named(draw(_aggregated(var, kleene)))


@cache
def _aggregated(var: str, kleene: bool) -> st.SearchStrategy[list[s.Expression]]:
    numbers = among("xyndy").map(lambda attr: s.Attribute(var, attr))
    comparable = among("xydkb").map(lambda attr: s.Attribute(var, attr))
    item = st.one_of(
        st.just(s.Aggregate("COUNT", None)),
        st.just(s.Aggregate("COUNT", s.VariableReference(var))),
        st.builds(s.Aggregate, st.sampled_from(["SUM", "MIN", "MAX", "AVG"]), st.just(s.Length())),
        st.builds(s.Aggregate, st.sampled_from(["SUM", "AVG"]), numbers),
        st.builds(s.Aggregate, st.sampled_from(["MIN", "MAX"]), comparable),
        st.builds(s.Aggregate, st.sampled_from(["SUM", "MIN", "AVG"]), _of_event(var)),
        st.builds(s.Aggregate, st.sampled_from(["SUM", "MAX", "AVG"]), _of_trend(var, kleene)),
    )
    return st.lists(item, min_size=1, max_size=4, unique=True)


@cache
def _of_event(var: str) -> st.SearchStrategy[s.Expression]:
    """Draw arithmetic over attributes of one event."""
    attr = among("xy").map(lambda name: s.Attribute(var, name))
    return st.builds(s.Arithmetic, among("+-*/"), attr, st.one_of(attr, st.integers(1, 3).map(s.Integer)))


@cache
def _of_trend(var: str, kleene: bool) -> st.SearchStrategy[s.Expression]:
    """Draw a number that a whole trend has."""
    first, last = (Which.FIRST, Which.LAST) if kleene else (Which.EACH, Which.EACH)
    attr = among("xy")
    gain = attr.map(lambda x: s.Arithmetic("-", s.Attribute(var, x, last), s.Attribute(var, x, first)))
    per_event = attr.map(lambda x: s.Arithmetic("/", s.Attribute(var, x, first), s.Length()))
    mean = attr.map(lambda x: s.Aggregate("AVG", s.Attribute(var, x)))
    return st.one_of(gain, per_event, mean)


@cache
@st.composite
def orders(draw: Any, var: str, kleene: bool = True) -> tuple[s.Sort, ...]:
    """Draw the keys of ORDER BY."""
    return tuple(draw(_sorts(var, kleene)))


@cache
def _sorts(var: str, kleene: bool) -> st.SearchStrategy[list[s.Sort]]:
    return st.lists(st.builds(s.Sort, _one_value(var, kleene), st.booleans()), max_size=2)


@cache
def _values(var: str, kleene: bool) -> st.SearchStrategy[list[s.Expression]]:
    return st.lists(_one_value(var, kleene), min_size=1, max_size=2)


@cache
def some_order(var: str, kleene: bool) -> st.SearchStrategy[tuple[s.Sort, ...]]:
    """Draw ORDER BY with a key at least."""
    return orders(var, kleene).filter(bool)


@cache
@st.composite
def outputs(draw: Any, var: str, partition: Sequence[str], kleene: bool = True) -> dict[str, Any]:
    """Draw RETURN or AGGREGATE with GROUP BY, ORDER BY, LIMIT, PER WINDOW and OFFSET."""
    shape = draw(integers(0, 3))
    clauses: dict[str, Any] = {}
    if shape == 1:
        clauses["returns"] = draw(returns(var, kleene))
    if shape == 2:
        clauses["aggregates"] = draw(aggregates(var, kleene))
        if draw(integers(0, 2)) == 0:
            clauses["per_event"] = s.PerEvent(draw(among((None, var))))
            clauses["aggregates"] += tuple(s.Item(s.OfEvent(name)) for name in ("SHARE", "BEGINS", "ENDS"))
        elif partition:
            kept = draw(lists(among(partition), unique=True))
            clauses["group_by"] = tuple(map(s.Name, kept))
    elif draw(EITHER):
        clauses["order_by"] = draw(orders(var, kleene))
        clauses["limit"] = draw(LIMITS)
        clauses["per_window"] = clauses["limit"] is not None and draw(EITHER)
        clauses["offset"] = draw(integers(0, 2))
        if clauses["limit"] is not None and draw(integers(0, 2)) == 0:
            clauses["limit_per"] = tuple(draw(_values(var, kleene)))
    return clauses


# --- One Kleene variable ----------------------------------------------------------------------------------


@cache
def _conditions(var: str, clock: Clock, across: bool) -> st.SearchStrategy[s.Condition]:
    kinds = [adjacent(var, clock), adjacent(var, clock), constant(var, clock)]
    return st.one_of(*kinds, across_one(var, clock)) if across else st.one_of(kinds)


@st.composite
def case(draw: Any, *, most: int = 10, across: bool = False, clauses: bool = True) -> Case:
    """Draw a query over one Kleene variable and a table for it.

    With `across`, conditions may also name FIRST(s), LAST(s) and s[k]. Without `clauses` there is no HAVING,
    RETURN, AGGREGATE, ORDER BY, LIMIT or OFFSET.
    """
    typed = draw(EITHER)
    table = draw(tables(types=["E", "E", "F", None] if typed else [], most=most))
    clock, var = table.clock, "s"
    kinds = _conditions(var, clock, across)
    where = [draw(kinds) for _ in range(draw(among((1, 1, 2, 0, 3))))]
    partition = draw(st.sampled_from([(), (), (), ("g",), ("g",), ("g", "k"), ("y",)]))
    if partition:
        where.insert(draw(integers(0, len(where))), s.PartitionClause(tuple(map(s.Name, partition))))
    where, params = draw(with_parameter(where))
    query = s.QuerySyntax(
        pattern=s.Kleene("E", var),
        where=tuple(where),
        having=draw(havings()) if clauses else (),
        select=draw(among((s.Select.ANY, *s.Select))),
        report=draw(among(tuple(s.Report))),
        within=draw(withins(clock)),
        **(draw(outputs(var, partition)) if clauses else {}),
    )
    return Case(query, table.rows, {**table.options, "params": params}, table.schema)


@st.composite
def with_parameter(draw: Any, where: list[s.Condition]) -> tuple[list[s.Condition], dict[str, Any]]:
    """Add, at times, a conjunct that compares with a parameter."""
    if draw(integers(0, 4)):
        return where, {}
    value = draw(st.sampled_from([1, -1, 0.5, 1.5, Decimal("0.10")]))
    left, right = s.Attribute("s", "x", Which.LATER), s.Attribute("s", "d", Which.EARLIER)
    term = s.Comparison(">=", left, s.Arithmetic("*", s.Parameter("ratio"), right))
    return [*where, term], {"ratio": value}


@st.composite
def across_one(draw: Any, var: str, clock: Clock) -> s.Condition:
    """Draw a condition that names single events of a Kleene variable."""
    picked = [attribute_of(var, Which.FIRST), attribute_of(var, Which.LAST)]
    picked.append(attribute_of(var, Which.NTH, draw(integers(1, 3))))
    other = st.one_of(comparisons(picked, [attribute_of(var)]), comparisons(picked, picked))
    return draw(st.one_of(other, gaps(picked[1], picked[0], clock)))


# --- General patterns -------------------------------------------------------------------------------------

TYPES = ("A", "B")
TYPED = (*TYPES * 3, "C")  # of the events of a table


class Absents:
    """How often NOT is drawn, fresh names for its variables, and whether it forbids whole patterns, too."""

    def __init__(self, nots: int, patterns: bool = False) -> None:
        self.patterns = patterns
        self.here = st.integers(1, nots).map(lambda place: place == 1)
        self.names = (f"z{i}" for i in itertools.count())


@st.composite
def patterns(draw: Any, most_leaves: int = 4, nots: int = 5) -> s.Pattern:
    """Draw a pattern of at most `most_leaves` leaves (those of NOT apart), each with a name of its own.

    One in `nots` places of a SEQ has a NOT.
    """
    names = iter("abcdefgh")
    absent = Absents(nots, patterns=True)
    return not_empty(draw(_pattern(most_leaves, names, absent, depth=2)))


BOUNDS = (*[(1, None)] * 6, (0, None), (2, None), (2, 2), (1, 2), (0, 2), (2, 3), (3, None))


@st.composite
def leaves_of(draw: Any, types: Sequence[str], name: str, shape: str) -> s.Pattern:
    """Draw a variable: of one event, perhaps of none, or of several within bounds."""
    type_ = draw(st.sampled_from(types))
    if shape == "single":
        return s.Single(type_, name, draw(integers(0, 4)) == 0)
    return s.Kleene(type_, name, *draw(among(BOUNDS)))


def not_empty(pattern: Any) -> Any:
    """Give the same pattern, with every variable taking an event where it could match without any."""

    def required(node: s.Node) -> s.Node | None:
        if isinstance(node, s.Kleene):
            return replace(node, least=max(node.least, 1))
        return replace(node, optional=False) if isinstance(node, s.Single) else None

    return s.rebuild(pattern, required) if s.may_be_empty(pattern) else pattern


@st.composite
def _pattern(draw: Any, leaves: int, names: Any, absent: Absents, depth: int) -> s.Pattern:
    shapes = ["single", "kleene"]
    if leaves >= 2 and depth > 0:
        shapes = ["seq", "seq", "seq", "or", "and", *shapes]
    shape = draw(st.sampled_from(shapes))
    if shape in ("single", "kleene"):
        leaf = draw(leaves_of(TYPES, next(names), shape))
        return draw(_sequence([leaf], absent)) if draw(integers(0, 5)) == 0 else leaf
    left = draw(st.integers(1, leaves - 1))
    shares = [left, leaves - left]
    if shape == "seq" and leaves >= 3 and draw(EITHER):
        shares = [1, 1, leaves - 2]
    parts = [draw(_pattern(share, names, absent, depth - 1)) for share in shares]
    if shape == "or":
        return s.Or(draw(_sharing(parts)))
    if shape == "and" and draw(absent.here):
        parts.insert(draw(st.integers(0, len(parts))), draw(_absent(absent)))
    return s.And(tuple(parts)) if shape == "and" else draw(_sequence(parts, absent))


@st.composite
def _absent(draw: Any, absent: Absents) -> s.Absent:
    """Draw a NOT of one event or two, or of a pattern."""
    count = draw(among((1, 1, 2)))
    singles = [s.Single(draw(among(TYPES)), next(absent.names)) for _ in range(count)]
    if not absent.patterns or draw(integers(0, 2)):
        return s.Absent(tuple(singles))
    kind = draw(among((s.Seq, s.Seq, s.And, s.Or, s.Kleene)))
    if kind is s.Kleene:
        return s.Absent(
            (s.Kleene(singles[0].type, singles[0].var, *draw(st.sampled_from([(1, None), (2, None), (2, 3)]))),)
        )
    last = draw(leaves_of(TYPES, next(absent.names), draw(among(("single", "kleene")))))
    parts = (singles[0], last)
    if kind is s.Seq and draw(integers(0, 2)) == 0:
        if s.may_be_empty(last):  # so that the NOT is perhaps at the edge
            return s.Absent((s.Seq((singles[0], s.Absent((s.Single("B", next(absent.names)),)), last)),))
        parts = (singles[0], draw(_absent(absent)), last)
    made = not_empty(kind(parts))
    if draw(integers(0, 2)) == 0:
        made = draw(_with_edge(made, absent))
    if draw(integers(0, 2)) == 0:
        label = f"q{next(absent.names)}" if draw(EITHER) else None
        made = s.Group(made, *draw(st.sampled_from([(1, None), (2, None), (2, 2), (2, 3)])), label)
    return s.Absent((made,))


@st.composite
def _with_edge(draw: Any, pattern: Any, absent: Absents) -> s.Pattern:
    """Put a NOT at an edge of a pattern: before or behind a SEQ, or an arm of AND or OR, or among the arms of AND."""
    edge = draw(_absent(absent))
    if isinstance(pattern, s.And) and draw(integers(0, 2)) == 0:
        return s.And((*pattern.arms, edge))
    parts = pattern.parts if isinstance(pattern, s.Seq) else (pattern.arms[0],)
    made = s.Seq((edge, *parts) if draw(EITHER) else (*parts, edge))
    return made if isinstance(pattern, s.Seq) else type(pattern)((made, *pattern.arms[1:]))


@st.composite
def _sharing(draw: Any, arms: list[s.Pattern]) -> tuple[s.Pattern, ...]:
    """Let two arms of an OR share a variable, at times."""
    first, second = arms
    same = isinstance(first, type(second)) and isinstance(first, (s.Single, s.Kleene))
    if isinstance(first, s.Single) and first.optional:
        return first, second
    if same and draw(EITHER):
        return first, first
    if isinstance(first, s.Single) and isinstance(second, s.Seq) and draw(EITHER):
        return first, s.Seq((first, *second.parts[1:]))
    return first, second


@st.composite
def _sequence(draw: Any, parts: list[s.Pattern], absent: Absents) -> s.Pattern:
    """Put NOTs between and around the parts, or make them untyped variables, at times."""
    if (
        len(parts) > 1
        and all(isinstance(part, s.Single) and not part.optional for part in parts)
        and draw(integers(0, 3)) == 0
    ):
        return s.Seq(tuple(s.Single(None, part.var) for part in parts))
    made: list[s.Pattern] = []
    for i in range(len(parts) + 1):
        if draw(absent.here):
            made.append(draw(_absent(absent)))
        made += parts[i : i + 1]
    return s.Seq(tuple(made)) if len(made) > 1 else made[0]


@st.composite
def worded(draw: Any, pattern: s.Pattern, clock: Clock, before: tuple[str, ...] = ()) -> s.Pattern:
    """Draw policies of single steps, greedy and UNTIL into a pattern."""
    match pattern:
        case s.Kleene(var=var):
            words = st.sampled_from([None, None, *s.Select])
            until = None
            if draw(integers(0, 3)) == 0:
                until = draw(simple(attribute_of(var), clock))
                if before and draw(EITHER):
                    until = draw(comparisons([attribute_of(var)], [attribute_of(draw(st.sampled_from(before)))]))
            greedy = draw(integers(0, 2)) == 0
            return replace(pattern, policy=draw(words), greedy=greedy, until=until)
        case s.Or(arms=arms) if arms[0] == arms[1]:  # they share a variable, which is declared alike
            return s.Or((draw(worded(arms[0], clock, before)),) * 2)
        case s.Or(arms=arms):
            return s.Or(tuple(draw(worded(arm, clock, before)) for arm in arms))
        case s.And(arms=arms):
            made = [draw(worded(arm, clock, before)) for arm in arms]
            return s.And(tuple(draw(_stepped(arm)) for arm in made))
        case s.Group():
            return replace(pattern, pattern=draw(worded(pattern.pattern, clock, before)))
        case s.Seq(parts=parts):
            made = []
            for part in parts:
                new = draw(worded(part, clock, before))
                first = all(isinstance(one, s.Absent) for one in made)
                made.append(new if first else draw(_stepped(new)))
                if not isinstance(part, s.Absent):
                    absent = {leaf.var for one in s.absent_patterns(part) for leaf in s.leaves(one)}
                    before += tuple(leaf.var for leaf in s.leaves(part) if leaf.var not in absent)
            return s.Seq(tuple(made))
    return pattern


@st.composite
def _stepped(draw: Any, part: s.Pattern) -> s.Pattern:
    """Draw a policy before a part, or none."""
    return part if isinstance(part, s.Absent) or draw(EITHER) else s.PolicyStep(draw(among(tuple(s.Select))), part)


@st.composite
def general_case(
    draw: Any, *, most: int = 5, most_leaves: int = 3, nots: int = 5, clauses: bool = False, words: bool = False,
    table: Table | None = None,
) -> Case:  # fmt: skip
    """Draw a query over a general pattern and a table with a type column for it, or that is given; see `patterns`.

    With `clauses` there may be HAVING, RETURN, AGGREGATE, ORDER BY, LIMIT and OFFSET, of one of the variables; with
    `words` there are policies of single steps, greedy and UNTIL.
    """
    pattern = draw(patterns(most_leaves, nots))
    table = table or draw(tables(types=TYPED, most=most))
    if words:
        pattern = draw(worded(pattern, table.clock))
    conditions = draw(general_conditions(pattern, table.clock, counts=words))
    partition = ("g",) if draw(integers(0, 4)) == 0 else ()
    if partition:
        conditions = [*conditions, s.PartitionClause((s.Name("g"),))]
    more: dict[str, Any] = {}
    if clauses:
        negated = {id(leaf) for one in s.absent_patterns(pattern) for leaf in s.leaves(one)}
        leaves = [n for n in s.walk(pattern) if isinstance(n, (s.Single, s.Kleene)) and id(n) not in negated]
        leaf = draw(st.sampled_from(leaves))
        more = draw(outputs(leaf.var, partition, isinstance(leaf, s.Kleene)))
        more["having"] = draw(havings())
    query = s.QuerySyntax(
        pattern=pattern,
        **more,
        where=tuple(conditions),
        select=draw(among(tuple(s.Select))),
        report=draw(among(tuple(s.Report))),
        within=draw(_perhaps_withins(table.clock)),
    )
    return Case(query, table.rows, table.options, table.schema)


@st.composite
def general_conditions(draw: Any, pattern: s.Pattern, clock: Clock, counts: bool = False) -> list[s.Condition]:
    """Draw conditions over the variables of a pattern: constant, adjacent and across, NOT's variables too; COUNTs."""
    leaves = [node for node in s.walk(pattern) if isinstance(node, (s.Single, s.Kleene))]
    kleene = {leaf.var for leaf in leaves if isinstance(leaf, s.Kleene)}
    around = _nots_around(pattern, ())

    def may_meet(name: str, var: str) -> bool:
        """Tell whether conditions may compare two variables: of one NOT, or of one and of what is around it."""
        one, other = sorted((around[name], around[var]), key=len)
        return all(outer is inner for outer, inner in zip(one, other, strict=False))

    names = sorted({leaf.var for leaf in leaves})
    found = []
    for _ in range(draw(among((0, 1, 1, 2, 0, 3)))):
        var = draw(st.sampled_from(names))
        shape = draw(integers(0, 3))
        if shape == 0:
            found.append(draw(constant(var, clock)))
        elif shape == 1 and var in kleene:
            count = s.Aggregate("COUNT", s.VariableReference(var))
            number = st.builds(s.Comparison, among(COMPARATORS), st.just(count), integers(0, 2).map(s.Integer))
            found.append(draw(number if counts and draw(integers(0, 3)) == 0 else adjacent(var, clock)))
        else:
            other = draw(st.sampled_from([name for name in names if name == var or may_meet(name, var)]))
            mixed = var in kleene and other != var and draw(integers(0, 3)) == 0
            found.append(draw(adjacent_and(var, other) if mixed else across_two(var, other, kleene, clock)))
    return found


def _nots_around(pattern: s.Pattern, around: tuple[s.Pattern, ...]) -> dict[str, tuple[s.Pattern, ...]]:
    """Return for each variable the patterns around it that NOTs forbid, the outermost first."""
    found = {node.var: around for node in s.walk(pattern) if isinstance(node, (s.Single, s.Kleene))}
    for one in s.absent_patterns(pattern):
        found |= _nots_around(one, (*around, one))
    return found


@st.composite
def adjacent_and(draw: Any, var: str, other: str) -> s.Condition:
    """Draw a condition on two consecutive events of one variable and the events of another."""
    attr = draw(among("xyd"))
    earlier, later = s.Attribute(var, attr, Which.EARLIER), s.Attribute(var, attr, Which.LATER)
    bound = s.Arithmetic(draw(among("+-")), earlier, s.Attribute(other, attr))
    return s.Comparison(draw(among(COMPARATORS)), later, bound)


@st.composite
def across_two(draw: Any, first: str, second: str, kleene: set[str], clock: Clock) -> s.Condition:
    """Draw a condition between two variables, often one that holds."""
    left, right = draw(_reference(first, kleene)), draw(_reference(second, kleene))
    shape = draw(integers(0, 6))
    if shape == 0:
        return draw(comparisons([left], [right]))
    if shape == 1:
        return draw(gaps(left, right, clock))
    if shape == 2:
        return any_of(draw(comparisons([left], [right])), draw(simple(left, clock)))
    attr = draw(among("xk"))
    return s.Comparison(draw(among(("!=", "<=", ">=", "!=", "<"))), left(attr), right(attr))


@st.composite
def _reference(draw: Any, var: str, kleene: set[str]) -> Reference:
    if var not in kleene:
        return attribute_of(var)
    which = draw(among((Which.EACH, Which.FIRST, Which.LAST, Which.LAST, Which.NTH)))
    return attribute_of(var, which, draw(integers(1, 3)) if which is Which.NTH else None)


@st.composite
def chain_case(draw: Any, *, most: int = 8) -> Case:
    """Draw a query over a SEQ of variables, most of them Kleene, with conditions that mostly look at neighbours."""
    absent = Absents(8)
    types = draw(st.sampled_from([("A",), ("A", "B")]))
    leaves = [
        draw(leaves_of(types, name, draw(among(("single", "kleene", "kleene")))))
        for name in "abc"[: draw(integers(1, 3))]
    ]
    pattern = not_empty(draw(_sequence(leaves, absent)))
    table = draw(tables(types=types, most=most))
    where: list[s.Condition] = []
    for leaf in leaves:
        if isinstance(leaf, s.Kleene) and draw(EITHER):
            op, attr = draw(among((">", ">=", "<", "!=", "="))), draw(among("xy"))
            sides = draw(among(((Which.LATER, Which.EARLIER), (Which.LATER, Which.EARLIER), (Which.EACH, Which.FIRST))))
            where.append(s.Comparison(op, *(s.Attribute(leaf.var, attr, side) for side in sides)))
    for left, right in itertools.pairwise(leaves):
        if draw(integers(0, 2)) == 0:
            attr = draw(among("xy"))
            first = draw(among((Which.EACH, Which.LAST))) if isinstance(left, s.Kleene) else Which.EACH
            second = draw(among((Which.EACH, Which.FIRST))) if isinstance(right, s.Kleene) else Which.EACH
            op = draw(among(("<", "<=", ">", "!=", "=")))
            where.append(s.Comparison(op, s.Attribute(left.var, attr, first), s.Attribute(right.var, attr, second)))
    if len(leaves) > 2 and draw(EITHER):
        op, attr = draw(among(("<", "<=", ">", "!=", "="))), draw(among("xy"))
        where.append(s.Comparison(op, s.Attribute(leaves[0].var, attr), s.Attribute(leaves[2].var, attr)))
    if draw(integers(0, 3)) == 0:
        where.append(draw(constant(draw(st.sampled_from(leaves)).var, table.clock)))
    partition = ("g",) if draw(integers(0, 3)) == 0 else ()
    if partition:
        where.append(s.PartitionClause((s.Name("g"),)))
    leaf = draw(st.sampled_from(leaves))
    query = s.QuerySyntax(
        pattern=pattern,
        where=tuple(where),
        having=draw(havings()),
        select=draw(among((s.Select.ANY, s.Select.ANY, s.Select.CONTIGUOUS))),
        report=draw(among(tuple(s.Report))),
        within=draw(_perhaps_withins(table.clock)),
        **draw(outputs(leaf.var, partition, isinstance(leaf, s.Kleene))),
    )
    return Case(query, table.rows, table.options, table.schema)


@st.composite
def sequence_case(draw: Any, *, most: int = 8, nots: bool = True, star: bool = False) -> Case:
    """Draw a query over a fixed sequence, with conditions between any two of its variables, and NOT at times.

    In a star only the first is compared, always by the same value and in one direction.
    """
    types = draw(st.sampled_from([("A",), ("A", "B")]))
    leaves = [s.Single(draw(st.sampled_from(types)), name) for name in "abcd"[: draw(integers(1, 4))]]
    table = draw(tables(types=types, most=most))
    where: list[s.Condition] = []
    if star:
        op, attr = draw(among(("<", "<=", ">", ">="))), draw(among("xyn"))
        lower = [leaf for leaf in leaves[1:] if draw(integers(0, 3))]
        where += [s.Comparison(op, s.Attribute(leaves[0].var, attr), s.Attribute(leaf.var, attr)) for leaf in lower]
    for left, right in [] if star else itertools.combinations(leaves, 2):
        for _ in range(draw(among((0, 0, 1, 1, 2)))):
            attr = draw(among("xxyk"))
            op = draw(among(("<", "<=", ">", ">=", "!=", "=", "=")))
            other = attr if attr == "k" else draw(among("xy"))
            where.append(s.Comparison(op, s.Attribute(left.var, attr), s.Attribute(right.var, other)))
    if draw(integers(0, 2)) == 0:
        where.append(draw(constant(draw(st.sampled_from(leaves)).var, table.clock)))
    partition = ("g",) if draw(integers(0, 3)) == 0 else ()
    if partition:
        where.append(s.PartitionClause((s.Name("g"),)))
    leaf = draw(st.sampled_from(leaves))
    pattern: s.Pattern = s.Seq(tuple(leaves)) if len(leaves) > 1 else leaves[0]
    if nots and draw(EITHER):
        pattern = draw(_sequence(leaves, Absents(4)))
        names = [n.var for node in s.walk(pattern) if isinstance(node, s.Absent) for n in node.events]
        if names and draw(EITHER):
            where.append(draw(constant(draw(st.sampled_from(names)), table.clock)))
    query = s.QuerySyntax(
        pattern=pattern,
        where=tuple(where),
        having=draw(havings()),
        report=draw(among(tuple(s.Report))),
        within=draw(one_of(NONE, withins(table.clock), withins(table.clock))),
        **draw(outputs(leaf.var, partition, False)),
    )
    return Case(query, table.rows, table.options, table.schema)


# --- Fixed patterns ---------------------------------------------------------------------------------------


@st.composite
def fixed_patterns(draw: Any, names: Any, leaves: int, absent: Absents, depth: int = 3) -> s.Pattern:
    """Draw a pattern of single events: SEQ, AND and OR, nested, with NOT in a SEQ."""
    if leaves < 2 or depth == 0:
        leaf = s.Single(draw(among(TYPES)), next(names), draw(integers(0, 5)) == 0)
        return draw(_sequence([leaf], absent)) if draw(integers(0, 7)) == 0 else leaf
    shape = draw(among(("seq", "seq", "and", "and", "or")))
    number = draw(st.integers(2, min(leaves, 3)))
    shares = [1 + leaves // number - 1] * number
    parts = [draw(fixed_patterns(names, max(1, share), absent, depth - 1)) for share in shares]
    if shape == "or":
        return s.Or(draw(_sharing(parts[:2])) if len(parts) == 2 else tuple(parts))
    if shape == "and":
        return s.And(tuple(parts))
    return draw(_sequence(parts, absent))


@st.composite
def across_three(draw: Any, names: Sequence[str], clock: Clock) -> s.Condition:
    """Draw a condition between two or three variables: arithmetic, ABS, OR, or a comparison."""
    chosen = draw(st.lists(st.sampled_from(names), min_size=2, max_size=3, unique=True))
    attr = draw(among("xxyd"))
    values: list[s.Expression] = [s.Attribute(name, attr) for name in chosen]
    op = draw(among(COMPARATORS))
    shape = draw(integers(0, 4))
    if len(values) == 3:
        total = s.Arithmetic(draw(among("+-*")), values[0], values[1])
        if shape < 3:
            return s.Comparison(op, total, values[2])
        other = s.Comparison(draw(among(COMPARATORS)), values[1], values[2])
        return any_of(s.Comparison(op, values[0], values[1]), other)
    difference = s.Arithmetic("-", values[0], values[1])
    if shape == 0:
        return s.Comparison(op, s.Call("ABS", (difference,)), draw(NUMBERS))
    if shape == 1:
        return any_of(s.Comparison(op, *values), draw(simple(attribute_of(chosen[0]), clock)))
    return s.Comparison(op, *values)


@st.composite
def fixed_case(draw: Any, *, most: int = 7, most_leaves: int = 4, table: Table | None = None) -> Case:
    """Draw a query over a pattern of single events, with conditions of any kind, NOT's variables too, and a table."""
    absent = Absents(draw(among((4, 9, 9))))
    pattern = not_empty(draw(fixed_patterns(iter("abcdefgh"), draw(st.integers(2, most_leaves)), absent)))
    table = table or draw(tables(types=TYPED, most=most))
    leaves = [node for node in s.walk(pattern) if isinstance(node, s.Single)]
    negated = {leaf.var for one in s.absent_patterns(pattern) for leaf in s.leaves(one)}
    names = sorted({leaf.var for leaf in leaves} - negated)
    where: list[s.Condition] = []
    for _ in range(draw(among((0, 1, 1, 2, 3)))):
        if len(names) > 1 and draw(integers(0, 2)):
            where.append(draw(across_three(names, table.clock)))
        elif negated and draw(integers(0, 2)):
            left, right = draw(st.sampled_from(sorted(negated))), draw(st.sampled_from(names))
            where.append(draw(across_two(left, right, set(), table.clock)))
        else:
            where += draw(general_conditions(pattern, table.clock))
    partition = ("g",) if draw(integers(0, 4)) == 0 else ()
    if partition:
        where.append(s.PartitionClause((s.Name("g"),)))
    query = s.QuerySyntax(
        pattern=pattern,
        where=tuple(where),
        having=draw(havings()),
        report=draw(st.sampled_from([s.Report.ANY, *s.Report])),
        within=draw(one_of(NONE, withins(table.clock), withins(table.clock))),
        **draw(outputs(draw(st.sampled_from(names)), partition, False)),
    )
    return Case(query, table.rows, table.options, table.schema)


# --- Aggregates in conditions -----------------------------------------------------------------------------


@st.composite
def so_far(draw: Any, var: str, before: Sequence[s.Single | s.Kleene] = ()) -> s.Condition:
    """Draw a condition on an event of a Kleene variable and those so far; `before` are leaves that come before it."""
    inclusive = draw(EITHER)
    shape = draw(integers(0, 7))
    own = s.Attribute(var, draw(among("xyd")))
    op = draw(among(COMPARATORS))
    if shape == 0:
        found: s.Condition = s.Comparison(op, s.Prefix("COUNT", var, None, inclusive), s.Integer(draw(integers(1, 3))))
    elif shape <= 2:
        attr, of = draw(among(("kk", "xx", "xy", "kk", "yx", "dx")))
        others = [s.String("a") if attr == "k" else s.Integer(1)] if draw(integers(0, 3)) == 0 else []
        found = s.Membership(s.Attribute(var, attr), (s.Prefix("", var, of, inclusive), *others))
        found = s.Negation(found) if draw(integers(0, 3)) else found
    else:
        function = draw(among(("SUM", "AVG", "MIN", "MAX")))
        number = s.Prefix(function, var, draw(among("xyd")), inclusive)
        other: s.Expression = own
        if before and draw(EITHER):
            other = draw(of_whole(draw(st.sampled_from(before))))
        elif shape == 3:
            other = s.Arithmetic(draw(among("+-*")), own, draw(NUMBERS))
        elif shape == 4:
            other = s.Attribute(var, "x", Which.FIRST)
        elif shape == 5:
            other = s.Prefix("COUNT", var, None, draw(EITHER))
        left, right = (other, number) if draw(EITHER) else (number, other)
        found = s.Comparison(op, left, right)
    more = draw(integers(0, 5))
    if more == 0:
        return s.Negation(found)
    return any_of(found, s.Comparison("=", own, s.Integer(1))) if more == 1 else found


@st.composite
def of_whole(draw: Any, leaf: s.Single | s.Kleene) -> s.Expression:
    """Draw a number over all events of a variable."""
    function = draw(among(("COUNT", "SUM", "AVG", "MIN", "MAX")))
    if function == "COUNT":
        return s.Aggregate("COUNT", s.VariableReference(leaf.var))
    return s.Aggregate(function, s.Attribute(leaf.var, draw(among("xyd"))))


@st.composite
def whole(draw: Any, leaves: Sequence[s.Single | s.Kleene]) -> s.Condition:
    """Draw a condition on all events of a variable, alone or beside others."""
    number = draw(of_whole(draw(st.sampled_from(leaves))))
    beside = draw(st.sampled_from(leaves))
    other = draw(
        st.one_of(
            NUMBERS,
            of_whole(beside),
            among("xyd").map(lambda attr: s.Attribute(beside.var, attr)),
            st.builds(s.Arithmetic, among("+-"), of_whole(beside), NUMBERS),
        )
    )
    found = s.Comparison(draw(among(COMPARATORS)), number, other)
    return s.Negation(found) if draw(integers(0, 5)) == 0 else found


@st.composite
def trend_conditions(draw: Any, leaves: Sequence[s.Single | s.Kleene]) -> tuple[s.Condition, ...]:
    """Draw the conjuncts of a HAVING over anything that one trend has."""

    def number() -> s.Expression:
        leaf = draw(st.sampled_from(leaves))
        values = [s.Length(), draw(of_whole(leaf)), draw(of_whole(leaf))]
        which = st.sampled_from([Which.FIRST, Which.LAST]) if isinstance(leaf, s.Kleene) else st.just(Which.EACH)
        values.append(s.Attribute(leaf.var, draw(among("xyd")), draw(which)))
        if isinstance(leaf, s.Kleene):
            values.append(s.Attribute(leaf.var, "x", Which.NTH, draw(integers(1, 3))))
        return draw(st.sampled_from(values))

    def condition() -> s.Condition:
        left, right = number(), draw(st.one_of(NUMBERS, st.builds(number)))
        if draw(integers(0, 3)) == 0:
            left = s.Arithmetic(draw(among("+-*/")), left, number())
        found = s.Comparison(draw(among(COMPARATORS)), left, right)
        return s.Negation(found) if draw(integers(0, 4)) == 0 else found

    first = condition()
    return (any_of(first, condition()),) if draw(integers(0, 2)) == 0 else (first,)


@st.composite
def running_case(draw: Any, *, most: int = 7, general: bool = False) -> Case:
    """Draw a query with conditions on events so far and on whole variables, and with HAVING.

    The pattern is one Kleene variable or a SEQ of few; with `general` any, whose conditions are on whole variables.
    """
    if general:
        pattern = draw(patterns(3, 5))
    else:
        kinds = [s.Kleene, s.Kleene, s.Single]
        parts = [draw(st.sampled_from(kinds))(draw(among(TYPES)), v) for v in "ab"[: draw(integers(1, 2))]]
        pattern = parts[0] if len(parts) == 1 else s.Seq(tuple(parts))
    table = draw(tables(types=[*TYPES * 3], most=most))
    negated = {id(leaf) for one in s.absent_patterns(pattern) for leaf in s.leaves(one)}
    leaves = [n for n in s.walk(pattern) if isinstance(n, (s.Single, s.Kleene)) and id(n) not in negated]
    where: list[s.Condition] = draw(general_conditions(pattern, table.clock)) if draw(EITHER) else []
    for i, leaf in enumerate(leaves):
        if isinstance(leaf, s.Kleene) and not general and draw(EITHER):
            where.append(draw(so_far(leaf.var, leaves[:i])))
    if draw(EITHER):
        where.append(draw(whole(leaves)))
    partition = ("g",) if draw(integers(0, 4)) == 0 else ()
    if partition:
        where.append(s.PartitionClause((s.Name("g"),)))
    leaf = draw(st.sampled_from(leaves))
    having = draw(st.one_of(st.just(()), havings(), trend_conditions(leaves), trend_conditions(leaves)))
    query = s.QuerySyntax(
        pattern=pattern,
        where=tuple(where),
        having=having,
        select=draw(among((s.Select.ANY, *s.Select))),
        report=draw(among(tuple(s.Report))),
        within=draw(_perhaps_withins(table.clock)),
        **draw(outputs(leaf.var, partition, isinstance(leaf, s.Kleene))),
    )
    return Case(query, table.rows, table.options, table.schema)


ANY_CASE = st.one_of(case(most=8), sequence_case(most=7), general_case(most=6, clauses=True))
RANKED_CASE = general_case(most=7) | chain_case()
LENGTHWISE = st.sampled_from([(), (s.Sort(s.Length(), True),), (s.Sort(s.Length()),)])


@st.composite
def skipping_case(draw: Any) -> Case:
    """Draw a query of one Kleene variable, of a fixed sequence or of any pattern, with AFTER MATCH and ORDER BY."""
    drawn = draw(ANY_CASE)
    always = [leaf for leaf in _always_bound(drawn.query.pattern) if not isinstance(leaf, s.Absent)]
    skip = draw(st.sampled_from(list(s.Skip) if always else [s.Skip.PAST_LAST, s.Skip.TO_NEXT]))
    named = skip in (s.Skip.TO_FIRST, s.Skip.TO_LAST)
    after = s.AfterMatch(skip, draw(st.sampled_from(always)).var if named else None)
    keys = [orders(leaf.var, isinstance(leaf, s.Kleene)) for leaf in always[:1]]
    return replace(drawn, query=replace(drawn.query, after_match=after, order_by=draw(one_of(LENGTHWISE, *keys))))


@st.composite
def best_case(draw: Any) -> Case:
    """Draw a query of any pattern, or of a chain, with ORDER BY and LIMIT."""
    drawn = draw(RANKED_CASE)
    always = [leaf for leaf in _always_bound(drawn.query.pattern) if not isinstance(leaf, s.Absent)]
    keys = [some_order(leaf.var, isinstance(leaf, s.Kleene)) for leaf in always[:2]]
    order = draw(one_of(among(((s.Sort(s.Length(), True),), (s.Sort(s.Length()),))), *keys))
    limit, within = draw(integers(1, 4)), drawn.query.within
    per_window = within is not None and draw(EITHER)
    query = replace(drawn.query, order_by=order, limit=limit, offset=draw(integers(0, 1)), per_window=per_window)
    return replace(drawn, query=query)


def _always_bound(pattern: s.Node) -> list[Any]:
    """Return the variables that every match binds."""
    if isinstance(pattern, s.Single | s.Kleene):
        return [] if s.may_be_empty(pattern) else [pattern]
    if isinstance(pattern, s.Seq | s.And | s.PolicyStep):
        return [leaf for child in s.children(pattern) for leaf in _always_bound(child)]
    return []
