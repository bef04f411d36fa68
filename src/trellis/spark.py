"""`import trellis.spark` gives data frames of Spark `df.trellis.detect(query, ...)` and `df.trellis.count(query, ...)`.

Frames of pandas and polars get the same where these are imported already; `trellis.pandas` and `trellis.polars` see to
that by themselves. `trellis.register(spark)` gives SQL the table function `trellis_detect`. `PostgresSink` writes the
results of a stream to a table of PostgreSQL, each batch once.
"""

from __future__ import annotations

import importlib
import sys

from trellis.api.accessors import FrameAccessor
from trellis.engines.spark.sources.frames import give_accessor
from trellis.engines.spark.stream.postgres import PostgresSink
from trellis.engines.spark.table_function import register

__all__ = ["PostgresSink", "register"]

give_accessor(FrameAccessor)
for _library in ("pandas", "polars"):
    if _library in sys.modules:
        importlib.import_module(f"trellis.{_library}")
