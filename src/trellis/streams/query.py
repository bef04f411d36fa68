"""Standing queries: queries over a stream, and the key of the work that several of them share."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from trellis.errors import UsageError
from trellis.language.bound import BoundQuery, Condition, WindowKind
from trellis.language.printer import to_query_text
from trellis.plan import spec as o
from trellis.plan.plan import Plan
from trellis.plan.summable import can_be_summed
from trellis.properties import cached_property
from trellis.results.numbers import aggregate_schema
from trellis.results.rows import row_schema

WorkKey = tuple[str, str, str]


@dataclass(frozen=True)
class StandingQuery:
    """A query over a stream: it is evaluated for every window as soon as that is decided.

    Attributes
    ----------
    name
        Its name among those that share its events.
    plan
        Its plan; see `check_standing_query`.
    max_trends
        The bound on the results of a window and partition, or of what begins at one event, that are listed.
    on_bad_rows
        `drop`: of events with the same id in a window the first is kept. `error`: there must be none.
    early
        Whether each result is given as soon as its last event has come: see `trellis.streams.early`.
    in_order
        Whether it is promised that no event is before one that came earlier.
    """

    name: str
    plan: Plan
    max_trends: int
    on_bad_rows: str = "error"
    early: bool = False
    in_order: bool = False

    @property
    def bound(self) -> BoundQuery:
        """The bound query."""
        return self.plan.bound

    @cached_property
    def key(self) -> str:
        """Its name with a mark of its text, which tells it from another query of that name."""
        parts = [to_query_text(self.bound.syntax), repr(self.bound.parameters), str(self.bound.report)]
        text = "\n".join([*parts, "early"] if self.early else parts)
        return f"{self.name}:{hashlib.sha256(text.encode()).hexdigest()[:16]}"

    @property
    def schema(self) -> pa.Schema:
        """The schema of its results."""
        return aggregate_schema(self.bound) if self.bound.aggregates else row_schema(self.bound)

    @property
    def without_ids(self) -> bool:
        """Whether the ids of events need not be held: nothing that comes out, nor its order, depends on them."""
        bound = self.bound
        if bound.per_event is not None or bound.after_match is not None:
            return False
        return bool(bound.aggregates) and bound.select.value == "skip-till-any" and self.on_bad_rows == "error"

    @cached_property
    def summed(self) -> bool:
        """Whether sums are kept of the past, and not its events."""
        return self.without_ids and not self.early and can_be_summed(self.plan)

    @cached_property
    def work(self) -> WorkKey:
        """A key of the work that it shares with others; see `trellis.streams.sharing`."""
        return work_key(self)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of events that are held for it."""
        schema = self.bound.known_schema
        return tuple(name for name in self.plan.columns if not (self.without_ids and name == schema.event_id))


def check_standing_query(bound: BoundQuery) -> None:
    """Refuse a query over a stream whose results would never be decided."""
    window = bound.window.kind
    if window is WindowKind.WHOLE:
        raise UsageError(
            "a stream has no end, and the query has no WITHIN, so nothing would ever be decided",
            "Add WITHIN, such as `WITHIN 10 minutes SLIDE 1 minute`.",
        )
    if bound.known_schema.event_id is None:
        raise UsageError("the events of a stream need an id", "Name its column with event_id= or --event-id.")
    if window is WindowKind.SPAN:
        for clause, there in (
            ("AGGREGATE", bound.aggregates), ("ORDER BY", bound.order_by), ("LIMIT", bound.limit is not None),
            ("OFFSET", bound.offset),
        ):  # fmt: skip
            if there:
                raise UsageError(
                    f"{clause} needs windows in a stream, and the query has a span",
                    "Add SLIDE to WITHIN.",
                )
    elif (bound.order_by or bound.limit is not None or bound.offset) and not bound.per_window:
        raise UsageError(
            "ORDER BY, LIMIT and OFFSET go over all windows, and a stream has no end", "Write LIMIT n PER WINDOW."
        )


def work_key(query: StandingQuery) -> WorkKey:
    """Return texts that are equal for queries with the same slice, the same trends, and the same of them."""
    plan, bound = query.plan, query.bound
    of_pattern = (bound.pattern, bound.variables, bound.groups, bound.absent_patterns)
    slice_ = (
        bound.window, bound.partition, _values(plan.constant), plan.keep_failing, plan.one_kleene, query.without_ids,
        query.on_bad_rows, [v.type for v in bound.variables] if plan.one_kleene else (of_pattern, _values(plan.other)),
    )  # fmt: skip
    spec = plan.operator
    trends = (
        of_pattern, _values(bound.conditions), _values(bound.filters), _values(bound.counted), bound.select,
        bound.report, spec.name, spec.method, spec.algorithm, spec.settings,
        None if spec.name == o.TRENDS else bound.having, None if may_share(plan) else query.key,
    )  # fmt: skip
    return repr(slice_), repr(trends), repr((bound.having, bound.group_by))


def _values(conditions: Iterable[Condition]) -> list[Any]:
    """Return conditions without the text in which somebody wrote them."""
    return [(condition.kind, condition.variables, condition.value) for condition in conditions]


def may_share(plan: Plan) -> bool:
    """Return whether an operator of the plan can be one for other output."""
    bound = plan.bound
    derived = any(named.output.value is not None for named in bound.aggregates)
    return plan.operator.name != o.NAMED and bound.after_match is None and bound.per_event is None and not derived
