"""The base of the builders of the syntax tree: places, failures, and names whose meaning their context decides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn, cast

from lark import Token, Tree

from trellis.errors import QuerySyntaxError
from trellis.language import syntax as s

MOST_DIGITS = 400


@dataclass(frozen=True, slots=True)
class IndexedReference(s.Node):
    """A reference whose meaning the others of its conjunct decide; `form` tells how it is written.

    Forms are `i` (`s[i].x`), `i-1` (`s[i-1].x`), `next` (`NEXT(s).x`), `..i-1` (`s[..i-1].x`), `..i` (`s[..i].x`), and
    `pick FIRST`, `pick LAST`, `pick NEXT` where the attribute is still to come. The attribute of `s[..i]` is empty.
    """

    var: str
    attr: str
    form: str


@dataclass(frozen=True, slots=True)
class Quantifier:
    """How often something may occur; `text` is as it was written."""

    least: int
    most: int | None
    text: str
    span: s.Span


@dataclass(frozen=True, slots=True)
class PatternName(s.Node):
    """A bare name in a pattern: a type in SEQ, an untyped variable between semicolons."""

    name: str
    quantifier: Quantifier | None = None


@dataclass(frozen=True, slots=True)
class UntilWord(s.Node):
    """`UNTIL (condition)` behind a variable."""

    condition: s.Condition


@dataclass(frozen=True, slots=True)
class ExpressionName(s.Node):
    """A bare name in an expression: a parameter in a condition, a variable in RETURN."""

    name: str


def name_of(token: Token) -> str:
    """Return the name that a token spells, without backticks."""
    return str(token)[1:-1] if token[0] == "`" else str(token)


def span_of(token: Token) -> s.Span:
    """Return the place of a token."""
    return s.Span(cast(int, token.start_pos), cast(int, token.end_pos))


def place_of(tree: Tree[Any]) -> s.Span:
    """Return the place of a rule."""
    return s.Span(tree.meta.start_pos, tree.meta.end_pos)


class Builder:
    """Builds the typed tree from lark's, bottom up, and refuses what the grammar alone cannot.

    The methods of its subclasses are named after the rules of the grammar; they take the place of a rule and what its
    parts have given. (Lark's own `Transformer` does the same, in twice the time.)
    """

    def __init__(self, text: str) -> None:
        self.text = text

    def built(self, tree: Tree[Any]) -> Any:
        """Return the node for a tree."""
        parts = [self.built(part) if isinstance(part, Tree) else part for part in tree.children]
        return getattr(self, tree.data)(place_of(tree), parts)

    def fail(self, what: str, span: s.Span, hint: str | None = None) -> NoReturn:
        """Raise the error for a mistake at a place."""
        raise QuerySyntaxError(what, self.text, span.start, span.end, hint)

    def written(self, node: s.Node) -> str:
        """Return the text of a node as it was written."""
        return self.text[node.span.start : node.span.end]

    def whole(self, token: Token) -> int:
        """Return the whole number that a token spells."""
        if len(token) > MOST_DIGITS:
            self.fail(f"a number of {len(token)} digits is too long", span_of(token))
        return int(token)
