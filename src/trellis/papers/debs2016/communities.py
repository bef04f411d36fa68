"""Query 2 of the DEBS 2016 challenge: the k comments that the largest communities like, whenever they change."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from trellis.arguments import whole_number
from trellis.errors import UsageError, did_you_mean
from trellis.kernels.papers.debs2016.communities import (
    CLIQUE,
    COMMENT_COLUMNS,
    COMMENT_IDS,
    COMPONENT,
    EDGE_COLUMNS,
    EDGES,
    EXPIRED_COMMENTS,
    FIRST_COMMENT,
    FREE_LIKE,
    FRIENDS,
    LIKE_COLUMNS,
    LIKE_PAIRS,
    LIKES_MADE,
    NEXT_COMMENT,
    NUMBERS,
    PUBLISHED,
    REPEATED_FRIENDSHIPS,
    REPEATED_LIKES,
    SEARCHES,
    SELF_FRIENDSHIPS,
    SPAN,
    STEPS,
    TEXTS,
    UNKNOWN_COMMENTS,
    USER_COLUMNS,
    USERS,
    WAY,
    CommunityState,
    run_communities,
)
from trellis.kernels.papers.debs2016.lines import TEXT_SIZE
from trellis.kernels.papers.debs2016.top import BASE, LABEL, LABEL_BASE, SCORES, SPARE, THRESHOLD, K
from trellis.papers.debs2016.engine import MOST_SHOWN, SMALLEST, Bytes, LineEngine, empty_table

COMMUNITIES = ("clique", "component")
LONGEST_SPAN = 1 << 61  # milliseconds


class Communities(LineEngine):
    """Query 2 that runs.

    Parameters
    ----------
    k
        How many comments are shown.
    d
        For how many seconds a comment takes part.
    community
        What a community is: a `clique` of friends, or a connected `component`.
    as_published
        Search cliques by the GraphCEP paper's Algorithm 1, to compare with it.

    Raises
    ------
    UsageError
        If one of them makes no sense.
    """

    sources: ClassVar[tuple[str, ...]] = ("friendships", "comments", "likes")
    _ids_of: ClassVar = {"comments": "comment_ids"}
    _bad: ClassVar = {
        "likes of unknown comments": UNKNOWN_COMMENTS,
        "likes given twice": REPEATED_LIKES,
        "friendships with oneself": SELF_FRIENDSHIPS,
        "friendships made twice": REPEATED_FRIENDSHIPS,
    }

    def __init__(self, k: int, d: int, community: str = "clique", *, as_published: bool = False) -> None:
        super().__init__(NUMBERS)
        k, d = whole_number(k, "k", 1, MOST_SHOWN), whole_number(d, "d")
        if community not in COMMUNITIES:
            hint = did_you_mean(community, COMMUNITIES, f"Known: {', '.join(COMMUNITIES)}.")
            raise UsageError(f"`{community}` is no kind of community", hint)
        self.state |= {
            "users": np.zeros((SMALLEST, USER_COLUMNS), np.int64),
            "edges": np.zeros((SMALLEST, EDGE_COLUMNS), np.int64),
            "comments": np.zeros((SMALLEST, COMMENT_COLUMNS), np.int64),
            "likes": np.zeros((SMALLEST, LIKE_COLUMNS), np.int64),
            "live": np.zeros(SMALLEST, np.int64),
            "tier": np.zeros(SMALLEST, np.int64),
            "scores": np.zeros(SCORES, np.int64),
            "top": np.zeros(k + SPARE, np.int64),
            "shown": np.full(k, ord("-"), np.uint8),
            "shown_sizes": np.ones(k, np.int64),
            "user_ids": empty_table(2),
            "comment_ids": empty_table(2),
            "friends": empty_table(3),
            "pairs": empty_table(3),
            "texts": np.zeros(256, np.uint8),
            "candidates": np.zeros(SMALLEST, np.int64),
        }
        way = COMPONENT if community == "component" else PUBLISHED if as_published else CLIQUE
        numbers = self.state["numbers"]
        numbers[[K, SPAN, WAY, THRESHOLD, FREE_LIKE]] = k, min(1000 * d, LONGEST_SPAN), way, 1, -1

    @property
    def late_likes(self) -> int:
        """The number of likes that came when their comment took part no more."""
        return int(self.state["numbers"][EXPIRED_COMMENTS])

    @property
    def searches(self) -> tuple[int, int]:
        """The number of searches for a clique, and that of the vertices that were tried in them."""
        numbers = self.state["numbers"]
        return int(numbers[SEARCHES]), int(numbers[STEPS])

    def _call(self, out: Bytes) -> int:
        state = CommunityState(*(self.state[name] for name in CommunityState._fields))
        return run_communities(*self._lines, self._feed(), state, out)

    def _grow(self) -> None:
        state, numbers = self.state, self.state["numbers"]
        self._forget_comments()
        self._rows(["comments", "live", "tier"], int(numbers[NEXT_COMMENT] - numbers[BASE]))
        self._rows(["users", "candidates"], int(numbers[USERS]) + 1)
        self._rows(["edges"], int(numbers[EDGES]) + 1)
        self._rows(["likes"], int(numbers[LIKES_MADE]))
        self._table("user_ids", int(numbers[USERS]) + 1)
        self._table("comment_ids", int(numbers[COMMENT_IDS]))
        self._table("friends", int(numbers[FRIENDS]))
        self._table("pairs", int(numbers[LIKE_PAIRS]))
        size = int(state["events"][1, TEXT_SIZE])
        self._rows(["texts"], int(numbers[TEXTS] - numbers[LABEL_BASE]) + size)
        if len(state["shown"]) < numbers[K] * size:
            state["shown"] = np.concatenate([state["shown"], np.empty(2 * int(numbers[K]) * size, np.uint8)])

    def _forget_comments(self) -> None:
        """Move comments and texts on, once half of them take part no more."""
        state, numbers = self.state, self.state["numbers"]
        dead, used = int(numbers[FIRST_COMMENT] - numbers[BASE]), int(numbers[NEXT_COMMENT] - numbers[BASE])
        if 2 * dead < used or not used:
            return
        text = int(state["comments"][dead, LABEL]) if dead < used else int(numbers[TEXTS])
        begin, end = text - int(numbers[LABEL_BASE]), int(numbers[TEXTS] - numbers[LABEL_BASE])
        state["texts"][: end - begin] = state["texts"][begin:end].copy()
        state["comments"][: used - dead] = state["comments"][dead:used].copy()
        numbers[LABEL_BASE], numbers[BASE] = text, numbers[FIRST_COMMENT]
