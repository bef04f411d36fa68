"""What `--help` and `--version` say."""

from __future__ import annotations

import re

import pytest

import trellis
from tests.cli.cases import assert_mistake, run
from trellis.cli.main import QUERIES
from trellis.io.generate import KINDS, options_of

COMMANDS = ("explain", "detect", "count", "generate", "bench", "demo")


def test_version() -> None:
    assert run("--version").out == f"trellis {trellis.__version__}\n"


@pytest.mark.parametrize("arguments", [(), ("--help",)])
def test_help_names_the_commands(arguments: tuple[str, ...]) -> None:
    done = run(*arguments)
    assert done.code == 0
    for command in COMMANDS:
        assert command in done.out


@pytest.mark.parametrize(
    ("command", "options"),
    [
        ("explain", "--events --time --type --event-id --param --report-mode --engine --master --conf --json"),
        ("count", "--events --time --time-format --input-format --on-bad-rows --out --format --overwrite --json"),
        ("detect", "--limit --max-trends --report-mode --no-progress --quiet --json --out --format --overwrite"),
        ("detect", "--algorithm --construction"),
        ("bench", "--quick --out --no-progress --json"),
        ("demo", "--engine --master --no-progress"),
    ],
)
def test_help_of_a_command_names_its_options(command: str, options: str) -> None:
    done = run(command, "--help")
    assert done.code == 0
    for option in options.split():
        assert option in done.out


@pytest.mark.parametrize("kind", KINDS)
def test_help_of_a_kind_names_its_options(kind: str) -> None:
    done = run("generate", kind, "--help")
    assert done.code == 0
    for option in options_of(kind):
        assert "--" + option.name.replace("_", "-") in done.out
    assert kind in run("generate", "--help").out


def test_an_unknown_command_is_told_with_a_near_one() -> None:
    assert_mistake(run("detct"), "No such command 'detct'", "'detect'", "trellis --help")


def test_a_missing_argument_is_told() -> None:
    assert_mistake(run("detect"), "QUERY", "trellis detect --help")


@pytest.mark.parametrize("command", ["explain", "detect", "count"])
def test_help_shows_queries_that_are_right(command: str) -> None:
    assert "SEQ(Login a, Transfer+" in " ".join(run(command, "--help").out.split())
    for text in re.findall("`(PATTERN [^`]*)`", QUERIES):
        assert trellis.query(text).explain()
