"""Binds RETURN, AGGREGATE and ORDER BY, and names the columns of the result."""

from __future__ import annotations

from dataclasses import replace

from trellis.errors import nearest
from trellis.language import syntax as s
from trellis.language.bound import (
    COUNTING,
    Column,
    Constant,
    NamedOutput,
    Ordering,
    Output,
    OutputColumn,
    OutputKind,
    Value,
    Variable,
)
from trellis.language.printer import value_text
from trellis.language.schema import DOUBLE, INTEGER, UNKNOWN, Kind, Schema, Type, decimal, moment_type
from trellis.language.scope import Scope
from trellis.language.values import ONE_VALUE, aggregated, bind_column, bind_value, comparable


def bind_output(e: s.Expression, scope: Scope) -> Output:
    """Return an expression about one trend: a variable, an attribute, LENGTH, an aggregate, arithmetic on these."""
    match e:
        case s.VariableReference(var=var):
            variable = _bindable(scope.variable(var, e), e, scope)
            return Output(OutputKind.IDS, id_type(scope.schema), variable.kleene, variable=var)
        case s.Attribute():
            return _attribute(e, scope)
        case s.Length():
            return Output(OutputKind.LENGTH, INTEGER)
        case s.Aggregate(function=function, argument=s.Attribute() as argument):
            return _aggregate(function, argument, scope)
        case s.Aggregate(function="COUNT", argument=s.VariableReference() as argument):
            return _count(argument, scope)
        case s.Aggregate(function="COUNT") | s.Aggregate(argument=s.Length()):
            what = f"`{scope.source(e)}` speaks of all trends; RETURN and ORDER BY of one"
            scope.fail(what, e, "Use AGGREGATE, or LENGTH for the number of events.")
        case s.Aggregate(function=function):
            what = f"{function} of one trend takes an attribute such as `v.price`"
            scope.fail(what, e, f"AGGREGATE takes `{scope.source(e)}`, over all trends.")
        case s.Negative(operand=s.Integer() | s.Real()):
            return _constant(e, scope)
        case s.Case() | s.Cast():
            return _value_of_trend(e, scope)
        case s.Call(function=function) if function not in ("ABS", "COALESCE"):
            return _value_of_trend(e, scope)
        case s.Arithmetic() | s.Negative() | s.Call():
            return _expression(e, scope)
        case s.Parameter():
            scope.fail("parameters stand in conditions", e)
        case _:
            return _constant(e, scope)


def _constant(e: s.Expression, scope: Scope, beside: Type | None = None) -> Output:
    value = bind_value(e, scope, beside)
    assert isinstance(value, Constant)
    if value.type.kind is Kind.DURATION:
        scope.fail("a duration cannot be a result", e, "Write it as a number.")
    return Output(OutputKind.CONSTANT, value.type, constant=value)


def _bindable(variable: Variable, node: s.Node, scope: Scope) -> Variable:
    if variable.absent:
        scope.fail(f"`{variable.name}` is declared by NOT and bound to no event", node)
    return variable


def _attribute(e: s.Attribute, scope: Scope) -> Output:
    variable = _bindable(scope.variable(e.var, e), e, scope)
    column = bind_column(e, scope)
    if column.type.kind is Kind.OTHER:
        what = f"`{scope.source(e)}` is {column.type.described()}, which a result cannot hold"
        scope.fail(what, e, f"Return `{e.var}`, the ids of its events, and look it up by them.")
    several = variable.kleene and column.which is s.Which.EACH
    return Output(OutputKind.ATTRIBUTE, column.type, several, column=column, variable=e.var)


def _aggregate(function: str, argument: s.Attribute, scope: Scope) -> Output:
    variable = _bindable(scope.variable(argument.var, argument), argument, scope)
    name, type_ = aggregated(function, variable, argument.attr, argument, scope)
    result = {"SUM": type_, "AVG": DOUBLE}.get(function, type_)
    column = Column(argument.var, name, s.Which.EACH, None, type_)
    return Output(OutputKind.AGGREGATE, result, function=function, column=column, variable=argument.var)


def _count(argument: s.VariableReference, scope: Scope) -> Output:
    """Return the number of a variable's events, or of a group's iterations."""
    if argument.var not in scope.labels:
        _bindable(scope.variable(argument.var, argument), argument, scope)
    return Output(OutputKind.AGGREGATE, INTEGER, function="COUNT", variable=argument.var)


def _expression(e: s.Arithmetic | s.Negative | s.Call, scope: Scope) -> Output:
    function, operands = _parts(e)
    arguments = tuple(bind_output(x, scope) for x in operands)
    beside = next(
        (a.type for a in arguments if a.type.kind is Kind.DECIMAL and a.kind is not OutputKind.CONSTANT), None
    )
    if beside is not None:
        arguments = tuple(
            _constant(x, scope, beside) if a.kind is OutputKind.CONSTANT else a
            for x, a in zip(operands, arguments, strict=True)
        )
    for operand, argument in zip(operands, arguments, strict=True):
        if argument.list:
            what = f"`{scope.source(operand)}` is an array, one value an event"
            scope.fail(what, operand, ONE_VALUE)
        if function == "coalesce":
            _check_coalesced(arguments[0].type, argument.type, operand, scope)
        elif not (argument.type.numeric or argument.type.kind is Kind.UNKNOWN):
            what = f"`{scope.source(operand)}` is {argument.type.described()}; arithmetic takes numbers here"
            scope.fail(what, operand)
    return Output(OutputKind.EXPRESSION, _result(function, arguments), function=function, arguments=arguments)


def _value_of_trend(e: s.Call | s.Case | s.Cast, scope: Scope) -> Output:
    """Return a function of values of one trend, which is bound like one of events: they are its columns."""
    arguments: list[Output] = []

    def leaf(node: s.Expression) -> Column | None:
        if not isinstance(node, s.VariableReference | s.Attribute | s.Length | s.Aggregate):
            return None
        output = bind_output(node, scope)
        if output.list:
            scope.fail(f"`{scope.source(node)}` is an array, one value an event", node, ONE_VALUE)
        arguments.append(output)
        return Column("", f"_{len(arguments) - 1}", s.Which.EACH, None, output.type)

    value = bind_value(e, replace(scope, values={}, leaf=leaf))
    if value.type.kind is Kind.DURATION:
        scope.fail("a duration cannot be a result", e, "Write it as a number.")
    return Output(OutputKind.EXPRESSION, value.type, function="value", arguments=tuple(arguments), value=value)


def _parts(e: s.Arithmetic | s.Negative | s.Call) -> tuple[str, tuple[s.Expression, ...]]:
    if isinstance(e, s.Arithmetic):
        return e.op, (e.left, e.right)
    if isinstance(e, s.Negative):
        return "negative", (e.operand,)
    return e.function.lower(), e.arguments


def _check_coalesced(first: Type, other: Type, node: s.Node, scope: Scope) -> None:
    if not comparable(first, other):
        what = f"COALESCE mixes {first.described()} and {other.described()}"
        scope.fail(what, node, "All its values are of one type.")


def _result(function: str, arguments: tuple[Output, ...]) -> Type:
    types = [a.type for a in arguments]
    if any(t.kind is Kind.UNKNOWN for t in types):
        return UNKNOWN
    if function == "/" or any(t.kind is Kind.DOUBLE for t in types):
        return DOUBLE
    if any(t.kind is Kind.DECIMAL for t in types):
        scales = [t.scale for t in types]
        return decimal(sum(scales) if function == "*" else max(scales))
    return moment_type(*types) if types[0].temporal else types[0]


def bind_aggregate(item: s.Item, scope: Scope, per_event: s.PerEvent | None = None) -> Output:
    """Return an item of AGGREGATE, which speaks of all trends of a window and partition, or of those with an event."""
    e = item.expression
    if per_event is not None and per_event.var is not None:
        _bindable(scope.variable(per_event.var, per_event), per_event, scope)
    if isinstance(e, s.OfEvent):
        if per_event is None:
            hint = f"Write `AGGREGATE {e.function} PER EVENT`."
            scope.fail(f"{e.function} is {s.OF_EVENT[e.function]}, and no event is meant", e, hint)
        return Output(OutputKind.AGGREGATE, DOUBLE if e.function == "SHARE" else INTEGER, function=e.function)
    if not isinstance(e, s.Aggregate):
        hint = "Write `COUNT(*)`, `SUM(v.attribute)`, or use RETURN for single trends."
        scope.fail("AGGREGATE takes COUNT, SUM, MIN, MAX and AVG", e, hint)
    if e.argument is None:
        return Output(OutputKind.AGGREGATE, INTEGER, function="COUNT")
    if e.function == "COUNT" and isinstance(e.argument, s.VariableReference):
        return _count(e.argument, scope)
    if isinstance(e.argument, s.Length):
        return Output(OutputKind.AGGREGATE, DOUBLE if e.function == "AVG" else INTEGER, function=e.function)
    if isinstance(e.argument, s.Attribute) and e.argument.which is s.Which.EACH:
        return _aggregate(e.function, e.argument, scope)
    return _aggregate_of_values(e.function, e.argument, scope)


def _aggregate_of_values(function: str, argument: s.Expression, scope: Scope) -> Output:
    """Return an aggregate of an expression: over the events of one variable, or over trends."""
    leaves = [n for n in s.walk(argument) if isinstance(n, s.Attribute | s.Length | s.Aggregate | s.VariableReference)]
    names = {n.var for n in leaves if isinstance(n, s.Attribute) and n.which is s.Which.EACH}
    of_events = len(names) == 1 and all(isinstance(n, s.Attribute) and n.which is s.Which.EACH for n in leaves)
    if of_events:
        variable = _bindable(scope.variable(next(iter(names)), argument), argument, scope)
        value = bind_value(argument, scope)
        _check_aggregated(function, value.type, argument, scope)
        column = Column(variable.name, f"= {value_text(argument)}", s.Which.EACH, None, value.type)
        result = DOUBLE if function == "AVG" else value.type
        return Output(
            OutputKind.AGGREGATE, result, function=function, column=column, variable=variable.name, value=value
        )  # fmt: skip
    of_trend = bind_output(argument, scope)
    if of_trend.list:
        scope.fail(f"`{scope.source(argument)}` is an array, one value an event", argument, ONE_VALUE)
    _check_aggregated(function, of_trend.type, argument, scope)
    result = DOUBLE if function == "AVG" else of_trend.type
    return Output(OutputKind.AGGREGATE, result, function=function, arguments=(of_trend,))


def _check_aggregated(function: str, type_: Type, node: s.Node, scope: Scope) -> None:
    if function in ("SUM", "AVG") and not (type_.numeric or type_.kind is Kind.UNKNOWN):
        scope.fail(f"{function} takes a number; `{scope.source(node)}` is {type_.described()}", node)
    if type_.kind in (Kind.OTHER, Kind.DURATION):
        scope.fail(f"`{scope.source(node)}` is {type_.described()}, which {function} cannot use", node)


def name_outputs(
    items: tuple[s.Item, ...], outputs: list[Output], taken: list[str], scope: Scope, texts: bool = False
) -> tuple[NamedOutput, ...]:
    """Give every output its column name, and refuse a name used twice; `texts` where exact ones have a text beside."""
    named, seen = [], set(taken)
    for item, output in zip(items, outputs, strict=True):
        name = item.alias or _default_name(item.expression)
        if name is None:
            scope.fail(f"`{scope.source(item.expression)}` needs a name", item, "Add `AS name`.")
        for column in [name, f"{name}_text"] if texts and exact(output) else [name]:
            if column in taken:
                scope.fail(f"the result has a column `{column}` already", item, "Give it another name with AS.")
            if column in seen:
                scope.fail(f"two columns are called `{column}`", item, "Give one of them another name with AS.")
            seen.add(column)
        named.append(NamedOutput(name, output))
    return tuple(named)


def _default_name(e: s.Expression) -> str | None:
    match e:
        case s.VariableReference(var=var):
            return var
        case s.Attribute(var=var, attr=attr, which=s.Which.EACH):
            return f"{var}_{attr}"
        case s.Attribute(var=var, attr=attr, which=s.Which.FIRST | s.Which.LAST as which):
            return f"{which}_{var}_{attr}"
        case s.Length():
            return "length"
        case s.OfEvent(function=function):
            return function.lower()
        case s.Aggregate(function=function, argument=None):
            return function.lower()
        case s.Aggregate(function=function, argument=s.VariableReference(var=var)):
            return f"{function.lower()}_{var}"
        case s.Aggregate(function=function, argument=s.Length()):
            return f"{function.lower()}_length"
        case s.Aggregate(function=function, argument=s.Attribute(var=var, attr=attr, which=s.Which.EACH)):
            return f"{function.lower()}_{var}_{attr}"
    return None


def bind_order(keys: tuple[s.Sort, ...], scope: Scope) -> tuple[Ordering, ...]:
    """Return the keys of ORDER BY; each must be one value a trend."""
    bound = []
    for key in keys:
        output = bind_output(key.expression, scope)
        if output.list:
            scope.fail(f"`{scope.source(key.expression)}` is an array and cannot order trends", key, ONE_VALUE)
        bound.append(Ordering(output, key.descending))
    return tuple(bound)


def bind_limit_per(items: tuple[s.Expression, ...], scope: Scope) -> tuple[Output, ...]:
    """Return the items of LIMIT PER; each must be one value a trend."""
    for item in items:
        named = item.var if isinstance(item, s.VariableReference) else ""
        if named not in scope.variables and nearest(named.upper(), ["WINDOW"]):
            scope.fail(f"`{named}` is neither WINDOW nor a value of a trend", item, "Did you mean `WINDOW`?")
    bound = [bind_output(item, scope) for item in items]
    for item, output in zip(items, bound, strict=True):
        if output.list:
            scope.fail(f"`{scope.source(item)}` is an array and cannot tell trends apart", item, ONE_VALUE)
    return tuple(bound)


def id_type(schema: Schema | None) -> Type:
    """Return the type of event ids: the id column's, or whole numbers for positions."""
    if schema is None:
        return UNKNOWN
    return schema.tables[0].columns[schema.event_id] if schema.event_id else INTEGER


def type_text(type_: Type, is_list: bool = False) -> str:
    """Return a type as the output's readers see it."""
    text = {Kind.INTEGER: "int64", Kind.DECIMAL: f"decimal(38,{type_.scale})"}.get(type_.kind, str(type_.kind))
    return f"array<{text}>" if is_list else text


def return_type(output: Output) -> str:
    """Return the type of an item of RETURN; sums of integers have room for 38 digits."""
    summed = output.kind is OutputKind.AGGREGATE and output.function == "SUM" and output.type.kind is Kind.INTEGER
    return "decimal(38,0)" if summed else type_text(output.type, output.list)


def exact(output: Output) -> bool:
    """Whether an aggregate is a whole or decimal number of any size, which has its digits as text beside it."""
    sums = output.function == "SUM" and output.type.kind in (Kind.INTEGER, Kind.DECIMAL, Kind.UNKNOWN)
    return output.function in COUNTING or sums


def aggregate_columns(outputs: tuple[NamedOutput, ...]) -> list[OutputColumn]:
    """Return the columns of AGGREGATE; counts and exact sums have a text beside them."""
    columns = []
    for name, output in ((named.name, named.output) for named in outputs):
        if exact(output):
            columns.append(OutputColumn(name, f"decimal(38,{output.type.scale})"))
            columns.append(OutputColumn(f"{name}_text", "string"))
        else:
            columns.append(OutputColumn(name, type_text(output.type)))
    return columns


__all__ = [
    "Value", "aggregate_columns", "bind_aggregate", "bind_limit_per", "bind_order", "bind_output",
    "id_type", "name_outputs", "type_text",
]  # fmt: skip
