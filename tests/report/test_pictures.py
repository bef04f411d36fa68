"""Pictures: the data that they draw are the oracle's, for random queries."""

from __future__ import annotations

import importlib.util
import json
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import trellis
from benchmarks.measure import Timing
from benchmarks.report import Figure, Limit, Peer, Report, Row, Table
from tests import oracle
from tests.compare import detect, expected, plain
from tests.profiles import examples
from tests.strategies import Case, case, general_case, time_column
from trellis.api.explanation import explanation_of_plan
from trellis.archive.archive import Archive
from trellis.language import syntax as s
from trellis.report import pictures
from trellis.results.display import value_text

PRICES = pa.table(
    {"ts": [1, 2, 3, 4], "id": ["a", "b", "c", "d"], "g": ["x", "x", "x", "y"], "price": [10.0, 30.0, 20.0, 40.0]}
)
RISING = trellis.query("PATTERN S+ s[] WHERE [g] AND s[i].price > s[i-1].price")


@examples(20)
@given(case(clauses=False))
def test_counts_are_the_oracles(drawn: Case) -> None:
    answer = expected(drawn)
    assume(not isinstance(answer, str) and answer.trends)
    (drawing,) = detect(drawn).plot("counts").data
    assert [int(text.replace(",", "")) for text in drawing.text] == [number for _, _, number in answer.counts]  # type: ignore[union-attr]


@examples(20)
@given(case(clauses=False))
def test_the_lines_of_a_timeline_are_the_oracles_trends(drawn: Case) -> None:
    answer = expected(drawn)
    assume(not isinstance(answer, str) and answer.trends)
    time = time_column(drawn.options)
    wanted = [t for t in answer.trends[:5] if repr(t.partition) == repr(answer.trends[0].partition)]  # type: ignore[union-attr]
    trends = detect(drawn)
    events, *lines = trends.plot("timeline", y="n").data
    assert [plain(list(line.y)) for line in lines] == [[plain(e.raw["n"]) for e in t.members] for t in wanted]
    assert [plain(list(line.x)) for line in lines] == [[plain(e.raw[time]) for e in t.members] for t in wanted]
    assert {repr(plain(value)) for line in lines for value in line.y} <= {repr(plain(value)) for value in events.y}


@examples(10)
@given(general_case())
def test_a_drawn_funnel_is_the_funnel(drawn: Case) -> None:
    assume(isinstance(drawn.query.pattern, s.Seq) and not isinstance(expected(drawn), str))
    trends = detect(drawn)
    (drawing,) = trends.plot("funnel").data
    table = trends.funnel().to_arrow()
    assert (list(drawing.x), list(drawing.y)) == (table["starts"].to_pylist(), table["pattern"].to_pylist())


def test_windows_are_bands() -> None:
    table = pa.table({"ts": [1, 2, 11], "price": [1.0, 2.0, 3.0]})
    trends = trellis.query("PATTERN S+ s[] WHERE s[i].price > s[i-1].price WITHIN 10 SLIDE 10").detect(table)
    figure = trends.plot()
    assert [(band.x0, band.x1) for band in figure.layout.shapes] == [(0, 10), (10, 20)]
    assert trends.plot("counts").data[0].type == "heatmap"


def test_a_trend_draws_itself() -> None:
    trend = RISING.detect(PRICES, event_id="id")[0]
    events, line = trend.plot().data
    assert (list(line.x), list(line.y), list(line.text)) == ([1, 2], [10.0, 30.0], ["s a", "s b"])
    assert list(events.x) == [1, 2, 3]


def test_a_graph_has_its_accounts_and_payments() -> None:
    payments = pa.table({"ts": [1, 2, 3], "sender": ["a", "b", "c"], "to": ["b", "c", "a"], "amount": [5, 4, 3]})
    trends = trellis.query("PATTERN P+ p[] WHERE p.to = NEXT(p).sender").detect(payments)
    figure = trends[0].plot("graph", source="sender", target="to", label="amount")
    assert list(figure.data[0].text) == ["a", "b", "c"]
    assert [note.text for note in figure.layout.annotations if note.text] == ["5 1", "4 2", "3 3"]
    with pytest.raises(trellis.UsageError, match="the events have no column `form`"):
        trends[0].plot("graph", source="form", target="to")


@examples(15)
@given(case(clauses=False))
def test_the_nodes_and_arrows_of_a_graph_are_the_oracles(drawn: Case) -> None:
    answer = expected(drawn)
    assume(not isinstance(answer, str) and answer.trends)
    figure = detect(drawn).plot("graph", source="x", target="n", label="n")
    members = [e.raw for t in answer.trends[: pictures.FEW] for e in t.members]  # type: ignore[union-attr]
    ends = {(value_text(plain(raw["x"])), value_text(plain(raw["n"]))) for raw in members}
    nodes = dict(zip(zip(figure.data[0].x, figure.data[0].y, strict=True), figure.data[0].text, strict=True))
    assert set(nodes.values()) == {name for pair in ends for name in pair}
    arrows = [note for note in figure.layout.annotations if note.showarrow]
    assert {(nodes[note.ax, note.ay], nodes[note.x, note.y]) for note in arrows} == ends
    labels = [note.text for note in figure.layout.annotations if note.text]
    assert {text.split(" ")[0] for text in labels} == {end for _, end in ends}
    assert len(arrows) == len(labels) <= len({repr(raw) for raw in members})


def steps_drawn(figure: Any) -> dict[tuple[int, str], set[int]]:
    """The states that the arrows and loops of a plan lead to, by state and variable."""
    found: dict[tuple[int, str], set[int]] = {}
    arrow: Any = None
    for note in figure.layout.annotations:
        if note.showarrow:
            arrow = note
            continue
        begin, end = (note.x, note.x) if note.text.startswith("↻") else (arrow.ax, arrow.x)
        text, names, depth = note.text.removeprefix("↻ ").removesuffix(" again"), "", 0
        for letter in text:  # what a guard forbids is in parentheses, and may have some of its own
            depth += (letter == "(") - (letter == ")")
            names += letter if not depth and letter != ")" else ""
        for name in names.split(","):
            found.setdefault((int(begin), name.strip()), set()).add(int(end))
    return found


@examples(30)
@given(general_case())
def test_a_drawn_automaton_reads_the_oracles_matches(drawn: Case) -> None:
    answer = expected(drawn)
    assume(not isinstance(answer, str) and answer.trends)
    figure = explanation_of_plan(detect(drawn).plan).plot()
    steps, (states,) = steps_drawn(figure), figure.data
    accepting = {x for x, colour in zip(states.x, states.marker.color, strict=True) if colour == pictures.COLOURS[2]}
    for trend in answer.trends:  # type: ignore[union-attr]
        reached = {0}
        for variable in trend.variables:
            reached = {end for state in reached for end in steps.get((state, variable), ())}
        assert reached & accepting, (trend.variables, steps)


def test_a_plan_has_its_states() -> None:
    told = trellis.query("PATTERN SEQ(A a, NOT(B b), C+ c[])").explain()
    figure = told.plot()
    assert list(figure.data[0].text) == ["0", "1", "2"]
    assert {note.text for note in figure.layout.annotations if note.text} == {"a", "c (no b)", "↻ c again"}


def test_an_unknown_picture() -> None:
    with pytest.raises(trellis.UsageError) as problem:
        RISING.detect(PRICES, event_id="id").plot("timelime")
    assert str(problem.value) == "there is no picture `timelime`\nDid you mean `timeline`?"


@pytest.mark.parametrize(
    ("kind", "options", "said"),
    [
        (
            "graph",
            {},
            "the picture `graph` needs source and target\nWrite plot('graph', source=COLUMN, target=COLUMN).",
        ),
        ("graph", {"source": "id", "target": "id", "lable": "g"}, "no option `lable`\nDid you mean `label`?"),
        ("timeline", {"partition": {"g": 1}}, "no option `partition`\nIts options are trends, y."),
        ("timeline", {"trends": [0, 1]}, "trends are not trends\nTake them from results"),
        ("through", {"partition": "x"}, "partition is 'x'\nGive its values by name"),
        ("counts", {"y": "x"}, "the picture `counts` has no option `y`"),
    ],
)
def test_options_that_a_picture_does_not_have(kind: str, options: dict[str, Any], said: str) -> None:
    with pytest.raises(trellis.UsageError) as problem:
        RISING.detect(PRICES, event_id="id").plot(kind, **options)
    assert said in str(problem.value)


def test_without_plotly_a_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = importlib.util.find_spec

    def find(name: str, *rest: Any) -> Any:
        return None if name == "plotly" else usual(name, *rest)

    monkeypatch.setattr("trellis.report.style.find_spec", find)
    with pytest.raises(trellis.UsageError) as problem:
        RISING.detect(PRICES, event_id="id").plot()
    assert str(problem.value) == (
        "pictures are drawn by plotly, which is not installed\n"
        "Install it with `pip install 'trellis-cep[pictures]'`, or `pip install plotly`."
    )


@examples(15)
@given(case(clauses=False))
def test_the_trends_through_each_event_are_the_oracles(drawn: Case) -> None:
    answer = expected(drawn)
    assume(not isinstance(answer, str) and answer.trends)
    mine = [t for t in answer.trends if repr(t.partition) == repr(answer.trends[0].partition)]  # type: ignore[union-attr]
    wanted = Counter(
        repr((plain(e.raw[time_column(drawn.options)]), plain(e.raw["n"]))) for t in mine for e in t.members
    )
    _, drawing = detect(drawn).plot("through", y="n").data
    found: Counter[str] = Counter()
    for x, y, count in zip(drawing.x, drawing.y, drawing.customdata, strict=True):
        found[repr((plain(x), plain(y)))] += int(count)
    assert found == wanted


def test_through_counts_many_and_says_where_it_looks_at_a_sample() -> None:
    table = pa.table({"ts": range(60), "price": [float(i) for i in range(60)]})
    query = trellis.query("PATTERN S+ s[] WHERE s[i].price > s[i-1].price REPORT any")
    trends = query.detect(table)
    figure = trends.plot("through", most=50)
    assert "by a sample of 50" in figure.layout.title.text
    counted = query.detect(table.append_column("id", pa.array(range(60))), event_id="id").plot("through")
    assert [int(count) for count in counted.data[1].customdata] == [2**59] * 60
    assert "sample" not in counted.layout.title.text
    trends = trellis.query("PATTERN S+ s[] WHERE s[i].price > s[i-1].price").detect(table)
    figure = trends.plot("through", most=50)
    shares = dict(zip(figure.data[1].x, figure.data[1].marker.color, strict=True))
    assert (shares[0], shares[59]) == (1, 1)
    with pytest.raises(trellis.UsageError, match="`g` is not in the partition"):
        trends.plot("through", partition={"g": 1})


@examples(8)
@given(
    st.lists(st.sampled_from("ABCD"), min_size=8, max_size=60),
    st.sampled_from(["A a, B b", "A a, B b, C c", "D d, A a"]),
)
def test_the_history_holds_what_the_oracle_finds(names: list[str], steps: str) -> None:
    table = pa.table({"ts": range(len(names)), "id": range(len(names)), "name": names})
    query = f"PATTERN SEQ({steps}) WITHIN 9"
    answer = oracle.run(trellis.query(query).syntax, table.to_pylist(), time="ts", type="name", event_id="id")
    with tempfile.TemporaryDirectory() as folder:
        archive = Archive.build(table, Path(folder) / "a", time="ts", type="name", event_id="id", leaf=2, height=3)
        *levels, exact = archive.plot(query, exact=True).data
        rows = archive.find(query).to_pylist()
    spans = [(t.members[0].raw["ts"], t.members[-1].raw["ts"]) for t in answer.trends]
    assert sorted(pairs(exact)) == sorted(spans)
    assert len(levels) >= 2
    assert sorted(pairs(levels[-1])) == sorted((row["since"], row["until"]) for row in rows)
    for level in levels:
        assert all(any(low <= begin and end <= high for low, high in pairs(level)) for begin, end in spans)


def pairs(drawing: Any) -> list[tuple[Any, Any]]:
    """The two ends of each bar."""
    return list(zip(drawing.x[::3], drawing.x[1::3], strict=True))


def test_a_benchmark_is_drawn_as_its_file_has_it(tmp_path: Path) -> None:
    peers = [Peer("a database", Timing(5.0, 4.0)), Limit("one pass", Timing(0.1, 0.1))]
    lines = Figure("Lines", [], setting="events", places=[10, 20], lines={"dfs": [1.0, None], "ours": [0.1, 0.2]})
    tables = [Table("Counts", [Row("ours", Timing(0.5, 0.4), peers=peers), Row("none")]), lines]
    report = Report("count", "counting", tables, quick=False)
    file = tmp_path / "count.json"
    file.write_text(json.dumps(report.data()))
    bars, drawn = pictures.benchmark(file)
    assert {bar.name: list(bar.x) for bar in bars.data} == {"Trellis": [0.5], "peer": [5.0], "limit": [0.1]}
    assert {line.name: list(line.y) for line in drawn.data} == {"dfs": [1.0, None], "ours": [0.1, 0.2]}
    file.write_text("[]")
    with pytest.raises(trellis.UsageError, match="is not the report of a benchmark"):
        pictures.benchmark(file)
