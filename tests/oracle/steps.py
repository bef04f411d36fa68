"""Steps: by which part of the pattern each event of a match is taken, and the policy that stands there."""

from __future__ import annotations

from collections.abc import Iterator

from trellis.language import syntax
from trellis.language.syntax import Select

from .events import Event
from .readings import TO_COME, Composed, Pairs, Reading, Repeated, Stepped, Taken, leaves_within
from .structure import leaves

Word = tuple[str, Select]  # the variables of the part, or the repeated variable, and its policy
Left = frozenset[tuple[str, tuple[int, ...]]]  # greedy variables, each in an iteration
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


def left_by(pattern: syntax.Pattern, reading: Reading, pairs: Pairs) -> Left:
    """Give the greedy variables that the last of the pairs leaves behind: they stand between it and the one before."""
    greedy = {leaf.var for leaf in leaves(pattern) if isinstance(leaf, syntax.Kleene) and leaf.greedy}
    if len(pairs) < 2 or not greedy:
        return frozenset()
    here = [(leaf, path) for leaf, path, _ in leaves_within(reading)]
    last, new = (_place([leaf for leaf, _ in here], event) for event, _ in pairs[-2:])
    return frozenset((leaf.var, path) for leaf, path in here[last:new] if leaf.var in greedy)


def _place(taken: list[Taken], event: Event) -> int:
    return next(
        i for i, leaf in enumerate(taken) if any(one is not TO_COME and one.order == event.order for one in leaf.events)
    )
