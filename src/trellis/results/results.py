"""Results of a query over events: one set of questions, answered by whichever engine holds the events."""

from __future__ import annotations

import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from time import perf_counter
from typing import TYPE_CHECKING, Any, ClassVar, overload

import pyarrow as pa
import pyarrow.compute as pc

from trellis.arguments import whole_number
from trellis.digits import number_text
from trellis.errors import OutOfRange, UsageError
from trellis.language.printer import pattern_text, to_query_text
from trellis.language.syntax import PerEvent
from trellis.limits import refuse_rows, result_size
from trellis.plan.plan import Plan
from trellis.plan.variants import aggregate_plan
from trellis.properties import cached_property
from trellis.providers import provided
from trellis.results.arrange import wanted_ranges
from trellis.results.display import html_facts, html_page, html_table, value_text
from trellis.results.funnel import funnel_table, step_plans
from trellis.results.named import ANY, named_group
from trellis.results.numbers import aggregate_schema
from trellis.results.rows import row_schema
from trellis.results.table import ResultTable, pandas_frame, polars_frame
from trellis.results.trend import Trend, TrendList, group_key, trends_of

if TYPE_CHECKING:
    import pandas
    import polars


HTML_ROWS = 10  # that a notebook shows


def slice_bounds(wanted: slice, size: int) -> tuple[int, int]:
    """Return begin and end of a slice of so many results, of any size; Python's own `slice.indices` ends at 64 bits.

    Raises
    ------
    UsageError
        If it has a step.
    """
    if wanted.step not in (None, 1):
        raise UsageError("a slice of results has no step", "Leave it out: trends[5:8].")

    def bound(value: Any, default: int) -> int:
        if value is None:
            return default
        place = whole_number(value, "the position of a result", None)
        return min(size, max(0, place + size if place < 0 else place))

    begin, end = bound(wanted.start, 0), bound(wanted.stop, size)
    return begin, max(begin, end)


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

    def is_quick(self, seconds: float, sure: bool = True) -> bool:
        """Return whether counting is not expected to take longer, or is `sure` not to; True where that is not known."""
        return True

    def expected(self) -> dict[str, str]:
        """Return facts of the work before it is done, for `explain`."""
        return self.describe()

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

    def aggregate(self, *items: str) -> ResultTable:
        """Return aggregates of all results of each window and partition, such as `count(*)` or `avg(s.price)`."""
        return self._aggregated(aggregate_plan(self.plan, items))

    @abstractmethod
    def _aggregated(self, plan: Plan) -> ResultTable:
        """Return the rows of another AGGREGATE over the same results."""

    def per_event(self, *items: str, of: str | None = None) -> ResultTable:
        """Return aggregates of the results that hold each event, as AGGREGATE ... PER EVENT; nothing is listed.

        Parameters
        ----------
        items
            Aggregates such as `count(*)`, `share`, `max(length)` or `avg(s.price)`; by default `count(*)`.
        of
            A variable: an event then counts only where it is bound to it.
        """
        return self._aggregated(aggregate_plan(self.plan, items or ("count(*)",), PerEvent(of)))

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

    def head(self, rows: int = 5) -> ResultTable:
        """Return the first rows of the result, as `first` does."""
        return self.first(rows)

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
        from trellis.operators.trends.unrank import check_rank  # late: counting goes without

        rows, sizes = self._groups
        group = named_group(self.plan.bound, rows, window, partition)
        check_rank(rank, sizes[group])
        picked = self._picked({group: [rank]})
        return ResultTable(lambda: picked)

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

    @abstractmethod
    def with_plan(self, plan: Plan) -> Results:
        """Return the results of another plan over the same events."""

    def starts_of(self, plan: Plan) -> int:
        """Return how many events begin a match of another plan over the same events, in each window."""
        begins = self.with_plan(plan).per_event("begins").to_arrow()["begins_text"]
        return len(begins) - int(pc.sum(pc.equal(begins, "0")).as_py() or 0)

    def funnel(self) -> ResultTable:
        """Return how many starts reached each step of a pattern of several steps, and how many stopped there.

        A start is an event that the first step can take; it reaches a step if some match of the pattern up to there
        begins with it. `step` is the pattern up to there, `starts` their number, `stopped` those that go no further.
        """
        plans = step_plans(self.plan)
        return funnel_table(plans, [self.starts_of(plan) for plan in plans])

    @abstractmethod
    def partition_events(self, partition: Mapping[str, Any], most: int) -> pa.Table:
        """Return the events of a partition with all their columns, the first `most` of them in the order of time."""

    def plot(self, kind: str = "timeline", **options: Any) -> Any:
        """Return a picture of the results, a figure of plotly's: see `trellis.report.pictures.plot_results`.

        Parameters
        ----------
        kind
            `timeline`: the events of a partition over time, trends as lines through them. `graph`: events between the
            values of two attributes. `counts`: results by window and partition. `funnel`: how far starts got.
        options
            Options of the picture, such as `y="price"` of a timeline, `source` and `target` of a graph.
        """
        return provided("pictures").plot_results(self, kind, **options)

    def report(self, path: str | os.PathLike[str], overwrite: bool = False) -> None:
        """Write a report into one file that works offline: what was asked and found, each trend drawn at a click.

        Parameters
        ----------
        path
            The file, `report.html`; it must not exist unless `overwrite`.
        overwrite
            Replace the file.
        """
        provided("report")(self, path, overwrite=overwrite)

    # --- As a sequence ----------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def _groups(self) -> tuple[list[dict[str, Any]], list[int]]:
        """The windows and partitions that have a result, in their order, as `lead_rows` has them, and their sizes."""

    @abstractmethod
    def _picked(self, picks: Mapping[int, Sequence[int]]) -> pa.Table:
        """Return the rows with given ranks, in rising order, of groups by their place in `_groups`."""

    @abstractmethod
    def picked_events(self, picks: Mapping[int, Sequence[int]]) -> pa.Table:
        """Return the events of the results with given ranks, in rising order, of groups by their place in `_groups`.

        Their columns are those of `trellis.results.trend.events_schema`.
        """

    def _pieces(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the result, a bounded number at a time and no more than are asked for."""
        return self.batches()

    def group_of(self, row: Mapping[str, Any]) -> int:
        """Return the place in the order of groups of a window and partition, as `lead_rows` describes it."""
        return self._places[group_key(row)]

    @cached_property
    def _places(self) -> dict[str, int]:
        return {group_key(row): place for place, row in enumerate(self._groups[0])}

    def _size(self) -> int:
        """Return how many rows the result has, with LIMIT and OFFSET."""
        self._refuse_aggregates()
        if self.plan.bound.limit_per:
            return sum(batch.num_rows for batch in self.batches(columns=["length"]))
        return result_size(self.plan.bound, self._groups[1] if self.plan.bound.per_window else [self.count()])

    def __len__(self) -> int:
        size = self._size()
        if size > sys.maxsize:
            raise UsageError(f"there are {number_text(size)} results, more than len() can say", "Use trends.count().")
        return size

    def __bool__(self) -> bool:
        return True if self.plan.bound.aggregates else self._size() > 0

    def __iter__(self) -> Iterator[Trend]:
        """Go through the results in their order; a few are listed at a time."""
        self._refuse_aggregates()
        for batch in self._pieces():
            yield from trends_of(self, batch)

    @overload
    def __getitem__(self, place: int) -> Trend: ...

    @overload
    def __getitem__(self, place: slice) -> TrendList: ...

    def __getitem__(self, place: int | slice) -> Trend | TrendList:
        """Return the result at a position, or those of a range of positions, without the others.

        Positions count the rows of the result: without ORDER BY, LIMIT and OFFSET all results, in the order (window,
        partition, rank).
        """
        if isinstance(place, slice):
            begin, end = slice_bounds(place, self._size())
            return self._between(begin, end)
        size = self._size()
        wanted = whole_number(place, "the position of a result", None)
        begin = wanted + size if wanted < 0 else wanted
        if not 0 <= begin < size:
            raise OutOfRange(
                f"there is no result at the position {number_text(abs(wanted))}",
                f"There are {number_text(size)} results, and positions count from 0.",
            )
        return self._between(begin, begin + 1)[0]

    def _between(self, begin: int, end: int) -> TrendList:
        """Return the results at the positions from `begin` to before `end`."""
        refuse_rows(end - begin, self.max_trends)
        if self.plan.bound.arranged:
            rows = self.first(end).to_arrow().slice(begin)
            return TrendList(self, rows, rows["rank"].to_pylist())
        ranges = wanted_ranges(self.plan.bound, self._groups[1], range(begin, end))
        picks = {group: range(first, last) for group, first, last in ranges}
        return TrendList(self, self._picked(picks), [rank for ranks in picks.values() for rank in ranks])

    def _refuse_aggregates(self) -> None:
        if self.plan.bound.aggregates:
            raise UsageError("a query with AGGREGATE has no single trends", "Use trends.aggregates(), or RETURN.")

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
            The directory, or an address in `s3://`, `gs://`, `hdfs://` or `abfs://`; it must not exist unless
            `overwrite`, and must be apart from the events.
        format
            `parquet`, `orc`, `csv` (arrays are JSON fields) or `json` (one object per line).
        overwrite
            Replace the directory, if Trellis wrote all that is in it.
        raw_csv
            In CSV, write texts as they are, even those that a spreadsheet would take for formulas.
        """

    def to_pandas(self) -> pandas.DataFrame:
        """Return all results as a pandas frame in this process."""
        return pandas_frame(self.to_arrow())

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

    def _repr_html_(self) -> str:
        """Return the first rows with the count, windows and partitions; the others are not listed."""
        begin = perf_counter()
        bound = self.plan.bound
        count = self.count()
        rows = self.aggregates().to_arrow() if bound.aggregates else self.first(HTML_ROWS).to_arrow()
        numbers = self.statistics
        facts = {"results": number_text(count), "events": value_text(numbers["events"])}
        facts |= {name: value_text(numbers[name]) for name in ("windows", "partitions")}
        if not bound.aggregates and count > rows.num_rows:
            facts["shown"] = f"the first {rows.num_rows}"
        facts["seconds"] = f"{perf_counter() - begin:,.2f}"
        title = f"<pre>{escape(to_query_text(bound.syntax))}</pre>"
        return html_page(title, html_table(rows, HTML_ROWS), html_facts(facts))
