"""Which files the user means."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from trellis.errors import DataError, UsageError
from trellis.io.formats import FileFormat, format_of
from trellis.io.sources import Source, expand


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with files, hidden files and other directories, which is the current one."""
    monkeypatch.chdir(tmp_path)
    for name in ("d/b.csv", "d/a.csv", "d/sub/c.csv", "d/_SUCCESS", "d/.b.csv.crc", "d/_t/x.csv", "e/x.json"):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).touch()
    Path("empty").mkdir()
    return tmp_path


def names(*paths: str) -> list[str]:
    return [str(source.path) for source in expand(paths)]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a.csv", FileFormat("csv")),
        ("A.CSV.GZ", FileFormat("csv", gzip=True)),
        ("a.tsv", FileFormat("tsv")),
        ("a.json", FileFormat("json")),
        ("a.jsonl.gz", FileFormat("json", gzip=True)),
        ("a.ndjson", FileFormat("json")),
        ("part-0.snappy.parquet", FileFormat("parquet")),
        ("a.orc", FileFormat("orc")),
        ("a.parquet.gz", None),
        ("a.txt", None),
        ("csv", None),
        ("a.gz", None),
    ],
)
def test_format_of(name: str, expected: FileFormat | None) -> None:
    assert format_of(name) == expected


def test_directories_recursively_without_hidden_names() -> None:
    assert names("d") == ["d/a.csv", "d/b.csv", "d/sub/c.csv"]


def test_one_path_needs_no_list() -> None:
    assert expand("d/a.csv") == expand(Path("d/a.csv")) == [Source(Path("d/a.csv"), "csv")]


def test_globs() -> None:
    assert names("d/*.csv") == ["d/a.csv", "d/b.csv"]
    assert names("d/**/c.csv") == ["d/sub/c.csv"]
    assert names("d/*") == ["d/a.csv", "d/b.csv", "d/sub/c.csv"]
    assert names("d/_t/x.csv") == ["d/_t/x.csv"]


def test_a_file_whose_name_looks_like_a_glob() -> None:
    Path("x[1].csv").touch()
    assert names("x[1].csv") == ["x[1].csv"]


def test_order_as_given_and_no_file_twice() -> None:
    assert names("d/b.csv", "d", "./d/a.csv") == ["d/b.csv", "d/a.csv", "d/sub/c.csv"]


def test_input_format() -> None:
    Path("x.log").touch()
    Path("x.log.gz").touch()
    assert [s.format for s in expand(["x.log", "x.log.gz"], "ndjson")] == ["json", "json"]
    assert [s.gzip for s in expand(["x.log", "x.log.gz"], "CSV")] == [False, True]


HIDDEN = "Names that begin with `_` or `.` are left out."
EXTENSIONS = (
    "Known extensions: .parquet, .csv, .tsv, .json, .jsonl, .ndjson, .orc, .xes; or say the format with --input-format."
)


@pytest.mark.parametrize(
    ("paths", "sentence"),
    [
        (["d/aa.csv"], "There is no file d/aa.csv.\nDid you mean `a.csv`?"),
        (["d/zzz"], "There is no file d/zzz.\nNo file in the folder d has a similar name."),
        (["no/a.csv"], "There is no file no/a.csv.\nThe folder no does not exist or cannot be read."),
        (["d/*.orc"], f"No files match d/*.orc.\n{HIDDEN}"),
        (
            ["SELEC * FROM t"],
            "`SELEC * FROM t` is no file, and SQL does not begin with `SELEC`.\nDid you mean `SELECT`?",
        ),
        (["empty"], f"The directory empty holds no files of events.\n{HIDDEN}"),
        (["d/_SUCCESS"], f"The format of d/_SUCCESS cannot be told from its name.\n{EXTENSIONS}"),
        (
            ["d/a.csv", "e"],
            "The files have different formats: d/a.csv is csv, e/x.json is json.\nRead files of one format at a time.",
        ),
        (
            ["s3://b/x.csv"],
            "s3://b/x.csv is not a local file, and only local ones can be read here.\n"
            "Use the Spark engine for remote files, or copy them here first.",
        ),
    ],
)
def test_what_is_missing_or_mixed(paths: list[str], sentence: str) -> None:
    with pytest.raises(DataError) as caught:
        expand(paths)
    assert str(caught.value) == sentence


@pytest.mark.parametrize(
    ("name", "hint"),
    [("parket", "Did you mean `parquet`?"), ("xx", "Known formats: parquet, csv, tsv, json, orc, xes, text.")],
)
def test_unknown_input_format(name: str, hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        expand("d", name)
    assert str(caught.value) == f"The input format `{name}` is unknown.\n{hint}"


def test_nothing_given() -> None:
    with pytest.raises(UsageError, match=r"^No events were given\."):
        expand([])


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_directory_that_cannot_be_read() -> None:
    os.chmod("d/sub", 0)
    with pytest.raises(DataError, match=r"^The directory d/sub cannot be read: Permission denied\.$"):
        expand("d")
