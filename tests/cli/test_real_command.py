"""Bad input, progress and the tour with the command as it is installed, in a process of its own, on the local engine.

Ctrl-C is in `test_process.py`, and Spark in `test_spark.py`.
"""

from __future__ import annotations

import errno
import os
import pty
import subprocess
import sysconfig
from pathlib import Path

import pytest

from tests.cli.cases import RISING, Done, assert_mistake, names_in
from tests.cli.test_demo import assert_tour

TRELLIS = str(Path(sysconfig.get_path("scripts"), "trellis"))
ENVIRONMENT = {k: v for k, v in os.environ.items() if k != "TRELLIS_DEBUG"} | {"TERM": "xterm"}


def trellis(folder: Path, *arguments: str) -> Done:
    result = subprocess.run(
        [TRELLIS, *arguments, "--engine", "local"], capture_output=True, text=True, timeout=120, cwd=folder,
        env=ENVIRONMENT,
    )  # fmt: skip
    return Done(result.returncode, result.stdout, result.stderr)


NOTHING_ALIKE = "There is no file prices.csv.\nNo file in the working directory has a similar name.\n"
MISTAKES = {
    "a missing file": ("prices.csv", None, (), NOTHING_ALIKE),
    "an empty file": (
        "empty.csv", "", (),
        "empty.csv is empty: no header.\nA CSV file begins with a line of column names.\n",
    ),
    "too few fields": (
        "short.csv", "ts,price\n1,2\n3\n", (),
        "short.csv, row 3: it has 1 field, but the header has 2.\nThe header is row 1; empty lines are not counted.\n",
    ),
    "a time that does not parse": (
        "times.csv", "ts,price\n2024-01-01T00:00:01,1\nsoon,2\n", (),
        "1 row has no readable time in the column `ts`, for example: ts=soon, price=2\n"
        "Correct them, say how they are written with --time-format, or leave them out with on_bad_rows='drop' or "
        "--on-bad-rows drop.\n",
    ),
    "no Parquet": ("torn.parquet", "PAR1 and then nothing", (), "torn.parquet cannot be read as Parquet: "),
    "a repeated id": (
        "twice.csv", "ts,event_id,price\n1,a,1\n2,a,2\n", ("--event-id", "event_id"),
        "the id `a` in the column `event_id` occurs twice in one window and partition\n"
        "Name another id column, or keep the first of each with on_bad_rows='drop' or --on-bad-rows drop.\n",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("name", "content", "options", "said"), MISTAKES.values(), ids=MISTAKES)
def test_bad_input(tmp_path: Path, name: str, content: str | None, options: tuple[str, ...], said: str) -> None:
    if content is not None:
        (tmp_path / name).write_text(content)
    before = names_in(tmp_path)
    done = trellis(tmp_path, "detect", RISING, name, *options, "--out", "new/out")
    assert_mistake(done)
    whole = f"error: {said}"
    assert done.err == whole if said.endswith("\n") else done.err.startswith(whole)
    assert names_in(tmp_path) == before


def test_an_output_that_exists_stays_as_it_is(prices: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("mine")
    done = trellis(tmp_path, "detect", RISING, "prices.csv", "--out", "out")
    assert_mistake(done)
    assert done.err == (
        "error: the output `out` exists\nChoose another one, or replace it with overwrite=True or --overwrite.\n"
    )
    assert names_in(tmp_path) == ["out", "prices.csv"]
    assert names_in(tmp_path / "out") == ["mine.txt"]


# --- Progress and the tour --------------------------------------------------------------------------------------


def test_progress_is_shown_on_a_terminal(prices: Path) -> None:
    process_side, shown = _on_a_terminal("count", RISING, str(prices), "--engine", "local")
    assert process_side.returncode == 0
    assert "results     2\n" in process_side.stdout
    assert "summing up" in shown
    assert "0:00:0" in shown
    assert shown.rstrip("\r").endswith("\x1b[2K")  # and wiped in the end


def test_progress_is_not_shown_in_a_pipe(prices: Path, tmp_path: Path) -> None:
    done = trellis(tmp_path, "count", RISING, str(prices))
    assert (done.code, done.err) == (0, "")
    assert "results     2\n" in done.out
    assert "summing up" not in done.out
    assert "\x1b" not in done.out


def test_the_tour(tmp_path: Path) -> None:
    done = trellis(tmp_path, "demo")
    assert (done.code, done.err) == (0, "")
    assert_tour(done.out)
    assert names_in(tmp_path) == []


def _on_a_terminal(*arguments: str) -> tuple[subprocess.CompletedProcess[str], str]:
    """Run a command whose stderr is a terminal, and return also what that shows."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen([TRELLIS, *arguments], stdout=subprocess.PIPE, stderr=theirs, text=True, env=ENVIRONMENT)
    os.close(theirs)
    try:
        shown = b"".join(iter(lambda: _read(ours), b""))
        printed, _ = process.communicate(timeout=120)
    finally:
        os.close(ours)
        process.kill()
    return subprocess.CompletedProcess(process.args, process.returncode, printed), shown.decode()


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError as problem:
        if problem.errno != errno.EIO:  # nobody has it open any more
            raise
        return b""
