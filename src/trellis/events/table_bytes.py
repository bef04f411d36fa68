"""Tables as bytes, as they are held, sent and reported."""

from __future__ import annotations

import pyarrow as pa

CODEC, PLAIN = pa.ipc.IpcWriteOptions(compression="zstd"), pa.ipc.IpcWriteOptions()


def packed(table: pa.Table, compressed: bool = True) -> bytes:
    """Return a table as bytes; those that only go to the next process of a machine are better not `compressed`."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=CODEC if compressed else PLAIN) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def unpacked(chunk: bytes) -> pa.Table:
    """Return the table that bytes hold."""
    return pa.ipc.open_stream(pa.py_buffer(chunk)).read_all()
