"""Hypothesis strategies of NOTs in NOTs: at edges, between parts and beside arms, compared with all that is around."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st

from tests.strategies import (
    COMPARATORS,
    EITHER,
    NONE,
    TYPED,
    Case,
    across_two,
    among,
    integers,
    one_of,
    tables,
    withins,
)
from trellis.language import syntax as s

TYPES = ("A", "A", "B", "B", "C")
LEAVES = ("single", "single", "single", "optional", "kleene")


@st.composite
def _leaf(draw: Any, names: Iterator[str], kinds: tuple[str, ...] = LEAVES) -> s.Pattern:
    kind, type_, name = draw(among(kinds)), draw(among(TYPES)), next(names)
    return s.Kleene(type_, name, 1, None) if kind == "kleene" else s.Single(type_, name, kind == "optional")


@st.composite
def forbidden(draw: Any, names: Iterator[str], depth: int) -> s.Absent:
    """Draw a NOT of an event, or of a pattern that has a NOT itself, down to a depth."""
    single = s.Single(draw(among(TYPES)), next(names))
    if not depth or draw(integers(0, 4)) == 0:
        return s.Absent((single,))
    first, inner = draw(_leaf(names, ("single", "single", "kleene"))), draw(forbidden(names, depth - 1))
    shape = draw(among(("between", "before", "behind", "beside", "arm")))
    if shape == "before":
        made: s.Pattern = s.Seq((inner, first))
    elif shape == "behind":
        made = s.Seq((first, inner, draw(_leaf(names, ("optional",)))) if draw(integers(0, 3)) == 0 else (first, inner))
    elif shape == "between":
        made = s.Seq((first, inner, draw(_leaf(names))))
    elif shape == "beside":
        made = s.And((first, draw(_leaf(names, ("single",))), inner))
    else:
        made = s.And((s.Seq((inner, first)), draw(_leaf(names, ("single",)))))
    if draw(integers(0, 3)) == 0:
        made = s.Group(made, *draw(st.sampled_from([(1, None), (2, None), (1, 2)])), f"q{next(names)}")
    return s.Absent((made, single) if draw(integers(0, 6)) == 0 else (made,))


@st.composite
def forbidding(draw: Any) -> s.Pattern:
    """Draw a short pattern with a NOT in which there are others."""
    names = (f"v{i}" for i in itertools.count())
    first, absent = (
        draw(_leaf(names, ("single", "single", "kleene"))),
        draw(forbidden(names, draw(among((1, 1, 2, 3))))),
    )
    shape = draw(among(("between", "between", "before", "behind", "group", "and")))
    if shape == "before":
        return s.Seq((absent, first))
    if shape == "behind":
        return s.Seq((first, absent))
    if shape == "group":
        made = s.Group(s.Seq((absent, first) if draw(EITHER) else (first, absent)), 1, None, "g")
        return s.Seq((made, draw(_leaf(names, ("single",))))) if draw(EITHER) else made
    last = draw(_leaf(names, ("single", "single", "kleene")))
    return s.And((first, last, absent)) if shape == "and" else s.Seq((first, absent, last))


def around(pattern: s.Node, outer: tuple[int, ...] = ()) -> Iterator[tuple[s.Single | s.Kleene, tuple[int, ...]]]:
    """Yield the variables, each with what NOTs forbid around it, the outermost first."""
    if isinstance(pattern, s.Single | s.Kleene):
        yield pattern, outer
    for child in s.children(pattern):
        yield from around(child, (*outer, id(child)) if isinstance(pattern, s.Absent) else outer)


@st.composite
def forbidding_case(draw: Any, most: int = 8) -> Case:
    """Draw a query with NOTs in NOTs, whose variables are compared with all that are around, and a table for it."""
    pattern, table = draw(forbidding()), draw(tables(types=TYPED, most=most))
    leaves = [*around(pattern)]
    kleene = {leaf.var for leaf, _ in leaves if isinstance(leaf, s.Kleene)}
    inside = [one for one in leaves if one[1]]
    where: list[s.Condition] = []
    for _ in range(draw(among((0, 1, 1, 2, 2, 3)))):
        leaf, own = draw(st.sampled_from(inside))
        outer = [other.var for other, nots in leaves if other is not leaf and own[: len(nots)] == nots]
        other = draw(st.sampled_from(outer))
        if draw(EITHER):
            where.append(draw(across_two(leaf.var, other, kleene, table.clock)))
        else:
            third = draw(st.sampled_from(outer))
            total = s.Arithmetic("+", s.Attribute(leaf.var, "x"), s.Attribute(third, "x"))
            where.append(s.Comparison(draw(among(COMPARATORS)), total, s.Attribute(other, "x")))
    query = s.QuerySyntax(
        pattern=pattern,
        where=tuple(where),
        select=draw(among((s.Select.ANY, s.Select.ANY, s.Select.NEXT))),
        report=draw(among(tuple(s.Report))),
        within=draw(one_of(NONE, withins(table.clock))),
    )
    return Case(query, table.rows, table.options, table.schema)
