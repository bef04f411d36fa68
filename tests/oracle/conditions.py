"""Conditions: three-valued tests, and what a conjunct asks of the events bound to its variables."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from trellis.language import syntax
from trellis.language.syntax import Which

from .events import Event, Input, OracleError
from .values import NUMBERS, Leaf, Typed, compile_expression, settle

Reference = tuple[str, Which, int | None]  # variable, which of its events, k in v[k]
Bound = Mapping[str, tuple[Event, ...]]  # variable -> its events in time order; unbound ones are missing
Test = Callable[[Any], bool | None]

TO_COME: Any = "one event or more that are yet to come"  # stands last among the events of a variable that may grow

COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


# --- Three-valued logic -----------------------------------------------------------------------------------


def both(values: list[bool | None]) -> bool | None:
    """SQL's AND."""
    return False if False in values else None if None in values else True


def either(values: list[bool | None]) -> bool | None:
    """SQL's OR."""
    return True if True in values else None if None in values else False


def opposite(value: bool | None) -> bool | None:
    """SQL's NOT."""
    return None if value is None else not value


def compare(op: str, a: Any, b: Any) -> bool | None:
    """Compare two values; numbers of different kinds exactly, as Python does."""
    return None if a is None or b is None else COMPARE[op](a, b)


def like(value: str | None, pattern: str | None) -> bool | None:
    """SQL's LIKE: `%` any run, `_` any one character, backslash escapes."""
    if value is None or pattern is None:
        return None
    parts = re.findall(r"\\.|.", pattern, re.DOTALL)
    wild = {"%": ".*", "_": "."}
    text = "".join(wild.get(p) or re.escape(p[1] if len(p) == 2 else p) for p in parts)
    return re.fullmatch(text, value, re.DOTALL) is not None


# --- Conditions -------------------------------------------------------------------------------------------


def _listed(item: syntax.Node, params: Mapping[str, Any]) -> list[syntax.Node]:
    """Give the values that an item of IN stands for: those of a parameter that is a list, one by one."""
    value = params.get(item.name) if isinstance(item, syntax.Parameter) else None
    if not isinstance(value, list):
        return [item]
    return [{str: syntax.String, int: syntax.Integer}[type(one)](one) for one in value]


def compile_condition(node: syntax.Node, leaf: Leaf, params: Mapping[str, Any]) -> Test:
    """Make a condition ready to be tested."""

    def expression(inner: syntax.Node) -> Typed:
        return compile_expression(inner, leaf, params)

    def terms(inner: tuple[syntax.Condition, ...]) -> list[Test]:
        return [compile_condition(term, leaf, params) for term in inner]

    match node:
        case syntax.Comparison(op, left, right):
            return _comparison(op, expression(left), expression(right))
        case syntax.Membership(operand, items):
            listed = [one for item in items for one in _listed(item, params)]
            tests = [_comparison("=", expression(operand), expression(item)) for item in listed]
            return lambda at: either([test(at) for test in tests])
        case syntax.RangeTest(operand, low, high):
            tests = [
                _comparison(">=", expression(operand), expression(low)),
                _comparison("<=", expression(operand), expression(high)),
            ]
            return lambda at: both([test(at) for test in tests])
        case syntax.NullTest(operand):
            inner = expression(operand)
            return lambda at: inner.evaluate(at) is None
        case syntax.LikeTest(operand, pattern):
            text, wanted = expression(operand), expression(pattern)
            if not {text.kind, wanted.kind} <= {"string", "null"}:
                raise OracleError("LIKE compares strings")
            return lambda at: like(text.evaluate(at), wanted.evaluate(at))
        case syntax.Truth(operand):
            inner = expression(operand)
            if inner.kind not in ("bool", "null"):
                raise OracleError(f"a {inner.kind} is not a condition")
            return inner.evaluate
        case syntax.Conjunction(inner_terms):
            tests = terms(inner_terms)
            return lambda at: both([test(at) for test in tests])
        case syntax.Disjunction(inner_terms):
            tests = terms(inner_terms)
            return lambda at: either([test(at) for test in tests])
        case syntax.Negation(term):
            test = compile_condition(term, leaf, params)
            return lambda at: opposite(test(at))
    raise OracleError(f"{node!r} is not a condition here")


def _comparison(op: str, left: Typed, right: Typed) -> Test:
    left, right = settle(left, right)
    known = {left.kind, right.kind} - {"null"}
    if len(known) > 1 and not known <= NUMBERS:
        raise OracleError(f"a {left.kind} cannot be compared with a {right.kind}")
    return lambda at: compare(op, left.evaluate(at), right.evaluate(at))


# --- Conjuncts --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Conjunct:
    """One conjunct of WHERE: holds if its test is true for every combination of events it speaks of."""

    test: Test  # takes one event (None where v[k] does not exist) for each reference
    references: tuple[Reference, ...]
    variables: frozenset[str]  # all that it names
    memo: dict[tuple, bool] = field(default_factory=dict)

    def holds(self, bound: Bound, *, of_coming: bool) -> bool:
        """Test all combinations; of one with an event that is yet to come the answer is `of_coming`."""
        return all(of_coming if TO_COME in events else self._true(events) for events in self._combinations(bound))

    def _true(self, events: tuple[Event | None, ...]) -> bool:
        if events not in self.memo:
            self.memo[events] = self.test(events) is True
        return self.memo[events]

    def _combinations(self, bound: Bound) -> Iterator[tuple[Event | None, ...]]:
        choices = [choose(var, self.references, bound[var]) for var in sorted(self.variables)]
        for combination in itertools.product(*choices):
            chosen = {reference: event for choice in combination for reference, event in choice.items()}
            yield tuple(chosen[reference] for reference in self.references)


def choose(
    var: str, references: tuple[Reference, ...], events: tuple[Event, ...]
) -> list[dict[Reference, Event | None]]:
    """List the ways in which the references to one variable may be filled."""
    own = [reference for reference in references if reference[0] == var]
    which = {kind for _, kind, _ in own}
    if which & {Which.EARLIER, Which.LATER}:
        if Which.EACH in which:
            raise OracleError(f"{var} is both consecutive and each in one conjunct")
        pairs = itertools.pairwise(events)
        moving: list[dict[Which, Event]] = [{Which.EARLIER: a, Which.LATER: b} for a, b in pairs]
    elif Which.EACH in which:
        moving = [{Which.EACH: event} for event in events]
    else:
        moving = [{}]
    return [{reference: _pick(reference, events, at) for reference in own} for at in moving]


def _pick(reference: Reference, events: tuple[Event, ...], moving: dict[Which, Event]) -> Event | None:
    _, which, nth = reference
    if which is Which.FIRST:
        return events[0]
    if which is Which.LAST:
        return events[-1]
    if which is Which.NTH:
        assert nth is not None
        missing = TO_COME if events[-1] is TO_COME else None
        return events[nth - 1] if nth <= len(events) else missing
    return moving[which]


def reference_of(node: syntax.Attribute) -> Reference:
    """Tell which event or events an attribute is taken from."""
    return (node.var, node.which, node.nth)


def compile_conjunct(
    node: syntax.Condition, types: Mapping[str, set[str | None]], data: Input, params: Mapping[str, Any]
) -> Conjunct:
    """Make one conjunct ready; `types` gives the event types a variable may have."""
    named = [inner for inner in syntax.walk(node) if isinstance(inner, syntax.Attribute)]
    references = tuple(dict.fromkeys(reference_of(attribute) for attribute in named))

    def leaf(inner: syntax.Node) -> Typed | None:
        if not isinstance(inner, syntax.Attribute):
            return None
        place, attr = references.index(reference_of(inner)), inner.attr
        kind = column_kind(inner.var, attr, types, data)

        def evaluate(events: tuple[Event | None, ...]) -> Any:
            event = events[place]
            return None if event is None else event.values.get(attr)

        return Typed(kind, evaluate)

    variables = frozenset(var for var, _, _ in references)
    return Conjunct(compile_condition(node, leaf, params), references, variables)


def column_kind(var: str, attr: str, types: Mapping[str, set[str | None]], data: Input) -> str:
    """Find the kind of `var.attr` over all tables that the variable's events may come from."""
    if var not in types:
        raise OracleError(f"the pattern has no variable {var}")
    tables = {table for type_name in types[var] for table in data.tables_of(type_name)}
    known = [columns for columns in (data.kinds[table] for table in sorted(tables)) if set(columns) - {"time"}]
    if known and not any(attr in columns for columns in known):
        raise OracleError(f"no column {attr} for {var}")
    kinds = {columns[attr] for columns in known if attr in columns} - {"null"}
    if len(kinds) > 1:
        raise OracleError(f"{var}.{attr} is of different kinds: {sorted(kinds)}")
    return kinds.pop() if kinds else "null"
