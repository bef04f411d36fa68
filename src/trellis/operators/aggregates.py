"""States of AGGREGATE: exact, of one group or of several joined."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from trellis.language.bound import COUNTING, Output
from trellis.language.schema import Kind
from trellis.operators.wide import nearest_ratio
from trellis.plan.plan import Plan


@dataclass(frozen=True)
class Sum:
    """A sum over pairs of a trend and an event: the finite part, how many values, and the infinities among them."""

    total: Fraction
    number: int
    plus: bool = False
    minus: bool = False

    def __add__(self, other: Sum) -> Sum:
        return Sum(
            self.total + other.total, self.number + other.number, self.plus or other.plus, self.minus or other.minus
        )

    def value(self, kind: Kind) -> Any:
        """Return the sum as a value of a kind; None where nothing was added, or infinities cancel."""
        if self.number == 0 or (self.plus and self.minus):
            return None
        if self.plus or self.minus:
            return float("inf") if self.plus else float("-inf")
        return to_double(self.total) if kind is Kind.DOUBLE else self.total

    def mean(self) -> float | None:
        """Return the mean, rounded once."""
        if self.number == 0 or self.plus or self.minus:
            return None if self.number == 0 else self.value(Kind.DOUBLE)
        return nearest_ratio(self.total.numerator, self.total.denominator * self.number)


def to_double(number: Fraction) -> float:
    """Return the nearest double, or an infinity."""
    return nearest_ratio(number.numerator, number.denominator)


@dataclass(frozen=True)
class Aggregates:
    """The number of results of a group, and the state of each item of AGGREGATE over them."""

    count: int
    states: tuple[Any, ...]


def join(plan: Plan, parts: list[Aggregates]) -> Aggregates:
    """Return the numbers of several groups taken together."""
    if len(parts) == 1 and parts[0].count:
        return parts[0]
    outputs = plan.bound.aggregates
    states = tuple(
        joined_state(named.output, [p.states[i] for p in parts if p.count]) for i, named in enumerate(outputs)
    )
    return Aggregates(sum(p.count for p in parts), states)


def joined_state(output: Output, states: list[Any]) -> Any:
    """Return the state of an item over several groups taken together, or of other results that are not the same."""
    if output.function in (*COUNTING, "SHARE"):
        return sum(states)
    if output.function in ("SUM", "AVG"):
        return sum(states, Sum(Fraction(0), 0))
    known = [s for s in states if s is not None]
    if not known:
        return None
    return min(known) if output.function == "MIN" else max(known)


def value_of(output: Output, state: Any) -> Any:
    """Return the value of an output from its state: an int, a float, a Fraction of decimals, an attribute's value."""
    if output.function == "AVG":
        return state.mean()
    if output.function == "SUM":
        return state.value(output.type.kind)
    return state
