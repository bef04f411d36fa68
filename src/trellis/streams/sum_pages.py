"""Sums in the pages of a store, in which they go on with the next batch."""

from __future__ import annotations

from base64 import b64decode, b64encode
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trellis.streams.calendar import Number
from trellis.streams.ranks import PageStore
from trellis.streams.sums import TrendSums

if TYPE_CHECKING:
    from trellis.streams.query import StandingQuery

PAGE = 1 << 22  # characters of a page of a store


@dataclass
class SumPages:
    """Sums in the pages of a store: how many, in which space, and the watermark up to which events were added."""

    space: int
    pages: int = 0
    added: Number | None = None
    vertices: int = 0
    first_window: int | None = None

    def read(self, query: StandingQuery, store: PageStore) -> TrendSums:
        """Return the sums."""
        text = "".join(store.page(self.space, number) or "" for number in range(self.pages))
        return TrendSums(query, b64decode(text) if text else None)

    def write(self, sums: TrendSums, store: PageStore) -> None:
        """Store sums in place of others."""
        text = b64encode(sums.to_bytes()).decode() if sums.first_window is not None else ""
        pages = -(-len(text) // PAGE)
        for number in range(max(pages, self.pages)):
            page = text[number * PAGE : (number + 1) * PAGE]
            store.set_page(self.space, number, page or None)
        self.pages, self.vertices, self.first_window = pages, sums.size, sums.first_window

    def clear(self, store: PageStore) -> None:
        """Remove all."""
        for number in range(self.pages):
            store.set_page(self.space, number, None)
