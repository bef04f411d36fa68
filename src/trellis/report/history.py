"""The picture `history`: where in the past a question may have answers, from large blocks down to leaves."""

from __future__ import annotations

from typing import Any

from trellis.report.style import COLOURS, plotly, styled
from trellis.results.display import number, python_values

MOST_LEVELS = 6


def levels_of(leaves: int, fan_out: int) -> list[int]:
    """Return the levels that are drawn: leaves, and some of those above them up to a few blocks."""
    top = 0
    while fan_out ** (top + 1) < leaves:
        top += 1
    step = max(1, -(-(top + 1) // MOST_LEVELS))
    return list(range(0, top + 1, step))


def history(archive: Any, pattern: object, exact: bool = False, **options: Any) -> Any:
    """Return where a pattern may have happened: a row of bars for each level, and what happened exactly.

    Parameters
    ----------
    archive
        The archive.
    pattern
        The question.
    exact
        Read the events that may matter, and mark what is found.
    options
        Those of `Archive.find`.
    """
    go = plotly()
    figure = go.Figure()
    fan_out = archive.manifest.fan_out
    drawn = levels_of(len(archive.answerer.leaves), fan_out)
    for i, level in enumerate(reversed(drawn)):
        rows = archive.find(pattern, level=level, **options)
        xs: list[Any] = []
        for begin, end in zip(python_values(rows["since"]), python_values(rows["until"]), strict=True):
            xs += [begin, end, None]
        figure.add_trace(
            go.Scatter(
                x=xs,
                y=[None if x is None else level for x in xs],
                mode="lines+markers",
                name=_name(fan_out**level),
                line={"width": 12, "color": COLOURS[i % len(COLOURS)]},
                marker={"size": 4, "color": COLOURS[i % len(COLOURS)]},
                connectgaps=False,
            )
        )
    title = "where it may have happened"
    if exact:
        found = archive.find(pattern, exact=True, params=options.get("params")).trends
        rows = found.to_arrow()
        starts, ends = python_values(rows["start_time"]), python_values(rows["end_time"])
        xs = [x for pair in zip(starts, ends, strict=True) for x in (*pair, None)]
        figure.add_trace(
            go.Scatter(
                x=xs, y=[None if x is None else -1 for x in xs], mode="lines+markers", name="exactly",
                line={"width": 2, "color": "#7f7f7f"}, marker={"size": 7, "symbol": "diamond"},
            )
        )  # fmt: skip
        title = f"{number(found.count())} results, and {title}"
    styled(figure, title, archive.manifest.time)
    ticks = [*drawn, *([-1] if exact else [])]
    texts = [*(_name(fan_out**level) for level in drawn), *(["exactly"] if exact else [])]
    figure.update_yaxes(tickvals=ticks, ticktext=texts, automargin=True)
    return figure


def _name(leaves: int) -> str:
    return "leaves" if leaves == 1 else f"blocks of {leaves:,} leaves"
