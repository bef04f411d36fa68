"""What an archive refuses: damaged files, and events and questions that cannot be."""

from __future__ import annotations

import json
import random
from contextlib import suppress
from math import inf, nan
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import trellis
from trellis.archive import Answer, Archive, store
from trellis.archive.reading import EventFiles
from trellis.archive.sizing import size_filters
from trellis.archive.store import names_file
from trellis.errors import DataError, QuerySyntaxError, TrellisError, UsageError

PAIR = "PATTERN SEQ(A a, B b)"
RISING = PAIR + " WHERE a.x <= b.x"  # reads a column that lies in Parquet only


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    """A small archive of nine events, of the types A, B and C."""
    table = pa.table({"t": list(range(9)), "k": list("ABABABABC"), "x": [1] * 9})
    return Archive.build(table, tmp_path / "a", time="t", type="k")


def flip(path: Path, byte: int, bit: int = 3) -> None:
    changed = bytearray(path.read_bytes())
    changed[byte] ^= 1 << bit
    path.write_bytes(changed)


def test_a_question_is_a_text_or_a_query(archive: Archive) -> None:
    assert archive.exists(trellis.query(PAIR)) == archive.exists(PAIR)
    found = archive.find(trellis.query(PAIR), exact=True)
    assert found.trends.count() == 10
    with pytest.raises(QuerySyntaxError, match="a query begins with PATTERN"):
        archive.find(None)


# --- Damage -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("beside", [False, True])
def test_damaged_events_are_told_wherever_the_damage_is(archive: Archive, beside: bool) -> None:
    name = archive.manifest.parts[0][0]
    path, text = archive.directory / (names_file(name) if beside else name), PAIR if beside else RISING
    whole = path.read_bytes()
    assert Archive.open(archive.directory).find(text, exact=True).trends.count() == 10
    for byte in range(0, len(whole), 7):
        flip(path, byte)
        with pytest.raises(DataError, match="damaged"):
            Archive.open(archive.directory).find(text, exact=True)
        path.write_bytes(whole)
    path.unlink()
    with pytest.raises(DataError, match="damaged"):
        Archive.open(archive.directory).find(text, exact=True)


def test_pages_of_large_files_have_checksums(archive: Archive) -> None:
    def opened() -> Archive:
        return Archive(archive.directory, EventFiles(small=0))

    path = archive.directory / archive.manifest.parts[0][0]
    assert opened().find(RISING, exact=True).trends.count() == 10
    place = path.read_bytes().index(b"\x01\x00\x00\x00A\x01\x00\x00\x00B") + 4  # in the dictionary of names
    whole = path.read_bytes()
    for byte, wrong in ((place, "CRC|cannot be read"), (len(whole) - 5, "footer"), (len(whole) - 60, "footer")):
        flip(path, byte)
        with pytest.raises(DataError, match=wrong):
            opened().find(RISING + " AND a.k != 'z'", exact=True)
        path.write_bytes(whole)


def test_a_damaged_manifest_is_told(archive: Archive) -> None:
    path = archive.directory / store.MANIFEST
    whole, dice = path.read_bytes(), random.Random(1)
    for byte in dice.sample(range(len(whole)), 150):
        flip(path, byte, dice.randrange(8))
        with suppress(DataError):  # a blank between values says nothing
            assert Archive.open(archive.directory).manifest == archive.manifest
        path.write_bytes(whole)
    about = json.loads(whole)
    del about["checksum"]  # as it was before
    path.write_text(json.dumps(about))
    assert Archive.open(archive.directory).manifest == archive.manifest
    for wrong in ({"schema": "AAAA"}, {"schema": "?"}, {"schema": 1}, {"time": "other"}):
        path.write_text(json.dumps(about | wrong))
        with pytest.raises(DataError, match="is damaged"):
            Archive.open(archive.directory)


def test_a_missing_file_is_told(archive: Archive) -> None:
    (archive.directory / archive.manifest.parts[0][0]).unlink()
    with pytest.raises(DataError, match="cannot be read"):
        Archive.open(archive.directory).info()


# --- Events -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [nan, inf, -inf])
def test_times_that_are_no_numbers(tmp_path: Path, bad: float) -> None:
    table = pa.table({"t": [1.0, 2.0, bad], "k": list("ABC")})
    with pytest.raises(DataError, match="1 events have a `t` that is NaN or infinite"):
        Archive.build(table, tmp_path / "a", time="t", type="k")
    assert not (tmp_path / "a").exists()
    archive = Archive.build(table.slice(0, 2), tmp_path / "a", time="t", type="k")
    with pytest.raises(DataError, match="NaN or infinite"):
        archive.append(table.slice(2))
    assert len(Archive.open(tmp_path / "a")) == 2


@pytest.mark.parametrize(
    ("columns", "more", "wrong"),
    [
        ({"t": ["01.02.2024 10:00"], "k": ["A"]}, {}, "the time column `t` is text"),
        ({"t": [True], "k": ["A"]}, {}, "the time column `t` is a boolean"),
        ({"t": [1], "k": [1]}, {}, "the type column `k` is an integer"),
        ({"t": [1], "k": ["A"]}, {"memory": 0}, "the memory for filters `0` is not positive"),
        ({"t": [1], "k": ["A"]}, {"memory": -1}, "the memory for filters `-1` is not positive"),
        ({"t": [1], "k": ["A"]}, {"memory": "2 gigs"}, "the memory for filters `2 gigs` is not a size"),
        ({"t": [1], "k": ["A"]}, {"memory": 5}, "bytes, and 5 bytes are allowed"),
    ],
)
def test_what_is_refused_leaves_nothing_behind(
    tmp_path: Path, columns: dict[str, Any], more: dict[str, Any], wrong: str
) -> None:
    with pytest.raises(TrellisError, match=wrong):
        Archive.build(pa.table(columns), tmp_path / "a", time="t", type="k", **more)
    assert not (tmp_path / "a").exists()


def test_large_sizes_are_told_in_megabytes() -> None:
    with pytest.raises(UsageError, match=r"MB, and 2\.0 MB are allowed"):
        size_filters([100], 10**6, 1e-4, 3, 2_000_000)


def test_an_empty_archive_has_no_wrong_answers(tmp_path: Path) -> None:
    none = pa.table({"t": pa.array([], pa.int64()), "k": pa.array([], pa.string())})
    archive = Archive.build(none, tmp_path / "a", time="t", type="k")
    assert f"{archive.info()['expected_rate']:.3g}" == "0"


# --- Questions --------------------------------------------------------------------------------------------------


def test_leaves_do_not_tell_neighbours(tmp_path: Path) -> None:
    table = pa.table({"t": range(4), "k": list("AXXB")})
    archive = Archive.build(table, tmp_path / "a", time="t", type="k", leaf=2)
    assert archive.find(f"{PAIR} SELECT contiguous", exact=True).trends.count() == 0
    assert archive.exists(f"{PAIR} SELECT contiguous") is Answer.MAYBE
    assert archive.exists(PAIR, policy="contiguous", same_leaf="no") is Answer.MAYBE
    assert archive.exists(PAIR, policy="adjacent-leaves") is archive.exists(PAIR) is Answer.LIKELY


@pytest.mark.parametrize(
    ("options", "wrong"),
    [
        ({"begin": 100, "end": 50}, "no time is from 100 to 50"),
        ({"first": 9, "last": 1}, "positions from 9 to 1 are none"),
        ({"exact": True}, "`exists` has no option `exact`"),
    ],
)
def test_questions_that_cannot_be(archive: Archive, options: dict[str, Any], wrong: str) -> None:
    with pytest.raises(UsageError, match=wrong):
        archive.exists(PAIR, **options)


def test_ids_that_repeat(tmp_path: Path) -> None:
    table = pa.table({"t": [1, 2, 3], "id": [1, 1, 2], "k": list("ABC")})
    archive = Archive.build(table, tmp_path / "a", time="t", type="k", event_id="id")
    with pytest.raises(DataError, match="occurs twice") as refused:
        archive.find(PAIR, exact=True)
    assert "on_bad_rows" not in str(refused.value)
    assert archive.find("PATTERN SEQ(A a, C c)", exact=True).trends.count() == 1
