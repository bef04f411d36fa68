"""The operator that a plan names: which one, how it works, why, what it costs, and what stands in for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from trellis.plan.settings import AlgorithmSettings

TRENDS, PATTERNS, SEQUENCES, TREE_PLAN, NAMED = "trends", "patterns", "sequences", "tree", "named"
JOINS, JOIN_TREE = "joins", "join tree"
INDEX, EDGES, SEARCH = "index", "edges", "search"  # how trends and patterns are found
AUTO = "auto"


@dataclass(frozen=True, slots=True)
class OperatorSpec:
    """The operator that finds the results of a plan; chosen once, by `trellis.plan.choice`.

    Attributes
    ----------
    name
        The operator: `trends`, `patterns`, `sequences`, `tree`, `joins`, `join tree`, or `named`.
    method
        How it works: for trends and patterns `index`, `edges` or `search`; for the others the name of the algorithm.
    reason
        Why it was chosen.
    how
        How results are found, some named sentences for `explain`; `counting` says what that costs.
    algorithm
        The algorithm that was asked for, by name.
    settings
        The settings of a named algorithm.
    otherwise
        The operator that takes its place on events that it cannot work on.
    unless
        What these events are like, which is known only when they are there.
    few
        The operator that is sooner done with few events, and means the same.
    """

    name: str
    method: str
    reason: str
    how: Mapping[str, str] = field(default_factory=dict)
    algorithm: str = AUTO
    settings: AlgorithmSettings = field(default_factory=AlgorithmSettings)
    otherwise: OperatorSpec | None = None
    unless: str = ""
    few: OperatorSpec | None = None

    @property
    def cost(self) -> str:
        """The cost of counting, in a sentence."""
        return self.how.get("counting", "")

    def requested(self, algorithm: str, settings: AlgorithmSettings) -> OperatorSpec:
        """Return the operator, and those that take its place, with what was asked for."""
        other, few = (one and one.requested(algorithm, settings) for one in (self.otherwise, self.few))
        return replace(self, algorithm=algorithm, settings=settings, otherwise=other, few=few)

    def ways(self) -> Iterator[OperatorSpec]:
        """Yield the operator, and those that take its place one after another."""
        spec: OperatorSpec | None = self
        while spec is not None:
            yield spec
            spec = spec.otherwise
