"""A stream that runs is watched: its page in a real browser, and its log as lines of JSON."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from urllib.request import urlopen

import pytest

from tests.cli.test_control import wait_for
from tests.engines.spark.stream.test_stream import RISING, events, nearly_sorted, write_files
from tests.report.test_report import chromium
from trellis.streams.stream_output import read_committed


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@pytest.mark.slow
@pytest.mark.spark
def test_a_browser_shows_the_numbers_that_the_log_tells(tmp_path: Path) -> None:
    browser = chromium()
    table = events(90)
    write_files(nearly_sorted(table, 2), tmp_path / "in", 3)
    (tmp_path / "rising.tq").write_text(RISING)
    port = free_port()
    command = [
        sys.executable, "-m", "trellis.cli.main", "stream", "rising.tq", "in", "--out", "out", "--checkpoint", "state",
        "--watermark", "3 s", "--event-id", "id", "--files-a-batch", "1", "--metrics", str(port), "--json-log",
        "--no-progress", "--conf", "spark.sql.shuffle.partitions=2", "--master", "local[2]",
    ]  # fmt: skip
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(command, cwd=tmp_path, stdout=log, stderr=log, text=True)
    try:

        def has_read_all() -> bool:
            with suppress(OSError), urlopen(f"http://127.0.0.1:{port}/status", timeout=20) as answer:
                told = json.load(answer)
                return told["totals"]["events"] == 90 and told["totals"]["results"] > 0
            return False

        wait_for(process, has_read_all)
        shown = subprocess.run(
            [
                browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                "--enable-logging=stderr", f"--user-data-dir={tmp_path / 'profile'}", "--virtual-time-budget=5000",
                "--dump-dom", f"http://127.0.0.1:{port}/",
            ],
            capture_output=True, text=True, timeout=300, check=True,
        )  # fmt: skip
        process.send_signal(signal.SIGINT)
        process.wait(120)
    finally:
        process.kill()
    assert "CONSOLE" not in shown.stderr
    numbers = {name: number for number, name in re.findall(r"<div><b>([^<]*)</b>([a-z]+)</div>", shown.stdout)}
    assert numbers["events"] == "90", shown.stdout
    assert "<h2>rising</h2>" in shown.stdout
    assert "<td>planning</td>" in shown.stdout
    assert 'class="gone"' not in shown.stdout
    lines = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines() if line.startswith("{")]
    assert lines[-1]["totals"]["events"] == 90
    assert lines[-1]["totals"]["results"] == read_committed(tmp_path / "out").num_rows
    assert [line["totals"]["batches"] for line in lines] == sorted({line["totals"]["batches"] for line in lines})
