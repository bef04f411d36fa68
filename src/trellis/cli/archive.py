"""`trellis archive`: a history of events, and questions of it that nobody planned."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trellis.cli import options as o
from trellis.cli.console import out, progress
from trellis.cli.queries import query_text
from trellis.cli.show import plural, print_rows
from trellis.errors import UsageError

if TYPE_CHECKING:
    from trellis.archive import Archive

ROWS = 20
WIDTH = 64  # characters of a timeline

Place = Annotated[str, typer.Option("--archive", metavar="DIR", help="The directory of the archive.")]
Paths = Annotated[list[str], typer.Argument(metavar="EVENTS", help="Files, directories or globs of events.")]
Limit = Annotated[int, typer.Option("--limit", min=0, metavar="N", help="Print at most so many rows.")]


class Reading(StrEnum):
    """Whether two steps may be in one leaf."""

    MAYBE = "maybe"
    NO = "no"


def archive_app() -> typer.Typer:
    """Return the group of commands."""
    app = typer.Typer(rich_markup_mode="markdown", add_completion=False)
    app.callback(help="Keep a history of events, and ask it where a pattern happened.")(lambda: None)
    for command in (build, append, info, find, drop):
        app.command()(command)
    return app


def build(
    events: Paths,
    archive: Place,
    time: Annotated[str, typer.Option("--time", metavar="COLUMN", help="The column of times.")],
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
    key: Annotated[
        str | None,
        typer.Option("--key", metavar="COLUMN", help="Answer questions with [COLUMN] for each of its values."),
    ] = None,
    sizing: Annotated[
        str, typer.Option("--sizing", help="sample, or thesis for the thesis's own equations.")
    ] = "sample",
    input_format: o.InputFormat = None,
    time_format: o.TimeFormat = None,
    json: o.Json = False,
) -> None:
    """Make an archive of events."""
    from trellis.archive import Archive

    with progress(not json) as step:
        step("reading the events")
        table = _read(events, time, type, input_format, time_format)
        step(f"building over {plural(table.num_rows, 'event')}")
        made = Archive.build(
            table, archive, time=time, type=type, event_id=event_id, leaf=leaf, false_positive=false_positive,
            memory=_bytes(memory), expected_events=expected_events, query_length=query_length, fan_out=fan_out,
            sizing=sizing, key=key,
        )  # fmt: skip
    _print_info(made, json)


def append(
    events: Paths, archive: Place, input_format: o.InputFormat = None, time_format: o.TimeFormat = None,
    json: o.Json = False,
) -> None:  # fmt: skip
    """Add later events to an archive."""
    from trellis.archive import Archive

    kept = Archive.open(archive)
    with progress(not json) as step:
        step("reading the events")
        table = _read(events, kept.manifest.time, kept.manifest.type, input_format, time_format)
        step(f"adding {plural(table.num_rows, 'event')}")
        kept.append(table)
    _print_info(kept, json)


def info(archive: Place, json: o.Json = False) -> None:
    """Show the size of an archive, its tree, and the rate of wrong answers that is to be expected."""
    from trellis.archive import Archive

    _print_info(Archive.open(archive), json)


def drop(
    archive: Place,
    before: Annotated[str, typer.Option("--before", metavar="TIME", help="Forget what ended before this time.")],
    json: o.Json = False,
) -> None:
    """Forget the oldest part of an archive, and give its space back."""
    from trellis.archive import Archive

    kept = Archive.open(archive)
    kept.drop_before(before)
    _print_info(kept, json)


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
        Reading, typer.Option("--same-leaf", help="Whether two steps may be in one leaf.")
    ] = Reading.MAYBE,
    level: Annotated[int, typer.Option("--level", min=0, metavar="G", help="Blocks of leaves in place of leaves.")] = 0,
    exists: Annotated[bool, typer.Option("--exists", help="Only whether it happened: no, maybe or likely.")] = False,
    exact: Annotated[bool, typer.Option("--exact", help="Read what may matter, and give exact results.")] = False,
    param: o.Params = None,
    limit: Limit = ROWS,
    json: o.Json = False,
) -> None:
    """Ask an archive where a pattern happened."""
    from trellis.archive import Archive

    kept, text = Archive.open(archive), query_text(pattern)
    given: dict[str, Any] = {"params": o.pairs("--param", param)}
    if exact:
        _print_exact(kept.find(text, exact=True, policy=policy, begin=begin, end=end, **given), limit, json)
        return
    given |= {"policy": policy, "same_leaf": str(same_leaf), "begin": begin, "end": end, "level": level}
    answer = kept.exists(text, **given)
    rows: Any = None if exists else kept.find(text, **given)
    if json:
        _print_json({"answer": str(answer)} | ({} if rows is None else {"rows": rows.slice(0, limit).to_pylist()}))
        return
    console = out()
    console.print(f"it happened: {answer}")
    if rows is not None and rows.num_rows:
        console.print(timeline(rows, len(kept.leaves), kept.manifest.fan_out**level))
        print_rows(console, rows.slice(0, limit))
        if rows.num_rows > limit:
            console.print(f"the first {limit} of {plural(rows.num_rows, 'interval')}")


def timeline(rows: Any, leaves: int, factor: int = 1) -> str:
    """Return a line that shows where in the history intervals begin: the more, the darker."""
    import numpy as np

    number = max(1, -(-leaves // factor))
    places = rows["start_leaf"].to_numpy() * WIDTH // number
    counts = np.bincount(places, minlength=WIDTH)[:WIDTH]
    shades = " ░▒▓█"
    most = max(1, int(counts.max()))
    line = "".join(shades[-(-int(c) * (len(shades) - 1) // most)] for c in counts)
    return f"|{line}|"


def _print_exact(found: Any, limit: int, json: bool) -> None:
    rows, total = found.trends.first(limit), found.trends.count()
    share = f"{found.needed:,} of {found.events:,} events were needed, {found.read:,} read"
    if json:
        about = {"results": str(total), "needed": found.needed, "read": found.read, "events": found.events}
        _print_json(about | {"rows": rows.to_pylist()})
        return
    console = out()
    console.print(f"{plural(total, 'result')}; {share}")
    if rows.num_rows:
        print_rows(console, rows)


def _print_info(archive: Archive, json: bool) -> None:
    about = archive.info()
    if json:
        _print_json(about)
        return
    console = out()
    for name, value in about.items():
        shown = f"{value:,}" if isinstance(value, int) else f"{value:.3g}" if isinstance(value, float) else str(value)
        console.print(f"{name.replace('_', ' '):24}{shown}")


def _print_json(about: dict[str, Any]) -> None:
    import json

    out().print(json.dumps(about, default=str))


def _read(events: list[str], time: str, type_: str, input_format: str | None, time_format: str | None) -> Any:
    from trellis.io.read import read_table

    return read_table(events, input_format=input_format, text_columns={type_}, time=time, time_format=time_format)


def _bytes(text: str | None) -> int | None:
    if text is None:
        return None
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kKmMgG]?)[bB]?", text.strip())
    if match is None:
        raise UsageError(f"`{text}` is no size", "Write it as 500M or 2G.")
    return int(float(match[1]) * 1000 ** ("", "k", "m", "g").index(match[2].lower()))
