"""What a small call of a query that was asked before does not do again, and what it leaves behind."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import FrameType
from typing import Any

import polars
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

import trellis
from tests.profiles import examples
from trellis.operators.sequences.operator import SequenceOperator
from trellis.plan.sizes import Sizes

AS_MANY = Sizes(counted_pairs=-1, walked_choices=-1, encoded_events=-1)  # few events are treated as many are
TABLE = pa.table(
    {
        "ts": range(40),
        "id": range(40),
        "kind": ["ABBC"[i % 4] for i in range(40)],
        "part": ["xy"[i // 3 % 2] for i in range(40)],
        "x": [float(i * 7 % 11) for i in range(40)],
    }
)
QUERIES = {
    "trends": "PATTERN E+ s[] WHERE s[i].x > s[i-1].x AND s[i].ts - s[i-1].ts <= 6",
    "windows": "PATTERN E+ s[] WHERE [part] AND s[i].x > s[i-1].x WITHIN 10 SLIDE 5",
    "span": "PATTERN E+ s[] WHERE [part] AND s[i].x > s[i-1].x WITHIN 10",
    "sequence": "PATTERN SEQ(A a, B b, C c) WHERE a.part = b.part AND b.part = c.part AND a.x < b.x WITHIN 12",
    "pattern": "PATTERN SEQ(A a, B+ b[], C c) WHERE [part] AND b[i].x > b[i-1].x AND a.x < c.x WITHIN 12",
}


def prepared(text: str) -> Any:
    typed = {} if "E+" in text else {"type": "kind"}
    return trellis.query(text).prepare(TABLE.schema, event_id="id", **typed)


def listed_after(text: str) -> pa.Table:
    """Return the rows of a query whose results were counted without the graph that lists them."""
    typed = {} if "E+" in text else {"type": "kind"}
    return trellis.query(text).detect(TABLE, event_id="id", **typed, sizes=AS_MANY).to_arrow()


ANSWERS: dict[str, Callable[[Any], Any]] = {
    "count": lambda found: found.count(),
    "to_arrow": lambda found: found.to_arrow(),
    "others": lambda found: (
        [trend.row for trend in found], found[1].events(), found.head(), found.top(2, "length"), found.sample(2),
        found.aggregate("max(length)"), found.per_event(), found.explode().to_arrow(),
    ),
}  # fmt: skip


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
@pytest.mark.parametrize("text", QUERIES.values(), ids=QUERIES)
def test_nothing_is_bound_or_planned_again(text: str, answer: Callable[[Any], Any]) -> None:
    query = prepared(text)
    check_nothing_is_bound_again(lambda: answer(query.detect(TABLE)))


INPUTS: dict[str, Callable[[pa.Table], Any]] = {
    "pandas": lambda table: table.to_pandas(),
    "polars": polars.from_arrow,
    "a record batch": lambda table: table.to_batches()[0],
    "times as text": lambda table: table.set_column(0, "ts", [[f"2024-01-01 00:00:{n:02}" for n in range(40)]]),
    "structs": lambda table: table.append_column("more", [[{"a": 1}] * 40]),
    "by type": lambda table: {kind: table.filter(pc.equal(table["kind"], kind)) for kind in "ABC"},
}


@pytest.mark.parametrize("of", INPUTS.values(), ids=INPUTS)
def test_nothing_is_bound_again_whatever_events_are_given_as(of: Callable[[pa.Table], Any]) -> None:
    events = of(TABLE)
    typed = {} if isinstance(events, dict) else {"type": "kind"}
    query = trellis.query("PATTERN SEQ(A a, B b) WHERE a.part = b.part AND a.x < b.x")
    check_nothing_is_bound_again(lambda: query.detect(events, time="ts", event_id="id", **typed).to_arrow())


def check_nothing_is_bound_again(ask: Callable[[], Any]) -> None:
    """Ask twice; the second time nothing is bound, planned or laid out."""
    called = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            called.add((frame.f_globals.get("__name__", ""), frame.f_code.co_name))

    ask()
    sys.setprofile(note)
    try:
        ask()
    finally:
        sys.setprofile(None)
    again = {(module, name) for module, name in called if module.startswith("trellis.language.bind")}
    made = {"bind", "make_plan", "build_automaton", "position_graph", "parse", "row_schema", "lead_schema", "_column"}
    assert not again
    assert not {name for module, name in called if module.startswith("trellis.")} & made


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
@pytest.mark.parametrize("text", QUERIES.values(), ids=QUERIES)
def test_a_call_leaves_nothing_to_the_garbage_collector(text: str, answer: Callable[[Any], Any]) -> None:
    """Events, codes and graphs are let go with the results: nothing refers to itself."""
    query = prepared(text)
    answer(query.detect(TABLE))
    gc.disable()
    gc.freeze()  # what is there already, millions of objects of the compiler's, is not looked through
    try:
        answer(query.detect(TABLE))
        assert gc.collect() == 0
    finally:
        gc.unfreeze()
        gc.enable()


@pytest.mark.parametrize("text", [QUERIES["trends"], QUERIES["windows"], QUERIES["span"]])
def test_few_events_are_counted_on_the_graph_that_lists_them(text: str) -> None:
    query = prepared(text)
    listed = query.detect(TABLE)
    rows = listed.to_arrow()
    assert "index" not in vars(listed.operator.structure)
    assert listed_after(text).equals(rows)
    assert query.detect(TABLE).count() == rows.num_rows > 3


def test_few_events_are_counted_on_the_paths_that_list_them() -> None:
    text = QUERIES["pattern"]
    query = prepared(text)
    listed = query.detect(TABLE)
    rows = listed.to_arrow()
    assert not {"indexed", "exploration"} & {*vars(listed.operator.structure)}
    assert listed_after(text).equals(rows)
    assert query.detect(TABLE).count() == rows.num_rows > 3


def test_few_events_of_a_sequence_are_walked_though_an_index_would_count_many() -> None:
    text = QUERIES["sequence"]
    query = prepared(text)
    listed = query.detect(TABLE)
    rows = listed.to_arrow()
    assert isinstance(listed.operator, SequenceOperator)
    assert listed_after(text).equals(rows)
    assert query.detect(TABLE).count() == rows.num_rows > 3
    assert listed.per_event().to_arrow().num_rows > 3  # of which a walk knows nothing


def test_a_last_variable_of_the_same_events_leaves_results_in_order() -> None:
    """A result comes before its own extensions, though the same event may end one and go on in another."""
    text = "PATTERN SEQ(E a, E+ b[], E c) WHERE b[i].x > b[i-1].x WITHIN 7"
    trends = trellis.query(text).detect(TABLE, event_id="id")
    events = [row["events"] for row in trends.to_arrow().to_pylist()]
    assert events == sorted(events)
    assert len(events) == len({*map(tuple, events)}) == trends.count() > 50
    assert not any(part.paths.ambiguous.any() for part in trends.operator.structure.all_parts())


# --- One query, many tables -------------------------------------------------------------------------------------

FIXED = [
    "PATTERN SEQ(A a, B b, C c) WHERE a.part = b.part AND b.part = c.part AND a.x < b.x AND c.x != b.x WITHIN 6",
    "PATTERN SEQ(A a, B b, C c) WHERE a.part = c.part AND a.x <= b.x WITHIN 6 SLIDE 3",
    "PATTERN SEQ(A a, NOT(B n), C c) WHERE a.part = c.part AND n.x > 1 WITHIN 6",
    "PATTERN AND(A a, B b) WHERE a.part = b.part AND a.x < b.x + 1 WITHIN 6",
    "PATTERN OR(SEQ(A a, B b), SEQ(B b, C c)) WHERE a.x < b.x AND b.part != c.part WITHIN 6",
]
PARTS = [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string()), pa.dictionary(pa.int8(), pa.string())]


@st.composite
def few_events(draw: Any) -> pa.Table:
    """Draw a small table: types of columns, dictionaries, NULLs and NaN differ from one to the next."""
    size = draw(st.integers(0, 9))

    def column(values: Any, type_: pa.DataType) -> pa.Array:
        return pa.array(draw(st.lists(values, min_size=size, max_size=size)), type_)

    part, number = draw(st.sampled_from(PARTS)), draw(st.sampled_from([pa.int64(), pa.int32(), pa.float64()]))
    words, numbers = st.sampled_from(draw(st.permutations("xyz"))[:2]), st.integers(-2, 2)
    if pa.types.is_floating(number):
        numbers = numbers.map(float) | st.sampled_from([float("nan"), -0.0])
    missing = draw(st.booleans())
    columns = {
        "ts": column(st.integers(0, 9), draw(st.sampled_from([pa.int64(), pa.int32()]))),
        "id": pa.array(range(size), pa.int64()),
        "kind": column(st.sampled_from("ABC"), pa.string()),
        "part": column(words | st.none() if missing else words, pa.string()).cast(part),
        "x": column(numbers | st.none() if missing else numbers, number),
    }
    return pa.table({name: columns[name] for name in draw(st.permutations(list(columns)))})


@pytest.mark.filterwarnings("ignore::trellis.TrellisWarning")
@examples(60)
@given(text=st.sampled_from(FIXED), tables=st.lists(few_events(), min_size=1, max_size=5))
def test_a_query_that_is_asked_of_one_table_after_another_remembers_none_of_them(
    text: str, tables: list[pa.Table]
) -> None:
    options: dict[str, Any] = {"time": "ts", "event_id": "id", "type": "kind"}
    wanted = [trellis.query(text).detect(table, **options, sizes=AS_MANY).to_arrow() for table in tables]
    query = trellis.query(text)
    for table, rows in [*zip(tables, wanted, strict=True)] * 2:
        assert query.detect(table, **options).to_arrow().equals(rows)
        assert query.detect(table, **options).count() == rows.num_rows

    def asked(place: int) -> bool:
        at = place % len(tables)
        return query.detect(tables[at], **options).to_arrow().equals(wanted[at])

    with ThreadPoolExecutor(2) as pool:
        assert all(pool.map(asked, range(2 * len(tables))))
