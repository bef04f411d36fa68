"""Greatest and least values that are compared with what is known before, `MAX(b.x) > a.x`, as bits.

Some event of `b` decides the comparison, or that there is none: what has been seen of either is one bit for a match so
far, in place of the greatest value. What the bit stands for is a comparison of each event, which is noted, not asked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from trellis.language.bound import Column, Constant, Operation, Value, columns_of
from trellis.language.schema import BOOLEAN, Kind
from trellis.language.syntax import Which
from trellis.plan.cuts import FLIPPED

MET = "MET"
GREATEST = {
    ">": ((">",), ()), ">=": ((">=",), ()), "<": (("<",), (">=",)), "<=": (("<=",), (">",)), "=": (("=",), (">",)),
}  # fmt: skip
"""What some event must meet, and what none may, for the greatest value to compare so; for the least see `FLIPPED`."""
FIXED = (Which.FIRST, Which.LAST, Which.NTH, Which.WHOLE)

Note = Callable[[Operation], int]


def with_bits(value: Value, before: Mapping[str, frozenset[str]], kleene: frozenset[str], note: Note) -> Value:
    """Return a condition in which bits stand for comparisons of greatest and least values.

    Parameters
    ----------
    value
        The condition, of which AND and OR are looked into: NULL is not true there.
    before
        For each repeated variable those that are complete when it takes its first event.
    kleene
        The repeated variables.
    note
        Takes a comparison of each event, and returns the number of the term that notes it.
    """
    if not isinstance(value, Operation):
        return value
    if value.function in ("and", "or"):
        return replace(value, arguments=tuple(with_bits(one, before, kleene, note) for one in value.arguments))
    if value.function in FLIPPED:
        left, right = value.arguments
        for own, other, function in ((left, right, value.function), (right, left, FLIPPED[value.function])):
            if isinstance(own, Column) and _is_extreme(own) and _is_known(other, before[own.var], kleene):
                return _of_bits(own, other, function, note) or value
    return value


def _is_extreme(column: Column) -> bool:
    return column.function in ("MIN", "MAX") and column.which is Which.WHOLE and column.at is None


def has_extremes(value: Value) -> bool:
    """Return whether a condition names the greatest or least value of a whole variable."""
    return any(map(_is_extreme, columns_of(value)))


def _is_known(value: Value, before: frozenset[str], kleene: frozenset[str]) -> bool:
    """Return whether a value is known when a variable takes its first event, and cannot overflow."""
    if isinstance(value, Column):
        fixed = value.which in FIXED or (value.which is Which.EACH and value.var not in kleene)
        return value.var in before and fixed and value.at is None
    if isinstance(value, Operation) and any(columns_of(value)):
        return value.type.kind is Kind.DOUBLE and all(_is_known(one, before, kleene) for one in value.arguments)
    return True


def _of_bits(own: Column, other: Value, function: str, note: Note) -> Value | None:
    greatest = own.function == "MAX"
    some, none = GREATEST.get(function if greatest else FLIPPED[function], ((), ()))
    if not some:
        return None
    each = replace(own, which=Which.EACH, function="")

    def is_unmet(comparison: str) -> Operation:
        said = comparison if greatest else FLIPPED[comparison]
        number = note(Operation(said, (each, other), BOOLEAN))
        return Operation("is null", (replace(own, function=MET, nth=number),), BOOLEAN)

    met = [Operation("not", (is_unmet(one),), BOOLEAN) for one in some]
    parts = (*met, *map(is_unmet, none))
    return parts[0] if len(parts) == 1 else Operation("and", parts, BOOLEAN)


def bit_text(value: Value | None) -> str:
    """Return the comparison that a bit stands for."""
    assert isinstance(value, Operation)
    left, right = map(_text, value.arguments)
    return f"{left} {value.function} {right}"


def _text(value: Value) -> str:
    if isinstance(value, Constant):
        return str(value.value)
    if isinstance(value, Operation):
        return value.source or f" {value.function} ".join(map(_text, value.arguments))
    said = {Which.FIRST: "FIRST({})", Which.LAST: "LAST({})", Which.NTH: f"{{}}[{value.nth}]"}
    named = said.get(value.which, "{}").format(value.var)
    return f"{value.function}({named}.{value.name})" if value.function else f"{named}.{value.name}"
