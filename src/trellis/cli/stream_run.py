"""The run of `trellis stream`: queries that stand over a directory, watched, and changed while they run."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from enum import StrEnum
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, ClassVar

from trellis.cli import options as o
from trellis.cli.console import ShownConsole, err, now_doing, out, print_warning, progress
from trellis.cli.control import ControlDirectory, tell
from trellis.cli.engine import noticed_interrupts, started
from trellis.cli.show import plural
from trellis.cli.text_columns import text_columns
from trellis.errors import TrellisError
from trellis.limits import DEFAULT_MAX_TRENDS

if TYPE_CHECKING:
    from trellis.api.query import Query
    from trellis.engines.spark.stream.running import Stream

EVERY = 0.5  # seconds between two looks


class Emit(StrEnum):
    """When results are given."""

    WATERMARK = "watermark"
    EARLY = "early"


@dataclass(frozen=True)
class StreamOptions:
    """The options that only a stream has."""

    panel: ClassVar[str] = "Stream"
    out: str = o.option(..., "Where results go, with a log of what counts.", "DIR")
    checkpoint: str = o.option(..., "Where the stream remembers how far it is.", "DIR")
    watermark: str = o.option(
        ..., "How far events may be late, such as '10 minutes'; a plain number where times are numbers.", "DURATION"
    )
    schema: str | None = o.option(
        None,
        "The columns of the events, 'ts TIMESTAMP, price DOUBLE'; without it the files that are there tell.",
        "DDL",
    )
    available_now: bool = o.option(False, "Stop when all that is there has been read.")
    flush: bool = o.option(False, "With --available-now: also give what only the end decides.")
    late: bool = o.option(False, "Write late, bad and repeated events to _late, _bad and _repeated.")
    max_ahead: str = o.option(
        "1 day", "An event so far ahead of the clock does not move the watermark; 'none' for no such guard.", "DURATION"
    )
    files_a_batch: int | None = o.option(None, "Read at most so many files at once.", "N", min=1)
    emit: Emit = o.option(
        Emit.WATERMARK,
        "early: results of fixed sequences and of REPORT any come with their last event, and have no rank.",
    )
    timeouts: bool = o.option(False, "Write partial matches that ran out of time to _timeouts.")
    control: str | None = o.option(
        None,
        "A directory of query files, NAME.tq, and of parameters, NAME.json, that is watched: queries are added, "
        "stopped and changed while the stream runs.",
        "DIR",
    )
    metrics: str | None = o.option(
        None, "Serve a page and metrics for Prometheus at this port of 127.0.0.1, or at HOST:PORT.", "PORT"
    )
    json_log: bool = o.option(False, "Write a line of JSON to stderr for each batch.")
    max_trends: int = o.option(
        DEFAULT_MAX_TRENDS,
        "A window and partition with more results is counted in _windows and not listed.",
        "N",
        rich_help_panel="How it runs",
        min=0,
    )
    format: o.Format = o.OutputFormat.PARQUET
    raw_csv: o.RawCsv = False

    @property
    def guard(self) -> str | None:
        """How far ahead of the clock an event may be."""
        return None if self.max_ahead.lower() == "none" else self.max_ahead


@dataclass(frozen=True)
class StreamColumns(o.ColumnOptions):
    """The options about the columns of a stream's events."""

    event_id: str | None = o.option(None, "The column of event ids; a stream needs one.", "COLUMN")
    on_bad_rows: o.BadRows = o.option(
        o.BadRows.ERROR,
        "Whether events of the same id in one window stop the stream, or the first is kept. Events without a "
        "readable time or id are counted and left out in any case.",
    )


@dataclass(frozen=True)
class StreamRequest:
    """The queries of a stream, the directory of its events, and its options."""

    queries: dict[str, Query]
    directory: str
    options: StreamOptions
    columns: StreamColumns
    meaning: o.QueryOptions


def run_stream(request: StreamRequest, spark: o.SparkOptions, shown: o.ShowOptions) -> None:
    """Run a stream until it ends or is asked to stop."""
    begun = perf_counter()
    options, columns, params = request.options, request.columns, request.meaning.params
    mode = request.meaning.report_mode
    control = None if options.control is None else ControlDirectory(Path(options.control))
    queries = dict(request.queries)
    if control is not None:
        queries |= control.read(queries)
    for name, query in queries.items():
        try:
            query.plan(None, params, mode)  # before anything is started
        except TrellisError as mistake:
            if len(queries) == 1:
                raise
            mistake.what = f"in the query `{name}`: {mistake.what}"
            raise
    _check_free(options, queries)
    with progress(shown.shows_progress) as step:
        step("starting spark")
    with started(spark) as session:
        from trellis.engines.options import RunOptions
        from trellis.engines.spark.sources.read_stream import read_stream
        from trellis.engines.spark.stream.checkpoint import Checkpoint
        from trellis.engines.spark.stream.running import Options, Stream

        now_doing("looking at the files of the stream")
        texts = {name for query in queries.values() for name in text_columns(query.syntax, params)}
        frame = read_stream(
            session, request.directory, schema=options.schema, input_format=columns.input_format, text_columns=texts,
            time=columns.time_column, time_format=columns.time_format, files_a_batch=options.files_a_batch,
            known=Checkpoint.at(options.checkpoint).columns,
        )  # fmt: skip
        settings = Options(
            options.out, options.checkpoint, options.watermark, str(options.format), options.available_now,
            options.flush, options.late, options.guard, options.raw_csv, str(options.emit), options.timeouts,
            controlled=control is not None, file_columns=tuple(frame.columns),
        )  # fmt: skip
        run = RunOptions.of(
            columns.time_columns, type=columns.type, event_id=columns.event_id, params=params, report_mode=mode,
            max_trends=options.max_trends, on_bad_rows=str(columns.on_bad_rows),
        )  # fmt: skip

        def made(some: dict[str, Query]) -> Stream:
            return Stream(session, some, frame, settings, run)

        running = _Running(made, queries, request.queries, control, Path(options.out))
        now_doing("running the stream")
        with noticed_interrupts(at_once=False) as stop:
            running.stream.start()
            with _served(running, options.metrics), _watched(running, shown, options.json_log) as look:
                has_warned = False
                while not stop.is_set() and not running.stream.wait(EVERY):
                    look()
                    running.follow()
                    has_warned = has_warned or _warn_of_stuck_clock(running.stream)
                if stop.is_set():
                    err().print("stopping after this batch")
                    running.stream.stop()
                else:
                    has_warned = has_warned or _warn_of_stuck_clock(running.stream)
                    if options.flush:
                        now_doing("deciding what only the end decides")
                        running.stream.flush()
                look()
        problem = running.stream.failure
        if problem is not None:
            raise problem
        _print_end(running.stream, shown, perf_counter() - begun)
    if stop.is_set():
        raise KeyboardInterrupt


class _Running:
    """The stream that runs, which is another one each time that its queries change."""

    def __init__(
        self, made: Callable[[dict[str, Query]], Stream], queries: dict[str, Query], given: dict[str, Query],
        control: ControlDirectory | None, output: Path,
    ) -> None:  # fmt: skip
        self._made, self._given, self._control, self._output = made, given, control, output
        self.stream = made(queries)

    def follow(self) -> None:
        """Have the queries be those of the control directory, if these have changed and can be run."""
        if self._control is None or not self._control.has_changed():
            return
        old = self.stream
        try:
            queries = dict(self._given) | self._control.read(self._given)
            self._made(queries)  # so that mistakes are told before anything is stopped
        except TrellisError as mistake:
            print_warning(f"control: {mistake.what}; the stream goes on with the queries that it has")
            return
        old.stop()
        newest, before = old.newest(), {one.key for one in old.queries}
        self.stream = self._made(queries)
        for field in fields(old.totals):
            setattr(self.stream.totals, field.name, getattr(old.totals, field.name))
        self.stream.start()
        for line in tell(self.stream.queries, before, newest, self._output):
            err().print(line)


def _check_free(options: StreamOptions, queries: dict[str, Query]) -> None:
    """Refuse places that another process has at work; the stream itself makes sure of that when it starts."""
    from trellis.streams.lock import check_free
    from trellis.streams.stream_output import LOG

    check_free(Path(options.checkpoint), f"the checkpoint {options.checkpoint}")
    for output in (Path(options.out, name) for name in ("", *queries)):
        check_free(output / LOG, f"the output {output}")


def _warn_of_stuck_clock(stream: Stream) -> bool:
    """Say, once events have come, that none of them can be decided: else the stream would only grow, without a word."""
    why = stream.stuck()
    if why is not None:
        print_warning(f"no event moves the watermark, so that nothing is decided: {why}")
    return why is not None


@contextmanager
def _served(running: _Running, at: str | None) -> Iterator[None]:
    """Serve the numbers of a stream, where that is asked for."""
    if at is None:
        yield
        return
    from trellis.engines.spark.stream.watch import address_of, watched_at

    host, port = address_of(at)
    with watched_at(lambda: running.stream, (host, port)) as taken:
        err().print(f"metrics at http://{host}:{taken}/")
        yield


def _batch_logger(running: _Running) -> Callable[[], None]:
    """Return a function that writes a line of JSON for each batch, or for several that came between two looks."""
    import json

    from trellis.engines.spark.stream.watch import status

    known = [0]

    def look() -> None:
        told = status(running.stream)
        if told["totals"]["batches"] > known[0]:
            known[0] = told["totals"]["batches"]
            print(json.dumps(told), file=sys.stderr, flush=True)

    return look


@contextmanager
def _watched(running: _Running, shown: o.ShowOptions, as_json: bool) -> Iterator[Any]:
    """Show on a terminal how the stream goes; or write it to the log."""
    if as_json:
        yield _batch_logger(running)
        return
    if not shown.shows_progress or not sys.stderr.isatty():
        yield running.stream.states
        return
    from rich.live import Live

    with Live(live_table(running.stream), console=ShownConsole(file=sys.stderr), refresh_per_second=4) as live:
        yield lambda: live.update(live_table(running.stream))


def live_table(stream: Stream) -> Any:
    """Return the state of a stream as a table."""
    from rich.table import Table

    table = Table(title="trellis stream", box=None, title_justify="left")
    for name in ("queries", "events/s", "watermark", "open windows", "state", "results", "late", "bad", "repeated"):
        table.add_column(name, justify="left" if name == "queries" else "right", no_wrap=name == "watermark")
    totals = stream.totals
    for number, state in enumerate(stream.states()):
        numbers = [totals.results, totals.late, totals.bad, totals.repeated]
        own = [f"{one:,}" if number == 0 else "" for one in numbers]
        table.add_row(
            ", ".join(state.queries), f"{state.events_a_second:,.0f}", state.watermark, f"{state.open_windows:,}",
            f"{state.state_bytes / 1e6:,.1f} MB", *own,
        )  # fmt: skip
    return table


def _print_end(stream: Stream, shown: o.ShowOptions, seconds: float) -> None:
    totals = stream.totals
    if shown.json:
        import json

        from trellis.language.printer import to_query_text

        about = {
            "query": [to_query_text(one.bound.syntax) for one in stream.queries], "events": totals.events,
            "windows": totals.windows, "unlisted": totals.unlisted, "results": str(totals.results),
            "late": totals.late, "bad": totals.bad, "repeated": totals.repeated,
            "batches": totals.batches, "seconds": round(seconds, 3), "output": stream.options.out,
        }  # fmt: skip
        out().print(json.dumps(about))
    elif not shown.quiet:
        parts = [plural(totals.events, "event"), plural(totals.results, "result"), plural(totals.late, "late event")]
        parts.append(plural(totals.bad, "bad event"))
        if totals.repeated:
            parts.append(f"{plural(totals.repeated, 'event')} left out whose id came before")
        if totals.unlisted:
            parts.append(f"{plural(totals.unlisted, 'window')} counted in _windows and not listed: too many results")
        out().print(f"{', '.join(parts)} in {seconds:.1f} s; written: {stream.options.out}")
