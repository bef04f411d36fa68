"""The parent of Spark's workers in tests: imports once what each of them would import, then forks them as Spark's does.

There are some fifty workers in a run of the tests, since one that fails is not used again, nor one that was idle for a
minute.
"""

from __future__ import annotations

import gc
from importlib import import_module
from pathlib import Path

import pandas as pd  # noqa: F401
import pyarrow.parquet as pq  # noqa: F401
import pyspark.worker  # noqa: F401
from numba.core.registry import cpu_target
from pyspark.daemon import manager

import trellis.engines.spark

if __name__ == "__main__":
    folder = Path(trellis.engines.spark.__path__[0])
    for file in sorted(folder.glob("*/*.py")):
        if "def __call__(self, batches: " in file.read_text():
            import_module(f"trellis.engines.spark.{file.parent.name}.{file.stem}")
    cpu_target.typing_context.refresh()
    cpu_target.target_context.refresh()
    gc.collect()
    gc.freeze()  # workers look for garbage after each task
    manager()
