"""The trends of a query over events in this process."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from trellis.errors import UsageError
from trellis.events.prepare import Prepared, prepare, with_columns
from trellis.language.printer import pattern_text
from trellis.limits import refuse_listing, refuse_rows
from trellis.operators.make import make_operator
from trellis.plan.plan import Plan, with_all_columns
from trellis.plan.variants import aggregate_plan, limited_plan, top_plan
from trellis.results.arrange import arrange, checked_ranks, wanted_ranges
from trellis.results.numbers import aggregate_rows, aggregate_schema, count_rows
from trellis.results.rows import BARE, RowMaker, check_compact, chosen, exploded_schema, lead_schema

if TYPE_CHECKING:
    import pandas
    import polars

    from trellis.operators.batch import Trends


class LocalTrends:
    """What a query found, to be counted, listed, aggregated or written; nothing is listed before it is asked for."""

    engine = "local"

    def __init__(self, plan: Plan, table: pa.Table, max_trends: int, on_bad_rows: str = "error") -> None:
        self.plan = plan
        self.max_trends = max_trends
        self._prepared: Prepared = prepare(plan, table, on_bad_rows)
        self._operator = make_operator(plan, self._prepared.events, _usable_threads(None))
        self._maker = RowMaker(plan, self._prepared.events)

    @property
    def events(self) -> pa.Table:
        """The events that can be in a trend, sorted by partition, time and id; `positions` refer to this table."""
        return self._prepared.table

    @property
    def statistics(self) -> dict[str, int]:
        """Numbers of events read and dropped, windows and partitions."""
        prepared = self._prepared
        return {
            "events": prepared.read,
            "dropped": prepared.dropped,
            "windows": len(np.unique(prepared.events.groups.number)),
            "partitions": len(prepared.events.bounds) - 1,
        }

    @cached_property
    def _counts(self) -> list[int]:
        return self._operator.counts

    def count(self) -> int:
        """Return the exact number of results; nothing is listed."""
        return sum(self._counts)

    def counts(self) -> pa.Table:
        """Return the number of results of each window and partition that has any; nothing is listed."""
        return count_rows(self._maker, self._counts)

    def aggregates(self) -> pa.Table:
        """Return the rows of the query's AGGREGATE; nothing is listed."""
        if not self.plan.bound.aggregates:
            raise UsageError("the query has no AGGREGATE", "Add one, or use trends.aggregate('count(*)').")
        return aggregate_rows(self.plan, self._maker, self._operator.aggregate())

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
            Give int32 positions in `events` in place of event ids.
        threads
            How many threads list; by default as many as there are cores to use.
        ranks
            List only these rows of the result, such as `range(10**9, 10**9 + 1000)`, and nothing before them.
        compact
            Give, in place of `events`, how many leading events each trend shares with the row before it (`shared`, 0
            in the first row of a batch) and the events that follow those (`new`). `trellis.expand` undoes it.

        Raises
        ------
        ListingRefused
            If more results are asked for than `max_trends`.
        """
        bound = self.plan.bound
        if compact:
            check_compact(bound)
        maker = RowMaker(self.plan, self._prepared.events, positions, compact=compact)
        schema = self.schema if bound.aggregates else maker.schema
        names = None if columns is None else chosen(columns, schema.names)
        rows = checked_ranks(bound, ranks)
        cores = _usable_threads(threads)
        if bound.aggregates:
            table = self.aggregates()
            yield from (table if names is None else table.select(names)).to_batches()
            return

        def made(trends: Trends) -> pa.RecordBatch:
            return maker.batch(trends, names)

        bare = positions and names is not None and BARE.issuperset(names)
        for batch in self._listed(made, rows, cores, compact, bare):
            yield batch if names is None or batch.schema.names == names else batch.select(names)

    def _listed(
        self, made: Callable[[Trends], pa.RecordBatch], ranks: range | None = None, threads: int = 1,
        compact: bool = False, bare: bool = False,
    ) -> Iterator[pa.RecordBatch]:  # fmt: skip
        """Return the rows of the result, if they are not too many."""
        bound, operator = self.plan.bound, self._operator
        if bound.order_by:
            refuse_listing(bound, self._counts, self.max_trends)
            rows = operator.ordered(bound, made, self.max_trends, bound.per_window, threads, bare)
            return arrange(bound, rows)
        ranges = wanted_ranges(bound, self._counts, ranks)
        refuse_rows(sum(end - begin for _, begin, end in ranges), self.max_trends)
        return operator.listed(ranges, made, threads, compact, bare)

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the result."""
        return aggregate_schema(self.plan.bound) if self.plan.bound.aggregates else self._maker.schema

    def to_arrow(self) -> pa.Table:
        """Return all results as one Arrow table."""
        return pa.Table.from_batches(list(self.batches()), schema=self.schema)

    def to_pandas(self) -> pandas.DataFrame:
        """Return all results as a pandas frame."""
        return self.to_arrow().to_pandas()

    def to_polars(self) -> polars.DataFrame:
        """Return all results as a polars frame."""
        import polars

        frame = polars.from_arrow(self.to_arrow())
        assert isinstance(frame, polars.DataFrame)
        return frame

    def aggregate(self, *items: str) -> pa.Table:
        """Return aggregates of all results of each window and partition, such as `count(*)` or `avg(s.price)`."""
        return self._variant(aggregate_plan(self.plan, items)).aggregates()

    def top(self, number: int, by: str = "length") -> pa.Table:
        """Return the results with the greatest `length`, `sum(s.price)` or other value; ties in the order of ranks."""
        return self._variant(top_plan(self.plan, number, by)).to_arrow()

    def _variant(self, plan: Plan) -> LocalTrends:
        """Return the same trends with other output; events, graph and counts are shared."""
        other = copy(self)
        other.plan = plan
        events = with_columns(self._prepared, plan)
        other._operator = self._operator.variant(plan, events)
        other._maker = RowMaker(plan, events)
        other._prepared = replace(self._prepared, events=events)
        return other

    def explode(self) -> pa.Table:
        """Return one row an event of a result, with window, partition, rank, its place from 1, and its columns."""
        other = self._variant(with_all_columns(self.plan))
        bound, events = other.plan.bound, other._prepared.events
        maker = RowMaker(other.plan, events, positions=True, plain=True)
        parts = [maker.exploded(batch) for batch in other._listed(maker.batch)]
        return pa.Table.from_batches(parts, schema=exploded_schema(bound))

    def first(self, rows: int) -> pa.Table:
        """Return the first rows of the result, in its order; the others are not listed."""
        shortened = copy(self)
        shortened.plan = limited_plan(self.plan, rows)
        kept: list[pa.RecordBatch] = []
        for batch in shortened.batches():
            kept.append(batch.slice(0, rows - sum(b.num_rows for b in kept)))
            if sum(b.num_rows for b in kept) == rows:
                break
        return pa.Table.from_batches(kept, schema=self.schema)

    @cached_property
    def _filled(self) -> tuple[NDArray[np.int64], list[dict[str, Any]]]:
        """The groups that have a result, and what tells their windows and partitions."""
        filled = np.array([g for g, count in enumerate(self._counts) if count], np.int64)
        lead = pa.Table.from_arrays(self._maker.lead(filled), schema=pa.schema(lead_schema(self.plan.bound)))
        return filled, lead.to_pylist() if lead.num_columns else [{}] * len(filled)

    def trend(self, rank: int, window: Any = None, partition: Any = None) -> pa.Table:
        """Return the result with a rank, without those before it.

        Parameters
        ----------
        rank
            The rank in its window and partition, from 0; of any size.
        window
            The start of the window, where there are several.
        partition
            The values of the partition's attributes, one alone or several in a tuple, where there are several.
        """
        from trellis.operators.trends.address import (  # late, as in `sample`: counting goes without
            check_rank,
            named_group,
        )

        filled, rows = self._filled
        group = int(filled[named_group(self.plan.bound, rows, window, partition)])
        check_rank(rank, self._counts[group])
        return self._rows(self._operator.at(group, [rank]))

    def sample(self, number: int, seed: int = 0) -> pa.Table:
        """Return results drawn without replacement, each set equally likely; the same for the same seed.

        Parameters
        ----------
        number
            How many; all of them if there are fewer.
        seed
            What the draw depends on.
        """
        from trellis.operators.trends.address import sampled_ranks

        chosen = sampled_ranks(self._counts, number, seed)
        with ThreadPoolExecutor(self._operator.threads) as pool:
            parts = list(pool.map(self._rows, self._operator.at_each(chosen)))
        return pa.concat_tables(parts) if parts else self._maker.schema.empty_table()

    def _rows(self, walked: Trends) -> pa.Table:
        return pa.Table.from_batches([self._maker.batch(walked, self._maker.schema.names)]).select(
            self._maker.schema.names
        )

    def write(self, path: str, format: str = "parquet", overwrite: bool = False) -> None:
        """Write the results as files into a directory, wholly or not at all.

        Parameters
        ----------
        path
            The directory; it must not exist unless `overwrite`.
        format
            `parquet`, `csv` (arrays are JSON fields) or `json` (one object a line).
        overwrite
            Replace the directory.
        """
        from trellis.io.results import write_results

        write_results(self.batches(), self.schema, path, format, overwrite)

    def __repr__(self) -> str:
        return f"<trends of `{pattern_text(self.plan.bound.pattern)}` over {self._prepared.read:,} events, local>"


def _usable_threads(threads: Any) -> int:
    """Return a number of threads: by default as many as this process may use cores."""
    if threads is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
        raise UsageError(f"{threads!r} threads cannot list", "Give a whole number from 1 on.")
    return threads
