"""`trellis graph`: the operators of the DEBS 2016 challenge over posts, comments, likes and friendships."""

from __future__ import annotations

import json as json_text
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trellis.cli import options as o
from trellis.cli.console import err, line_writer, out, print_warning, progress
from trellis.cli.show import number, plural, print_facts
from trellis.errors import UsageError

if TYPE_CHECKING:
    from trellis.papers.debs2016 import QueryOutput


class Changes(StrEnum):
    """When a change of the posts is seen."""

    EXACT = "exact"
    DEATHS = "deaths"
    EVENTS = "events"


class Community(StrEnum):
    """The kinds of communities."""

    CLIQUE = "clique"
    COMPONENT = "component"


_COMMENT_FIELDS = "ts|comment|user|text|user name|replied comment|replied post"
PostsFile = Annotated[str, o.flag("--posts", "Lines `ts|post|user|text|user name`.", "FILE")]
CommentsFile = Annotated[str, o.flag("--comments", f"Lines `{_COMMENT_FIELDS}`.", "FILE")]
LikesFile = Annotated[str, o.flag("--likes", "Lines `ts|user|comment`.", "FILE")]
FriendshipsFile = Annotated[str, o.flag("--friendships", "Lines `ts|user|user`.", "FILE")]
Target = Annotated[
    str | None, o.flag("--out", "Write the lines to this file, wholly or not at all; else to stdout.", "FILE")
]


def graph_app() -> typer.Typer:
    """Return the group of commands."""
    app = typer.Typer(rich_markup_mode="markdown", add_completion=False)
    app.callback(help="Watch a social network: its most active posts, and communities that like the same comment.")(
        lambda: None
    )
    for command in (posts, communities):
        app.command()(command)
    return app


@o.takes_options
def posts(
    posts: PostsFile,
    comments: CommentsFile,
    show: o.ShowOptions,
    k: Annotated[int, o.flag("--k", "How many posts are shown.", "K", min=1)] = 3,
    changes: Annotated[
        Changes,
        o.flag(
            "--changes",
            "When a change is seen: at its instant, between events only when a post dies, or at events only.",
        ),
    ] = Changes.EXACT,
    target: Target = None,
    overwrite: o.Overwrite = False,
) -> None:
    """Print the posts with the largest scores whenever they change.

    A post and each of its comments are worth 10 points, and lose one a day. A line is
    `ts,post,user name,score,commenters`, the last four K times.
    """
    from trellis.papers import debs2016 as debs

    shown = o.OutputOptions(**vars(show), out=target, overwrite=overwrite)
    _run("posts", [posts, comments], shown, lambda **how: debs.posts(posts, comments, k=k, changes=str(changes), **how))


@o.takes_options
def communities(
    comments: CommentsFile,
    likes: LikesFile,
    friendships: FriendshipsFile,
    show: o.ShowOptions,
    k: Annotated[int, o.flag("--k", "How many comments are shown.", "K", min=1)],
    d: Annotated[int, o.flag("--d", "For how long a comment takes part.", "SECONDS", min=0)],
    community: Annotated[
        Community, o.flag("--community", "All are friends of each other, or friends of friends too.")
    ] = Community.CLIQUE,
    target: Target = None,
    overwrite: o.Overwrite = False,
) -> None:
    """Print the comments that the largest communities of friends like whenever they change.

    A line is `ts,text_1,...,text_K`.
    """
    from trellis.papers import debs2016 as debs

    shown = o.OutputOptions(**vars(show), out=target, overwrite=overwrite)
    _run(
        "communities", [friendships, comments, likes], shown,
        lambda **how: debs.communities(friendships, comments, likes, k=k, d=d, community=str(community), **how),
    )  # fmt: skip


def _run(query: str, files: list[str], shown: o.OutputOptions, work: Callable[..., QueryOutput]) -> None:
    if shown.json and shown.out is None:
        raise UsageError("--json prints one object, so the lines have nowhere to go", "Name a file for them: --out.")
    for file in files:
        if not Path(file).exists():
            raise UsageError(f"{file} is not there", "Name a file of the DEBS 2016 format.")
    total = sum(Path(file).stat().st_size for file in files)
    with _output(shown, files) as write, progress(shown.shows_progress and shown.out is not None) as step:
        done = 0

        def show_size(size: int) -> None:
            nonlocal done
            done += size
            step(f"reading: {done / 1e6:,.0f} of {total / 1e6:,.0f} MB")

        run = work(write=write, progress=show_size)
    if shown.json:
        out().print(json_text.dumps(_data(query, run, shown.out)))
    elif not shown.quiet:
        _print(run, shown.out)


@contextmanager
def _output(shown: o.OutputOptions, files: list[str]) -> Iterator[Callable[[memoryview], object]]:
    """Give a function that writes lines, to stdout or to a file that appears when all went well."""
    if shown.out is None:
        if shown.overwrite:
            raise UsageError("--overwrite is for --out", "Name the file to write with --out.")
        yield line_writer()
        sys.stdout.flush()
        return
    from trellis.io.claims import claimed

    claim = claimed(shown.out, overwrite=shown.overwrite, inputs=files, is_file=True)
    with claim as output, output.replacing() as hidden, hidden.open("wb") as file:
        yield file.write


def _data(query: str, run: QueryOutput, output: str | None) -> dict[str, Any]:
    return {
        "query": query, "events": sum(run.events.values()), "sources": run.events, "results": str(run.lines),
        "bad": run.bad, "late": run.late, "seconds": round(run.seconds, 3), "output": output,
    }  # fmt: skip


def _print(run: QueryOutput, output: str | None) -> None:
    """Print the summary: beside the lines if these are on stdout."""
    console = err() if output is None else out()
    facts = {
        "events": ", ".join(f"{number(value)} {name}" for name, value in run.events.items()),
        "lines": number(run.lines),
        "too late": plural(run.late, "event"),
        "seconds": f"{run.seconds:,.2f}",
    }
    if output is not None:
        facts["output"] = output
    print_facts(console, facts)
    for name, value in run.bad.items():
        if value:
            print_warning(f"{number(value)} {name}, left out")
