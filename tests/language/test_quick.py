"""The quick parse gives what Lark and the builder give, places included, and leaves to them what is wrong."""

from __future__ import annotations

import pytest
from hypothesis import given

from tests.language.trees import queries
from tests.profiles import examples
from trellis.compiled.cases import CASES
from trellis.errors import QuerySyntaxError
from trellis.language import syntax as s
from trellis.language.parser import parse_by_lark, parse_common
from trellis.language.printer import to_query_text
from trellis.language.quick import MOST_TOKENS


def quickly(text: str) -> s.Node | None:
    return parse_common(text, "query")


def same(quick: s.Node | None, text: str) -> None:
    by_lark = parse_by_lark(text, "query")
    assert repr(quick) == repr(by_lark)
    assert quick is not None
    assert [node.span for node in s.walk(quick)] == [node.span for node in s.walk(by_lark)]


@pytest.mark.parametrize("text", [case.query for case in CASES])
def test_common_queries(text: str) -> None:
    same(quickly(text), text)


@pytest.mark.parametrize(
    "text",
    [
        "pattern Seq(ſelect a, Kelvin+ k[]) Where\n\t[`a b`] And a.in >= k[i].x - .5e1 -- `x`",
        "PATTERN a;b;Ünter c WHERE a.x<>b.x AND NOT case = 1 AND c.y IN('it''s',-2) RETURN FIRST(a).x,AVG(b.x)",
        "PATTERN S+ s[] WHERE s.x > s[i-1].x AND AVG(s.y) > AVG(s[..i-1].z) AND s.x<NEXT(s).x WITHIN 9min SLIDE 5`s`",
    ],
)
def test_words_and_signs(text: str) -> None:
    same(quickly(text), text)


@examples(60)
@given(queries())
def test_queries_of_any_form(query: s.QuerySyntax) -> None:
    text = f"-- one\n{to_query_text(query)} -- two"
    found = quickly(text)
    if found is not None:
        same(found, text)


@pytest.mark.parametrize(
    "text",
    [
        "", "PATTERN", "PATTERN A WHERE", "PATTERN A B C", "PATTERN A WHERE a.x > ?", "PATTERN A LIMIT 1 LIMIT 2",
        f"PATTERN A WHERE {'(1 + ' * 2 * MOST_TOKENS}a.x{')' * 2 * MOST_TOKENS} > 1",
        f"PATTERN A WHERE a.x > 1{' + 1' * 2 * MOST_TOKENS}", f"PATTERN A WHERE {'NOT ' * 2 * MOST_TOKENS}a.x > 1",
    ],
)  # fmt: skip
def test_the_rest_is_left_to_lark(text: str) -> None:
    assert quickly(text) is None
    with pytest.raises(QuerySyntaxError):
        parse_by_lark(text, "query")


def test_long_queries_that_are_not_deep() -> None:
    text = "PATTERN A WHERE " + " AND ".join(f"a.x{place} > {place}" for place in range(MOST_TOKENS))
    same(quickly(text), text)
