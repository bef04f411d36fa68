"""Query groups: standing queries with the same time and partition columns, which share reading, events and work."""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from trellis.events.prepare import meets_constants, readable
from trellis.language.bound import WindowKind
from trellis.language.schema import Schema
from trellis.properties import cached_property
from trellis.streams.calendar import TimeLine
from trellis.streams.query import StandingQuery, WorkKey
from trellis.streams.sharing import WideOutput, wide_outputs
from trellis.streams.timeouts import Beginnings

GROUPS = 16  # that a worker remembers


@dataclass(frozen=True)
class QueryGroup:
    """Standing queries that share one state, because they are equal in `shared_columns`.

    `timeouts`: the names of those whose partial matches are told when they run out of time; `known` are their
    beginnings, where these have been found before.
    """

    queries: tuple[StandingQuery, ...]
    timeouts: frozenset[str] = frozenset()
    known: dict[str, tuple[Beginnings, ...]] | None = field(default=None, repr=False, compare=False)

    @property
    def schema(self) -> Schema:
        """The schema of the events."""
        return self.queries[0].bound.known_schema

    @property
    def time(self) -> str:
        """The column of times."""
        return self.schema.time

    @cached_property
    def line(self) -> TimeLine:
        """The time line of the events themselves."""
        return TimeLine(self.schema.time_type)

    def __post_init__(self) -> None:
        _ = self._beginnings  # tasks cannot plan: workers have no parser

    def __reduce__(self) -> tuple[Any, ...]:
        """Be read once in each worker, which has many batches.

        A thousand queries are alike, and must be small: what is more than a megabyte Spark broadcasts, which it does
        not load where it asks for the schema of a state.
        """
        return _group_of, (self._bytes,)

    @cached_property
    def _bytes(self) -> bytes:
        return zlib.compress(pickle.dumps((self.queries, self.timeouts, self._beginnings)))

    @cached_property
    def _beginnings(self) -> dict[str, tuple[Beginnings, ...]]:
        if self.known is not None or not self.timeouts:
            return self.known or {}
        from trellis.streams.beginnings import beginnings_of

        return {one.name: beginnings_of(one) for one in self.queries if one.name in self.timeouts}

    @cached_property
    def in_order(self) -> tuple[StandingQuery, ...]:
        """The queries, those that share work one after another."""
        return tuple(sorted(self.queries, key=lambda one: one.work))

    @cached_property
    def wide(self) -> Mapping[WorkKey, WideOutput]:
        """See `wide_outputs`."""
        return wide_outputs(self.queries)

    def beginnings(self, one: StandingQuery) -> tuple[Beginnings, ...]:
        """Return the beginnings of one of the queries, if these are asked for."""
        return self._beginnings.get(one.name, ())

    @property
    def partition(self) -> list[str]:
        """The columns of the partition."""
        return [name for name, _ in self.queries[0].bound.partition]

    @property
    def together(self) -> tuple[str, ...]:
        """The columns whose equal values must be in one bucket."""
        return bucket_columns(self.queries[0])

    @cached_property
    def columns(self) -> list[str]:
        """The columns that are held."""
        return list(dict.fromkeys(name for one in self.queries for name in (self.time, *one.columns)))

    @property
    def paged(self) -> bool:
        """Whether the state has pages: of rank counters of spans, or of sums."""
        spans = (one.bound.window.kind is not WindowKind.SLIDING and not one.early for one in self.queries)
        return any(spans) or any(one.summed for one in self.queries)

    def readable(self, table: pa.Table) -> NDArray[np.bool_]:
        """Return which events have a time, what breaks ties, and an id."""
        good = np.ones(table.num_rows, np.bool_)
        for _, name in self.schema.required:
            own = readable(table[name])
            if own is not None:
                good &= own.to_numpy(zero_copy_only=False)
        return good

    def wanted(self, table: pa.Table) -> NDArray[np.bool_]:
        """Return which events, all of them readable, some query may need."""
        wanted = np.zeros(table.num_rows, np.bool_)
        for one in self.queries:
            if one.plan.keep_failing:
                return np.ones(table.num_rows, np.bool_)
            wanted |= meets_constants(one.plan, table)
        return wanted


def bucket_columns(one: StandingQuery) -> tuple[str, ...]:
    """Return the columns by which the events of a query can be parted: those of GROUP BY, or of the partition."""
    return tuple(one.bound.group_by) or tuple(name for name, _ in one.bound.partition)


def shared_columns(one: StandingQuery) -> dict[str, Any]:
    """Return the columns that queries must have in common to share their events, as plain data."""
    schema = one.bound.known_schema
    ties = {"tie_breakers": list(schema.tie_breakers)} if schema.tie_breakers else {}
    return ties | {
        "time": schema.time,
        "event_id": schema.event_id,
        "type": schema.type,
        "partition": [name for name, _ in one.bound.partition],
        "together": list(bucket_columns(one)),
    }


@lru_cache(maxsize=GROUPS)
def _group_of(data: bytes) -> QueryGroup:
    """Return the group of a pickle, the same for the same."""
    return QueryGroup(*pickle.loads(zlib.decompress(data)))
