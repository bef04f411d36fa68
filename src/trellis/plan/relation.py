"""Adjacent conditions by what they are to the attribute index: keys, orders or the rest.

Read from the query alone; the index itself (`trellis.operators.trends.index`) decides on the events at hand, where for
instance an overflow can make a condition one of the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from trellis.language.bound import Condition, Operation, Value, columns_of
from trellis.language.once import once
from trellis.language.schema import Kind
from trellis.language.syntax import Which
from trellis.plan.cuts import FLIPPED, Atom, Monotonicity, NeighbourCut, cut_of

WHOLE = (Kind.INTEGER, Kind.TIMESTAMP, Kind.DURATION)


@dataclass(frozen=True)
class NeighbourComparison:
    """`later function earlier`, each side of one event alone."""

    later: Value
    function: str
    earlier: Value


@dataclass(frozen=True)
class Relation:
    """The terms of adjacent conditions.

    Attributes
    ----------
    single
        Terms that speak of one of the two events only.
    keys
        Equalities.
    orders
        Other comparisons, by their later side.
    cuts
        Conditions that cut the values of one event into ranges for each of the other.
    either
        The arms of each OR of conditions on different values.
    rest
        What is asked of pairs of events.
    """

    single: tuple[Value, ...]
    keys: tuple[NeighbourComparison, ...]
    orders: tuple[tuple[NeighbourComparison, ...], ...]
    cuts: tuple[NeighbourCut, ...]
    either: tuple[tuple[Value, ...], ...]
    rest: tuple[Value, ...]

    @property
    def kind(self) -> str | None:
        """The kind of index, one of `trellis.plan.index_cost.INDEXES`; None where edges are needed.

        What values decide is taken for the worse: a quotient is an inequality where the divisors have one sign.
        """
        if self.rest:
            return None
        sides: dict[Value, set[str]] = {}  # of each value of the later event which sides are bounded: < > !
        for order in self.orders:
            sides[order[0].later] = {c.function[0] for c in order}
        more = []
        for cut in self.cuts:
            if cut.which is Which.EARLIER:
                if not cut.one_range:
                    return None
                more += [">"] if cut.one_sided else [">", ">"]
            else:
                sides.setdefault(cut.value, set()).update(_sides(cut))
        if self.either:
            arms = self.either[0]
            two = len(self.either) == 1 and len(arms) == 2 and all(map(_is_one_sided, arms))
            return "either of two" if two and not sides and not more else "several"
        one_sided = [len(found) == 1 and "!" not in found for found in sides.values()] + [True] * len(more)
        if len(one_sided) < 2:
            return ("inequality" if one_sided[0] else "range") if one_sided else "key"
        number = sum(map(len, sides.values())) + len(more)
        if number > 3 or any("!" in found for found in sides.values()):
            return "several"
        return "two inequalities" if number == 2 else "three inequalities"


def _sides(cut: NeighbourCut) -> set[str]:
    """Return on which sides a cut bounds values."""
    if not cut.one_sided:
        return {"<", ">"} if cut.one_range else {"!"}
    assert isinstance(cut.shape, Atom)
    function = cut.shape.condition.function
    return {function[0] if cut.shape.course is Monotonicity.RISING else FLIPPED[function][0]}


def relation_of(conditions: Iterable[Condition]) -> Relation:
    """Return the terms of adjacent conditions by what they are to an index."""
    single, keys, cuts, either, rest = [], [], [], [], []
    orders: dict[Value, list[NeighbourComparison]] = {}
    for condition in conditions:
        for term in terms(condition.value):
            compared = comparison(term)
            if len({c.which for c in columns_of(term)}) == 1:
                single.append(term)
            elif compared is None:
                cut, arms = cut_of(term), _arms(term)
                if cut is not None:
                    cuts.append(cut)
                elif arms:
                    either.append(arms)
                else:
                    rest.append(term)
            elif compared.function == "=":
                keys.append(compared)
            else:
                orders.setdefault(compared.later, []).append(compared)
    return Relation(
        tuple(single), tuple(keys), tuple(map(tuple, orders.values())), tuple(cuts), tuple(either), tuple(rest)
    )


def _arms(term: Value) -> tuple[Value, ...]:
    """Return the arms of OR, if each comes to comparisons of values of two events."""
    if not isinstance(term, Operation) or term.function != "or":
        return ()
    asked = [inner for arm in term.arguments for inner in terms(arm)]
    known = [len({c.which for c in columns_of(t)}) == 1 or comparison(t) or cut_of(t) or _arms(t) for t in asked]
    return term.arguments if all(known) else ()


def _is_one_sided(arm: Value) -> bool:
    compared, cut = comparison(arm), cut_of(arm)
    if compared is not None:
        return compared.function not in ("=", "!=")
    return len({c.which for c in columns_of(arm)}) == 1 or (cut is not None and cut.one_sided)


def terms(value: Value) -> Iterator[Value]:
    """Split at AND: all must be true."""
    if isinstance(value, Operation) and value.function == "and":
        for argument in value.arguments:
            yield from terms(argument)
    else:
        yield value


class NeighbourTerm(NamedTuple):
    """A term of a condition on two events that follow one another.

    Attributes
    ----------
    value
        The term.
    of
        The event that it asks about, if that is one alone.
    compared
        The term as a comparison of two values, if it is one.
    summed
        The values that must be small where it was a difference, and is compared as a sum: that may overflow.
    """

    value: Value
    of: Which | None
    compared: NeighbourComparison | None
    summed: tuple[Value, ...]


@once
def neighbour_terms(condition: Condition) -> tuple[NeighbourTerm, ...]:
    """Return the terms of an adjacent condition."""
    return tuple(map(neighbour_term, terms(condition.value)))


def neighbour_term(value: Value) -> NeighbourTerm:
    """Return one term."""
    which, compared = {c.which for c in columns_of(value)}, comparison(value)
    summed: tuple[Value, ...] = ()
    if compared is not None:
        assert isinstance(value, Operation)
        later, total = without_gap(value).arguments
        if later not in value.arguments:
            assert isinstance(total, Operation)
            summed = (later, *total.arguments)
    return NeighbourTerm(value, which.pop() if len(which) == 1 else None, compared, summed)


def comparison(term: Value) -> NeighbourComparison | None:
    """Return a term as a comparison of a value of the later event with one of the earlier, if it is one."""
    if not isinstance(term, Operation) or term.function not in FLIPPED:
        return None
    term = without_gap(term)
    if not _one_sided(term):
        return None
    left, right = term.arguments
    if next(columns_of(left)).which is Which.EARLIER:
        return NeighbourComparison(right, FLIPPED[term.function], left)
    return NeighbourComparison(left, term.function, right)


def without_gap(term: Operation) -> Operation:
    """Write `later - earlier OP gap` of whole numbers, or moments, as `later OP earlier + gap`."""
    difference, gap = term.arguments
    function = term.function
    if not _is_difference(difference):
        difference, gap, function = gap, difference, FLIPPED[function]
    if not _is_difference(difference) or any(c.which is not Which.EARLIER for c in columns_of(gap)):
        return term
    assert isinstance(difference, Operation)
    later, earlier = difference.arguments
    if any(value.type.kind not in WHOLE for value in (later, earlier, gap)):
        return term
    return replace(term, function=function, arguments=(later, Operation("+", (earlier, gap), later.type)))


def _is_difference(value: Value) -> bool:
    if not isinstance(value, Operation) or value.function != "-" or not _one_sided(value):
        return False
    return [next(columns_of(side)).which for side in value.arguments] == [Which.LATER, Which.EARLIER]


def _one_sided(term: Operation) -> bool:
    return all(len({c.which for c in columns_of(side)}) == 1 for side in term.arguments)
