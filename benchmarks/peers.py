"""Sequences, rising prices, turns of prices and graphs beside DuckDB, FlinkCEP, Flink SQL, polars, pandas, networkx."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

import trellis
from benchmarks import Peer, Row, Table, best_of
from benchmarks.flink import found_by_flink, found_by_flink_sql
from benchmarks.limits_peers import STAR_BUCKETS_SQL, database, one
from benchmarks.sequences import STAR, STAR_SQL, named
from benchmarks.vertex import votes
from trellis.graphs import PageRank, Triangles, edge_list, execute

RISING = "PATTERN Stock+ s[] WHERE [name] AND s[i].price > s[i-1].price REPORT any WITHIN {span}"
TURN = """
    PATTERN SEQ(Stock a, Stock+ b[], Stock c)
    WHERE [name] AND b.price < a.price AND b[i].price < b[i-1].price AND c.price > LAST(b).price
    SELECT contiguous REPORT any
"""
STAR_PLAIN_SQL = "SELECT a.ts, b.ts AS b, c.ts AS c" + STAR_SQL.format(
    table="events", more="AND c.ts <= a.ts + 60 AND b.ts <= a.ts + 60"
)
PATIENCE = 60.0


def run(quick: bool) -> list[Table]:
    return [star(quick), rising(quick), turns(quick), graphs(quick)]


# --- A sequence of three ----------------------------------------------------------------------------------------


def star(quick: bool) -> Table:
    n = 300 if quick else 20_000
    table = named(n)
    text = f"{STAR} WITHIN 60"

    def ours() -> int:
        return trellis.query(text).detect(table, time="ts").to_arrow().num_rows

    found = ours()
    base = database({"events": table})
    recipes = {"by buckets of a minute": STAR_BUCKETS_SQL, "as one would write it": STAR_PLAIN_SQL}
    peers = [
        Peer(
            f"DuckDB's self-join {how}, to Arrow",
            best_of(f"DuckDB, {how}", lambda s=sql: one(base, s, found), quick=quick, runs=2),
        )
        for how, sql in recipes.items()
    ]
    if not quick:
        flink = found_by_flink("star", table, span=61, patience=PATIENCE)
        assert flink.matches in (None, found)
        peers.append(Peer("FlinkCEP, which counts them, by its own clock", flink.timing))
    row = Row(f"{n:,} events: {found:,} matches listed", best_of("sequence", ours, quick=quick), peers=peers)
    return Table("T1;T2;T3 with T1.price > T2.price and T1.price > T3.price, within 60", [row])


# --- Rising prices ----------------------------------------------------------------------------------------------


def prices(n: int, symbols: int) -> pa.Table:
    """Return prices of symbols at random, 200 a second."""
    rng = np.random.default_rng(1)
    return pa.table(
        {
            "time": np.arange(n) * 5,
            "name": np.char.add("s", rng.integers(0, symbols, n).astype(str)),
            "price": np.round(rng.random(n) * 100, 2),
        }
    )


def rising(quick: bool) -> Table:
    n, span = (400, 10_000) if quick else (20_000, 10_000)
    table = prices(n, 200)

    def ours() -> int:
        return trellis.query(RISING.format(span=span)).detect(table, time="time").to_arrow().num_rows

    found = ours()
    peers = []
    if not quick:
        flink = found_by_flink("rising", table, span=span + 1, patience=PATIENCE)
        assert flink.matches in (None, found), (flink.matches, found)
        peers = [Peer("FlinkCEP, which counts them, by its own clock", flink.timing)]
    row = Row(f"{n:,} events: {found:,} trends listed", best_of("rising", ours, quick=quick), peers=peers)
    return Table("All rising sub-sequences of 200 symbols within 10 s", [row])


# --- Turns: contiguous rows -------------------------------------------------------------------------------------


def turns(quick: bool) -> Table:
    n = 2_000 if quick else 200_000
    table = prices(n, 200)
    frame: pl.DataFrame = pl.from_arrow(table)  # type: ignore[assignment]
    plain = table.to_pandas()

    def ours() -> int:
        return trellis.query(TURN).detect(table, time="time").count()

    found = ours()
    assert found == turns_by_polars(frame) == turns_by_pandas(plain)
    peers = [
        Peer("polars, shifts and runs", best_of("polars", lambda: turns_by_polars(frame), quick=quick)),
        Peer("pandas, the same", best_of("pandas", lambda: turns_by_pandas(plain), quick=quick)),
    ]
    if not quick:
        flink = found_by_flink_sql(table, patience=PATIENCE)
        assert flink.matches in (None, found), (flink.matches, found)
        peers.append(Peer("Flink SQL's MATCH_RECOGNIZE, by its own clock", flink.timing))
    row = Row(f"{n:,} events: {found:,} matches counted", best_of("turns", ours, quick=quick), peers=peers)
    return Table("Prices that fall, row by row, and then rise: contiguous rows of 200 symbols", [row])


def turns_by_polars(frame: pl.DataFrame) -> int:
    """Count, for each fall that ends in a rise, its rows: at each of them a match may begin."""
    price = pl.col("price")
    falls = (price < price.shift()).over("name").fill_null(False)
    rises = (price > price.shift()).over("name").fill_null(False)
    rows = frame.select("name", falls=falls, rises=rises).with_columns(
        run=(~pl.col("falls")).cum_sum().over("name"),
        next_rises=pl.col("rises").shift(-1).over("name").fill_null(False),
    )
    ends = rows.filter("falls").group_by("name", "run").agg(falls=pl.len(), rises=pl.col("next_rises").last())
    return int(ends.filter("rises")["falls"].sum())


def turns_by_pandas(frame: pd.DataFrame) -> int:
    """Count the same."""
    groups = frame.groupby("name", sort=False)["price"]
    before = groups.shift()
    falls, rises = frame["price"] < before, frame["price"] > before
    run = (~falls).groupby(frame["name"], sort=False).cumsum()
    next_rises = rises.groupby(frame["name"], sort=False).shift(-1, fill_value=False)
    rows = pd.DataFrame({"name": frame["name"], "run": run, "next": next_rises})[falls]
    ends = rows.groupby(["name", "run"], sort=False)["next"].agg(["size", "last"])
    return int(ends.loc[ends["last"], "size"].sum())


# --- Graphs -----------------------------------------------------------------------------------------------------


def graphs(quick: bool) -> Table:
    name, table = votes(quick)
    graph = edge_list(table)
    pairs = list(zip(table["source"].to_pylist(), table["target"].to_pylist(), strict=True))
    directed, plain = nx.DiGraph(pairs), nx.Graph((a, b) for a, b in pairs if a != b)
    works = {
        "triangles": (Triangles(), lambda: nx.triangles(plain)),
        "PageRank": (PageRank(tolerance=1e-9), lambda: nx.pagerank(directed, tol=1e-12, max_iter=1000)),
    }
    rows = []
    for what, (program, theirs) in works.items():
        ours = best_of(what, lambda p=program: execute(p, graph), quick=quick)
        peer = "networkx" if what == "triangles" else "networkx, by SciPy"
        rows.append(Row(what, ours, peers=[Peer(peer, best_of(f"networkx, {what}", theirs, quick=quick))]))
    return Table(f"{name}: {plain.number_of_nodes():,} vertices, {len(pairs):,} edges, from a built graph", rows)
