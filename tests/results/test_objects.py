"""Queries, explanations, tables and errors as people meet them: in a notebook, at a prompt, in pandas."""

from __future__ import annotations

import datetime as dt
import inspect
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import trellis
from trellis import errors
from trellis.engines.options import RunOptions

RISING = "PATTERN S+ s[] WHERE s[i].x > s[i-1].x REPORT maximal"
MARKUP = "<script>alert(1)</script>"


def frame(**columns: Any) -> pd.DataFrame:
    """Three events whose rows are not in the order of time."""
    index = columns.pop("index", ["c", "a", "b"])
    return pd.DataFrame({"ts": [3, 1, 2], "x": [3.0, 1.0, 2.0], **columns}, index=index)


# --- Ids and times ----------------------------------------------------------------------------------------------


def test_ids_are_the_labels_of_the_index() -> None:
    trades = frame()
    (trend,) = trellis.query(RISING).detect(trades)
    assert trend.ids == ["a", "b", "c"]
    assert trades.loc[trend.ids, "x"].tolist() == [1.0, 2.0, 3.0]
    numbered = trades.reset_index(drop=True)
    assert trellis.query(RISING).detect(numbered)[0].ids == [1, 2, 0]
    named = trades.rename_axis("trade")
    assert trellis.query(RISING + " RETURN s.trade").detect(named)[0].row["s_trade"] == ["a", "b", "c"]
    assert trellis.query(RISING).detect(trades.assign(id=[7, 8, 9]), event_id="id")[0].ids == [8, 9, 7]
    assert trellis.query(RISING).detect(pa.Table.from_pandas(trades, preserve_index=False))[0].ids == [0, 1, 2]


def test_ids_are_the_labels_of_the_index_on_spark(spark: SparkSession) -> None:
    found = trellis.query(RISING).detect(frame(), engine="spark", spark=spark)
    assert found.to_arrow()["events"].to_pylist() == [["a", "b", "c"]]


def message(call: Any) -> str:
    with pytest.raises(trellis.TrellisError) as problem:
        call()
    return str(problem.value)


def test_an_index_that_cannot_be_ids() -> None:
    query = trellis.query(RISING)
    assert message(lambda: query.detect(frame(index=[5, 5, 6]))) == (
        "the index of the frame has the label `5` twice, and its labels are the ids of events\n"
        "Name an id column with event_id=, or number the rows with frame.reset_index(drop=True)."
    )
    levels = frame(index=pd.MultiIndex.from_tuples([(1, 1), (1, 2), (2, 1)]))
    assert message(lambda: query.detect(levels)) == (
        "the index of the frame has 2 levels, and its labels are the ids of events\n"
        "Name an id column with event_id=, or number the rows with frame.reset_index()."
    )
    assert message(lambda: query.detect(frame(index=[1, "a", 2.5]))) == (
        "the labels in the index of the frame have several types, and are the ids of events\n"
        "Name an id column with event_id=, or number the rows with frame.reset_index(drop=True)."
    )


@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Berlin"])
def test_naive_times_come_back_naive(zone: str | None) -> None:
    times = pd.date_range("2024-05-01 09:00", periods=3, freq="min", tz=zone)
    data = pd.DataFrame({"ts": times, "x": [1.0, 2.0, 3.0]})
    text = "PATTERN S+ s[] WHERE s[i].x > s[i-1].x WITHIN 1 h SLIDE 1 h RETURN s.ts, MAX(s.ts)"
    row = trellis.query(text + " ORDER BY LENGTH DESC").detect(data)[0].row
    moments = [row[n] for n in ("window_start", "start_time", "end_time", "max_s_ts")] + row["s_ts"]
    assert {m.tzinfo is None for m in moments} == {zone is None}
    wanted = dt.datetime(2024, 5, 1, 9) if zone is None else times[0].to_pydatetime()
    assert row["start_time"] == wanted
    spread = trellis.query(text).detect(data).explode().to_arrow()
    assert (spread.schema.field("ts").type.tz is None) == (zone is None)


def test_naive_times_come_back_naive_from_spark(spark: SparkSession) -> None:
    times = pd.date_range("2024-05-01 09:00", periods=3, freq="min")
    data = pd.DataFrame({"ts": times, "x": [1.0, 2.0, 3.0]})
    query = trellis.query("PATTERN S+ s[] WHERE s[i].x > s[i-1].x REPORT maximal WITHIN 1 h SLIDE 1 h")
    here = query.detect(data).to_arrow()
    there = query.detect(data, engine="spark", spark=spark)
    assert there.to_arrow() == here
    assert there.counts().to_arrow() == query.detect(data).counts().to_arrow()
    assert there.to_spark().schema["start_time"].dataType.simpleString() == "timestamp_ntz"
    assert query.detect(data).to_spark(spark).toPandas()["start_time"][0] == times[0]
    zoned = query.detect(data.assign(ts=times.tz_localize("UTC")), engine="spark", spark=spark)
    assert zoned.to_arrow()["start_time"].type.tz == "UTC"


# --- Tables -----------------------------------------------------------------------------------------------------


def test_small_counts_are_ints() -> None:
    table = pa.table({"ts": np.arange(200), "x": np.arange(200.0), "v": np.arange(200)})
    every = trellis.query("PATTERN S+ s[] WHERE s[i].x > s[i-1].x REPORT any")
    few = every.detect(table.slice(0, 3))
    assert few.counts().to_pandas()["count"].dtype == np.int64
    assert few.counts().to_polars()["count"].to_list() == [7]
    assert few.aggregate("sum(s.v)").to_pandas()["sum_s_v"].tolist() == [12]
    assert type(every.detect(table.slice(0, 100)).counts().to_pandas()["count"][0]) is int
    assert every.detect(table).counts().to_pandas()["count"][0] == 2**200 - 1


def test_tables_show_themselves() -> None:
    data = pa.table({"ts": range(30), "x": range(30), "name": [MARKUP] * 30})
    trends = trellis.query("PATTERN S+ s[] WHERE [name] HAVING LENGTH <= 2 REPORT any").detect(data)
    lines = repr(trends.head(20)).splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[-1] == "… 10 more"
    assert "length" in lines[0]
    for shown in (trends, trends.head(), trends[0], trends[:3], trends.counts(), trends.sample(2)):
        html = shown._repr_html_()
        assert "<script>" not in html
        assert "&lt;script&gt;" in html
    html = trends._repr_html_()
    assert "results 465 · events 30 · windows 1 · partitions 1 · shown the first 10 · seconds" in html
    assert repr(trends) == "<results of `S+ s[]` in this process>"
    assert trends.head(3).num_rows == 3
    assert trends.sample(5).head(2).num_rows == 2


def test_an_array_says_its_length() -> None:
    data = pa.table({"ts": range(30), "x": range(30)})
    table = repr(trellis.query(RISING).detect(data).head(1))
    assert "0, 1, 2, 3, 4, …, 28, 29 (30)" in table


# --- Queries and explanations -----------------------------------------------------------------------------------


def test_a_query_from_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "rising.tq"
    file.write_text(RISING)
    monkeypatch.chdir(tmp_path)
    for given in (file, str(file), "rising.tq"):
        assert str(trellis.query(given)) == str(trellis.query(RISING))
    assert message(lambda: trellis.query("risign.tq")) == "there is no query file risign.tq\nDid you mean `rising.tq`?"
    assert message(lambda: trellis.query(7)) == "a query is a text or the path of a file, not of the type int"  # type: ignore[arg-type]


def test_a_query_shows_its_text() -> None:
    query = trellis.query("PATTERN S+ s[]\nWHERE s.name = '<b>' AND s.x > least")
    assert repr(query) == "trellis.query(\"PATTERN S+ s[] WHERE s.name = '<b>' AND s.x > least\")"
    html = query._repr_html_()
    assert "<b>PATTERN</b> S+ s[]" in html
    assert "&lt;b&gt;" in html
    assert "parameters least" in html


def test_an_explanation_prints_properly() -> None:
    query = trellis.query("PATTERN SEQ(A a, NOT(B b), C+ c[])")
    told = query.explain()
    assert repr(told) == str(told) == told
    assert "\\n" not in repr(told)
    assert told.startswith("Query       PATTERN SEQ(A a, NOT(B b), C+ c[])\n")
    assert told.data["select"]["policy"] == "skip-till-any"
    html = told._repr_html_()
    assert html.count("<circle") == 4  # three states, one of them an end
    assert "c (no b)" in html


def test_an_explanation_with_events() -> None:
    told = trellis.query(RISING).explain(frame(), time="ts")
    assert told.data["events"] == {"read": 3, "dropped": 0, "windows": 1, "partitions": 1, "trends": "1"}
    assert "trends: 1" in told
    assert message(lambda: trellis.query(RISING).explain(time="ts")) == (
        "explain() without events has no use for time\nGive it the events, too."
    )


# --- Options and errors -----------------------------------------------------------------------------------------


def test_detect_shows_the_arguments_that_people_use() -> None:
    shown = list(inspect.signature(trellis.query(RISING).detect).parameters)
    assert shown == [
        "data", "time", "type", "event_id", "params", "report_mode", "max_trends", "on_bad_rows", "engine", "spark",
        "methods", "by_name",
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["detect", "prepare", "detect_stream", "arrivals"])
def test_options_have_the_names_and_defaults_that_are_declared_once(name: str) -> None:
    given = inspect.signature(getattr(trellis.query(RISING), name)).parameters
    shared = {one.name: one.default for one in fields(RunOptions) if one.name in given}
    assert shared.keys() >= {"time", "type", "event_id", "params", "max_trends", "on_bad_rows"}
    given_otherwise = {"methods"} | ({"event_id"} if name == "arrivals" else set())
    assert all(given[one].default == default for one, default in shared.items() if one not in given_otherwise)


def test_methods_in_one_object_and_by_their_old_names() -> None:
    query = trellis.query(RISING)
    for options in ({"methods": trellis.Methods(algorithm="dfs")}, {"algorithm": "dfs"}):
        assert query.detect(frame(), **options).plan.algorithm == "dfs"
    assert message(lambda: query.detect(frame(), algoritm="dfs")) == (
        "detect() has no option `algoritm`\nDid you mean `algorithm`?"
    )
    assert message(lambda: query.detect(frame(), methods=trellis.Methods(), anchors=2)) == (
        "methods= and anchors= are given together\nPut all of them into methods=."
    )
    assert message(lambda: query.detect(frame(), methods="dfs")) == (  # type: ignore[arg-type]
        "methods is of the type str\nGive trellis.Methods(algorithm=...)."
    )


def test_errors_are_at_the_top_and_short_in_notebooks(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, kind in vars(errors).items():
        if isinstance(kind, type) and issubclass(kind, errors.TrellisError) and name != "OverflowInCondition":
            assert getattr(trellis, name) is kind
    with pytest.raises(trellis.BindError) as problem:
        trellis.query("PATTERN S+ s[] WHERE s.y > 3").detect(frame())
    assert problem.value._render_traceback_() == [f"BindError: {problem.value}"]
    assert len(problem.value._render_traceback_()[0].splitlines()) <= 5
    monkeypatch.setenv("TRELLIS_DEBUG", "1")
    with pytest.raises(NotImplementedError):  # IPython then shows its own
        problem.value._render_traceback_()


def test_a_warning_names_the_line_that_called() -> None:
    with pytest.warns(UserWarning, match="share `ts`") as caught:
        trellis.query(RISING).detect(frame(ts=[1, 1, 1])).count()
    assert [Path(one.filename).name for one in caught] == [Path(__file__).name]
