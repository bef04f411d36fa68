"""What an archive refuses: damaged files, and events and questions that cannot be."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from trellis.archive import Archive, store
from trellis.errors import DataError

PAIR = "PATTERN SEQ(A a, B b)"


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    table = pa.table({"t": list(range(9)), "k": list("ABABABABC")})
    return Archive.build(table, tmp_path / "a", time="t", type="k")


def flip(path: Path, byte: int, bit: int = 3) -> None:
    changed = bytearray(path.read_bytes())
    changed[byte] ^= 1 << bit
    path.write_bytes(changed)


# --- Damage -----------------------------------------------------------------------------------------------------


def test_damaged_events_are_told_wherever_the_damage_is(archive: Archive) -> None:
    path = archive.directory / archive.manifest.parts[0][0]
    whole = path.read_bytes()
    assert Archive.open(archive.directory).find(PAIR, exact=True).trends.count() == 10
    for byte in range(0, len(whole), 7):
        flip(path, byte)
        with pytest.raises(DataError, match="damaged"):
            Archive.open(archive.directory).find(PAIR, exact=True)
        path.write_bytes(whole)
    path.unlink()
    with pytest.raises(DataError, match="damaged"):
        Archive.open(archive.directory).find(PAIR, exact=True)


def test_pages_of_large_files_have_checksums(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "SMALL", 0)
    path = archive.directory / archive.manifest.parts[0][0]
    assert Archive.open(archive.directory).find(PAIR, exact=True).trends.count() == 10
    place = path.read_bytes().index(b"\x01\x00\x00\x00A\x01\x00\x00\x00B") + 4  # in the dictionary of names
    flip(path, place)
    with pytest.raises(DataError, match="damaged"):
        Archive.open(archive.directory).find(PAIR, exact=True)
