"""Whatever text comes, the parser and the binder answer with a tree or with an error of ours, and quickly."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.language.trees import queries
from tests.profiles import examples
from trellis.errors import BindError, QueryError, QuerySyntaxError, UsageError
from trellis.language import syntax as s
from trellis.language.binder import bind
from trellis.language.parser import parse, parse_literal
from trellis.language.printer import to_query_text
from trellis.language.schema import BOOLEAN, DOUBLE, INTEGER, STRING, TIMESTAMP, Kind, Schema, Table, Type, decimal

COLUMNS = {
    "ts": TIMESTAMP, "id": INTEGER, "name": STRING, "price": DOUBLE, "fee": decimal(2), "flag": BOOLEAN,
    "day": Type(Kind.DATE), "tags": Type(Kind.OTHER, name="array<string>"),
}  # fmt: skip
SCHEMAS = [None, Schema((Table(None, COLUMNS),), "ts"), Schema((Table(None, COLUMNS),), "price", type="name")]
EXAMPLES = [path.read_text(encoding="utf-8") for path in (Path(__file__).parents[2] / "examples").glob("*.tq")]
TOKENS = """
PATTERN WHERE HAVING SELECT REPORT WITHIN SLIDE RETURN AGGREGATE GROUP ORDER BY LIMIT PER WINDOW OFFSET AS IN BETWEEN
LIKE IS NULL NOT AND OR SEQ TRUE LENGTH DESC skip-till-any contiguous maximal any NEXT FIRST LAST SUM COUNT ABS COALESCE
TIMESTAMP DATE a b S s s.price s.name s[i].fee s[i-1].fee NEXT(s).id FIRST(s).day s[2].id S+ s[] S* S? [id] ( ) [ ] { }
, ; . .. = == != <> < <= > >= + - * / % & | ! ? ` ' " 'x' '2024-01-31' `a b` 0 1 5 1.5 .5 1e5 1e999999 1e-999999
99999999999999999999 5 min 3 months -- # $ é 日 ٣ \\ i
""".split()  # noqa: SIM905
quick = examples(300)


def answer(text: str) -> None:
    """Parse and bind; an error must be one of ours, and must print."""
    try:
        tree = parse(text)
    except QuerySyntaxError as error:
        refused = error
    else:
        assert parse(to_query_text(tree)) == tree
        bind_or_refuse(tree, text, {"a": "5 min", "b": 1.5})
        return
    assert 0 <= refused.start <= len(text)
    assert str(refused).startswith(f"line {refused.line}, column {refused.column}: ")


def bind_or_refuse(tree: s.QuerySyntax, text: str, params: dict[str, object]) -> None:
    for schema in SCHEMAS:
        with suppress(BindError, UsageError):
            bind(tree, text, schema, params)


@quick
@given(st.lists(st.sampled_from(TOKENS), max_size=25).map(" ".join))
def test_token_soup(text: str):
    answer(text)


@quick
@given(st.lists(st.sampled_from(TOKENS), max_size=12).map(" ".join), st.sampled_from(["WHERE", "RETURN", "ORDER BY"]))
def test_soup_in_a_clause(text: str, clause: str):
    answer(f"PATTERN S+ s[] {clause} {text}")


@quick
@given(st.text(max_size=30))
def test_any_text(text: str):
    answer(text)
    answer(f"PATTERN S s WHERE s.name = {text}")
    parse_literal(text)


@quick
@given(st.sampled_from(EXAMPLES), st.data())
def test_mutated_examples(text: str, data: st.DataObject):
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(text)))
        end = data.draw(st.integers(start, min(len(text), start + 8)))
        text = text[:start] + data.draw(st.sampled_from(["", *TOKENS])) + text[end:]
    answer(text)


@examples(80)
@given(queries())
def test_whole_queries_are_bound_or_refused(query: s.QuerySyntax):
    text = to_query_text(query)
    bind_or_refuse(parse(text), text, {})


NESTED = {
    "parentheses": "PATTERN A a WHERE " + "(" * 2000 + "a.x" + ")" * 2000 + " > 1",
    "patterns": "PATTERN " + "SEQ(A, " * 1000 + "B" + ")" * 1000,
    "NOTs": "PATTERN A a WHERE " + "NOT " * 2000 + "a.x",
    "minus signs": "PATTERN A a WHERE " + "- " * 2000 + "a.x > 1",
    "terms": "PATTERN A a WHERE a.x " + "+ 1 " * 2000 + "> 1",
    "functions": "PATTERN A a WHERE " + "ABS(" * 1000 + "a.x" + ")" * 1000 + " > 1",
}


@pytest.mark.parametrize("kind", NESTED)
def test_deep_nesting_is_refused(kind: str):
    with pytest.raises(QuerySyntaxError, match="nested more than 100 levels deep"):
        parse(NESTED[kind])


@pytest.mark.parametrize("unclosed", ["(", "SEQ(", "NOT ", "ABS(", "[", "-", "a.x + "])
def test_deep_nesting_that_does_not_end(unclosed: str):
    for start in ("PATTERN ", "PATTERN A a WHERE ", "PATTERN A a RETURN "):
        with pytest.raises(QuerySyntaxError):
            parse(start + unclosed * 1000)


@pytest.mark.parametrize(
    "text",
    [
        "PATTERN A a WHERE " + " AND ".join(["a.x > 1"] * 1000),
        "PATTERN A a WHERE " + " OR ".join(["a.x > 1"] * 1000),
        "PATTERN A a WHERE a.x IN (" + ", ".join(map(str, range(1000))) + ")",
        "PATTERN " + "; ".join(f"v{i}" for i in range(1000)),
        "PATTERN A a RETURN " + ", ".join(f"a.x AS x{i}" for i in range(1000)),
    ],
    ids=["AND", "OR", "IN", "sequence", "items"],
)
def test_what_is_only_long_is_taken(text: str):
    tree = parse(text)
    assert parse(to_query_text(tree)) == tree
    bind(tree, text)


@pytest.mark.parametrize(
    "text",
    [
        "PATTERN A a WHERE a.x > " + "9" * 5000,
        "PATTERN A a WHERE a.x > 0." + "9" * 5000,
        "PATTERN A a WHERE a.x > 1e" + "9" * 5000,
        "PATTERN A a WHERE a.x > 1e-" + "9" * 30,
        "PATTERN A a LIMIT " + "9" * 5000,
        "PATTERN A a OFFSET 9223372036854775808",
        "PATTERN A a HAVING LENGTH > " + "9" * 5000,
        "PATTERN A+ a[] WHERE a[" + "9" * 5000 + "].x > 1",
        "PATTERN A+ a[] WHERE a[i-" + "9" * 5000 + "].x > 1",
        "PATTERN A a WITHIN 1e300 weeks",
        "PATTERN A a WITHIN " + "9" * 400 + " weeks",
        "PATTERN A a WITHIN 1e-300 s",
        "PATTERN A a WITHIN 1" + "0" * 300,
        "PATTERN A a WHERE a.x > TIMESTAMP '9999-99-99'",
        "PATTERN A a WHERE a.x > TIMESTAMP '9999-12-31 23:59:59 -18:00'",
        "PATTERN A a WHERE a.x > TIMESTAMP '0001-01-01 00:00:00 +18:00'",
        "PATTERN A a WHERE a.x > TIMESTAMP '2024-01-01 24:00:00'",
        "PATTERN A a WHERE a.x > 9223372036854775808",
        "PATTERN A a WHERE a.x > -9223372036854775809",
    ],
)
def test_numbers_out_of_range_are_refused(text: str):
    with pytest.raises(QueryError):
        bind(parse(text), text)


def test_the_least_integer_fits():
    text = "PATTERN A a WHERE a.x > -9223372036854775808 RETURN -9223372036854775808 AS least"
    assert bind(parse(text), text).conditions[0].value.arguments[1].value == -(2**63)
