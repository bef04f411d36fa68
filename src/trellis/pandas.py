"""`import trellis.pandas` gives data frames of pandas `frame.trellis.detect(query, ...)` and `.count(query, ...)`."""

from __future__ import annotations

import pandas as pd

from trellis.api.accessors import FrameAccessor

if not hasattr(pd.DataFrame, "trellis"):
    pd.api.extensions.register_dataframe_accessor("trellis")(FrameAccessor)
