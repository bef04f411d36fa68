"""Archives on disk: the same however made, as the definitions say, safe from kills and damage, and forgetful."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time as clock
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import trellis
from tests.archive import naive_tree
from tests.archive.cases import built, events, held_in, sized_as, with_keys
from tests.archive.test_archive import QUERIES
from tests.compare import assert_same_rows
from trellis.archive import Answer, Archive
from trellis.errors import DataError, UsageError


def as_defined(archive: Archive, table: pa.Table) -> None:
    """Check an archive by the definitions."""
    about = archive.manifest
    leaves = naive_tree.leaves(table.to_pylist(), about.capacity, about.bits, about.hashes, about.key)
    nodes = naive_tree.tree(leaves, about.capacity, about.fan_out, about.bits)
    found, above = held_in(archive)
    assert found == leaves
    settled = [node for node in nodes if (node[1] + 1) * node[2] <= about.events]
    assert above == sorted(settled, key=lambda node: node[:2])
    assert {path.name for path in archive.directory.iterdir()} == {"manifest.json", *about.files}


@pytest.mark.parametrize(("fan_out", "keys"), [(2, False), (3, True)])
def test_however_it_was_made_it_is_as_defined(tmp_path: Path, fan_out: int, keys: bool) -> None:
    dice = random.Random(3 + fan_out)
    table = with_keys(events(300, dice), dice)
    given = {"fan_out": fan_out, "height": 3, "leaf": 3, "key": "key" if keys else None}
    whole = built(table.take(pa.array(dice.sample(range(300), 300))), tmp_path / "whole", **given)
    as_defined(whole, table)
    assert whole.tree.height >= 3
    assert whole.info()["top_nodes"] < whole.info()["leaves"] / 2
    pieces, single = sized_as(whole, tmp_path / "pieces"), sized_as(whole, tmp_path / "single")
    cuts = sorted(dice.sample(range(300), 9))
    for low, high in zip([0, *cuts], [*cuts, 300], strict=True):  # events of one time may be in two pieces
        part = table.slice(low, high - low)
        pieces.append(part.take(pa.array(dice.sample(range(high - low), high - low), pa.int64())))
    for i in range(80):
        single.append(table.slice(i, 1))
    as_defined(Archive.open(tmp_path / "pieces"), table)
    as_defined(Archive.open(tmp_path / "single"), table.slice(0, 80))
    assert held_in(pieces) == held_in(whole)
    assert pieces.answerer.contents.keys.pairs.tolist() == whole.answerer.contents.keys.pairs.tolist()
    assert pieces.answerer.contents.keys.values == whole.answerer.contents.keys.values
    stored = whole.stored
    for name in [*"ABCDEF", "never"]:
        depth_of_walk = whole.tree.leaves_of(name, stored.entries, stored.filters.rows(), stored.filters.hashes)
        assert (depth_of_walk == stored.filters.has([name])).all()


def test_events_of_one_time_get_their_places_when_later_ones_come(tmp_path: Path) -> None:
    table = pa.table({"t": [1, 1, 1, 2, 2], "id": ["c", "a", "b", "e", "d"], "n": list("CABED"), "x": [0] * 5})
    archive = built(table.slice(0, 2), tmp_path / "a", leaf=2, expected_events=10)
    assert archive.manifest.events == 0
    assert archive.exists("PATTERN A a") is not Answer.NO  # what is held is seen
    assert archive.exists("PATTERN SEQ(A a, D d)") is Answer.NO
    archive.append(table.slice(2, 1))
    assert len(archive) == archive.manifest.holds == 3
    archive.append(table.slice(3, 1))
    archive.append(table.slice(4, 1))
    as_defined(archive, table)
    assert archive.find("PATTERN E e", exact=True).trends.to_arrow()["e"].to_pylist() == ["e"]
    with pytest.raises(DataError, match="not later than the last"):
        archive.append(table.slice(0, 1))
    late = built(table, tmp_path / "late", leaf=2, expected_events=10)
    for t, id_ in ((9, "f"), (6, "g"), (4, "h"), (12, "i"), (9, "j")):
        late.append(pa.table({"t": [t], "id": [id_], "n": ["A"], "x": [0]}), delay=5)
    assert [late.manifest.events, late.manifest.holds] == [7, 3]
    last = pa.table({"t": [20], "id": ["k"], "n": ["A"], "x": [0]})
    assert late.append(last, batch=("s", 3))
    assert not late.append(last, batch=("s", 3))  # it came already
    assert not Archive.open(tmp_path / "late").append(last, batch=("s", 2))
    assert len(late) == 11
    with pytest.raises(UsageError, match="is not a delay"):
        late.append(last, delay="long")


def same_as_the_engine(archive: Archive, left: pa.Table, queries: list[str] = QUERIES) -> None:
    for text in queries:
        found = archive.find(text, exact=True)
        whole = trellis.query(text).detect(left, time="t", type="n", event_id="id")
        assert_same_rows(found.trends.to_arrow(), whole.to_arrow())
        assert whole.count() == 0 or archive.exists(text.replace("SELECT skip-till-next", "")) is not Answer.NO


@pytest.mark.parametrize("moment", [0, 36, 90, 10**6])
def test_the_oldest_part_can_be_dropped(tmp_path: Path, moment: int) -> None:
    dice = random.Random(moment)
    table = with_keys(events(60, dice), dice)
    archive = built(table.slice(0, 0), tmp_path / "a", key="key", expected_events=60)
    times = table["t"].to_numpy()
    for low, high in ((0, 30), (30, 75), (75, 10**6)):
        archive.append(table.filter(pa.array((times >= low) & (times < high))))
    gone = archive.drop_before(moment)
    archive = Archive.open(tmp_path / "a")
    assert archive.info()["events"] == 60 - gone
    assert gone == 4 * sum(times[i + 3] < moment for i in range(0, archive.manifest.events - 3, 4))
    same_as_the_engine(archive, table.slice(gone), QUERIES[::3])
    rows = archive.find("PATTERN SEQ(A, B)").to_pylist()
    assert all(row["first_position"] >= gone for row in rows)
    assert {row["key"] for row in archive.find("PATTERN SEQ(A, B) WHERE [key]").to_pylist()} <= {"p", "q", "r"}
    archive.append(pa.table({"t": [10**7], "id": ["z"], "n": ["A"], "x": [1], "g": ["u"], "y": [0.5], "key": ["p"]}))
    assert Archive.open(tmp_path / "a").info()["events"] == 61 - gone


@pytest.mark.parametrize("number", range(4))
def test_the_oldest_part_can_be_coarsened(tmp_path: Path, number: int) -> None:
    dice = random.Random(number)
    table = with_keys(events(120, dice, "ABCDEFG"), dice)
    times = table["t"].to_numpy()
    at = int(np.searchsorted(times, times[90]))
    archive = built(table.slice(0, at), tmp_path / "a", leaf=3, key="key", height=2, fan_out=2 + number % 2)
    before, bytes_ = len(archive.leaves), archive.info()["filter_bytes"]
    wide = archive.find("PATTERN SEQ(A, B)", policy="skip-till-any").to_pylist()
    moment = [40, 100, 150, 10**6][number]
    less = archive.coarsen_before(moment, 2)
    archive = Archive.open(tmp_path / "a")
    assert less == before - len(archive.leaves) > 0
    assert archive.info()["filter_bytes"] <= bytes_
    assert archive.info()["coarse"] > 0
    first, last = archive.leaves.first, archive.leaves.last
    assert [0, *(last[:-1] + 1)] == first.tolist()
    assert all(archive.leaves.until[i] < moment for i in range(len(first)) if last[i] - first[i] >= 3)
    found = archive.find("PATTERN SEQ(A, B)", policy="skip-till-any").to_pylist()
    for row in wide:  # what was found is found, in intervals that contain it
        starts = [other for other in found if other["first_position"] <= row["first_position"]]
        assert starts
        assert starts[-1]["last_position"] >= row["last_position"]
    queries = [*QUERIES[number::2], "PATTERN SEQ(A a, B b) WHERE [key] SELECT contiguous"]
    same_as_the_engine(archive, table.slice(0, at), queries)
    archive.append(table.slice(at))  # it goes on where it was
    archive.coarsen_before(moment + 60, 3)
    same_as_the_engine(archive, table, queries)
    true = trellis.query("PATTERN SEQ(A a, B b) WHERE [key]").detect(table, time="t", type="n", event_id="id")
    keys = {row["key"] for row in true.to_arrow().to_pylist()}
    assert keys <= {row["key"] for row in archive.find("PATTERN SEQ(A a, B b) WHERE [key]").to_pylist()}
    assert len(archive.find("PATTERN SEQ(A, B)", level=2)) <= len(archive.find("PATTERN SEQ(A, B)"))
    gone = archive.drop_before(130)
    assert gone == archive.leaves.first[0] > 0
    same_as_the_engine(archive, table.slice(gone), queries[:3])
    with pytest.raises(UsageError, match="level of 1 or more"):
        archive.coarsen_before(10, 0)


def test_damage_is_told(tmp_path: Path) -> None:
    table = events(60, random.Random(1))
    archive = built(table, tmp_path / "a")
    with pytest.raises(UsageError, match="exists and is not empty"):
        built(table, tmp_path / "a")
    with pytest.raises(DataError, match="not later than the last"):
        archive.append(table)
    with pytest.raises(DataError, match="`x` is missing"):
        archive.append(table.drop_columns(["x"]))
    with pytest.raises(DataError, match="is not an archive"):
        Archive.open(tmp_path)
    tile = tmp_path / "a" / archive.manifest.tiles[0]
    tile.write_bytes(tile.read_bytes()[:-1] + b"?")
    with pytest.raises(DataError, match="is damaged: its checksum"):
        Archive.open(tmp_path / "a").exists("PATTERN SEQ(A a, B b)")
    manifest = tmp_path / "a" / "manifest.json"
    about = json.loads(manifest.read_text())
    manifest.write_text(json.dumps(about | {"version": 9}))
    with pytest.raises(DataError, match="of version 9"):
        Archive.open(tmp_path / "a")
    manifest.write_text(json.dumps({"format": "other"}))
    with pytest.raises(DataError, match="not of an archive of Trellis"):
        Archive.open(tmp_path / "a")


KILLED = """
import sys
import numpy as np, pyarrow as pa
from trellis.archive import Archive
archive = Archive.open(sys.argv[1])
start = len(archive)
print("ready", flush=True)
while True:
    n = 20_000
    archive.append(pa.table({"t": np.arange(start, start + n), "n": pa.array([f"w{i % 97}" for i in range(n)])}))
    start += n
"""


@pytest.mark.slow
def test_a_killed_append_leaves_the_archive_as_it_was(tmp_path: Path) -> None:
    table = pa.table({"t": pa.array([0], pa.int64()), "n": ["w0"]})
    Archive.build(table, tmp_path / "a", time="t", type="n", leaf=10, expected_events=10**6)
    dice = random.Random(4)
    for _ in range(3):
        command = [sys.executable, "-c", KILLED, str(tmp_path / "a")]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            process.stdout.readline()
            clock.sleep(0.3 + dice.random())
            os.kill(process.pid, signal.SIGKILL)
        archive = Archive.open(tmp_path / "a")
        assert int(archive.stored.entries["events"].sum()) == archive.manifest.events
        assert archive.filters.has(["w0"])[0]
        found = archive.find("PATTERN w0 a WHERE a.t < 50", exact=True)
        assert found.events == len(archive)
    before = len(archive)
    archive.append(pa.table({"t": [10**9], "n": ["w1"]}))
    assert len(archive) == before + 1
    assert {path.name for path in (tmp_path / "a").iterdir()} == {"manifest.json", *archive.manifest.files}
