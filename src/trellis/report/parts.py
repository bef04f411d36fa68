"""Parts of several pictures: which attribute is drawn, of how many events."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from trellis.errors import UsageError, did_you_mean
from trellis.language.bound import columns_of

MOST_EVENTS = 5000  # of a partition that a picture shows


def measure_of(results: Any) -> str:
    """Return the attribute that is worth drawing: the first number that conditions compare, or any number."""
    bound = results.plan.bound
    compared = [c.name for condition in bound.conditions for c in columns_of(condition.value) if c.type.numeric]
    numbers = [n for table in bound.schema.tables for n, type_ in table.columns.items() if type_.numeric]
    usual = [n for n in (*compared, *numbers) if n not in (bound.schema.time, bound.schema.event_id)]
    return next(iter(usual), bound.schema.time)


def check_column(events: pa.Table, name: str) -> None:
    """Refuse a column that the events do not have."""
    if name not in events.column_names:
        known = f"Columns are {', '.join(events.column_names)}."
        raise UsageError(f"the events have no column `{name}`", did_you_mean(name, events.column_names, known))
