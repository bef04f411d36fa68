"""Results as a sequence of trends: positions, slices, iteration and bindings are the oracle's, whatever the query."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given
from pyspark.sql import SparkSession

import trellis
from tests.compare import OVERFLOW, detect, expected, plain, plain_rows
from tests.profiles import examples
from tests.strategies import Case, case, general_case
from trellis.results.trend import Trend, TrendList

RISING = "PATTERN S+ s[] WHERE s[i].x > s[i-1].x REPORT any"


def rising(n: int, text: str = RISING, **options: Any) -> Any:
    table = pa.table({"ts": np.arange(n), "x": np.arange(n, dtype=float), "id": np.arange(n)})
    return trellis.query(text).detect(table, event_id="id", **options)


def agree(drawn: Case) -> None:
    """Compare positions, slices, iteration and the events of each trend with the oracle's."""
    answer = expected(drawn)
    assume(not isinstance(answer, str) and answer != OVERFLOW and answer.trends and answer.aggregates is None)
    trends = detect(drawn)
    wanted = plain_rows(answer.rows)  # type: ignore[union-attr]
    assert len(trends) == len(wanted)
    assert plain_rows([trend.row for trend in trends]) == wanted
    assert plain_rows([trends[k].row for k in range(len(wanted))]) == wanted
    assert plain_rows([trend.row for trend in trends[1:3]]) == wanted[1:3]
    assert plain_rows([trend.row for trend in trends[-2:]]) == wanted[-2:]
    known = [
        repr((plain(list(t.partition)), t.rank, plain(list(t.events)), list(t.variables), values_of(t.members)))
        for t in answer.trends  # type: ignore[union-attr]
    ]
    for trend in trends:
        values = [plain(event["x"]) for event in trend] if "x" not in trend.partition else []
        place = (plain(list(trend.partition.values())), trend.rank, plain(trend.ids), trend.variables)
        assert any(text.startswith(repr(place)[:-1]) and text.endswith(f"{values})") for text in known)


def values_of(members: Any) -> list[Any]:
    return [plain(event.raw["x"]) for event in members]


@examples(60)
@given(case())
def test_one_variable(drawn: Case) -> None:
    agree(drawn)


@examples(40)
@given(general_case())
def test_several_variables(drawn: Case) -> None:
    agree(drawn)


def test_positions_of_any_size() -> None:
    trends = rising(200)
    assert trends.count() == 2**200 - 1
    assert trends[2**199].ids == [1]
    assert trends[-1].ids == [199]
    assert [trend.ids for trend in trends[2**199 - 1 : 2**199 + 1]] == [[0, 199], [1]]
    assert list(itertools.islice((trend.ids for trend in trends), 3)) == [[0], [0, 1], [0, 1, 2]]
    assert trends
    with pytest.raises(trellis.UsageError) as problem:
        len(trends)
    assert str(problem.value).endswith("more than len() can say\nUse trends.count().")


def test_a_position_that_is_not_there() -> None:
    trends = rising(3)
    with pytest.raises(IndexError) as problem:
        trends[7]
    assert isinstance(problem.value, trellis.TrellisError)
    assert str(problem.value) == (
        "there is no result at the position 7\nThere are 7 results, and positions count from 0."
    )
    with pytest.raises(trellis.UsageError, match="no step"):
        trends[::2]
    assert not rising(0)
    assert len(trends[5:100]) == 2
    assert [trend.ids for trend in trends[1:4][1:]] == [[0, 1, 2], [0, 2]]


def test_order_by_orders_the_sequence() -> None:
    trends = rising(4, f"{RISING} RETURN s ORDER BY LENGTH DESC LIMIT 3")
    assert len(trends) == 3
    assert trends.count() == 15
    assert trends[0].ids == [0, 1, 2, 3]
    assert [trend.length for trend in trends] == [4, 3, 3]


def test_aggregates_are_not_trends() -> None:
    trends = rising(3, "PATTERN S+ s[] AGGREGATE COUNT(*)")
    for use in (len, iter, lambda t: t[0]):
        with pytest.raises(trellis.UsageError, match="has no single trends"):
            next(use(trends)) if use is iter else use(trends)
    assert "7" in rising(3, f"{RISING} AGGREGATE COUNT(*)")._repr_html_()


def test_a_trend_tells_its_events() -> None:
    table = pa.table({"ts": [1, 2, 3], "kind": ["A", "B", "B"], "g": ["x", "x", "x"], "v": [5, 6, 7]})
    trends = trellis.query("PATTERN SEQ(A a, B+ b[]) WHERE [g]").detect(table, type="kind")
    trend = trends[0]
    assert isinstance(trend, Trend)
    assert trend.bindings == {"a": [0], "b": [1, 2]}
    assert trend.partition == {"g": "x"}
    assert trend.window is None
    events = trend.events().to_pylist()
    assert events[1] == {"place": 2, "variable": "b", "event": 1, "g": "x", "ts": 2, "kind": "B", "v": 6}
    assert list(trend.to_pandas()["v"]) == [5, 6, 7]
    assert len(trend) == 3
    assert trend == trends[0]
    assert trend != trends[1]
    assert repr(trend) == "<trend, g x, rank 0, events 3, time 1 to 3: 0, 1, 2>"
    assert isinstance(trends[0:2], TrendList)
    assert trends[0:2].to_pandas()["length"].tolist() == [3, 2]


def test_the_same_on_spark(spark: SparkSession) -> None:
    table = pa.table({"ts": [1, 2, 3, 4], "kind": ["A", "B", "B", "A"], "g": ["x", "x", "x", "y"], "v": [5, 6, 7, 8]})
    query = trellis.query("PATTERN SEQ(A a, B+ b[]) WHERE [g] REPORT any RETURN b.v")
    here, there = query.detect(table, type="kind"), query.detect(table, type="kind", engine="spark", spark=spark)
    assert len(there) == len(here) == 3
    assert [t.row for t in there] == [t.row for t in here]
    assert there[1].row == here[1].row
    assert there[2].events().to_pylist() == here[2].events().to_pylist()
    assert there[2].bindings == here[2].bindings == {"a": [0], "b": [2]}
    assert [t.rank for t in there[1:]] == [1, 2]
    assert there.head(2) == here.head(2)
    public = {name for name in dir(here) if not name.startswith("_")} - {"operator", "events", "source_table"}
    assert public <= {name for name in dir(there) if not name.startswith("_")}
