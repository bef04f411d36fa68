"""The types of computed values."""

from __future__ import annotations

from trellis.language.schema import DOUBLE, DURATION, INTEGER, UNKNOWN, Kind, Type, decimal, moment_type


def merged_type(a: Type, b: Type) -> Type:
    """Return the type of values of one of two types that go together."""
    if a.numeric and b.numeric:
        return promoted_type(a, b)
    if a.temporal and b.temporal:
        return moment_type(a, b)
    return a if b.kind is Kind.UNKNOWN else b


def promoted_type(a: Type, b: Type) -> Type:
    """Return the type that holds the numbers of two types."""
    if Kind.DOUBLE in (a.kind, b.kind):
        return DOUBLE
    if Kind.DECIMAL in (a.kind, b.kind):
        return decimal(max(a.scale, b.scale))
    return INTEGER


def computed_type(op: str, a: Type, b: Type) -> Type | None:
    """Return the type of an operation, or None where it has no meaning."""
    kinds = (a.kind, b.kind)
    if a.numeric and b.numeric:
        if op == "/":
            return DOUBLE
        if op == "*" and Kind.DECIMAL in kinds and Kind.DOUBLE not in kinds:
            return decimal(a.scale + b.scale)
        return promoted_type(a, b)
    if Kind.UNKNOWN in kinds:
        other = b if a.kind is Kind.UNKNOWN else a
        return None if other.kind in (Kind.STRING, Kind.BOOLEAN) else UNKNOWN
    if op == "-" and a.temporal and b.temporal:
        return DURATION
    if op in "+-" and a.temporal and b.kind is Kind.DURATION:
        return moment_type(a)
    if op == "+" and a.kind is Kind.DURATION and b.temporal:
        return moment_type(b)
    if a.kind is Kind.DURATION and b.kind is Kind.DURATION:
        return {"+": DURATION, "-": DURATION, "%": DURATION, "/": DOUBLE}.get(op)
    if op == "*" and set(kinds) == {Kind.DURATION, Kind.INTEGER}:
        return DURATION
    return None
