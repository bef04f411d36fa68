"""Which events may fill which variable of a pattern."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from trellis.events.slice import Slice
from trellis.events.variables import usable_events
from trellis.language.bound import BoundQuery
from trellis.operators.patterns.absent import ForbiddenMatches, forbidden_matches
from trellis.plan.plan import Plan
from trellis.plan.registers import GuardTerm, guard_terms_of

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Variables:
    """The variables of a pattern over a slice.

    Attributes
    ----------
    usable
        For each variable, those of NOT too, the events that have its type and meet its constant conditions.
    codes
        The number of each variable that takes events, in the order of the pattern.
    guard_terms
        The terms of the other conditions.
    ends
        For each pattern that a NOT forbids as a whole its matches.
    in_gap
        Whether the pattern is forbidden itself, so that its edges are those of a gap that is not known yet.
    """

    usable: Mapping[str, Mask]
    codes: Mapping[str, int]
    guard_terms: tuple[GuardTerm, ...]
    ends: Mapping[str, ForbiddenMatches] = field(default_factory=dict)
    in_gap: bool = False


def make_variables(plan: Plan, events: Slice) -> Variables:
    """Return the variables of a plan over a slice."""
    usable = usable_events(plan.bound, plan.constant, events.columns, len(events))
    terms = guard_terms_of(plan.bound)
    ends = {one.name: forbidden_matches(plan, one, events, usable, terms) for one in plan.bound.absent_patterns}
    return Variables(usable, variable_codes(plan.bound), terms, ends)


def variable_codes(bound: BoundQuery) -> dict[str, int]:
    """Return the number of each variable that takes events, in the order of the pattern."""
    return {name: code for code, name in enumerate(v.name for v in bound.variables if not v.absent)}
