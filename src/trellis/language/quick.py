"""A quick parse of texts that are right: Lark's own tables, with what builds the syntax tree called as rules end.

Lark makes a tree of all rules first, with lines and columns, which takes longer than all else. Whatever is wrong, or
not common, is None here: Lark parses it again, and tells where it stops.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any, NamedTuple

from lark import Token
from lark.parsers.lalr_analysis import Shift

from trellis.errors import QuerySyntaxError
from trellis.language.building import Builder
from trellis.language.grammar import grammar
from trellis.language.syntax import Span

MOST_TOKENS = 90
"""Of so few, no tree is nested too deeply."""

NARROW, MOST_WIDE = 80, 10
"""Nor is one of more, of which no more nodes than that have more characters: all others have as many tokens at most."""

_END = "$END"
_KEYWORD = re.compile(r"[a-z]{2}[^|]*")


class Reduction(NamedTuple):
    """How a rule ends: the parts that are taken, whole or spliced, and whether a single one stands for it."""

    size: int
    rule: str
    taken: tuple[tuple[int, bool], ...]
    may_stay: bool
    spliced: bool
    name: str


class Scanner(NamedTuple):
    """Matchers of the tokens of a state: of all, where the text goes on with a letter, and of those but keywords."""

    all: Any
    signs: Any
    ignored: frozenset[str]


class QuickTables(NamedTuple):
    """Lark's tables: of each state what is done for a token or a rule; and its scanner, made when it is first needed.

    What is done is the next state, a reduction, or the name of a rule that its only part stands for, as mostly: `a + b`
    where a comparison may be. Many such rules may end one after another: `chains` tells, by where the text starts, the
    state that they lead to from the state below, the first of them and the token that comes next, once that is known.
    """

    actions: dict[int, dict[str, Any]]
    lexers: dict[int, Any]
    scanners: dict[int, Scanner | None]
    starts: dict[str, int]
    ends: dict[str, int]
    needed: frozenset[str]
    chains: dict[str, dict[tuple[int, str, str], int]]


@cache
def _tables() -> QuickTables | None:
    parser = grammar().parser
    table = parser.parser._parse_table
    made: dict[int, Reduction | str] = {}
    needed: set[str] = set()
    for row in table.states.values():
        for action, rule in row.values():
            if action is not Shift and id(rule) not in made:
                reduction = _reduction(rule)
                if reduction.size == 0:
                    return None  # a rule of nothing has no place
                alone = reduction.size == 1 and reduction.may_stay and reduction.taken == ((0, False),)
                made[id(rule)] = reduction.rule if alone else reduction
                needed |= {symbol.name for symbol in rule.expansion if symbol.is_term and not symbol.filter_out}
    actions = {
        state: {name: argument if action is Shift else made[id(argument)] for name, (action, argument) in row.items()}
        for state, row in table.states.items()
    }
    return QuickTables(actions, parser.lexer.lexers, {}, table.start_states, table.end_states, frozenset(needed), {})


def _reduction(rule: Any) -> Reduction:
    taken = tuple(
        (i, not symbol.is_term and symbol.name.startswith("_"))
        for i, symbol in enumerate(rule.expansion)
        if not (symbol.is_term and symbol.filter_out)
    )
    name = rule.alias or rule.options.template_source or rule.origin.name
    stays = rule.options.expand1 and not rule.alias
    origin = str(rule.origin.name)  # a token of Lark's where the grammar was just read
    return Reduction(len(rule.expansion), origin, taken, stays, origin.startswith("_"), name)


def _scanner(lexer: Any) -> Scanner | None:
    """Return the scanner of a state; None where Lark does more than to match."""
    patterns = lexer.scanner._mres
    if len(patterns) != 1 or lexer.callback:
        return None
    signs = [one for one in lexer.scanner.terminals if not _KEYWORD.fullmatch(one.pattern.value)]
    alone = re.compile("|".join(f"(?P<{one.name}>{one.pattern.to_regexp()})" for one in signs), lexer.g_regex_flags)
    return Scanner(patterns[0].match, alone.match, lexer.ignore_types)


def parse_quickly(text: str, start: str, builder: Builder) -> Any:
    """Return the syntax tree of a text; None if it is not right, or not short."""
    try:
        tables = _tables()
        return None if tables is None else _parsed(text, start, builder, tables)
    except (QuerySyntaxError, AttributeError):  # a mistake, or another version of Lark, whose tables are its own affair
        return None


def _parsed(text: str, start: str, builder: Builder, tables: QuickTables) -> Any:
    actions, scanners, needed, end_state = tables.actions, tables.scanners, tables.needed, tables.ends[start]
    chains = tables.chains.setdefault(start, {})
    state, at, end, length, tokens, wide = tables.starts[start], 0, 0, len(text), 0, 0
    read: list[tuple[int, Any, int]] = [(state, None, 0)]  # the state after each token or rule, its node, its start
    while True:
        kind, behind = _END, at
        while at < length:
            if text[at] == " ":  # passed over in all states
                at += 1
                continue
            scanner = scanners.get(state)
            if scanner is None:
                scanner = scanners[state] = _scanner(tables.lexers[state])
                if scanner is None:
                    return None
            every, signs, ignored = scanner
            found = every(text, at) if text[at].isalpha() else signs(text, at)
            if found is None:
                return None
            kind, behind = found.lastgroup, found.end()
            if behind == at:
                return None
            if kind not in ignored:
                break
            kind, at = _END, behind
        while True:
            action = actions[state].get(kind)
            if action is None:
                return None
            if type(action) is int:
                break
            if type(action) is str:
                rule, (_, value, begin) = action, read.pop()
            else:
                size, rule, taken, may_stay, spliced, name = action
                parts = read[-size:]
                del read[-size:]
                begin = parts[0][2]
                chosen: list[Any] = []
                for i, is_list in taken:
                    if is_list:
                        chosen += parts[i][1]
                    else:
                        chosen.append(parts[i][1])
                if spliced:
                    value = chosen
                elif may_stay and len(chosen) == 1:
                    value = chosen[0]
                else:
                    wide += end - begin > NARROW
                    if wide > MOST_WIDE and tokens > MOST_TOKENS:
                        return None
                    value = getattr(builder, name)(Span(begin, end), chosen)
            chain = read[-1][0], rule, kind
            led = chains.get(chain)
            if led is None:
                led = chains[chain] = _end_of_chain(actions, chain, end_state)
            state = led
            if kind == _END and state == end_state:
                return value
            read.append((state, value, begin))
        tokens += 1
        if kind == _END:
            return None
        read.append((action, _token(kind, text[at:behind], at, behind) if kind in needed else None, at))
        state, at, end = action, behind, behind


def _end_of_chain(actions: dict[int, dict[str, Any]], chain: tuple[int, str, str], end_state: int) -> int:
    """Return the state after all rules of one part that end one after another."""
    below, rule, kind = chain
    while True:
        state: int = actions[below][rule]
        action = actions[state].get(kind)
        if type(action) is not str or (kind == _END and state == end_state):
            return state
        rule = action


def _token(kind: str, value: str, start: int, end: int) -> Token:
    token = str.__new__(Token, value)
    token.type, token.start_pos, token.end_pos = kind, start, end
    return token
