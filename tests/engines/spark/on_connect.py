"""What is asked of Spark Connect, in a process that has no other session.

python -m tests.engines.spark.on_connect sc://HOST:PORT DIRECTORY [everything | stream]
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import trellis
from tests.compare import plain_rows
from trellis.engines.spark.session.session import get_session, stop_session
from trellis.errors import DataError, ListingRefused, OverflowInCondition, TrellisError

SECOND = 1_000_000
HOUR = 3600 * SECOND
N = 40
TABLE = pa.table(
    {
        "ts": pa.array([(i * 17 % N) * SECOND + 1 for i in range(N)], pa.timestamp("us", "UTC")),
        "id": [f"e{i:02}" for i in range(N)],
        "g": pa.array([(0.0, -0.0, 1.5, None)[i % 4] for i in range(N)], pa.float64()),
        "x": [i * 7 % 11 for i in range(N)],
        "k": [("a", "b", None)[i % 3] for i in range(N)],
    }
)
RISING = "PATTERN E+ s[] WHERE s[i].x > s[i-1].x"
FULL = f"{RISING} AND [g] AND s.x < 10 WITHIN 20 s SLIDE 10 s RETURN s, s.ts, s.k, AVG(s.x)"


def rows(table: Any) -> list[dict[str, Any]]:
    """Make rows of either engine comparable."""
    return plain_rows((table.toArrow() if hasattr(table, "toArrow") else table).to_pylist())


def mistake(ask: Callable[[], Any]) -> TrellisError:
    try:
        ask()
    except TrellisError as error:
        return error
    raise AssertionError("there is no mistake")


def here() -> Any:
    """The trends that are found in this process."""
    return trellis.query(FULL).detect(TABLE, event_id="id")


def answers(trends: Any) -> dict[str, Any]:
    """What else can be asked of trends."""
    return {
        "statistics": trends.statistics,
        "counts": rows(trends.counts()),
        "batches": rows(pa.Table.from_batches(trends.batches())),
        "first": rows(trends.first(3)),
        "aggregate": rows(trends.aggregate("count(*)", "avg(s.x)")),
        "top": rows(trends.top(3)),
        "sample": rows(trends.sample(5)),
        "explode": in_order(trends.explode()),
    }


def in_order(table: Any) -> list[str]:
    return sorted(map(str, rows(table)))


def check_rows(there: Any) -> None:
    assert there.engine == "spark"
    assert there.count() == here().count() > 50
    assert rows(there.to_arrow()) == rows(here().to_arrow())
    assert in_order(there.to_spark()) == in_order(here().to_arrow())


def check_parquet(there: Any, directory: Path) -> None:
    there.write(str(directory))
    written = pq.read_table(directory)
    assert written.schema.field("start_time").type == pa.timestamp("us", "UTC")
    assert in_order(written) == in_order(here().to_arrow())


def check_text(there: Any, directory: Path, format: str, headers: int) -> None:
    there.write(str(directory), format)
    files = [path for path in directory.iterdir() if path.name.startswith("part")]
    assert sum(len(path.read_text().splitlines()) - headers for path in files) == here().count()


def check_mistakes(frame: Any) -> None:
    for condition in ("s.x * 9223372036854775807 > 0", "s[i].x * 9223372036854775807 > s[i-1].x"):
        found = trellis.query(f"PATTERN E+ s[] WHERE {condition}").detect(frame, event_id="id")
        assert isinstance(mistake(found.count), OverflowInCondition)
    bounded = trellis.query(RISING).detect(frame, event_id="id", max_trends=3)
    assert isinstance(mistake(bounded.to_arrow), ListingRefused)
    assert isinstance(mistake(trellis.query(RISING).detect(frame, event_id="k").count), DataError)


def check_stream(session: Any, directory: Path) -> None:
    """Run a stream over files; an event of a later hour decides all windows before it."""
    last = pa.table({"ts": [HOUR], "id": ["last"], "g": [9.0], "x": [0], "k": ["a"]}, schema=TABLE.schema)
    for number, table in enumerate((TABLE.sort_by("ts").slice(0, 20), TABLE.sort_by("ts").slice(20), last)):
        (directory / "in").mkdir(exist_ok=True)
        pq.write_table(table, directory / "in" / f"{number}.parquet")
    schema = session.read.parquet(str(directory / "in")).schema
    frame = session.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(directory / "in"))
    decided = trellis.query(FULL).detect_stream(frame, time="ts", event_id="id", watermark="40 s")
    writer = decided.writeStream.format("parquet").option("checkpointLocation", str(directory / "checkpoint"))
    assert writer.trigger(availableNow=True).start(str(directory / "out")).awaitTermination(240)
    found = session.read.parquet(str(directory / "out"))
    assert in_order(found.select(*here().to_arrow().column_names)) == in_order(here().to_arrow())


def main(address: str, directory: Path, what: str) -> None:
    session = get_session(address, {"spark.sql.shuffle.partitions": 2, "spark.sql.session.timeZone": "Asia/Tokyo"})
    assert type(session).__module__.startswith("pyspark.sql.connect")
    assert get_session() is session
    pq.write_table(TABLE, directory / "events.parquet")
    there = trellis.query(FULL).detect(str(directory / "events.parquet"), event_id="id", spark=session)
    check_rows(there)
    check_parquet(there, directory / "parquet")
    if what == "stream":
        check_stream(session, directory)
    if what == "everything":
        frame = session.createDataFrame(TABLE)
        assert answers(trellis.query(FULL).detect(frame, event_id="id")) == answers(here())
        joined = trellis.query(FULL).detect(frame, event_id="id", algorithm="join", construction="spark")
        assert rows(joined.to_arrow()) == rows(here().to_arrow())
        check_text(there, directory / "csv", "csv", 1)
        check_text(there, directory / "json", "json", 0)
        check_mistakes(frame)
    stop_session(session)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), *sys.argv[3:] or [""])
