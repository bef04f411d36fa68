"""The value that ORDER BY compares results by, as one number that adds up along a result: more is better.

Where not all keys add up, or not all fit, the first of them tell at least that a result is better than another: then
values are rounded, once upwards and once downwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from trellis.events.slice import Slice
from trellis.kernels.best import nodes
from trellis.language.bound import BoundQuery
from trellis.operators.patterns.end_keys import EndKeys
from trellis.operators.patterns.paths import BoundVertices
from trellis.operators.patterns.structure import PatternStructure
from trellis.operators.trends.keys import Flags, OrderKeys, OrderWord, make_keys
from trellis.plan.pivots import is_needed

Ints = NDArray[np.int64]
Gives = tuple[Ints, Ints, Ints]
VALUE_BITS = 61
ROUNDED_BITS = 40  # of a key whose numbers are rounded


@dataclass(frozen=True)
class OrderValues:
    """The parts of vertices in the value of a result: anywhere, and besides as its first and as its last event.

    Attributes
    ----------
    most, least
        The numbers rounded upwards and downwards.
    exact
        Whether they are the same, and tell all that ORDER BY asks.
    """

    most: Gives
    least: Gives
    exact: bool


@dataclass(frozen=True)
class _KeyPart:
    """The numbers of one key: as in `OrderValues`, with the greatest that they add up to."""

    most: Gives
    least: Gives
    bound: int
    exact: bool


def order_values(
    structure: PatternStructure, bound: BoundQuery, vertices: BoundVertices, longest: int
) -> OrderValues | None:
    """Return the values of vertices for results of at most `longest` events; None where no key adds up."""
    automaton, events = structure.plan.automaton, structure.events
    ends = {one.state for one in automaton.accepting}
    outer = (
        {t.variable for t in automaton.transitions if t.source == 0},
        {t.variable for t in automaton.transitions if t.target in ends},
    )
    translated = EndKeys(bound, events, vertices, structure.variables.codes, outer, listed=True)
    every = np.ones(len(vertices.events), np.bool_)
    for number in range(len(bound.order_by), 0, -1):
        orderings = translated.translated(bound.order_by[:number])
        if orderings is None:
            continue
        alone = _columns_alone(events, translated.columns, vertices.events)
        keys = make_keys(orderings, alone, every, longest)
        if keys is not None:
            met = [_is_met(structure, vertices, flag) for flag in keys.flags]
            return _packed(keys, met, longest, number == len(bound.order_by))
    return None


def _is_met(structure: PatternStructure, vertices: BoundVertices, flag: Flags) -> bool:
    """Return whether each result has an event with a flag: all those of some variable have it that each has."""
    automaton, variables = structure.plan.automaton, vertices.variables
    met = (name for name, code in structure.variables.codes.items() if flag[variables == code].all())
    return any(is_needed(automaton, name) for name in met)


def _packed(keys: OrderKeys, met: Sequence[bool], longest: int, every: bool) -> OrderValues | None:
    """Return words as one number, the most important ones in its highest bits, as far as they fit."""
    words = [word for word in keys.words if word.flag is None or not met[word.flag]]
    plain = [*takewhile(lambda word: not _is_odd(word), words)]
    lower = [*takewhile(lambda word: word.kind == nodes.LOW, words[len(plain) :])]
    shown = () if keys.rounded is None else keys.words[keys.rounded.words]
    parts = [_exact(word, longest) for word in plain]
    if plain and (lower or any(plain[-1] is word for word in shown)):  # the first word of one that is rounded
        parts[-1] = _rounded(plain[-1], lower, longest)
    fitting, scale = list[_KeyPart](), 1
    for part in parts:
        scale *= 2 * part.bound + 1
        if scale.bit_length() > VALUE_BITS:
            break
        fitting.append(part)
    if not fitting:
        return None
    exact = every and len(fitting) == len(words) and not keys.closed and all(part.exact for part in fitting)
    most, least = ([np.zeros(len(parts[0].most[0]), np.int64) for _ in range(3)] for _ in range(2))
    for part in fitting:
        for sums, gives in ((most, part.most), (least, part.least)):
            for k in range(3):
                sums[k] = sums[k] * (2 * part.bound + 1) + gives[k]
    return OrderValues(tuple(most), tuple(least), exact)  # type: ignore[arg-type]


def _exact(word: OrderWord, longest: int) -> _KeyPart:
    gives = tuple(one * word.sign for one in _given(word))
    most = [int(np.abs(one).max(initial=0)) for one in gives]
    return _KeyPart(gives, gives, most[0] * longest + most[1] + most[2], True)  # type: ignore[arg-type]


def _rounded(high: OrderWord, lower: Sequence[OrderWord], longest: int) -> _KeyPart:
    """Return numbers without their lowest bits: what is shown as equal is equal, too, or next to it."""
    highs = _given(high)
    lows = _given(lower[0]) if lower else [0 * one for one in highs]
    widest = max(int(np.abs(one).max(initial=0)) for one in highs)
    bits = widest.bit_length() + nodes.WORD + longest.bit_length() + 2
    shift = max(0, bits - ROUNDED_BITS)
    below, above = [], []
    for up, down in zip(highs, lows, strict=True):
        if shift >= nodes.WORD:
            floor = up >> (shift - nodes.WORD)
            exact = (floor << (shift - nodes.WORD) == up) & (down == 0)
        else:
            floor = (up << (nodes.WORD - shift)) + (down >> shift)
            exact = (down >> shift) << shift == down
        below.append(floor)
        above.append(floor + (~exact | (len(lower) > 1)))
    given = ([-one for one in below], [-one for one in above]) if high.sign < 0 else (above, below)
    most = [max(int(np.abs(a).max(initial=0)), int(np.abs(b).max(initial=0))) for a, b in zip(*given, strict=True)]
    return _KeyPart(tuple(given[0]), tuple(given[1]), most[0] * longest + most[1] + most[2], False)


def _given(word: OrderWord) -> list[Ints]:
    """Return the parts of vertices in a word: anywhere, as the first and as the last one."""
    size = max(len(one) for one in (word.each, word.first, word.last) if one is not None)
    return [np.zeros(size, np.int64) if one is None else one for one in (word.each, word.first, word.last)]


def _is_odd(word: OrderWord) -> bool:
    return bool(word.kind != nodes.HIGH or word.nth is not None or word.flag is not None)


def _columns_alone(events: Slice, columns: dict[str, pa.Array], rows: Ints) -> Slice:
    """Return a slice of vertices that has some columns."""
    return replace(events, columns=columns, times=events.times[rows], usable=np.ones(len(rows), np.bool_))
