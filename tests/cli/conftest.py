"""Files that the commands of several tests are given."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.cases import PRICES
from trellis.io.generate import generate_table
from trellis.io.write import write_table


@pytest.fixture(scope="session")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with small sample streams."""
    folder = tmp_path_factory.mktemp("samples")
    write_table(generate_table("kite", 300, 1), folder / "kite.parquet")
    stock = generate_table("stock", 300, 1, rate=0.05)
    for name in ("stock.csv", "stock.parquet"):
        write_table(stock, folder / name)
    return folder


@pytest.fixture
def prices(tmp_path: Path) -> Path:
    """A file of three rising prices."""
    file = tmp_path / "prices.csv"
    file.write_text(PRICES)
    return file
