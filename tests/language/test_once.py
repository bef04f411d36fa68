"""Things derived from a query once: the same for every call, and left behind when a query is sent elsewhere."""

from __future__ import annotations

import pickle
from dataclasses import replace

import trellis
from trellis.plan.registers import guard_terms_of


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
