"""The options of a run, declared once: the edge makes them, and every engine takes them as one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from trellis.arguments import whole_number
from trellis.errors import UsageError
from trellis.language.schema import Schema, time_columns
from trellis.limits import DEFAULT_MAX_TRENDS
from trellis.methods import Methods
from trellis.plan.plan import Plan


class Plannable(Protocol):
    """A query, as engines see it: it makes the plan for the columns of their events."""

    def plan(
        self, schema: Schema | None = None, params: Mapping[str, Any] | None = None, report_mode: str | None = None
    ) -> Plan:
        """Return the plan for events of a schema."""


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """How a query runs over events.

    Attributes
    ----------
    time, type, event_id
        The columns that hold time, type and id of an event. Without `time` the only column called `time`, `ts`,
        `timestamp` or `event_time` is taken; without `event_id` events are numbered.
    tie_breakers
        The columns that order events of the same time.
    params
        Values of the query's parameters.
    report_mode
        Overrides REPORT: `unextendable`, `maximal` or `any`.
    max_trends
        The bound on listing.
    on_bad_rows
        `error`, or `drop` to leave out rows without a readable time or id.
    methods
        The algorithm by name, with its settings.
    """

    time: str | None = None
    type: str | None = None
    event_id: str | None = None
    tie_breakers: tuple[str, ...] = ()
    params: Mapping[str, Any] | None = None
    report_mode: str | None = None
    max_trends: int = DEFAULT_MAX_TRENDS
    on_bad_rows: str = "error"
    methods: Methods = field(default_factory=Methods)

    @classmethod
    def of(cls, time: str | Sequence[str] | None, **options: Any) -> RunOptions:
        """Return options from what users give, where `time` may be followed by columns that break ties."""
        column, tie_breakers = time_columns(time)
        return cls(time=column, tie_breakers=tie_breakers, **options)

    def __post_init__(self) -> None:
        if self.on_bad_rows not in ("error", "drop"):
            raise UsageError(f"on_bad_rows is `{self.on_bad_rows}`", "It is `error` or `drop`.")
        for name, column in (("type", self.type), ("event_id", self.event_id)):
            if not isinstance(column, str | None):
                raise UsageError(f"{name} is {column!r}", "Name one column.")
        whole_number(self.max_trends, "max_trends")

    @property
    def drops_bad_rows(self) -> bool:
        """Whether rows without a readable time or id are left out."""
        return self.on_bad_rows == "drop"
