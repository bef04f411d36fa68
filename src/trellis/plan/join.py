"""The view of a pattern without repetition as joins: variables, a partial order of time, and NOTs between them.

OR makes several joins, its *arms*; a match is a match of one of them. SEQ orders all events of a part before those of
the next. AND orders nothing between its arms. A NOT is a gap between the last event of what stands before it and the
first of what follows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import combinations, product

from trellis.language import syntax as s
from trellis.language.bound import BoundQuery, Column, Condition, Constant, Value, columns_of, with_columns
from trellis.language.printer import absent_name
from trellis.plan.relation import terms

MOST_ARMS = 16
MOST_VARIABLES = 48  # of all arms together: they are bits of a word
MOST_TRIED = 10  # variables of which every choice is tried
MOST_ALIKE = 4  # arms of the same variables, whose common matches are counted once

Names = tuple[str, ...]


@dataclass(frozen=True)
class Gap:
    """A NOT: no event that fits `absent` between the last event of `after` and the first of `before`.

    Where there are none of these, the gap reaches to the edge of the window or span.
    """

    absent: str
    after: Names = ()
    before: Names = ()


@dataclass(frozen=True)
class JoinTerm:
    """A condition, one of those that are joined by AND: its variables in the order of the pattern, without NOT's."""

    condition: Condition
    variables: Names
    absent: str | None = None


@dataclass(frozen=True)
class JoinArm:
    """One way to match: all of `variables`.

    Attributes
    ----------
    variables
        The variables, in the order of the pattern.
    order
        The pairs of them of which the first must be earlier than the second.
    gaps
        The NOTs.
    terms
        The conditions that are asked of its variables.
    sign
        1; for the matches that several arms have in common, which are counted once, -1 or 1.
    """

    variables: Names
    order: frozenset[tuple[str, str]] = frozenset()
    gaps: tuple[Gap, ...] = ()
    terms: tuple[JoinTerm, ...] = ()
    sign: int = 1


@dataclass(frozen=True)
class FixedJoin:
    """A pattern as joins.

    Attributes
    ----------
    arms
        The arms of OR, or the only one.
    common
        The matches that arms of the same variables have in common, with the sign by which they correct the count.
    """

    arms: tuple[JoinArm, ...]
    common: tuple[JoinArm, ...] = ()


def fixed_join(bound: BoundQuery) -> FixedJoin | None:
    """Return the pattern of a query as joins; None if it repeats, or has too many arms.

    None, too, where a match of one arm may be part of a longer one of another, unless all are reported.
    """
    if bound.select is not s.Select.ANY or not bound.fixed or _number_of_arms(bound.pattern) > MOST_ARMS:
        return None
    if any(isinstance(node, s.PolicyStep | s.Group) for node in s.walk(bound.pattern)):
        return None
    if (
        bound.absent_patterns
        or bound.filters
        or any(c.function for condition in bound.conditions for c in columns_of(condition.value))
    ):
        return None
    codes = {v.name: code for code, v in enumerate(bound.variables)}
    found = [_made(part, bound, codes) for part in _parts(bound.pattern)]
    arms = tuple(dict.fromkeys(found))
    if sum(len(arm.variables) for arm in arms) > MOST_VARIABLES:
        return None
    names = [set(arm.variables) for arm in arms]
    if bound.report is not s.Report.ANY and any(one < other for one in names for other in names):
        return None
    if max(names.count(one) for one in names) > MOST_ALIKE:
        return None
    return FixedJoin(arms, tuple(_common(arms)))


def least_bound(join: FixedJoin) -> int:
    """Return how many variables of an arm must be bound, at least, so that what joins the others makes no cycle."""
    return max(_bound_of(arm) for arm in join.arms)


def _bound_of(arm: JoinArm) -> int:
    if len(arm.variables) > MOST_TRIED:
        return len(arm.variables)
    pairs = {frozenset(pair) for pair in _covers(arm)}
    asked = [frozenset(term.variables) for term in arm.terms if term.absent is None and len(term.variables) > 1]
    for number in range(len(arm.variables)):
        for chosen in combinations(arm.variables, number):
            left = [one - {*chosen} for one in (*pairs, *asked)]
            if all(len(one) < 3 for one in left) and _is_forest({one for one in left if len(one) == 2}):
                return number
    return len(arm.variables)


def _is_forest(pairs: set[frozenset[str]]) -> bool:
    tree: dict[str, str] = {}

    def root(name: str) -> str:
        while tree.setdefault(name, name) != name:
            name = tree[name]
        return name

    for one, other in map(sorted, pairs):
        if root(one) == root(other):
            return False
        tree[root(one)] = root(other)
    return True


def _covers(arm: JoinArm) -> list[tuple[str, str]]:
    """Return the pairs of an order that no third variable stands between."""
    order = arm.order
    return [(a, b) for a, b in order if not any({(a, c), (c, b)} <= order for c in arm.variables)]


# --- From the pattern ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _ArmPart:
    """A part of a pattern, one arm of each OR; ends of gaps that its neighbours bound are None."""

    variables: Names = ()
    order: frozenset[tuple[str, str]] = frozenset()
    gaps: tuple[tuple[str, Names | None, Names | None], ...] = ()


def _number_of_arms(pattern: s.Pattern) -> int:
    match pattern:
        case s.Single(optional=True):
            return 2
        case s.Or(arms=arms):
            return sum(map(_number_of_arms, arms))
        case s.And(arms=parts) | s.Seq(parts=parts):
            number = 1
            for part in parts:
                number *= _number_of_arms(part)
            return number
    return 1


def _parts(pattern: s.Pattern) -> Iterator[_ArmPart]:
    """Yield a pattern with one arm of each OR."""
    match pattern:
        case s.Single(var=var, optional=optional):
            yield _ArmPart((var,))
            if optional:
                yield _ArmPart()
        case s.Absent(events=events):
            yield _ArmPart(gaps=tuple((absent_name(event), None, None) for event in events))
        case s.Or(arms=arms):
            for arm in arms:
                yield from _parts(arm)
        case s.And(arms=arms):
            for chosen in product(*map(_parts, arms)):
                yield _beside(chosen)
        case s.Seq(parts=parts):
            for chosen in product(*map(_parts, parts)):
                yield _in_turn(chosen)
        case _:
            raise AssertionError(pattern)


def _beside(parts: Iterable[_ArmPart]) -> _ArmPart:
    whole = _ArmPart()
    for part in parts:
        whole = _ArmPart(whole.variables + part.variables, whole.order | part.order, whole.gaps + part.gaps)
    return whole


def _in_turn(parts: tuple[_ArmPart, ...]) -> _ArmPart:
    """Return parts one after another: the open ends of their gaps are their neighbours."""
    taking = [i for i, part in enumerate(parts) if part.variables]
    variables: Names = ()
    order: set[tuple[str, str]] = set()
    gaps: list[tuple[str, Names | None, Names | None]] = []
    for i, part in enumerate(parts):
        before = next((parts[j].variables for j in reversed(taking) if j < i), None)
        behind = next((parts[j].variables for j in taking if j > i), None)
        for absent, after, until in part.gaps:
            gaps.append((absent, before if after is None else after, behind if until is None else until))
        order |= part.order | {(one, other) for one in variables for other in part.variables}
        variables += part.variables
    return _ArmPart(variables, frozenset(order), tuple(gaps))


def _made(part: _ArmPart, bound: BoundQuery, codes: dict[str, int]) -> JoinArm:
    variables = tuple(sorted(part.variables, key=codes.__getitem__))
    gaps = tuple(
        Gap(absent, _outermost(after or (), part.order, last=True), _outermost(before or (), part.order, last=False))
        for absent, after, before in part.gaps
    )
    return JoinArm(variables, part.order, gaps, tuple(_terms(bound, variables, {gap.absent for gap in gaps})))


def _outermost(names: Names, order: frozenset[tuple[str, str]], last: bool) -> Names:
    """Return those of some variables that none of the others is later (or earlier) than."""
    pairs = {(a, b) for a, b in order} if last else {(b, a) for a, b in order}
    return tuple(one for one in names if not any((one, other) in pairs for other in names))


def _terms(bound: BoundQuery, variables: Names, absent: set[str]) -> Iterator[JoinTerm]:
    """Yield the conditions that are asked where these variables have events: all that name no others."""
    negated = {v.name for v in bound.variables if v.absent}
    for condition in bound.conditions:
        asked = [name for name in condition.variables if name not in negated]
        missing = [name for name in condition.variables if name in negated]
        alone = condition.kind == "constant"
        if alone or not set(asked) <= set(variables) or not set(missing) <= absent:
            continue
        values = [condition.value] if missing else terms(condition.value)
        for value in values:
            plain = with_columns(value, _of_single)
            named = {c.var for c in columns_of(plain)} - negated
            own = tuple(name for name in variables if name in named) or tuple(asked[:1])
            yield JoinTerm(replace(condition, value=plain), own, missing[0] if missing else None)


def _of_single(column: Column) -> Value:
    """Return a column of a single event: the first and the last of one is itself, and it has no second."""
    if column.which is s.Which.NTH and column.nth != 1:
        return Constant(None, column.type)
    return replace(column, which=s.Which.EACH, nth=None)


def _common(arms: tuple[JoinArm, ...]) -> Iterator[JoinArm]:
    """Yield the common part of arms of the same variables: it is counted for each of them, and once is right."""
    for number in range(2, min(len(arms), MOST_ALIKE) + 1):
        for some in combinations(arms, number):
            if len({frozenset(arm.variables) for arm in some}) > 1:
                continue
            order = frozenset().union(*(arm.order for arm in some))
            closed = _closed(order)
            if any((b, a) in closed for a, b in closed):
                continue
            gaps = tuple(dict.fromkeys(gap for arm in some for gap in arm.gaps))
            asked = tuple(dict.fromkeys(term for arm in some for term in arm.terms))
            yield JoinArm(some[0].variables, closed, gaps, asked, -1 if number % 2 == 0 else 1)


def _closed(order: frozenset[tuple[str, str]]) -> frozenset[tuple[str, str]]:
    """Return an order with all that follows from it."""
    found = set(order)
    while True:
        more = {(a, d) for a, b in found for c, d in found if b == c} - found
        if not more:
            return frozenset(found)
        found |= more


def join_texts(join: FixedJoin) -> dict[str, str]:
    """Say how the matches of joins are found, and what that costs."""
    said = {}
    for i, arm in enumerate(join.arms):
        number = "" if len(join.arms) == 1 else f"_{i + 1}"
        said[f"join{number}"] = _arm_text(arm)
    residual = [term.condition.text for arm in join.arms for term in arm.terms if len(term.variables) > 2]
    if residual:
        said["residuals"] = "asked when all but one of their variables are bound: " + "; ".join(dict.fromkeys(residual))
    said["counting"] = (
        "parts that nothing joins are counted apart and multiplied; in each the fewest variables are bound, and sums "
        "over the candidates of the others do the rest"
    )
    return said


def best_texts(bound: BoundQuery) -> dict[str, str]:
    """Say how the best matches by ORDER BY are found."""
    if not bound.order_by or bound.limit_per or (bound.limit is None and bound.after_match is None):
        return {}
    return {
        "best": "by branch and bound: the first events that promise most come first; what the extremes of the "
        "candidates that are left cannot bring before the last of the best so far is left out"
    }


def _arm_text(arm: JoinArm) -> str:
    covers = _covers(arm)
    places = {name: i for i, name in enumerate(arm.variables)}
    covers.sort(key=lambda pair: (places[pair[0]], places[pair[1]]))
    before = ", ".join(f"{a} before {b}" for a, b in covers) or "no order"
    joined = sorted({term.variables for term in arm.terms if len(term.variables) == 2 and term.absent is None})
    conditions = "; conditions join " + ", ".join(f"{a} and {b}" for a, b in joined) if joined else ""
    gaps = "".join(
        f"; no {gap.absent} from {' and '.join(gap.after) or 'the edge'} to {' and '.join(gap.before) or 'the edge'}"
        for gap in arm.gaps
    )
    return f"{', '.join(arm.variables)}: {before}{conditions}{gaps}"
