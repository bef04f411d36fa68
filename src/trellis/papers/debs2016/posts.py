"""Query 1 of the DEBS 2016 challenge: the k most active posts, whenever they change."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from trellis.arguments import whole_number
from trellis.errors import UsageError, did_you_mean
from trellis.kernels.papers.debs2016.lines import NEVER, TEXT_SIZE
from trellis.kernels.papers.debs2016.posts import (
    CHANGES,
    COMMENT_IDS,
    FIRST_ITEM,
    FREE_SLOT,
    ITEM_COLUMNS,
    ITEMS,
    NAMES,
    NEXT_DUE,
    NUMBERS,
    PAIRS,
    POINTS,
    POST_COLUMNS,
    POST_IDS,
    POSTS,
    REPEATED_POSTS,
    TO_DEAD_POSTS,
    UNKNOWN_COMMENTS,
    UNKNOWN_POSTS,
    PostState,
    pack_names,
    run_posts,
)
from trellis.kernels.papers.debs2016.top import LIVE, SCORES, SPARE, THRESHOLD, K
from trellis.papers.debs2016.engine import MOST_SHOWN, SMALLEST, Bytes, LineEngine, empty_table

CHANGES_OF = ("exact", "deaths", "events")


class Posts(LineEngine):
    """Query 1 that runs.

    Parameters
    ----------
    k
        How many posts are shown.
    changes
        When a change is seen: `exact`, at its instant; `deaths`, between events only when a post dies; `events`, at
        events only.

    Raises
    ------
    UsageError
        If one of them makes no sense.
    """

    sources: ClassVar[tuple[str, ...]] = ("posts", "comments")
    _ids_of: ClassVar = {"posts": "post_ids", "comments": "comment_ids"}
    _bad: ClassVar = {
        "comments on unknown posts": UNKNOWN_POSTS,
        "replies to unknown comments": UNKNOWN_COMMENTS,
        "posts with a known id": REPEATED_POSTS,
    }

    def __init__(self, k: int = 3, changes: str = "exact") -> None:
        super().__init__(NUMBERS)
        k = whole_number(k, "k", 1, MOST_SHOWN)
        if changes not in CHANGES_OF:
            hint = did_you_mean(changes, CHANGES_OF, f"Known: {', '.join(CHANGES_OF)}.")
            raise UsageError(f"`{changes}` is no way to see changes", hint)
        state = self.state
        state |= {
            "posts": np.zeros((SMALLEST, POST_COLUMNS), np.int64),
            "items": np.zeros((SMALLEST, ITEM_COLUMNS), np.int64),
            "cursors": np.zeros(POINTS, np.int64),
            "due": np.full(POINTS, NEVER),
            "live": np.zeros(SMALLEST, np.int64),
            "tier": np.zeros(SMALLEST, np.int64),
            "scores": np.zeros(SCORES, np.int64),
            "top": np.zeros(k + SPARE, np.int64),
            "shown": np.zeros(k, np.int64),
            "post_ids": empty_table(2),
            "comment_ids": empty_table(2),
            "pairs": empty_table(3),
            "names": np.zeros(256, np.uint8),
        }
        numbers = state["numbers"]
        numbers[[K, CHANGES, THRESHOLD, FREE_SLOT, NEXT_DUE]] = k, CHANGES_OF.index(changes), 1, -1, NEVER

    @property
    def to_dead_posts(self) -> int:
        """The number of comments that came after the death of their post."""
        return int(self.state["numbers"][TO_DEAD_POSTS])

    def _call(self, out: Bytes) -> int:
        return run_posts(*self._lines, self._feed(), PostState(*(self.state[name] for name in PostState._fields)), out)

    def _grow(self) -> None:
        numbers = self.state["numbers"]
        self._forget_items()
        self._rows(["posts", "live", "tier"], int(numbers[POSTS]))
        self._rows(["items"], int(numbers[ITEMS]))
        self._table("post_ids", int(numbers[POST_IDS]))
        self._table("comment_ids", int(numbers[COMMENT_IDS]))
        self._table("pairs", int(numbers[PAIRS]))
        self._pack_names()

    def _forget_items(self) -> None:
        """Move the log on, once half of it is dead."""
        state, numbers = self.state, self.state["numbers"]
        dead = int(state["cursors"][-1] - numbers[FIRST_ITEM])
        if 2 * dead >= numbers[ITEMS] > 0:
            left = int(numbers[ITEMS]) - dead
            state["items"][:left] = state["items"][dead : dead + left].copy()
            numbers[ITEMS] = left
            numbers[FIRST_ITEM] += dead

    def _pack_names(self) -> None:
        """Have room for the next name, and for as much as the live ones take."""
        state, numbers = self.state, self.state["numbers"]
        longest = int(state["events"][0, TEXT_SIZE])
        if numbers[NAMES] + longest > len(state["names"]):
            packed = np.empty(max(256, len(state["names"]) + longest), np.uint8)
            size = int(pack_names(state["posts"], state["live"], numbers[LIVE], state["names"], packed))
            if 2 * size + longest > len(packed):
                packed = np.concatenate([packed, np.empty(2 * size + longest - len(packed), np.uint8)])
            numbers[NAMES], state["names"] = size, packed
