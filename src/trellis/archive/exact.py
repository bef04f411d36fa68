"""Exact answers: the engine over the events of those leaves that may matter.

A result rests on its own events, on those that would make it longer, and on those that NOT or the very next place
forbid. All of these lie in leaves that the chains of the question tell; so the engine says of the events of these
leaves what it says of all events.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np

from trellis.archive.answers import Answerer, QuestionOptions, Text
from trellis.archive.leaves import Flags, Policy, Question, Reading
from trellis.archive.reading import WantedRows
from trellis.archive.search import LeafSearch


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


def needed(answerer: Answerer, text: Text) -> WantedRows:
    """Return the rows that the engine must see: of leaves, the events of some names where others do not matter."""
    leaves = answerer.leaves
    every = np.ones(len(leaves), np.bool_)
    if not text.plain:
        return WantedRows(every) if text.names is None else WantedRows(leaves.has(text.names), text.names)
    question = answerer.search(text, QuestionOptions()).question
    if text.untyped:
        return WantedRows(every)  # any leaf may hold an event without a type
    if question.policy is Policy.CONTIGUOUS and question.partitioned:
        return WantedRows(_of_keys(answerer, text))
    spread = None
    if question.by_steps:
        spread = max(ceil((sequence.steps - 1) / leaves.capacity) for sequence in text.sequences)
    search = LeafSearch(Question(question.sequences, Policy.ANY, Reading.MAYBE, question.within, spread=spread), leaves)
    needed = search.needed()
    several = len(text.sequences) > 1 and question.policy is Policy.NEXT
    if several or text.forbidden:
        wanted = text.forbidden.union(*(sequence.names for sequence in text.sequences if several))
        needed |= leaves.has(wanted) & _inside(search)
    if question.policy is Policy.CONTIGUOUS:
        return WantedRows(needed, with_gaps=True)
    return WantedRows(needed, text.forbidden.union(*(sequence.names for sequence in text.sequences)))


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
