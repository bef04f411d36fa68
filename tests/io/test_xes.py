"""XES logs: events with the attributes of their traces, types as the log tells them."""

from __future__ import annotations

import datetime as dt
import gzip
from pathlib import Path

import pyarrow as pa
import pytest

from tests.data.places import data_file
from trellis.errors import DataError
from trellis.io.read import read_table

LOG = """<?xml version="1.0" encoding="UTF-8"?>
<log xes.version="1.0" xmlns="http://www.xes-standard.org">
  <global scope="event"><string key="concept:name" value="none"/></global>
  <string key="creator" value="someone"/>
  <trace>
    <string key="concept:name" value="case 1"/>
    <int key="amount" value="12"/>
    <event>
      <string key="concept:name" value="open &amp; wait"/>
      <date key="time:timestamp" value="2020-01-02T03:04:05.678+01:00"/>
      <list key="more"><string key="inner" value="not taken"/></list>
      <float key="cost" value="1.5"/>
      <boolean key="done" value="false"/>
    </event>
    <event><string key="concept:name" value="close"/><float key="cost" value="2"/></event>
  </trace>
  <trace><event><string key="concept:name" value="other"/><string key="cost" value="unknown"/></event></trace>
</log>
"""


def test_events_with_what_their_traces_have(tmp_path: Path) -> None:
    (tmp_path / "log.xes").write_text(LOG)
    with gzip.open(tmp_path / "again.xes.gz", "wt") as file:
        file.write(LOG)
    table = read_table(tmp_path / "log.xes")
    assert table.equals(read_table(tmp_path / "again.xes.gz"))
    assert table.column_names == [
        "concept:name", "time:timestamp", "cost", "done", "case:concept:name", "case:amount",
    ]  # fmt: skip
    assert table.schema.field("time:timestamp").type == pa.timestamp("us", tz="UTC")
    assert table["time:timestamp"][0].as_py() == dt.datetime(2020, 1, 2, 2, 4, 5, 678_000, tzinfo=dt.UTC)
    assert table["cost"].to_pylist() == ["1.5", "2", "unknown"]  # of two types, so text
    assert table["concept:name"].to_pylist() == ["open & wait", "close", "other"]
    assert table["case:amount"].to_pylist() == [12, 12, None]
    assert table["done"].to_pylist() == [False, None, None]


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        (LOG[:700], "is not an XES log"),
        ("<log></log>", "has no events"),
        (LOG.replace('value="12"', 'value="many"'), "does not fit its type"),
    ],
)
def test_what_is_no_log(tmp_path: Path, text: str, wrong: str) -> None:
    (tmp_path / "log.xes").write_text(text)
    with pytest.raises(DataError, match=wrong):
        read_table(tmp_path / "log.xes")


def test_a_real_log() -> None:
    path = data_file("event_logs", "RequestForPayment.xes.gz")
    table = read_table(path)
    with gzip.open(path, "rt") as file:
        text = file.read()
    assert table.num_rows == text.count("<event>")
    assert table["time:timestamp"].null_count == 0
    assert len(table["case:concept:name"].unique()) <= text.count("<trace>")
