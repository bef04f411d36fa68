"""The peers of the published limits: SQL for DuckDB and recipes for polars, with the tuning that was tried."""

from __future__ import annotations

import atexit
import gc
from threading import Timer
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa

PATIENCE = 60.0  # seconds after which DuckDB is stopped

# The command line freezes what is left when it ends, and DuckDB would complain that it leaks.
atexit.register(gc.unfreeze)

BOX = "{x}.lon BETWEEN r.lon - 0.05 AND r.lon + 0.05 AND {x}.lat BETWEEN r.lat - 0.02 AND r.lat + 0.02"
CRIME_SQL = f"""
    SELECT r.id AS r, b.id AS b, m.id AS m FROM crimes r, crimes b, crimes m
    WHERE r.kind = 'ROBBERY' AND b.kind = 'BATTERY' AND m.kind = 'THEFT'
      AND r.ts < b.ts AND b.ts < m.ts AND m.ts <= r.ts + 1800 AND b.ts <= r.ts + 1800
      AND {BOX.format(x="b")} AND {BOX.format(x="m")}
"""
# The same with each kind in buckets of half an hour, so that equality joins them. Both are measured.
CRIME_BUCKETS_SQL = f"""
    WITH r AS (SELECT *, unnest([ts // 1800, ts // 1800 + 1]) AS bucket FROM crimes WHERE kind = 'ROBBERY'),
         b AS (SELECT *, ts // 1800 AS bucket FROM crimes WHERE kind = 'BATTERY'),
         m AS (SELECT *, unnest([ts // 1800 - 1, ts // 1800]) AS before FROM crimes WHERE kind = 'THEFT'),
         rb AS (
             SELECT r.id AS r, b.id AS b, r.ts AS first, b.ts AS last, r.lon, r.lat, r.ts // 1800 AS begun
             FROM r JOIN b USING (bucket) WHERE r.ts < b.ts AND b.ts <= r.ts + 1800 AND {BOX.format(x="b")}
         )
    SELECT r.r, r.b, m.id AS m FROM rb AS r JOIN m ON m.before = r.begun
    WHERE r.last < m.ts AND m.ts <= r.first + 1800 AND {BOX.format(x="m")}
"""
# The three events of `benchmarks.peers`, in the same way.
STAR_BUCKETS_SQL = """
    WITH a AS (SELECT *, unnest([ts // 60, ts // 60 + 1]) AS bucket FROM events WHERE name = 'a'),
         b AS (SELECT *, ts // 60 AS bucket FROM events WHERE name = 'b'),
         c AS (SELECT *, unnest([ts // 60 - 1, ts // 60]) AS before FROM events WHERE name = 'c'),
         ab AS (
             SELECT a.ts AS a, b.ts AS b, a.price, a.ts // 60 AS begun
             FROM a JOIN b USING (bucket) WHERE a.ts < b.ts AND b.ts <= a.ts + 60 AND a.price > b.price
         )
    SELECT a AS ts, b, c.ts AS c FROM ab JOIN c ON c.before = ab.begun
    WHERE b < c.ts AND c.ts <= a + 60 AND ab.price > c.price
"""
# The hour is a condition of the recursion, so that no chain grows beyond it.
BIKES_SQL = """
    WITH RECURSIVE chains AS (
        SELECT [id] AS ids, bike, ts AS first, ts AS last, goal FROM trips
        UNION ALL
        SELECT list_append(c.ids, t.id), t.bike, c.first, t.ts, t.goal FROM chains c JOIN trips t
        ON t.bike = c.bike AND t.origin = c.goal AND t.ts > c.last AND t.ts <= c.first + 3600
    )
    SELECT ids FROM chains WHERE len(ids) >= 2 AND goal <= 20
"""
# The earliest cart behind a view, and the earliest buy behind that, by joins that are made for it.
FUNNEL_SQL = """
    WITH a AS (SELECT "user", ts FROM clicks WHERE kind = 'view'),
         b AS (SELECT "user", ts FROM clicks WHERE kind = 'cart'),
         c AS (SELECT "user", ts FROM clicks WHERE kind = 'buy'),
         ab AS (
             SELECT a."user", a.ts AS first, b.ts AS second
             FROM a ASOF LEFT JOIN b ON a."user" = b."user" AND a.ts < b.ts
         ),
         abc AS (
             SELECT first, second, c.ts AS third FROM ab ASOF LEFT JOIN c ON ab."user" = c."user" AND ab.second < c.ts
         )
    SELECT count(*), count(*) FILTER (second <= first + 3600),
           count(*) FILTER (second <= first + 3600 AND third <= first + 3600) FROM abc
"""


def database(tables: dict[str, pa.Table]) -> duckdb.DuckDBPyConnection:
    """Return a database of two threads that has the tables in its own format."""
    base = duckdb.connect(config={"threads": 2})
    for name, table in tables.items():
        base.register(f"given_{name}", table)
        base.execute(f"CREATE TABLE {name} AS FROM given_{name}")
    return base


def one(base: duckdb.DuckDBPyConnection, text: str, wanted: int) -> int:
    """Run a query to an Arrow table, and compare its size; it is stopped when it takes too long."""
    timer = Timer(PATIENCE, base.interrupt)
    timer.start()
    try:
        found = base.sql(text).arrow()
        table = found if isinstance(found, pa.Table) else found.read_all()
    except duckdb.InterruptException:
        return -1
    finally:
        timer.cancel()
    assert table.num_rows == wanted, (table.num_rows, wanted)
    return table.num_rows


def islands_by_polars(table: pa.Table) -> pl.DataFrame:
    """Return the runs of equal values with their ids."""
    frame: pl.DataFrame = pl.from_arrow(table)  # type: ignore[assignment]
    return frame.sort("t").group_by(pl.col("x").rle_id().alias("run"), maintain_order=True).agg("id")


def funnel_by_polars(frame: pl.DataFrame) -> tuple[int, ...]:
    """Return how many views reach each step."""
    a, b, c = (frame.filter(pl.col("kind") == kind).select("user", "ts").sort("ts") for kind in ("view", "cart", "buy"))
    b, c = b.with_columns(second="ts"), c.with_columns(third="ts")
    ab = a.join_asof(b, on="ts", by="user", strategy="forward", allow_exact_matches=False)
    ab = ab.filter(pl.col("second") <= pl.col("ts") + 3600).rename({"ts": "first"}).with_columns(ts="second").sort("ts")
    abc = ab.join_asof(c, on="ts", by="user", strategy="forward", allow_exact_matches=False)
    return len(a), len(ab), len(abc.filter(pl.col("third") <= pl.col("first") + 3600))


def crimes_plainly(rows: list[dict[str, Any]]) -> list[tuple[int, int, int]]:
    """Return the ids of robbery, battery and theft within half an hour and a box, by trying all triples."""
    first, second, third = ([x for x in rows if x["kind"] == kind] for kind in ("ROBBERY", "BATTERY", "THEFT"))

    def near(x: dict[str, Any], r: dict[str, Any]) -> bool:
        return (
            r["lon"] - 0.05 <= x["lon"] <= r["lon"] + 0.05
            and r["lat"] - 0.02 <= x["lat"] <= r["lat"] + 0.02
            and r["ts"] < x["ts"] <= r["ts"] + 1800
        )

    return sorted(
        (r["id"], b["id"], m["id"])
        for r in first
        for b in second
        if near(b, r)
        for m in third
        if near(m, r) and b["ts"] < m["ts"]
    )


def bikes_plainly(rows: list[dict[str, Any]]) -> list[tuple[int, ...]]:
    """Return the ids of all chains of trips of a bicycle within an hour that end at one of the first 20 stations."""
    found = []

    def follow(chain: list[dict[str, Any]]) -> None:
        last = chain[-1]
        if len(chain) > 1 and last["goal"] <= 20:
            found.append(tuple(trip["id"] for trip in chain))
        for trip in rows:
            later = last["ts"] < trip["ts"] <= chain[0]["ts"] + 3600
            if later and trip["bike"] == last["bike"] and trip["origin"] == last["goal"]:
                follow([*chain, trip])

    for trip in rows:
        follow([trip])
    return sorted(found)
