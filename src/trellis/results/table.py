"""The rows of an answer, the same thing on every engine: they become Arrow, pandas, polars or Spark when asked."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    import pandas
    import polars


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
        """Return the rows as a pandas frame in this process."""
        return self._table.to_pandas()

    def to_polars(self) -> polars.DataFrame:
        """Return the rows as a polars frame in this process."""
        return polars_frame(self._table)

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
        return repr(self._table)


def polars_frame(table: pa.Table) -> polars.DataFrame:
    """Return an Arrow table as a polars frame."""
    import polars

    frame = polars.from_arrow(table)
    assert isinstance(frame, polars.DataFrame)
    return frame
