"""What the local engine gives: batches, chosen columns, positions, exploded events, aggregates, refusals, files."""

from __future__ import annotations

import csv
import json
import os
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import trellis
from tests.compare import plain_rows
from trellis.engines.local.results import LocalResults
from trellis.errors import ListingRefused, UsageError
from trellis.operators.contract import ListRequest
from trellis.plan.sizes import Sizes


def random_table(n: int, seed: int, late: int = 30) -> pa.Table:
    """Make events with ties in time, two partitions, NULL and NaN; ids are words, not in time order."""
    rng = random.Random(seed)
    return pa.table(
        {
            "ts": [rng.randrange(late) for _ in range(n)],
            "id": [f"e{i:03}" for i in rng.sample(range(n), n)],
            "g": [rng.choice(["a", "b", "b", None]) for _ in range(n)],
            "x": [rng.choice([*range(9), None]) for _ in range(n)],
            "y": pa.array([rng.choice([0.5, 1.5, 2.0, -1.0, float("nan"), None]) for _ in range(n)], pa.float64()),
        }
    )


TABLE = random_table(60, 1)
QUERIES = [
    "PATTERN E+ s[] WHERE s[i].x > s[i-1].x",
    "PATTERN E+ s[] WHERE s[i].x > s[i-1].x REPORT maximal",
    "PATTERN E+ s[] WHERE [g] AND s[i].x >= s[i-1].x REPORT any WITHIN 6 SLIDE 2",
    "PATTERN E+ s[] WHERE [g] AND s[i].x >= s[i-1].x WITHIN 7 RETURN s, s.y, SUM(s.x), AVG(s.y), FIRST(s).ts",
    "PATTERN E+ s[] WHERE s[i].x != s[i-1].x HAVING LENGTH >= 3 SELECT skip-till-next REPORT any",
    "PATTERN E+ s[] WHERE s.x > 1 SELECT contiguous WITHIN 10 SLIDE 5",
    "PATTERN E+ s[] WHERE s[i].x > s[i-1].x ORDER BY LENGTH DESC, MAX(s.y) LIMIT 40 OFFSET 7",
    "PATTERN E+ s[] WHERE s[i].x > s[i-1].x LIMIT 30 OFFSET 25",
    "PATTERN E+ s[] WHERE s[i].x > s[i-1].x REPORT any WITHIN 6 SLIDE 3 LIMIT 3 PER WINDOW OFFSET 2",
    "PATTERN E+ s[] WHERE [g] AND s[i].x > s[i-1].x REPORT any WITHIN 9 SLIDE 9 ORDER BY SUM(s.x) LIMIT 4 PER WINDOW",
    "PATTERN E+ s[] WHERE s[i].x > s[i-1].x LIMIT 0",
    "PATTERN E+ s[] WHERE s[i].x > s[i-1].x LIMIT 5 OFFSET 100000",
]


def rows_of(table: pa.Table) -> list[dict[str, Any]]:
    return plain_rows(table.to_pylist())


def found(text: str, table: pa.Table = TABLE, **options: Any) -> LocalResults:
    trends = trellis.query(text).detect(table, event_id="id", **options)
    assert isinstance(trends, LocalResults)
    return trends


# --- Batches ----------------------------------------------------------------------------------------------------


SEVERAL = "PATTERN SEQ(E a, E+ b[]) WHERE FIRST(b).x > a.x AND b[i].x > b[i-1].x WITHIN 9 SLIDE 9"


@pytest.mark.parametrize("text", QUERIES)
def test_the_size_of_batches_changes_nothing(text: str) -> None:
    whole, exploded = rows_of(found(text).to_arrow()), rows_of(found(text).explode())
    for size in (1, 3, 64):
        trends = found(text, sizes=Sizes(batch_values=size, arranged_rows=size))
        deepest = int((trends.operator.tasks.hi - trends.operator.tasks.lo).max()) + 1
        ranges = [(group, 0, count) for group, count in enumerate(trends.operator.counts)]
        lengths = list(trends.operator.list(ListRequest(ranges, lambda listed: len(listed.positions))))
        assert max(lengths) <= max(size, deepest)
        assert len(lengths) > 1
        assert rows_of(trends.to_arrow()) == whole
        assert rows_of(trends.explode()) == exploded


@pytest.mark.parametrize("text", QUERIES)
def test_columns_and_positions(text: str) -> None:
    trends = found(text)
    whole = trends.to_arrow()
    names = [n for n in ("events", "s", "s_y", "length", "rank") if n in whole.column_names]
    ids = next(n for n in names if n in ("events", "s"))
    picked = list(trends.batches(columns=names, positions=True))
    assert all(batch.schema.names == names for batch in picked)
    if not picked:
        assert whole.num_rows == 0
        return
    table = pa.Table.from_batches(picked)
    assert table.schema.field(ids).type == pa.list_(pa.int32())
    rows = [[trends.events["id"][p].as_py() for p in row] for row in table[ids].to_pylist()]
    assert rows == whole[ids].to_pylist()
    others = [n for n in names if n != ids]
    assert rows_of(table.select(others)) == rows_of(whole.select(others))


def test_the_events_are_sorted() -> None:
    trends = found("PATTERN E+ s[] WHERE [g] AND s.x > 2 AND s[i].x > s[i-1].x")
    wanted = [row for row in rows_of(TABLE) if (row["x"] or 0) > 2]
    wanted.sort(key=lambda row: (row["g"] is not None, row["g"] or "", row["ts"], row["id"]))
    assert rows_of(trends.events) == wanted


def test_columns_that_do_not_exist() -> None:
    trends = found(QUERIES[0])
    with pytest.raises(UsageError, match=r"the result has no column `event`\nDid you mean `events`\?"):
        list(trends.batches(columns=["rank", "event"]))
    for wrong in ([], "rank"):
        with pytest.raises(UsageError, match="the columns wanted are given as a list of names"):
            list(trends.batches(columns=wrong))


def test_batches_of_aggregates() -> None:
    trends = found("PATTERN E+ s[] WHERE [g] AND s[i].x > s[i-1].x AGGREGATE COUNT(*), MAX(LENGTH)")
    (batch,) = trends.batches(columns=["max_length", "g"])
    assert batch.schema.names == ["max_length", "g"]
    assert batch.to_pylist() == trends.to_arrow().select(["max_length", "g"]).to_pylist()


def test_frames() -> None:
    trends = found(QUERIES[3])
    rows = trends.to_arrow()
    assert trends.to_polars().to_arrow()["s"].to_pylist() == rows["s"].to_pylist()
    assert [list(row) for row in trends.to_pandas()["s"]] == rows["s"].to_pylist()
    assert repr(trends) == "<results of `E+ s[]` in this process>"


# --- Explode and aggregate --------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", QUERIES)
def test_explode_gives_every_event_with_its_columns(text: str) -> None:
    trends = found(text)
    table = TABLE.append_column("length", pa.array(range(60))).append_column("events", pa.array(["?"] * 60))
    exploded = found(text, table).explode()
    lead = [n for n in ("window_start", "window_end", "g") if n in trends.schema.names]
    others = [n for n in ("ts", "id", "g", "x", "y", "length", "events") if n not in lead]
    assert exploded.column_names == [*lead, "rank", "place", *others]
    rows = iter(exploded.to_pylist())
    events = {row["id"]: row for row in table.to_pylist()}
    for trend in trends.to_arrow().to_pylist():
        for place, name in enumerate(trend.get("events", trend.get("s")), 1):
            row = next(rows)
            told = {n: trend[n] for n in [*lead, "rank"]} | {"place": place}
            wanted = {**{n: events[name][n] for n in others}, **told}
            assert {n: repr(v) for n, v in row.items()} == {n: repr(v) for n, v in wanted.items()}
    assert next(rows, None) is None


def test_aggregates_of_columns_that_the_query_does_not_name() -> None:
    trends = found("PATTERN E+ s[] WHERE [g] AND s[i].x > s[i-1].x REPORT any")
    table = trends.aggregate("count(*)", "count(s)", "avg(s.y) AS mean", "max(length)", "min(s.id)")
    values = {row["id"]: row["y"] for row in TABLE.to_pylist()}
    listed: dict[str | None, list[list[str]]] = {}
    for row in trends.to_arrow().to_pylist():
        listed.setdefault(row["g"], []).append(row["events"])
    assert table.column_names == [
        "g", "count", "count_text", "count_s", "count_s_text", "mean", "max_length", "min_s_id",
    ]  # fmt: skip
    assert table["g"].to_pylist() == list(listed)
    for row in table.to_pylist():
        rows = listed[row["g"]]
        members = [name for ids in rows for name in ids]
        known = [v for v in (values[n] for n in members) if v is not None and v == v]
        assert (int(row["count_text"]), row["count_s"]) == (len(rows), len(members))
        assert row["mean"] == pytest.approx(sum(known) / len(known))
        assert (row["max_length"], row["min_s_id"]) == (max(map(len, rows)), min(members))


def test_aggregate_and_the_aggregate_clause_agree() -> None:
    items = ("count(*)", "sum(s.x)", "avg(length)")
    for head in ("PATTERN E+ s[] WHERE s[i].x > s[i-1].x WITHIN 6 SLIDE 2", "PATTERN E+ s[] WHERE [g, x] WITHIN 5"):
        asked = found(f"{head} ORDER BY LENGTH LIMIT 1").aggregate(*items)
        assert asked.equals(found(f"{head} AGGREGATE {', '.join(items)}").aggregates())
    grouped = found("PATTERN E+ s[] WHERE [g, x]").aggregate("count(*) GROUP BY g")
    assert grouped.column_names == ["g", "count", "count_text"]


def test_aggregates_that_cannot_be() -> None:
    trends = found(QUERIES[0])
    with pytest.raises(UsageError, match="no aggregate was asked for"):
        trends.aggregate()
    with pytest.raises(UsageError, match="the query has no AGGREGATE"):
        trends.aggregates()
    with pytest.raises(UsageError, match="`s` has no attribute `nope`"):
        trends.aggregate("avg(s.nope)")
    with pytest.raises(UsageError):
        trends.aggregate("avg s.x")


# --- The bound on listing ---------------------------------------------------------------------------------------


def test_listing_is_refused_with_the_exact_count() -> None:
    table = pa.table({"ts": range(200), "id": range(200)})
    trends = found("PATTERN E+ s[] REPORT any", table)
    for ask in (trends.to_arrow, trends.explode, lambda: next(trends.batches()), trends.to_pandas):
        with pytest.raises(ListingRefused, match=rf"the query has {2**200 - 1} \(about 1\.60e60\) results") as caught:
            ask()
        assert caught.value.count == 2**200 - 1 == trends.count()
    assert trends.counts()["count"].to_pylist() == [None]
    assert trends.counts()["count_text"].to_pylist() == [str(2**200 - 1)]


def test_the_bound_is_a_bound() -> None:
    number = found(QUERIES[0]).count()
    assert found(QUERIES[0], max_trends=number).to_arrow().num_rows == number
    with pytest.raises(
        ListingRefused, match=f"the query has {number:,} results, more than the bound of {number - 1:,}"
    ):
        found(QUERIES[0], max_trends=number - 1).to_arrow()


def test_a_limit_below_the_bound_is_not_refused() -> None:
    table = pa.table({"ts": range(200), "id": range(200)})
    assert found("PATTERN E+ s[] REPORT any LIMIT 5", table).to_arrow()["length"].to_pylist() == [1, 2, 3, 4, 5]
    with pytest.raises(ListingRefused, match="the query has 6 results"):
        found("PATTERN E+ s[] REPORT any LIMIT 6", table, max_trends=5).to_arrow()
    windows = "PATTERN E+ s[] REPORT any WITHIN 20 SLIDE 20 LIMIT 2 PER WINDOW"
    assert found(windows, table, max_trends=20).to_arrow().num_rows == 20
    with pytest.raises(ListingRefused, match="the query has 20 results"):
        found(windows, table, max_trends=19).to_arrow()
    with pytest.warns(UserWarning, match="ORDER BY goes through all 1,023 results"):
        assert (
            found("PATTERN E+ s[] REPORT any ORDER BY LENGTH % 2 LIMIT 3", table[:10], max_trends=3).to_arrow().num_rows
        )


# --- Files ------------------------------------------------------------------------------------------------------


def test_files(tmp_path: Path) -> None:
    trends = found(QUERIES[3])
    rows = trends.to_arrow()
    trends.write(str(tmp_path / "p"))
    assert rows_of(pq.read_table(tmp_path / "p")) == rows_of(rows)
    trends.write(str(tmp_path / "c"), "csv")
    with next((tmp_path / "c").iterdir()).open() as file:
        read = list(csv.DictReader(file))
    assert list(read[0]) == rows.column_names
    assert [json.loads(row["s"]) for row in read] == rows["s"].to_pylist()
    trends.write(str(tmp_path / "j"), "json")
    lines = next((tmp_path / "j").iterdir()).read_text().splitlines()
    assert [json.loads(line)["s"] for line in lines] == rows["s"].to_pylist()


def test_no_file_is_left_behind(tmp_path: Path) -> None:
    trends = found(QUERIES[0], max_trends=1)
    with pytest.raises(ListingRefused):
        trends.write(str(tmp_path / "out"))
    with pytest.raises(UsageError, match="there is no output format `parket`"):
        found(QUERIES[0]).write(str(tmp_path / "out"), "parket")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "old").write_text("old")
    with pytest.raises(UsageError, match="exists"):
        found(QUERIES[0]).write(str(tmp_path / "out"))
    with pytest.raises(UsageError, match="has no list of files that Trellis wrote"):
        found(QUERIES[0]).write(str(tmp_path / "out"), overwrite=True)
    assert [p.name for p in tmp_path.rglob("*")] == ["out", "old"]
    (tmp_path / "out" / "old").unlink()
    found(QUERIES[0]).write(str(tmp_path / "out"), overwrite=True)
    with pytest.raises(ListingRefused):
        trends.write(str(tmp_path / "out"), overwrite=True)
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["_trellis.json", "out", "part-00000.parquet"]


def test_nothing_is_written_as_files_too(tmp_path: Path) -> None:
    trends = found("PATTERN E+ s[] WHERE s.x > 99")
    for format in ("parquet", "csv", "json"):
        trends.write(str(tmp_path / format), format)
    assert pq.read_table(tmp_path / "parquet").schema.names == trends.schema.names
    assert Counter(p.stat().st_size > 0 for p in tmp_path.rglob("part*")) == {True: 2, False: 1}


@pytest.mark.parametrize("text", [QUERIES[0], QUERIES[2], QUERIES[7], SEVERAL])
@pytest.mark.parametrize("format", ["parquet", "csv"])
def test_several_files_are_written_at_once(
    text: str, format: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, several = tmp_path / "one", tmp_path / "several"
    found(text).write(one, format)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2}, raising=False)
    found(text, sizes=Sizes(file_rows=7)).write(several, format)
    files = sorted(several.glob("part-*"))
    assert [file.name for file in files] == [f"part-{i:05}.{format}" for i in range(3)]
    assert len(list(one.glob("part-*"))) == 1
    if format == "parquet":
        assert pa.concat_tables(map(pq.read_table, files)).equals(pq.read_table(one))
        return
    first, *others = (file.read_text(encoding="utf-8").splitlines() for file in files)
    whole = (one / "part-00000.csv").read_text(encoding="utf-8").splitlines()
    assert [*first, *(line for other in others for line in other[1:])] == whole


def test_where_one_of_several_files_fails_none_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2}, raising=False)
    trends = found(QUERIES[0], sizes=Sizes(file_rows=7))
    real = trends.batches

    def failing(**options: Any) -> Any:
        yield from real(**options)
        if options["ranks"].start:
            raise RuntimeError("the machine is on fire")

    monkeypatch.setattr(trends, "batches", failing)
    with pytest.raises(RuntimeError, match="on fire"):
        trends.write(tmp_path / "out")
    assert not list(tmp_path.iterdir())
