"""Streams of all parts in one Spark session, for a process that is killed: `python -m tests.faults.streams_child DIR`.

With `end` behind the directory the streams take all that is there, decide the rest and end. Otherwise they run on.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import trellis
from tests.engines.spark.cluster import QUICK_START
from trellis.engines.options import RunOptions
from trellis.engines.spark.session.session import get_session, stop_session
from trellis.engines.spark.sources.read_stream import read_stream
from trellis.engines.spark.stream.running import Options, Stream

RISING = "PATTERN T+ t[] WHERE [g] AND t[i].x > t[i-1].x WITHIN 10 s SLIDE 5 s"
SPAN = "PATTERN T+ t[] WHERE [g] AND t[i].x > t[i-1].x WITHIN 4 s"
PAIR = "PATTERN a;b WHERE [g] AND a.x + 5 < b.x WITHIN 5 s"
RISES = "PATTERN T+ t[] WHERE [g] AND t[i].x > t[i-1].x REPORT any WITHIN 4 s"
SUMMED = "PATTERN T+ t[] WHERE [g] AND t[i].x > t[i-1].x WITHIN 20 s SLIDE 10 s AGGREGATE "
STREAMS: dict[str, tuple[dict[str, str], dict[str, object]]] = {
    "shared": ({"rising": RISING, "span": SPAN, "pair": PAIR}, {"timeouts": True}),
    "sums": ({"counted": SUMMED + "COUNT(*)", "summed": SUMMED + "COUNT(*), SUM(t.x), MAX(t.x)"}, {}),
    "early": ({"pair": PAIR, "rises": RISES}, {"emit": "early"}),
}
"""The queries of each stream, and its options."""
FILES_AT_THE_END = 16  # a batch has


def main() -> None:
    folder, ends = Path(sys.argv[1]), sys.argv[2:] == ["end"]
    settings = {"spark.sql.shuffle.partitions": "2", "spark.driver.memory": "1g"}
    session = get_session("local[2]", settings | {"spark.driver.extraJavaOptions": QUICK_START})
    streams = []
    for name, (queries, options) in STREAMS.items():
        frame = read_stream(session, str(folder / "in"), files_a_batch=FILES_AT_THE_END if ends else 1)
        places = str(folder / name / "out"), str(folder / name / "cp")
        given = Options(*places, watermark="3 s", available_now=ends, **options)  # type: ignore[arg-type]
        asked = {one: trellis.query(text) for one, text in queries.items()}
        streams.append(Stream(session, asked, frame, given, RunOptions(time="ts", event_id="id")))
        streams[-1].start()
    while not all(stream.wait(0.1) for stream in streams):
        time.sleep(0.1)
    for stream in streams:
        stream.flush()
        assert stream.totals.late == 0
    stop_session(session)


if __name__ == "__main__":
    main()
