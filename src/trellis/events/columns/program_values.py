"""Values as programs take them: without the event that they speak of, and functions inside COALESCE and CASE."""

from __future__ import annotations

from dataclasses import replace

from trellis.language.bound import Column, Operation, Value, references_of, with_columns
from trellis.language.syntax import Which


def is_of_one(value: Value) -> bool:
    """Return whether a value reads attributes of one event alone: MIN, MAX and MET are of the event that has it."""
    read = references_of(value)
    return len(read) == 1 and read[0].function in ("", "MIN", "MAX", "MET")


def as_attribute(value: Value) -> Value:
    """Return a set of values as the attribute that they are of."""
    return replace(value, function="") if isinstance(value, Column) else value


def of_each(value: Operation) -> Value | None:
    """Return a function of COALESCE or CASE as CASE over its values; None for other functions."""
    first, rest = value.arguments[0], value.arguments[1:]
    if not isinstance(first, Operation) or first.function not in ("coalesce", "case"):
        return None

    def applied(argument: Value) -> Value:
        return replace(value, arguments=(argument, *rest))

    arguments: list[Value] = []
    if first.function == "case":
        arguments = [one if i % 2 == 0 else applied(one) for i, one in enumerate(first.arguments[:-1])]
    else:
        for one in first.arguments[:-1]:
            known = Operation("not", (Operation("is null", (one,)),))
            arguments += [known, applied(one)]
    return Operation("case", (*arguments, applied(first.arguments[-1])), value.type, value.source)


def plain_value(value: Value) -> Value:
    """Return a value without which event it speaks of."""
    return with_columns(value, lambda column: replace(column, var="", which=Which.EACH, nth=None, function=""))
