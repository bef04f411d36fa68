"""The automaton of a pattern: its transitions and guards, and that it accepts exactly what the pattern means."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.profiles import examples
from tests.strategies import leaves_of, not_empty
from trellis.language import syntax as s
from trellis.language.parser import parse
from trellis.plan.automaton import MAX_STATES, Automaton, build_automaton


def automaton(pattern: str) -> Automaton:
    return build_automaton(parse(f"PATTERN {pattern}").pattern)


def arrows(found: Automaton) -> list[str]:
    """The transitions as text: `0 a 1`, and `1 c 2 !b` where no `b` may lie before it."""
    return [f"{t.source} {t.variable} {t.target}{guard(t.absent)}" for t in found.transitions]


def ends(found: Automaton) -> list[str]:
    return [f"{a.state}{guard(a.absent)}" for a in found.accepting]


def guard(absent: tuple[str, ...]) -> str:
    return "".join(f" !{name}" for name in absent)


@pytest.mark.parametrize(
    ("pattern", "transitions", "accepting"),
    [
        ("A a", ["0 a 1"], ["1"]),
        ("A+ a[]", ["0 a 1", "1 a 1"], ["1"]),
        ("SEQ(A, B, C)", ["0 A 1", "1 B 2", "2 C 3"], ["3"]),
        ("T1;T2", ["0 T1 1", "1 T2 2"], ["2"]),
        ("SEQ(A+ a[], B b)", ["0 a 1", "1 a 1", "1 b 2"], ["2"]),
        ("SEQ(A a, B+ b[])", ["0 a 1", "1 b 2", "2 b 2"], ["2"]),
        ("OR(A a, B b)", ["0 a 1", "0 b 1"], ["1"]),
        ("OR(A+ a[], B b)", ["0 a 1", "0 b 2", "1 a 1"], ["1", "2"]),
        ("SEQ(A, OR(B, C))", ["0 A 1", "1 B 2", "1 C 2"], ["2"]),
        # An event that begins both arms leads to both.
        ("OR(A a, SEQ(A a, B b))", ["0 a 1", "0 a 2", "2 b 1"], ["1"]),
        ("AND(A a, B b)", ["0 a 1", "0 b 2", "1 b 3", "2 a 3"], ["3"]),
        (
            "AND(A a, SEQ(B b, C c))",
            ["0 a 1", "0 b 2", "1 b 3", "2 a 3", "2 c 4", "3 c 5", "4 a 5"],
            ["5"],
        ),
        # A Kleene variable in an arm may go on between the events of the other arm.
        ("AND(A+ a[], B b)", ["0 a 1", "0 b 2", "1 a 1", "1 b 3", "2 a 3", "3 a 3"], ["3"]),
        ("SEQ(A, AND(B, C), D)", ["0 A 1", "1 B 2", "1 C 3", "2 C 4", "3 B 4", "4 D 5"], ["5"]),
        ("SEQ(A, OR(SEQ(B, C), D))", ["0 A 1", "1 B 2", "1 D 3", "2 C 3"], ["3"]),
        ("SEQ(A, SEQ(B, C))", ["0 A 1", "1 B 2", "2 C 3"], ["3"]),
    ],
)  # fmt: skip
def test_transitions(pattern: str, transitions: list[str], accepting: list[str]) -> None:
    found = automaton(pattern)
    assert arrows(found) == transitions
    assert ends(found) == accepting
    assert found.complete


@pytest.mark.parametrize(
    ("pattern", "transitions", "accepting"),
    [
        ("SEQ(NOT(B b), A a)", ["0 a 1 !b"], ["1"]),
        ("SEQ(A a, NOT(B b), C c)", ["0 a 1", "1 c 2 !b"], ["2"]),
        ("SEQ(A a, NOT(B b))", ["0 a 1"], ["1 !b"]),
        ("SEQ(A a, NOT(B b, D d), C c)", ["0 a 1", "1 c 2 !b !d"], ["2"]),
        ("SEQ(A a, NOT(B b), NOT(D d), C c)", ["0 a 1", "1 c 2 !b !d"], ["2"]),
        # Within the run of a Kleene variable nothing is forbidden, only between it and what follows.
        ("SEQ(A+ a[], NOT(B b), C c)", ["0 a 1", "1 a 1", "1 c 2 !b"], ["2"]),
        ("SEQ(A a, NOT(B b), C+ c[])", ["0 a 1", "1 c 2 !b", "2 c 2"], ["2"]),
        ("SEQ(A a, NOT(B b), OR(C c, D d))", ["0 a 1", "1 c 2 !b", "1 d 2 !b"], ["2"]),
        ("SEQ(A a, OR(SEQ(NOT(B b), C c), D d))", ["0 a 1", "1 c 2 !b", "1 d 2"], ["2"]),
        # The guard of an inner SEQ reaches to what follows that SEQ.
        ("SEQ(SEQ(A a, NOT(B b)), C c)", ["0 a 1", "1 c 2 !b"], ["2"]),
        ("SEQ(OR(SEQ(A a, NOT(B b)), D d), C c)", ["0 a 1", "0 d 2", "1 c 3 !b", "2 c 3"], ["3"]),
        # The guard of one arm of an AND does not hold for the events of the other.
        (
            "AND(SEQ(A a, NOT(B b), C c), D d)",
            ["0 a 1", "0 d 2", "1 c 3 !b", "1 d 4", "2 a 4", "3 d 5", "4 c 5 !b"],
            ["5"],
        ),
        ("AND(SEQ(A a, NOT(B b)), D d)", ["0 a 1", "0 d 2", "1 d 3", "2 a 3"], ["3 !b"]),
    ],
)  # fmt: skip
def test_guards(pattern: str, transitions: list[str], accepting: list[str]) -> None:
    found = automaton(pattern)
    assert arrows(found) == transitions
    assert ends(found) == accepting


def test_too_many_states_are_cut_off() -> None:
    arms = ", ".join(f"E e{i}" for i in range(9))
    found = automaton(f"AND({arms})")
    assert not found.complete
    assert found.states == MAX_STATES
    assert automaton("AND(E a, E b, E c, E d, E e, E f, E g)").states == 2**7


# --- Exactly the words of the pattern ---------------------------------------------------------------------------

# A word is what a match reads: (variable, what must be absent before it) for each event, then what must be absent
# after the last.
Word = tuple[tuple[tuple[str, tuple[str, ...]], ...], tuple[str, ...]]


def words(pattern: s.Pattern, longest: int) -> set[Word]:
    """Every word of a pattern with at most `longest` events, by the definition of each operator."""
    match pattern:
        case s.Single(var=var, optional=optional):
            return {(((var, ()),), ())} | ({((), ())} if optional else set())
        case s.Kleene(var=var, least=least, most=most):
            greatest = longest if most is None else min(most, longest)
            return {(((var, ()),) * count, ()) for count in range(least, greatest + 1)}
        case s.Absent(events=events):
            return {((), tuple(event.var for event in events))}
        case s.Or(arms=arms):
            return set().union(*(words(arm, longest) for arm in arms))
        case s.Seq(parts=parts):
            return fold(parts, longest, lambda one, other: iter([after(one, other)]))
        case s.And(arms=arms):
            return fold(arms, longest, interleaved)
    raise AssertionError(pattern)


def fold(parts: tuple[s.Pattern, ...], longest: int, join: Any) -> set[Word]:
    found: set[Word] = {((), ())}
    for part in parts:
        more = words(part, longest)
        found = {word for one in found for other in more for word in join(one, other) if len(word[0]) <= longest}
    return found


def after(one: Word, other: Word) -> Word:
    (events, absent), (more, then) = one, other
    if not more:
        return events, absent + then
    (variable, before), *rest = more
    return (*events, (variable, absent + before), *rest), then


def interleaved(one: Word, other: Word) -> Iterator[Word]:
    total = len(one[0]) + len(other[0])
    for places in itertools.combinations(range(total), len(one[0])):
        left, right = iter(one[0]), iter(other[0])
        yield tuple(next(left if i in places else right) for i in range(total)), one[1] + other[1]


def accepted(found: Automaton, longest: int) -> set[Word]:
    """Every word of at most `longest` events along the transitions from state 0 to an accepting state."""
    result: set[Word] = set()
    reached: set[tuple[int, tuple[tuple[str, tuple[str, ...]], ...]]] = {(0, ())}
    for _ in range(longest + 1):
        for state, read in reached:
            result |= {(read, a.absent) for a in found.accepting if a.state == state}
        reached = {
            (t.target, (*read, (t.variable, t.absent)))
            for state, read in reached
            for t in found.transitions
            if t.source == state
        }
    return result


@st.composite
def patterns(draw: Any, leaves: int = 5, depth: int = 3) -> s.Pattern:
    """Draw a pattern; every variable has its own name, but arms of an OR may share one."""
    return not_empty(_named(draw(_pattern(leaves, depth)), (f"v{i}" for i in itertools.count())))


@st.composite
def _pattern(draw: Any, leaves: int, depth: int) -> s.Pattern:
    kinds = [s.Single, s.Kleene]
    kind = draw(st.sampled_from(kinds if leaves < 2 or not depth else [s.Seq, s.Seq, s.Or, s.And, *kinds]))
    if kind in kinds:
        return draw(leaves_of(["E"], "", "single" if kind is s.Single else "kleene"))
    share = draw(st.integers(1, leaves - 1))
    parts = [draw(_pattern(share, depth - 1)), draw(_pattern(leaves - share, depth - 1))]
    if kind is s.Or:
        return s.Or((parts[0], parts[0] if draw(st.integers(0, 3)) == 0 else parts[1]))
    if kind is s.Seq:
        for place in sorted(draw(st.sets(st.integers(0, len(parts)), max_size=2)), reverse=True):
            parts.insert(place, s.Absent((s.Single("F", ""),) * draw(st.integers(1, 2))))
    return kind(tuple(parts))


def _named(pattern: s.Pattern, names: Iterator[str]) -> s.Pattern:
    """Give every leaf a name; equal arms of an OR get equal ones."""
    match pattern:
        case s.Single() | s.Kleene():
            return replace(pattern, var=next(names))
        case s.Absent(events=events):
            return s.Absent(tuple(s.Single(e.type, next(names)) for e in events))
        case s.Or(arms=(one, other)) if one is other:
            named = _named(one, names)
            return s.Or((named, named))
        case s.Or(arms=parts) | s.And(arms=parts) | s.Seq(parts=parts):
            return type(pattern)(tuple(_named(part, names) for part in parts))
    raise AssertionError(pattern)


@examples(300)
@given(patterns())
def test_accepts_exactly_the_words_of_the_pattern(pattern: s.Pattern) -> None:
    found = build_automaton(pattern)
    assert found.complete
    longest = 5
    assert accepted(found, longest) == words(pattern, longest)


@examples(100)
@given(patterns())
def test_states_are_numbered_and_all_are_reached(pattern: s.Pattern) -> None:
    found = build_automaton(pattern)
    assert {0, *(t.target for t in found.transitions)} == set(range(found.states))
    assert len(set(found.transitions)) == len(found.transitions)
    # From every state the pattern can be completed.
    living = {a.state for a in found.accepting}
    for _ in range(found.states):
        living |= {t.source for t in found.transitions if t.target in living}
    assert living == set(range(found.states))
