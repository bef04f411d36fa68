"""Requests to run a query, and the trends that come of them, for the commands that run one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING, Any

from trellis.cli.console import Step, progress
from trellis.cli.engine import chosen_engine, started
from trellis.cli.events import check_given, check_paths, read_events
from trellis.cli.options import EngineOptions, EventOptions, OutputOptions
from trellis.cli.text_columns import text_columns, words_beside
from trellis.digits import number_of
from trellis.errors import UsageError, warn
from trellis.language.bound import BoundQuery, Column, Operation, Value, columns_of
from trellis.language.schema import Kind
from trellis.limits import DEFAULT_MAX_TRENDS, refuse_listing, result_size
from trellis.methods import Methods, check_methods
from trellis.properties import cached_property

if TYPE_CHECKING:
    import pyarrow as pa

    from trellis.api.query import Query
    from trellis.io.outputs import OutputTarget
    from trellis.language.syntax import QuerySyntax

LOOKED_AT = 1000  # rows that tell whether a column holds numbers


@dataclass(frozen=True)
class RunRequest:
    """A query, with the events it runs over and the options of the run."""

    query: Query
    events: EventOptions
    engine: EngineOptions
    params: dict[str, str] = field(default_factory=dict)
    report_mode: str | None = None
    max_trends: int = DEFAULT_MAX_TRENDS
    methods: Methods = field(default_factory=Methods)

    @cached_property
    def where(self) -> EngineOptions:
        """Where it runs, which the size of the events decides if nothing else does."""
        return chosen_engine(self.engine, self.events, self.methods)


@contextmanager
def running(request: RunRequest, step: Step) -> Iterator[Any]:
    """Yield the trends of a query; the engine goes on until the end of the block."""
    check_given(request.events)
    # A mistake in the query itself, or in a path, is reported before anything is started or read.
    request.query.plan(None, request.params, request.report_mode)
    check_paths(request.events)
    check_methods(request.methods, str(request.where.engine))
    with engine_and_events(request, step) as (spark, data):
        step("preparing the events")
        trends = detected(request, data, spark)
        warn_of_text_order(trends.plan.bound)
        warn_of_numbers(request.query.syntax, data)
        yield trends


@contextmanager
def running_into(request: RunRequest, output: OutputOptions) -> Iterator[tuple[Any, OutputTarget | None, Step]]:
    """Yield the trends of a query, the output that they go to, and what tells how far it is."""
    with (
        claimed_target(output, request.events) as target,
        progress(output.shows_progress) as step,
        running(request, step) as trends,
    ):
        yield trends, target, step


@contextmanager
def claimed_target(output: OutputOptions, events: EventOptions) -> Iterator[OutputTarget | None]:
    """Claim the directory of `--out`, if there is one, and refuse it where it must not be written.

    A task of Spark's may go on for a moment after Ctrl-C and write into the hidden directory of the output, so the
    claim ends, and the directory goes, after the engine has stopped.
    """
    if output.out is None:
        if output.overwrite:
            raise UsageError("--overwrite is for --out", "Name the directory to write with --out.")
        if output.raw_csv:
            raise UsageError("--raw-csv is for --out", "Name the directory to write with --out.")
        yield None
        return
    from trellis.io.claims import claimed
    from trellis.io.results import check_format

    check_format(output.format, output.raw_csv)
    with claimed(output.out, overwrite=output.overwrite, inputs=events.named) as target:
        yield target


def warn_of_text_order(bound: BoundQuery) -> None:
    """Warn where text is compared by order: a stray value makes a whole column of a CSV file text."""
    for condition in bound.conditions:
        texts = {c.name for c in _ordered_texts(condition.value)}
        if texts:
            names = " and ".join(f"`{name}`" for name in sorted(texts))
            are = "is text, and is" if len(texts) == 1 else "are text, and are"
            warn(f"{names} {are} compared as text in `{condition.text}`")


def warn_of_numbers(query: QuerySyntax, data: Any) -> None:
    """Warn where a column of numbers is compared with a word: CSV has no types, so it was read as text for that."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for name, word in words_beside(query).items():
        for table in data.values() if isinstance(data, dict) else [data]:
            if not isinstance(table, pa.Table) or name not in table.column_names:
                continue
            values = table[name].slice(0, LOOKED_AT).drop_null()
            if len(values) and pa.types.is_string(values.type):
                numbers = pc.match_substring_regex(values, r"^[+-]?\d+([.,]\d+)?$")
                if pc.all(numbers).as_py():
                    warn(
                        f"`{name}` holds numbers, such as {values[0]}, and is compared with '{word}' as text; "
                        "numbers are written without quotes"
        )  # fmt: skip


def _ordered_texts(value: Value) -> Iterator[Column]:
    if isinstance(value, Operation):
        if value.function in ("<", "<=", ">", ">=") and all(a.type.kind is Kind.STRING for a in value.arguments):
            yield from columns_of(value)
        for argument in value.arguments:
            yield from _ordered_texts(argument)


@contextmanager
def engine_and_events(request: RunRequest, step: Step) -> Iterator[tuple[Any, Any]]:
    """Start the engine and read the events."""
    step(f"starting {request.where.engine}")
    with started(request.where) as spark:
        step("reading the events")
        yield spark, read_events(request.events, text_columns(request.query.syntax, request.params), spark)


def detected(request: RunRequest, data: Any, spark: Any) -> Any:
    """Return the trends of a query over events that were read."""
    events = request.events
    return request.query.detect(
        data, time=events.time_columns, type=events.type, event_id=events.event_id, params=request.params,
        report_mode=request.report_mode, max_trends=request.max_trends, on_bad_rows=events.on_bad_rows,
        engine=str(request.where.engine), spark=spark, **vars(request.methods),
    )  # fmt: skip


# --- Facts of trends, the same for both engines -----------------------------------------------------------------


def total_of(counted: pa.Table) -> int:
    """Return the sum of counts."""
    return sum(number_of(text) for text in counted["count_text"].to_pylist())


def listed_size(trends: Any) -> int:
    """Return how many rows the result has, LIMIT and OFFSET applied.

    Raises
    ------
    ListingRefused
        If that is more than the bound.
    """
    bound = trends.plan.bound
    sizes = [number_of(t) for t in trends.counts()["count_text"].to_pylist()] if bound.per_window else [trends.count()]
    refuse_listing(bound, sizes, trends.max_trends)
    return len(trends) if bound.limit_per else result_size(bound, sizes)


class Stopwatch:
    """Measures how long a command takes."""

    def __init__(self) -> None:
        self._start = perf_counter()

    @property
    def seconds(self) -> float:
        """Seconds since the start, to the millisecond."""
        return round(perf_counter() - self._start, 3)
