"""Results that do not fit into memory are refused while they come, and a frame of them before it is made."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

from trellis.errors import MemoryExhausted
from trellis.results.table import collected, pandas_frame, polars_frame

SCHEMA = pa.schema([("rank", pa.int64()), ("events", pa.list_(pa.int64()))])


def batch(rows: int) -> pa.RecordBatch:
    return pa.record_batch([list(range(rows)), [[1, 2]] * rows], schema=SCHEMA)


def test_batches_are_collected_until_memory_is_short() -> None:
    taken = []

    def batches() -> Iterator[pa.RecordBatch]:
        for number in range(1_000):
            taken.append(number)
            yield large

    large = batch(300_000)
    with pytest.raises(MemoryExhausted, match=r"14,400,000 of them take 0\.4 GB, and 0\.1 GB are free\nWrite the "):
        collected(batches(), SCHEMA, lambda: 100_000_000 if len(taken) > 40 else 1_000_000_000)
    assert len(taken) == 48


@pytest.mark.parametrize("number", [0, 1, 15, 16, 17, 40])
def test_what_fits_is_collected_whole(number: int) -> None:
    expected = pa.Table.from_batches([batch(3)] * number, schema=SCHEMA)
    assert collected(iter([batch(3)] * number), SCHEMA, lambda: 1 << 40).equals(expected)


def test_a_pandas_frame_that_does_not_fit_is_refused() -> None:
    rows = 1_000_001
    table = pa.table({"rank": pa.nulls(rows, pa.int64()), "text": pa.nulls(rows, pa.string())})
    with pytest.raises(MemoryExhausted, match=r"a pandas frame of 1,000,001 rows needs 0\.1 GB of memory, and 0\.1 GB"):
        pandas_frame(table, lambda: 100_000_000)
    assert len(pandas_frame(table, lambda: 200_000_000)) == rows
    assert len(pandas_frame(table.slice(0, 10), lambda: 0)) == 10


def test_values_of_lists_count_for_a_pandas_frame() -> None:
    values = pa.nulls(18_000_000, pa.int64())
    offsets = pa.array([0, 9_000_000, 18_000_000], pa.int32())
    table = pa.table({"events": pa.ListArray.from_arrays(offsets, values)})
    with pytest.raises(MemoryExhausted, match=r"a pandas frame of 2 rows needs 0\.1 GB"):
        pandas_frame(table, lambda: 140_000_000)
    assert len(pandas_frame(table, lambda: 150_000_000)) == 2


def test_a_polars_frame_copies_no_batch() -> None:
    table = pa.Table.from_batches([batch(3)] * 4)
    frame = polars_frame(table)
    assert frame.n_chunks() == 4
    assert frame.rows() == [tuple(row.values()) for row in table.to_pylist()]
