"""The beginnings of a standing query, as queries of their own; planned where the stream starts, not in its tasks."""

from __future__ import annotations

from dataclasses import replace

from trellis.errors import UsageError
from trellis.language.binder import bind
from trellis.language.prefixes import beginnings
from trellis.language.printer import to_query_text
from trellis.language.syntax import Parameter, walk
from trellis.plan.choice import make_plan
from trellis.streams.query import StandingQuery
from trellis.streams.timeouts import Beginnings


def beginnings_of(query: StandingQuery) -> tuple[Beginnings, ...]:
    """Return the beginnings of a query.

    Raises
    ------
    UsageError
        If the query is not a sequence of variables and NOT of events, or its results come early.
    """
    bound = query.bound
    found = None if query.early else beginnings(bound.syntax)
    if found is None:
        raise UsageError(
            f"the partial matches of `{query.name}` cannot be told: they are of SEQ of variables and NOT of events, "
            "whose conditions look back only, without OR, AND, groups and AGGREGATE, under skip-till-any, and of "
            "results that wait for the watermark",
            "Leave out --timeouts (table='timeouts').",
        )
    made = []
    for one in found:
        text = to_query_text(one.syntax)
        used = {node.name for node in walk(one.syntax) if isinstance(node, Parameter)}
        params = {name: value for name, value in bound.given.items() if name in used}
        plan = make_plan(bind(one.syntax, text, bound.schema, params or None, str(bound.report)))
        made.append(Beginnings(replace(query, plan=plan), one.matched, one.awaited, one.condition))
    return tuple(made)
