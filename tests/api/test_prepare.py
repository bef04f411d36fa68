"""A prepared query: bound once, the same results, and refused over events with other columns."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import trellis
from trellis.engines.local.detect import LastPlan
from trellis.engines.options import RunOptions
from trellis.errors import TrellisError, UsageError
from trellis.language import parser

QUERY = "PATTERN Stock+ s[] WHERE [company] AND s[i].price > ratio * s[i-1].price"
EVENTS = pa.table(
    {
        "ts": pa.array([1, 2, 3, 4], pa.timestamp("s")),
        "id": ["a", "b", "c", "d"],
        "company": ["X", "X", "Y", "X"],
        "price": [1.0, 3.0, 2.0, 2.0],
    }
)
OPTIONS = {"time": "ts", "event_id": "id", "params": {"ratio": 1.5}}


@pytest.mark.parametrize("given", [EVENTS.schema, EVENTS, EVENTS.to_pandas()], ids=["schema", "table", "pandas"])
def test_the_results_are_the_same(given: object) -> None:
    query = trellis.query(QUERY)
    prepared = query.prepare(given, **OPTIONS)
    for events in (EVENTS, EVENTS.slice(0, 2)):
        wanted, found = query.detect(events, **OPTIONS), prepared.detect(events)
        assert found.count() == wanted.count() > 0
        assert found.to_arrow() == wanted.to_arrow()


def test_it_is_bound_once(monkeypatch: pytest.MonkeyPatch) -> None:
    prepared = trellis.query(QUERY).prepare(EVENTS.schema, **OPTIONS)

    def refuse(*_: object) -> None:
        raise AssertionError("bound again")

    monkeypatch.setattr("trellis.api.query.bind", refuse)
    assert prepared.detect(EVENTS).count() == 3
    with pytest.raises(AssertionError, match="bound again"):
        trellis.query(QUERY).detect(EVENTS, **OPTIONS)


def test_columns_that_were_seen_are_not_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    prepared = trellis.query(QUERY).prepare(EVENTS.schema, **OPTIONS)
    assert prepared.detect(EVENTS.slice(0, 3)).count() == 2
    other = EVENTS.rename_columns(["ts", "id", "company", "cost"])
    with pytest.raises(UsageError, match="`price` was double and is missing"):
        prepared.detect(other)
    monkeypatch.setattr("trellis.api.dispatch.EventSource", None)
    assert prepared.detect(EVENTS).count() == 3


def test_a_query_keeps_its_plan_for_the_columns_that_it_had_last(monkeypatch: pytest.MonkeyPatch) -> None:
    query = trellis.query("PATTERN Stock+ s[] WHERE [company] AND s[i].price > s[i-1].price")
    options = {"time": "ts", "event_id": "id"}
    whole = EVENTS.set_column(3, "price", pa.array([1, 3, 2, 2]))
    for events in (EVENTS, whole, EVENTS):  # other columns, another plan
        assert query.detect(events, **options).count() == 3
    assert query.detect(EVENTS, **options, report_mode="any").count() == 6
    assert query.detect(EVENTS, time="ts").to_arrow()["events"].to_pylist() == [[0, 1], [0, 3], [2]]
    assert query.detect(EVENTS, **options).count() == 3
    monkeypatch.setattr("trellis.api.query.bind", None)
    assert query.detect(EVENTS.slice(0, 3), **options).count() == 2


def test_a_plan_that_fits_is_taken_whatever_another_thread_asks_meanwhile() -> None:
    other = EVENTS.set_column(3, "price", pa.array([1, 3, 2, 2]))
    query = trellis.query("PATTERN Stock+ s[] RETURN SUM(s.price) AS total")
    wanted, plans = query.detect(EVENTS, time="ts").to_arrow(), []
    for events in (other, EVENTS):
        query.detect(events, time="ts")
        plans.append(query.last)

    class Meanwhile(LastPlan):
        def fits(self, tables: Any, options: RunOptions) -> bool:
            query.last = plans[0]
            return super().fits(tables, options)

    query.last = Meanwhile(*plans[1])
    assert query.detect(EVENTS, time="ts").to_arrow() == wanted


def test_values_of_parameters_are_bound_anew() -> None:
    query, params = trellis.query(QUERY), {"ratio": 1.5}
    assert query.detect(EVENTS, time="ts", event_id="id", params=params).count() == 3
    params["ratio"] = 5.0
    assert query.detect(EVENTS, time="ts", event_id="id", params=params).count() == 4


def test_events_by_type() -> None:
    query = trellis.query("PATTERN SEQ(A a, B b) WHERE b.x > a.x")
    tables = {name: pa.table({"time": [place], "x": [place]}) for place, name in enumerate("AB")}
    prepared = query.prepare({name: table.schema for name, table in tables.items()})
    assert prepared.detect(tables).count() == 1


def test_other_columns_are_refused() -> None:
    prepared = trellis.query(QUERY).prepare(EVENTS.schema, **OPTIONS)
    other = EVENTS.set_column(3, "price", pa.array([1, 3, 2, 2]))
    with pytest.raises(UsageError, match="`price` was double and is integer"):
        prepared.detect(other)
    with pytest.raises(UsageError, match="`more` was missing and is"):
        prepared.detect(EVENTS.append_column("more", EVENTS["id"]))


def test_mistakes_are_told_when_it_is_prepared() -> None:
    with pytest.raises(TrellisError, match="price"):
        trellis.query(QUERY).prepare(EVENTS.schema.remove(3), **OPTIONS)


def test_the_same_text_is_parsed_once() -> None:
    assert parser.parse(QUERY) is parser.parse(QUERY)


def test_a_method_of_queries_is_named_where_the_module_is_asked_for_it() -> None:
    with pytest.raises(AttributeError, match=r'trellis.query\("PATTERN ..."\).detect\(...\)'):
        trellis.detect  # noqa: B018
    with pytest.raises(AttributeError, match=r"no attribute 'dtect'$"):
        trellis.dtect  # noqa: B018
