"""A stream that is watched: its numbers at `/metrics` for Prometheus, at `/status` as JSON, and a page at `/`."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from trellis.errors import UsageError
from trellis.streams.exposition import CONTENT_TYPE, COUNTER, GAUGE, Metric, exposition

if TYPE_CHECKING:
    from trellis.engines.spark.stream.running import Stream

LOCAL = "127.0.0.1"
TOTALS = {
    "batches": "batches that were written",
    "events": "events that were read",
    "results": "results that were given",
    "windows": "windows and partitions that were decided",
    "unlisted": "windows and partitions with too many results to list",
    "late": "events that came behind the watermark",
    "bad": "events without a readable time or id",
    "repeated": "events left out because their id came before",
    "timeouts": "partial matches that ran out of time, where these are told",
}


def status(stream: Stream) -> dict[str, Any]:
    """Return the numbers of a stream as plain data: totals since it was started, and each group of queries."""
    now = time.time()
    groups = [
        {
            "queries": list(state.queries),
            "events_a_second": state.events_a_second,
            "watermark": state.watermark,
            "watermark_seconds": None if state.moment is None else state.moment / 1000,
            "lag_seconds": None if state.moment is None or not state.temporal else now - state.moment / 1000,
            "open_windows": state.open_windows,
            "state_bytes": state.state_bytes,
            "stages": dict(state.stage_seconds),
        }
        for state in stream.states()
    ]
    return {"time": now, "totals": {name: getattr(stream.totals, name) for name in TOTALS}, "groups": groups}


def metrics_of(stream: Stream) -> list[Metric]:
    """Return the numbers of a stream as Prometheus has them."""
    told = status(stream)
    found = [
        Metric(f"trellis_{name}_total", said, COUNTER, {(): told["totals"][name]}) for name, said in TOTALS.items()
    ]
    for name, said in (
        ("state_bytes", "size of the state"), ("open_windows", "windows that have begun and are not decided"),
        ("watermark_seconds", "the watermark, as seconds since 1970 or in the unit of the times"),
        ("lag_seconds", "how far the watermark is behind the clock"),
        ("events_a_second", "events a second in the last batch that had some"),
    ):  # fmt: skip
        values = {_labels(group): group[name] for group in told["groups"] if group[name] is not None}
        found.append(Metric(f"trellis_{name}", said, GAUGE, values))
    stages = {
        (*_labels(group), ("stage", stage)): seconds
        for group in told["groups"]
        for stage, seconds in group["stages"].items()
    }
    found.append(Metric("trellis_stage_seconds", "seconds of each stage of the last batch with events", GAUGE, stages))
    return found


def _labels(group: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    return (("queries", ",".join(group["queries"])),)


def address_of(text: str) -> tuple[str, int]:
    """Return host and port of `PORT` or `HOST:PORT`; only this machine is told unless a host is named."""
    host, _, port = text.rpartition(":")
    if not port.isdigit() or int(port) > 65535:
        raise UsageError(f"`{text}` is no port", "Write a number such as 9109, or HOST:PORT.")
    return host or LOCAL, int(port)


@contextmanager
def watched_at(stream: Callable[[], Stream], host_port: tuple[str, int]) -> Iterator[int]:
    """Serve the numbers of the stream that runs at the time; give the port, which 0 leaves to the system.

    Raises
    ------
    UsageError
        If the port is taken.
    """
    page = files("trellis.engines.spark.stream").joinpath("watch.html").read_bytes()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            if path == "/metrics":
                self._answer(CONTENT_TYPE, exposition(metrics_of(stream())).encode())
            elif path == "/status":
                self._answer("application/json", json.dumps(status(stream())).encode())
            elif path == "/":
                self._answer("text/html; charset=utf-8", page)
            else:
                self.send_error(404)

        def _answer(self, kind: str, body: bytes) -> None:
            self.send_response(200)
            for name, value in (
                ("Content-Type", kind), ("Content-Length", str(len(body))), ("Cache-Control", "no-store"),
                ("Content-Security-Policy", "default-src 'self' 'unsafe-inline'"),
            ):  # fmt: skip
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing: the terminal shows the stream."""

    try:
        server = ThreadingHTTPServer(host_port, Handler)
    except OSError as problem:
        raise UsageError(
            f"metrics cannot be served at {host_port[0]}:{host_port[1]}: {problem.strerror or problem}",
            "Choose another port with --metrics.",
        ) from None
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, name="trellis-metrics", daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
