"""`trellis`: the commands, and what the process says and returns when something goes wrong."""

from __future__ import annotations

import errno
import gc
import logging
import signal
import sys
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import trellis
from trellis.cli.archive import archive_app
from trellis.cli.bench import bench
from trellis.cli.console import DEBUG, debugging, doing, err, give_up_stdout, message_of, print_error, print_warning
from trellis.cli.count import count
from trellis.cli.demo import demo
from trellis.cli.detect import detect
from trellis.cli.explain import explain
from trellis.cli.generate import generate_app
from trellis.cli.graph import graph_app
from trellis.cli.report import report
from trellis.cli.stream import stream
from trellis.cli.why import why
from trellis.errors import MemoryExhausted, TrellisError, TrellisWarning
from trellis.memory import exhausted

WORKED, FAILED, MISTAKE, INTERRUPTED = 0, 1, 2, 130
# The class that is above all mistakes in the use of options, wherever Typer keeps it.
_OptionMistake: type[Exception] = typer.BadParameter.__bases__[0]


class Commands(TyperGroup):
    """The commands; `main` turns exceptions into a sentence and an exit code."""

    def main(
        self, args: Sequence[str] | None = None, prog_name: str | None = None, complete_var: str | None = None,
        standalone_mode: bool = True, windows_expand_args: bool = True, **extra: Any,
    ) -> Any:  # fmt: skip
        """Run a command and, if standalone, exit with its code."""

        def work() -> Any:
            name = prog_name or "trellis"
            return super(Commands, self).main(args, name, complete_var, False, windows_expand_args, **extra)

        with _warnings_and_logs():
            code = _code_of(work)
        if standalone_mode:
            sys.exit(code)
        return code


def _code_of(work: Any) -> int:
    """Run a command and return its exit code; say on stderr why, if it is not 0."""
    try:
        code = work() or WORKED
        sys.stdout.flush()
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except BrokenPipeError:
        give_up_stdout()
        return WORKED
    except SystemExit as end:  # of the help's own console, which would tell the reader who has enough of a failure
        if not isinstance(end.__context__, BrokenPipeError):
            raise
        return WORKED
    except (MemoryError, MemoryExhausted) as problem:
        return _printed(_memory(problem), MISTAKE)
    except TrellisError as error:
        return _printed(message_of(error), MISTAKE)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            return _printed(_unexpected(error), FAILED)
        give_up_stdout()
        return _printed(f"there is no room for the output: {error.strerror}\nMake room, and run it again.", MISTAKE)
    except _OptionMistake as error:
        return _printed(_option_mistake(error), MISTAKE)
    except Exception as error:
        return _printed(_unexpected(error), FAILED)
    if code == INTERRUPTED:
        err().print("interrupted")
    return int(code)


def _printed(message: str, code: int) -> int:
    if debugging():
        err().print(traceback.format_exc())
    print_error(message)
    return code


def _memory(problem: MemoryError | MemoryExhausted) -> str:
    """Return the message about memory that ran out, with the step that was being done."""
    error = problem if isinstance(problem, MemoryExhausted) else exhausted(problem)
    what = doing()
    return str(error) if what is None else f"while {what}: {error}"


def _option_mistake(error: Any) -> str:
    context = getattr(error, "ctx", None)
    hint = f"\nTry `{context.command_path} --help`." if context is not None else ""
    return f"{error.format_message().replace('Value error, ', '')}{hint}"


def _unexpected(error: Exception) -> str:
    lines = str(error).strip().splitlines() or [""]
    what = f"{type(error).__name__}: {lines[0]}".rstrip(": ")
    return what if debugging() else f"{what}\nThis should not happen; {DEBUG}=1 in the environment shows where it did."


@contextmanager
def _warnings_and_logs() -> Iterator[None]:
    """Print our own warnings as lines, and keep those of others and their logs to themselves unless the user debugs."""
    with warnings.catch_warnings():
        if not debugging():
            warnings.simplefilter("ignore")
            warnings.filterwarnings("always", category=TrellisWarning)
            logging.getLogger().addHandler(_NOWHERE)
        said: set[str] = set()

        def show(message: Warning | str, *_: Any, **__: Any) -> None:
            if str(message) not in said:
                print_warning(message)
            said.add(str(message))

        warnings.showwarning = show
        try:
            yield
        finally:
            logging.getLogger().removeHandler(_NOWHERE)


_NOWHERE = logging.NullHandler()

app = typer.Typer(
    cls=Commands, invoke_without_command=True, add_completion=True, rich_markup_mode="markdown",
    pretty_exceptions_enable=False, context_settings={"help_option_names": ["-h", "--help"]},
)  # fmt: skip
QUERIES = """
Queries, such as:

- rising prices, `PATTERN Trade+ t[] WHERE [symbol] AND NEXT(t).price > t.price WITHIN 1 hour SLIDE 10 minutes`

- an event, then some of a kind, `PATTERN SEQ(Login a, Transfer+ t[]) WHERE [user] AND t.amount > a.limit WITHIN 1 day`

- one or the other, and what must not be, `PATTERN SEQ(Order o, NOT(Refund r), OR(Ship s, Cancel c)) WHERE [order_id]`
"""
app.command(epilog=QUERIES)(explain)
app.command(epilog=QUERIES)(detect)
app.command(epilog=QUERIES)(count)
app.command(epilog=QUERIES)(stream)
app.add_typer(archive_app(), name="archive")
app.add_typer(graph_app(), name="graph")
app.add_typer(generate_app(), name="generate")
app.command(epilog=QUERIES)(why)
app.command(epilog=QUERIES)(report)
app.command()(bench)
app.command()(demo)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"trellis {trellis.__version__}")
        raise typer.Exit


@app.callback()
def _trellis(
    ctx: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version.")
    ] = False,
) -> None:
    """Find event trends in event data of any size, on Spark or in this process."""
    if ctx.invoked_subcommand is None:
        typer.echo(ctx.get_help())


def main() -> None:
    """Run the command line."""
    sys.set_int_max_str_digits(0)  # exact counts may have more digits than Python prints by default
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _exit)
    try:
        app()
    except KeyboardInterrupt:  # before a command has begun, or after its end
        sys.exit(INTERRUPTED)
    finally:
        gc.freeze()  # the process ends: nothing is searched for garbage any more


def _exit(number: int, _: Any) -> None:
    """End as after an error, so that nothing half-written and no Spark is left behind."""
    for one in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(one, signal.SIG_IGN)  # the end itself is not interrupted
    sys.exit(128 + number)


if __name__ == "__main__":
    main()
