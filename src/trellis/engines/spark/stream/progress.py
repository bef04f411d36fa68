"""The progress that Spark tells of a stream: watermark, state, open windows, and the time of each stage."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trellis.streams.calendar import Calendar
from trellis.streams.query_group import QueryGroup

EPOCH = "1970-01-01T00:00:00"  # as Spark writes it
STAGE_NAMES = {
    "latestOffset": "files listed",
    "walCommit": "offsets written",
    "getBatch": "batch made",
    "queryPlanning": "planning",
    "addBatch": "work and log of the output",
    "commitOffsets": "commit written",
}
OF_STATE = {"allUpdatesTimeMs": "of tasks: Python and state", "commitTimeMs": "of tasks: state committed"}


def stage_times(progress: Mapping[str, Any]) -> dict[str, float]:
    """Return the seconds of each stage of a batch; those of tasks are sums over these, within the work."""
    told = progress.get("durationMs") or {}
    found = {said: float(told.get(name, 0)) / 1000 for name, said in STAGE_NAMES.items()}
    for name, said in OF_STATE.items():
        found[said] = sum(float(one.get(name, 0)) for one in progress.get("stateOperators", ())) / 1000
    return found


@dataclass(frozen=True)
class State:
    """How a group of queries stands.

    `moment` is the watermark in milliseconds, or in the unit of times that are not `temporal`; `stage_seconds` are
    those of the last batch that had events.
    """

    queries: tuple[str, ...]
    events_a_second: float
    watermark: str
    open_windows: int
    state_bytes: int
    moment: int | None
    temporal: bool
    stage_seconds: Mapping[str, float]


def state_of(group: QueryGroup, last: Mapping[str, Any], filled: Sequence[Mapping[str, Any]]) -> State:
    """Return how a group stands by what Spark told of its last batch, and of the last ones that had events."""
    names = tuple(one.name for one in group.queries)
    moments = last.get("eventTime") or {}
    size = state_bytes(last)
    speed = float(filled[-1].get("processedRowsPerSecond") or 0.0) if filled else 0.0
    watermark, newest = moments.get("watermark"), (filled[-1].get("eventTime") or {}).get("max") if filled else None
    schema = group.schema
    return State(
        names, speed, _shown(group, watermark), _open_windows(group, watermark, newest), size, millis(watermark),
        schema.time_type.temporal, stage_times(filled[-1]) if filled else {},
    )  # fmt: skip


def state_bytes(progress: Mapping[str, Any]) -> int:
    """Return how much state a batch left: what RocksDB has in files and, before it writes these, in memory."""
    return sum(
        max(int(one.get("memoryUsedBytes", 0)), int(one.get("customMetrics", {}).get("rocksdbSstFileSize", 0)))
        for one in progress.get("stateOperators", ())
    )


def millis(text: str | None) -> int | None:
    """Return the milliseconds of a moment as Spark tells it; none is the epoch, which no event has moved."""
    if text is None or text.startswith(f"{EPOCH}.000"):
        return None
    moment = dt.datetime.fromisoformat(text.replace("Z", "+00:00"))
    return round((moment - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) / dt.timedelta(milliseconds=1))


def _shown(group: QueryGroup, watermark: str | None) -> str:
    moment = millis(watermark)
    if moment is None:
        return "-"
    schema = group.schema
    return str(watermark)[:19].replace("T", " ") if schema.time_type.temporal else f"{moment:,}"


def _open_windows(group: QueryGroup, watermark: str | None, newest: str | None) -> int:
    """Return how many windows have begun and are not decided, of all queries that have windows."""
    now, latest = millis(watermark), millis(newest)
    if latest is None:
        return 0
    total = 0
    for calendar in (Calendar(one.bound) for one in group.queries):
        if calendar.sliding:
            last = calendar.line.at(latest) // calendar.slide
            first = calendar.decided(now) + 1 if now is not None else last - calendar.size // calendar.slide + 1
            total += max(0, int(last - first) + 1)
    return total
