"""Answers of archives: exact ones are those of the engine, filters keep their rate, keys are walked in one pass."""

from __future__ import annotations

import random
from dataclasses import replace
from math import comb
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import trellis
from tests.archive.cases import built, events
from tests.compare import assert_same_rows
from tests.profiles import examples
from trellis.archive import Answer, Archive
from trellis.archive.filters import Filters
from trellis.archive.leaves import Policy, Question, Reading
from trellis.archive.search import LeafSearch
from trellis.archive.sizing import size_filters, thesis_size
from trellis.archive.step_sequences import StepSequence
from trellis.errors import DataError, UsageError

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
    "PATTERN SEQ(A a, B b) SELECT contiguous",
    "PATTERN SEQ(A a, OR(SEQ(B b, C c), D d)) WHERE a.x <= 3 SELECT contiguous WITHIN 9 SLIDE 3",
    "PATTERN A+ a[] SELECT contiguous REPORT maximal",
    "PATTERN SEQ(A a, B b) WHERE [g] SELECT contiguous",
    "PATTERN SEQ(A a, NOT(C c), B b) SELECT contiguous",
    "PATTERN SEQ(A a, B b) WHERE a.x = b.x AGGREGATE COUNT(*), SUM(b.x)",
    "PATTERN SEQ(NOT(C c), A a, B b) WITHIN 6",
    "PATTERN SEQ(A a, B b, NOT(C c)) WHERE c.x > 1 WITHIN 9",
    "PATTERN SEQ(A a, AND(B b, B c)) WITHIN 12",
    "PATTERN AND(A a, B b, A c) WHERE a.x < c.x",
    "PATTERN SEQ(A a, B+ b[] skip-till-next greedy, skip-till-next C c)",
    "PATTERN SEQ(AND(A a, SEQ(B+ b[] greedy, C c)), D d) REPORT any WITHIN 9",
    "PATTERN SEQ(A a, B+ b[] UNTIL (b.x > 2), C c) REPORT any",
    "PATTERN SEQ(A a, contiguous B* b[], C c)",
    "PATTERN SEQ(A a, B{2,} b[] contiguous) REPORT any",
    "PATTERN AND(A a, B+ b[] skip-till-next) WHERE b.x > a.x REPORT any",
    "PATTERN AND(SEQ(A a, contiguous B b), skip-till-next C c)",
    "PATTERN SEQ(A? a, B{1,2} b[], C c) SELECT skip-till-next",
    "PATTERN SEQ(SEQ(A a, B b)+ g[], C c) SELECT skip-till-next REPORT any",
    "PATTERN SEQ(A a, OR(B b, C c)* g[], D d) HAVING COUNT(g) < 3 AFTER MATCH SKIP PAST LAST",
    "PATTERN SEQ(NOT(C c), A a, B b, NOT(D d)) WITHIN 8",
    "PATTERN AND(A a, B b, NOT(C c)) WITHIN 6 SLIDE 3",
    "PATTERN SEQ(A a, NOT(SEQ(B b, C c)), D d)",
    "PATTERN SEQ(A a, NOT(SEQ(B b, C c)), D d) WHERE b.x > a.x WITHIN 9",
    "PATTERN SEQ(A a, NOT(SEQ(NOT(D d), E? e, B b)), C c) WHERE b.x >= a.x",
    "PATTERN SEQ(SEQ(A a, B b)+ g[], C c) WHERE a.x + b.x < 2 * c.x REPORT any WITHIN 9 SLIDE 3",
    "PATTERN SEQ(A a, SEQ(B b, C c)* g[], D d) WHERE [g] REPORT any AFTER MATCH SKIP TO NEXT",
    "PATTERN SEQ(AND(A a, NOT(D d), B b){1,2} g[], C+ c[] UNTIL (c.x > 4)) HAVING SUM(c.x) > 3 SELECT skip-till-next",
    "PATTERN AND(A a, A b) WHERE a.x < b.x",
    "PATTERN A+ a[] WHERE a[i].x NOT IN (a[..i-1].x) AND COUNT(a) >= 2 SELECT skip-till-next",
    "PATTERN SEQ(A a, B b) WHERE a.y > 1.5 AND b.x = 3",
    "PATTERN SEQ(A a, B b, C c) WHERE a.g = 'u' AND c.x IN (1, 4) SELECT skip-till-next",
    "PATTERN SEQ(A a, OR(B b, C c), A d) WHERE b.y BETWEEN 0 AND 1 AND c.g = 'v' AND d.y <= -0.5",
    "PATTERN SEQ(A a, NOT(B b), C c) WHERE a.y < 0 AND b.y > 0 AND (c.x = 2 OR c.g = 'u')",
    "PATTERN A+ a[] WHERE a.x >= 3 AND a.y < 2 REPORT maximal",
    "PATTERN SEQ(A a, B b) WHERE a.y > 0 AND 3 > b.x SELECT contiguous",
]


class Sets:
    """Leaves that are known exactly."""

    def __init__(self, sets: list[frozenset[str]]) -> None:
        self.sets = sets

    def has(self, names: frozenset[str], begin: int = 0) -> np.ndarray:
        return np.array([not names.isdisjoint(one) for one in self.sets], np.bool_)


class Bad:
    """Filters that often say yes wrongly."""

    def __init__(self, filters: Filters, seed_: int) -> None:
        self.filters, self.seed = filters, seed_

    def has(self, names: frozenset[str], begin: int = 0) -> np.ndarray:
        rng = np.random.default_rng([self.seed, *map(ord, "".join(sorted(names)))])
        return self.filters.has(names) | (rng.random(self.filters.leaves) < 0.3)


@examples(80)
@given(number=st.integers(0, 10**9), text=st.sampled_from(QUERIES))
def test_exact_answers_are_those_of_the_engine(
    tmp_path_factory: pytest.TempPathFactory, number: int, text: str
) -> None:
    exactly(tmp_path_factory.mktemp("a") / "archive", number, text)


@pytest.mark.slow
@settings(max_examples=600)
@given(number=st.integers(0, 10**9), text=st.sampled_from(QUERIES))
def test_many_exact_answers(tmp_path_factory: pytest.TempPathFactory, number: int, text: str) -> None:
    exactly(tmp_path_factory.mktemp("a") / "archive", number, text)


def exactly(folder: Path, number: int, text: str) -> None:
    dice = random.Random(number)
    table = events(dice.choice([0, 1, 12, 30]), dice, dice.choice(["ABC", "ABCDE", "ABCDEFGHIJ"]))
    with_ids = dice.random() < 0.7
    archive = built(
        table,
        folder,
        event_id="id" if with_ids else None,
        leaf=dice.choice([1, 3, 5]),
        key=dice.choice(["g", None]),
        values=dice.choice([(), ("g",), ("x", "g")]),
    )
    plain = archive.find(text, algorithm="slices")
    assert archive.find(text, algorithm="tree").equals(plain)
    assert archive.exists(text, algorithm="tree") is archive.exists(text, algorithm="slices")
    if dice.random() < 0.6 and len(archive.leaves):
        object.__setattr__(archive.leaves, "index", Bad(archive.filters, number))
    found = archive.find(text, exact=True)
    whole = trellis.query(text).detect(table, time="t", type="n", event_id="id" if with_ids else None)
    assert found.trends.count() == whole.count()
    assert_same_rows(found.trends.to_arrow(), whole.to_arrow())
    assert found.needed <= found.read <= found.events == table.num_rows
    if with_ids and "AGGREGATE" not in text:
        assert sorted(map(str, found.trends.explode().to_pylist())) == sorted(map(str, whole.explode().to_pylist()))
    assert whole.count() == 0 or archive.exists(text) is not Answer.NO


@pytest.mark.parametrize("windows", ["WITHIN 0.3 SLIDE 0.1", "WITHIN 0.1 SLIDE 0.1"])
def test_windows_over_doubles(tmp_path: Path, windows: str) -> None:
    table = events(300, random.Random(1), "AB")
    tenths = [float(f"{t}e-1") for t in table["t"].to_pylist()]
    table = table.set_column(0, "t", pa.array(tenths))
    archive = built(table, tmp_path / "archive", leaf=1)
    text = f"PATTERN SEQ(A a, B b) {windows}"
    whole = trellis.query(text).detect(table, time="t", type="n", event_id="id")
    found = archive.find(text, exact=True)
    assert_same_rows(found.trends.to_arrow(), whole.to_arrow())
    assert found.trends.count() > 0 or "0.3" not in windows


def test_filters_never_deny_what_is_there_and_keep_their_rate(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    number, rate, questions = 40_000, 0.05, 3_000
    codes = rng.zipf(1.3, number) % 3_000
    table = pa.table({"t": np.arange(number), "n": pa.array([f"w{i}" for i in codes])})
    archive = Archive.build(table, tmp_path / "a", time="t", type="n", leaf=50, false_positive=rate, query_length=2)
    sets = [frozenset(f"w{i}" for i in codes[at : at + 50]) for at in range(0, number, 50)]
    exact = replace(archive.leaves, index=Sets(sets))
    wrong = 0
    for _ in range(questions):
        names = f"w{rng.integers(0, 3000)}", f"w{rng.integers(0, 4200)}"  # some never occur
        for name in names:
            assert (archive.filters.has([name]) >= exact.has(frozenset({name}))).all()
        sequence = StepSequence(tuple((frozenset({name}),) for name in names), (frozenset(),), (False,))
        found, true = (LeafSearch(Question((sequence,)), leaves).intervals() for leaves in (archive.leaves, exact))
        wrong += (found.start.tolist(), found.end.tolist()) != (true.start.tolist(), true.end.tolist())
    at_least_so_many = sum(comb(questions, k) * rate**k * (1 - rate) ** (questions - k) for k in range(wrong))
    assert 1 - at_least_so_many > 0.01  # by the binomial test
    about = archive.info()
    assert about["events"] == number
    assert about["leaves"] == 800
    assert 0 < about["expected_rate"] < rate
    assert about["density"] < 0.6


def test_a_case_to_which_it_did_not_happen_is_rarely_likely(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    number, cases, rate = 12_000, 1_500, 0.2
    names, keys = rng.integers(0, 12, number), rng.integers(0, cases, number)
    table = pa.table({"t": np.arange(number), "n": [f"w{i}" for i in names], "case": [f"c{i}" for i in keys]})
    given = {"time": "t", "type": "n", "key": "case", "leaf": 100, "false_positive": rate, "query_length": 3}
    archive = Archive.build(table, tmp_path / "a", **given)
    wrong = untrue = 0
    for a, b, c in rng.integers(0, 12, (30, 3)).tolist():
        done = np.zeros(cases, np.int64)
        for name, key in zip(names.tolist(), keys.tolist(), strict=True):
            done[key] += done[key] < 3 and name == (a, b, c)[done[key]]
        true = {f"c{key}" for key in np.flatnonzero(done == 3).tolist()}
        found = archive.find(f"PATTERN SEQ(w{a} a, w{b} b, w{c} c) WHERE [case]")
        likely = {row["key"] for row in found.to_pylist() if row["answer"] == "likely"}
        assert true <= set(found["key"].to_pylist())
        wrong, untrue = wrong + len(likely - true), untrue + cases - len(true)
    assert wrong <= rate / 20 * untrue  # a case is in 8 of 120 leaves, and only these are looked at
    assert untrue > 20_000


@examples(60)
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
        assert row["answer"] == "maybe" or row["key"] in true | {None} or archive.manifest.bits < 512


def test_rare_names_need_few_nodes_of_a_tree_that_is_sized_for_it(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    names = np.where(rng.random(20_000) < 0.001, "rare", [f"w{i}" for i in rng.integers(0, 30, 20_000)])
    table = pa.table({"t": np.arange(20_000), "n": names})
    archive = Archive.build(table, tmp_path / "a", time="t", type="n", leaf=20, sizing="tree")
    assert archive.info()["height"] > 2
    leaves = archive.info()["leaves"]
    for policy in ("skip-till-any", "skip-till-next", "contiguous", "adjacent-leaves"):
        for steps, share in (
            ("rare a, never b", 0.2), ("rare a, rare b, rare c", 1), ("OR(never a, rare b), NOT(w1 c), rare d", 1),
            ("never a, w2 b, w3 c", 0.2), ("AND(rare a, rare b), rare c", 1), ("AND(rare a, never b)", 0.2),
            ("AND(never a, w1 b, w2 c), w3 d", 0.4), ("w2 a, NOT(w1 b), never c", 0.2),
            ("OR(never a, no b), w1 c", 0.2), ("NOT(w1 a), rare b", 1), ("rare a, NOT(w1 b)", 1),
            ("w2 a, rare b, w3 c", 6),
        ):  # fmt: skip
            text = f"PATTERN SEQ({steps})"
            walked, plain = (archive.find(text, policy=policy, algorithm=name) for name in ("tree", "slices"))
            assert walked.equals(plain)
            assert int(walked.schema.metadata[b"visited"]) < share * leaves
    near = archive.find("PATTERN SEQ(w2 a, rare b, w3 c) WITHIN 50", algorithm="tree")
    assert int(near.schema.metadata[b"visited"]) < 1.2 * leaves  # of 3 names: frequent ones near the rare one only
    with pytest.raises(UsageError, match="no algorithm `three`"):
        archive.find("PATTERN SEQ(rare a, rare b)", algorithm="three")


@examples(120)
@given(number=st.integers(0, 10**9))
def test_a_walk_of_the_tree_finds_what_the_slices_find(tmp_path_factory: pytest.TempPathFactory, number: int) -> None:
    dice = random.Random(number)
    table = events(dice.choice([1, 40, 90]), dice, dice.choice(["ABC", "ABCDEFGHIJ"]))
    archive = built(
        table, tmp_path_factory.mktemp("a") / "archive", leaf=dice.choice([1, 2, 3]), values=dice.choice([(), ("g",)]),
        height=dice.choice([0, 2, 4]), fan_out=dice.choice([2, 3]),
    )  # fmt: skip
    if dice.random() < 0.2:
        archive.coarsen_before(table["t"][table.num_rows // 2].as_py(), dice.choice([1, 2]))
    for _ in range(6):
        steps = dice.choice([
            "A a, B b", "A a, B b, C c", "A a, A b", "OR(A a, B b), C c", "AND(A a, B b), C c", "A a, AND(B b, C c)",
            "A a, NOT(B b), C c", "AND(A a, B b), NOT(C c), A d", "A a, OR(SEQ(B b, NOT(C c), A d), C e)",
            "A a, NOT(C c), AND(B b, D d), NOT(A e), B f", "AND(SEQ(A a, B b), C c)", "NOT(B b), A a",
            "A a, B+ b[], C c", "A a, B b, NOT(C c)", "AND(A a, A b), C c", "A a, AND(B b, B c, A d)",
        ])  # fmt: skip
        where = dice.choice(["", "", " WHERE a.x > 3", " WHERE a.g = 'u'"])
        options = {
            "policy": dice.choice([*Policy]), "same_leaf": dice.choice([*Reading]),
            "level": dice.choice([0, 0, 0, 1]), "first": dice.choice([None, None, 7]),
            "last": dice.choice([None, None, 31]),
        }  # fmt: skip
        if dice.random() < 0.3:
            options["within_events"] = dice.choice([0, 2, 9])
            window = ""
        else:
            window = dice.choice(["", " WITHIN 4", " WITHIN 6 SLIDE 2"])
        if dice.random() < 0.3:
            options["minimal"] = True
        elif options["policy"] is not Policy.NEXT and dice.random() < 0.3:
            options["pairs"] = True
        text = f"PATTERN SEQ({steps}){where}{window}"
        walked, plain = (archive.find(text, algorithm=name, **options) for name in ("tree", "slices"))
        assert walked.equals(plain), (text, options)
        simple = {name: value for name, value in options.items() if name not in ("minimal", "pairs")}
        answers = [archive.exists(text, algorithm=name, **simple) for name in ("tree", "slices")]
        assert answers[0] is answers[1], (text, simple)


def test_sizes() -> None:
    small, large = (size_filters([70] * 10, 10_000, rate, 3) for rate in (0.1, 0.001))
    assert small.bits < large.bits
    assert small.bits % 64 == 0
    with pytest.raises(UsageError, match=r"10\.0 kB are allowed"):
        size_filters([70] * 10, 10_000, 0.001, 3, memory=10_000)
    with pytest.raises(UsageError, match="the thesis's filters take"):
        thesis_size(1_000_000, 100, 1e-4, 3, memory=1_000_000)
    nodes = size_filters([70] * 10, 10_000, 0.1, 3, above=[400])
    assert nodes.bits >= nodes.hashes * 400 / np.log(2) > small.bits
    assert thesis_size(1_000_000, 100, 1e-4, 3).bits > size_filters([70] * 10, 10_000, 1e-4, 3).bits
    with pytest.raises(UsageError, match="cannot be kept"):
        size_filters([5], 10, 0, 3)


def test_questions_that_ask_for_little(tmp_path: Path) -> None:
    table = events(60, random.Random(1), "AB")
    archive = built(table, tmp_path / "a")
    assert archive.exists("PATTERN SEQ(A a, Z z)") in (Answer.NO, Answer.MAYBE, Answer.LIKELY)
    assert archive.find("PATTERN SEQ(A a, B b)", begin=10**6).num_rows == 0
    assert archive.find("PATTERN SEQ(A a, B b)", first=10**6).num_rows == 0
    assert archive.find("PATTERN SEQ(A a, B b)", level=200).num_rows == 1
    assert archive.exists("PATTERN SEQ(" + ", ".join(f"A a{i}" for i in range(70)) + ")", same_leaf="no") is Answer.NO
    empty = built(table.slice(0, 0), tmp_path / "empty")
    assert empty.exists("PATTERN SEQ(A a, B b)") is Answer.NO
    assert empty.find("PATTERN SEQ(A a, B b)").num_rows == 0
    assert empty.info()["events"] == 0
    coarse = archive.find("PATTERN SEQ(A a, B b)", level=2)
    assert coarse.num_rows <= archive.find("PATTERN SEQ(A a, B b)").num_rows
    for wrong, options in (
        ("there is no policy", {"policy": "sometimes"}), ("same_leaf is", {"same_leaf": "yes"}),
        ("is not a time", {"begin": "then"}), ("a level is", {"level": -1}), ("starts is", {"starts": "late"}),
        ("a list of skip-till-next", {"starts": "after"}), ("different lists", {"pairs": True, "minimal": True}),
        ("one end for each start", {"pairs": True, "policy": "skip-till-next"}), ("a limit is", {"limit": -1}),
        ("a span of events is", {"within_events": -1}),
    ):  # fmt: skip
        with pytest.raises(UsageError, match=wrong):
            archive.find("PATTERN SEQ(A a, B b)", **options)


def test_ties(tmp_path: Path) -> None:
    """Events of one time are ordered by the column that breaks ties, in filters and in exact answers."""
    dice = random.Random(5)
    table = events(200, dice, "AB")
    table = table.set_column(0, "t", pa.array([t // 20 for t in table["t"].to_pylist()]))
    table = table.append_column("seq", pa.array(dice.sample(range(200), 200)))
    archive = built(table, tmp_path / "archive", time=("t", "seq"), leaf=3)
    archive.append(table.slice(0, 0))
    text = "PATTERN SEQ(A a, B b) WHERE a.x < b.x"
    found = Archive.open(tmp_path / "archive").find(text, exact=True).trends
    whole = trellis.query(text).detect(table, time=("t", "seq"), type="n", event_id="id")
    assert whole.count() > trellis.query(text).detect(table.slice(0), time="t", type="n", event_id="id").count()
    assert_same_rows(found.to_arrow(), whole.to_arrow())
    gap = table.set_column(table.column_names.index("seq"), "seq", pa.array([None] * 200, pa.int64()))
    with pytest.raises(DataError, match="200 events have no `seq`"):
        built(gap, tmp_path / "other", time=("t", "seq"))
