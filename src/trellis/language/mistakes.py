"""Syntax mistakes in words: the text where the parser stopped, what was expected, and what was probably meant."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from lark import Token, Tree, UnexpectedInput

from trellis.errors import QuerySyntaxError, nearest
from trellis.language.durations import UNITS, no_unit
from trellis.language.expected import CLAUSES, SPOKEN, phrase
from trellis.language.printer import KEYWORDS
from trellis.language.syntax import Select

OPERATORS = {
    "=>": "Write `>=`.",
    "=<": "Write `<=`.",
    "&&": "Write AND.",
    "&": "Write AND.",
    "||": "Write OR.",
    "|": "Write OR.",
    "!": "Write NOT, or `!=` for unequal.",
    "^": "Operators are + - * / and %.",
    "**": "Operators are + - * / and %.",
}
BELONGS = {
    "SLIDE": ("WITHIN", "SLIDE stands behind WITHIN", "Write `WITHIN 10 min SLIDE 5 min`."),
    "GROUP": ("AGGREGATE", "GROUP BY belongs to AGGREGATE", "Write `AGGREGATE COUNT(*) GROUP BY attribute`."),
    "PER": (
        "LIMIT", "PER stands behind LIMIT, or with EVENT behind AGGREGATE",
        "Write `LIMIT 10 PER WINDOW`, or `AGGREGATE COUNT(*) PER EVENT`.",
    ),
}  # fmt: skip
"""Words that go on with a clause: which, what to say where they stand elsewhere, and what to write."""

SQL_WORDS = {
    "DEFINE": "Write WHERE: `DEFINE B AS B.x > PREV(B.x)` is `WHERE B.x > PREV(B).x` here.",
    "MEASURES": "Write RETURN: `MEASURES LAST(B.x) AS top` is `RETURN LAST(B).x AS top` here.",
    "PARTITION": "Write the attributes in WHERE, in brackets: `WHERE [account]`.",
    "SUBSET": "Name the variables one by one.",
    "ONE": "Each result is a row; leave it out.",
    "ALL": "Each result is a row; `explode()` and RETURN of variables give their events.",
}
"""Clauses of SQL's MATCH_RECOGNIZE, and what to write for them."""

QUOTES = '"“”„‘’'
BRACKETS = {"LPAR": "(", "LSQB": "["}


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """A mistake: what is wrong, where, and what to do."""

    what: str
    start: int
    end: int
    hint: str | None = None


@dataclass(frozen=True, slots=True)
class Stop:
    """Where the parser stopped: the word or sign there, what could have stood there, and what it had read.

    `read` is the parser's stack: tokens, and trees of what was complete.
    """

    text: str
    start: int
    token: str
    expected: frozenset[str]
    read: tuple[Any, ...]

    @property
    def ended(self) -> bool:
        """Whether the text ends here."""
        return not self.token

    @property
    def word(self) -> str:
        """The word in upper case, if it is one."""
        return self.token.upper() if re.match(r"\w", self.token) else ""

    @property
    def open_bracket(self) -> Token | None:
        """The last bracket that is not closed."""
        return next((t for t in reversed(self.read) if getattr(t, "type", "") in BRACKETS), None)

    @property
    def clauses(self) -> list[str]:
        """The clauses read so far, in order."""
        return [word for x in self.read for word in _clauses(x)]

    def here(self, what: str, hint: str | None = None) -> Diagnosis:
        """A diagnosis for the word or sign itself."""
        return Diagnosis(what, self.start, self.start + max(1, len(self.token)), hint)

    def unexpected(self, hint: str | None) -> Diagnosis:
        """The general diagnosis: what stands here and what was expected instead."""
        return self.here(f"unexpected `{self.token}`, expected {phrase(self.expected, self.after_number)}", hint)

    @property
    def after_number(self) -> bool:
        """Whether a number stands just before, so that a name would be its unit."""
        return bool(self.read) and _is_number(self.read[-1])


def explain_unexpected(problem: UnexpectedInput, text: str) -> QuerySyntaxError:
    """Return the error that says what is wrong at the place where the parser stopped."""
    stop = _stop(problem, text)
    diagnosis = next(d for d in (diagnose(stop) for diagnose in DIAGNOSES) if d is not None)
    return QuerySyntaxError(diagnosis.what, text, diagnosis.start, diagnosis.end, diagnosis.hint)


def _stop(problem: Any, text: str) -> Stop:
    end = len(text.rstrip())
    token = getattr(problem, "token", None)
    at_end = token is not None and token.type == "$END"
    start = end if at_end else min(problem.pos_in_stream, end)
    parser = problem.interactive_parser
    expected = frozenset(t.removeprefix("_") for t in parser.accepts())
    hyphens = "SKIP_TILL_ANY" in expected and not expected & {"GREEDY", "SEQ"}  # behind SELECT
    token = "" if at_end else _token_at(text, start, hyphens)
    return Stop(text, start, token, expected, tuple(parser.parser_state.value_stack))


def _token_at(text: str, start: int, hyphens: bool) -> str:
    """The word or sign at a place, as a reader would take it."""
    words = r"\w+(?:[- ]\w+)*" if hyphens else r"\w+"
    match = re.compile(rf"{words}|`[^`\n]+`|'(?:[^'\n]|'')*'|<>|[<>!]=|\.\.|--|\S").match(text, start)
    word = match.group() if match else ""
    return word if len(word) <= 40 else word[:39] + "…"


def _clauses(x: Any) -> Iterator[str]:
    if isinstance(x, Token) and x.type.removeprefix("_") in CLAUSES:
        yield x.type.removeprefix("_")
    elif isinstance(x, Tree):
        inner = x.children[0] if x.data == "clause" else x
        assert isinstance(inner, Tree)
        rules = {"returns": "RETURN", "aggregates": "AGGREGATE", "after_match": "AFTER"}
        name = rules.get(str(inner.data), str(inner.data).upper())
        if name in CLAUSES:
            yield name
        for child in inner.children:
            if isinstance(child, Tree) and child.data in ("group", "per_event"):
                yield "GROUP" if child.data == "group" else "PER"


def _is_number(x: Any) -> bool:
    if isinstance(x, Token):
        return x.type in ("INTEGER", "REAL")
    return isinstance(x, Tree) and x.data in ("integer", "real")


def _place(text: str, position: int) -> str:
    line = text.count("\n", 0, position) + 1
    column = position - text.rfind("\n", 0, position)
    return f"line {line}, column {column}" if "\n" in text else f"column {column}"


# --- Diagnoses, from the particular to the general --------------------------------------------------------------


def _no_query(stop: Stop) -> Diagnosis | None:
    if stop.read:
        return None
    if stop.ended:
        return Diagnosis("the query is empty", 0, 0, "A query begins with PATTERN.")
    near = nearest(stop.token, ["PATTERN"])
    hint = "Did you mean `PATTERN`?" if near else "For example: PATTERN Stock+ s[] WHERE s.price > 10"
    return stop.here("a query begins with PATTERN", hint)


def _repetitions(stop: Stop) -> Diagnosis | None:
    """A number of repetitions that is written otherwise, as in `Stock{,3}`."""
    written = re.search(r"\{[^{}]*\}?", stop.text)
    if written is None or stop.clauses[-1:] != ["PATTERN"] or not written.start() <= stop.start < written.end():
        return None
    most = re.fullmatch(r"\{\s*,\s*(\d+)\s*\}", written.group())
    hint = f"Write `{{0,{most.group(1)}}}`." if most else "Write `{3}`, `{2,5}` or `{2,}`."
    return Diagnosis(f"`{written.group()}` is no number of repetitions", written.start(), written.end(), hint)


def _match_recognize(stop: Stop) -> Diagnosis | None:
    """A clause of SQL's MATCH_RECOGNIZE, or a pattern as it has it: `(A B+ C) DEFINE B AS ...`."""
    if stop.word in SQL_WORDS and _complete(stop):
        return stop.here(f"{stop.word} is a word of SQL's MATCH_RECOGNIZE", SQL_WORDS[stop.word])
    if not re.search(r"\b(DEFINE|MEASURES)\b", stop.text, re.IGNORECASE):
        return None
    hint = "Write `PATTERN SEQ(A a, B+ b[], C c) WHERE b[i].x > b[i-1].x`: what DEFINE says goes into WHERE."
    return stop.here("patterns of SQL's MATCH_RECOGNIZE are written otherwise here", hint)


def _distinct(stop: Stop) -> Diagnosis | None:
    if stop.clauses[-1:] != ["RETURN"]:
        return None
    before = re.search(r"\b(DISTINCT)\s*$", stop.text[: stop.start], re.IGNORECASE)
    if before is None:
        return None
    hint = "Each trend is a row of its own; leave it out, and drop repeated rows from the result."
    return Diagnosis("RETURN has no DISTINCT", before.start(1), before.end(1), hint)


def _operator(stop: Stop) -> Diagnosis | None:
    for start in (stop.start - 1, stop.start):
        for length in (2, 1):
            sign = stop.text[max(start, 0) : start + length]
            if sign in OPERATORS and start + length > stop.start:
                return Diagnosis(f"`{sign}` is not an operator", start, start + length, OPERATORS[sign])
    return None


def _quote(stop: Stop) -> Diagnosis | None:
    if not stop.token or stop.token not in QUOTES:
        return None
    whole = re.compile(rf"[{QUOTES}]([^{QUOTES}\n]*)[{QUOTES}]").match(stop.text, stop.start)
    if whole is None:
        return stop.here("strings are in single quotes", "Names with special characters go in backticks.")
    inner = whole.group(1)
    hint = f"Write '{inner}' for a string, `{inner}` for a name." if inner else "The empty string is ''."
    return Diagnosis("strings are in single quotes", stop.start, whole.end(), hint)


def _endless(stop: Stop) -> Diagnosis | None:
    kind = {"'": "string", "`": "name"}.get(stop.token)
    if kind is None:
        return None
    rest = stop.text[stop.start :].split("\n", 1)[0].rstrip()
    hint = "Put a `'` behind it." if kind == "string" else "Put a backtick behind it."
    return Diagnosis(f"the {kind} does not end", stop.start, stop.start + len(rest), hint)


def _quote_inside(stop: Stop) -> Diagnosis | None:
    last = stop.read[-1] if stop.read else None
    if not isinstance(last, Token) or last.type != "STRING" or last.end_pos != stop.start or not stop.word:
        return None
    hint = "Inside a string a quote is written twice, as in 'it''s'."
    if "\n" in last:
        hint = f"The string begins in {_place(stop.text, last.start_pos or 0)}; put a `'` where it should end."
    return stop.here(f"unexpected `{stop.token}` behind a string", hint)


def _unit(stop: Stop) -> Diagnosis | None:
    """A word behind a number that is not a unit, with something behind it that no unit explains."""
    *_, number, word = (None, None, *stop.read)
    if not (_is_number(number) and isinstance(word, Token) and word.type == "NAME"):
        return None
    if word.lower() in UNITS:
        return None
    if word.upper() in CLAUSES:
        again = Stop(stop.text, word.start_pos or 0, str(word), frozenset({"$END"}), stop.read[:-1])
        return _clause(again) or again.unexpected(None)
    what, hint = no_unit(word)
    return Diagnosis(what, word.start_pos or 0, word.end_pos or 0, hint)


def _clause(stop: Stop) -> Diagnosis | None:
    """A part of a clause without the one it belongs to."""
    word, seen = stop.word, stop.clauses
    if word not in BELONGS or word in stop.expected or stop.open_bracket or not _complete(stop):
        return None
    owner, what, hint = BELONGS[word]
    if word in seen:
        return stop.here(f"{CLAUSES.get(word, word)} stands twice", "Write it once.")
    if owner in seen and owner == seen[-1]:
        return None
    return stop.here(what, hint)


def _complete(stop: Stop) -> bool:
    """Whether what was read could end here or go on with a clause."""
    return "$END" in stop.expected or bool(stop.expected & set(CLAUSES))


def _chained_comparison(stop: Stop) -> Diagnosis | None:
    if "COMPARATOR" in stop.expected or not re.fullmatch(r"[<>]=?|!=|<>|=", stop.token):
        return None
    if stop.read[-1:] and getattr(stop.read[-1], "type", "") == "NOT":
        return stop.here(f"NOT cannot stand before `{stop.token}`", "Write `!=`, or NOT before the comparison.")
    if stop.read[-1:] and getattr(stop.read[-1], "type", "") == "COMPARATOR":
        return stop.here(f"unexpected `{stop.token}` behind `{stop.read[-1]}`", "Comparisons are = != < <= > and >=.")
    if not any(getattr(x, "type", "") == "COMPARATOR" for x in stop.read[-3:]):
        return None
    return stop.here("a comparison has two sides", "Join two with AND, or write `x BETWEEN low AND high`.")


def _missing_parentheses(stop: Stop) -> Diagnosis | None:
    last = getattr(stop.read[-1], "type", "").removeprefix("_") if stop.read else ""
    if stop.expected != {"LPAR"} or last not in ("SEQ", "OR", "AND", "NOT", "IN"):
        return None
    inside = {"NOT": "NOT(E v)", "IN": "IN (1, 2)"}.get(last, f"{last}(A a, B b)")
    stands = f"unexpected `{stop.token}`, expected `(`" if stop.token else "the query ends here, but `(` was expected"
    return stop.here(stands, f"Write `{inside}`.")


def _no_operator(stop: Stop) -> Diagnosis | None:
    """A word before `(` in a pattern that is not SEQ, OR, AND or NOT."""
    *_, before, word = (None, None, *stop.read)
    if stop.token != "(" or stop.clauses[-1:] != ["PATTERN"] or getattr(before, "type", "") == "NAME":
        return None
    if not isinstance(word, Token) or word.type != "NAME" or word.startswith("`"):
        return None
    near = nearest(word, ["SEQ", "OR", "AND", "NOT"])
    hint = f"Did you mean `{near}`?" if near else "Before `(` stands SEQ, OR, AND or NOT, or nothing: `(A a)+ g[]`."
    return Diagnosis(f"there is no operator `{word}`", word.start_pos or 0, word.end_pos or 0, hint)


def _end(stop: Stop) -> Diagnosis | None:
    if not stop.ended:
        return None
    what = f"the query ends here, but {phrase(stop.expected, stop.after_number)} was expected"
    hint = _missing_by(stop) if stop.expected == {"BY"} else _unclosed(stop) or _mistaken(stop)
    return Diagnosis(what, stop.start, stop.start, hint)


def _general(stop: Stop) -> Diagnosis:
    hints = (_particular, _near, _mistaken, _keyword, _missing_comma, _unclosed)
    return stop.unexpected(next((h for h in (hint(stop) for hint in hints) if h), None))


DIAGNOSES: tuple[Callable[[Stop], Diagnosis | None], ...] = (
    _no_query, _repetitions, _match_recognize, _distinct, _operator, _quote, _endless, _quote_inside, _unit, _clause,
    _chained_comparison,
    _missing_parentheses, _no_operator, _end, _general,
)  # fmt: skip


# --- Hints ------------------------------------------------------------------------------------------------------


def _unclosed(stop: Stop) -> str | None:
    bracket = stop.open_bracket
    if bracket is None or not stop.expected & {"RPAR", "RSQB"}:
        return None
    return f"The `{bracket}` in {_place(stop.text, bracket.start_pos or 0)} is not closed."


def _particular(stop: Stop) -> str | None:
    """Advise on common mistakes: what to write instead."""
    clause = stop.clauses[-1] if stop.clauses else ""
    match stop.token:
        case ")" | "]" if stop.open_bracket is None:
            return f"There is no `{'(' if stop.token == ')' else '['}` before it."
        case "]" if {"INTEGER", "NAME"} <= stop.expected:
            return "Write `v.x` for every event, `v[i].x` beside `v[i-1].x`, or `v[1].x` for the first."
        case "," if clause == "PATTERN" and stop.open_bracket is None:
            return "Write `SEQ(A a, B b)` for one after the other."
        case "." if stop.after_number:
            more = stop.text[stop.start + 1 : stop.start + 2].isdigit()
            return "Write a whole number." if more else "Write digits behind the point, as in `1.0`."
        case ";" if "$END" in stop.expected:
            return "A query ends without `;`."
        case "+" if clause == "PATTERN":
            return "Write `SEQ(A a, B+ b[], C c)` for one after the other."
        case "{" | "}":
            return "Parentheses are round."
        case "-" if clause in ("WITHIN", "SLIDE"):
            return "Durations are positive."
        case "*" if clause == "RETURN":
            return "Leave RETURN out for all events of each trend."
        case "[" if clause == "PATTERN":
            return "Write `E+ v[]`: an event type, a plus and a variable."
    if stop.token.startswith("'") and clause in ("WITHIN", "SLIDE"):
        return "Write a duration without quotes, as `10 min`."
    if stop.word == "AS" and (called := _called(stop)) and nearest(called, ["CAST"]):
        return "Did you mean `CAST`?"
    if stop.word == "WHEN":
        return "WHEN stands behind CASE: `CASE WHEN a.x > 1 THEN 2 ELSE 3 END`."
    if stop.word == "NULL":
        return "Write `IS NULL` or `IS NOT NULL`."
    if stop.expected == {"BY"}:
        return _missing_by(stop)
    if stop.expected == {"NULL", "NOT"} or stop.expected == {"NULL"}:
        return "IS stands only before NULL and NOT NULL; compare with = and !=."
    if clause == "HAVING" and "LENGTH" in stop.expected:
        return "HAVING takes a condition on a trend: `HAVING LENGTH >= 2`."
    return None


def _called(stop: Stop) -> str | None:
    """The name before the last bracket that is not closed."""
    bracket = stop.open_bracket
    before = re.search(r"(\w+)\s*$", stop.text[: bracket.start_pos]) if bracket is not None else None
    return before.group(1) if before else None


def _missing_by(stop: Stop) -> str:
    word = str(stop.read[-1])
    return f"Write `{word} BY`; a name that is spelled like the keyword goes in backticks."


def _near(stop: Stop) -> str | None:
    """The expected word that the one in the text resembles."""
    words = [SPOKEN.get(k, k) for k in stop.expected]
    near = nearest(stop.token, [w for w in words if re.fullmatch(r"[A-Za-z-]+", w)]) if stop.word else None
    return f"Did you mean `{near}`?" if near and near.upper() != stop.word else None


def _mistaken(stop: Stop) -> str | None:
    """A word just before that was taken for a name but looks like a misspelled keyword."""
    last = stop.read[-1] if stop.read else None
    if not isinstance(last, Token) or last.type != "NAME" or last.startswith("`") or len(last) < 4:
        return None
    near = nearest(last, [*CLAUSES, "BETWEEN", "LIKE"], cutoff=0.75)
    return f"Is `{last}` meant to be {near}?" if near else None


def _missing_comma(stop: Stop) -> str | None:
    if "AS" in stop.expected and stop.word and stop.word not in KEYWORDS:
        return f"Write `AS {stop.token}` to name the column."
    if "COMMA" not in stop.expected or not stop.word or stop.word in KEYWORDS:
        return None
    words = re.search(r"([\w-]+)\s+\w+\s*$", stop.text[: stop.start])
    policy = nearest(words[1], [one.value for one in Select], cutoff=0.75) if words else None
    return f"Is `{words[1]}` meant to be {policy}?" if words and policy else f"Is a `,` missing before `{stop.token}`?"


def _keyword(stop: Stop) -> str | None:
    if stop.word not in KEYWORDS or "NAME" not in stop.expected or stop.after_number:
        return None
    return f"`{stop.token}` is a keyword; a name that is spelled like one goes in backticks."
