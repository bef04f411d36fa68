"""A sink for PostgreSQL: each batch of a streaming data frame goes into a table once, whatever is killed when."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv
from pyspark.sql import DataFrame

from trellis.errors import UsageError

BATCHES = "trellis_batches"
TYPES = (
    (pa.types.is_boolean, "boolean"), (pa.types.is_int64, "bigint"), (pa.types.is_uint64, "numeric"),
    (pa.types.is_integer, "bigint"), (pa.types.is_floating, "double precision"), (pa.types.is_decimal, "numeric"),
    (pa.types.is_date, "date"), (pa.types.is_string, "text"), (pa.types.is_large_string, "text"),
)  # fmt: skip


class PostgresSink:
    """Writes batches to a table of PostgreSQL, each once: `results.writeStream.foreachBatch(PostgresSink(...))`.

    The rows of a batch and its number are one transaction. A batch that is run again after a kill has the same number
    and the same rows; where the number is there already, nothing is written. The numbers are those of the checkpoint:
    a stream that begins anew with another checkpoint takes another `name`.

    Parameters
    ----------
    connection
        How to connect, as psycopg takes it: `host=db dbname=trades user=analyst`, or a URL.
    table
        The table, which is made if it is not there; `schema.table` for one in a schema.
    name
        The name of the stream, under which the numbers of its batches are kept in `trellis_batches`; the table's, if
        it is not given.

    Raises
    ------
    UsageError
        If psycopg is not installed, a name is empty, or a column is of a type that PostgreSQL does not have.
    """

    def __init__(self, connection: str, table: str, *, name: str | None = None) -> None:
        if not all(table.split(".")) or not (table if name is None else name):
            raise UsageError(f"the table `{table}` or the stream `{name}` has no name", "Name both.")
        _psycopg()
        self.connection, self.table, self.name = connection, table, table if name is None else name

    def __call__(self, frame: DataFrame, batch: int) -> None:
        """Write a batch, unless it is there."""
        rows = frame.toArrow()
        columns = ", ".join(f"{_quoted(fld.name)} {sql_type(fld.name, fld.type)}" for fld in rows.schema)
        table = ".".join(map(_quoted, self.table.split(".")))
        with _psycopg().connect(self.connection) as connection, connection.cursor() as cursor:
            # One at a time: two that make the same table at once would disturb each other.
            cursor.execute("SELECT pg_advisory_xact_lock(hashtext(%s))", (BATCHES,))
            cursor.execute(
                f"CREATE TABLE IF NOT EXISTS {BATCHES} (stream text, batch bigint, PRIMARY KEY (stream, batch))"
            )
            cursor.execute(f"INSERT INTO {BATCHES} VALUES (%s, %s) ON CONFLICT DO NOTHING", (self.name, batch))
            if not cursor.rowcount:
                return
            cursor.execute(f"CREATE TABLE IF NOT EXISTS {table} ({columns})")
            names = ", ".join(_quoted(name) for name in rows.column_names)
            with cursor.copy(f"COPY {table} ({names}) FROM STDIN (FORMAT csv)") as copy:
                copy.write(as_csv(rows))


def _psycopg() -> Any:
    try:
        import psycopg
    except ImportError:
        raise UsageError("writing to PostgreSQL takes psycopg", "Install it: pip install 'psycopg[binary]'.") from None
    return psycopg


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def sql_type(name: str, kind: pa.DataType) -> str:
    """Return the type of a column in PostgreSQL."""
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return f"{sql_type(name, kind.value_type)}[]"
    if pa.types.is_timestamp(kind):
        return "timestamp" if kind.tz is None else "timestamptz"
    for is_of, called in TYPES:
        if is_of(kind):
            return called
    raise UsageError(
        f"the column `{name}` is of type {kind}, which PostgreSQL has no type for",
        "Leave it out with select, or make text of it with to_json.",
    )


def as_csv(rows: pa.Table) -> bytes:
    """Return rows as PostgreSQL's COPY reads them: an empty field is NULL, an empty text is in quotes."""
    for place, fld in enumerate(rows.schema):
        if pa.types.is_list(fld.type) or pa.types.is_large_list(fld.type):
            texts = [as_arrays(chunk) for chunk in rows.column(place).chunks]
            rows = rows.set_column(place, fld.name, pa.chunked_array(texts, pa.string()))
    sink = io.BytesIO()
    csv.write_csv(rows, sink, csv.WriteOptions(include_header=False))
    return sink.getvalue()


def as_arrays(lists: pa.ListArray) -> pa.Array:
    """Return lists as PostgreSQL writes arrays, such as `{1,2}` and `{"a","b"}`; NULL stays NULL."""
    values = lists.flatten()
    texts = values.cast(pa.string())
    if not pa.types.is_integer(values.type) and not pa.types.is_floating(values.type):
        escaped = pc.replace_substring(pc.replace_substring(texts, "\\", "\\\\"), '"', '\\"')
        texts = pc.binary_join_element_wise('"', escaped, '"', "")
    lengths = pc.fill_null(pc.list_value_length(lists), 0)
    offsets = pa.array([0], pa.int32()) if not len(lists) else pa.concat_arrays(
        [pa.array([0], pa.int32()), pc.cumulative_sum(lengths).cast(pa.int32())]
    )  # fmt: skip
    joined = pc.binary_join(pa.ListArray.from_arrays(offsets, pc.fill_null(texts, "NULL")), ",")
    found = pc.binary_join_element_wise("{", joined, "}", "")
    return pc.if_else(pc.is_valid(lists), found, pa.scalar(None, pa.string()))
