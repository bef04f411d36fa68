"""The DEBS 2016 queries written as splitters, operators and mergers give the lines of the fast ones."""

from __future__ import annotations

import datetime as dt
import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.data.places import data_file
from tests.papers.debs2016 import oracle, streams
from tests.profiles import examples
from trellis.graphs import run
from trellis.papers.debs2016 import communities, posts

EXAMPLES = Path(__file__).parents[3] / "examples" / "graphs"
COLUMNS = {
    "post": ("ts", "id", "kind", "post", "user", "name"),
    "comment": ("ts", "id", "kind", "comment", "name", "text", "a", "b"),
}
TYPES = {"ts": pa.timestamp("us", "UTC"), "kind": pa.string(), "text": pa.string()}
Table = Callable[[list[dict[str, Any]]], pa.Table]


def example(name: str) -> Any:
    """The module of an example."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def table(rows: list[dict[str, Any]], kind: str) -> pa.Table:
    types = TYPES | ({"name": pa.string()} if kind == "post" else {})
    schema = pa.schema([(name, types.get(name, pa.int64())) for name in COLUMNS[kind]])
    return pa.Table.from_pylist([{"id": i} | row for i, row in enumerate(rows)], schema)


def post_events(posts_file: bytes, comments_file: bytes) -> pa.Table:
    """The events of the first query, each with the post that it belongs to; those that are bad are left out."""
    bad: dict[str, int] = dict.fromkeys(["malformed posts", "malformed comments"], 0)
    bad |= dict.fromkeys(["posts out of order", "comments out of order", "posts with a known id"], 0)
    bad |= dict.fromkeys(["comments on unknown posts", "replies to unknown comments"], 0)
    known: dict[int, oracle.Post] = {}
    post_of: dict[int, int] = {}
    rows = []
    for event in oracle.merged(
        oracle.read("posts", 0, posts_file, bad), oracle.read("comments", 1, comments_file, bad)
    ):
        if oracle.is_bad(event, known, post_of, bad):
            continue
        if event.source == 0:
            known[event.number(1)] = oracle.Post(event)
        else:
            oracle.take_comment(event, known, post_of)
        post = event.number(1) if event.source == 0 else post_of[event.number(1)]
        name, kind = event.fields[4].decode("latin-1"), ("post", "comment")[event.source]
        rows.append({"ts": event.time, "kind": kind, "post": post, "user": event.number(2), "name": name})
    return table(rows, "post")


def community_events(friendships_file: bytes, comments_file: bytes, likes_file: bytes) -> pa.Table:
    """The events of the second query; a comment has a number of its own, an event of none tells only the time."""
    names = ("friendships", "comments", "likes")
    bad = {f"{what} {name}": 0 for name in names for what in ("malformed",)}
    bad |= {f"{name} out of order": 0 for name in names}
    files = zip(names, (friendships_file, comments_file, likes_file), strict=True)
    latest: dict[int, int] = {}
    rows: list[dict[str, Any]] = []
    for event in oracle.merged(*(oracle.read(name, place, data, bad) for place, (name, data) in enumerate(files))):
        row: dict[str, Any] = {"ts": event.time, "kind": "other"}
        if event.source == 1:
            latest[event.number(1)] = len(rows)
            row |= {"kind": "comment", "comment": len(rows), "name": event.number(1)}
            row["text"] = event.fields[3].decode("latin-1")
        elif event.source == 0 and event.number(1) != event.number(2):
            row |= {"kind": "friendship", "a": event.number(1), "b": event.number(2)}
        elif event.source == 2 and event.number(2) in latest:
            row |= {"kind": "like", "comment": latest[event.number(2)], "a": event.number(1)}
        rows.append(row)
    return table(rows, "comment")


def lines(found: pa.Table, column: str) -> bytes:
    texts = zip(found["time"].to_pylist(), found[column].to_pylist(), strict=True)
    return b"".join(
        oracle.shown(time.replace(tzinfo=None)) + b"," + text.encode("latin-1") + b"\n" for time, text in texts
    )


def best_posts(events: pa.Table, k: int, instances: int = 1) -> bytes:
    module = example("debs_posts")
    found = run(events, module.SPLITTER, module.PostScore, module.best_posts(k), event_id="id", instances=instances)
    return lines(found.table, "best")


def largest_communities(events: pa.Table, k: int, d: int, instances: int = 1) -> bytes:
    module = example("debs_communities")
    operator, merger = module.communities(d), module.largest_communities(k)
    return lines(run(events, module.SPLITTER, operator, merger, event_id="id", instances=instances).table, "texts")


@pytest.mark.data
@pytest.mark.parametrize("case", ["case1", "case3", "Q1CommentCount", "Q1PostExpiredComment"])
def test_cases_of_query_1(case: str) -> None:
    folder = data_file("social", "debs2016_cases", "query1", case)
    files = [(folder / f"{name}.dat").read_bytes() for name in ("posts", "comments")]
    assert best_posts(post_events(*files), 3) == posts(*files).output != b""


@pytest.mark.data
@pytest.mark.parametrize("case", ["official1", "course2019_T1", "course2019_T3"])
def test_cases_of_query_2(case: str) -> None:
    folder = data_file("social", "debs2016_cases", "query2", case)
    k, d = map(int, (folder / "k_d.txt").read_text().split())
    files = [(folder / f"{name}.dat").read_bytes() for name in ("friendships", "comments", "likes")]
    assert largest_communities(community_events(*files), k, d) == communities(*files, k=k, d=d).output != b""


@examples(60)
@given(streams.POSTS, streams.COMMENTS, st.integers(1, 3), st.integers(1, 3))
def test_posts(posts_file: bytes, comments_file: bytes, k: int, instances: int) -> None:
    events = post_events(posts_file, comments_file)
    assert best_posts(events, k, instances) == posts(posts_file, comments_file, k=k).output


@examples(60)
@given(
    streams.FRIENDSHIPS, streams.QUICK_COMMENTS, streams.LIKES, st.integers(1, 3), st.sampled_from([1, 2, 5, 100]),
    st.integers(1, 3),
)  # fmt: skip
def test_communities(friends: bytes, comments: bytes, likes: bytes, k: int, d: int, instances: int) -> None:
    events = community_events(friends, comments, likes)
    assert largest_communities(events, k, d, instances) == communities(friends, comments, likes, k=k, d=d).output


def test_a_line_at_the_time_of_the_last_event() -> None:
    """What an instant takes away is told with the first event of that instant; of the last one it is not told."""
    first = dt.datetime(2010, 1, 1)
    begin, ten_days = oracle.shown(first), oracle.shown(first + 10 * oracle.DAY)
    written = b"%s|1|1|x|A\n%s|2|1|y|A\n" % (begin, ten_days)
    assert best_posts(post_events(written, b""), 1) == posts(written, b"", k=1).output
    comments, likes = b"%s|1|9|a|n||1\n" % begin, b"%s|4|1\n%s|5|1\n" % (begin, oracle.shown(first + 9 * oracle.DAY))
    end = 9 * 24 * 3600
    for d in (end - 1, end):
        found = largest_communities(community_events(b"", comments, likes), 1, d)
        assert found == communities(b"", comments, likes, k=1, d=d).output
        assert found.count(b"\n") == (2 if d < end else 1)


@pytest.mark.parametrize("name", ["debs_posts", "debs_communities"])
def test_an_example_is_short(name: str) -> None:
    text = (EXAMPLES / f"{name}.py").read_text(encoding="utf-8").split('"""', 2)[2]
    assert sum(1 for line in text.splitlines() if line.strip()) <= 75
