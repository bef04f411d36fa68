"""Features of events as they arrive: each batch over the events so far, of which only those in reach are kept."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from trellis.errors import DataError, UsageError
from trellis.events.clock import Clock
from trellis.events.sorting import column_of
from trellis.events.tables import as_tables, with_readable_times
from trellis.features.numbers import Floats
from trellis.features.queries import FeatureQuery
from trellis.language.bound import BoundQuery


class FittedFeatures(Protocol):
    """Features that have seen events, as arriving events are asked of them."""

    feature_names_in_: NDArray[Any]
    feature_names_: list[str]

    def feature_queries(self) -> Sequence[FeatureQuery]:
        """Return the queries as they are asked."""

    def bound(self, table: pa.Table) -> Sequence[BoundQuery]:
        """Return the queries bound to the columns of events."""

    def transform(self, X: Any) -> Any:
        """Return the features of events, a row per event."""


class FeatureArrivals:
    """Takes events as they arrive; make one with `features.arrivals()` of fitted features.

    The features of a batch are those that `transform` gives its events among all events that have come: no later event
    changes them. Kept is what lies within WITHIN of the latest time; `share`, where WITHIN stands without SLIDE, is of
    the trends of what is kept and of the batch.

    Parameters
    ----------
    features
        The features, fitted.
    """

    def __init__(self, features: FittedFeatures) -> None:
        self._features = features
        self._in_reach: pa.Table | None = None
        self._newest: Any = None
        for query in features.feature_queries():
            if query.per_event.syntax.within is None:
                raise UsageError(
                    f"the query `{query.name}` has no WITHIN, so that every event would have to be kept for ever",
                    "Say how long a trend may last: WITHIN 1 hour.",
                )
            if query.per_partition is not None:
                raise UsageError("features of whole partitions need all events", "Leave out per_partition.")

    @property
    def held(self) -> int:
        """How many events are kept."""
        return 0 if self._in_reach is None else self._in_reach.num_rows

    def take(self, events: Any) -> Floats:
        """Take the next events; return their features, a row per event.

        Parameters
        ----------
        events
            A frame or an Arrow table with the columns that `fit` saw.

        Raises
        ------
        DataError
            If an event is earlier than one of an earlier batch; then nothing is taken.
        """
        table = as_tables(events)[None].select(self._features.feature_names_in_.tolist())
        if not table.num_rows:
            return np.empty((0, len(self._features.feature_names_)))
        whole = (
            table if self._in_reach is None else pa.concat_tables([self._in_reach, table], promote_options="permissive")
        )
        bounds = self._features.bound(table)
        times = [self._times(bound, whole) for bound in bounds]
        fresh = times[0][0][self.held :]
        if self._newest is not None and fresh.min() < self._newest:
            raise DataError(
                "an event is earlier than one of an earlier batch", "Hold events back until none before them can come."
            )
        with warnings.catch_warnings():
            if self._in_reach is not None:  # the first batch has told of ties
                warnings.filterwarnings("ignore", ".* share `")
            found = np.asarray(self._features.transform(whole))[self.held :]
        reached = np.any([own >= own.max() - size for own, size in times], axis=0)
        self._in_reach, self._newest = whole.filter(pa.array(reached)), fresh.max()
        return found

    def _times(self, bound: BoundQuery, table: pa.Table) -> tuple[NDArray[Any], int | float]:
        """Return the times of events as numbers, and how far apart those of one trend can be."""
        readable, time = with_readable_times({None: table}, bound.known_schema.time)
        clock = Clock(bound.window, bound.known_schema.time_type)
        assert time is not None
        return clock.numbers(column_of(readable[None], time)), clock.size
