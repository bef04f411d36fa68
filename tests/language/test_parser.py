"""What the text of a query becomes: nodes, notations that mean the same, and the kinds of conditions."""

from __future__ import annotations

import pickle
from decimal import Decimal

import pytest

from trellis.errors import BindError, QuerySyntaxError
from trellis.language import syntax as s
from trellis.language.binder import bind
from trellis.language.bound import BoundQuery, ConditionKind
from trellis.language.parser import parse, parse_literal
from trellis.language.printer import condition_text, pattern_text, to_query_text, value_text
from trellis.language.schema import BOOLEAN, DOUBLE, INTEGER, STRING, TIMESTAMP, Schema, Table, Type, decimal

COLUMNS = {
    "ts": TIMESTAMP, "id": INTEGER, "name": STRING, "price": DOUBLE, "size": INTEGER, "fee": decimal(2),
    "flag": BOOLEAN,
}  # fmt: skip
EVENTS = Schema((Table(None, COLUMNS),), "ts")


def where(condition: str, pattern: str = "S+ s[]") -> tuple[s.Condition, ...]:
    return parse(f"PATTERN {pattern} WHERE {condition}").where


def bound(text: str, schema: Schema | None = EVENTS, **params: object) -> BoundQuery:
    return bind(parse(text), text, schema, params)


def each(attr: str, var: str = "s") -> s.Attribute:
    return s.Attribute(var, attr)


# --- Patterns ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ("Stock s", s.Single("Stock", "s")),
        ("Stock+ s[]", s.Kleene("Stock", "s")),
        ("stock + s[ ]", s.Kleene("stock", "s")),
        ("Stock", s.Single("Stock", "Stock")),
        ("Stock+", s.Kleene("Stock", "Stock")),
        ("Order+ o[]", s.Kleene("Order", "o")),
        ("Select `where`", s.Single("Select", "where")),
        ("`a b` `c:d`", s.Single("a b", "c:d")),
        ("T1;T2;T3", s.Seq((s.Single(None, "T1"), s.Single(None, "T2"), s.Single(None, "T3")))),
        ("T1; S s; S+ t[]", s.Seq((s.Single(None, "T1"), s.Single("S", "s"), s.Kleene("S", "t")))),
        ("SEQ(A, B, A)", s.Seq((s.Single("A", "A"), s.Single("B", "B"), s.Single("A", "A_2")))),
        ("SEQ(A+, `A` +, A)", s.Seq((s.Kleene("A", "A"), s.Kleene("A", "A_2"), s.Single("A", "A_3")))),
        ("SEQ(A A, A)", s.Seq((s.Single("A", "A"), s.Single("A", "A")))),
        ("SEQ(A, NOT(B), C)", s.Seq((s.Single("A", "A"), s.Absent((s.Single("B", "B"),)), s.Single("C", "C")))),
        ("SEQ(A, OR(B, C))", s.Seq((s.Single("A", "A"), s.Or((s.Single("B", "B"), s.Single("C", "C")))))),
        ("AND(A a, B b)", s.And((s.Single("A", "a"), s.Single("B", "b")))),
        ("SEQ(A a)", s.Single("A", "a")),
        ("OR(AND(A a))", s.Single("A", "a")),
        ("(A a)", s.Single("A", "a")),
        ("(a; b); c", s.Seq((s.Seq((s.Single(None, "a"), s.Single(None, "b"))), s.Single(None, "c")))),
        ("A* a[]", s.Kleene("A", "a", 0)),
        ("A{3} a[]", s.Kleene("A", "a", 3, 3)),
        ("A{2,5} a[]", s.Kleene("A", "a", 2, 5)),
        ("A{2, } a[]", s.Kleene("A", "a", 2)),
        ("A{2,}", s.Kleene("A", "A", 2)),
        ("A? a", s.Single("A", "a", optional=True)),
        ("SEQ(A+ a[], B b)+", s.Group(s.Seq((s.Kleene("A", "a"), s.Single("B", "b"))))),
        ("(A a)*", s.Group(s.Single("A", "a"), 0)),
        ("OR(A, B){1,2} g[]", s.Group(s.Or((s.Single("A", "A"), s.Single("B", "B"))), 1, 2, "g")),
        ("AND(A, B)? g[]", s.Group(s.And((s.Single("A", "A"), s.Single("B", "B"))), 0, 1, "g")),
        (
            "SEQ(A, contiguous B+ b[] skip-till-next, skip-till-any C)",
            s.Seq(
                (
                    s.Single("A", "A"),
                    s.PolicyStep(s.Select.CONTIGUOUS, s.Kleene("B", "b", policy=s.Select.NEXT)),
                    s.PolicyStep(s.Select.ANY, s.Single("C", "C")),
                )
            ),
        ),
        (
            "B+ b[] greedy UNTIL (b.x > 1)",
            s.Kleene("B", "b", greedy=True, until=s.Comparison(">", s.Attribute("b", "x"), s.Integer(1))),
        ),
    ],
)
def test_pattern(text: str, pattern: s.Pattern):
    assert parse(f"PATTERN {text}").pattern == pattern


def test_a_repeated_name_is_printed_so_that_it_is_not_numbered():
    arms = s.Or((s.Seq((s.Single("A", "A"), s.Single("B", "b"))), s.Seq((s.Single("A", "A"), s.Single("C", "c")))))
    assert pattern_text(arms) == "OR(SEQ(A A, B b), SEQ(A A, C c))"


# --- Words, comments, notations ---------------------------------------------------------------------------------


def test_keywords_in_any_case_and_comments():
    text = """
    pattern Stock+ s[] -- the pattern
    -- a whole line
    Where s.price > 1 and s.name <> 'x--y' Having Length >= 2 select SKIP-TILL-NEXT
    report MAXIMAL within 1 HOUR slide 10 Min return s.price as p order by length desc limit 5 per window offset 2
    """
    query = parse(text)
    assert query.where == (
        s.Comparison(">", each("price"), s.Integer(1)),
        s.Comparison("!=", each("name"), s.String("x--y")),
    )
    assert query.having == (s.Comparison(">=", s.Length(), s.Integer(2)),)
    assert (query.select, query.report) == (s.Select.NEXT, s.Report.MAXIMAL)
    assert query.within == s.WithinClause(s.Duration(3_600_000_000), s.Duration(600_000_000))
    assert query.returns == (s.Item(each("price"), "p"),)
    assert query.order_by == (s.Sort(s.Length(), descending=True),)
    assert (query.limit, query.per_window, query.offset) == (5, True, 2)


@pytest.mark.parametrize("word", ["order", "WHERE", "time", "length", "null", "in", "seq", "window", "`a b`", "`x`"])
def test_any_word_may_follow_a_dot(word: str):
    name = word.strip("`")
    assert where(f"s.{word} > 1") == (s.Comparison(">", each(name), s.Integer(1)),)
    assert where(f"FIRST(s).{word} > s[2].{word}") == (
        s.Comparison(">", s.Attribute("s", name, s.Which.FIRST), s.Attribute("s", name, s.Which.NTH, 2)),
    )


@pytest.mark.parametrize(
    "notation",
    [
        "s.price < NEXT(s).price",
        "s[i].price < NEXT(s).price",
        "s[i-1].price < s[i].price",
        "s[ i - 1 ].price < s.price",
        "s[i-1].price<s[i].price",
    ],
)
def test_notations_of_adjacency_are_one_node(notation: str):
    earlier, later = (s.Attribute("s", "price", which) for which in (s.Which.EARLIER, s.Which.LATER))
    assert where(notation) == (s.Comparison("<", earlier, later),)


def test_an_index_without_its_neighbour_means_each_event():
    assert where("s[i].price > 1") == where("s.price > 1")


def test_notations_are_resolved_conjunct_by_conjunct():
    first, second = where("s.price < NEXT(s).price AND s.size > 1")
    assert first.left.which is s.Which.EARLIER
    assert second.left.which is s.Which.EACH


def test_where_is_split_at_and():
    assert len(where("s.a = 1 AND (s.b = 2 AND s.c = 3) AND (s.d = 4 OR s.e = 5 AND s.f = 6)")) == 4


def test_a_between_keeps_its_and():
    assert where("s.a BETWEEN 1 AND 2 AND s.b = 3") == (
        s.RangeTest(each("a"), s.Integer(1), s.Integer(2)),
        s.Comparison("=", each("b"), s.Integer(3)),
    )


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("s.a NOT IN (1, 2)", "NOT s.a IN (1, 2)"),
        ("s.a NOT BETWEEN 1 AND 2", "NOT (s.a BETWEEN 1 AND 2)"),
        ("s.a NOT LIKE 'x%'", "NOT s.a LIKE 'x%'"),
        ("s.a IS NOT NULL", "NOT (s.a IS NULL)"),
        ("s.a <> 1", "s.a != 1"),
        ("s.a = +1", "s.a = 1"),
        ("s.a + s.b * 2 = 1", "(s.a + (s.b * 2)) = 1"),
        ("s.a - s.b - 2 = 1", "((s.a - s.b) - 2) = 1"),
        ("s.a = 1 OR s.b = 2 AND s.c = 3", "s.a = 1 OR (s.b = 2 AND s.c = 3)"),
        ("NOT s.a = 1 OR s.b = 2", "(NOT s.a = 1) OR s.b = 2"),
        ("s.ts > TIMESTAMP '2024-01-31T10:00:00+02:00'", "s.ts > TIMESTAMP '2024-01-31 08:00'"),
        ("s.ts > DATE '2024-01-31'", "s.ts > TIMESTAMP '2024/01/31'"),
    ],
)
def test_two_ways_to_write_one_thing(text: str, meant: str):
    assert where(text) == where(meant)


def test_precedence_of_negation_and_product():
    (condition,) = where("-s.a * 2 = - (s.b + 1)")
    assert condition == s.Comparison(
        "=",
        s.Arithmetic("*", s.Negative(each("a")), s.Integer(2)),
        s.Negative(s.Arithmetic("+", each("b"), s.Integer(1))),
    )


# --- Literals ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "micros"),
    [
        ("1 us", 1), ("5 ms", 5_000), ("1 s", 10**6), ("1 sec", 10**6), ("2 seconds", 2 * 10**6), ("90s", 90 * 10**6),
        ("1 min", 60 * 10**6), ("10 minutes", 600 * 10**6), ("1 h", 3600 * 10**6), ("2 hours", 7200 * 10**6),
        ("1 day", 86400 * 10**6), ("1 week", 604800 * 10**6), ("0.5 ms", 500), ("1.5 h", 5400 * 10**6),
        ("1e-6 s", 1), ("1 WEEKS", 604800 * 10**6),
    ],
)  # fmt: skip
def test_units(text: str, micros: int):
    assert parse(f"PATTERN A WITHIN {text}").within == s.WithinClause(s.Duration(micros))
    assert parse_literal(text) == s.Duration(micros)


@pytest.mark.parametrize(
    ("text", "literal"),
    [
        ("90", s.Integer(90)),
        (" 90 ", s.Integer(90)),
        ("+90", s.Integer(90)),
        ("-90", s.Negative(s.Integer(90))),
        ("-1.5", s.Negative(s.Real(Decimal("1.5")))),
        (".5e3", s.Real(Decimal(500))),
        ("1E3", s.Real(Decimal(1000))),
        ("-90 s", s.Negative(s.Duration(90_000_000))),
        ("true", s.Boolean(True)),
        ("FALSE", s.Boolean(False)),
        ("'it''s'", s.String("it's")),
        ("TIMESTAMP '1970-01-01 00:00:00.000001'", s.Timestamp(1)),
        ("date '1970-01-02'", s.Timestamp(86_400_000_000)),
    ],
)
def test_parse_literal(text: str, literal: s.Literal | s.Negative):
    assert parse_literal(text) == literal


@pytest.mark.parametrize(
    "text",
    [
        "", "  ", "hello", "90 apples", "90 LIMIT 0", "90 OFFSET 0", "90 -- why", "(90)", "90, 91", "90 AS x", "a.b",
        "LENGTH", "1 + 1", "--90", "1.2.3", "0.1 us", "1e999", "TIMESTAMP '2024-13-01'", "NULL", "'open", "9" * 5000,
    ],
)  # fmt: skip
def test_no_literal(text: str):
    assert parse_literal(text) is None


@pytest.mark.parametrize(
    ("text", "micros"),
    [
        ("2024-01-31", 1_706_659_200_000_000),
        ("2024/01/31 09:30", 1_706_693_400_000_000),
        ("2024-01-31 09:30:00.5", 1_706_693_400_500_000),
        ("2024-01-31T09:30:00.123456000", 1_706_693_400_123_456),
        ("2024-01-31 09:30:00Z", 1_706_693_400_000_000),
        ("2024-01-31 09:30:00 -0130", 1_706_698_800_000_000),
        ("0001-01-01", -62_135_596_800_000_000),
    ],
)
def test_timestamps(text: str, micros: int):
    assert where(f"s.ts > TIMESTAMP '{text}'")[0].right == s.Timestamp(micros)


# --- The kinds of conditions ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("condition", "kind", "variables"),
    [
        ("s.name = 'x'", ConditionKind.CONSTANT, ("s",)),
        ("s.price * s.size > 1000", ConditionKind.CONSTANT, ("s",)),
        ("s[i].price > 1", ConditionKind.CONSTANT, ("s",)),
        ("a.name = 'x' OR a.size = 2", ConditionKind.CONSTANT, ("a",)),
        ("FIRST(a).size = 2", ConditionKind.CONSTANT, ("a",)),
        ("1 < 2", ConditionKind.CONSTANT, ()),
        ("s[i].price > 1.1 * s[i-1].price", ConditionKind.ADJACENT, ("s",)),
        ("s.name = NEXT(s).name", ConditionKind.ADJACENT, ("s",)),
        ("s[i].time - s[i-1].time <= 5 min", ConditionKind.ADJACENT, ("s",)),
        ("NEXT(s).price > 3", ConditionKind.ADJACENT, ("s",)),
        ("a.price * 2 < s.price", ConditionKind.ACROSS, ("a", "s")),
        ("LAST(s).price < b.price", ConditionKind.ACROSS, ("s", "b")),
        ("b.price > a.price", ConditionKind.ACROSS, ("a", "b")),
        ("s[2].price > 3", ConditionKind.ACROSS, ("s",)),
        ("s.price > FIRST(s).price", ConditionKind.ACROSS, ("s",)),
        ("s[i].price > s[i-1].price + a.price", ConditionKind.REST, ("a", "s")),
        ("s[i].price > s[i-1].price OR s[i].price > FIRST(s).price", ConditionKind.REST, ("s",)),
    ],
)
def test_kind(condition: str, kind: ConditionKind, variables: tuple[str, ...]):
    query = bound(f"PATTERN SEQ(S a, S+ s[], S b) WHERE {condition}")
    assert [(c.kind, c.variables) for c in query.conditions] == [(kind, variables)]


def test_partitions_are_kept_apart():
    query = bound("PATTERN S+ s[] WHERE [id] AND s.price > 1 AND [name, id]")
    assert query.partition == (("id", INTEGER), ("name", STRING))
    assert [c.text for c in query.conditions] == ["s.price > 1"]


def test_time_is_the_time_column():
    query = bound("PATTERN S+ s[] WHERE s.time > TIMESTAMP '2024-01-01'")
    assert query.conditions[0].value.arguments[0].name == "ts"


def test_a_column_called_time_wins():
    schema = Schema((Table(None, {"ts": TIMESTAMP, "time": INTEGER}),), "ts")
    assert bound("PATTERN S+ s[] WHERE s.time > 5", schema).conditions[0].value.arguments[0].name == "time"


def test_literals_follow_the_type_beside_them():
    query = bound("PATTERN S s WHERE s.fee > 1.50 AND s.price > 1.50 AND s.ts > '2024-01-31' AND s.fee > -0.5")
    constants = [c.value.arguments[1] for c in query.conditions]
    assert [(c.value, c.type.kind) for c in constants] == [
        (Decimal("1.50"), "decimal"),
        (1.5, "double"),
        (1_706_659_200_000_000, "timestamp"),
        (Decimal("-0.5"), "decimal"),
    ]
    assert constants[0].type == decimal(1)


def test_a_number_too_long_for_a_decimal_is_a_double():
    assert bound("PATTERN S s WHERE s.fee > 1e60").conditions[0].value.arguments[1].type == DOUBLE


def test_parameters_are_read_as_literals_and_beside_strings_as_text():
    text = "PATTERN S s WHERE s.size > n AND s.name = n WITHIN w"
    query = bound(text, n="007", w="90 s")
    assert [c.value.arguments[1].value for c in query.conditions] == [7, "007"]
    assert query.window.size == 90_000_000
    assert query.parameters == (("n", "007"), ("w", "90 s"))


def test_types_of_arithmetic():
    text = (
        "PATTERN S+ s[] RETURN SUM(s.size) / 2 AS a, SUM(s.size) * 2 AS b, MAX(s.fee) * MIN(s.fee) AS c, -LENGTH AS d"
    )
    assert [c.type for c in bound(text).columns[-4:]] == ["double", "int64", "decimal(38,4)", "int64"]


def test_binding_deep_expressions_takes_no_time():
    nested = "COALESCE(" * 90 + "s.price" + ", 1.5)" * 90
    assert bound(f"PATTERN S s WHERE {nested} > 1 AND {'(' * 45}s.price{' + 1)' * 45} > 1").conditions


# --- Output -----------------------------------------------------------------------------------------------------


def test_names_of_columns():
    text = (
        "PATTERN SEQ(S a, S+ s[]) RETURN a, s, a.price, s.price, FIRST(s).name, LAST(s).name, SUM(s.size), LENGTH AS n"
    )
    assert [(c.name, c.type) for c in bound(text).columns[4:]] == [
        ("a", "int64"), ("s", "array<int64>"), ("a_price", "double"), ("s_price", "array<double>"),
        ("first_s_name", "string"), ("last_s_name", "string"), ("sum_s_size", "decimal(38,0)"), ("n", "int64"),
    ]  # fmt: skip


def test_names_of_aggregates():
    text = "PATTERN S+ s[] WHERE [id, name] AGGREGATE COUNT(*), COUNT(s), AVG(s.price), MAX(LENGTH) AS m GROUP BY name"
    assert [c.name for c in bound(text).columns] == [
        "name", "count", "count_text", "count_s", "count_s_text", "avg_s_price", "m",
    ]  # fmt: skip


def test_order_by_knows_the_names_that_return_gives():
    query = parse("PATTERN S+ s[] RETURN SUM(s.size) AS total, LENGTH AS n ORDER BY total DESC, n * 2")
    total = s.Aggregate("SUM", each("size"))
    assert query.order_by == (
        s.Sort(total, descending=True),
        s.Sort(s.Arithmetic("*", s.Length(), s.Integer(2))),
    )
    assert "ORDER BY total DESC, n * 2" in to_query_text(query)


def test_a_name_that_return_gives_hides_a_variable():
    query = parse("PATTERN SEQ(A a, B b) RETURN b AS a, a AS b ORDER BY a")
    assert query.order_by == (s.Sort(s.VariableReference("b")),)
    assert parse(to_query_text(query)) == query


def test_a_name_that_return_gives_is_no_variable_of_an_aggregate():
    query = parse("PATTERN A+ a[] RETURN LENGTH AS a ORDER BY MIN(LENGTH), COUNT(a)")
    assert query.order_by == (
        s.Sort(s.Aggregate("MIN", s.Length())),
        s.Sort(s.Aggregate("COUNT", s.VariableReference("a"))),
    )
    assert parse(to_query_text(query)) == query


# --- Iterations -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "iteration"),
    [
        ("g[i].a.x", s.Iteration("g", s.Which.LATER)),
        ("g[i-1].a.x", s.Iteration("g", s.Which.EARLIER)),
        ("g[3].a.x", s.Iteration("g", s.Which.NTH, 3)),
        ("FIRST(g).a.x", s.Iteration("g", s.Which.FIRST)),
        ("LAST(`my group`).a.x", s.Iteration("my group", s.Which.LAST)),
    ],
)
def test_iterations_of_groups(text: str, iteration: s.Iteration):
    tree = parse(f"PATTERN SEQ(A a, B b)+ g[] WHERE {text} > 1")
    assert tree.where == (s.Comparison(">", s.Attribute("a", "x", iteration=iteration), s.Integer(1)),)
    assert parse(to_query_text(tree)) == tree


# --- Printing and places ----------------------------------------------------------------------------------------


def test_a_query_is_printed_a_clause_a_line():
    text = """PATTERN SEQ(Stock a, Stock+ s[])
WHERE [id]
  AND (s.price > 1 OR a.`two words` IS NOT NULL AND a.order NOT IN (1, 2))
  AND s[i-1].price < s[i].price
HAVING LENGTH >= 2 AND LENGTH < 9
SELECT contiguous
REPORT any
WITHIN 1 h SLIDE 10 min
RETURN a AS x, SUM(s.price) AS total
ORDER BY total DESC
LIMIT 5 PER WINDOW
OFFSET 2"""
    printed = to_query_text(parse(text))
    assert printed == text.replace("a.`two words` IS NOT NULL AND a.order NOT IN (1, 2)",
                                   "(a.`two words` IS NOT NULL AND a.order NOT IN (1, 2))")  # fmt: skip


def test_printing_parts():
    (condition,) = where("s.a - (s.b - 1) > -(2 * 3) AND s.c = 5 min")[:1]
    assert condition_text(condition) == "s.a - (s.b - 1) > -(2 * 3)"
    assert value_text(s.Duration(90_000_000)) == "90 s"
    assert value_text(s.Timestamp(-62_135_596_800_000_000)) == "TIMESTAMP '0001-01-01 00:00:00'"


def test_every_node_knows_its_place():
    text = "PATTERN SEQ(A a, B+ b[])\nWHERE a.x + 1 > FIRST(b).y"
    query = parse(text)
    places = [text[n.span.start : n.span.end] for n in s.walk(query)]
    assert "a.x + 1 > FIRST(b).y" in places
    assert "FIRST(b).y" in places
    assert "B+ b[]" in places


def test_parameters_in_outputs_are_refused():
    with pytest.raises(BindError, match="`ratio` is a parameter, not a variable"):
        bound("PATTERN S s WHERE s.price > ratio RETURN ratio AS r", ratio=2)


def test_errors_survive_pickling():
    with pytest.raises(QuerySyntaxError) as caught:
        parse("PATTERN A a\nWERE")
    copy = pickle.loads(pickle.dumps(caught.value))
    assert str(copy) == str(caught.value)
    assert (copy.line, copy.column) == (2, 1)


def test_types_describe_themselves():
    assert Type(INTEGER.kind).described() == "an integer"
