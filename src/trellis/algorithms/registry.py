"""The named algorithms: where each lives, what it permits, and a sentence on it; imported when they are used."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from trellis.language.syntax import Report

if TYPE_CHECKING:
    from trellis.algorithms.contract import Algorithm, Stage

EVERY_REPORT = frozenset(Report)


@dataclass(frozen=True)
class Named:
    """A named algorithm.

    Attributes
    ----------
    module
        The module under `trellis.algorithms` that has `extract(stage)`, and where it has something to tell,
        `explain(stage)`, which gives facts for `trellis explain`.
    about
        A sentence that says how it works.
    reports
        The REPORT modes that it permits.
    uses
        Which of the settings `anchors` and `optimizer` mean anything to it; the memory limit does to all.
    """

    module: str
    about: str
    reports: frozenset[Report] = EVERY_REPORT
    uses: frozenset[str] = frozenset()

    def load(self) -> Algorithm:
        """Return the algorithm itself."""
        algorithm: Algorithm = self._module.extract
        return algorithm

    def explain(self, stage: Stage) -> dict[str, Any]:
        """Return what it tells of a stage before it works."""
        tell = getattr(self._module, "explain", None)
        return {} if tell is None else tell(stage)

    @property
    def _module(self) -> Any:
        return import_module(f"trellis.algorithms.{self.module}")


ABI = {
    "dfs": Named("abi.dfs", "walks the graph depth first from every start vertex; it stores one path at a time"),
    "bfs": Named("abi.bfs", "extends all partial trends by one event a round, breadth first, and stores them all"),
    "anchor": Named(
        "abi.anchor",
        "finds the sub-sequences between anchor vertices breadth first, then joins them depth first, on threads",
        uses=frozenset({"anchors"}),
    ),
}

CET: dict[str, Named] = {}

NAMED = {**ABI, **CET}
