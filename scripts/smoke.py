"""Tries an installed Trellis, without Spark, where nothing can be written: it counts, lists and compiles nothing."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pandas as pd

import trellis
from trellis.errors import UsageError

QUERY = "PATTERN Stock+ s[] WHERE [company] AND s[i].price > s[i-1].price ORDER BY LENGTH DESC LIMIT 3"
COMMAND = [sys.executable, "-m", "trellis.cli.main"]


def main() -> None:
    assert Path(sys.prefix) in Path(trellis.__file__).parents, trellis.__file__
    trades = pd.DataFrame(
        {
            "ts": pd.date_range("2024-05-01 09:00", periods=6, freq="5min"),
            "trade": ["t1", "t2", "t3", "t4", "t5", "t6"],
            "company": ["X", "Y", "X", "X", "Y", "X"],
            "price": [10.0, 50.0, 30.0, 20.0, 45.0, 40.0],
        }
    )
    before = installed()
    begin = time.process_time()
    trends = trellis.query(QUERY).detect(trades, time="ts", event_id="trade")
    assert trends.count() == 5, trends.count()
    assert trends.to_pandas()["length"].tolist() == [3, 3, 2]
    seconds = time.process_time() - begin
    trades.to_parquet("trades.parquet")
    done = subprocess.run(
        [*COMMAND, "count", QUERY, "trades.parquet", "--engine", "local", "--quiet"], capture_output=True, text=True
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "5\n", ""), done
    compiled = sorted(Path.home().rglob("*.nbc"))
    assert not compiled, compiled
    assert installed() == before, "files of the package were written"  # which a superuser can even where nobody may
    said = refusal(trades)
    assert "pip install 'trellis-cep[spark]'" in said, said
    spark = [*COMMAND, "count", QUERY, "trades.parquet", "--engine", "spark"]
    done = subprocess.run(spark, capture_output=True, text=True)
    assert done.returncode == 2, done
    assert "Spark is not installed" in done.stderr, done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    print(f"It works: the first count and list took {seconds:.1f} seconds of CPU.")


def installed() -> dict[Path, float]:
    """Return the files of the package that could be written, with the times of their last change."""
    files = Path(trellis.__file__).parent.rglob("*")
    return {file: file.stat().st_mtime for file in files if file.is_file() and file.suffix != ".pyc"}


def refusal(trades: pd.DataFrame) -> str:
    """What is said where Spark is asked for."""
    try:
        trellis.query(QUERY).detect(trades, time="ts", event_id="trade", engine="spark").count()
    except UsageError as problem:
        return str(problem)
    return "nothing"


if __name__ == "__main__":
    main()
