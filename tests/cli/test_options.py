"""Groups of options: declared once, taken by every command that has them."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest
import typer

from trellis.cli import options as o
from trellis.cli.main import app

GROUPS = (o.EventOptions, o.QueryOptions, o.MethodOptions, o.EngineOptions, o.OutputOptions)


def _command(name: str) -> Any:
    group: Any = typer.main.get_command(app)
    return group.commands[name]


@pytest.mark.parametrize("name", ["detect", "count", "explain"])
def test_commands_have_the_options_of_their_groups(name: str) -> None:
    lacking = {
        "explain": {"out", "format", "overwrite", "raw_csv", "quiet", "wide"},
        "count": set(_names(o.MethodOptions)),
    }
    wanted = {field for group in GROUPS for field in _names(group)} - lacking.get(name, set())
    assert wanted <= {parameter.name for parameter in _command(name).params}


def test_an_option_of_two_commands_says_the_same() -> None:
    helps: dict[str, set[str | None]] = {}
    for name in ("detect", "count", "explain"):
        for parameter in _command(name).params:
            helps.setdefault(parameter.opts[0], set()).add(parameter.help)
    assert all(len(texts) == 1 for texts in helps.values())


def test_a_group_comes_as_one_object() -> None:
    seen: list[o.EngineOptions] = []

    @o.takes_options
    def command(engine: o.EngineOptions) -> None:
        seen.append(engine)

    command(engine=o.EngineChoice.LOCAL, master=None, conf=["a=1"])
    assert seen == [o.EngineOptions(None, ["a=1"], o.EngineChoice.LOCAL)]
    assert seen[0].settings == {"a": "1"}


def _names(group: type) -> list[str]:
    return [field.name for field in fields(group)]
