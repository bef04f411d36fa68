"""Why events match or not: the reasons are the oracle's, and what is named as needed makes them match."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import trellis
from tests import oracle
from tests.compare import detect, expected
from tests.grouping import grouped_case
from tests.profiles import examples
from tests.strategies import Case, arrow_table, case, general_case
from trellis.errors import UsageError
from trellis.language import syntax as s
from trellis.language.printer import condition_text, to_query_text

PRICES = {"ts": [1, 2, 3, 4], "id": ["a", "b", "c", "d"], "g": ["x"] * 4, "price": [10.0, 30.0, 20.0, 40.0]}
RISING = "PATTERN S+ s[] WHERE [g] AND s[i].price > s[i-1].price"


@examples(30)
@given(st.one_of(case(), general_case()))
def test_every_condition_of_a_result_holds(drawn: Case) -> None:
    answer = expected(drawn)
    assume(not isinstance(answer, str) and answer.trends and answer.aggregates is None)
    for trend in detect(drawn)[:3]:
        reasons = trend.explain()
        assert [str(check) for check in reasons.failing] == []
        named = {check.condition for check in reasons}
        assert all(f"[{name}]" in named for name in trend.partition)


@examples(40)
@given(st.one_of(case(clauses=False), general_case(), grouped_case()), st.data())
def test_events_are_a_result_or_a_condition_says_why_not(drawn: Case, data: Any) -> None:
    answer = expected(drawn)
    name = drawn.options.get("event_id")
    assume(not isinstance(answer, str) and answer.aggregates is None and name is not None and drawn.rows)
    known = [row[name] for row in drawn.rows]
    chosen = data.draw(st.lists(st.sampled_from(known), min_size=1, max_size=4, unique_by=str))
    assume(len(set(map(str, known))) == len(known))
    query = trellis.query(to_query_text(drawn.query))
    reasons = query.why_not(arrow_table(drawn.rows, drawn.schema), chosen, **drawn.options)
    results = {frozenset(map(str, trend.events)) for trend in answer.trends}  # type: ignore[union-attr]
    is_result = frozenset(map(str, chosen)) in results
    assert reasons.heading.startswith("it is a result") == is_result
    if is_result:
        return
    # One condition alone keeps the events from matching: without it, the oracle lets them match.
    failing = {check.condition for check in reasons.failing}
    texts = {condition_text(c): c for c in drawn.query.where}
    if reasons.heading.startswith("not a match") and failing and failing <= texts.keys():
        rows = [row for row in drawn.rows if str(row[name]) in set(map(str, chosen))]
        free = replace(
            drawn.query, where=tuple(c for c in drawn.query.where if condition_text(c) not in failing), having=(),
            report=s.Report.ANY, select=s.Select.ANY, returns=(), aggregates=(), order_by=(), limit=None, offset=0,
            per_window=False, group_by=(),
        )  # fmt: skip
        options = {**drawn.options, "params": {}} if not uses_parameters(free) else drawn.options
        again = oracle.run(free, rows, schema=drawn.schema, **options)
        assert frozenset(map(str, chosen)) in {frozenset(map(str, t.events)) for t in again.trends}


def uses_parameters(query: s.QuerySyntax) -> bool:
    return any(isinstance(node, s.Parameter) for node in s.walk(query))


def test_a_trend_says_why() -> None:
    trends = trellis.query(f"{RISING} HAVING LENGTH >= 3").detect(pa.table(PRICES), event_id="id")
    assert str(trends[0].explain()) == (
        "a trend of 3 events: a, b, d\n"
        "  [g] holds: g = x\n"
        "  s[i].price > s[i-1].price holds: s[2].price = 30, s[1].price = 10\n"
        "  s[i].price > s[i-1].price holds: s[3].price = 40, s[2].price = 30\n"
        "  LENGTH >= 3 holds: LENGTH = 3"
    )
    assert "<li>" in trends[0].explain()._repr_html_()


def test_conditions_are_told_as_they_were_written() -> None:
    query = trellis.query("PATTERN E+ a[] WHERE a[i].g = FIRST(a).g SELECT contiguous")  # the plan compares neighbours
    told = [str(check) for check in query.detect(pa.table(PRICES), event_id="id")[0].explain()]
    assert told[1] == "a.g = FIRST(a).g holds: a[2].g = x, a[1].g = x"
    assert len(told) == 4
    assert "adjacent    a[i].g = a[i-1].g" in query.explain()


def test_what_is_needed_makes_it_match() -> None:
    query = trellis.query(RISING)
    reasons = query.why_not(pa.table(PRICES), ["a", "b", "c", "d"], event_id="id")
    assert str(reasons) == (
        "not a match: a, b, c, d\n"
        "  s[i].price > s[i-1].price fails: s[3].price = 20, s[2].price = 30; needed: s[3].price > 30"
    )
    assert reasons[0].events == ("b", "c")
    higher = pa.table({**PRICES, "price": [10.0, 30.0, 31.0, 40.0]})
    assert query.why_not(higher, ["a", "b", "c", "d"], event_id="id").heading == "it is a result: a, b, c, d"


def test_a_match_that_is_not_a_result() -> None:
    events = pa.table(PRICES)
    extendable = trellis.query(RISING).why_not(events, ["a", "b"], event_id="id")
    assert str(extendable) == (
        "a match, but not a result: a, b\n"
        "  REPORT unextendable fails: event = d, ts = 4; needed: the longer match with this event"
    )
    contiguous = trellis.query(f"{RISING} SELECT contiguous REPORT any").why_not(events, ["a", "c"], event_id="id")
    assert str(contiguous) == (
        "a match, but not a result: a, c\n"
        "  SELECT contiguous fails: event = b, ts = 2; needed: a match that does not skip it"
    )
    tied = pa.table({**PRICES, "ts": [1, 1, 2, 3]})
    alone = trellis.query(f"{RISING} SELECT contiguous").why_not(tied, ["a"], event_id="id")
    assert alone.heading == "it is a result: a"  # the very next event has the same time, so nothing behind it follows
    short = trellis.query(f"{RISING} HAVING LENGTH >= 4").why_not(events, ["a", "b", "d"], event_id="id")
    assert str(short) == "a match, but not a result: a, b, d\n  LENGTH >= 4 fails: LENGTH = 3"
    span = trellis.query(f"{RISING} WITHIN 2").why_not(events, ["a", "b", "d"], event_id="id")
    assert str(span) == "not a match: a, b, d\n  WITHIN 2 fails: first = 1, last = 4"


def test_questions_that_cannot_be_asked() -> None:
    query, events = trellis.query(RISING), pa.table(PRICES)
    asked: list[Any] = [[], "a", 7]
    for ids in asked:
        with pytest.raises(UsageError, match=r"ids is .*\nGive the ids of some events, in a list\."):
            query.why_not(events, ids, event_id="id")
    with pytest.raises(UsageError, match="the query has no partition"):
        trellis.query("PATTERN S+ s[]").why_not(events, partition="x", event_id="id")


TYPED = {"ts": [1, 2, 3, 4], "id": [1, 2, 3, 4], "g": ["x", "x", "x", "y"], "kind": list("ABCA"), "v": [1, 5, 3, 9]}
STEPS = "PATTERN SEQ(A a, B b, C c) WHERE [g] AND b.v > a.v AND c.v > b.v"


def test_types_nots_and_partitions() -> None:
    events = pa.table(TYPED)
    query = trellis.query(STEPS)
    typed = query.why_not(events, [1, 3, 2], event_id="id", type="kind")
    assert str(typed) == "not a match: 1, 2, 3\n  c.v > b.v fails: c.v = 3, b.v = 5; needed: c.v > 5"
    wrong = query.why_not(events, [1, 2, 4], event_id="id", type="kind")
    assert str(wrong) == ("not a match: 1, 2, 4\n  [g] fails: g = x and y\n  the type of c is C fails: c.kind = A")
    absent = trellis.query("PATTERN SEQ(A a, NOT(B b), C c) WHERE [g]")
    assert str(absent.why_not(events, [1, 3], event_id="id", type="kind")) == (
        "a match, but not a result: 1, 3\n  NOT fails: event = 2, ts = 2; needed: no such event"
    )
    reasons = query.why_not(events, partition={"g": "x"}, event_id="id", type="kind")
    assert str(reasons) == (
        "g=x: step 2 of 3 is reached by 1, 2; `SEQ(A a, B b, C c)` is not\n"
        "  c.v > b.v fails: c.v = 3, b.v = 5; needed: c.v > 5"
    )
    other = query.why_not(events, partition={"g": "y"}, event_id="id", type="kind")
    assert (
        str(other)
        == "g=y: step 1 of 3 is reached by 4; `SEQ(A a, B b)` is not\n  an event for b of type B fails: after = 4"
    )
    assert query.why_not(events, partition="z", event_id="id", type="kind").heading == "no event has g=z"
    with pytest.raises(trellis.UsageError, match="no event has the id `7`"):
        query.why_not(events, [7], event_id="id", type="kind")
    with pytest.raises(trellis.UsageError, match=r"Give ids=\[...\] or partition="):
        query.why_not(events, event_id="id", type="kind")


def test_a_funnel() -> None:
    events = pa.table(TYPED)
    funnel = trellis.query(STEPS).detect(events, event_id="id", type="kind").funnel()
    assert funnel.to_pylist() == [
        {"step": 1, "pattern": "A a", "starts": 2, "stopped": 1},
        {"step": 2, "pattern": "SEQ(A a, B b)", "starts": 1, "stopped": 1},
        {"step": 3, "pattern": "SEQ(A a, B b, C c)", "starts": 0, "stopped": 0},
    ]
    with pytest.raises(trellis.UsageError, match="a funnel is for patterns of several steps"):
        trellis.query(RISING).detect(pa.table(PRICES), event_id="id").funnel()


def test_a_funnel_lists_no_matches() -> None:
    events = pa.table({"ts": range(90), "id": range(90), "kind": ["A", "B", "B"] * 30})  # some 2^60 matches
    found = trellis.query("PATTERN SEQ(A a, B+ b[], B c)").detect(events, event_id="id", type="kind", max_trends=1)
    assert found.funnel().to_arrow()["starts"].to_pylist() == [30, 30, 30]


@examples(25)
@given(general_case())
def test_a_funnel_counts_the_starts_that_the_oracle_finds(drawn: Case) -> None:
    pattern = drawn.query.pattern
    assume(isinstance(pattern, s.Seq) and all(isinstance(p, s.Single | s.Kleene) for p in pattern.parts))
    answer = expected(drawn)
    assume(not isinstance(answer, str) and not uses_parameters(drawn.query))
    rows = detect(drawn).funnel().to_pylist()
    assert [row["starts"] - row["stopped"] for row in rows] == [*(row["starts"] for row in rows[1:]), 0]
    beginnings = [
        s.Seq(pattern.parts[:end]) if end > 1 else pattern.parts[0] for end in range(1, len(pattern.parts) + 1)
    ]
    for beginning, row in zip([one for one in beginnings if not s.may_be_empty(one)], rows, strict=True):
        prefix = replace(drawn.query, pattern=beginning)
        names = {node.var for node in s.walk(prefix.pattern) if hasattr(node, "var")}
        where = tuple(
            c
            for c in drawn.query.where
            if isinstance(c, s.PartitionClause) or {n.var for n in s.walk(c) if hasattr(n, "var")} <= names
        )
        query = replace(prefix, where=where, having=(), report=s.Report.ANY, returns=())
        found = oracle.run(query, drawn.rows, schema=drawn.schema, **drawn.options)
        assert row["starts"] == len({repr((t.window, t.partition, t.events[0])) for t in found.trends})


GROUPED = pa.table({
    "t": range(9), "id": [f"e{i}" for i in range(9)], "k": list("ABBABACAB"), "x": [1, 2, 3, 4, 5, 6, 7, 8, 9],
})  # fmt: skip


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("SEQ(A a, B+ b[])+ g[] WHERE g[i].a.x > g[i-1].b.x AND a.x < b.x", "g[2].a.x = 4, g[1].b[1].x = 2"),
        ("SEQ(SEQ(A a, B b)+ g[], C c) WHERE FIRST(g).a.x < c.x AND LAST(g).b.x < c.x AND a.x < c.x", "g[1].a.x = 1"),
        ("SEQ(SEQ(SEQ(A a, B b)+ h[], C c)+ g[], A z) WHERE COUNT(h) >= 1 AND g[1].c.x > 2", "COUNT(h) = "),
    ],
)
def test_conditions_of_groups(text: str, told: str) -> None:
    """Every condition of a result holds, asked in each iteration, and tells which it is of."""
    found = trellis.query(f"PATTERN {text} REPORT any").detect(GROUPED, time="t", event_id="id", type="k")
    assert len(found) > 3
    lines = []
    for trend in found:
        reasons = trend.explain()
        assert not reasons.failing
        lines += [str(check) for check in reasons]
    assert any(told in line for line in lines), lines[:20]


@pytest.mark.parametrize(
    ("text", "ids", "told", "cured"),
    [
        (
            "SEQ(A a, B+ b[])+ g[] WHERE g[i].a.x > 10 + g[i-1].a.x AND a.x < b.x", "0134",
            "g[i].a.x > 10 + g[i-1].a.x fails: g[2].a.x = 4, g[1].a.x = 1; needed: g[2].a.x > 11", {3: 12, 4: 13},
        ),
        (
            "SEQ(SEQ(A a, B b)+ g[], C c) WHERE LAST(g).b.x > c.x", "01346",
            "LAST(g).b.x > c.x fails: g[2].b.x = 5, c.x = 7; needed: g[2].b.x > 7", {4: 8},
        ),
        (
            "SEQ(SEQ(SEQ(A a, B b)+ h[], C c)+ g[], A z) WHERE a.x > b.x AND h[1].a.x > 3", "0167",
            "a.x > b.x fails: g[1].h[1].a.x = 1, g[1].h[1].b.x = 2; needed: g[1].h[1].a.x > 2", {0: 4},
        ),
        ("SEQ(A a, B b){2,} g[] WHERE COUNT(g) > 2", "0134", "COUNT(g) > 2 fails: COUNT(g) = 2", {}),
        ("SEQ(A a, B b){2,} g[]", "01345", "the pattern takes 4 or 6 events fails: events = 5", {}),
        ("SEQ(A a, B b){2} g[]", "013", "the pattern takes 4 events fails: events = 3", {}),
        ("SEQ(A a, B b){2} g[]", "0136", "the type of b is B fails: b.k = C", {}),
        ("SEQ(A+ a[] UNTIL (a.x > 3), B b)", "034", "UNTIL fails", {0: -1, 3: -1}),
        ("SEQ(A+ a[] greedy, A b)", "035", "greedy fails", {}),
    ],
)  # fmt: skip
def test_groups_say_why_not(text: str, ids: str, told: str, cured: dict[int, int]) -> None:
    """The condition is told with its iteration; with the values that are needed, the events are a result."""
    query, options = trellis.query(f"PATTERN {text} REPORT any"), {"time": "t", "event_id": "id", "type": "k"}
    chosen = [f"e{i}" for i in ids]
    reasons = query.why_not(GROUPED, chosen, **options)
    assert reasons.heading.startswith("not a match")
    assert told in str(reasons)
    if cured:
        x = pa.array([cured.get(i, value) for i, value in enumerate(GROUPED["x"].to_pylist())])
        better = GROUPED.set_column(3, "x", x)
        assert query.why_not(better, chosen, **options).heading.startswith("it is a result")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "SEQ(A a, B b){3} g[] WHERE [p]",
            "p=u: `SEQ(A a, B b){3} g[]` is not reached; it begins with e0, e1, e3, e4\n"
            "  an event for b of type B fails: after = e6",
        ),
        (
            "SEQ(SEQ(A a, B b){2} g[], C c) WHERE [p] AND g[i].a.x > 5 + g[i-1].a.x",
            "p=u: `SEQ(A a, B b){2} g[]` is not reached; it begins with e0, e1, e3, e4\n"
            "  g[i].a.x > 5 + g[i-1].a.x fails: g[2].a.x = 4, g[1].a.x = 1; needed: g[2].a.x > 6",
        ),
        (
            "SEQ(C c, SEQ(A a, B b)+ g[]) WHERE [p] AND b.x > a.x + 2",
            "p=u: step 1 of 2 is reached by e5; `SEQ(C c, SEQ(A a, B b)+ g[])` is not\n"
            "  an event for b of type B fails: after = e6",
        ),
        (
            "SEQ(SEQ(A a, B b)+ g[], C c) WHERE [p] AND b.x > a.x + 9",
            "p=u: `SEQ(A a, B b)+ g[]` is not reached; it begins with e0\n"
            "  b.x > a.x + 9 fails: g[1].b.x = 2, g[1].a.x = 1; needed: g[1].b.x > 10",
        ),
        ("SEQ(SEQ(A a, B b)+ g[], C c) WHERE [p] AND b.x > a.x", "p=u: the whole pattern matches"),
        (
            "SEQ(A a, AND(B b, C c)) WHERE [p] AND c.x > 9",
            "p=u: step 1 of 2 is reached by e0; `SEQ(A a, AND(B b, C c))` is not\n"
            "  c.x > 9 fails: c.x = 6; needed: c.x > 9",
        ),
        (
            "SEQ(A a, C c) WHERE [p] WITHIN 1",
            "p=u: step 1 of 2 is reached by e0; `SEQ(A a, C c)` is not\n  WITHIN 1 fails: first = 0, last = 5",
        ),
    ],
)
def test_partitions_say_why_not_with_groups(text: str, told: str) -> None:
    events = GROUPED.slice(0, 7).set_column(2, "k", pa.array(list("ABBABCA"))).append_column("p", pa.array(["u"] * 7))
    reasons = trellis.query(f"PATTERN {text}").why_not(events, partition="u", time="t", event_id="id", type="k")
    assert str(reasons) == told
