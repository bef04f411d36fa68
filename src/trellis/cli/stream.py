"""`trellis stream`: queries that stand over a directory that keeps growing."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

import typer

from trellis.cli import options as o
from trellis.cli.queries import read_query
from trellis.cli.stream_run import StreamRequest, run_stream
from trellis.errors import UsageError
from trellis.limits import DEFAULT_MAX_TRENDS
from trellis.streams.delays import check_delay

if TYPE_CHECKING:
    from trellis.api.query import Query

Arguments = Annotated[
    list[str],
    typer.Argument(metavar="QUERY... DIR", help="Files that hold queries, or their texts; at last the directory."),
]


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

    Each result is written once, even if the process is killed and started again with the same checkpoint. Ctrl-C stops
    it after the batch that runs.
    """
    *texts, directory = arguments
    from trellis.io.results import check_format

    if not texts and options.control is None:
        raise UsageError("no query was given", "Write the queries first, then the directory of the events.")
    if options.control is not None and not Path(options.control).is_dir():
        raise UsageError(f"{options.control} is not a directory", "--control names one of query files (*.tq).")
    if options.flush and not options.available_now:
        raise UsageError("--flush is for the end of the input", "Use it with --available-now.")
    check_delay(options.watermark, "watermark")
    if options.metrics is not None:
        from trellis.engines.spark.stream.watch import address_of

        address_of(options.metrics)
    if options.guard is not None:
        check_delay(options.guard, "guard --max-ahead")
    check_format(str(options.format), options.raw_csv)
    _check_places(directory, options.out, options.checkpoint)
    request = StreamRequest(
        _named(texts), directory, options.schema, options.files_a_batch,
        {
            "out": options.out, "checkpoint": options.checkpoint, "watermark": options.watermark,
            "format": str(options.format), "available_now": options.available_now, "flush": options.flush,
            "keep_late": options.late, "max_ahead": options.guard, "raw_csv": options.raw_csv,
            "emit": str(options.emit), "timeouts": options.timeouts,
        },
        {
            "time": columns.time_columns, "type": columns.type, "event_id": columns.event_id, "params": meaning.params,
            "report_mode": meaning.report_mode, "max_trends": options.max_trends,
            "on_bad_rows": str(columns.on_bad_rows),
        },
        columns.time_format, columns.input_format, options.metrics, options.json_log, options.control,
    )  # fmt: skip
    run_stream(request, spark.engine_options, shown)


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
