"""What the parser stumbled over, in words: what stands there, what was expected, what was probably meant."""

from __future__ import annotations

import re
from typing import Any

from lark import UnexpectedCharacters, UnexpectedEOF, UnexpectedInput, UnexpectedToken

from trellis.errors import QuerySyntaxError, nearest
from trellis.language.durations import UNITS

ORDER = (
    "PATTERN", "WHERE", "HAVING", "SELECT", "REPORT", "WITHIN", "SLIDE", "RETURN", "AGGREGATE", "GROUP", "ORDER",
    "LIMIT", "OFFSET",
)  # fmt: skip
WORDS = {
    "NAME": "a name",
    "STRING": "a string",
    "INTEGER": "a whole number",
    "REAL": "a number",
    "COMPARATOR": "a comparison",
    "SIGN": "`+` or `-`",
    "MULTIPLIER": "`*`, `/` or `%`",
    "QUANTIFIER": "`+`",
    "LPAR": "`(`",
    "RPAR": "`)`",
    "LSQB": "`[`",
    "RSQB": "`]`",
    "COMMA": "`,`",
    "DOT": "`.`",
    "SEMICOLON": "`;`",
    "STAR": "`*`",
    "__ANON_0": "`..`",
    "SKIP_TILL_ANY": "skip-till-any",
    "SKIP_TILL_NEXT": "skip-till-next",
    "CONTIGUOUS": "contiguous",
    "UNEXTENDABLE": "unextendable",
    "MAXIMAL": "maximal",
    "ANY": "any",
    "$END": "the end",
}
HINTS = {
    '"': "Strings are in single quotes; names with special characters in backticks.",
    "==": "Equality is written `=`.",
    "&&": "Write AND.",
    "&": "Write AND.",
    "||": "Write OR.",
    "|": "Write OR.",
    "!": "Write NOT, or `!=` for unequal.",
    "{": "Parentheses are round.",
    "'": "The string does not end; put a `'` behind it.",
    "`": "The name does not end; put a backtick behind it.",
}


def explain_unexpected(problem: UnexpectedInput, text: str) -> QuerySyntaxError:
    """Return the error that says what is wrong at the place where the parser stopped."""
    start, found, expected = _place(problem, text)
    keywords = {t.removeprefix("_") for t in expected}
    end = start + max(1, len(found))
    if not text.strip():
        return QuerySyntaxError("the query is empty", text, 0, 0, "A query begins with PATTERN.")
    before = re.search(r"(\d\s+)?(\b[A-Za-z_]\w*)\s*$", text[:start])
    if before and before.group(1) and before.group(2).lower() not in UNITS:
        word = before.group(2)
        near = nearest(word, [*ORDER, "AND", "OR", *UNITS])
        return QuerySyntaxError(
            f"`{word}` is no unit of time", text, before.start(2), before.end(2), near and f"Did you mean `{near}`?"
        )
    if start >= len(text.rstrip()):
        return QuerySyntaxError(
            f"the query ends here, but {_list(keywords)} was expected", text, len(text.rstrip()), len(text.rstrip())
        )
    return QuerySyntaxError(
        f"unexpected `{found}`, expected {_list(keywords)}", text, start, end, _hint(found, keywords, text, start)
    )


def _place(problem: UnexpectedInput, text: str) -> tuple[int, str, set[str]]:
    if isinstance(problem, UnexpectedToken) and problem.token.type == "$END":
        return len(text), "", set(problem.accepts or problem.expected)
    if isinstance(problem, UnexpectedEOF):
        return len(text), "", set(problem.expected)
    start = int(problem.pos_in_stream or 0)
    expected: Any = set()
    if isinstance(problem, UnexpectedToken):
        expected = problem.accepts or problem.expected
    elif isinstance(problem, UnexpectedCharacters):
        expected = problem.allowed
    return start, _found(text, start), set(expected or ())


def _found(text: str, start: int) -> str:
    """The word or sign at a place, as a reader would take it."""
    match = re.match(r"\w[\w-]*\w|\w|==|&&|\|\||<>|[<>!]=|\.\.|\S", text[start:])
    return match.group() if match else text[start : start + 1]


def _hint(found: str, keywords: set[str], text: str, start: int) -> str | None:
    if text[max(0, start - 1) : start + 1] == "==" or text[start : start + 2] == "==":
        return HINTS["=="]
    if found in HINTS:
        return HINTS[found]
    upper = found.upper()
    if upper == "NULL":
        return "Write `IS NULL` or `IS NOT NULL`."
    if upper in ORDER and keywords & set(ORDER):
        return f"Clauses come in this order: {', '.join(ORDER)}."
    if upper in ORDER and not keywords & set(ORDER) and "NAME" in keywords:
        return f"`{found}` is a keyword; a name that is spelled like one goes in backticks."
    if found.startswith("-") and text[start : start + 2] == "--":
        return None
    if re.match(r"\w", found):
        spoken = [WORDS.get(k, k) for k in keywords if k.isupper() and k not in ("NAME", "STRING", "$END")]
        near = nearest(found, [w for w in spoken if re.fullmatch(r"[\w-]+", w)])
        if near:
            return f"Did you mean `{near}`?"
    return None


def _list(keywords: set[str]) -> str:
    """The expected terminals as a short phrase: `a name, WHERE or the end`."""
    words = set(keywords)
    said: list[str] = []
    if {"INTEGER", "STRING", "LPAR", "NAME"} <= words:
        said.append("a value")
        words -= {"INTEGER", "REAL", "STRING", "LPAR", "LSQB", "NAME", "SIGN", "TRUE", "FALSE", "LENGTH", "NOT", "STAR"}
    elif {"NAME", "SEQ", "OR"} <= words:
        said.append("an event type or SEQ, OR, AND, NOT")
        words -= {"NAME", "SEQ", "OR", "AND", "NOT", "LPAR"}
    if {"SIGN", "MULTIPLIER"} <= words:
        said.append("an operator")
        words -= {"SIGN", "MULTIPLIER", "COMPARATOR", "AND", "OR", "IN", "NOT", "BETWEEN", "LIKE", "IS"}
    if {"INTEGER", "REAL"} <= words:
        said.append("a number")
        words -= {"INTEGER", "REAL"}
    clauses = [k for k in ORDER if k in words]
    rest = sorted(words - set(clauses) - {"$END"}, key=lambda k: (k not in WORDS, k))
    said += [WORDS.get(k, k) for k in rest]
    if len(clauses) > 4:
        said.append("a clause such as " + clauses[0])
    else:
        said += [c + " BY" if c in ("GROUP", "ORDER") else c for c in clauses]
    if "$END" in words:
        said.append("the end")
    return said[0] if len(said) == 1 else ", ".join(said[:-1]) + " or " + said[-1]
