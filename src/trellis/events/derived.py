"""Columns that a query computes of its events: AGGREGATE may take arithmetic over the attributes of one variable."""

from __future__ import annotations

from dataclasses import replace

from trellis.events.columns.evaluate import evaluate
from trellis.events.columns.types import normalise
from trellis.events.slice import Slice
from trellis.language.bound import BoundQuery, columns_of


def with_derived(bound: BoundQuery, events: Slice) -> Slice:
    """Return a slice with a column for each expression that AGGREGATE takes over single events.

    An answer that reads no values, such as a count, is given a slice without their columns.
    """
    found = {}
    for output in (named.output for named in bound.aggregates):
        if output.column is None or output.value is None:
            continue
        if all(column.name in events.columns for column in columns_of(output.value)):
            values = evaluate(output.value, lambda column: events.columns[column.name], len(events))
            found[output.column.name] = normalise(values, output.column.type)
    return replace(events, columns={**events.columns, **found}) if found else events
