"""Steps: by which part of the pattern each event of a match is taken, and the policy that stands there."""

from __future__ import annotations

from collections.abc import Iterator

from trellis.language import syntax
from trellis.language.syntax import Select

from .events import Event
from .readings import EDGE, Composed, Pairs, Reading, Repeated, Stepped, Taken, earliest, latest
from .structure import leaves

Word = tuple[str, Select]  # the variables of the part, or the repeated variable, and its policy
Left = frozenset[tuple[str, tuple[int, ...], int]]  # greedy variables, each in an iteration and behind an event
Ways = tuple[Word | None, ...]  # for each event of a match the word of its step; None where SELECT decides


def steps_of(reading: Reading, pairs: Pairs) -> Ways:
    """Give the word of the step into each of the pairs; the first has none, as no step leads to it."""
    words = dict(_words(reading))
    return tuple(None if i == 0 else words.get(event.order) for i, (event, _) in enumerate(pairs))


def _words(reading: Reading) -> Iterator[tuple[int, Word]]:
    """Yield the events that a word selects, outer words first: the innermost counts."""
    match reading:
        case Stepped(node, inner):
            first = min(_orders(inner), default=None)
            if first is not None:
                yield first, ("into " + " ".join(leaf.var for leaf in leaves(node.pattern)), node.policy)
            yield from _words(inner)
        case Composed(_, parts):
            for part in parts:
                if not isinstance(part, syntax.Absent):
                    yield from _words(part)
        case Repeated(node, parts):
            for part in parts[1:] if node.policy else ():
                first = min(_orders(part), default=None)
                if first is not None:
                    yield first, ("again " + " ".join(leaf.var for leaf in leaves(node.pattern)), node.policy)
            for part in parts:
                yield from _words(part)
        case Taken(node):
            policy = getattr(node, "policy", None)
            for order in sorted(_orders(reading))[1:] if policy else ():
                yield order, (f"again {node.var}", policy)


def _orders(reading: Reading) -> list[int]:
    return [event.order for leaf in reading.leaves() for event in leaf.events if isinstance(event, Event)]


def left_by(reading: Reading, pairs: Pairs) -> Left:
    """Give the greedy variables that the last of the pairs leaves behind: it is the first of what follows them."""
    return frozenset(
        (var, path, after.order)
        for var, path, after, before in _greedy(reading, EDGE, EDGE, ())
        if before is pairs[-1][0] and isinstance(after, Event)
    )


def _greedy(
    reading: Reading, after: Event, before: Event, path: tuple[int, ...]
) -> Iterator[tuple[str, tuple[int, ...], Event, Event]]:
    """Yield the greedy variables with their iterations, and the events between which they may take no more.

    These are the last event of the variable, or of what stands before it if it has none, and the first of what follows
    it: in its own arm of an AND, or behind that.
    """
    match reading:
        case Taken(node, events):
            if isinstance(node, syntax.Kleene) and node.greedy:
                yield node.var, path, events[-1] if events else after, before
        case Stepped(_, inner):
            yield from _greedy(inner, after, before, path)
        case Composed(node, parts) | Repeated(node, parts):
            for i, part in enumerate(parts):
                left, right = after, before
                if not isinstance(node, syntax.And):
                    left, right = latest(parts[:i], after), earliest(parts[i + 1 :], before)
                if not isinstance(part, syntax.Absent):
                    yield from _greedy(part, left, right, (*path, i + 1) if isinstance(reading, Repeated) else path)
