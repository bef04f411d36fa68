"""Conditions on two neighbours that cut the values of one of them: which these are, read from the query alone.

`price - prev.price > 5` sees the later event through its price only, and what it computes never falls when that price
rises. So for each earlier event the prices that make it true begin at a cut, which bisection among the sorted prices
finds with the condition as it is written; nothing is rewritten that rounding could make another condition. A product
or a quotient rises or falls with the sign of the other event's value, ABS and a divisor change their course once, OR
joins the ranges of its arms.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from enum import Enum
from math import inf
from typing import NamedTuple

from trellis.language.bound import Column, Constant, Operation, Value, columns_of, with_columns
from trellis.language.schema import Kind
from trellis.language.syntax import Which

FLIPPED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
NEGATED = {"=": "!=", "!=": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
MOST_ATOMS = 8  # comparisons of one condition


class Monotonicity(Enum):
    """The way a value goes when that of one event rises and the other event stays."""

    CONSTANT = "constant"
    RISING = "rising"
    FALLING = "falling"
    EITHER = "either"  # one way, which the other event decides


TURNED = {Monotonicity.RISING: Monotonicity.FALLING, Monotonicity.FALLING: Monotonicity.RISING}


@dataclass(frozen=True)
class Atom:
    """A comparison as it is written, or one with ABS taken apart.

    Attributes
    ----------
    condition
        The comparison.
    course
        The way the left side goes beside the right one.
    split
        A value at whose change of sign the course changes, or None.
    pole
        Whether the comparison is NULL where `split` is 0: it is divided by.
    """

    condition: Operation
    course: Monotonicity
    split: Value | None = None
    pole: bool = False


@dataclass(frozen=True)
class Both:
    """Conditions that must all be true of the same value."""

    parts: tuple[Shape, ...]


@dataclass(frozen=True)
class Either:
    """Conditions of which one must be true of the same value."""

    parts: tuple[Shape, ...]


Shape = Atom | Both | Either


@dataclass(frozen=True)
class NeighbourCut:
    """A condition that sees one of two neighbours through one `value` only, and cuts what that may be into ranges."""

    value: Value
    which: Which
    shape: Shape

    @property
    def one_sided(self) -> bool:
        """Whether the ranges of all events of the other side begin at the least value, or all end at the greatest."""
        shape = self.shape
        if not isinstance(shape, Atom) or shape.split is not None:
            return False
        return shape.course in TURNED and shape.condition.function not in ("=", "!=")

    @property
    def one_range(self) -> bool:
        """Whether what is allowed is never more than one range."""
        parts = self.shape.parts if isinstance(self.shape, Both) else (self.shape,)
        return all(isinstance(p, Atom) and p.split is None and p.condition.function != "!=" for p in parts)


def cut_of(term: Value) -> NeighbourCut | None:
    """Return a condition on two neighbours as cuts of the later one's values, else of the earlier one's, if it can."""
    if len(list(_atoms(term))) > MOST_ATOMS:
        return None
    for which in (Which.LATER, Which.EARLIER):
        for value in _seen(term, which):
            shape = _shape(term, value, which, negated=False)
            if shape is not None and _asks(shape):
                return NeighbourCut(value, which, shape)
    return None


def _asks(shape: Shape) -> bool:
    """Whether a condition is never true where the value is NULL."""
    if isinstance(shape, Atom):
        return shape.course is not Monotonicity.CONSTANT
    return (any if isinstance(shape, Both) else all)(map(_asks, shape.parts))


def _atoms(term: Value) -> Iterator[Value]:
    if isinstance(term, Operation) and term.function in ("and", "or", "not"):
        for argument in term.arguments:
            yield from _atoms(argument)
    else:
        yield term


def _seen(term: Value, which: Which) -> Iterator[Value]:
    """Yield the values through which a condition may see an event: what it computes of it alone, or its one column."""
    whole = set(_alone(term, which))
    if len(whole) == 1:
        yield from whole
    columns = {c for c in columns_of(term) if c.which is which}
    if len(columns) == 1 and columns != whole:
        yield from columns


def _alone(value: Value, which: Which) -> Iterator[Value]:
    """Yield the largest parts of a value that read one event alone; a condition is taken apart."""
    read = {c.which for c in columns_of(value)}
    if which not in read:
        return
    compared = isinstance(value, Operation) and value.function in (*FLIPPED, "and", "or", "not", "is null", "like")
    if read == {which} and not compared:
        yield value
    elif isinstance(value, Operation):
        for argument in value.arguments:
            yield from _alone(argument, which)


def _shape(term: Value, value: Value, which: Which, negated: bool) -> Shape | None:
    if not isinstance(term, Operation):
        return None
    if term.function == "not":
        return _shape(term.arguments[0], value, which, not negated)
    if term.function in ("and", "or"):
        parts = [_shape(argument, value, which, negated) for argument in term.arguments]
        kind = Both if (term.function == "and") != negated else Either
        return kind(tuple(p for p in parts if p)) if all(parts) else None
    if term.function not in FLIPPED:
        return None
    return _compared(replace(term, function=NEGATED[term.function]) if negated else term, value, which)


def _compared(term: Operation, value: Value, which: Which) -> Shape | None:
    """Return a comparison; `ABS(d) < e` is `d < e AND -d < e`, exactly, and so are its relatives."""
    for function, inner, turned, other in _both_signs(term):
        if any(c.which is which for c in columns_of(other)):
            continue
        sides = [_atom(Operation(function, (side, other)), value, which) for side in (inner, turned)]
        if all(sides):
            parts = tuple(side for side in sides if side)
            return Both(parts) if function in ("<", "<=") else Either(parts)
    return _atom(term, value, which)


def _both_signs(term: Operation) -> Iterator[tuple[str, Value, Value, Value]]:
    """Yield the ways to read a comparison as one of ABS(d) with something: the function, `d`, `-d`, and the other."""
    left, right = term.arguments
    for absolute, other, function in ((left, right, term.function), (right, left, FLIPPED[term.function])):
        if isinstance(absolute, Operation) and absolute.function == "abs" and function not in ("=", "!="):
            yield function, absolute.arguments[0], replace(absolute, function="negative"), other


def without_abs(term: Value) -> tuple[Value, ...]:
    """Return `d < e` and `-d < e` for `ABS(d) < e`, which are both true where it is; any other term as it is."""
    if isinstance(term, Operation) and term.function in FLIPPED:
        for function, inner, turned, other in _both_signs(term):
            if function in ("<", "<="):
                return Operation(function, (inner, other)), Operation(function, (turned, other))
    return (term,)


def extreme_of(term: Value, var: str) -> tuple[Value, bool] | None:
    """Return a value whose extreme among a variable's events decides a comparison for all, and if it is the greatest.

    The comparison is with a number: with an infinity, one that is added to another makes NULL where others do not.
    """
    if not isinstance(term, Operation) or term.function not in FLIPPED or term.function in ("=", "!="):
        return None
    numbers = (side.value for side in term.arguments if isinstance(side, Constant))
    bounded = any(isinstance(number, int | float | Decimal) and -inf < number < inf for number in numbers)
    if not bounded and any(side.type.kind is Kind.DOUBLE for side in term.arguments):
        return None
    which = {True: Which.LATER, False: Which.EARLIER}
    asked = with_columns(term, lambda column: replace(column, which=which[column.var == var]))
    assert isinstance(asked, Operation)
    for value in _seen(asked, Which.LATER):
        atom = _atom(asked, value, Which.LATER)
        if atom is not None and atom.split is None and atom.course in TURNED:
            return value, (atom.course is Monotonicity.RISING) == (term.function in ("<", "<="))
    return None


class Ease(NamedTuple):
    """A column through which a condition sees a variable, and is more easily true for some of its values.

    Whatever the other variables are, where it is true of a value, it is true of all smaller ones (`smaller`), else of
    all greater ones. `asks`: it is never true where the value is NULL.
    """

    column: Column
    smaller: bool
    asks: bool


def ease_of(term: Value, var: str) -> Ease | None:
    """Return how easily a condition is true for values of a variable; None where it does not rise or fall with them."""
    which = {True: Which.LATER, False: Which.EARLIER}
    asked = with_columns(term, lambda column: replace(column, which=which[column.var == var]))
    columns = {column for column in columns_of(asked) if column.which is Which.LATER}
    if len(columns) != 1 or len(list(_atoms(asked))) > MOST_ATOMS:
        return None
    (column,) = columns
    shape = _shape(asked, column, Which.LATER, negated=False)
    if shape is None:
        return None
    ways = {_is_easier_for_smaller(atom) for atom in _atoms_of(shape)} - {None}
    return Ease(column, ways == {True}, _asks(shape)) if ways in ({True}, {False}) else None


def _atoms_of(shape: Shape) -> Iterator[Atom]:
    if isinstance(shape, Atom):
        yield shape
    else:
        for part in shape.parts:
            yield from _atoms_of(part)


def _is_easier_for_smaller(atom: Atom) -> bool | str | None:
    """Return whether a comparison is; None where it does not see the value, and a word where neither is so."""
    if atom.course is Monotonicity.CONSTANT:
        return None
    if atom.split is not None or atom.course not in TURNED or atom.condition.function in ("=", "!="):
        return "neither"
    return (atom.course is Monotonicity.RISING) == (atom.condition.function in ("<", "<="))


def _atom(term: Operation, value: Value, which: Which) -> Atom | None:
    left, right = (_course(side, value, which) for side in term.arguments)
    joined = None if left is None or right is None else _joined(left, _turned(right))
    return None if joined is None else Atom(term, joined.course, joined.split, joined.pole)


@dataclass(frozen=True)
class _Computed:
    """The course of a computed value."""

    course: Monotonicity
    split: Value | None = None
    pole: bool = False


def _course(value: Value, seen: Value, which: Which) -> _Computed | None:
    if value == seen:
        return _Computed(Monotonicity.RISING)
    if all(c.which is not which for c in columns_of(value)):
        return _Computed(Monotonicity.CONSTANT)
    if not isinstance(value, Operation):
        return None
    found = [_course(argument, seen, which) for argument in value.arguments]
    known = [one for one in found if one is not None]
    if len(known) < len(found):
        return None
    if value.function == "negative":
        return _turned(known[0])
    if value.function == "abs":
        return _split(known[0], value.arguments[0], pole=False)
    if value.function in ("+", "-"):
        return _joined(known[0], known[1] if value.function == "+" else _turned(known[1]))
    if value.function == "*":
        constant = known[0].course is Monotonicity.CONSTANT
        return _scaled(known[constant], known[not constant], value.arguments[not constant])
    if value.function == "/":
        if known[1].course is Monotonicity.CONSTANT:
            return _scaled(known[0], known[1], value.arguments[1])
        return _split(known[1], value.arguments[1], pole=True) if known[0].course is Monotonicity.CONSTANT else None
    return None


def _turned(one: _Computed) -> _Computed:
    return replace(one, course=TURNED.get(one.course, one.course))


def _joined(one: _Computed, other: _Computed) -> _Computed | None:
    """Return the course of a sum."""
    if Monotonicity.CONSTANT in (one.course, other.course):
        return other if one.course is Monotonicity.CONSTANT else one
    same = one.course is other.course and one.course in TURNED
    return one if same and one.split is None and other.split is None else None


def _scaled(one: _Computed, other: _Computed, factor: Value) -> _Computed | None:
    """Return the course of a product with a constant, or of a quotient by one."""
    if other.course is not Monotonicity.CONSTANT:
        return None
    if isinstance(factor, Constant) and isinstance(factor.value, int | float | Decimal) and factor.value:
        return one if factor.value > 0 else _turned(one)
    return replace(one, course=Monotonicity.EITHER)


def _split(one: _Computed, at: Value, *, pole: bool) -> _Computed | None:
    return None if one.split is not None else _Computed(Monotonicity.EITHER, at, pole)
