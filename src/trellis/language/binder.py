"""Syntax tree to bound query: every name, type, unit and parameter is checked here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

from trellis.errors import BindError, UsageError, did_you_mean
from trellis.language import syntax as s
from trellis.language.bound import (
    BoundQuery,
    NamedOutput,
    OutputColumn,
    Value,
    Variable,
    Window,
    WindowKind,
)  # fmt: skip
from trellis.language.groups import labels_of, once_inside_not, repeated_groups, walk_paths
from trellis.language.having import bind_having
from trellis.language.outputs import (
    aggregate_columns,
    bind_aggregate,
    bind_limit_per,
    bind_order,
    bind_output,
    id_type,
    name_outputs,
    return_type,
    type_text,
)
from trellis.language.parameters import read_parameters
from trellis.language.schema import Kind, Schema, Type
from trellis.language.scope import Scope
from trellis.language.steps import bind_absent_patterns, bind_untils, condition_of, plain_pattern
from trellis.language.values import INT64


def bind(
    query: s.QuerySyntax,
    text: str,
    schema: Schema | None = None,
    params: Mapping[str, Any] | None = None,
    report_mode: str | None = None,
) -> BoundQuery:
    """Fit a query to a schema and parameters.

    Parameters
    ----------
    query, text
        The syntax tree and the text it came from, for messages.
    schema
        Columns and types of the events; None checks what can be checked without.
    params
        Values of parameters by name.
    report_mode
        Overrides REPORT.

    Raises
    ------
    BindError
        If the query does not fit; says where and what to do.
    """
    written = once_inside_not(query.pattern)
    query = replace(query, pattern=written)
    variables = _variables(written, text)
    groups = repeated_groups(query.pattern)
    labels = labels_of(query.pattern)
    scope = Scope(text, {v.name: v for v in variables}, schema, read_parameters(params), labels=labels)
    _check_types(query.pattern, scope)
    partition = _partition(query, scope)
    conditions = tuple(condition_of(c, scope) for c in query.where if not isinstance(c, s.PartitionClause))
    untils = bind_untils(query.pattern, scope)
    conditions += tuple(condition for _, condition in untils)
    absent_patterns = bind_absent_patterns(query, conditions, scope)
    having, filters = bind_having(query.having, scope)
    window = _window(query.within, scope)
    group_by = tuple(dict.fromkeys(_grouping(name, partition, scope) for name in query.group_by))
    lead = _leading_columns(query, window, partition, group_by, scope)
    taken = [c.name for c in lead]
    listed = scope.of_iterations()
    returned = [bind_output(i.expression, listed) for i in query.returns]
    returns = name_outputs(query.returns, returned, taken, scope)
    aggregated = [bind_aggregate(i, listed, query.per_event) for i in query.aggregates]
    aggregates = name_outputs(query.aggregates, aggregated, taken, scope, texts=True)
    columns = lead + _result_columns(query, variables, returns, aggregates, scope)
    _check_columns(columns, query, scope)
    order_by = bind_order(query.order_by, listed)
    limit_per = bind_limit_per(query.limit_per, listed)
    _check_after_match(query, scope)
    _check_unused(scope)
    return BoundQuery(
        text=text, syntax=replace(query, pattern=written), schema=schema,
        pattern=plain_pattern(query.pattern, query.select),
        variables=(*variables, *(variable for variable, _ in untils)), conditions=conditions,
        partition=partition, window=window, select=query.select, report=_report(report_mode, query),
        having=having, filters=filters, returns=returns, aggregates=aggregates, group_by=group_by, order_by=order_by,
        limit=query.limit, per_window=query.per_window, offset=query.offset,
        columns=tuple(columns),
        parameters=tuple((n, scope.parameters[n].shown) for n in sorted(scope.used)), given=dict(params or {}),
        limit_per=limit_per, per_event=query.per_event, after_match=query.after_match,
        absent_patterns=absent_patterns, groups=groups,
    )  # fmt: skip


# --- Pattern ----------------------------------------------------------------------------------------------------


def _variables(pattern: s.Pattern, text: str) -> tuple[Variable, ...]:
    """Return the variables in the order of the pattern; refuse those and labels that are declared twice."""
    found: dict[str, Variable] = {}
    absent = {id(leaf) for forbidden in s.absent_patterns(pattern) for leaf in s.leaves(forbidden)}
    for node, path in walk_paths(pattern):
        if isinstance(node, s.Single | s.Kleene):
            kleene = isinstance(node, s.Kleene)
            variable = Variable(node.var, node.type, kleene, id(node) in absent, groups=path)
            if found.setdefault(node.var, variable) != variable:
                raise _twice(node, text)
    _occurrences(pattern, text)
    _check_groups(pattern, found, text)
    if s.may_be_empty(pattern):
        raise BindError("the pattern can match without any event", text, pattern.span.start, pattern.span.end,
                        "Let at least one part of it take an event: `E v` or `E+ v[]`.")  # fmt: skip
    return tuple(found.values())


def _check_groups(pattern: s.Pattern, variables: Collection[str], text: str) -> None:
    """Refuse labels that are used twice."""
    known: set[str] = set()
    for node in s.walk(pattern):
        if not isinstance(node, s.Group):
            continue
        label = node.label
        if label is not None and (label in known or label in variables):
            what = f"`{label}` is a variable and the label of a group" if label in variables else (
                f"the label `{label}` is used twice"
            )  # fmt: skip
            raise BindError(what, text, node.span.start, node.span.end, "Give each its own name.")
        known.update(() if label is None else (label,))


def _twice(node: s.Single | s.Kleene, text: str) -> BindError:
    return BindError(
        f"the variable `{node.var}` is declared twice",
        text,
        node.span.start,
        node.span.end,
        "Give each its own name; only the arms of an OR may share one, declared alike.",
    )


def _occurrences(pattern: s.Node, text: str) -> set[str]:
    """Return the variables below a node; those of the arms of an OR count once."""
    if isinstance(pattern, s.Single | s.Kleene):
        return {pattern.var}
    found: set[str] = set()
    for child in s.children(pattern):
        inner = _occurrences(child, text)
        if not isinstance(pattern, s.Or) and not found.isdisjoint(inner):
            declared = (n for n in s.walk(child) if isinstance(n, s.Single | s.Kleene))
            raise _twice(next(n for n in declared if n.var in found), text)
        found |= inner
    return found


def _check_types(pattern: s.Pattern, scope: Scope) -> None:
    schema = scope.schema
    if schema is None:
        return
    typed = [n for n in s.walk(pattern) if isinstance(n, s.Single | s.Kleene) and n.type is not None]
    if schema.tables[0].type is not None:
        names = [t.type for t in schema.tables if t.type is not None]
        for node in typed:
            if node.type not in names:
                scope.fail(f"there is no table for the type `{node.type}`", node,
                           did_you_mean(node.type or "", names, f"Tables are {', '.join(names)}."))  # fmt: skip
    elif schema.type is None:
        for node in typed:
            if node.type != typed[0].type:
                what = (
                    f"the pattern names two types, `{typed[0].type}` and `{node.type}`, but no column tells them apart"
                )
                scope.fail(what, node, "Name the column that holds the type with type= or --type.")


# --- Conditions -------------------------------------------------------------------------------------------------


def _partition(query: s.QuerySyntax, scope: Scope) -> tuple[tuple[str, Type], ...]:
    found: dict[str, Type] = {}
    for condition in query.where:
        if isinstance(condition, s.PartitionClause):
            for name in condition.attributes:
                column, type_ = _shared_column(name, scope)
                found[column] = type_
    return tuple(found.items())


def _shared_column(name: s.Name, scope: Scope) -> tuple[str, Type]:
    """Return the column, and its type, that the events of all variables have."""
    columns = [scope.column(v, name.value, name) for v in scope.variables.values()]
    types = {c[1] for c in columns}
    if len(types) > 1:
        kinds = " and ".join(sorted(str(t) for t in types))
        scope.fail(f"the tables disagree on the type of `{name.value}`: {kinds}", name)
    column, type_ = columns[0]
    if column in ("count", "count_text"):
        scope.fail(f"`{column}` is a column of every count and cannot be a partition", name, "Rename the column.")
    if type_.kind is Kind.OTHER:
        scope.fail(f"`{name.value}` is {type_.described()}, which cannot be a partition", name)
    return column, type_


def _grouping(name: s.Name, partition: tuple[tuple[str, Type], ...], scope: Scope) -> str:
    names = [n for n, _ in partition]
    column = _shared_column(name, scope)[0] if names else name.value
    if column not in names:
        known = f"The partition is [{', '.join(names)}]." if names else "Add it to WHERE as a partition, `[attribute]`."
        scope.fail(f"GROUP BY names `{name.value}`, which is not among the partition's attributes", name,
                   did_you_mean(name.value, names, known))  # fmt: skip
    return column


# --- Windows ----------------------------------------------------------------------------------------------------


def _window(within: s.WithinClause | None, scope: Scope) -> Window:
    if within is None:
        return Window(WindowKind.WHOLE)
    size = _duration(within.size, "WITHIN", scope)
    if within.slide is None:
        return Window(WindowKind.SPAN, size, has_unit=_has_unit(within.size, scope))
    slide = _duration(within.slide, "SLIDE", scope)
    if _has_unit(within.size, scope) != _has_unit(within.slide, scope):
        scope.fail("WITHIN and SLIDE must both have a unit, or neither", within.slide)
    if slide > size:
        hint = "Make SLIDE at most as long as WITHIN."
        scope.fail("SLIDE is longer than WITHIN, so events would lie in no window", within.slide, hint)
    return Window(WindowKind.SLIDING, size, slide, _has_unit(within.size, scope))


def _given_duration(e: s.Expression, scope: Scope) -> s.Node:
    return scope.parameter(e).literal if isinstance(e, s.Parameter) else e


def _has_unit(e: s.Expression, scope: Scope) -> bool:
    return isinstance(_given_duration(e, scope), s.Duration)


def _duration(e: s.Expression, clause: str, scope: Scope) -> int | Decimal:
    literal = _given_duration(e, scope)
    amount = literal.operand if isinstance(literal, s.Negative) else literal
    if not isinstance(amount, s.Integer | s.Real | s.Duration):
        hint = "Write it as `10 min`, or as a number where time is a number."
        scope.fail(f"{clause} takes a duration", e, hint)
    length = amount.micros if isinstance(amount, s.Duration) else amount.value
    if amount is not literal or length == 0:
        scope.fail(f"{clause} must be positive", e)
    if scope.schema is not None:
        _check_unit(amount, e, clause, scope.schema, scope)
    if isinstance(length, int) and length not in INT64:
        scope.fail(f"{clause} does not fit 64 bits", e)
    return length


def _check_unit(
    amount: s.Integer | s.Real | s.Duration, e: s.Expression, clause: str, schema: Schema, scope: Scope
) -> None:
    time = f"the time column `{schema.time}` is {schema.time_type.described()}"
    if isinstance(amount, s.Duration):
        if schema.time_type.numeric:
            hint = "Write the number alone, in the unit of that column."
            scope.fail(f"{clause} has a unit, but {time}", e, hint)
    elif schema.time_type.temporal:
        scope.fail(f"{clause} has no unit, but {time}", e, f"Write `{clause} {amount.value} s`, or another unit.")


# --- Output -----------------------------------------------------------------------------------------------------


def _leading_columns(
    query: s.QuerySyntax,
    window: Window,
    partition: tuple[tuple[str, Type], ...],
    group_by: tuple[str, ...],
    scope: Scope,
) -> list[OutputColumn]:
    time = type_text(scope.schema.time_type) if scope.schema else "unknown"
    bounds = "timestamp" if time == "date" else time
    lead = []
    if window.kind is WindowKind.SLIDING:
        lead += [OutputColumn("window_start", bounds), OutputColumn("window_end", bounds)]
    kept = group_by if query.aggregates and group_by else [n for n, _ in partition]
    lead += [OutputColumn(n, type_text(t)) for n, t in partition if n in kept]
    if query.aggregates:
        return [*lead, OutputColumn("event", type_text(id_type(scope.schema)))] if query.per_event else lead
    numbers = [OutputColumn("rank", "int64"), OutputColumn("length", "int64")]
    return [*lead, *numbers, OutputColumn("start_time", time), OutputColumn("end_time", time)]


def _result_columns(
    query: s.QuerySyntax, variables: tuple[Variable, ...], returns: tuple[NamedOutput, ...],
    aggregates: tuple[NamedOutput, ...], scope: Scope,
) -> list[OutputColumn]:  # fmt: skip
    if query.aggregates:
        return aggregate_columns(aggregates)
    if query.returns:
        return [OutputColumn(n.name, return_type(n.output)) for n in returns]
    ids = id_type(scope.schema)
    bound = [v for v in variables if not v.absent]
    if not any(v.several for v in bound):
        return [OutputColumn(v.name, type_text(ids)) for v in bound]
    columns = [OutputColumn("events", type_text(ids, True))]
    columns += [OutputColumn("bindings", "array<string>")] if len(bound) > 1 else []
    return columns + ([OutputColumn("iterations", "array<string>")] if any(v.groups for v in bound) else [])


def _check_columns(columns: list[OutputColumn], query: s.QuerySyntax, scope: Scope) -> None:
    """Refuse a partition or variable that is called like another column of the result."""
    counts = Counter(c.name for c in columns)
    repeated = {name for name, number in counts.items() if number > 1}
    for node in s.walk(query):
        name = {s.Name: "value", s.Single: "var"}.get(type(node))
        if name is not None and getattr(node, name) in repeated:
            what = f"two columns of the result would be called `{getattr(node, name)}`"
            hint = "Use another variable." if isinstance(node, s.Single) else "Rename the column of the events."
            scope.fail(what, node, hint)


def _check_after_match(query: s.QuerySyntax, scope: Scope) -> None:
    """Check AFTER MATCH: its variable must be bound in every result."""
    after = query.after_match
    if after is None:
        return
    if after.var is not None:
        variable = scope.variable(after.var, after)
        if variable.absent:
            scope.fail(f"`{variable.name}` is declared by NOT and bound to no event", after)
        if after.var not in s.always_bound(query.pattern):
            hint = "Name one that every result has, or write `SKIP PAST LAST`."
            scope.fail(f"AFTER MATCH goes to `{after.var}`, which some results do not have", after, hint)


def _report(mode: str | None, query: s.QuerySyntax) -> s.Report:
    if mode is None:
        return query.report
    if mode not in list(s.Report):
        raise UsageError(f"there is no report mode `{mode}`",
                         did_you_mean(mode, list(s.Report), f"Modes are {', '.join(s.Report)}."))  # fmt: skip
    return s.Report(mode)


def _check_unused(scope: Scope) -> None:
    for name in scope.parameters:
        if name not in scope.used:
            missing = f"Its parameters are {', '.join(sorted(scope.used))}." if scope.used else "It has no parameters."
            raise UsageError(f"the query does not use the parameter `{name}`",
                             did_you_mean(name, scope.used, missing))  # fmt: skip


__all__ = ["Value", "bind"]
