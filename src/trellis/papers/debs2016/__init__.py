"""The two queries of the DEBS 2016 challenge over a social network: active posts, and communities of likers."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from trellis.papers.debs2016.communities import Communities
from trellis.papers.debs2016.engine import LineEngine, Write
from trellis.papers.debs2016.files import Source, run_over
from trellis.papers.debs2016.posts import Posts

__all__ = ["Communities", "Posts", "QueryOutput", "communities", "posts"]


@dataclass(frozen=True)
class QueryOutput:
    """The output of a query over whole files, and its numbers.

    Attributes
    ----------
    output
        The lines of output; empty if they were written elsewhere.
    lines
        Their number.
    events
        Numbers of events that were read, by source.
    bad
        Numbers of bad lines and events, by what is bad about them.
    late
        Events that came too late to count, and that nothing is wrong with: comments on posts that had died, likes of
        comments that took part no more.
    seconds
        How long it took, reading included.
    """

    output: bytes
    lines: int
    events: dict[str, int]
    bad: dict[str, int]
    late: int
    seconds: float


def posts(
    posts: Source, comments: Source, *, k: int = 3, changes: str = "exact", write: Write | None = None, **how: Any
) -> QueryOutput:
    """Find the k most active posts, whenever they change.

    Parameters
    ----------
    posts, comments
        The files: paths, open ones, or their bytes.
    k
        How many posts are shown.
    changes
        `exact`: a change is seen at its instant. `deaths`: between events, only when a post dies. `events`: at events.
    write
        Takes lines of output as they come; without it they are returned.
    how
        As `run_over` takes it.

    Raises
    ------
    UsageError
        If an option makes no sense.
    DataError
        If a file cannot be read.
    """
    engine = Posts(k, changes)
    return _run(engine, lambda: engine.to_dead_posts, [posts, comments], write, how)


def communities(
    friendships: Source, comments: Source, likes: Source, *, k: int, d: int, community: str = "clique",
    write: Write | None = None, **how: Any,
) -> QueryOutput:  # fmt: skip
    """Find the k comments that the largest communities like, whenever they change.

    Parameters
    ----------
    friendships, comments, likes
        The files: paths, open ones, or their bytes.
    k
        How many comments are shown.
    d
        For how many seconds a comment takes part.
    community
        `clique`: of friends, each a friend of each other. `component`: friends of friends too.
    write
        Takes lines of output as they come; without it they are returned.
    how
        As `run_over` takes it.

    Raises
    ------
    UsageError
        If an option makes no sense.
    DataError
        If a file cannot be read.
    """
    engine = Communities(k, d, community)
    return _run(engine, lambda: engine.late_likes, [friendships, comments, likes], write, how)


def _run(
    engine: LineEngine, late: Callable[[], int], given: list[Source], write: Write | None, how: dict[str, Any]
) -> QueryOutput:
    begin = time.perf_counter()
    kept = bytearray()
    run_over(engine, given, write or kept.extend, **how)
    seconds = time.perf_counter() - begin
    return QueryOutput(bytes(kept), engine.lines, engine.events, engine.bad, late(), seconds)
