"""Where things are said: results on stdout; errors, warnings and progress on stderr."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.text import Text

DEBUG = "TRELLIS_DEBUG"
UNBOUNDED = 10_000  # columns of an output that is no terminal: nothing is cut or wrapped

Step = Callable[[str], None]


class _Out(Console):
    def on_broken_pipe(self) -> None:
        raise BrokenPipeError  # rich would exit with code 1; the reader only has enough


def out() -> Console:
    """Return the console of results."""
    return _plain_console(sys.stdout)


def err() -> Console:
    """Return the console of errors and warnings."""
    return _plain_console(sys.stderr)


def _plain_console(file: object) -> Console:
    width = None if _is_terminal(file) else UNBOUNDED
    return _Out(file=file, width=width, markup=False, highlight=False, emoji=False, soft_wrap=True)  # type: ignore[arg-type]


def _is_terminal(file: object) -> bool:
    isatty = getattr(file, "isatty", None)
    return bool(isatty and isatty())


def debugging() -> bool:
    """Whether the user wants to see tracebacks, and what Spark says."""
    return os.environ.get(DEBUG, "") not in ("", "0")


def print_error(message: str) -> None:
    """Print an error: `error:` and the sentence, with its hint on the next line."""
    err().print(Text.assemble(("error: ", "bold red"), message))


def print_warning(message: object) -> None:
    """Print a warning."""
    err().print(Text.assemble(("warning: ", "bold yellow"), str(message)))


_doing: list[str] = []


def _remember(what: str) -> None:
    _doing[:] = [what]


def doing() -> str | None:
    """Return what is being done, or was when it failed, if that is known."""
    return _doing[0] if _doing else None


@contextmanager
def progress(wanted: bool) -> Iterator[Step]:
    """Give a function that tells what is being done now; on a terminal a line shows it, with the time it takes."""
    if not wanted or not _is_terminal(sys.stderr):
        yield _remember
        return
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    # A descriptor of its own: Spark's start bends the usual one.
    with open(os.dup(sys.stderr.fileno()), "w", encoding="utf-8") as file:
        columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
        with Progress(*columns, console=Console(file=file), transient=True) as shown:
            task = shown.add_task("starting", total=None)

            def show(what: str) -> None:
                _remember(what)
                shown.update(task, description=what)

            yield show


@contextmanager
def silence() -> Iterator[None]:
    """Send away what a process that is started inside ever writes, unless the user debugs."""
    if debugging():
        yield
        return
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    kept = [os.dup(1), os.dup(2)]
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        yield
    finally:
        for descriptor, number in zip(kept, (1, 2), strict=True):
            os.dup2(descriptor, number)
            os.close(descriptor)
        os.close(nowhere)


def give_up_stdout() -> None:
    """Send what is still to be written to stdout nowhere, since nobody reads it."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)


def shown_path(path: str) -> str:
    """Return a path as it is shown: a directory ends with a slash."""
    return path.rstrip("/") + "/" if Path(path).is_dir() else path
