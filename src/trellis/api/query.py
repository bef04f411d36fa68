"""A query: parsed once, explained, and run over any events."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from trellis.api.query_files import text_or_file
from trellis.errors import UsageError
from trellis.language.binder import bind
from trellis.language.parser import parse
from trellis.language.printer import to_query_text
from trellis.language.schema import Schema
from trellis.limits import DEFAULT_MAX_TRENDS
from trellis.methods import Methods, methods_of
from trellis.plan.choice import make_plan
from trellis.plan.plan import Plan

if TYPE_CHECKING:
    from trellis.api.explanation import Explanation
    from trellis.api.prepared import PreparedQuery
    from trellis.engines.local.arrivals import Arrivals
    from trellis.engines.local.detect import LastPlan
    from trellis.results.results import Results
    from trellis.results.why import Reasons


class Query:
    """A query of the Trellis language; make one with `trellis.query(text)`, or with the path of a file."""

    def __init__(self, text: str | os.PathLike[str]) -> None:
        self.text = text = text_or_file(text)
        self.syntax = parse(text)
        self.last: LastPlan | None = None

    def plan(
        self, schema: Schema | None = None, params: Mapping[str, Any] | None = None, report_mode: str | None = None
    ) -> Plan:
        """Return the plan for events of a schema."""
        return make_plan(bind(self.syntax, self.text, schema, params, report_mode))

    def explain(
        self, data: Any = None, *, params: Mapping[str, Any] | None = None, report_mode: str | None = None,
        **options: Any,
    ) -> Explanation:  # fmt: skip
        """Return an explanation: the query's meaning, and how it runs; with events, how many of what there are.

        Parameters
        ----------
        data
            Events, as `detect` takes them; the results are counted, and none is listed.
        params, report_mode
            As in `detect`.
        options
            The other options of `detect`.

        Returns
        -------
        Explanation
            A text, which a notebook shows with the automaton drawn above it; `data` has the same for programs.
        """
        from trellis.api.explanation import explanation_of_plan, explanation_of_results
        from trellis.api.notebook import parameters_of

        if isinstance(data, Mapping) and data and params is None and data.keys() <= parameters_of(self.syntax):
            data, params = None, data  # as they were given before there were events here
        if data is not None:
            return explanation_of_results(self.detect(data, params=params, report_mode=report_mode, **options))
        if options:
            raise UsageError(
                f"explain() without events has no use for {', '.join(options)}", "Give it the events, too."
            )
        return explanation_of_plan(self.plan(None, params, report_mode))

    def detect(
        self,
        data: Any,
        *,
        time: str | Sequence[str] | None = None,
        type: str | None = None,
        event_id: str | None = None,
        params: Mapping[str, Any] | None = None,
        report_mode: str | None = None,
        max_trends: int = DEFAULT_MAX_TRENDS,
        on_bad_rows: str = "error",
        engine: str | None = None,
        spark: Any = None,
        methods: Methods | None = None,
        **by_name: Any,
    ) -> Results:
        """Find the trends of events; nothing is listed before it is asked for.

        Parameters
        ----------
        data
            A Spark, pandas or polars DataFrame, an Arrow table, a path (or several), the name of a table of Spark's
            such as `catalog.database.table`, SQL that gives the events, or a dictionary of these by type.
        time, type, event_id
            The columns that hold time, type and id of an event. Without `time` the only column called `time`, `ts`,
            `timestamp` or `event_time` is taken; without `event_id` events are numbered. Columns after the first in
            `time=("ts", "seq")` break ties: they order events of the same time.
        params
            Values of the query's parameters.
        report_mode
            Overrides REPORT: `unextendable`, `maximal` or `any`.
        max_trends
            The bound on listing.
        on_bad_rows
            `error`, or `drop` to leave out rows without a readable time or id.
        engine
            `local` or `spark`; by default Arrow tables, pandas and polars frames, and files of less than 64 MB
            together, run in this process, Spark frames and larger files on Spark.
        spark
            The Spark session to use; by default the active one, or a new local one.
        methods
            The papers' algorithms by name, with their settings, as `trellis.Methods(algorithm="h-cet",
            memory_limit="2G")`; see there. Results are the same with all of them.
        by_name
            The fields of `methods` one by one (`algorithm`, `construction`, `anchors`, `memory_limit`, `optimizer`), as
            they were given before there was `methods`.
        """
        from trellis.api.dispatch import detect
        from trellis.engines.options import RunOptions

        options = RunOptions.of(
            time, type=type, event_id=event_id, params=params, report_mode=report_mode, max_trends=max_trends,
            on_bad_rows=on_bad_rows, methods=methods_of(methods, by_name, self.detect),
        )  # fmt: skip
        return detect(self, data, options, engine, spark)

    def prepare(
        self, schema: Any, *, time: str | Sequence[str] | None = None, type: str | None = None,
        event_id: str | None = None, params: Mapping[str, Any] | None = None, report_mode: str | None = None,
        max_trends: int = DEFAULT_MAX_TRENDS, on_bad_rows: str = "error",
    ) -> PreparedQuery:  # fmt: skip
        """Bind the query to the columns of events once; `detect` of what this returns does so no more.

        Parameters
        ----------
        schema
            The columns: an Arrow schema, an Arrow table, a pandas or polars frame, or a dictionary of these by type.
        time, type, event_id, params, report_mode, max_trends, on_bad_rows
            As in `detect`, for all events that the query is asked of.
        """
        from trellis.api.prepared import PreparedQuery, schema_for
        from trellis.engines.options import RunOptions

        options = RunOptions.of(
            time, type=type, event_id=event_id, params=params, report_mode=report_mode, max_trends=max_trends,
            on_bad_rows=on_bad_rows,
        )  # fmt: skip
        return PreparedQuery(self, schema_for(schema, options), options)

    def why_not(self, data: Any, ids: Sequence[Any] | None = None, *, partition: Any = None, **options: Any) -> Reasons:
        """Return why events are not a result: the condition that failed, on which values, and what was needed.

        Parameters
        ----------
        data
            The events, as `detect` takes them; they are brought into this process.
        ids
            The ids of the events that one would expect to be a result.
        partition
            The values of the partition's attributes, by name, or one alone: how far the best match there got.
        options
            The options of `detect`.

        Returns
        -------
        Reasons
            The checks that fail, under a heading; if nothing does, it says that the events are a result.
        """
        from trellis.api.why_not import why_not

        found: Any = self.detect(data, **{**options, "engine": "local"})
        return why_not(found, ids, partition)

    def detect_stream(
        self,
        frame: Any,
        *,
        time: str | Sequence[str] | None = None,
        type: str | None = None,
        event_id: str | None = None,
        watermark: str,
        params: Mapping[str, Any] | None = None,
        report_mode: str | None = None,
        max_trends: int = DEFAULT_MAX_TRENDS,
        on_bad_rows: str = "error",
        table: str = "results",
        max_ahead: str | None = "1 day",
        emit: str = "watermark",
    ) -> Any:
        """Return the results over a streaming data frame as a streaming data frame: each as soon as it is decided.

        Parameters
        ----------
        frame
            A streaming data frame, from any source of Spark's; or a dictionary of these by type.
        time, type, event_id, params, report_mode
            As in `detect`; a stream must name its `event_id`.
        watermark
            How far events may be late, such as `10 minutes`; a plain number where times are numbers.
        max_trends
            A window and partition with more results is counted and not listed.
        on_bad_rows
            `drop`: of events with the same id the first is kept. `error`: they end the stream.
        table
            `results`; `windows`: the exact count of every closed window and partition; `late`, `bad` or
            `repeated`: the events that came too late, without a readable time or id, or with an id that came before;
            `timeouts`: beginnings of a sequence that ran out of time.
        max_ahead
            An event that is farther ahead of the clock on the wall does not move the watermark; None for no guard.
        emit
            `early`: results of fixed sequences, and under REPORT any, come as soon as their last event is there, and
            have no rank. Others wait for the watermark, as all do with `watermark`, and a warning says so.
        """
        from trellis.engines.options import RunOptions
        from trellis.engines.spark.stream.running import detect_stream

        run = RunOptions.of(
            time, type=type, event_id=event_id, params=params, report_mode=report_mode, max_trends=max_trends,
            on_bad_rows=on_bad_rows,
        )  # fmt: skip
        return detect_stream(self, frame, run, watermark=watermark, table=table, max_ahead=max_ahead, emit=emit)

    def arrivals(
        self, *, time: str | Sequence[str] | None = None, type: str | None = None, event_id: str,
        params: Mapping[str, Any] | None = None, max_trends: int = DEFAULT_MAX_TRENDS, on_bad_rows: str = "error",
        state: bytes | None = None,
    ) -> Arrivals:  # fmt: skip
        """Return an operator over arriving events: `take(table)` gives the results that they complete or decide.

        Parameters
        ----------
        time, type, event_id
            The columns that hold time, type and id of an event.
        params
            Values of the query's parameters.
        max_trends
            The bound on the results of one window and partition, or of one batch of a fixed sequence.
        on_bad_rows
            Whether events with the same id in a window and partition are refused (`error`) or the first is kept
            (`drop`).
        state
            What `snapshot()` of such an operator gave, to go on from there.
        """
        from trellis.api.dispatch import arrivals
        from trellis.engines.options import RunOptions

        options = RunOptions.of(
            time, type=type, event_id=event_id, params=params, max_trends=max_trends, on_bad_rows=on_bad_rows
        )
        return arrivals(self, options, state)

    def __str__(self) -> str:
        return to_query_text(self.syntax)

    def __repr__(self) -> str:
        return f"trellis.query({' '.join(self.text.split())!r})"

    def _repr_html_(self) -> str:
        """Return the text with its keywords marked, and the parameters that it waits for."""
        from trellis.api.notebook import highlighted, parameters_of
        from trellis.results.display import html_page

        names = sorted(parameters_of(self.syntax))
        waiting = f'<p class="facts">parameters {escape(", ".join(names))}</p>' if names else ""
        return html_page(f"<pre>{highlighted(to_query_text(self.syntax))}</pre>{waiting}")
