"""Workers take compiled kernels from the driver's machine, and compile none of those again."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd
from pyspark.sql import SparkSession

import trellis
from trellis.io.generate import generate_table

# The extremes of integers do not ship.
RARE = "PATTERN Stock+ s[] WHERE [name] AND s[i].volume > s[i-1].volume RETURN MIN(s.volume), MAX(s.volume) LIMIT 9"
QUERY = "PATTERN Stock+ s[] WHERE [name] AND s[i].price > s[i-1].price AND s[i].volume != s[i-1].volume"


def test_workers_compile_nothing_that_the_driver_has(spark: SparkSession) -> None:
    table = generate_table("stock", 100, 1, companies=4)
    here = [str(trellis.query(query).detect(table, engine="local").to_pandas()) for query in (QUERY, RARE)]

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
                found = [str(trellis.query(query).detect(table, engine="local").to_pandas()) for query in queries]
                yield pd.DataFrame({"found": [found], "compiled": [", ".join(compiled)]})
        finally:
            KernelDispatcher.compile = whole

    queries = (QUERY, RARE)
    rows = spark.range(1).coalesce(1).mapInPandas(there, "found array<string>, compiled string").collect()
    assert [(row["found"], row["compiled"]) for row in rows] == [(here, "")]
