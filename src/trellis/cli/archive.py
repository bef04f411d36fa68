"""`trellis archive`: a history of events, and questions of it that nobody planned."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

import typer

from trellis.api.query_files import query_text
from trellis.cli import options as o
from trellis.cli.console import Step, progress
from trellis.cli.engine import started
from trellis.cli.history import print_answer, print_exact, print_info
from trellis.cli.show import plural
from trellis.cli.stream_run import EVERY, asked_to_stop
from trellis.errors import UsageError

ROWS = 20

Place = Annotated[str, typer.Option("--archive", metavar="DIR", help="The directory of the archive.")]
Paths = Annotated[list[str], typer.Argument(metavar="EVENTS", help="Files, directories or globs of events.")]
InputFormat = Annotated[
    str | None,
    typer.Option(
        "--input-format",
        metavar="FORMAT",
        help="parquet, csv, tsv, json, orc, xes, or text for its words; without it the extensions of the files tell.",
        rich_help_panel="Events",
    ),
]
Limit = Annotated[int, typer.Option("--limit", min=0, metavar="N", help="Print at most so many rows.")]


Before = Annotated[str, typer.Option("--before", metavar="TIME", help="What ended before this time.")]


class LatePolicy(StrEnum):
    """The treatment of events that come too late."""

    ERROR = "error"
    DROP = "drop"


class Starts(StrEnum):
    """Which starts of skip-till-next are listed."""

    EVERY = "every"
    AFTER = "after"


class SameLeaf(StrEnum):
    """Whether two steps may be in one leaf."""

    MAYBE = "maybe"
    NO = "no"


@dataclass(frozen=True)
class ArchiveEngine(o.EngineOptions):
    """The options about where an archive is made: in this process, unless Spark is asked for."""

    engine: o.EngineName = o.EngineChoice.LOCAL


def archive_app() -> typer.Typer:
    """Return the group of commands."""
    app = typer.Typer(rich_markup_mode="markdown", add_completion=False)
    app.callback(help="Keep a history of events, and ask it where a pattern happened.")(lambda: None)
    for command in (build, append, follow, info, find, drop, coarsen):
        app.command()(command)
    return app


@o.takes_options
def build(
    events: Paths,
    archive: Place,
    where: ArchiveEngine,
    time: Annotated[
        str, typer.Option("--time", metavar="COLUMN", help="The column of times; ts,seq for one that breaks ties.")
    ],
    type: Annotated[str, typer.Option("--type", metavar="COLUMN", help="The column of names.")],
    event_id: o.EventId = None,
    leaf: Annotated[int, typer.Option("--leaf", min=1, metavar="N", help="Events of a leaf.")] = 100,
    false_positive: Annotated[
        float, typer.Option("--false-positive", metavar="RATE", help="Questions whose list of leaves may be wrong.")
    ] = 1e-4,
    memory: Annotated[
        str | None, typer.Option("--memory", metavar="SIZE", help="What the filters may take, such as 2G.")
    ] = None,
    expected_events: Annotated[
        int | None, typer.Option("--expected-events", min=1, metavar="N", help="How many events there will be.")
    ] = None,
    query_length: Annotated[int, typer.Option("--query-length", min=1, metavar="N", help="Names of a question.")] = 3,
    fan_out: Annotated[int, typer.Option("--fan-out", min=2, metavar="N", help="Children of a node of the tree.")] = 2,
    height: Annotated[
        int, typer.Option("--height", min=0, metavar="G", help="Make filters so large that nodes up to here exist.")
    ] = 0,
    key: Annotated[
        str | None,
        typer.Option("--key", metavar="COLUMN", help="Answer questions with [COLUMN] for each of its values."),
    ] = None,
    values: Annotated[
        list[str] | None,
        typer.Option("--values", metavar="COLUMN", help="Keep its values with the names; may be given several times."),
    ] = None,
    sizing: Annotated[
        str, typer.Option("--sizing", help="sample, tree to make nodes pay, or thesis for its own equations.")
    ] = "sample",
    input_format: InputFormat = None,
    time_format: o.TimeFormat = None,
    json: o.Json = False,
) -> None:
    """Make an archive of events."""
    from trellis.archive import Archive
    from trellis.io.places import check_apart

    check_apart(archive, events)
    with progress(not json) as step, started(where) as session:
        moments = [name.strip() for name in time.split(",")]
        table = _events(step, session, events, moments[0], {type}, input_format, time_format)
        made = Archive.build(
            table, archive, time=moments, type=type, event_id=event_id, leaf=leaf, false_positive=false_positive,
            memory=_bytes(memory), expected_events=expected_events, query_length=query_length, fan_out=fan_out,
            sizing=sizing, key=key, height=height, values=values or (), progress=step,
        )  # fmt: skip
    print_info(made, json)


@o.takes_options
def append(
    events: Paths,
    archive: Place,
    where: ArchiveEngine,
    input_format: InputFormat = None,
    time_format: o.TimeFormat = None,
    json: o.Json = False,
) -> None:
    """Add later events to an archive."""
    from trellis.archive import Archive

    opened = Archive.open(archive)
    about = opened.manifest
    with progress(not json) as step, started(where) as session:
        opened.append(
            _events(step, session, events, about.time, opened.texts, input_format, time_format), progress=step
        )
    print_info(opened, json)


@o.takes_options
def follow(
    directory: Annotated[str, typer.Argument(metavar="DIR", help="The directory that events arrive in.")],
    archive: Place,
    spark: o.SparkOptions,
    checkpoint: Annotated[
        str, typer.Option("--checkpoint", metavar="DIR", help="Where the stream remembers how far it is.")
    ],
    delay: Annotated[
        str | None,
        typer.Option("--delay", metavar="DURATION", help="How far events may be late, such as '10 minutes'."),
    ] = None,
    late: Annotated[
        LatePolicy, typer.Option("--late", help="Whether an event that is later still ends the stream or is left out.")
    ] = LatePolicy.ERROR,
    available_now: Annotated[
        bool, typer.Option("--available-now", help="Stop when all that is there has been read.")
    ] = False,
    files_a_batch: Annotated[
        int | None, typer.Option("--files-a-batch", min=1, metavar="N", help="Read at most so many files at once.")
    ] = None,
    input_format: o.InputFormat = None,
    time_format: o.TimeFormat = None,
    json: o.Json = False,
) -> None:
    """Append what arrives in a directory, by Structured Streaming: each batch once, also after a kill."""
    from trellis.archive import Archive
    from trellis.io.places import check_apart

    opened = Archive.open(archive)
    about = opened.manifest
    for place in (archive, checkpoint):
        check_apart(place, [directory])
    with progress(not json) as step:
        step("starting spark")
    with started(spark.engine_options) as session:
        from trellis.engines.spark.archive.follow import ArchiveStream
        from trellis.engines.spark.sources.read_stream import read_stream

        frame = read_stream(
            session, directory, input_format=input_format, text_columns=opened.texts, time=about.time,
            time_format=time_format, files_a_batch=files_a_batch,
        )  # fmt: skip
        following = ArchiveStream(
            frame, archive, checkpoint, delay=delay, late=str(late), available_now=available_now,
            file_columns=frame.columns,
        )  # fmt: skip
        with asked_to_stop() as stop, progress(not json) as step:
            following.start()
            while not stop.is_set() and not following.wait(EVERY):
                step(f"{plural(following.events, 'event')} in {plural(following.batches, 'batch', 'batches')}")
            if stop.is_set():
                following.stop()
        if following.failure is not None:
            raise following.failure
    print_info(Archive.open(archive), json)
    if stop.is_set():
        raise KeyboardInterrupt


def info(archive: Place, json: o.Json = False) -> None:
    """Show the size of an archive, its tree, and the rate of wrong answers that is to be expected."""
    from trellis.archive import Archive

    print_info(Archive.open(archive), json)


def drop(archive: Place, before: Before, json: o.Json = False) -> None:
    """Forget the oldest part of an archive, and give its space back."""
    from trellis.archive import Archive

    opened = Archive.open(archive)
    opened.drop_before(before)
    print_info(opened, json)


def coarsen(
    archive: Place,
    before: Before,
    level: Annotated[
        int, typer.Option("--level", min=1, metavar="G", help="The highest nodes that stand for their leaves.")
    ],
    json: o.Json = False,
) -> None:
    """Let nodes of the tree stand for the leaves of the oldest part, and give the space of their filters back."""
    from trellis.archive import Archive

    opened = Archive.open(archive)
    opened.coarsen_before(before, level)
    print_info(opened, json)


def find(
    pattern: o.QueryText,
    archive: Place,
    policy: Annotated[
        str | None,
        typer.Option(
            "--policy", metavar="NAME", help="skip-till-any, skip-till-next, contiguous or adjacent-leaves; not SELECT."
        ),
    ] = None,
    begin: Annotated[str | None, typer.Option("--from", metavar="TIME", help="Not before this time.")] = None,
    end: Annotated[str | None, typer.Option("--to", metavar="TIME", help="Not after this time.")] = None,
    same_leaf: Annotated[
        SameLeaf, typer.Option("--same-leaf", help="Whether two steps may be in one leaf.")
    ] = SameLeaf.MAYBE,
    level: Annotated[int, typer.Option("--level", min=0, metavar="G", help="Blocks of leaves in place of leaves.")] = 0,
    first: Annotated[int | None, typer.Option("--from-position", metavar="N", help="Not before this position.")] = None,
    last: Annotated[int | None, typer.Option("--to-position", metavar="N", help="Not after this position.")] = None,
    within_events: Annotated[
        int | None,
        typer.Option("--within-events", min=0, metavar="N", help="At most so many positions from first to last."),
    ] = None,
    starts: Annotated[
        Starts,
        typer.Option("--starts", help="Of skip-till-next: every start, or the thesis's list: after the last end."),
    ] = Starts.EVERY,
    pairs: Annotated[bool, typer.Option("--pairs", help="Of skip-till-any: a row for each end of a start.")] = False,
    minimal: Annotated[bool, typer.Option("--minimal", help="Only intervals that contain no other.")] = False,
    algorithm: Annotated[
        str, typer.Option("--algorithm", metavar="NAME", help="slices, tree (the thesis's walk from the top), or auto.")
    ] = "auto",
    exists: Annotated[bool, typer.Option("--exists", help="Only whether it happened: no, maybe or likely.")] = False,
    exact: Annotated[bool, typer.Option("--exact", help="Read what may matter, and give exact results.")] = False,
    param: o.Params = None,
    limit: Limit = ROWS,
    json: o.Json = False,
) -> None:
    """Ask an archive where a pattern happened."""
    from trellis.archive import Archive

    opened, text = Archive.open(archive), query_text(pattern)
    given: dict[str, Any] = {
        "policy": policy, "same_leaf": str(same_leaf), "begin": begin, "end": end, "first": first, "last": last,
        "within_events": within_events, "level": level, "starts": str(starts), "pairs": pairs, "minimal": minimal,
        "algorithm": algorithm, "params": o.pairs("--param", param),
    }  # fmt: skip
    if exact:
        print_exact(opened.find(text, exact=True, **given), limit, json)
        return
    answer = opened.exists(text, **given)
    rows = None if exists else opened.find(text, limit=limit + 1 if pairs else None, **given)
    print_answer(opened, str(answer), rows, limit, json)


def _events(
    step: Step, session: Any, events: list[str], time: str, texts: set[str], input_format: str | None,
    time_format: str | None,
) -> Any:  # fmt: skip
    """Read events into this process, or on Spark."""
    step("reading the events")
    given: dict[str, Any] = {
        "input_format": input_format, "text_columns": texts, "time": time, "time_format": time_format
    }  # fmt: skip
    if session is None:
        from trellis.io.read import read_table

        return read_table(events, **given)
    from trellis.engines.spark.sources.read import read

    return read(session, events, **given)


def _bytes(text: str | None) -> int | None:
    if text is None:
        return None
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kKmMgG]?)[bB]?", text.strip())
    if match is None:
        raise UsageError(f"`{text}` is not a size", "Write it as 500M or 2G.")
    return int(float(match[1]) * 1000 ** ("", "k", "m", "g").index(match[2].lower()))
