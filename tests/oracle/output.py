"""Output: the columns of a result, RETURN, ORDER BY, LIMIT and OFFSET."""

from __future__ import annotations

import datetime as dt
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from trellis.language import syntax
from trellis.language.syntax import Which

from .conditions import choose, column_kind, reference_of
from .events import MICROSECOND, Event, Input, OracleError, from_micros, order_key
from .exact import average, largest, smallest, total
from .readings import Cut, Pairs
from .structure import groups, kleene_variables, labels, leaves, variables
from .values import NUMBERS, Leaf, Typed, compile_expression
from .windows import Window


@dataclass(frozen=True, slots=True)
class Trend:
    """One result, with its address (window, partition, rank)."""

    window: Window | None
    partition: tuple[Any, ...]
    rank: int
    events: tuple[Any, ...]  # event ids
    variables: tuple[str, ...]  # one for each event
    members: tuple[Event, ...]
    cut: Cut = ()  # for each event the numbers of its iterations

    @property
    def pairs(self) -> tuple[tuple[Any, str], ...]:
        """(event id, variable) for each event."""
        return tuple(zip(self.events, self.variables, strict=True))

    @property
    def length(self) -> int:
        """The number of events."""
        return len(self.events)

    def bound(self, var: str) -> tuple[Event, ...]:
        """The events bound to a variable."""
        return tuple(event for event, name in zip(self.members, self.variables, strict=True) if name == var)

    @property
    def iterations(self) -> tuple[str, ...]:
        """The iterations of each event as texts."""
        return tuple(".".join(map(str, numbers)) for numbers in self.cut)


def make_trend(window: Window | None, partition: tuple[Any, ...], rank: int, pairs: Pairs, cut: Cut) -> Trend:
    """Give a match its address."""
    members = tuple(event for event, _ in pairs)
    return Trend(window, partition, rank, tuple(e.id for e in members), tuple(var for _, var in pairs), members, cut)


@dataclass(frozen=True, slots=True)
class Setting:
    """What the clauses need to know of the query and the input."""

    query: syntax.QuerySyntax
    data: Input
    types: Mapping[str, set[str | None]]
    params: Mapping[str, Any]
    partition: tuple[str, ...]


# --- Expressions over one trend ---------------------------------------------------------------------------


def compile_item(node: syntax.Expression, setting: Setting) -> Typed:
    """Make an expression over one trend ready."""
    return compile_expression(node, trend_leaf(setting), setting.params)


def trend_leaf(setting: Setting) -> Leaf:
    """Give what attributes, aggregates and LENGTH mean for one trend."""
    kleene = kleene_variables(setting.query.pattern)

    def leaf(inner: syntax.Node) -> Typed | None:
        match inner:
            case syntax.Length():
                return Typed("int", lambda trend: trend.length)
            case syntax.VariableReference(var):
                return Typed("array" if var in kleene else "id", lambda trend: _ids(trend, var, var in kleene))
            case syntax.Aggregate("COUNT", syntax.VariableReference(var)):
                return Typed("int", lambda trend: counted(trend, var, setting.query.pattern))
            case syntax.Attribute(which=Which.EACH, var=var) if var in kleene:
                return Typed("array", lambda trend: _array(trend, inner))
            case syntax.Attribute():
                kind = column_kind(inner.var, inner.attr, setting.types, setting.data)
                return Typed(kind, lambda trend: _value(trend, inner))
            case syntax.Aggregate(function, syntax.Attribute() as argument):
                kind = column_kind(argument.var, argument.attr, setting.types, setting.data)
                return Typed(
                    aggregate_kind(function, kind),
                    lambda trend: aggregate(function, _values(trend, argument)),
                )
        return None

    return leaf


def counted(trend: Trend, name: str, pattern: syntax.Pattern) -> int:
    """Count the events bound to a variable, or the iterations of the group with a label."""
    if name not in labels(pattern):
        return len(trend.bound(name))
    group = next(one for one in groups(pattern) if one.label == name)
    inside = {leaf.var for leaf in leaves(group)}
    depth = sum(group in syntax.walk(one) for one in groups(pattern))
    numbers = (cut[:depth] for cut, var in zip(trend.cut, trend.variables, strict=True) if var in inside)
    return len(set(numbers))


def _ids(trend: Trend, var: str, many: bool) -> Any:
    ids = [event.id for event in trend.bound(var)]
    if not ids:
        return None
    return ids if many else ids[0]


def _array(trend: Trend, node: syntax.Attribute) -> list[Any] | None:
    return [event.raw.get(node.attr) for event in trend.bound(node.var)] or None


def _value(trend: Trend, node: syntax.Attribute) -> Any:
    event = _named_event(trend, node)
    return None if event is None else event.values.get(node.attr)


def _named_event(trend: Trend, node: syntax.Attribute) -> Event | None:
    events = trend.bound(node.var)
    if not events:
        return None
    reference = reference_of(node)
    return choose(node.var, (reference,), events)[0][reference]


def _values(trend: Trend, node: syntax.Attribute) -> list[Any]:
    return [event.values.get(node.attr) for event in trend.bound(node.var)]


def aggregate(function: str, values: list[Any]) -> Any:
    """Apply SUM, MIN, MAX or AVG to values of conditions (NULL left out); NULL where nothing is left."""
    functions = {"SUM": total, "MIN": smallest, "MAX": largest, "AVG": average}
    if function not in functions:
        raise OracleError(f"{function} has no meaning here")
    return functions[function](values)


def aggregate_kind(function: str, kind: str) -> str:
    """Give the kind of an aggregate over values of a kind."""
    if function in ("SUM", "AVG") and kind not in NUMBERS | {"null"}:
        raise OracleError(f"{function} of a {kind}")
    return "float" if function == "AVG" else kind


def shown(value: Any, kind: str) -> Any:
    """Turn a computed value into what a row holds: datetimes and timedeltas for times and durations."""
    if value is None:
        return None
    if kind == "time":
        return from_micros(value)
    return value * MICROSECOND if kind == "duration" else value


def show_item(node: syntax.Expression, typed: Typed, trend: Trend) -> Any:
    """Evaluate an item for a row: an attribute stands as it is in the input, all else is computed."""
    if isinstance(node, syntax.Attribute) and typed.kind != "array":
        event = _named_event(trend, node)
        return None if event is None else event.raw.get(node.attr)
    value = shown(typed.evaluate(trend), typed.kind)
    match node:
        case syntax.Aggregate("MIN" | "MAX", syntax.Attribute(var, attr)):
            return as_date(value, [event.raw.get(attr) for event in trend.bound(var)])
    return value


def as_date(value: Any, raws: Sequence[Any]) -> Any:
    """Turn midnight back into a date where the column holds dates."""
    dates = any(isinstance(raw, dt.date) and not isinstance(raw, dt.datetime) for raw in raws)
    return value.date() if dates and isinstance(value, dt.datetime) else value


def item_name(item: syntax.Item) -> str:
    """Name a column of RETURN or AGGREGATE."""
    if item.alias is not None:
        return item.alias
    match item.expression:
        case syntax.VariableReference(var):
            return var
        case syntax.Length():
            return "length"
        case syntax.OfEvent(function):
            return function.lower()
        case syntax.Attribute(var, attr, Which.EACH):
            return f"{var}_{attr}"
        case syntax.Attribute(var, attr, Which.FIRST | Which.LAST as which):
            return f"{which.value}_{var}_{attr}"
        case syntax.Aggregate("COUNT", None):
            return "count"
        case syntax.Aggregate(function, syntax.VariableReference(var)):
            return f"{function.lower()}_{var}"
        case syntax.Aggregate(function, syntax.Attribute(var, attr)):
            return f"{function.lower()}_{var}_{attr}"
        case syntax.Aggregate(function, syntax.Length()):
            return f"{function.lower()}_length"
    raise OracleError(f"{item.expression!r} needs a name")


# --- Rows -------------------------------------------------------------------------------------------------


def rows(trends: Sequence[Trend], setting: Setting) -> list[dict[str, Any]]:
    """Give the output rows, after ORDER BY, LIMIT and OFFSET."""
    returned = [(item_name(i), i.expression, compile_item(i.expression, setting)) for i in setting.query.returns]
    return [_row(trend, returned, setting) for trend in limited(trends, setting)]


def _row(trend: Trend, returned: list[tuple[str, syntax.Expression, Typed]], setting: Setting) -> dict[str, Any]:
    first, last = trend.members[0], trend.members[-1]
    columns = [
        *address(trend.window, setting.partition, trend.partition, setting),
        ("rank", trend.rank),
        ("length", trend.length),
        ("start_time", moment(first.time, setting)),
        ("end_time", moment(last.time, setting)),
    ]
    if returned:
        columns += [(name, show_item(node, typed, trend)) for name, node, typed in returned]
    else:
        columns += _members(trend, setting)
    return unique(columns)


def _members(trend: Trend, setting: Setting) -> list[tuple[str, Any]]:
    names = variables(setting.query.pattern)
    kleene = kleene_variables(setting.query.pattern)
    if not kleene:
        return [(name, _ids(trend, name, False)) for name in names]
    columns: list[tuple[str, Any]] = [("events", list(trend.events))]
    columns += [("bindings", list(trend.variables))] if len(names) > 1 else []
    return columns + ([("iterations", list(trend.iterations))] if groups(setting.query.pattern) else [])


def address(
    window: Window | None, names: Sequence[str], values: Sequence[Any], setting: Setting
) -> list[tuple[str, Any]]:
    """Give the columns that say which window and partition a row belongs to."""
    columns = list(zip(names, values, strict=True))
    if window is None:
        return columns
    return [
        ("window_start", moment(window[0], setting)),
        ("window_end", moment(window[1], setting)),
        *columns,
    ]


def moment(time: Any, setting: Setting) -> Any:
    """Show a time: a datetime in UTC, or the number itself."""
    return from_micros(time) if setting.data.time_kind == "time" else time


def unique(columns: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make a row; a name used twice is an error."""
    row = dict(columns)
    if len(row) < len(columns):
        raise OracleError(f"a column name is used twice: {[name for name, _ in columns]}")
    return row


# --- AFTER MATCH ------------------------------------------------------------------------------------------


def skipped(trends: list[Trend], setting: Setting) -> list[Trend]:
    """Keep the trends of a window and partition, given by rank, that AFTER MATCH keeps, in the order of ranks."""
    after = setting.query.after_match
    if after is None:
        return trends
    kept: list[Trend] = []
    for trend in sorted(_sorted(trends, setting), key=lambda one: _moment_key(one.members[0])):
        if not kept or _may_follow(after, kept[-1], _moment_key(trend.members[0])):
            kept.append(trend)
    return [trend for trend in trends if trend in kept]


def _may_follow(after: syntax.AfterMatch, last: Trend, first: tuple) -> bool:
    own = _moment_key(last.members[0])
    if after.skip is syntax.Skip.PAST_LAST:
        return first > _moment_key(last.members[-1])
    if after.skip is syntax.Skip.TO_NEXT:
        return first > own
    bound = last.bound(str(after.var))
    place = _moment_key(bound[0] if after.skip is syntax.Skip.TO_FIRST else bound[-1])
    return first > own if place == own else first >= place


def _moment_key(event: Event) -> tuple:
    return (event.tick, order_key(event.id))


# --- ORDER BY, LIMIT, OFFSET ------------------------------------------------------------------------------


def limited(trends: Sequence[Trend], setting: Setting) -> list[Trend]:
    """Sort and cut; `trends` come in the order (window, partition, rank), which decides ties."""
    query = setting.query
    if query.limit_per:
        return _cut_per(_sorted(trends, setting), setting)
    if not query.per_window:
        return _cut(_sorted(trends, setting), query)
    groups = itertools.groupby(trends, key=lambda trend: (trend.window, order_key(trend.partition)))
    return [trend for _, group in groups for trend in _cut(_sorted(list(group), setting), query)]


def _cut_per(trends: list[Trend], setting: Setting) -> list[Trend]:
    """Cut the trends of each value of the items of LIMIT PER by themselves; all of them stay in their order."""
    query = setting.query
    items = [(node, compile_item(node, setting)) for node in query.limit_per]
    classes: dict[tuple, list[int]] = {}
    for place, trend in enumerate(trends):
        values = tuple(order_key(show_item(node, typed, trend)) for node, typed in items)
        world = (trend.window, order_key(trend.partition)) if query.per_window else ()
        classes.setdefault((world, values), []).append(place)
    kept = {place for places in classes.values() for place in _cut(places, query)}
    kept_trends = [trend for place, trend in enumerate(trends) if place in kept]
    if query.per_window:
        kept_trends.sort(key=lambda trend: (trend.window or (), order_key(trend.partition)))
    return kept_trends


def _cut(trends: list[Trend], query: syntax.QuerySyntax) -> list[Trend]:
    end = None if query.limit is None else query.offset + query.limit
    return trends[query.offset : end]


def _sorted(trends: Sequence[Trend], setting: Setting) -> list[Trend]:
    result = list(trends)
    for sort in reversed(setting.query.order_by):
        typed = compile_item(sort.expression, setting)
        result.sort(key=partial(_sort_key, sort.expression, typed), reverse=sort.descending)
    return result


def _sort_key(node: syntax.Expression, typed: Typed, trend: Trend) -> tuple:
    return order_key(show_item(node, typed, trend))
