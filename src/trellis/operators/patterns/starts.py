"""How many events begin a match, where that needs no counting: of parts one after another without conditions between.

Such a part does best to take the next event that it can, so whether an event begins a match is told by where the first
match from there on ends.
"""

from __future__ import annotations

import numpy as np

from trellis.events.slice import Slice, next_of
from trellis.events.variables import usable_events
from trellis.language import syntax as s
from trellis.language.bound import ConditionKind, WindowKind
from trellis.operators.patterns.absent import first_end
from trellis.plan.plan import Plan


def count_starts(plan: Plan, events: Slice) -> int | None:
    """Return how many events begin a match, one in several windows in each; None where conditions compare events."""
    bound = plan.bound
    parts = bound.pattern.parts if isinstance(bound.pattern, s.Seq) else (bound.pattern,)
    first = parts[0]
    if (
        not isinstance(first, s.Single)
        or first.optional
        or bound.select is not s.Select.ANY
        or bound.having
        or events.begins is not None
        or any(condition.kind is not ConditionKind.CONSTANT for condition in bound.conditions)
        or any(not _takes_next(node) for node in s.walk(bound.pattern) if isinstance(node, s.Pattern))
    ):
        return None
    size = len(events)
    usable = usable_events(bound, plan.constant, events.columns, size)
    following = {name: next_of(flags) for name, flags in usable.items()}
    later = np.append(events.later, size)
    starts = np.flatnonzero(usable[first.var])
    needed = tuple(part for part in parts[1:] if not s.may_be_empty(part))
    ends = first_end(s.Seq(needed), later[starts], later, following) if needed else starts
    if bound.window.kind is WindowKind.SPAN:
        return int((ends < events.until[starts]).sum())
    reaching = np.searchsorted(ends, events.groups.hi) - np.searchsorted(starts, events.groups.lo)
    return int(np.maximum(reaching, 0).sum())


def _takes_next(pattern: s.Pattern) -> bool:
    """Return whether a pattern takes events by skip-till-any, and forbids none."""
    match pattern:
        case s.Kleene(policy=policy, greedy=greedy, until=until):
            return policy is None and not greedy and until is None
        case s.Group(policy=policy):
            return policy is None
    return isinstance(pattern, s.Single | s.Seq | s.Or)
