"""What users give wrongly, or larger than usual, is answered or refused in a sentence."""

from __future__ import annotations

import datetime as dt
import pickle
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import trellis
from tests.cli.cases import run_process
from trellis import memory
from trellis.digits import Count, digits_of, number_of
from trellis.errors import DataError, ListingRefused, UsageError
from trellis.events import groups as grouping
from trellis.papers import debs2016 as debs

RISING = "PATTERN E+ s[] WHERE s[i].x > s[i-1].x"
TABLE = pa.table({"ts": range(6), "id": range(6), "x": range(6)})
NAN = float("nan")


def found(text: str = RISING, table: pa.Table = TABLE, **options: Any) -> Any:
    return trellis.query(text).detect(table, event_id="id", **options)


@pytest.mark.parametrize(
    "ask",
    [
        lambda t: t.sample("3"),
        lambda t: t.sample(2.5),
        lambda t: t.sample(None),
        lambda t: t.sample(-1),
        lambda t: t.sample(True),
        lambda t: t.sample(2, seed="x"),
        lambda t: t.sample(2, seed=0.5),
        lambda t: t.first(1.5),
        lambda t: t.first(-1),
        lambda t: t.first("2"),
        lambda t: t.first(None),
        lambda t: t.top("3"),
        lambda t: t.top(2.5),
        lambda t: t.top(-1),
        lambda t: found(max_trends="x"),
        lambda t: found(max_trends=2.5),
        lambda t: found(max_trends=None),
        lambda t: found(max_trends=-1),
        lambda t: trellis.query("PATTERN SEQ(A a, B b)").arrivals(event_id="id", max_trends="x"),
        lambda t: debs.posts(b"", b"", k=10**9),
        lambda t: debs.posts(b"", b"", k="3"),  # type: ignore[arg-type]
        lambda t: debs.communities(b"", b"", b"", k=10**9, d=1),
        lambda t: debs.communities(b"", b"", b"", k=2.5, d=1),  # type: ignore[arg-type]
    ],
)
def test_what_is_no_number_of_that_kind(ask: Callable[[Any], Any]) -> None:
    with pytest.raises(UsageError, match=r" is .*\n?Give a whole number"):
        ask(found())


def test_numbers_of_numpy_are_numbers() -> None:
    assert found().sample(np.int64(3)).num_rows == found().first(np.int32(3)).num_rows == 3
    with pytest.raises(ListingRefused):
        found(max_trends=np.int64(1)).to_arrow()


# --- Long and many windows ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("times", [range(6), [Decimal(i) for i in range(6)], [float(i) for i in range(6)]])
def test_a_span_that_holds_everything(times: Any) -> None:
    table = TABLE.set_column(0, "ts", pa.array(times))
    assert found(f"{RISING} WITHIN 1e300", table).count() == found().count()


def test_a_span_of_1e300_through_the_command(tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text("ts,id,x\n1,1,1\n2,2,2\n3,3,3\n")
    done = run_process("count", f"{RISING} WITHIN 1e300", tmp_path / "e.csv", "--engine", "local", "--quiet")
    assert (done.code, done.out, done.err) == (0, "2\n", "")


def test_more_windows_than_fit_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    hours = pa.array([dt.datetime(2024, 1, 1, i) for i in range(4)])
    table = pa.table({"ts": hours, "id": range(4), "x": range(4)})
    for module in (grouping, memory):
        monkeypatch.setattr(module, "free_memory", lambda: 10_000_000_000)
    with pytest.raises(UsageError, match=r"97,200,000 windows, which take about 14\.6 GB; there are 10\.0 GB free"):
        found(f"{RISING} WITHIN 1 day SLIDE 1 ms", table).count()
    assert found(f"{RISING} WITHIN 1 day SLIDE 1 s", table).count() > 0


# --- Moments beyond the year 9999 --------------------------------------------------------------------------------

FAR = pa.array([2**60, 2**61, 2**59], pa.int64()).cast(pa.timestamp("us", "UTC"))


@pytest.mark.parametrize("pattern", ["E+ s[]", "SEQ(E s, E b)"])
def test_extremes_of_far_moments(pattern: str) -> None:
    table = pa.table({"ts": range(3), "id": range(3), "x": range(3), "m": FAR})
    rows = found(f"PATTERN {pattern} WHERE s.x >= 0 REPORT any AGGREGATE MIN(s.m), MAX(s.m)", table).aggregates()
    smallest, largest = (column.cast(pa.int64())[0].as_py() for column in rows.columns)
    assert (smallest, largest) == ((2**59, 2**61) if "+" in pattern else (2**60, 2**61))
    trends = found("PATTERN E+ s[] WHERE [m] AND s[i].x > s[i-1].x", table)
    with pytest.raises(UsageError, match="3 windows and partitions fit"):
        trends.trend(0)


def test_a_window_that_python_cannot_tell() -> None:
    trends = found(f"{RISING} WITHIN 1 day SLIDE 1 day", pa.table({"ts": FAR[:1], "id": [1], "x": [1]}))
    assert trends.trend(0).num_rows == trends.sample(1).num_rows == 1


# --- Encoded columns ---------------------------------------------------------------------------------------------


def test_runs_of_equal_values_are_values() -> None:
    def runs(values: Any) -> pa.Array:
        return pa.RunEndEncodedArray.from_arrays(pa.array(range(1, 7), pa.int32()), pa.array(values))

    table = pa.table({"ts": runs(range(6)), "id": runs(list("abcdef")), "x": runs(range(6)), "g": runs(["u"] * 6)})
    assert table.slice(1).num_rows == 5
    for text in (RISING, f"{RISING} AND [g]", f"{RISING} ORDER BY LAST(s).x LIMIT 2"):
        plain = pa.table({name: table[name].to_pylist() for name in table.column_names})
        assert found(text, table).to_arrow().to_pylist() == found(text, plain).to_arrow().to_pylist()
        assert found(text, table.slice(1)).to_arrow().to_pylist() == found(text, plain.slice(1)).to_arrow().to_pylist()
        numbered = trellis.query(text).detect(table)
        assert numbered.count() == found(text, plain).count()
    assert found(table=table).explode().num_rows == found().explode().num_rows


# --- Counts of any size ------------------------------------------------------------------------------------------


def test_a_count_of_any_size_is_printed() -> None:
    n = 15_000
    count = found("PATTERN E+ s[] REPORT any", pa.table({"ts": range(n), "id": range(n)})).count()
    assert count == 2**n - 1
    assert str(count) == repr(count) == f"{count}" == f"{count:d}" == f"{count}" == digits_of(2**n - 1)
    assert number_of(str(count)) == count
    assert f"{count:,}".replace(",", "") == str(count)
    assert isinstance(count, int)


def test_small_counts_are_as_numbers_are() -> None:
    count = found().count()
    assert (str(count), repr(count), f"{count:>5,}", type(count + 1)) == ("16", "16", "   16", int)
    assert f"{Count(1234567):,}" == "1,234,567"
    assert pickle.loads(pickle.dumps(Count(7))) == 7


# --- Partitions by name ------------------------------------------------------------------------------------------

MOMENTS = [dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 2)]
VALUES = {
    "double": (pa.array([1.5, NAN, None], from_pandas=False), [1.5, "1.5", NAN, None, (None,), np.float64(1.5)]),
    "naive": (
        pa.array([*MOMENTS, None]),
        [MOMENTS[0], MOMENTS[0].replace(tzinfo=dt.UTC), "2024-01-01", "2024-01-02T00:00:00Z", dt.date(2024, 1, 1),
         np.datetime64("2024-01-02"), None],
    ),
    "aware": (pa.array([*MOMENTS, None], pa.timestamp("us", "UTC")), [MOMENTS[0], "2024-01-01 00:00:00", None]),
    "date": (
        pa.array([dt.date(2024, 1, 1), dt.date(2024, 1, 2), None]),
        [MOMENTS[0], "2024-01-02", dt.date(2024, 1, 1), None],
    ),
    "text": (pa.array(["a", "1", None]), ["a", "1", None]),
    "int": (pa.array([1, 2, None]), [1, "2", 2.0, np.int8(1), None]),
    "decimal": (pa.array([Decimal("1.50"), Decimal(2), None]), [Decimal("1.5"), 1.5, "1.5", 2, None]),
}  # fmt: skip


@pytest.mark.parametrize("kind", VALUES)
def test_partitions_are_found_by_any_of_their_names(kind: str) -> None:
    column, names = VALUES[kind]
    table = pa.table({"ts": range(6), "id": range(6), "x": range(6), "g": pa.chunked_array([column, column])})
    trends = found(f"{RISING} AND [g]", table)
    seen: set[tuple[int, ...]] = set()
    for name in names:
        one = trends.trend(0, partition=name)
        assert one.num_rows == 1
        by_name = trends.trend(0, partition={"g": name[0] if isinstance(name, tuple) else name})
        assert by_name["events"].equals(one["events"])
        seen.add(tuple(one["events"][0].as_py()))
    assert len(seen) >= 2, "one for each value"
    with pytest.raises(UsageError, match="no window and partition with a result fits"):
        trends.trend(0, partition="nothing")
    with pytest.raises(UsageError, match="3 windows and partitions fit"):
        trends.trend(0)
    with pytest.raises(UsageError, match="2 values of a partition are named"):
        trends.trend(0, partition=(1, 2))


# --- Events that arrive ------------------------------------------------------------------------------------------

PAIRS = "PATTERN SEQ(A a, B b) WHERE a.x < b.x WITHIN 100"


def batch(times: Any, *ids: int, **more: Any) -> pa.Table:
    return pa.table({"ts": times, "id": ids, "x": ids, "k": ["A" if i % 2 else "B" for i in ids], **more})


def arriving(text: str = PAIRS, **options: Any) -> Any:
    return trellis.query(text).arrivals(time="ts", type="k", event_id="id", **options)


@pytest.mark.parametrize(
    ("refused", "wrong"),
    [
        (batch([3], 4).drop_columns(["x"]), "no column `x`"),
        (batch([3], 4).drop_columns(["ts"]), "no column `ts`"),
        (batch(["q"], 4), "`ts`"),
        (batch([3], 4).set_column(2, "x", pa.array(["q"])), "the column `x` of a batch is string"),
        (batch([3], 2), "occurs twice"),
        (batch([0], 4), "earlier than one of an earlier batch"),
        (batch(pa.array([None], pa.int64()), 4), "no readable time"),
        ({"A": batch([3], 4)}, "one table"),
        ("text", "cannot be read"),
    ],
)
def test_a_batch_that_is_refused_leaves_nothing_behind(refused: Any, wrong: str) -> None:
    arrivals, usual = arriving(), arriving()
    first, last = batch([1, 2], 1, 2), batch([5, 6], 3, 6)
    assert arrivals.take(first).equals(usual.take(first))
    for _ in range(2):
        with pytest.raises((DataError, UsageError), match=wrong):
            arrivals.take(refused)
    assert arrivals.held == usual.held
    assert arrivals.take(last).equals(usual.take(last))


def test_a_batch_with_too_many_matches_leaves_nothing_behind() -> None:
    arrivals = arriving(max_trends=1)
    arrivals.take(batch([1, 2], 1, 3))
    for _ in range(2):
        with pytest.raises(ListingRefused, match="2 results"):
            arrivals.take(batch([5], 4))
    assert arrivals.take(batch([6], 2)).num_rows == 1


def test_times_as_text_and_frames_of_others_arrive() -> None:
    arrivals = arriving(f"{PAIRS} s")
    assert arrivals.take(batch(["2024-01-01T00:00:00", "2024-01-01T00:00:01"], 1, 2)).num_rows == 1
    assert arrivals.take(batch(["2024-01-01T00:00:02"], 4)).num_rows == 1
    arrivals = arriving()
    assert arrivals.take(batch([1, 2], 1, 2).to_pandas()).num_rows == 1
    assert arrivals.take(batch(pa.array([3], pa.int32()), 4, more=[1])).num_rows == 1
    with pytest.raises(UsageError):
        arriving().take("text")
