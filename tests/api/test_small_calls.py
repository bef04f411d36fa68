"""What a small call of a query that was asked before does not do again, and what it leaves behind."""

from __future__ import annotations

import gc
import sys
from types import FrameType
from typing import Any

import pyarrow as pa
import pytest

import trellis
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


@pytest.mark.parametrize("answer", ["count", "to_arrow"])
@pytest.mark.parametrize("text", QUERIES.values(), ids=QUERIES)
def test_nothing_is_bound_or_planned_again(text: str, answer: str) -> None:
    query, called = prepared(text), set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            called.add((frame.f_globals.get("__name__", ""), frame.f_code.co_name))

    getattr(query.detect(TABLE), answer)()
    sys.setprofile(note)
    try:
        getattr(query.detect(TABLE), answer)()
    finally:
        sys.setprofile(None)
    again = {(module, name) for module, name in called if module.startswith("trellis.language.bind")}
    made = {"bind", "make_plan", "build_automaton", "position_graph", "parse", "row_schema", "lead_schema", "_column"}
    assert not again
    assert not {name for module, name in called if module.startswith("trellis.")} & made


@pytest.mark.parametrize("answer", ["count", "to_arrow"])
@pytest.mark.parametrize("text", QUERIES.values(), ids=QUERIES)
def test_a_call_leaves_nothing_to_the_garbage_collector(text: str, answer: str) -> None:
    """Events, codes and graphs are let go with the results: nothing refers to itself."""
    query = prepared(text)
    getattr(query.detect(TABLE), answer)()
    gc.collect()
    gc.disable()
    try:
        getattr(query.detect(TABLE), answer)()
        assert gc.collect() == 0
    finally:
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
