"""Syntax tree to query text; what is printed parses to an equal tree."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from typing import cast

from trellis.language import syntax as s
from trellis.language.durations import to_text
from trellis.language.times import format_timestamp

KEYWORDS = frozenset([
    "PATTERN", "WHERE", "HAVING", "SELECT", "REPORT", "WITHIN", "SLIDE", "RETURN", "AGGREGATE", "GROUP", "ORDER", "BY",
    "LIMIT", "PER", "OFFSET", "AS", "IN", "BETWEEN", "LIKE", "IS", "NULL", "WINDOW", "SEQ", "OR", "AND", "NOT", "TRUE",
    "FALSE", "LENGTH", "ASC", "DESC", "ANY", "MAXIMAL", "UNEXTENDABLE", "CONTIGUOUS", "AFTER", "GREEDY", "UNTIL",
])  # fmt: skip
_PRECEDENCE = {"+": 1, "-": 1, "*": 2, "/": 2, "%": 2}


def to_query_text(query: s.QuerySyntax) -> str:
    """Return the query as text, a clause a line."""
    lines = [f"PATTERN {pattern_text(query.pattern)}"]
    if query.where:
        lines.append("WHERE " + _conjuncts(query.where, "\n  AND "))
    if query.having:
        lines.append("HAVING " + _conjuncts(query.having, " AND "))
    if query.select is not s.Select.ANY:
        lines.append(f"SELECT {query.select}")
    if query.report is not s.Report.UNEXTENDABLE:
        lines.append(f"REPORT {query.report}")
    if query.within:
        slide = f" SLIDE {value_text(query.within.slide)}" if query.within.slide else ""
        lines.append(f"WITHIN {value_text(query.within.size)}{slide}")
    lines += _output_lines(query)
    return "\n".join(lines)


def _conjuncts(conditions: Sequence[s.Condition], between: str) -> str:
    """Return conditions that all hold; one of OR in parentheses, unless it is alone."""
    terms = ((c, condition_text(c)) for c in conditions)
    alone = len(conditions) == 1
    return between.join(text if alone or not isinstance(c, s.Disjunction) else f"({text})" for c, text in terms)


def _output_lines(query: s.QuerySyntax) -> list[str]:
    lines = []
    if query.returns:
        lines.append("RETURN " + ", ".join(_item(i) for i in query.returns))
    if query.aggregates:
        lines.append("AGGREGATE " + ", ".join(_item(i) for i in query.aggregates))
    if query.per_event:
        lines.append("PER EVENT" + (f" OF {name_text(query.per_event.var)}" if query.per_event.var is not None else ""))
    if query.group_by:
        lines.append("GROUP BY " + ", ".join(name_text(a.value) for a in query.group_by))
    if query.order_by:
        lines.append("ORDER BY " + ", ".join(_key(k, query.returns) for k in query.order_by))
    if query.limit is not None:
        items = ["WINDOW"] if query.per_window else []
        items += [value_text(_by_alias(e, query.returns)) for e in query.limit_per]
        lines.append(f"LIMIT {query.limit}" + (f" PER {', '.join(items)}" if items else ""))
    if query.offset:
        lines.append(f"OFFSET {query.offset}")
    if query.after_match:
        var = query.after_match.var
        lines.append(f"AFTER MATCH SKIP {query.after_match.skip}" + (f" {name_text(var)}" if var is not None else ""))
    return lines


def _item(item: s.Item) -> str:
    return value_text(item.expression) + (f" AS {name_text(item.alias)}" if item.alias is not None else "")


def _key(key: s.Sort, returns: tuple[s.Item, ...]) -> str:
    return value_text(_by_alias(key.expression, returns)) + (" DESC" if key.descending else "")


def _by_alias(expression: s.Expression, returns: tuple[s.Item, ...]) -> s.Expression:
    """Return an expression by the names that RETURN gives: they hide variables of the same name."""
    given = {i.alias: i.expression for i in returns if i.alias is not None}

    def by_name(node: s.Node) -> s.Node | None:
        whole = node if isinstance(node, s.Aggregate) else None
        return next((s.VariableReference(alias) for alias, expression in given.items() if expression == node), whole)

    return cast(s.Expression, s.rebuild(expression, by_name))


def name_text(name: str) -> str:
    """Return a name as it is written: in backticks where it must be."""
    plain = re.fullmatch(r"[^\W\d]\w*", name) and name.upper() not in KEYWORDS
    return name if plain else f"`{name}`"


def _after_dot(name: str) -> str:
    return name if re.fullmatch(r"[^\W\d]\w*", name) else f"`{name}`"


def pattern_text(pattern: s.Pattern) -> str:
    """Return a pattern as text."""
    named = Counter(n.var for n in s.walk(pattern) if isinstance(n, s.Single) and n.type == n.var)
    return _pattern(pattern, frozenset(name for name, times in named.items() if times == 1), nested=False)


def absent_name(pattern: s.Pattern) -> str:
    """Return the name of a pattern that NOT forbids: the variable of a single event, else its text."""
    return pattern.var if isinstance(pattern, s.Single) else pattern_text(pattern)


def _pattern(pattern: s.Pattern, short: frozenset[str], nested: bool = True, chained: bool = False) -> str:
    """Return a pattern as text.

    `short` holds the types that may stand for their variable too: those that do so once, as repeated ones would be
    numbered. `chained` is true between semicolons, where a lone name is a variable of any type.
    """
    match pattern:
        case s.Single(type=None, var=var):
            return name_text(var)
        case s.Single(type=kind, var=var, optional=optional):
            lone = kind == var and var in short and not chained and not optional
            return name_text(var) if lone else f"{name_text(kind or '')}{'?' * optional} {name_text(var)}"
        case s.Kleene(type=kind, var=var):
            text = f"{name_text(kind or '')}{_times(pattern)} {name_text(var)}[]{_policy_text(pattern.policy)}"
            until = "" if pattern.until is None else f" UNTIL ({condition_text(pattern.until)})"
            return text + " greedy" * pattern.greedy + until
        case s.PolicyStep(policy=policy, pattern=inner):
            return f"{policy} {_pattern(inner, short, chained=chained)}"
        case s.Seq(parts=parts) if any(_is_untyped(p) for p in parts):
            text = "; ".join(_pattern(p, short, chained=True) for p in parts)
            return f"({text})" if nested else text
        case s.Seq(parts=parts):
            return _call("SEQ", parts, short)
        case s.Or(arms=parts):
            return _call("OR", parts, short)
        case s.And(arms=parts):
            return _call("AND", parts, short)
        case s.Absent(events=events):
            return _call("NOT", events, short)
        case s.Group(pattern=inner, label=label):
            text = _pattern(inner, short)
            sign = "?" if (pattern.least, pattern.most) == (0, 1) else _times(pattern)
            text = f"{text if isinstance(inner, s.Seq | s.Or | s.And) else f'({text})'}{sign}"
            return text if label is None else f"{text} {name_text(label)}[]{_policy_text(pattern.policy)}"


def _times(node: s.Kleene | s.Group) -> str:
    """Return the quantifier of a variable or group."""
    least, most = node.least, node.most
    if most is None:
        return {0: "*", 1: "+"}.get(least, f"{{{least},}}")
    return f"{{{least}}}" if least == most else f"{{{least},{most}}}"


def _policy_text(policy: s.Select | None) -> str:
    return "" if policy is None else f" {policy}"


def _is_untyped(part: s.Pattern) -> bool:
    inner = part.pattern if isinstance(part, s.PolicyStep) else part
    return isinstance(inner, s.Single) and inner.type is None


def _call(word: str, parts: Sequence[s.Pattern], short: frozenset[str]) -> str:
    return f"{word}({', '.join(_pattern(p, short) for p in parts)})"


def condition_text(condition: s.Condition) -> str:
    """Return a conjunct as text."""
    attributes = [n for n in s.walk(condition) if isinstance(n, s.Attribute)]
    return _condition(condition, frozenset(a.var for a in attributes if a.which is s.Which.EARLIER))


def _condition(c: s.Condition, earlier: frozenset[str], no: str = "") -> str:
    """Return a condition as text; `no` is `NOT ` where one stands inside it, as in `x NOT IN (1, 2)`."""

    def value(e: s.Expression) -> str:
        return value_text(e, earlier)

    match c:
        case s.Comparison(op=op, left=left, right=right):
            return f"{value(left)} {op} {value(right)}"
        case s.Membership(operand=x, items=items):
            return f"{value(x)} {no}IN ({', '.join(value(i) for i in items)})"
        case s.RangeTest(operand=x, low=low, high=high):
            return f"{value(x)} {no}BETWEEN {value(low)} AND {value(high)}"
        case s.NullTest(operand=x):
            return f"{value(x)} IS {no}NULL"
        case s.LikeTest(operand=x, pattern=pattern):
            return f"{value(x)} {no}LIKE {value(pattern)}"
        case s.Truth(operand=x):
            return value(x)
        case s.Conjunction(terms=terms):
            return " AND ".join(_term(t, earlier) for t in terms)
        case s.Disjunction(terms=terms):
            return " OR ".join(_term(t, earlier) for t in terms)
        case s.Negation(term=s.Membership() | s.RangeTest() | s.NullTest() | s.LikeTest() as term):
            return _condition(term, earlier, "NOT ")
        case s.Negation(term=term):
            return f"NOT ({_condition(term, earlier)})"
        case s.PartitionClause(attributes=names):
            return f"[{', '.join(name_text(n.value) for n in names)}]"


def _term(c: s.Condition, earlier: frozenset[str]) -> str:
    text = _condition(c, earlier)
    return f"({text})" if isinstance(c, s.Conjunction | s.Disjunction) else text


def value_text(e: s.Expression, earlier: frozenset[str] = frozenset(), least: int = 0) -> str:
    """Return an expression as text; in parentheses if it binds less tightly than `least`."""
    match e:
        case s.Attribute():
            return _attribute(e, earlier)
        case s.Prefix(function=function, var=var, attr=attr, inclusive=inclusive):
            so_far = (
                f"{name_text(var)}[{'..i' if inclusive else '..i-1'}]{'' if attr is None else f'.{_after_dot(attr)}'}"
            )
            return f"{function}({so_far})" if function else so_far
        case s.VariableReference(var=name) | s.Parameter(name=name):
            return name_text(name)
        case s.Integer(value=number):
            return str(number)
        case s.Real(value=number):
            return _real(number)
        case s.String(value=text):
            return "'" + text.replace("'", "''") + "'"
        case s.Boolean(value=truth):
            return "TRUE" if truth else "FALSE"
        case s.Timestamp(micros=micros):
            return f"TIMESTAMP '{format_timestamp(micros)}'"
        case s.Duration(micros=micros):
            return to_text(micros)
        case s.Negative(operand=x):
            text = f"-{value_text(x, earlier, 4)}"
            return f"({text})" if least else text
        case s.Arithmetic(op=op, left=left, right=right):
            level = _PRECEDENCE[op]
            text = f"{value_text(left, earlier, level)} {op} {value_text(right, earlier, level + 1)}"
            return f"({text})" if level < least else text
        case s.Call(function=function, arguments=arguments):
            return f"{function}({', '.join(value_text(a, earlier) for a in arguments)})"
        case s.Case(tests=tests, values=values, otherwise=otherwise):
            arms = [
                f"WHEN {_condition(test, earlier)} THEN {value_text(value, earlier)}"
                for test, value in zip(tests, values, strict=True)
            ]
            last = [] if otherwise is None else [f"ELSE {value_text(otherwise, earlier)}"]
            return " ".join(["CASE", *arms, *last, "END"])
        case s.Cast(operand=x, type=type_):
            return f"CAST({value_text(x, earlier)} AS {type_})"
        case s.Aggregate(function=function, argument=argument):
            return f"{function}({'*' if argument is None else value_text(argument)})"
        case s.Length():
            return "LENGTH"
        case s.OfEvent(function=function):
            return function


def _attribute(a: s.Attribute, earlier: frozenset[str]) -> str:
    var = name_text(a.var)
    events = {
        s.Which.EACH: var,
        s.Which.EARLIER: f"{var}[i-1]",
        s.Which.LATER: f"{var}[i]" if a.var in earlier else f"NEXT({var})",
        s.Which.FIRST: f"FIRST({var})",
        s.Which.LAST: f"LAST({var})",
        s.Which.NTH: f"{var}[{a.nth}]",
    }
    text = f"{events[a.which]}.{_after_dot(a.attr)}"
    if a.iteration is None:
        return text
    label = name_text(a.iteration.label)
    iterations = {
        s.Which.EARLIER: f"{label}[i-1]",
        s.Which.LATER: f"{label}[i]",
        s.Which.FIRST: f"FIRST({label})",
        s.Which.LAST: f"LAST({label})",
        s.Which.NTH: f"{label}[{a.iteration.nth}]",
    }
    return f"{iterations[a.iteration.which]}.{_after_dot(a.var)}.{_after_dot(a.attr)}"


def _real(number: Decimal) -> str:
    text = str(number)
    return text if "." in text or "E" in text else f"{text}.0"
