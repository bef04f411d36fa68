"""`trellis stream`: queries that stand over a directory that keeps growing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from trellis.cli import options as o
from trellis.cli.queries import read_query
from trellis.cli.stream_run import StreamColumns, StreamOptions, StreamRequest, run_stream
from trellis.errors import UsageError
from trellis.streams.delays import check_delay

if TYPE_CHECKING:
    from trellis.api.query import Query

Arguments = Annotated[
    list[str],
    typer.Argument(metavar="QUERY... DIR", help="Files that hold queries, or their texts; at last the directory."),
]


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
    run_stream(StreamRequest(_named(texts), directory, options, columns, meaning), spark, shown)


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
