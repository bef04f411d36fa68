"""The ranks of matches of joins that are known by their events: how many come before each, counted and not walked.

Of the matches that share the first events with one, those that go on with an earlier event than it are all of them
but those whose other events are at its next one or later. So two counts for each event of a match tell its rank.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.events.slice import Ints
from trellis.operators.batch import NO_RANK, RANK_LIMIT
from trellis.operators.joins.counting import Tasks
from trellis.operators.joins.structure import JoinStructure, numbered
from trellis.operators.joins.tables import SlotArm

Before = Callable[[Ints, Ints], NDArray[Any]]  # for groups and events, how many matches of the group begin before
Ways = dict[
    tuple[SlotArm, tuple[int, ...]], tuple[Ints, Ints]
]  # the rows that slots may have so, with their candidates


def ranks_of(
    structure: JoinStructure, groups: Ints, positions: Ints, variables: Ints, lengths: Ints, before: Before | None
) -> Ints:
    """Return the rank of matches in their groups; `NO_RANK` where it does not fit 64 bits.

    Parameters
    ----------
    structure
        The candidates and counts.
    groups, positions, variables, lengths
        The group of each match, its events and their variables, a row for each match, and how many these are.
    before
        Gives how many matches begin before an event; by default they are counted.
    """
    total = _numbers_before(structure, groups, positions[:, 0], before).astype(object)
    rows = np.arange(len(groups))
    ways: Ways = {(arm, ()): (rows, np.empty((len(rows), 0), np.int64)) for arm in structure.signed}
    for depth in range(positions.shape[1]):
        ways = _bound(structure, ways, positions[:, depth])
        complete = {key: of for key, of in ways.items() if len(key[1]) == len(key[0].slots)}
        total += _alike(structure, complete, groups, variables, lengths, depth + 1)
        ways = {key: of for key, of in ways.items() if key not in complete}
        if depth + 1 == positions.shape[1]:
            break
        for (arm, slots), (own, cands) in ways.items():
            longer = lengths[own] > depth + 1
            own, cands = own[longer], cands[longer]
            here, there = positions[own, depth] + 1, positions[own, depth + 1]
            twice = np.concatenate([cands, cands])
            both = _count(structure, arm, slots, np.append(own, own), groups, np.append(here, there), twice)
            total[own] += (both[: len(own)] - both[len(own) :]) * arm.arm.sign
            ways[arm, slots] = own, cands
    return np.array([rank if rank < RANK_LIMIT else NO_RANK for rank in total.tolist()], np.int64)


def _numbers_before(structure: JoinStructure, groups: Ints, events: Ints, before: Before | None) -> NDArray[Any]:
    """Return how many matches of a group begin before an event: by counts of all from there on, or of first events."""
    if before is not None:
        return before(groups, events)
    both = np.stack([np.append(groups, groups), np.append(structure.events.groups.lo[groups], events)])
    (group, lo), place = np.unique(both, axis=1, return_inverse=True)
    if not structure.candidates.is_span and structure.counts_sooner_whole(len(lo)):
        numbers: NDArray[Any] = np.zeros(len(lo), object)
        for arm in structure.signed:
            numbers -= _count(structure, arm, (), np.arange(len(lo)), group, lo) * arm.arm.sign
    else:
        begins, firsts, ends = structure.firsts
        size = len(structure.events) + 1
        of_group = np.repeat(np.arange(len(begins) - 1), np.diff(begins))
        numbers = np.append(ends, 0)[np.searchsorted(of_group * size + firsts, group * size + lo) - 1]
    whole = numbers[place.ravel()]
    return whole[len(groups) :] - whole[: len(groups)]


def _bound(structure: JoinStructure, ways: Ways, events: Ints) -> Ways:
    """Return the ways that bind one more event of each match."""
    found: Ways = {}
    for (arm, slots), (own, cands) in ways.items():
        for slot in structure.counter.open_slots(arm, slots):
            of_slot = structure.candidates.of_slot[slot]
            place = np.minimum(np.searchsorted(of_slot, events[own]), len(of_slot) - 1)
            fits = of_slot[place] == events[own] if len(of_slot) else np.zeros(len(own), np.bool_)
            if fits.any():
                begin = int(structure.candidates.tables.begin[slot])
                longer = np.concatenate([cands[fits], place[fits].reshape(-1, 1) + begin], axis=1)
                found[arm, (*slots, slot)] = own[fits], longer
    return found


def _alike(
    structure: JoinStructure, complete: Ways, groups: Ints, variables: Ints, lengths: Ints, depth: int
) -> NDArray[Any]:
    """Return how many matches of the same events come before each that has these, or more and these first."""
    seen: dict[tuple[int, ...], NDArray[np.bool_]] = {}
    for (arm, slots), (own, cands) in complete.items():
        if arm.arm.sign < 0:
            continue
        codes = tuple(structure.codes[structure.candidates.variable[slot]] for slot in slots)
        ahead = lengths[own] > depth
        for place in range(depth - 1, -1, -1):  # by the first variable that differs
            mine = variables[own, place]
            ahead = np.where((lengths[own] > depth) | (mine == codes[place]), ahead, mine > codes[place])
        own, cands = own[ahead], cands[ahead]
        if len(own):
            last = structure.candidates.tables.events[cands[:, -1]]
            holds = _count(structure, arm, slots, own, groups, last + 1, cands) > 0
            flags = seen.setdefault(codes, np.zeros(len(groups), np.bool_))
            flags[own[holds.astype(np.bool_)]] = True
    return sum((flags.astype(object) for flags in seen.values()), np.zeros(len(groups), object))


def _count(
    structure: JoinStructure, arm: SlotArm, slots: tuple[int, ...], own: Ints, groups: Ints, lo: Ints,
    cands: Ints | None = None,
) -> NDArray[Any]:  # fmt: skip
    """Return how many matches of an arm have candidates for slots, and their other events from `lo` on."""
    bounds, group = structure.events.groups, groups[own]
    hi = bounds.hi[group]
    if cands is not None and structure.candidates.is_span:
        hi = np.minimum(hi, structure.events.until[structure.candidates.tables.events[cands[:, 0]]])
    tasks = Tasks(lo, hi, bounds.lo[group], bounds.hi[group], group)
    counter = structure.counter
    return numbered(counter.exactly(lambda numbers: counter.of_tasks(arm, tasks, numbers, slots, cands)))
