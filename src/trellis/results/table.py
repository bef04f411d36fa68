"""The rows of an answer, the same thing on every engine: they become Arrow, pandas, polars or Spark when asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from trellis.arguments import whole_number
from trellis.errors import MemoryExhausted, UsageError
from trellis.memory import IN_PIECES, free_memory, gigabytes
from trellis.properties import cached_property
from trellis.results.display import exact_values, html_page, html_table, text_table

if TYPE_CHECKING:
    import pandas
    import polars

BATCHES_AT_ONCE, BYTES_AT_ONCE = 16, 1 << 26  # after which free memory is looked at again
LEAST_FREE = 256 << 20  # bytes that must be free for more batches, and an eighth of those collected
FEW_BYTES = 1 << 27  # a pandas frame of so many fits
OBJECT = 128  # bytes of an array or text in a row of pandas, about


class ResultTable:
    """Rows of an answer such as counts, aggregates or a sample.

    Whatever an Arrow table has can be asked of it, too (`num_rows`, `to_pylist()`, `table["count"]`): the rows are
    then collected into this process, once.

    Parameters
    ----------
    collect
        Gives the rows as an Arrow table of this process.
    frame
        Gives them as a lazy Spark data frame, of a session; None where the rows are in this process.
    """

    def __init__(self, collect: Callable[[], pa.Table], frame: Callable[[], Any] | None = None) -> None:
        self._collect, self._frame = collect, frame

    @cached_property
    def _table(self) -> pa.Table:
        return self._collect()

    def to_arrow(self) -> pa.Table:
        """Return the rows as an Arrow table in this process."""
        return self._table

    def to_pandas(self) -> pandas.DataFrame:
        """Return the rows as a pandas frame in this process; counts and other whole decimals are ints."""
        return pandas_frame(self._table)

    def to_polars(self) -> polars.DataFrame:
        """Return the rows as a polars frame in this process."""
        return polars_frame(self._table)

    def head(self, rows: int = 5) -> ResultTable:
        """Return the first rows."""
        first = self._table.slice(0, whole_number(rows, "the number of rows"))
        return ResultTable(lambda: first)

    def to_spark(self, spark: Any = None) -> Any:
        """Return the rows as a Spark data frame; those of the Spark engine are not collected for it.

        Parameters
        ----------
        spark
            The session for rows of this process; by default the active one.
        """
        if self._frame is not None:
            return self._frame()
        from trellis.providers import provided

        return provided("Spark frames")(self._table, spark)

    def equals(self, other: Any) -> bool:
        """Return whether another table has the same rows and columns."""
        return self._table.equals(other.to_arrow() if isinstance(other, ResultTable) else other)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not hasattr(pa.Table, name):
            raise AttributeError(
                f"results have no `{name}`; convert them with to_arrow(), to_pandas(), to_polars() or to_spark()"
            )
        return getattr(self._table, name)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)

    def __getitem__(self, column: int | str) -> pa.ChunkedArray:
        return self._table[column]

    def __len__(self) -> int:
        return self._table.num_rows

    def __eq__(self, other: object) -> bool:
        return self.equals(other) if isinstance(other, ResultTable | pa.Table) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return text_table(self._table, get_terminal_size().columns)

    def _repr_html_(self) -> str:
        return html_page(html_table(self._table))


def collected(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, free: Callable[[], int] = free_memory
) -> pa.Table:  # fmt: skip
    """Return batches of bounded size as one table.

    Parameters
    ----------
    batches
        The rows; not more of them are taken than memory holds.
    schema
        Their columns.
    free
        Tells how many bytes are free.

    Raises
    ------
    MemoryExhausted
        If another few batches would take all memory. What has been collected is free again then.
    """
    kept: list[pa.RecordBatch] = []
    taken = looked = 0
    for batch in batches:
        kept.append(batch)
        if len(kept) % BATCHES_AT_ONCE:
            continue
        taken += sum(one.nbytes for one in kept[-BATCHES_AT_ONCE:])
        if taken - looked < BYTES_AT_ONCE:
            continue
        looked, left = taken, free()
        if left < max(taken // 8, LEAST_FREE):
            what = f"the results do not fit into memory: {sum(one.num_rows for one in kept):,} of them take"
            raise MemoryExhausted(f"{what} {gigabytes(taken)}, and {gigabytes(left)} are free", IN_PIECES)
    return pa.Table.from_batches(kept, schema=schema)


def pandas_frame(table: pa.Table, free: Callable[[], int] = free_memory) -> pandas.DataFrame:
    """Return an Arrow table as a pandas frame; decimals without digits behind the point, such as counts, are ints.

    A column that needs more than 64 bits, or has NULLs, holds ints of Python's, with all their digits.

    Raises
    ------
    MemoryExhausted
        If the frame takes more memory than is free, as `free` tells it.
    UsageError
        If pandas is not installed.
    """
    try:
        import pandas
    except ImportError:
        raise UsageError("pandas is not installed here", "Run `pip install pandas`, or take `to_arrow()`.") from None

    needed = _frame_bytes(table)
    if needed > FEW_BYTES and needed > (left := free()):
        what = f"a pandas frame of {table.num_rows:,} rows needs {gigabytes(needed)} of memory"
        raise MemoryExhausted(f"{what}, and {gigabytes(left)} are free", IN_PIECES)
    narrow = _with_small_integers(table)
    frame = narrow.to_pandas()
    for field in narrow.schema:
        if _is_whole(field.type):
            frame[field.name] = pandas.Series(_whole_values(narrow, field.name), frame.index, dtype=object)
    return frame


def _frame_bytes(table: pa.Table) -> int:
    """Return how many bytes a pandas frame takes: an array or a text is an object, and values of arrays are copied."""
    objects = sum(not pa.types.is_primitive(field.type) for field in table.schema)
    size = table.num_rows * (OBJECT * objects + 8 * table.num_columns)
    for column in table.columns:
        if pa.types.is_list(column.type):
            each = OBJECT if pa.types.is_decimal(column.type.value_type) else 8
            size += each * (pc.sum(pc.list_value_length(column)).as_py() or 0)
    return size


def _whole_values(table: pa.Table, name: str) -> list[int | None]:
    values = exact_values(table, name)
    return [None if value is None else int(value) for value in values]


def _is_whole(type_: pa.DataType) -> bool:
    return pa.types.is_decimal(type_) and type_.scale == 0


def _with_small_integers(table: pa.Table) -> pa.Table:
    """Return whole decimals as 64-bit integers, column by column, where none is NULL and all fit."""
    for i, field in enumerate(table.schema):
        if _is_whole(field.type) and not table.column(i).null_count:
            with suppress(pa.ArrowInvalid):
                table = table.set_column(i, field.name, table.column(i).cast(pa.int64()))
    return table


def polars_frame(table: pa.Table) -> polars.DataFrame:
    """Return an Arrow table as a polars frame."""
    import polars

    frame = polars.from_arrow(_with_small_integers(table), rechunk=False)  # else all rows would be copied
    assert isinstance(frame, polars.DataFrame)
    return frame
