"""The picture `benchmark`: Trellis beside its peers, on a logarithmic scale, from a file that `make bench` writes."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from trellis.errors import UsageError
from trellis.report.style import COLOURS, plotly, styled

KINDS = {"Trellis": COLOURS[0], "peer": "#999999", "limit": COLOURS[4]}
BAR = 30  # pixels of height
UNITS = {"s": "seconds", "B": "bytes"}


def benchmark(data: dict[str, Any] | str | os.PathLike[str]) -> list[Any]:
    """Return a figure for each table of a benchmark that has something to draw.

    Parameters
    ----------
    data
        The report of a benchmark, or its file, such as `benchmarks/out/count.json`.
    """
    report = data if isinstance(data, dict) else _read(Path(data))
    return [figure for figure in map(table_figure, report["tables"]) if figure is not None]


def _read(file: Path) -> dict[str, Any]:
    try:
        report = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"{file} is not the report of a benchmark: {error}", "`make bench` writes them.") from None
    if not isinstance(report, dict) or "tables" not in report:
        raise UsageError(f"{file} is not the report of a benchmark", "`make bench` writes them.")
    return report


def table_figure(table: dict[str, Any]) -> Any:
    """Return a figure of one table: a line for each method, or a bar for each piece of work and each peer."""
    if "lines" in table:
        return _lines(table)
    bars = [bar for row in table["rows"] for bar in _bars(row)]
    return _bar_figure(table["title"], bars) if bars else None


def _bars(row: dict[str, Any]) -> list[tuple[str, str, float]]:
    if row["timing"] is None:
        return []
    peers = [("limit" if peer["limit"] else "peer", peer["name"], peer["timing"]["wall"]) for peer in row["peers"]]
    return [("Trellis", row["work"], row["timing"]["wall"]), *peers]


def _bar_figure(title: str, bars: list[tuple[str, str, float]]) -> Any:
    figure = plotly().Figure()
    places = list(range(len(bars), 0, -1))
    for kind, colour in KINDS.items():
        own = [(place, seconds) for place, (of, _, seconds) in zip(places, bars, strict=True) if of == kind]
        if own:
            figure.add_bar(
                x=[seconds for _, seconds in own], y=[place for place, _ in own], name=kind, orientation="h",
                marker_color=colour, text=[_seconds(seconds) for _, seconds in own], textposition="outside",
                cliponaxis=False, hoverinfo="skip",
            )  # fmt: skip
    styled(figure, title, "seconds, on a logarithmic scale")
    figure.update_yaxes(tickvals=places, ticktext=[name for _, name, _ in bars], automargin=True)
    figure.update_xaxes(type="log", dtick=1, automargin=True)
    figure.update_layout(height=150 + BAR * len(bars), margin={"r": 80})
    return figure


def _lines(table: dict[str, Any]) -> Any:
    """Draw a line for each method; those that gave up stop."""
    figure = plotly().Figure()
    for name, values in table["lines"].items():
        figure.add_scatter(x=list(map(str, table["places"])), y=values, name=name, mode="lines+markers")
    styled(figure, table["title"], table["setting"], UNITS.get(table["unit"], table["unit"]))
    figure.update_xaxes(type="category")
    figure.update_yaxes(type="log")
    return figure


def _seconds(value: float) -> str:
    for scale, name in ((1.0, "s"), (1e-3, "ms")):
        if value >= scale:
            return f"{value / scale:.3g} {name}"
    return f"{value / 1e-6:.3g} µs"
