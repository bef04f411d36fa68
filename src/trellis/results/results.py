"""Results of a query over events: one set of questions, answered by whichever engine holds the events."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa

from trellis.errors import UsageError
from trellis.language.printer import pattern_text
from trellis.plan.plan import Plan
from trellis.results.named import ANY
from trellis.results.numbers import aggregate_schema
from trellis.results.rows import row_schema
from trellis.results.table import ResultTable, polars_frame

if TYPE_CHECKING:
    import pandas
    import polars


class Results(ABC):
    """The results of a query, to be counted, listed, aggregated or written.

    Making one does no work: events are read, checked and sorted when something is asked, and nothing is listed before
    it is asked for. Every engine has the same methods, and they return the same types.

    Attributes
    ----------
    plan
        The plan of the query.
    max_trends
        The bound on listing.
    inputs
        The paths of the events, which `write` leaves alone.
    """

    engine: ClassVar[str]
    plan: Plan
    max_trends: int
    inputs: Sequence[str] = ()

    # --- Numbers ----------------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def statistics(self) -> dict[str, int]:
        """Numbers of `events` read and `dropped`, of `windows` and of `partitions`."""

    @abstractmethod
    def count(self) -> int:
        """Return the exact number of results; nothing is listed."""

    @abstractmethod
    def counts(self) -> ResultTable:
        """Return the number of results of each window and partition that has any; nothing is listed."""

    @abstractmethod
    def aggregates(self) -> ResultTable:
        """Return the rows of the query's AGGREGATE; nothing is listed.

        Raises
        ------
        UsageError
            If the query has no AGGREGATE.
        """

    @abstractmethod
    def aggregate(self, *items: str) -> ResultTable:
        """Return aggregates of all results of each window and partition, such as `count(*)` or `avg(s.price)`."""

    @abstractmethod
    def describe(self) -> dict[str, str]:
        """Return how the engine finds the results, for `explain`: facts by name."""

    # --- Some of the results ----------------------------------------------------------------------------------

    @abstractmethod
    def first(self, rows: int) -> ResultTable:
        """Return the first rows of the result, in its order; the others are not listed."""

    @abstractmethod
    def top(self, number: int, by: str = "length") -> ResultTable:
        """Return the results with the greatest `length`, `sum(s.price)` or other value; ties in the order of ranks."""

    @abstractmethod
    def trend(self, rank: int, window: Any = None, partition: Any = ANY) -> ResultTable:
        """Return the result with a rank, without those before it.

        Parameters
        ----------
        rank
            The rank in its window and partition, from 0; of any size.
        window
            The start of the window, where there are several; moments also as text, without a zone in UTC.
        partition
            The values of the partition's attributes, one alone or several in a tuple, where there are several. None is
            NULL.
        """

    @abstractmethod
    def sample(self, number: int, seed: int = 0) -> ResultTable:
        """Return results drawn without replacement, each set equally likely; the same for the same seed.

        Parameters
        ----------
        number
            How many; all of them if there are fewer.
        seed
            The draw depends on it, and on nothing else: every engine draws the same results.
        """

    # --- All of them ------------------------------------------------------------------------------------------

    @abstractmethod
    def batches(
        self, columns: Sequence[str] | None = None, positions: bool = False, threads: int | None = None,
        ranks: range | None = None, compact: bool = False,
    ) -> Iterator[pa.RecordBatch]:  # fmt: skip
        """Yield the results as record batches of bounded size, in the order of the result.

        Parameters
        ----------
        columns
            The columns wanted; all of them by default.
        positions
            Give int32 positions in `events` in place of event ids; of the local engine.
        threads
            How many threads list; by default as many as there are cores to use. Spark's tasks list on their own.
        ranks
            List only these rows of the result, such as `range(10**9, 10**9 + 1000)`, and nothing before them.
        compact
            Give, in place of `events`, how many leading events each trend shares with the row before it (`shared`, 0
            in the first row of a batch) and the events that follow those (`new`); of the local engine.
            `trellis.expand` undoes it.

        Raises
        ------
        ListingRefused
            If more results are asked for than `max_trends`.
        """

    @abstractmethod
    def explode(self) -> ResultTable:
        """Return a row for each event of a result: window, partition, rank, its place from 1, and all its columns."""

    @abstractmethod
    def to_arrow(self) -> pa.Table:
        """Return all results as one Arrow table in this process, in the order of the result."""

    @abstractmethod
    def to_spark(self, spark: Any = None) -> Any:
        """Return the results as a Spark data frame, one row for each.

        On the Spark engine it is lazy: Spark works when the frame is used, and a window and partition with more than
        `max_trends` results fails where it is listed.

        Parameters
        ----------
        spark
            The session for results of the local engine; by default the active one.
        """

    @abstractmethod
    def write(
        self, path: str | os.PathLike[str], format: str = "parquet", overwrite: bool = False, raw_csv: bool = False
    ) -> None:
        """Write the results as files into a directory, wholly or not at all.

        Parameters
        ----------
        path
            The directory; it must not exist unless `overwrite`, and must be apart from the events.
        format
            `parquet`, `csv` (arrays are JSON fields) or `json` (one object per line).
        overwrite
            Replace the directory, if Trellis wrote all that is in it.
        raw_csv
            In CSV, write texts as they are, even those that a spreadsheet would take for formulas.
        """

    def to_pandas(self) -> pandas.DataFrame:
        """Return all results as a pandas frame in this process."""
        return self.to_arrow().to_pandas()

    def to_polars(self) -> polars.DataFrame:
        """Return all results as a polars frame in this process."""
        return polars_frame(self.to_arrow())

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the result."""
        return aggregate_schema(self.plan.bound) if self.plan.bound.aggregates else row_schema(self.plan.bound)

    def _check_aggregates(self) -> None:
        if not self.plan.bound.aggregates:
            raise UsageError("the query has no AGGREGATE", "Add one, or use trends.aggregate('count(*)').")

    def __repr__(self) -> str:
        where = "in this process" if self.engine == "local" else "on Spark"
        return f"<results of `{pattern_text(self.plan.bound.pattern)}` {where}>"
