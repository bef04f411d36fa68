"""Queries of any shape that are drawn, all at once in one stream on Spark, give what the oracle finds in all events."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

import trellis
from tests.compare import expected, plain_rows
from tests.grouping import is_refused, queries_on
from tests.spark_streams import run_to_end
from tests.strategies import TYPED, Case, Table, arrow_table, tables, time_column
from tests.streams.test_bucket import in_any_order
from trellis.engines.options import RunOptions
from trellis.engines.spark.sources.read_stream import read_stream
from trellis.engines.spark.stream.running import Options, Stream
from trellis.errors import UsageError
from trellis.language.printer import to_query_text
from trellis.streams.stream_output import read_committed

pytestmark = pytest.mark.spark
AT_ONCE = 8


def _fits(table: Table) -> bool:
    return table.clock.kind == "timestamp" and bool(table.options["event_id"]) and len(table.rows) > 3


@st.composite
def several(draw: Any) -> list[Case]:
    """Draw a table with times that streams on Spark take, and queries over it that have results."""
    table = draw(tables(types=TYPED, most=7).filter(_fits))
    found: list[Case] = []
    for _ in range(8 * AT_ONCE):
        one = draw(queries_on(table))
        if len(found) < AT_ONCE and _stands(one):
            answer = expected(one)
            if not isinstance(answer, str) and answer.count:
                found.append(one)
    assume(found)
    return found


def _stands(one: Case) -> bool:
    """Return whether a stream takes a query."""
    from tests.streams.test_bucket import standing

    try:
        standing(to_query_text(one.query), arrow_table(one.rows, one.schema), **one.options)
    except UsageError as error:
        if not is_refused(error):
            raise
        return False
    return True


def _assert_same(spark: SparkSession, folder: Path, cases: list[Case]) -> None:
    options = cases[0].options
    table = arrow_table(cases[0].rows, cases[0].schema)
    table = table.sort_by(time_column(options))
    middle = len(table) // 2
    (folder / "in").mkdir(parents=True)
    for i, part in enumerate((table.slice(0, middle), table.slice(middle))):
        path = folder / "in" / f"{i}.parquet"
        pq.write_table(part, path)
        os.utime(path, (i + 1, i + 1))  # Spark takes files by their age: of two of one moment either comes first
    asked = {f"q{i}": trellis.query(to_query_text(one.query)) for i, one in enumerate(cases)}
    given_options = {name: value for name, value in options.items() if name != "params"}
    stream = Stream(
        spark, asked, read_stream(spark, str(folder / "in"), time=time_column(options), files_a_batch=1),
        Options(out=str(folder / "out"), checkpoint=str(folder / "cp"), watermark="1 s", available_now=True),
        RunOptions.of(**given_options),
    )  # fmt: skip
    run_to_end(stream)
    for i, one in enumerate(cases):
        answer = expected(one)
        assert not isinstance(answer, str)
        rows = read_committed(folder / "out" / f"q{i}").to_pylist()
        wanted = answer.rows if answer.aggregates is None else answer.aggregates
        assert in_any_order(plain_rows(rows)) == in_any_order(plain_rows(wanted)), to_query_text(one.query)


@settings(max_examples=1)
@given(cases=several())
def test_drawn_queries_in_one_stream(spark: SparkSession, tmp_path_factory: Any, cases: list[Case]) -> None:
    _assert_same(spark, tmp_path_factory.mktemp("drawn"), cases)


@pytest.mark.slow
@settings(max_examples=12)
@given(cases=several())
def test_more_drawn_queries_in_one_stream(spark: SparkSession, tmp_path_factory: Any, cases: list[Case]) -> None:
    _assert_same(spark, tmp_path_factory.mktemp("drawn"), cases)
