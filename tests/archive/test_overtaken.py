"""A reader that is overtaken by a writer answers from what it opened, or from what counts now."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
from pathlib import Path

import pyarrow as pa
import pytest

import trellis
from tests.archive.cases import built, events
from trellis.archive import Answer, Archive
from trellis.errors import DataError

TEXT = "PATTERN SEQ(A a, B b) WITHIN 20"
WRITER = """
import sys
import pyarrow.parquet as pq
from trellis.archive import Archive

archive, table = Archive.open(sys.argv[1]), pq.read_table(sys.argv[2])
print("begun", flush=True)
for at in range(0, table.num_rows, 20):
    archive.append(table.slice(at, 20))
    if at % 60 == 0:
        archive.drop_before(table["t"][max(0, at - 100)].as_py())
"""


def later(number: int, after: int, dice: random.Random) -> pa.Table:
    """Events that all come after a time."""
    table = events(number, dice, "AB")
    table = table.set_column(1, "id", pa.array([f"later{i}" for i in range(number)]))
    return table.set_column(0, "t", pa.array([t + after + 1 for t in table["t"].to_pylist()]))


def test_a_reader_that_has_opened_nothing_yet_opens_the_new_state(tmp_path: Path) -> None:
    dice = random.Random(1)
    first = events(60, dice, "AB")
    second = later(60, first["t"][-1].as_py(), dice)
    built(first, tmp_path / "a")
    reader = Archive.open(tmp_path / "a")
    Archive.open(tmp_path / "a").append(second)
    whole = trellis.query(TEXT).detect(pa.concat_tables([first, second]), time="t", type="n", event_id="id")
    assert reader.find(TEXT, exact=True).trends.count() == whole.count()
    assert len(reader) == 120
    assert reader.exists(TEXT) is Answer.LIKELY
    assert reader.info()["events"] == 120


def test_a_reader_that_has_opened_all_answers_from_it(tmp_path: Path) -> None:
    dice = random.Random(2)
    first = events(60, dice, "AB")
    archive = built(first, tmp_path / "a")
    reader = Archive.open(tmp_path / "a")
    before = reader.find(TEXT)
    archive.append(later(60, first["t"][-1].as_py(), dice))
    assert reader.find(TEXT).equals(before)


def test_a_reader_whose_events_were_dropped_answers_from_what_is_left(tmp_path: Path) -> None:
    dice = random.Random(3)
    first = events(60, dice, "AB")
    second = later(60, first["t"][-1].as_py(), dice)
    writer = built(first, tmp_path / "a")
    writer.append(second)
    reader = Archive.open(tmp_path / "a")
    assert reader.exists(TEXT) is Answer.LIKELY
    assert writer.drop_before(second["t"][30].as_py()) > 60
    left = trellis.query(TEXT).detect(pa.concat_tables([first, second]).slice(writer.manifest.dropped), time="t",
                                      type="n", event_id="id")  # fmt: skip
    assert reader.find(TEXT, exact=True).trends.count() == left.count()


def test_what_is_damaged_is_still_said(tmp_path: Path) -> None:
    archive = built(events(60, random.Random(4), "AB"), tmp_path / "a")
    (tmp_path / "a" / archive.manifest.leaves).unlink()
    with pytest.raises(DataError, match="cannot be read") as caught:
        Archive.open(tmp_path / "a").exists(TEXT)
    assert caught.value.hint == "The archive is damaged."


def test_readers_beside_a_process_that_appends_and_drops(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    dice = random.Random(5)
    first = events(40, dice, "AB")
    built(first, tmp_path / "a")
    more = later(600, first["t"][-1].as_py(), dice)
    pq.write_table(more, tmp_path / "more.parquet")
    shared, problems, asked = Archive.open(tmp_path / "a"), [], []
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(tmp_path / "a"), str(tmp_path / "more.parquet")], stdout=subprocess.PIPE
    )
    assert writer.stdout is not None
    writer.stdout.readline()

    def ask(fresh: bool) -> None:
        try:
            while writer.poll() is None:
                archive = Archive.open(tmp_path / "a") if fresh else shared
                archive.find(TEXT, exact=True)
                archive.exists(TEXT)
                archive.info()
                asked.append(1)
        except Exception as problem:
            problems.append(problem)

    readers = [threading.Thread(target=ask, args=(fresh,)) for fresh in (True, True, False)]
    for one in readers:
        one.start()
    for one in readers:
        one.join()
    writer.stdout.close()
    assert writer.wait() == 0
    assert not problems
    assert len(asked) > 3
    assert Archive.open(tmp_path / "a").manifest.events + Archive.open(tmp_path / "a").manifest.holds == 640
