"""XES event logs, read as a stream: a row per event, with the attributes of its trace as `case:…`.

Attributes keep their names (`concept:name`, `time:timestamp`), so a query writes them in backticks.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any
from xml.parsers import expat

import pyarrow as pa

from trellis.errors import DataError
from trellis.io.failures import check_columns
from trellis.io.sources import Source, open_source

ROWS = 1 << 16  # that are held as Python's objects
CASE = "case:"
TIMES = pa.timestamp("us", tz="UTC")


def _moment(text: str) -> dt.datetime:
    moment = dt.datetime.fromisoformat(text)
    return moment.replace(tzinfo=dt.UTC) if moment.tzinfo is None else moment


def _flag(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError(f"`{text}` is neither true nor false")
    return text.lower() == "true"


KINDS: dict[str, tuple[pa.DataType, Callable[[str], Any]]] = {
    "string": (pa.string(), str),
    "id": (pa.string(), str),
    "date": (TIMES, _moment),
    "int": (pa.int64(), int),
    "float": (pa.float64(), float),
    "boolean": (pa.bool_(), _flag),
}


def read_xes(source: Source, columns: Any = None) -> pa.Table:
    """Read a log; one attribute that has several types is text."""
    columns_ = _Columns()
    try:
        with open_source(source) as stream:
            _read(stream, columns_)
        table = columns_.table()
    except expat.ExpatError as problem:
        raise DataError(f"{source.path} is not an XES log: {problem}.", "It must be whole XML.") from None
    except (ValueError, OverflowError) as problem:
        raise DataError(f"{source.path} has a value that does not fit its type: {problem}.") from None
    except (OSError, pa.ArrowException) as problem:
        raise DataError(f"{source.path} cannot be read: {problem}.") from None
    if not table.num_columns:
        raise DataError(f"{source.path} has no events.")
    check_columns(source.path, table.column_names, columns)
    return table if columns is None else table.select(columns)


def _read(stream: Any, columns: _Columns) -> None:
    """Go through a log; nothing of it is kept but the attributes of the trace and the event at hand."""
    parser = expat.ParserCreate()
    inside: list[str] = []
    of_trace: dict[str, tuple[str, str]] = {}
    own: dict[str, tuple[str, str]] = {}

    def start(tag: str, given: dict[str, str]) -> None:
        name = tag.rpartition(":")[2]
        above = inside[-1] if inside else ""
        if name == "trace":
            of_trace.clear()
        elif name == "event":
            own.clear()
        elif name in KINDS and above == "event":
            own[given.get("key", "")] = (name, given.get("value", ""))
        elif name in KINDS and above == "trace":
            of_trace[CASE + given.get("key", "")] = (name, given.get("value", ""))
        inside.append(name)

    def end(tag: str) -> None:
        if inside.pop() == "event":
            columns.add(own | of_trace if "trace" in inside else own)

    parser.StartElementHandler, parser.EndElementHandler = start, end
    while block := stream.read(1 << 20):
        parser.Parse(bytes(block), False)
    parser.Parse(b"", True)


class _Columns:
    """Rows that arrive with any attributes."""

    def __init__(self) -> None:
        self._kinds: dict[str, str] = {}
        self._texts: set[str] = set()
        self._values: dict[str, list[Any]] = {}
        self._rows = 0
        self._done: list[pa.Table] = []

    def add(self, row: dict[str, tuple[str, str]]) -> None:
        for name, (kind, text) in row.items():
            if kind not in KINDS:
                continue
            known = self._kinds.setdefault(name, kind)
            if known != kind and KINDS[known][0] != KINDS[kind][0]:
                self._texts.add(name)
            values = self._values.setdefault(name, [])
            values.extend([None] * (self._rows - len(values)))
            values.append(text)
        self._rows += 1
        if self._rows == ROWS:
            self._flush()

    def _flush(self) -> None:
        columns = {}
        for name, values in self._values.items():
            values.extend([None] * (self._rows - len(values)))
            columns[name] = pa.array(values, pa.string())
        if columns:
            self._done.append(pa.table(columns))
        elif self._rows:
            raise ValueError("events without attributes")
        self._values, self._rows = {}, 0

    def table(self) -> pa.Table:
        self._flush()
        if not self._done:
            return pa.table({})
        whole = pa.concat_tables(self._done, promote_options="default")
        for i, name in enumerate(whole.column_names):
            type_, read = KINDS[self._kinds[name]]
            if name not in self._texts and type_ != pa.string():
                values = [None if text is None else read(text) for text in whole.column(i).to_pylist()]
                whole = whole.set_column(i, name, pa.array(values, type_))
        return whole
