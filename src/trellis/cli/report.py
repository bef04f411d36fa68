"""`trellis report`: what was asked and found, in one file that works offline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from trellis.cli import options as o
from trellis.cli.console import out, progress
from trellis.cli.queries import read_query
from trellis.cli.running import RunRequest, running

ReportFile = Annotated[str, o.flag("--out", "The file to write, such as report.html.", "FILE")]


@dataclass(frozen=True)
class ReportOptions:
    """The options about the file."""

    out: ReportFile = "report.html"
    overwrite: o.Overwrite = False


@o.takes_options
def report(
    query: o.QueryText,
    events: o.EventOptions,
    meaning: o.QueryOptions,
    engine: o.EngineOptions,
    file: ReportOptions,
    show: o.ShowOptions,
) -> None:
    """Write a report: what was asked and found, and each trend drawn and explained at a click; one file, offline."""
    from trellis.report.report import write_report

    request = RunRequest(read_query(query), events, engine, meaning.params, meaning.report_mode)
    with progress(show.shows_progress) as step, running(request, step) as trends:
        step("writing the report")
        write_report(trends, file.out, overwrite=file.overwrite)
    if not show.quiet:
        out().print(f"written: {file.out}")
