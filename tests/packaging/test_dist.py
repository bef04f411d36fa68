"""The wheel: it builds, installs into an empty environment, and works there without Spark."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_the_wheel_works_in_an_empty_environment() -> None:
    done = subprocess.run(["scripts/dist.sh"], cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "It works" in done.stdout


def test_every_pinned_package_has_hashes() -> None:
    text = (ROOT / "requirements.lock").read_text()
    pins = re.findall(r"^(\S+==\S+)((?: \\\n    --hash=sha256:[0-9a-f]{64})*)$", text, re.MULTILINE)
    assert len(pins) > 50
    assert all(hashes for _, hashes in pins)
    assert "numba" in {pin.split("==")[0] for pin, _ in pins}
    assert "http" not in text
