"""Which events may fill which variable of a pattern."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from trellis.events.slice import Ints
from trellis.kernels.explore.matches import NODE
from trellis.language.bound import BoundQuery
from trellis.plan.registers import GuardTerm

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class ForbiddenMatches:
    """Matches of a pattern that a NOT forbids as a whole, by the events at which they begin.

    Attributes
    ----------
    begins, ends
        Their first and last events, or such that a gap holds one of these if it holds one of the matches.
    nodes, names
        int64 (nodes, 5): the matches, each with those below it that NOTs inside of it forbid, as trees one after
        another, see `trellis.kernels.explore.tables`; the first number of each is the place of the name of what it is a
        match of, or -1. None, where all that counts is where matches begin and end.
    tuples
        For each term that compares them with events outside: where the tuples of each node begin, and these; see
        `trellis.kernels.explore.iterations`.
    """

    begins: Ints
    ends: Ints
    nodes: Ints = field(default_factory=lambda: np.empty((0, NODE), np.int64))
    names: tuple[str, ...] = ()
    tuples: Mapping[int, tuple[Ints, Ints]] = field(default_factory=dict)


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


def variable_codes(bound: BoundQuery) -> dict[str, int]:
    """Return the number of each variable that takes events, in the order of the pattern."""
    return {name: code for code, name in enumerate(v.name for v in bound.variables if not v.absent)}
