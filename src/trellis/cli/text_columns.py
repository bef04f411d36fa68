"""Which columns a query compares with text: CSV has no types, so these are read as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from trellis.language import syntax as s
from trellis.language.parameters import read_parameters


def text_columns(query: s.QuerySyntax, params: Mapping[str, Any] | None = None) -> set[str]:
    """Return the columns that hold text, as far as the query tells.

    These are the attributes that are compared (`= != < <= > >=`, IN, BETWEEN, LIKE, also inside COALESCE) with a
    string or with a parameter whose value is one, and those that are compared with such attributes:
    `a.code = b.ref AND b.ref = '007'` makes both text. Names are taken without their variables, as columns of one
    table or of all.

    Parameters
    ----------
    query
        The syntax tree.
    params
        The values of its parameters; one that reads as a number, a duration or a boolean is none that is text.
    """
    texts = {name for name, given in read_parameters(params).items() if _has_text(given.literal)}
    columns: set[str] = set()
    together: list[set[str]] = []
    for group in _compared(query):
        names = {node.attr for node in group if isinstance(node, s.Attribute)}
        if any(_is_text(node, texts) for node in group):
            columns |= names
        else:
            together.append(names)
    return _spread(columns, together)


def _has_text(value: s.Node) -> bool:
    return isinstance(value, s.String) or (isinstance(value, s.Literals) and any(map(_has_text, value.items)))


def words_beside(query: s.QuerySyntax) -> dict[str, str]:
    """Return, for columns that are compared with strings of which none reads as a number, one of these strings."""
    words: dict[str, str] = {}
    for group in _compared(query):
        strings = [node.value for node in group if isinstance(node, s.String)]
        if strings and not any(map(_is_number, strings)):
            words |= {node.attr: strings[0] for node in group if isinstance(node, s.Attribute)}
    return words


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return not text.strip("%_")  # a pattern of LIKE may mean anything
    return True


def _compared(query: s.QuerySyntax) -> Iterator[list[s.Node]]:
    """Yield the values that are compared with one another."""
    for node in (node for conjunct in query.where for node in s.walk(conjunct)):
        match node:
            case s.Comparison(left=left, right=right):
                yield [*_values(left), *_values(right)]
            case s.Membership(operand=operand, items=items):
                yield [value for part in (operand, *items) for value in _values(part)]
            case s.RangeTest(operand=operand, low=low, high=high):
                yield [value for part in (operand, low, high) for value in _values(part)]
            case s.LikeTest(operand=operand):
                yield [*_values(operand), s.String("")]


def _values(node: s.Node) -> Iterator[s.Node]:
    """Yield the expressions whose values an expression may have: itself, or the arguments of COALESCE."""
    if isinstance(node, s.Call) and node.function == "COALESCE":
        for argument in node.arguments:
            yield from _values(argument)
    else:
        yield node


def _is_text(node: s.Node, text_parameters: set[str]) -> bool:
    return isinstance(node, s.String) or (isinstance(node, s.Parameter) and node.name in text_parameters)


def _spread(columns: set[str], together: list[set[str]]) -> set[str]:
    while True:
        more = {name for names in together if names & columns for name in names} - columns
        if not more:
            return columns
        columns = columns | more
