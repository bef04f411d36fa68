"""Workers take compiled kernels from the driver's machine, and compile none of those again."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd
from pyspark.sql import SparkSession

import trellis
from trellis.io.generate import generate_table

QUERY = "PATTERN Stock+ s[] WHERE [name] AND s[i].price > s[i-1].price AND s[i].volume != s[i-1].volume"


def test_workers_compile_nothing_that_the_driver_has(spark: SparkSession) -> None:
    here = trellis.query(QUERY).detect(generate_table("stock", 100, 1, companies=4), engine="local").count()

    def there(batches: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        import trellis
        from trellis.io.generate import generate_table
        from trellis.kernels.jit import KernelDispatcher

        compiled = []
        whole = KernelDispatcher.compile

        def compile(self: KernelDispatcher, signature: object) -> object:
            before = sum(self.stats.cache_misses.values())
            made = whole(self, signature)
            compiled.extend([self.py_func.__name__] * (sum(self.stats.cache_misses.values()) - before))
            return made

        KernelDispatcher.compile = compile
        try:
            for _ in batches:
                table = generate_table("stock", 100, 1, companies=4)
                count = trellis.query(query).detect(table, engine="local").count()
                yield pd.DataFrame({"count": [count], "compiled": [", ".join(compiled)]})
        finally:
            KernelDispatcher.compile = whole

    query = QUERY
    rows = spark.range(1).coalesce(1).mapInPandas(there, "count long, compiled string").collect()
    assert [(row["count"], row["compiled"]) for row in rows] == [(here, "")]
