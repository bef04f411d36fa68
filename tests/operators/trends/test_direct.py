"""Direct successors against a transitive reduction that tries every detour."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.operators.trends.direct_cases import Stage, make_key, make_stage, make_values, other_side
from tests.profiles import examples
from trellis.kernels.maximal import inequality as kernel
from trellis.operators.trends.direct import DirectEdges, Method
from trellis.plan.sizes import USUAL, Sizes

NO_CAP = 1 << 40
SEEDS = st.integers(0, 2**32)
EXAMPLES = examples(200)


def found(stage: Stage, *expected: Method, sizes: Sizes = USUAL) -> list[list[int]]:
    direct = DirectEdges(stage.slice(), stage.adjacency(), sizes)
    assert direct.method in expected
    edges = direct.edges(NO_CAP)
    assert edges is not None
    offsets, successors = edges
    assert len(offsets) == len(stage) + 1
    assert offsets[-1] == len(successors)
    return [successors[a:b].tolist() for a, b in itertools.pairwise(offsets)]


def with_inequality(rng: np.random.Generator, stage: Stage) -> Stage:
    """Add one inequality, of one or two comparisons, or none; and a key at times."""
    value = make_values(rng, len(stage))
    ops = rng.choice([">", ">=", "<", "<=", "> >=", "< <", ""]).split()
    if ops:
        stage.orders = [(value, [(op, other_side(rng, value)) for op in ops])]
    if rng.random() < 0.3:
        key = make_key(rng, len(stage))
        stage.key = (key, key.copy())
    return stage


@EXAMPLES
@given(SEEDS, st.sampled_from([8, 14, 60, 150]))
def test_one_inequality_on_any_sides(seed: int, most: int) -> None:
    rng = np.random.default_rng(seed)
    stage = with_inequality(rng, make_stage(rng, most))
    assert found(stage, Method.BISECTION) == stage.reduced()


@EXAMPLES
@given(SEEDS, st.sampled_from([8, 30, 100]))
def test_a_key_that_is_another_one_on_the_other_side(seed: int, most: int) -> None:
    rng = np.random.default_rng(seed)
    stage = make_stage(rng, most)
    stage.key = (make_key(rng, len(stage)), make_key(rng, len(stage)))
    # By chance the keys of few events can be the same on both sides.
    assert found(stage, Method.RETURNS, Method.BISECTION, sizes=Sizes(returns_steps=1 << 62)) == stage.reduced()


@EXAMPLES
@given(SEEDS, st.sampled_from([8, 30, 100]))
def test_other_values(seed: int, most: int) -> None:
    rng = np.random.default_rng(seed)
    stage = make_stage(rng, most)
    value = make_values(rng, len(stage), int(rng.integers(1, 5)))
    stage.orders = [(value, [("!=", value.copy())])]
    if rng.random() < 0.3:
        key = make_key(rng, len(stage))
        stage.key = (key, key.copy())
    assert found(stage, Method.TURNS) == stage.reduced()


@EXAMPLES
@given(SEEDS, st.sampled_from([8, 14, 60]))
def test_several_inequalities_of_which_one_need_not_be_transitive(seed: int, most: int) -> None:
    rng = np.random.default_rng(seed)
    stage = make_stage(rng, most)
    for i in range(int(rng.integers(2, 4))):
        value = make_values(rng, len(stage))
        other = other_side(rng, value) if i == 0 else value.copy()
        stage.orders.append((value, [(str(rng.choice(["<", "<=", ">", ">="])), other)]))
    if rng.random() < 0.3:
        key = make_key(rng, len(stage))
        stage.key = (key, key.copy())
    assert found(stage, Method.SCAN) == stage.reduced()


@pytest.mark.parametrize("shape", ["rising", "falling", "equal", "two falling runs", "random"])
@pytest.mark.parametrize("span", [None, 20, 100])
def test_more_events_than_one_stretch(shape: str, span: int | None) -> None:
    n = 1500
    rng = np.random.default_rng(7)
    value = {
        "rising": np.arange(n),
        "falling": np.arange(n)[::-1].copy(),
        "equal": np.zeros(n, np.int64),
        "two falling runs": np.concatenate([np.arange(n // 2)[::-1], np.arange(n // 2)[::-1] + n]),
        "random": rng.integers(0, 50, n),
    }[shape]
    everything = np.ones(n, np.bool_)
    times = np.arange(n) // (1 if shape != "random" else 3)
    stage = Stage(times, np.array([0, n]), span, everything, everything, everything)
    stage.orders = [(value, [(">" if shape != "equal" else ">=", value)])]
    if span is not None:
        slice_ = stage.slice()
        assert len(kernel.tiles(slice_.bounds, slice_.until)) > 1
    assert found(stage, Method.BISECTION) == stage.reduced()


def test_the_cap_is_told_before_all_edges_are_found() -> None:
    n = 4000
    everything = np.ones(n, np.bool_)
    value = np.concatenate([np.arange(n // 2)[::-1], np.arange(n // 2)[::-1] + n])
    stage = Stage(np.arange(n), np.array([0, n]), None, everything, everything, everything)
    stage.orders = [(value, [(">", value)])]
    direct = DirectEdges(stage.slice(), stage.adjacency())
    assert direct.exceeds(n * n // 4 - 1)
    assert not direct.exceeds(n * n // 4)
    assert direct.edges(n * n // 4 - 1) is None
    edges = direct.edges(n * n // 4)
    assert edges is not None
    assert len(edges[1]) == n * n // 4
