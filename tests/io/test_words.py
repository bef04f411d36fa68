"""Texts as streams of words."""

from __future__ import annotations

import gzip
import io
from pathlib import Path

import pyarrow as pa
import pytest

from trellis.errors import DataError
from trellis.io.read import read_table
from trellis.io.words import pieces


def test_words_are_numbered_through_all_texts(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("\ufeff# The *Whale*, isn’t it?\n\nChapter 1. — É_à 'tis x'", encoding="utf-8")
    with gzip.open(tmp_path / "b.txt.gz", "wt") as file:
        file.write("Call me\nIshmael")
    table = read_table([tmp_path / "a.md", tmp_path / "b.txt.gz"], input_format="text")
    assert table["word"].to_pylist() == [
        "the", "whale", "isn’t", "it", "chapter", "é", "à", "tis", "x", "call", "me", "ishmael",
    ]  # fmt: skip
    assert table["position"].to_pylist() == list(range(12))
    assert read_table(tmp_path / "a.md", input_format="text", columns=["word"]).column_names == ["word"]


def test_pieces_end_between_words(tmp_path: Path) -> None:
    text = "ünd so weiter, bis zum Ende " * 50
    found = list(pieces(io.BytesIO(text.encode()), block_size=7))
    assert "".join(found) == text
    assert len(found) > 100
    assert all(piece.endswith(" ") for piece in found if piece)
    (tmp_path / "a.txt").write_text(text, encoding="utf-8")
    whole = read_table(tmp_path / "a.txt", input_format="text")
    assert whole["word"].to_pylist() == ["ünd", "so", "weiter", "bis", "zum", "ende"] * 50


def test_what_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "empty.txt").write_text("")
    assert read_table(tmp_path / "empty.txt", input_format="text").schema == pa.schema(
        [("position", pa.int64()), ("word", pa.string())]
    )
    (tmp_path / "bytes.txt").write_bytes(b"caf\xe9 au lait")
    with pytest.raises(DataError, match="is not UTF-8"):
        read_table(tmp_path / "bytes.txt", input_format="text")
    with pytest.raises(DataError, match="no column `letter`"):
        read_table(tmp_path / "empty.txt", input_format="text", columns=["letter"])
