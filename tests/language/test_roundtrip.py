"""What is printed parses to an equal tree, whatever the tree."""

from __future__ import annotations

from hypothesis import assume, given

from tests.language.trees import conjuncts, patterns, queries
from tests.profiles import examples
from trellis.errors import QuerySyntaxError
from trellis.language import syntax as s
from trellis.language.parser import parse
from trellis.language.printer import condition_text, pattern_text, to_query_text

quick = examples(300)
quicker = examples(150)


def parsed(text: str) -> s.QuerySyntax:
    """Return the tree of a text; one that looks to both sides of an event is refused, and not what is tested."""
    try:
        return parse(text)
    except QuerySyntaxError as refused:
        assume("stands beside the events so far" not in refused.what)
        raise


@quick
@given(queries())
def test_queries(query: s.QuerySyntax):
    assert parsed(to_query_text(query)) == query


@quicker
@given(patterns())
def test_patterns(pattern: s.Pattern):
    assert parse(f"PATTERN {pattern_text(pattern)}").pattern == pattern


@quicker
@given(conjuncts())
def test_conditions(condition: s.Condition):
    assert parsed(f"PATTERN A WHERE {condition_text(condition)}").where == (condition,)
