"""Archives on disk: the same however they are made, right where they answer exactly, safe from kills and damage."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time as clock
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

import trellis
from tests.compare import plain_rows
from trellis.archive import Answer, Archive
from trellis.archive.filters import Filters, coded, ones, tree_of
from trellis.archive.sizing import size_filters, thesis_size
from trellis.errors import DataError, UsageError

SETTINGS = {"suppress_health_check": list(HealthCheck), "phases": [Phase.generate], "database": None, "deadline": None}
QUERIES = [
    "PATTERN SEQ(A a, B b)",
    "PATTERN SEQ(A a, B+ b[]) WHERE a.x < b.x",
    "PATTERN SEQ(A a, B b, C c) WHERE [g] AND a.x <= c.x WITHIN 9",
    "PATTERN SEQ(A a, OR(B b, C c)) WITHIN 12 SLIDE 4",
    "PATTERN SEQ(A a, AND(B b, C c))",
    "PATTERN SEQ(A a, NOT(B b), C c) WHERE b.x > 2",
    "PATTERN SEQ(A a, NOT(B b), C c) WITHIN 8",
    "PATTERN A+ a[] WHERE a[i].x > a[i-1].x REPORT maximal",
    "PATTERN A+ a[] WHERE a[i].x > a[i-1].x REPORT any WITHIN 6 SLIDE 3",
    "PATTERN SEQ(A a, B b, C c) SELECT skip-till-next",
    "PATTERN SEQ(A a, OR(SEQ(B b, D d), SEQ(C c, E e))) SELECT skip-till-next",
    "PATTERN SEQ(A a, NOT(D d), B b) SELECT skip-till-next WITHIN 10",
    "PATTERN SEQ(A a, B+ b[]) SELECT contiguous",
    "PATTERN SEQ(A a, B b) WHERE a.x = b.x AGGREGATE COUNT(*), SUM(b.x)",
]


def events(number: int, dice: random.Random, names: str = "ABCDE") -> pa.Table:
    return pa.table(
        {
            "t": pa.array(sorted(dice.randrange(2 * number + 1) for _ in range(number)), pa.int64()),
            "id": pa.array([f"e{i:04}" for i in range(number)], pa.string()),
            "n": pa.array([dice.choice([*names, None]) for _ in range(number)], pa.string()),
            "x": pa.array([dice.randrange(5) for _ in range(number)], pa.int64()),
            "g": pa.array([dice.choice("uv") for _ in range(number)], pa.string()),
        }
    )


def built(table: pa.Table, folder: Path, **more: Any) -> Archive:
    given_ = {"time": "t", "type": "n", "event_id": "id", "leaf": 4, "false_positive": 0.01} | more
    return Archive.build(table, folder, **given_)


class Bad:
    """Filters that often say yes wrongly."""

    def __init__(self, filters: Filters, seed_: int) -> None:
        self.filters, self.seed = filters, seed_

    def has(self, names: frozenset[str]) -> np.ndarray:
        rng = np.random.default_rng([self.seed, *map(ord, "".join(sorted(names)))])
        return self.filters.has(names) | (rng.random(self.filters.leaves) < 0.3)


@seed(11101)
@settings(max_examples=120, **SETTINGS)
@given(number=st.integers(0, 10**9), text=st.sampled_from(QUERIES))
def test_exact_answers_are_those_of_the_engine(
    tmp_path_factory: pytest.TempPathFactory, number: int, text: str
) -> None:
    dice = random.Random(number)
    table = events(dice.choice([0, 1, 12, 30]), dice, dice.choice(["ABC", "ABCDE", "ABCDEFGHIJ"]))
    with_ids = dice.random() < 0.7
    archive = built(
        table,
        tmp_path_factory.mktemp("a") / "archive",
        event_id="id" if with_ids else None,
        leaf=dice.choice([1, 3, 5]),
    )
    if dice.random() < 0.6 and len(archive.leaves):
        object.__setattr__(archive.leaves, "holder", Bad(archive.filters, number))
    found = archive.find(text, exact=True)
    whole = trellis.query(text).detect(table, time="t", type="n", event_id="id" if with_ids else None)
    assert found.trends.count() == whole.count()
    assert plain_rows(found.trends.to_arrow().to_pylist()) == plain_rows(whole.to_arrow().to_pylist())
    assert found.needed <= found.read <= found.events == table.num_rows
    if "contiguous" not in text:
        answer = archive.exists(text.replace("SELECT skip-till-next", ""))
        assert whole.count() == 0 or answer is not Answer.NO


def test_however_it_was_made_it_is_the_same(tmp_path: Path) -> None:
    dice = random.Random(3)
    table = events(500, dice)
    times = np.unique(table["t"].to_numpy())
    whole = built(table, tmp_path / "whole", expected_events=500)
    cuts = sorted(dice.sample(times[1:].tolist(), 7))
    pieces = built(table.slice(0, 0), tmp_path / "pieces", expected_events=500, leaf=4)
    pieces.manifest.bits, pieces.manifest.hashes = whole.manifest.bits, whole.manifest.hashes
    for low, high in zip([-1, *cuts], [*cuts, 10**9], strict=True):
        at = (table["t"].to_numpy() >= low) & (table["t"].to_numpy() < high)
        shuffled = table.filter(pa.array(at))
        order = list(range(shuffled.num_rows))
        dice.shuffle(order)
        pieces.append(shuffled.take(pa.array(order, pa.int64())))
    again = Archive.open(tmp_path / "pieces")
    assert len(again.filters.tiles) == len(whole.filters.tiles)
    assert all((one == other).all() for one, other in zip(again.filters.tiles, whole.filters.tiles, strict=True))
    assert (again._summary == whole._summary).all()
    assert len(list((tmp_path / "pieces").iterdir())) == 3 + len(again.manifest.parts)
    assert again.find(QUERIES[0], exact=True).trends.count() == whole.find(QUERIES[0], exact=True).trends.count()


@pytest.mark.parametrize("fan_out", [2, 3])
def test_the_tree_is_canonical(fan_out: int) -> None:
    rng = np.random.default_rng(1)
    names = pa.array([f"n{i}" for i in rng.zipf(1.4, 3000) % 500])
    codes, distinct = coded(names)
    filters = Filters.empty(10, 256, 3)
    filters.add(codes, distinct, 0)
    tree = tree_of(filters, 300, fan_out)
    assert len(tree) > 2
    for g, level in enumerate(tree):
        nodes = dict(zip(level.index.tolist(), level.filters, strict=True))
        for b in range(300 // fan_out**g):
            joined = np.bitwise_or.reduce(filters.rows[b * fan_out**g : (b + 1) * fan_out**g])
            exists = g == 0 or ones(joined[None])[0] * 2 <= 256
            assert (b in nodes) == exists
            if exists:
                assert (nodes[b] == joined).all()


def test_filters_never_deny_what_is_there_and_keep_their_rate(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    number, rate, questions = 40_000, 0.05, 3_000
    codes = rng.zipf(1.3, number) % 3_000
    table = pa.table({"t": np.arange(number), "n": pa.array([f"w{i}" for i in codes])})
    archive = Archive.build(table, tmp_path / "a", time="t", type="n", leaf=50, false_positive=rate, query_length=2)
    truth: dict[str, np.ndarray] = {}
    for code in np.unique(codes).tolist():
        truth[f"w{code}"] = np.unique(np.flatnonzero(codes == code) // 50)
    wrong = 0
    for _ in range(questions):
        bad = False
        for name in (f"w{rng.integers(0, 3000)}", f"w{rng.integers(0, 4200)}"):
            found = np.flatnonzero(archive.filters.has([name]))
            there = truth.get(name, np.empty(0, np.int64))
            assert set(there.tolist()) <= set(found.tolist())
            bad |= len(found) > len(there)
        wrong += bad
    assert wrong <= rate * questions + 3 * (rate * questions) ** 0.5
    about = archive.info()
    assert about["events"] == number
    assert about["leaves"] == 800
    assert 0 < about["expected_rate"] < rate
    assert about["density"] < 0.6


@seed(11102)
@settings(max_examples=60, **SETTINGS)
@given(number=st.integers(0, 10**9))
def test_keys_in_one_pass(tmp_path_factory: pytest.TempPathFactory, number: int) -> None:
    dice = random.Random(number)
    table = events(dice.choice([0, 5, 40]), dice, "ABCD")
    keys = pa.array([dice.choice(["k1", "k2", "k3", "k4", None]) for _ in range(table.num_rows)], pa.string())
    table = table.append_column("key", keys)
    folder = tmp_path_factory.mktemp("a") / "archive"
    half = table.num_rows // 2
    while 0 < half < table.num_rows and table["t"][half].as_py() == table["t"][half - 1].as_py():
        half += 1
    archive = built(table.slice(0, half), folder, key="key", expected_events=100)
    archive.append(table.slice(half))
    archive = Archive.open(folder)
    steps = dice.choice(["A, B", "A, B, A", "AND(A, B), C", "A, OR(B, C)", "A, AND(B, C), D"])
    text = f"PATTERN SEQ({steps}) WHERE [key]"
    whole = trellis.query(text).detect(table, time="t", type="n", event_id="id")
    true = {row["key"] for row in whole.to_arrow().to_pylist() if row["key"] is not None}
    rows = archive.find(text).to_pylist()
    assert true <= {row["key"] for row in rows}
    strict = {row["key"] for row in archive.find(text, same_leaf="no").to_pylist()}
    assert strict <= {row["key"] for row in rows}
    assert (archive.exists(text) is Answer.NO) == (not rows)
    for row in rows:
        assert row["start_leaf"] <= row["end_leaf"]


def test_sizes() -> None:
    small, large = (size_filters([70] * 10, 10_000, rate, 3) for rate in (0.1, 0.001))
    assert small.bits < large.bits
    assert small.bits % 64 == 0
    with pytest.raises(UsageError, match="MB are allowed"):
        size_filters([70] * 10, 10_000, 0.001, 3, memory=10_000)
    assert thesis_size(1_000_000, 100, 1e-4, 3).bits > size_filters([70] * 10, 10_000, 1e-4, 3).bits
    with pytest.raises(UsageError, match="cannot be kept"):
        size_filters([5], 10, 0, 3)


def test_questions_that_ask_for_little(tmp_path: Path) -> None:
    table = events(60, random.Random(1), "AB")
    archive = built(table, tmp_path / "a")
    assert archive.exists("PATTERN SEQ(A a, Z z)") in (Answer.NO, Answer.MAYBE, Answer.LIKELY)
    assert archive.find("PATTERN SEQ(A a, B b)", begin=10**6).num_rows == 0
    assert archive.exists("PATTERN SEQ(" + ", ".join(f"A a{i}" for i in range(70)) + ")", same_leaf="no") is Answer.NO
    empty = built(table.slice(0, 0), tmp_path / "empty")
    assert empty.exists("PATTERN SEQ(A a, B b)") is Answer.NO
    assert empty.find("PATTERN SEQ(A a, B b)").num_rows == 0
    assert empty.info()["events"] == 0
    coarse = archive.find("PATTERN SEQ(A a, B b)", level=2)
    assert coarse.num_rows <= archive.find("PATTERN SEQ(A a, B b)").num_rows
    for wrong, options in (
        ("there is no policy", {"policy": "sometimes"}), ("same_leaf is", {"same_leaf": "yes"}),
        ("is no time", {"begin": "then"}), ("a level is", {"level": -1}),
    ):  # fmt: skip
        with pytest.raises(UsageError, match=wrong):
            archive.find("PATTERN SEQ(A a, B b)", **options)


@pytest.mark.parametrize("number", range(4))
def test_the_oldest_part_can_be_dropped(tmp_path: Path, number: int) -> None:
    dice = random.Random(number)
    table = events(60, dice).append_column("key", pa.array([dice.choice("pq") for _ in range(60)]))
    archive = built(table.slice(0, 0), tmp_path / "a", key="key", expected_events=60)
    times = table["t"].to_numpy()
    for low, high in ((0, 30), (30, 75), (75, 10**6)):
        archive.append(table.filter(pa.array((times >= low) & (times < high))))
    moment = [0, 36, 90, 10**6][number]
    gone = archive.drop_before(moment)
    archive = Archive.open(tmp_path / "a")
    assert gone % 4 == 0
    assert archive.info()["events"] == 60 - gone
    assert gone == 4 * sum(times[i + 3] < moment for i in range(0, 60, 4))
    left = table.slice(gone)
    for text in QUERIES:
        found = archive.find(text, exact=True)
        whole = trellis.query(text).detect(left, time="t", type="n", event_id="id")
        assert plain_rows(found.trends.to_arrow().to_pylist()) == plain_rows(whole.to_arrow().to_pylist())
    rows = archive.find("PATTERN SEQ(A, B)").to_pylist()
    assert all(row["first_position"] >= gone for row in rows)
    archive.find("PATTERN SEQ(A, B) WHERE [key]")
    archive.append(pa.table({"t": [10**7], "id": ["z"], "n": ["A"], "x": [1], "g": ["u"], "key": ["p"]}))
    assert Archive.open(tmp_path / "a").info()["events"] == 61 - gone


def test_damage_is_told(tmp_path: Path) -> None:
    table = events(60, random.Random(1))
    archive = built(table, tmp_path / "a")
    with pytest.raises(UsageError, match="exists and is not empty"):
        built(table, tmp_path / "a")
    with pytest.raises(DataError, match="not later than the last"):
        archive.append(table)
    with pytest.raises(DataError, match="`x` is missing"):
        archive.append(table.drop_columns(["x"]))
    with pytest.raises(DataError, match="is no archive"):
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
start = archive.manifest.events
print("ready", flush=True)
while True:
    n = 20_000
    archive.append(pa.table({"t": np.arange(start, start + n), "n": pa.array([f"w{i % 97}" for i in range(n)])}))
    start += n
"""


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
        assert int(archive._summary["events"].sum()) == archive.manifest.events
        assert archive.filters.has(["w0"])[0]
        found = archive.find("PATTERN w0 a WHERE a.t < 50", exact=True)
        assert found.events == archive.manifest.events
    before = archive.manifest.events
    archive.append(pa.table({"t": [10**9], "n": ["w1"]}))
    assert archive.manifest.events == before + 1
    named = {"manifest.json", archive.manifest.leaves, *archive.manifest.tiles, *(p[0] for p in archive.manifest.parts)}
    assert {path.name for path in (tmp_path / "a").iterdir()} == named
