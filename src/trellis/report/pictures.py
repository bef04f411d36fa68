"""Pictures of results by plotly: timeline, graph, counts, funnel and plan; others have files of their own."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from inspect import Parameter, signature
from math import ceil, log10
from typing import Any

import pyarrow as pa

from trellis.errors import UsageError, did_you_mean
from trellis.language.printer import pattern_text
from trellis.report.benchmark import benchmark
from trellis.report.history import history
from trellis.report.parts import MOST_EVENTS, check_column, measure_of
from trellis.report.style import BAND, COLOURS, QUIET, plotly, styled
from trellis.report.through import through
from trellis.results.display import about, exact_values, number, python_values, value_text
from trellis.results.trend import Trend

KINDS = ("timeline", "graph", "counts", "through", "funnel")
FEW = 5  # trends that are drawn unless others are chosen
FLOOR = -0.3  # the logarithm from which bars of counts rise
MOST_TICKS, LONG = 8, 7  # of an axis of logarithms; and the power of ten from which on it is written as one
__all__ = ["benchmark", "counts", "funnel", "graph", "history", "plan", "plot_results", "through", "timeline"]


def plot_results(results: Any, kind: str = "timeline", **options: Any) -> Any:
    """Return a picture of results, as a figure of plotly's.

    Parameters
    ----------
    results
        The results.
    kind
        `timeline`, `graph`, `counts`, `through` or `funnel`.
    options
        Of a timeline: `trends`, those to draw, and `y`, an attribute. Of a graph: `trends`, `source` and `target`,
        attributes. Of through: `partition`, and `y`.
    """
    makers: dict[str, Any] = {
        "timeline": timeline,
        "graph": graph,
        "counts": counts,
        "through": through,
        "funnel": funnel,
    }
    if kind not in makers:
        hint = did_you_mean(kind, KINDS, f"Pictures are {', '.join(KINDS)}.")
        raise UsageError(f"there is no picture `{kind}`", hint)
    _check_options(kind, list(signature(makers[kind]).parameters.values())[1:], options)
    return makers[kind](results, **options)


def _check_options(kind: str, known: list[Parameter], given: Collection[str]) -> None:
    """Refuse options that a picture does not have, and the lack of those that it needs."""
    names = [one.name for one in known]
    for name in given:
        if name not in names:
            others = f"Its options are {', '.join(names)}." if names else None
            raise UsageError(f"the picture `{kind}` has no option `{name}`", did_you_mean(name, names, others))
    missing = [one.name for one in known if one.default is one.empty and one.name not in given]
    if missing:
        example = ", ".join(f"{name}=COLUMN" for name in missing)
        raise UsageError(f"the picture `{kind}` needs {' and '.join(missing)}", f"Write plot('{kind}', {example}).")


# --- Trends over time -------------------------------------------------------------------------------------------


def timeline(results: Any, trends: Any = None, y: str | None = None) -> Any:
    """Return the events of a partition over time, trends as lines through them, and their windows as bands.

    Parameters
    ----------
    results
        The results.
    trends
        The trends to draw, all of one partition; by default the first few of the first partition.
    y
        The attribute that is drawn upwards; by default the first number that the conditions compare.
    """
    go = plotly()
    drawn = _drawn(results, trends)
    name = y or measure_of(results)
    time = results.plan.bound.schema.time
    figure = go.Figure()
    if not drawn:
        return styled(figure, "no trends", time, name)
    events = results.partition_events(drawn[0].partition, MOST_EVENTS)
    check_column(events, name)
    figure.add_trace(
        go.Scatter(
            x=python_values(events[time]),
            y=python_values(events[name]),
            mode="markers",
            name="events",
            marker={"color": QUIET, "size": 7},
        )
    )
    for i, trend in enumerate(drawn):
        rows = trend.to_arrow()
        label = "trend" if trend.rank is None else f"rank {value_text(trend.rank)}"
        figure.add_trace(
            go.Scatter(
                x=python_values(rows[time]),
                y=python_values(rows[name]),
                mode="lines+markers",
                name=label,
                line={"color": COLOURS[i % len(COLOURS)], "width": 2},
                marker={"size": 9},
                text=[f"{v} {value_text(e)}" for v, e in zip(trend.variables, trend.ids, strict=True)],
            )
        )
    for begin, end in dict.fromkeys(trend.window for trend in drawn if trend.window is not None):
        figure.add_vrect(x0=begin, x1=end, fillcolor=BAND, line_width=0, layer="below")
    where = ", ".join(f"{n} = {value_text(v)}" for n, v in drawn[0].partition.items())
    return styled(figure, " · ".join(filter(None, [pattern_text(results.plan.bound.pattern), where])), time, name)


def _drawn(results: Any, trends: Any) -> list[Trend]:
    """Return the trends to draw: those given, if they are of one partition, or the first few of the first one."""
    if trends is None:
        first = list(results[:FEW])
        return [trend for trend in first if str(trend.partition) == str(first[0].partition)]
    given = list(trends) if isinstance(trends, Iterable) and not isinstance(trends, Trend) else [trends]
    if not all(isinstance(trend, Trend) for trend in given):
        raise UsageError("trends are not trends", "Take them from results: trends=[results[0], results[7]].")
    if len({str(trend.partition) for trend in given}) > 1:
        raise UsageError("the trends of a timeline are of one partition", "Choose those of one, or draw each alone.")
    return given


# --- A trend as a path ------------------------------------------------------------------------------------------


def graph(results: Any, source: str, target: str, trends: Any = None, label: str | None = None) -> Any:
    """Return accounts, or whatever two attributes name, as nodes, and trends as paths along their events.

    Parameters
    ----------
    results
        The results.
    source, target
        The attributes that an event leads from and to.
    trends
        The trends to draw; by default the first few.
    label
        An attribute that is written beside each event, such as an amount.
    """
    go = plotly()
    drawn = list(results[:FEW]) if trends is None else [trends] if isinstance(trends, Trend) else list(trends)
    edges: list[tuple[Any, Any, str, str]] = []
    for trend in drawn:
        rows = trend.to_arrow()
        for name in (source, target):
            check_column(rows, name)
        times = map(value_text, python_values(rows[results.plan.bound.schema.time]))
        labels = [value_text(v) for v in python_values(rows[label])] if label is not None else [""] * len(trend)
        ends = zip(python_values(rows[source]), python_values(rows[target]), times, labels, strict=True)
        edges += [edge for edge in ends if edge not in edges]
    places = _circle([value for edge in edges for value in edge[:2]])
    figure = go.Figure()
    for begin, end, time, said in edges:
        (x0, y0), (x1, y1) = places[begin], places[end]
        figure.add_annotation(
            x=x1, y=y1, ax=x0, ay=y0, xref="x", yref="y", axref="x", ayref="y", showarrow=True, arrowhead=2,
            arrowcolor=COLOURS[0], standoff=12, startstandoff=12, text="",
        )  # fmt: skip
        middle = {"x": (x0 + x1) / 2, "y": (y0 + y1) / 2}
        figure.add_annotation(**middle, text=f"{said} {time}".strip(), showarrow=False, font={"size": 10})
    figure.add_trace(
        go.Scatter(
            x=[x for x, _ in places.values()],
            y=[y for _, y in places.values()],
            mode="markers+text",
            text=[value_text(name) for name in places],
            textposition="top center",
            name="nodes",
            marker={"size": 16, "color": COLOURS[1]},
        )
    )
    styled(figure, f"{source} to {target}: {number(len(drawn))} trends")
    figure.update_xaxes(visible=False)
    figure.update_yaxes(visible=False)
    return figure


def _circle(names: list[Any]) -> dict[Any, tuple[float, float]]:
    from math import cos, pi, sin

    nodes = list(dict.fromkeys(names))
    return {node: (cos(2 * pi * i / len(nodes)), sin(2 * pi * i / len(nodes))) for i, node in enumerate(nodes)}


# --- Numbers ----------------------------------------------------------------------------------------------------


def counts(results: Any) -> Any:
    """Return the number of results by window and partition: a heat map, or bars; the scale is logarithmic."""
    go = plotly()
    rows = results.counts().to_arrow()
    whole = exact_values(rows, "count")
    texts = [number(value) for value in whole]
    heights = [log10(value) if value < 10**300 else float(about(value).split("e")[1]) for value in whole]
    names = [name for name, _ in results.plan.bound.partition]
    labels = [", ".join(map(value_text, row)) or "all" for row in _rows(rows, names)]
    title = f"{number(sum(whole))} results"
    if "window_start" not in rows.column_names:
        tall = [height - FLOOR for height in heights]  # a single result has a bar, too
        figure = go.Figure(go.Bar(x=labels, y=tall, base=FLOOR, text=texts, marker_color=COLOURS[0]))
        figure.update_yaxes(**_powers(heights))
        return styled(figure, title, ", ".join(names), "results")
    windows = python_values(rows["window_start"])
    figure = go.Figure(
        go.Heatmap(
            x=windows,
            y=labels,
            z=heights,
            text=texts,
            hovertemplate="%{x}<br>%{y}<br>%{text}<extra></extra>",
            colorscale="Cividis",
            colorbar={"title": "results", **_powers(heights)},
        )
    )
    return styled(figure, title, "window", ", ".join(names))


def _powers(heights: list[float]) -> dict[str, list[Any]]:
    """Return the ticks of an axis of logarithms: the numbers that they stand for."""
    top = ceil(max(heights, default=0.0))
    powers = range(0, top + 1, max(1, ceil(top / MOST_TICKS)))
    return {"tickvals": [*powers], "ticktext": [number(10**p) if p < LONG else f"10<sup>{p:,}</sup>" for p in powers]}


def _rows(rows: pa.Table, names: list[str]) -> list[tuple[Any, ...]]:
    columns = [python_values(rows[name]) for name in names]
    return list(zip(*columns, strict=True)) if columns else [()] * rows.num_rows


def funnel(results: Any) -> Any:
    """Return how many starts reached each step of the pattern."""
    go = plotly()
    rows = results.funnel().to_arrow()
    steps, starts = python_values(rows["pattern"]), python_values(rows["starts"])
    figure = go.Figure(go.Funnel(y=steps, x=starts, marker={"color": COLOURS[0]}))
    return styled(figure, "how far starts got")


# --- A plan -----------------------------------------------------------------------------------------------------


def plan(data: dict[str, Any]) -> Any:
    """Return the automaton of a query as a picture, of the data of its explanation."""
    go = plotly()
    automaton = data["pattern"]["automaton"]
    ends = {a["state"] for a in automaton["accepting"]}
    figure = go.Figure()
    together: dict[tuple[int, int], list[str]] = {}
    for step in automaton["transitions"]:
        guard = f" (no {', no '.join(step['absent'])})" if step["absent"] else ""
        together.setdefault((step["from"], step["to"]), []).append(step["variable"] + guard)
    for (begin, end), names in together.items():
        text = ", ".join(names) + (" again" if begin == end else "")
        if begin == end:
            figure.add_annotation(x=begin, y=0.35, text=f"↻ {text}", showarrow=False)
            continue
        figure.add_annotation(
            x=end, y=0, ax=begin, ay=0, xref="x", yref="y", axref="x", ayref="y", showarrow=True, arrowhead=2,
            standoff=18, startstandoff=18, text="",
        )  # fmt: skip
        figure.add_annotation(x=(begin + end) / 2, y=0.12 * (end - begin), text=text, showarrow=False)
    states = list(range(automaton["states"]))
    colours = [COLOURS[2] if state in ends else COLOURS[0] for state in states]
    figure.add_trace(
        go.Scatter(
            x=states,
            y=[0] * len(states),
            mode="markers+text",
            text=[str(state) for state in states],
            name="states",
            textfont={"color": "white"},
            marker={"size": 30, "color": colours},
        )
    )
    styled(figure, f"{data['pattern']['text']}<br>{data['operator']['name']}: {data['operator']['because']}")
    figure.update_xaxes(visible=False)
    figure.update_yaxes(visible=False, range=[-0.6, 0.8])
    return figure
