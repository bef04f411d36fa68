"""Bloom filters and chains of leaves."""

from __future__ import annotations

import numpy as np
import pytest

from tests.kernels import naive
from trellis.kernels.bloom import chains, filters, walk


def test_filters_hold_what_was_put_in() -> None:
    rng, m, k, leaves, size = np.random.default_rng(0), 128, 3, 70, 4
    texts = [f"name{i}".encode() for i in range(9)]
    hashes = np.empty(9, np.uint64)
    offsets = np.cumsum([0, *map(len, texts)])
    filters.hash_texts(offsets, np.frombuffer(b"".join(texts), np.uint8), hashes)
    assert len(set(hashes.tolist())) == 9
    table = filters.positions(hashes, k, m)
    assert ((table >= 0) & (table < m)).all()
    items = rng.integers(-1, 9, leaves * size)
    slices = np.zeros((1, m, filters.WORDS), np.uint64)
    filters.add_items(items, table, 0, size, slices)
    held = [{int(i) for i in items[leaf * size : (leaf + 1) * size] if i >= 0} for leaf in range(leaves)]
    bits = [{int(b) for i in here for b in table[i]} for here in held]
    for item in range(9):
        bitmap, places = np.zeros(filters.WORDS, np.uint64), np.empty(leaves, np.int64)
        filters.leaves_of(table[item], slices, bitmap)
        found = places[: filters.set_bits(bitmap, places)].tolist()
        assert found == [leaf for leaf in range(leaves) if bits[leaf] >= set(table[item].tolist())]
    rows = np.zeros((leaves, m // 64), np.uint64)
    filters.leaf_filters(slices[0], 0, leaves, rows)
    assert [[b for b in range(m) if int(row[b // 64]) >> (b % 64) & 1] for row in rows] == [sorted(b) for b in bits]
    again, counts = np.zeros_like(slices), np.zeros(leaves, np.int64)
    filters.slice_filters(rows, again)
    assert (again == slices).all()
    filters.count_bits(rows, counts)
    assert counts.tolist() == [len(b) for b in bits]


@pytest.mark.parametrize("later", [False, True])
def test_keys_are_walked_through_the_steps_of_a_word(later: bool) -> None:
    """One key has a then b, one b then a, in different leaves: only the first gets to the end of the word (a, b).

    A third has both in one leaf, and gets there unless the next step must be in a later leaf.
    """
    hashes, names = np.array([11, 22, 33], np.uint64), np.array([1, 2], np.uint64)
    k, m, slices = 4, 512, np.zeros((1, 512, filters.WORDS), np.uint64)
    for leaf, key, name in [(0, 0, 0), (1, 0, 1), (0, 1, 1), (1, 1, 0), (0, 2, 0), (0, 2, 1)]:
        item = filters.join_hashes(hashes[key : key + 1], names[name : name + 1])
        filters.add_items(np.array([0]), filters.positions(item, k, m), leaf, 1, slices)
    step, done, start, end = np.zeros(3, int), np.zeros(3, int), np.full(3, -1), np.full(3, -1)
    begins, keys = np.array([0, 3, 5]), np.array([0, 1, 2, 0, 1])
    words, earliest = np.array([0, 1, 2]), np.arange(2) + later
    filters.walk_keys(0, begins, keys, hashes, names, words, words, earliest, k, slices[0], step, done, start, end)
    assert (step.tolist(), start[0], end[0]) == ([2, 1, 1 if later else 2], 0, 1)


WORDS = [([0, 1, 2], [0]), ([0, 1, 2, 3], [1, 0]), ([0, 2, 3], [1]), ([0, 2], [])]


@pytest.mark.parametrize(("blocks", "gaps"), WORDS)
@pytest.mark.parametrize("seed", range(4))
def test_chains_of_leaves(seed: int, blocks: list[int], gaps: list[int]) -> None:
    rng, size = np.random.default_rng(seed), 6
    has = rng.random((blocks[-1], size)) < 0.4
    limit = np.minimum(np.arange(size) + rng.integers(0, 6, size), size - 1)
    after, before = chains.nexts(has), chains.befores(has)
    for e in range(blocks[-1]):
        held = np.flatnonzero(has[e]).tolist()
        assert after[e, :size].tolist() == [min((h for h in held if h >= a), default=size) for a in range(size)]
        assert before[e].tolist() == [max((h for h in held if h <= a), default=-1) for a in range(size)]
    wanted = naive.chains(has, blocks, gaps, limit.tolist())
    arrays = np.array(blocks), np.array(gaps, np.int64), np.arange(size)
    first = np.zeros(size, np.int32)
    chains.first_ends(has, after, *arrays, limit, first)
    ends = [sorted({max(chain[blocks[-2] :]) for chain in found}) for found in wanted]
    assert first.tolist() == [min(found, default=-1) for found in ends]
    last, number = np.full(size, -1, np.int32), np.zeros(size, np.int64)
    chains.ends_of(has, after, arrays[0], first, limit, last, number)
    assert [(last[a], number[a]) for a in range(size) if ends[a]] == [(e[-1], len(e)) for e in ends if e]
    for a in range(size):
        out = np.zeros(size, np.bool_)
        chains.add_ends(has, after, arrays[0], first, limit, a, out)
        assert np.flatnonzero(out).tolist() == ends[a]
    marks = np.zeros(size, np.bool_)
    chains.mark(has, after, before, *arrays, first, limit, marks)
    assert np.flatnonzero(marks).tolist() == sorted({leaf for found in wanted for chain in found for leaf in chain})


def test_chains_go_on_to_the_next_leaf() -> None:
    starts, ends = np.array([0, 1, 4]), np.array([0, 2, 5])
    number = chains.go_on(starts, ends, np.array([1, 3, 5]), 1)
    assert (starts[:number].tolist(), ends[:number].tolist()) == ([0, 1], [1, 3])


@pytest.mark.parametrize("seed", range(4))
def test_chains_without_what_is_forbidden(seed: int) -> None:
    rng, size = np.random.default_rng(seed), 7
    has, bad = rng.random((2, size)) < 0.5, rng.random(size) < 0.3
    blocks, gaps, strict = np.array([0, 1, 2]), np.array([1]), np.arange(size)
    forbidden = chains.nexts(bad[None])[:, :size]
    after, limit = chains.nexts(has), np.full(size, size - 1)
    wanted = {
        (a, d) for a in range(size) for d in range(a + 1, size) if has[0, a] and has[1, d] and not bad[a : d + 1].any()
    }
    first = np.zeros(size, np.int32)
    chains.clear_first_ends(has, gaps, strict, forbidden, first)
    assert first.tolist() == [min((d for b, d in wanted if b == a), default=-1) for a in range(size)]
    reached, other = np.zeros(size, np.bool_), np.zeros(size, np.bool_)
    for a in range(size):
        chains.clear_ends(has, after, blocks, gaps, strict, forbidden, a, size - 1, reached, other)
        assert np.flatnonzero(reached).tolist() == sorted(d for b, d in wanted if b == a)
    start, clear = np.zeros(size, np.int32), np.zeros(size, np.bool_)
    chains.first_ends(has, after, blocks, gaps, strict, limit, start)
    chains.clear_rows(has, after, blocks, gaps, strict, forbidden, start, limit, False, clear)
    assert np.flatnonzero(clear).tolist() == sorted({a for a, _ in wanted})


class Tree:
    """Leaves that hold items of one bit each, and above them nodes of two, four and eight with all their bits."""

    def __init__(self, seed: int, leaves: int = 11, share: float = 0.2) -> None:
        self.held = np.random.default_rng(seed).random((leaves, 6)) < share
        below = [(begin, size) for begin in range(leaves) for size in (8, 4, 2) if begin % size == 0]
        below = [(begin, size) for begin, size in below if begin + size <= leaves]
        self.spans = np.array([size for _, size in below])
        self.nodes = np.searchsorted([begin for begin, _ in below], np.arange(leaves + 1))
        self.leaf_filters = self.bits(self.held)
        self.node_filters = self.bits(np.array([self.held[a : a + size].any(axis=0) for a, size in below]))
        self.tops = np.array([0, 8, 10])

    @staticmethod
    def bits(flags: np.ndarray) -> np.ndarray:
        return (flags.astype(np.uint64) << np.arange(6, dtype=np.uint64)).sum(axis=1).astype(np.uint64)[:, None]

    def arrays(self) -> tuple[np.ndarray, ...]:
        return self.spans, self.nodes, self.node_filters, self.leaf_filters


NO_TIMES = np.empty(0, np.int64), np.empty(0, np.int64), 0


@pytest.mark.parametrize("seed", range(4))
def test_the_leaves_that_may_hold_an_item(seed: int) -> None:
    tree, items = Tree(seed), np.array([[0], [3]], np.int32)
    holding = tree.held[:, [0, 3]].any(axis=1)
    out = np.zeros(11, np.bool_)
    assert walk.walk(*tree.arrays(), items, out) > 0
    assert out.tolist() == holding.tolist()
    out[:] = False
    walk.hold(tree.leaf_filters, items, out)
    assert out.tolist() == holding.tolist()
    starts, last, most = np.array([1, 2, 6]), 9, 4
    reached = [[leaf for leaf in range(a, last + 1) if holding[leaf] and leaf - a <= most] for a in starts.tolist()]
    found, _ = walk.next_places(*tree.arrays(), items, starts, last, most, *NO_TIMES)
    assert found.tolist() == sorted({some[0] for some in reached if some})


@pytest.mark.parametrize(("blocks", "gaps"), WORDS)
@pytest.mark.parametrize("seed", range(6))
def test_the_leaves_that_chains_need(seed: int, blocks: list[int], gaps: list[int]) -> None:
    tree, (low, high), most = Tree(seed, share=0.35), (1, 10), 5
    steps = blocks[-1]
    arrays = tree.spans, tree.nodes, tree.tops, tree.node_filters, tree.leaf_filters
    given = np.arange(steps, dtype=np.int32)[:, None], np.arange(steps + 1), np.array(blocks), np.array(gaps, np.int64)
    leaves, holds, visited, inside = walk.narrow(*arrays, *given, low, high, most, *NO_TIMES)
    has = np.zeros((steps, 11), np.bool_)
    has[:, low:high] = tree.held[low:high, :steps].T
    limit = [min(leaf + most, 10) for leaf in range(11)]
    needed = {(leaf, e) for some in naive.chains(has, blocks, gaps, limit) for c in some for e, leaf in enumerate(c)}
    assert {(int(leaf), e) for i, leaf in enumerate(leaves) for e in range(steps) if holds[i, e]} == needed
    assert 0 <= inside <= visited
