"""How the peers were tuned: the recipes and settings of the other tables, beside others that were tried."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import polars as pl
import pyarrow as pa

from benchmarks import Peer, Row, Table, Timing, at_least, best_of
from benchmarks.flink import found_by_flink
from benchmarks.limits import clicks, crimes, runs, trips
from benchmarks.limits_peers import (
    BIKES_SQL,
    CRIME_BUCKETS_SQL,
    CRIME_SQL,
    FUNNEL_SQL,
    STAR_BUCKETS_SQL,
    database,
    funnel_by_polars,
    islands_by_polars,
)
from benchmarks.peers import STAR_PLAIN_SQL, prices, turns_by_polars
from benchmarks.sequences import named

PATIENCE = 60.0
SETTINGS = {
    "one thread": "SET threads = 1",
    "rows in any order": "SET preserve_insertion_order = false",
}
"""Settings of DuckDB that were tried; the tables have two threads, and its own defaults otherwise."""


def run(quick: bool) -> list[Table]:
    notes = [
        "A ratio says how many times as long another recipe or setting takes than the one that is used: below 1 it "
        "would have been the better one. All give the same answer.",
    ]
    tables = [Table("DuckDB", _duckdb(quick)), Table("polars", _polars(quick), notes)]
    return tables if quick else [*tables, Table("FlinkCEP, by its own clock", _flink())]


def _row(what: str, used: Timing, others: Mapping[str, Timing]) -> Row:
    best = min((other.wall for other in others.values()), default=used.wall)
    target = at_least(0.75, "of the time of what is used", best / used.wall)
    return Row(what, used, peers=[Peer(name, timing) for name, timing in others.items()], targets=[target])


def _duckdb(quick: bool) -> list[Row]:
    small, large = (300, 2_000) if quick else (20_000, 1_000_000)
    questions: list[tuple[str, dict[str, pa.Table], str, dict[str, str]]] = [
        ("T1;T2;T3, joined by buckets of a minute", {"events": named(small)}, STAR_BUCKETS_SQL,
         {"as one would write it": STAR_PLAIN_SQL}),
        ("crimes, joined by buckets of half an hour", {"crimes": crimes(small)}, CRIME_BUCKETS_SQL,
         {"as one would write it": CRIME_SQL, "by quarters of an hour": _of_quarters()}),
        ("bicycles, recursive SQL", {"trips": trips(small)}, BIKES_SQL,
         {"trips joined with their followers before": _followers_first()}),
        ("funnel, ASOF joins", {"clicks": clicks(large)}, FUNNEL_SQL,
         {"the least time behind, by windows": _by_windows()}),
    ]  # fmt: skip
    rows = []
    for what, tables, used, others in questions:
        base = database(tables)

        def answer(text: str = used, base: object = base) -> list[tuple[object, ...]]:
            found = base.sql(text).to_arrow_table()  # type: ignore[attr-defined]
            return [tuple(row.values()) for row in found.to_pylist()] if found.num_rows < 5 else [(found.num_rows,)]

        wanted = answer()
        usual = best_of(what, lambda a=answer: a(), quick=quick)
        tried = {}
        for name, text in others.items():
            assert answer(text) == wanted, name
            tried[name] = best_of(f"{what}, {name}", lambda a=answer, t=text: a(t), quick=quick, runs=2)
        for name, setting in SETTINGS.items():
            other = database(tables)
            other.execute(setting)
            tried[name] = best_of(f"{what}, {name}", lambda a=answer, o=other, t=used: a(t, o), quick=quick)
        rows.append(_row(what, usual, tried))
    return rows


def _of_quarters() -> str:
    """Return the crimes' SQL with buckets half as wide, of which a robbery lies in three."""
    wider = {
        "unnest([ts // 1800, ts // 1800 + 1])": "unnest([ts // 1800, ts // 1800 + 1, ts // 1800 + 2])",
        "unnest([ts // 1800 - 1, ts // 1800])": "unnest([ts // 1800 - 2, ts // 1800 - 1, ts // 1800])",
    }
    text = CRIME_BUCKETS_SQL
    for old, new in wider.items():
        text = text.replace(old, new)
    return text.replace("// 1800", "// 900")


def _followers_first() -> str:
    """Return the bicycles' SQL over pairs of trips that follow one another, so that the recursion joins less."""
    return """
        WITH RECURSIVE pairs AS MATERIALIZED (
            SELECT a.id AS before, b.id, b.ts, b.goal FROM trips a JOIN trips b
            ON b.bike = a.bike AND b.origin = a.goal AND b.ts > a.ts AND b.ts <= a.ts + 3600
        ), chains AS (
            SELECT [id] AS ids, id AS last, ts AS first, goal FROM trips
            UNION ALL
            SELECT list_append(c.ids, p.id), p.id, c.first, p.goal FROM chains c JOIN pairs p
            ON p.before = c.last AND p.ts <= c.first + 3600
        )
        SELECT ids FROM chains WHERE len(ids) >= 2 AND goal <= 20
    """


def _by_windows() -> str:
    """Return the funnel's SQL with the least later time of a kind as a window function."""
    later = 'OVER (PARTITION BY "user" ORDER BY ts RANGE BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING)'
    return f"""
        WITH bought AS (SELECT *, min(ts) FILTER (kind = 'buy') {later} AS buy FROM clicks),
             carted AS (SELECT *, min({{'cart': ts, 'buy': buy}}) FILTER (kind = 'cart') {later} AS reached FROM bought)
        SELECT count(*), count(*) FILTER (reached.cart <= ts + 3600),
               count(*) FILTER (reached.cart <= ts + 3600 AND reached.buy <= ts + 3600) FROM carted WHERE kind = 'view'
    """


def _polars(quick: bool) -> list[Row]:
    number = 2_000 if quick else 1_000_000
    equal, turning, clicked = runs(number, 50 if quick else 5_000), prices(number // 5, 200), clicks(number)
    frame: pl.DataFrame = pl.from_arrow(turning)  # type: ignore[assignment]
    funnel: pl.DataFrame = pl.from_arrow(clicked)  # type: ignore[assignment]
    questions: list[tuple[str, Callable[[], object], dict[str, Callable[[], object]]]] = [
        ("runs of equal rows: rle_id, group_by", lambda: islands_by_polars(equal)["id"].list.len().to_list(),
         {"shift, cum_sum, group_by": lambda: _islands_by_sums(equal)}),
        ("turns of prices: shifts over names", lambda: turns_by_polars(frame),
         {"sorted by name, shifts of all rows": lambda: _turns_sorted(frame)}),
        ("funnel: join_asof", lambda: funnel_by_polars(funnel),
         {"sorted by user before": lambda: funnel_by_polars(funnel.sort("user", "ts"))}),
    ]  # fmt: skip
    rows = []
    for what, used, others in questions:
        wanted = used()
        assert all(other() == wanted for other in others.values()), what
        tried = {name: best_of(f"{what}, {name}", other, quick=quick) for name, other in others.items()}
        rows.append(_row(what, best_of(what, used, quick=quick), tried))
    return rows


def _islands_by_sums(table: pa.Table) -> list[int]:
    frame: pl.DataFrame = pl.from_arrow(table)  # type: ignore[assignment]
    run = (pl.col("x") != pl.col("x").shift()).fill_null(True).cum_sum()
    found = frame.sort("t").group_by(run.alias("run"), maintain_order=True).agg("id")
    return found["id"].list.len().to_list()


def _turns_sorted(frame: pl.DataFrame) -> int:
    price, same = pl.col("price"), pl.col("name") == pl.col("name").shift()
    rows = frame.sort("name", maintain_order=True).select(
        falls=(same & (price < price.shift())).fill_null(False), rises=(same & (price > price.shift())).fill_null(False)
    )
    rows = rows.with_columns(run=(~pl.col("falls")).cum_sum(), next_rises=pl.col("rises").shift(-1).fill_null(False))
    ends = rows.filter("falls").group_by("run").agg(falls=pl.len(), rises=pl.col("next_rises").last())
    return int(ends.filter("rises")["falls"].sum())


def _flink() -> list[Row]:
    rows = []
    for pattern, table, span in (("star", named(20_000), 61), ("rising", prices(20_000, 200), 10_000)):
        used = found_by_flink(pattern, table, span, PATIENCE)
        tried = {}
        for name, options in {"one task": {"tasks": 1}, "objects used again": {"reuse": True}}.items():
            found = found_by_flink(pattern, table, span, PATIENCE, **options)
            assert found.matches in (None, used.matches)
            tried[name] = found.timing
        rows.append(_row(f"{pattern}: two tasks", used.timing, tried))
    return rows
