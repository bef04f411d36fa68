"""A social network: posts, comments, likes and friendships, in the four files of the DEBS 2016 challenge."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from trellis.events.columns.arrow import Array, pc
from trellis.io.claims import claimed
from trellis.io.generate.parts import Integers, count, pick, positive, random_numbers, timestamps
from trellis.io.outputs import PLACE

SHARES = {"friendships": 63_409, "posts": 435_125, "comments": 742_178, "likes": 425_936}
"""The events of the GraphCEP paper, by file."""

PAPER = sum(SHARES.values())
GROUP = 24  # users who know one another well
NEAR = 0.75  # the share of friendships and likes that stay in a group
ANSWERED = 1500  # how many posts and comments ago, on average, what a comment answers was written
LIKED_AFTER = 7.0  # days, on average
CROWD = 8  # of so many comments in a row, one gets most of the likes
VOCABULARY = """
about all and are but can come do each find first for from great has have how in is it like long look make many maybe
more no not now of on one other out right see so some than that the them then there thing this time two use was water
way well what when where who why will with word write yes you
"""
NAMES = "Ana Bo Chen Dora Eli Fay Gus Hana Ivo Jun Kira Lars Maria Nils Olga Pia Quin Rosa Sven Tao Una Vik Wei Yan"


def social(
    events: int, seed: int = 0, *, users: int = 4000, rate: float = 1800.0, start: str = "2010-02-01T00:00:00"
) -> dict[str, pa.Table]:
    """Make a social network: its friendships, posts, comments and likes.

    Of each kind there are as many as the share of the GraphCEP paper tells; 1,666,648 events are its numbers. Comments
    answer what is recent, a post or a comment. Users have groups, in which they make friends and like the same.

    Parameters
    ----------
    events
        How many events.
    seed
        The same seed and options give the same events.
    users
        How many users there are, at least 2.
    rate
        Events a day, on average.
    start
        When the stream begins.

    Returns
    -------
    dict of pyarrow.Table
        By the name of the file, each in time order, with the fields of the file as columns. Friendships are fewer
        where so many users cannot have more.

    Raises
    ------
    UsageError
        If a value is out of its range.
    """
    number, people = count("events", events), count("users", users, at_least=2)
    rng = random_numbers(seed)
    sizes = _sizes(number)
    days = number / positive("rate", rate)
    millis = {name: np.sort(rng.integers(0, max(1, round(days * 86_400_000)), size)) for name, size in sizes.items()}
    last = max((int(times[-1]) for times in millis.values() if len(times)), default=0)
    timestamps(start, np.array([last // 1000], np.int64))  # raises where the calendar ends
    begin = int(timestamps(start, np.zeros(1, np.int64)).cast(pa.int64())[0].as_py()) // 1000
    times = {name: _times(begin + found) for name, found in millis.items()}
    words = VOCABULARY.split()
    texts = [" ".join(rng.choice(words, rng.integers(1, 22))) for _ in range(5000)]
    authors = {name: rng.integers(0, people, sizes[name]) for name in ("posts", "comments")}
    return {
        "friendships": _friendships(rng, times["friendships"], people),
        "posts": _posts(rng, times["posts"], authors["posts"], texts),
        "comments": _comments(rng, times["comments"], millis, authors["comments"], texts),
        "likes": _likes(rng, times["likes"], millis, authors["comments"], people),
    }


def write_social(tables: dict[str, pa.Table], directory: PLACE, *, overwrite: bool = False) -> Path:
    """Write the files of a social network into a directory, which appears wholly or not at all.

    Raises
    ------
    UsageError
        If the directory exists, unless it may be replaced.
    DataError
        If it cannot be written.
    """
    with claimed(directory, overwrite=overwrite) as output, output.replacing() as hidden:
        for name, table in tables.items():
            (hidden / f"{name}.dat").write_bytes(lines_of(table))
    return Path(directory)


def lines_of(table: pa.Table) -> bytes:
    """Return a table as lines, fields between bars."""
    if not table.num_rows:
        return b""
    columns = [column.cast(pa.large_string()).combine_chunks() for column in table.columns]
    lines = pc.binary_join_element_wise(*columns, pa.scalar("|", pa.large_string()))
    ended = pc.binary_join_element_wise(lines, pa.scalar("", lines.type), pa.scalar("\n", lines.type))
    return ended.buffers()[2].to_pybytes()


def _sizes(events: int) -> dict[str, int]:
    """Return how many events of each kind there are, in all as many as were asked for."""
    ends = np.round(np.cumsum([0, *SHARES.values()]) * (events / PAPER)).astype(np.int64)
    return dict(zip(SHARES, np.diff(ends).tolist(), strict=True))


def _times(millis: Integers) -> Array:
    text = np.datetime_as_string(millis.astype("datetime64[ms]"), unit="ms")
    return pa.array(np.char.add(text, "+0000") if len(text) else [], pa.string())


def _near(rng: np.random.Generator, user: Integers, people: int) -> Integers:
    """Return someone else for each user, most often of the same group."""
    first = user - user % GROUP
    of_group = first + rng.integers(0, GROUP, len(user))
    anyone = rng.integers(0, people, len(user))
    other = np.where((rng.random(len(user)) < NEAR) & (of_group < people), of_group, anyone)
    return np.where(other == user, (user + 1) % people, other)


def _friendships(rng: np.random.Generator, times: Array, people: int) -> pa.Table:
    """Make friendships, none twice."""
    number = min(len(times), people * (people - 1) // 2)
    pairs = np.empty(0, np.int64)
    while len(pairs) < number:
        user = rng.integers(0, people, number)
        other = _near(rng, user, people) if len(pairs) < number // 2 else rng.integers(0, people, number)
        both = np.minimum(user, other) * people + np.maximum(user, other)
        pairs = np.unique(np.concatenate([pairs, both[user != other]]))
    chosen = rng.permutation(pairs)[:number]
    return pa.table({"ts": times[:number], "user": chosen // people + 1, "other": chosen % people + 1})


def _names(user: Integers) -> Array:
    texts = [f"{first} {last}" for first in NAMES.split() for last in NAMES.split()]
    return pick(texts, user % len(texts))


def _posts(rng: np.random.Generator, times: Array, author: Integers, texts: list[str]) -> pa.Table:
    number = len(times)
    return pa.table(
        {
            "ts": times,
            "post": _post_ids(np.arange(number)),
            "user": author + 1,
            "text": pick(texts, rng.integers(0, len(texts), number)),
            "name": _names(author),
        }
    )


def _post_ids(place: Integers) -> Integers:
    return 1_000_000 + 3 * place


def _comment_ids(place: Integers) -> Integers:
    return (1 << 35) + 5 * place


def _comments(
    rng: np.random.Generator, times: Array, millis: dict[str, Integers], author: Integers, texts: list[str]
) -> pa.Table:
    """Make comments, each on one of the posts and comments before it, if there is one."""
    number = len(times)
    posts, comments = millis["posts"], millis["comments"]
    before = np.searchsorted(posts, comments, side="right")
    order = np.argsort(np.concatenate([posts, comments]), kind="stable")  # posts first at equal times
    own = before + np.arange(number)
    back = 1 + np.floor(rng.exponential(ANSWERED, number)).astype(np.int64)
    parent = order[np.maximum(own - back, 0)] if number else order[:0]
    of_post = (parent < len(posts)) | (parent >= len(posts) + np.arange(number))
    post = np.where(parent < len(posts), parent, 0)
    comment = np.where(of_post, 0, parent - len(posts))
    return pa.table(
        {
            "ts": times,
            "comment": _comment_ids(np.arange(number)),
            "user": author + 1,
            "text": pick(texts, rng.integers(0, len(texts), number)),
            "name": _names(author),
            "replied_comment": pc.if_else(pa.array(of_post), "", pa.array(_comment_ids(comment)).cast(pa.string())),
            "replied_post": pc.if_else(pa.array(of_post), pa.array(_post_ids(post)).cast(pa.string()), ""),
        }
    )


def _likes(
    rng: np.random.Generator, times: Array, millis: dict[str, Integers], author: Integers, people: int
) -> pa.Table:
    """Make likes of comments before them, most by users of one group for each comment."""
    number, comments = len(times), millis["comments"]
    when = millis["likes"] - np.floor(rng.exponential(LIKED_AFTER * 86_400_000, number)).astype(np.int64)
    latest = np.searchsorted(comments, millis["likes"], side="right") - 1
    chosen = np.searchsorted(comments, when, side="right") - 1
    crowded = rng.random(number) < NEAR
    chosen = np.where(crowded, chosen - chosen % CROWD, chosen)
    chosen = np.clip(chosen, 0, np.maximum(latest, 0))
    user = _near(rng, author[chosen], people) if len(comments) else rng.integers(0, people, number)
    return pa.table({"ts": times, "user": user + 1, "comment": _comment_ids(chosen)})
