"""The two DEBS 2016 queries, recomputed from nothing at every instant, as the rules of the challenge tell."""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass

DAY = dt.timedelta(days=1)
MS = dt.timedelta(milliseconds=1)
TIME = re.compile(rb"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)\.(\d{3})\+0000")
NUMBER = re.compile(rb"-?\d{1,19}")

Bad = dict[str, int]


@dataclass
class Event:
    """A line that was read; `source` is the place of its file among the files of the query."""

    time: dt.datetime
    source: int
    fields: list[bytes]

    def number(self, place: int) -> int:
        return int(self.fields[place])

    def parent(self, place: int) -> int | None:
        field = self.fields[place]
        return None if field in (b"", b"-1") else int(field)


# --- Lines ------------------------------------------------------------------------------------------------------

SHAPES = {"posts": "tiixx", "comments": "tiixxpp", "likes": "tii", "friendships": "tii"}


def read(name: str, source: int, data: bytes, bad: Bad) -> list[Event]:
    """The good lines of a file, in the order of time; the others are counted."""
    events: list[Event] = []
    for raw in data.split(b"\n"):
        line = raw.removesuffix(b"\r")
        if not line:
            continue
        event = well_formed(name, source, line)
        if event is None:
            bad[f"malformed {name}"] += 1
        elif name != "friendships" and events and event.time < events[-1].time:
            bad[f"{name} out of order"] += 1
        else:
            events.append(event)
    return sorted(events, key=lambda event: event.time)


def well_formed(name: str, source: int, line: bytes) -> Event | None:
    fields = line.split(b"|")
    shape = SHAPES[name]
    if shape == "tii" and len(fields) == 4 and fields[3] == b"":
        fields.pop()
    if len(fields) != len(shape):
        return None
    time = moment(fields[0])
    if time is None:
        return None
    for field, kind in zip(fields[1:], shape[1:], strict=True):
        if kind == "i" and not is_id(field):
            return None
        if kind == "p" and field != b"" and not is_id(field):
            return None
    event = Event(time, source, fields)
    if name == "comments" and (event.parent(5) is None) == (event.parent(6) is None):
        return None
    return event


def is_id(field: bytes) -> bool:
    return bool(NUMBER.fullmatch(field)) and abs(int(field)) < 2**63


def moment(field: bytes) -> dt.datetime | None:
    match = TIME.fullmatch(field)
    if match is None:
        return None
    *rest, millis = map(int, match.groups())
    if rest[0] == 9999:  # ten days later there would be no year of four digits
        return None
    try:
        return dt.datetime(*rest, microsecond=1000 * millis)  # type: ignore[arg-type]
    except ValueError:
        return None


def shown(time: dt.datetime) -> bytes:
    return time.strftime("%Y-%m-%dT%H:%M:%S.").encode() + b"%03d+0000" % (time.microsecond // 1000)


def merged(*files: list[Event]) -> list[Event]:
    return sorted((event for file in files for event in file), key=lambda event: (event.time, event.source))


# --- Query 1 ----------------------------------------------------------------------------------------------------


class Post:
    """A post, its comments that count, and what they are worth at a time."""

    def __init__(self, event: Event) -> None:
        self.id, self.author, self.name, self.time = event.number(1), event.number(2), event.fields[4], event.time
        self.comments: list[tuple[dt.datetime, int]] = []

    def score(self, now: dt.datetime) -> int:
        times = [self.time, *(time for time, _ in self.comments)]
        return sum(max(0, 10 - (now - time) // DAY) for time in times)

    def commenters(self, now: dt.datetime) -> int:
        return len({user for time, user in self.comments if user != self.author and now - time < 10 * DAY})

    def dies(self) -> dt.datetime:
        return max([self.time, *(time for time, _ in self.comments)]) + 10 * DAY

    def key(self, now: dt.datetime) -> tuple[object, ...]:
        last = max((time for time, _ in self.comments), default=dt.datetime.min)
        return self.score(now), self.time, last, self.id


def posts(posts_file: bytes, comments_file: bytes, k: int, changes: str) -> tuple[bytes, Bad]:
    """Query 1: the output and what was bad."""
    names = ("comments on unknown posts", "replies to unknown comments", "posts with a known id")
    bad = dict.fromkeys(
        ["malformed posts", "posts out of order", "malformed comments", "comments out of order", *names], 0
    )
    events = merged(read("posts", 0, posts_file, bad), read("comments", 1, comments_file, bad))
    known: dict[int, Post] = {}
    post_of: dict[int, int] = {}
    printed: list[int] = []
    out: list[bytes] = []

    def look(now: dt.datetime) -> None:
        nonlocal printed
        alive = [post for post in known.values() if post.score(now) > 0]
        best = sorted(alive, key=lambda post: post.key(now), reverse=True)[:k]
        if [post.id for post in best] != printed:
            printed = [post.id for post in best]
            cells = [b"%d,%s,%d,%d" % (p.id, p.name, p.score(now), p.commenters(now)) for p in best]
            out.append(b",".join([shown(now), *cells, *[b"-,-,-,-"] * (k - len(best))]))

    def instants(after: dt.datetime | None, until: dt.datetime | None) -> list[dt.datetime]:
        """When something is lost strictly between two events."""
        if changes == "exact":
            items = {t for p in known.values() for t in [p.time, *(time for time, _ in p.comments)]}
            found = {time + n * DAY for time in items for n in range(1, 11)}
        else:
            found = {post.dies() for post in known.values()}
        return sorted(t for t in found if (after is None or t > after) and (until is None or t < until))

    before: dt.datetime | None = None
    for event in events:
        if is_bad(event, known, post_of, bad):
            continue
        if changes != "events":
            for instant in instants(before, event.time):
                look(instant)
        if event.source == 0:
            known[event.number(1)] = Post(event)
        else:
            take_comment(event, known, post_of)
        look(event.time)
        before = event.time
    if changes != "events":
        for instant in instants(before, None):
            look(instant)
    return b"".join(line + b"\n" for line in out), bad


def is_bad(event: Event, known: dict[int, Post], post_of: dict[int, int], bad: Bad) -> bool:
    """Count an event that is ignored, as if it had not come."""
    what = None
    if event.source == 0 and event.number(1) in known:
        what = "posts with a known id"
    elif event.source == 1:
        parent, replied = event.parent(6), event.parent(5)
        if replied is not None and replied not in post_of:
            what = "replies to unknown comments"
        elif replied is None and parent not in known:
            what = "comments on unknown posts"
    if what is not None:
        bad[what] += 1
    return what is not None


def take_comment(event: Event, known: dict[int, Post], post_of: dict[int, int]) -> None:
    parent, replied = event.parent(6), event.parent(5)
    if replied is not None:
        parent = post_of[replied]
    assert parent is not None
    post_of[event.number(1)] = parent
    post = known[parent]
    if post.dies() > event.time:
        post.comments.append((event.time, event.number(2)))


# --- Query 2 ----------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class Comment:
    """A comment and who likes it."""

    id: int
    time: dt.datetime
    text: bytes
    likers: set[int]


def communities(
    friendships_file: bytes, comments_file: bytes, likes_file: bytes, k: int, d: int, community: str
) -> tuple[bytes, Bad]:
    """Query 2: the output and what was bad."""
    bad = {f"malformed {name}": 0 for name in ("friendships", "comments", "likes")}
    bad |= {f"{name} out of order": 0 for name in ("friendships", "comments", "likes")}
    bad |= dict.fromkeys(
        ["likes of unknown comments", "likes given twice", "friendships with oneself", "friendships made twice"], 0
    )
    span = dt.timedelta(seconds=d)
    comments: list[Comment] = []
    friends: set[frozenset[int]] = set()
    printed = [b"-"] * k
    out: list[bytes] = []

    def look(now: dt.datetime, still: list[Comment]) -> None:
        nonlocal printed
        sized = [(largest(one.likers, friends, community), one) for one in still]
        best = sorted((-size, one.text, -one.id) for size, one in sized if size > 0)[:k]
        texts = [text for _, text, _ in best] + [b"-"] * (k - len(best))
        if texts != printed:
            printed = texts
            out.append(b",".join([shown(now), *texts]))

    before: dt.datetime | None = None
    for event in merged(
        read("friendships", 0, friendships_file, bad),
        read("comments", 1, comments_file, bad),
        read("likes", 2, likes_file, bad),
    ):
        ends = {one.time + span for one in comments if one.time + span < event.time}
        for end in sorted(end for end in ends if before is None or end >= before):
            look(end, [one for one in comments if one.time + span > end])
        now = [one for one in comments if one.time + span >= event.time]
        if event.source == 0:
            pair = frozenset((event.number(1), event.number(2)))
            if len(pair) == 1:
                bad["friendships with oneself"] += 1
            elif pair in friends:
                bad["friendships made twice"] += 1
            friends |= {pair} if len(pair) == 2 else set()
        elif event.source == 1:
            one = Comment(event.number(1), event.time, event.fields[3], set())
            comments.append(one)
            now.append(one)
        else:
            named = [one for one in comments if one.id == event.number(2)]
            if not named:
                bad["likes of unknown comments"] += 1
            elif named[-1] in now:
                if event.number(1) in named[-1].likers:
                    bad["likes given twice"] += 1
                named[-1].likers.add(event.number(1))
        look(event.time, now)
        before = event.time
    return b"".join(line + b"\n" for line in out), bad


def largest(users: set[int], friends: set[frozenset[int]], community: str) -> int:
    """The size of the largest community among users."""
    return largest_clique(users, friends) if community == "clique" else largest_component(users, friends)


def largest_clique(users: set[int], friends: set[frozenset[int]]) -> int:
    """Whoever is the smallest of the clique, the others are friends of theirs, and a clique."""
    return max(
        (1 + largest_clique({v for v in users if v > u and frozenset((u, v)) in friends}, friends) for u in users),
        default=0,
    )


def largest_component(users: set[int], friends: set[frozenset[int]]) -> int:
    rest, best = set(users), 0
    while rest:
        group, edge = set(), [rest.pop()]
        while edge:
            user = edge.pop()
            group.add(user)
            near = {other for other in rest if frozenset((user, other)) in friends}
            rest -= near
            edge.extend(near)
        best = max(best, len(group))
    return best
