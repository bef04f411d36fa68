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
from trellis.engines.spark.stream.processor import PAGES
from trellis.engines.spark.stream.stateful import found_rows
from trellis.events.table_bytes import unpacked
from trellis.streams.bucket import Bucket
from trellis.streams.calendar import END
from trellis.streams.commit_log import FLUSH
from trellis.streams.memory_store import MemoryStore, Page
from trellis.streams.query_group import QueryGroup
from trellis.streams.stream_output import WINDOWS

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
                    bucket = Bucket(self.group, _store_of(table.slice(begin, end - begin)))
                    for row in found_rows(bucket.close(END), self.writer, FLUSH):
                        about = dict(zip(FOUND_ARROW.names, row, strict=True))
                        yield pa.RecordBatch.from_pylist([about], schema=FOUND_ARROW)


def _store_of(rows: pa.Table) -> MemoryStore:
    """Return the state of a bucket that was read; what is stored in it is lost."""
    chunks: list[pa.Table] = []
    texts: dict[str, str] = {}
    pages: dict[Page, str] = {}
    for variable, value in zip(rows["variable"].to_pylist(), rows["value"].to_pylist(), strict=True):
        if variable == "chunks":
            chunks.append(unpacked(value))
        elif variable.startswith(PAGES):
            _, space, number = variable.split("/")
            pages[int(space), int(number)] = value.decode()
        else:
            texts[variable] = value.decode()
    return MemoryStore(chunks, texts.get("note"), pages, texts.get("ranks"))


def page_name(space: Any, number: Any) -> str:
    """Return the name of a page of rank counters among the variables of the state; also for `format_string`."""
    return f"{PAGES}/{space}/{number}"
