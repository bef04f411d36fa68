"""The kernels of the DEBS 2016 challenge, each a whole query over lines, beside naive versions of a few lines.

`run_posts` and `run_communities` take the state that `Posts` and `Communities` make, so these are asked; what is dead,
late or broken is in `tests/papers/debs2016`.
"""

from __future__ import annotations

import datetime as dt

from hypothesis import given
from hypothesis import strategies as st

from tests.kernels import naive
from trellis.papers.debs2016 import communities, posts

START = dt.datetime(2010, 3, 1)
ITEMS = st.lists(st.tuples(st.integers(1, 30), st.integers(1, 4)), max_size=14)  # hours since the one before, post
LIKES = st.lists(st.tuples(st.integers(1, 5), st.integers(0, 3)), unique=True, max_size=14)  # user, comment
FRIENDS = st.lists(st.sampled_from([(a, b) for a in range(1, 6) for b in range(a + 1, 6)]), unique=True)


def line(time: dt.datetime, *fields: object) -> bytes:
    moment = time.strftime("%Y-%m-%dT%H:%M:%S.000+0000")
    return "|".join([moment, *map(str, fields)]).encode() + b"\n"


def hours(number: int) -> dt.datetime:
    return START + dt.timedelta(hours=number)


def seconds(number: int) -> dt.datetime:
    return START + dt.timedelta(seconds=number)


@given(ITEMS, st.integers(1, 3))
def test_posts(drawn: list[tuple[int, int]], k: int) -> None:
    """Each post is followed by comments on it, all within nine days: none dies."""
    items: list[tuple[int, int, bool]] = []
    for gap, post in drawn:
        now = (items[-1][0] if items else 0) + gap
        if now < 9 * 24:
            items.append((now, post, all(post != other for _, other, _ in items)))
    written = b"".join(line(hours(at), post, 1, "text", "name") for at, post, is_post in items if is_post)
    comments = b"".join(
        line(hours(at), 100 + n, 2, "text", "name", "", post) for n, (at, post, own) in enumerate(items) if not own
    )
    found = []
    for text in posts(written, comments, k=k, changes="events").output.decode().splitlines():
        moment, *cells = text.split(",")
        best = [(int(cells[i]), int(cells[i + 2])) for i in range(0, 4 * k, 4) if cells[i] != "-"]
        found.append((moment, best))
    wanted = [(f"{hours(at):%Y-%m-%dT%H:%M:%S}.000+0000", best) for at, best in naive.best_posts(items, k)]
    assert found == wanted


@given(LIKES, FRIENDS, st.integers(1, 3))
def test_communities(drawn: list[tuple[int, int]], friends: list[tuple[int, int]], k: int) -> None:
    """Friendships come first, then comments, then likes, all of them within the span."""
    texts = ["a", "b", "c", "d"]
    likes = [(10 + n, user, comment) for n, (user, comment) in enumerate(drawn)]
    found = communities(
        b"".join(line(seconds(0), a, b) for a, b in friends),
        b"".join(line(seconds(1), n, 1, text, "name", "", 7) for n, text in enumerate(texts)),
        b"".join(line(seconds(at), user, comment) for at, user, comment in likes),
        k=k,
        d=3600,
    )
    lines = [text.split(",") for text in found.output.decode().splitlines()]
    during = [(moment, best) for moment, *best in lines if best != ["-"] * k]
    wanted = naive.best_comments(texts, likes, friends, k)
    assert during == [(f"{seconds(at):%Y-%m-%dT%H:%M:%S}.000+0000", best) for at, best in wanted]
