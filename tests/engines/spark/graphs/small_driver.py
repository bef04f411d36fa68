"""A driver with a small heap, run as a program: a graph larger than that heap is kept by the cluster and asked."""

from __future__ import annotations

import json
import sys
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

import trellis
from trellis.graphs import Components, Event, Operator, time_windows

EDGES, NOTE, ACCOUNTS = 60_000, 10_000, 3_000


class Groups(Operator):
    """Who is connected with whom; each edge keeps a long note."""

    output = {"groups": "int64", "accounts": "int64"}

    def on_event(self, event: Event) -> None:
        self.manipulate_graph(add_edges=[(event.payer, event.payee, event.note)])

    def on_close(self) -> Any:
        found = self.execute(Components()).to_dict()
        yield {"groups": len(set(found.values())), "accounts": len(found)}


def main(conf: dict[str, str]) -> None:
    builder = SparkSession.builder
    for name, value in conf.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    note = f.substring(f.repeat(f.sha2(f.col("id").cast("string"), 512), NOTE // 128 + 1), 1, NOTE)
    turn = f.floor(f.col("id") / ACCOUNTS) + 1  # even accounts pay even ones, and no pair comes twice
    payee = (f.col("id") + 74 * turn) % ACCOUNTS
    events = spark.range(EDGES).select(
        "id", f.col("id").alias("ts"), (f.col("id") % ACCOUNTS).alias("payer"), payee.alias("payee"), note.alias("note")
    )
    (row,) = (
        trellis.pipeline(time_windows(10 * EDGES), Groups)
        .run(events, time="ts", event_id="id", graphs="distributed")
        .collect()
    )
    heap = spark._jvm.java.lang.Runtime.getRuntime().maxMemory()  # type: ignore[union-attr]
    print(json.dumps({"heap": heap, "groups": row["groups"], "accounts": row["accounts"]}))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
