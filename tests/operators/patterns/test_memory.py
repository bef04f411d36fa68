"""What an exploration may take: it grows in place, and beyond the limit the query is refused, with how to go on."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import trellis
from tests.compare import assert_same
from tests.profiles import examples
from tests.strategies import EITHER, Case, among, lists, typed_rows
from trellis.errors import TrellisError
from trellis.plan.sizes import Sizes

PATTERNS = {
    "SEQ(A+ a[], B b)": ("a.x < b.x OR a.y = b.y", "SUM(a.x) < 2 * b.x", "AVG(a.y) > b.y", "MAX(a.x) > b.x",
                         "a[2].x > b.x", "COUNT(a) >= 2"),
    "SEQ(A a, B+ b[], C c)": ("b.x + a.x > c.x", "b.x < c.x OR b.y < c.y", "MIN(b.x) < a.x", "FIRST(b).y != c.y"),
    "AND(A+ a[], B+ b[])": ("a.x < b.x", "a[i].x > a[i-1].x", "SUM(a.x) > b.x"),
    "SEQ(A+ a[], NOT(C c), B b)": ("c.x > a.x", "a.x < b.x OR a.y < b.y", "c.x + a.x > b.x"),
    "SEQ((SEQ(A a, B b))+ g[], C c)": ("g[i].a.x > g[i-1].b.x", "a.x < c.x OR b.y < c.y"),
    "A+ a[]": ("a[i].x NOT IN (a[..i-1].x)", "a[i].y > AVG(a[..i-1].y)", "SUM(a.x) < 4"),
}  # fmt: skip
SCHEMA = {"ts": "int64", "id": "int64", "type": "string", "x": "int64", "y": "double"}
CLAUSES = {
    "report": ("", "REPORT any", "REPORT any", "REPORT maximal"),
    "select": ("", "", "", "SELECT skip-till-next", "SELECT contiguous"),
    "within": ("", "", "WITHIN 4", "WITHIN 6 SLIDE 3"),
    "rest": ("", "", "AGGREGATE COUNT(*)", "LIMIT 2"),
}


@st.composite
def cases(draw: Any) -> Case:
    pattern = draw(among(tuple(PATTERNS)))
    where = draw(lists(among(PATTERNS[pattern]), min_size=1, max_size=2, unique=True))
    where = [f"({one})" if " OR " in one else one for one in where]
    chosen = " ".join(draw(among(some)) for some in CLAUSES.values())
    syntax = trellis.query(f"PATTERN {pattern} WHERE {' AND '.join(where)} {chosen}").syntax
    rows = draw(typed_rows("AABBC", 8, nulls=draw(EITHER)))
    return Case(syntax, rows, {"time": "ts", "type": "type", "event_id": "id"}, SCHEMA)


@examples(400)
@given(cases(), st.sampled_from((1, 2, 4)))
def test_what_grows_at_every_step_gives_the_results_of_the_oracle(case: Case, least: int) -> None:
    assert_same(case, sizes=Sizes(least_vertices=least))


def events(size: int) -> pa.Table:
    rng = np.random.default_rng(3)
    return pa.table({
        "ts": np.arange(size), "id": np.arange(size), "kind": np.array(list("ABC"))[rng.integers(0, 3, size)],
        "x": rng.permutation(size), "y": rng.integers(0, 9, size),
    })  # fmt: skip


def detect(text: str, size: int, **options: Any) -> Any:
    return trellis.query(f"PATTERN {text}").detect(
        events(size), time="ts", event_id="id", type="kind", engine="local", max_trends=10**12, **options
    )


SETS = "SEQ(A+ a[], B b) WHERE a.x < b.x OR a.y = b.y"
SUMS = "SEQ(A+ a[], B b) WHERE SUM(a.x) < 5 * b.x"
MOST = "SEQ(A+ a[], B b) WHERE MAX(a.x) > b.x"
REFUSED = [
    (SETS, 36, 1 << 18, r"more than [\d,]+ matches so far of 26 events", "the different values of every a"),
    (SUMS, 48, 1 << 18, r"more than [\d,]+ matches so far of 33 events", "the sum of x of a"),
    (f"{SUMS} REPORT any", 60, 1 << 18, r"more than [\d,]+ different matches so far of 42 events", "the sum of x of a"),
    (MOST, 300, 1 << 19, r"[\d,]+ matches so far with more than [\d,]+ steps between them of 204 events",
     "the greatest x of a"),
    (f"{SUMS} REPORT maximal", 42, 1 << 18,
     r"[\d,]+ matches so far, every two of which REPORT maximal compares, of 29 events", "the sum of x of a"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "size", "memory", "number", "register"), REFUSED)
def test_more_than_the_limit_is_refused_and_a_higher_one_answers(
    text: str, size: int, memory: int, number: str, register: str
) -> None:
    small = Sizes(least_vertices=1 << 14 if "maximal" in text else 64, memory=memory)
    asked = text if "any" in text else f"{text} AGGREGATE SUM(b.x)"  # counting goes backwards in time
    found = detect(asked, size, sizes=small)
    with pytest.raises(TrellisError, match=number) as refused:
        _ = found.count() if asked == text else found.to_arrow()
    said, condition = str(refused.value), text.split("WHERE ")[1].split(" REPORT")[0]
    assert f"most of all they differ in {register}, for `{condition}`" in said
    limit, more = {1 << 18: ("256KB", "1M"), 1 << 19: ("512KB", "2M")}[memory]
    assert f"more than the memory limit of {limit}" in said
    assert f'memory_limit="{more}" (--memory-limit {more})' in said
    found, ample = (detect(text, size, **options) for options in ({"sizes": small, "memory_limit": "1G"}, {}))
    assert found.count() == ample.count() > 0


@pytest.mark.parametrize("report", ["", " REPORT maximal"])
def test_groups_that_do_not_fit_together_are_explored_one_after_another(report: str) -> None:
    text = f"{SUMS} WITHIN 12 SLIDE 2{report}"
    few, all_at_once = detect(text, 600, sizes=Sizes(least_vertices=64, memory=1 << 17)), detect(text, 600)
    assert few.to_arrow().equals(all_at_once.to_arrow())


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        SUMS, "AND(A+ a[], B+ b[]) WHERE a.x < b.x OR a.y = b.y", "SEQ(A+ a[], B b) WHERE AVG(a.x) < b.x REPORT any",
        "A+ a[] WHERE a[i].x NOT IN (a[..i-1].x)",
    ],
)  # fmt: skip
def test_a_process_stays_within_its_limit(text: str) -> None:
    program = f"""
import resource
from tests.operators.patterns.test_memory import detect
from trellis.errors import TrellisError
detect({text!r}, 20).count()
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    detect({text!r}, 10_000, memory_limit="256M").count()
except TrellisError as error:
    print("refused", (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10)
"""
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    name, taken = done.stdout.split()
    assert name == "refused"
    assert int(taken) < 256 + 100


@pytest.mark.parametrize(
    ("text", "limit", "options", "number"),
    [
        ("A+ a[] WHERE a[i].x * a[i-1].x % 7 > 1", "64K", {}, r"have [\d,]+ pairs that may follow one another"),
        ("SEQ(A a, B b, C c) WHERE a.x < c.x AND b.y < c.y", "64K", {"algorithm": "tree"},
         r"a node of the tree plan has [\d,]+ partial matches"),
    ],
)  # fmt: skip
def test_other_operators_keep_the_limit(text: str, limit: str, options: dict[str, Any], number: str) -> None:
    with pytest.raises(TrellisError, match=number) as refused:
        detect(text, 900, memory_limit=limit, **options).to_arrow()
    assert 'memory_limit="256K" (--memory-limit 256K)' in str(refused.value)
    listed = f"{text} LIMIT 20"
    found = detect(listed, 900, memory_limit="2G", **options).to_arrow()
    assert found.equals(detect(listed, 900).to_arrow())
