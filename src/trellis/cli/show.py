"""Rows and numbers on the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from trellis.results.display import ShownColumns, about, moment, number, shown, shown_in_line

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["all_digits", "moment", "number", "one_line", "plural", "print_facts", "print_rows"]


def print_rows(console: Console, rows: pa.Table, wide: bool = False) -> None:
    """Print rows as a table; columns that do not fit are left out, and named below, unless it is to be `wide`."""
    columns = ShownColumns(rows, None if wide else console.width)
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in columns.cells:
        # A plain text, since brackets would be markup.
        side = "right" if name in columns.numbers else "left"
        table.add_column(Text(shown_in_line(name)), justify=side, no_wrap=True)  # type: ignore[arg-type]
    for row in zip(*columns.cells.values(), strict=True):
        table.add_row(*map(Text, row))
    if wide:
        console.width = max(console.width, console.measure(table).maximum)
    console.print(table)
    if columns.left_out:
        names = ", ".join(map(shown_in_line, columns.left_out))
        console.print(f"without {names}, for which the terminal is too narrow")


def all_digits(value: int) -> str:
    """Return a number with all its digits, and its size where they are many."""
    return f"{value:,}" if value < 10**15 else f"{value} (about {about(value)})"


def print_facts(console: Console, facts: dict[str, str]) -> None:
    """Print names and values under one another."""
    width = max(map(len, facts)) + 2
    for name, value in facts.items():
        console.print(Text.assemble((f"{shown_in_line(name):<{width}}", "dim"), shown(value)))


def plural(value: int, one: str, many: str | None = None) -> str:
    """Return a number with its noun."""
    return f"{number(value)} {one if value == 1 else many or one + 's'}"


def one_line(text: str) -> str:
    """Return a text as one line."""
    return " ".join(text.split())
