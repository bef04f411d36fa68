"""Things derived from a query once: the same for every call, and left behind when a query is sent elsewhere."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import trellis
from trellis.plan.registers import guard_terms_of
from trellis.plan.variants import limited_plan


def test_they_are_made_once_and_not_sent() -> None:
    plan = trellis.query("PATTERN SEQ(A a, B b) WHERE a.x < b.x").plan()
    made = guard_terms_of(plan.bound)
    assert guard_terms_of(plan.bound) is made
    sent = pickle.loads(pickle.dumps(plan))
    assert sent == plan
    assert not sent.bound.made
    assert guard_terms_of(sent.bound) == made


def test_another_query_makes_its_own() -> None:
    bound = trellis.query("PATTERN SEQ(A a, B b) WHERE a.x < b.x").plan().bound
    assert len(guard_terms_of(bound)) == 1
    assert guard_terms_of(replace(bound, conditions=())) == ()


def test_a_query_holds_no_more_for_all_the_numbers_that_it_is_asked_for() -> None:
    plan = trellis.query("PATTERN A+ a[] WHERE a[i].x < a[i-1].x").plan()
    assert limited_plan(plan, 3) is limited_plan(plan, 3)
    assert [limited_plan(plan, rows).bound.limit for rows in range(1000)] == [*range(1000)]
    assert len(plan.made) < 1000


def test_the_grammar_is_read_where_nothing_is_cached(tmp_path: Path) -> None:
    code = "import trellis; print(trellis.query('PATTERN A+ a[] WHERE [k] AND a[i].x > 2 * a[i-1].x WITHIN 1 min'))"
    empty = {**os.environ, "XDG_CACHE_HOME": str(tmp_path), "HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], env=empty, capture_output=True, text=True, check=True)
    assert "WITHIN 1 min" in done.stdout
