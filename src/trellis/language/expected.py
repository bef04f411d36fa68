"""The tokens that the parser expected where it stopped, as a short phrase: `a name, WHERE or the end`."""

from __future__ import annotations

from collections.abc import Set

CLAUSES = {
    word: {"GROUP": "GROUP BY", "ORDER": "ORDER BY", "AFTER": "AFTER MATCH"}.get(word, word)
    for word in (
        "PATTERN", "WHERE", "HAVING", "SELECT", "REPORT", "WITHIN", "SLIDE", "RETURN", "AGGREGATE", "GROUP", "ORDER",
        "LIMIT", "OFFSET", "AFTER",
    )
}  # fmt: skip
SPOKEN = {
    "NAME": "a name",
    "STRING": "a string",
    "INTEGER": "a whole number",
    "REAL": "a number",
    "COMPARATOR": "a comparison",
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
    "DOTS": "`..`",
    "SKIP_TILL_ANY": "skip-till-any",
    "SKIP_TILL_NEXT": "skip-till-next",
    "CONTIGUOUS": "contiguous",
    "UNEXTENDABLE": "unextendable",
    "MAXIMAL": "maximal",
    "ANY": "any",
}
# Where all of the first can stand, one phrase says it for all of the second.
GROUPS = (
    (
        {"NAME", "INTEGER", "STRING", "LPAR"}, "a value",
        {"NAME", "INTEGER", "REAL", "STRING", "LPAR", "LSQB", "SIGN", "TRUE", "FALSE", "LENGTH", "NOT", "MULTIPLIER",
         "CASE", "CAST"},
    ),
    (
        {"NAME", "SEQ", "OR"}, "an event type, SEQ, OR, AND, NOT",
        {"NAME", "SEQ", "OR", "AND", "NOT", "LPAR"},
    ),
    (
        {"SIGN", "MULTIPLIER"}, "an operator",
        {"SIGN", "MULTIPLIER", "COMPARATOR", "AND", "OR", "IN", "NOT", "BETWEEN", "LIKE", "IS", "LPAR", "LSQB", "DOT",
         "STRING"},
    ),
    ({"SIGN"}, "an operator", {"SIGN"}),
    ({"INTEGER", "REAL"}, "a number", {"INTEGER", "REAL"}),
)  # fmt: skip


def phrase(expected: Set[str], after_number: bool = False) -> str:
    """Return the terminals that could have come as a phrase; after a number a name is a unit."""
    left, said = set(expected), []
    for sign, words, covered in GROUPS:
        if sign <= left:
            said += words.split(", ")
            left -= covered
    clauses = [spoken for word, spoken in CLAUSES.items() if word in left]
    rest = sorted(left - set(CLAUSES) - {"$END"}, key=lambda k: (k not in SPOKEN, k))
    said += ["a unit" if k == "NAME" and after_number else SPOKEN.get(k, k) for k in rest]
    said += clauses if len(clauses) <= 3 else [f"a clause such as {clauses[0]}"]
    if "$END" in left:
        said.append("the end")
    return said[0] if len(said) == 1 else ", ".join(said[:-1]) + " or " + said[-1]
