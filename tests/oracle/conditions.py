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
from .exact import average, largest, present, smallest, total
from .values import NUMBERS, Leaf, Typed, clean, compile_expression, settle

Reference = tuple[Any, Which, int | None]  # variable, which of its events (those of an aggregate: several), k in v[k]
OfIteration = tuple[str, str, Which, int | None]  # a variable, and of which iteration of the group with a label
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
            tests = [_contained(expression(operand), item, expression(item)) for item in listed]
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


def _contained(operand: Typed, item: syntax.Node, value: Typed) -> Test:
    """Test whether a value is an item of IN; values so far are as many items, without NULL."""
    if not (isinstance(item, syntax.Prefix) and not item.function):
        return _comparison("=", operand, value)
    left, right = settle(operand, value)
    return lambda at: either([compare("=", left.evaluate(at), one) for one in present(right.evaluate(at))])


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
    variables: frozenset[str]  # all that must be bound: those that it names, unless by COUNT(v) alone
    memo: dict[tuple, bool] = field(default_factory=dict)

    @property
    def named(self) -> frozenset[str]:
        """All variables, and labels of groups, that it names; those of other iterations as `OfIteration`."""
        return frozenset(var for var, _, _ in self.references)

    @property
    def names(self) -> frozenset[str]:
        """The variables and labels that it names, of whatever iteration."""
        return frozenset(map(variable_of, self.named))

    def holds(self, bound: Bound, *, of_coming: bool) -> bool:
        """Test all combinations; of one with an event that is yet to come the answer is `of_coming`."""
        return all(of_coming if TO_COME in events else self._true(events) for events in self._combinations(bound))

    def _true(self, events: tuple[Event | None, ...]) -> bool:
        if events not in self.memo:
            self.memo[events] = self.test(events) is True
        return self.memo[events]

    def _combinations(self, bound: Bound) -> Iterator[tuple[Event | None, ...]]:
        named = sorted({var for var, _, _ in self.references}, key=str)
        choices = [choose(var, self.references, bound.get(var, ())) for var in named]
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
        places = range(1, len(events))
    elif which & {Which.EACH, Which.BEFORE, Which.UPTO}:
        places = range(1 if Which.BEFORE in which else 0, len(events))
    else:
        return [{reference: _pick(reference, events, {}) for reference in own}]
    moving = [
        {
            Which.EARLIER: events[i - 1],
            Which.LATER: events[i],
            Which.EACH: events[i],
            Which.BEFORE: events[:i],
            Which.UPTO: TO_COME if events[i] is TO_COME else events[: i + 1],
        }
        for i in places
    ]
    return [{reference: _pick(reference, events, at) for reference in own} for at in moving]


def _pick(reference: Reference, events: tuple[Event, ...], moving: dict[Which, Any]) -> Any:
    _, which, nth = reference
    if which is Which.WHOLE:
        return TO_COME if TO_COME in events else events
    if which is Which.FIRST:
        return events[0]
    if which is Which.LAST:
        return events[-1]
    if which is Which.NTH:
        assert nth is not None
        missing = TO_COME if events[-1] is TO_COME else None
        return events[nth - 1] if nth <= len(events) else missing
    return moving[which]


def reference_of(node: syntax.Node) -> Reference | None:
    """Tell which event or events an attribute or an aggregate is taken from; None for any other node."""
    match node:
        case syntax.Attribute(var, _, which, nth, iteration) if iteration is None or iteration.which is Which.LATER:
            return (var, which, nth)
        case syntax.Attribute(var, _, which, nth, iteration):
            return ((var, iteration.label, iteration.which, iteration.nth), which, nth)
        case syntax.Prefix(var=var, inclusive=inclusive):
            return (var, Which.UPTO if inclusive else Which.BEFORE, None)
        case syntax.Aggregate(_, syntax.Attribute(var) | syntax.VariableReference(var)):
            return (var, Which.WHOLE, None)
    return None


def variable_of(name: str | OfIteration) -> str:
    """Give the variable that something is an event of."""
    return name if isinstance(name, str) else name[0]


def _outermost(node: syntax.Node) -> Iterator[syntax.Node]:
    """Yield the attributes and aggregates of a condition; not the attributes inside aggregates."""
    if reference_of(node) is not None:
        yield node
    else:
        for child in syntax.children(node):
            yield from _outermost(child)


def running(function: str, values: list[Any], kind: str) -> Any:
    """Aggregate values in conditions: doubles are added one after another, all else is exact."""
    kept = present(values)
    if function in ("SUM", "AVG") and kind == "float":
        added = 0.0
        for value in kept:
            added += value
        return clean(added / (len(kept) if function == "AVG" else 1)) if kept else None
    return clean({"SUM": total, "MIN": smallest, "MAX": largest, "AVG": average}[function](kept))


def compile_conjunct(
    node: syntax.Condition, types: Mapping[str, set[str | None]], data: Input, params: Mapping[str, Any]
) -> Conjunct:
    """Make one conjunct ready; `types` gives the event types a variable may have."""
    named = [*_outermost(node)]
    references = tuple(dict.fromkeys(reference_of(one) for one in named))

    def leaf(inner: syntax.Node) -> Typed | None:
        reference = reference_of(inner)
        if reference is None:
            return None
        place = references.index(reference)
        match inner:
            case syntax.Aggregate("COUNT") | syntax.Prefix("COUNT"):
                return Typed("int", lambda events: len(events[place]))
            case syntax.Aggregate(function, argument):
                attr = argument.attr
            case syntax.Prefix(function, _, attr):
                pass
            case _:
                attr, function = inner.attr, None
        kind = column_kind(variable_of(reference[0]), attr, types, data)

        def evaluate(events: tuple[Any, ...]) -> Any:
            chosen = events[place]
            if function is None:
                return None if chosen is None else chosen.values.get(attr)
            values = [event.values.get(attr) for event in chosen]
            return running(function, values, kind) if function else values

        if function in ("SUM", "AVG") and kind not in NUMBERS | {"null"}:
            raise OracleError(f"{function} of a {kind}")
        return Typed("float" if function == "AVG" else kind, evaluate)

    counts = [one for one in named if isinstance(one, syntax.Aggregate) and one.function == "COUNT"]
    variables = frozenset(reference_of(one)[0] for one in named if one not in counts)
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
