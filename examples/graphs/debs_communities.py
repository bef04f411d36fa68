"""The second query of the DEBS 2016 challenge as a pipeline: comments that large groups of friends like.

A comment takes part for `d` seconds, the last instant included; its range is the largest clique of friends among those
who like it. A row comes when the texts of the k comments with the largest ranges change. Events are comments, likes and
friendships, with the columns `ts`, `id` (a number in the order of the stream), `kind`, `comment` (a number of its own
for each comment, NULL for friendships and for what only tells the time), `name` (the comment's id), `text`, `a` (who
likes, or a friend) and `b` (the other friend).
"""

from functools import partial

from trellis.graphs import Change, Combination, Merger, Operator, Splitter, duration

SECOND = duration("1 second")


class Community(Operator):
    """The range of one comment, told whenever it changes, and when its time is over."""

    output = {"comment": "int64", "name": "int64", "text": "string", "range": "int64"}

    def __init__(self, seconds):
        self.seconds, self.likers, self.range, self.over = seconds, set(), 0, False

    def on_event(self, event):
        if event.kind == "comment":
            self.name, self.text = event.name, event.text
            self.call_at(event.time + self.seconds * SECOND + 1)  # behind the events of its last instant
        elif self.over or (event.kind != "like" and not {event.a, event.b} <= self.likers):
            return []
        elif event.kind == "like":
            self.likers.add(event.a)
        friends = {user: self.store.neighbours(user) & self.likers for user in self.likers if user in self.store}
        larger = largest_clique(self.likers, friends)
        if larger == self.range:
            return []
        self.range = larger
        return [self.row()]

    def on_time(self, time, key):
        self.over, self.range = True, 0
        return [self.row()]

    def row(self):
        return {"comment": self.partition.key, "name": self.name, "text": self.text, "range": self.range}


def largest_clique(users, friends):
    """Return the size of the largest clique: with each user, the largest among the friends that come after."""
    rest, best = set(users), 0
    for user in sorted(users):
        rest.discard(user)
        if len(near := friends.get(user, set()) & rest) >= best:
            best = max(best, 1 + largest_clique(near, friends))
    return best


class LargestCommunities(Combination):
    """The texts of the k comments with the largest ranges, whenever they change."""

    output = {"texts": "string"}

    def __init__(self, k):
        self.k, self.comments, self.shown = k, {}, ["-"] * k

    def take(self, rows):
        for row in rows:
            self.comments[row["comment"]] = (-row["range"], row["text"], -row["name"])
            if row["range"] == 0:
                del self.comments[row["comment"]]
        texts = [text for _, text, _ in sorted(self.comments.values())[: self.k]]
        texts += ["-"] * (self.k - len(texts))
        if texts != self.shown:
            self.shown = texts
            yield {"texts": ",".join(texts)}


SPLITTER = Splitter.by_key(
    "comment",
    store=lambda event: Change(add_edges=[(event.a, event.b)]) if event.kind == "friendship" else None,
    broadcast=lambda event: event.comment is None,
)


def communities(seconds):
    """What makes a fresh operator."""
    return partial(Community, seconds)


def largest_communities(k):
    """The merger for the k largest communities."""
    return Merger(combine=LargestCommunities(k))
