"""The page on the DEBS 2016 queries is true: its Python prints what is shown."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[2] / "docs" / "debs2016.md"
PYTHON = re.compile(r"^```python\n(.*?)^```\n\n```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_python_prints_what_is_shown() -> None:
    names: dict[str, Any] = {}
    blocks = PYTHON.findall(PAGE.read_text(encoding="utf-8"))
    assert len(blocks) == 2
    for code, shown in blocks:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, PAGE.name, "exec"), names)
        assert printed.getvalue() == shown


def test_files_that_are_named_are_there() -> None:
    for name in re.findall(r"`(src/[\w/.]+)`", PAGE.read_text(encoding="utf-8")):
        assert (PAGE.parents[1] / name).exists(), name
