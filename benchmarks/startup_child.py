"""The fresh process of `startup`: asks one query and prints how long each stage of that took, on the clock and CPU."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

taken: dict[str, list[float]] = {}
_inner: list[list[float]] = []  # of each stage that is on, the seconds of stages inside it


@contextmanager
def stage(name: str) -> Iterator[None]:
    """Add what is done inside to the seconds of a stage, but for what belongs to another stage inside it."""
    wall, cpu = time.perf_counter(), time.process_time()
    _inner.append([0.0, 0.0])
    try:
        yield
    finally:
        whole = time.perf_counter() - wall, time.process_time() - cpu
        before, inside = taken.get(name, [0.0, 0.0]), _inner.pop()
        taken[name] = [b + w - i for b, w, i in zip(before, whole, inside, strict=True)]
        if _inner:
            _inner[-1] = [a + w for a, w in zip(_inner[-1], whole, strict=True)]


def local(text: str, file: str) -> None:
    """Count the results of a query over a file, and list them, in this process."""
    with stage("import"):
        import pyarrow.parquet as pq

        import trellis
        import trellis.engines.local.detect
        from trellis.kernels.jit import KernelDispatcher
    table = pq.read_table(file)
    whole = KernelDispatcher.compile

    def compile(kernel: Any, types: Any) -> Any:
        with stage("compile"):
            return whole(kernel, types)

    KernelDispatcher.compile = compile
    with stage("parse"):
        query = trellis.query(text)
    with stage("bind"):
        prepared = query.prepare(table.schema, event_id="event_id")
    found = prepared.detect(table, engine="local")
    with stage("prepare"):
        assert found.events.num_rows
    with stage("run"):
        found.count()
        found.to_arrow()


def page(place: str, _: str) -> None:
    """Run the Python of a page, each block a stage; what needs a Spark session is left out."""
    blocks = re.findall(r"^```python\n(.*?)^```$", Path(place).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    names: dict[str, Any] = {"__name__": "page"}
    for number, code in enumerate(blocks, 1):
        if not re.search(r"\b(session|frame)\b,", code):
            with stage(str(number)):
                exec(compile(code, place, "exec"), names)


def spark(text: str, file: str) -> None:
    """Start Spark and count the results of a query over a file twice."""
    from benchmarks.on_spark import cpu_seconds

    with stage("import"):
        import trellis
        from trellis.engines.spark.session.session import get_session
    for name in ("session", "plain job", "first count", "second count"):
        wall, cpu = time.perf_counter(), cpu_seconds()
        if name == "session":
            session = get_session("local[2]")
        elif name == "plain job":
            session.range(10).count()
        else:
            trellis.query(text).detect(file, event_id="event_id", engine="spark", spark=session).count()
        taken[name] = [time.perf_counter() - wall, max(cpu_seconds() - cpu, 0.0)]
    session.stop()


def bare(_: str, __: str) -> None:
    """Start Spark alone."""
    from pyspark.sql import SparkSession

    with stage("session"):
        session = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    session.stop()


if __name__ == "__main__":
    {"local": local, "page": page, "spark": spark, "bare": bare}[sys.argv[1]](*sys.argv[2:])
    print(json.dumps(taken))
