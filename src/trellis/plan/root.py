"""The root of an automaton: the whole of a pattern as a remainder."""

from __future__ import annotations

from trellis.language import syntax as s
from trellis.language.bound import until_name
from trellis.language.groups import is_repeated
from trellis.language.printer import absent_name
from trellis.plan.remainders import (
    Alternation,
    Guard,
    Interleaving,
    Leaf,
    Loop,
    Names,
    PartEntry,
    PreviousIteration,
    Remainder,
    Watch,
    marked,
)


class StepPolicies(list[s.Select | None]):
    """The policies of steps by their numbers; None, the first, is that of SELECT. Groups are numbered here, too."""

    def __init__(self) -> None:
        super().__init__([None])
        self._known: dict[int, int] = {}
        self._groups: dict[int, int] = {}

    def number(self, node: s.Kleene | s.PolicyStep | s.Group) -> int:
        """Return the number of the step that a node's policy is of."""
        if node.policy is None:
            return 0
        if id(node) not in self._known:
            self._known[id(node)] = len(self)
            self.append(node.policy)
        return self._known[id(node)]

    def group(self, node: s.Group) -> int:
        """Return the number of a repeated group."""
        return self._groups.setdefault(id(node), len(self._groups))


def compile_pattern(pattern: s.Pattern, policies: StepPolicies) -> Remainder:
    """Return a whole pattern; of greedy variables with no event before them nothing is asked."""
    return marked(_compile(pattern, policies), Watch.UNASKED)


def _compile(pattern: s.Pattern, policies: StepPolicies, after: Names = (), groups: tuple[int, ...] = ()) -> Remainder:
    """Return a pattern that stands behind the variables `after` and inside of groups."""
    match pattern:
        case s.Single(var=var, optional=optional):
            return (Leaf(var, after, 0 if optional else 1),)
        case s.Kleene(var=var, least=least, most=most, greedy=greedy):
            until = None if pattern.until is None else until_name(var)
            return (Leaf(var, after, least, most, False, policies.number(pattern), greedy, until),)
        case s.PolicyStep(pattern=inner):
            step = policies.number(pattern)
            return (PartEntry(step, _compile(inner, policies, after, groups)),)
        case s.Absent(events=events):
            return (Guard(tuple(map(absent_name, events)), after, groups=groups),)
        case s.Or(arms=arms):
            return (Alternation(tuple(_compile(arm, policies, after, groups) for arm in arms)),)
        case s.And(arms=arms):
            return (Interleaving(tuple(_compile(arm, policies, after, groups) for arm in arms)),)
        case s.Group():
            return _compile_group(pattern, policies, after, groups)
        case s.Seq(parts=parts):
            found: Remainder = ()
            for part in parts:
                found += _compile(part, policies, after, groups)
                after = _lasts(part, after)
            return found
    raise AssertionError(pattern)


def _compile_group(group: s.Group, policies: StepPolicies, after: Names, groups: tuple[int, ...]) -> Remainder:
    """Return a group: an optional part, or a loop, each of whose iterations is later than the one before."""
    if not is_repeated(group):
        return (Alternation((_compile(group.pattern, policies, after, groups), ())),)
    number = policies.group(group)
    inside = (*groups, number)
    first = _compile(group.pattern, policies, after, inside)
    before = tuple(PreviousIteration(number, str(name)) for name in _lasts(group.pattern, ()))
    again = _compile(group.pattern, policies, before, inside)
    least = 0 if s.may_be_empty(group.pattern) else group.least  # an iteration without events leaves no trace
    return (Loop(number, first, again, least, group.most, 0, policies.number(group)),)


def _lasts(pattern: s.Pattern, before: Names) -> Names:
    """Return the variables that may have the last event up to the end of a pattern, those `before` it included."""
    match pattern:
        case s.Single(var=var) | s.Kleene(var=var):
            own: Names = (var,)
        case s.Absent():
            return before
        case s.Seq(parts=parts):
            for part in parts:
                before = _lasts(part, before)
            return before
        case s.Or(arms=arms) | s.And(arms=arms):
            own = tuple(dict.fromkeys(var for arm in arms for var in _lasts(arm, ())))
        case s.PolicyStep(pattern=inner):
            return _lasts(inner, before)
        case s.Group(pattern=inner):
            own = _lasts(inner, ())
        case _:
            raise AssertionError(pattern)
    return (*before, *own) if s.may_be_empty(pattern) else own
