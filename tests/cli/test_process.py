"""What only a process of its own shows: exit codes, signals, pipes, digits."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.cases import COMMAND, RISING, names_in, run_process, start

ENDLESS = "PATTERN Stock+ s[] WHERE s[i].price > s[i-1].price REPORT any"  # has some 10^13 results
UNBOUNDED = ("--max-trends", str(10**30))


def wait_for(happened: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    for _ in range(2400):
        if happened():
            return
        assert process.poll() is None, process.communicate()
        time.sleep(0.1)
    os.killpg(process.pid, signal.SIGKILL)
    raise AssertionError("it did not happen in four minutes")


@pytest.mark.parametrize(("number", "code", "said"), [(signal.SIGINT, 130, "interrupted\n"), (signal.SIGTERM, 143, "")])
def test_a_signal_ends_it_and_leaves_nothing(samples: Path, tmp_path: Path, number: int, code: int, said: str) -> None:
    out = tmp_path / "out"
    process = start("detect", ENDLESS, samples / "stock.csv", "--engine", "local", *UNBOUNDED, "--out", out)
    wait_for(lambda: any(tmp_path.glob(".out.*/new/*")), process)
    os.killpg(process.pid, number)
    printed = process.communicate(timeout=60)
    assert process.returncode == code
    assert printed == ("", said)
    assert names_in(tmp_path) == []


def test_a_traceback_is_shown_where_asked(tmp_path: Path) -> None:
    asked = run_process("detect", RISING, tmp_path / "none.csv", "--engine", "local", TRELLIS_DEBUG="1")
    assert asked.code == 2
    assert "Traceback" in asked.err


def test_a_reader_that_has_enough_is_no_error(prices: Path) -> None:
    process = subprocess.Popen([*COMMAND, "explain", RISING], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.wait(timeout=60) == 0
    assert process.stderr.read() == ""
    process.stderr.close()


def test_progress_that_is_asked_for_is_not_shown_in_a_pipe_either(prices: Path) -> None:
    done = run_process("count", RISING, prices, "--engine", "local", "--quiet", "--progress")
    assert (done.out, done.err) == ("2\n", "")
