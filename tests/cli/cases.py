"""What the tests of the command line share: how a command is run, and small files of events."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from typer.testing import CliRunner

from trellis.cli.main import app

RISING = "PATTERN Stock+ s[] WHERE s[i].price > s[i-1].price"
PRICES = "ts,event_id,price,code\n2024-01-01T00:00:01,a,1,007\n2024-01-01T00:00:02,b,2,007\n2024-01-01T00:00:03,c,3,8\n"
COMMAND = (sys.executable, "-m", "trellis.cli.main")


@dataclass(frozen=True)
class Done:
    """What a command did."""

    code: int
    out: str
    err: str


def without_notice(text: str) -> str:
    """Return what a command said but for the sentence about compiling, which a slow machine adds."""
    return text.replace("Trellis: compiling, first time only.\n", "")


def run(*arguments: str | Path) -> Done:
    """Run a command in this process."""
    result = CliRunner().invoke(app, [str(a) for a in arguments], prog_name="trellis")
    return Done(result.exit_code, result.stdout, without_notice(result.stderr))


def run_local(*arguments: str | Path) -> Done:
    """Run a command in this process on the local engine."""
    return run(*arguments, "--engine", "local")


def run_process(*arguments: str | Path, **environment: str) -> Done:
    """Run a command as users do."""
    result = subprocess.run(
        [*COMMAND, *map(str, arguments)], capture_output=True, text=True, timeout=300, env=os.environ | environment
    )
    return Done(result.returncode, result.stdout, without_notice(result.stderr))


def start(*arguments: str | Path) -> subprocess.Popen[str]:
    """Start a command in a process group of its own, as a shell does."""
    return subprocess.Popen(
        [*COMMAND, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip


def assert_mistake(done: Done, *said: str) -> None:
    """Check that a mistake of the user's was told in a sentence."""
    assert done.code == 2, done
    assert done.out == ""
    assert done.err.startswith("error: ")
    assert "Traceback" not in done.err
    for words in said:
        assert words in done.err, done.err


def names_in(folder: Path) -> Sequence[str]:
    """Return the names of what lies in a folder, hidden files too."""
    return sorted(p.name for p in folder.iterdir())
