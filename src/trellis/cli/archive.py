"""`trellis archive`: a history of events, and questions of it that nobody planned."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

import typer

from trellis.api.query_files import query_text
from trellis.cli import options as o
from trellis.cli.console import Step, progress
from trellis.cli.engine import noticed_interrupts, started
from trellis.cli.history import print_answer, print_exact, print_info
from trellis.cli.show import plural
from trellis.cli.stream_run import EVERY

ROWS = 20

_FORMATS = "parquet, csv, tsv, json, orc, xes, or text for its words; without it the extensions of the files tell."
Place = Annotated[str, o.flag("--archive", "The directory of the archive.", "DIR")]
Paths = Annotated[list[str], typer.Argument(metavar="EVENTS", help="Files, directories or globs of events.")]
InputFormat = Annotated[str | None, o.flag("--input-format", _FORMATS, "FORMAT", "Events")]
Limit = Annotated[int, o.flag("--limit", "Print at most so many rows.", "N", min=0)]
Before = Annotated[str, o.flag("--before", "What ended before this time.", "TIME")]


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


@dataclass(frozen=True)
class ShapeOptions:
    """The options about the ids of the events, the leaves of an archive, and their filters."""

    event_id: o.EventId = None
    leaf: int = o.option(100, "Events of a leaf.", "N", min=1)
    false_positive: float = o.option(1e-4, "Questions whose list of leaves may be wrong.", "RATE")
    memory: str | None = o.option(None, "What the filters may take, such as 2G.", "SIZE")
    expected_events: int | None = o.option(None, "How many events there will be.", "N", min=1)
    query_length: int = o.option(3, "Names of a question.", "N", min=1)
    fan_out: int = o.option(2, "Children of a node of the tree.", "N", min=2)
    height: int = o.option(0, "Make filters so large that nodes up to here exist.", "G", min=0)
    key: str | None = o.option(None, "Answer questions with [COLUMN] for each of its values.", "COLUMN")
    values: list[str] | None = o.option(None, "Keep its values with the names; may be given several times.", "COLUMN")
    sizing: str = o.option("sample", "sample, tree to make nodes pay, or thesis for its own equations.")


@dataclass(frozen=True)
class FindOptions:
    """The options about what is asked, beside the pattern."""

    policy: str | None = o.option(
        None, "skip-till-any, skip-till-next, contiguous or adjacent-leaves; not SELECT.", "NAME"
    )
    begin: str | None = o.option(None, "Not before this time.", "TIME", "--from")
    end: str | None = o.option(None, "Not after this time.", "TIME", "--to")
    same_leaf: SameLeaf = o.option(SameLeaf.MAYBE, "Whether two steps may be in one leaf.")
    level: int = o.option(0, "Blocks of leaves in place of leaves.", "G", min=0)
    first: int | None = o.option(None, "Not before this position.", "N", "--from-position")
    last: int | None = o.option(None, "Not after this position.", "N", "--to-position")
    within_events: int | None = o.option(None, "At most so many positions from first to last.", "N", min=0)
    starts: Starts = o.option(Starts.EVERY, "Of skip-till-next: every start, or the thesis's list: after the last end.")
    pairs: bool = o.option(False, "Of skip-till-any: a row for each end of a start.")
    minimal: bool = o.option(False, "Only intervals that contain no other.")
    algorithm: str = o.option("auto", "slices, tree (the thesis's walk from the top), or auto.", "NAME")


@dataclass(frozen=True)
class FollowOptions:
    """The options of an archive that follows a stream."""

    checkpoint: str = o.option(..., "Where the stream remembers how far it is.", "DIR")
    delay: str | None = o.option(None, "How far events may be late, such as '10 minutes'.", "DURATION")
    late: o.BadRows = o.option(o.BadRows.ERROR, "Whether an event that is later still ends the stream or is left out.")
    available_now: bool = o.option(False, "Stop when all that is there has been read.")
    files_a_batch: int | None = o.option(None, "Read at most so many files at once.", "N", min=1)


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
    time: Annotated[str, o.flag("--time", "The column of times; ts,seq for one that breaks ties.", "COLUMN")],
    type: Annotated[str, o.flag("--type", "The column of names.", "COLUMN")],
    shape: ShapeOptions,
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
            table, archive, time=moments, type=type, progress=step,
            **vars(shape) | {"values": shape.values or ()},
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
    following: FollowOptions,
    input_format: o.InputFormat = None,
    time_format: o.TimeFormat = None,
    json: o.Json = False,
) -> None:
    """Append what arrives in a directory, by Structured Streaming: each batch once, also after a kill."""
    from trellis.archive import Archive
    from trellis.io.places import check_apart

    opened = Archive.open(archive)
    about = opened.manifest
    for place in (archive, following.checkpoint):
        check_apart(place, [directory])
    with progress(not json) as step:
        step("starting spark")
    with started(spark) as session:
        from trellis.engines.spark.archive.follow import ArchiveStream
        from trellis.engines.spark.sources.read_stream import read_stream

        frame = read_stream(
            session, directory, input_format=input_format, text_columns=opened.texts, time=about.time,
            time_format=time_format, files_a_batch=following.files_a_batch,
        )  # fmt: skip
        stream = ArchiveStream(
            frame, archive, following.checkpoint, delay=following.delay, late=str(following.late),
            available_now=following.available_now, file_columns=frame.columns,
        )  # fmt: skip
        with noticed_interrupts(at_once=False) as stop, progress(not json) as step:
            stream.start()
            while not stop.is_set() and not stream.wait(EVERY):
                step(f"{plural(stream.events, 'event')} in {plural(stream.batches, 'batch', 'batches')}")
            if stop.is_set():
                stream.stop()
        if stream.failure is not None:
            raise stream.failure
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
    level: Annotated[int, o.flag("--level", "The highest nodes that stand for their leaves.", "G", min=1)],
    json: o.Json = False,
) -> None:
    """Let nodes of the tree stand for the leaves of the oldest part, and give the space of their filters back."""
    from trellis.archive import Archive

    opened = Archive.open(archive)
    opened.coarsen_before(before, level)
    print_info(opened, json)


@o.takes_options
def find(
    pattern: o.QueryText,
    archive: Place,
    question: FindOptions,
    exists: Annotated[bool, o.flag("--exists", "Only whether it happened: no, maybe or likely.")] = False,
    exact: Annotated[bool, o.flag("--exact", "Read what may matter, and give exact results.")] = False,
    param: o.Params = None,
    limit: Limit = ROWS,
    json: o.Json = False,
) -> None:
    """Ask an archive where a pattern happened."""
    from trellis.archive import Archive

    opened, text = Archive.open(archive), query_text(pattern)
    given: dict[str, Any] = vars(question) | {"params": o.pairs("--param", param)}
    if exact:
        print_exact(opened.find(text, exact=True, **given), limit, json)
        return
    answer = opened.exists(text, **given)
    rows = None if exists else opened.find(text, limit=limit + 1 if question.pairs else None, **given)
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
