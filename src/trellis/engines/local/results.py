"""Results of a query over events in this process."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from itertools import pairwise
from time import thread_time
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from trellis.digits import Count
from trellis.engines.options import RunOptions
from trellis.errors import TrellisError, UsageError
from trellis.events.derived import with_derived
from trellis.events.prepare import PreparedEvents, SortedTable, prepare, with_columns
from trellis.events.slice import Slice
from trellis.events.ties import count_ties
from trellis.language.bound import WindowKind
from trellis.limits import may_refuse, refuse_listing, refuse_rows
from trellis.make import make_operator
from trellis.operators.contract import BestRequest, Explored, ListRequest, QueryOperator
from trellis.operators.exact import LARGE
from trellis.operators.growth import Cost, Try, cost_of, sampling_plan
from trellis.operators.threads import made_on_threads
from trellis.plan.plan import Plan, with_all_columns
from trellis.plan.variants import limited_plan, top_plan
from trellis.properties import cached_property
from trellis.results.aggregated import aggregate_answer
from trellis.results.arrange import arrange, checked_ranks, wanted_ranges
from trellis.results.display import python_values
from trellis.results.named import lead_rows
from trellis.results.numbers import count_rows
from trellis.results.results import Results
from trellis.results.rows import BARE, RowMaker, check_compact, chosen, exploded_schema, lead_schema
from trellis.results.table import ResultTable, collected
from trellis.results.trend import events_schema, with_ids

if TYPE_CHECKING:
    from trellis.operators.batch import EventWords, PathBatch

FIRST_PIECE, LARGEST_PIECE = 64, 1 << 15  # results that are listed at a time while someone goes through them
LARGE_SHARE = 1 / 16  # of all work, from which on a sample is sure of the rest
WORTH_THREADS = 256  # events: with fewer, threads take longer to start than most work


class LocalResults(Results):
    """The results of a query over events in this process.

    Parameters
    ----------
    plan
        The plan of the query.
    table
        The events.
    options
        The options of the run.
    warns_of_ties
        Whether many events of one time are told by a warning.
    whole
        Gives all columns of the events where the table has only those of the plan.
    """

    engine = "local"

    def __init__(
        self, plan: Plan, table: pa.Table, options: RunOptions | None = None, *, warns_of_ties: bool = False,
        whole: Callable[[], pa.Table] | None = None,
    ) -> None:  # fmt: skip
        self.plan = plan
        self.options = options or RunOptions()
        self.max_trends = self.options.max_trends
        self._source = SortedTable(table, None, whole)
        self._warns_of_ties = warns_of_ties
        self._prepare: Callable[[], PreparedEvents] = partial(
            prepare, plan, table, self.options.on_bad_rows, None if whole is None else partial(_whole, self._source)
        )
        self._make_operator: Callable[[], QueryOperator] | None = None

    @property
    def source_table(self) -> pa.Table:
        """The events as they came."""
        return self._source.whole

    @cached_property
    def _prepared(self) -> PreparedEvents:
        """The events, checked, sorted and cut into groups."""
        prepared = self._prepare()
        if self._warns_of_ties:
            assert self.plan.bound.schema is not None
            count_ties(prepared.events).warn(self.plan.bound.schema)
        return prepared

    @cached_property
    def operator(self) -> QueryOperator:
        """The operator that answers, over all events."""
        if self._make_operator is not None:
            return self._make_operator()
        events = self._prepared.events
        return make_operator(self.plan, events, 1 if len(events) < WORTH_THREADS else _usable_threads(None))

    @cached_property
    def _maker(self) -> RowMaker:
        return RowMaker(self.plan, self._prepared.events)

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
        return self.operator.counts

    def count(self) -> int:
        """Return the exact number of results; nothing is listed."""
        return Count(sum(self._counts))

    def counts(self) -> ResultTable:
        """Return the number of results of each window and partition that has any; nothing is listed."""
        return _table(count_rows(self._maker, self._counts))

    def aggregates(self) -> ResultTable:
        """Return the rows of the query's AGGREGATE; nothing is listed."""
        self._check_aggregates()
        return _table(aggregate_answer(self.plan, self._maker, self.operator, self.max_trends))

    def is_quick(self, seconds: float, sure: bool = True) -> bool:
        """Return whether counting takes no longer by a sample; it is `sure` if that is no small part."""
        return self._cost.seconds <= seconds and (not sure or self._cost.share >= LARGE_SHARE)

    @cached_property
    def _cost(self) -> Cost:
        """The cost of counting on one core, by a sample."""
        plan, events = sampling_plan(self.plan), self._prepared.events

        def attempt(some: Slice) -> Try:
            begun, operator = thread_time(), None
            try:
                operator = make_operator(plan, some, 1)
                limbs = 1 + max(operator.counts, default=0).bit_length() // LARGE
            except TrellisError:
                limbs = 0
            return Try(thread_time() - begun, limbs, Explored() if operator is None else operator.explored())

        return cost_of(events, plan.bound.window.kind is WindowKind.SPAN, attempt)

    def expected(self) -> dict[str, str]:
        """Return facts of the work before it is done, for `explain`."""
        return {"engine": self.engine, **self._cost.texts(self.plan.sizes.memory)}

    def describe(self) -> dict[str, str]:
        """Return how the operator finds the results, for `explain`."""
        return {"engine": self.engine, **self.operator.describe()}

    def batches(
        self, columns: Sequence[str] | None = None, positions: bool = False, threads: int | None = None,
        ranks: range | None = None, compact: bool = False,
    ) -> Iterator[pa.RecordBatch]:  # fmt: skip
        """Yield the results as record batches of bounded size, in the order of the result: see `Results.batches`."""
        bound = self.plan.bound
        if compact:
            check_compact(bound)
        maker = RowMaker(self.plan, self._prepared.events, positions, compact=compact)
        schema = self.schema if bound.aggregates else maker.schema
        names = None if columns is None else chosen(columns, schema.names)
        rows = checked_ranks(bound, ranks)
        cores = _usable_threads(threads)
        if bound.aggregates:
            table = self.aggregates().to_arrow()
            yield from (table if names is None else table.select(names)).to_batches()
            return

        def made(trends: PathBatch) -> pa.RecordBatch:
            return maker.batch(trends, names)

        bare = positions and names is not None and BARE.issuperset(names)
        for batch in self._listed(made, rows, cores, compact, bare, maker.words(names)):
            yield batch if names is None or batch.schema.names == names else batch.select(names)

    def _listed(
        self, made: Callable[[PathBatch], pa.RecordBatch], ranks: range | None = None, threads: int = 1,
        compact: bool = False, bare: bool = False, words: EventWords | None = None,
    ) -> Iterator[pa.RecordBatch]:  # fmt: skip
        """Return the rows of the result, if they are not too many."""
        bound, operator = self.plan.bound, self.operator
        if bound.arranged:
            if may_refuse(bound, len(self._prepared.events.groups), self.max_trends):
                refuse_listing(bound, self._counts, self.max_trends)
            rows = operator.best(BestRequest(bound, made, self.max_trends, bound.per_window, threads, bare))
            return arrange(bound, rows, self.plan.sizes.arranged_rows)
        first = None if compact else self._first_rows(ranks)
        if first is not None:
            refuse_rows(len(first), self.max_trends)
            return iter([made(first)] if len(first) else [])
        ranges = wanted_ranges(bound, operator.counts_before_listing(), ranks)
        refuse_rows(sum(end - begin for _, begin, end in ranges), self.max_trends)
        return operator.list(ListRequest(ranges, made, threads, compact, bare, words))

    def _first_rows(self, ranks: range | None) -> PathBatch | None:
        """Return the rows of the result, if these are so few that they are found without counting."""
        bound, groups = self.plan.bound, len(self._prepared.events.groups)
        all_rows = bound.limit is None and ranks is None
        if all_rows or not groups or (bound.per_window and groups > 1):
            return None
        ranges = wanted_ranges(self.plan.bound, [sys.maxsize], ranks)
        return self.operator.first(*ranges[0][1:]) if ranges else None

    def to_arrow(self) -> pa.Table:
        """Return all results as one Arrow table."""
        return collected(self.batches(), self.schema)

    def to_spark(self, spark: Any = None) -> Any:
        """Return the results as a Spark data frame: they are listed here and handed over."""
        return _table(self.to_arrow()).to_spark(spark)

    def _aggregated(self, plan: Plan) -> ResultTable:
        others = [] if plan.operator.few is None else [plan.operator.few]
        known = self.operator.plan.operator.name in {spec.name for spec in (*plan.operator.ways(), *others)}
        return (self._variant(plan) if known else self.with_plan(plan)).aggregates()  # PER EVENT may need another

    def top(self, number: int, by: str = "length") -> ResultTable:
        """Return the results with the greatest `length`, `sum(s.price)` or other value; ties in the order of ranks."""
        return _table(self._variant(top_plan(self.plan, number, by)).to_arrow())

    def _variant(self, plan: Plan) -> LocalResults:
        """Return the same results with other output; events, structure and counts are shared."""
        other = LocalResults(plan, self._prepared.table, self.options)
        prepared = replace(self._prepared, events=with_columns(self._prepared, plan))
        other._prepare = lambda: prepared
        other._make_operator = lambda: self.operator.variant(plan, with_derived(plan.bound, prepared.events))
        return other

    def partition_events(self, partition: Mapping[str, Any], most: int) -> pa.Table:
        """Return the events of a partition: see `Results.partition_events`."""
        keep = np.ones(self.source_table.num_rows, np.bool_)
        for name, value in partition.items():
            column = self.source_table[name]
            same = [_text_key(other) == _text_key(value) for other in python_values(column)]
            keep &= np.array(same, np.bool_)
        schema = self.plan.bound.schema
        assert schema is not None
        return self.source_table.filter(pa.array(keep)).sort_by(schema.time).slice(0, most)

    def with_plan(self, plan: Plan) -> LocalResults:
        """Return the results of another plan over the same events: see `Results.with_plan`."""
        return LocalResults(plan, self.source_table, self.options)

    def starts_of(self, plan: Plan) -> int:
        """Return how many events begin a match of another plan, of which this one's pattern is more."""
        from trellis.operators.patterns.starts import count_starts

        found = count_starts(plan, self._prepared.events)
        return super().starts_of(plan) if found is None else found

    def explode(self) -> ResultTable:
        """Return one row for each event of a result."""
        other = self._variant(with_all_columns(self.plan))
        maker = RowMaker(other.plan, other._prepared.events, positions=True, plain=True)
        parts = (maker.exploded(batch) for batch in other._listed(maker.batch))
        return _table(collected(parts, exploded_schema(other.plan.bound)))

    def first(self, rows: int) -> ResultTable:
        """Return the first rows of the result, in its order; the others are not listed."""
        shortened = copy(self)
        shortened.plan = limited_plan(self.plan, rows)
        kept: list[pa.RecordBatch] = []
        for batch in shortened.batches():
            kept.append(batch.slice(0, rows - sum(b.num_rows for b in kept)))
            if sum(b.num_rows for b in kept) == rows:
                break
        return _table(pa.Table.from_batches(kept, schema=self.schema))

    @cached_property
    def _filled(self) -> tuple[NDArray[np.int64], list[dict[str, Any]]]:
        """The groups that have a result, and what tells their windows and partitions."""
        filled = np.array([g for g, count in enumerate(self._counts) if count], np.int64)
        lead = pa.Table.from_arrays(self._maker.lead(filled), schema=pa.schema(lead_schema(self.plan.bound)))
        return filled, lead_rows(lead) if lead.num_columns else [{}] * len(filled)

    @property
    def _groups(self) -> tuple[list[dict[str, Any]], list[int]]:
        filled, rows = self._filled
        return rows, [self._counts[group] for group in filled]

    def _picked(self, picks: Mapping[int, Sequence[int]]) -> pa.Table:
        filled, _ = self._filled
        parts = [self._rows(self.operator.at(int(filled[group]), list(ranks))) for group, ranks in picks.items()]
        return pa.concat_tables(parts) if parts else self._maker.schema.empty_table()

    def picked_events(self, picks: Mapping[int, Sequence[int]]) -> pa.Table:
        """Return the events of some results: see `Results.picked_events`."""
        from trellis.operators.batch import PathBatch
        from trellis.operators.ranks import Ranks

        filled, _ = self._filled
        other = self._variant(with_all_columns(self.plan))
        maker = RowMaker(other.plan, other._prepared.events, positions=True, plain=True)
        chosen = {int(filled[group]): Ranks.of(ranks) for group, ranks in picks.items()}
        found = list(other.operator.at_each(chosen)) if chosen else []
        rows = [with_ids(maker, maker.batch(PathBatch.concat(found)))] if found else []
        return pa.Table.from_batches(rows, schema=events_schema(other.plan.bound))

    def _pieces(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows, the first few at once and more of them later, so that whoever stops early waits for few."""
        if self.plan.bound.arranged:
            yield from self.batches()
            return
        begin, size, end = 0, FIRST_PIECE, self._size()
        while begin < end:
            yield from self.batches(ranks=range(begin, min(end, begin + size)))
            begin, size = begin + size, min(size * 8, LARGEST_PIECE)

    def sample(self, number: int, seed: int = 0) -> ResultTable:
        """Return results drawn without replacement: see `Results.sample`."""
        from trellis.operators.trends.unrank import sampled_ranks

        chosen = sampled_ranks(self._counts, number, seed)
        parts = list(made_on_threads(self._rows, self.operator.at_each(chosen), self.operator.threads))
        return _table(pa.concat_tables(parts) if parts else self._maker.schema.empty_table())

    def _rows(self, batch: PathBatch) -> pa.Table:
        return pa.Table.from_batches([self._maker.batch(batch, self._maker.schema.names)]).select(
            self._maker.schema.names
        )

    def write(
        self, path: str | os.PathLike[str], format: str = "parquet", overwrite: bool = False, raw_csv: bool = False
    ) -> None:
        """Write the results as files into a directory, wholly or not at all: see `Results.write`."""
        from trellis.io.results import write_parts

        write_parts(self._parts(), self.schema, path, format, overwrite, self.inputs, raw_csv)

    def _parts(self) -> list[Iterator[pa.RecordBatch]]:
        """Return all rows in as many parts as cores write at the same time, in order; each is listed by itself."""
        bound, least = self.plan.bound, self.plan.sizes.file_rows
        few = bound.limit is not None and not bound.per_window and bound.limit < 2 * least
        if few or bound.arranged or bound.aggregates:
            return [self.batches()]
        rows = sum(end - begin for _, begin, end in wanted_ranges(bound, self.operator.counts_before_listing()))
        refuse_rows(rows, self.max_trends)
        number = min(_usable_threads(None), rows // least)
        if number < 2 or not self.operator.lists_at_once():
            return [self.batches()]
        borders = [rows * i // number for i in range(number + 1)]
        return [self.batches(threads=1, ranks=range(*ends)) for ends in pairwise(borders)]


def _whole(source: SortedTable) -> pa.Table:
    return source.whole


def _text_key(value: Any) -> str:
    """Return a text that is the same for equal values, NaN and the two zeros included."""
    return repr(value + 0.0) if isinstance(value, float) else repr(value)


def _table(rows: pa.Table) -> ResultTable:
    return ResultTable(lambda: rows)


def _usable_threads(threads: Any) -> int:
    """Return a number of threads: by default as many as this process may use cores."""
    if threads is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
        raise UsageError(f"{threads!r} threads cannot list", "Give a whole number from 1 on.")
    return threads
