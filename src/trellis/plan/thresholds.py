"""The least that a match remembers to decide what is asked of greatest and least values, and of numbers of events.

A greatest value that is compared with what is known before, `MAX(b.x) > a.x`, is a bit or two.
Some event of `b` decides the comparison, or that there is none: what has been seen of either is one bit for a match so
far, in place of the greatest value. What the bit stands for is a comparison of each event, which is noted, not asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from trellis.language.bound import Column, Constant, Operation, Reference, Value, columns_of
from trellis.language.schema import BOOLEAN, Kind
from trellis.language.syntax import Which
from trellis.plan.cuts import FLIPPED

MET = "MET"
GREATEST = {
    ">": ((">",), ()), ">=": ((">=",), ()), "<": (("<",), (">=",)), "<=": (("<=",), (">",)), "=": (("=",), (">",)),
}  # fmt: skip
"""For each comparison of a greatest value: what some event must meet, and what none may; `FLIPPED` for the least."""
MOST_MODULUS = 1 << 20
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


# --- Numbers of events ------------------------------------------------------------------------------------------


def most_events(value: Value, reference: Reference) -> int:
    """Return the greatest number of events that must be told apart, where it is compared with constants; else 0."""
    constants = [*_compared_with(value, reference)]
    found = [number for number in constants if number is not None]
    return 0 if len(found) < len(constants) else min(max([0, *found]) + 1, 1 << 40)


def modulus_of_events(value: Value, reference: Reference) -> int:
    """Return the number modulo which events are counted, where nothing else is asked of their number; else 0."""
    found = {*_moduli(value, reference)}
    return found.pop() if len(found) == 1 else 0


def _compared_with(value: Value, reference: Reference) -> Iterator[int | None]:
    """Yield the constant of each comparison that names a number of events, None for any other use of it."""
    if isinstance(value, Column):
        if reference in value.references:
            yield None
    elif isinstance(value, Operation):
        sides = value.arguments
        if value.function in FLIPPED and any(
            isinstance(side, Column) and reference in side.references for side in sides
        ):
            other = next((side.value for side in sides if isinstance(side, Constant)), None)
            yield other if isinstance(other, int) else None
            return
        for argument in sides:
            yield from _compared_with(argument, reference)


def _moduli(value: Value, reference: Reference) -> Iterator[int]:
    """Yield the divisor of a number of events wherever it is named; 0 where it is not divided."""
    if isinstance(value, Column):
        if reference in value.references:
            yield 0
    elif isinstance(value, Operation):
        own, *others = value.arguments
        by = others[0].value if value.function == "%" and isinstance(others[0], Constant) else None
        if isinstance(own, Column) and reference in own.references and isinstance(by, int) and 0 < by < MOST_MODULUS:
            yield by
        else:
            for argument in value.arguments:
                yield from _moduli(argument, reference)
