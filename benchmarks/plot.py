"""The plots of a report: a bar for each piece of work and each of its peers, on one page that needs no network."""

from __future__ import annotations

from html import escape
from typing import Any

import plotly.graph_objects as go
from plotly.io import to_html

from benchmarks.report import Figure, Limit, Report, Row, Table, amount

COLOURS = {"Trellis": "#0b6e4f", "peer": "#b0b7bf", "limit": "#e0a458"}
BAR = 34  # pixels of height

PAGE = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>Trellis: {name}</title>
<style>body {{ font: 15px/1.5 system-ui, sans-serif; max-width: 62em; margin: 2em auto; padding: 0 1em }}</style></head>
<body><h1>{name}</h1><p>{about}</p><ul>{machine}</ul>{plots}<p>{verdict}</p></body>
</html>
"""


def page(report: Report) -> str:
    """Return the page; the script that draws is part of it."""
    plots: list[str] = []
    script = True
    for table in report.tables:
        plots.append(f"<h2>{escape(table.title)}</h2>")
        figure = _figure(table)
        if figure is not None:
            plots.append(to_html(figure, full_html=False, include_plotlyjs=script, config={"displayModeBar": False}))
            script = False
        plots += [f"<p>{escape(note)}</p>" for note in table.notes]
    facts = "".join(f"<li>{escape(f'{name}: {value}')}</li>" for name, value in report.machine.items())
    return PAGE.format(
        name=escape(report.name), about=escape(report.about), machine=facts, plots="\n".join(plots),
        verdict=escape(report.verdict),
    )  # fmt: skip


def _figure(table: Table) -> Any:
    if isinstance(table, Figure):
        return _lines(table)
    bars = [bar for row in table.rows for bar in _bars(row)]
    if not bars:
        return None
    places = list(range(len(bars), 0, -1))
    figure = go.Figure()
    for kind, colour in COLOURS.items():
        own = [(place, *rest) for place, (kind_, *rest) in zip(places, bars, strict=True) if kind_ == kind]
        if own:
            ys, _, seconds = zip(*own, strict=True)
            figure.add_bar(
                x=seconds, y=ys, name=kind, orientation="h", marker_color=colour,
                text=[amount(s, "s") for s in seconds], textposition="outside", cliponaxis=False, hoverinfo="skip",
            )  # fmt: skip
    figure.update_yaxes(tickvals=places, ticktext=[label for _, label, _ in bars], automargin=True)
    figure.update_xaxes(type="log", dtick=1, title="seconds, on a logarithmic scale", automargin=True)
    figure.update_layout(
        template="plotly_white", height=130 + BAR * len(bars), margin={"t": 40, "r": 80, "l": 10},
        legend={"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 0},
    )  # fmt: skip
    return figure


def _lines(table: Figure) -> Any:
    """Draw a line for each method; those that gave up stop."""
    figure = go.Figure()
    for name, values in table.lines.items():
        figure.add_scatter(x=[str(place) for place in table.places], y=list(values), name=name, mode="lines+markers")
    figure.update_xaxes(title=table.setting, type="category", automargin=True)
    names = {"s": "seconds", "B": "bytes"}
    figure.update_yaxes(title=names.get(table.unit, table.unit), type="log", automargin=True)
    figure.update_layout(template="plotly_white", height=420, margin={"t": 30, "r": 20, "l": 10})
    return figure


def _bars(row: Row) -> list[tuple[str, str, float]]:
    if row.timing is None:
        return []
    own = [("Trellis", row.work, row.timing.wall)]
    return own + [("limit" if isinstance(p, Limit) else "peer", p.name, p.timing.wall) for p in row.peers]
