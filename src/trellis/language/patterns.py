"""Builds the pattern of a query."""
# ruff: noqa: D102 (methods are named after the rules of the grammar)

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, cast

from lark import Token

from trellis.language import syntax as s
from trellis.language.building import Builder, PatternName, Quantifier, UntilWord, name_of, span_of

MOST_TIMES = 1000  # bounds of a quantifier: each is a state of the automaton


class PatternBuilder(Builder):
    """Builds patterns; lone names come first as they are, and what stands around them resolves them."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.bare: set[s.Span] = set()  # where a lone name is its own type and variable

    def lone(self, span: s.Span, c: list[Token]) -> s.Node:
        return PatternName(name_of(c[0]), span=span)

    def single(self, span: s.Span, c: list[Token]) -> s.Node:
        return s.Single(name_of(c[0]), name_of(c[1]), span=span)

    def missing_plus(self, span: s.Span, c: list[Token]) -> s.Node:
        self.fail(
            f"`{c[0]} {c[1]}[]` has brackets but no `+`",
            span,
            f"Write `{c[0]}+ {c[1]}[]` for one or more events, `{c[0]} {c[1]}` for one.",
        )

    def quantified_lone(self, span: s.Span, c: list[Any]) -> s.Node:
        return PatternName(name_of(c[0]), c[1], span=span)

    def quantified(self, span: s.Span, c: list[Any]) -> s.Node:
        if c[1].text == "?":
            return s.Single(name_of(c[0]), name_of(c[2]), optional=True, span=span)
        self.fail("a Kleene variable is written with brackets", span_of(c[2]), f"Write `{c[0]}{c[1].text} {c[2]}[]`.")

    def quantified_list(self, span: s.Span, c: list[Any]) -> s.Node:
        if c[1].text == "?":
            self.fail(
                f"`{c[0]}? {c[2]}[]` has brackets, but `?` means one event or none",
                span,
                f"Write `{c[0]}? {c[2]}`, or `{c[0]}* {c[2]}[]` for any number of events.",
            )
        words = self._words(c[3:], "a variable")
        return s.Kleene(name_of(c[0]), name_of(c[2]), c[1].least, c[1].most, **words, span=span)

    def sign(self, span: s.Span, c: list[Token]) -> Quantifier:
        least, most = {"+": (1, None), "*": (0, None), "?": (0, 1)}[str(c[0])]
        return Quantifier(least, most, str(c[0]), span)

    def times(self, span: s.Span, c: list[Token]) -> Quantifier:
        return self._bounded(span, c[0], c[0])

    def times_from(self, span: s.Span, c: list[Token]) -> Quantifier:
        return self._bounded(span, c[0], None)

    def times_between(self, span: s.Span, c: list[Token]) -> Quantifier:
        return self._bounded(span, c[0], c[1])

    def _bounded(self, span: s.Span, low: Token, high: Token | None) -> Quantifier:
        text = self.text[span.start : span.end]
        least, most = self.whole(low), None if high is None else self.whole(high)
        if most is not None and most < least:
            self.fail(f"the bounds of `{text}` are reversed", span, f"Write `{{{most},{least}}}`.")
        if most == 0:
            self.fail(f"`{text}` takes no event at all", span, "Leave the part out, or write NOT(E v).")
        if max(least, most or 0) > MOST_TIMES:
            hint = f"At most {MOST_TIMES:,} can be counted; `{{{min(least, MOST_TIMES)},}}` has no upper bound."
            self.fail(f"the bounds of `{text}` are too large", span, hint)
        return Quantifier(least, most, text, span)

    def label(self, span: s.Span, c: list[Token]) -> s.Name:
        return s.Name(name_of(c[0]), span=span)

    def step(self, span: s.Span, c: list[Any]) -> s.Node:
        return _PolicyPart(_policy(c[0]), c[1], span=span)

    def _words(self, words: list[Any], what: str) -> dict[str, Any]:
        """Return the policy, `greedy` and UNTIL behind the brackets of a variable or group, each at most once."""
        found: dict[str, Any] = {}
        for word in words:
            name, value = ("until", word.condition) if isinstance(word, UntilWord) else _word(word)
            if name in found:
                place = word.span if isinstance(word, s.Node) else span_of(word)
                self.fail(f"two words say how {what} repeats", place, "Leave one of them out.")
            found[name] = value
        return found

    def seq(self, span: s.Span, c: list[Any]) -> s.Node:
        parts = self._steps(self._parts(c))
        node = self._alone(parts) or s.Seq(_patterns(parts), span=span)
        if all(isinstance(p, s.Absent) for p in parts):
            self.fail("a SEQ needs a part that is not a NOT", span, "Write `SEQ(A a, NOT(B b), C c)`.")
        return self._grouped(node, c)

    def or_pattern(self, span: s.Span, c: list[Any]) -> s.Node:
        return self._arms(s.Or, span, c)

    def and_pattern(self, span: s.Span, c: list[Any]) -> s.Node:
        return self._arms(s.And, span, c)

    def not_pattern(self, span: s.Span, c: list[Any]) -> s.Node:
        events = self._parts(c)
        for event in events:
            self._check_absent(event)
        return self._grouped(s.Absent(_patterns(events), span=span), c)

    def _check_absent(self, event: s.Node) -> None:
        """Refuse what NOT cannot forbid: words of steps, and what can match without any event."""
        for node in s.walk(event):
            words = isinstance(node, s.Kleene) and (node.policy is not None or node.greedy or node.until is not None)
            words |= isinstance(node, s.Group) and node.policy is not None
            if words or isinstance(node, _PolicyPart | s.PolicyStep):
                hint = "Leave the word out: NOT looks for any such match."
                self.fail("NOT takes no words of single steps", node.span, hint)
        if s.may_be_empty(cast(s.Pattern, event)):
            hint = "Write `NOT(E v)` or `NOT(SEQ(E v, F w))`."
            self.fail("NOT forbids what can match without any event", event.span, hint)

    def chain(self, span: s.Span, c: list[Any]) -> s.Node:
        return self._grouped(self._chained(_elements(c), span), c)

    def pattern(self, span: s.Span, c: list[Any]) -> s.Pattern:
        tree = cast(s.Pattern, self._chained(c, span))
        if isinstance(tree, s.Absent):
            self.fail("a pattern cannot be a NOT alone", tree.span, "Write `SEQ(A a, NOT(B b), C c)`.")
        return self._numbered(tree)

    def _parts(self, c: list[Any]) -> list[s.Node]:
        return [self._typed(x) for x in _elements(c)]

    def _steps(self, parts: list[s.Node], kind: type[s.Seq | s.And] = s.Seq) -> list[s.Node]:
        """Return the parts of a SEQ, or the arms of an AND, those with a policy as steps."""
        for i, part in enumerate(parts):
            if not isinstance(part, _PolicyPart):
                continue
            if isinstance(part.pattern, s.Absent):
                self.fail("NOT is no step and takes no policy", part.span, "Put the word before another part.")
            if kind is s.Seq and all(isinstance(before, s.Absent) for before in parts[:i]):
                self.fail("the first part of a SEQ has no step into it", part.span, "Leave the policy out here.")
            parts[i] = s.PolicyStep(part.policy, cast(s.Pattern, part.pattern), span=part.span)
        return parts

    def _arms(self, kind: type[s.Or | s.And], span: s.Span, c: list[Any]) -> s.Node:
        arms = self._parts(c)
        for arm in arms:
            if isinstance(arm, _PolicyPart) and kind is s.Or:
                self.fail("a policy stands before a part of a SEQ or AND, not inside OR", arm.span,
                          "Put it before the OR, inside a SEQ.")  # fmt: skip
            if isinstance(arm, s.Absent) and kind is s.Or:
                self.fail("NOT stands inside a SEQ or an AND, not inside OR", arm.span,
                          "Write `SEQ(A a, NOT(B b), C c)`.")  # fmt: skip
        if kind is s.And and all(isinstance(arm, s.Absent) for arm in arms):
            self.fail("an AND needs a part that is not a NOT", span, "Write `AND(A a, NOT(B b))`.")
        node = self._alone(arms)
        return self._grouped(node or kind(_patterns(self._steps(arms, s.And)), span=span), c)

    @staticmethod
    def _alone(parts: list[s.Node]) -> s.Node | None:
        """The part itself where SEQ, OR or AND has only one."""
        return parts[0] if len(parts) == 1 else None

    def _grouped(self, node: s.Node, c: list[Any]) -> s.Node:
        """Return a node with the quantifier, label and words that stand behind it."""
        place = next((i for i, x in enumerate(c) if isinstance(x, Quantifier)), None)
        if place is None:
            return node
        quantifier: Quantifier = c[place]
        label = next((x for x in c[place:] if isinstance(x, s.Name)), None)
        if isinstance(node, s.Absent):
            self.fail(f"`{quantifier.text}` cannot follow NOT", quantifier.span, "NOT forbids events; it takes none.")
        words = self._words(c[place + 2 :], "a group")
        for word in ("greedy", "until"):
            if word in words:
                self.fail(f"{word.upper() if word == 'until' else word} stands behind a variable, not behind a group",
                          s.Span(quantifier.span.start, at_end(c[-1])))  # fmt: skip
        span = s.Span(node.span.start, quantifier.span.end if label is None else at_end(c[-1]))
        name = None if label is None else label.value
        return s.Group(cast(s.Pattern, node), quantifier.least, quantifier.most, name, **words, span=span)

    def _chained(self, parts: list[s.Node], span: s.Span) -> s.Node:
        if len(parts) == 1:
            return self._steps([self._typed(parts[0])])[0]
        if all(isinstance(p, s.Absent) for p in parts):
            self.fail("a sequence needs a part that is not a NOT", span, "Write `A a; NOT(B b); C c`.")
        return s.Seq(_patterns(self._steps([self._untyped(p) for p in parts])), span=span)

    def _typed(self, node: s.Node) -> s.Node:
        if isinstance(node, _PolicyPart):
            return replace(node, pattern=self._typed(node.pattern))
        if not isinstance(node, PatternName):
            return node
        self.bare.add(node.span)
        quantifier = node.quantifier
        if quantifier is None or quantifier.text == "?":
            return s.Single(node.name, node.name, quantifier is not None, span=node.span)
        return s.Kleene(node.name, node.name, quantifier.least, quantifier.most, span=node.span)

    def _untyped(self, node: s.Node) -> s.Node:
        if isinstance(node, _PolicyPart):
            return replace(node, pattern=self._untyped(node.pattern))
        if not isinstance(node, PatternName):
            return node
        quantifier = node.quantifier
        if quantifier is not None:
            written = f"{node.name}{quantifier.text} v" + ("" if quantifier.text == "?" else "[]")
            self.fail(
                "a Kleene variable between semicolons needs a type and a name",
                node.span,
                f"Write `{written}`, with a variable of your choice for `v`.",
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


@dataclass(frozen=True, slots=True)
class _PolicyPart(s.Node):
    """A part with a policy before it, until it is known to stand in a SEQ."""

    policy: s.Select
    pattern: s.Node


def _elements(c: list[Any]) -> list[s.Node]:
    """Return the parts of a rule, without what stands behind them."""
    end = next((i for i, x in enumerate(c) if isinstance(x, Quantifier)), len(c))
    return [x for x in c[:end] if isinstance(x, s.Node)]


def _policy(token: Token) -> s.Select:
    return s.Select(token.lower())


def _word(token: Token) -> tuple[str, Any]:
    return ("greedy", True) if token.type == "GREEDY" else ("policy", _policy(token))


def at_end(x: Any) -> int:
    """Return where a token or node ends."""
    return x.span.end if isinstance(x, s.Node) else span_of(x).end


def _patterns(nodes: list[s.Node]) -> tuple[s.Pattern, ...]:
    return cast(tuple[s.Pattern, ...], tuple(nodes))
