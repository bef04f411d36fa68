"""Builds conditions and values, and resolves what a reference means in its conjunct."""
# ruff: noqa: D102 (methods are named after the rules of the grammar)

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any, NoReturn, TypeGuard, cast

from lark import Token

from trellis.errors import did_you_mean
from trellis.language import syntax as s
from trellis.language.building import MOST_DIGITS, ExpressionName, IndexedReference, name_of, span_of
from trellis.language.durations import LONGEST, UNITS, no_unit, to_micros
from trellis.language.functions import CAST_TYPES, SCALARS
from trellis.language.patterns import PatternBuilder
from trellis.language.printer import KEYWORDS
from trellis.language.times import MICROS_PER_DAY, parse_timestamp

VALUE_FUNCTIONS = (*SCALARS, "COALESCE")
PICKS = {"NEXT": "next", "PREV": "i-1", "FIRST": s.Which.FIRST, "LAST": s.Which.LAST}
AGGREGATES = ("COUNT", "SUM", "MIN", "MAX", "AVG")
SO_FAR = ("..i-1", "..i")
_UNSETTLED = (IndexedReference, ExpressionName, s.Length, s.Aggregate)
DOUBLES = "Doubles reach from 5e-324 to 1.8e308."
FUNCTIONS = (
    f"Functions are {', '.join(VALUE_FUNCTIONS)}, CASE, CAST, FIRST, LAST, NEXT, PREV, COUNT, SUM, MIN, MAX and AVG."
)

_BEFORE = "`s[i-1].x` is the event before `s[i].x`: write `s[i].x > s[i-1].x`."
ELSEWHERE = {
    "PREVIOUS": _BEFORE, "LAG": _BEFORE,
    "LEAD": "`NEXT(s).x` is that of the event behind `s.x`.",
    **{name: f"Write `CAST(x AS {name})`." for name in CAST_TYPES},
}  # fmt: skip
"""Functions that other languages have, each with how to write it here."""


class ExpressionBuilder(PatternBuilder):
    """Builds expressions; one grammar serves conditions and values, which are told apart here."""

    # Conditions

    def condition(self, node: s.Node) -> s.Condition:
        """Return a node as a condition."""
        return node if isinstance(node, s.Condition) else s.Truth(self.value(node), span=node.span)

    def value(self, node: s.Node) -> Any:
        """Return a node that must be a value."""
        if isinstance(node, s.Condition):
            if isinstance(node, s.PartitionClause):
                hint = "Write `WHERE [id] AND ...`; an attribute is written `v.id`."
                self.fail("a partition stands where a value is expected", node.span, hint)
            hint = "Conditions stand in WHERE, joined with AND and OR."
            self.fail("a condition stands where a value is expected", node.span, hint)
        return node

    def parenthesis(self, span: s.Span, c: list[s.Node]) -> s.Node:
        return replace(c[0], span=span)

    def disjunction(self, span: s.Span, c: list[Any]) -> s.Node:
        return self._joined(s.Disjunction, span, c)

    def conjunction(self, span: s.Span, c: list[Any]) -> s.Node:
        return self._joined(s.Conjunction, span, c)

    def _joined(self, kind: type[s.Conjunction | s.Disjunction], span: s.Span, c: list[Any]) -> s.Node:
        terms: list[s.Condition] = []
        for term in (self.condition(x) for x in c if isinstance(x, s.Node)):
            terms.extend(term.terms if isinstance(term, kind) else [term])
        return kind(tuple(terms), span=span)

    def negation(self, span: s.Span, c: list[Any]) -> s.Node:
        return s.Negation(self.condition(c[-1]), span=span)

    def comparison(self, span: s.Span, c: list[Any]) -> s.Node:
        op = {"<>": "!=", "==": "="}.get(str(c[1]), str(c[1]))
        return s.Comparison(op, self.value(c[0]), self.value(c[2]), span=span)

    def contained(self, span: s.Span, c: list[Any]) -> s.Node:
        operand, *items = (self.value(x) for x in c if isinstance(x, s.Node))
        items = [_values_so_far(item) for item in items]
        return self._perhaps_not(s.Membership(operand, tuple(items), span=span), c)

    def between(self, span: s.Span, c: list[Any]) -> s.Node:
        operand, low, high = (self.value(x) for x in c if isinstance(x, s.Node))
        return self._perhaps_not(s.RangeTest(operand, low, high, span=span), c)

    def like(self, span: s.Span, c: list[Any]) -> s.Node:
        operand, pattern = (self.value(x) for x in c if isinstance(x, s.Node))
        return self._perhaps_not(s.LikeTest(operand, pattern, span=span), c)

    def is_null(self, span: s.Span, c: list[Any]) -> s.Node:
        return self._perhaps_not(s.NullTest(self.value(c[0]), span=span), c)

    @staticmethod
    def _perhaps_not(node: s.Condition, c: list[Any]) -> s.Node:
        negated = any(isinstance(x, Token) and x.type == "NOT" for x in c)
        return s.Negation(node, span=node.span) if negated else node

    def partition(self, span: s.Span, c: list[Token]) -> s.Node:
        return s.PartitionClause(tuple(s.Name(name_of(t), span=span_of(t)) for t in c), span=span)

    # Values

    def arithmetic(self, span: s.Span, c: list[Any]) -> s.Node:
        return s.Arithmetic(str(c[1]), self.value(c[0]), self.value(c[2]), span=span)

    def signed(self, span: s.Span, c: list[Any]) -> s.Node:
        operand = self.value(c[1])
        return s.Negative(operand, span=span) if c[0] == "-" else replace(operand, span=span)

    def integer(self, span: s.Span, c: list[Token]) -> s.Node:
        return s.Integer(self.whole(c[0]), span=span)

    def real(self, span: s.Span, c: list[Token]) -> s.Node:
        digits, double = str(c[0]).lower().partition("e")[0], float(c[0])
        if len(digits) > MOST_DIGITS:
            self.fail(f"a number of {len(digits)} digits is too long", span)
        if math.isinf(double) or (double == 0 and digits.strip("0.")):
            self.fail(f"`{c[0]}` is beyond what a double can hold", span, DOUBLES)
        return s.Real(Decimal(str(c[0])), span=span)

    def quantity(self, span: s.Span, c: list[Any]) -> s.Node:
        unit = name_of(c[1])
        if unit.lower() not in UNITS:
            what, hint = no_unit(unit)
            self.fail(what, span_of(c[1]), hint)
        micros = to_micros(c[0].value, unit)
        if micros is None:
            self.fail("a duration is a whole number of microseconds", span)
        if micros > LONGEST:
            self.fail("the duration is too long", span, "The longest is about 292,000 years.")
        return s.Duration(micros, span=span)

    def string(self, span: s.Span, c: list[Token]) -> s.Node:
        return s.String(str(c[0])[1:-1].replace("''", "'"), span=span)

    def true(self, span: s.Span, c: list[Token]) -> s.Node:
        return s.Boolean(True, span=span)

    def false(self, span: s.Span, c: list[Token]) -> s.Node:
        return s.Boolean(False, span=span)

    def typed_string(self, span: s.Span, c: list[Token]) -> s.Node:
        word = c[0].upper()
        if word not in ("TIMESTAMP", "DATE"):
            known = ("TIMESTAMP", "DATE", "LIKE", "IN")
            hint = did_you_mean(c[0], known, "Only TIMESTAMP and DATE do.")
            self.fail(f"`{c[0]}` cannot stand before a string", span_of(c[0]), hint)
        micros = parse_timestamp(str(c[1])[1:-1])
        if micros is None or (word == "DATE" and micros % MICROS_PER_DAY):
            example = "2024-01-31 09:30:00" if word == "TIMESTAMP" else "2024-01-31"
            self.fail(f"{c[1]} is not a {word.lower()}", span_of(c[1]), f"Write it as '{example}'.")
        return s.Timestamp(micros, span=span)

    def name(self, span: s.Span, c: list[Token]) -> s.Node:
        return ExpressionName(name_of(c[0]), span=span)

    def length(self, span: s.Span, c: list[Token]) -> s.Node:
        return s.Length(span=span)

    # References

    def attribute(self, span: s.Span, c: list[Token]) -> s.Node:
        return s.Attribute(name_of(c[0]), name_of(c[1]), span=span)

    def index_name(self, span: s.Span, c: list[Token]) -> tuple[str, int | None]:
        self._must_be_i(c[0])
        return "i", None

    def index_offset(self, span: s.Span, c: list[Token]) -> tuple[str, int | None]:
        self._must_be_i(c[0])
        if c[1] != "-" or self.whole(c[2]) != 1:
            self.fail("only neighbours can be compared", span, "Write `[i]` and `[i-1]`.")
        return "i-1", None

    def index_number(self, span: s.Span, c: list[Token]) -> tuple[str, int | None]:
        number = self.whole(c[0])
        if number < 1:
            self.fail("events of a variable are counted from 1", span, "Write `[1]` for the first.")
        return "nth", number

    def index_prefix(self, span: s.Span, c: list[Token]) -> tuple[str, int | None]:
        self._must_be_i(c[0])
        if len(c) == 1:
            return "..i", None
        if c[1] != "-" or self.whole(c[2]) != 1:
            self.fail("events so far end at `s[i]` or the event before it", span, "Write `[..i]` or `[..i-1]`.")
        return "..i-1", None

    def _must_be_i(self, token: Token) -> None:
        if token != "i":
            hint = "Write `[i]`, `[i-1]`, or a number from 1."
            self.fail(f"`[{token}]` is not an index", span_of(token), hint)

    def indexed(self, span: s.Span, c: list[Any]) -> s.Node:
        var, (form, number), attr = name_of(c[0]), c[1], name_of(c[2])
        if form == "nth":
            return s.Attribute(var, attr, s.Which.NTH, number, span=span)
        return IndexedReference(var, attr, form, span=span)

    def of_iteration(self, span: s.Span, c: list[Any]) -> s.Node:
        label, (form, number), var, attr = name_of(c[0]), c[1], name_of(c[2]), name_of(c[3])
        which = {"i": s.Which.LATER, "i-1": s.Which.EARLIER, "nth": s.Which.NTH}.get(form)
        if which is None:
            self.fail(f"`{label}[{form}]` speaks of several iterations", span, "Write `g[i]`, `g[i-1]` or `g[1]`.")
        iteration = s.Iteration(label, which, number, span=span_of(c[0]))
        return s.Attribute(var, attr, iteration=iteration, span=span)

    def of_picked(self, span: s.Span, c: list[Any]) -> s.Node:
        called, var, attr = c[0], name_of(c[1]), name_of(c[2])
        form = called.form if isinstance(called, IndexedReference) else ""
        which = PICKS.get(form.removeprefix("pick "))
        if not isinstance(which, s.Which):
            hint = "Write `FIRST(g).a.x`, `LAST(g).a.x`, or `g[i].a.x` beside `g[i-1].a.x`."
            self.fail("only FIRST(g) and LAST(g) name an iteration", span, hint)
        return s.Attribute(var, attr, iteration=s.Iteration(called.var, which, span=called.span), span=span)

    def indexed_whole(self, span: s.Span, c: list[Any]) -> s.Node:
        var, (form, number) = name_of(c[0]), c[1]
        if form not in SO_FAR:
            index = number if form == "nth" else form
            what = f"`{var}[{index}]` is an event; name one of its attributes"
            self.fail(what, span, f"Write `{var}[{index}].attribute`.")
        return IndexedReference(var, "", form, span=span)

    def picked(self, span: s.Span, c: list[Any]) -> s.Node:
        called, attr = c[0], name_of(c[1])
        if not (isinstance(called, IndexedReference) and called.form.startswith("pick ")):
            self.fail("only FIRST(v), LAST(v), NEXT(v) and PREV(v) have attributes", span)
        which = PICKS[called.form.removeprefix("pick ")]
        if not isinstance(which, s.Which):
            return IndexedReference(called.var, attr, which, span=span)
        return s.Attribute(called.var, attr, which, span=span)

    # Functions

    def call_star(self, span: s.Span, c: list[Token]) -> s.Node:
        if c[0].upper() != "COUNT":
            self.fail("`*` stands only in COUNT(*)", span, did_you_mean(name_of(c[0]), ["COUNT"]))
        return s.Aggregate("COUNT", None, span=span)

    def call(self, span: s.Span, c: list[Any]) -> s.Node:
        function, arguments = name_of(c[0]).upper(), c[1:]
        if function in PICKS:
            return self._pick(function, self._only(function, arguments, span), span)
        if function in AGGREGATES:
            return self._aggregate(function, self._only(function, arguments, span), span)
        if function not in VALUE_FUNCTIONS:
            known = [*VALUE_FUNCTIONS, *PICKS, *AGGREGATES, "NOT"]
            hint = ELSEWHERE.get(function) or did_you_mean(name_of(c[0]), known, FUNCTIONS)
            self.fail(f"there is no function `{c[0]}`", span_of(c[0]), hint)
        if function in SCALARS:
            self._check_number(function, len(arguments), span)
        return s.Call(function, tuple(self.value(a) for a in arguments), span=span)

    def _check_number(self, function: str, given: int, span: s.Span) -> None:
        least, most = SCALARS[function].required, SCALARS[function].most
        if not least <= given <= most:
            wanted = " to ".join(dict.fromkeys(map(str, (least, most)))) if most > 1 else "one"
            self.fail(f"{function} takes {wanted} argument{'s' if most > 1 else ''}, not {given}", span)

    def when(self, span: s.Span, c: list[Any]) -> tuple[s.Condition, Any]:
        return self.condition(c[0]), self.value(c[1])

    def case(self, span: s.Span, c: list[Any]) -> s.Node:
        arms = [one for one in c if isinstance(one, tuple)]
        otherwise = None if isinstance(c[-1], tuple) else self.value(c[-1])
        return s.Case(tuple(test for test, _ in arms), tuple(value for _, value in arms), otherwise, span=span)

    def cast(self, span: s.Span, c: list[Any]) -> s.Node:
        name = name_of(c[1])
        if name.upper() not in CAST_TYPES:
            hint = did_you_mean(name, CAST_TYPES, f"Types are {', '.join(CAST_TYPES)}.")
            self.fail(f"there is no type `{name}`", span_of(c[1]), hint)
        return s.Cast(self.value(c[0]), name.upper(), span=span)

    def _only(self, function: str, arguments: list[s.Node], span: s.Span) -> s.Node:
        if len(arguments) != 1:
            self.fail(f"{function} takes one argument, not {len(arguments)}", span)
        return arguments[0]

    def _pick(self, function: str, argument: s.Node, span: s.Span) -> s.Node:
        """FIRST(v), LAST(v), NEXT(v) or PREV(v), awaiting `.attr`; SQL's `PREV(v.attr)` is whole."""
        if _is_bare(argument):
            if function == "PREV":
                return IndexedReference(argument.var, argument.attr, "i-1", span=span)
            hint = f"Write `{function}({argument.var}).{argument.attr}`."
            self.fail(f"{function} takes a variable", argument.span, hint)
        if not isinstance(argument, ExpressionName):
            self.fail(f"{function} takes a variable", argument.span, f"Write `{function}(v).attribute`.")
        return IndexedReference(argument.name, "", f"pick {function}", span=span)

    def _aggregate(self, function: str, argument: s.Node, span: s.Span) -> s.Node:
        match argument:
            case IndexedReference(var=var, attr=attr, form=form) if form in SO_FAR and (function == "COUNT") != bool(
                attr
            ):
                return s.Prefix(function, var, attr or None, form == "..i", span=span)
            case ExpressionName(name=name) if function == "COUNT":
                return s.Aggregate(function, s.VariableReference(name, span=argument.span), span=span)
            case _ if function != "COUNT" and _has_reference(argument):
                return s.Aggregate(function, self.value(argument), span=span)
        if isinstance(argument, IndexedReference) and argument.form in SO_FAR:
            so_far = f"{argument.var}[{argument.form}]"
            if function == "COUNT":
                self.fail("COUNT counts events", argument.span, f"Write `COUNT({so_far})`.")
            self.fail(f"{function} takes an attribute", argument.span, f"Write `{function}({so_far}.attribute)`.")
        takes = "`*` or a variable" if function == "COUNT" else "an attribute such as `v.price`, or LENGTH"
        hint = "Write `COUNT(*)` for trends, `COUNT(v)` for events." if function == "COUNT" else None
        self.fail(f"{function} takes {takes}", argument.span, hint)

    # The meaning of a reference in its place

    def conjunct(self, condition: s.Condition) -> s.Condition:
        """Resolve the references of one conjunct of WHERE, which decide each other's meaning."""
        forms: dict[str, dict[str, IndexedReference]] = {}
        so_far: dict[str, s.Prefix] = {}
        settled = True
        for node in s.walk(condition):
            if isinstance(node, s.PartitionClause) and node is not condition:
                hint = "Write `WHERE [id] AND ...`, not inside OR or NOT."
                self.fail("a partition stands alone between ANDs", node.span, hint)
            if isinstance(node, IndexedReference):
                forms.setdefault(node.var, {})[node.form] = node
            elif isinstance(node, s.Prefix):
                so_far[node.var] = node
            settled = settled and not isinstance(node, _UNSETTLED)
        if settled:
            return condition
        for var, used in forms.items():
            if "next" in used and "i-1" in used:
                what = f"`NEXT({var})` and `{var}[i-1]` are two notations for neighbours"
                self.fail(what, used["next"].span, "Use one of them in a condition.")
            if "next" in used and var in so_far:
                what = f"`NEXT({var})` stands beside the events so far, which end at `{var}[i]`"
                self.fail(what, used["next"].span, f"Write `{var}[i]` and `{var}[i-1]`.")
        return cast(s.Condition, s.rebuild(condition, lambda n: self._in_condition(n, forms)))

    def _in_condition(self, node: s.Node, forms: Mapping[str, Mapping[str, IndexedReference]]) -> s.Node | None:
        if isinstance(node, s.Attribute):
            if node.var not in forms or not _is_bare(node):
                return None
            return s.Attribute(node.var, node.attr, _which("bare", forms[node.var]), span=node.span)
        if isinstance(node, IndexedReference):
            self._complete(node)
            return s.Attribute(node.var, node.attr, _which(node.form, forms[node.var]), span=node.span)
        if isinstance(node, ExpressionName):
            return self.parameter(node)
        if isinstance(node, s.Length) or (isinstance(node, s.Aggregate) and isinstance(node.argument, s.Length)):
            self.fail("LENGTH stands in HAVING, not in WHERE", node.span, "Write `HAVING LENGTH >= 2`.")
        if isinstance(node, s.Aggregate):
            if node.argument is None:
                self._of_all(node)
            return node if _is_bare(node.argument) else None  # `AVG(s.x)` speaks of all events, whatever stands beside
        return None

    def parameter(self, node: ExpressionName) -> s.Parameter:
        """Return a bare name as a parameter."""
        written = self.written(node)
        if written.upper() == "NULL":
            self.fail("nothing equals NULL", node.span, "Write `IS NULL` or `IS NOT NULL`.")
        if written.upper() in KEYWORDS:
            hint = "A parameter that is spelled like a keyword goes in backticks."
            self.fail(f"`{written}` is a keyword, expected a value", node.span, hint)
        return s.Parameter(node.name, span=node.span)

    def _complete(self, node: IndexedReference) -> None:
        if node.form in SO_FAR:
            so_far = f"{node.var}[{node.form}]"
            example = f"AVG({so_far}.{node.attr})" if node.attr else f"COUNT({so_far})"
            self.fail(f"`{so_far}` stands inside an aggregate or IN", node.span, f"Write `{example}`.")
        if node.form.startswith("pick "):
            written = f"{node.form.removeprefix('pick ')}({node.var})"
            what = f"{written} is an event; name one of its attributes"
            self.fail(what, node.span, f"Write `{written}.attribute`.")

    def of_trend(self, condition: s.Condition) -> s.Condition:
        """Resolve the references of one conjunct of HAVING, which speaks of a whole trend."""
        return cast(s.Condition, s.rebuild(condition, self._in_having))

    def _in_having(self, node: s.Node) -> s.Node | None:
        match node:
            case s.PartitionClause():
                self.fail("a partition stands in WHERE", node.span, "Write `WHERE [id]`.")
            case s.Aggregate(argument=None | s.Length()):
                self._of_all(node)
            case ExpressionName():
                return self.parameter(node)
        return self._in_output(node)

    def _of_all(self, node: s.Aggregate) -> NoReturn:
        what = f"`{self.written(node)}` speaks of all trends; a condition of one"
        self.fail(
            what, node.span, "Write `COUNT(v)` for the events of a variable; `HAVING LENGTH >= 2` asks for the length."
        )

    def output(self, node: s.Node) -> Any:
        """Resolve the references in RETURN, AGGREGATE and ORDER BY."""
        return s.rebuild(self.value(node), self._in_output)

    def _in_output(self, node: s.Node) -> s.Node | None:
        if isinstance(node, ExpressionName):
            return s.VariableReference(node.name, span=node.span)
        if isinstance(node, s.Prefix):
            whole = node.var if node.attr is None else f"{node.var}.{node.attr}"
            hint = f"Write `{node.function}({whole})`." if node.function else None
            self.fail("events so far have no meaning outside WHERE", node.span, hint)
        if isinstance(node, s.Attribute) and node.iteration is not None:
            hint = f"Write `FIRST({node.var}).{node.attr}` for the first of all iterations."
            self.fail("single iterations have no meaning outside WHERE", node.span, hint)
        if not isinstance(node, IndexedReference):
            return None
        self._complete(node)
        if node.form != "bare":
            v, x = node.var, node.attr
            hint = f"Write `{v}.{x}`, `FIRST({v}).{x}` or `{v}[1].{x}`."
            self.fail("neighbours have no meaning outside WHERE", node.span, hint)
        return s.Attribute(node.var, node.attr, span=node.span)


def _is_bare(node: s.Node) -> TypeGuard[s.Attribute]:
    """Return whether a reference is written `v.x`."""
    return isinstance(node, s.Attribute) and node.which is s.Which.EACH and node.iteration is None


def _has_reference(node: s.Node) -> bool:
    """Return whether a value reads something of a trend; a variable alone, or the next event, is no value of one."""
    if isinstance(node, ExpressionName):
        return False
    inside = (s.Attribute, s.Length, s.Aggregate)
    return any(isinstance(n, inside) or (isinstance(n, IndexedReference) and n.attr) for n in s.walk(node))


def _values_so_far(item: Any) -> Any:
    """Return the values so far as a list that IN takes; any other item as it is."""
    if isinstance(item, IndexedReference) and item.form in SO_FAR and item.attr:
        return s.Prefix("", item.var, item.attr, item.form == "..i", span=item.span)
    return item


def _which(form: str, used: Mapping[str, IndexedReference]) -> s.Which:
    """Return which event a reference means beside the forms that others of its variable have."""
    if form == "i-1" or (form != "next" and "next" in used):
        return s.Which.EARLIER
    return s.Which.LATER if form == "next" or "i-1" in used else s.Which.EACH
