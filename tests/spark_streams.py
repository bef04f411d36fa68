"""Streams on Spark in tests."""

from __future__ import annotations

from trellis.engines.spark.stream.running import Stream


def run_to_end(stream: Stream) -> Stream:
    """Run a stream to the end of its input, decide what only the end decides, and stop it."""
    stream.start()
    try:
        stream.wait()
        stream.flush()
    finally:
        stream.stop()
    return stream
