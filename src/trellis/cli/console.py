"""Where things are said: results on stdout; errors, warnings and progress on stderr."""

from __future__ import annotations

import codecs
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from copy import copy
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.segment import Segment
from rich.text import Text

from trellis.errors import TrellisError
from trellis.results.display import shown, shown_in_line

DEBUG = "TRELLIS_DEBUG"
UNBOUNDED = 10_000  # columns of an output that is not a terminal: nothing is cut or wrapped

Step = Callable[[str], None]


class ShownConsole(Console):
    """A console that shows text as it is, and never obeys markup or control characters in it."""

    def on_broken_pipe(self) -> None:
        """Go on as after the last line: rich would exit with code 1, but the reader only has enough."""
        raise BrokenPipeError

    def print(self, *objects: Any, **options: Any) -> None:
        """Print texts and what rich makes of them."""
        super().print(*(shown(one) if isinstance(one, str) else one for one in objects), **options)

    def render(self, renderable: Any, options: Any = None) -> Iterator[Segment]:
        """Yield pieces of text; what rich itself has to tell the terminal stands in pieces of their own."""
        for piece in super().render(renderable, options):
            yield piece if piece.control or piece.text == "\n" else Segment(shown(piece.text), piece.style)


def out() -> Console:
    """Return the console of results."""
    return _plain_console(sys.stdout)


def err() -> Console:
    """Return the console of errors and warnings."""
    return _plain_console(sys.stderr)


def _plain_console(file: object) -> Console:
    width = None if _is_terminal(file) else UNBOUNDED
    return ShownConsole(file=file, width=width, markup=False, highlight=False, emoji=False, soft_wrap=True)  # type: ignore[arg-type]


def _is_terminal(file: object) -> bool:
    isatty = getattr(file, "isatty", None)
    return bool(isatty and isatty())


def debugging() -> bool:
    """Whether the user wants to see tracebacks, and what Spark says."""
    return os.environ.get(DEBUG, "") not in ("", "0")


def print_error(message: str) -> None:
    """Print an error: `error:` and the sentence, with its hint on the next line."""
    err().print(Text.assemble(("error: ", "bold red"), shown(message)))


def print_warning(message: object) -> None:
    """Print a warning."""
    err().print(Text.assemble(("warning: ", "bold yellow"), shown_in_line(str(message))))


def message_of(error: TrellisError) -> str:
    """Return the message of an error: a sentence and a hint, a line each, and the place in a query if it is of one."""
    printable = copy(error)
    printable.what = shown_in_line(error.what)
    printable.hint = None if error.hint is None else shown_in_line(error.hint)
    return str(printable)


def line_writer() -> Callable[[memoryview], object]:
    """Return a function that writes lines of data to stdout: as they are, but for what a terminal would obey."""
    sys.stdout.flush()
    if not _is_terminal(sys.stdout):
        return sys.stdout.buffer.write
    decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")
    return lambda lines: sys.stdout.write(shown(decoder.decode(bytes(lines))))


_doing: list[str] = []


def now_doing(what: str) -> None:
    """Remember the step that is being done."""
    _doing[:] = [what]


def doing() -> str | None:
    """Return the step that is being done, or that failed, if it is known."""
    return _doing[0] if _doing else None


_details: list[Callable[[], str]] = []


@contextmanager
def with_details(details: Callable[[], str]) -> Iterator[None]:
    """Show beside each step how far it is, by a function that is called now and then from another thread."""
    _details.append(details)
    try:
        yield
    finally:
        _details.remove(details)


def _detail() -> str:
    """Return how far the step is, if that is known."""
    for details in _details[-1:]:
        with suppress(Exception):  # of an engine that is about to end
            return details()
    return ""


@contextmanager
def progress(wanted: bool) -> Iterator[Step]:
    """Give a function that tells what is being done now; on a terminal a line shows it, with the time it takes."""
    if not wanted or not _is_terminal(sys.stderr):
        yield now_doing
        return
    from rich.progress import Progress, ProgressColumn, SpinnerColumn, Task, TextColumn, TimeElapsedColumn

    class DetailColumn(ProgressColumn):
        """How far the step is, asked twice a second at most."""

        max_refresh = 0.5

        def render(self, task: Task) -> Text:
            return Text(shown_in_line(_detail()), style="bright_black")

    # A descriptor of its own: Spark's start bends the usual one.
    with open(os.dup(sys.stderr.fileno()), "w", encoding="utf-8") as file:
        said = (TextColumn("{task.description}", markup=False), DetailColumn())
        columns = (SpinnerColumn(), *said, TimeElapsedColumn())
        with Progress(*columns, console=ShownConsole(file=file), transient=True) as bar:
            task = bar.add_task("starting", total=None)

            def show(what: str) -> None:
                now_doing(what)
                bar.update(task, description=shown_in_line(what))

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
