"""`trellis archive` read by one process while others append and drop: an answer of before or after, never "damaged"."""

from __future__ import annotations

import ctypes
import json
import os
import random
import select
import shutil
import signal
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.archive.cases import events
from tests.cli.cases import Done, run, run_process, start

OPENED = 0x20  # the events of inotify that tell that a file was opened
TEXT = "PATTERN SEQ(A a, B b) WITHIN 20"
ASKED = {"find": ("find", TEXT), "exact": ("find", TEXT, "--exact"), "info": ("info",)}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an archive and a file of events that are later than all that it holds."""
    folder = tmp_path_factory.mktemp("overtaken")
    table = events(300, random.Random(7), "AB")
    last = table["t"][199].as_py()
    pq.write_table(table.slice(0, 200), folder / "first.parquet")
    pq.write_table(table.filter(pa.array(table["t"].to_numpy() > last)), folder / "second.parquet")
    given = ("--archive", folder / "a", "--time", "t", "--type", "n", "--event-id", "id", "--leaf", "10")
    assert run("archive", "build", folder / "first.parquet", *given).code == 0
    return folder


@contextmanager
def opened_in(directory: Path) -> Iterator[int]:
    """Give a descriptor from which the kernel tells the files of a directory as they are opened."""
    library = ctypes.CDLL(None, use_errno=True)
    watching = library.inotify_init()
    assert library.inotify_add_watch(watching, bytes(directory), OPENED) >= 0
    try:
        yield watching
    finally:
        os.close(watching)


def number_of(told: bytes) -> int:
    """Return how many files were opened by what the kernel tells; the directory itself does not count."""
    number = at = 0
    while at < len(told):
        *_, length = struct.unpack_from("iIII", told, at)
        number, at = number + bool(length), at + 16 + length
    return number


def stopped_at(watching: int, files: int, process: subprocess.Popen[str]) -> bool:
    """Stop a process when it has opened so many files; return whether it did so before it ended."""
    while files > 0:
        if select.select([watching], [], [], 0.05)[0]:
            files -= number_of(os.read(watching, 1 << 16))
        elif process.poll() is not None:
            return False
    process.send_signal(signal.SIGSTOP)
    return True


def overtaken(folder: Path, question: tuple[str, ...], files: int) -> tuple[Done, bool]:
    """Ask a copy of the archive; another process appends and a third drops when some files have been opened."""
    copy = folder / "copy"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(folder / "a", copy)
    with opened_in(copy) as watching:
        reader = start("archive", *question, "--archive", copy, "--json")
        is_stopped = stopped_at(watching, files, reader)
    if is_stopped:
        try:
            change(folder, copy)
        finally:
            reader.send_signal(signal.SIGCONT)
    printed = reader.communicate(timeout=120)
    return Done(reader.returncode, *printed), is_stopped


def change(folder: Path, archive: Path) -> None:
    """Append to an archive, and drop its older half, through the command."""
    later = pq.read_table(folder / "second.parquet")
    half = str(pq.read_table(folder / "first.parquet")["t"][120].as_py())
    assert later.num_rows
    assert run("archive", "append", folder / "second.parquet", "--archive", archive).code == 0
    assert run("archive", "drop", "--archive", archive, "--before", half).code == 0


def answer(done: Done) -> object:
    assert done.code == 0, done.err
    assert all("share `t` with another event" in line for line in done.err.splitlines())  # there are ties
    told = json.loads(done.out)
    return {key: value for key, value in told.items() if key not in ("seconds", "archive", "directory", "path")}


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("kind", ASKED)
def test_a_reader_that_is_overtaken_while_it_opens_files(built: Path, kind: str) -> None:
    """It is stopped after its first file, its second and so on, until it needs no more of them."""
    question = ASKED[kind]
    before, _ = overtaken(built, question, 10_000)
    change(built, built / "copy")
    after = run_process("archive", *question, "--archive", built / "copy", "--json")
    expected = [answer(before), answer(after)]
    assert expected[0] != expected[1]
    for files in range(1, 100):
        done, is_stopped = overtaken(built, question, files)
        assert answer(done) in expected, files
        if not is_stopped:
            break
    assert files > 1
