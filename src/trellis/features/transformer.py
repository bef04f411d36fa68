"""`TrendFeatures`: numbers of the trends through each event, as a transformer of scikit-learn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from trellis.errors import UsageError
from trellis.events.tables import as_tables
from trellis.features.arrivals import FeatureArrivals
from trellis.features.base import FeatureBase
from trellis.features.numbers import Floats, exact_values, values_of
from trellis.features.queries import Feature, FeatureKind, FeatureQuery, feature_queries
from trellis.limits import DEFAULT_MAX_TRENDS

if TYPE_CHECKING:
    import pandas

    from trellis.language.bound import BoundQuery

ROW = "trellis_row"  # the id of an event whose column nobody names


@dataclass(frozen=True)
class _Answer:
    """The answer of one query, the event that each row is about, and the features made of it."""

    table: pa.Table
    rows: NDArray[np.int64]
    features: list[Feature]


class TrendFeatures(FeatureBase):
    """Numbers of the trends through each event, for each of some queries; a transformer of scikit-learn.

    A query without AGGREGATE gives for each event: `log_count`, the logarithm of 1 more than the number of trends
    through it; `share`, their part of all trends of its partition (and window); `longest`, the greatest length of one;
    `log_begins` and `log_ends`, for those that begin and end with it. One with AGGREGATE gives what that says, PER
    EVENT. An event without trends has 0, and NaN for values such as MIN(s.amount). Of several windows numbers are
    added, and extremes taken.

    Parameters
    ----------
    queries
        Queries by name, `{"rising": "PATTERN ..."}`, or a list: texts, files, or `trellis.query(...)`.
    time, type, event_id
        The columns that hold time, type and id of an event; without `event_id` the rows are numbered.
    attributes
        Attributes whose sums (as logarithms with their sign), least and greatest values over the trends through an
        event are features, too: of each variable of the pattern.
    per_partition
        Give each event also the number of trends of its whole partition, and their greatest length.
    params
        Values of the queries' parameters.
    max_trends
        The bound on listing, for the few queries that need it (HAVING).

    Attributes
    ----------
    n_features_in_, feature_names_in_
        The columns of the events that `fit` saw.
    """

    def __init__(
        self, queries: Any, *, time: str | Sequence[str] | None = None, type: str | None = None,
        event_id: str | None = None, attributes: Sequence[str] = (), per_partition: bool = False,
        params: Mapping[str, Any] | None = None, max_trends: int = DEFAULT_MAX_TRENDS,
    ) -> None:  # fmt: skip
        self.queries = queries
        self.time = time
        self.type = type
        self.event_id = event_id
        self.attributes = attributes
        self.per_partition = per_partition
        self.params = params
        self.max_trends = max_trends

    # --- What scikit-learn asks for ---------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None) -> TrendFeatures:
        """Bind the queries to the columns of the events; nothing else is learnt from them.

        Raises
        ------
        TrellisError
            If a query does not fit the columns, as `Query.detect` says it.
        """
        table = as_tables(X)[None] if not isinstance(X, Mapping) else None
        if table is None:
            raise UsageError("features are of the rows of one table", "Give one, with a column that tells the types.")
        self.feature_names_in_ = np.array(table.column_names, object)
        self.n_features_in_ = len(table.column_names)
        self.feature_names_ = [
            feature.name for answer in self._answers(table.slice(0, 0)) for feature in answer.features
        ]
        if len(set(self.feature_names_)) < len(self.feature_names_):
            raise UsageError("two features would have the same name", "Give the queries other names.")
        return self

    def transform(self, X: Any) -> Floats:
        """Return the features of events: a row per event, in the order of `X`, a column a feature.

        Parameters
        ----------
        X
            A pandas or polars frame, or an Arrow table. Trends are sought among these events alone.
        """
        self._check_fitted()
        table = as_tables(X)[None]
        columns = [
            values_of(feature, answer.table, answer.rows, table.num_rows)
            for answer in self._answers(table)
            for feature in answer.features
        ]
        return np.stack(columns, axis=1) if columns else np.empty((table.num_rows, 0))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return the names of the features: query and number, as `rising_log_count`."""
        self._check_fitted()
        return np.array(self.feature_names_, object)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "feature_names_")

    # --- More -------------------------------------------------------------------------------------------------

    def exact(self, X: Any) -> pandas.DataFrame:
        """Return the numbers behind `log_count`, `log_begins` and `log_ends`, with all their digits, of each event."""
        import pandas

        self._check_fitted()
        table = as_tables(X)[None]
        found = {
            feature.name.replace("_log_", "_", 1): exact_values(feature, answer.table, answer.rows, table.num_rows)
            for answer in self._answers(table)
            for feature in answer.features
            if feature.kind is FeatureKind.COUNT
        }
        return pandas.DataFrame({name: pandas.Series(numbers, dtype=object) for name, numbers in found.items()}
                                ).infer_objects()  # fmt: skip

    def arrivals(self) -> FeatureArrivals:
        """Return an object that takes events as they arrive, and gives their features over the events so far.

        Raises
        ------
        UsageError
            If a query has no WITHIN.
        """
        return FeatureArrivals(self)

    def feature_queries(self) -> list[FeatureQuery]:
        """Return the queries as they are asked."""
        return feature_queries(self.queries, self.attributes, self.per_partition)

    def bound(self, table: pa.Table) -> list[BoundQuery]:
        """Return the queries bound to the columns of events."""
        return [self._detect(query.per_event, table.slice(0, 0)).plan.bound for query in self.feature_queries()]

    def _check_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            raise UsageError("these features have seen no events", "Call fit(events) before.")

    def _answers(self, table: pa.Table) -> list[_Answer]:
        found = []
        for query in self.feature_queries():
            found.append(self._of_events(query, table))
            if query.per_partition is not None:
                found.append(self._of_partitions(query, table))
        return found

    def _detect(self, query: Any, table: pa.Table) -> Any:
        named = self.event_id
        if named is None:
            table, named = table.append_column(ROW, pa.array(np.arange(table.num_rows))), ROW
        return query.detect(
            table, time=self.time, type=self.type, event_id=named, params=self.params, max_trends=self.max_trends,
            engine="local",
        )  # fmt: skip

    def _of_events(self, query: FeatureQuery, table: pa.Table) -> _Answer:
        results = self._detect(query.per_event, table)
        features = query.features(results.plan.bound, False)
        answer = results.aggregates().to_arrow()
        if self.event_id is None:
            rows = answer["event"].to_numpy()
        else:
            rows = pc.index_in(answer["event"], table[self.event_id].combine_chunks()).to_numpy()
        return _Answer(answer, rows.astype(np.int64), features)

    def _of_partitions(self, query: FeatureQuery, table: pa.Table) -> _Answer:
        """Return the answer about whole partitions, a row for each event of one."""
        assert query.per_partition is not None
        results = self._detect(query.per_partition, table)
        bound = results.plan.bound
        features = query.features(bound, True)
        answer = results.aggregates().to_arrow()
        names = [name for name, _ in bound.partition]
        if not names:
            events = np.repeat(np.arange(table.num_rows), answer.num_rows)
            return _Answer(answer.take(pa.array(np.tile(np.arange(answer.num_rows), table.num_rows))), events, features)
        codes = _codes([answer.select(names), table.select(names)])
        order = np.argsort(codes[0], kind="stable")
        begins = np.searchsorted(codes[0][order], codes[1], "left")
        numbers = np.searchsorted(codes[0][order], codes[1], "right") - begins
        events = np.repeat(np.arange(table.num_rows), numbers)
        within = np.arange(len(events)) - np.repeat(np.cumsum(numbers) - numbers, numbers)
        return _Answer(answer.take(pa.array(order[np.repeat(begins, numbers) + within])), events, features)


def _codes(tables: list[pa.Table]) -> list[NDArray[np.int64]]:
    """Return a number for each row of two tables, the same for rows with the same values, NULL being one."""
    from trellis.events.columns.ordering import row_codes
    from trellis.events.columns.types import from_arrow, normalise

    columns = []
    for name in tables[0].column_names:
        parts = [normalise(table[name].combine_chunks(), from_arrow(table[name].type)) for table in tables]
        columns.append(pa.concat_arrays(parts))
    whole = row_codes(columns)
    return [whole[: tables[0].num_rows], whole[tables[0].num_rows :]]
