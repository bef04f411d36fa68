"""The section of `explain` on a named algorithm: how it works, its settings, and its facts about the events."""

from __future__ import annotations

from typing import Any

from trellis.plan.papers import NAMED
from trellis.plan.plan import Plan


def algorithm_facts(plan: Plan, trends: Any = None) -> dict[str, dict[str, Any]]:
    """Return the section on the algorithm, if a named one was asked for; events in this process tell more."""
    named = NAMED.get(plan.algorithm)
    if named is None:
        return {}
    settings = plan.settings
    facts: dict[str, Any] = {"name": plan.algorithm, "how": named.about, "construction": settings.construction}
    if settings.memory_limit is not None:
        facts["memory_limit"] = f"{settings.memory_limit:,} bytes of partial trends, 8 for each event"
    if trends is not None and trends.engine == "local":
        from trellis.papers.registry import explain_input

        facts |= explain_input(plan.algorithm, trends.operator.algorithm_input())
    elif trends is not None:
        facts["on_spark"] = "each task works on its own windows; with --engine local this tells of all of them"
    return {"algorithm": facts}
