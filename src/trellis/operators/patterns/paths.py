"""The results of groups as paths of one graph."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trellis.language.bound import BoundQuery, Window, WindowKind
from trellis.language.once import once
from trellis.language.syntax import Report, Select
from trellis.operators.batch import VARIABLE
from trellis.plan.plan import Plan

Ints = NDArray[np.int64]


class BoundVertices(NamedTuple):
    """Events bound to variables: the event of each vertex, as its position in the slice, and its variable.

    `codes` tell the variable, and how many iterations the event begins; see `PathBatch`.
    """

    events: Ints
    codes: Ints

    @property
    def variables(self) -> Ints:
        """The variable of each vertex."""
        return self.codes & VARIABLE


@dataclass(frozen=True)
class Paths:
    """Results as paths from vertices without predecessors to vertices without successors.

    Attributes
    ----------
    events, codes
        The event of each vertex, as its position in the slice, and its variable; see `BoundVertices`.
    offsets, successors
        The successors of each vertex, in rising order.
    begins
        Where the vertices of each group begin, and where the last ones end.
    ambiguous
        For each group, whether the order of its paths is not that of its results.
    """

    events: Ints
    codes: Ints
    offsets: Ints
    successors: NDArray[np.int32]
    begins: Ints
    ambiguous: NDArray[np.bool_]

    @property
    def vertices(self) -> BoundVertices:
        """The events and variables of the vertices."""
        return BoundVertices(self.events, self.codes)


@once
def plan_over_vertices(plan: Plan) -> Plan:
    """Return the plan of the trend operator over vertices, whose paths are the results that a plan asks for."""
    return aggregating_plan(plan, plan.bound)


def aggregating_plan(plan: Plan, bound: BoundQuery) -> Plan:
    """Return the plan of the trend operator over vertices, for a query with what it aggregates of them."""
    bound = replace(bound, report=Report.UNEXTENDABLE, select=Select.ANY, window=Window(WindowKind.WHOLE))
    return replace(plan, bound=bound, adjacent=(), positions=None, sequence=None)
