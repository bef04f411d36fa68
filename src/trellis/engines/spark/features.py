"""`SparkTrendFeatures`: numbers of the trends through each event, as a transformer of Spark ML."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark import keyword_only
from pyspark.ml import Transformer
from pyspark.ml.param import Param, Params, TypeConverters
from pyspark.ml.util import DefaultParamsReadable, DefaultParamsWritable
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from trellis.errors import UsageError
from trellis.providers import provided

LEADING = 17  # digits that a double keeps
LARGEST = 1.7976931348623157e308


class SparkTrendFeatures(Transformer, DefaultParamsReadable[Any], DefaultParamsWritable):
    """Numbers of the trends through each event, as columns of doubles; a transformer of Spark ML.

    The columns are those of `trellis.features.TrendFeatures`, behind the frame's own; pyspark's `VectorAssembler` makes
    a vector of them. It is saved and read as other stages are: `queries` is stored as text.

    Parameters
    ----------
    queries
        Queries by name, or a list, as texts.
    time, type, eventId
        The columns that hold time, type and id of an event; ids are needed.
    attributes
        Attributes whose sums and extremes are features, too.
    params
        Values of the queries' parameters.
    """

    queries = Param(Params._dummy(), "queries", "queries by name, as JSON", TypeConverters.toString)
    time = Param(Params._dummy(), "time", "the column of times", TypeConverters.toString)
    type = Param(Params._dummy(), "type", "the column of types", TypeConverters.toString)
    eventId = Param(Params._dummy(), "eventId", "the column of ids", TypeConverters.toString)
    attributes = Param(Params._dummy(), "attributes", "attributes to sum up", TypeConverters.toListString)
    params_ = Param(Params._dummy(), "params_", "values of parameters, as JSON", TypeConverters.toString)

    @keyword_only
    def __init__(
        self, *, queries: Mapping[str, str] | Sequence[str] | str | None = None, time: str | None = None,
        type: str | None = None, eventId: str | None = None, attributes: Sequence[str] = (),
        params: Mapping[str, Any] | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        given: dict[str, Any] = vars(self)["_input_kwargs"]
        texts = {name: given[name] for name in ("time", "type", "eventId") if given.get(name) is not None}
        self._set(attributes=list(given.get("attributes", ())), params_=json.dumps(given.get("params") or {}), **texts)
        if given.get("queries") is not None:
            asked = provided("feature queries").feature_queries(given["queries"], (), False)
            self._set(queries=json.dumps({query.name: query.text for query in asked}))

    def _transform(self, dataset: DataFrame) -> DataFrame:
        if not self.isSet(self.eventId) or not self.isSet(self.queries):
            raise UsageError("features on Spark need queries and ids", "Give queries= and eventId=.")
        room = provided("feature queries")
        asked = room.feature_queries(
            json.loads(self.getOrDefault(self.queries)), self.getOrDefault(self.attributes), False
        )
        named = self.getOrDefault(self.eventId)
        found = dataset
        for query in asked:
            results = query.per_event.detect(
                dataset, time=self._given(self.time), type=self._given(self.type), event_id=named,
                params=json.loads(self.getOrDefault(self.params_)), engine="spark",
            )  # fmt: skip
            features = query.features(results.plan.bound, False)
            answer = results.aggregates().to_spark()
            columns = {feature.name: feature for feature in features}
            per_event = answer.groupBy(f.col("event").alias(named)).agg(
                *(_of_windows(feature).alias(name) for name, feature in columns.items())
            )
            found = found.join(per_event, named, "left")
            for name, feature in columns.items():
                found = found.withColumn(name, _finished(feature, f.col(f"`{name}`")))
        return found

    def _given(self, param: Any) -> str | None:
        return self.getOrDefault(param) if self.isSet(param) else None


def _of_windows(feature: Any) -> Column:
    """Return the number of an event out of those of its windows: logarithms of counts are added as numbers."""
    number, kind = f.col(feature.column), feature.kind.value
    if kind == "count":
        logarithms = f.collect_list(_logarithm(number, f.col(f"{feature.column}_text")))
        most = f.array_max(logarithms)
        parts = f.aggregate(logarithms, f.lit(0.0), lambda total, one: total + f.exp(one - most))
        return most + f.log(parts)
    double = number.cast("double")
    if feature.exact:
        double = f.coalesce(double, f.col(f"{feature.column}_text").cast("double"))
    if kind == "sum":
        return f.sum(double)
    return f.min(double) if kind == "least" else f.max(double)


def _logarithm(number: Column, text: Column) -> Column:
    """Return the logarithm of a whole number; of one of more than 38 digits by its leading ones."""
    leading = f.log(f.substring(text, 1, LEADING).cast("double")) + (f.length(text) - LEADING) * math.log(10)
    return f.when(number.isNull(), leading).when(number == 0, f.lit(-math.inf)).otherwise(f.log(number.cast("double")))


def _finished(feature: Any, column: Column) -> Column:
    """Return a feature of events, also of those without a result."""
    kind = feature.kind.value
    if kind == "count":
        more = f.when(column > 700, column).otherwise(f.log1p(f.exp(column)))
        return f.when(column.isNull() | f.isnan(column), f.lit(0.0)).otherwise(more)
    if kind == "sum":
        total = f.greatest(f.least(f.coalesce(column, f.lit(0.0)), f.lit(LARGEST)), f.lit(-LARGEST))
        return f.signum(total) * f.log1p(f.abs(total))
    return f.coalesce(column, f.lit(feature.absent))
