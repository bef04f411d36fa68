"""Features for models: numbers of the trends through each event, as columns that scikit-learn and Spark ML take."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trellis.features.arrivals import FeatureArrivals
from trellis.features.transformer import TrendFeatures

if TYPE_CHECKING:
    from trellis.engines.spark.features import SparkTrendFeatures

__all__ = ["FeatureArrivals", "SparkTrendFeatures", "TrendFeatures"]


def __getattr__(name: str) -> Any:
    """Import what needs Spark when it is asked for."""
    if name == "SparkTrendFeatures":
        from trellis.engines.spark.features import SparkTrendFeatures

        return SparkTrendFeatures
    raise AttributeError(f"module `{__name__}` has no attribute `{name}`")
