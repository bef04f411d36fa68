"""AGGREGATE and GROUP BY: numbers over all results of a window and partition."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from trellis.language import syntax
from trellis.language.syntax import Which

from .conditions import column_kind
from .events import Event, OracleError, order_key, same_key
from .exact import average
from .output import (
    Setting,
    Trend,
    address,
    aggregate,
    aggregate_kind,
    as_date,
    compile_item,
    counted,
    item_name,
    shown,
    unique,
)
from .values import EXACT, Typed, compile_expression
from .windows import Window

LARGEST = 10**38  # decimal(38,0) and the digits of a decimal(38,s) end below this


def aggregate_rows(trends: Sequence[Trend], setting: Setting) -> list[dict[str, Any]]:
    """Give one row a window and partition, or a window and value of the GROUP BY attributes, or an event of these."""
    if setting.query.per_event is not None:
        return _rows_per_event(trends, setting)
    asked = {name.value for name in setting.query.group_by}
    names = tuple(name for name in setting.partition if not asked or name in asked)
    groups: dict[tuple, tuple[Window | None, tuple, list[Trend]]] = {}
    for trend in trends:
        values = tuple(trend.partition[setting.partition.index(name)] for name in names)
        key = (trend.window, tuple(same_key(value) for value in values))
        groups.setdefault(key, (trend.window, values, []))[2].append(trend)
    within = setting.query.within
    if not groups and not setting.partition and (within is None or within.slide is None):
        groups[()] = (None, (), [])
    ordered = sorted(groups.values(), key=lambda group: (group[0] or (), order_key(group[1])))
    return [_row(window, names, values, members, setting) for window, values, members in ordered]


def _rows_per_event(trends: Sequence[Trend], setting: Setting) -> list[dict[str, Any]]:
    """Give one row for each event that is in a result, bound to the variable that is named, if one is."""
    var = setting.query.per_event.var
    groups: dict[tuple, list[Trend]] = {}
    for trend in trends:
        groups.setdefault((trend.window or (), order_key(trend.partition)), []).append(trend)
    rows = []
    for _, members in sorted(groups.items(), key=lambda group: group[0]):
        holding: dict[Any, tuple[Event, list[Trend]]] = {}
        for trend in members:
            for event, name in zip(trend.members, trend.variables, strict=True):
                if var is None or name == var:
                    holding.setdefault(event.id, (event, []))[1].append(trend)
        for event, own in sorted(holding.values(), key=lambda pair: pair[0].order):
            columns = address(own[0].window, setting.partition, own[0].partition, setting)
            columns.append(("event", event.id))
            for item in setting.query.aggregates:
                match item.expression:
                    case syntax.OfEvent("SHARE"):
                        columns.append((item_name(item), len(own) / len(members)))
                    case syntax.OfEvent("BEGINS"):
                        columns += _with_text(item_name(item), sum(t.members[0] is event for t in own), 0)
                    case syntax.OfEvent("ENDS"):
                        columns += _with_text(item_name(item), sum(t.members[-1] is event for t in own), 0)
                    case _:
                        columns += _columns(item, own, setting)
            rows.append(unique(columns))
    return rows


def _row(
    window: Window | None, names: Sequence[str], values: Sequence[Any], trends: list[Trend], setting: Setting
) -> dict[str, Any]:
    columns = address(window, names, values, setting)
    for item in setting.query.aggregates:
        columns += _columns(item, trends, setting)
    return unique(columns)


def _columns(item: syntax.Item, trends: list[Trend], setting: Setting) -> list[tuple[str, Any]]:
    """Give the column of an item, and beside an exact number its digits."""
    name = item_name(item)
    match item.expression:
        case syntax.Aggregate("COUNT", None):
            return _with_text(name, len(trends), 0)
        case syntax.Aggregate("COUNT", syntax.VariableReference(var)):
            return _with_text(name, sum(counted(trend, var, setting.query.pattern) for trend in trends), 0)
        case syntax.Aggregate("MIN" | "MAX" as function, syntax.Length()):
            return [(name, aggregate(function, [trend.length for trend in trends]))]
        case syntax.Aggregate("AVG", syntax.Length()):
            return [(name, average([trend.length for trend in trends]))]
        case syntax.Aggregate("SUM", syntax.Length()):
            return _with_text(name, aggregate("SUM", [trend.length for trend in trends]), 0)
        case syntax.Aggregate(function, syntax.Attribute(which=Which.EACH) as argument) if function != "COUNT":
            return _over_attribute(name, function, argument, trends, setting)
        case syntax.Aggregate(function, argument) if function != "COUNT" and argument is not None:
            return _over_values(name, function, argument, trends, setting)
    raise OracleError(f"{item.expression!r} is not an aggregate over trends")


def _over_attribute(
    name: str, function: str, argument: syntax.Attribute, trends: list[Trend], setting: Setting
) -> list[tuple[str, Any]]:
    events: list[Event] = [event for trend in trends for event in trend.bound(argument.var)]
    kind = column_kind(argument.var, argument.attr, setting.types, setting.data)
    kind = aggregate_kind(function, kind)
    value = shown(aggregate(function, [event.values.get(argument.attr) for event in events]), kind)
    if function == "SUM" and kind in ("int", "decimal"):
        scales = [columns.get(argument.attr, 0) for columns in setting.data.scales.values()]
        return _with_text(name, value, max(scales) if kind == "decimal" else 0)
    return [(name, as_date(value, [event.raw.get(argument.attr) for event in events]))]


def _over_values(
    name: str, function: str, argument: syntax.Expression, trends: list[Trend], setting: Setting
) -> list[tuple[str, Any]]:
    """Aggregate an expression: over the events of one variable where it names nothing else, else over the trends."""
    leaves = [n for n in syntax.walk(argument) if isinstance(n, syntax.Attribute | syntax.Length | syntax.Aggregate)]
    names = {n.var for n in leaves if isinstance(n, syntax.Attribute)}
    if len(names) == 1 and all(isinstance(n, syntax.Attribute) and n.which is Which.EACH for n in leaves):
        typed = compile_expression(argument, lambda node: _of_event(node, setting), setting.params)
        (var,) = names
        values = [typed.evaluate(event) for trend in trends for event in trend.bound(var)]
    else:
        typed = compile_item(argument, setting)
        values = [typed.evaluate(trend) for trend in trends]
    kind = aggregate_kind(function, "float" if typed.kind == "point" else typed.kind)
    value = shown(aggregate(function, values), kind)
    if function == "SUM" and kind == "int":
        return _with_text(name, value, 0)
    if function == "SUM" and kind == "decimal":
        raise OracleError("the scale of a computed decimal is not the oracle's to know")
    return [(name, value)]


def _of_event(node: syntax.Node, setting: Setting) -> Typed | None:
    if not isinstance(node, syntax.Attribute):
        return None
    kind = column_kind(node.var, node.attr, setting.types, setting.data)
    return Typed(kind, lambda event: event.values.get(node.attr))


def _with_text(name: str, value: int | Decimal | None, scale: int) -> list[tuple[str, Any]]:
    """Give the number (NULL where it needs more than 38 digits) and its digits."""
    if value is None:
        return [(name, None), (f"{name}_text", None)]
    digits = EXACT.quantize(Decimal(value), Decimal(1).scaleb(-scale))
    fits = abs(digits.scaleb(scale, EXACT)) < LARGEST
    return [(name, value if fits else None), (f"{name}_text", format(digits, "f"))]
