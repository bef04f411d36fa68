"""Exact answers: the engine over the events of those leaves that may matter.

A result rests on its own events, on those that would make it longer, and on those that NOT or the very next place
forbid. All of these lie in leaves that the chains of the question tell; so the engine says of the events of these
leaves what it says of all events.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from trellis.archive.answers import Answerer, QuestionOptions, Text
from trellis.archive.leaves import Flags, Ints, Policy, Question, Reading
from trellis.archive.search import LeafSearch
from trellis.archive.store import Manifest, UnreadableError, events_file

POSITION = "__position"


@dataclass(frozen=True)
class Exact:
    """An exact answer, and what of the history it took.

    Attributes
    ----------
    trends
        What `query.detect` gives over all events.
    needed, read, events
        How many events lie in leaves that may matter, how many were read, and how many there are.
    """

    trends: Any
    needed: int
    read: int
    events: int


def needed(answerer: Answerer, text: Text) -> tuple[Flags, bool]:
    """Return the leaves that the engine must see, and whether only the first event of a gap tells that there is one."""
    leaves = answerer.leaves
    every = np.ones(len(leaves), np.bool_)
    if not text.plain:
        return every if text.names is None else leaves.has(text.names), False
    question = answerer.search(text, QuestionOptions()).question
    if text.untyped:
        return every, False  # any leaf may hold an event without a type
    if question.policy is Policy.CONTIGUOUS and question.partitioned:
        return _of_keys(answerer, text), False
    spread = None
    if question.by_steps:
        spread = max(ceil((sequence.steps - 1) / leaves.capacity) for sequence in text.sequences)
    search = LeafSearch(Question(question.sequences, Policy.ANY, Reading.MAYBE, question.within, spread=spread), leaves)
    needed = search.needed()
    several = len(text.sequences) > 1 and question.policy is Policy.NEXT
    if several or text.forbidden:
        wanted = text.forbidden.union(*(sequence.names for sequence in text.sequences if several))
        needed |= leaves.has(wanted) & _inside(search)
    return needed, question.policy is Policy.CONTIGUOUS


def _inside(search: LeafSearch) -> Flags:
    """Return the leaves from the start of some chain to its last end."""
    intervals = search.intervals()
    inside = np.zeros(len(search.leaves) + 1, np.int64)
    np.add.at(inside, intervals.start, 1)
    np.add.at(inside, intervals.last_end + 1, -1)
    flags: Flags = np.cumsum(inside)[:-1] > 0
    return flags


def _of_keys(answerer: Answerer, text: Text) -> Flags:
    """Return the leaves with an event of a key to which it may have happened: neighbours are those of the key."""
    contents = answerer.contents
    if text.partition != [answerer.manifest.key] or contents.keyless:
        return np.ones(len(answerer.leaves), np.bool_)
    keys = contents.keys
    chosen = np.isin(keys.numbers, answerer.key_intervals(text, Reading.MAYBE).key)
    return np.isin(contents.first_leaves, keys.leaves[chosen])


def gaps_after(needed: Flags) -> Ints:
    """Return the leaves that are left out behind one that is not: their first events end what is contiguous."""
    return np.flatnonzero(~needed[1:] & needed[:-1]) + 1


class EventReader:
    """Reads events by their positions."""

    def __init__(self, directory: Path, manifest: Manifest, held: pa.Table, checked: set[str]) -> None:
        self.directory, self.manifest, self.held, self.checked = directory, manifest, held, checked
        self.read = 0

    def rows(self, answerer: Answerer, needed: Flags, with_gaps: bool) -> pa.Table:
        """Return the events of leaves with their positions; the first event of each gap, if asked for, has no name."""
        entries = answerer.contents.entries
        alone = entries["at"][gaps_after(needed)] if with_gaps else np.empty(0, np.int64)
        tables = [self.held.schema.append(pa.field(POSITION, pa.int64())).empty_table()]
        for table, at in self._groups(entries, needed, alone):
            positions = at + np.arange(table.num_rows)
            place = np.searchsorted(entries["at"], positions, side="right") - 1
            chosen = needed[place] & (place >= 0)  # a file may begin with events that were dropped
            nameless = np.isin(positions, alone)
            if nameless.any():
                place = table.column_names.index(self.manifest.type)
                names = table[place].combine_chunks()
                names = pa.compute.if_else(pa.array(nameless), pa.scalar(None, names.type), names)
                table = table.set_column(place, table.field(place), names)
            table = table.append_column(POSITION, pa.array(positions))
            tables.append(table.filter(pa.array(chosen | nameless)))
        return pa.concat_tables(tables)

    def _groups(self, entries: np.ndarray, needed: Flags, alone: Ints) -> Any:
        """Yield the row groups with something to read, and the position of their first event."""
        wanted = _Spans(entries, needed, alone)
        for name, first, rows in self.manifest.parts:
            if not wanted.meet(first, first + rows):
                continue
            try:
                with events_file(self.directory, name, self.manifest, self.checked) as file:
                    at = first
                    for group in range(file.metadata.num_row_groups):
                        number = file.metadata.row_group(group).num_rows
                        if wanted.meet(at, at + number):
                            self.read += number
                            yield file.read_row_group(group), at
                        at += number
            except (OSError, pa.ArrowException) as problem:
                raise UnreadableError(
                    f"{self.directory / name} cannot be read: {problem}", "The archive is damaged."
                ) from None
        if self.held.num_rows and wanted.meet(self.manifest.events, self.manifest.events + self.held.num_rows):
            self.read += self.held.num_rows
            yield self.held, self.manifest.events


class _Spans:
    """The positions that are wanted."""

    def __init__(self, entries: np.ndarray, needed: Flags, alone: Ints) -> None:
        begins = np.concatenate([entries["at"][needed], alone])
        ends = np.concatenate([(entries["at"] + entries["events"])[needed], alone + 1])
        self.begins, self.ends = np.sort(begins), np.sort(ends)

    def meet(self, low: int, high: int) -> bool:
        """Return whether some lie from `low` to `high`."""
        begun = np.searchsorted(self.begins, high, side="left")
        over = np.searchsorted(self.ends, low, side="right")
        return bool(begun > over)
