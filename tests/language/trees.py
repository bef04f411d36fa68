"""Syntax trees as hypothesis draws them: every kind of node, within the invariants that the parser keeps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, TypeVar

from hypothesis import strategies as st

from trellis.language import syntax as s
from trellis.language.functions import CAST_TYPES

T = TypeVar("T")
PLAIN = ["a", "b", "s1", "price", "Größe", "_x", "i", "time", "NEXT", "first", "count", "TIMESTAMP", "min", "e5"]
KEYWORD_LIKE = ["order", "Where", "SEQ", "not", "null", "length", "by", "any", "window", "true", "desc", "between"]
QUOTED = ["concept:name", "two words", "1st", "it's", "--", "ä-ö", " ", "a.b", "[i]", '"', "\t", "日本 語"]
TYPES = ["A", "B", "Stock", "Order", "seq", "my type"]
TEXTS = ["", "it's", "''", "a%_\\", '"', "--x", "line\nbreak", "日本", "`", "TRUE", "5 min"]
REALS = ["0.0", "1E+5", "1e-7", "0E-10", "2.50", "1.5e300", "123456789012345678901234567890.5", "4.9e-320"]
WHOLE = [0, 1, 7, 2**31, 2**63 - 1, 2**63]
MICROS = [0, 1, 1000, 1_500_000, 60_000_000, 86_400_000_000, 604_800_000_000, 2**63 - 1]
MOMENTS = [0, -1, 1_700_000_000_000_000, -62_135_596_800_000_000, 253_402_300_799_999_999]
PAIR = [s.Which.EARLIER, s.Which.LATER]
NAME = st.sampled_from(PLAIN + KEYWORD_LIKE + QUOTED)
ANY_NAME = st.text(st.characters(exclude_characters="`\n", exclude_categories=["Cs"]), min_size=1, max_size=4)
ANY_TEXT = st.text(max_size=5)
ANY_REAL = st.decimals(0, 10**12, allow_nan=False)
CHOICE = {n: st.integers(0, n - 1) for n in range(1, 60)}


BOUNDS = [(1, None), (0, None), (2, None), (0, 1), (3, 3), (2, 5), (0, 1000)]


class Drawer:
    """Draws one tree; `depth` is how far it may still be nested."""

    def __init__(self, draw: Callable[[st.SearchStrategy[Any]], Any]) -> None:
        self.draw = draw

    def one(self, choices: Sequence[T]) -> T:
        return choices[self.draw(CHOICE[len(choices)])]

    def some(self, make: Callable[[], T], least: int, most: int) -> tuple[T, ...]:
        return tuple(make() for _ in range(least + self.draw(CHOICE[most - least + 1])))

    def perhaps(self, make: Callable[[], T], otherwise: T) -> T:
        return make() if self.one([False, True]) else otherwise

    def name(self) -> str:
        return self.draw(NAME if self.one([True, True, True, False]) else ANY_NAME)

    # Patterns

    def pattern(self, depth: int) -> s.Pattern:
        if depth == 0 or self.one([False, False, True]):
            return self.event()
        kind = self.one(["seq", "seq", "chain", "or", "and", "group"])
        if kind in ("seq", "chain"):
            return s.Seq(self.parts(depth - 1, kind == "chain"))
        if kind == "group":
            label = self.perhaps(self.name, None)
            policy = None if label is None else self.one([None, *s.Select])
            return s.Group(self.pattern(depth - 1), *self.one(BOUNDS), label, policy)
        return (s.Or if kind == "or" else s.And)(self.some(lambda: self.pattern(depth - 1), 2, 3))

    def parts(self, depth: int, chained: bool) -> tuple[s.Pattern, ...]:
        def part() -> s.Pattern:
            if self.one([False, False, True]):
                return self.absent()
            if chained and self.one([False, True]):
                return s.Single(None, self.name())
            return self.pattern(depth)

        def step() -> s.Pattern:
            return s.PolicyStep(self.one(list(s.Select)), self.pattern(depth)) if self.one([False, True]) else part()

        return (self.pattern(depth), *self.some(step, 1, 3))

    def absent(self) -> s.Absent:
        """A NOT of events, or of a pattern with a NOT anywhere in it, perhaps beside an optional part."""
        events = self.some(lambda: s.Single(self.one(TYPES), self.name()), 1, 2)
        if self.one([False, True]):
            return s.Absent(events)
        parts = [*self.some(lambda: self.one([s.Single, s.Kleene])(self.one(TYPES), self.name()), 2, 3)]
        kind = self.one([s.Seq, s.Seq, s.And, s.Or])
        if kind is s.Seq:
            parts.insert(self.one(range(len(parts) + 1)), s.Absent(events))
            parts += [s.Single("B", self.name(), True)] * self.one([0, 1])
        return s.Absent((kind(tuple(parts)),))

    def event(self) -> s.Pattern:
        type_ = self.one(["A", "A", *TYPES])
        name = type_ if self.one([False, True]) else self.name()
        if self.one([True, True, False]):
            return s.Single(type_, name, self.one([False, False, True]))
        until = self.perhaps(lambda: s.Comparison(">", s.Attribute(name, "x"), s.Integer(1)), None)
        policy = self.one([None, None, *s.Select])
        return s.Kleene(type_, name, *self.one(BOUNDS), policy, self.one([False, True]), until)

    # Values

    def literal(self) -> s.Expression:
        kind = self.one([s.Integer, s.Real, s.String, s.Boolean, s.Timestamp, s.Duration])
        if kind is s.Real:
            return s.Real(self.draw(ANY_REAL) if self.one([False, True]) else Decimal(self.one(REALS)))
        if kind is s.String:
            return s.String(self.draw(ANY_TEXT) if self.one([False, True]) else self.one(TEXTS))
        values = {s.Integer: WHOLE, s.Boolean: [True, False], s.Timestamp: MOMENTS, s.Duration: MICROS}
        return kind(self.one(values[kind]))

    def fixed(self) -> s.Expression:
        which = self.one([s.Which.FIRST, s.Which.LAST, s.Which.NTH])
        return s.Attribute(self.name(), self.name(), which, self.one([1, 2, 99]) if which is s.Which.NTH else None)

    def prefix(self) -> s.Expression:
        function = self.one(["COUNT", "SUM", "MIN", "MAX", "AVG"])
        return s.Prefix(function, self.name(), None if function == "COUNT" else self.name(), self.one([False, True]))

    def value(self, depth: int, leaf: Callable[[], s.Expression]) -> s.Expression:
        if depth == 0 or self.one([False, False, True]):
            return leaf()

        def inner() -> s.Expression:
            return self.value(depth - 1, leaf)

        kind = self.one(["negative", "arithmetic", "arithmetic", "arithmetic", "abs", "coalesce", "cast", "case"])
        if kind == "negative":
            return s.Negative(inner())
        if kind == "arithmetic":
            return s.Arithmetic(self.one("+-*/%"), inner(), inner())
        if kind == "cast":
            return s.Cast(inner(), self.one(list(CAST_TYPES)))
        if kind == "case":
            tests = self.some(lambda: self.condition(1, leaf, None), 1, 2)
            return s.Case(tests, tuple(inner() for _ in tests), inner() if self.one([False, True]) else None)
        if kind == "abs":
            one = self.one(["ABS", "ROUND", "SQRT", "LOWER", "DAY_OF_WEEK"])
            return s.Call(one, (inner(),))
        return s.Call("COALESCE", self.some(inner, 1, 3))

    # Conditions

    def conjunct(self) -> s.Condition:
        """Each variable of a conjunct is met event by event, or in pairs of neighbours, never both."""
        names = self.some(self.name, 1, 3)
        paired = {name for name in names if self.one([False, True])}

        def leaf() -> s.Expression:
            if self.one([False, True]):
                var = self.one(names)
                return s.Attribute(var, self.name(), self.one(PAIR) if var in paired else s.Which.EACH)
            return self.one([self.fixed, self.prefix, lambda: s.Parameter(self.name()), self.literal])()

        return self.condition(3, leaf, apart_from=s.Conjunction)

    def condition(self, depth: int, leaf: Callable[[], s.Expression], apart_from: type | None) -> s.Condition:
        kinds: list[type] = [s.Negation, s.Conjunction, s.Disjunction]
        kind = self.one([k for k in kinds if k is not apart_from])
        if depth == 0 or self.one([False, False, True]):
            return self.predicate(leaf)
        if kind is s.Negation:
            return s.Negation(self.condition(depth - 1, leaf, None))
        return kind(self.some(lambda: self.condition(depth - 1, leaf, kind), 2, 3))

    def predicate(self, leaf: Callable[[], s.Expression]) -> s.Condition:
        def value() -> s.Expression:
            return self.value(2, leaf)

        match self.one(["comparison", "comparison", "in", "between", "null", "like", "truth"]):
            case "comparison":
                return s.Comparison(self.one(["=", "!=", "<", "<=", ">", ">="]), value(), value())
            case "in":
                return s.Membership(value(), self.some(value, 1, 3))
            case "between":
                return s.RangeTest(value(), value(), value())
            case "null":
                return s.NullTest(value())
            case "like":
                return s.LikeTest(value(), value())
        return s.Truth(value())

    # Clauses

    def where(self) -> tuple[s.Condition, ...]:
        def partition() -> s.Condition:
            return s.PartitionClause(self.names(1))

        return self.some(lambda: self.one([self.conjunct, self.conjunct, partition])(), 0, 3)

    def names(self, least: int) -> tuple[s.Name, ...]:
        return self.some(lambda: s.Name(self.name()), least, 3)

    def duration(self) -> s.Expression:
        kind = self.one([s.Integer, s.Real, s.Duration, s.Parameter])
        if kind is s.Parameter:
            return s.Parameter(self.name())
        return s.Real(Decimal(self.one(REALS))) if kind is s.Real else kind(self.one(MICROS))

    def output(self) -> s.Expression:
        def leaf() -> s.Expression:
            plain = [
                lambda: s.VariableReference(self.one(["a", "b"])), lambda: s.VariableReference(self.name()), s.Length,
                self.aggregate,
                lambda: s.Attribute(self.name(), self.name()), self.fixed, self.literal,
            ]  # fmt: skip
            return self.one(plain)()

        return self.value(2, leaf)

    def aggregate(self) -> s.Expression:
        match self.one(["*", "v", "length", "attribute", "value"]):
            case "*":
                return s.Aggregate("COUNT", None)
            case "v":
                return s.Aggregate("COUNT", s.VariableReference(self.name()))
            case "length":
                return s.Aggregate(self.one(["SUM", "MIN", "MAX", "AVG"]), s.Length())
            case "value":
                gain = s.Arithmetic(self.one("+-*"), s.Attribute(self.name(), self.name()), self.literal())
                return s.Aggregate(self.one(["SUM", "MIN"]), gain)
        return s.Aggregate(self.one(["SUM", "MIN", "MAX", "AVG"]), s.Attribute(self.name(), self.name()))

    def items(self) -> tuple[s.Item, ...]:
        return self.some(lambda: s.Item(self.output(), self.one([None, "a", "b", self.name()])), 1, 3)

    def keys(self, returns: tuple[s.Item, ...]) -> tuple[s.Sort, ...]:
        """Keys of ORDER BY: a name that RETURN gives stands for its expression, never for a variable."""
        given = {item.alias: item.expression for item in returns if item.alias is not None}

        def expand(node: s.Node) -> s.Node | None:
            if isinstance(node, s.Aggregate):
                return node
            return given.get(node.var) if isinstance(node, s.VariableReference) else None

        def key() -> s.Sort:
            by_name = given and self.one([False, True])
            expression = s.VariableReference(self.one(list(given))) if by_name else self.output()
            return s.Sort(s.rebuild(expression, expand), self.one([False, True]))

        return self.some(key, 0, 2)

    def of_trend(self) -> s.Condition:
        """A conjunct of HAVING."""

        def number() -> s.Expression:
            return s.Aggregate("COUNT", s.VariableReference(self.name()))

        def summed() -> s.Expression:
            return s.Aggregate(self.one(["SUM", "MIN", "MAX", "AVG"]), s.Attribute(self.name(), self.name()))

        def leaf() -> s.Expression:
            return self.one([s.Length, number, summed, self.fixed, self.literal, lambda: s.Parameter(self.name())])()

        return self.condition(2, leaf, apart_from=s.Conjunction)

    def query(self) -> s.QuerySyntax:
        kind = self.one(["plain", "return", "aggregate"])
        returns = self.items() if kind == "return" else ()
        limit = self.one([None, *WHOLE[:-1]])
        per_event = s.PerEvent(self.one([None, self.name()])) if kind == "aggregate" and self.one([0, 1]) else None
        return s.QuerySyntax(
            pattern=self.pattern(2),
            where=self.where(),
            having=self.some(self.of_trend, 0, 2),
            select=self.one(list(s.Select)),
            report=self.one(list(s.Report)),
            within=self.perhaps(lambda: s.WithinClause(self.duration(), self.perhaps(self.duration, None)), None),
            returns=returns,
            aggregates=self.items() if kind == "aggregate" else (),
            group_by=self.names(0) if kind == "aggregate" and per_event is None else (),
            order_by=self.keys(returns),
            limit=limit,
            per_window=limit is not None and self.one([False, True]),
            offset=self.one(WHOLE[:-1]),
            limit_per=tuple(k.expression for k in self.keys(returns)) if limit is not None else (),
            after_match=self.perhaps(self.after_match, None),
            per_event=per_event,
        )

    def after_match(self) -> s.AfterMatch:
        skip = self.one(list(s.Skip))
        return s.AfterMatch(skip, self.name() if skip in (s.Skip.TO_FIRST, s.Skip.TO_LAST) else None)


@st.composite
def queries(draw: st.DrawFn) -> s.QuerySyntax:
    """A whole query."""
    return Drawer(draw).query()


@st.composite
def patterns(draw: st.DrawFn) -> s.Pattern:
    """A pattern alone, nested more deeply."""
    return Drawer(draw).pattern(4)


@st.composite
def conjuncts(draw: st.DrawFn) -> s.Condition:
    """A conjunct of WHERE."""
    return Drawer(draw).conjunct()
