"""The commit log holds what was committed, through kills at any step; however long it is, a commit costs the same."""

from __future__ import annotations

import json
import shutil
import statistics
import threading
import time as clock
from pathlib import Path

import pytest

from trellis.errors import DataError
from trellis.streams.commit_log import FLUSH, CommitLog
from trellis.streams.stream_output import RESULTS, batch_name


def short(directory: Path) -> CommitLog:
    """Return a log with segments of ten entries, and three that stay by themselves."""
    return CommitLog(directory, 10, 3)


def file_of(number: int) -> str:
    return f"part-{batch_name(number)}-0-a.parquet"


def commit(log: CommitLog, number: int) -> None:
    log.commit(batch_name(number), {RESULTS: [file_of(number)]}, {RESULTS: 1})


def batches(log: CommitLog) -> list[str]:
    return [entry["batch"] for entry in log.entries()]


def test_old_entries_are_joined_and_stay_in_the_log(tmp_path: Path) -> None:
    log = short(tmp_path / "_log")
    log.open()
    assert log.is_empty()
    assert log.newest() is None
    wanted = list(range(0, 90, 2))  # batches without results have no entry
    for number in wanted:
        commit(log, number)
        newest = log.newest()
        assert newest is not None
        assert newest["files"] == {RESULTS: [file_of(number)]}
    log.commit(FLUSH, {RESULTS: ["part-flush-0-a.parquet"]}, {RESULTS: 1})
    for one in (log, short(tmp_path / "_log")):  # also for a process that begins now
        assert batches(one) == [*map(batch_name, wanted), FLUSH]
        assert [one.has(batch_name(number)) for number in range(90)] == [number in wanted for number in range(90)]
        newest = one.newest()
        assert newest is not None
        assert newest["batch"] == batch_name(88)
    assert len(list((tmp_path / "_log").iterdir())) <= len(wanted) // 10 + 13 + 1
    removed = log.remove(FLUSH)
    assert removed is not None
    assert removed["files"] == {RESULTS: ["part-flush-0-a.parquet"]}
    assert log.remove(FLUSH) is None
    assert not log.is_empty()


def test_a_kill_while_entries_are_joined_loses_nothing_and_counts_nothing_twice(tmp_path: Path) -> None:
    log = short(tmp_path / "_log")
    log.open()
    for number in range(12):
        commit(log, number)
    before = tmp_path / "before"
    shutil.copytree(log.directory, before)
    commit(log, 12)
    joined = [path.name for path in log.directory.glob("*.jsonl")]
    assert len(joined) == 1
    for left in range(11):  # so many of the entries that were joined are still there
        half = tmp_path / f"half-{left}"
        shutil.copytree(log.directory, half)
        for number in range(left):
            shutil.copy(before / f"{batch_name(number)}.json", half)
        (half / f"{batch_name(13)}.json.tmp").write_text('{"batch"')
        assert batches(short(half)) == [*map(batch_name, range(13))]
        again = short(half)
        again.open()
        assert len(list(half.iterdir())) == 4
        for number in range(13, 40):
            commit(again, number)
        assert batches(again) == [*map(batch_name, range(40))]


def test_a_reader_sees_all_while_entries_are_joined(tmp_path: Path) -> None:
    log = short(tmp_path / "_log")
    log.open()
    done = threading.Event()
    seen: list[int] = []

    def read() -> None:
        while not done.is_set():
            found = batches(short(tmp_path / "_log"))
            assert found == [*map(batch_name, range(len(found)))]
            seen.append(len(found))

    reader = threading.Thread(target=read)
    reader.start()
    for number in range(200):
        commit(log, number)
    done.set()
    reader.join()
    assert seen == sorted(seen)


def test_damage_is_told(tmp_path: Path) -> None:
    log = CommitLog(tmp_path / "_log")
    log.open()
    commit(log, 0)
    for text in ("", "{", "[]", '{"batch": "000000000"}'):
        (log.directory / f"{batch_name(0)}.json").write_text(text)
        with pytest.raises(DataError, match="it is damaged"):
            log.entries()


@pytest.mark.slow
def test_after_a_million_batches_a_commit_costs_what_the_first_did(tmp_path: Path) -> None:
    seconds = {}
    for size in (0, 1_000_000):
        directory = tmp_path / str(size)
        directory.mkdir()
        log = CommitLog(directory)
        for first in range(0, size, log.segment_size):  # as the log makes them, all at once
            numbers = range(first, first + log.segment_size)
            entries = [{"batch": batch_name(n), "files": {RESULTS: [file_of(n)]}, "rows": {}} for n in numbers]
            name = f"{batch_name(numbers[0])}-{batch_name(numbers[-1])}.jsonl"
            (directory / name).write_text("".join(json.dumps(entry) + "\n" for entry in entries))
        log.open()
        taken = []
        for number in range(size, size + 2500):  # entries are joined twice
            begun = clock.perf_counter()
            assert not log.has(batch_name(number))
            commit(log, number)
            taken.append(clock.perf_counter() - begun)
        seconds[size] = (statistics.median(taken), sum(taken))
    assert seconds[1_000_000][0] < 3 * seconds[0][0], seconds
    assert seconds[1_000_000][1] < 3 * seconds[0][1], seconds
