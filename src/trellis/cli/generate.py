"""`trellis generate`: sample streams of any size, from a seed; a command for each kind, with the kind's options."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from trellis.cli.console import out, progress
from trellis.cli.show import plural


class Kinds(TyperGroup):
    """The kinds of streams as commands; made when they are asked for, since the generators need NumPy and Arrow."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of the kinds."""
        return list(self._kinds())

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return the command of a kind."""
        return self._kinds().get(cmd_name)

    def _kinds(self) -> Any:
        if not self.commands:
            from trellis.io.generate import FOLDERS, KINDS

            self.commands.update({kind: _command(kind) for kind in (*KINDS, *FOLDERS)})
        return self.commands


def generate_app() -> typer.Typer:
    """Return the group of commands."""
    app = typer.Typer(cls=Kinds, rich_markup_mode="markdown")
    app.callback(help="Make a sample stream of events from a seed.")(lambda: None)
    return app


def _command(kind: str) -> Any:
    from trellis.io.generate import FOLDERS, KINDS

    doc = inspect.getdoc(KINDS.get(kind) or FOLDERS[kind]) or ""
    app = typer.Typer(rich_markup_mode="markdown", add_completion=False)
    app.command(name=kind, help=doc.partition("\n\nParameters\n")[0])(_function(kind))
    return typer.main.get_command(app)


def _function(kind: str) -> Callable[..., None]:
    """Return the function of a command, whose signature tells the options of the kind."""
    from trellis.io.generate import options_of

    def generate(events: int, seed: int, target: str, overwrite: bool, quiet: bool, **options: object) -> None:
        _generate(kind, events, seed, target, overwrite, quiet, options)

    fixed = [
        _parameter("events", int, inspect.Parameter.empty, "--events", "How many events.", metavar="N"),
        _parameter("seed", int, 0, "--seed", "The same seed and options give the same events.", metavar="S"),
        _parameter("target", str, inspect.Parameter.empty, "--out", _target(kind), metavar=_places(kind)),
        _parameter("overwrite", bool, False, "--overwrite", "Replace what is there already."),
        _parameter("quiet", bool, False, "--quiet", "Print nothing."),
    ]  # fmt: skip
    own = [_parameter(x.name, x.type, x.default, "--" + x.name.replace("_", "-"), x.help) for x in options_of(kind)]
    generate.__signature__ = inspect.Signature([*fixed[:3], *own, *fixed[3:]])  # type: ignore[attr-defined]
    return generate


def _places(kind: str) -> str:
    from trellis.io.generate import FOLDERS

    return "DIR" if kind in FOLDERS else "FILE"


def _target(kind: str) -> str:
    if _places(kind) == "DIR":
        return "The directory to write: friendships.dat, posts.dat, comments.dat and likes.dat."
    return "The file to write: .parquet, .csv, .tsv, .json, .jsonl or .orc; text also with .gz behind."


def _parameter(
    name: str, kind: type, default: object, flag: str, help: str, metavar: str | None = None
) -> inspect.Parameter:
    option = typer.Option(flag, help=help, metavar=metavar)
    annotation = Annotated[kind, option]  # type: ignore[valid-type]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _generate(
    kind: str, events: int, seed: int, target: str, overwrite: bool, quiet: bool, options: dict[str, object]
) -> None:
    from trellis.io.claims import claimed
    from trellis.io.generate import FOLDERS, generate_table
    from trellis.io.generate.social import write_social
    from trellis.io.write import claimed_file, write_table

    claim = claimed(target, overwrite=overwrite) if kind in FOLDERS else claimed_file(target, overwrite)
    with progress(not quiet) as step, claim as output:
        step(f"making {plural(events, 'event')}")
        if kind in FOLDERS:
            tables = FOLDERS[kind](events, seed, **options)
            number = sum(table.num_rows for table in tables.values())
            step(f"writing {target}")
            write_social(tables, output)
        else:
            table = generate_table(kind, events, seed, **options)
            number = table.num_rows
            step(f"writing {target}")
            write_table(table, output)
    if not quiet:
        out().print(f"{plural(number, 'event')} of kind {kind}, seed {seed}: {target}")
