"""XES event logs, read as a stream: a row an event, with the attributes of its trace as `case:…`.

Attributes keep their names (`concept:name`, `time:timestamp`), so a query writes them in backticks.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree

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
    except ElementTree.ParseError as problem:
        raise DataError(f"{source.path} is not an XES log: {problem}.", "It must be whole XML.") from None
    except (ValueError, OverflowError) as problem:
        raise DataError(f"{source.path} has a value that does not fit its type: {problem}.") from None
    except (OSError, pa.ArrowException) as problem:
        raise DataError(f"{source.path} cannot be read: {problem}.") from None
    table = columns_.table()
    if not table.num_columns:
        raise DataError(f"{source.path} has no events.")
    check_columns(source.path, table.column_names, columns)
    return table if columns is None else table.select(columns)


def _read(stream: Any, columns: _Columns) -> None:
    """Go through a log; what was read is forgotten at the end of each trace."""
    parser: Any = ElementTree.XMLPullParser(["start", "end"])
    depth, log = 0, None
    of_trace: dict[str, tuple[str, str]] = {}
    while True:
        block = stream.read(1 << 20)
        if block:
            parser.feed(bytes(block))
        else:
            parser.close()
        for event, element in parser.read_events():
            name = element.tag.rpartition("}")[2]
            if event == "start":
                depth += 1
                log = element if log is None else log
                of_trace = {} if name == "trace" else of_trace
                continue
            depth -= 1
            if depth == 2 and name in KINDS:
                of_trace[CASE + element.get("key", "")] = (name, element.get("value", ""))
            elif name == "event" and depth in (1, 2):
                own = {a.get("key", ""): (a.tag.rpartition("}")[2], a.get("value", "")) for a in element}
                columns.add(own | (of_trace if depth == 2 else {}))
                element.clear()
            elif depth == 1 and log is not None:
                log.clear()
        if not block:
            return


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
