"""Naive versions of the kernels: plain Python, a few lines each, written from what the kernels' pages say."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, pairwise, product
from typing import Any

Path = tuple[int, ...]
Graph = list[list[int]]  # the successors of each event, rising


# --- Events ------------------------------------------------------------------------------------------------------


def partition_of(bounds: Sequence[int], x: int) -> tuple[int, int]:
    return next((a, b) for a, b in pairwise(bounds) if a <= x < b)


def first_in_partition(bounds: Sequence[int], x: int, holds: Callable[[int], bool]) -> int:
    """The first event from x on, in its partition, of which something holds; else the end of the partition."""
    end = partition_of(bounds, x)[1]
    return next((y for y in range(x, end) if holds(y)), end)


def windows(first: Sequence[int], last: Sequence[int], bounds: Sequence[int]) -> list[tuple[int, int, int, int]]:
    """Number, partition, first event and end of each window that holds an event."""
    found = []
    for partition, (a, b) in enumerate(pairwise(bounds)):
        for number in sorted({k for x in range(a, b) for k in range(first[x], last[x] + 1)}):
            held = [x for x in range(a, b) if first[x] <= number <= last[x]]
            found.append((number, partition, held[0], held[-1] + 1))
    return found


# --- Paths -------------------------------------------------------------------------------------------------------


def csr(graph: Graph) -> tuple[list[int], list[int]]:
    """Offsets and successors of a graph."""
    offsets = [0]
    for row in graph:
        offsets.append(offsets[-1] + len(row))
    return offsets, [y for row in graph for y in row]


def graph_of(n: int, follows: Callable[[int, int], bool]) -> Graph:
    return [[y for y in range(n) if follows(x, y)] for x in range(n)]


def paths_of_task(
    graph: Graph, lo: int, hi: int, first_end: int = 0, single: bool = False, every: bool = False,
    usable: Sequence[bool] | None = None,
) -> list[Path]:  # fmt: skip
    """All paths of a task in rank order: whether a path ends comes before how it goes on."""
    ok = [True] * len(graph) if usable is None else usable
    inside = {x: [y for y in graph[x] if y < hi and ok[y]] for x in range(lo, hi) if ok[x]}
    led_to = {y for row in inside.values() for y in row}

    def on(path: Path) -> Iterator[Path]:
        x = path[-1]
        if every or (not inside[x] and x >= first_end):
            yield path
        for y in inside[x]:
            yield from on((*path, y))

    starts = [lo] if single else [x for x in inside if every or x not in led_to]
    return [path for x in starts if x in inside for path in on((x,))]


def direct_edges(n: int, follows: Callable[[int, int], bool]) -> Graph:
    """The edges of a graph without a detour over one or more events between."""
    reach: list[set[int]] = [set() for _ in range(n)]
    for x in reversed(range(n)):
        for y in range(x + 1, n):
            if follows(x, y):
                reach[x] |= {y} | reach[y]
    return [
        [z for z in range(n) if follows(x, z) and not any(follows(x, y) and z in reach[y] for y in range(x + 1, z))]
        for x in range(n)
    ]


def ragged(values: Any, ends: Any) -> list[Path]:
    """Rows that lie one after another."""
    begins = [0, *list(ends)[:-1]] if len(ends) else []
    return [tuple(int(v) for v in values[a:b]) for a, b in zip(begins, ends, strict=True)]


def shared_prefix(a: Path, b: Path) -> int:
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


# --- Sequences ---------------------------------------------------------------------------------------------------


def increasing_choices(candidates: Sequence[Sequence[int]]) -> list[Path]:
    """One candidate of each variable, rising."""
    return [choice for choice in product(*candidates) if all(a < b for a, b in pairwise(choice))]


# --- Chains of leaves --------------------------------------------------------------------------------------------


def chains(has: Any, blocks: Sequence[int], gaps: Sequence[int], limit: Sequence[int]) -> list[list[Path]]:
    """For each start all chains: a leaf for each set, the sets of a block in any order, blocks one after another."""
    size = has.shape[1]
    found: list[list[Path]] = [[] for _ in range(size)]
    for leaves in product(range(size), repeat=has.shape[0]):
        if not all(has[e, leaf] for e, leaf in enumerate(leaves)):
            continue
        parts = [leaves[a:b] for a, b in pairwise(blocks)]
        if any(min(b) < max(a) + gap for a, b, gap in zip(parts, parts[1:], gaps, strict=False)):
            continue
        start, end = min(parts[0]), max(parts[-1])
        if end <= limit[start]:
            found[start].append(leaves)
    return found


# --- Graphs ------------------------------------------------------------------------------------------------------


def largest_clique(n: int, edges: set[tuple[int, int]]) -> int:
    known = edges | {(b, a) for a, b in edges}
    sizes = (k for k in range(n, 0, -1) if any(is_clique(c, known) for c in combinations(range(n), k)))
    return next(sizes, 0)


def is_clique(vertices: Sequence[int], edges: set[tuple[int, int]]) -> bool:
    return all(pair in edges for pair in combinations(vertices, 2))


def h_index(values: Sequence[int]) -> int:
    return max(h for h in range(len(values) + 1) if sum(v >= h for v in values) >= h)


def core(near: Sequence[Sequence[int]], least: int) -> set[int]:
    """The vertices that are left when those of fewer neighbours are taken away again and again."""
    left = set(range(len(near)))
    while any(len(left & {*near[v]}) < least for v in left):
        left = {v for v in left if len(left & {*near[v]}) >= least}
    return left


# --- DEBS 2016 --------------------------------------------------------------------------------------------------


def best_posts(items: Sequence[tuple[int, int, bool]], k: int) -> list[tuple[int, list[tuple[int, int]]]]:
    """The best posts with their scores after each hour's item (hour, post, whether it is the post itself), on a change.

    An item is worth 10, and 1 less for each day; of equal scores the newer post comes first, then the last commented.
    """
    found: list[tuple[int, list[tuple[int, int]]]] = []
    for n, (now, *_) in enumerate(items, 1):
        worth = {p: sum(10 - (now - hour) // 24 for hour, q, _ in items[:n] if p == q) for _, p, _ in items[:n]}
        begun = {p: hour for hour, p, is_post in items[:n] if is_post}
        last = {p: max((hour for hour, q, own in items[:n] if p == q and not own), default=-1) for p in worth}
        best = sorted(worth, key=lambda p: (worth[p], begun[p], last[p], p), reverse=True)[:k]
        if not found or [p for p, _ in found[-1][1]] != best:
            found.append((now, [(p, worth[p]) for p in best]))
    return found


def best_comments(
    comments: Sequence[str], likes: Sequence[tuple[int, int, int]], friends: Sequence[tuple[int, int]], k: int
) -> list[tuple[int, list[str]]]:
    """The comments that the largest cliques of friends like, after each second's like (second, user, comment)."""
    found: list[tuple[int, list[str]]] = []
    for n, (now, *_) in enumerate(likes, 1):
        fans = [{user for _, user, liked in likes[:n] if liked == c} for c in range(len(comments))]
        sizes = [max(len(s) for s in _subsets(users) if _is_clique(s, friends)) for users in fans]
        best = sorted((-size, comments[c]) for c, size in enumerate(sizes) if size)[:k]
        texts = [text for _, text in best] + ["-"] * (k - len(best))
        if not found or found[-1][1] != texts:
            found.append((now, texts))
    return found


def _subsets(users: set[int]) -> list[tuple[int, ...]]:
    return [some for size in range(len(users) + 1) for some in combinations(sorted(users), size)]


def _is_clique(users: Sequence[int], friends: Sequence[tuple[int, int]]) -> bool:
    return all((a, b) in friends or (b, a) in friends for a, b in combinations(users, 2))
