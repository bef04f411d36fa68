"""The first query of the DEBS 2016 challenge as a pipeline: the posts of a social network with the most activity.

A post is worth 10 points and each comment on it 10 more; each loses one a day after its own time. A row comes when the
list of the k best posts changes. Events are posts and comments, with the columns `ts`, `id` (a number in the order of
the stream), `kind`, `post` (which a comment belongs to, through however many replies), `user` and `name`.
"""

from collections import deque
from heapq import nlargest
from operator import itemgetter

from trellis.graphs import Combination, Merger, Operator, Splitter, duration

DAY = duration("1 day")


class PostScore(Operator):
    """The score of one post, told whenever it changes."""

    output = {
        "post": "int64", "name": "string", "written": "int64", "commented": "int64", "score": "int64",
        "commenters": "int64",
    }  # fmt: skip
    time_runs_on = True

    def __init__(self):
        self.items = deque()  # times and users of the post and its comments, until they are worth nothing
        self.dead = False

    def on_event(self, event):
        if event.kind == "post":
            self.name, self.author, self.written, self.commented = event.name, event.user, event.time, -1
        elif not self.dead:
            self.commented = event.time
        if not self.dead:
            self.items.append((event.time, event.user))
            self.call_at(event.time + DAY)
        return [self.row(event.time)]

    def on_time(self, time, key):
        while self.items and time - self.items[0][0] >= 10 * DAY:
            self.items.popleft()
        self.dead = not self.items
        if any((time - begun) % DAY == 0 for begun, _ in self.items):
            self.call_at(time + DAY)
        return [self.row(time)]

    def row(self, time):
        score = sum(10 - (time - begun) // DAY for begun, _ in self.items)
        commenters = {user for begun, user in self.items if user != self.author}
        return {
            "post": self.partition.key, "name": self.name, "written": self.written, "commented": self.commented,
            "score": score, "commenters": len(commenters),
        }  # fmt: skip


class BestPosts(Combination):
    """The k best posts, whenever others are among them or their order changes."""

    output = {"best": "string"}

    def __init__(self, k):
        self.k, self.posts, self.shown = k, {}, []

    def take(self, rows):
        for row in rows:
            self.posts[row["post"]] = row
            if row["score"] == 0:
                del self.posts[row["post"]]
        order = itemgetter("score", "written", "commented", "post")
        best = nlargest(self.k, self.posts.values(), key=order)
        if [post["post"] for post in best] != self.shown:
            self.shown = [post["post"] for post in best]
            cells = [f"{p['post']},{p['name']},{p['score']},{p['commenters']}" for p in best]
            yield {"best": ",".join(cells + ["-,-,-,-"] * (self.k - len(best)))}


SPLITTER = Splitter.by_key("post")


def best_posts(k):
    """The merger for the k best posts."""
    return Merger(combine=BestPosts(k), join_calls=True)
