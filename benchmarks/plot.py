"""The plots of a report: a bar for each piece of work and each of its peers, on one page that needs no network."""

from __future__ import annotations

from html import escape

from plotly.io import to_html

from benchmarks.report import Report
from trellis.report.benchmark import table_figure

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
    for table, data in zip(report.tables, report.data()["tables"], strict=True):
        plots.append(f"<h2>{escape(table.title)}</h2>")
        figure = table_figure(data)
        if figure is not None:
            plots.append(to_html(figure, full_html=False, include_plotlyjs=script, config={"displayModeBar": False}))
            script = False
        plots += [f"<p>{escape(note)}</p>" for note in table.notes]
    facts = "".join(f"<li>{escape(f'{name}: {value}')}</li>" for name, value in report.machine.items())
    return PAGE.format(
        name=escape(report.name), about=escape(report.about), machine=facts, plots="\n".join(plots),
        verdict=escape(report.verdict),
    )  # fmt: skip
