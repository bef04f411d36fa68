"""What is printed parses to an equal tree, whatever the tree."""

from __future__ import annotations

from hypothesis import given

from tests.language.trees import conjuncts, patterns, queries
from tests.profiles import examples
from trellis.language import syntax as s
from trellis.language.parser import parse
from trellis.language.printer import condition_text, pattern_text, to_query_text

quick = examples(300)
quicker = examples(150)


@quick
@given(queries())
def test_queries(query: s.QuerySyntax):
    assert parse(to_query_text(query)) == query


@quicker
@given(patterns())
def test_patterns(pattern: s.Pattern):
    assert parse(f"PATTERN {pattern_text(pattern)}").pattern == pattern


@quicker
@given(conjuncts())
def test_conditions(condition: s.Condition):
    assert parse(f"PATTERN A WHERE {condition_text(condition)}").where == (condition,)
