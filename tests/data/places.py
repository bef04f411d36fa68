"""Where the real data lies: beside the repository, and in no repository."""

from __future__ import annotations

from pathlib import Path

import pytest

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"


def data_file(*parts: str) -> Path:
    """Return a file of real data; the test is skipped where it is not there."""
    path = DATA.joinpath(*parts)
    if not path.exists():
        pytest.skip(f"real data is not here: {path}")
    return path
