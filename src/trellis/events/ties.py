"""Ties: events of one partition of which neither comes before the other, so that neither can follow the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from trellis.errors import warn
from trellis.events.columns.ordering import group_codes
from trellis.events.columns.types import from_arrow, normalise
from trellis.events.slice import Slice
from trellis.events.sorting import column_of
from trellis.language.schema import Schema

MANY = 0.01  # the share of events from which on ties are told
TOLD = r"[\d,]+ of [\d,]+ events .* share `"  # how the warning begins


@dataclass(frozen=True)
class TieCount:
    """How many events there are, and how many of them share their time with another one of their partition."""

    events: int = 0
    tied: int = 0

    def __add__(self, other: TieCount) -> TieCount:
        return TieCount(self.events + other.events, self.tied + other.tied)

    @property
    def many(self) -> bool:
        """Whether the ties are to be told."""
        return self.tied > MANY * self.events

    def warn(self, schema: Schema) -> None:
        """Warn where many events are tied."""
        if not self.many:
            return
        broken = f" and {', '.join(f'`{name}`' for name in schema.tie_breakers)}" if schema.tie_breakers else ""
        names = (schema.time, *schema.tie_breakers)
        warn(
            f"{self.tied:,} of {self.events:,} events ({self.tied / self.events:.1%}) share `{schema.time}`{broken} "
            "with another event of their partition, and neither of two such events follows the other; if a column "
            f"tells their order, name it: time={(*names, 'COLUMN')!r} or --time {','.join(names)},COLUMN"
        )


def ties_among(table: pa.Table, schema: Schema, partition: Sequence[str]) -> TieCount:
    """Count the ties of events that arrive together, before they are sorted."""
    if not table.num_rows:
        return TieCount()
    columns = [column_of(table, name) for name in (schema.time, *schema.tie_breakers, *partition)]
    codes = group_codes([normalise(column, from_arrow(column.type)) for column in columns])[0]
    return TieCount(len(codes), int((np.bincount(codes)[codes] > 1).sum()))


def count_ties(events: Slice, counted: NDArray[np.bool_] | None = None) -> TieCount:
    """Count the ties of a slice, of all events or of those that are `counted`."""
    if not len(events):
        return TieCount()
    same = events.ticks[1:] == events.ticks[:-1]
    same[events.bounds[1:-1] - 1] = False
    tied = np.zeros(len(events), np.bool_)
    tied[1:] = same
    tied[:-1] |= same
    if counted is None:
        return TieCount(len(events), int(tied.sum()))
    return TieCount(int(counted.sum()), int((tied & counted).sum()))
