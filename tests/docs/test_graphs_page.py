"""The page on graphs is true: its Python prints what is shown, its example is that of `examples`, its links lead on."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "graphs.md").read_text(encoding="utf-8")
PYTHON = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)
NEEDS_SPARK = "triangles.run(frame"


def test_python_prints_what_is_shown() -> None:
    names: dict[str, Any] = {"__name__": "page"}
    printed = 0
    for code, shown in PYTHON.findall(TEXT):
        if NEEDS_SPARK in code:
            continue
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(code, "docs/graphs.md", "exec"), names)
        assert out.getvalue() == shown
        printed += bool(shown)
    assert printed == 7


def test_the_example_is_the_one_in_examples() -> None:
    file = (ROOT / "examples" / "graphs" / "payments.py").read_text(encoding="utf-8")
    body = file[file.index("class PaymentTriangles") : file.index("\n\n\nSPLITTER")]
    assert body in TEXT
    assert len(body.splitlines()) <= 30, "an operator takes about 30 lines"


def test_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", TEXT):
        assert (ROOT / "docs" / target).exists(), target
    headings = {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in re.findall(r"^#+ (.*)$", TEXT, re.M)}
    assert set(re.findall(r"\]\(#([^)]+)\)", TEXT)) <= headings
