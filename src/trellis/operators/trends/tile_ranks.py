"""Trends by rank, of a group that is counted in tiles: each is followed through the tiles that it goes through.

Tiles are in the order of time. A trend by its rank begins in the tile where the numbers of trends up to it pass the
rank; from there on it is a range of places and a rank among the trends that go on in that range, which is all that the
next tile needs.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from trellis.events.slice import Ints
from trellis.kernels.count import tiles as kernel
from trellis.operators.trends.tiles import Message, OpenEnds, Words, tile_of_pieces


class TrendsOnTheWay(NamedTuple):
    """Trends that are followed by rank: their numbers, what may come next as a range of places, and the ranks left.

    A range that begins with -1 is that of a trend whose first event is not known yet.
    """

    trends: Ints
    ranges: Ints  # (trends, 2)
    ranks: Words

    def together(self, other: TrendsOnTheWay) -> TrendsOnTheWay:
        """Return both."""
        return TrendsOnTheWay(*(np.concatenate(pair) for pair in zip(self, other, strict=True)))


class WalkedTile(NamedTuple):
    """Trends that were followed through a tile: their events there, and those that go on, with the ranks left."""

    trends: Ints
    events: Ints
    going_on: TrendsOnTheWay


def walked_tile(messages: Iterable[Message], trends: TrendsOnTheWay, every: bool, ends: OpenEnds) -> WalkedTile:
    """Follow trends through a tile; `messages` are its `paths`, and then its pieces."""
    kept = list(messages)
    (about, words, _), tile = kept[0].numbers(), tile_of_pieces(kept[1:], ends)
    _, codes, place = tile.places()
    low, high = np.searchsorted(codes, tile.low), np.searchsorted(codes, tile.high)
    begins = np.where(trends.ranges < 0, -1, np.searchsorted(codes, trends.ranges))
    ranks = trends.ranks.copy()
    events, bounds, done = kernel.walk_tile(
        tile.tick, place, low, high, about["starts"], about["ends"], every, words[:, 0].copy(), begins, ranks
    )
    number = np.diff(bounds)
    last = events[np.maximum(bounds[1:] - 1, 0)] if len(events) else np.zeros(len(number), np.int64)
    ranges = trends.ranges.copy()
    some = np.flatnonzero(number)
    ranges[some, 0], ranges[some, 1] = tile.low[last[some]], tile.high[last[some]]
    left = TrendsOnTheWay(trends.trends[~done], ranges[~done], ranks[~done])
    return WalkedTile(np.repeat(trends.trends, number), events, left)
