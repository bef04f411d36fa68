"""Rank counters: how many results each partition of a span query has had, in a keyed store, so that ranks go on.

A counter is kept for every partition that ever had a result, since a later result goes on from it: there may be
millions. They lie in pages of some `KEYS_PER_PAGE` counters. A store answers by the page, and each answer costs more
than what is in a page, so pages are better than single counters; and only the pages of the partitions in a batch
are read and written. The pages are those of linear hashing: when there are too many counters, one page is split in
two, the next in turn, so that a batch that brings new partitions splits a few and never all.

Under AFTER MATCH a partition also has a place: the last event at which none of its results may begin any more.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Protocol

KEYS_PER_PAGE = 32
LARGEST_RANK = (1 << 63) - 1
PLACE = "@"  # before the key of a partition, for its place
Page = dict[str, int | str]


class PageStore(Protocol):
    """The place where pages are stored; `space` tells those of a query from those of others."""

    def page(self, space: int, number: int) -> str | None:
        """Return a page as text."""

    def set_page(self, space: int, number: int, text: str | None) -> None:
        """Store a page; None: remove it."""


@dataclass
class RankCounters:
    """The counters of one query, in the `pages` pages of a space that hold `keys` counters."""

    store: PageStore
    space: int
    pages: int = 1
    keys: int = 0
    _touched: dict[int, Page] = field(default_factory=dict)

    def add(self, counts: Mapping[str, int]) -> dict[str, int]:
        """Count results of partitions, and return how many each had had before; beyond `LARGEST_RANK` all are equal."""
        before = {key: int(self._page(self._number(key)).get(key, 0)) for key in counts}
        self._set({key: min(before[key] + count, LARGEST_RANK + 1) for key, count in counts.items()})
        return before

    def places(self, keys: Iterable[str]) -> dict[str, str]:
        """Return the places of partitions that have one, as the text of an event's id."""
        known = {key: self._page(self._number(PLACE + key)).get(PLACE + key) for key in keys}
        return {key: str(place) for key, place in known.items() if place is not None}

    def set_places(self, places: Mapping[str, str]) -> None:
        """Keep the places of partitions."""
        self._set({PLACE + key: place for key, place in places.items()})

    def _set(self, values: Mapping[str, int | str]) -> None:
        for key, value in values.items():
            page = self._page(self._number(key))
            self.keys += key not in page
            page[key] = value
        while self.keys > KEYS_PER_PAGE * self.pages:
            self._split()
        for number, page in self._touched.items():
            self.store.set_page(self.space, number, json.dumps(page, ensure_ascii=False, separators=(",", ":")))
        self._touched.clear()

    def clear(self) -> None:
        """Remove all counters."""
        for number in range(self.pages):
            self.store.set_page(self.space, number, None)
        self.pages, self.keys = 1, 0

    def _number(self, key: str) -> int:
        """Return the page of a counter."""
        hashed = int.from_bytes(blake2b(key.encode(), digest_size=8).digest(), "little")
        half = 1 << (self.pages.bit_length() - 1)  # pages before the first that came by the splits of this round
        number = hashed % (2 * half)
        return number if number < self.pages else number - half

    def _page(self, number: int) -> Page:
        page = self._touched.get(number)
        if page is None:
            text = self.store.page(self.space, number)
            page = self._touched[number] = json.loads(text) if text else {}
        return page

    def _split(self) -> None:
        """Make one more page, of counters of the one whose turn it is."""
        number = self.pages - (1 << (self.pages.bit_length() - 1))
        page = self._page(number)
        self.pages += 1
        moved = self._touched[self.pages - 1] = {}
        for key in [key for key in page if self._number(key) == self.pages - 1]:
            moved[key] = page.pop(key)
