"""Types the values and conditions of a query against a schema, and turns them into bound trees."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from functools import reduce

from trellis.errors import did_you_mean
from trellis.language import syntax as s
from trellis.language.bound import AtIteration, Column, Constant, Operation, Value, Variable, columns_of, references_of
from trellis.language.functions import CAST_TYPES, CASTS, MOMENT, MOST_PLACES, SCALARS, fits
from trellis.language.printer import value_text
from trellis.language.result_types import computed_type, merged_type
from trellis.language.schema import (
    BOOLEAN,
    DOUBLE,
    DURATION,
    INTEGER,
    STRING,
    TIMESTAMP,
    Kind,
    Type,
    decimal,
)
from trellis.language.scope import Scope
from trellis.language.times import parse_timestamp

ONE_VALUE = "Use SUM, MIN, MAX, AVG, FIRST or LAST to make it one value."
INT64 = range(-(2**63), 2**63)


# --- Conditions -------------------------------------------------------------------------------------------------


def bind_condition(c: s.Condition, scope: Scope) -> Value:
    """Return a condition as a bound tree of type boolean."""
    match c:
        case s.Comparison(op=op, left=left, right=right):
            return _compared(op, left, right, c, scope)
        case s.Membership(operand=x, items=items):
            listed = [one for item in items for one in _listed(item, x, scope)]
            if not listed:
                return Constant(False, BOOLEAN)
            return _folded("or", [_contained(x, item, c, scope) for item in listed], c, scope)
        case s.RangeTest(operand=x, low=low, high=high):
            bounds = ((">=", low), ("<=", high))
            return _folded("and", [_compared(op, x, bound, c, scope, bound) for op, bound in bounds], c, scope)
        case s.NullTest(operand=x):
            return Operation("is null", (bind_value(x, scope),), source=scope.source(c))
        case s.LikeTest(operand=x, pattern=pattern):
            return _liked(x, pattern, c, scope)
        case s.Truth(operand=x):
            return _truth(x, scope)
        case s.Conjunction(terms=terms):
            return _folded("and", [bind_condition(t, scope) for t in terms], c, scope)
        case s.Disjunction(terms=terms):
            return _folded("or", [bind_condition(t, scope) for t in terms], c, scope)
        case s.Negation(term=term):
            return Operation("not", (bind_condition(term, scope),), source=scope.source(c))
        case s.PartitionClause():
            raise AssertionError("partitions are bound apart")


def _listed(item: s.Expression, operand: s.Expression, scope: Scope) -> tuple[s.Expression, ...]:
    """Return the values that an item of IN stands for: those of a parameter that is a list, or itself."""
    given = scope.parameter(item) if isinstance(item, s.Parameter) else None
    if given is None or not isinstance(given.literal, s.Literals):
        return (item,)
    values: tuple[s.Expression, ...] = given.literal.items
    if given.text is not None and bind_value(operand, scope).type.kind is Kind.STRING:
        texts = (given.text[one.span.start : one.span.end] for one in values)
        values = tuple(v if isinstance(v, s.String) else s.String(t) for v, t in zip(values, texts, strict=True))
    return tuple(replace(one, span=item.span) for one in values)


def _contained(x: s.Expression, item: s.Expression, node: s.Node, scope: Scope) -> Value:
    """Return whether a value is an item of IN, or among the values so far."""
    if not isinstance(item, s.Prefix) or item.function:
        return _compared("=", x, item, node, scope, item)
    values = so_far(item, scope)
    operand = bind_value(x, scope, beside=values.type)
    if not comparable(operand.type, values.type):
        described = f"`{scope.source(x)}`, {operand.type.described()}, with `{scope.source(item)}`"
        scope.fail(f"cannot compare {described}, {values.type.described()}", item)
    if len(references_of(operand)) != 1 or any(c.function for c in columns_of(operand)):
        what = f"`{scope.source(x)}` is not a value of one event, which IN looks for among those so far"
        scope.fail(what, x, f"Write `{item.var}[i].{item.attr} IN ({scope.source(item)})`.")
    earlier = Operation("in list", (operand, values), source=scope.source(node))
    if not item.inclusive:
        return earlier
    own = replace(values, which=s.Which.EACH, function="")
    there = Operation("not", (Operation("is null", (own,)),))
    same = Operation("and", (there, Operation("=", (operand, own), source=scope.source(node))))
    return Operation("or", (earlier, same), source=scope.source(node))


def _folded(function: str, terms: list[Value], node: s.Node, scope: Scope) -> Value:
    if len(terms) == 1:
        return terms[0]
    return Operation(function, tuple(terms), source=scope.source(node))


def _truth(x: s.Expression, scope: Scope) -> Value:
    value = bind_value(x, scope)
    if value.type.kind not in (Kind.BOOLEAN, Kind.UNKNOWN):
        scope.fail(f"`{scope.source(x)}` is {value.type.described()}, not a condition", x, "Compare it with something.")
    return value


def _liked(x: s.Expression, pattern: s.Expression, node: s.Node, scope: Scope) -> Value:
    value, shape = bind_value(x, scope), bind_value(pattern, scope, beside=STRING)
    if value.type.kind not in (Kind.STRING, Kind.UNKNOWN):
        scope.fail(f"LIKE compares strings; `{scope.source(x)}` is {value.type.described()}", x)
    if not isinstance(shape, Constant) or not isinstance(shape.value, str):
        scope.fail("the pattern of LIKE is a constant string", pattern, "Write it as 'Goo%', in single quotes.")
    if not re.fullmatch(r"(?:[^\\]|\\[\\%_])*", shape.value, re.DOTALL):
        scope.fail(
            "a backslash in LIKE stands before `%`, `_` or another one", pattern, "Write it twice to mean itself."
        )
    return Operation("like", (value, shape), source=scope.source(node))


def _compared(
    op: str, left: s.Expression, right: s.Expression, node: s.Node, scope: Scope, place: s.Node | None = None
) -> Value:
    a, b = bind_value(left, scope), bind_value(right, scope)
    a, b = bind_value(left, scope, beside=b.type), bind_value(right, scope, beside=a.type)
    if not comparable(a.type, b.type):
        what = f"cannot compare {_described(left, a, scope)}, with {_described(right, b, scope)}"
        scope.fail(what, place or node, _comparison_hint(a, b))
    return Operation(op, (a, b), source=scope.source(node))


def _described(x: s.Expression, value: Value, scope: Scope) -> str:
    """Return an operand with its type, and with its value where that is a parameter's."""
    given = f" ({scope.parameters[x.name].shown})" if isinstance(x, s.Parameter) else ""
    return f"`{scope.source(x)}`{given}, {value.type.described()}"


def comparable(a: Type, b: Type) -> bool:
    """Whether values of two types can be compared, and stand for each other in COALESCE."""
    if Kind.UNKNOWN in (a.kind, b.kind):
        return Kind.OTHER not in (a.kind, b.kind)
    if (a.numeric and b.numeric) or (a.temporal and b.temporal):
        return True
    return a.kind is b.kind and a.kind is not Kind.OTHER


def _comparison_hint(a: Value, b: Value) -> str | None:
    by_kind = {v.type.kind: v for v in (a, b)}
    number = next((v for v in (a, b) if v.type.numeric), None)
    if number is not None and Kind.DURATION in by_kind:
        literal = isinstance(by_kind[Kind.DURATION], Constant)
        return "Write a number without a unit." if literal else "A duration has a unit, such as `5 min`."
    if number is not None and Kind.STRING in by_kind:
        text = by_kind[Kind.STRING]
        if isinstance(text, Constant):
            said = str(text.value)
            is_number = re.fullmatch(r"\s*-?\d+(\.\d+)?\s*", said) is not None
            return f"Write {said.strip()}, without quotes." if is_number else "Numbers are written without quotes."
        return "Strings are written in single quotes." if isinstance(number, Constant) else None
    if isinstance(number, Constant) and (a.type.temporal or b.type.temporal):
        return "Write TIMESTAMP '2024-01-31 09:30:00'."
    if Kind.BOOLEAN in by_kind and Kind.STRING in by_kind:
        return "Booleans are TRUE and FALSE, without quotes."
    return None


# --- Values -----------------------------------------------------------------------------------------------------


def bind_value(e: s.Expression, scope: Scope, beside: Type | None = None) -> Value:
    """Return a value as a bound tree; `beside` is the type it is compared or computed with, which literals follow.

    As an operand is bound first without and then with the type beside it, values are kept: otherwise the work would
    double with every level of nesting.
    """
    known = scope.values.get((id(e), beside))
    if known is None:
        known = scope.values[id(e), beside] = (e, _bound(e, scope, beside))  # keeps `e`, and so its id
    return known[1]


def _bound(e: s.Expression, scope: Scope, beside: Type | None) -> Value:
    found = None if scope.leaf is None else scope.leaf(e)
    if found is not None:
        return found
    match e:
        case s.Attribute():
            return _column(e, scope)
        case s.Parameter():
            return _given(e, scope, beside)
        case s.Negative(operand=s.Integer(value=number)):
            return _integer(-number, e, scope)
        case s.Negative(operand=s.Real(value=number)):
            return _real(number.copy_negate(), beside)
        case s.Negative(operand=x):
            return _signed("negative", "`-`", x, e, scope, beside)
        case s.Integer(value=number):
            return _integer(number, e, scope)
        case s.Real(value=number):
            return _real(number, beside)
        case s.String(value=text):
            return _string(text, e, scope, beside)
        case s.Boolean(value=truth):
            return Constant(truth, BOOLEAN)
        case s.Timestamp(micros=micros):
            return Constant(micros, TIMESTAMP)
        case s.Duration(micros=micros):
            return Constant(micros, DURATION)
        case s.Arithmetic(op=op, left=left, right=right):
            return _arithmetic(op, left, right, e, scope)
        case s.Call(function="ABS", arguments=(x,)):
            return _signed("abs", "ABS", x, e, scope, beside)
        case s.Call(function="COALESCE", arguments=arguments):
            values, type_ = _of_one_type("COALESCE", arguments, scope, beside)
            return Operation("coalesce", values, type_, scope.source(e))
        case s.Call(function=function, arguments=arguments):
            return _scalar(function, arguments, e, scope)
        case s.Case(tests=tests, values=values, otherwise=otherwise):
            return _case(tests, values, otherwise, e, scope, beside)
        case s.Cast(operand=x, type=name):
            return _cast(x, name, e, scope)
        case s.Prefix():
            return so_far(e, scope)
        case s.Aggregate(function="COUNT", argument=s.VariableReference() as argument):
            return _of_whole("COUNT", argument, e, scope)
        case s.Aggregate(function=function, argument=s.Attribute(which=s.Which.EACH) as argument):
            return _of_whole(function, argument, e, scope)
        case s.Aggregate(function=function):
            what = f"in a condition {function} takes an attribute such as `v.price`"
            scope.fail(what, e, f"AGGREGATE takes `{scope.source(e)}`, over all trends.")
        case s.Length() if scope.trends:
            return Column("", scope.time, s.Which.WHOLE, None, INTEGER, "LENGTH")
        case _:
            scope.fail(f"`{value_text(e)}` cannot stand here", e)


def so_far(e: s.Prefix, scope: Scope) -> Column:
    """Return an aggregate over the events of a variable before `s[i]`, or up to it; or their values."""
    variable = scope.variable(e.var, e)
    if not variable.kleene:
        hint = f"Write `{e.var}.{e.attr}`." if e.attr else None
        scope.fail(f"`{e.var}` is one event; `{scope.source(e)}` speaks of several", e, hint)
    which = s.Which.UPTO if e.inclusive else s.Which.BEFORE
    if e.attr is None:
        return Column(e.var, scope.time, which, None, INTEGER, "COUNT")
    name, type_ = aggregated(e.function or "IN", variable, e.attr, e, scope)
    return Column(e.var, name, which, None, DOUBLE if e.function == "AVG" else type_, e.function or "LIST")


def _of_whole(function: str, argument: s.Attribute | s.VariableReference, e: s.Node, scope: Scope) -> Value:
    """Return an aggregate over all events of a variable; of a variable that takes one, the value itself."""
    if isinstance(argument, s.VariableReference) and argument.var in scope.labels:
        return Column(argument.var, scope.time, s.Which.WHOLE, None, INTEGER, "COUNT")
    variable = scope.variable(argument.var, argument)
    if variable.absent and not variable.kleene:
        scope.fail(f"`{argument.var}` is declared by NOT and bound to no event", argument)
    if isinstance(argument, s.VariableReference):
        return Column(argument.var, scope.time, s.Which.WHOLE, None, INTEGER, "COUNT")
    name, type_ = aggregated(function, variable, argument.attr, argument, scope)
    if not variable.kleene:
        own = Column(argument.var, name, s.Which.EACH, None, type_)
        return Operation("/", (own, Constant(1, INTEGER)), DOUBLE, scope.source(e)) if function == "AVG" else own
    if scope.trends and type_.kind is Kind.DOUBLE:  # as RETURN gives it
        function = {"SUM": "FSUM", "AVG": "FAVG"}.get(function, function)
    return Column(argument.var, name, s.Which.WHOLE, None, DOUBLE if function.endswith("AVG") else type_, function)


def aggregated(function: str, variable: Variable, attr: str, e: s.Node, scope: Scope) -> tuple[str, Type]:
    """Return the name and type of a column whose values a function puts together, or fail."""
    name, type_ = scope.column(variable, attr, e)
    if function in ("SUM", "AVG") and not (type_.numeric or type_.kind is Kind.UNKNOWN):
        scope.fail(f"{function} takes a number; `{variable.name}.{attr}` is {type_.described()}", e)
    if type_.kind is Kind.OTHER:
        scope.fail(f"`{variable.name}.{attr}` is {type_.described()}, which {function} cannot use", e)
    return name, type_


def _column(e: s.Attribute, scope: Scope) -> Value:
    column = bind_column(e, scope)
    if scope.trends and column.which is s.Which.EACH and scope.variables[e.var].kleene:
        scope.fail(f"`{scope.source(e)}` is an array, one value an event", e, ONE_VALUE)
    if column.type.kind is Kind.OTHER:
        scope.fail(f"`{scope.source(e)}` is {column.type.described()}, which conditions cannot use", e)
    return column


def bind_column(e: s.Attribute, scope: Scope) -> Column:
    """Return the column that an attribute of a variable names."""
    variable = scope.variable(e.var, e)
    name, type_ = scope.column(variable, e.attr, e)
    if e.iteration is not None:
        return Column(e.var, name, s.Which.EACH, None, type_, at=_iteration(e.iteration, variable, e, scope))
    if variable.kleene:
        return Column(e.var, name, e.which, e.nth, type_)
    if e.which in (s.Which.EARLIER, s.Which.LATER):
        hint = "NEXT and [i-1] are for Kleene variables, declared as `E+ v[]`."
        scope.fail(f"`{e.var}` is one event and has no neighbours", e, hint)
    if e.which is s.Which.NTH:
        scope.fail(f"`{e.var}` is one event; it has no `[{e.nth}]`", e, f"Write `{e.var}.{e.attr}`.")
    return Column(e.var, name, s.Which.EACH, None, type_)


def _iteration(of: s.Iteration, variable: Variable, e: s.Attribute, scope: Scope) -> AtIteration | None:
    """Return the iteration that is named, None for the one that goes on: `g[i]`."""
    if of.label not in scope.labels:
        what = f"`{of.label}` is a variable" if of.label in scope.variables else f"no group has the label `{of.label}`"
        known = did_you_mean(of.label, scope.labels, f"Labels are {', '.join(scope.labels)}.") if scope.labels else (
            "A label stands behind a quantifier: `SEQ(A a, B b)+ g[]`."
        )  # fmt: skip
        scope.fail(f"{what}; iterations are those of a repeated group", of, known)
    group = scope.labels[of.label]
    inside = [v.name for v in scope.variables.values() if group in v.groups and not v.absent]
    if group not in variable.groups or (variable.absent and inside):
        hint = f"Its variables are {', '.join(inside)}."
        scope.fail(f"`{e.var}` is not a variable of the group `{of.label}`", scope.part(e, e.var), hint)
    return None if of.which is s.Which.LATER else AtIteration(group, of.which, of.nth)


def _given(e: s.Parameter, scope: Scope, beside: Type | None) -> Value:
    given = scope.parameter(e)
    if isinstance(given.literal, s.Literals):
        scope.fail(f"the parameter `{e.name}` is a list, which stands in IN alone", e, f"Write `IN ({e.name})`.")
    if given.text is not None and beside is not None and beside.kind is Kind.STRING:
        inner = given.literal
        return Constant(inner.value if isinstance(inner, s.String) else given.text, STRING)
    return bind_value(replace(given.literal, span=e.span), scope, beside)


def _integer(number: int, e: s.Node, scope: Scope) -> Value:
    if number not in INT64:
        scope.fail(f"{number} does not fit 64 bits", e, "Write it with a point for a double.")
    return Constant(number, INTEGER)


def _real(number: Decimal, beside: Type | None) -> Value:
    if beside is not None and beside.kind is Kind.DECIMAL:
        scale = _scale(number)
        if scale + max(0, number.adjusted() + 1) <= 38:
            return Constant(number, decimal(scale))
    return Constant(float(number), DOUBLE)


def _scale(number: Decimal) -> int:
    """The digits behind the point, without zeros at the end."""
    _, digits, exponent = number.as_tuple()
    zeros = len(digits) - len("".join(map(str, digits)).rstrip("0"))
    return max(0, -(int(exponent) + zeros))


def _string(text: str, e: s.Node, scope: Scope, beside: Type | None) -> Value:
    if beside is not None and beside.temporal:
        micros = parse_timestamp(text)
        if micros is None:
            scope.fail(f"'{text}' is not a timestamp", e, "Write it as '2024-01-31 09:30:00'.")
        return Constant(micros, TIMESTAMP)
    return Constant(text, STRING)


def _signed(function: str, sign: str, x: s.Expression, e: s.Node, scope: Scope, beside: Type | None) -> Value:
    """Return a number or duration with its sign changed, or without it; `sign` is how that is written."""
    value = bind_value(x, scope, beside)
    if not (value.type.numeric or value.type.kind in (Kind.DURATION, Kind.UNKNOWN)):
        scope.fail(f"{sign} takes a number; `{scope.source(x)}` is {value.type.described()}", e)
    return Operation(function, (value,), value.type, scope.source(e))


def _of_one_type(
    what: str, arguments: Sequence[s.Expression], scope: Scope, beside: Type | None
) -> tuple[tuple[Value, ...], Type]:
    """Return values of one type, and that type; literals follow the others."""
    first = [bind_value(a, scope, beside) for a in arguments]
    hint = next((v.type for v in first if not isinstance(v, Constant)), first[0].type)
    values = [bind_value(a, scope, beside=hint) for a in arguments]
    for argument, value in zip(arguments, values, strict=True):
        if not comparable(hint, value.type):
            scope.fail(
                f"{what} mixes {hint.described()} and {value.type.described()}",
                argument,
                "All its values are of one type.",
            )
    return tuple(values), reduce(merged_type, (v.type for v in values))


def _case(
    tests: tuple[s.Condition, ...], values: tuple[s.Expression, ...], otherwise: s.Expression | None, e: s.Node,
    scope: Scope, beside: Type | None,
) -> Value:  # fmt: skip
    given = values if otherwise is None else (*values, otherwise)
    bound, type_ = _of_one_type("CASE", given, scope, beside)
    arms = [part for test, value in zip(tests, bound, strict=False) for part in (bind_condition(test, scope), value)]
    last = Constant(None, type_) if otherwise is None else bound[-1]
    return Operation("case", (*arms, last), type_, scope.source(e))


def _scalar(function: str, arguments: tuple[s.Expression, ...], e: s.Node, scope: Scope) -> Value:
    known = SCALARS[function]
    values = [bind_value(a, scope, beside=TIMESTAMP if known.takes[0] == MOMENT else None) for a in arguments]
    for argument, value, wanted in zip(arguments, values, known.takes, strict=False):
        if not fits(value.type.kind, wanted):
            scope.fail(f"{function} takes {wanted}; `{scope.source(argument)}` is {value.type.described()}", argument)
    for argument, value in zip(arguments[1:], values[1:], strict=True):
        if not isinstance(value, Constant) or not isinstance(value.value, int):
            scope.fail(f"{function} takes a whole number here", argument, "Write it as a constant.")
    type_ = known.gives(values[0].type)
    if function == "ROUND":
        places = values[1].value if len(values) > 1 and isinstance(values[1], Constant) else 0
        assert isinstance(places, int)
        if abs(places) > MOST_PLACES:
            scope.fail(f"ROUND takes at most {MOST_PLACES} places", arguments[1])
        if type_.kind is Kind.DECIMAL:
            type_ = decimal(min(type_.scale, max(places, 0)))
    if function == "SUBSTR" and any(isinstance(v, Constant) and v.value < 1 for v in values[1:2]):  # type: ignore[operator]
        scope.fail("SUBSTR counts from 1", arguments[1], "Write 1 for the first character.")
    return Operation(function.lower(), tuple(values), type_, scope.source(e))


def _cast(x: s.Expression, name: str, e: s.Node, scope: Scope) -> Value:
    value, type_ = bind_value(x, scope), CAST_TYPES[name]
    if value.type.kind is not Kind.UNKNOWN and value.type.kind not in CASTS[type_.kind]:
        scope.fail(f"CAST cannot make {type_.described()} of {value.type.described()}", e)
    return Operation("cast", (value,), type_, scope.source(e))


def _arithmetic(op: str, left: s.Expression, right: s.Expression, e: s.Node, scope: Scope) -> Value:
    a, b = bind_value(left, scope), bind_value(right, scope)
    a, b = bind_value(left, scope, beside=b.type), bind_value(right, scope, beside=a.type)
    type_ = computed_type(op, a.type, b.type)
    if type_ is None:
        what = f"`{op}` does not apply to {_described(left, a, scope)}, and {_described(right, b, scope)}"
        scope.fail(what, e, _unit_hint(a, b))
    return Operation(op, (a, b), type_, scope.source(e))


def _unit_hint(a: Value, b: Value) -> str | None:
    if a.type.temporal and b.type.numeric:
        return "A duration has a unit, such as `5 min`."
    if a.type.numeric and b.type.kind is Kind.DURATION:
        return "Where time is a number, durations are numbers without a unit."
    return None
