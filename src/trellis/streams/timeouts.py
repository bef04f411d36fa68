"""Partial matches that ran out of time: how far each came, and what it waited for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trellis.language.bound import BoundQuery
from trellis.results.rows import arrow_type, id_arrow_type, lead_schema
from trellis.streams.calendar import Number
from trellis.streams.decisions import close
from trellis.streams.query import StandingQuery
from trellis.streams.ranks import RankCounters
from trellis.streams.sharing import SharedWork


@dataclass(frozen=True)
class Beginnings:
    """The beginnings of a standing query of one length, as one that waits for what did not come."""

    query: StandingQuery
    matched: str
    awaited: str
    condition: str


class _NoPages:
    """A store for counters that nobody asks for."""

    def page(self, space: int, number: int) -> str | None:
        return None

    def set_page(self, space: int, number: int, text: str | None) -> None:
        pass


def timeouts_schema(bound: BoundQuery) -> pa.Schema:
    """Return the schema of the table `_timeouts`."""
    time = arrow_type(bound.known_schema.time_type)
    return pa.schema(
        [
            *lead_schema(bound), ("start_time", time), ("end_time", time), ("matched", pa.string()),
            ("awaited", pa.string()), ("condition", pa.string()), ("events", pa.list_(id_arrow_type(bound))),
            ("count_text", pa.string()),
        ]
    )  # fmt: skip


def timed_out(
    shorter: Sequence[Beginnings], held: SharedWork, before: Number | None, now: Number, since: Number | None
) -> Iterator[pa.Table]:
    """Yield the beginnings that a watermark decides to have gone no farther, as rows of `_timeouts`.

    A window and partition, or an event of a span, with too many of one length has one row with their number.
    """
    for one in shorter:
        schema = timeouts_schema(one.query.bound)
        closed = close(one.query, held, before, now, since, None, RankCounters(_NoPages(), 0))
        for batch in closed.results:
            if batch.num_rows:
                yield _rows(one, pa.Table.from_batches([batch]), schema)
        for windows in closed.windows:
            many = windows.filter(pc.invert(windows["listed"]))
            if many.num_rows:
                yield _rows(one, many, schema)


def _rows(one: Beginnings, table: pa.Table, schema: pa.Schema) -> pa.Table:
    size = table.num_rows
    said = {"matched": one.matched, "awaited": one.awaited, "condition": one.condition}
    made: dict[str, Any] = {name: pa.repeat(pa.scalar(text, pa.string()), size) for name, text in said.items()}
    names = [variable.name for variable in one.query.bound.variables if not variable.absent]
    if all(name in table.column_names for name in names):  # not of rows that only have a number
        made["events"] = _joined([table[name].combine_chunks() for name in names])
    columns = []
    for field in schema:
        column = made.get(field.name, table[field.name] if field.name in table.column_names else None)
        columns.append(pa.nulls(size, field.type) if column is None else column.cast(field.type))
    return pa.Table.from_arrays(columns, schema=schema)


def _joined(columns: Sequence[pa.Array]) -> pa.Array:
    """Return the ids of each row in one list: of columns of ids, and of lists of ids."""
    lists = [pa.types.is_list(column.type) or pa.types.is_large_list(column.type) for column in columns]
    lengths = np.stack(
        [
            pc.list_value_length(column).to_numpy(zero_copy_only=False) if is_list else np.ones(len(column), np.int64)
            for column, is_list in zip(columns, lists, strict=True)
        ]
    ).astype(np.int64)
    flat = pa.concat_arrays([c.flatten() if is_list else c for c, is_list in zip(columns, lists, strict=True)])
    begins = np.concatenate([[0], np.cumsum(lengths.ravel())])[:-1].reshape(lengths.shape).T.ravel()
    sizes = lengths.T.ravel()  # row by row, the columns one after another
    places = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes) + np.repeat(begins, sizes)
    offsets = np.concatenate([[0], np.cumsum(lengths.sum(axis=0))])
    return pa.LargeListArray.from_arrays(pa.array(offsets), flat.take(pa.array(places)))
