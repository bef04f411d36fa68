"""From the compact form of listed trends back to whole trends."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trellis.errors import UsageError
from trellis.kernels.list.rows import expanded_places

Rows = TypeVar("Rows", pa.RecordBatch, pa.Table)


def expand(rows: Rows) -> Rows:
    """Return rows in compact form (`batches(compact=True)`) with `events` in place of `shared` and `new`.

    Parameters
    ----------
    rows
        A batch, or a table of whole batches.

    Raises
    ------
    UsageError
        If the rows have no compact form, or do not begin where a batch begins.
    """
    if isinstance(rows, pa.RecordBatch):
        return _expanded(rows)
    batches = rows.to_batches() or [pa.RecordBatch.from_pylist([], rows.schema)]
    return pa.Table.from_batches([_expanded(batch) for batch in batches])


def _expanded(batch: pa.RecordBatch) -> pa.RecordBatch:
    if "shared" not in batch.schema.names or "new" not in batch.schema.names:
        raise UsageError("these rows have no compact form: the columns `shared` and `new`", "List with compact=True.")
    shared, new = batch.column("shared"), batch.column("new")
    offsets, places = expanded_places(shared.to_numpy(), new.offsets.to_numpy())
    if len(places) < offsets[-1]:
        raise UsageError(
            "these rows do not go back to whole trends: the first shares events with a row that is not there",
            "Expand whole batches.",
        )
    if offsets[-1] >= 1 << 31:
        raise UsageError("whole trends of so many rows do not fit one batch", "Expand batches one by one.")
    offsets = offsets.astype(np.int32)
    events = pa.ListArray.from_arrays(pa.array(offsets), pc.take(new.values, pa.array(places), boundscheck=False))
    kept = [(n, c) for n, c in zip(batch.schema.names, batch.columns, strict=True) if n != "shared"]
    names = ["events" if name == "new" else name for name, _ in kept]
    return pa.RecordBatch.from_arrays([events if name == "new" else c for name, c in kept], names=names)
