"""Texts that a spreadsheet would take for formulas: shown by it, and read back as they were."""

from __future__ import annotations

import csv
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from trellis.engines.spark.sources.read import read
from trellis.io.read import read_table
from trellis.io.results import write_parts
from trellis.io.spreadsheets import GUARD, guard_name, guard_text, unguard_name, unguard_text
from trellis.io.write import write_table

SIGNS = "=+-@\t\r\n"
TEXTS = st.text(alphabet=["'", "\u2060", *SIGNS, "a", "1"], max_size=6) | st.text(max_size=4)
NASTY = [
    "=1+1", "+49 30", "-5", "@SUM(A1)", "\t=1", "\r=1", "'=1", "'", GUARD, f"{GUARD}=1", f"{GUARD}{GUARD}@x",
    f"{GUARD}plain", "plain", "a=b", "", None, '="quoted, with"', "-",
]  # fmt: skip


@given(st.lists(TEXTS | st.none(), max_size=8))
def test_guards_come_and_go(texts: list[str | None]) -> None:
    column = pa.array(texts, pa.string())
    guarded = guard_text(column)
    assert unguard_text(guarded).to_pylist() == texts
    for before, after in zip(texts, guarded.to_pylist(), strict=True):
        assert after is None or not after.startswith(tuple(SIGNS))
        assert before == after or after == GUARD + before
        if before is not None:
            assert guard_name(before) == after
            assert unguard_name(after) == before


@given(st.lists(TEXTS.filter(lambda text: not text.startswith(GUARD)), max_size=8))
def test_texts_of_others_are_left_alone(texts: list[str]) -> None:
    assert unguard_text(pa.array(texts, pa.string())).to_pylist() == texts


def table() -> pa.Table:
    return pa.table(
        {
            "ts": pa.array(range(len(NASTY)), pa.int64()),
            "=name": pa.array(NASTY, pa.string()),
            "-number": pa.array([-1.5] * len(NASTY)),
            "total": pa.array([-(2**40)] * len(NASTY)),
            "total_text": pa.array([str(-(2**40))] * len(NASTY)),
        }
    )


def fields(path: Path, delimiter: str = ",") -> list[list[str]]:
    with path.open(newline="", encoding="utf-8") as lines:
        return list(csv.reader(lines, delimiter=delimiter))


@pytest.mark.parametrize("extension", ["csv", "tsv", "csv.gz"])
def test_a_table_is_read_back_unchanged(tmp_path: Path, extension: str) -> None:
    path = write_table(table(), tmp_path / f"x.{extension}")
    assert read_table(path, text_columns=["=name", "total_text"]).equals(table())


def test_results_are_shown_and_read_back_on_both_engines(spark: SparkSession, tmp_path: Path) -> None:
    out = tmp_path / "out"
    write_parts([table().to_batches()], table().schema, str(out), "csv")
    header, *rows = fields(out / "part-00000.csv")
    assert header == ["ts", f"{GUARD}=name", f"{GUARD}-number", "total", "total_text"]
    assert [row[1] for row in rows] == [guard_name(text or "") for text in NASTY]
    assert {tuple(row[2:]) for row in rows} == {("-1.5", "-1099511627776", "-1099511627776")}  # numbers as they are
    texts = ["=name", "total_text"]
    assert read_table(out, text_columns=texts).equals(table())
    there = read(spark, str(out), text_columns=texts).orderBy("ts").toArrow()
    assert there.column_names == table().column_names
    assert there.to_pylist() == table().to_pylist()


def test_the_plain_form(tmp_path: Path) -> None:
    write_parts([table().to_batches()], table().schema, str(tmp_path / "out"), "csv", raw_csv=True)
    header, *rows = fields(tmp_path / "out" / "part-00000.csv")
    assert header == table().column_names
    assert [row[1] for row in rows] == [text or "" for text in NASTY]
