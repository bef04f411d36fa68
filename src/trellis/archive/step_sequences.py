"""A pattern as step sequences: lists of steps, each a set of names, with what must not be between them.

Names are event types. Steps of one AND are a *block*: they may come in any order.

Words that only narrow what matches (policies of steps, greedy, UNTIL), optional parts, and a NOT at an edge or inside
AND, leave no trace: where the sequences are not there, the pattern cannot have happened. `is_plain` tells whether they
say all of a pattern.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from trellis.archive.values import ValuedName
from trellis.errors import UsageError
from trellis.plan.automaton import Automaton
from trellis.plan.remainders import (
    Alternation,
    Guard,
    Interleaving,
    Item,
    Leaf,
    Loop,
    PartEntry,
    Remainder,
    leaves_and_guards,
)

MOST_SEQUENCES = 1000
Name = str | ValuedName
Names = frozenset[Name] | None  # None: any name


@dataclass(frozen=True)
class StepSequence:
    """Blocks of steps one after another.

    Attributes
    ----------
    blocks
        For each block the sets of names of its steps.
    forbidden
        What NOT forbids between each block and the next.
    loose
        Whether two blocks are steps of one AND, so that they may be in one leaf under either reading.
    kleene
        Whether some step stands for several events.
    """

    blocks: tuple[tuple[Names, ...], ...]
    forbidden: tuple[frozenset[str], ...] = ()
    loose: tuple[bool, ...] = ()
    kleene: bool = False

    @property
    def steps(self) -> int:
        """The number of steps."""
        return sum(map(len, self.blocks))

    @property
    def plain(self) -> bool:
        """Whether it is single steps one after another, with nothing forbidden."""
        return all(len(block) == 1 for block in self.blocks) and not any(self.forbidden)

    @property
    def names(self) -> set[str]:
        """All names of its steps, and those that it forbids."""
        of_steps = {plain(name) for block in self.blocks for some in block if some is not None for name in some}
        return of_steps.union(*self.forbidden)

    @property
    def untyped(self) -> bool:
        """Whether any name fits some step."""
        return any(some is None for block in self.blocks for some in block)


def is_plain(root: Remainder, types: Mapping[str, str | None]) -> bool:
    """Return whether step sequences say all of a pattern."""
    for i, item in enumerate(root):
        if isinstance(item, Loop | PartEntry):
            return False
        if isinstance(item, Guard) and (i in (0, len(root) - 1) or not all(map(_is_single, item.absent))):
            return False
        if isinstance(item, Leaf) and (
            not item.least or item.again or item.greedy or item.until is not None or item.most not in (None, item.least)
        ):
            return False
        inside_and = isinstance(item, Interleaving)
        if inside_and and _repeats(item, types):
            return False
        for arm in item.arms if isinstance(item, Alternation | Interleaving) else ():
            if not arm or not is_plain(arm, types) or (inside_and and any(isinstance(one, Guard) for one in arm)):
                return False
    return True


def _repeats(item: Item, types: Mapping[str, str | None]) -> bool:
    """Return whether a type stands twice in an AND."""
    named = [types[one.variable] for one in leaves_and_guards((item,)) if isinstance(one, Leaf)]
    return len(set(named)) < len(named)


def _is_single(absent: str) -> bool:
    """Return whether what a NOT forbids is one event, and not a pattern."""
    return "(" not in absent


def plain(name: Name) -> str:
    """Return a name without conditions."""
    return name.name if isinstance(name, ValuedName) else name


def step_sequences_of(automaton: Automaton, types: Mapping[str, Name | None]) -> list[StepSequence]:
    """Return the step sequences of a pattern; `types` are those of its variables."""
    joined = list(dict.fromkeys(one for one in _one_after_another(automaton.root, types) if one.blocks))
    if not joined:
        raise UsageError("the pattern has no step", "Name an event type, such as SEQ(A, B).")
    return joined


def _expand(
    item: Leaf | Alternation | Interleaving | PartEntry | Loop, types: Mapping[str, Name | None]
) -> list[StepSequence]:
    if isinstance(item, Loop):
        return _iterations(item, types)
    if isinstance(item, PartEntry):
        return _one_after_another(item.rest, types)
    if isinstance(item, Leaf):
        if not item.least:
            return [StepSequence(())]
        steps = ((_names(types[item.variable]),),) * item.least
        between = item.least - 1
        return [StepSequence(steps, (frozenset(),) * between, (False,) * between, item.most != item.least)]
    arms = [_one_after_another(arm, types) for arm in item.arms]
    return _alternatives(arms) if isinstance(item, Alternation) else _in_any_order(arms)


def _iterations(loop: Loop, types: Mapping[str, Name | None]) -> list[StepSequence]:
    """Return the sequences of as many iterations of a group as there must be."""
    if not loop.least:
        return [StepSequence(())]
    found = [replace(one, kleene=True) for one in _one_after_another(loop.first * loop.least, types)]
    return found if found else [StepSequence(())]


def _names(type_: Name | None) -> Names:
    return None if type_ is None else frozenset({type_})


def _is_step(sequence: StepSequence) -> bool:
    return len(sequence.blocks) == 1 == len(sequence.blocks[0])


def _alternatives(arms: list[list[StepSequence]]) -> list[StepSequence]:
    """Return the sequences of an OR: one with a set of names where each arm is one."""
    sequences = [sequence for arm in arms for sequence in arm]
    if all(_is_step(sequence) and not sequence.kleene and not sequence.untyped for sequence in sequences):
        union = frozenset(name for sequence in sequences for name in sequence.blocks[0][0] or ())
        return [StepSequence(((union,),))]
    return sequences


def _in_any_order(arms: list[list[StepSequence]]) -> list[StepSequence]:
    if all(len(arm) == 1 and _is_step(arm[0]) for arm in arms):
        sets = tuple(arm[0].blocks[0][0] for arm in arms)
        named = [plain(name) for some in sets if some is not None for name in some]
        if len(set(named)) == len(named):
            return [StepSequence((sets,), kleene=any(arm[0].kleene for arm in arms))]
    joined = [StepSequence(())]
    for arm in arms:
        joined = [merged for one in joined for other in arm for merged in _interleaved(one, other)]
        if len(joined) > MOST_SEQUENCES:
            raise UsageError(
                f"the pattern has more than {MOST_SEQUENCES:,} orders of its steps", "Use fewer steps inside AND."
            )
    return joined


def _interleaved(one: StepSequence, other: StepSequence) -> list[StepSequence]:
    """Return the orders in which two sequences may run side by side; what they forbid is not looked at."""
    if not one.blocks or not other.blocks:
        return [one if one.blocks else other]
    kleene = one.kleene or other.kleene

    def orders(
        left: tuple[tuple[Names, ...], ...], right: tuple[tuple[Names, ...], ...]
    ) -> list[list[tuple[Names, ...]]]:
        if not left or not right:
            return [list(left or right)]
        first = [[left[0], *rest] for rest in orders(left[1:], right)]
        return first + [[right[0], *rest] for rest in orders(left, right[1:])]

    return [
        StepSequence(tuple(blocks), (frozenset(),) * (len(blocks) - 1), (True,) * (len(blocks) - 1), kleene)
        for blocks in orders(one.blocks, other.blocks)
    ]


def _one_after_another(rest: Remainder, types: Mapping[str, Name | None]) -> list[StepSequence]:
    joined, absent = [StepSequence(())], frozenset[str]()
    for item in rest:
        if isinstance(item, Guard):
            absent |= frozenset(plain(name) for one in item.absent if (name := types.get(one)) is not None)
            continue
        sequences = _expand(item, types)
        joined = [_joined(one, absent, other) for one in joined for other in sequences]
        absent = frozenset()
        if len(joined) > MOST_SEQUENCES:
            raise UsageError(f"the pattern has more than {MOST_SEQUENCES:,} alternatives", "Use fewer of them.")
    return joined


def _joined(one: StepSequence, absent: frozenset[str], other: StepSequence) -> StepSequence:
    if not one.blocks or not other.blocks:
        return one if one.blocks else other
    return StepSequence(
        one.blocks + other.blocks,
        (*one.forbidden, absent, *other.forbidden),
        (*one.loose, False, *other.loose),
        one.kleene or other.kleene,
    )
