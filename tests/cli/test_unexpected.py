"""A fault of Trellis itself ends with code 1 and a hint."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.cases import RISING, run_local


def test_what_should_not_happen_has_code_1_and_a_hint(prices: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError("first line\nsecond line")

    monkeypatch.setattr("trellis.cli.running.read_events", fail)
    monkeypatch.delenv("TRELLIS_DEBUG", raising=False)
    done = run_local("count", RISING, prices)
    assert done.code == 1
    assert done.out == ""
    assert done.err.splitlines()[0] == "error: ZeroDivisionError: first line"
    assert "TRELLIS_DEBUG=1" in done.err
    assert "Traceback" not in done.err
