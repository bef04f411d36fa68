"""Draws the pictures of the pages, over generated events: .venv/bin/python docs/pictures/draw.py

Chromium takes the photographs (`apt-get install chromium`); plotly's own script is in the page that it is shown.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import trellis
from trellis.archive.archive import Archive
from trellis.io.generate import generate_table
from trellis.report.pictures import benchmark

HERE = Path(__file__).parent
SIZE = (880, 420)
RISING = "PATTERN Stock+ s[] WHERE [name] AND s[i].price > s[i-1].price"
MEASURED = HERE / "benchmark.json"  # a file that `trellis bench` wrote


def stock(clauses: str = "", events: int = 150) -> Any:
    table = generate_table("stock", events, 7, companies=3)
    return trellis.query(f"{RISING} {clauses}").detect(table, event_id="event_id")


def timeline() -> Any:
    trends = stock("ORDER BY LENGTH DESC LIMIT 5")
    return trends.plot("timeline", trends=[trends[i] for i in (0, 2, 4)], y="price")


def graph() -> Any:
    table = generate_table("kite", 600, 1)
    trends = trellis.query(HERE.parents[1] / "examples" / "fraud_return.tq").detect(table, event_id="event_id")
    return trends.plot("graph", source="source", target="destination", trends=trends[:3])


def counts() -> Any:
    return stock("WITHIN 1 minute SLIDE 30 seconds", 300).plot("counts")


def through() -> Any:
    return stock().plot("through", y="price")


def funnel() -> Any:
    table = generate_table("zipf", 2000, 5)
    query = trellis.query("PATTERN SEQ(C c, D d, F f, H h) WITHIN 20 seconds")
    return query.detect(table, type="name", event_id="event_id").plot("funnel")


def plan() -> Any:
    return trellis.query("PATTERN SEQ(Login a, Transfer+ t[], NOT(Alarm x), Logout b) WHERE [user]").explain().plot()


def history() -> Any:
    table = generate_table("zipf", 4000, 1)
    with tempfile.TemporaryDirectory() as folder:
        archive = Archive.build(
            table, Path(folder) / "a", time="ts", type="name", event_id="event_id", leaf=20, height=6
        )
        return archive.plot("PATTERN SEQ(M a, N b, P c) WITHIN 1 minute", exact=True)


def measured() -> Any:
    return benchmark(MEASURED)[-1]


PICTURES: dict[str, Callable[[], Any]] = {
    "timeline": timeline, "graph": graph, "counts": counts, "through": through, "funnel": funnel, "plan": plan,
    "history": history, "benchmark": measured,
}  # fmt: skip


def photograph(figure: Any, file: Path) -> None:
    """Write what Chromium shows of a figure."""
    width, height = SIZE
    figure.update_layout(width=width, height=height, paper_bgcolor="white", plot_bgcolor="white")
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "page.html"
        text = figure.to_html(include_plotlyjs=True, config={"displayModeBar": False, "staticPlot": True})
        page.write_text(text.replace("<body>", '<body style="margin:0">'))
        command = shutil.which("chromium") or shutil.which("chromium-browser")
        if command is None:
            sys.exit("there is no Chromium here: `apt-get install chromium` gets one")
        subprocess.run(
            [
                command, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
                f"--user-data-dir={folder}/profile", f"--window-size={width},{height}",
                "--virtual-time-budget=8000", f"--screenshot={file}", page.as_uri(),
            ],
            check=True, capture_output=True, timeout=300,
        )  # fmt: skip


if __name__ == "__main__":
    for name in sys.argv[1:] or PICTURES:
        photograph(PICTURES[name](), HERE / f"{name}.png")
        print(f"{name}.png, {(HERE / f'{name}.png').stat().st_size:,} bytes")
