"""The meaning of names while a query is bound."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import NoReturn

from trellis.errors import BindError, did_you_mean
from trellis.language import syntax as s
from trellis.language.bound import Column, Value, Variable
from trellis.language.parameters import ParameterValue
from trellis.language.result_types import promoted_type
from trellis.language.schema import (
    UNKNOWN,
    Schema,
    Type,
)


@dataclass
class Scope:
    """The meaning of names while a query is bound: its text, variables, schema and parameters."""

    text: str
    variables: Mapping[str, Variable]
    schema: Schema | None
    parameters: Mapping[str, ParameterValue]
    used: set[str] = field(default_factory=set)
    trends: bool = False  # whether values are of whole trends: HAVING
    values: dict[tuple[int, Type | None], tuple[s.Node, Value]] = field(default_factory=dict)
    leaf: Callable[[s.Expression], Column | None] | None = None  # gives values of whole trends, where these stand
    labels: Mapping[str, int] = field(default_factory=dict)  # of repeated groups, with their numbers

    def of_trends(self) -> Scope:
        """Return the scope of HAVING, whose values are of whole trends."""
        return replace(self.of_iterations(), trends=True)

    def of_iterations(self) -> Scope:
        """Return the scope of clauses that speak of all iterations together: what a group binds is several events."""
        several = {name: replace(v, kleene=v.several and not v.absent) for name, v in self.variables.items()}
        there = {group for v in self.variables.values() if not v.absent for group in v.groups}
        labels = {label: group for label, group in self.labels.items() if group in there}
        return replace(self, variables=several, values={}, labels=labels)

    @property
    def time(self) -> str:
        """The column of the time, which every event has."""
        return "time" if self.schema is None else self.schema.time

    def fail(self, what: str, node: s.Node, hint: str | None = None) -> NoReturn:
        """Raise the error for a mistake at a node."""
        raise BindError(what, self.text, node.span.start, node.span.end, hint)

    def part(self, node: s.Node, name: str, last: bool = False) -> s.Node:
        """Return the name alone, as a place, within what is written for a node."""
        word = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")
        places = [m.span() for m in word.finditer(self.text, node.span.start, node.span.end)]
        start, end = places[-1 if last else 0] if places else (node.span.start, node.span.end)
        return s.Name(name, span=s.Span(start, end))

    def source(self, node: s.Node) -> str:
        """Return the text of a node as it was written, on one line."""
        return " ".join(self.text[node.span.start : node.span.end].split())

    def variable(self, name: str, node: s.Node) -> Variable:
        """Return a declared variable, or fail."""
        if name in self.variables:
            return self.variables[name]
        if name in self.labels:
            hint = f"Name a variable of the group; COUNT({name}) is the number of iterations."
            self.fail(f"`{name}` is the label of a group, not a variable", self.part(node, name), hint)
        if name in self.parameters:
            hint = "Parameters stand in WHERE and WITHIN."
            self.fail(f"`{name}` is a parameter, not a variable", self.part(node, name), hint)
        known = did_you_mean(name, self.variables, f"Variables are {', '.join(self.variables)}.")
        self.fail(f"the pattern declares no variable `{name}`", self.part(node, name), known)

    def column(self, variable: Variable, attr: str, node: s.Node) -> tuple[str, Type]:
        """Return name and type of a column of a variable's events; `time` is the time column if none has the name."""
        if self.schema is None:
            return attr, UNKNOWN
        found: tuple[str, Type] | None = None
        for table in self.schema.tables_of(variable.type):
            name = self.schema.time if attr == "time" and "time" not in table.columns else attr
            if name not in table.columns:
                where = f" in the table of `{table.type}`" if table.type else ""
                hint = _instead_of(attr, table.columns)
                place = self.part(node, attr, last=True)
                self.fail(f"`{variable.name}` has no attribute `{attr}`{where}", place, hint)
            found = (name, _common(self, found[1], table.columns[name], node) if found else table.columns[name])
        assert found is not None
        return found

    def parameter(self, node: s.Parameter) -> ParameterValue:
        """Return the value of a parameter, or fail."""
        self.used.add(node.name)
        if node.name not in self.parameters:
            if node.name in self.variables:
                hint = f"Write `{node.name}.attribute`."
                self.fail(f"`{node.name}` is a variable; a condition compares its attributes", node, hint)
            columns = {name for table in self.schema.tables for name in table.columns} if self.schema else set()
            if node.name in columns:
                owners = [name for name, variable in self.variables.items() if not variable.absent]
                said = " or ".join(f"`{owner}.{node.name}`" for owner in owners[:3])
                self.fail(f"`{node.name}` is a column, and stands without its variable", node, f"Write {said}.")
            give = f"Give it with params={{'{node.name}': ...}} or --param {node.name}=VALUE."
            if self.schema is None and self.variables:  # it may be a column: nobody knows yet
                column = f"{next(iter(self.variables))}.{node.name}"
                give = f"If it is a column, write `{column}`. A parameter is given{give.removeprefix('Give it')}"
            hint = did_you_mean(node.name, self.parameters, give) or give
            self.fail(f"the parameter `{node.name}` has no value", node, hint)
        return self.parameters[node.name]


def _instead_of(attr: str, columns: Collection[str]) -> str | None:
    """Return the hint about a column that is not there: the fields of a struct, or a name like it, or all names."""
    fields = [name for name in columns if name.startswith(f"{attr}.")]
    if fields:
        return f"`{attr}` is a struct, and its fields are columns; write them in backticks: `{'`, `'.join(fields)}`."
    return did_you_mean(attr, columns, f"Columns are {', '.join(columns)}.")


def _common(scope: Scope, one: Type, other: Type, node: s.Node) -> Type:
    if one == other:
        return one
    if one.numeric and other.numeric:
        return promoted_type(one, other)
    scope.fail(f"the tables disagree on the type of `{scope.source(node)}`: {one} and {other}", node)
