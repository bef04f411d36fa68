"""The state of a bucket in this process, and as plain bytes: for services that run without Spark."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any

import pyarrow as pa

from trellis.errors import DataError
from trellis.events.table_bytes import packed, unpacked

Page = tuple[int, int]  # a space of rank counters, and a page of it
MARK = b"trellis state 1\n"
DIGEST = 16
DAMAGED = DataError(
    "the state cannot be read: it is damaged, or not what snapshot() gave", "Give the bytes of a snapshot, all of them."
)


class MemoryStore:
    """State in memory; what changed since `begin` can be undone, so that a batch that is refused leaves nothing."""

    def __init__(
        self, chunks: Sequence[pa.Table] = (), note: str | None = None, pages: Mapping[Page, str] | None = None,
        old_ranks: str | None = None,
    ) -> None:  # fmt: skip
        self._chunks, self._note, self._old_ranks = list(chunks), note, old_ranks
        self._pages: dict[Page, str] = dict(pages or {})
        self._before: tuple[list[pa.Table], str | None] = ([], None)
        self._old_pages: dict[Page, str | None] = {}

    def chunks(self) -> list[pa.Table]:
        """Return the chunks in which events are held."""
        return self._chunks

    def append(self, chunk: pa.Table) -> None:
        """Add a chunk."""
        self._chunks = [*self._chunks, chunk]

    def replace(self, chunks: Sequence[pa.Table]) -> None:
        """Replace all chunks."""
        self._chunks = list(chunks)

    def note(self) -> str | None:
        """Return the small state as text."""
        return self._note

    def set_note(self, text: str) -> None:
        """Store the small state."""
        self._note = text

    def page(self, space: int, number: int) -> str | None:
        """Return a page of rank counters as text."""
        return self._pages.get((space, number))

    def set_page(self, space: int, number: int, text: str | None) -> None:
        """Store a page; None: remove it."""
        self._old_pages.setdefault((space, number), self._pages.get((space, number)))
        self._set((space, number), text)

    def _set(self, place: Page, text: str | None) -> None:
        if text is None:
            self._pages.pop(place, None)
        else:
            self._pages[place] = text

    def take_old_ranks(self) -> str | None:
        """Return the counters of an earlier version, and keep them no more."""
        text, self._old_ranks = self._old_ranks, None
        return text

    # --- Undone -------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Have what follows be such that it can be undone."""
        self._before, self._old_pages = (self._chunks, self._note), {}

    def undo(self) -> None:
        """Undo what was stored since `begin`."""
        self._chunks, self._note = self._before
        for place, text in self._old_pages.items():
            self._set(place, text)
        self._old_pages = {}

    # --- As bytes -----------------------------------------------------------------------------------------------

    def to_bytes(self, about: Mapping[str, Any]) -> bytes:
        """Return the state and what else is to be known as bytes, for `from_bytes`."""
        held = pa.concat_tables(self._chunks, promote_options="permissive") if self._chunks else None
        pages = [[space, number, text] for (space, number), text in self._pages.items()]
        head = json.dumps({"about": dict(about), "note": self._note, "pages": pages, "held": held is not None}).encode()
        body = b"" if held is None else packed(held.combine_chunks())
        whole = MARK + len(head).to_bytes(8, "little") + head + body
        return whole + blake2b(whole, digest_size=DIGEST).digest()

    @classmethod
    def from_bytes(cls, state: bytes) -> tuple[MemoryStore, dict[str, Any]]:
        """Return the state that bytes hold, and what else was to be known.

        Raises
        ------
        DataError
            If they are not what `to_bytes` gave.
        """
        whole, digest = bytes(state[:-DIGEST]), bytes(state[-DIGEST:])
        if blake2b(whole, digest_size=DIGEST).digest() != digest or not whole.startswith(MARK):
            raise DAMAGED
        at = len(MARK) + 8
        end = at + int.from_bytes(whole[len(MARK) : at], "little")
        head = json.loads(whole[at:end])
        pages = {(space, number): text for space, number, text in head["pages"]}
        return cls([unpacked(whole[end:])] if head["held"] else [], head["note"], pages), head["about"]
