"""Results of a stream once they are decided: written where they are few, and those that only the end decides."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from trellis.engines.spark.session.failures import in_task
from trellis.engines.spark.split.rows import group_begins, whole_groups
from trellis.engines.spark.stream.files import FileWriter
from trellis.engines.spark.stream.stateful import PAGES, found_rows
from trellis.streams.bucket import Bucket
from trellis.streams.calendar import END
from trellis.streams.commit_log import FLUSH
from trellis.streams.query_group import QueryGroup
from trellis.streams.stream_output import WINDOWS
from trellis.streams.table_bytes import packed, unpacked

Result = TypeVar("Result")
AT_ONCE = 16  # files that are written side by side
FOUND_ARROW = pa.schema(
    [
        ("kind", pa.string()), ("query", pa.string()), ("rows", pa.int64()), ("name", pa.string()),
        ("payload", pa.binary()),
    ]
)  # fmt: skip


def reports_of(decided: pa.Table, writer: FileWriter, batch: str) -> list[dict[str, Any]]:
    """Write, in the driver, what tasks have decided and not written themselves because it is little.

    Return the files, those too that tasks have written, and how many rows there are of each kind.
    """
    reports: list[dict[str, Any]] = []
    held: dict[tuple[str, str], list[pa.Table]] = {}
    for kind, query, rows, name, payload in zip(
        *(decided.column(n).to_pylist() for n in FOUND_ARROW.names), strict=True
    ):
        if payload:
            held.setdefault((kind, query), []).append(unpacked(payload))
        else:
            reports.append(_report(kind, query, name, rows))

    def written(kind: str, query: str, tables: list[pa.Table]) -> dict[str, Any]:
        table = pa.concat_tables(tables, promote_options="permissive")
        name, rows = "", table.num_rows
        if rows and writer.takes(kind):
            name, rows = writer.write(kind, query, batch, table.to_batches())
        unlisted = pc.sum(pc.invert(table["listed"])).as_py() or 0 if kind == WINDOWS else 0
        return _report(kind, query, name, rows, unlisted)

    return reports + side_by_side(written, [(*key, tables) for key, tables in held.items()])


def side_by_side(work: Callable[..., Result], given: Sequence[tuple[Any, ...]]) -> list[Result]:
    """Return the answers of some work that waits for the disk, which takes several files in hardly more time than one.

    All of it ends before a mistake is raised.
    """
    if len(given) <= 1:
        return [work(*one) for one in given]
    with ThreadPoolExecutor(min(AT_ONCE, len(given))) as pool:
        waiting = [pool.submit(work, *one) for one in given]
    return [one.result() for one in waiting]


def _report(kind: str, query: str, name: str, rows: int, unlisted: int = 0) -> dict[str, Any]:
    return {"kind": kind, "query": query, "name": name, "rows": rows, "unlisted": unlisted}


@dataclass(frozen=True)
class StateFlusher:
    """Gives the results that the end of the input decides, from the rows of the state, those of a bucket together."""

    group: QueryGroup
    writer: FileWriter

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Take `bucket`, `variable` and `value` of the state."""
        with in_task():
            for table in whole_groups(batches, ["bucket"]):
                begins = [*group_begins(table, ["bucket"]).tolist(), table.num_rows]
                for begin, end in pairwise(begins):
                    bucket = Bucket(self.group, _Read(table.slice(begin, end - begin)))
                    for row in found_rows(bucket.close(END), self.writer, FLUSH):
                        columns = [[value] for value in row]
                        yield pa.RecordBatch.from_arrays(
                            [pa.array(c, fld.type) for c, fld in zip(columns, FOUND_ARROW, strict=True)],
                            schema=FOUND_ARROW,
                        )


class _Read:
    """State that was read; what is kept in it is lost."""

    def __init__(self, table: pa.Table) -> None:
        self._values: dict[str, list[bytes]] = {}
        for variable, value in zip(table["variable"].to_pylist(), table["value"].to_pylist(), strict=True):
            self._values.setdefault(variable, []).append(value)

    def chunks(self) -> list[pa.Table]:
        return [unpacked(chunk) for chunk in self._values.get("chunks", [])]

    def append(self, chunk: pa.Table) -> None:
        self._values.setdefault("chunks", []).append(packed(chunk))

    def replace(self, chunks: Sequence[pa.Table]) -> None:
        self._values["chunks"] = [packed(chunk) for chunk in chunks]

    def note(self) -> str | None:
        return self._text("note")

    def set_note(self, text: str) -> None:
        self._values["note"] = [text.encode()]

    def page(self, space: int, number: int) -> str | None:
        return self._text(page_name(space, number))

    def set_page(self, space: int, number: int, text: str | None) -> None:
        self._values[page_name(space, number)] = [] if text is None else [text.encode()]

    def take_old_ranks(self) -> str | None:
        text = self._text("ranks")
        self._values.pop("ranks", None)
        return text

    def _text(self, variable: str) -> str | None:
        found = self._values.get(variable)
        return found[0].decode() if found else None


def page_name(space: Any, number: Any) -> str:
    """Return the name of a page of rank counters among the variables of the state; also for `format_string`."""
    return f"{PAGES}/{space}/{number}"
