"""One table to one file: round trips, and all or nothing."""

from __future__ import annotations

import builtins
import datetime
import decimal
import errno
import gzip
import io
import json
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from trellis.errors import DataError, UsageError
from trellis.io.generate import KINDS
from trellis.io.read import read_table
from trellis.io.write import write_table

TIME = pa.timestamp("us", tz="UTC")
EXTENSIONS = ["parquet", "csv", "tsv", "json", "jsonl", "ndjson", "orc", "csv.gz", "json.gz"]
SMALL = pa.table({"a": [1, 2]})


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty directory, which is the current one."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("extension", EXTENSIONS)
@pytest.mark.parametrize("kind", list(KINDS))
def test_round_trip_of_every_kind(kind: str, extension: str) -> None:
    table = KINDS[kind](1000)
    path = write_table(table, f"x.{extension}")
    assert path == Path(f"x.{extension}")
    assert read_table(path, text_columns=["code"]).equals(table)
    assert os.listdir() == [f"x.{extension}"]


@pytest.mark.parametrize("extension", ["parquet", "csv", "json", "orc"])
def test_round_trip_of_odd_values(extension: str) -> None:
    # ORC is read in nanoseconds, which end in 2262; elsewhere the years are 1 to 9999.
    ends = (10**15, -(10**15)) if extension == "orc" else (253402300799999999, -62135596800000000)
    endless = 2.5 if extension == "json" else float("inf")  # JSON has no number for it
    table = pa.table(
        {
            "s": ["", None, 'a"b\\c', "x,y", "line\nbreak\ttab\x01", "é€😀", "null", " "],
            "i": [None, 0, -1, 2**63 - 1, -(2**63), 1, 2, 3],
            "f": [None, 0.1, -1e-300, 1e300, 5.0, endless, -endless, 1 / 3],
            "b": [None, True, False, True, True, True, True, True],
            "t": pa.array([None, 0, -1, 1, 1_000_000, *ends, 5], TIME),
        }
    )
    assert read_table(write_table(table, f"x.{extension}")).equals(table)


@pytest.mark.parametrize("extension", ["parquet", "csv", "orc"])
def test_not_a_number_is_kept(extension: str) -> None:
    table = pa.table({"f": [float("nan"), 1.5, None], "i": [1, 2, 3]})
    assert str(read_table(write_table(table, f"x.{extension}"))["f"].to_pylist()) == "[nan, 1.5, None]"


@pytest.mark.parametrize("extension", ["parquet", "csv", "orc"])
def test_no_rows(extension: str) -> None:
    table = KINDS["kite"](0)
    read = read_table(write_table(table, f"x.{extension}"))
    assert (read.num_rows, read.column_names) == (0, table.column_names)


def test_no_rows_in_json_are_an_empty_file() -> None:
    assert write_table(KINDS["kite"](0), "x.json").read_bytes() == b""


def test_json_is_one_object_a_line() -> None:
    table = pa.table(
        {
            "t": pa.array([0, 1_500_000], TIME),
            "u": pa.array([0, 60], pa.timestamp("s")),
            "d": [datetime.date(2024, 1, 2), None],
            "m": [decimal.Decimal("1.50"), None],
            'k"': [[1, None], None],
            "y": ["é", None],
        }
    )
    lines = write_table(table, "x.json").read_text(encoding="utf-8").splitlines()
    assert lines == [
        '{"t":"1970-01-01T00:00:00.000000Z","u":"1970-01-01T00:00:00","d":"2024-01-02","m":1.50,"k\\"":[1,null],"y":"é"}',
        '{"t":"1970-01-01T00:00:01.500000Z","u":"1970-01-01T00:01:00","d":null,"m":null,"k\\"":null,"y":null}',
    ]
    assert [json.loads(line)["y"] for line in lines] == ["é", None]


def test_csv_text() -> None:
    table = pa.table(
        {
            "t": pa.array([0, None], pa.timestamp("us", tz="Europe/Berlin")),
            "s": ["", None],
            "l": [[1, 2], None],
        }
    )
    assert write_table(table, "x.csv").read_text() == ('"t","s","l"\n"1970-01-01T00:00:00Z","","[1,2]"\n,,\n')


def test_the_same_table_gives_the_same_bytes() -> None:
    one = write_table(SMALL, "x.csv.gz").read_bytes()
    assert write_table(SMALL, "y.csv.gz").read_bytes() == one
    assert gzip.decompress(one) == b'"a"\n1\n2\n'


def test_overwrite() -> None:
    write_table(SMALL, "x.parquet")
    with pytest.raises(UsageError) as caught:
        write_table(pa.table({"a": [3]}), "x.parquet")
    assert str(caught.value) == (
        "the output `x.parquet` exists\nChoose another one, or replace it with overwrite=True or --overwrite."
    )
    assert read_table("x.parquet").equals(SMALL)
    write_table(pa.table({"a": [3]}), "x.parquet", overwrite=True)
    assert read_table("x.parquet")["a"].to_pylist() == [3]


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        (
            "x.txt",
            "The format of x.txt cannot be told from its name.\n"
            "Known extensions: .parquet, .csv, .tsv, .json, .jsonl, .ndjson, .orc.",
        ),
        (
            "no/x.csv",
            "the output `no/x.csv` lies in a folder that does not exist\nMake it first, or choose another one.",
        ),
        ("d.csv", "the output `d.csv` is a directory\nName a file in it."),
    ],
)
def test_where_nothing_can_be_written(path: str, sentence: str) -> None:
    Path("d.csv").mkdir()
    with pytest.raises(UsageError) as caught:
        write_table(SMALL, path, overwrite=True)
    assert str(caught.value) == sentence
    assert os.listdir() == ["d.csv"]


@pytest.mark.parametrize(
    ("number", "sentence"),
    [
        (
            errno.ENOSPC,
            "x.csv cannot be written: no space left on device.\nFree some space, or write elsewhere.",
        ),
        (errno.EACCES, "x.csv cannot be written: permission denied."),
        (errno.EROFS, "x.csv cannot be written: read-only file system."),
    ],
)
def test_errors_of_the_system(number: int, sentence: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(builtins, "open", fail)
    with pytest.raises(DataError) as caught:
        write_table(SMALL, "x.csv")
    monkeypatch.undo()
    assert str(caught.value) == sentence


class FullDisk(io.RawIOBase):
    """A file on a disk without space, without a device that a careless writer could harm."""

    def writable(self) -> bool:
        return True

    def write(self, _: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("extension", ["parquet", "csv", "json", "orc", "csv.gz"])
def test_a_full_disk(extension: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(builtins, "open", lambda *_: FullDisk())
    with pytest.raises(DataError) as caught:
        write_table(KINDS["stock"](1000), f"x.{extension}")
    monkeypatch.undo()
    assert str(caught.value) == (
        f"x.{extension} cannot be written: no space left on device.\nFree some space, or write elsewhere."
    )


def test_nothing_half_written_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    write_table(SMALL, "x.parquet")

    def half(stream: io.BufferedWriter, *_: object, **__: object) -> None:
        stream.write(b"PAR1")
        raise KeyboardInterrupt

    monkeypatch.setattr(pq, "ParquetWriter", half)
    with pytest.raises(KeyboardInterrupt):
        write_table(pa.table({"a": [3]}), "x.parquet", overwrite=True)
    assert os.listdir() == ["x.parquet"]
    assert read_table("x.parquet").equals(SMALL)


def test_a_type_that_the_format_lacks() -> None:
    table = pa.table({"a": pa.array([None], pa.duration("s"))})
    with pytest.raises(DataError, match=r"^x\.orc cannot be written: .*duration"):
        write_table(table, "x.orc")
    assert os.listdir() == []
