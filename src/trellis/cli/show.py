"""Rows and numbers, made short and readable."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from trellis.cli.console import shown, shown_in_line

if TYPE_CHECKING:
    import pyarrow as pa

AT_ONCE = 8  # elements of an array that are shown
WIDEST = 60  # characters of a cell
MOST_DIGITS = 24  # of a number in a table; a larger one is rounded there
NARROWEST = 16  # characters that a text is shortened to
DISPENSABLE = ("end_time", "window_end", "start_time")  # left out, in this order, where the terminal is narrow


def print_rows(console: Console, rows: pa.Table) -> None:
    """Print rows as a table; columns that do not fit are left out, and named below."""
    names = [n for n in rows.column_names if not _is_doubled(rows, n)]
    cells = {n: [_cell(v) for v in _values(rows, n)] for n in names}
    numbers = {n for n in names if all(isinstance(v, int | float | Decimal | None) for v in _values(rows, n))}
    left_out = _fit(cells, numbers, console.width)
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in cells:
        # A plain text, since brackets would be markup.
        table.add_column(Text(shown_in_line(name)), justify="right" if name in numbers else "left", no_wrap=True)
    for i in range(rows.num_rows):
        table.add_row(*(Text(column[i]) for column in cells.values()))
    console.print(table)
    if left_out:
        console.print(f"without {', '.join(map(shown_in_line, left_out))}, for which the terminal is too narrow")


def _fit(cells: dict[str, list[str]], numbers: set[str], width: int) -> list[str]:
    """Make columns fit: leave some out, then shorten texts, then leave out from the end; numbers are never cut.

    Return what was left out.
    """
    left_out: list[str] = []
    for name in DISPENSABLE:
        if _width(cells) > width and name in cells:
            del cells[name]
            left_out.append(name)
    while (over := _width(cells) - width) > 0 and len(cells) > 1:
        widths = {n: max(map(len, column), default=0) for n, column in cells.items() if n not in numbers}
        longest = max(widths, key=lambda n: widths[n], default=None)
        least = max(NARROWEST, len(longest)) if longest else 0
        if longest is not None and widths[longest] > least:
            to = max(least, widths[longest] - over)
            cells[longest] = [c if len(c) <= to else c[: to - 1] + "…" for c in cells[longest]]
        else:
            left_out.append(list(cells)[-1])
            del cells[left_out[-1]]
    return left_out


def _is_doubled(rows: pa.Table, name: str) -> bool:
    """Whether a column is the exact text of another one, in whose place it is shown."""
    return name.endswith("_text") and name.removesuffix("_text") in rows.column_names


def _values(rows: pa.Table, name: str) -> list[Any]:
    exact = f"{name}_text"
    if exact not in rows.column_names:
        return list(rows[name].to_pylist())
    return [None if v is None else Decimal(v) if "." in v else int(v) for v in rows[exact].to_pylist()]


def _width(cells: dict[str, list[str]]) -> int:
    return sum(max([len(shown_in_line(name)), *map(len, column)]) + 3 for name, column in cells.items()) + 1


def _cell(value: Any) -> str:
    text = shown_in_line(_shown(value))
    return text if len(text) <= WIDEST else text[: WIDEST - 1] + "…"


def _shown(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, list):
        return _array(value)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return number(value)
    if isinstance(value, float):
        return f"{value:,.6g}" if abs(value) < 1e6 else f"{value:,.2f}" if abs(value) < 1e15 else f"{value:g}"
    if isinstance(value, datetime):
        return moment(value)
    return str(value)


def _array(values: Sequence[Any]) -> str:
    """Return the first and the last elements of an array."""
    texts = [str(v) if isinstance(v, int) else _shown(v) for v in values]
    if len(texts) > AT_ONCE:
        texts = [*texts[: AT_ONCE - 3], "…", *texts[-2:]]
    return ", ".join(texts)


def moment(value: datetime) -> str:
    """Return a time, in UTC, as short as it can be."""
    text = value.replace(tzinfo=None).isoformat(sep=" ")
    return text.removesuffix(":00") if value.second == 0 and value.microsecond == 0 else text


def number(value: int) -> str:
    """Return a number with thousands separators, or its size where it has very many digits."""
    return f"{value:,}" if abs(value) < 10**MOST_DIGITS else _about(value)


def all_digits(value: int) -> str:
    """Return a number with all its digits, and its size where they are many."""
    return f"{value:,}" if value < 10**15 else f"{value} (about {_about(value)})"


def _about(value: int) -> str:
    digits = str(abs(value))
    return f"{'-' if value < 0 else ''}{digits[0]}.{digits[1:3]}e{len(digits) - 1}"


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
