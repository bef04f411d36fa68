"""The local engine takes events as they come, every kind of table, time, type and id, and says what is wrong."""

from __future__ import annotations

import datetime as dt
import warnings
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import trellis
from trellis.errors import BindError, DataError, UsageError

RISING = trellis.query("PATTERN E+ s[] WHERE s[i].x > s[i-1].x")
EVERY = trellis.query("PATTERN E+ s[]")
COLUMNS: dict[str, list[Any]] = {"ts": [1, 2, 3, 3], "x": [1, 3, 2, 4], "size": [10, 20, 30, 40]}
TABLE = pa.table(COLUMNS)
ROWS = [[0, 1, 3], [0, 2], [0, 3]]
MIDNIGHT = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
SECOND = dt.timedelta(seconds=1)


def ids(query: trellis.api.query.Query, data: Any, **options: Any) -> list[list[Any]]:
    found: list[list[Any]] = query.detect(data, **options).to_arrow()["events"].to_pylist()
    return found


# --- Kinds of tables --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make",
    [
        lambda t: t,
        lambda t: t.combine_chunks().to_batches()[0],
        lambda t: t.to_reader(),
        lambda t: pa.concat_tables([t.slice(2), t.slice(0, 2)]),
        lambda t: t.to_pandas(),
        lambda t: pl.from_arrow(t),
        lambda t: {"E": t},
        lambda t: {"E": t.to_pandas(), "F": pl.from_arrow(t).with_columns(ts=9)},
    ],
    ids=["table", "batch", "reader", "chunks", "pandas", "polars", "by type", "mixed by type"],
)
def test_every_kind_of_table(make: Callable[[pa.Table], Any]) -> None:
    trends = RISING.detect(make(TABLE))
    assert trends.engine == "local"
    assert trends.to_arrow()["events"].to_pylist() == ROWS
    assert trends.count() == 3


def test_words_from_every_kind_of_table() -> None:
    words = pa.array(["b", "a", "c", "d"])
    query = trellis.query("PATTERN E+ s[] WHERE s.k != 'd' AND s[i].k > s[i-1].k RETURN s, s.k")
    table = TABLE.append_column("k", words)
    views = TABLE.append_column("k", words.cast(pa.string_view()))
    categories = pl.from_arrow(table).with_columns(pl.col("k").cast(pl.Categorical))  # type: ignore[union-attr]
    for data in (table, views, table.to_pandas(), table.to_pandas().astype({"k": "category"}), pl.from_arrow(table)):
        assert query.detect(data).to_arrow()["s_k"].to_pylist() == [["b", "c"], ["a", "c"]]
    assert query.detect(categories).count() == 2


def test_paths_here(tmp_path: Path) -> None:
    pq.write_table(TABLE.slice(0, 2), tmp_path / "a.parquet")
    pq.write_table(TABLE.slice(2), tmp_path / "b.parquet")
    (tmp_path / "c.csv").write_text("ts,x\n2024-01-01 00:00,1\n2024-01-01 00:01,2\n")
    assert ids(RISING, tmp_path / "a.parquet", engine="local") == [[0, 1]]
    assert ids(RISING, [str(tmp_path / "b.parquet"), tmp_path / "a.parquet"], engine="local") == ROWS
    assert ids(RISING, {"E": str(tmp_path / "*.parquet")}, engine="local") == ROWS
    assert ids(RISING, str(tmp_path / "c.csv"), engine="local") == [[0, 1]]
    with pytest.raises(DataError, match=r"There is no file .*d\.parquet"):
        ids(RISING, tmp_path / "d.parquet", engine="local")


@pytest.mark.parametrize(
    "data",
    [None, 3, [1, 2], [], [TABLE], np.zeros(3), pl.Series([1]), pd.Series([1])],
    ids=lambda data: type(data).__name__,
)
def test_what_is_no_table(data: Any) -> None:
    with pytest.raises(UsageError, match="events cannot be read from an object of the type "):
        EVERY.detect(data, engine="local")


def test_options_that_do_not_exist() -> None:
    with pytest.raises(UsageError, match=r"there is no engine `sparc`\nDid you mean `spark`\?"):
        EVERY.detect(TABLE, engine="sparc")
    with pytest.raises(UsageError, match="on_bad_rows is `ignore`"):
        EVERY.detect(TABLE, on_bad_rows="ignore")
    with pytest.raises(UsageError, match="no table of events was given"):
        EVERY.detect({})


def test_two_columns_of_one_name() -> None:
    doubled = [*TABLE.column_names, "x"]
    message = "the events have two columns called `x`"
    with pytest.raises(DataError, match=message):
        EVERY.detect(pa.Table.from_arrays([*TABLE.columns, TABLE["x"]], names=doubled))
    with pytest.raises(DataError, match=message):
        EVERY.detect(pd.DataFrame([[1, 2, 3, 4]], columns=doubled))


def test_a_pandas_column_of_several_types() -> None:
    with pytest.raises(DataError, match=r"`mixed` of the pandas frame cannot be read: .* of the type int and str"):
        EVERY.detect(pd.DataFrame({"ts": [1, 2], "mixed": ["a", 1]}))
    with pytest.raises(DataError, match=r"`wide` of the pandas frame cannot be read: .* need more than 64 bits"):
        EVERY.detect(pd.DataFrame({"ts": [1, 2], "wide": [2**70, 1]}))


def test_a_lazy_frame_is_collected() -> None:
    assert ids(EVERY, pl.DataFrame(COLUMNS).lazy()) == ids(EVERY, pl.DataFrame(COLUMNS))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"time": "tss"}, r"the events have no column `tss` for the time\nDid you mean `ts`\?"),
        ({"type": "kind"}, "the events have no column `kind` for the type"),
        ({"event_id": "id"}, r"the events have no column `id` for the event id\nColumns are ts, x, size\."),
        ({"type": "size"}, "the type column `size` is an integer, not a string"),
        ({"event_id": ["id", "x"]}, r"event_id is \['id', 'x'\]\nName one column."),
        ({"time": 5}, "time is 5\nName a column, or several"),
        ({"report_mode": 5}, "there is no report mode `5`"),
    ],
)
def test_missing_columns(options: dict[str, str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        RISING.detect(TABLE, **options)  # type: ignore[arg-type]


def test_missing_attributes_and_times() -> None:
    with pytest.raises(BindError, match="`s` has no attribute `x`"):
        RISING.detect(TABLE.drop_columns(["x"]))
    with pytest.raises(UsageError, match="no column is called time, ts, timestamp or event_time"):
        RISING.detect(TABLE.rename_columns(["t", "x", "size"]))
    with pytest.raises(UsageError, match="several columns could be the time: time, ts"):
        RISING.detect(TABLE.rename_columns({"size": "time"}).select(["time", "ts", "x"]))


def test_ids_of_a_pandas_frame_are_its_labels() -> None:
    trends = RISING.detect(TABLE.to_pandas().set_index("size", drop=False))
    assert trends.to_arrow()["events"].to_pylist() == [[10, 20, 40], [10, 30], [10, 40]]


# --- Times ------------------------------------------------------------------------------------------------------

SLIDING = trellis.query("PATTERN E+ s[] WITHIN 3 s SLIDE 2 s")


def at(*seconds: float) -> list[dt.datetime]:
    return [MIDNIGHT + s * SECOND for s in seconds]


def windows(times: pa.Array, query: trellis.api.query.Query = SLIDING) -> list[tuple[Any, Any, list[int]]]:
    rows = query.detect(pa.table({"ts": times})).to_arrow().to_pylist()
    return [(row["window_start"], row["start_time"], row["events"]) for row in rows]


@pytest.mark.parametrize(
    "kind",
    [
        pa.timestamp("us", "UTC"), pa.timestamp("us"), pa.timestamp("ns"), pa.timestamp("s"),
        pa.timestamp("ms", "Asia/Tokyo"), pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string()),
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:in the column `ts` 1 of 2 times have a zone")
def test_timestamps_of_every_kind(kind: pa.DataType) -> None:
    times = pa.array(at(0, 1, 4), pa.timestamp("us", "UTC"))
    if pa.types.is_timestamp(kind):
        times = times.cast(pa.timestamp(kind.unit)) if kind.tz is None else times.cast(kind)
    else:
        times = pa.array(["2024-01-01", "2024-01-01T09:00:01+09:00", "2024/01/01 00:00:04"]).cast(kind)
    first, second, fourth = at(-2, 0, 2)
    expected = [(first, *at(0), [0]), (second, *at(0), [0, 1]), (fourth, *at(4), [2]), (*at(4), *at(4), [2])]
    found = windows(times)
    if pa.types.is_timestamp(kind) and kind.tz is None:
        assert all(start.tzinfo is None and time.tzinfo is None for start, time, _ in found)
        found = [(start.replace(tzinfo=dt.UTC), time.replace(tzinfo=dt.UTC), ids) for start, time, ids in found]
    assert found == expected


def test_times_finer_than_microseconds() -> None:
    whole = pa.array([1_000, 2_000], pa.int64()).cast(pa.timestamp("ns"))
    assert windows(whole)[0][1] == dt.datetime(1970, 1, 1, microsecond=1)
    finer = pa.array([1_000, 2_001], pa.int64()).cast(pa.timestamp("ns"))
    for how in ("error", "drop"):
        with pytest.raises(DataError, match="a timestamp is finer than microseconds"):
            SLIDING.detect(pa.table({"ts": finer}), on_bad_rows=how).count()


def test_dates_are_midnights() -> None:
    days = pa.array([dt.date(2024, 1, 1), dt.date(2024, 1, 2)])
    query = trellis.query("PATTERN E+ s[] WITHIN 2 days SLIDE 1 day")
    starts = [MIDNIGHT - dt.timedelta(days=1), MIDNIGHT, MIDNIGHT + dt.timedelta(days=1)]
    day = [dt.date(2024, 1, 1), dt.date(2024, 1, 1), dt.date(2024, 1, 2)]
    expected = list(zip(starts, day, [[0], [0, 1], [1]], strict=True))
    assert windows(days, query) == expected
    assert windows(days.cast(pa.date64()), query) == expected


@pytest.mark.parametrize("kind", [pa.decimal128(10, 2), pa.decimal256(50, 2), pa.float64(), pa.float32()], ids=str)
def test_numbers_with_a_point_are_times(kind: pa.DataType) -> None:
    query = trellis.query("PATTERN E+ s[] WITHIN 0.5 SLIDE 0.25")
    times = pa.array([Decimal("-0.25"), Decimal("0.00"), Decimal("0.25")], pa.decimal128(10, 2)).cast(kind)
    expected = [(-0.5, -0.25, [0]), (-0.25, -0.25, [0, 1]), (0.0, 0.0, [1, 2]), (0.25, 0.25, [2])]
    assert [(float(a), float(b), c) for a, b, c in windows(times, query)] == expected


@pytest.mark.parametrize("kind", [pa.int8(), pa.uint64(), pa.int64()], ids=str)
def test_whole_numbers_are_times(kind: pa.DataType) -> None:
    query = trellis.query("PATTERN E+ s[] WITHIN 2.5 SLIDE 2.5")
    assert windows(pa.array([1, 2, 3], kind), query) == [(0.0, 1, [0, 1]), (2.5, 3, [2])]


def test_times_that_are_too_long() -> None:
    with pytest.raises(DataError, match="a time has too many digits"):
        EVERY.detect(pa.table({"ts": pa.array([Decimal("1e20")], pa.decimal128(38, 10))})).count()
    with pytest.raises(DataError, match="9223372036854775809 does not fit 64 bits"):
        EVERY.detect(pa.table({"ts": pa.array([2**63 + 1], pa.uint64())})).count()


def test_what_is_no_time() -> None:
    with pytest.raises(UsageError, match="the time column `ts` is a boolean"):
        EVERY.detect(pa.table({"ts": [True]}))
    with pytest.raises(BindError, match="unit"):
        SLIDING.detect(TABLE)


# --- Bad rows ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "times",
    [
        pa.array([1, None, 3]),
        pa.array([1.0, float("nan"), 3.0], from_pandas=False),
        pa.array([1.0, float("-inf"), 3.0]),
        pa.array(["2024-01-01", "2024-02-30", "2024-01-02"]),
    ],
    ids=["null", "nan", "infinite", "text"],
)
def test_a_time_that_cannot_be_read(times: pa.Array) -> None:
    table = pa.table({"ts": times, "x": [1, 2, 3]})
    with pytest.raises(DataError, match=r"1 row has no readable time in the column `ts`, for example: .*x=2"):
        RISING.detect(table).count()
    trends = RISING.detect(table, on_bad_rows="drop")
    assert trends.to_arrow()["events"].to_pylist() == [[0, 1]]
    assert trends.statistics == {"events": 3, "dropped": 1, "windows": 1, "partitions": 1}


def test_ids_that_cannot_be_read() -> None:
    table = TABLE.append_column("id", pa.array(["a", None, None, "d"]))
    with pytest.raises(DataError, match="2 rows have no readable id in the column `id`"):
        RISING.detect(table, event_id="id").count()
    trends = RISING.detect(table, event_id="id", on_bad_rows="drop")
    assert (trends.to_arrow()["events"].to_pylist(), trends.statistics["dropped"]) == ([["a", "d"]], 2)


REPEATED = pa.table({"ts": [5, 1, 2, 9], "x": [3, 2, 1, 4], "id": ["a", "a", "b", "a"], "k": ["p", "p", "p", "q"]})


def test_a_repeated_id() -> None:
    message = r"the id `a` in the column `id` occurs twice in one window and partition \(2 such rows\)"
    with pytest.raises(DataError, match=message):
        EVERY.detect(REPEATED, event_id="id").count()
    trends = EVERY.detect(REPEATED, event_id="id", on_bad_rows="drop")
    assert (trends.to_arrow()["events"].to_pylist(), trends.statistics["dropped"]) == ([["a", "b"]], 2)


@pytest.mark.parametrize(
    ("text", "rows", "dropped"),
    [
        ("PATTERN E+ s[] WITHIN 4 SLIDE 4", [["a", "b"], ["a"], ["a"]], 0),
        ("PATTERN E+ s[] WHERE [k] WITHIN 4 SLIDE 4", [["a", "b"], ["a"], ["a"]], 0),
        ("PATTERN E+ s[] WHERE [k]", [["a", "b"], ["a"]], 1),
        ("PATTERN E+ s[] WHERE s.x != 2 AND [k]", [["b", "a"], ["a"]], 0),
        ("PATTERN E+ s[] WHERE s.x != 2 AND [k] SELECT contiguous", [["b"], ["a"]], 1),
        ("PATTERN E+ s[] WITHIN 5 SLIDE 1 LIMIT 1 OFFSET 5", [["b"]], 1),
        ("PATTERN E+ s[] WITHIN 3", [["a", "b"]], 2),
    ],
)
def test_where_a_repeated_id_is_one(text: str, rows: list[list[str]], dropped: int) -> None:
    """Ids may return in other windows and partitions, and among rows that the conditions leave out."""
    query = trellis.query(text)
    trends = query.detect(REPEATED, event_id="id", on_bad_rows="drop")
    assert (trends.to_arrow()["events"].to_pylist(), trends.statistics["dropped"]) == (rows, dropped)
    if dropped:
        with pytest.raises(DataError, match="occurs twice in one window and partition"):
            query.detect(REPEATED, event_id="id").count()
    else:
        assert query.detect(REPEATED, event_id="id").to_arrow()["events"].to_pylist() == rows


def test_of_equal_times_the_first_by_the_other_columns_is_kept() -> None:
    table = pa.table({"ts": [1, 1, 1], "id": ["a", "a", "a"], "z": [2, 1, 1], "x": [1, 9, 3]})
    query = trellis.query("PATTERN E+ s[] WHERE s.x < 10 AND s.z < 10 RETURN s.x")
    trends = query.detect(table, event_id="id", on_bad_rows="drop")
    assert trends.to_arrow()["s_x"].to_pylist() == [[3]]


# --- Types and ids ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kinds",
    [
        pa.array(["E", "F", None, "E"]),
        pa.array(["E", "F", None, "E"], pa.large_string()),
        pa.array(["E", "F", None, "E"]).dictionary_encode(),
    ],
    ids=["string", "large", "dictionary"],
)
def test_types_from_a_column(kinds: pa.Array) -> None:
    table = TABLE.append_column("kind", kinds)
    assert ids(RISING, table, type="kind") == [[0, 3]]
    contiguous = trellis.query("PATTERN E+ s[] WHERE s[i].x > s[i-1].x SELECT contiguous")
    assert ids(contiguous, table, type="kind") == [[0], [3]]


def test_types_that_differ_only_in_case() -> None:
    table = TABLE.append_column("kind", pa.array(["e", "F", "f", "É"]))
    message = "no event has the type `E`, but some have `e`: types are case-sensitive"
    with pytest.warns(UserWarning, match=message):
        assert RISING.detect(table, type="kind").count() == 0
    with pytest.warns(
        UserWarning, match="no event has the type `X` in the column `kind`, which has `F`, `e`, `f`, `É`"
    ):
        assert trellis.query("PATTERN X+ s[]").detect(table, type="kind").count() == 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert RISING.detect(TABLE.append_column("kind", pa.nulls(4)), type="kind").count() == 0


def test_tables_by_type() -> None:
    other = pa.table({"y": ["a", "b"], "ts": [2, 4]})
    query = trellis.query("PATTERN A+ a[] WHERE a[i].x > a[i-1].x SELECT contiguous")
    # positions are taken in (time, table, ...) of all tables: (1, A), (2, A), (2, B), (3, A), (3, A), (4, B)
    assert ids(query, {"B": other, "A": TABLE}) == [[0, 1], [3], [4]]
    with pytest.raises(BindError, match="there is no table for the type `A`"):
        query.detect({"C": TABLE, "B": other})
    with pytest.raises(UsageError, match="types come from several tables and from a column"):
        query.detect({"A": TABLE}, type="x")
    with pytest.raises(UsageError, match="the table of `B` has no column `ts` for the time"):
        query.detect({"A": TABLE, "B": other.rename_columns(["y", "t"])})
    with pytest.raises(DataError, match=r"the tables do not fit together: .*x"):
        query.detect({"A": TABLE, "B": TABLE.set_column(1, "x", pa.array(["a"] * 4))})
    with pytest.raises(UsageError, match="the tables disagree on the time column `ts`: an integer and a timestamp"):
        query.detect({"A": TABLE, "B": pa.table({"ts": pa.array([1], pa.timestamp("us"))})})


def test_tables_by_type_with_and_without_a_zone() -> None:
    naive, aware = pa.array([0, 2], pa.timestamp("s")), pa.array([1, 3], pa.timestamp("us", "Asia/Tokyo"))
    query = trellis.query("PATTERN A+ a[] SELECT contiguous WITHIN 10 s SLIDE 10 s")
    assert ids(query, {"A": pa.table({"ts": naive}), "B": pa.table({"ts": aware})}) == [[0], [3]]


def test_a_column_that_cannot_be_ordered() -> None:
    table = TABLE.append_column("list", pa.array([[1], [2], [3], [4]])).append_column("id", pa.array([9, 8, 7, 6]))
    with pytest.raises(UsageError, match="events without an id are numbered by all their columns, but `list` has no"):
        RISING.detect(table).count()
    assert ids(RISING, table, event_id="id") == [[9, 8, 6], [9, 6], [9, 7]]
    with pytest.raises(UsageError, match=r"`list` is of type list<.*>, which cannot be an id"):
        RISING.detect(table, event_id="list")


@pytest.mark.parametrize(
    "names",
    [
        pa.array([3, 2, 1, 0], pa.uint8()), pa.array([3.5, 2.5, 1.5, 0.5], pa.float32()),
        pa.array(["d", "c", "b", "a"]).dictionary_encode(), pa.array([Decimal(3), Decimal(2), Decimal(1), Decimal(0)]),
        pa.array([True, False, None, None]).cast(pa.string()).fill_null("x"),
    ],
    ids=lambda a: str(a.type),
)  # fmt: skip
def test_ids_of_every_type(names: pa.Array) -> None:
    values = names.to_pylist()
    query = trellis.query("PATTERN E+ s[] WHERE s.ts < 3 AND s[i].x > s[i-1].x")
    assert ids(query, TABLE.append_column("id", names), event_id="id") == [[values[0], values[1]]]


# --- Nothing, and next to nothing -------------------------------------------------------------------------------

EMPTY = TABLE.slice(0, 0)


@pytest.mark.parametrize(
    "data",
    [
        EMPTY,
        EMPTY.to_pandas(),
        pd.DataFrame({"ts": [], "x": []}),
        pd.DataFrame({"ts": pd.Series([], dtype=object), "x": pd.Series([], dtype=object)}),
        pl.from_arrow(EMPTY),
        {"E": EMPTY, "F": EMPTY},
        pa.table({"ts": pa.nulls(0), "x": pa.nulls(0)}),
    ],
    ids=["arrow", "pandas", "pandas float", "pandas object", "polars", "by type", "null"],
)
@pytest.mark.parametrize("within", ["", " WITHIN 2", " WITHIN 2 SLIDE 1"])
def test_no_events(data: Any, within: str) -> None:
    trends = trellis.query("PATTERN E+ s[] WHERE s[i].x > s[i-1].x" + within).detect(data)
    assert (trends.count(), trends.counts().num_rows, trends.to_arrow().num_rows) == (0, 0, 0)
    assert trends.explode().num_rows == 0
    assert trends.statistics == {"events": 0, "dropped": 0, "windows": 0, "partitions": 0}
    assert trends.aggregate("count(*)").num_rows == (0 if "SLIDE" in within else 1)


@pytest.mark.parametrize("kind", [pa.timestamp("ns"), pa.date32(), pa.string()], ids=str)
def test_no_times(kind: pa.DataType) -> None:
    assert windows(pa.array([], kind)) == []


@pytest.mark.parametrize("kind", [pa.float64(), pa.decimal128(10, 2), pa.decimal256(50, 3)], ids=str)
def test_no_numbers(kind: pa.DataType) -> None:
    assert windows(pa.array([], kind), trellis.query("PATTERN E+ s[] WITHIN 2.5 SLIDE 1")) == []


@pytest.mark.parametrize("mode", ["unextendable", "maximal", "any"])
@pytest.mark.parametrize("select", ["skip-till-any", "skip-till-next", "contiguous"])
@pytest.mark.parametrize("within", ["", "WITHIN 2", "WITHIN 2 SLIDE 2"])
def test_one_event(mode: str, select: str, within: str) -> None:
    text = f"PATTERN E+ s[] WHERE s[i].x > s[i-1].x SELECT {select} REPORT {mode} {within}"
    trends = trellis.query(text).detect(TABLE.slice(1, 1))
    assert (trends.count(), trends.to_arrow()["events"].to_pylist()) == (1, [[0]])


@pytest.mark.parametrize(("select", "windows"), [("contiguous", 1), ("skip-till-any", 0)])
def test_a_window_without_a_usable_event(select: str, windows: int) -> None:
    text = f"PATTERN E+ s[] WHERE s.x > 100 SELECT {select} WITHIN 10 SLIDE 10"
    trends = trellis.query(text).detect(TABLE)
    assert (trends.count(), trends.counts().num_rows, trends.to_arrow().num_rows) == (0, 0, 0)
    assert trends.statistics == {"events": 4, "dropped": 0, "windows": windows, "partitions": windows}
    assert trends.aggregate("count(*)", "avg(s.x)").num_rows == 0
