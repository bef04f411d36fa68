"""The automaton of a pattern: its states, and which variable leads from one to the next.

A state is what remains to be matched. Reading an event as a variable leads to what remains after it (a partial
derivative of the pattern), so SEQ, OR, AND and Kleene variables need no cases of their own further on. NOT leaves no
trace but a guard on the transition, or on the acceptance, that crosses its place.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

from trellis.language import syntax as s

MAX_STATES = 256


@dataclass(frozen=True, slots=True)
class Transition:
    """From `source` to `target` by an event bound to `variable`; `absent` must not occur in between."""

    source: int
    variable: str
    target: int
    absent: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Acceptance:
    """A trend may end in `state`, if nothing of `absent` follows."""

    state: int
    absent: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Automaton:
    """States are numbered from 0, the initial one; `complete` is False where there are too many to build all."""

    states: int
    transitions: tuple[Transition, ...]
    accepting: tuple[Acceptance, ...]
    complete: bool = True


# What remains of a pattern: a tuple of these, one after another.
@dataclass(frozen=True, slots=True)
class _Loop:
    """A Kleene variable that has its first event."""

    var: str


@dataclass(frozen=True, slots=True)
class _All:
    """What remains of an AND: one remainder an arm."""

    arms: tuple[_Rest, ...]


_Rest = tuple["s.Pattern | _Loop | _All", ...]
_Step = tuple[str, tuple[str, ...], _Rest]  # variable, absent before it, what remains


def build_automaton(pattern: s.Pattern) -> Automaton:
    """Return the automaton of a pattern."""
    start: _Rest = (pattern,)
    numbers: dict[_Rest, int] = {start: 0}
    queue = [start]
    transitions: list[Transition] = []
    accepting: list[Acceptance] = []
    while queue:
        state = queue.pop(0)
        for absent in _endings(state):
            accepting.append(Acceptance(numbers[state], absent))
        for variable, absent, rest in _steps(state):
            if rest not in numbers:
                if len(numbers) >= MAX_STATES:
                    return Automaton(len(numbers), tuple(transitions), tuple(accepting), complete=False)
                numbers[rest] = len(numbers)
                queue.append(rest)
            transitions.append(Transition(numbers[state], variable, numbers[rest], absent))
    return Automaton(len(numbers), tuple(dict.fromkeys(transitions)), tuple(dict.fromkeys(accepting)))


def _steps(rest: _Rest) -> list[_Step]:
    """Return every event that may come next."""
    if not rest:
        return []
    head, tail = rest[0], rest[1:]
    steps = [(variable, absent, after + tail) for variable, absent, after in _head_steps(head)]
    for skipped in _head_endings(head):
        steps += [(variable, skipped + absent, after) for variable, absent, after in _steps(tail)]
    return steps


def _head_steps(head: s.Pattern | _Loop | _All) -> list[_Step]:
    match head:
        case s.Single(var=var):
            return [(var, (), ())]
        case s.Kleene(var=var) | _Loop(var=var):
            return [(var, (), (_Loop(var),))]
        case s.Seq(parts=parts):
            return _steps(parts)
        case s.Or(arms=arms):
            return [step for arm in arms for step in _steps((arm,))]
        case s.And(arms=arms):
            return _head_steps(_All(tuple((arm,) for arm in arms)))
        case _All(arms=rests):
            return [
                (variable, absent, _joined((*rests[:i], after, *rests[i + 1 :])))
                for i, rest in enumerate(rests)
                for variable, absent, after in _steps(rest)
            ]
        case _:
            return []


def _joined(arms: tuple[_Rest, ...]) -> _Rest:
    left = tuple(arm for arm in arms if arm)
    if not left:
        return ()
    return left[0] if len(left) == 1 else (_All(left),)


def _endings(rest: _Rest) -> list[tuple[str, ...]]:
    """Return, for each way in which nothing more is needed, what must be absent for it."""
    ways = product(*(_head_endings(head) for head in rest))
    return list(dict.fromkeys(sum(way, ()) for way in ways))


def _head_endings(head: s.Pattern | _Loop | _All) -> list[tuple[str, ...]]:
    match head:
        case _Loop():
            return [()]
        case s.Absent(events=events):
            return [tuple(e.var for e in events)]
        case s.Seq(parts=parts):
            return _endings(parts)
        case s.Or(arms=arms):
            return [way for arm in arms for way in _head_endings(arm)]
        case _All(arms=rests):
            return list(dict.fromkeys(sum(way, ()) for way in product(*(_endings(r) for r in rests))))
        case _:
            return []
