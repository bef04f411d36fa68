"""Files to one table: types, unions, and one clear sentence for each thing that is wrong with a file."""

from __future__ import annotations

import datetime
import gzip
from pathlib import Path

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

from trellis.errors import DataError, UsageError
from trellis.events.times import TIMESTAMP
from trellis.io.read import read_table

INT, DOUBLE, TEXT = pa.int64(), pa.float64(), pa.string()
NEW_YEAR = datetime.datetime(2024, 1, 1)
SAME_COLUMNS = (
    "All files of one table must have the same columns: add it, or give a data frame that you have read yourself."
)
ROWS = "The header is row 1; empty lines are not counted."
ONE_PER_LINE = "Write one JSON object per line."


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty directory, which is the current one."""
    monkeypatch.chdir(tmp_path)


def put(name: str, content: str | bytes) -> str:
    data = content.encode() if isinstance(content, str) else content
    Path(name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return name


def read_text(name: str, content: str | bytes, **options: object) -> pa.Table:
    return read_table(put(name, content), **options)  # type: ignore[arg-type]


def failure(*paths: str, **options: object) -> str:
    with pytest.raises(DataError) as caught:
        read_table(paths, **options)  # type: ignore[arg-type]
    return str(caught.value)


# CSV


def test_csv_types() -> None:
    table = read_text("a.csv", "i,f,t,s,n\n1,2.5,2024-01-01,x,\n2,3,2024-01-01T00:00:00Z,,\n")
    assert table.schema.types == [INT, DOUBLE, TIMESTAMP, TEXT, TEXT]
    assert table.to_pylist()[1] == {"i": 2, "f": 3.0, "t": NEW_YEAR.replace(tzinfo=datetime.UTC), "s": None, "n": None}


def test_csv_empty_is_null_and_quoted_empty_is_not() -> None:
    assert read_text("a.csv", 'a,b\n"",x\n,y\n')["a"].to_pylist() == ["", None]


def test_csv_null_words_are_text() -> None:
    assert read_text("a.csv", "a\nNULL\nN/A\n")["a"].to_pylist() == ["NULL", "N/A"]


def test_csv_quotes_commas_and_line_breaks() -> None:
    table = read_text("a.csv", 'a,b\r\n"x,""y""\nz",1\r\n')
    assert table.to_pylist() == [{"a": 'x,"y"\nz', "b": 1}]


def test_csv_text_columns() -> None:
    table = read_text("a.csv", "code,n\n600210,1\n", text_columns=["code", "other"])
    assert table.to_pylist() == [{"code": "600210", "n": 1}]


@pytest.mark.parametrize("content", ["a,b", "a,b\n", "\n\na,b\n", b"\xef\xbb\xbfa,b\r\n"])
def test_csv_header_only(content: str | bytes) -> None:
    table = read_text("a.csv", content)
    assert (table.schema.names, table.schema.types, table.num_rows) == (["a", "b"], [pa.null()] * 2, 0)


def test_csv_bom_blank_lines_and_gzip() -> None:
    assert read_text("a.csv.gz", b"\xef\xbb\xbfa,b\n\n1,2\n\n").to_pylist() == [{"a": 1, "b": 2}]


def test_tsv() -> None:
    assert read_text("a.tsv", "a\tb\n1\tx,y\n").to_pylist() == [{"a": 1, "b": "x,y"}]


def test_csv_columns_without_a_name() -> None:
    assert read_text("a.csv", ",b\n1,2\n").column_names == ["_c0", "b"]


def test_csv_one_type_over_all_files() -> None:
    put("a.csv", "x,y\n1,1\n")
    put("b.csv", "y,x\n2,u\n")
    table = read_table(["a.csv", "b.csv"])
    assert table.to_pylist() == [{"x": "1", "y": 1}, {"x": "u", "y": 2}]


def test_csv_columns() -> None:
    table = read_text("a.csv", "a,b,c\n1,2,3\n", columns=["c", "a"])
    assert table.to_pylist() == [{"c": 3, "a": 1}]


def test_csv_more_than_one_block() -> None:
    rows = 400_000
    text = "a,b\n" + "".join(f"{i},{'x' * 40}\n" for i in range(rows))
    table = read_text("a.csv", text)
    assert table["a"].to_pylist() == list(range(rows))
    uneven = text + "1,2,3\n"
    put("a.csv", uneven)
    assert failure("a.csv") == f"a.csv, row {rows + 2}: it has 3 fields, but the header has 2.\n{ROWS}"


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (
            "",
            "a.csv is empty: no header.\nA CSV file begins with a line of column names.",
        ),
        (
            "\n\n",
            "a.csv is empty: no header.\nA CSV file begins with a line of column names.",
        ),
        ("a,b\n1,2\n\n1\n", f"a.csv, row 3: it has 1 field, but the header has 2.\n{ROWS}"),
        ("a,b\n1,2,3\n1\n", f"a.csv, row 2: it has 3 fields, but the header has 2.\n{ROWS}"),
        ("a,b,a\n1,2,3\n", "The header of a.csv names `a` 2 times.\nRename one of them."),
        (b"a\n\xff\n", "a.csv cannot be read as CSV: it is not UTF-8 text.\nSave the file as UTF-8."),
        (b"a\xff\n1\n", "a.csv cannot be read as CSV: it is not UTF-8 text.\nSave the file as UTF-8."),
        (
            'a,b\n1,x\n2,"y\n3,z\n',
            f"a.csv holds a quotation mark that is not closed, perhaps in row 3.\n{ROWS}",
        ),
    ],
)
def test_bad_csv(content: str | bytes, sentence: str) -> None:
    put("a.csv", content)
    assert failure("a.csv") == sentence


def test_csv_gzip_that_is_none_or_cut() -> None:
    Path("a.csv.gz").write_bytes(b"a,b\n1,2\n")
    assert failure("a.csv.gz").startswith("a.csv.gz cannot be read as CSV: ")
    Path("b.csv.gz").write_bytes(gzip.compress(b"a,b\n1,2\n" * 1000)[:40])
    assert failure("b.csv.gz").startswith("b.csv.gz cannot be read as CSV: ")


# JSON lines


def test_json_types_and_nesting() -> None:
    line = '{"i":1,"f":2.5,"t":"2024-01-01T00:00:00Z","s":"12","n":null,"x":{"d":"2024-01-01"},"l":["2024-01-01"]}\n'
    table = read_text("a.jsonl", line)
    assert table.column_names == ["i", "f", "t", "s", "n", "x", "l"]
    assert table.schema.types[:5] == [INT, DOUBLE, TIMESTAMP, TEXT, TEXT]
    assert table.to_pylist() == [
        {"i": 1, "f": 2.5, "t": NEW_YEAR.replace(tzinfo=datetime.UTC), "s": "12", "n": None}
        | {"x": {"d": "2024-01-01"}, "l": ["2024-01-01"]}
    ]


def test_json_missing_keys_are_null_within_and_across_files() -> None:
    put("a.json", '{"a":1}\n\n{"b":"x"}\n')
    put("b.json", '{"c":true}')
    put("c.json", "")
    assert read_table(["a.json", "b.json", "c.json"]).to_pylist() == [
        {"a": 1, "b": None, "c": None},
        {"a": None, "b": "x", "c": None},
        {"a": None, "b": None, "c": True},
    ]


def test_json_text_columns() -> None:
    table = read_text("a.json", '{"n":17,"d":"2024-01-01","t":"2024-01-01"}', text_columns=["n", "d"])
    assert table.to_pylist() == [{"n": "17", "d": "2024-01-01", "t": NEW_YEAR}]


def test_json_text_that_is_not_always_a_time() -> None:
    text = ["2024-01-01", "2024-02-30"]
    assert read_text("a.json", "".join(f'{{"t":"{t}"}}\n' for t in text))["t"].to_pylist() == text


def test_json_integers_that_do_not_fit_stay_exact() -> None:
    table = read_text("a.json", '{"a":12345678901234567891}\n{"a":1}\n')
    assert table["a"].to_pylist() == ["12345678901234567891", "1"]
    assert read_text("b.json", '{"a":1e20}\n{"a":5.0}\n')["a"].to_pylist() == [1e20, 5.0]
    assert read_text("c.json", '{"a":12345678901234567891}\n{"a":1.5}\n')["a"].type == DOUBLE


def test_json_gzip_bom_and_columns() -> None:
    table = read_text("a.ndjson.gz", b'\xef\xbb\xbf{"a":1,"b":2}\n', columns=["b"])
    assert table.to_pylist() == [{"b": 2}]


def test_nothing_is_known_of_columns_without_rows() -> None:
    put("a.csv", "a,b,c\n")
    put("b.csv", "a,b,c\n1,x,\n")
    put("a.json", "")
    put("b.json", '{"a":1}')
    assert read_table("a.csv", text_columns=["b"]).schema == pa.schema(
        [("a", pa.null()), ("b", pa.string()), ("c", pa.null())]
    )
    assert read_table(["a.csv", "b.csv"]).schema.types == [pa.int64(), pa.string(), pa.string()]
    assert read_table("a.json").num_columns == 0
    assert read_table("a.json", columns=["x"]).schema == pa.schema([("x", pa.null())])
    assert read_table(["a.json", "b.json"])["a"].to_pylist() == [1]


def test_json_numbers_of_two_kinds_across_files() -> None:
    put("a.json", '{"a":1}')
    put("b.json", '{"a":1.5}')
    assert read_table(["a.json", "b.json"])["a"].to_pylist() == [1.0, 1.5]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ('{"a":1}\n\n{"a":\n', f"a.json, line 3: this is not a JSON object.\n{ONE_PER_LINE}"),
        ('[{"a":1}]\n', f"a.json, line 1: this is not a JSON object.\n{ONE_PER_LINE}"),
        (
            '{"a":1}\n{"a":"x"}\n',
            "a.json: `a` has values of different types, number and string.\nWrite its values in one type.",
        ),
        ('{"a":1,"a":2}\n', "a.json: `a` comes twice in one object.\nRename one of them."),
        (
            b'{"a":"\xff"}\n',
            "a.json cannot be read as JSON lines: it is not UTF-8 text.\nSave the file as UTF-8.",
        ),
    ],
)
def test_bad_json(content: str | bytes, sentence: str) -> None:
    put("a.json", content)
    assert failure("a.json") == sentence


def test_json_type_clash_across_files() -> None:
    put("a.json", '{"a":1}')
    put("b.json", '{"a":"x"}')
    assert failure("a.json", "b.json") == (
        "Column `a` is int64 in a.json and string in b.json.\nWrite the column with one type in all files."
    )


# Parquet and ORC


@pytest.mark.parametrize(("extension", "write"), [("parquet", pq.write_table), ("orc", orc.write_table)])
class TestColumnar:
    def test_types_are_kept(self, extension: str, write: object) -> None:
        table = pa.table(
            {"s": ["12", "2024-01-01"], "i": pa.array([1, 2], pa.int32()), "t": pa.array([0, 1], TIMESTAMP)}
        )
        write(table, f"a.{extension}")  # type: ignore[operator]
        assert read_table(f"a.{extension}").equals(table)

    def test_columns(self, extension: str, write: object) -> None:
        write(pa.table({"a": [1], "b": [2], "c": [3]}), f"a.{extension}")  # type: ignore[operator]
        assert read_table(f"a.{extension}", columns=["c", "a"]).to_pylist() == [{"c": 3, "a": 1}]

    def test_not_such_a_file(self, extension: str, write: object) -> None:
        put(f"a.{extension}", "a,b\n1,2\n" * 10)
        kind = {"parquet": "Parquet", "orc": "ORC"}[extension]
        assert failure(f"a.{extension}").startswith(f"a.{extension} cannot be read as {kind}: ")
        assert "\n" not in failure(f"a.{extension}")

    def test_files_of_a_directory(self, extension: str, write: object) -> None:
        Path("d").mkdir()
        write(pa.table({"a": pa.array([1], pa.int32()), "b": ["x"]}), f"d/1.{extension}")  # type: ignore[operator]
        write(pa.table({"b": ["y"], "a": pa.array([2**40])}), f"d/2.{extension}")  # type: ignore[operator]
        Path("d/_SUCCESS").touch()
        assert read_table("d").to_pylist() == [{"a": 1, "b": "x"}, {"a": 2**40, "b": "y"}]


def test_parquet_partition_folders_add_no_columns() -> None:
    Path("day=1").mkdir()
    pq.write_table(pa.table({"a": [1]}), "day=1/a.parquet")
    assert read_table("day=1").column_names == ["a"]


def test_parquet_types_that_do_not_fit() -> None:
    pq.write_table(pa.table({"a": [1], "b": [1]}), "1.parquet")
    pq.write_table(pa.table({"a": [2], "b": ["x"]}), "2.parquet")
    assert failure("1.parquet", "2.parquet") == (
        "Column `b` is int64 in 1.parquet and string in 2.parquet.\nWrite the column with one type in all files."
    )


def test_integers_that_a_double_would_change_are_refused() -> None:
    pq.write_table(pa.table({"a": [2**60 + 1]}), "1.parquet")
    pq.write_table(pa.table({"a": [0.5]}), "2.parquet")
    assert failure("1.parquet", "2.parquet").startswith("The files from 1.parquet on do not fit together: ")


# Several files, columns


def test_a_column_that_one_file_lacks() -> None:
    put("a.csv", "x,y\n1,2\n")
    put("b.csv", "x\n1\n")
    assert failure("a.csv", "b.csv") == f"b.csv has no column `y`, which a.csv has.\n{SAME_COLUMNS}"
    assert failure("b.csv", "a.csv") == f"b.csv has no column `y`, which a.csv has.\n{SAME_COLUMNS}"


@pytest.mark.parametrize(("column", "hint"), [("prize", "Did you mean `price`?"), ("zz", "Its columns: ts, price.")])
@pytest.mark.parametrize("extension", ["csv", "json", "parquet"])
def test_a_column_that_no_file_has(extension: str, column: str, hint: str) -> None:
    put("a.csv", "ts,price\n1,2\n")
    put("a.json", '{"ts":1,"price":2}')
    pq.write_table(pa.table({"ts": [1], "price": [2]}), "a.parquet")
    expected = f"a.{extension} has no column `{column}`.\n{hint}"
    assert failure(f"a.{extension}", columns=["ts", column]) == expected


def test_a_missing_file() -> None:
    put("events.csv", "a\n1\n")
    assert failure("event.csv") == "There is no file event.csv.\nDid you mean `events.csv`?"


# The column of times


def test_time_with_a_few_bad_values() -> None:
    table = read_text("a.csv", "t\n2024-01-01\nbad\n2024-01-01T00:00\n", time="t")
    assert table["t"].to_pylist() == [NEW_YEAR, None, NEW_YEAR]
    assert read_table("a.csv")["t"].type == TEXT


def test_time_that_is_a_number() -> None:
    assert read_text("a.csv", "t\n1\n2\n", time="t")["t"].to_pylist() == [1, 2]
    assert read_text("b.csv", "t\n1\n2\nbad\n", time="t")["t"].to_pylist() == [1, 2, None]


def test_time_that_is_mostly_no_time_stays_text() -> None:
    assert read_text("a.csv", "t\nx\n2024-01-01\n", time="t")["t"].type == TEXT


@pytest.mark.parametrize("content", ["t\n20240101\nbad\n", "t\n20240101\n"])
def test_time_format_in_csv(content: str) -> None:
    table = read_text("a.csv", content, time="t", time_format="yyyyMMdd")
    assert table["t"].to_pylist()[0] == NEW_YEAR
    assert table["t"].null_count == content.count("bad")


def test_time_format_in_json_and_parquet() -> None:
    assert read_text("a.json", '{"t":20240101}', time="t", time_format="yyyyMMdd")["t"][0].as_py() == NEW_YEAR
    pq.write_table(pa.table({"t": pa.array(["01.01.2024"]).dictionary_encode()}), "a.parquet")
    assert read_table("a.parquet", time="t", time_format="dd.MM.yyyy")["t"][0].as_py() == NEW_YEAR


def test_text_times_in_parquet() -> None:
    pq.write_table(pa.table({"t": ["2024-01-01", "2024-01-01", "x"], "u": ["2024-01-01"] * 3}), "a.parquet")
    table = read_table("a.parquet", time="t")
    assert table["t"].to_pylist() == [NEW_YEAR, NEW_YEAR, None]
    assert table["u"].type == TEXT


def test_a_wrong_time_format_is_told_before_reading() -> None:
    with pytest.raises(UsageError, match=r"^`QQ` in the time format `QQ` is unknown\."):
        read_table("missing.csv", time_format="QQ")
