"""`import trellis.polars` gives data frames of polars `frame.trellis.detect(query, ...)` and `.count(query, ...)`."""

from __future__ import annotations

import polars as pl

from trellis.api.accessors import FrameAccessor

if not hasattr(pl.DataFrame, "trellis"):
    pl.api.register_dataframe_namespace("trellis")(FrameAccessor)
