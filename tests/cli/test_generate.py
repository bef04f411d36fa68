"""`trellis generate`: streams of a seed, written as files."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.cli.cases import assert_mistake, names_in, run
from trellis.io.generate import KINDS, generate_table
from trellis.io.read import read_table


@pytest.mark.parametrize("kind", KINDS)
def test_writes_the_stream_of_a_seed(kind: str, tmp_path: Path) -> None:
    file = tmp_path / "events.parquet"
    done = run("generate", kind, "--events", "50", "--seed", "3", "--out", file)
    assert done.code == 0
    assert str(file) in done.out
    assert pq.read_table(file).equals(generate_table(kind, 50, 3))


def test_takes_the_options_of_the_kind(tmp_path: Path) -> None:
    file = tmp_path / "kite.csv"
    done = run(
        "generate", "kite", "--events", "50", "--out", file, "--type-spelling", "notcovered", "--accounts", "5",
        "--rate", "10.5", "--quiet",
    )  # fmt: skip
    assert (done.code, done.out) == (0, "")
    expected = generate_table("kite", 50, 0, type_spelling="notcovered", accounts=5, rate=10.5)
    assert read_table(file)["type"].to_pylist() == expected["type"].to_pylist()


def test_a_file_is_replaced_only_if_asked(tmp_path: Path) -> None:
    file = tmp_path / "kite.csv"
    file.write_text("mine")
    assert_mistake(run("generate", "kite", "--events", "5", "--out", file), "exists", "--overwrite")
    assert file.read_text() == "mine"
    assert run("generate", "kite", "--events", "5", "--out", file, "--overwrite").code == 0
    assert names_in(tmp_path) == ["kite.csv"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("kiet", "--events", "5", "--out", "x.csv"), "No such command 'kiet'"),
        (("kite", "--events", "5"), "--out"),
        (("kite", "--out", "x.csv"), "--events"),
        (("kite", "--events", "five", "--out", "x.csv"), "valid integer"),
        (("kite", "--events", "-1", "--out", "x.csv"), "`events`"),
        (("kite", "--events", "5", "--out", "x.txt"), "format of x.txt"),
        (("kite", "--events", "5", "--out", "nowhere/x.csv"), "nowhere"),
        (("kite", "--events", "5", "--out", "x.csv", "--covered", "2"), "`covered`"),
        (("stock", "--events", "5", "--out", "x.csv", "--accounts", "2"), "--accounts"),
    ],
)
def test_mistakes(arguments: tuple[str, ...], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert_mistake(run("generate", *arguments), said)
    assert names_in(tmp_path) == []
