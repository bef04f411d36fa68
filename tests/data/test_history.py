"""Histories of real logs and of books."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

import trellis
from tests.compare import plain_rows
from tests.data.places import data_file
from trellis.archive import Archive
from trellis.io.read import read_table

pytestmark = pytest.mark.data

TIME, NAME, CASE = "time:timestamp", "concept:name", "case:concept:name"


def test_a_log_by_cases(tmp_path: Path) -> None:
    log = read_table(data_file("event_logs", "RequestForPayment.xes.gz"), columns=[TIME, NAME, CASE])
    assert log.num_rows == 36_072
    archive = Archive.build(log, tmp_path / "a", time=TIME, type=NAME, key=CASE, false_positive=0.01)
    steps = [
        "`Request For Payment SUBMITTED by EMPLOYEE` s",
        "`Request For Payment REJECTED by ADMINISTRATION` r",
        "`Payment Handled` p",
    ]
    text = f"PATTERN SEQ({', '.join(steps)}) WHERE [`{CASE}`]"
    whole = trellis.query(text).detect(log, time=TIME, type=NAME)
    true = {row[CASE] for row in whole.to_arrow().to_pylist()}
    rows = archive.find(text)
    assert len(true) > 100
    assert true <= set(rows["key"].to_pylist())
    assert rows.num_rows < 3 * len(true)
    rare = text.replace("REJECTED by ADMINISTRATION", "REJECTED by MISSING")
    found = archive.find(rare, exact=True)
    assert found.needed < found.events
    wanted = trellis.query(rare).detect(log, time=TIME, type=NAME).to_arrow().to_pylist()
    assert plain_rows(found.trends.to_arrow().to_pylist()) == plain_rows(wanted)


def test_the_words_of_books(tmp_path: Path) -> None:
    with tarfile.open(data_file("words", "books_small.tar.gz")) as packed:
        packed.extractall(tmp_path / "books", filter="data")
    words = read_table(tmp_path / "books", input_format="text")
    assert abs(words.num_rows - 709_569) < 0.005 * 709_569  # as they are counted elsewhere
    archive = Archive.build(words, tmp_path / "a", time="position", type="word", false_positive=0.01)
    found = archive.find("PATTERN SEQ(call a, me b, ishmael c) SELECT contiguous", exact=True)
    assert found.trends.count() >= 1
    assert found.needed < found.events / 50
