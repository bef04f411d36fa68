"""Files read on Spark against the same files read locally."""

from __future__ import annotations

import datetime as dt
import gzip
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from trellis.engines.spark.session.raised import SPARK_ERRORS, translate_error
from trellis.engines.spark.sources.read import read
from trellis.engines.spark.sources.schema import from_spark
from trellis.errors import DataError, TrellisError, UsageError
from trellis.events.columns.types import from_arrow
from trellis.io.read import read_table

pytestmark = pytest.mark.spark

UTC = dt.UTC


def same(spark: SparkSession, paths: Any, **options: Any) -> pa.Table:
    """Read both ways, compare names, types and rows, and give the local table back."""
    table = read_table(paths, **options)
    frame = read(spark, paths, **options)
    assert frame.columns == table.column_names
    ours = {field.name: from_spark(field.dataType) for field in frame.schema}
    assert ours == {field.name: from_arrow(field.type) for field in table.schema}
    assert rows(frame.toArrow()) == rows(table)
    return table


def rows(table: pa.Table) -> list[list[Any]]:
    columns = [[plain(value) for value in column.to_pylist()] for column in table.columns]
    return sorted(([*row] for row in zip(*columns, strict=True)), key=repr)


def plain(value: Any) -> Any:
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    if isinstance(value, dt.datetime):
        return str(value.replace(tzinfo=None) if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None))
    return value


CSV = """id,price,flag,when,day,code,long,mixed,empty,text,"na,me"
1,1.5,true,2024-03-10T02:30:00Z,2024-01-01,007,1,1,,"it's ""q""\n two lines",1e400
-2,.5,FALSE,2024-03-10 02:30,2024-02-29,12,99999999999999999999,x,,"",nan

3,-7,True,2024-03-10 02:30:00.123456+05:30,0001-01-01,+5,-3,,, é😀,-inf
"""


def test_csv_gets_the_same_types(spark: SparkSession, tmp_path: Path) -> None:
    file = tmp_path / "a [1]*.csv"
    file.write_text(CSV)
    table = same(spark, file)
    kinds = [str(from_arrow(field.type)) for field in table.schema]
    assert kinds == ["integer", "double", "boolean", "timestamp", "timestamp", *["string"] * 5, "double"]
    same(spark, file, text_columns=["id", "flag", "when"])


def test_times_do_not_depend_on_the_zone(spark: SparkSession, tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    texts = [
        "2024-03-10", "2024-03-10 02:30", "2024-03-10T02:30:59", "2024-11-03 01:30:00.5", "0001-01-01",
        "9999-12-31T23:59", "2024-03-10T02:30Z", "2024-03-10T02:30:00.1234560-08:00", "2024/03/10 02:30",
        "2024-01-01T00:00+18:00",
        "1890-05-05 05:05:05.000001",
    ]  # fmt: skip
    file.write_text("t\n" + "\n".join(texts) + "\n")
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        assert str(from_arrow(same(spark, file).schema[0].type)) == "timestamp"
    finally:
        spark.conf.set("spark.sql.session.timeZone", str(before))
        spark.conf.set("spark.sql.ansi.enabled", "true")


ALMOST_TIMES = [
    "2024-02-30", "2023-02-29T00:00", "0000-01-01", "2024-01-01T24:00", "2024-01-01 00:60", "2024-1-1", "x",
    "2024-01-01T00:00:00.1234567", "0001-01-01T00:00+01:00", "2024-01-01T00:00+19:00", " 2024-01-01",
    "2024/13/01 00:00",
]  # fmt: skip


def test_a_time_column_tells_bad_times_by_null(spark: SparkSession, tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    good = [f"2024-01-01 00:{minute}" for minute in range(10, 30)]
    file.write_text(
        "t,n,m\n" + "".join(f"{x},{i % 7 or 'x'},{i % 2 or 'x'}\n" for i, x in enumerate(good + ALMOST_TIMES))
    )
    table = same(spark, file, time="t")
    assert table.column("t").null_count == len(ALMOST_TIMES)
    same(spark, file, time="n")
    same(spark, file, time="m")


@pytest.mark.parametrize(
    ("time_format", "texts"),
    [
        ("dd.MM.yyyy HH:mm[:ss]", "01.02.2024 03:04|30.02.2024 03:04|31.12.1999 23:59:58|x|1.2.2024 3:04"),
        ("MMM d yy hh:mm a XXX", "Feb 1 24 12:30 AM +05:30|dec 31 99 11:59 pm Z|Feb 1 24 13:30 AM Z|Foo 1 24"),
        ("yyyyMMdd", "20240229|20230229|20241301"),
        ("yyyy-MM-dd'T'HH:mm:ss.SSSXX", "2024-01-01T00:00:00.123+0530|2024-01-01T00:00:00.123-1900|2024-01-01"),
    ],
)  # fmt: skip
def test_time_formats(spark: SparkSession, tmp_path: Path, time_format: str, texts: str) -> None:
    file = tmp_path / "a.csv"
    file.write_text("t\n" + texts.replace("|", "\n") + "\n")
    table = same(spark, file, time="t", time_format=time_format)
    assert 0 < table.column("t").null_count < table.num_rows


@pytest.mark.slow
def test_several_csv_files(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a,b\n1,x\n")
    (tmp_path / "b.csv.gz").write_bytes(gzip.compress(b"b,a\r\ny,2.5\r\n"))
    (tmp_path / "c.csv").write_bytes(b"\xef\xbb\xbfa,b\n,\n")
    assert str(from_arrow(same(spark, tmp_path).schema[0].type)) == "double"


@pytest.mark.slow
def test_header_only(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("a\tb")
    assert same(spark, tmp_path).num_rows == 0


@pytest.mark.slow
def test_a_stray_quotation_mark_is_text(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a,b\n1,5'10\"\n")
    same(spark, tmp_path)


BAD_CSV = {
    "few": b"a,b,c\n1,2,3\n1,x\n",
    "many": b"a,b,c\n1,2,3\n\n1,x,2,9\n",
    "open": b'a,b,c\n1,2,"x\n4,5,6\n',
    "empty": b"",
    "twice": b"a,a,b\n1,2,3\n",
    "latin": b"a,b\n1,\xff\n",
    "blank": b"a,b\n1,2\n  \n",
}


@pytest.mark.parametrize("name", BAD_CSV)
def test_bad_csv(spark: SparkSession, tmp_path: Path, name: str) -> None:
    file = tmp_path / "a.csv"
    file.write_bytes(BAD_CSV[name])
    same_error(spark, file)


def same_error(spark: SparkSession, paths: Any, **options: Any) -> TrellisError:
    with pytest.raises(TrellisError) as expected:
        read_table(paths, **options)
    with pytest.raises(TrellisError) as found:
        read(spark, paths, **options)
    assert type(found.value) is type(expected.value)
    assert str(found.value) == str(expected.value)
    return found.value


JSON = """{"i": 1, "x": 5.0, "b": true, "s": "a", "t": "2024-01-01T10:00:00Z", "w": 12345678901234567890, "l": [1, 2]}

{"i": 2, "x": 3, "b": null, "s": "2024-01-01", "t": "2024-01-02", "w": 1, "l": [], "n": null, "q'": "5"}
"""


def test_json(spark: SparkSession, tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text(JSON)
    (tmp_path / "b.jsonl.gz").write_bytes(
        gzip.compress(b'\xef\xbb\xbf{"i": 3, "t": "2024-01-03 10:00", "more": false}\n')
    )
    by_name(spark, file, [])
    by_name(spark, tmp_path, ["i", "b"])


def by_name(spark: SparkSession, paths: Any, text: list[str]) -> None:
    """Spark sorts the keys of JSON, and leaves nested values to the test of types."""
    table = read_table(paths, text_columns=text)
    frame = read(spark, paths, text_columns=text)
    names = sorted(table.column_names)
    assert sorted(frame.columns) == names
    for name in names:
        assert from_spark(frame.schema[name].dataType).kind == from_arrow(table.schema.field(name).type).kind, name
    assert rows(frame.select(names).toArrow()) == rows(table.select(names))


@pytest.mark.slow
def test_json_times(spark: SparkSession, tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_text('{"t": "2024-01-01"}\n{"t": "bad"}\n{"t": "2024-01-01 05:00"}\n')
    same(spark, file)
    assert same(spark, file, time="t").column("t").null_count == 1
    file.write_text('{"t": 20240101}\n{"t": 20240230}\n')
    assert same(spark, file, time="t", time_format="yyyyMMdd").column("t").null_count == 1


BAD_JSON = {
    "line": b'{"a": 1}\n{"a": \n',
    "after": b'{"a": 1}\n{"a": 2} x\n',
    "number": b'{"a": 1}\n5\n',
    "types": b'{"a": 1}\n{"a": "x"}\n',
    "more types": b'{"a": 1}\n{"a": true}\n',
    "twice": b'{"a": 1, "a": 2}\n',
    "latin": b'{"a": "\xff"}\n',
}


@pytest.mark.parametrize("name", BAD_JSON)
def test_bad_json(spark: SparkSession, tmp_path: Path, name: str) -> None:
    file = tmp_path / "a.json"
    file.write_bytes(BAD_JSON[name])
    same_error(spark, file)


@pytest.mark.slow
def test_what_only_spark_refuses(spark: SparkSession, tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_text('{"a": 1}{"a": 2}\n')
    with pytest.raises(
        DataError, match=r"a\.json cannot be read as json on Spark: this line is no JSON object"
    ) as caught:
        read(spark, file)
    assert caught.value.hint == "Write one JSON object a line."
    file.write_bytes(b"\n")  # names no columns, which rows on Spark have
    with pytest.raises(DataError, match="it is empty: no objects"):
        read(spark, file)


TABLE = pa.table(
    {
        "i": pa.array([1, None, -(2**63)], pa.int64()),
        "small": pa.array([1, 2, None], pa.int8()),
        "x": [1.5, math.nan, None],
        "d": pa.array([Decimal("1.50"), None, Decimal("-3.25")], pa.decimal128(10, 2)),
        "s": ["a", "😀", None],
        "b": [True, None, False],
        "zoned": pa.array([dt.datetime(2024, 3, 10, 2, 30), None, dt.datetime(1, 1, 1)], pa.timestamp("us", "UTC")),
        "plain": pa.array([dt.datetime(2024, 3, 10, 2, 30), None, dt.datetime(2024, 1, 1)], pa.timestamp("us")),
        "day": pa.array([dt.date(2024, 1, 1), None, dt.date(1, 1, 1)]),
    }
)


def test_parquet(spark: SparkSession, tmp_path: Path) -> None:
    nanos = pa.array([1_710_037_800_123_456_000, None, -1_000], pa.timestamp("ns"))
    spans = pa.array([1, None, -86_400_000_001], pa.duration("us"))
    pq.write_table(TABLE.append_column("nanos", nanos).append_column("span", spans), tmp_path / "a.parquet")
    same(spark, tmp_path)


def test_orc(spark: SparkSession, tmp_path: Path) -> None:
    # Spark reads dates before 1582 in ORC by the Julian calendar, unless it wrote them itself.
    day = pa.array([dt.date(2024, 1, 1), None, dt.date(1600, 1, 1)])
    orc.write_table(TABLE.drop(["zoned", "day"]).append_column("day", day), tmp_path / "a.orc")
    same(spark, tmp_path)


@pytest.mark.slow
def test_text_times_in_parquet(spark: SparkSession, tmp_path: Path) -> None:
    table = pa.table({"t": ["2024-01-01", "x", "2024-01-01T05:00Z"], "n": [20240101, 20240132, None]})
    pq.write_table(table, tmp_path / "a.parquet")
    assert same(spark, tmp_path, time="t").column("t").null_count == 1
    assert same(spark, tmp_path, time="n", time_format="yyyyMMdd").column("n").null_count == 2


@pytest.mark.slow
def test_parquet_files_of_different_widths(spark: SparkSession, tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": pa.array([1], pa.int32()), "b": ["x"]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"b": ["y"], "a": pa.array([2.5])}), tmp_path / "b.parquet")
    same(spark, tmp_path)


def test_times_finer_than_microseconds(spark: SparkSession, tmp_path: Path) -> None:
    pq.write_table(pa.table({"t": pa.array([1_001], pa.timestamp("ns"))}), tmp_path / "a.parquet")
    with pytest.raises(SPARK_ERRORS) as caught:
        read(spark, tmp_path).collect()
    error = translate_error(caught.value)
    assert isinstance(error, DataError)
    assert error.what == "a timestamp is finer than microseconds"


@pytest.mark.slow
def test_files_that_do_not_fit_together(spark: SparkSession, tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1], "b": ["x"]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"a": [1]}), tmp_path / "b.parquet")
    same_error(spark, tmp_path)
    pq.write_table(pa.table({"a": ["x"], "b": ["x"]}), tmp_path / "b.parquet")
    same_error(spark, tmp_path)
    (tmp_path / "a.csv").write_text("a,b\n1,2\n")
    (tmp_path / "b.csv").write_text("a\n1\n")
    same_error(spark, [tmp_path / "a.csv", tmp_path / "b.csv"])


def test_missing_and_unreadable_files(spark: SparkSession, tmp_path: Path) -> None:
    assert isinstance(same_error(spark, tmp_path / "a.parquet"), DataError)
    (tmp_path / "a.parquet").write_text("no Parquet")
    same_error(spark, tmp_path / "a.parquet")
    (tmp_path / "a.orc").write_text("no ORC")
    same_error(spark, tmp_path / "a.orc")
    (tmp_path / "b.csv.gz").write_text("no gzip")
    same_error(spark, tmp_path / "b.csv.gz")
    assert isinstance(same_error(spark, tmp_path / "a.orc", input_format="xls"), UsageError)
    assert isinstance(same_error(spark, tmp_path / "a.orc", time_format="Q"), UsageError)


def test_damaged_data_are_told_when_they_are_read(spark: SparkSession, tmp_path: Path) -> None:
    file = tmp_path / "a.parquet"
    pq.write_table(pa.table({"a": list(range(10_000))}), file)
    content = bytearray(file.read_bytes())
    content[100:2_000] = b"\xff" * 1_900
    file.write_bytes(content)
    frame = read(spark, file)
    with pytest.raises(SPARK_ERRORS) as caught:
        frame.selectExpr("sum(a)").collect()
    assert f"{file} cannot be read" in str(translate_error(caught.value))


@pytest.mark.slow
def test_names_that_spark_does_not_see(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "_a.csv").write_text("a\n1\n")
    with pytest.raises(DataError, match="leaves out names"):
        read(spark, tmp_path / "_a.csv")


@pytest.mark.slow
def test_files_elsewhere(spark: SparkSession, tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1]}), tmp_path / "a.parquet")
    assert read(spark, f"file://{tmp_path}/").collect() == [(1,)]
    with pytest.raises(DataError, match="only Parquet and ORC"):
        read(spark, f"file://{tmp_path}/a.csv")
    with pytest.raises(DataError, match=r"nothing.parquet cannot be read as parquet: .*exist"):
        read(spark, f"file://{tmp_path}/nothing.parquet")


@pytest.mark.parametrize(
    "text",
    [
        "ts;a;b;c;d\n1;1,5;-2,25;x,y;1,5\n2;3;;1,5;1.5\n",
        "ts\ta\tb\n1\t1,5\t2\n2\t10,0\t3\n",
        "ts;a\n1;1,5\n2;x\n",
        "ts;a\n1;1\n2;2\n",
    ],
)
def test_commas_for_points(spark: SparkSession, tmp_path: Path, text: str) -> None:
    file = tmp_path / ("events.tsv" if "\t" in text else "events.csv")
    file.write_text(text)
    here = read_table(file)
    there = read(spark, file).toArrow()
    assert there.schema.types == here.schema.types
    assert there.to_pylist() == here.to_pylist()


def test_some_zones_are_told(spark: SparkSession, tmp_path: Path) -> None:
    file = tmp_path / "events.csv"
    file.write_text("ts,id\n2024-05-01T10:00:00+02:00,1\n2024-05-01T08:30:00Z,2\n2024-05-01T09:00:00,3\n2024-05-02,4\n")
    said = "in the column `ts` .* times have a zone; the others are taken as UTC"
    with pytest.warns(UserWarning, match=said):
        here = read_table(file)
    with pytest.warns(UserWarning, match=said):
        there = read(spark, file).toArrow()
    assert there["ts"].cast(here["ts"].type).to_pylist() == here["ts"].to_pylist()
    file.write_text("ts,id\n2024-05-01T10:00:00+02:00,1\n2024-05-01T08:30:00Z,2\n2024-05-02,4\n")
    assert read(spark, file).count() == 3
