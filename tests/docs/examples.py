"""The examples of a page: fenced blocks `events`, `query`, then `result` or `error`.

A query runs over the nearest `events` above it. Tables are cells between bars, their first line the columns. The
columns `time`, `id` and `type`, where they are there, are time, event id and type; `seq` breaks ties. A
line `-- with name = value` of the query gives a parameter (or `max_trends`). A result shows some of the columns,
`result all` every one.
"""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

BLOCK = re.compile(r"^```(events|query|result|error)( all)?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
GIVEN = re.compile(r"^-- with (\w+) = (.+)$", re.MULTILINE)
NO_ROWS = "no rows"

Row = dict[str, Any]


@dataclass
class Example:
    """A query, what it runs over, and what the page says of it."""

    line: int  # where the query begins
    section: str
    events: str
    query: str
    result: str | None = None
    error: str | None = None
    all_columns: bool = False
    given: dict[str, Any] = field(default_factory=dict)

    @property
    def tables(self) -> list[Row] | dict[str, list[Row]]:
        """The events: rows, or rows by type where the block has several tables."""
        parts = re.split(r"\n\s*\n", self.events.strip())
        if "|" in parts[0].partition("\n")[0]:
            return rows_of(parts[0])
        return {name.rstrip(":"): rows_of(table) for name, _, table in (part.partition("\n") for part in parts)}

    @property
    def options(self) -> dict[str, Any]:
        """The columns that are time, id and type."""
        tables = self.tables
        columns = list((tables if isinstance(tables, list) else next(iter(tables.values())))[0])
        roles = {"time": "time", "event_id": "id", "type": "type"}
        named: dict[str, Any] = {role: column for role, column in roles.items() if column in columns}
        return {**named, "time": ("time", "seq")} if "seq" in columns else named

    @property
    def wanted(self) -> tuple[list[str], list[list[str]]]:
        """The columns and the cells of the result."""
        assert self.result is not None
        lines = self.result.strip().splitlines()
        if lines == [NO_ROWS]:
            return [], []
        return cells(lines[0]), [cells(line) for line in lines[1:]]


def examples(path: Path) -> list[Example]:
    """All examples of a page."""
    text = path.read_text(encoding="utf-8")
    found: list[Example] = []
    events = ""
    for block in BLOCK.finditer(text):
        kind, everything, body = block.groups()
        before = text[: block.start()]
        if kind == "events":
            events = body
        elif kind == "query":
            section = re.findall(r"^#+ (.*)$", before, re.MULTILINE)[-1]
            given = {name: value_of(value.strip()) for name, value in GIVEN.findall(body)}
            found.append(Example(before.count("\n") + 1, section, events, body, given=given))
        elif kind == "result":
            found[-1].result, found[-1].all_columns = body, bool(everything)
        else:
            found[-1].error = body
    return found


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.split("|")]


def rows_of(table: str) -> list[Row]:
    header, *lines = table.strip().splitlines()
    return [dict(zip(cells(header), map(value_of, cells(line)), strict=True)) for line in lines]


def value_of(text: str) -> Any:
    """What a cell stands for: NULL, a boolean, a number, a time in UTC, or itself."""
    words: dict[str, Any] = {"NULL": None, "true": True, "false": False}
    if text in words:
        return words[text]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    if re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d(:\d\d)?", text):
        return dt.datetime.fromisoformat(text).replace(tzinfo=dt.UTC)
    return text


def shown(value: Any) -> str:
    """How a page shows a value."""
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).lower()
        case list() | tuple():
            return f"[{', '.join(map(shown, value))}]"
        case dt.datetime():
            moment = value if value.tzinfo is None else value.astimezone(dt.UTC)
            return moment.strftime("%Y-%m-%d %H:%M:%S").removesuffix(":00")
        case Decimal():
            return format(value, "f")
    return str(value)
