"""From what was asked to the trends of a query, for the commands that run one."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING, Any

from trellis.cli.console import Step
from trellis.cli.engine import started
from trellis.cli.events import check_given, check_paths, read_events
from trellis.cli.options import EngineOptions, EventOptions
from trellis.cli.text_columns import text_columns
from trellis.digits import number_of
from trellis.language.bound import BoundQuery, Column, Operation, Value, columns_of
from trellis.language.schema import Kind
from trellis.limits import DEFAULT_MAX_TRENDS, refuse_listing, result_size
from trellis.methods import Methods, check_methods

if TYPE_CHECKING:
    import pyarrow as pa

    from trellis.api.query import Query


@dataclass(frozen=True)
class Asked:
    """A query, and what it is to run over and how."""

    query: Query
    events: EventOptions
    engine: EngineOptions
    params: dict[str, str] = field(default_factory=dict)
    report_mode: str | None = None
    max_trends: int = DEFAULT_MAX_TRENDS
    methods: Methods = field(default_factory=Methods)


@contextmanager
def running(asked: Asked, step: Step) -> Iterator[Any]:
    """Give the trends of a query; the engine goes on until the end of the block."""
    check_given(asked.events)
    # What is wrong with the query itself, or with a path, is found before anything is started or read.
    asked.query.plan(None, asked.params, asked.report_mode)
    check_methods(asked.methods, asked.engine.engine)
    check_paths(asked.events)
    with engine_and_events(asked, step) as (spark, data):
        step("preparing the events")
        trends = detected(asked, data, spark)
        warn_of_text_order(trends.plan.bound)
        yield trends


def warn_of_text_order(bound: BoundQuery) -> None:
    """Warn where text is compared by order: a stray value makes a whole column of a CSV file text."""
    for condition in bound.conditions:
        texts = {c.name for c in _ordered_texts(condition.value)}
        if texts:
            names = " and ".join(f"`{name}`" for name in sorted(texts))
            told = "is text, and is" if len(texts) == 1 else "are text, and are"
            warnings.warn(f"{names} {told} compared as text in `{condition.text}`", stacklevel=2)


def _ordered_texts(value: Value) -> Iterator[Column]:
    if isinstance(value, Operation):
        if value.function in ("<", "<=", ">", ">=") and all(a.type.kind is Kind.STRING for a in value.arguments):
            yield from columns_of(value)
        for argument in value.arguments:
            yield from _ordered_texts(argument)


@contextmanager
def engine_and_events(asked: Asked, step: Step) -> Iterator[tuple[Any, Any]]:
    """Start the engine and read the events."""
    step(f"starting {asked.engine.engine}")
    with started(asked.engine) as spark:
        step("reading the events")
        yield spark, read_events(asked.events, text_columns(asked.query.syntax, asked.params), spark)


def detected(asked: Asked, data: Any, spark: Any) -> Any:
    """Return the trends of a query over events that were read."""
    events = asked.events
    return asked.query.detect(
        data, time=events.time, type=events.type, event_id=events.event_id, params=asked.params,
        report_mode=asked.report_mode, max_trends=asked.max_trends, on_bad_rows=events.on_bad_rows,
        engine=str(asked.engine.engine), spark=spark, **vars(asked.methods),
    )  # fmt: skip


# --- What is asked of trends, the same for both engines ---------------------------------------------------------


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
    size = result_size(bound, sizes)
    refuse_listing(bound, sizes, trends.max_trends)
    return size


class Clock:
    """How long it took."""

    def __init__(self) -> None:
        self._start = perf_counter()

    @property
    def seconds(self) -> float:
        """Seconds since the start, to the millisecond."""
        return round(perf_counter() - self._start, 3)
