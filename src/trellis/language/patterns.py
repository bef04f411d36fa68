"""Builds the pattern of a query."""
# ruff: noqa: D102 (methods are named after the rules of the grammar)

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from lark import Token

from trellis.language import syntax as s
from trellis.language.building import Builder, PatternName, at, name_of, span_of


class PatternBuilder(Builder):
    """Builds patterns; lone names come first as they are, and what stands around them resolves them."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.bare: set[s.Span] = set()  # where a lone name is its own type and variable

    def lone(self, meta: Any, c: list[Token]) -> s.Node:
        return PatternName(name_of(c[0]), span=at(meta))

    def single(self, meta: Any, c: list[Token]) -> s.Node:
        return s.Single(name_of(c[0]), name_of(c[1]), span=at(meta))

    def missing_plus(self, meta: Any, c: list[Token]) -> s.Node:
        self.fail(
            f"`{c[0]} {c[1]}[]` has brackets but no `+`",
            at(meta),
            f"Write `{c[0]}+ {c[1]}[]` for one or more events, `{c[0]} {c[1]}` for one.",
        )

    def quantified_lone(self, meta: Any, c: list[Token]) -> s.Node:
        name = name_of(c[0])
        if c[1] == "+":
            return PatternName(name, kleene=True, span=at(meta))
        reserved = s.Star if c[1] == "*" else s.Maybe
        return reserved(name, name, span=at(meta))

    def quantified(self, meta: Any, c: list[Token]) -> s.Node:
        if c[1] == "?":
            return s.Maybe(name_of(c[0]), name_of(c[2]), span=at(meta))
        self.fail("a Kleene variable is written with brackets", span_of(c[2]), f"Write `{c[0]}{c[1]} {c[2]}[]`.")

    def quantified_list(self, meta: Any, c: list[Token]) -> s.Node:
        if c[1] == "+":
            return s.Kleene(name_of(c[0]), name_of(c[2]), span=at(meta))
        if c[1] == "*":
            return s.Star(name_of(c[0]), name_of(c[2]), span=at(meta))
        self.fail(
            f"`{c[0]}? {c[2]}[]` has brackets, but `?` means one event or none",
            at(meta),
            f"Write `{c[0]}+ {c[2]}[]` for one or more events.",
        )

    def seq(self, meta: Any, c: list[Any]) -> s.Node:
        parts, quantifier = self._parts(c)
        node = self._alone(parts) or s.Seq(_patterns(parts), span=at(meta))
        if all(isinstance(p, s.Absent) for p in parts):
            self.fail("a SEQ needs a part that is not a NOT", at(meta), "Write `SEQ(A a, NOT(B b), C c)`.")
        return self._grouped(node, quantifier)

    def or_pattern(self, meta: Any, c: list[Any]) -> s.Node:
        return self._arms(s.Or, "OR", meta, c)

    def and_pattern(self, meta: Any, c: list[Any]) -> s.Node:
        return self._arms(s.And, "AND", meta, c)

    def not_pattern(self, meta: Any, c: list[Any]) -> s.Node:
        events, quantifier = self._parts(c)
        for event in events:
            if not isinstance(event, s.Single):
                self.fail("NOT takes single events", event.span, "Write `NOT(E v)` or `NOT(E v, F w)`.")
        absent = s.Absent(cast(tuple[s.Single, ...], tuple(events)), span=at(meta))
        return self._grouped(absent, quantifier)

    def chain(self, meta: Any, c: list[Any]) -> s.Node:
        quantifier = _quantifier(c)
        return self._grouped(self._chained([x for x in c if isinstance(x, s.Node)], at(meta)), quantifier)

    def pattern(self, meta: Any, c: list[s.Node]) -> s.Pattern:
        tree = cast(s.Pattern, self._chained(c, at(meta)))
        if isinstance(tree, s.Absent):
            self.fail("a pattern cannot be a NOT alone", tree.span, "Write `SEQ(A a, NOT(B b), C c)`.")
        return self._numbered(tree)

    def _parts(self, c: list[Any]) -> tuple[list[s.Node], Token | None]:
        return [self._typed(x) for x in c if isinstance(x, s.Node)], _quantifier(c)

    def _arms(self, kind: type[s.Or | s.And], word: str, meta: Any, c: list[Any]) -> s.Node:
        arms, quantifier = self._parts(c)
        for arm in arms:
            if isinstance(arm, s.Absent):
                self.fail(f"NOT stands inside a SEQ, not inside {word}", arm.span, "Write `SEQ(A a, NOT(B b), C c)`.")
        return self._grouped(self._alone(arms) or kind(_patterns(arms), span=at(meta)), quantifier)

    @staticmethod
    def _alone(parts: list[s.Node]) -> s.Node | None:
        """The part itself where SEQ, OR or AND has only one."""
        return parts[0] if len(parts) == 1 else None

    def _grouped(self, node: s.Node, quantifier: Token | None) -> s.Node:
        if quantifier is None:
            return node
        if isinstance(node, s.Absent):
            self.fail(f"`{quantifier}` cannot follow NOT", span_of(quantifier))
        span = s.Span(node.span.start, span_of(quantifier).end)
        return s.Group(cast(s.Pattern, node), str(quantifier), span=span)

    def _chained(self, parts: list[s.Node], span: s.Span) -> s.Node:
        if len(parts) == 1:
            return self._typed(parts[0])
        if all(isinstance(p, s.Absent) for p in parts):
            self.fail("a sequence needs a part that is not a NOT", span, "Write `A a; NOT(B b); C c`.")
        return s.Seq(_patterns([self._untyped(p) for p in parts]), span=span)

    def _typed(self, node: s.Node) -> s.Node:
        if not isinstance(node, PatternName):
            return node
        self.bare.add(node.span)
        kind = s.Kleene if node.kleene else s.Single
        return kind(node.name, node.name, span=node.span)

    def _untyped(self, node: s.Node) -> s.Node:
        if not isinstance(node, PatternName):
            return node
        if node.kleene:
            self.fail(
                "a Kleene variable between semicolons needs a type and a name",
                node.span,
                f"Write `{node.name}+ v[]`, with a variable of your choice for `v`.",
            )
        return s.Single(None, node.name, span=node.span)

    def _numbered(self, tree: s.Pattern) -> s.Pattern:
        """Number repeated bare names: `SEQ(A, B, A)` binds `A`, `B` and `A_2`."""
        seen: dict[str, int] = {}

        def number(node: s.Node) -> s.Node | None:
            if not isinstance(node, s.Single | s.Kleene) or node.span not in self.bare:
                return None
            seen[node.var] = seen.get(node.var, 0) + 1
            return replace(node, var=f"{node.var}_{seen[node.var]}") if seen[node.var] > 1 else node

        return cast(s.Pattern, s.rebuild(tree, number))


def _quantifier(c: list[Any]) -> Token | None:
    return c[-1] if isinstance(c[-1], Token) and c[-1].type == "QUANTIFIER" else None


def _patterns(nodes: list[s.Node]) -> tuple[s.Pattern, ...]:
    return cast(tuple[s.Pattern, ...], tuple(nodes))
