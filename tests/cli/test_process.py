"""What only a process of its own shows: exit codes, signals, pipes, digits."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.cli.cases import COMMAND, RISING, assert_mistake, names_in, run_process, start, without_notice

ENDLESS = "PATTERN Stock+ s[] WHERE s[i].price > s[i-1].price REPORT any"  # has some 10^13 results
LIMIT = 4 << 30  # bytes of address space; compilers take one or two of them
UNBOUNDED = ("--max-trends", str(10**30))


def wait_for(happened: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    for _ in range(2400):
        if happened():
            return
        assert process.poll() is None, process.communicate()
        time.sleep(0.1)
    os.killpg(process.pid, signal.SIGKILL)
    raise AssertionError("it did not happen in four minutes")


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code", "said"), [(signal.SIGINT, 130, "interrupted\n"), (signal.SIGTERM, 143, "")])
def test_a_signal_ends_it_and_leaves_nothing(samples: Path, tmp_path: Path, number: int, code: int, said: str) -> None:
    out = tmp_path / "out"
    process = start("detect", ENDLESS, samples / "stock.csv", "--engine", "local", *UNBOUNDED, "--out", out)
    wait_for(lambda: any(tmp_path.glob(".out.*/new/*")), process)
    os.killpg(process.pid, number)
    printed, err = process.communicate(timeout=60)
    assert process.returncode == code
    lines = without_notice(err).splitlines(keepends=True)
    assert (printed, [line for line in lines if not line.startswith("warning: ")]) == ("", [said] if said else [])
    assert names_in(tmp_path) == []


@pytest.mark.slow
def test_a_second_writer_of_an_output_is_refused_and_a_kill_leaves_no_lock(
    samples: Path, prices: Path, tmp_path: Path
) -> None:
    out = tmp_path / "results" / "out"
    first = start("detect", ENDLESS, samples / "stock.csv", "--engine", "local", *UNBOUNDED, "--out", out)
    wait_for(lambda: any(out.parent.glob(".out.*/new/*")), first)
    for engine in ("local", "spark"):  # before Spark is started
        second = run_process("detect", RISING, prices, "--engine", engine, "--out", out, "--overwrite")
        assert_mistake(second, f"process {first.pid} on ", "is writing the output", "Wait for its end")
    os.killpg(first.pid, signal.SIGKILL)
    first.communicate()
    third = run_process("detect", RISING, prices, "--engine", "local", "--out", out, "--quiet")
    assert third.code == 0, third.err
    assert names_in(out.parent) == ["out"]
    assert pq.read_table(out).num_rows == 2


def test_a_traceback_is_shown_where_asked(tmp_path: Path) -> None:
    asked = run_process("detect", RISING, tmp_path / "none.csv", "--engine", "local", TRELLIS_DEBUG="1")
    assert asked.code == 2
    assert "Traceback" in asked.err


@pytest.mark.parametrize("given", [["explain", RISING], ["--help"], ["count", "--help"], ["archive", "--help"], []])
def test_a_reader_that_has_enough_is_no_error(given: list[str]) -> None:
    process = subprocess.Popen([*COMMAND, *given], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.wait(timeout=60) == 0
    assert process.stderr.read() == ""
    process.stderr.close()


INTERRUPTED_IMPORT = """
import os, runpy, signal, sys

interrupted = sys.argv.pop(1)

class Interrupts:
    def find_spec(self, name, path=None, target=None):
        if name == interrupted:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupts())
runpy.run_module("trellis", run_name="__main__")
"""


@pytest.mark.parametrize("module", ["trellis.cli.main", "typer", "trellis.cli.count"])
def test_ctrl_c_while_the_command_is_loaded_is_quiet(module: str) -> None:
    done = subprocess.run(
        [COMMAND[0], "-c", INTERRUPTED_IMPORT, module, "--version"], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_progress_that_is_asked_for_is_not_shown_in_a_pipe_either(prices: Path) -> None:
    done = run_process("count", RISING, prices, "--engine", "local", "--quiet", "--progress")
    assert (done.out, done.err) == ("2\n", "")


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("delay", [1.5, 3.0, 4.5, 7.0, 12.0])
def test_sigterm_while_spark_starts_is_quiet_and_leaves_no_jvm(prices: Path, delay: float) -> None:
    process = start("count", RISING, prices, "--engine", "spark")
    time.sleep(delay)
    process.send_signal(signal.SIGTERM)
    assert process.communicate(timeout=60) == ("", "")
    assert process.returncode in (143, -signal.SIGTERM)  # the latter before the command has begun
    for _ in range(100):
        left = [p for p in Path("/proc").glob("[0-9]*") if _session_of(p) == process.pid]
        if not left:
            break
        time.sleep(0.2)
    assert not left


def _session_of(process: Path) -> int | None:
    try:
        return int((process / "stat").read_text().rpartition(")")[2].split()[3])
    except OSError:
        return None


def test_memory_that_runs_out_is_told(tmp_path: Path) -> None:
    file = tmp_path / "hours.csv"
    file.write_text("ts,event_id,price\n" + "".join(f"2024-01-01T{h:02}:00:00,e{h},{h}\n" for h in range(4)))
    limited = f"import resource; resource.setrlimit(resource.RLIMIT_AS, ({LIMIT}, {LIMIT})); "
    script = f"{limited}import sys; from trellis.cli.main import main; sys.argv[0] = 'trellis'; main()"
    done = subprocess.run(
        [COMMAND[0], "-c", script, "count", f"{RISING} WITHIN 1 day SLIDE 1 ms", file, "--engine", "local"],
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    said = done.stderr.replace("\n", " ")
    assert done.returncode == 2, done
    asked = "97,200,000 windows, which take about 14.6 GB" in said  # where the machine has no more free either
    assert asked or re.match(r"error: while [a-z ]+: there is not enough memory.* has taken \d+\.\d GB", said), said
    assert "shorter" in said
    assert "Traceback" not in said
