"""Columns that a query compares with strings are read as text."""

from __future__ import annotations

import pytest

import trellis
from trellis.cli.text_columns import text_columns


@pytest.mark.parametrize(
    ("where", "columns"),
    [
        ("s.code = '007'", {"code"}),
        ("'007' < s.code", {"code"}),
        ("s.code IN ('1', '2') AND s.price > 1", {"code"}),
        ("s.code BETWEEN '1' AND '2'", {"code"}),
        ("s.code LIKE '6%'", {"code"}),
        ("NOT (s.price > 1 OR s.code != 'x')", {"code"}),
        ("COALESCE(s.code, s.name) = '1'", {"code", "name"}),
        ("s.code = word", {"code"}),
        ("s.code = number", set()),
        ("s[i].code = s[i-1].ref AND s.ref = '1'", {"code", "ref"}),
        ("s[i].price > s[i-1].price", set()),
        ("[code]", set()),
    ],
)
def test_what_is_compared_with_strings(where: str, columns: set[str]) -> None:
    syntax = trellis.query(f"PATTERN Stock+ s[] WHERE {where}").syntax
    assert text_columns(syntax, {"word": "seven", "number": "7"}) == columns
