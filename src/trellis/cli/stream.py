"""`trellis stream`: queries that stand over a directory that keeps growing."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trellis.cli import options as o
from trellis.cli.console import ShownConsole, err, now_doing, out, print_warning, progress
from trellis.cli.engine import started
from trellis.cli.queries import read_query
from trellis.cli.show import plural
from trellis.cli.text_columns import text_columns
from trellis.errors import TrellisError, UsageError
from trellis.limits import DEFAULT_MAX_TRENDS
from trellis.streams.delays import check_delay

if TYPE_CHECKING:
    from trellis.api.query import Query
    from trellis.engines.spark.stream.running import Stream

_STREAM = "Stream"
EVERY = 0.5  # seconds between two looks

Arguments = Annotated[
    list[str],
    typer.Argument(metavar="QUERY... DIR", help="Files that hold queries, or their texts; at last the directory."),
]
OutDirectory = Annotated[
    str,
    typer.Option("--out", metavar="DIR", help="Where results go, with a log of what counts.", rich_help_panel=_STREAM),
]
CheckpointDirectory = Annotated[
    str,
    typer.Option(
        "--checkpoint", metavar="DIR", help="Where the stream remembers how far it is.", rich_help_panel=_STREAM
    ),
]
Watermark = Annotated[
    str,
    typer.Option(
        "--watermark",
        metavar="DURATION",
        help="How far events may be late, such as '10 minutes'; a plain number where times are numbers.",
        rich_help_panel=_STREAM,
    ),
]
SchemaText = Annotated[
    str | None,
    typer.Option(
        "--schema",
        metavar="DDL",
        help="The columns of the events, 'ts TIMESTAMP, price DOUBLE'; without it the files that are there tell.",
        rich_help_panel=_STREAM,
    ),
]
AvailableNow = Annotated[
    bool, typer.Option("--available-now", help="Stop when all that is there has been read.", rich_help_panel=_STREAM)
]
Flush = Annotated[
    bool,
    typer.Option("--flush", help="With --available-now: also give what only the end decides.", rich_help_panel=_STREAM),
]
KeepLate = Annotated[
    bool,
    typer.Option(
        "--late", help="Write late, bad and repeated events to _late, _bad and _repeated.", rich_help_panel=_STREAM
    ),
]
MaxAhead = Annotated[
    str,
    typer.Option(
        "--max-ahead",
        metavar="DURATION",
        help="An event so far ahead of the clock does not move the watermark; 'none' for no such guard.",
        rich_help_panel=_STREAM,
    ),
]
FilesABatch = Annotated[
    int | None,
    typer.Option(
        "--files-a-batch", min=1, metavar="N", help="Read at most so many files at once.", rich_help_panel=_STREAM
    ),
]
EventId = Annotated[
    str | None,
    typer.Option(
        "--event-id", metavar="COLUMN", help="The column of event ids; a stream needs one.", rich_help_panel="Events"
    ),
]
OnBadRows = Annotated[
    o.BadRows,
    typer.Option(
        "--on-bad-rows",
        help="Whether events of the same id in one window stop the stream, or the first is kept. Events without a "
        "readable time or id are counted and left out in any case.",
        rich_help_panel="Events",
    ),
]
MaxTrends = Annotated[
    int,
    typer.Option(
        "--max-trends",
        min=0,
        metavar="N",
        help="A window and partition with more results is counted in _windows and not listed.",
        rich_help_panel="How it runs",
    ),
]


@dataclass(frozen=True)
class StreamOptions:
    """The options that only a stream has."""

    out: OutDirectory
    checkpoint: CheckpointDirectory
    watermark: Watermark
    schema: SchemaText = None
    available_now: AvailableNow = False
    flush: Flush = False
    late: KeepLate = False
    max_ahead: MaxAhead = "1 day"
    files_a_batch: FilesABatch = None
    max_trends: MaxTrends = DEFAULT_MAX_TRENDS
    format: o.Format = o.OutputFormat.PARQUET
    raw_csv: o.RawCsv = False

    @property
    def guard(self) -> str | None:
        """How far ahead of the clock an event may be."""
        return None if self.max_ahead.lower() == "none" else self.max_ahead


@dataclass(frozen=True)
class StreamColumns(o.ColumnOptions):
    """The options about the columns of a stream's events."""

    event_id: EventId = None
    on_bad_rows: OnBadRows = o.BadRows.ERROR


@o.takes_options
def stream(
    arguments: Arguments,
    options: StreamOptions,
    columns: StreamColumns,
    meaning: o.QueryOptions,
    spark: o.SparkOptions,
    shown: o.ShowOptions,
) -> None:
    """Run queries over a directory that keeps growing: results come out as soon as no event can change them.

    Each result is written once, also if the process is killed and started again with the same checkpoint. Ctrl-C stops
    it after the batch that runs.
    """
    *texts, directory = arguments
    from trellis.io.results import check_format

    if not texts:
        raise UsageError("no query was given", "Write the queries first, then the directory of the events.")
    if options.flush and not options.available_now:
        raise UsageError("--flush is for the end of the input", "Use it with --available-now.")
    check_delay(options.watermark, "watermark")
    if options.guard is not None:
        check_delay(options.guard, "guard --max-ahead")
    check_format(str(options.format), options.raw_csv)
    _check_places(directory, options.out, options.checkpoint)
    request = _StreamRequest(
        _named(texts), directory, options.schema, options.files_a_batch,
        {
            "out": options.out, "checkpoint": options.checkpoint, "watermark": options.watermark,
            "format": str(options.format), "available_now": options.available_now, "flush": options.flush,
            "keep_late": options.late, "max_ahead": options.guard, "raw_csv": options.raw_csv,
        },
        {
            "time": columns.time_columns, "type": columns.type, "event_id": columns.event_id, "params": meaning.params,
            "report_mode": meaning.report_mode, "max_trends": options.max_trends,
            "on_bad_rows": str(columns.on_bad_rows),
        },
        columns.time_format, columns.input_format,
    )  # fmt: skip
    _run(request, spark.engine_options, shown)


def _check_places(directory: str, output: str, checkpoint: str) -> None:
    """Refuse an input that is not there, and an output or checkpoint that the stream would read as events."""
    if "://" in directory:
        return
    if not Path(directory).is_dir():
        what = "is not a directory" if Path(directory).exists() else "is not there"
        raise UsageError(f"{directory} {what}", "Name the directory that the events arrive in; it may be empty.")
    source = Path(directory).resolve()
    for option, place in (("--out", output), ("--checkpoint", checkpoint)):
        target = Path(place).resolve()
        if target == source or source in target.parents or target in source.parents:
            raise UsageError(f"{option} {place} and the directory of the events lie in one another", "Keep them apart.")
    if Path(output).resolve() == Path(checkpoint).resolve():
        raise UsageError("--out and --checkpoint are the same directory", "Keep them apart.")


@dataclass(frozen=True)
class _StreamRequest:
    """The queries of a stream, its input and its options."""

    queries: dict[str, Query]
    directory: str
    schema: str | None
    files_a_batch: int | None
    options: dict[str, Any]
    events: dict[str, Any]
    time_format: str | None
    input_format: str | None

    @property
    def time_column(self) -> str | None:
        """The column of times."""
        named = self.events["time"]
        return None if named is None else str(named[0])


def _named(texts: list[str]) -> dict[str, Query]:
    """Return the queries by the names of their files; texts are called `query`, `query-2` and so on."""
    from trellis.streams.stream_output import check_query_names

    queries: dict[str, Query] = {}
    names: list[str] = []
    for text in texts:
        query = read_query(text)
        is_file = len(text) < 4096 and "\n" not in text and Path(text).is_file()
        name = base = Path(text).stem if is_file else "query"
        number = 2
        while not is_file and name.casefold() in {one.casefold() for one in names}:
            name, number = f"{base}-{number}", number + 1
        names.append(name)
        queries[name] = query
    check_query_names(names)
    return queries


def _run(request: _StreamRequest, engine: o.EngineOptions, shown: o.ShowOptions) -> None:
    begun = perf_counter()
    for name, query in request.queries.items():
        try:
            query.plan(None, request.events["params"], request.events["report_mode"])  # before anything is started
        except TrellisError as mistake:
            if len(request.queries) == 1:
                raise
            mistake.what = f"in the query `{name}`: {mistake.what}"
            raise
    _check_free(request)
    with progress(shown.shows_progress) as step:
        step("starting spark")
    with started(engine) as session:
        from trellis.engines.options import RunOptions
        from trellis.engines.spark.sources.read_stream import read_stream
        from trellis.engines.spark.stream.running import Options, Stream

        now_doing("looking at the files of the stream")
        texts = {
            name for query in request.queries.values() for name in text_columns(query.syntax, request.events["params"])
        }
        frame = read_stream(
            session, request.directory, schema=request.schema, input_format=request.input_format, text_columns=texts,
            time=request.time_column, time_format=request.time_format, files_a_batch=request.files_a_batch,
        )  # fmt: skip
        options = Options(**request.options, file_columns=tuple(frame.columns))
        stream = Stream(session, request.queries, frame, options, RunOptions.of(**request.events))
        now_doing("running the stream")
        with asked_to_stop() as stop:
            stream.start()
            with _watched(stream, shown) as look:
                has_warned = False
                while not stop.is_set() and not stream.wait(EVERY):
                    look()
                    has_warned = has_warned or _warn_of_stuck_clock(stream)
                if stop.is_set():
                    err().print("stopping after this batch")
                    stream.stop()
                else:
                    has_warned = has_warned or _warn_of_stuck_clock(stream)
                    if request.options["flush"]:
                        now_doing("deciding what only the end decides")
                        stream.flush()
                look()
        problem = stream.failure
        if problem is not None:
            raise problem
        _print_end(stream, shown, perf_counter() - begun)
    if stop.is_set():
        raise KeyboardInterrupt


def _check_free(request: _StreamRequest) -> None:
    """Refuse places that another process has at work; the stream itself makes sure of that when it starts."""
    from trellis.streams.lock import check_free
    from trellis.streams.stream_output import LOG

    check_free(Path(request.options["checkpoint"]), f"the checkpoint {request.options['checkpoint']}")
    for output in (Path(request.options["out"], name) for name in ("", *request.queries)):
        check_free(output / LOG, f"the output {output}")


def _warn_of_stuck_clock(stream: Stream) -> bool:
    """Say, once events have come, that none of them can be decided: else the stream would only grow, without a word."""
    why = stream.stuck()
    if why is not None:
        print_warning(f"no event moves the watermark, so that nothing is decided: {why}")
    return why is not None


@contextmanager
def asked_to_stop() -> Iterator[threading.Event]:
    """Give an event that Ctrl-C sets, the first time; Spark would cancel the batch."""
    stopped = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stopped
        return
    usual = signal.getsignal(signal.SIGINT)

    def notice(number: int, frame: Any) -> None:
        if stopped.is_set() and callable(usual):
            usual(number, frame)
        stopped.set()

    signal.signal(signal.SIGINT, notice)
    try:
        yield stopped
    finally:
        signal.signal(signal.SIGINT, usual)


@contextmanager
def _watched(stream: Stream, shown: o.ShowOptions) -> Iterator[Any]:
    """Show on a terminal how the stream goes."""
    if not shown.shows_progress or not sys.stderr.isatty():
        yield stream.states
        return
    from rich.live import Live

    with Live(live_table(stream), console=ShownConsole(file=sys.stderr), refresh_per_second=4) as live:
        yield lambda: live.update(live_table(stream))


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
