"""Windows over times that are floats, through the command: no event is lost, none is in two that do not overlap."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.cases import run, run_process

EVERY = "PATTERN Event+ e[] REPORT any WITHIN 0.1 SLIDE 0.1"


@pytest.mark.parametrize("engine", ["local", pytest.param("spark", marks=[pytest.mark.slow, pytest.mark.spark])])
def test_multiples_of_the_slide(tmp_path: Path, engine: str) -> None:
    file = tmp_path / "events.csv"
    file.write_text("ts,event_id\n" + "".join(f"{k / 10},e{k}\n" for k in range(450)))
    asked = run_process if engine == "spark" else run
    done = asked("count", EVERY, file, "--engine", engine, "--event-id", "event_id", "--quiet")
    assert (done.code, done.out) == (0, "450\n"), done
    aggregated = f"{EVERY} AGGREGATE COUNT(*)"
    done = asked(
        "detect", aggregated, file, "--engine", engine, "--event-id", "event_id", "--out", tmp_path / "out",
        "--format", "csv",
    )  # fmt: skip
    assert done.code == 0, done
    rows = "".join(path.read_text() for path in sorted((tmp_path / "out").glob("*.csv"))).splitlines()
    assert "0.6,0.7,1" in ",".join(rows[7].replace('"', "").split(",")[:3])
    assert len(rows) == 451
