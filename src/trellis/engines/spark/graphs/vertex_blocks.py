"""Vertex programs in Spark's Python workers: blocks of a graph, each with the values it sees of others, and mail.

A block is packed into one row of bytes, what its vertices hold and see into others. A round takes the mail that came
for a block, runs the very step that runs in this process, and mails the values that have changed to those who see them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from trellis.engines.spark.session.failures import in_task
from trellis.events.table_bytes import packed, unpacked
from trellis.graphs.engine import Block, step
from trellis.graphs.program import VertexProgram
from trellis.graphs.values import Sets, Values, from_arrow, put, take, to_arrow

OWN, SEEN, MAIL = "own", "seen", "mail"
VERTEX, EDGE, WATCHER = 0, 1, 2
STATIC = "block int, blob binary"
MOVING = "block int, kind string, changed bigint, scheduled bigint, total double, blob binary"
MOVING_ARROW = pa.schema(
    [
        ("block", pa.int32()), ("kind", pa.string()), ("changed", pa.int64()), ("scheduled", pa.int64()),
        ("total", pa.float64()), ("blob", pa.binary()),
    ]
)  # fmt: skip
STATIC_ARROW = pa.schema([("block", pa.int32()), ("blob", pa.binary())])


@dataclass(frozen=True)
class Part:
    """A block with a number, and who sees its vertices: `watched` are their places, `watchers` the blocks, in pairs."""

    number: int
    block: Block
    watched: np.ndarray
    watchers: np.ndarray


def build(table: pa.Table) -> pa.Table:
    """Make a block of the rows of its vertices, of the edges into them, and of those who see its vertices."""
    with in_task():
        role = table["role"].to_numpy()
        a, b = (table[name].to_numpy() for name in "ab")
        weight, total = (table[name].to_numpy() for name in ("weight", "total"))
        own = np.flatnonzero(role == VERTEX)
        own = own[np.argsort(a[own])]
        index = a[own]
        edges = np.flatnonzero(role == EDGE)
        edges = edges[np.lexsort((b[edges], a[edges]))]
        seen, first, source = np.unique(b[edges], return_index=True, return_inverse=True)
        offsets = np.searchsorted(a[edges], np.concatenate([index, [np.iinfo(np.int64).max]]))
        watching = np.flatnonzero(role == WATCHER)
        watching = watching[np.argsort(a[watching], kind="stable")]
        columns = {
            "index": index, "ids": table["id"].take(pa.array(own)).combine_chunks(), "offsets": offsets,
            "source": source, "weight": weight[edges], "seen": seen, "total": total[edges][first],
            "watched": np.searchsorted(index, a[watching]), "watchers": b[watching],
        }  # fmt: skip
        number = table["block"][0].as_py()
        return pa.table([[number], [_packed(columns)]], schema=STATIC_ARROW)


def _packed(columns: dict[str, Any]) -> bytes:
    """Return arrays of any lengths as bytes."""
    return packed(pa.table({name: _one_row(column) for name, column in columns.items()}), False)


def _one_row(column: Any) -> pa.Array:
    values = column if isinstance(column, pa.Array) else pa.array(column)
    return pa.LargeListArray.from_arrays(pa.array([0, len(values)], pa.int64()), values)


def _unpacked(blob: bytes) -> dict[str, pa.Array]:
    table = unpacked(blob)
    return {name: table[name].chunk(0).flatten() for name in table.column_names}


def opened(number: int, blob: bytes) -> Part:
    """Return the part that bytes hold."""
    found = _unpacked(blob)
    ids = found.pop("ids")
    arrays = {name: array.to_numpy() for name, array in found.items()}
    watched, watchers = arrays.pop("watched"), arrays.pop("watchers")
    return Part(number, Block(ids=ids, **arrays), watched, watchers)


def _row(number: int, kind: str, columns: dict[str, Any], *progress: Any) -> pa.RecordBatch:
    changed, scheduled, total = progress or (0, 0, 0.0)
    row = dict(zip(MOVING_ARROW.names, (number, kind, changed, scheduled, total, _packed(columns)), strict=True))
    return pa.RecordBatch.from_pylist([row], schema=MOVING_ARROW)


def _mail(part: Part, values: Values, changed: np.ndarray, everything: bool) -> Iterator[pa.RecordBatch]:
    """Yield the values that other blocks must know: those that have changed, or at the start all that they see."""
    sent = np.ones(len(part.watched), np.bool_) if everything else changed[part.watched]
    for block in np.unique(part.watchers[sent]).tolist():
        places = part.watched[sent & (part.watchers == block)]
        columns = {
            "index": part.block.index[places], "values": to_arrow(take(values, places)), "changed": changed[places],
        }  # fmt: skip
        yield _row(block, MAIL, columns)


def _state(
    part: Part, values: Values, seen: Values, changed: np.ndarray, scheduled: int
) -> Iterator[pa.RecordBatch]:  # fmt: skip
    total = 0.0 if isinstance(values, Sets) or values.dtype.kind != "f" else float(values.sum())
    yield _row(part.number, OWN, {"values": to_arrow(values)}, int(changed.sum()), scheduled, total)
    yield _row(part.number, SEEN, {"values": to_arrow(seen)})


@dataclass(frozen=True)
class BeginBlocks:
    """Gives blocks the values that vertices begin with, and mails them to those who see them."""

    program: VertexProgram

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Take packed blocks."""
        with in_task():
            for batch in batches:
                for number, blob in zip(batch["block"].to_pylist(), batch["blob"].to_pylist(), strict=True):
                    part = opened(number, blob)
                    values = self.program.initial(part.block.vertices)
                    changed = self.program.begins(part.block.vertices)
                    nothing = take(values, np.zeros(0, np.int64))
                    yield from _state(part, values, nothing, changed, 0)
                    yield from _mail(part, values, changed, everything=True)


@dataclass(frozen=True)
class Round:
    """Runs a round over one block."""

    program: VertexProgram
    round: int

    def __call__(self, static: pa.Table, moving: pa.Table) -> pa.Table:
        """Take a packed block, and what its vertices hold and see and the mail that came for it."""
        with in_task():
            if not static.num_rows:
                return MOVING_ARROW.empty_table()
            part = opened(static["block"][0].as_py(), static["blob"][0].as_py())
            values, seen, mail = _sorted_out(moving)
            index = _joined([one["index"].to_numpy() for one in mail])
            order = np.argsort(index)
            places = np.searchsorted(part.block.seen, index[order])
            news = _concatenated([from_arrow(one["values"]) for one in mail])
            if self.round == 0:
                seen = take(news, order) if news is not None else seen  # all that are seen come at once
            elif news is not None:
                seen = put(seen, places, take(news, order))
            flags = _joined([one["changed"].to_numpy(zero_copy_only=False) for one in mail], np.bool_)
            done = step(part.block, self.program, values, seen, places[flags[order]], self.round)
            out = [*_state(part, done.values, seen, done.changed, done.scheduled)]
            return pa.Table.from_batches([*out, *_mail(part, done.values, done.changed, everything=False)])


def _sorted_out(moving: pa.Table) -> tuple[Values, Values, list[dict[str, pa.Array]]]:
    values: dict[str, Values] = {}
    mail = []
    for kind, blob in zip(moving["kind"].to_pylist(), moving["blob"].to_pylist(), strict=True):
        if kind == MAIL:
            mail.append(_unpacked(blob))
        else:
            values[kind] = from_arrow(_unpacked(blob)["values"])
    return values[OWN], values[SEEN], mail


def _joined(arrays: list[Any], dtype: Any = np.int64) -> Any:
    return np.concatenate([np.zeros(0, dtype), *arrays])


def _concatenated(some: list[Values]) -> Values | None:
    if not some:
        return None
    if not isinstance(some[0], Sets):
        return np.concatenate(some)  # type: ignore[arg-type]
    return Sets.of([one[i] for one in some for i in range(len(one))], some[0].members.dtype)


@dataclass(frozen=True)
class EndBlocks:
    """Gives the result of each vertex of a block."""

    program: VertexProgram
    total: float
    schema: pa.Schema

    def __call__(self, static: pa.Table, moving: pa.Table) -> pa.Table:
        """Take a packed block, and what its vertices hold."""
        with in_task():
            if not static.num_rows:
                return self.schema.empty_table()
            part = opened(static["block"][0].as_py(), static["blob"][0].as_py())
            values = self.program.finish(from_arrow(_unpacked(moving["blob"][0].as_py())["values"]), self.total)
            return pa.table([part.block.ids, for_spark(to_arrow(values))], names=self.schema.names).cast(self.schema)


def for_spark(values: pa.Array) -> pa.Array:
    """Return values in types that Spark has."""
    if pa.types.is_large_list(values.type):
        return pa.ListArray.from_arrays(values.offsets.cast(pa.int32()), for_spark(values.values))
    return values.cast(pa.int64(), safe=False) if pa.types.is_uint64(values.type) else values
