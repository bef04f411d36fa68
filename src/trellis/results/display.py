"""Rows as people read them: cells that keep their digits, text tables that fit a width, and tables of HTML."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

AT_ONCE = 8  # elements of an array that are shown
WIDEST = 60  # characters of a cell
MOST_DIGITS = 24  # of a number in a table; a larger one is rounded there
NARROWEST = 16  # characters that a text is shortened to
DISPENSABLE = ("window_end", "rank", "window_start", "end_time", "start_time")  # left out first, where it is narrow
ROWS = 10  # of a table that shows itself

# Control characters but tabs and ends of lines, marks of direction, separators of lines, and halves of characters.
_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")


def shown(text: str) -> str:
    r"""Return lines of text of which a terminal shows every character and obeys none: `\u001b` for it, as in JSON."""
    return _UNSEEN.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def shown_in_line(text: str) -> str:
    """Return a text as `shown` does, on one line."""
    return shown(text.replace("\n", "\\n").replace("\t", "\\t"))


# --- Values -----------------------------------------------------------------------------------------------------


def value_text(value: Any) -> str:
    """Return a value as people read it, on one line and with all its digits; an array says its length."""
    if value is None:
        return "NULL"
    if isinstance(value, list):
        return array_text(value)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return number(value)
    if isinstance(value, float):
        return f"{value:,}".removesuffix(".0") if abs(value) < 1e16 else f"{value}"
    if isinstance(value, datetime):
        return moment(value)
    return str(value)


def array_text(values: Sequence[Any], width: int | None = None) -> str:
    """Return the first and the last elements of an array and, where some are left out, how many it has.

    With a `width` as many are left out as it takes to fit; one element is always shown.
    """
    texts = [str(v) if isinstance(v, int) and not isinstance(v, bool) else shown_in_line(value_text(v)) for v in values]
    whole = ", ".join(texts)
    if len(texts) <= AT_ONCE and (width is None or len(whole) <= width):
        return whole
    for heads in range(min(len(texts), AT_ONCE) - 3, 0, -1):
        for tails in (2, 1):
            if heads + tails < len(texts):
                short = f"{', '.join([*texts[:heads], '…', *texts[-tails:]])} ({len(texts):,})"
                if width is None or len(short) <= width:
                    return short
    if len(texts) == 1:
        return whole
    return f"{texts[0]}, … ({len(texts):,})"


def moment(value: datetime) -> str:
    """Return a time, in UTC, as short as it can be."""
    text = value.replace(tzinfo=None).isoformat(sep=" ")
    return text.removesuffix(":00") if value.second == 0 and value.microsecond == 0 else text


def number(value: int) -> str:
    """Return a number with thousands separators, or its size where it has very many digits."""
    return f"{value:,}" if abs(value) < 10**MOST_DIGITS else about(value)


def about(value: int) -> str:
    """Return the size of a number: `1.23e45`."""
    from trellis.digits import digits_of

    digits = digits_of(abs(value))
    return f"{'-' if value < 0 else ''}{digits[0]}.{digits[1:3]}e{len(digits) - 1}"


def python_values(column: pa.ChunkedArray | pa.Array) -> list[Any]:
    """Return the values of a column as Python has them; moments that it cannot tell as Arrow writes them."""
    import pyarrow as pa

    try:
        return list(column.to_pylist())
    except (ValueError, OverflowError):
        return list(column.cast(pa.string()).to_pylist())


# --- Columns ----------------------------------------------------------------------------------------------------


class ShownColumns:
    """The columns of rows as texts, in the order of the rows' own, fitted to a width.

    Attributes
    ----------
    cells
        The texts of each column that is shown.
    numbers
        The columns of numbers, which stand at the right.
    left_out
        The columns for which there is no room.
    """

    def __init__(self, rows: pa.Table, width: int | None = None) -> None:
        values = {n: exact_values(rows, n) for n in rows.column_names if not _is_doubled(rows.column_names, n)}
        self.numbers = {
            n for n, column in values.items() if all(isinstance(v, int | float | Decimal | None) for v in column)
        }
        self.cells = {n: [_cell(v) for v in column] for n, column in values.items()}
        self._values = values
        self.left_out: list[str] = []
        if width is not None:
            self._fit(width)

    def _fit(self, width: int) -> None:
        """Make columns fit: shorten texts and arrays, leave out what matters less; numbers are never cut."""
        for name in DISPENSABLE[:2]:
            if self._width > width:
                self._leave_out(name)
        self._shorten(width)
        for name in DISPENSABLE[2:]:
            if self._width > width:
                self._leave_out(name)
                self._shorten(width)
        while self._width > width and len(self.cells) > 1:
            self._leave_out(list(self.cells)[-1])
            self._shorten(width)

    def _shorten(self, width: int) -> None:
        while (over := self._width - width) > 0:
            widths = {n: max(map(len, c), default=0) for n, c in self.cells.items() if n not in self.numbers}
            longest = max(widths, key=lambda n: widths[n], default=None)
            least = max(NARROWEST, len(shown_in_line(longest))) if longest is not None else 0
            if longest is None or widths[longest] <= least:
                return
            to = max(least, widths[longest] - over)
            shorter = [_cell(value, to) for value in self._values[longest]]
            if shorter == self.cells[longest]:
                return
            self.cells[longest] = shorter

    def _leave_out(self, name: str) -> None:
        if name in self.cells and len(self.cells) > 1:
            del self.cells[name]
            self.left_out.append(name)

    @property
    def _width(self) -> int:
        return sum(max([len(shown_in_line(name)), *map(len, c)]) + 3 for name, c in self.cells.items()) + 1


def _is_doubled(names: Sequence[str], name: str) -> bool:
    """Whether a column is the exact text of another one, in whose place it is shown."""
    return name.endswith("_text") and name.removesuffix("_text") in names


def exact_values(rows: pa.Table, name: str) -> list[Any]:
    """Return the values of a column; those that have all their digits in a column of text, from there."""
    from trellis.digits import number_of

    texts = rows[f"{name}_text"].to_pylist() if f"{name}_text" in rows.column_names else None
    if texts is None:
        return python_values(rows[name])
    return [None if v is None else Decimal(v) if "." in v else _signed(v, number_of) for v in texts]


def _signed(text: str, number_of: Any) -> int:
    return -number_of(text[1:]) if text.startswith("-") else number_of(text)


def _cell(value: Any, width: int = WIDEST) -> str:
    if isinstance(value, list):
        text = array_text(value, width)
        if len(text) > width and text.endswith(f"({len(value):,})"):  # the length stays, whatever is cut
            length = text[text.rindex(" (") :]
            return text[: max(1, width - len(length) - 1)] + "…" + length
    else:
        text = shown_in_line(value_text(value))
    return text if len(text) <= width else text[: width - 1] + "…"


# --- Tables -----------------------------------------------------------------------------------------------------


def text_table(rows: pa.Table, width: int) -> str:
    """Return the first rows as lines of text that are no wider than `width`, and how many more there are."""
    shown_rows = ShownColumns(rows.slice(0, ROWS), width)
    columns = []
    for name, cells in shown_rows.cells.items():
        title = shown_in_line(name)
        size = max([len(title), *map(len, cells)])
        right = name in shown_rows.numbers
        columns.append([t.rjust(size) if right else t.ljust(size) for t in (title, *cells)])
    lines = ["   ".join(cells).rstrip() for cells in zip(*columns, strict=True)] if columns else []
    if rows.num_rows > ROWS:
        lines.append(f"… {rows.num_rows - ROWS:,} more")
    if shown_rows.left_out:
        lines.append(f"without {', '.join(map(shown_in_line, shown_rows.left_out))}")
    return "\n".join(lines) if rows.num_rows else f"no rows ({', '.join(map(shown_in_line, rows.column_names))})"


STYLE = (
    "<style>.trellis table{border-collapse:collapse}.trellis th,.trellis td{padding:.15em .6em;text-align:left;"
    "border-bottom:1px solid rgba(128,128,128,.3);white-space:nowrap}.trellis .n{text-align:right;"
    "font-variant-numeric:tabular-nums}.trellis .facts{opacity:.75;margin:.3em 0}.trellis pre{line-height:1.35}</style>"
)


def html_table(rows: pa.Table, most: int = ROWS) -> str:
    """Return the first rows as a table of HTML, and how many more there are; markup in values is shown, not obeyed."""
    shown_rows = ShownColumns(rows.slice(0, most))
    kinds = {name: ' class="n"' if name in shown_rows.numbers else "" for name in shown_rows.cells}
    head = "".join(f"<th{kinds[n]}>{escape(shown_in_line(n))}</th>" for n in shown_rows.cells)
    body = "".join(
        "<tr>" + "".join(f"<td{kinds[n]}>{escape(t)}</td>" for n, t in zip(kinds, row, strict=True)) + "</tr>"
        for row in zip(*shown_rows.cells.values(), strict=True)
    )
    more = f'<p class="facts">{rows.num_rows - most:,} more rows</p>' if rows.num_rows > most else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def html_page(*parts: str) -> str:
    """Return parts of HTML in one block with the style of tables."""
    return f'<div class="trellis">{STYLE}{"".join(parts)}</div>'


def html_facts(facts: Mapping[str, str]) -> str:
    """Return facts by name as one line of HTML."""
    return f'<p class="facts">{" · ".join(f"{escape(name)} {escape(value)}" for name, value in facts.items())}</p>'
