"""Query text to syntax tree: the clauses of a query, and the way into the parser."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any, cast

from lark import Token, Tree, UnexpectedInput

from trellis.errors import QuerySyntaxError
from trellis.language import syntax as s
from trellis.language.building import ExpressionName, UntilWord, name_of, place_of, span_of
from trellis.language.expected import CLAUSES
from trellis.language.expressions import ExpressionBuilder
from trellis.language.grammar import grammar
from trellis.language.mistakes import explain_unexpected
from trellis.language.quick import parse_quickly

DEEPEST = 100


@lru_cache(maxsize=1024)
def parse(text: str) -> s.QuerySyntax:
    """Return the syntax tree of a query; the same one for the same text, as nothing in it changes.

    Raises
    ------
    QuerySyntaxError
        If the text is not a query; says line, column, what was expected, and what is near.
    """
    return cast(s.QuerySyntax, _built(text, "query"))


def parse_literal(text: str) -> s.Literal | s.Negative | s.Literals | None:
    """Return the literal that a parameter's text stands for (`90`, `90 s`, `-1.5`, `true`, `[1, 2]`), or None."""
    try:
        literal = cast(s.Literal | s.Negative | s.Literals, _built(text, "literal"))
    except QuerySyntaxError:
        return None
    return literal if literal.span.end == len(text.rstrip()) else None


def _built(text: str, start: str) -> s.Node:
    found = parse_common(text, start)
    return parse_by_lark(text, start) if found is None else found


def parse_common(text: str, start: str) -> s.Node | None:
    """Parse a text without Lark; None where it is not one that is common and right."""
    return cast(s.Node | None, parse_quickly(text, start, _QueryBuilder(text)))


def parse_by_lark(text: str, start: str) -> s.Node:
    """Parse a text as Lark does, which tells what is wrong with it."""
    try:
        tree = grammar().parse(text, start=start)
    except UnexpectedInput as problem:
        raise explain_unexpected(problem, text) from None
    _check_depth(tree, text)
    return cast(s.Node, _QueryBuilder(text).built(tree))


def _check_depth(tree: Tree[Token], text: str) -> None:
    """Refuse what is nested so deeply that Python's recursion would end."""
    level, depth = [tree], 0
    while level:
        if depth > DEEPEST:
            span = place_of(level[0])
            raise QuerySyntaxError(
                f"this is nested more than {DEEPEST} levels deep", text, span.start, span.end,
                "Use fewer parentheses, or fewer operators in one expression.",
            )  # fmt: skip
        level = [child for node in level for child in node.children if isinstance(child, Tree)]
        depth += 1


class _QueryBuilder(ExpressionBuilder):
    """Builds the clauses; each gives the fields of the query that it fills."""

    def query(self, span: s.Span, c: list[Any]) -> s.QuerySyntax:
        found: dict[str, Any] = {}
        for place, fields in c[1:]:
            self._check_once(place, fields, found)
            found |= fields
        return _with_aliases(s.QuerySyntax(c[0], span=span, **found))

    def clause(self, span: s.Span, c: list[Any]) -> tuple[s.Span, dict[str, Any]]:
        return span, c[0]

    def _check_once(self, span: s.Span, fields: dict[str, Any], before: dict[str, Any]) -> None:
        """Refuse a clause that stands twice, and RETURN beside AGGREGATE."""
        twice = not fields.keys().isdisjoint(before)
        both = ("returns" in fields and "aggregates" in before) or ("aggregates" in fields and "returns" in before)
        if not twice and not both:
            return
        word = next(w for w in CLAUSES if self.text[span.start : span.start + len(w)].upper() == w)
        place = s.Span(span.start, span.start + len(word))
        if twice:
            hint = "Join conditions with AND." if word == "WHERE" else "Write it once."
            self.fail(f"{CLAUSES[word]} stands twice", place, hint)
        self.fail("a query has RETURN or AGGREGATE, not both", place)

    def literals(self, span: s.Span, c: list[Any]) -> s.Literals:
        return s.Literals(tuple(c), span=span)

    def word(self, span: s.Span, c: list[Token]) -> s.String:
        return s.String(name_of(c[0]), span=span)

    def where(self, span: s.Span, c: list[Any]) -> dict[str, Any]:
        condition = self.condition(c[0])
        terms = condition.terms if isinstance(condition, s.Conjunction) else (condition,)
        return {"where": tuple(self.conjunct(t) for t in terms)}

    def until(self, span: s.Span, c: list[Any]) -> s.Node:
        return UntilWord(self.conjunct(self.condition(c[0])), span=span)

    def having(self, span: s.Span, c: list[Any]) -> dict[str, Any]:
        condition = self.condition(c[0])
        terms = condition.terms if isinstance(condition, s.Conjunction) else (condition,)
        return {"having": tuple(self.of_trend(t) for t in terms)}

    def select(self, span: s.Span, c: list[Token]) -> dict[str, Any]:
        return {"select": s.Select(c[0].lower())}

    def report(self, span: s.Span, c: list[Token]) -> dict[str, Any]:
        return {"report": s.Report(c[0].lower())}

    def within(self, span: s.Span, c: list[Any]) -> dict[str, Any]:
        durations = [self.parameter(x) if isinstance(x, ExpressionName) else x for x in c]
        return {"within": s.WithinClause(*durations, span=span)}

    def returns(self, span: s.Span, c: list[s.Item]) -> dict[str, Any]:
        return {"returns": tuple(c)}

    def aggregates(self, span: s.Span, c: list[Any]) -> dict[str, Any]:
        items = tuple(_of_event(x) for x in c if isinstance(x, s.Item))
        names = next((x for x in c if isinstance(x, tuple)), ())
        per_event = next((x for x in c if isinstance(x, s.PerEvent)), None)
        return {"aggregates": items, "group_by": names, "per_event": per_event}

    def per_event(self, span: s.Span, c: list[Token]) -> s.PerEvent:
        return s.PerEvent(name_of(c[0]) if c else None, span=span)

    def group(self, span: s.Span, c: list[Token]) -> tuple[s.Name, ...]:
        return tuple(s.Name(name_of(t), span=span_of(t)) for t in c)

    def item(self, span: s.Span, c: list[Any]) -> s.Item:
        alias = name_of(c[1]) if len(c) > 1 else None
        return s.Item(self.output(c[0]), alias, span=span)

    def order(self, span: s.Span, c: list[s.Sort]) -> dict[str, Any]:
        return {"order_by": tuple(c)}

    def sort(self, span: s.Span, c: list[Any]) -> s.Sort:
        descending = len(c) > 1 and c[1].type == "DESC"
        return s.Sort(self.output(c[0]), descending, span=span)

    def limit(self, span: s.Span, c: list[Any]) -> dict[str, Any]:
        windows = [x for x in c[1:] if isinstance(x, Token)]
        if windows and (len(windows) > 1 or c[1] is not windows[0]):
            self.fail("WINDOW stands first behind PER, and once", span_of(windows[-1]), "Write `PER WINDOW, item`.")
        items = tuple(self.output(x) for x in c[1:] if isinstance(x, s.Node))
        return {"limit": self._size(c[0]), "per_window": bool(windows), "limit_per": items}

    def offset(self, span: s.Span, c: list[Token]) -> dict[str, Any]:
        return {"offset": self._size(c[0])}

    def after_match(self, span: s.Span, c: list[s.AfterMatch]) -> dict[str, Any]:
        return {"after_match": replace(c[0], span=span)}

    def skip_past_last(self, span: s.Span, c: list[Token]) -> s.AfterMatch:
        return s.AfterMatch(s.Skip.PAST_LAST)

    def skip_to_next(self, span: s.Span, c: list[Token]) -> s.AfterMatch:
        return s.AfterMatch(s.Skip.TO_NEXT)

    def skip_to_first(self, span: s.Span, c: list[Token]) -> s.AfterMatch:
        return s.AfterMatch(s.Skip.TO_FIRST, name_of(c[0]))

    def skip_to_last(self, span: s.Span, c: list[Token]) -> s.AfterMatch:
        return s.AfterMatch(s.Skip.TO_LAST, name_of(c[0]))

    def _size(self, token: Token) -> int:
        number = self.whole(token)
        if number >= 2**63:
            self.fail(f"`{token}` does not fit 64 bits", span_of(token))
        return number


def _of_event(item: s.Item) -> s.Item:
    """Return an item of AGGREGATE, where a bare `SHARE`, `BEGINS` or `ENDS` can be no variable."""
    named = item.expression
    if isinstance(named, s.VariableReference) and named.var.upper() in s.OF_EVENT:
        return replace(item, expression=s.OfEvent(named.var.upper(), span=named.span))
    return item


def _with_aliases(query: s.QuerySyntax) -> s.QuerySyntax:
    """Replace a name in ORDER BY and LIMIT PER that RETURN has given by what it stands for."""
    aliases = {i.alias: i.expression for i in query.returns if i.alias is not None}
    if not aliases:
        return query

    def resolve(node: s.Node) -> s.Node | None:
        if isinstance(node, s.Aggregate):
            return node  # COUNT(v) means a variable
        if not isinstance(node, s.VariableReference) or node.var not in aliases:
            return None
        return replace(aliases[node.var], span=node.span)

    return replace(
        query,
        order_by=tuple(cast(s.Sort, s.rebuild(k, resolve)) for k in query.order_by),
        limit_per=tuple(cast(s.Expression, s.rebuild(e, resolve)) for e in query.limit_per),
    )
