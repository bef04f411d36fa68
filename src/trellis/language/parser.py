"""Query text to syntax tree."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cache
from importlib.resources import files
from typing import Any, NoReturn, cast

from lark import Lark, Token, Transformer, UnexpectedInput, v_args
from lark.exceptions import VisitError

from trellis.errors import QuerySyntaxError, TrellisError, did_you_mean, nearest
from trellis.language import syntax as s
from trellis.language.durations import UNITS, to_micros
from trellis.language.mistakes import explain_unexpected
from trellis.language.printer import KEYWORDS
from trellis.language.times import parse_timestamp

VALUE_FUNCTIONS = ("ABS", "COALESCE")
PICKS = {"NEXT": "next", "FIRST": s.Which.FIRST, "LAST": s.Which.LAST}
AGGREGATES = ("COUNT", "SUM", "MIN", "MAX", "AVG")
CLAUSES = ("WHERE", "HAVING", "SELECT", "REPORT", "WITHIN", "SLIDE", "RETURN", "AGGREGATE", "ORDER", "LIMIT", "OFFSET")
CONDITIONS = (
    s.Comparison, s.In, s.Between, s.IsNull, s.Like, s.Truth,
    s.Conjunction, s.Disjunction, s.Negation, s.Partition,
)  # fmt: skip


def parse(text: str) -> s.Query:
    """Return the syntax tree of a query.

    Raises
    ------
    QuerySyntaxError
        If the text is not a query; says line, column, what was expected, and what is near.
    """
    try:
        tree = _lark().parse(text)
    except UnexpectedInput as problem:
        raise explain_unexpected(problem, text) from None
    try:
        return cast(s.Query, _Builder(text).transform(tree))
    except VisitError as problem:
        if isinstance(problem.orig_exc, TrellisError):
            raise problem.orig_exc from None
        raise


def parse_literal(text: str) -> s.Literal | s.Negative | None:
    """Return the literal that a parameter's text stands for (`90`, `90 s`, `-1.5`, `true`), or None."""
    try:
        query = parse(f"PATTERN a RETURN {text}")
    except QuerySyntaxError:
        return None
    if len(query.returns) != 1 or query.returns[0].alias or query.order_by or query.limit or query.offset:
        return None
    expression = query.returns[0].expression
    inner = expression.operand if isinstance(expression, s.Negative) else expression
    literals = s.Integer | s.Real | s.Duration
    if expression is not inner:
        return expression if isinstance(inner, literals) else None  # type: ignore[return-value]
    return expression if isinstance(expression, literals | s.String | s.Boolean | s.Timestamp) else None


@cache
def _lark() -> Lark:
    grammar = files("trellis.language").joinpath("grammar.lark").read_text(encoding="utf-8")
    return Lark(grammar, start="query", parser="lalr", propagate_positions=True, maybe_placeholders=False)


@dataclass(frozen=True, slots=True)
class _Indexed(s.Node):
    """A reference whose meaning depends on the others of its conjunct: `s.x`, `s[i].x`, `s[i-1].x`, `NEXT(s).x`."""

    var: str
    attr: str
    form: str


@dataclass(frozen=True, slots=True)
class _Lone(s.Node):
    """A bare name in a pattern: a type in SEQ, an untyped variable between semicolons."""

    name: str
    kleene: bool = False


@dataclass(frozen=True, slots=True)
class _Bare(s.Node):
    """A bare name in an expression: a parameter in a condition, a variable in RETURN."""

    name: str


def _name(token: Token) -> str:
    return str(token)[1:-1] if token.startswith("`") else str(token)


def _span(token: Token) -> s.Span:
    return s.Span(cast(int, token.start_pos), cast(int, token.end_pos))


def _rebuild(node: s.Node, change: Callable[[s.Node], s.Node | None]) -> s.Node:
    """Return `node` with every node for which `change` gives one replaced by it, parents first."""
    changed = change(node)
    if changed is not None:
        return changed
    updates: dict[str, Any] = {}
    for f in node.__dataclass_fields__:
        value = getattr(node, f)
        if isinstance(value, s.Node):
            updates[f] = _rebuild(value, change)
        elif isinstance(value, tuple):
            updates[f] = tuple(_rebuild(v, change) if isinstance(v, s.Node) else v for v in value)
    return replace(node, **updates) if updates else node


@v_args(meta=True)
class _Builder(Transformer[Token, Any]):
    """Builds the typed tree from lark's, bottom up, and refuses what the grammar alone cannot."""

    def __init__(self, text: str) -> None:
        super().__init__(visit_tokens=False)
        self.text = text

    def fail(self, what: str, span: s.Span, hint: str | None = None) -> NoReturn:
        raise QuerySyntaxError(what, self.text, span.start, span.end, hint)

    @staticmethod
    def at(meta: Any) -> s.Span:
        return s.Span(meta.start_pos, meta.end_pos)

    # Patterns: elements first come with lone names, which their context then resolves.

    def lone(self, meta: Any, c: list[Token]) -> s.Node:
        return _Lone(_name(c[0]), span=self.at(meta))

    def single(self, meta: Any, c: list[Token]) -> s.Node:
        return s.Single(_name(c[0]), _name(c[1]), span=self.at(meta))

    def missing_plus(self, meta: Any, c: list[Token]) -> s.Node:
        self.fail(
            f"`{c[0]} {c[1]}[]` has brackets but no `+`", self.at(meta),
            f"Write `{c[0]}+ {c[1]}[]` for one or more events, `{c[0]} {c[1]}` for one.",
        )  # fmt: skip

    def quantified_lone(self, meta: Any, c: list[Token]) -> s.Node:
        if c[1] == "+":
            return _Lone(_name(c[0]), kleene=True, span=self.at(meta))
        reserved = s.Star if c[1] == "*" else s.Maybe
        return reserved(_name(c[0]), _name(c[0]), span=self.at(meta))

    def quantified(self, meta: Any, c: list[Token]) -> s.Node:
        if c[1] == "?":
            return s.Maybe(_name(c[0]), _name(c[2]), span=self.at(meta))
        self.fail(
            "a Kleene variable is written with brackets", _span(c[2]), f"Write `{c[0]}{c[1]} {c[2]}[]`."
        )

    def quantified_list(self, meta: Any, c: list[Token]) -> s.Node:
        if c[1] == "+":
            return s.Kleene(_name(c[0]), _name(c[2]), span=self.at(meta))
        if c[1] == "*":
            return s.Star(_name(c[0]), _name(c[2]), span=self.at(meta))
        self.fail(f"`{c[0]}? {c[2]}[]` has brackets, but `?` means one event or none", self.at(meta),
                  f"Write `{c[0]}+ {c[2]}[]` for one or more events.")  # fmt: skip

    def _typed(self, node: s.Node) -> s.Node:
        if isinstance(node, _Lone):
            kind = s.Kleene if node.kleene else s.Single
            return kind(node.name, node.name, span=node.span)
        return node

    def _untyped(self, node: s.Node) -> s.Node:
        if isinstance(node, _Lone):
            if node.kleene:
                self.fail("a Kleene variable between semicolons needs a type and a name", node.span,
                          f"Write `{node.name}+ v[]`, with a variable of your choice for `v`.")  # fmt: skip
            return s.Single(None, node.name, span=node.span)
        return node

    def _grouped(self, node: s.Node, quantifier: Token | None) -> s.Node:
        if quantifier is None:
            return node
        return s.Group(cast(s.Pattern, node), str(quantifier), span=s.Span(node.span.start, _span(quantifier).end))

    @staticmethod
    def _parts(c: list[Any]) -> tuple[list[s.Node], Token | None]:
        quantifier = c[-1] if isinstance(c[-1], Token) and c[-1].type == "QUANTIFIER" else None
        return [x for x in c if isinstance(x, s.Node)], quantifier

    def _composed(self, meta: Any, c: list[Any], build: Callable[..., s.Node], where: str) -> s.Node:
        parts, quantifier = self._parts(c)
        if where:
            for part in parts:
                if isinstance(part, s.Absent):
                    self.fail(f"NOT stands inside a SEQ, not inside {where}", part.span)
        return self._grouped(build(tuple(self._typed(p) for p in parts), span=self.at(meta)), quantifier)

    def seq(self, meta: Any, c: list[Any]) -> s.Node:
        return self._composed(meta, c, s.Seq, "")

    def or_pattern(self, meta: Any, c: list[Any]) -> s.Node:
        return self._composed(meta, c, s.Or, "OR")

    def and_pattern(self, meta: Any, c: list[Any]) -> s.Node:
        return self._composed(meta, c, s.And, "AND")

    def not_pattern(self, meta: Any, c: list[Any]) -> s.Node:
        parts, quantifier = self._parts(c)
        events = [self._typed(p) for p in parts]
        for event in events:
            if not isinstance(event, s.Single):
                self.fail("NOT takes single events", event.span, "Write `NOT(E v)` or `NOT(E v, F w)`.")
        if quantifier is not None:
            self.fail(f"`{quantifier}` cannot follow NOT", _span(quantifier))
        return s.Absent(cast(tuple[s.Single, ...], tuple(events)), span=self.at(meta))

    def chain(self, meta: Any, c: list[Any]) -> s.Node:
        parts, quantifier = self._parts(c)
        return self._grouped(self._chained(parts, self.at(meta)), quantifier)

    def _chained(self, parts: list[s.Node], span: s.Span) -> s.Node:
        if len(parts) == 1:
            return self._typed(parts[0])
        return s.Seq(cast(tuple[s.Pattern, ...], tuple(self._untyped(p) for p in parts)), span=span)

    def pattern(self, meta: Any, c: list[s.Node]) -> s.Pattern:
        tree = cast(s.Pattern, self._chained(c, self.at(meta)))
        if isinstance(tree, s.Absent):
            self.fail("a pattern cannot be a NOT alone", tree.span, "Write `SEQ(A a, NOT(B b), C c)`.")
        for node in s.walk(tree):
            if isinstance(node, s.Seq) and all(isinstance(p, s.Absent) for p in node.parts):
                self.fail("a SEQ needs a part that is not a NOT", node.span)
        return self._numbered(tree)

    def _numbered(self, tree: s.Pattern) -> s.Pattern:
        """Number repeated bare names: `SEQ(A, B, A)` binds `A`, `B` and `A_2`."""
        seen: dict[str, int] = {}

        def number(node: s.Node) -> s.Node | None:
            if not isinstance(node, s.Single | s.Kleene) or node.type != node.var:
                return None
            if self.text[node.span.start : node.span.end].strip("+`").strip() != node.type:
                return None
            seen[node.var] = seen.get(node.var, 0) + 1
            return replace(node, var=f"{node.var}_{seen[node.var]}") if seen[node.var] > 1 else node

        return cast(s.Pattern, _rebuild(tree, number))

    # Clauses

    def query(self, meta: Any, c: list[Any]) -> s.Query:
        query = s.Query(c[0], span=self.at(meta))
        for clause in c[1:]:
            query = replace(query, **clause)
        return self._with_aliases(query)

    def where(self, meta: Any, c: list[Any]) -> dict[str, Any]:
        condition = self._condition(c[0])
        terms = condition.terms if isinstance(condition, s.Conjunction) else (condition,)
        return {"where": tuple(self._conjunct(t) for t in terms)}

    def having(self, meta: Any, c: list[Any]) -> dict[str, Any]:
        return {"having": tuple(x for x in c if isinstance(x, s.LengthBound))}

    def length_bound(self, meta: Any, c: list[Token]) -> s.LengthBound:
        if c[1] in ("!=", "<>"):
            self.fail("LENGTH is compared with = < <= > or >=", _span(c[1]))
        return s.LengthBound(str(c[1]), int(c[2]), span=self.at(meta))

    def select(self, meta: Any, c: list[Token]) -> dict[str, Any]:
        return {"select": s.Select(c[0].lower())}

    def report(self, meta: Any, c: list[Token]) -> dict[str, Any]:
        return {"report": s.Report(c[0].lower())}

    def within(self, meta: Any, c: list[Any]) -> dict[str, Any]:
        durations = [self._parameter(x) if isinstance(x, _Bare) else x for x in c]
        return {"within": s.Within(*durations, span=self.at(meta))}

    def returns(self, meta: Any, c: list[s.Item]) -> dict[str, Any]:
        return {"returns": tuple(c)}

    def aggregates(self, meta: Any, c: list[Any]) -> dict[str, Any]:
        return {"aggregates": tuple(x for x in c if isinstance(x, s.Item))} | {
            k: v for x in c if isinstance(x, dict) for k, v in x.items()
        }

    def group(self, meta: Any, c: list[Token]) -> dict[str, Any]:
        return {"group_by": tuple(s.Name(_name(t), span=_span(t)) for t in c)}

    def item(self, meta: Any, c: list[Any]) -> s.Item:
        alias = _name(c[1]) if len(c) > 1 else None
        return s.Item(self._output(c[0]), alias, span=self.at(meta))

    def order(self, meta: Any, c: list[s.Sort]) -> dict[str, Any]:
        return {"order_by": tuple(c)}

    def sort(self, meta: Any, c: list[Any]) -> s.Sort:
        descending = len(c) > 1 and c[1].type == "DESC"
        return s.Sort(self._output(c[0]), descending, span=self.at(meta))

    def limit(self, meta: Any, c: list[Token]) -> dict[str, Any]:
        return {"limit": int(c[0]), "per_window": len(c) > 1}

    def offset(self, meta: Any, c: list[Token]) -> dict[str, Any]:
        return {"offset": int(c[0])}

    def _with_aliases(self, query: s.Query) -> s.Query:
        """Replace a name in ORDER BY that RETURN has given by what it stands for."""
        aliases = {i.alias: i.expression for i in query.returns if i.alias is not None}

        def resolve(node: s.Node) -> s.Node | None:
            return aliases.get(node.var) if isinstance(node, s.Variable) else None

        return replace(query, order_by=tuple(cast(s.Sort, _rebuild(k, resolve)) for k in query.order_by))

    # Conditions and values

    def _condition(self, node: s.Node) -> s.Condition:
        if isinstance(node, CONDITIONS):
            return cast(s.Condition, node)
        return s.Truth(self._value(node), span=node.span)

    def _value(self, node: s.Node) -> Any:
        if isinstance(node, CONDITIONS):
            kind = "a partition" if isinstance(node, s.Partition) else "a condition"
            self.fail(f"{kind} stands where a value is expected", node.span)
        return node

    def parenthesis(self, meta: Any, c: list[s.Node]) -> s.Node:
        return replace(c[0], span=self.at(meta))

    def disjunction(self, meta: Any, c: list[Any]) -> s.Node:
        return self._joined(s.Disjunction, meta, c)

    def conjunction(self, meta: Any, c: list[Any]) -> s.Node:
        return self._joined(s.Conjunction, meta, c)

    def _joined(self, kind: type[s.Conjunction | s.Disjunction], meta: Any, c: list[Any]) -> s.Node:
        terms: list[s.Condition] = []
        for term in (self._condition(x) for x in c if isinstance(x, s.Node)):
            terms.extend(term.terms if isinstance(term, kind) else [term])
        return kind(tuple(terms), span=self.at(meta))

    def negation(self, meta: Any, c: list[Any]) -> s.Node:
        return s.Negation(self._condition(c[-1]), span=self.at(meta))

    def comparison(self, meta: Any, c: list[Any]) -> s.Node:
        op = "!=" if c[1] == "<>" else str(c[1])
        return s.Comparison(op, self._value(c[0]), self._value(c[2]), span=self.at(meta))

    def _perhaps_not(self, node: s.Condition, c: list[Any]) -> s.Node:
        negated = any(isinstance(x, Token) and x.type == "NOT" for x in c)
        return s.Negation(node, span=node.span) if negated else node

    def contained(self, meta: Any, c: list[Any]) -> s.Node:
        operand, *items = (self._value(x) for x in c if isinstance(x, s.Node))
        return self._perhaps_not(s.In(operand, tuple(items), span=self.at(meta)), c)

    def between(self, meta: Any, c: list[Any]) -> s.Node:
        operand, low, high = (self._value(x) for x in c if isinstance(x, s.Node))
        return self._perhaps_not(s.Between(operand, low, high, span=self.at(meta)), c)

    def like(self, meta: Any, c: list[Any]) -> s.Node:
        operand, pattern = (self._value(x) for x in c if isinstance(x, s.Node))
        return self._perhaps_not(s.Like(operand, pattern, span=self.at(meta)), c)

    def is_null(self, meta: Any, c: list[Any]) -> s.Node:
        return self._perhaps_not(s.IsNull(self._value(c[0]), span=self.at(meta)), c)

    def arithmetic(self, meta: Any, c: list[Any]) -> s.Node:
        return s.Arithmetic(str(c[1]), self._value(c[0]), self._value(c[2]), span=self.at(meta))

    def signed(self, meta: Any, c: list[Any]) -> s.Node:
        operand = self._value(c[1])
        return s.Negative(operand, span=self.at(meta)) if c[0] == "-" else replace(operand, span=self.at(meta))

    def integer(self, meta: Any, c: list[Token]) -> s.Node:
        return s.Integer(int(c[0]), span=self.at(meta))

    def real(self, meta: Any, c: list[Token]) -> s.Node:
        return s.Real(Decimal(str(c[0])), span=self.at(meta))

    def quantity(self, meta: Any, c: list[Any]) -> s.Node:
        unit = _name(c[1])
        if unit.lower() not in UNITS:
            what = f"`{unit}` is no unit of time"
            near = nearest(unit, [*CLAUSES, "AND", "OR", *UNITS])
            units = "Units are ms, s, min, h, day and week; a month has no fixed length."
            self.fail(what, _span(c[1]), f"Did you mean `{near}`?" if near else units)
        micros = to_micros(c[0].value, unit)
        if micros is None:
            self.fail("a duration is a whole number of microseconds", self.at(meta))
        return s.Duration(micros, span=self.at(meta))

    def string(self, meta: Any, c: list[Token]) -> s.Node:
        return s.String(str(c[0])[1:-1].replace("''", "'"), span=self.at(meta))

    def true(self, meta: Any, c: list[Token]) -> s.Node:
        return s.Boolean(True, span=self.at(meta))

    def false(self, meta: Any, c: list[Token]) -> s.Node:
        return s.Boolean(False, span=self.at(meta))

    def typed_string(self, meta: Any, c: list[Token]) -> s.Node:
        if c[0].upper() not in ("TIMESTAMP", "DATE"):
            self.fail(f"`{c[0]}` cannot stand before a string", _span(c[0]),
                      did_you_mean(c[0], ["TIMESTAMP", "DATE", "LIKE", "IN"]))  # fmt: skip
        micros = parse_timestamp(str(c[1])[1:-1])
        if micros is None:
            self.fail(f"{c[1]} is no {c[0].lower()}", _span(c[1]), "Write it as '2024-01-31 09:30:00'.")
        return s.Timestamp(micros, span=self.at(meta))

    def name(self, meta: Any, c: list[Token]) -> s.Node:
        return _Bare(_name(c[0]), span=self.at(meta))

    def length(self, meta: Any, c: list[Token]) -> s.Node:
        return s.Length(span=self.at(meta))

    def attribute(self, meta: Any, c: list[Token]) -> s.Node:
        return _Indexed(_name(c[0]), _name(c[1]), "bare", span=self.at(meta))

    def index_name(self, meta: Any, c: list[Token]) -> tuple[str, Any]:
        self._must_be_i(c[0])
        return "i", None

    def index_offset(self, meta: Any, c: list[Token]) -> tuple[str, Any]:
        self._must_be_i(c[0])
        if c[1] != "-" or int(c[2]) != 1:
            self.fail("only neighbours can be compared", self.at(meta), "Write `[i]` and `[i-1]`.")
        return "i-1", None

    def index_number(self, meta: Any, c: list[Token]) -> tuple[str, Any]:
        if int(c[0]) < 1:
            self.fail("events of a variable are counted from 1", self.at(meta))
        return "nth", int(c[0])

    def index_prefix(self, meta: Any, c: list[Token]) -> tuple[str, Any]:
        self._must_be_i(c[0])
        return "prefix", None

    def _must_be_i(self, token: Token) -> None:
        if token != "i":
            self.fail(f"`[{token}]` is no index", _span(token), "Write `[i]`, `[i-1]`, or a number from 1.")

    def indexed(self, meta: Any, c: list[Any]) -> s.Node:
        var, (form, number), attr = _name(c[0]), c[1], _name(c[2])
        if form == "nth":
            return s.Attribute(var, attr, s.Which.NTH, number, span=self.at(meta))
        return _Indexed(var, attr, form, span=self.at(meta))

    def call_star(self, meta: Any, c: list[Token]) -> s.Node:
        if c[0].upper() != "COUNT":
            self.fail("`*` stands only in COUNT(*)", self.at(meta))
        return s.Aggregate("COUNT", None, span=self.at(meta))

    def call(self, meta: Any, c: list[Any]) -> s.Node:
        function, arguments = _name(c[0]).upper(), c[1:]
        if function in PICKS or function in AGGREGATES:
            return self._applied(function, arguments, c[0], self.at(meta))
        if function not in VALUE_FUNCTIONS:
            self.fail(f"there is no function `{c[0]}`", _span(c[0]),
                      did_you_mean(c[0], [*VALUE_FUNCTIONS, *PICKS, *AGGREGATES],
                                   "Functions are ABS, COALESCE, FIRST, LAST, NEXT, COUNT, SUM, MIN, MAX and AVG."))  # fmt: skip
        if function == "ABS" and len(arguments) != 1:
            self.fail(f"ABS takes one value, not {len(arguments)}", self.at(meta))
        return s.Call(function, tuple(self._value(a) for a in arguments), span=self.at(meta))

    def _applied(self, function: str, arguments: list[s.Node], token: Token, span: s.Span) -> s.Node:
        """FIRST(v), awaiting `.attr`, or an aggregate."""
        if len(arguments) != 1:
            self.fail(f"{function} takes one argument, not {len(arguments)}", span)
        argument = arguments[0]
        if function in PICKS:
            if not isinstance(argument, _Bare):
                self.fail(f"{function} takes a variable", argument.span, f"Write `{function}(v).attribute`.")
            return _Indexed(argument.name, "", f"pick {function}", span=span)
        if isinstance(argument, _Indexed) and argument.form == "prefix":
            return s.Prefix(function, argument.var, argument.attr, span=span)
        if isinstance(argument, _Indexed) and argument.form == "bare" and function != "COUNT":
            return s.Aggregate(function, s.Attribute(argument.var, argument.attr, span=argument.span), span=span)
        if isinstance(argument, _Bare) and function == "COUNT":
            return s.Aggregate(function, s.Variable(argument.name, span=argument.span), span=span)
        if isinstance(argument, s.Length) and function in ("MIN", "MAX", "AVG"):
            return s.Aggregate(function, argument, span=span)
        wanted = "`*` or a variable" if function == "COUNT" else "an attribute such as `v.price`, or LENGTH"
        if function == "SUM":
            wanted = "an attribute such as `v.price`"
        self.fail(f"{function} takes {wanted}", argument.span)

    def picked(self, meta: Any, c: list[Any]) -> s.Node:
        called, attr = c[0], _name(c[1])
        if not (isinstance(called, _Indexed) and called.form.startswith("pick ")):
            self.fail("only FIRST(v), LAST(v) and NEXT(v) have attributes", self.at(meta))
        which = PICKS[called.form.removeprefix("pick ")]
        if which == "next":
            return _Indexed(called.var, attr, "next", span=self.at(meta))
        return s.Attribute(called.var, attr, cast(s.Which, which), span=self.at(meta))

    def partition(self, meta: Any, c: list[Token]) -> s.Node:
        return s.Partition(tuple(s.Name(_name(t), span=_span(t)) for t in c), span=self.at(meta))

    # What a reference means in its place

    def _conjunct(self, condition: s.Condition) -> s.Condition:
        forms: dict[str, dict[str, _Indexed]] = {}
        for node in s.walk(condition):
            if isinstance(node, s.Partition) and node is not condition:
                self.fail("a partition stands alone between ANDs", node.span,
                          "Write `WHERE [id] AND ...`, not inside OR or NOT.")  # fmt: skip
            if isinstance(node, _Indexed):
                forms.setdefault(node.var, {})[node.form] = node
        for var, used in forms.items():
            if "next" in used and "i-1" in used:
                self.fail(f"`NEXT({var})` and `{var}[i-1]` are two notations for neighbours", used["next"].span,
                          "Use one of them in a condition.")  # fmt: skip
        return cast(s.Condition, _rebuild(condition, lambda n: self._in_condition(n, forms)))

    def _in_condition(self, node: s.Node, forms: dict[str, dict[str, _Indexed]]) -> s.Node | None:
        if isinstance(node, s.Length):
            self.fail("LENGTH stands in HAVING, not in WHERE", node.span, "Write `HAVING LENGTH >= 2`.")
        if isinstance(node, s.Aggregate):
            self.fail(f"{node.function} speaks of a whole trend; WHERE cannot", node.span,
                      "Use it in RETURN, ORDER BY or AGGREGATE.")  # fmt: skip
        if isinstance(node, _Bare):
            return self._parameter(node)
        if isinstance(node, _Indexed):
            self._complete(node)
            if node.form == "prefix":
                self.fail(f"`{node.var}[..i-1]` stands inside an aggregate", node.span)
            return s.Attribute(node.var, node.attr, self._which(node.form, forms[node.var]), span=node.span)
        return None

    def _parameter(self, node: _Bare) -> s.Parameter:
        written = self.text[node.span.start : node.span.end]
        if written.upper() == "NULL":
            self.fail("nothing equals NULL", node.span, "Write `IS NULL` or `IS NOT NULL`.")
        if written.upper() in KEYWORDS:
            self.fail(f"`{written}` is a keyword, expected a value", node.span,
                      "A parameter that is spelled like a keyword goes in backticks.")  # fmt: skip
        return s.Parameter(node.name, span=node.span)

    @staticmethod
    def _which(form: str, used: Sequence[str] | dict[str, _Indexed]) -> s.Which:
        if form == "i-1":
            return s.Which.EARLIER
        if form == "next":
            return s.Which.LATER
        if "next" in used:
            return s.Which.EARLIER
        return s.Which.LATER if "i-1" in used else s.Which.EACH

    def _complete(self, node: _Indexed) -> None:
        if node.form.startswith("pick "):
            function = node.form.removeprefix("pick ")
            self.fail(f"{function}({node.var}) is an event; name one of its attributes", node.span,
                      f"Write `{function}({node.var}).attribute`.")  # fmt: skip

    def _output(self, node: s.Node) -> Any:
        """Resolve names in RETURN, AGGREGATE and ORDER BY."""
        if isinstance(node, CONDITIONS):
            self.fail("a condition stands where a value is expected", node.span)

        def resolve(n: s.Node) -> s.Node | None:
            if isinstance(n, _Bare):
                return s.Variable(n.name, span=n.span)
            if isinstance(n, _Indexed):
                self._complete(n)
                if n.form != "bare":
                    self.fail("neighbours have no meaning outside WHERE", n.span,
                              f"Write `{n.var}.{n.attr}`, `FIRST({n.var}).{n.attr}` or `{n.var}[1].{n.attr}`.")  # fmt: skip
                return s.Attribute(n.var, n.attr, span=n.span)
            return None

        return _rebuild(node, resolve)

