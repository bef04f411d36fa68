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


@pytest.mark.parametrize("text", [case.query for case in CASES])
def test_common_queries(text: str) -> None:
    assert repr(quickly(text)) == repr(parse_by_lark(text, "query"))


@examples(60)
@given(queries())
def test_queries_of_any_form(query: s.QuerySyntax) -> None:
    text = f"-- one\n{to_query_text(query)} -- two"
    found = quickly(text)
    if found is not None:
        assert repr(found) == repr(parse_by_lark(text, "query"))


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
    assert repr(quickly(text)) == repr(parse_by_lark(text, "query"))
