"""Anchor-based extraction: sub-sequences between anchors breadth first, then trends joined of them depth first.

Both stages run on threads. The first deals out start anchors, each of a share of the starts, and anchors. The second
deals out trends: how many begin with each sub-sequence is counted, so that a share of any size is found by its place,
and all shares are equal; a thread that is done takes the next one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice, pairwise
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.errors import TrellisError, UsageError
from trellis.kernels.papers.abi import join as kernel
from trellis.operators.batch import PathBatch
from trellis.papers.abi.graph import PARALLEL, Values, build, values_of
from trellis.papers.abi.window import AbiWindow, Cut
from trellis.papers.contract import AlgorithmInput

START_ANCHORS = 8  # for each thread
MOST = 2.0**61  # trends and sub-sequences that can be counted
MOST_VALUES = 1 << 31  # events of sub-sequences that are stored


def extract(given: AlgorithmInput) -> Iterator[PathBatch]:
    """Yield all trends of an input; what is stored are the sub-sequences of one window."""
    values = _checked(given)
    with ThreadPoolExecutor(given.settings.threads) as pool:
        for task in range(len(given.tasks)):
            cut = AbiWindow(given, values, task).cut()
            yield from _joined(given, cut, pool)


def explain(given: AlgorithmInput) -> dict[str, Any]:
    """Tell how the windows would be cut, without finding anything."""
    values = _checked(given)
    cuts = [AbiWindow(given, values, task).cut() for task in range(len(given.tasks))]
    largest = max(cuts, key=lambda cut: cut.nbytes, default=None)
    if largest is None:
        return {}
    starts = np.count_nonzero(largest.window.starts)
    return {
        "vertices": f"{max(cut.window.abi.vertices for cut in cuts):,} attribute vertices in a window at most",
        "anchors": f"{len(largest.anchors):,} in the window that stores most, besides {starts:,} starts",
        "stores": f"{largest.nbytes:,.0f} bytes of sub-sequences there, 8 for each event",
    }


def _checked(given: AlgorithmInput) -> Values:
    """Return the values of the events; refuse more anchors than any window has vertices."""
    values, asked = values_of(given.plan, given.events), given.settings.anchors
    most = 0
    for lo, hi in zip(given.tasks.lo.tolist(), given.tasks.hi.tolist(), strict=True):
        if asked is None or asked <= most:
            return values
        most = max(most, build(values, lo, hi, hi, PARALLEL, given.settings.threads, bounds=given.bounds).vertices)
    if asked is not None and asked > most > 0:
        raise UsageError(
            f"{asked:,} anchors are more than the {most:,} attribute vertices that a window has at most",
            "Give fewer, or leave out the number of anchors.",
        )
    return values


def _joined(given: AlgorithmInput, cut: Cut, pool: ThreadPoolExecutor) -> Iterator[PathBatch]:
    """Find the sub-sequences of a window and yield what they join to."""
    trends, references = cut.trends
    began = perf_counter()
    size = int(min(cut.nbytes, 1 << 62))
    given.meter.hold(size)
    subs = _Subs(cut, pool, given.settings.threads)
    facts, between = given.meter.facts, perf_counter()
    facts["breadth"] = facts.get("breadth", 0.0) + between - began
    facts["anchors"] = max(facts.get("anchors", 0), len(cut.anchors))
    rows = max(1, int(given.bounds.batch_values * trends / max(references, 1.0)))
    shares = ((rank, min(rows, subs.trends - rank)) for rank in range(0, subs.trends, rows))
    waiting: deque[Future[Any]] = deque()
    for rank, number in islice(shares, given.settings.threads + 1):
        waiting.append(pool.submit(subs.join, rank, number))
    while waiting:
        positions, ends = waiting.popleft().result()
        for rank, number in islice(shares, 1):
            waiting.append(pool.submit(subs.join, rank, number))
        facts["depth"] = facts.get("depth", 0.0) + perf_counter() - between
        yield PathBatch.of_task(positions, ends, cut.window.task)
        between = perf_counter()
    given.meter.release(size)


class _Subs:
    """The sub-sequences of a window, and what may be joined to what."""

    def __init__(self, cut: Cut, pool: ThreadPoolExecutor, threads: int) -> None:
        self.cut = cut
        window, begins = cut.window, cut.sub_begins
        _refuse_too_many(cut)
        self.values = np.empty(int(cut.value_begins[-1]), np.int32)
        self.sub_ends = np.empty(int(begins[-1]), np.int64)
        list(pool.map(self._find, *zip(*self._anchors(threads), strict=True)))
        self.joints = np.empty(window.hi - window.lo + 1, np.int64)
        self.runs = np.empty((0, 2), np.int64)
        self.runs = np.empty((self._find_joints(), 2), np.int64)
        if len(self.runs):
            self._find_joints()
        self.starts = int(begins[np.count_nonzero(window.starts)])
        lasts = self.values[self.sub_ends - 1] - window.lo
        weights = window.ends[lasts] + cut.numbers[5][lasts]
        if weights.sum() > MOST:
            raise TrellisError("there are too many trends to join", "Use a shorter WITHIN, or leave the algorithm out.")
        self.weight = np.concatenate([[0], np.cumsum(weights.astype(np.int64))])
        self.trends = int(self.weight[self.starts])

    def _anchors(self, threads: int) -> list[tuple[int, int]]:
        """Return the heads of start anchors and of anchors: the first of each, and the one after the last."""
        number = np.count_nonzero(self.cut.window.starts)
        shares = np.linspace(0, number, 1 + int(np.clip(number, 1, START_ANCHORS * threads))).astype(np.int64)
        return [*pairwise(shares.tolist()), *pairwise(self.cut.anchor_heads.tolist())]

    def _find(self, first: int, last: int) -> None:
        cut, window, graph = self.cut, self.cut.window, self.cut.window.given.graph
        kernel.find_subs(
            cut.heads, first, last, window.lo, window.hi, graph.offsets, graph.successors, cut.anchored, window.ends,
            cut.numbers[0], cut.sub_begins, cut.value_begins, self.sub_ends, self.values,
        )  # fmt: skip

    def _find_joints(self) -> int:
        cut, window, graph = self.cut, self.cut.window, self.cut.window.given.graph
        head_of = np.full(window.hi - window.lo, -1, np.int64)
        first = np.count_nonzero(window.starts)
        head_of[cut.heads[first:] - window.lo] = np.arange(first, len(cut.heads))
        number: int = kernel.find_joints(
            window.exact, window.lo, window.hi, window.later, window.abi.first, window.abi.last, cut.anchors,
            cut.anchor_heads, cut.heads, head_of, cut.sub_begins, graph.offsets, graph.successors, cut.anchored,
            self.joints, self.runs,
        )  # fmt: skip
        return number

    def join(self, rank: int, rows: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return the trends of a share."""
        window = self.cut.window
        return kernel.join_subs(
            rank, rows, self.starts, self.weight, self.sub_ends, self.values, self.joints, self.runs, window.lo,
            window.hi - window.lo, window.ends, window.given.bounds.batch_values,
        )  # fmt: skip


def _refuse_too_many(cut: Cut) -> None:
    if cut.nbytes > 8 * MOST_VALUES:
        raise TrellisError(
            f"the sub-sequences between {len(cut.anchors):,} anchors refer to more than {MOST_VALUES:,} events",
            "Ask for more anchors, use a shorter WITHIN, or leave the algorithm out.",
        )
